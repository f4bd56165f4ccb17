//! Tokens -> [`Module`].
//!
//! The grammar is read loosely: what ptxas would reject later (types that do not fit,
//! undeclared names) passes, what cannot be placed at all is an error with its line. Debug
//! sections are skipped.

mod literal;
mod statement;

use super::error::PtxError;
use super::lexer::{Lexer, PtxToken, TokenKind};
use super::module::*;
use super::types::{Scalar, StateSpace};
use literal::{parse_integer, parse_number};

/// Deepest nesting of scopes, braces and brackets that is read.
const DEPTH: u32 = 200;

impl Module {
    /// Reads PTX text.
    ///
    /// # Errors
    /// [`PtxError::Unexpected`], [`PtxError::Unterminated`], [`PtxError::Number`] or
    /// [`PtxError::Nesting`], with the line.
    pub fn parse(text: &str) -> Result<Self, PtxError> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next_token()?;
        Parser { text, lexer, token, ended: 0, depth: 0 }.parse_module()
    }
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// The token that is looked at.
    token: PtxToken,
    /// Where the token before it ends.
    ended: usize,
    depth: u32,
}

/// What precedes the names of a variable declaration.
struct Kinds {
    scalar: Scalar,
    lanes: u8,
    align: Option<u32>,
    pointer: bool,
}

impl<'t> Parser<'t> {
    fn current_word(&self) -> &'t str {
        &self.text[self.token.start..self.token.end]
    }

    fn next_token(&mut self) -> Result<PtxToken, PtxError> {
        let next = self.lexer.next_token()?;
        self.ended = self.token.end;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn is_mark(&self, mark: u8) -> bool {
        self.token.kind == TokenKind::Mark(mark)
    }

    fn accept_mark(&mut self, mark: u8) -> Result<bool, PtxError> {
        let found = self.is_mark(mark);
        if found {
            self.next_token()?;
        }
        Ok(found)
    }

    fn expect_mark(&mut self, mark: u8, expected: &'static str) -> Result<PtxToken, PtxError> {
        if self.is_mark(mark) { self.next_token() } else { Err(self.unexpected_token(expected)) }
    }

    fn unexpected_token(&self, expected: &'static str) -> PtxError {
        let end = self.token.kind == TokenKind::End;
        let found = if end { "end of text".to_owned() } else { self.current_word().chars().take(40).collect() };
        PtxError::Unexpected { line: self.token.line, expected, found }
    }

    fn is_directive(&self) -> bool {
        self.token.kind == TokenKind::Word && self.current_word().starts_with('.')
    }

    fn parse_name(&mut self) -> Result<Box<str>, PtxError> {
        if self.token.kind != TokenKind::Word || self.is_directive() {
            return Err(self.unexpected_token("a name"));
        }
        let name = self.current_word().into();
        self.next_token()?;
        Ok(name)
    }

    fn parse_unsigned(&mut self) -> Result<u64, PtxError> {
        if self.token.kind != TokenKind::Number {
            return Err(self.unexpected_token("a number"));
        }
        let value = parse_integer(self.current_word()).ok_or_else(|| self.bad_number())?;
        self.next_token()?;
        Ok(value)
    }

    fn parse_small(&mut self) -> Result<u32, PtxError> {
        let error = self.bad_number();
        u32::try_from(self.parse_unsigned()?).map_err(|_| error)
    }

    fn bad_number(&self) -> PtxError {
        PtxError::Number { line: self.token.line, text: self.current_word().chars().take(40).collect() }
    }

    fn enter_nesting(&mut self) -> Result<(), PtxError> {
        self.depth += 1;
        if self.depth > DEPTH { Err(PtxError::Nesting { line: self.token.line }) } else { Ok(()) }
    }

    fn parse_module(mut self) -> Result<Module, PtxError> {
        let mut module = Module { address_size: 64, ..Module::default() };
        let mut linkage = Linkage::Internal;
        // Where the words before a declaration (`.visible`) begin.
        let mut before = None;
        while self.token.kind != TokenKind::End {
            if self.accept_mark(b';')? {
                continue;
            }
            if !self.is_directive() {
                return Err(self.unexpected_token("a directive"));
            }
            let line = self.token.line;
            let start = before.take().unwrap_or(self.token.start);
            let directive = self.current_word();
            self.next_token()?;
            match directive {
                ".version" => module.version = self.parse_version()?,
                ".target" => loop {
                    module.target.push(self.parse_name()?);
                    if !self.accept_mark(b',')? {
                        break;
                    }
                },
                ".address_size" => module.address_size = self.parse_small()?,
                ".visible" | ".extern" | ".weak" | ".common" => {
                    linkage = match directive {
                        ".visible" => Linkage::Visible,
                        ".extern" => Linkage::Extern,
                        ".weak" => Linkage::Weak,
                        _ => Linkage::Common,
                    };
                    before = Some(start);
                }
                ".entry" | ".func" => {
                    let mut function =
                        self.parse_function(directive == ".entry", std::mem::take(&mut linkage), line)?;
                    function.span = start..self.ended;
                    module.functions.push(function);
                }
                ".global" | ".shared" | ".const" | ".tex" | ".param" | ".local" => {
                    let linkage = std::mem::take(&mut linkage);
                    self.parse_variables(state_space(directive), linkage, (start, line), &mut module.variables)?;
                }
                ".file" => self.skip_line_of(line)?,
                ".loc" => self.skip_line_of(line)?,
                ".section" => self.skip_section()?,
                ".noreturn" => {}
                _ => self.skip_statement()?,
            }
        }
        Ok(module)
    }

    /// `9.0`: the lexer reads it as one number.
    fn parse_version(&mut self) -> Result<(u32, u32), PtxError> {
        let error = self.bad_number();
        let (major, minor) = self.current_word().split_once('.').ok_or_else(|| self.unexpected_token("a version"))?;
        let pair = (major.parse().map_err(|_| error.clone())?, minor.parse().map_err(|_| error)?);
        self.next_token()?;
        Ok(pair)
    }

    /// Debug directives end with their line, not with a semicolon.
    fn skip_line_of(&mut self, line: u32) -> Result<(), PtxError> {
        while self.token.line == line && self.token.kind != TokenKind::End {
            self.next_token()?;
        }
        Ok(())
    }

    fn skip_section(&mut self) -> Result<(), PtxError> {
        while !self.is_mark(b'{') {
            if self.token.kind == TokenKind::End {
                return Err(self.unexpected_token("the end of a section"));
            }
            self.next_token()?;
        }
        let mut depth = 0u32;
        loop {
            match self.token.kind {
                TokenKind::Mark(b'{') => depth += 1,
                TokenKind::Mark(b'}') => depth -= 1,
                TokenKind::End => return Err(self.unexpected_token("the end of a section")),
                _ => {}
            }
            self.next_token()?;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn skip_statement(&mut self) -> Result<(), PtxError> {
        while !self.is_mark(b';') {
            if self.token.kind == TokenKind::End {
                return Err(self.unexpected_token("`;`"));
            }
            self.next_token()?;
        }
        self.next_token()?;
        Ok(())
    }

    fn parse_function(&mut self, entry: bool, linkage: Linkage, line: u32) -> Result<PtxFunction, PtxError> {
        self.skip_attributes()?;
        let returns = if self.is_mark(b'(') { self.parse_parameters()? } else { Vec::new() };
        let name = self.parse_name()?;
        let has_parameters = self.is_mark(b'(');
        let parameters = if has_parameters { self.parse_parameters()? } else { Vec::new() };
        let parameters_end = has_parameters.then(|| self.ended - 1);
        let mut directives = Vec::new();
        let body = loop {
            if self.accept_mark(b';')? {
                break None;
            }
            if self.is_mark(b'{') {
                break Some(self.parse_body()?);
            }
            if !self.is_directive() {
                return Err(self.unexpected_token("a directive, `{` or `;`"));
            }
            let directive = self.parse_directive()?;
            if &*directive.name == ".pragma" {
                self.accept_mark(b';')?;
            }
            directives.push(directive);
        };
        Ok(PtxFunction {
            name,
            entry,
            linkage,
            returns,
            parameters,
            parameters_end,
            directives,
            body,
            line,
            span: 0..0,
        })
    }

    /// `.attribute(.managed)`: of no use to a reader of code.
    fn skip_attributes(&mut self) -> Result<(), PtxError> {
        while self.token.kind == TokenKind::Word && self.current_word() == ".attribute" {
            self.next_token()?;
            self.expect_mark(b'(', "`(`")?;
            while !self.accept_mark(b')')? {
                if matches!(self.token.kind, TokenKind::End | TokenKind::Mark(b';' | b'{' | b'}')) {
                    return Err(self.unexpected_token("`)`"));
                }
                // `.unified(1, 2)` has parentheses of its own.
                if self.accept_mark(b'(')? {
                    while !self.accept_mark(b')')? {
                        if self.token.kind == TokenKind::End {
                            return Err(self.unexpected_token("`)`"));
                        }
                        self.next_token()?;
                    }
                } else {
                    self.next_token()?;
                }
            }
        }
        Ok(())
    }

    fn parse_directive(&mut self) -> Result<Directive, PtxError> {
        let token = self.token;
        let name: Box<str> = self.current_word().into();
        self.next_token()?;
        let mut end = token.end;
        let mut values = Vec::new();
        if matches!(self.token.kind, TokenKind::Number | TokenKind::Text) {
            loop {
                end = self.token.end;
                match self.token.kind {
                    TokenKind::Text => drop(self.next_token()?),
                    _ => values.push(self.parse_unsigned()?),
                }
                if !self.accept_mark(b',')? {
                    break;
                }
            }
        }
        Ok(Directive { name, values, span: token.start..end, line: token.line })
    }

    fn parse_parameters(&mut self) -> Result<Vec<Parameter>, PtxError> {
        self.expect_mark(b'(', "`(`")?;
        let mut parameters = Vec::new();
        while !self.accept_mark(b')')? {
            if !self.is_directive() {
                return Err(self.unexpected_token("`.param`"));
            }
            let register = self.current_word() == ".reg";
            self.next_token()?;
            let kinds = self.parse_kinds()?;
            let (name, size, _) = self.parse_declarator(&kinds)?;
            let align = kinds.align.unwrap_or_else(|| natural_alignment(&kinds));
            parameters.push(Parameter { name, register, scalar: kinds.scalar, align, size, pointer: kinds.pointer });
            if !self.accept_mark(b',')? && !self.is_mark(b')') {
                return Err(self.unexpected_token("`,` or `)`"));
            }
        }
        Ok(parameters)
    }

    /// Type, vector, alignment and pointer words, in any order.
    fn parse_kinds(&mut self) -> Result<Kinds, PtxError> {
        let mut kinds = Kinds { scalar: Scalar::B32, lanes: 1, align: None, pointer: false };
        let mut typed = false;
        while self.is_directive() {
            let word = self.current_word();
            if word == ".attribute" {
                self.skip_attributes()?;
                continue;
            }
            self.next_token()?;
            match &word[1..] {
                "align" => kinds.align = Some(self.parse_small()?),
                "ptr" => kinds.pointer = true,
                "v2" => kinds.lanes = 2,
                "v4" => kinds.lanes = 4,
                "v8" => kinds.lanes = 8,
                // The space that a `.ptr` parameter points to.
                "global" | "shared" | "const" | "local" | "space" => {}
                other => {
                    if let Some(scalar) = Scalar::from_name(other) {
                        kinds.scalar = scalar;
                        typed = true;
                    }
                }
            }
        }
        if typed { Ok(kinds) } else { Err(self.unexpected_token("a type")) }
    }

    /// `name`, `name[4][2]` or `name[]`, with the size in bytes and the array's extents.
    fn parse_declarator(&mut self, kinds: &Kinds) -> Result<(Box<str>, u64, Vec<u64>), PtxError> {
        let name = self.parse_name()?;
        let mut extents = Vec::new();
        while self.accept_mark(b'[')? {
            extents.push(if self.is_mark(b']') { 0 } else { self.parse_unsigned()? });
            self.expect_mark(b']', "`]`")?;
        }
        let element = u64::from(kinds.scalar.size()) * u64::from(kinds.lanes);
        let size = extents.iter().fold(element, |size, &extent| size.saturating_mul(extent));
        Ok((name, size, extents))
    }

    fn parse_variables(
        &mut self,
        space: StateSpace,
        linkage: Linkage,
        (start, line): (usize, u32),
        into: &mut Vec<PtxVariable>,
    ) -> Result<(), PtxError> {
        let first = into.len();
        let kinds = self.parse_kinds()?;
        let align = kinds.align.unwrap_or_else(|| natural_alignment(&kinds));
        loop {
            let (name, mut size, extents) = self.parse_declarator(&kinds)?;
            let mut initial = None;
            if self.accept_mark(b'=')? {
                let mut values = Vec::new();
                let end = self.parse_initialiser(&kinds, &extents, 0, &mut values)?;
                size = size.max(end);
                initial = Some(values);
            }
            let (scalar, lanes) = (kinds.scalar, kinds.lanes);
            into.push(PtxVariable { name, space, scalar, lanes, align, size, linkage, initial, line, span: 0..0 });
            if !self.accept_mark(b',')? {
                break;
            }
        }
        let end = self.expect_mark(b';', "`;` after a variable")?.end;
        into[first..].iter_mut().for_each(|variable| variable.span = start..end);
        Ok(())
    }

    /// Reads one value or a braced list that begins at byte `at`; gives the byte after it.
    fn parse_initialiser(
        &mut self,
        kinds: &Kinds,
        extents: &[u64],
        at: u64,
        into: &mut Vec<(u64, Initial)>,
    ) -> Result<u64, PtxError> {
        let scalar = u64::from(kinds.scalar.size());
        if !self.accept_mark(b'{')? {
            let value = self.parse_initial(kinds.scalar)?;
            into.push((at, value));
            return Ok(at.saturating_add(scalar));
        }
        self.enter_nesting()?;
        let inner = extents.get(1..).unwrap_or(&[]);
        let stride = inner.iter().fold(scalar * u64::from(kinds.lanes), |size, &extent| size.saturating_mul(extent));
        let (mut next, mut row) = (at, at);
        while !self.accept_mark(b'}')? {
            if self.is_mark(b'{') {
                // A nested list fills one element of this dimension, whatever it leaves out.
                self.parse_initialiser(kinds, inner, row, into)?;
                next = row.saturating_add(stride);
            } else {
                next = self.parse_initialiser(kinds, inner, next, into)?;
            }
            row = next;
            if !self.accept_mark(b',')? && !self.is_mark(b'}') {
                return Err(self.unexpected_token("`,` or `}`"));
            }
        }
        self.depth -= 1;
        Ok(next)
    }

    fn parse_initial(&mut self, scalar: Scalar) -> Result<Initial, PtxError> {
        // `generic(name)`, `mask(name)` and `0xFF(name)` wrap an address.
        if self.token.kind == TokenKind::Word {
            let mut name = self.parse_name()?;
            let wrapped = self.accept_mark(b'(')?;
            if wrapped {
                name = self.parse_name()?;
            }
            let mut offset = self.parse_displacement()?;
            if wrapped {
                self.expect_mark(b')', "`)`")?;
                offset = offset.wrapping_add(self.parse_displacement()?);
            }
            return Ok(Initial::Address { name, offset });
        }
        let value = self.parse_constant()?;
        if self.accept_mark(b'(')? {
            let name = self.parse_name()?;
            let offset = self.parse_displacement()?;
            self.expect_mark(b')', "`)`")?;
            return Ok(Initial::Address { name, offset });
        }
        Ok(Initial::Bits(match (value, scalar) {
            (Operand::Integer(bits), _) => bits,
            (Operand::Float(bits), Scalar::F64) => f64::from(f32::from_bits(bits)).to_bits(),
            (Operand::Float(bits), _) => u64::from(bits),
            (Operand::Double(bits), Scalar::F32) => u64::from((f64::from_bits(bits) as f32).to_bits()),
            (Operand::Double(bits), _) => bits,
            _ => return Err(self.unexpected_token("a value")),
        }))
    }

    /// `+4`, `-4`, `+-4` or nothing.
    fn parse_displacement(&mut self) -> Result<i64, PtxError> {
        let mut offset = 0i64;
        while self.is_mark(b'+') || self.is_mark(b'-') {
            let mut negative = false;
            while self.is_mark(b'+') || self.is_mark(b'-') {
                negative ^= self.is_mark(b'-');
                self.next_token()?;
            }
            let value = self.parse_unsigned()? as i64;
            offset = if negative { offset.wrapping_sub(value) } else { offset.wrapping_add(value) };
        }
        Ok(offset)
    }

    /// A number with its sign.
    fn parse_constant(&mut self) -> Result<Operand, PtxError> {
        let mut negative = false;
        while self.is_mark(b'-') || self.is_mark(b'+') {
            negative ^= self.is_mark(b'-');
            self.next_token()?;
        }
        if self.token.kind != TokenKind::Number {
            return Err(self.unexpected_token("a number"));
        }
        let value = parse_number(self.current_word()).ok_or_else(|| self.bad_number())?;
        self.next_token()?;
        Ok(match (value, negative) {
            (Operand::Integer(bits), true) => Operand::Integer(bits.wrapping_neg()),
            (Operand::Float(bits), true) => Operand::Float(bits ^ 1 << 31),
            (Operand::Double(bits), true) => Operand::Double(bits ^ 1 << 63),
            (value, _) => value,
        })
    }
}

fn state_space(directive: &str) -> StateSpace {
    match directive {
        ".global" => StateSpace::Global,
        ".shared" => StateSpace::Shared,
        ".const" => StateSpace::Const,
        ".local" => StateSpace::Local,
        ".param" => StateSpace::Param,
        _ => StateSpace::Texture,
    }
}

fn natural_alignment(kinds: &Kinds) -> u32 {
    kinds.scalar.size() * u32::from(kinds.lanes)
}
