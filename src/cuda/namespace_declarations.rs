//! Preprocessed C++ -> the declarations of its namespaces: what each declares and names, and
//! whether it is device code.
//!
//! The text is read without a grammar, as headers have extensions that no grammar has. In doubt, a
//! declaration declares all that it names.
//!
//! Invariant: each token is part of one declaration, or of none where it opens, closes or parts
//! namespaces.

use super::tokens::{CxxKind, CxxToken, cxx_tokens, is_word};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// A name, by its number in the text. Keywords have the first ones.
pub(super) type Name = u32;

/// What stands for a token that is no name.
const NO_NAME: Name = Name::MAX;

/// A declaration, by its tokens.
#[derive(Debug)]
pub(super) struct NamespaceDeclaration {
    pub tokens: Range<usize>,
    /// The names that it declares. An operator has those that it is found by: its class, or the types
    /// of its parameters.
    pub names: Vec<Name>,
    pub role: Role,
}

/// When a declaration is part of the device code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// If another part names it.
    Named,
    /// Always: it gives code or data for the device, or is in use without being named.
    Root,
    /// Always, as are the declarations that name it, which may instantiate it.
    KernelTemplate,
    /// Never.
    Assertion,
}

/// The declarations of a text in order.
#[derive(Debug)]
pub(super) struct NamespaceDeclarations<'t> {
    text: &'t str,
    pub tokens: Vec<CxxToken>,
    /// The name that each token is, or stands for; [`NO_NAME`] if it is none.
    names: Vec<Name>,
    by_text: HashMap<&'t str, Name>,
    pub all: Vec<NamespaceDeclaration>,
}

impl<'t> NamespaceDeclarations<'t> {
    /// Reads a text; `None` if it is not understood.
    pub fn read(text: &'t str) -> Option<Self> {
        let tokens = cxx_tokens(text);
        let mut by_text: HashMap<&str, Name> = KEYWORDS.into_iter().zip(0..).collect();
        let name = |token: &CxxToken| {
            let count = by_text.len() as Name;
            match token.kind {
                CxxKind::Name => *by_text.entry(&text[token.span.start..token.span.end]).or_insert(count),
                _ => NO_NAME,
            }
        };
        let mut names: Vec<Name> = tokens.iter().map(name).collect();
        names.iter_mut().filter(|name| is_keyword(**name)).for_each(|name| *name = NO_NAME);
        if let Some(&launch) = by_text.get(LAUNCH) {
            launches(text, &tokens).into_iter().for_each(|at| names[at] = launch);
        }
        let mut read = Self { text, tokens, names, by_text, all: Vec::new() };
        let closings = read.closings()?;
        let mut reader = DeclarationReader::new(&read, closings);
        reader.read_scopes()?;
        reader.leave_out_parameters();
        read.all = reader.found;
        Some(read)
    }

    /// How many names there are.
    pub fn name_count(&self) -> usize {
        self.by_text.len()
    }

    /// The names in a declaration, and in pragmas in it (`#pragma unroll COUNT`).
    pub fn names_in<'a>(&'a self, declaration: &NamespaceDeclaration) -> impl Iterator<Item = Name> + 'a {
        let Range { start, end } = declaration.tokens;
        let text = &self.text[self.tokens[start].span.start..self.tokens[end - 1].span.end];
        let pragmas = text.split('\n').filter(|line| line.starts_with("#pragma"));
        let words = pragmas.flat_map(|line| line.split(|letter: char| !is_word(letter)));
        let in_pragmas = words.filter_map(|word| self.by_text.get(word).copied()).filter(|name| !is_keyword(*name));
        self.names[start..end].iter().copied().filter(|&name| name != NO_NAME).chain(in_pragmas)
    }

    fn word(&self, at: usize) -> &'t str {
        self.tokens.get(at).map_or("", |token| &self.text[token.span.start..token.span.end])
    }

    /// For each token that opens a bracket, the one that closes it; `None` if one is not closed.
    fn closings(&self) -> Option<Vec<u32>> {
        let (mut closings, mut open) = (vec![0; self.tokens.len()], Vec::new());
        for at in 0..self.tokens.len() {
            match self.word(at) {
                "(" | "[" | "{" => open.push(at),
                ")" | "]" | "}" => closings[open.pop()?] = u32::try_from(at).ok()?,
                _ => {}
            }
        }
        open.is_empty().then_some(closings)
    }
}

/// Reads the declarations of a text.
struct DeclarationReader<'t, 'r> {
    text: &'r NamespaceDeclarations<'t>,
    closings: Vec<u32>,
    at: usize,
    found: Vec<NamespaceDeclaration>,
    namespaces: HashSet<Name>,
    templates: HashSet<Name>,
    /// What is declared by others than operators.
    declared: HashSet<Name>,
    operators: Vec<usize>,
}

/// What is known of a declaration while it is read.
#[derive(Debug, Default)]
struct Head {
    /// The tokens outside brackets and the arguments of templates.
    plain: Vec<usize>,
    /// The first parenthesis in front of a value, and how many plain tokens are before it.
    parameters: Option<(usize, usize)>,
    /// The first `{`.
    body: Option<usize>,
    has_value: bool,
    is_template: bool,
    /// By its attributes.
    is_device: bool,
    is_kernel: bool,
}

impl<'t, 'r> DeclarationReader<'t, 'r> {
    fn new(text: &'r NamespaceDeclarations<'t>, closings: Vec<u32>) -> Self {
        let (found, operators) = (Vec::new(), Vec::new());
        let (namespaces, templates, declared) = (HashSet::new(), HashSet::new(), HashSet::new());
        Self { text, closings, at: 0, found, namespaces, templates, declared, operators }
    }

    /// Keeps only declared types among the names of an operator. One for any type is always needed.
    fn leave_out_parameters(&mut self) {
        for &index in &self.operators {
            let operator = &mut self.found[index];
            operator.names.retain(|name| self.declared.contains(name));
            if operator.names.is_empty() && operator.role == Role::Named {
                operator.role = Role::Root;
            }
        }
    }

    fn word(&self, at: usize) -> &'t str {
        self.text.word(at)
    }

    /// The token that closes the bracket at a place.
    fn closing(&self, at: usize) -> usize {
        self.closings[at] as usize
    }

    fn name(&self, at: usize) -> Option<Name> {
        self.text.names.get(at).copied().filter(|&name| name != NO_NAME)
    }

    /// Whether a word follows a token without a blank.
    fn is_joined(&self, at: usize, word: &str) -> bool {
        let end = |at: usize| self.text.tokens[at].span.end;
        self.word(at + 1) == word && end(at) + word.len() == end(at + 1)
    }

    /// Whether a head has one of these words outside brackets.
    fn has(&self, head: &Head, words: &[&str]) -> bool {
        head.plain.iter().any(|&at| words.contains(&self.word(at)))
    }

    /// Reads all declarations, those in namespaces too.
    fn read_scopes(&mut self) -> Option<()> {
        while self.at < self.text.tokens.len() {
            if matches!(self.word(self.at), "}" | ";") {
                self.at += 1;
            } else if let Some(inner) = self.scope_begin() {
                self.at = inner;
            } else {
                self.read_declaration()?;
            }
        }
        Some(())
    }

    /// The place behind the `{` of a namespace or of `extern "C"`.
    fn scope_begin(&mut self) -> Option<usize> {
        let mut at = self.at;
        if self.word(at) == "extern" && self.word(at + 1).starts_with('"') {
            return (self.word(at + 2) == "{").then_some(at + 3);
        }
        at += usize::from(self.word(at) == "inline");
        if self.word(at) != "namespace" {
            return None;
        }
        let mut names = Vec::new();
        loop {
            at += 1;
            match self.word(at) {
                "{" => {
                    self.namespaces.extend(names);
                    return Some(at + 1);
                }
                "" | "=" | ";" => return None,
                // Of an attribute.
                "[" | "(" => at = self.closing(at),
                _ => names.extend(self.name(at)),
            }
        }
    }

    /// Reads the declaration that begins here.
    fn read_declaration(&mut self) -> Option<()> {
        let (begin, mut at, mut head) = (self.at, self.at, Head::default());
        loop {
            match self.word(at) {
                ";" => break,
                "" | ")" | "]" | "}" => return None,
                "{" => {
                    head.body.get_or_insert(at);
                    at = self.closing(at);
                    if self.is_over(at, &head) {
                        break;
                    }
                }
                _ => at = self.pass(at, &mut head)?,
            }
            at += 1;
        }
        let tokens = begin..at + 1;
        let names = self.declared_names(&tokens, &head);
        if self.has(&head, &["operator"]) {
            self.operators.push(self.found.len());
        } else {
            self.declared.extend(&names);
        }
        if head.is_template {
            self.templates.extend(&names);
        }
        let role = self.role(begin, &head);
        self.found.push(NamespaceDeclaration { tokens, names, role });
        self.at = at + 1;
        Some(())
    }

    /// Whether a declaration ends with the `}` at a place.
    fn is_over(&self, at: usize, head: &Head) -> bool {
        !matches!(self.word(at + 1), ";" | "," | "{" | "catch") && !head.has_value && !self.is_type(head)
    }

    /// Whether a declaration is that of a class or an enumeration.
    fn is_type(&self, head: &Head) -> bool {
        head.parameters.is_none() && self.has(head, &["class", "struct", "union", "enum"])
    }

    /// Notes the word at a place; returns the last token of what it belongs to.
    fn pass(&self, at: usize, head: &mut Head) -> Option<usize> {
        match self.word(at) {
            // The expression of a constraint may end in a bracket that looks like a body.
            "requires" => return None,
            "template" if self.word(at + 1) == "<" => {
                // `template <>` is in front of what is no template.
                head.is_template |= self.word(at + 2) != ">";
                return self.closing_angle(at + 1);
            }
            word if self.word(at + 1) == "(" && TAKE_PARENTHESES.contains(&word) => {
                let end = self.closing(at + 1);
                if word == "__attribute__" {
                    (at + 1..end).for_each(|at| head.note_attribute(self.word(at)));
                }
                return Some(end);
            }
            "operator" => {
                head.plain.push(at);
                return self.operator_end(at);
            }
            "(" => {
                head.parameters = head.parameters.or((!head.has_value).then_some((at, head.plain.len())));
                return Some(self.closing(at));
            }
            "[" => return Some(self.closing(at)),
            "<" if !head.has_value => return Some(self.closing_angle(at).unwrap_or(at)),
            word => head.has_value |= word == "=",
        }
        head.plain.push(at);
        Some(at)
    }

    /// The last token of the name of an operator: `operator()`, `operator unsigned int`.
    fn operator_end(&self, at: usize) -> Option<usize> {
        if self.word(at + 1) == "(" && self.word(at + 2) == ")" {
            return Some(at + 2);
        }
        (at..self.text.tokens.len()).find(|&at| self.word(at + 1) == "(")
    }

    /// The place of the `>` that closes the `<` at a place.
    fn closing_angle(&self, at: usize) -> Option<usize> {
        let opens = |at: usize| {
            let is_cast = ["static_cast", "const_cast", "reinterpret_cast", "dynamic_cast"].contains(&self.word(at));
            let is_said = [at.saturating_sub(1), at].iter().any(|&at| self.word(at) == "template");
            is_cast || is_said || self.name(at).is_some_and(|name| self.templates.contains(&name))
        };
        self.closing_angle_if(at, opens).or_else(|| self.closing_angle_if(at, |_| false))
    }

    /// As [`Self::closing_angle`], where `opens` says for a word whether a `<` behind it is a
    /// bracket too, and does not compare.
    fn closing_angle_if(&self, at: usize, opens: impl Fn(usize) -> bool) -> Option<usize> {
        let (mut depth, mut place) = (1usize, at);
        while depth > 0 {
            place += 1;
            match self.word(place) {
                "<" => depth += usize::from(opens(place - 1)),
                ">" => depth -= usize::from(self.word(place - 1) != "-" && !self.is_joined(place, "=")),
                "(" | "[" | "{" => place = self.closing(place),
                ";" | "" | ")" | "}" | "]" => return None,
                _ => {}
            }
        }
        Some(place)
    }

    fn role(&self, begin: usize, head: &Head) -> Role {
        let is_inline =
            head.is_template || self.has(head, &["static", "inline", "__inline__", "__inline", "constexpr"]);
        let is_function = head.parameters.is_some() && !head.has_value;
        let is_definition = match is_function {
            true => head.body.is_some() && !is_inline,
            false => !self.has(head, &["extern"]) && !self.is_type(head) && !head.is_template,
        };
        match (self.word(begin), self.word(begin + 1)) {
            ("static_assert" | "_Static_assert", _) => Role::Assertion,
            ("using", "namespace") | ("namespace" | "asm" | "__asm__", _) => Role::Root,
            // An instantiation.
            ("template", next) if next != "<" => Role::Root,
            _ if head.is_kernel && head.is_template => Role::KernelTemplate,
            _ if head.is_kernel || head.is_device && is_definition => Role::Root,
            _ => Role::Named,
        }
    }

    /// The names that a declaration declares.
    fn declared_names(&self, tokens: &Range<usize>, head: &Head) -> Vec<Name> {
        if let Some(operator) = head.plain.iter().position(|&at| self.word(at) == "operator") {
            return self.operator_names(operator, head);
        }
        match head.parameters {
            // A pointer to a function, or a function that returns one.
            Some((at, _)) if ["*", "&"].contains(&self.word(at + 1)) => self.all_names(at..self.closing(at)),
            Some((_, before)) => {
                let names = self.function_names(&head.plain[..before]);
                let end = head.body.unwrap_or(tokens.end);
                if names.is_empty() { self.all_names(tokens.start..end) } else { names }
            }
            None if self.is_type(head) => self.type_names(head),
            None => self.variable_names(head),
        }
    }

    /// All names at places but those of namespaces.
    fn all_names(&self, places: Range<usize>) -> Vec<Name> {
        places.filter_map(|at| self.name(at)).filter(|name| !self.namespaces.contains(name)).collect()
    }

    /// What an operator is found by: its class, or the names in its parameters.
    fn operator_names(&self, operator: usize, head: &Head) -> Vec<Name> {
        let before = &head.plain[..operator];
        if let [.., class, colons] = before
            && self.word(*colons) == "::"
        {
            return self.name(*class).into_iter().collect();
        }
        head.parameters.map_or_else(Vec::new, |(at, _)| self.all_names(at..self.closing(at)))
    }

    /// The names that end the words in front of parameters: those of `A::B<T>::f`.
    fn function_names(&self, before: &[usize]) -> Vec<Name> {
        let mut names = Vec::new();
        let mut is_joined = true;
        for &at in before.iter().rev() {
            match (self.word(at), self.name(at)) {
                ("::" | "~", _) => is_joined = true,
                (_, Some(name)) if is_joined => {
                    names.extend(Some(name).filter(|name| !self.namespaces.contains(name)));
                    is_joined = false;
                }
                _ => break,
            }
        }
        names
    }

    /// The names of a class or an enumeration, and of variables of its type. Enumerators, and members of
    /// an unnamed class, are names of the namespace.
    fn type_names(&self, head: &Head) -> Vec<Name> {
        // Behind a colon are bases.
        let colon = head.plain.iter().copied().find(|&at| self.word(at) == ":");
        let end = colon.or(head.body).unwrap_or(usize::MAX);
        let own = head.plain.iter().filter(|&&at| at < end || head.body.is_some_and(|body| at > body));
        let mut names: Vec<Name> = own.filter_map(|&at| self.name(at)).collect();
        let is_open = names.is_empty() || self.has(head, &["enum"]);
        let body = head.body.filter(|_| is_open);
        names.extend(body.map_or(0..0, |body| body..self.closing(body)).filter_map(|at| self.name(at)));
        names
    }

    /// The names of variables and type aliases: the last name in front of each value and comma.
    fn variable_names(&self, head: &Head) -> Vec<Name> {
        // A comma behind the first value may be one of a template's arguments.
        let is_alone = head.is_template || self.has(head, &["using"]);
        let declarators = head.plain.split(|&at| self.word(at) == ",").take(if is_alone { 1 } else { usize::MAX });
        let in_front = declarators.filter_map(|places| places.split(|&at| self.word(at) == "=").next());
        in_front.filter_map(|places| places.iter().rev().find_map(|&at| self.name(at))).collect()
    }
}

impl Head {
    fn note_attribute(&mut self, word: &str) {
        self.is_kernel |= word == "global";
        self.is_device |= matches!(word, "global" | "device" | "constant" | "shared" | "managed");
    }
}

/// Words that come with parentheses which are no parameters.
const TAKE_PARENTHESES: [&str; 16] = [
    "__attribute__",
    "__declspec",
    "alignas",
    "_Alignas",
    "asm",
    "__asm",
    "__asm__",
    "decltype",
    "explicit",
    "noexcept",
    "static_assert",
    "_Static_assert",
    "throw",
    "typeof",
    "__typeof",
    "__typeof__",
];

/// The function that `<<<` stands for.
const LAUNCH: &str = "__cudaPushCallConfiguration";

/// Words that name nothing which a declaration declares (ISO C++20 5.11, and GNU C++).
#[rustfmt::skip]
const KEYWORDS: [&str; 86] = [
    "__asm__", "__attribute__", "__const", "__declspec", "__extension__", "__inline", "__inline__", "__restrict",
    "__restrict__", "__signed__", "__volatile__", "alignas", "alignof", "asm", "auto", "bool", "break", "case", "catch",
    "char", "char16_t", "char32_t", "char8_t", "class", "const", "const_cast", "constexpr", "continue", "decltype", "default",
    "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit", "extern", "false", "final", "float", "for",
    "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "nullptr", "operator",
    "override", "private", "protected", "public", "register", "reinterpret_cast", "return", "short", "signed", "sizeof",
    "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw", "true",
    "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while",
];

/// The places of the tokens that end a `<<<`.
fn launches(text: &str, tokens: &[CxxToken]) -> Vec<usize> {
    let is_launch = |place: &usize| {
        let spans = [tokens[*place].span, tokens[place + 2].span];
        spans[0].start + 3 == spans[1].end && text[spans[0].start..].starts_with("<<<")
    };
    (0..tokens.len().saturating_sub(2)).filter(is_launch).map(|place| place + 2).collect()
}

fn is_keyword(name: Name) -> bool {
    (name as usize) < KEYWORDS.len()
}
