//! PTX of a kernel -> PTX of another one that finds out, with the same arguments, which parts of
//! memory the kernel accesses.
//!
//! It consists of the kernel's [`AddressSlice`], and writes nothing but its own table: for each
//! set of pointers the lowest address that is accessed through it and the end of the highest.
//! Loads that addresses depend on, of memory that might change, have rows of their own: if one
//! overlaps a row that the kernel writes, the table says nothing.

use super::address_slice::{AccessRow, AddressSlice, GlobalAccess, SlicePart, SliceProblem};
use crate::ptx::{Guard, Instruction, Module, Registers, Scalar, Statement};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The names of the probe and of its table in its PTX.
pub const ENTRY: &str = "nvtune_probe";
pub const TABLE: &str = "nvtune_table";

/// The label of its end.
const END: &str = "$nvtune_end";

/// A probe of one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryProbe {
    pub ptx: String,
    /// The compute capability that the kernel was compiled for: 90.
    pub architecture: u32,
    /// How many parameters it takes; they are the kernel's.
    pub parameters: usize,
    pub rows: Vec<ProbeRow>,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeRow {
    /// The pointers that its accesses go through.
    pub pointers: Vec<PointerArgument>,
    /// The table is right only if no row that is written overlaps one that is watched.
    pub is_watched: bool,
    pub is_written: bool,
}

/// A pointer in the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointerArgument {
    pub parameter: usize,
    /// Its byte in the parameter.
    pub offset: u64,
}

impl MemoryProbe {
    /// Makes the probe of the kernel `symbol`; `text` is what `module` was parsed from.
    ///
    /// # Errors
    /// Why there is none.
    pub fn new(text: &str, module: &Module, symbol: &str) -> Result<Self, SliceProblem> {
        let slice = AddressSlice::new(module, symbol)?;
        let row = |AccessRow { pointers, is_watched, is_written }: &AccessRow| {
            let pointers = pointers.iter().map(|&(parameter, offset)| PointerArgument { parameter, offset }).collect();
            ProbeRow { pointers, is_watched: *is_watched, is_written: *is_written }
        };
        let rows = slice.rows.iter().map(row);
        let mut writer = ProbeWriter::new(text, &slice);
        writer.write_head(module);
        writer.write_body()?;
        let target = module.target.first().map_or("", |name| name);
        let digits: String = target.chars().filter(char::is_ascii_digit).collect();
        let architecture = digits.parse().unwrap_or_default();
        Ok(Self { ptx: writer.ptx, architecture, parameters: slice.entry.parameters.len(), rows: rows.collect() })
    }
}

struct ProbeWriter<'s, 'a> {
    text: &'s str,
    slice: &'s AddressSlice<'a>,
    /// Instructions that the probe jumps to and the kernel need not.
    targets: BTreeSet<usize>,
    ptx: String,
}

impl<'s, 'a> ProbeWriter<'s, 'a> {
    fn new(text: &'s str, slice: &'s AddressSlice<'a>) -> Self {
        let end = slice.parts.len();
        let targets = slice.parts.iter().filter_map(|part| match part {
            SlicePart::Skip(next) if *next < end => Some(*next),
            _ => None,
        });
        Self { text, slice, targets: targets.collect(), ptx: String::new() }
    }

    fn add_line(&mut self, line: impl AsRef<str>) {
        self.ptx += line.as_ref();
        self.ptx.push('\n');
    }

    fn write_head(&mut self, module: &Module) {
        let (major, minor) = module.version;
        let target = module.target.first().map_or("", |name| name);
        self.add_line(format!(".version {major}.{minor}\n.target {target}\n.address_size 64"));
        let rows = vec!["18446744073709551615, 0"; self.slice.rows.len()].join(", ");
        let words = 2 * self.slice.rows.len();
        self.add_line(format!(".visible .global .align 8 .u64 {TABLE}[{words}] = {{{rows}}};"));
        let parameters = self.slice.entry.parameters.iter();
        let parameters: Vec<String> = parameters
            .map(|parameter| format!(".param .align {} .b8 {}[{}]", parameter.align, parameter.name, parameter.size))
            .collect();
        // A block may have as many threads as any kernel's.
        self.add_line(format!(".visible .entry {ENTRY}({})\n.maxntid 1024, 1, 1\n{{", parameters.join(", ")));
    }

    fn write_body(&mut self) -> Result<(), SliceProblem> {
        self.add_line(".reg .pred %nvtune_p;\n.reg .b64 %nvtune_a, %nvtune_b;");
        for row in 0..self.slice.rows.len() {
            self.add_line(format!(".reg .b64 %nvtune_low{row}, %nvtune_end{row};"));
            self.add_line(format!("mov.b64 %nvtune_low{row}, -1;\nmov.b64 %nvtune_end{row}, 0;"));
        }
        let (mut next, mut depth) = (0, 0);
        for statement in &self.slice.body.statements {
            if depth == 0
                && matches!(statement, Statement::Open | Statement::Instruction(_))
                && self.targets.remove(&next)
            {
                self.add_line(format!("$nvtune_{next}:"));
            }
            match statement {
                Statement::Open => {
                    depth += 1;
                    self.add_line("{");
                }
                Statement::Close => {
                    depth -= 1;
                    self.add_line("}");
                }
                Statement::Registers(registers) => self.write_registers(registers),
                Statement::Label(label) => self.add_line(format!("{}:", label.name)),
                Statement::Instruction(instruction) => {
                    self.write_instruction(next, instruction);
                    next += 1;
                }
                Statement::Variable(_) | Statement::Targets { .. } | Statement::Prototype { .. } => {}
            }
        }
        if let Some(&hidden) = self.targets.first() {
            // It is in a scope, where no jump from outside leads.
            let instruction = self.slice.flow.instructions[hidden];
            return Err(SliceProblem::Flow { line: instruction.line, opcode: instruction.opcode.text().to_owned() });
        }
        self.write_end();
        Ok(())
    }

    fn write_registers(&mut self, registers: &Registers) {
        let count = registers.count.map_or(String::new(), |count| format!("<{count}>"));
        let lanes = if registers.lanes > 1 { format!(" .v{}", registers.lanes) } else { String::new() };
        // Registers of bits take part in every instruction of their size.
        let kind = match registers.scalar {
            Scalar::Pred => "pred".to_owned(),
            scalar => format!("b{}", scalar.size() * 8),
        };
        self.add_line(format!(".reg{lanes} .{kind} {}{count};", registers.name));
    }

    fn write_instruction(&mut self, at: usize, instruction: &Instruction) {
        let guard = instruction.guard.as_ref().map_or(String::new(), |Guard { register, negated }| {
            format!("@{}{register} ", if *negated { "!" } else { "" })
        });
        if let Some(access) = &self.slice.accesses[at] {
            self.write_access(&guard, access);
        }
        match self.slice.parts[at] {
            SlicePart::Dropped => {}
            SlicePart::Skip(next) if next == self.slice.parts.len() => self.add_line(format!("bra {END};")),
            SlicePart::Skip(next) => self.add_line(format!("bra $nvtune_{next};")),
            SlicePart::Kept if instruction.leaves() => self.add_line(format!("{guard}bra {END};")),
            SlicePart::Kept => {
                let text = &self.text[instruction.span.clone()];
                self.add_line(format!("{guard}{text}"));
            }
        }
    }

    fn write_access(&mut self, guard: &str, access: &GlobalAccess<'_>) {
        let GlobalAccess { base, offset, bytes, row } = access;
        let end = offset.wrapping_add_unsigned(*bytes);
        self.add_line(format!("add.s64 %nvtune_a, {base}, {offset};\nadd.s64 %nvtune_b, {base}, {end};"));
        self.add_line(format!("{guard}min.u64 %nvtune_low{row}, %nvtune_low{row}, %nvtune_a;"));
        self.add_line(format!("{guard}max.u64 %nvtune_end{row}, %nvtune_end{row}, %nvtune_b;"));
    }

    /// Writes what each thread does at its end. Few of them know better than the table, so that
    /// few wait for each other.
    fn write_end(&mut self) {
        self.add_line(format!("{END}:"));
        for row in 0..self.slice.rows.len() {
            for (word, name, test, operation) in [(0, "low", "lt", "min"), (1, "end", "gt", "max")] {
                let place = format!("[{TABLE}+{}]", 16 * row + 8 * word);
                self.add_line(format!("ld.volatile.global.u64 %nvtune_a, {place};"));
                self.add_line(format!("setp.{test}.u64 %nvtune_p, %nvtune_{name}{row}, %nvtune_a;"));
                self.add_line(format!("@%nvtune_p red.global.{operation}.u64 {place}, %nvtune_{name}{row};"));
            }
        }
        self.add_line("ret;\n}");
    }
}
