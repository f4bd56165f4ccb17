//! Decodes an entry of a PTX module into a [`Program`].
//!
//! Names are resolved to slots, addresses and steps once, here. An instruction that is not known
//! or cannot be resolved becomes a step that makes its destinations unknown; decoding never fails.

mod instruction;

use super::branch_trace;
use super::memory::{CONST_BASE, FUNCTION_BASE, LOCAL_BASE, MODULE_BASE, PARAM_BASE, SHARED_BASE};
use super::operation;
use super::operation::{Compare, bit_count};
use super::program::PlacedVariable;
use super::program::blank_step;
use super::program::{Callee, Operation, ParameterLocation, Program, Routine, Slot, Special, Window};
use super::reconvergence;
use super::register_slots;
use crate::ptx;
use crate::ptx::{Initial, Linkage, Module, Operand, Parameter, PtxFunction, PtxVariable, Scalar, Statement};
use std::collections::HashMap;

/// The largest alignment; the language's own is 128 bytes.
const ALIGNMENT: u32 = 1 << 12;

pub(super) fn decode_entry(module: &Module, entry: &PtxFunction) -> Program {
    let mut decoder = Decoder {
        module,
        program: Program::default(),
        constants: HashMap::new(),
        declarations: 0,
        registers: HashMap::new(),
        specials: HashMap::new(),
        symbols: HashMap::new(),
        functions: vec![entry],
        local: 0,
    };
    decoder.slot_of_constant(0);
    decoder.module_variables();
    let mut next = 0;
    while let Some(&function) = decoder.functions.get(next) {
        decoder.decode_routine(next, function);
        next += 1;
    }
    decoder.finish()
}

/// What a name in a scope refers to.
#[derive(Clone, Copy, Debug)]
enum NameBinding {
    /// `count` registers of `lanes` slots each, which they get where they are named; `None`: a
    /// single register.
    Registers { declaration: u32, count: Option<u32>, lanes: u8, scalar: Scalar },
    /// An address in the window's own numbering.
    Variable { window: Window, address: u64, size: u64 },
}

struct Decoder<'m> {
    module: &'m Module,
    program: Program,
    constants: HashMap<u64, Slot>,
    /// Declarations of registers so far, and the registers that were named by declaration and
    /// number.
    declarations: u32,
    registers: HashMap<(u32, u32), Slot>,
    specials: HashMap<&'m str, Slot>,
    /// Module-scope variables.
    symbols: HashMap<&'m str, NameBinding>,
    functions: Vec<&'m PtxFunction>,
    /// Bytes of local memory given out.
    local: u64,
}

/// Names of one function.
struct Names<'m> {
    scopes: Vec<HashMap<&'m str, NameBinding>>,
    /// Labels by the scope that declares them.
    labels: HashMap<(u32, &'m str), Target<'m>>,
    /// Scopes that are open, by number.
    open: Vec<u32>,
    next: u32,
    function: usize,
}

#[derive(Clone, Copy)]
enum Target<'m> {
    Step(u32),
    Table(&'m [Box<str>]),
}

impl<'m> Names<'m> {
    fn find_binding(&self, name: &str) -> Option<NameBinding> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied()
    }

    fn find_label(&self, name: &str) -> Option<Target<'m>> {
        self.open.iter().rev().find_map(|&scope| self.labels.get(&(scope, name))).copied()
    }

    fn find_step(&self, name: &str) -> Option<u32> {
        match self.find_label(name)? {
            Target::Step(step) => Some(step),
            Target::Table(_) => None,
        }
    }
}

fn align_up(value: u64, to: u32) -> u64 {
    value.checked_next_multiple_of(u64::from(to.clamp(1, ALIGNMENT))).unwrap_or(value)
}

impl<'m> Decoder<'m> {
    fn new_slot(&mut self, width: u32) -> Slot {
        self.program.slots.push(0);
        self.program.widths.push(width.min(64) as u8);
        (self.program.slots.len() - 1) as Slot
    }

    fn slot_of_constant(&mut self, value: u64) -> Slot {
        if let Some(&slot) = self.constants.get(&value) {
            return slot;
        }
        let slot = self.new_slot(64);
        self.program.slots[slot as usize] = value;
        self.constants.insert(value, slot);
        slot
    }

    /// Gives module-scope variables their addresses and reads their initialisers.
    fn module_variables(&mut self) {
        let module = self.module;
        // Address 0 stays free in every window, so that no variable looks like a null pointer.
        let mut next = HashMap::from([
            (ptx::StateSpace::Global, 256u64),
            (ptx::StateSpace::Const, 256),
            (ptx::StateSpace::Shared, 0),
        ]);
        let mut placed = Vec::new();
        for variable in &module.variables {
            let dynamic = variable.space == ptx::StateSpace::Shared && variable.size == 0;
            if dynamic || self.symbols.contains_key(&*variable.name) {
                continue;
            }
            let Some(next) = next.get_mut(&variable.space) else {
                continue;
            };
            let at = align_up(*next, variable.align);
            *next = at.saturating_add(variable.size.max(1)).min(1 << 31);
            let (window, address) = match variable.space {
                ptx::StateSpace::Shared => (Window::Shared, at),
                ptx::StateSpace::Const => (Window::Const, at),
                _ => (Window::Global, MODULE_BASE + at),
            };
            self.symbols.insert(&variable.name, NameBinding::Variable { window, address, size: variable.size });
            let named = PlacedVariable::new(variable, at);
            match window {
                Window::Shared => self.program.shared_variables.push(named),
                _ => self.program.variables.push(named),
            }
            placed.push((variable, at));
        }
        let shared = next.get(&ptx::StateSpace::Shared).copied().unwrap_or(0);
        self.program.shared = shared;
        self.program.dynamic_shared = self.shared_of_functions(shared);
        let is_dynamic = |variable: &&PtxVariable| variable.space == ptx::StateSpace::Shared && variable.size == 0;
        for variable in module.variables.iter().filter(is_dynamic) {
            let address = align_up(self.program.dynamic_shared, variable.align.max(16));
            self.program.dynamic_shared = address;
            self.symbols.insert(&variable.name, NameBinding::Variable { window: Window::Shared, address, size: 0 });
        }
        for (variable, at) in placed {
            let Some(initial) = &variable.initial else {
                continue;
            };
            if variable.linkage == Linkage::Extern {
                continue;
            }
            for (offset, value) in initial {
                let bits = match value {
                    Initial::Bits(bits) => *bits,
                    Initial::Address { name, offset } => self.address_of(name).wrapping_add(*offset as u64),
                };
                let image = match variable.space {
                    ptx::StateSpace::Const => &mut self.program.constants,
                    _ => &mut self.program.globals,
                };
                for byte in 0..u64::from(variable.scalar.size().min(8)) {
                    image.values.insert(at.saturating_add(*offset).saturating_add(byte), (bits >> (8 * byte)) as u8);
                }
            }
            let image = match variable.space {
                ptx::StateSpace::Const => &mut self.program.constants,
                _ => &mut self.program.globals,
            };
            image.ranges.push((at, at.saturating_add(variable.size)));
        }
    }

    /// Where the shared variables within functions that may be decoded end, which begin where
    /// those of the module end.
    fn shared_of_functions(&self, begin: u64) -> u64 {
        let others = self.module.functions.iter().filter(|function| !function.entry);
        let bodies = self.functions.iter().copied().chain(others).filter_map(|function| function.body.as_ref());
        let variables = bodies.flat_map(|body| &body.statements).filter_map(|statement| match statement {
            Statement::Variable(variable) if variable.space == ptx::StateSpace::Shared => Some(variable),
            _ => None,
        });
        variables.fold(begin, |at, variable| align_up(at, variable.align).saturating_add(variable.size)).min(1 << 31)
    }

    /// The generic address of a variable or function of the module.
    fn address_of(&mut self, name: &str) -> u64 {
        match self.symbols.get(name) {
            Some(&NameBinding::Variable { window, address, .. }) => address.wrapping_add(window_base(window)),
            _ => self.function_index(name).map_or(0, |index| FUNCTION_BASE + 16 * index as u64),
        }
    }

    /// The number of a function with a body; it will be decoded.
    fn function_index(&mut self, name: &str) -> Option<usize> {
        if let Some(index) = self.functions.iter().position(|f| &*f.name == name) {
            return Some(index);
        }
        let function = self.module.function(name).filter(|f| f.body.is_some())?;
        self.functions.push(function);
        Some(self.functions.len() - 1)
    }

    fn add_parameter(
        &mut self,
        parameter: &'m Parameter,
        scope: &mut HashMap<&'m str, NameBinding>,
    ) -> ParameterLocation {
        if parameter.register {
            let (declaration, scalar) = (self.next_declaration(), parameter.scalar);
            scope.insert(&parameter.name, NameBinding::Registers { declaration, count: None, lanes: 1, scalar });
            return ParameterLocation::Slot(self.slot_of_register(declaration, 0, 1, scalar));
        }
        let at = self.parameter_space(parameter.align, parameter.size);
        scope.insert(
            &parameter.name,
            NameBinding::Variable { window: Window::Param, address: at, size: parameter.size },
        );
        ParameterLocation::Param(at, parameter.size)
    }

    fn parameter_space(&mut self, alignment: u32, size: u64) -> u64 {
        let at = align_up(self.program.parameters, alignment);
        // A kernel takes at most 32764 bytes; nonsense sizes are cut.
        self.program.parameters = at.saturating_add(size.min(1 << 16)).min(1 << 20);
        at
    }

    fn decode_routine(&mut self, index: usize, function: &'m PtxFunction) {
        let first_slot = self.program.slots.len() as u32;
        let first_step = self.program.steps.len() as u32;
        let mut scope = HashMap::new();
        let formals = function.parameters.iter().map(|p| self.add_parameter(p, &mut scope)).collect();
        let returns = function.returns.iter().map(|p| self.add_parameter(p, &mut scope)).collect();
        let mut names = Names { scopes: vec![scope], labels: HashMap::new(), open: vec![0], next: 1, function: index };
        let statements = function.body.as_ref().map_or(&[][..], |body| &body.statements);
        place_labels(statements, first_step, &mut names);
        names.open = vec![0];
        names.next = 1;
        for statement in statements {
            match statement {
                Statement::Open => {
                    names.scopes.push(HashMap::new());
                    names.open.push(names.next);
                    names.next += 1;
                }
                Statement::Close => {
                    names.scopes.pop();
                    names.open.pop();
                }
                Statement::Registers(registers) => {
                    let (count, lanes, scalar) = (registers.count, registers.lanes.max(1), registers.scalar);
                    let declaration = self.next_declaration();
                    if let Some(scope) = names.scopes.last_mut() {
                        scope.insert(&registers.name, NameBinding::Registers { declaration, count, lanes, scalar });
                    }
                }
                Statement::Variable(variable) => {
                    let (window, address) = match variable.space {
                        ptx::StateSpace::Local => {
                            let at = align_up(self.local, variable.align);
                            self.local = at.saturating_add(variable.size).min(1 << 31);
                            (Window::Local, at)
                        }
                        ptx::StateSpace::Shared if variable.size == 0 => {
                            (Window::Shared, align_up(self.program.dynamic_shared, variable.align.max(16)))
                        }
                        ptx::StateSpace::Shared => {
                            let at = align_up(self.program.shared, variable.align);
                            self.program.shared = at.saturating_add(variable.size).min(1 << 31);
                            self.program.shared_variables.push(PlacedVariable::new(variable, at));
                            (Window::Shared, at)
                        }
                        ptx::StateSpace::Param => (Window::Param, self.parameter_space(variable.align, variable.size)),
                        ptx::StateSpace::Const => (Window::Const, 0),
                        _ => (Window::Global, MODULE_BASE),
                    };
                    if let Some(scope) = names.scopes.last_mut() {
                        scope.insert(&variable.name, NameBinding::Variable { window, address, size: variable.size });
                    }
                }
                Statement::Instruction(instruction) => {
                    let step = self.decode_step(instruction, &mut names);
                    self.program.steps.push(step);
                }
                Statement::Label(_) | Statement::Targets { .. } | Statement::Prototype { .. } => {}
            }
        }
        let line = self.program.steps.last().map_or(function.line, |step| step.line);
        // A body may end without `ret`; its line counts nothing, for no instruction is there.
        self.program.steps.push(blank_step(Operation::Return, if statements.is_empty() { line } else { 0 }));
        let routine = Routine {
            steps: first_step..self.program.steps.len() as u32,
            slots: first_slot..self.program.slots.len() as u32,
            formals,
            returns,
        };
        self.program.routines.push(routine);
    }

    fn finish(mut self) -> Program {
        let mut definitions = vec![Vec::new(); self.program.slots.len()];
        for (index, step) in self.program.steps.iter().enumerate() {
            for slot in self.program.written_slots(step) {
                definitions[slot as usize].push(index as u32);
            }
            if let Operation::Call(call) = step.operation {
                let routine = match self.program.calls[call as usize].callee {
                    Callee::Function(function) => self.program.routines.get(function),
                    _ => None,
                };
                let formals = routine.map_or(&[][..], |routine| &routine.formals);
                for passing in self.program.calls[call as usize].results.iter().chain(formals) {
                    if let ParameterLocation::Slot(slot) = passing {
                        definitions[*slot as usize].push(index as u32);
                    }
                }
            }
        }
        self.program.definitions = definitions;
        self.program.leaders = branch_trace::find_leaders(&self.program);
        self.program.outermost = branch_trace::outermost_heads(&self.program);
        self.program.ranks = reconvergence::rank_steps(&self.program);
        self.program.local = self.local;
        self.program.locations = register_slots::assign_locations(&self.program);
        self.program
    }

    fn special_slot(&mut self, name: &'m str) -> Slot {
        if let Some(&slot) = self.specials.get(name) {
            return slot;
        }
        let (stem, axis) = match name.rsplit_once('.') {
            Some((stem, "x")) => (stem, 0),
            Some((stem, "y")) => (stem, 1),
            Some((stem, "z")) => (stem, 2),
            _ => (name, 0),
        };
        let special = match stem {
            "%tid" => Special::Thread(axis),
            "%ntid" => Special::BlockSize(axis),
            "%ctaid" | "%clusterid" => Special::Block(axis),
            "%nctaid" | "%nclusterid" => Special::GridSize(axis),
            "%laneid" => Special::Lane,
            "%warpid" => Special::WarpOfBlock,
            "%nwarpid" => Special::WarpsOfBlock,
            "%lanemask_eq" => Special::LaneMask(Compare::Eq),
            "%lanemask_le" => Special::LaneMask(Compare::Le),
            "%lanemask_lt" => Special::LaneMask(Compare::Lt),
            "%lanemask_ge" => Special::LaneMask(Compare::Ge),
            "%lanemask_gt" => Special::LaneMask(Compare::Gt),
            "%dynamic_smem_size" => Special::DynamicShared,
            "%total_smem_size" => Special::TotalShared,
            "%cluster_nctaid" | "%cluster_nctarank" => Special::Constant(1),
            "%cluster_ctaid" | "%cluster_ctarank" | "%gridid" | "%is_explicit_cluster" => Special::Constant(0),
            _ => Special::Unknown,
        };
        let slot = self.new_slot(64);
        self.program.specials.push((slot, special));
        self.specials.insert(name, slot);
        slot
    }

    /// A number for a declaration of registers.
    fn next_declaration(&mut self) -> u32 {
        self.declarations += 1;
        self.declarations
    }

    /// The first slot of a register. It is given out when the register is first named: a
    /// declaration of millions costs nothing.
    fn slot_of_register(&mut self, declaration: u32, number: u32, lanes: u8, scalar: Scalar) -> Slot {
        if let Some(&slot) = self.registers.get(&(declaration, number)) {
            return slot;
        }
        let slot = self.program.slots.len() as Slot;
        for _ in 0..lanes {
            self.new_slot(bit_count(scalar));
        }
        self.registers.insert((declaration, number), slot);
        slot
    }

    /// The slot and type of a register.
    fn register_slot(&mut self, name: &str, names: &Names<'m>) -> Option<(Slot, Scalar, u8)> {
        if let Some(NameBinding::Registers { declaration, count: None, lanes, scalar }) = names.find_binding(name) {
            return Some((self.slot_of_register(declaration, 0, lanes, scalar), scalar, lanes));
        }
        if let Some((stem, member)) = name.split_once('.') {
            let (slot, scalar, lanes) = self.register_slot(stem, names)?;
            let lane = match member {
                "x" | "r" => 0,
                "y" | "g" => 1,
                "z" | "b" => 2,
                "w" | "a" => 3,
                _ => return None,
            };
            return (lane < lanes).then_some((slot + u32::from(lane), scalar, 1));
        }
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: u32 = name[stem.len()..].parse().ok()?;
        match names.find_binding(stem)? {
            NameBinding::Registers { declaration, count: Some(count), lanes, scalar } if number < count => {
                Some((self.slot_of_register(declaration, number, lanes, scalar), scalar, lanes))
            }
            _ => None,
        }
    }

    /// The address of a variable in its own window.
    fn variable_address(&mut self, name: &str, names: &Names<'m>) -> Option<(Window, u64, u64)> {
        match names.find_binding(name).or_else(|| self.symbols.get(name).copied()) {
            Some(NameBinding::Variable { window, address, size }) => Some((window, address, size)),
            _ => None,
        }
    }

    /// The slot of a source operand of type `kind`.
    fn source_slot(&mut self, operand: &'m Operand, kind: Scalar, names: &Names<'m>) -> Option<Slot> {
        let bits = match operand {
            Operand::Name(name) | Operand::Displaced(name, 0) => {
                if let Some((slot, ..)) = self.register_slot(name, names) {
                    return Some(slot);
                }
                if let Some((_, address, _)) = self.variable_address(name, names) {
                    address
                } else if name.starts_with('%') {
                    return Some(self.special_slot(name));
                } else {
                    FUNCTION_BASE + 16 * self.function_index(name)? as u64
                }
            }
            Operand::Displaced(name, offset) => self.variable_address(name, names)?.1.wrapping_add(*offset as u64),
            Operand::Integer(bits) => match kind {
                Scalar::F32 => u64::from((*bits as i64 as f32).to_bits()),
                Scalar::F64 => (*bits as i64 as f64).to_bits(),
                _ => *bits,
            },
            Operand::Float(bits) if kind == Scalar::F64 => f64::from(f32::from_bits(*bits)).to_bits(),
            Operand::Float(bits) => u64::from(*bits),
            Operand::Double(bits) if kind == Scalar::F32 => u64::from((f64::from_bits(*bits) as f32).to_bits()),
            Operand::Double(bits) => *bits,
            _ => return None,
        };
        Some(self.slot_of_constant(super::arithmetic::mask_bits(bits, operation::bit_count(kind).max(8))))
    }

    /// The slots of a list of registers and constants (`{a, b}`, or one operand).
    fn operand_slots(&mut self, operand: &'m Operand, kind: Scalar, names: &Names<'m>) -> Option<Vec<Slot>> {
        match operand {
            Operand::Vector(list) => list
                .iter()
                .map(|item| if *item == Operand::Sink { Some(0) } else { self.source_slot(item, kind, names) })
                .collect(),
            Operand::Sink => Some(vec![0]),
            Operand::Name(name) => match self.register_slot(name, names) {
                Some((slot, _, lanes)) => Some((slot..slot + u32::from(lanes)).collect()),
                None => Some(vec![self.source_slot(operand, kind, names)?]),
            },
            other => Some(vec![self.source_slot(other, kind, names)?]),
        }
    }

    fn push_list(&mut self, slots: &[Slot]) -> (u32, u32) {
        let first = self.program.lists.len() as u32;
        self.program.lists.extend_from_slice(slots);
        (first, slots.len() as u32)
    }
}

/// Returns the generic address of a window's byte 0.
pub(super) fn window_base(window: Window) -> u64 {
    match window {
        Window::Shared => SHARED_BASE,
        Window::Local => LOCAL_BASE,
        Window::Const => CONST_BASE,
        Window::Param => PARAM_BASE,
        Window::Global | Window::Generic => 0,
    }
}

/// Finds where every label of a function points.
fn place_labels<'m>(statements: &'m [Statement], first: u32, names: &mut Names<'m>) {
    let mut step = first;
    for statement in statements {
        let scope = names.open.last().copied().unwrap_or(0);
        match statement {
            Statement::Open => {
                names.open.push(names.next);
                names.next += 1;
            }
            Statement::Close => drop(names.open.pop()),
            Statement::Instruction(_) => step += 1,
            Statement::Label(label) => drop(names.labels.insert((scope, &label.name), Target::Step(step))),
            Statement::Targets { label, targets } => {
                names.labels.insert((scope, label), Target::Table(targets));
            }
            _ => {}
        }
    }
}
