//! The steps behind a compile, as `nvcc --dryrun` prints them: an environment and shell command
//! lines.
//!
//! nvcc runs every step as `sh -c "<line>"`, so a line is kept as text and only the file names
//! in it are replaced.

use crate::process;
use crate::process::{TemporaryFolder, Tool};
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use thiserror::Error;

/// What `nvcc --dryrun` printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dryrun {
    /// The environment of the steps, in order.
    pub environment: Vec<(String, String)>,
    pub steps: Vec<DryrunStep>,
}

/// One command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DryrunStep {
    line: String,
    words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    /// Bytes of the line that the word takes, quotes included.
    span: Range<usize>,
    /// The word without quotes; variables are not expanded.
    text: String,
}

/// The three steps that make the machine code of one source for one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// The source as nvcc names it.
    pub source: String,
    /// `sm_90`, as given to ptxas.
    pub architecture: String,
    pub preprocess: DryrunStep,
    pub cicc: DryrunStep,
    pub ptxas: DryrunStep,
    /// The steps that make the module id (preprocessing for the host, cudafe++), where they are
    /// there.
    pub module_id: Vec<DryrunStep>,
}

#[derive(Debug, Error)]
pub enum DryrunError {
    #[error("cannot start '{}': {source}", path.display())]
    Start { path: std::path::PathBuf, source: std::io::Error },
    #[error("nvcc --dryrun did not end within {} s (NVTUNE_PATIENCE) and was stopped", .0.as_secs_f64())]
    Late(Duration),
    /// nvcc refuses the call; it will say why when it is really run.
    #[error("nvcc --dryrun fails: {0}")]
    Refused(String),
}

impl Dryrun {
    /// Asks `nvcc` what it would do for `arguments`.
    pub fn ask(nvcc: &Path, arguments: &[OsString]) -> Result<Self, DryrunError> {
        let start = |source| DryrunError::Start { path: nvcc.to_path_buf(), source };
        // With `-t` a dry run, too, makes temporary files, and leaves them.
        let folder = TemporaryFolder::new().map_err(start)?;
        let mut command = Command::new(nvcc);
        command.env("TMPDIR", folder.path());
        command
            // First: behind an option without its value it would be that value, and nvcc would compile.
            .arg("--dryrun")
            .args(arguments);
        // A dry run appends its rows to the table of times, too. The last of two names counts.
        if arguments.iter().any(is_table_of_times) {
            command.arg("--time").arg(folder.path().join("time.csv"));
        }
        let limit = process::tool_patience();
        let output =
            process::output_within(&mut Tool::new(command), limit).map_err(start)?.ok_or(DryrunError::Late(limit))?;
        let text = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let first = text.lines().find(|line| !line.starts_with("#$")).unwrap_or("no message");
            return Err(DryrunError::Refused(first.to_owned()));
        }
        Ok(Self::parse(&text))
    }

    /// Tells whether two dry runs have the same environment and command lines, apart from the
    /// names of temporary files.
    pub fn has_same_steps_as(&self, other: &Self) -> bool {
        let lines = |dryrun: &Self| -> Vec<String> {
            let environment = dryrun.environment.iter().map(|(name, value)| format!("{name}={value}"));
            environment
                .chain(dryrun.steps.iter().map(|step| step.line.clone()))
                .map(|line| without_temporary_names(&line))
                .collect()
        };
        lines(self) == lines(other)
    }

    /// Reads the text of a dry run.
    pub fn parse(text: &str) -> Self {
        let mut dryrun = Self::default();
        for line in text.lines().filter_map(|line| line.strip_prefix("#$ ")) {
            match line.split_once('=') {
                Some((name, value))
                    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') =>
                {
                    // These two are settings of nvcc that it echoes, not part of the steps' environment.
                    if !matches!(name, "NVCC_PREPEND_FLAGS" | "NVCC_APPEND_FLAGS") {
                        dryrun.environment.push((name.to_owned(), value.to_owned()));
                    }
                }
                _ => dryrun.steps.push(DryrunStep::new(line)),
            }
        }
        dryrun
    }

    /// The value of an environment variable of the steps.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The device pipelines: one for each source and architecture that ptxas is run for.
    pub fn pipelines(&self) -> Vec<Pipeline> {
        let produces = |step: &&DryrunStep, file: &str| step.option("-o") == Some(file);
        self.steps
            .iter()
            // For a virtual architecture ptxas only checks the PTX, and writes nothing.
            .filter(|step| step.program() == "ptxas" && step.option("-o").is_some())
            .filter_map(|ptxas| {
                let architecture = ptxas.option("-arch")?.to_owned();
                let cicc = self
                    .steps
                    .iter()
                    .find(|step| step.program() == "cicc" && step.option("-o").is_some_and(|ptx| ptxas.has(ptx)))?;
                let preprocess = self.steps.iter().find(|step| {
                    step.has("-E") && step.option("-o").is_some_and(|preprocessed| cicc.has(preprocessed))
                })?;
                let id = cicc.option("--module_id_file_name")?;
                let mut module_id = Vec::new();
                if let Some(cudafe) = self
                    .steps
                    .iter()
                    .find(|step| step.program() == "cudafe++" && step.option("--module_id_file_name") == Some(id))
                {
                    let host = self
                        .steps
                        .iter()
                        .find(|step| step.has("-E") && cudafe.words.iter().any(|word| produces(step, &word.text)));
                    module_id.extend(host.cloned());
                    module_id.push(cudafe.clone());
                }
                Some(Pipeline {
                    source: cicc.option("--orig_src_file_name")?.to_owned(),
                    architecture,
                    preprocess: preprocess.clone(),
                    cicc: cicc.clone(),
                    ptxas: ptxas.clone(),
                    module_id,
                })
            })
            .collect()
    }
}

impl Pipeline {
    /// Whether the code is linked later (`-rdc=true`).
    pub fn is_relocatable(&self) -> bool {
        ["-c", "--compile-only"].iter().any(|option| self.ptxas.has(option))
    }

    /// Whether the source's host code, launch stubs included, is compiled too; not with
    /// `-cubin` and `-fatbin`.
    pub fn has_host_code(&self) -> bool {
        self.module_id.iter().any(|step| step.program() == "cudafe++")
    }
}

/// Tells whether an argument asks for a table of the steps' times.
fn is_table_of_times(word: &OsString) -> bool {
    let name = word.as_bytes().strip_prefix(b"-").map(|word| word.strip_prefix(b"-").unwrap_or(word));
    name.is_some_and(|name| name == b"time" || name.starts_with(b"time="))
}

/// Removes from a line what differs between two runs: folder and process of
/// `/tmp/x/tmpxft_0001_0002-6_k.ii`.
fn without_temporary_names(line: &str) -> String {
    let is_of_path = |letter: char| !letter.is_whitespace() && !matches!(letter, '"' | '\'' | '=');
    let is_of_run = |letter: char| letter.is_ascii_hexdigit() || letter == '_';
    let parts: Vec<&str> = line.split("tmpxft_").collect();
    let part = |(at, part): (usize, &&str)| {
        let part = if at == 0 { part } else { part.trim_start_matches(is_of_run) };
        if at + 1 == parts.len() { part.to_owned() } else { part.trim_end_matches(is_of_path).to_owned() }
    };
    parts.iter().enumerate().map(part).collect::<Vec<_>>().join("tmpxft")
}

impl DryrunStep {
    /// Reads a command line.
    pub fn new(line: &str) -> Self {
        // With `-t` each step's output goes to temporary files; whoever runs a step here reads it
        // himself.
        let kept = line.trim_end().strip_suffix("_stderr").and_then(|head| head.rfind(" > "));
        let line = &line[..kept.unwrap_or(line.len())];
        Self { line: line.to_owned(), words: words(line) }
    }

    /// The file name of the program that the step runs.
    pub fn program(&self) -> &str {
        let first = self.words.first().map_or("", |word| word.text.as_str());
        first.rsplit('/').next().unwrap_or(first)
    }

    /// The words of the line.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| word.text.as_str())
    }

    /// Whether `text` is a word of the line.
    pub fn has(&self, text: &str) -> bool {
        self.words.iter().any(|word| word.text == text)
    }

    /// The program as it is called, which may name variables of the steps' environment.
    pub fn command(&self) -> &str {
        self.words.first().map_or("", |word| word.text.as_str())
    }

    /// The words behind the program's name.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.words.iter().skip(1).map(|word| word.text.as_str())
    }

    /// The value of an option, given as the next word or after `=`.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.words.iter().enumerate().find_map(|(index, word)| {
            if word.text == name {
                return self.words.get(index + 1).map(|value| value.text.as_str());
            }
            word.text.strip_prefix(name)?.strip_prefix('=')
        })
    }

    /// The same step with words replaced by paths, and `extra` (shell text) behind it.
    ///
    /// Each replacement names a word by its text; a word that is not there is left alone.
    pub fn rewritten(&self, replacements: &[(&str, &Path)], extra: &[OsString]) -> OsString {
        let mut line = Vec::new();
        let mut copied = 0;
        for word in &self.words {
            if let Some((_, path)) = replacements.iter().find(|(text, _)| *text == word.text) {
                line.extend_from_slice(&self.line.as_bytes()[copied..word.span.start]);
                line.extend_from_slice(quoted(path.as_os_str()).as_bytes());
                copied = word.span.end;
            }
        }
        // With -t, what a step prints is led into files of nvcc's, which nobody would remove here.
        let is_redirection =
            |word: &&Word| self.line[word.span.clone()].starts_with(['>']) || word.text.starts_with("2>");
        let end = self.words.iter().find(is_redirection).map_or(self.line.len(), |word| word.span.start);
        line.extend_from_slice(self.line.as_bytes().get(copied..end).unwrap_or_default());
        for word in extra {
            line.push(b' ');
            line.extend_from_slice(quoted(word).as_bytes());
        }
        std::os::unix::ffi::OsStringExt::from_vec(line)
    }
}

/// A word that the shell reads back as it is.
pub(super) fn quoted(word: &std::ffi::OsStr) -> OsString {
    let mut bytes = vec![b'\''];
    for &byte in word.as_bytes() {
        if byte == b'\'' {
            bytes.extend_from_slice(b"'\\''");
        } else {
            bytes.push(byte);
        }
    }
    bytes.push(b'\'');
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

/// Splits a command line at blanks outside quotes, as sh does.
fn words(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut current: Option<(usize, String)> = None;
    let mut quote = None;
    let mut characters = line.char_indices();
    while let Some((position, character)) = characters.next() {
        match (character, quote) {
            (' ' | '\t', None) => {
                if let Some((start, text)) = current.take() {
                    words.push(Word { span: start..position, text });
                }
                continue;
            }
            ('"' | '\'', None) => {
                quote = Some(character);
                current.get_or_insert((position, String::new()));
            }
            (_, Some(open)) if character == open => quote = None,
            // In double quotes a backslash that escapes nothing is a letter.
            ('\\', Some('"')) if !line[position + 1..].starts_with(['$', '`', '"', '\\']) => {
                current.get_or_insert((position, String::new())).1.push(character);
            }
            ('\\', open) if open != Some('\'') => {
                let word = current.get_or_insert((position, String::new()));
                word.1.extend(characters.next().map(|(_, escaped)| escaped));
            }
            _ => current.get_or_insert((position, String::new())).1.push(character),
        }
    }
    if let Some((start, text)) = current {
        words.push(Word { span: start..line.len(), text });
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"#$ _SPACE_= 
#$ CICC_PATH=/cuda/nvvm/bin
#$ NVCC_APPEND_FLAGS="-lineinfo"
#$ gcc -E -x c++ "a b.cu" -o "/tmp/x-5_a.cpp4.ii" 
#$ cudafe++ --gen_module_id_file --module_id_file_name "/tmp/x-4_a.module_id" "/tmp/x-5_a.cpp4.ii" 
#$ gcc -D__CUDA_ARCH__=900 -E -x c++ "a b.cu" -o "/tmp/x-7_a.cpp1.ii" 
#$ "$CICC_PATH/cicc" --orig_src_file_name "a b.cu" --module_id_file_name "/tmp/x-4_a.module_id" --stub_file_name "/tmp/x-6.stub.c" "/tmp/x-7_a.cpp1.ii" -o "/tmp/x-6_a.ptx"
#$ ptxas -arch=sm_90 -m64  "/tmp/x-6_a.ptx"  -o "/tmp/x-8_a.sm_90.cubin" 
#$ fatbinary -64 "--image3=kind=elf,sm=90,file=/tmp/x-8_a.sm_90.cubin" --embedded-fatbin="/tmp/x-3_a.fatbin.c" 
#$ -- Filter Dependencies -- > a.d
"#;

    #[test]
    fn runs_with_other_temporary_files_have_the_same_steps() {
        let run = |folder: &str, id: &str, options: &str| {
            let of_run = format!("{folder}/tmpxft_{id}_00000000");
            Dryrun::parse(&format!(
                "#$ TOP=/cuda\n#$ gcc -E{options} k.cu -o \"{of_run}-5_k.ii\"\n#$ cicc --x={of_run}-6_k.stub.c \"{of_run}-5_k.ii\" -o k.o\n"
            ))
        };
        let one = run("/tmp/a", "0001f0e2", "");
        assert!(one.has_same_steps_as(&run("/var/tmp/b", "00000abc", "")));
        assert!(!one.has_same_steps_as(&run("/tmp/a", "0001f0e2", " -DSITE=7")));
    }

    #[test]
    fn the_device_pipeline_is_found_by_its_files() {
        let dryrun = Dryrun::parse(TEXT);
        assert_eq!(dryrun.variable("CICC_PATH"), Some("/cuda/nvvm/bin"));
        assert_eq!(dryrun.variable("NVCC_APPEND_FLAGS"), None);
        let pipelines = dryrun.pipelines();
        let [pipeline] = pipelines.as_slice() else { panic!("one pipeline, not {}", pipelines.len()) };
        assert_eq!((pipeline.source.as_str(), pipeline.architecture.as_str()), ("a b.cu", "sm_90"));
        assert_eq!(pipeline.preprocess.option("-o"), Some("/tmp/x-7_a.cpp1.ii"));
        assert_eq!(pipeline.module_id.iter().map(DryrunStep::program).collect::<Vec<_>>(), ["gcc", "cudafe++"]);
        assert!(pipeline.has_host_code());
        // As with -cubin.
        let device: String =
            TEXT.lines().filter(|line| !line.contains("cudafe++")).map(|line| format!("{line}\n")).collect();
        let pipelines = Dryrun::parse(&device).pipelines();
        assert!(pipelines.len() == 1 && !pipelines[0].has_host_code());
    }

    #[test]
    fn a_steps_output_is_not_sent_to_files() {
        let step = DryrunStep::new(r#"ptxas "/tmp/a.ptx" -o "/tmp/b" > /tmp/x_1_stdout 2>/tmp/x_1_stderr"#);
        assert_eq!(step.rewritten(&[], &[]), r#"ptxas "/tmp/a.ptx" -o "/tmp/b""#);
    }

    #[test]
    fn backslash_in_double_quotes_is_a_letter_unless_it_escapes() {
        let text = |line| words(line).into_iter().map(|word| word.text).collect::<Vec<_>>();
        assert_eq!(
            text(r#""a\b/k.cu" "a\"b" "a\\b" "\$x" a\ b 'a\b' "a\"#),
            [r"a\b/k.cu", "a\"b", r"a\b", "$x", "a b", r"a\b", r"a\"]
        );
    }

    #[test]
    fn files_are_replaced_and_the_rest_stays_as_it_was() {
        let step = DryrunStep::new(r#"ptxas -arch=sm_90 "$X/y"  "/tmp/in put.ptx" -o '/tmp/out'"#);
        let line = step.rewritten(
            &[("/tmp/in put.ptx", Path::new("/v/it's.ptx")), ("/tmp/out", Path::new("/v/o"))],
            &["--entry".into(), "_Z1k$x".into()],
        );
        assert_eq!(line, r#"ptxas -arch=sm_90 "$X/y"  '/v/it'\''s.ptx' -o '/v/o' '--entry' '_Z1k$x'"#);
    }
}
