//! A loaded module and its variables, with their contents before the first launch.
//!
//! Invariant: what is kept of a variable was copied before any kernel of the module ran.

use super::driver::{Context, DriverFault, Global, Memory, Module, Result, Stream};
use crate::workload::WrittenVariable;
use std::collections::HashMap;
use std::rc::Rc;

/// A module, and those of its variables that kernels may write.
pub(super) struct LoadedModule {
    // In the order in which they are to be dropped.
    /// By symbol; `None` if the module does not have the variable.
    variables: HashMap<String, Option<ModuleVariable>>,
    pub module: Module,
}

/// A variable, and a copy of what the code initialises it to.
#[derive(Clone)]
pub(super) struct ModuleVariable {
    pub global: Global,
    initial: Rc<KeptContents>,
}

/// Contents on the host and on the device.
struct KeptContents {
    bytes: Vec<u8>,
    memory: Memory,
}

/// What variables are initialised to, once for all modules that have the same.
#[derive(Default)]
pub(super) struct InitialContents {
    kept: HashMap<String, Vec<Rc<KeptContents>>>,
}

impl LoadedModule {
    /// Loads code.
    pub fn load(context: &Context, image: &[u8]) -> Result<LoadedModule> {
        Ok(LoadedModule { variables: HashMap::new(), module: Module::load(context, image)? })
    }

    /// Whether the contents of all of `variables` are kept.
    pub fn keeps(&self, variables: &[WrittenVariable]) -> bool {
        variables.iter().all(|variable| self.variables.contains_key(&variable.symbol))
    }

    /// Keeps the contents of `variables`. No kernel of the module has run.
    pub fn keep(
        &mut self,
        context: &Context,
        contents: &mut InitialContents,
        variables: &[WrittenVariable],
        heartbeat: &mut dyn FnMut(),
    ) -> std::result::Result<(), DriverFault> {
        for WrittenVariable { symbol, .. } in variables {
            if self.variables.contains_key(symbol) {
                continue;
            }
            let kept = match self.module.global(symbol)? {
                Some(global) => {
                    let initial = contents.keep(context, symbol, &global, heartbeat)?;
                    Some(ModuleVariable { global, initial })
                }
                None => None,
            };
            self.variables.insert(symbol.clone(), kept);
        }
        Ok(())
    }

    /// The variables that a workload names, as far as the module has them.
    pub fn variables<'a>(&'a self, named: &'a [WrittenVariable]) -> impl Iterator<Item = Option<&'a ModuleVariable>> {
        named.iter().map(|variable| self.variables.get(&variable.symbol)?.as_ref())
    }
}

impl ModuleVariable {
    /// Puts back the initial contents; does not wait.
    pub fn restore(&self, stream: Stream) -> Result<()> {
        self.global.copy_from(&self.initial.memory, self.initial.bytes.len(), stream)
    }
}

impl InitialContents {
    /// Copies what a variable holds, or finds an equal copy.
    fn keep(
        &mut self,
        context: &Context,
        symbol: &str,
        global: &Global,
        heartbeat: &mut dyn FnMut(),
    ) -> std::result::Result<Rc<KeptContents>, DriverFault> {
        let bytes = global.read(heartbeat)?;
        let kept = self.kept.entry(symbol.to_owned()).or_default();
        if let Some(same) = kept.iter().find(|initial| initial.bytes == bytes) {
            return Ok(Rc::clone(same));
        }
        let memory = Memory::allocate(context, bytes.len()).map_err(|error| match DriverFault::from(error) {
            DriverFault::OutOfMemory(_) => DriverFault::OutOfMemory(bytes.len() as u64),
            other => other,
        })?;
        memory.write(0, &bytes)?;
        let initial = Rc::new(KeptContents { bytes, memory });
        kept.push(Rc::clone(&initial));
        Ok(initial)
    }

    /// Frees what no module has.
    pub fn clear(&mut self) {
        self.kept.clear();
    }
}
