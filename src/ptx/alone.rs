//! A PTX text without the functions that one entry does not need.
//!
//! PTX text + entry -> PTX text of the same lines in which only this entry and the functions are left that it, a variable or
//! debug information names. ptxas leaves out other entries by itself (`--entry`), but not of relocatable code: there it assembles
//! all of them, and what any of them calls in other files keeps the whole from being linked.

use super::directives::replaced;
use super::lexer::{Kind, Lexer};
use super::{Error, Function, Module, Statement};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The text in which `entry` is alone. Each line keeps its number.
///
/// # Errors
/// As [`Module::parse`]; [`Error::NoEntry`].
pub fn alone(text: &str, entry: &str) -> Result<String, Error> {
    let module = Module::parse(text)?;
    if module.entry(entry).is_none() {
        return Err(Error::NoEntry { name: entry.to_owned() });
    }
    // A name leads to a function's definition and prototypes, a label (which debug sections name) to where it stands.
    let mut named: HashMap<&str, Vec<&Function>> = HashMap::new();
    for function in &module.functions {
        named.entry(&function.name).or_default().push(function);
        for statement in function.body.iter().flat_map(|body| &body.statements) {
            if let Statement::Label(label) = statement {
                named.entry(&label.name).or_default().push(function);
            }
        }
    }
    let mut uses = Uses { inside: HashMap::new(), outside: Vec::new() };
    uses.read(text, &module, &named)?;
    let mut kept: HashSet<&str> = HashSet::new();
    let mut pending = vec![entry];
    pending.extend(uses.outside);
    while let Some(name) = pending.pop() {
        for function in named.get(name).into_iter().flatten() {
            if kept.insert(&function.name) {
                pending.extend(uses.inside.get(&*function.name).into_iter().flatten());
            }
        }
    }
    let gone = module.functions.iter().filter(|function| !kept.contains(&*function.name));
    Ok(replaced(text, gone.map(|function| (function.span.clone(), lines(&text[function.span.clone()]))).collect()))
}

/// The line ends of a text.
fn lines(text: &str) -> String {
    "\n".repeat(text.bytes().filter(|&byte| byte == b'\n').count())
}

/// Which of the known names a text uses.
struct Uses<'t> {
    /// By function.
    inside: HashMap<&'t str, Vec<&'t str>>,
    /// In variables and debug information.
    outside: Vec<&'t str>,
}

impl<'t> Uses<'t> {
    fn read(
        &mut self,
        text: &'t str,
        module: &'t Module,
        named: &HashMap<&'t str, Vec<&'t Function>>,
    ) -> Result<(), Error> {
        let mut spans: Vec<(&Range<usize>, &str)> =
            module.functions.iter().map(|function| (&function.span, &*function.name)).collect();
        spans.sort_by_key(|(span, _)| span.start);
        let mut spans = spans.into_iter().peekable();
        let mut lexer = Lexer::new(text);
        loop {
            let token = lexer.next()?;
            if token.kind == Kind::End {
                return Ok(());
            }
            while spans.next_if(|(span, _)| span.end <= token.start).is_some() {}
            let Some((&name, _)) = named.get_key_value(&text[token.start..token.end]) else { continue };
            match spans.peek() {
                Some((span, function)) if span.start <= token.start => {
                    self.inside.entry(function).or_default().push(name)
                }
                _ => self.outside.push(name),
            }
        }
    }
}
