//! What of a PTX text one entry needs.
//!
//! PTX text + entry -> PTX text of the same lines in which only this entry and the functions
//! are left that it, a variable or debug information names. ptxas leaves out other entries by
//! itself (`--entry`), but not of relocatable code: there it assembles all of them, and what
//! any of them calls in other files keeps the whole from being linked. And: whether the entry
//! makes calls of which only the whole text tells where they lead.

use super::directives::replace_spans;
use super::error::PtxError;
use super::lexer::{Lexer, TokenKind};
use super::module::{Module, PtxFunction, Statement};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Returns the text without all other entries. Each line keeps its number.
///
/// # Errors
/// As [`Module::parse`]; [`PtxError::NoEntry`].
pub fn isolate_entry(text: &str, entry: &str) -> Result<String, PtxError> {
    let module = Module::parse(text)?;
    let uses = Uses::new(text, &module, entry)?;
    let kept = uses.reached_functions(uses.outside.iter().copied().chain([entry]).collect());
    let gone = module.functions.iter().filter(|function| !kept.contains(&*function.name));
    Ok(replace_spans(
        text,
        gone.map(|function| (function.span.clone(), line_ends(&text[function.span.clone()]))).collect(),
    ))
}

/// True where the entry, or what it calls, makes a call by an address. To see where such a call
/// may lead (to virtual functions that another entry puts into objects) ptxas looks at all that
/// the text has, so that under `--entry` it would make other code.
///
/// # Errors
/// As [`isolate_entry`].
pub fn calls_by_address(text: &str, entry: &str) -> Result<bool, PtxError> {
    // Each such call names the type of its targets, or a list of them. Few texts have any.
    if !text.contains(".callprototype") && !text.contains(".calltargets") {
        return Ok(false);
    }
    let module = Module::parse(text)?;
    let uses = Uses::new(text, &module, entry)?;
    let reached = uses.reached_functions(vec![entry]);
    let is_function = |name: &str| module.functions.iter().any(|function| &*function.name == name);
    let is_such = |statement: &Statement| match statement {
        Statement::Prototype { .. } => true,
        Statement::Targets { targets, .. } => targets.iter().any(|target| is_function(target)),
        _ => false,
    };
    let bodies =
        module.functions.iter().filter(|function| reached.contains(&*function.name)).map(|function| &function.body);
    Ok(bodies.flatten().flat_map(|body| &body.statements).any(is_such))
}

/// The line ends of a text.
fn line_ends(text: &str) -> String {
    "\n".repeat(text.bytes().filter(|&byte| byte == b'\n').count())
}

/// Which functions a text names where.
struct Uses<'t> {
    /// The functions that a name leads to: their definition and prototypes, and of a label
    /// (which debug sections name) the one in which it stands.
    named: HashMap<&'t str, Vec<&'t PtxFunction>>,
    /// The names in each function.
    inside: HashMap<&'t str, Vec<&'t str>>,
    /// Those in variables and debug information.
    outside: Vec<&'t str>,
}

impl<'t> Uses<'t> {
    fn new(text: &'t str, module: &'t Module, entry: &str) -> Result<Self, PtxError> {
        if module.entry(entry).is_none() {
            return Err(PtxError::NoEntry { name: entry.to_owned() });
        }
        let mut named: HashMap<&str, Vec<&PtxFunction>> = HashMap::new();
        for function in &module.functions {
            named.entry(&function.name).or_default().push(function);
            for statement in function.body.iter().flat_map(|body| &body.statements) {
                if let Statement::Label(label) = statement {
                    named.entry(&label.name).or_default().push(function);
                }
            }
        }
        let mut uses = Self { named, inside: HashMap::new(), outside: Vec::new() };
        uses.read_module(text, module)?;
        Ok(uses)
    }

    fn read_module(&mut self, text: &'t str, module: &'t Module) -> Result<(), PtxError> {
        let mut spans: Vec<(&Range<usize>, &str)> =
            module.functions.iter().map(|function| (&function.span, &*function.name)).collect();
        spans.sort_by_key(|(span, _)| span.start);
        let mut spans = spans.into_iter().peekable();
        let mut lexer = Lexer::new(text);
        loop {
            let token = lexer.next_token()?;
            if token.kind == TokenKind::End {
                return Ok(());
            }
            while spans.next_if(|(span, _)| span.end <= token.start).is_some() {}
            let Some((&name, _)) = self.named.get_key_value(&text[token.start..token.end]) else { continue };
            match spans.peek() {
                Some((span, function)) if span.start <= token.start => {
                    self.inside.entry(function).or_default().push(name)
                }
                _ => self.outside.push(name),
            }
        }
    }

    /// The functions that these names lead to, and those that these name.
    fn reached_functions<'a>(&'a self, mut pending: Vec<&'a str>) -> HashSet<&'a str> {
        let mut reached = HashSet::new();
        while let Some(name) = pending.pop() {
            for function in self.named.get(name).into_iter().flatten() {
                if reached.insert(&*function.name) {
                    pending.extend(self.inside.get(&*function.name).into_iter().flatten());
                }
            }
        }
        reached
    }
}
