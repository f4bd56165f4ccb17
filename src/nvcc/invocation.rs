//! argv and environment -> [`Invocation`]: what a call of nvcc asks for, as far as nvtune must
//! know.
//!
//! The arguments themselves are kept as they came: whatever is handed to the real nvcc is the
//! user's own list.

use super::options;
use super::options::Arity;
use super::source_scan::SearchPaths;
use crate::record::read_regular;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Up to which stage a call compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Device code is compiled to machine code and ends in an output (`-c`, `-dc`, `-cubin`,
    /// `-fatbin`, linking, ...).
    Code,
    /// Device code is compiled, but not to machine code in an object; the option that says so
    /// (`-ptx`, ...).
    Assembly(&'static str),
    /// Nothing is compiled: `-E`, `-M`, `-dlink`, ...
    NoCode,
}

/// A call of nvcc, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The arguments as given, without `argv[0]`.
    pub arguments: Vec<OsString>,
    /// CUDA sources among the inputs, in order.
    pub sources: Vec<PathBuf>,
    /// C and C++ sources among the inputs: they get `-D` and `-include` like the CUDA ones.
    pub host_sources: usize,
    pub phase: Phase,
    /// The extension of the file that each source becomes, where they are not linked.
    pub each: Option<&'static str>,
    /// `-o`, where given.
    pub output: Option<PathBuf>,
    /// `-odir`, where given.
    pub output_directory: Option<PathBuf>,
    /// `-MF`, where given.
    pub(super) dependency_output: Option<PathBuf>,
    /// `-MD` or `-MMD`.
    pub(super) writes_dependencies: bool,
    /// What sources include, and where that is looked for.
    pub search: SearchPaths,
    /// `--dryrun` or `--clean-targets`: nothing is compiled.
    pub dry: bool,
    /// `-G`: device code without optimisation.
    pub device_debug: bool,
    /// Whether the files of the steps stay (`--keep`).
    pub keeps_steps: bool,
    /// Whether nvcc runs the program, times its steps or takes make's tokens (`-run`, `--time`,
    /// `--jobserver`).
    pub does_more: bool,
}

/// A call that cannot be understood; nvcc itself will have the better message.
#[derive(Debug, Error)]
pub enum InvocationError {
    #[error("cannot read option file '{}': {source}", path.display())]
    OptionFile { path: PathBuf, source: std::io::Error },
    #[error("option files are nested more than {0} deep")]
    Nesting(usize),
}

const MAX_NESTING: usize = 16;

/// The options that end a call at a stage, earliest stage first, with what each source becomes:
/// of several that are given, the earliest counts, in whatever order they stand (`--dryrun` of
/// each pair).
const STAGES: [(&str, Phase, Option<&str>); 12] = [
    ("-E", Phase::NoCode, None),
    ("-M", Phase::NoCode, None),
    ("-MM", Phase::NoCode, None),
    ("-optix-ir", Phase::Assembly("-optix-ir"), None),
    ("-ptx", Phase::Assembly("-ptx"), None),
    ("-ltoir", Phase::Assembly("-ltoir"), None),
    ("-cubin", Phase::Code, Some("cubin")),
    ("-fatbin", Phase::Code, Some("fatbin")),
    ("-cuda", Phase::Assembly("-cuda"), None),
    ("-dc", Phase::Code, Some("o")),
    ("-dw", Phase::Code, Some("o")),
    ("-c", Phase::Code, Some("o")),
];

/// File names that nvcc takes for C and C++ sources (CUDA Compiler Driver NVCC, "Supported
/// Input File Suffixes").
const HOST_EXTENSIONS: [&str; 4] = ["c", "cc", "cxx", "cpp"];

impl Invocation {
    /// The same with the flags of an environment.
    ///
    /// # Errors
    /// As [`Invocation::new`].
    pub fn under(
        arguments: &[OsString],
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, InvocationError> {
        let (prepend, append) = (environment("NVCC_PREPEND_FLAGS"), environment("NVCC_APPEND_FLAGS"));
        let mut invocation = Self::new(arguments, prepend.as_deref(), append.as_deref())?;
        // The host compiler looks there after all of -I.
        if let Some(more) = environment("CPATH") {
            let more: Vec<PathBuf> = std::env::split_paths(&more).map(|path| Path::new(".").join(path)).collect();
            invocation.search.quoted.extend_from_slice(&more);
            invocation.search.angled.extend(more);
        }
        Ok(invocation)
    }

    /// Reads the arguments (without `argv[0]`) as nvcc does: the words of `NVCC_PREPEND_FLAGS`
    /// before them, those of `NVCC_APPEND_FLAGS` behind them, option files expanded.
    pub fn new(
        arguments: &[OsString],
        prepend: Option<&OsStr>,
        append: Option<&OsStr>,
    ) -> Result<Self, InvocationError> {
        let mut words = split_words(prepend);
        words.extend_from_slice(arguments);
        words.extend(split_words(append));
        let mut invocation = Self {
            arguments: arguments.to_vec(),
            sources: Vec::new(),
            host_sources: 0,
            phase: Phase::Code,
            each: None,
            output: None,
            output_directory: None,
            dependency_output: None,
            writes_dependencies: false,
            search: SearchPaths::default(),
            dry: false,
            device_debug: false,
            keeps_steps: false,
            does_more: false,
        };
        let mut reader = Reader {
            language_is_cuda: false,
            inputs: Vec::new(),
            own_paths: Vec::new(),
            system_paths: Vec::new(),
            host_options: Vec::new(),
            stage: STAGES.len(),
            compiles: true,
        };
        invocation.read(&words, &mut reader, 0)?;
        reader.read_host_options(&mut invocation.search);
        invocation.search.quoted.extend(reader.own_paths.iter().chain(&reader.system_paths).cloned());
        invocation.search.angled = reader.own_paths;
        if let Some((_, phase, each)) = STAGES.get(reader.stage) {
            (invocation.phase, invocation.each) = (*phase, *each);
        }
        if !reader.compiles {
            invocation.phase = Phase::NoCode;
        }
        for (path, cuda) in reader.inputs {
            if cuda || reader.language_is_cuda || path.extension() == Some(OsStr::new("cu")) {
                invocation.sources.push(path);
            } else if path.extension().and_then(OsStr::to_str).is_some_and(|name| HOST_EXTENSIONS.contains(&name)) {
                invocation.host_sources += 1;
            }
        }
        Ok(invocation)
    }

    fn read(&mut self, words: &[OsString], reader: &mut Reader, depth: usize) -> Result<(), InvocationError> {
        if depth > MAX_NESTING {
            return Err(InvocationError::Nesting(MAX_NESTING));
        }
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            // Option names are ASCII; a word that is not UTF-8 can only be a path or a value.
            let Some((option, glued)) = word.to_str().and_then(options::lookup) else {
                if word.as_bytes().first() != Some(&b'-') || word.len() == 1 {
                    reader.inputs.push((PathBuf::from(word), false));
                }
                continue;
            };
            let value = match (option.arity, glued) {
                (Arity::Flag, _) => OsString::new(),
                (_, Some(value)) => OsString::from(value),
                (_, None) => match rest.next() {
                    Some(value) => value.clone(),
                    None => break,
                },
            };
            self.apply(option.short, &value, reader, depth)?;
        }
        Ok(())
    }

    fn apply(
        &mut self,
        short: &'static str,
        value: &OsStr,
        reader: &mut Reader,
        depth: usize,
    ) -> Result<(), InvocationError> {
        match short {
            "-dlink" | "-code-ls" | "-arch-ls" | "-fdevice-syntax-only" | "-h" | "-V" => reader.compiles = false,
            "-dryrun" | "-clean" => self.dry = true,
            "-G" => self.device_debug = true,
            "-keep" => self.keeps_steps = true,
            "-run" | "-time" | "-jobserver" => self.does_more = true,
            "-o" => self.output = Some(PathBuf::from(value)),
            "-odir" => self.output_directory = Some(PathBuf::from(value)),
            "-MF" => self.dependency_output = Some(PathBuf::from(value)),
            "-MD" | "-MMD" => self.writes_dependencies = true,
            "-I" => reader.own_paths.extend(paths(value)),
            "-include" => self.search.first.extend(paths(value)),
            "-D" => self.search.macros.extend(options::list_values(value).iter().filter_map(|value| definition(value))),
            "-Xcompiler" => reader.host_options.extend(paths(value)),
            "-isystem" => reader.system_paths.extend(paths(value)),
            "-x" => reader.language_is_cuda = value == "cu",
            "-optf" => {
                for path in paths(value) {
                    // A pipe could be read once, and nvcc reads it.
                    let text = read_regular(&path)
                        .map_err(|source| InvocationError::OptionFile { path: path.clone(), source })?;
                    self.read(&split_words(Some(OsStr::from_bytes(&text))), reader, depth + 1)?;
                }
            }
            _ => {
                let stage = STAGES.iter().position(|(option, _, _)| *option == short);
                reader.stage = reader.stage.min(stage.unwrap_or(STAGES.len()));
            }
        }
        Ok(())
    }

    /// The file that a source becomes, where it has one of its own.
    pub fn made_of(&self, source: &Path) -> Option<PathBuf> {
        let extension = self.each?;
        self.output.clone().or_else(|| Some(self.default_output(source.file_stem()?, extension)))
    }

    /// The file that a source becomes, or becomes a part of.
    pub fn product_of(&self, source: &Path) -> PathBuf {
        let whole = || self.output.clone().unwrap_or_else(|| PathBuf::from("a.out"));
        self.made_of(source).unwrap_or_else(whole)
    }

    /// A file in the folder of the object.
    fn default_output(&self, stem: &OsStr, extension: &str) -> PathBuf {
        let mut name = stem.to_owned();
        name.push(format!(".{extension}"));
        self.object_folder().join(name)
    }

    /// Returns the possible paths of dependency files: nvcc names one after the output, or each
    /// after its source.
    pub fn depfiles(&self) -> Vec<PathBuf> {
        if !self.writes_dependencies {
            return Vec::new();
        }
        if let Some(path) = self.dependency_output.clone() {
            return vec![path];
        }
        let of_source = |source: &PathBuf| Some(self.default_output(source.file_stem()?, "d"));
        self.output
            .iter()
            .map(|output| output.with_extension("d"))
            .chain(self.sources.iter().filter_map(of_source))
            .collect()
    }

    /// Returns the folder of the object file, for the header of `source`. nvcc ignores `-odir`
    /// if `-o` is given.
    pub fn object_folder(&self) -> PathBuf {
        let folder = match &self.output {
            Some(output) => output.parent().filter(|parent| !parent.as_os_str().is_empty()),
            None => self.output_directory.as_deref(),
        };
        folder.unwrap_or(Path::new(".")).to_path_buf()
    }
}

struct Reader {
    language_is_cuda: bool,
    inputs: Vec<(PathBuf, bool)>,
    own_paths: Vec<PathBuf>,
    system_paths: Vec<PathBuf>,
    /// What `-Xcompiler` passes on.
    host_options: Vec<PathBuf>,
    /// The place in [`STAGES`] of the earliest stage that an option ends the call at; their
    /// number where none does.
    stage: usize,
    /// Whether no option keeps the call from compiling for an output.
    compiles: bool,
}

impl Reader {
    /// Takes the host compiler's options for what is included.
    fn read_host_options(&mut self, search: &mut SearchPaths) {
        let mut words = std::mem::take(&mut self.host_options).into_iter();
        while let Some(word) = words.next() {
            let bytes = word.as_os_str().as_bytes();
            let value =
                |option: &str, next: &mut dyn Iterator<Item = PathBuf>| match bytes.strip_prefix(option.as_bytes()) {
                    Some([]) => next.next(),
                    Some(glued) => Some(PathBuf::from(OsStr::from_bytes(glued))),
                    None => None,
                };
            if let Some(path) = value("-iquote", &mut words) {
                search.quoted.push(path);
            } else if let Some(path) = value("-isystem", &mut words) {
                self.system_paths.push(path);
            } else if let Some(path) = value("-include", &mut words) {
                search.first.push(path);
            } else if let Some(path) = value("-I", &mut words) {
                self.own_paths.push(path);
            } else if let Some(macro_value) = value("-D", &mut words) {
                search.macros.extend(definition(macro_value.as_os_str()));
            }
        }
    }
}

/// A macro with its value, without the backslashes that a shell is to remove.
fn definition(definition: &OsStr) -> Option<(String, String)> {
    let whole = definition.to_str()?;
    let (name, value) = whole.split_once('=').unwrap_or((whole, "1"));
    Some((name.to_owned(), value.replace('\\', "")))
}

/// The paths of a list, without the double quotes that keep the commas of one together.
fn paths(list: &OsStr) -> impl Iterator<Item = PathBuf> {
    let unquoted = |value: OsString| value.into_vec().into_iter().filter(|&byte| byte != b'"').collect();
    options::list_values(list).into_iter().map(move |value| PathBuf::from(OsString::from_vec(unquoted(value))))
}

/// Splits option text as nvcc does: at white space, with single and double quotes and
/// backslashes as in a shell.
fn split_words(text: Option<&OsStr>) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.map(OsStr::as_bytes).unwrap_or_default().iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\'' | b'"', None) => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (_, Some(open)) if byte == open => quote = None,
            (b'\\', open) if open != Some(b'\'') => word.get_or_insert_default().extend(bytes.next()),
            (byte, None) if byte.is_ascii_whitespace() => words.extend(word.take()),
            (byte, _) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words.into_iter().map(OsString::from_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Invocation {
        Invocation::new(&split_words(Some(OsStr::new(line))), None, None).expect("no option files are named")
    }

    #[test]
    fn sources_are_cuda_inputs_only() {
        let cases: [(&str, &[&str]); 7] = [
            ("-c a.cu -o a.o", &["a.cu"]),
            ("-c a.cu b.cu c.cpp d.o", &["a.cu", "b.cu"]),
            ("-x cu -c a.cpp", &["a.cpp"]),
            ("-Xcompiler a.cu -c b.cpp", &[]),
            ("-MD -MT x.cu -MF y.cu -x cu -rdc=true -c s.cu -o o", &["s.cu"]),
            ("-x cu -c -", &["-"]),
            ("--version", &[]),
        ];
        for (line, sources) in cases {
            assert_eq!(read(line).sources, sources.iter().map(PathBuf::from).collect::<Vec<_>>(), "{line}");
        }
    }

    #[test]
    fn host_sources_are_counted() {
        for (line, count) in [("-c a.cu", 0), ("a.cu b.cpp c.c d.o -lx.cc", 2), ("-x cu a.cpp", 0)] {
            assert_eq!(read(line).host_sources, count, "{line}");
        }
    }

    #[test]
    fn the_phase_tells_whether_machine_code_is_made() {
        for line in ["-c a.cu", "a.cu", "-dc a.cu", "-cubin a.cu", "-fatbin a.cu", "-run a.cu"] {
            assert_eq!(read(line).phase, Phase::Code, "{line}");
        }
        for line in ["-E a.cu", "-M a.cu", "-dlink a.o", "-E -ptx a.cu", "-ptx -M a.cu", "-c a.cu --version"] {
            assert_eq!(read(line).phase, Phase::NoCode, "{line}");
        }
    }

    #[test]
    fn of_several_stages_the_earliest_counts_in_any_order() {
        let assembly = |option| (Phase::Assembly(option), None);
        let code = |extension| (Phase::Code, Some(extension));
        for (one, other, expected) in [
            ("-ptx", "-c", assembly("-ptx")),
            ("-ptx", "-cubin", assembly("-ptx")),
            ("-ptx", "-cuda", assembly("-ptx")),
            ("-optix-ir", "-ptx", assembly("-optix-ir")),
            ("-cuda", "-c", assembly("-cuda")),
            ("-cubin", "-c", code("cubin")),
            ("-cubin", "-dc", code("cubin")),
            ("-cubin", "-fatbin", code("cubin")),
            ("-cubin", "-cuda", code("cubin")),
            ("-fatbin", "-c", code("fatbin")),
            ("-fatbin", "-cuda", code("fatbin")),
            ("-dc", "-c", code("o")),
            ("-lib", "-c", code("o")),
            ("-run", "-cubin", code("cubin")),
        ] {
            for line in [format!("{one} {other} a.cu"), format!("{other} {one} a.cu")] {
                let found = read(&line);
                assert_eq!((found.phase, found.each), expected, "{line}");
            }
        }
    }

    #[test]
    fn option_files_and_environment_flags_count() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let inner = folder.path().join("inner.rsp");
        let outer = folder.path().join("outer.rsp");
        std::fs::write(&inner, "-I \"a b\" -G").expect("written");
        std::fs::write(&outer, format!("-optf {}", inner.display())).expect("written");
        let arguments = [OsString::from("--options-file"), outer.into_os_string(), "-c".into(), "a.cu".into()];
        let before = OsStr::new("-isystem sys,tem -I pre");
        let invocation =
            Invocation::new(&arguments, Some(before), Some(OsStr::new("-o 'x y.o'"))).expect("both files can be read");
        assert_eq!(invocation.search.quoted, ["pre", "a b", "sys", "tem"].map(PathBuf::from), "-I comes first");
        assert_eq!(invocation.search.angled, ["pre", "a b"].map(PathBuf::from));
        assert!(invocation.device_debug);
        assert_eq!(invocation.output, Some(PathBuf::from("x y.o")));
        assert_eq!(invocation.arguments, arguments);
    }

    #[test]
    fn include_options_of_the_host_compiler_count() {
        let line = r#"-Xcompiler -iquote,q -Xcompiler -iquote -Xcompiler r -Xcompiler -Ii,-DD=k -include a.h,b.h -DA='\"x.h\"' -DB=<y.h>,C=1,E -c a.cu"#;
        let SearchPaths { quoted, angled, first, macros } = read(line).search;
        assert_eq!((quoted, angled), (["q", "r", "i"].map(PathBuf::from).to_vec(), vec![PathBuf::from("i")]));
        assert_eq!(first, ["a.h", "b.h"].map(PathBuf::from));
        assert_eq!(
            macros,
            [("A", "\"x.h\""), ("B", "<y.h>"), ("C", "1"), ("E", "1"), ("D", "k")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn a_source_has_a_file_of_its_own_where_nothing_is_linked() {
        for (line, made) in [
            ("-c src/a.x.cu -o build/b.o", Some("build/b.o")),
            ("-c src/a.x.cu b.cu", Some("./a.x.o")),
            ("-dc src/a.x.cu b.cu -odir out", Some("out/a.x.o")),
            ("-cubin src/a.x.cu", Some("./a.x.cubin")),
            ("-fatbin src/a.x.cu", Some("./a.x.fatbin")),
            ("src/a.x.cu b.cu -o program", None),
        ] {
            assert_eq!(read(line).made_of(Path::new("src/a.x.cu")), made.map(PathBuf::from), "{line}");
        }
    }

    #[test]
    fn dependency_files_are_found_in_each_form_of_call() {
        for (line, depfiles) in [
            ("-c a.cu -o b/a.o", &[][..]),
            ("-MD -c a.cu -o b/a.o -MF deps/a", &["deps/a"]),
            ("-MF deps/a -MMD -c a.cu", &["deps/a"]),
            ("-MD -c a.cu -o b/x.y.o", &["b/x.y.d", "b/a.d"]),
            ("-MD -c a.x.cu b.cu -odir out", &["out/a.x.d", "out/b.d"]),
            ("-MD a.cu -o program", &["program.d", "./a.d"]),
        ] {
            assert_eq!(read(line).depfiles(), depfiles.iter().map(PathBuf::from).collect::<Vec<_>>(), "{line}");
        }
    }

    #[test]
    fn the_header_goes_next_to_the_object() {
        for (line, folder) in [
            ("-c a.cu -o build/a.o", "build"),
            ("-c src/a.cu", "."),
            ("-c a.cu -odir out", "out"),
            ("-c a.cu -odir nowhere -o a.o", "."),
        ] {
            assert_eq!(read(line).object_folder(), PathBuf::from(folder), "{line}");
        }
    }
}
