//! An entry's PTX without names and line numbers, so that results can be keyed by it.
//!
//! Module + entry -> text that is the same for two entries if they differ only in comments,
//! white space, debug lines, the position in the file and the names of kernel, parameters,
//! registers, labels and variables. It holds the target, the entry's parameters and directives,
//! its instructions, and in turn every function and module-scope variable that these use, with
//! initial values. Names of functions without a body and of external variables stay: they say
//! what is linked.

use super::module::{Body, Initial, Linkage, Module, Operand, Parameter, PtxFunction, PtxVariable, Statement};
use std::collections::HashMap;
use std::fmt::Write as _;

impl Module {
    /// Returns the canonical text of the kernel `entry`, or `None` if the module has no
    /// such kernel.
    pub fn canonical_text(&self, entry: &str) -> Option<String> {
        let entry = self.entry(entry)?;
        let mut writer =
            CanonicalWriter { module: self, text: String::new(), globals: HashMap::new(), pending: Vec::new() };
        let _ = writeln!(writer.text, "target {} {}", self.target.join(" "), self.address_size);
        writer.write_function(entry, "entry");
        // Functions and variables are written in the order in which they are first used.
        let mut next = 0;
        while let Some(&(name, index)) = writer.pending.get(next) {
            next += 1;
            if let Some(function) = self.function(name) {
                writer.write_function(function, &format!("g{index}"));
            } else if let Some(variable) = self.variable(name) {
                let _ = write!(writer.text, "g{index} ");
                writer.write_variable(variable, None);
            }
        }
        Some(writer.text)
    }
}

struct CanonicalWriter<'m> {
    module: &'m Module,
    text: String,
    /// Numbers of module-scope names in the order of first use.
    globals: HashMap<&'m str, usize>,
    /// What is still to be written.
    pending: Vec<(&'m str, usize)>,
}

/// Names declared in the scopes of one function, innermost last, and how many were given out.
#[derive(Default)]
struct Names<'m> {
    scopes: Vec<HashMap<&'m str, Declared>>,
    labels: HashMap<&'m str, usize>,
    used: usize,
    numbers: HashMap<(usize, &'m str), usize>,
    serial: usize,
}

#[derive(Clone, Copy)]
struct Declared {
    serial: usize,
    scalar: super::types::Scalar,
}

impl<'m> Names<'m> {
    fn declare_name(&mut self, name: &'m str, scalar: super::types::Scalar) {
        self.serial += 1;
        let declared = Declared { serial: self.serial, scalar };
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, declared);
        }
    }

    fn number_of(&mut self, key: (usize, &'m str)) -> usize {
        let used = &mut self.used;
        *self.numbers.entry(key).or_insert_with(|| {
            *used += 1;
            *used
        })
    }

    /// The normalised form of a local name, by the innermost declaration that it belongs to.
    fn resolve_name(&mut self, name: &'m str) -> Option<String> {
        let (stem, member) = match name.split_once('.') {
            Some((stem, member)) => (stem, Some(member)),
            None => (name, None),
        };
        // `%r12` belongs to the declaration `%r<N>`.
        let family = stem.trim_end_matches(|c: char| c.is_ascii_digit());
        let found = self.scopes.iter().rev().find_map(|s| s.get(stem).or_else(|| s.get(family))).copied()?;
        let number = self.number_of((found.serial, stem));
        let member = member.map_or(String::new(), |m| format!(".{m}"));
        Some(format!("{:?}:{number}{member}", found.scalar))
    }
}

impl<'m> CanonicalWriter<'m> {
    fn write_function(&mut self, function: &'m PtxFunction, name: &str) {
        let _ = write!(self.text, "{name}");
        let mut names = Names::default();
        names.scopes.push(HashMap::new());
        for (kind, list) in [("returns", &function.returns), ("takes", &function.parameters)] {
            let _ = write!(self.text, " {kind}");
            for parameter in list {
                self.write_parameter(parameter);
                names.declare_name(&parameter.name, parameter.scalar);
                names.resolve_name(&parameter.name);
            }
        }
        for directive in &function.directives {
            let _ = write!(self.text, " {}{:?}", directive.name, directive.values);
        }
        self.text.push('\n');
        if let Some(body) = &function.body {
            self.write_body(body, names);
        }
    }

    fn write_parameter(&mut self, p: &Parameter) {
        let place = if p.register { "reg" } else { "param" };
        let _ = write!(self.text, " {place}:{:?}:{}:{}", p.scalar, p.align, p.size);
    }

    fn write_variable(&mut self, variable: &'m PtxVariable, local: Option<&str>) {
        let v = variable;
        let _ = write!(self.text, "{:?}:{:?}x{}:{}:{}", v.space, v.scalar, v.lanes, v.align, v.size);
        if let Some(local) = local {
            let _ = write!(self.text, " {local}");
        }
        for (at, value) in v.initial.iter().flatten() {
            match value {
                Initial::Bits(bits) => {
                    let _ = write!(self.text, " {at}={bits:x}");
                }
                Initial::Address { name, offset } => {
                    let name = self.global_name(name);
                    let _ = write!(self.text, " {at}={name}+{offset}");
                }
            }
        }
        self.text.push('\n');
    }

    fn write_body(&mut self, body: &'m Body, mut names: Names<'m>) {
        for statement in &body.statements {
            match statement {
                Statement::Label(label) => {
                    let next = names.labels.len();
                    names.labels.entry(&label.name).or_insert(next);
                }
                Statement::Targets { label, .. } | Statement::Prototype { label, .. } => {
                    let next = names.labels.len();
                    names.labels.entry(label).or_insert(next);
                }
                _ => {}
            }
        }
        for statement in &body.statements {
            match statement {
                Statement::Open => names.scopes.push(HashMap::new()),
                Statement::Close => drop(names.scopes.pop()),
                Statement::Registers(registers) => names.declare_name(&registers.name, registers.scalar),
                Statement::Variable(variable) => {
                    names.declare_name(&variable.name, variable.scalar);
                    let name = names.resolve_name(&variable.name);
                    self.write_variable(variable, name.as_deref());
                }
                Statement::Label(label) => {
                    let _ = writeln!(self.text, "L{}:", names.labels[&*label.name]);
                }
                Statement::Targets { label, targets } => {
                    let _ = write!(self.text, "L{}:", names.labels[&**label]);
                    for target in targets {
                        let name = self.name_of(target, &mut names);
                        let _ = write!(self.text, " {name}");
                    }
                    self.text.push('\n');
                }
                Statement::Prototype { label, returns, parameters } => {
                    let _ = write!(self.text, "L{}: prototype", names.labels[&**label]);
                    returns.iter().for_each(|p| self.write_parameter(p));
                    self.text.push_str(" takes");
                    parameters.iter().for_each(|p| self.write_parameter(p));
                    self.text.push('\n');
                }
                Statement::Instruction(instruction) => {
                    if let Some(guard) = &instruction.guard {
                        let name = self.name_of(&guard.register, &mut names);
                        let _ = write!(self.text, "@{}{name} ", if guard.negated { "!" } else { "" });
                    }
                    self.text.push_str(instruction.opcode.text());
                    for operand in &instruction.operands {
                        self.text.push(' ');
                        self.write_operand(operand, &mut names);
                    }
                    self.text.push('\n');
                }
            }
        }
    }

    /// A name of the module: normalised if the module defines it, itself if it is linked from
    /// elsewhere.
    fn global_name(&mut self, name: &'m str) -> String {
        let defined = self.module.function(name).is_some_and(|f| f.body.is_some())
            || self.module.variable(name).is_some_and(|v| v.linkage != Linkage::Extern || v.size == 0);
        if !defined {
            return name.to_owned();
        }
        let next = self.globals.len();
        let index = *self.globals.entry(name).or_insert(next);
        if index == next {
            self.pending.push((name, index));
        }
        format!("g{index}")
    }

    fn name_of(&mut self, name: &'m str, names: &mut Names<'m>) -> String {
        if let Some(local) = names.resolve_name(name) {
            return local;
        }
        if let Some(label) = names.labels.get(name) {
            return format!("L{label}");
        }
        self.global_name(name)
    }

    fn write_operand(&mut self, operand: &'m Operand, names: &mut Names<'m>) {
        match operand {
            Operand::Name(name) => {
                let name = self.name_of(name, names);
                self.text.push_str(&name);
            }
            Operand::Displaced(name, offset) => {
                let name = self.name_of(name, names);
                let _ = write!(self.text, "{name}+{offset}");
            }
            Operand::Integer(bits) => {
                let _ = write!(self.text, "{}", *bits as i64);
            }
            Operand::Float(bits) => {
                let _ = write!(self.text, "f{bits:08x}");
            }
            Operand::Double(bits) => {
                let _ = write!(self.text, "d{bits:016x}");
            }
            Operand::Address { base, offset } => {
                let base = base.as_deref().map_or(String::new(), |base| self.name_of(base, names));
                let _ = write!(self.text, "[{base}+{offset}]");
            }
            Operand::Brackets(list) => self.write_list('[', list, ']', names),
            Operand::Vector(list) => self.write_list('{', list, '}', names),
            Operand::Group(list) => self.write_list('(', list, ')', names),
            Operand::Not(inner) => {
                self.text.push('!');
                self.write_operand(inner, names);
            }
            Operand::Minus(inner) => {
                self.text.push('-');
                self.write_operand(inner, names);
            }
            Operand::Pair(first, second) => {
                self.write_operand(first, names);
                self.text.push('|');
                self.write_operand(second, names);
            }
            Operand::Sink => self.text.push('_'),
        }
    }

    fn write_list(&mut self, open: char, list: &'m [Operand], close: char, names: &mut Names<'m>) {
        self.text.push(open);
        for operand in list {
            self.write_operand(operand, names);
            self.text.push(' ');
        }
        self.text.push(close);
    }
}
