//! Finds the tokens of a declaration that name a variable or function of module scope.
//!
//! A name that a function declares itself (a parameter, register, variable or label) is
//! left out in the scope of that declaration.

use super::error::PtxError;
use super::lexer::{Lexer, PtxToken, TokenKind};
use std::collections::HashSet;
use std::ops::Range;

/// Directives that declare names inside a function.
const DECLARING: [&str; 7] = [".reg", ".param", ".local", ".shared", ".global", ".const", ".tex"];

/// Words that stand before such a directive.
const LINKAGE: [&str; 4] = [".visible", ".extern", ".weak", ".common"];

/// Locates what a copy of a declaration may change, in bytes from the declaration's first
/// one.
#[derive(Debug)]
pub(super) struct References<'t> {
    /// Names of module scope, in no particular order. A declaration's own name is one.
    pub names: Vec<(Range<usize>, &'t str)>,
    /// `.loc` statements.
    pub locations: Vec<Range<usize>>,
}

/// Reads all tokens of a text but the one that ends it.
pub(super) fn read_tokens(text: &str) -> Result<Vec<PtxToken>, PtxError> {
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next_token()?;
        if token.kind == TokenKind::End {
            return Ok(tokens);
        }
        tokens.push(token);
    }
}

impl<'t> References<'t> {
    /// Finds the references of a module-scope variable.
    pub fn in_variable(text: &'t str, is_global: impl Fn(&str) -> bool) -> Result<Self, PtxError> {
        let names = read_tokens(text)?.into_iter().map(|token| (token.start..token.end, &text[token.start..token.end]));
        Ok(Self { names: names.filter(|(_, word)| is_global(word)).collect(), locations: Vec::new() })
    }

    /// Finds the references of a function whose body, if it has one, opens at byte
    /// `body`.
    pub fn in_function(text: &'t str, body: Option<usize>, is_global: impl Fn(&str) -> bool) -> Result<Self, PtxError> {
        let tokens = read_tokens(text)?;
        let mut walk = Walk { scopes: vec![Scope::default()], locations: Vec::new(), depth: 0, is_global };
        let mut place = TokenPlace::Header;
        for (index, token) in tokens.iter().enumerate() {
            let word = &text[token.start..token.end];
            match place {
                TokenPlace::Header if body == Some(token.start) => place = TokenPlace::Statement,
                TokenPlace::Location(line) if line != token.line => place = TokenPlace::Statement,
                _ => {}
            }
            let next = tokens.get(index + 1).map(|next| next.kind);
            place = walk.step_over(place, token, word, next);
        }
        while walk.scopes.len() > 1 {
            walk.close_scope();
        }
        let names = walk.scopes.pop().map(|scope| scope.names).unwrap_or_default();
        Ok(Self { names, locations: walk.locations })
    }
}

/// Names the construct in which a token stands.
#[derive(Clone, Copy)]
enum TokenPlace {
    /// Before the body.
    Header,
    /// Where a statement begins.
    Statement,
    /// After the `@` of a guard.
    Guard,
    /// Among the names of a declaration.
    Declaration,
    /// In an initial value.
    Initial,
    Operands,
    /// In a `.loc` on this line, which ends it.
    Location(u32),
}

#[derive(Default)]
struct Scope<'t> {
    declared: HashSet<&'t str>,
    /// Names of register families: `%r` of `%r<5>`.
    families: HashSet<&'t str>,
    /// Labels, which may be named before they are declared.
    labels: HashSet<&'t str>,
    /// Names that no declaration before them covers.
    names: Vec<(Range<usize>, &'t str)>,
}

impl Scope<'_> {
    fn declares_name(&self, name: &str) -> bool {
        self.declared.contains(name) || self.families.contains(name.trim_end_matches(|c: char| c.is_ascii_digit()))
    }
}

struct Walk<'t, F> {
    /// The scopes around a token, the innermost last.
    scopes: Vec<Scope<'t>>,
    locations: Vec<Range<usize>>,
    /// Open parentheses of a header, or open braces of an initial value.
    depth: u32,
    is_global: F,
}

impl<'t, F: Fn(&str) -> bool> Walk<'t, F> {
    fn step_over(&mut self, place: TokenPlace, token: &PtxToken, word: &'t str, next: Option<TokenKind>) -> TokenPlace {
        let is_name = token.kind == TokenKind::Word && !word.starts_with('.');
        match (place, token.kind) {
            (TokenPlace::Statement, _) => return self.begin_statement(token, word, next),
            (TokenPlace::Guard, TokenKind::Word) => return TokenPlace::Statement,
            (TokenPlace::Location(_), _) => {
                self.locations.iter_mut().last().into_iter().for_each(|l| l.end = token.end)
            }
            (TokenPlace::Header | TokenPlace::Initial, TokenKind::Mark(b'(' | b'{')) => self.depth += 1,
            (TokenPlace::Header | TokenPlace::Initial, TokenKind::Mark(b')' | b'}')) => {
                self.depth = self.depth.saturating_sub(1)
            }
            (TokenPlace::Header, _) if is_name && self.depth > 0 => self.declare_name(word, next),
            (TokenPlace::Declaration, _) if is_name => self.declare_name(word, next),
            (TokenPlace::Header | TokenPlace::Initial | TokenPlace::Operands, _) if is_name => {
                self.refer_to(token, word)
            }
            (TokenPlace::Declaration, TokenKind::Mark(b'=')) => return TokenPlace::Initial,
            (TokenPlace::Initial, TokenKind::Mark(b',')) if self.depth == 0 => return TokenPlace::Declaration,
            (TokenPlace::Declaration | TokenPlace::Initial | TokenPlace::Operands, TokenKind::Mark(b';')) => {
                return TokenPlace::Statement;
            }
            _ => {}
        }
        place
    }

    /// Reads the first token of a statement.
    fn begin_statement(&mut self, token: &PtxToken, word: &'t str, next: Option<TokenKind>) -> TokenPlace {
        match token.kind {
            TokenKind::Mark(b'{') => self.scopes.push(Scope::default()),
            TokenKind::Mark(b'}') => self.close_scope(),
            TokenKind::Mark(b'@') => return TokenPlace::Guard,
            TokenKind::Word if matches!(word, ".loc" | ".file") => {
                self.locations.push(token.start..token.end);
                return TokenPlace::Location(token.line);
            }
            TokenKind::Word if DECLARING.contains(&word) => return TokenPlace::Declaration,
            TokenKind::Word if LINKAGE.contains(&word) => {}
            TokenKind::Word if next == Some(TokenKind::Mark(b':')) => {
                self.scopes.iter_mut().last().map(|scope| scope.labels.insert(word));
            }
            TokenKind::Word => return TokenPlace::Operands,
            _ => {}
        }
        TokenPlace::Statement
    }

    fn close_scope(&mut self) {
        let Some(inner) = self.scopes.pop() else { return };
        let names = inner.names.into_iter().filter(|(_, name)| !inner.labels.contains(name));
        match self.scopes.last_mut() {
            Some(outer) => outer.names.extend(names),
            None => self.scopes.push(Scope { names: names.collect(), ..Scope::default() }),
        }
    }

    fn declare_name(&mut self, name: &'t str, next: Option<TokenKind>) {
        let Some(scope) = self.scopes.last_mut() else { return };
        match next {
            Some(TokenKind::Mark(b'<')) => scope.families.insert(name),
            _ => scope.declared.insert(name),
        };
    }

    fn refer_to(&mut self, token: &PtxToken, name: &'t str) {
        let is_local = self.scopes.iter().any(|scope| scope.declares_name(name));
        if !is_local
            && (self.is_global)(name)
            && let Some(scope) = self.scopes.last_mut()
        {
            scope.names.push((token.start..token.end, name));
        }
    }
}
