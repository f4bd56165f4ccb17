//! What a user names -> the records that are meant: record files, folders of them, sources and
//! objects.

use crate::comment::is_marked;
use crate::record::{Record, read_regular};
use crate::settings::Settings;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What the name of a record ends with.
const END: &str = ".tune.json";

/// Returns the record files that a path means, sorted.
///
/// # Errors
/// Why there is none, and how to get one.
pub fn of_place(place: &Path) -> Result<Vec<PathBuf>, String> {
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let data = place.metadata().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            "is not there; a build writes a record, STEM.tune.json, next to its object".to_owned()
        }
        _ => format!("cannot be read: {error}"),
    });
    match data {
        Ok(data) if data.is_dir() => {
            let found = records_below(place)?;
            let none = || "has no records (STEM.tune.json): build with nvtune first, or name the folder of the objects";
            if found.is_empty() { Err(none().to_owned()) } else { Ok(found) }
        }
        Ok(_) if name.ends_with(".json") => Ok(vec![place.to_path_buf()]),
        Ok(_) => of_file(place, &name),
        Err(problem) => Err(problem),
    }
}

/// Returns the records of a source, an object or a header.
fn of_file(file: &Path, name: &str) -> Result<Vec<PathBuf>, String> {
    let stem = match name.strip_suffix(".tune.h") {
        Some(stem) => stem.to_owned(),
        None => Path::new(name).file_stem().unwrap_or(OsStr::new(name)).to_string_lossy().into_owned(),
    };
    let record = format!("{stem}{END}");
    let next = file.with_file_name(&record);
    let (settings, _) = Settings::new(|name| std::env::var_os(name));
    let named = settings.header_folder.map(|folder| folder.join(&record));
    if let Some(found) = [Some(next), named].into_iter().flatten().find(|path| path.is_file()) {
        return Ok(vec![found]);
    }
    let is_its = |path: &PathBuf| path.file_name() == Some(OsStr::new(&record)) && is_of_source(path, file);
    let found: Vec<PathBuf> = records_below(Path::new("."))?.into_iter().filter(is_its).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let is_plain = || read_regular(file).is_ok_and(|text| !is_marked(&text));
    let why = if is_plain() { " (it has no tuning comment)" } else { "" };
    Err(format!("has no record{why}: build it with nvtune, then name {record} or the folder that it is in"))
}

/// Tells whether a record is that of a source.
fn is_of_source(record: &Path, source: &Path) -> bool {
    let record = read_regular(record).ok().and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
    let named = record.and_then(|record| Path::new(&record.folder).join(&record.source).canonicalize().ok());
    named.is_some() && named == source.canonicalize().ok()
}

/// Returns the records below a folder. Links are not followed: they may lead in circles.
fn records_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        let failed = |error: std::io::Error| format!("cannot be read: '{}': {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && !name.starts_with('.') {
                folders.push(entry.path());
            } else if !is_folder && name.ends_with(END) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}
