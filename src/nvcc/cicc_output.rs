//! What cicc made while a source was tuned -> what it would make of the same source in the final
//! build, which then need not run it.
//!
//! Invariant: the options are equal, the preprocessed sources are equal but for nvtune's own
//! headers, and nothing of what is taken names a file of the run that made it; its module id is
//! replaced. The headers hold macros, which a source shows where it uses them, and functions for
//! the host, of which cicc makes nothing. Their errors are cudafe++'s, which the final build runs
//! in any case.

use super::module_id;
use crate::cuda::line_markers::LineMarker;
use crate::emit::{CiccOutput, Header};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// Options whose values are names of files that each run makes anew.
const FILES: [&str; 6] = [PTX, FATBIN, MODULE_ID, "--gen_c_file_name", STUB, "--gen_device_file_name"];
const PTX: &str = "-o";
const FATBIN: &str = "--include_file_name";
const MODULE_ID: &str = "--module_id_file_name";
/// Has cicc make the id itself, where cudafe++ does not run.
const MAKES_MODULE_ID: &str = "--gen_module_id_file";
const STUB: &str = "--stub_file_name";

/// The arguments of a run of cicc.
#[derive(Debug)]
pub struct CiccRun<'a> {
    /// Those that are no names of files which each run makes anew.
    options: Vec<&'a str>,
    /// The values of [`FILES`].
    files: [Option<&'a str>; FILES.len()],
    /// The preprocessed source.
    input: &'a str,
}

impl<'a> CiccRun<'a> {
    /// Reads the arguments; `None` where they are not understood.
    pub fn new<S: AsRef<OsStr>>(arguments: &'a [S]) -> Option<Self> {
        let (mut options, mut files, mut input) = (Vec::new(), [None; FILES.len()], None);
        let mut words = arguments.iter().map(|word| word.as_ref().to_str());
        while let Some(word) = words.next() {
            let word = word?;
            if let Some(index) = FILES.iter().position(|option| word == *option) {
                files[index] = Some(words.next()??);
            } else if !word.starts_with('-') && word.ends_with(".ii") {
                // A source may be named so, too: the input is the last one.
                options.extend(input.replace(word));
            } else {
                options.push(word);
            }
        }
        Some(Self { options, files, input: input? })
    }

    /// The value of one of [`FILES`].
    fn file(&self, option: &str) -> Option<&'a str> {
        self.files[FILES.iter().position(|own| *own == option)?]
    }

    /// The files that the final build goes on with: PTX, stub, and the name by which the stub
    /// includes the machine code.
    fn results(&self) -> Option<[&'a str; 3]> {
        Some([self.file(PTX)?, self.file(STUB)?, self.file(FATBIN)?])
    }

    /// Writes what this run would make, if that is among `outputs`; returns its messages.
    ///
    /// # Errors
    /// Where a file cannot be read or written.
    pub fn write_known(&self, outputs: &[CiccOutput]) -> io::Result<Option<String>> {
        let mut outputs = outputs.iter().filter(|output| output.options == self.options).peekable();
        if outputs.peek().is_none() {
            return Ok(None);
        }
        let source = input_digest(&std::fs::read(self.input)?);
        for output in outputs.filter(|output| output.source == source) {
            if self.write(output)? {
                return Ok(Some(output.messages.clone()));
            }
        }
        Ok(None)
    }

    /// Writes the files of this output as this run would name them; tells whether it could.
    fn write(&self, output: &CiccOutput) -> io::Result<bool> {
        let (Some([ptx, stub, fatbin]), Some(id)) = (self.results(), self.file(MODULE_ID)) else { return Ok(false) };
        let makes_id = self.options.contains(&MAKES_MODULE_ID);
        let id_text = if makes_id { output.module_id.clone() } else { std::fs::read_to_string(id)? };
        let read = |path: &Path| {
            std::fs::read_to_string(path).map(|text| module_id::with_id(text, &output.module_id, &id_text))
        };
        let stub_text = read(&output.stub)?
            .and_then(|text| renamed(&text, &fatbin_line(&output.fatbin), &fatbin_line(fatbin)))
            .and_then(|text| renamed(&text, &own_line(&output.stub), &own_line(Path::new(stub))));
        let (Some(stub_text), Some(ptx_text)) = (stub_text, read(&output.ptx)?) else { return Ok(false) };
        std::fs::write(stub, stub_text)?;
        std::fs::write(ptx, ptx_text)?;
        if makes_id {
            std::fs::write(id, id_text)?;
        }
        Ok(true)
    }

    /// Describes what this run made, with its `messages`, if another one may take it: it does not name the
    /// `folder` of the run.
    ///
    /// # Errors
    /// Where a file cannot be read.
    pub fn output(&self, folder: &OsStr, messages: &str) -> io::Result<Option<CiccOutput>> {
        let (Some([ptx, stub, fatbin]), Some(id)) = (self.results(), self.file(MODULE_ID)) else { return Ok(None) };
        let stub_text = std::fs::read_to_string(stub)?;
        // It names itself, and is given the new name.
        let Some(stub_text) = renamed(&stub_text, &own_line(Path::new(stub)), "\n") else { return Ok(None) };
        let (ptx_text, module_id) = (std::fs::read_to_string(ptx)?, std::fs::read_to_string(id)?);
        let folder = folder.as_encoded_bytes();
        let names_folder = |text: &str| memchr::memmem::find(text.as_bytes(), folder).is_some();
        if [&ptx_text, &stub_text, messages].into_iter().any(names_folder) || messages.contains(&module_id) {
            return Ok(None);
        }
        Ok(Some(CiccOutput {
            options: self.options.iter().map(|&option| option.to_owned()).collect(),
            source: input_digest(&std::fs::read(self.input)?),
            module_id,
            fatbin: fatbin.to_owned(),
            ptx: ptx.into(),
            stub: stub.into(),
            messages: messages.to_owned(),
        }))
    }
}

/// The line by which a stub includes the machine code.
fn fatbin_line(fatbin: &str) -> String {
    format!("#include \"{fatbin}\"\n")
}

/// The line by which a stub names itself.
fn own_line(stub: &Path) -> String {
    format!("# 1 \"{}\"\n", stub.display())
}

/// Replaces a line wherever it is; `None` if it is nowhere.
fn renamed(text: &str, line: &str, new: &str) -> Option<String> {
    text.contains(line).then(|| text.replace(line, new))
}

/// The digest of a preprocessed source without the lines of nvtune's headers.
fn input_digest(preprocessed: &[u8]) -> String {
    let (mut digest, mut is_header) = (Sha256::new(), false);
    for line in preprocessed.split_inclusive(|&byte| byte == b'\n') {
        if let Some(marker) = LineMarker::parse(line.trim_ascii_end()) {
            is_header = Header::is_header_name(&marker.file);
        }
        if !is_header {
            digest.update(line);
        }
    }
    format!("{:x}", digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_headers_do_not_count_and_all_others_do() {
        let digest = |header: &str, rest: &str| {
            let text = format!("# 1 \"k.cu\"\n# 1 \"/tmp/x/k.tune.h\" 1\n{header}\n# 4 \"k.cu\" 2\nint a{rest};\n");
            input_digest(text.as_bytes())
        };
        assert_eq!(digest("int b;", ""), digest("\n\nint c;\n# 7 \"/tmp/x/k.tune.h\"\nint d;", ""));
        assert_ne!(digest("int b;", ""), digest("int b;", "b"));
        assert_ne!(digest("int b;", ""), digest("int b;\n# 3 \"other.h\" 1\nint c;", ""));
    }

    #[test]
    fn runs_are_compared_by_all_but_the_files_that_each_makes() {
        let run = |files: [&str; 4], option: &str| {
            let [ptx, stub, fatbin, input] = files;
            ["-arch", "compute_90", FATBIN, fatbin, STUB, stub, option, input, "-o", ptx].map(str::to_owned)
        };
        let (one, other) = (run(["a", "b", "c", "d.ii"], "-tused"), run(["e", "f", "g", "h.ii"], "-tused"));
        let (one, other) = (CiccRun::new(&one).expect("read"), CiccRun::new(&other).expect("read"));
        assert_eq!(one.options, other.options);
        assert_eq!((one.input, one.results()), ("d.ii", Some(["a", "b", "c"])));
        let lto = run(["a", "b", "c", "d.ii"], "-lto");
        assert_ne!(one.options, CiccRun::new(&lto).expect("read").options);
        assert!(CiccRun::new(&["-arch", "compute_90"]).is_none());
    }
}
