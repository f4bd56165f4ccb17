//! The statements of a function's body: scopes, declarations, labels, instructions and their
//! operands.

use super::{DEPTH, Parser, state_space};
use crate::ptx::error::PtxError;
use crate::ptx::lexer::TokenKind;
use crate::ptx::module::*;
use crate::ptx::opcode::Opcode;

impl Parser<'_> {
    pub(super) fn parse_body(&mut self) -> Result<Body, PtxError> {
        let open = self.expect_mark(b'{', "`{`")?.start;
        let mut statements = Vec::new();
        let mut scopes = 0u32;
        loop {
            if self.accept_mark(b'{')? {
                scopes += 1;
                if scopes > DEPTH {
                    return Err(PtxError::Nesting { line: self.token.line });
                }
                statements.push(Statement::Open);
            } else if self.accept_mark(b'}')? {
                if scopes == 0 {
                    return Ok(Body { statements, open });
                }
                scopes -= 1;
                statements.push(Statement::Close);
            } else if self.accept_mark(b';')? {
                // An empty statement.
            } else if self.is_directive() {
                self.local_directive(&mut statements)?;
            } else if self.is_mark(b'@') || self.token.kind == TokenKind::Word {
                self.parse_instruction(&mut statements)?;
            } else {
                return Err(self.unexpected_token("a statement"));
            }
        }
    }

    fn local_directive(&mut self, statements: &mut Vec<Statement>) -> Result<(), PtxError> {
        let (start, line) = (self.token.start, self.token.line);
        let directive = self.current_word();
        self.next_token()?;
        match directive {
            ".reg" => {
                let kinds = self.parse_kinds()?;
                loop {
                    let name = self.parse_name()?;
                    let count = if self.accept_mark(b'<')? {
                        let count = self.parse_small()?;
                        self.expect_mark(b'>', "`>`")?;
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
                    if !self.accept_mark(b',')? {
                        break;
                    }
                }
                self.expect_mark(b';', "`;` after registers")?;
            }
            ".visible" | ".extern" | ".weak" | ".common" => {}
            ".global" | ".shared" | ".const" | ".tex" | ".param" | ".local" => {
                let mut variables = Vec::new();
                self.parse_variables(state_space(directive), Linkage::Internal, (start, line), &mut variables)?;
                statements.extend(variables.into_iter().map(Statement::Variable));
            }
            ".loc" | ".file" => self.skip_line_of(line)?,
            ".section" => self.skip_section()?,
            _ => self.skip_statement()?,
        }
        Ok(())
    }

    fn parse_instruction(&mut self, statements: &mut Vec<Statement>) -> Result<(), PtxError> {
        let mut guard = None;
        if self.accept_mark(b'@')? {
            let negated = self.accept_mark(b'!')?;
            guard = Some(Guard { register: self.parse_name()?, negated });
        }
        let token = self.token;
        let word = self.parse_name()?;
        if guard.is_none() && self.accept_mark(b':')? {
            return self.parse_labelled(word, token.line, statements);
        }
        let mut operands = Vec::new();
        while !self.accept_mark(b';')? {
            operands.push(self.parse_operand()?);
            // `call.uni (retval0), f, (a);`, `tex.2d.v4.f32.f32 {...}, [...]`: commas throughout.
            if !self.accept_mark(b',')? && !self.is_mark(b';') {
                return Err(self.unexpected_token("`,` or `;`"));
            }
        }
        statements.push(Statement::Instruction(Instruction {
            line: token.line,
            span: token.start..self.ended,
            guard,
            opcode: Opcode::parse(word),
            operands,
        }));
        Ok(())
    }

    /// What follows a label: a table of targets, a prototype, or any statement (left to the
    /// caller).
    fn parse_labelled(&mut self, name: Box<str>, line: u32, statements: &mut Vec<Statement>) -> Result<(), PtxError> {
        let directive = if self.is_directive() { self.current_word() } else { "" };
        match directive {
            ".branchtargets" | ".calltargets" => {
                self.next_token()?;
                let mut targets = Vec::new();
                loop {
                    targets.push(self.parse_name()?);
                    if !self.accept_mark(b',')? {
                        break;
                    }
                }
                self.expect_mark(b';', "`;` after targets")?;
                statements.push(Statement::Targets { label: name, targets });
            }
            ".callprototype" => {
                self.next_token()?;
                let returns = if self.is_mark(b'(') { self.parse_parameters()? } else { Vec::new() };
                self.parse_name()?;
                let parameters = if self.is_mark(b'(') { self.parse_parameters()? } else { Vec::new() };
                self.skip_statement()?;
                statements.push(Statement::Prototype { label: name, returns, parameters });
            }
            _ => statements.push(Statement::Label(Label { name, line })),
        }
        Ok(())
    }

    fn parse_list(&mut self, close: u8) -> Result<Vec<Operand>, PtxError> {
        self.enter_nesting()?;
        let mut operands = Vec::new();
        while !self.accept_mark(close)? {
            operands.push(self.parse_operand()?);
            if !self.accept_mark(b',')? && !self.is_mark(close) {
                return Err(self.unexpected_token("`,` or the end of a list"));
            }
        }
        self.depth -= 1;
        Ok(operands)
    }

    fn parse_operand(&mut self) -> Result<Operand, PtxError> {
        let first = match self.token.kind {
            TokenKind::Mark(b'{') => {
                self.next_token()?;
                Operand::Vector(self.parse_list(b'}')?)
            }
            TokenKind::Mark(b'(') => {
                self.next_token()?;
                Operand::Group(self.parse_list(b')')?)
            }
            TokenKind::Mark(b'[') => {
                self.next_token()?;
                address_operand(self.parse_list(b']')?)
            }
            TokenKind::Mark(b'!') => {
                self.next_token()?;
                self.parse_nested().map(|inner| Operand::Not(Box::new(inner)))?
            }
            TokenKind::Mark(b'-') => {
                self.next_token()?;
                if self.token.kind == TokenKind::Number {
                    match self.parse_constant()? {
                        Operand::Integer(bits) => Operand::Integer(bits.wrapping_neg()),
                        Operand::Float(bits) => Operand::Float(bits ^ 1 << 31),
                        Operand::Double(bits) => Operand::Double(bits ^ 1 << 63),
                        other => other,
                    }
                } else {
                    self.parse_nested().map(|inner| Operand::Minus(Box::new(inner)))?
                }
            }
            TokenKind::Mark(b'+') | TokenKind::Number => {
                let value = self.parse_constant()?;
                match value {
                    Operand::Integer(bits) => Operand::Integer(bits.wrapping_add(self.parse_displacement()? as u64)),
                    other => other,
                }
            }
            TokenKind::Word if !self.is_directive() => {
                let name = self.parse_name()?;
                match &*name {
                    "_" => Operand::Sink,
                    "WARP_SZ" => Operand::Integer(32),
                    _ if self.is_mark(b'+') || self.is_mark(b'-') => {
                        Operand::Displaced(name, self.parse_displacement()?)
                    }
                    _ => Operand::Name(name),
                }
            }
            _ => return Err(self.unexpected_token("an operand")),
        };
        if self.accept_mark(b'|')? {
            let second = self.parse_nested()?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    fn parse_nested(&mut self) -> Result<Operand, PtxError> {
        self.enter_nesting()?;
        let operand = self.parse_operand();
        self.depth -= 1;
        operand
    }
}

/// What stands between brackets, as an address where it is one.
fn address_operand(mut list: Vec<Operand>) -> Operand {
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
