//! Annotations -> the launch stubs of their kernels, for a build that records launches.

use super::failure::Problem;
use super::fingerprint;
use super::header_functions;
use super::kernel_info;
use super::variants::{FrontEnds, Macros};
use crate::analysis::{MemoryProbe, may_load_addresses, texture_handles};
use crate::comment::Annotation;
use crate::cuda::HandlePlace;
use crate::cuda::declarations::handle_by_value;
use crate::diag::Diagnostic;
use crate::nvcc::Toolchain;
use crate::process;
use crate::ptx::Module;
use crate::workload;
use crate::workload::{Entry, TemplateFit};
use std::collections::HashMap;

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
    /// Whether memory may hold addresses that the kernel loads.
    pub loads_addresses: bool,
}

/// An annotation, and the launch stub of its kernel.
pub type AnnotatedStub = (Annotation, Result<KernelStub, Problem>);

/// Finds the launch stub of each annotation's kernel, in order. An annotation of a template that
/// names no instance becomes those of all instances that the compiler makes.
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
        let loads_addresses = module.as_ref().is_none_or(|module| may_load_addresses(module, &entry.symbol));
        Ok(KernelStub { mangled, symbol: entry.symbol, toolkit, probe, handles, loads_addresses })
    };
    let has_symbol = |found: &[AnnotatedStub], symbol: &str| {
        found.iter().any(|(_, stub)| stub.as_ref().is_ok_and(|stub| stub.symbol == symbol))
    };
    // A comment of its own goes before that of a template.
    let (templates, own): (Vec<_>, Vec<_>) = annotations.iter().partition(|of| of.is_for_all_instances());
    let mut found: Vec<AnnotatedStub> = own.into_iter().map(|of| (of.clone(), stub(of))).collect();
    for template in templates {
        let before = found.len();
        for (instance, problems, symbol) in instances(template, &entries) {
            let stub = match problems.is_empty() {
                _ if has_symbol(&found, symbol) => continue,
                _ if found.iter().any(|(other, _)| other.name == instance.name) => Err(Problem::NameTaken),
                _ if instance.name.len() > LONGEST_NAME => Err(Problem::LongName { bytes: instance.name.len() }),
                true => stub(&instance),
                false => Err(Problem::Comment(problems.into_iter().map(Diagnostic::as_warning).collect())),
            };
            found.push((instance, stub));
        }
        if found.len() == before {
            found.push((template.clone(), Err(Problem::NoInstance)));
        }
    }
    let place = |of: &Annotation| {
        annotations.iter().position(|other| other.comment == of.comment && other.source.path == of.source.path)
    };
    found.sort_by_key(|(annotation, _)| place(annotation));
    Ok(found)
}

/// The longest name of a kernel in bytes: that of a folder in the file systems in use.
const LONGEST_NAME: usize = 255;

/// Returns the annotations of the instances that are surely of a template, what is wrong with its
/// comment there, and their symbols. Those that are specialized have other code.
fn instances<'e>(template: &Annotation, entries: &'e [Entry]) -> Vec<(Annotation, Vec<Diagnostic>, &'e str)> {
    let namesakes = template.namesakes();
    let named = entries.iter().filter(|entry| entry.name() == template.kernel.name);
    let of_template = named.filter_map(|entry| {
        let name = entry.instance_name().filter(|name| !namesakes.has_specialized(name))?;
        let fit = |of: &Annotation| workload::template_fit(of, &name, entry, entries);
        let own = fit(template);
        let is_own = own > TemplateFit::No && namesakes.templates.iter().all(|other| fit(other) < own);
        let (instance, problems) = template.for_instance(&name).filter(|_| is_own)?;
        Some((instance, problems, entry.symbol.as_str()))
    });
    of_template.collect()
}
