//! Tokens -> expressions.
//!
//! A [`Cursor`] walks the tokens of one piece of a clause (an item between two commas) and
//! never leaves it, so that an error in one item leaves the others to be checked. Depth and
//! size of an expression are bounded.

use super::constant_definitions::is_defined;
use super::expression::{Expr, Node};
use super::lexer::{Token, TokenKind};
use super::value::{BINARY, Fault, Function, Math, Unary, Value};
use crate::cuda::Type;
use crate::cuda::brackets::{Depth, closes_bracket, split_parts};
use crate::diag::diagnostic::nearest;
use crate::diag::{Diagnostic, MessageCode, suggestion};
use crate::diag::{Source, Span};

/// The deepest nesting and the most nodes of an expression.
const MAX_DEPTH: usize = 64;
const MAX_NODES: usize = 1_000;

/// Types to name where `sizeof` is asked for one that nobody knows.
const USUAL_TYPES: [&str; 24] = [
    "char",
    "int8_t",
    "uint8_t",
    "bool",
    "short",
    "int16_t",
    "uint16_t",
    "half",
    "__half",
    "__nv_bfloat16",
    "int",
    "unsigned",
    "int32_t",
    "uint32_t",
    "float",
    "half2",
    "double",
    "int64_t",
    "uint64_t",
    "size_t",
    "float2",
    "float3",
    "float4",
    "double2",
];

/// The size of a type in bytes, where its text tells.
pub(super) fn type_size(kind: &str) -> Option<i64> {
    let is_pointer = kind.trim_end().trim_end_matches("const").trim_end().ends_with('*');
    let size = if is_pointer { Some(size_of::<u64>()) } else { Type::element(kind).map(|element| element.size()) };
    size.and_then(|size| i64::try_from(size).ok())
}

/// The name of the size of a type that may be a parameter of the template.
pub(super) fn size_name(kind: &str) -> String {
    format!("sizeof({kind})")
}

/// The type whose size a name is.
pub(super) fn size_asked(name: &str) -> Option<&str> {
    name.strip_prefix("sizeof(")?.strip_suffix(')')
}

pub(super) fn unknown_type(kind: &str) -> String {
    match nearest(kind, USUAL_TYPES) {
        Some(near) => format!("unknown type `{kind}` in sizeof; did you mean `{near}`?"),
        None => format!("unknown type `{kind}` in sizeof: write its size in bytes, or a type such as float or int64_t"),
    }
}

#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub source: &'a Source,
    pub tokens: &'a [Token],
    /// Where the piece ends, for messages about what is missing there.
    end: Span,
    nodes: usize,
    depth: usize,
    /// Within `each(...)`, which has functions of its own.
    pub in_each: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(source: &'a Source, tokens: &'a [Token], end: Span) -> Cursor<'a> {
        Cursor { source, tokens, end, nodes: 0, depth: 0, in_each: false }
    }

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The place of the next token, or of the end.
    pub fn place(&self) -> Span {
        self.tokens.first().map_or(self.end, |token| token.span)
    }

    /// The span of all that is left.
    pub fn rest(&self) -> Span {
        self.tokens.last().map_or(self.end, |last| self.place().to(last.span))
    }

    pub fn text(&self, token: &Token) -> &'a str {
        self.source.slice(token.span)
    }

    /// All that is left with even blanks, without the markers of a comment over several lines.
    pub fn spelled(&self) -> String {
        let words: Vec<&str> = self.tokens.iter().map(|token| self.text(token)).collect();
        words.join(" ").replace(" : : ", "::").replace(": : ", "::")
    }

    pub fn peek_mark(&self) -> Option<&'static str> {
        match self.tokens.first()?.kind {
            TokenKind::Mark(mark) => Some(mark),
            _ => None,
        }
    }

    /// The mark after the next token.
    pub fn second_mark(&self) -> Option<&'static str> {
        match self.tokens.get(1)?.kind {
            TokenKind::Mark(mark) => Some(mark),
            _ => None,
        }
    }

    pub fn peek_name(&self) -> Option<&'a str> {
        let token = self.tokens.first()?;
        (token.kind == TokenKind::Name).then(|| self.text(token))
    }

    /// True where one token is left.
    pub fn is_last(&self) -> bool {
        self.tokens.len() == 1
    }

    pub fn next(&mut self) -> Option<Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(*first)
    }

    pub fn eat(&mut self, mark: &str) -> bool {
        let found = self.peek_mark() == Some(mark);
        if found {
            self.next();
        }
        found
    }

    pub fn expect(&mut self, mark: &str) -> Result<(), Diagnostic> {
        if self.eat(mark) { Ok(()) } else { Err(self.expected(&format!("`{mark}`"))) }
    }

    /// A name and its place; `what` says what it should name.
    pub fn name(&mut self, what: &str) -> Result<(&'a str, Span), Diagnostic> {
        match self.peek_name() {
            Some(name) => {
                let span = self.place();
                self.next();
                Ok((name, span))
            }
            None => Err(self.expected(what)),
        }
    }

    /// "expected X, found Y" at the next token.
    pub fn expected(&self, what: &str) -> Diagnostic {
        match self.tokens.first() {
            Some(token) => {
                let hint = if self.text(token) == "[" { ": several stand in braces, as in {1, 2}" } else { "" };
                self.source.error(
                    MessageCode::Expected,
                    token.span,
                    format!("expected {what}, found `{}`{hint}", self.text(token)),
                )
            }
            None if self.end.end > self.end.start => self.source.error(
                MessageCode::Expected,
                self.end,
                format!("expected {what} before `{}`", self.source.slice(self.end)),
            ),
            None => self.source.error(MessageCode::Expected, self.end, format!("expected {what}")),
        }
    }

    /// An error unless everything has been read.
    pub fn finish(&self) -> Result<(), Diagnostic> {
        match self.tokens.first() {
            None => Ok(()),
            Some(token) => {
                let text = self.text(token);
                if token.kind == TokenKind::Mark(",") {
                    return Err(self.source.error(
                        MessageCode::NotExpected,
                        token.span,
                        "one value is expected here: remove the comma and the rest, or write a list as {16, 16}",
                    ));
                }
                Err(self.source.error(
                    MessageCode::NotExpected,
                    token.span,
                    format!("`{text}` is not expected here: is a comma or an operator missing before it?"),
                ))
            }
        }
    }

    /// The pieces between commas that are in no bracket; none for an empty clause.
    pub fn items(&self) -> Vec<Cursor<'a>> {
        if self.is_empty() { Vec::new() } else { self.split(Depth::pass_token) }
    }

    /// Splits the rest at the commas that are in no bracket, of which `pass` keeps count.
    pub fn split(&self, pass: impl FnMut(&mut Depth, &str) -> bool) -> Vec<Cursor<'a>> {
        let mark = |at: usize| match self.tokens[at].kind {
            TokenKind::Mark(mark) => mark,
            _ => "",
        };
        let item = |(from, to): (usize, usize)| {
            let end = self.tokens.get(to).map_or(self.end, |comma| comma.span);
            Cursor { tokens: &self.tokens[from..to], end, ..*self }
        };
        split_parts(0, self.tokens.len(), mark, pass).into_iter().map(item).collect()
    }

    /// What stands up to the bracket that closes `open`, which is the next token.
    pub fn group(&mut self, open: &str, close: &str) -> Result<Cursor<'a>, Diagnostic> {
        self.expect(open)?;
        let mut depth = Depth::default();
        for (at, token) in self.tokens.iter().enumerate() {
            let TokenKind::Mark(mark) = token.kind else { continue };
            if depth.is_outside() && closes_bracket(mark) {
                if mark != close {
                    break;
                }
                let inner = Cursor { tokens: &self.tokens[..at], end: token.span, ..*self };
                self.tokens = &self.tokens[at + 1..];
                return Ok(inner);
            }
            depth.pass_token(mark);
        }
        Err(self.source.error(MessageCode::Expected, self.end, format!("expected `{close}`")))
    }

    /// An expression up to where it ends.
    pub fn expression(&mut self) -> Result<Expr, Diagnostic> {
        self.nodes = 0;
        self.choice()
    }

    /// An expression that is the whole rest of the piece.
    pub fn whole_expression(&mut self) -> Result<Expr, Diagnostic> {
        let expression = self.expression()?;
        self.finish()?;
        Ok(expression)
    }

    fn enter(&mut self) -> Result<(), Diagnostic> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.source.error(
                MessageCode::TooComplex,
                self.place(),
                format!("this expression is nested more than {MAX_DEPTH} deep: use fewer parentheses"),
            ));
        }
        Ok(())
    }

    fn make(&mut self, span: Span, node: Node<String>) -> Result<Expr, Diagnostic> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self.source.error(
                MessageCode::TooComplex,
                span,
                format!("this expression has more than {MAX_NODES} terms"),
            ));
        }
        Ok(Expr { span, node })
    }

    fn choice(&mut self) -> Result<Expr, Diagnostic> {
        self.enter()?;
        let condition = self.binary(0)?;
        let result = if self.eat("?") {
            let yes = self.choice()?;
            self.expect(":")?;
            let no = self.choice()?;
            let span = condition.span.to(no.span);
            self.make(span, Node::Choice(Box::new(condition), Box::new(yes), Box::new(no)))
        } else {
            Ok(condition)
        };
        self.depth -= 1;
        result
    }

    fn binary(&mut self, weakest: u8) -> Result<Expr, Diagnostic> {
        let mut left = self.unary()?;
        while let Some(mark) = self.peek_mark() {
            let Some(&(operator, _, strength)) = BINARY.iter().find(|(_, symbol, _)| *symbol == mark) else {
                break;
            };
            if strength <= weakest {
                break;
            }
            let at = self.place();
            self.next();
            let right = self.binary(strength)?;
            let span = left.span.to(right.span);
            left = self.make(span, Node::Binary(operator, at, Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, Diagnostic> {
        let at = self.place();
        let operator = match self.peek_mark() {
            Some("-") => Unary::Negate,
            Some("!") => Unary::Not,
            Some("~") => Unary::Complement,
            Some("+") => {
                self.next();
                self.enter()?;
                let operand = self.unary()?;
                self.depth -= 1;
                return Ok(operand);
            }
            _ => return self.primary(),
        };
        self.next();
        self.enter()?;
        let operand = self.unary()?;
        self.depth -= 1;
        self.make(at.to(operand.span), Node::Unary(operator, Box::new(operand)))
    }

    fn primary(&mut self) -> Result<Expr, Diagnostic> {
        let Some(token) = self.tokens.first().copied() else {
            return Err(self.expected("a value"));
        };
        match token.kind {
            TokenKind::Number(value) => {
                self.next();
                self.make(token.span, Node::Value(value))
            }
            TokenKind::Name => self.named(),
            TokenKind::Mark("(") => {
                let mut inner = self.group("(", ")")?;
                (inner.depth, inner.nodes) = (self.depth, self.nodes);
                let mut expression = inner.choice()?;
                inner.finish()?;
                self.nodes = inner.nodes;
                expression.span = Span { start: token.span.start, end: inner.end.end };
                Ok(expression)
            }
            _ => Err(self.expected("a value")),
        }
    }

    /// The number of an element of an array in a structure.
    fn element_number(&mut self) -> Result<i64, Diagnostic> {
        match self.tokens.first().map(|token| token.kind) {
            Some(TokenKind::Number(Value::Int(index))) => {
                self.next();
                Ok(index)
            }
            _ => Err(self.expected("a whole number")),
        }
    }

    fn named(&mut self) -> Result<Expr, Diagnostic> {
        let (name, span) = self.name("a name")?;
        match self.peek_mark() {
            Some("(") => self.call(name, span),
            Some(".") => {
                self.next();
                let (part, place) = self.name("`x`, `y`, `z`, `size` or a field")?;
                let mut span = span.to(place);
                let known = match name {
                    "block" => ["x", "y", "z", "size"].contains(&part),
                    "grid" => ["x", "y", "z"].contains(&part),
                    // A field of a structure, which the space knows.
                    _ => {
                        let mut path = format!("{name}.{part}");
                        loop {
                            if self.eat(".") {
                                let (part, place) = self.name("the name of a field")?;
                                path = format!("{path}.{part}");
                                span = span.to(place);
                            } else if self.peek_mark() == Some("[") {
                                let mut inner = self.group("[", "]")?;
                                let index = inner.element_number()?;
                                inner.finish()?;
                                path = format!("{path}[{index}]");
                                span.end = inner.end.end;
                            } else {
                                break;
                            }
                        }
                        return self.make(span, Node::Name(path));
                    }
                };
                if !known {
                    let message =
                        format!("unknown name `{name}.{part}`: known are block.x, .y, .z, .size and grid.x, .y, .z");
                    return Err(self.source.error(MessageCode::UnknownName, span, message));
                }
                self.make(span, Node::Name(format!("{name}.{part}")))
            }
            Some(":") if self.second_mark() == Some(":") => {
                let message =
                    format!("`{name}::` names something of the source, which a comment does not know: give its value");
                Err(self.source.error(MessageCode::UnknownName, span, message))
            }
            _ => match name {
                "sizeof" => Err(self.source.error(
                    MessageCode::FunctionForm,
                    span,
                    "`sizeof` is written with parentheses: sizeof(float)",
                )),
                "true" => self.make(span, Node::Value(Value::Int(1))),
                "false" => self.make(span, Node::Value(Value::Int(0))),
                _ => self.make(span, Node::Name(name.to_string())),
            },
        }
    }

    fn call(&mut self, name: &'a str, span: Span) -> Result<Expr, Diagnostic> {
        let inner = self.group("(", ")")?;
        let whole = Span { start: span.start, end: inner.end.end };
        if name == "sizeof" {
            let kind = self.source.slice(inner.rest());
            return match type_size(kind) {
                Some(size) => self.make(whole, Node::Value(Value::Int(size))),
                // Whether it is a parameter of the template is known later.
                None if matches!(inner.tokens, [only] if only.kind == TokenKind::Name) => {
                    self.make(inner.rest(), Node::Name(size_name(kind)))
                }
                None => Err(self.source.error(MessageCode::UnknownName, inner.rest(), unknown_type(kind))),
            };
        }
        let math = Math::ALL.into_iter().find(|function| function.name() == name);
        let pow = (name == Function::Pow.name()).then_some(Function::Pow);
        if (math.is_some() || pow.is_some()) && !self.in_each {
            let message = format!("`{name}` is for contents alone, as in each({name}(...))[n]: give the number itself");
            return Err(self.source.error(MessageCode::FunctionForm, span, message));
        }
        if let Some(function) = math {
            let items = inner.items();
            let [mut item] = items[..] else {
                return Err(self.source.error(
                    MessageCode::FunctionForm,
                    whole,
                    format!("`{name}` takes one argument, not {}", items.len()),
                ));
            };
            (item.depth, item.nodes) = (self.depth, self.nodes);
            let argument = item.choice()?;
            item.finish()?;
            self.nodes = item.nodes;
            return self.make(whole, Node::Unary(Unary::Math(function), Box::new(argument)));
        }
        let Some(function) = Function::ALL.into_iter().find(|function| function.name() == name).or(pow) else {
            let own = if self.in_each { &Math::ALL[..] } else { &[] };
            let known = Function::ALL.into_iter().map(Function::name).chain(own.iter().map(|function| function.name()));
            let near = suggestion(name, known);
            return Err(self.source.error(MessageCode::FunctionForm, span, format!("unknown function `{name}`{near}")));
        };
        let mut arguments = Vec::new();
        for mut item in inner.items() {
            (item.depth, item.nodes) = (self.depth, self.nodes);
            arguments.push(item.choice()?);
            item.finish()?;
            self.nodes = item.nodes;
        }
        let two = matches!(function, Function::Ceildiv | Function::Pow);
        if arguments.len() < 2 || (two && arguments.len() != 2) {
            let count = if two { "two" } else { "two or more" };
            return Err(self.source.error(
                MessageCode::FunctionForm,
                whole,
                format!("`{name}` takes {count} arguments, not {}", arguments.len()),
            ));
        }
        self.make(whole, Node::Call(function, arguments))
    }

    /// An integer constant and its place.
    pub fn integer(&mut self, what: &str) -> Result<(i64, Span), Diagnostic> {
        let expression = self.expression()?;
        let value = self.constant(&expression, what)?;
        match value {
            Value::Int(value) => Ok((value, expression.span)),
            Value::Float(_) => {
                let text = self.source.slice(expression.span);
                Err(self.source.error(
                    MessageCode::NotInteger,
                    expression.span,
                    format!("{what} must be an integer, not `{text}`"),
                ))
            }
        }
    }

    /// The value of an expression without names.
    pub fn constant(&self, expression: &Expr, what: &str) -> Result<Value, Diagnostic> {
        expression.evaluate(&|name: &String| Err(Fault::NoValue(name.clone()))).map_err(|located| {
            let message = match located.fault {
                Fault::NoValue(name) if name == "auto" => {
                    "`auto` stands alone, as in block(auto) and regs(auto)".to_string()
                }
                Fault::NoValue(name) => {
                    if let Some(kind) = size_asked(&name) {
                        return self.source.error(MessageCode::UnknownName, located.span, unknown_type(kind));
                    }
                    match is_defined(self.source, &name) {
                        true if what != "a block dimension" => {
                            format!(
                                "{what} must be a constant: `{name}` is not defined as one number; write the number"
                            )
                        }
                        _ if what == "a block dimension" && !name.contains('.') => {
                            format!(
                                "`{name}` is no constant: write a number or a macro axis, or require(block.x == {name})"
                            )
                        }
                        _ => format!("{what} must be a constant: `{name}` has no value here"),
                    }
                }
                fault => fault.to_string(),
            };
            self.source.error(MessageCode::NotConstant, located.span, message)
        })
    }
}
