//! The statements of a function's body: scopes, declarations, labels, instructions and their operands.

use super::{DEPTH, Parser, space};
use crate::ptx::error::Error;
use crate::ptx::lexer::Kind;
use crate::ptx::module::*;
use crate::ptx::opcode::Opcode;

impl Parser<'_> {
    pub(super) fn body(&mut self) -> Result<Body, Error> {
        let open = self.expect(b'{', "`{`")?.start;
        let mut statements = Vec::new();
        let mut scopes = 0u32;
        loop {
            if self.accept(b'{')? {
                scopes += 1;
                if scopes > DEPTH {
                    return Err(Error::Nesting { line: self.token.line });
                }
                statements.push(Statement::Open);
            } else if self.accept(b'}')? {
                if scopes == 0 {
                    return Ok(Body { statements, open });
                }
                scopes -= 1;
                statements.push(Statement::Close);
            } else if self.accept(b';')? {
                // An empty statement.
            } else if self.is_directive() {
                self.local_directive(&mut statements)?;
            } else if self.is(b'@') || self.token.kind == Kind::Word {
                self.instruction(&mut statements)?;
            } else {
                return Err(self.unexpected("a statement"));
            }
        }
    }

    fn local_directive(&mut self, statements: &mut Vec<Statement>) -> Result<(), Error> {
        let (start, line) = (self.token.start, self.token.line);
        let directive = self.word();
        self.bump()?;
        match directive {
            ".reg" => {
                let kinds = self.kinds()?;
                loop {
                    let name = self.name()?;
                    let count = if self.accept(b'<')? {
                        let count = self.small()?;
                        self.expect(b'>', "`>`")?;
                        Some(count)
                    } else {
                        None
                    };
                    statements.push(Statement::Registers(Registers {
                        name,
                        count,
                        scalar: kinds.scalar,
                        lanes: kinds.lanes,
                    }));
                    if !self.accept(b',')? {
                        break;
                    }
                }
                self.expect(b';', "`;` after registers")?;
            }
            ".visible" | ".extern" | ".weak" | ".common" => {}
            ".global" | ".shared" | ".const" | ".tex" | ".param" | ".local" => {
                let mut variables = Vec::new();
                self.variables(space(directive), Linkage::Internal, (start, line), &mut variables)?;
                statements.extend(variables.into_iter().map(Statement::Variable));
            }
            ".loc" | ".file" => self.skip_line_of(line)?,
            ".section" => self.skip_section()?,
            _ => self.skip_statement()?,
        }
        Ok(())
    }

    fn instruction(&mut self, statements: &mut Vec<Statement>) -> Result<(), Error> {
        let mut guard = None;
        if self.accept(b'@')? {
            let negated = self.accept(b'!')?;
            guard = Some(Guard { register: self.name()?, negated });
        }
        let token = self.token;
        let word = self.name()?;
        if guard.is_none() && self.accept(b':')? {
            return self.labelled(word, token.line, statements);
        }
        let mut operands = Vec::new();
        while !self.accept(b';')? {
            operands.push(self.operand()?);
            // `call.uni (retval0), f, (a);`, `tex.2d.v4.f32.f32 {...}, [...]`: commas throughout.
            if !self.accept(b',')? && !self.is(b';') {
                return Err(self.unexpected("`,` or `;`"));
            }
        }
        statements.push(Statement::Instruction(Instruction {
            line: token.line,
            start: token.start,
            guard,
            opcode: Opcode::parse(word),
            operands,
        }));
        Ok(())
    }

    /// What follows a label: a table of targets, a prototype, or any statement (left to the caller).
    fn labelled(&mut self, name: Box<str>, line: u32, statements: &mut Vec<Statement>) -> Result<(), Error> {
        let directive = if self.is_directive() { self.word() } else { "" };
        match directive {
            ".branchtargets" | ".calltargets" => {
                self.bump()?;
                let mut targets = Vec::new();
                loop {
                    targets.push(self.name()?);
                    if !self.accept(b',')? {
                        break;
                    }
                }
                self.expect(b';', "`;` after targets")?;
                statements.push(Statement::Targets { label: name, targets });
            }
            ".callprototype" => {
                self.bump()?;
                let returns = if self.is(b'(') { self.parameters()? } else { Vec::new() };
                self.name()?;
                let parameters = if self.is(b'(') { self.parameters()? } else { Vec::new() };
                self.skip_statement()?;
                statements.push(Statement::Prototype { label: name, returns, parameters });
            }
            _ => statements.push(Statement::Label(Label { name, line })),
        }
        Ok(())
    }

    fn list(&mut self, close: u8) -> Result<Vec<Operand>, Error> {
        self.enter()?;
        let mut operands = Vec::new();
        while !self.accept(close)? {
            operands.push(self.operand()?);
            if !self.accept(b',')? && !self.is(close) {
                return Err(self.unexpected("`,` or the end of a list"));
            }
        }
        self.depth -= 1;
        Ok(operands)
    }

    fn operand(&mut self) -> Result<Operand, Error> {
        let first = match self.token.kind {
            Kind::Mark(b'{') => {
                self.bump()?;
                Operand::Vector(self.list(b'}')?)
            }
            Kind::Mark(b'(') => {
                self.bump()?;
                Operand::Group(self.list(b')')?)
            }
            Kind::Mark(b'[') => {
                self.bump()?;
                address(self.list(b']')?)
            }
            Kind::Mark(b'!') => {
                self.bump()?;
                self.nested().map(|inner| Operand::Not(Box::new(inner)))?
            }
            Kind::Mark(b'-') => {
                self.bump()?;
                if self.token.kind == Kind::Number {
                    match self.constant()? {
                        Operand::Integer(bits) => Operand::Integer(bits.wrapping_neg()),
                        Operand::Float(bits) => Operand::Float(bits ^ 1 << 31),
                        Operand::Double(bits) => Operand::Double(bits ^ 1 << 63),
                        other => other,
                    }
                } else {
                    self.nested().map(|inner| Operand::Minus(Box::new(inner)))?
                }
            }
            Kind::Mark(b'+') | Kind::Number => {
                let value = self.constant()?;
                match value {
                    Operand::Integer(bits) => Operand::Integer(bits.wrapping_add(self.displacement()? as u64)),
                    other => other,
                }
            }
            Kind::Word if !self.is_directive() => {
                let name = self.name()?;
                match &*name {
                    "_" => Operand::Sink,
                    "WARP_SZ" => Operand::Integer(32),
                    _ if self.is(b'+') || self.is(b'-') => Operand::Displaced(name, self.displacement()?),
                    _ => Operand::Name(name),
                }
            }
            _ => return Err(self.unexpected("an operand")),
        };
        if self.accept(b'|')? {
            let second = self.nested()?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    fn nested(&mut self) -> Result<Operand, Error> {
        self.enter()?;
        let operand = self.operand();
        self.depth -= 1;
        operand
    }
}

/// What stands between brackets, as an address where it is one.
fn address(mut list: Vec<Operand>) -> Operand {
    if list.len() == 1 {
        match list.pop() {
            Some(Operand::Name(name)) => {
                return Operand::Address { base: Some(name), offset: 0 };
            }
            Some(Operand::Displaced(name, offset)) => {
                return Operand::Address { base: Some(name), offset };
            }
            Some(Operand::Integer(bits)) => {
                return Operand::Address { base: None, offset: bits as i64 };
            }
            Some(other) => list.push(other),
            None => {}
        }
    }
    Operand::Brackets(list)
}
