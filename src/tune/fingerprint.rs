//! The fingerprint of what a kernel's winner depends on, for lock file and cache.

use super::kernel_info::KernelInfo;
use super::outcome::Tuned;
use super::variants::FrontEnds;
use crate::comment::{Annotation, GivenValue, TemplateArgument};
use crate::launch::FrontEndOptions;
use crate::nvcc::{FrontEnd, Toolchain};
use crate::ptx;
use crate::record::{Decision, Fingerprint, LockEntry, checksum, digest};
use crate::search::Provenance;
use crate::workload::Entry;

/// Returns the fingerprint of a kernel: all that its winner depends on, except the code under
/// other options than the baseline's. `None` if the front end failed for the baseline.
pub fn for_kernel(info: &KernelInfo<'_>, front_ends: &FrontEnds<'_>, toolchain: &Toolchain) -> Option<Fingerprint> {
    let annotation = info.annotation;
    let made = front_ends.made(&FrontEndOptions::default())?;
    Some(Fingerprint {
        comment: comment(annotation),
        data: data(annotation),
        inferred: annotation.inferred.as_ref().map(|inferred| inferred.text.clone()),
        instance: annotation.recorded_instance(),
        flags: toolchain.assembler_options(),
        ptx: code(made, &info.entry)?,
        toolkit: toolkit(&made.ptx).to_owned(),
        launches: info.launch_path.fingerprint_name().to_owned(),
    })
}

/// The digest of the comment, and of the source's constants that its expressions go by.
fn comment(annotation: &Annotation) -> String {
    let arguments = annotation.instance.iter().flat_map(|instance| &instance.arguments);
    let constants = arguments.filter_map(|argument| match argument {
        TemplateArgument::Constant { text, value } => Some(format!("{text} = {value}")),
        TemplateArgument::Text(_) | TemplateArgument::Value { .. } => None,
    });
    let named = annotation.constants.iter().map(|constant| format!("{} = {}", constant.name, constant.value));
    let parts: Vec<String> = std::iter::once(annotation.text.clone()).chain(constants).chain(named).collect();
    digest(parts.iter().map(String::as_bytes))
}

/// The digest of the kernel under each of these sets of options that the front end was run for.
pub fn set_digests(
    info: &KernelInfo<'_>,
    front_ends: &FrontEnds<'_>,
    sets: impl IntoIterator<Item = FrontEndOptions>,
) -> Vec<(FrontEndOptions, String)> {
    let of = |set: FrontEndOptions| {
        let made = front_ends.made(&info.options(&set))?;
        let found = code(made, info.entry(&set).ok()?)?;
        Some((set, found))
    };
    sets.into_iter().filter_map(of).collect()
}

/// The digest of a kernel's PTX and of its parameters' types, which say what a buffer is filled
/// with.
fn code(made: &FrontEnd, entry: &Entry) -> Option<String> {
    let canonical = ptx::Module::parse(&made.ptx).ok()?.canonical_text(&entry.symbol)?;
    let types = format!("{:?} {:?}", entry.parameters, entry.layouts);
    Some(digest([canonical.as_bytes(), types.as_bytes()]))
}

/// The toolkit's version in the first lines of its PTX: `// Cuda compilation tools, release
/// 13.0, V13.0.88`.
fn toolkit(ptx: &str) -> &str {
    let line = ptx.lines().take(20).find(|line| line.starts_with("//") && line.contains("release "));
    line.and_then(|line| line.rsplit_once('V')).map_or("unknown", |(_, version)| version.trim())
}

/// The toolkit of PTX as `CUDART_VERSION` says it: 13000; 0 where it is not known.
pub fn toolkit_number(ptx: &str) -> u32 {
    let mut parts = toolkit(ptx).split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    parts.next().unwrap_or(0) * 1000 + parts.next().unwrap_or(0) * 10
}

/// The digest of the files of a workload. One that cannot be read counts as it is: the kernel
/// is not tuned then.
pub fn data(annotation: &Annotation) -> Option<String> {
    let recorded = annotation.clauses.recorded.iter().map(|memory| format!("recorded = {:016x}", memory.checksum));
    let mut parts: Vec<String> = recorded.collect();
    // A count that differs little decides nothing else.
    let others = annotation.clauses.other_launches.iter();
    parts.extend(others.map(|other| format!("{:016x} {:.0}", other.memory.checksum, other.frequency.log2())));
    let given = annotation.clauses.args.iter().flatten().map(|given| (given.name.clone(), &given.value));
    let symbols = annotation.clauses.symbols.iter().map(|symbol| (symbol.name.clone(), &symbol.value));
    for (name, value) in given.chain(symbols) {
        value.visit(name, &mut |path, value| {
            if let GivenValue::File(file) = value {
                let bytes = match &file.bytes {
                    Some(Ok(bytes)) => checksum(bytes),
                    Some(Err(problem)) => problem.clone(),
                    None => String::new(),
                };
                parts.push(format!("{path} {bytes}"));
            }
        });
    }
    let elsewhere = annotation.inferred.as_ref().and_then(|inferred| inferred.data.clone());
    elsewhere.or_else(|| (!parts.is_empty()).then(|| digest(parts.iter().map(String::as_bytes))))
}

/// Makes the lock file's entry of a decision. `sets` has the digest of the code for each set of
/// front-end options.
pub fn lock_entry(tuned: &Tuned, basis: Fingerprint, sets: &[(FrontEndOptions, String)]) -> LockEntry {
    let decision = &tuned.decision;
    let winner = tuned.winner().clone();
    let baseline = &decision.configurations[decision.baseline].configuration;
    let options = winner.front_end();
    let of_winner = sets.iter().find(|(set, _)| *set == options).map(|(_, found)| found.clone());
    let winner_ptx = of_winner.filter(|_| options != baseline.front_end());
    let device = decision.device.as_ref().filter(|_| was_timed(decision));
    LockEntry {
        basis,
        winner_ptx,
        code: tuned.code().map(str::to_owned),
        occupancy: tuned.occupancy(),
        surplus: decision.surplus,
        grid_limit: decision.grid_limit,
        gpu: device.map(|device| device.name.clone()),
        driver: device.map(|device| device.driver),
        provenance: decision.provenance,
        speedup: (decision.speedup * 1000.0).round() / 1000.0,
        points: decision.points,
        timed: decision.timed,
        nvtune: env!("CARGO_PKG_VERSION").to_owned(),
        winner,
    }
}

/// Tells whether the decision rests on timing, even if the baseline stays.
fn was_timed(decision: &Decision) -> bool {
    match decision.provenance {
        Provenance::Measured => true,
        Provenance::Baseline => decision.timed > 0,
        Provenance::Locked | Provenance::Predicted => false,
    }
}
