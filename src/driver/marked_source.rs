//! A source of a call that carries tuning comments -> its annotations, and the compiler's steps
//! for it.

use crate::comment;
use crate::comment::Annotation;
use crate::cuda::{
    CompiledFile, HostCode, HostProgram, JoinedNames, Side, compiled_files, compiled_text, left_out, may_be_used,
};
use crate::diag::{Diagnostic, MessageCode, Source, Span};
use crate::emit;
use crate::emit::Header;
use crate::gpu::architecture_number;
use crate::nvcc::Toolchain;
use crate::nvcc::{
    Dryrun, Invocation, Loads, MarkedFile, Phase, Pipeline, ScannedFiles, SearchPaths, included_files, marked_files,
    quoted_files,
};
use crate::settings::KernelSelection;
use crate::tune;
use crate::tune::Surroundings;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A source of the call that is marked, itself or in what it includes.
pub struct MarkedSource {
    pub path: PathBuf,
    /// The source's name without folder and extension.
    pub stem: String,
    pub files: Vec<MarkedFile>,
    pub includes_header: bool,
    /// What the source and its files include the header by.
    header_includes: BTreeSet<String>,
    /// Kernels that are marked by no comment of their own: file, and line.
    selected: BTreeSet<(PathBuf, u32)>,
    /// Files that ask for its header by a misspelled name, with that name.
    missing_headers: Vec<(MarkedFile, String)>,
    /// Where includes are looked for.
    search: SearchPaths,
    /// What of which file is compiled for the host, by paths without links; `None` where it is
    /// not known.
    compiled: Option<BTreeMap<PathBuf, CompiledFile>>,
}

/// What a call compiles.
#[derive(Default)]
pub struct MarkedSources {
    pub marked: Vec<MarkedSource>,
    /// Files that are not marked, but may have been meant to be.
    pub nearly: Vec<MarkedFile>,
    /// Warnings of kernels that `NVTUNE_KERNELS` selects and that need a comment of their own.
    pub unmarked: Vec<Diagnostic>,
}

impl MarkedSource {
    /// The marked sources of a call; none where it makes no machine code.
    pub fn of(invocation: &Invocation) -> Vec<Self> {
        // A selection that cannot be read is an error of the build.
        let selection = KernelSelection::new(|name| std::env::var_os(name)).unwrap_or_default();
        Self::find(invocation, &selection).marked
    }

    /// The same, and what may have been meant to be marked.
    pub fn find(invocation: &Invocation, selection: &KernelSelection) -> MarkedSources {
        let mut sources = MarkedSources::default();
        if invocation.phase == Phase::NoCode || invocation.dry {
            return sources;
        }
        for path in &invocation.sources {
            let Some(stem) = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()) else { continue };
            let found = marked_files(path, &invocation.search, &Header::file_name(&stem), selection);
            let ScannedFiles { marked: files, selected, unmarked, nearly, header_includes, missing_headers } = found;
            sources.nearly.extend(nearly);
            sources.unmarked.extend(unmarked);
            if !files.is_empty() {
                let search = invocation.search.clone();
                let (path, includes_header) = (path.clone(), !header_includes.is_empty());
                let compiled = None;
                sources.marked.push(Self {
                    path,
                    stem,
                    files,
                    includes_header,
                    header_includes,
                    selected,
                    missing_headers,
                    search,
                    compiled,
                });
            }
        }
        sources.nearly.sort_by(|a, b| a.path.cmp(&b.path));
        sources.nearly.dedup();
        sources
    }

    /// Whether a kernel is marked by `NVTUNE_KERNELS`, and has no comment of its own.
    pub fn is_selected(&self, annotation: &Annotation) -> bool {
        self.selected.contains(&(PathBuf::from(&annotation.source.path), annotation.kernel.line))
    }

    /// The source as nvcc names it.
    pub fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    pub fn is_named(&self, name: &str) -> bool {
        self.path.to_string_lossy() == name
    }

    /// The name without the folder.
    pub fn file_name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Reads the tuning comments of every marked file, and the files of data that they name
    /// below the source's own folder or `data`. What is wrong with a file's comments comes
    /// next to the annotations of the others.
    pub fn annotations(&self, data: Option<&Path>) -> (Vec<Annotation>, Vec<Diagnostic>) {
        let (mut annotations, mut problems) = (Vec::new(), Vec::new());
        let source = |file: &MarkedFile| Source::new(file.path.to_string_lossy(), &file.text);
        let around = || -> Vec<Source> { self.around().map(|file| source(&file)).collect() };
        for file in &self.files {
            match comment::annotations_among(&source(file), &around) {
                Ok(found) => annotations.extend(found),
                Err(diagnostics) => problems.extend(diagnostics),
            }
        }
        let is_open = |annotation: &Annotation| annotation.clauses.default.block.is_none();
        if annotations.iter().any(is_open) {
            let host = HostCode::new(around().into_iter().map(Arc::new));
            annotations.iter_mut().filter(|annotation| is_open(annotation)).for_each(|annotation| {
                tune::infer_default_block(annotation, &host);
            });
        }
        tune::load_files(&mut annotations, data);
        (annotations, problems)
    }

    /// Empties the lines that are compiled for no architecture, so that no comment is read
    /// there; tells whether there are such. Where the source cannot be preprocessed, all
    /// counts.
    pub fn leave_out_uncompiled(&mut self, dryrun: &Dryrun) -> bool {
        let mut compiled: BTreeMap<PathBuf, BTreeSet<u32>> = BTreeMap::new();
        for pipeline in self.pipelines(dryrun) {
            let toolchain = self.toolchain_of(dryrun, &[], pipeline, None);
            let Some(text) = toolchain.ok().and_then(|toolchain| toolchain.device_source().ok()) else { return false };
            for (path, mut file) in by_whole_paths(compiled_files(&text)) {
                compiled.entry(path).or_default().append(&mut file.lines);
            }
        }
        // Without markers it is not known which lines are of which file.
        if self.path.canonicalize().map_or(true, |path| !compiled.contains_key(&path)) {
            return false;
        }
        let none = BTreeSet::new();
        let mut leaves_out = false;
        for file in &mut self.files {
            let lines = file.path.canonicalize().ok().and_then(|path| compiled.get(&path)).unwrap_or(&none);
            let text = String::from_utf8_lossy(&file.text);
            let left_out = left_out(&text, lines, Side::Device);
            let is_left =
                |line: usize| lines.is_empty() || left_out.contains(&u32::try_from(line + 1).unwrap_or(u32::MAX));
            let kept = text.split('\n').enumerate().map(|(line, text)| if is_left(line) { "" } else { text });
            let kept = kept.collect::<Vec<_>>().join("\n");
            leaves_out |= kept != text;
            file.text = kept.into_bytes();
        }
        leaves_out
    }

    /// Leaves out the templates of included files that the source surely makes no instance of:
    /// only the kernel and unused templates have its name, and no macro may put it together. A library's header is in many sources, few of which use a kernel.
    pub fn leave_out_unused(&self, annotations: &mut Vec<Annotation>) {
        let own = self.name();
        let is_candidate = |of: &Annotation| of.kernel.template.is_some() && of.source.path != own;
        if self.includes_header || !annotations.iter().any(is_candidate) {
            return;
        }
        let options: Vec<&str> = self.search.macros.iter().map(|(_, value)| value.as_str()).collect();
        // What an option joins is not looked into.
        if options.iter().any(|value| value.contains("##")) {
            return;
        }
        let files = included_files(&[&self.path], &self.search);
        let texts = files.iter().map(|file| file.text.as_slice());
        let texts = texts.chain(options.iter().map(|value| value.as_bytes()));
        let uses = |name: &str| texts.clone().map(|text| count_word(text, name)).sum::<usize>();
        let lossy: Vec<Cow<'_, str>> = texts.clone().map(String::from_utf8_lossy).collect();
        let lossy: Vec<&str> = lossy.iter().map(Cow::as_ref).collect();
        let joined = JoinedNames::new(&lossy, &options);
        let is_named = |name: &str| uses(name) > 1 || joined.may_make(name);
        let is_used = |name: &str| is_named(name) && may_be_used(name, &lossy, &joined);
        annotations.retain(|of| !is_candidate(of) || is_used(&of.kernel.name));
    }

    /// The source, its marked files, and what they include with quotes. What nvtune writes
    /// itself is no word of theirs.
    pub fn around(&self) -> impl Iterator<Item = MarkedFile> {
        let marked = self.files.iter().map(|file| file.path.as_path());
        // The last is visited first.
        let files = quoted_files(marked.chain([self.path.as_path()]), &self.search);
        files.into_iter().filter(|file| !self.is_own_header(&file.path))
    }

    /// The same as a program, for what its text says of types.
    pub fn host_program(&self) -> HostProgram {
        let text = |file: MarkedFile| (file.path.to_string_lossy().into(), String::from_utf8_lossy(&file.text).into());
        let folders: Vec<String> =
            self.search.quoted.iter().map(|folder| folder.to_string_lossy().into_owned()).collect();
        HostProgram::new(&self.around().map(text).collect::<Vec<_>>(), &folders, &self.search.macros)
    }

    /// Whether a file is called as the header that comes of the source.
    pub fn is_own_header(&self, path: &Path) -> bool {
        path.file_name() == Some(OsStr::new(&Header::file_name(&self.stem)))
    }

    /// Warns of each `__has_include` that misspells the header: the code behind it is left out
    /// without a word.
    pub fn misspelled_headers(&self) -> Vec<Diagnostic> {
        let header = Header::file_name(&self.stem);
        let warning = |(file, name): &(MarkedFile, String)| {
            let source = Source::new(file.path.to_string_lossy(), &file.text);
            let mut queries = source.text.match_indices("__has_include");
            let start = queries.find_map(|(at, _)| {
                let line = source.text[at..].lines().next()?;
                Some(at + line.find(name.as_str())?)
            });
            let start = start.unwrap_or(0);
            let own = self.file_name();
            let message = format!("this is never true: the header of '{own}' is '{header}'; write that name");
            source.warning(MessageCode::HeaderMisspelled, Span { start, end: start + name.len() }, message)
        };
        self.missing_headers.iter().map(warning).collect()
    }

    /// A warning for each kernel whose macros in the header, where it is included, would be
    /// called as those of another one of its file.
    pub fn without_macros(&self, annotations: &[Annotation]) -> Vec<Diagnostic> {
        if !self.includes_header {
            return Vec::new();
        }
        let names: Vec<&str> = annotations.iter().map(|annotation| annotation.name.as_str()).collect();
        let without = emit::without_macros(&names);
        let warning = |annotation: &Annotation| {
            let name = &annotation.name;
            let remedy = "add name(...) to one";
            let message =
                format!("no macros in the header for `{name}`: another kernel's have the same names; {remedy}");
            annotation.source.warning(MessageCode::HeaderMacrosMissing, annotation.name_span, message)
        };
        annotations.iter().filter(|annotation| without.contains(annotation.name.as_str())).map(warning).collect()
    }

    /// Has the source preprocessed for the host: what `#if` leaves out launches nothing, and a
    /// header that it leaves out is not included. Where that fails, all counts; the
    /// compiler will say why.
    pub fn preprocess(&mut self, dryrun: &Dryrun, annotations: &[Annotation]) {
        let Some(pipeline) = self.pipelines(dryrun).into_iter().find(Pipeline::has_host_code) else { return };
        let Ok(toolchain) = Toolchain::new(dryrun, pipeline) else { return };
        let text = self.baseline_header(annotations, toolchain.architecture());
        let Ok(Some(preprocessed)) = toolchain.host_source(&self.header_places(), &text) else { return };
        let files = compiled_files(&preprocessed);
        self.includes_header &= files.keys().any(|path| self.is_own_header(Path::new(path)));
        self.compiled = Some(by_whole_paths(files));
    }

    /// Reads the code around the kernels, for advice.
    pub fn surroundings(&self, dryrun: &Dryrun) -> Surroundings {
        let pipelines = self.pipelines(dryrun);
        let has_stubs = pipelines.iter().any(Pipeline::has_host_code);
        let is_relocatable = pipelines.iter().any(Pipeline::is_relocatable);
        // What is not compiled launches nothing.
        let files = has_stubs.then(|| self.around()).into_iter().flatten();
        let sources = files.map(|file| {
            let text = String::from_utf8_lossy(&file.text);
            let compiled = self.compiled.as_ref().and_then(|files| files.get(&file.path.canonicalize().ok()?));
            let text = compiled.map_or_else(|| text.to_string(), |compiled| compiled_text(&text, &compiled.lines));
            Arc::new(Source::new(file.path.to_string_lossy(), text.as_bytes()))
        });
        Surroundings { includes_header: self.includes_header, has_stubs, is_relocatable, host: HostCode::new(sources) }
    }

    /// Where the header must be below a folder of the include path: by its own name first, and
    /// by all that it is included by.
    pub fn header_places(&self) -> Vec<PathBuf> {
        let name = PathBuf::from(Header::file_name(&self.stem));
        let is_below = |path: &PathBuf| path.components().all(|part| matches!(part, Component::Normal(_)));
        let others = self.header_includes.iter().map(PathBuf::from).filter(|path| *path != name && is_below(path));
        std::iter::once(name.clone()).chain(others).collect()
    }

    /// The text of the header that has the baselines; of alternatives the first one's.
    fn baseline_header(&self, annotations: &[Annotation], architecture: &str) -> String {
        let mut names = BTreeSet::new();
        let mut kernels = tune::baseline_headers(annotations, architecture);
        kernels.retain(|kernel| names.insert(kernel.name.clone()));
        Header { source: self.file_name(), kernels }.text()
    }

    /// The newest architecture that it is compiled for; empty where no machine code is made.
    pub fn newest_architecture(&self, dryrun: &Dryrun) -> String {
        let architectures = self.pipelines(dryrun).into_iter().map(|pipeline| pipeline.architecture);
        architectures.max_by_key(|name| architecture_number(name)).unwrap_or_default()
    }

    /// Whether it is compiled for several architectures.
    pub fn is_fat(&self, dryrun: &Dryrun) -> bool {
        self.pipelines(dryrun).len() > 1
    }

    /// None of a link-time-optimised compile, whose machine code is made later.
    fn pipelines(&self, dryrun: &Dryrun) -> Vec<Pipeline> {
        let source = self.path.to_string_lossy();
        dryrun.pipelines().into_iter().filter(|pipeline| pipeline.source == source).collect()
    }

    /// The compiler's steps for the source on `device`'s architecture, with the baselines'
    /// header in its place; `Err` is why it cannot be tuned.
    pub fn toolchain(
        &self,
        dryrun: &Dryrun,
        annotations: &[Annotation],
        device: Option<u32>,
    ) -> Result<Toolchain, String> {
        let source = self.path.to_string_lossy();
        let pipeline = dryrun.loaded(&source, device).ok_or_else(|| {
            "this call makes no machine code of it (-dlto, or only virtual architectures): build with -arch=sm_90"
                .to_owned()
        })?;
        let loads = dryrun.loads(&source, &pipeline);
        self.toolchain_of(dryrun, annotations, pipeline, Some(loads))
    }

    /// The same for each other architecture that nvcc makes machine code for, one for each
    /// compute capability.
    pub fn other_toolchains(
        &self,
        dryrun: &Dryrun,
        annotations: &[Annotation],
        chosen: &Toolchain,
    ) -> Vec<Result<Toolchain, String>> {
        let mut seen = vec![architecture_number(chosen.architecture())];
        let mut others = Vec::new();
        for pipeline in self.pipelines(dryrun) {
            let capability = architecture_number(&pipeline.architecture);
            if !seen.contains(&capability) {
                seen.push(capability);
                others.push(self.toolchain_of(dryrun, annotations, pipeline, None));
            }
        }
        others
    }

    fn toolchain_of(
        &self,
        dryrun: &Dryrun,
        annotations: &[Annotation],
        pipeline: Pipeline,
        loads: Option<Loads>,
    ) -> Result<Toolchain, String> {
        let mut toolchain = Toolchain::new(dryrun, pipeline).map_err(|error| error.to_string())?;
        toolchain.loads = loads;
        if self.includes_header {
            let text = self.baseline_header(annotations, toolchain.architecture());
            toolchain.provide_header(&self.header_places(), &text).map_err(|error| error.to_string())?;
        }
        Ok(toolchain)
    }
}

/// Tells of a kernel whether it is compiled for the device, and is asked besides whether `#if`
/// decides that: true also where that is not certain. Of what `#if` decides it tells nothing
/// where the preprocessed source does not say which lines it is of. `None` if the source cannot
/// be preprocessed.
pub fn compiled_kernels(toolchain: &Toolchain) -> Option<impl Fn(&Annotation, bool) -> Option<bool>> {
    let files = by_whole_paths(compiled_files(&toolchain.device_source().ok()?));
    let whole = |path: &str| Path::new(path).canonicalize().ok();
    let says_lines = whole(toolchain.source()).is_some_and(|source| files.contains_key(&source));
    let known: RefCell<BTreeMap<String, BTreeSet<u32>>> = RefCell::default();
    Some(move |annotation: &Annotation, is_conditional: bool| {
        if !says_lines {
            return (!is_conditional).then_some(true);
        }
        let Source { path, text } = &*annotation.source;
        let Some(file) = whole(path).and_then(|path| files.get(&path)) else { return Some(false) };
        let is_left_out = || {
            let mut known = known.borrow_mut();
            let lines = known.entry(path.clone()).or_insert_with(|| left_out(text, &file.lines, Side::Device));
            lines.contains(&annotation.kernel.line)
        };
        Some(!(is_conditional && is_left_out()))
    })
}

/// The files by their paths without links.
fn by_whole_paths(files: BTreeMap<String, CompiledFile>) -> BTreeMap<PathBuf, CompiledFile> {
    let whole = |path: &str| Path::new(path).canonicalize().ok();
    files.into_iter().filter_map(|(path, file)| Some((whole(&path)?, file))).collect()
}

/// How often an identifier stands in a text. The name of an included file is none.
fn count_word(text: &[u8], word: &str) -> usize {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let is_whole = |&at: &usize| {
        !is_part(at.checked_sub(1).and_then(|before| text.get(before))) && !is_part(text.get(at + word.len()))
    };
    let is_file_name = |at: usize| {
        let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
        let directive = text[start..at].trim_ascii_start().strip_prefix(b"#").map(<[u8]>::trim_ascii_start);
        directive.is_some_and(|rest| rest.starts_with(b"include") || rest.starts_with(b"import"))
    };
    let places = memchr::memmem::find_iter(text, word.as_bytes()).filter(is_whole);
    places.filter(|&at| !is_file_name(at)).count()
}

/// Whether a source of a call includes a header that nvtune made, its own or that of another
/// source.
pub fn reads_header(invocation: &Invocation) -> bool {
    let files = invocation.sources.iter().flat_map(|source| quoted_files([source.as_path()], &invocation.search));
    files.into_iter().any(|file| Header::is_header(&file.text))
}

/// Whether a call of nvcc with these arguments in the current folder compiles a marked kernel.
pub fn is_marked(arguments: &[OsString]) -> bool {
    let selection = KernelSelection::new(|name| std::env::var_os(name)).unwrap_or_default();
    read(arguments).is_some_and(|invocation| !MarkedSource::find(&invocation, &selection).marked.is_empty())
}

/// The names of the kernels that a source of a call has, `None` where its comments cannot be
/// read. Those of instances that are recorded are not among them.
pub fn kernel_names(folder: &Path, arguments: &[String], source: &str) -> Option<Vec<String>> {
    let arguments: Vec<OsString> = arguments.iter().map(|word| word.into()).collect();
    let mut invocation = read(&arguments)?;
    invocation.sources.retain(|path| path.as_os_str() == source);
    invocation.sources.iter_mut().for_each(|path| *path = folder.join(&*path));
    invocation.search.seen_from(folder);
    let mut names = Vec::new();
    for marked in MarkedSource::of(&invocation) {
        let (annotations, problems) = marked.annotations(None);
        if !problems.is_empty() {
            return None;
        }
        // Which of all kernels are tuned depends on recordings.
        let selection = KernelSelection::new(|name| std::env::var_os(name)).unwrap_or_default();
        let is_named = |annotation: &Annotation| {
            !(annotation.is_for_all_instances() || selection.is_all() && marked.is_selected(annotation))
        };
        names.extend(annotations.into_iter().filter(is_named).map(|annotation| annotation.name));
    }
    Some(names)
}

/// A call of nvcc with the flags of the environment; `None` where it cannot be understood.
pub fn read(arguments: &[OsString]) -> Option<Invocation> {
    Invocation::under(arguments, |name| std::env::var_os(name)).ok()
}

#[cfg(test)]
mod tests {
    use super::MarkedSource;
    use crate::comment::TemplateArgument;
    use crate::nvcc::Invocation;

    #[test]
    fn constants_of_included_files_count_but_for_the_header_that_comes_of_the_call() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write("sizes.h", "constexpr int OWN = 8;\n");
        write("a.tune.h", "#define MADE 8\n");
        write(
            "a.cu",
            "#include \"a.tune.h\"\n#include \"sizes.h\"\n//@tune template(OWN) template(MADE) threads(n * N) block(64)\n\
             template <int N> __global__ void k(int n) {}\n",
        );
        let arguments = ["-c".into(), folder.path().join("a.cu").into()];
        let invocation = Invocation::new(&arguments, None, None).expect("a call");
        let marked = MarkedSource::of(&invocation).pop().expect("a marked source");
        let (annotations, problems) = marked.annotations(None);
        assert!(problems.is_empty(), "{problems:?}");
        let arguments: Vec<_> =
            annotations.iter().flat_map(|found| &found.instance).flat_map(|instance| &instance.arguments).collect();
        let constant = TemplateArgument::Constant { text: "OWN".to_owned(), value: 8 };
        assert_eq!(arguments, [&constant, &TemplateArgument::Text("MADE".to_owned())]);
    }
}
