//! Copies an entry of one PTX text into another, with all that it needs.
//!
//! Host text, donor text, an entry of each -> [`Transplant`]; host text, transplants ->
//! host text with the entries in it. Both texts are the front end's, of one source under
//! different macros and one module id.
//!
//! What the host has in the same words is shared with it, if all that these words name is
//! shared too. What differs is copied under a name of its own if it belongs to the code:
//! functions, shared memory, constants of the compiler. A variable of the program is not
//! copied, because others would write only one of the two.
//!
//! Copies keep their linkage, and all copied text decides on their names. So two objects
//! with one such name have the same text under it, and ptxas compiles functions for the
//! calling convention that the donor's have. ptxas then makes the donor's code, with
//! three exceptions:
//!
//! - An entry that calls by address has code that depends on all functions of the text whose
//!   address is taken, except in relocatable code ([`super::calls_by_address`]). If a copied
//!   function's address is taken, the host's entries that call by address change too.
//! - A function whose address another entry of the donor takes has another calling convention
//!   than its copy.
//! - Addresses in constant memory (`c[0x3][...]`) depend on all constants of the text.

use super::directives::replace_spans;
use super::edit::{Edits, edit_entries};
use super::error::PtxError;
use super::module::{Linkage, Module, Parameter, PtxFunction, PtxVariable, Statement};
use super::references::{References, read_tokens};
use super::types::StateSpace;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// Separates a name of the source from the digits that tell copies apart.
const INFIX: &str = "__nvtune_";

/// Stands for the digits in the text that they are computed from.
const NO_DIGITS: &str = "00000000";

/// Prefixes of the names of the compiler's own constants: strings, `__func__`, initial
/// values of local arrays, tables of mathematical functions.
const CONSTANTS: [&str; 4] = ["$str", "__unnamed_", "__const_$", "__cudart_"];

/// Prefix of the mangled names of a function's static variables.
const STATIC: &str = "_ZZ";

/// Says where an entry goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// After the host's entry, under a name of its own.
    Added,
    /// In the place of the host's entry, under its name.
    InPlace,
}

/// Holds an entry with all that it needs and the host text lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transplant {
    /// The entry's name. Two added texts have one name only if they are the same.
    pub name: String,
    /// PTX to insert into the host text.
    pub text: String,
}

/// Says why an entry cannot be copied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransplantError {
    #[error(transparent)]
    Ptx(#[from] PtxError),
    #[error("the PTX is for another version, target or address size than the host's")]
    Target,
    #[error("debug information (-G) describes the code that it was made with")]
    Debug,
    #[error("`{donor}` and `{host}` take different parameters")]
    Parameters { host: String, donor: String },
    #[error("`{name}` is declared differently (size or initial value) under these macros")]
    Variable { name: String },
    #[error("`{name}` is declared differently under these macros, and defined elsewhere")]
    Function { name: String },
    #[error("device code launches `{name}`, which differs under these macros")]
    Launch { name: String },
}

impl Transplant {
    /// Extracts an entry of the donor text, with edits, for the place of an entry of the
    /// host text.
    ///
    /// # Errors
    /// [`TransplantError`] says what keeps the entry from being copied.
    pub fn new(
        (host, host_symbol): (&str, &str),
        (donor, donor_symbol): (&str, &str),
        edits: Edits,
        destination: Destination,
    ) -> Result<Self, TransplantError> {
        let donor = edit_entries(donor, &[(donor_symbol, edits)])?;
        let (host_module, donor_module) = (Module::parse(host)?, Module::parse(&donor)?);
        check_targets(&host_module, &donor_module)?;
        let host_entry = find_entry(&host_module, host_symbol)?;
        check_parameters(host_entry, find_entry(&donor_module, donor_symbol)?, edits)?;
        let (host, donor) = (ModuleText::new(host, &host_module), ModuleText::new(&donor, &donor_module));
        let reached = donor.pieces_reached(donor_symbol)?;
        let shared = shared_names(&host, &donor, &reached)?;
        let is_copied = |name: &str| name == donor_symbol || !shared.contains(name);
        let (mut copied, shared): (Vec<Piece>, Vec<Piece>) =
            reached.into_values().partition(|piece| is_copied(piece.name));
        for piece in copied.iter().filter(|piece| piece.name != donor_symbol) {
            piece.check_against(&host)?;
        }
        copied.sort_by_key(|piece| piece.declaration.span().start);
        let is_late = |piece: &Piece| {
            host.declarations.get(piece.name).is_some_and(|other| other.span().start > host_entry.span.start)
        };
        let late = shared.into_iter().filter(is_late).collect();
        let keeps_locations = host.debug_tables()? == donor.debug_tables()?;
        let copy = Copy { donor, copied, late, donor_symbol, host_symbol, destination, keeps_locations };
        let digest = Sha256::digest(copy.text_with_suffix(NO_DIGITS));
        let digits: String = digest.iter().take(NO_DIGITS.len() / 2).map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { name: copy.entry_name(&digits), text: copy.text_with_suffix(&digits) })
    }
}

/// Inserts transplants at the entries of the host text that they were made for. Of one
/// name the first counts.
///
/// # Errors
/// As [`Module::parse`]; [`PtxError::NoEntry`].
pub fn insert_transplants(host: &str, transplants: &[(&str, &Transplant)]) -> Result<String, PtxError> {
    let module = Module::parse(host)?;
    let mut edits = Vec::new();
    for (index, &(symbol, transplant)) in transplants.iter().enumerate() {
        let span = &find_entry(&module, symbol)?.span;
        if transplants[..index].iter().any(|(_, earlier)| earlier.name == transplant.name) {
            continue;
        }
        let start = if transplant.name == symbol { span.start } else { span.end };
        edits.push((start..span.end, format!("\n{}", transplant.text)));
    }
    Ok(replace_spans(host, edits))
}

fn find_entry<'m>(module: &'m Module, name: &str) -> Result<&'m PtxFunction, PtxError> {
    module.entry(name).ok_or_else(|| PtxError::NoEntry { name: name.to_owned() })
}

/// Refuses entries that take different parameters, but for the one that an edit adds.
fn check_parameters(host: &PtxFunction, donor: &PtxFunction, edits: Edits) -> Result<(), TransplantError> {
    let layout = |function: &PtxFunction| -> Vec<_> {
        function.parameters.iter().map(|&Parameter { scalar, align, size, .. }| (scalar, align, size)).collect()
    };
    let mut own = layout(donor);
    own.truncate(own.len() - usize::from(edits.coarsened));
    match layout(host) == own {
        true => Ok(()),
        false => {
            let [host, donor] = [host, donor].map(|function| function.name.to_string());
            Err(TransplantError::Parameters { host, donor })
        }
    }
}

fn check_targets(host: &Module, donor: &Module) -> Result<(), TransplantError> {
    let head = |module: &Module| (module.version, module.target.clone(), module.address_size);
    match head(host) == head(donor) {
        false => Err(TransplantError::Target),
        true if donor.target.iter().any(|option| &**option == "debug") => Err(TransplantError::Debug),
        true => Ok(()),
    }
}

#[derive(Clone, Copy)]
enum Declaration<'m> {
    Function(&'m PtxFunction),
    Variable(&'m PtxVariable),
}

impl Declaration<'_> {
    fn span(&self) -> &Range<usize> {
        match self {
            Self::Function(function) => &function.span,
            Self::Variable(variable) => &variable.span,
        }
    }
}

/// Indexes a parsed text by the names of module scope.
struct ModuleText<'m> {
    text: &'m str,
    /// Declarations by name; of several with one name the definition.
    declarations: HashMap<&'m str, Declaration<'m>>,
}

/// Holds a word of a declaration, or the number of a name that is local to it.
#[derive(PartialEq)]
enum CopiedWord<'m> {
    Text(&'m str),
    Local(usize),
}

impl<'m> ModuleText<'m> {
    fn new(text: &'m str, module: &'m Module) -> Self {
        let mut declarations = HashMap::new();
        for variable in &module.variables {
            let known = declarations.entry(&*variable.name).or_insert(Declaration::Variable(variable));
            if variable.linkage != Linkage::Extern {
                *known = Declaration::Variable(variable);
            }
        }
        for function in &module.functions {
            let known = declarations.entry(&*function.name).or_insert(Declaration::Function(function));
            if function.body.is_some() {
                *known = Declaration::Function(function);
            }
        }
        Self { text, declarations }
    }

    fn references_of(&self, declaration: Declaration) -> Result<References<'m>, PtxError> {
        let is_global = |name: &str| self.declarations.contains_key(name);
        let span = declaration.span();
        let text = &self.text[span.clone()];
        match declaration {
            Declaration::Function(function) => {
                References::in_function(text, function.body.as_ref().map(|body| body.open - span.start), is_global)
            }
            Declaration::Variable(_) => References::in_variable(text, is_global),
        }
    }

    /// Finds all that an entry names, itself included, and what that names in turn.
    fn pieces_reached(&self, entry: &str) -> Result<BTreeMap<&'m str, Piece<'m>>, PtxError> {
        let mut reached = BTreeMap::new();
        let mut pending: Vec<&'m str> =
            self.declarations.get_key_value(entry).map(|(&name, _)| name).into_iter().collect();
        while let Some(name) = pending.pop() {
            if !reached.contains_key(name)
                && let Some(&declaration) = self.declarations.get(name)
            {
                let references = self.references_of(declaration)?;
                pending.extend(references.names.iter().map(|(_, name)| *name));
                reached.insert(name, Piece { name, declaration, references });
            }
        }
        Ok(reached)
    }

    /// Returns the words of a declaration without `.loc`.
    ///
    /// The front end numbers labels and local variables through the whole text: here each
    /// has a number by its first use.
    fn words_of(&self, declaration: Declaration) -> Result<Vec<CopiedWord<'m>>, PtxError> {
        let text = &self.text[declaration.span().clone()];
        let mut locals: HashMap<&str, Option<usize>> = HashMap::new();
        if let Declaration::Function(function) = declaration {
            let statements = function.body.iter().flat_map(|body| &body.statements);
            let names = statements.filter_map(|statement| match statement {
                Statement::Label(label) => Some(&*label.name),
                Statement::Targets { label, .. } | Statement::Prototype { label, .. } => Some(&**label),
                Statement::Variable(variable) => Some(&*variable.name),
                _ => None,
            });
            locals.extend(names.filter(|name| !self.declarations.contains_key(name)).map(|name| (name, None)));
        }
        let mut locations = self.references_of(declaration)?.locations.into_iter().peekable();
        let (mut words, mut used) = (Vec::new(), 0);
        for token in read_tokens(text)? {
            while locations.next_if(|location| location.end <= token.start).is_some() {}
            if locations.peek().is_some_and(|location| location.start <= token.start) {
                continue;
            }
            let word = &text[token.start..token.end];
            words.push(match locals.get_mut(word) {
                Some(number) => CopiedWord::Local(*number.get_or_insert_with(|| {
                    used += 1;
                    used
                })),
                None => CopiedWord::Text(word),
            });
        }
        Ok(words)
    }

    /// Returns the words of `.file` directives and debug sections, to which `.loc`
    /// refers.
    fn debug_tables(&self) -> Result<Vec<&'m str>, PtxError> {
        let mut spans: Vec<&Range<usize>> = self.declarations.values().map(Declaration::span).collect();
        spans.sort_by_key(|span| span.start);
        let mut spans = spans.into_iter().peekable();
        let (mut words, mut is_table) = (Vec::new(), false);
        for token in read_tokens(self.text)? {
            while spans.next_if(|span| span.end <= token.start).is_some() {}
            let word = &self.text[token.start..token.end];
            is_table = match word {
                _ if spans.peek().is_some_and(|span| span.start <= token.start) => false,
                ".file" | ".section" => true,
                ".visible" | ".extern" | ".weak" | ".common" | ".func" | ".entry" | ".version" => false,
                _ => is_table,
            };
            if is_table {
                words.push(word);
            }
        }
        Ok(words)
    }
}

/// Finds what the host has in the same words, in which each name stands for the same.
fn shared_names<'m>(
    host: &ModuleText,
    donor: &ModuleText<'m>,
    reached: &BTreeMap<&'m str, Piece<'m>>,
) -> Result<HashSet<&'m str>, PtxError> {
    let mut shared = HashSet::new();
    for piece in reached.values() {
        if let Some(&other) = host.declarations.get(piece.name)
            && host.words_of(other)? == donor.words_of(piece.declaration)?
        {
            shared.insert(piece.name);
        }
    }
    loop {
        let is_shared = |piece: &&Piece<'m>| {
            shared.contains(piece.name) && piece.references.names.iter().all(|(_, name)| shared.contains(name))
        };
        let kept: HashSet<&str> = reached.values().filter(is_shared).map(|piece| piece.name).collect();
        if kept.len() == shared.len() {
            return Ok(shared);
        }
        shared = kept;
    }
}

/// Holds a declaration of the donor text.
struct Piece<'m> {
    name: &'m str,
    declaration: Declaration<'m>,
    references: References<'m>,
}

impl Piece<'_> {
    /// Refuses what the program must not have twice.
    fn check_against(&self, host: &ModuleText) -> Result<(), TransplantError> {
        let name = self.name.to_owned();
        match self.declaration {
            Declaration::Function(function) if function.entry => Err(TransplantError::Launch { name }),
            Declaration::Function(function) if function.body.is_some() => Ok(()),
            Declaration::Function(function) => {
                match function.linkage == Linkage::Extern && !host.declarations.contains_key(self.name) {
                    true => Ok(()),
                    false => Err(TransplantError::Function { name }),
                }
            }
            Declaration::Variable(variable) => match variable.space == StateSpace::Shared || is_constant(variable) {
                true => Ok(()),
                false => Err(TransplantError::Variable { name }),
            },
        }
    }

    /// Tells whether a copy keeps the name: what is defined in another file does.
    fn keeps_name(&self) -> bool {
        matches!(self.declaration, Declaration::Function(function) if function.body.is_none())
    }
}

/// Tells whether neither device nor host code can write a variable.
///
/// A function's static variable in global memory may be a table or a counter: their
/// declarations are alike.
fn is_constant(variable: &PtxVariable) -> bool {
    let is_made = CONSTANTS.iter().any(|prefix| variable.name.starts_with(prefix));
    let is_static_constant = variable.space == StateSpace::Const && variable.name.starts_with(STATIC);
    is_static_constant || is_made && variable.linkage == Linkage::Internal
}

/// Holds all that is written into the host text.
struct Copy<'m> {
    donor: ModuleText<'m>,
    /// What gets a new name, in the order of the donor text.
    copied: Vec<Piece<'m>>,
    /// What is shared, and stands after the host's entry.
    late: Vec<Piece<'m>>,
    donor_symbol: &'m str,
    host_symbol: &'m str,
    destination: Destination,
    keeps_locations: bool,
}

impl Copy<'_> {
    fn entry_name(&self, digits: &str) -> String {
        match self.destination {
            Destination::Added => format!("{}{INFIX}{digits}", self.host_symbol),
            Destination::InPlace => self.host_symbol.to_owned(),
        }
    }

    fn text_with_suffix(&self, digits: &str) -> String {
        let mut names: HashMap<&str, String> = HashMap::new();
        for piece in self.copied.iter().filter(|piece| !piece.keeps_name()) {
            names.insert(piece.name, format!("{}{INFIX}{digits}", piece.name));
        }
        names.insert(self.donor_symbol, self.entry_name(digits));
        let [mut prototypes, mut variables, mut bodies] = [const { String::new() }; 3];
        // What names a function may come before its body. After its body ptxas takes no prototype.
        for piece in self.copied.iter().chain(&self.late) {
            if let Declaration::Function(PtxFunction { entry: false, body: Some(body), span, .. }) = piece.declaration {
                prototypes += &(self.copy_piece(piece, &names, body.open - span.start) + "\n;\n");
            }
        }
        // Variables of one declaration are adjacent, and copied once.
        for pieces in self.copied.chunk_by(|a, b| a.declaration.span() == b.declaration.span()) {
            let text = self.copy_piece(&pieces[0], &names, pieces[0].declaration.span().len()) + "\n";
            match pieces[0].declaration {
                Declaration::Function(PtxFunction { body: Some(_), .. }) => bodies += &text,
                _ => variables += &text,
            }
        }
        prototypes + &variables + &bodies
    }

    /// Writes the first `length` bytes of a declaration under the new names.
    fn copy_piece(&self, piece: &Piece, names: &HashMap<&str, String>, length: usize) -> String {
        let References { names: used, locations } = &piece.references;
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        let renamed = used.iter().filter_map(|(range, name)| Some((range.clone(), names.get(name)?.clone())));
        edits.extend(renamed.filter(|(range, _)| range.end <= length));
        if !self.keeps_locations {
            edits.extend(
                locations.iter().filter(|range| range.end <= length).map(|range| (range.clone(), String::new())),
            );
        }
        let span = piece.declaration.span();
        replace_spans(&self.donor.text[span.start..span.start + length], edits)
    }
}
