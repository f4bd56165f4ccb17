//! Reads the files that annotations give as contents of buffers.
//!
//! A file must lie in the folder of the source that names it, or below, or in the folder that
//! `NVTUNE_FILES` names. A file that cannot be read is not an error, so that a checkout without
//! its data still builds: the annotation keeps the reason, and the kernel is not tuned.

use crate::comment::{Annotation, GivenFile, GivenValue};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Maximum size of one file in bytes: what the measuring process is sent in one message.
const MAX_BYTES: u64 = 256 << 20;

/// Reads every file that the annotations name, each once.
pub fn load(annotations: &mut [Annotation], allowed: Option<&Path>) {
    let mut known: HashMap<PathBuf, Result<Arc<Vec<u8>>, String>> = HashMap::new();
    for annotation in annotations {
        let source = PathBuf::from(&annotation.source.path);
        let folder = source.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let args = annotation.clauses.args.iter_mut().flatten().map(|given| &mut given.value);
        for value in args.chain(annotation.clauses.symbols.iter_mut().map(|symbol| &mut symbol.value)) {
            each_file(value, &mut |file| {
                file.bytes = Some(
                    found(folder, &file.path, allowed)
                        .and_then(|path| known.entry(path).or_insert_with_key(|path| read(path)).clone()),
                );
            });
        }
    }
}

fn each_file(value: &mut GivenValue, visit: &mut impl FnMut(&mut GivenFile)) {
    match value {
        GivenValue::File(file) => visit(file),
        GivenValue::Struct { fields, .. } => fields.iter_mut().for_each(|field| each_file(&mut field.value, visit)),
        GivenValue::Scalar(_)
        | GivenValue::Null(_)
        | GivenValue::Table(_)
        | GivenValue::Recorded { .. }
        | GivenValue::Buffer { .. } => {}
    }
}

/// Returns the canonical path of a file, or an error if it lies outside the permitted folders.
fn found(folder: &Path, name: &str, allowed: Option<&Path>) -> Result<PathBuf, String> {
    let outside = || "is not below the source's own folder; NVTUNE_FILES can name a folder to read from".to_owned();
    let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    // Whether a file outside is there is nobody's business either.
    if !plain && allowed.is_none() {
        return Err(outside());
    }
    let true_path = |path: &Path| path.canonicalize().map_err(|error| format!("cannot be read: {error}"));
    let roots = [Some(folder), allowed];
    let path = true_path(&folder.join(name)).or_else(|error| match allowed {
        Some(allowed) => true_path(&allowed.join(name)),
        None => Err(error),
    })?;
    // After links are followed.
    let inside = |root: &Path| root.canonicalize().is_ok_and(|root| path.starts_with(root));
    if roots.into_iter().flatten().any(inside) { Ok(path) } else { Err(outside()) }
}

fn read(path: &Path) -> Result<Arc<Vec<u8>>, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let data = std::fs::metadata(path).map_err(failed)?;
    if !data.is_file() {
        return Err("is no file".to_owned());
    }
    if data.len() > MAX_BYTES {
        return Err(format!("has more than {} MiB", MAX_BYTES >> 20));
    }
    std::fs::read(path).map(Arc::new).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::found;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_path_leads_out_of_the_sources_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        for name in ["src/data", "other"] {
            std::fs::create_dir_all(place(name)).expect("a folder");
        }
        for name in ["src/x.bin", "src/data/y.bin", "other/z.bin"] {
            std::fs::write(place(name), name).expect("written");
        }
        symlink(place("other/z.bin"), place("src/link.bin")).expect("linked");
        symlink(place("other"), place("src/away")).expect("linked");
        symlink("x.bin", place("src/inner.bin")).expect("linked");
        let absolute = place("src/x.bin");
        let (source, other) = (place("src"), place("other"));
        for (name, alone, with_other) in [
            ("x.bin", true, true),
            ("./data/y.bin", true, true),
            ("inner.bin", true, true),
            ("data/../x.bin", false, true),
            ("../other/z.bin", false, true),
            ("link.bin", false, true),
            ("away/z.bin", false, true),
            ("z.bin", false, true),
            ("../../x.bin", false, false),
            ("/etc/passwd", false, false),
            ("missing.bin", false, false),
            (absolute.to_str().expect("text"), false, true),
        ] {
            assert_eq!(found(&source, name, None).is_ok(), alone, "{name}");
            assert_eq!(found(&source, name, Some(&other)).is_ok(), with_other, "{name}");
        }
    }
}
