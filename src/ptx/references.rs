//! Finds the tokens of a declaration that name a variable or function of module scope.
//!
//! A name that a function declares itself (a parameter, register, variable or label) is
//! left out in the scope of that declaration.

use super::error::Error;
use super::lexer::{Kind, Lexer, Token};
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
pub(super) fn read_tokens(text: &str) -> Result<Vec<Token>, Error> {
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next_token()?;
        if token.kind == Kind::End {
            return Ok(tokens);
        }
        tokens.push(token);
    }
}

impl<'t> References<'t> {
    /// Finds the references of a module-scope variable.
    pub fn in_variable(text: &'t str, is_global: impl Fn(&str) -> bool) -> Result<Self, Error> {
        let names = read_tokens(text)?.into_iter().map(|token| (token.start..token.end, &text[token.start..token.end]));
        Ok(Self { names: names.filter(|(_, word)| is_global(word)).collect(), locations: Vec::new() })
    }

    /// Finds the references of a function whose body, if it has one, opens at byte
    /// `body`.
    pub fn in_function(text: &'t str, body: Option<usize>, is_global: impl Fn(&str) -> bool) -> Result<Self, Error> {
        let tokens = read_tokens(text)?;
        let mut walk = Walk { scopes: vec![Scope::default()], locations: Vec::new(), depth: 0, is_global };
        let mut place = Place::Header;
        for (index, token) in tokens.iter().enumerate() {
            let word = &text[token.start..token.end];
            match place {
                Place::Header if body == Some(token.start) => place = Place::Statement,
                Place::Location(line) if line != token.line => place = Place::Statement,
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
enum Place {
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
    fn step_over(&mut self, place: Place, token: &Token, word: &'t str, next: Option<Kind>) -> Place {
        let is_name = token.kind == Kind::Word && !word.starts_with('.');
        match (place, token.kind) {
            (Place::Statement, _) => return self.begin_statement(token, word, next),
            (Place::Guard, Kind::Word) => return Place::Statement,
            (Place::Location(_), _) => self.locations.iter_mut().last().into_iter().for_each(|l| l.end = token.end),
            (Place::Header | Place::Initial, Kind::Mark(b'(' | b'{')) => self.depth += 1,
            (Place::Header | Place::Initial, Kind::Mark(b')' | b'}')) => self.depth = self.depth.saturating_sub(1),
            (Place::Header, _) if is_name && self.depth > 0 => self.declare_name(word, next),
            (Place::Declaration, _) if is_name => self.declare_name(word, next),
            (Place::Header | Place::Initial | Place::Operands, _) if is_name => self.refer_to(token, word),
            (Place::Declaration, Kind::Mark(b'=')) => return Place::Initial,
            (Place::Initial, Kind::Mark(b',')) if self.depth == 0 => return Place::Declaration,
            (Place::Declaration | Place::Initial | Place::Operands, Kind::Mark(b';')) => return Place::Statement,
            _ => {}
        }
        place
    }

    /// Reads the first token of a statement.
    fn begin_statement(&mut self, token: &Token, word: &'t str, next: Option<Kind>) -> Place {
        match token.kind {
            Kind::Mark(b'{') => self.scopes.push(Scope::default()),
            Kind::Mark(b'}') => self.close_scope(),
            Kind::Mark(b'@') => return Place::Guard,
            Kind::Word if matches!(word, ".loc" | ".file") => {
                self.locations.push(token.start..token.end);
                return Place::Location(token.line);
            }
            Kind::Word if DECLARING.contains(&word) => return Place::Declaration,
            Kind::Word if LINKAGE.contains(&word) => {}
            Kind::Word if next == Some(Kind::Mark(b':')) => {
                self.scopes.iter_mut().last().map(|scope| scope.labels.insert(word));
            }
            Kind::Word => return Place::Operands,
            _ => {}
        }
        Place::Statement
    }

    fn close_scope(&mut self) {
        let Some(inner) = self.scopes.pop() else { return };
        let names = inner.names.into_iter().filter(|(_, name)| !inner.labels.contains(name));
        match self.scopes.last_mut() {
            Some(outer) => outer.names.extend(names),
            None => self.scopes.push(Scope { names: names.collect(), ..Scope::default() }),
        }
    }

    fn declare_name(&mut self, name: &'t str, next: Option<Kind>) {
        let Some(scope) = self.scopes.last_mut() else { return };
        match next {
            Some(Kind::Mark(b'<')) => scope.families.insert(name),
            _ => scope.declared.insert(name),
        };
    }

    fn refer_to(&mut self, token: &Token, name: &'t str) {
        let is_local = self.scopes.iter().any(|scope| scope.declares_name(name));
        if !is_local
            && (self.is_global)(name)
            && let Some(scope) = self.scopes.last_mut()
        {
            scope.names.push((token.start..token.end, name));
        }
    }
}
