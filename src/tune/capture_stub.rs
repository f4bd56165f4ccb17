//! Annotations -> the launch stubs of their kernels, for a build that records launches.

use super::failure::Problem;
use super::fingerprint;
use super::header_functions;
use super::kernel_info;
use super::variants::{FrontEnds, Macros};
use crate::analysis::{MemoryProbe, texture_handles};
use crate::comment::Annotation;
use crate::cuda::HandlePlace;
use crate::cuda::declarations::handle_by_value;
use crate::nvcc::Toolchain;
use crate::process;
use crate::ptx::Module;
use crate::workload;
use crate::workload::Entry;
use std::collections::{BTreeMap, HashMap};

/// A kernel's launch stub: the mangled name that it is called after, and the kernel's symbol.
pub struct KernelStub {
    pub mangled: String,
    pub symbol: String,
    /// The toolkit as its `CUDART_VERSION` says it: 12050 for 12.5.
    pub toolkit: u32,
    /// None where only the kernel itself finds out which memory it accesses.
    pub probe: Option<MemoryProbe>,
    /// The handles among the arguments.
    pub handles: Vec<HandlePlace>,
}

/// An annotation, and the launch stub of its kernel.
pub type AnnotatedStub = (Annotation, Result<KernelStub, Problem>);

/// Finds the launch stub of each annotation's kernel, in order. A template's that names no
/// instance becomes those of all instances that the compiler makes.
///
/// # Errors
/// Where the front end does not take the source.
pub fn kernel_stubs(toolchain: &Toolchain, annotations: &[Annotation]) -> Result<Vec<AnnotatedStub>, Problem> {
    process::start_pool();
    let mut front_ends = FrontEnds::new(toolchain);
    let front_end = kernel_info::baseline_front_end(&mut front_ends)?;
    let (entries, toolkit) = (workload::entries(&front_end.stub), fingerprint::toolkit_number(&front_end.ptx));
    let module = Module::parse(&front_end.ptx).ok();
    let probe = |symbol: &str| MemoryProbe::new(&front_end.ptx, module.as_ref()?, symbol).ok();
    let mut lines: HashMap<String, u32> = HashMap::new();
    let mut stub = |annotation: &Annotation| {
        let baseline = header_functions::baseline(annotation, toolchain.architecture());
        let own = baseline.map(|found| found.macros).unwrap_or_default();
        let is_known = |entry: &Entry| entry.name() == annotation.kernel.name;
        if !entries.iter().any(is_known) {
            return Err(Problem::Absent);
        }
        let entry = kernel_info::find(toolchain, annotation, &entries, &own, &Macros::new())?;
        if let Some(line) = lines.insert(entry.symbol.clone(), annotation.kernel.line) {
            return Err(Problem::Twice { line });
        }
        let mangled = entry.mangled.clone().unwrap_or_else(|| entry.symbol.clone());
        let probe = probe(&entry.symbol);
        // What no inlined code accesses is a handle by its declaration.
        let declared = annotation.kernel.declarations.iter().enumerate().filter_map(|(argument, declaration)| {
            Some(HandlePlace { argument, offset: 0, kind: handle_by_value(declaration)? })
        });
        let mut handles = module.as_ref().map(|module| texture_handles(module, &entry.symbol)).unwrap_or_default();
        handles.extend(declared);
        let mut handles: Vec<HandlePlace> = handles.into_iter().collect();
        handles.dedup_by_key(|place| (place.argument, place.offset));
        Ok(KernelStub { mangled, symbol: entry.symbol, toolkit, probe, handles })
    };
    let mut found = Vec::new();
    for annotation in annotations {
        let instances = match annotation.is_open() {
            true => instances(annotation, &entries),
            false => Ok(vec![annotation.clone()]),
        };
        match instances {
            Ok(instances) => found.extend(instances.into_iter().map(|instance| {
                let stub = stub(&instance);
                (instance, stub)
            })),
            Err(problem) => found.push((annotation.clone(), Err(problem))),
        }
    }
    Ok(found)
}

/// The annotations of a template's instances, except for those that are specialized: their code
/// may have a comment of its own.
fn instances(template: &Annotation, entries: &[Entry]) -> Result<Vec<Annotation>, Problem> {
    let kernel = &template.kernel;
    let mut found: BTreeMap<String, Annotation> = BTreeMap::new();
    for entry in entries {
        if entry.name() == kernel.name
            && kernel.may_have_parameters(entry.parameters.len())
            && let Some(name) = entry.instance_name().filter(|name| !template.is_specialized(name))
            && let Some(instance) = template.of_instance(&name).transpose().map_err(Problem::Comment)?
            && !workload::takes_others(&instance, entry)
        {
            found.insert(name, instance);
        }
    }
    if found.is_empty() { Err(Problem::NoInstance) } else { Ok(found.into_values().collect()) }
}
