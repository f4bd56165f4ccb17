//! The folder in which a compile finds the headers of its sources.
//!
//! It holds nothing else: the object's folder may have a `limits.h` or a `version` that no
//! compile should find. The compiler names files of this folder in dependency files, which get
//! the names of the lasting headers once the compiler has ended.

use super::depfile;
use crate::nvcc::{Renamed, list_value, renamed};
use crate::process::TemporaryFolder;
use crate::record::read_regular;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// The header of a source, for its compile.
pub struct IncludedHeader {
    /// By what names below a folder of the include path the source includes it, the file name
    /// first.
    pub places: Vec<PathBuf>,
    pub text: String,
    /// The header that remains after the build; `None` if the present one belongs to another
    /// object.
    pub lasting: Option<PathBuf>,
}

/// A name for the header that needs no quotes.
fn plain_place(number: usize) -> PathBuf {
    PathBuf::from(format!("included/{number}.tune.h"))
}

/// Whether nvcc and the shells that it starts leave a path as it is, and have nothing to say of
/// it.
fn is_passed_on(path: &Path) -> bool {
    path.to_str().is_some_and(|path| !path.bytes().any(|byte| byte.is_ascii_control() || b"'\"\\$`".contains(&byte)))
}

/// A folder with such headers; it goes when this is dropped.
pub struct IncludeFolder {
    folder: TemporaryFolder,
    headers: Vec<IncludedHeader>,
}

impl IncludeFolder {
    /// Makes the folder.
    pub fn new(headers: Vec<IncludedHeader>) -> io::Result<Self> {
        let folder = TemporaryFolder::new()?;
        for (number, header) in headers.iter().enumerate() {
            for place in header.places.iter().chain([&plain_place(number)]) {
                let path = folder.path().join(place);
                path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
                std::fs::write(path, &header.text)?;
            }
        }
        Ok(Self { folder, headers })
    }

    /// The options that make a source find its header. `is_only_source`: a call of one source
    /// includes it first of all.
    pub fn options(&self, is_only_source: bool) -> Vec<OsString> {
        let mut options = vec!["-I".into(), list_value(self.folder.path().as_os_str())];
        // A quoted include finds a header that a build into the source's own folder left before it
        // looks in this folder: its grids would be for another winner. The include guard makes
        // it empty once the right one is read.
        for (number, header) in self.headers.iter().enumerate().filter(|_| is_only_source) {
            options.extend(["-include".into(), list_value(self.first_included(number, header).as_os_str())]);
        }
        options
    }

    /// The lasting header where that will do: debug information names it, and is then the same
    /// in each build.
    fn first_included(&self, number: usize, header: &IncludedHeader) -> PathBuf {
        let is_same = |path: &&PathBuf| read_regular(path).is_ok_and(|present| present == header.text.as_bytes());
        let own = || self.folder.path().join(plain_place(number));
        header.lasting.as_ref().filter(|path| is_passed_on(path) && is_same(path)).cloned().unwrap_or_else(own)
    }

    /// Gives the headers their lasting names in these dependency files, or leaves them out.
    pub fn rename_in(&self, depfiles: &[PathBuf], keeps_headers: bool) {
        for path in depfiles {
            // A device is no file to be written again.
            let Ok(text) = read_regular(path) else { continue };
            let renamed = self.renamed_text(&text, keeps_headers);
            if renamed != text {
                // Where it cannot be written, its dates have the source compiled once more.
                let _ = depfile::write(path, &renamed);
            }
        }
    }

    /// Writes a dependency file of nvcc's to `path`, with the lasting names of the headers or
    /// without them; does nothing if nvcc wrote none.
    pub fn move_depfile(&self, written: &Path, path: &Path, keeps_headers: bool) -> Result<(), String> {
        let failed =
            |what: &str, path: &Path, error: io::Error| format!("cannot {what} '{}': {}", path.display(), error.kind());
        let text = match std::fs::read(written) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => read.map_err(|error| failed("read", written, error))?,
        };
        depfile::write(path, &self.renamed_text(&text, keeps_headers)).map_err(|error| failed("write", path, error))
    }

    /// Returns a dependency file with the lasting names of the headers, each once, or without
    /// them.
    fn renamed_text(&self, text: &[u8], keeps_headers: bool) -> Vec<u8> {
        renamed(text, |name| match self.lasting_name(name) {
            Renamed::To(_) if !keeps_headers => Renamed::Removed,
            renamed => renamed,
        })
    }

    /// Returns the lasting header that this is, however it is spelled.
    fn respelled(&self, name: &Path) -> Renamed {
        let mut lasting = self.headers.iter().filter_map(|header| header.lasting.as_ref());
        let is_same =
            |path: &PathBuf| path.canonicalize().is_ok_and(|path| name.canonicalize().is_ok_and(|name| name == path));
        let is_it = |path: &&PathBuf| path.file_name() == name.file_name() && is_same(path);
        lasting.find(is_it).map_or(Renamed::Kept, |path| Renamed::To(path.clone()))
    }

    fn lasting_name(&self, name: &Path) -> Renamed {
        let Ok(place) = name.strip_prefix(self.folder.path()) else { return self.respelled(name) };
        let is_its = |number: usize, header: &IncludedHeader| {
            header.places.iter().chain([&plain_place(number)]).any(|own| own == place)
        };
        let header = self.headers.iter().enumerate().find(|(number, header)| is_its(*number, header));
        let lasting = header.and_then(|(_, header)| header.lasting.clone()).filter(|path| path.is_file());
        lasting.map_or(Renamed::Removed, Renamed::To)
    }
}
