//! Rewrites the stub file that cicc makes: inserts before a kernel's launch the dispatch to
//! winners, and registers their entries; or inserts the code that records launches.

use super::capture::{Capture, StubArgument};
use super::dispatch::{Dispatch, entry_key};
use super::insertion::{Insertion, with_insertions};
use super::launch_by_address::LaunchesByAddress;
use super::{capture, dispatch};
use crate::cuda::brackets::{split_at_commas, text_in_parentheses, text_inside};
use crate::cuda::tokens::is_word;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The change to one kernel's launch stub of one source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StubText {
    /// The source as nvcc names it.
    pub source: String,
    /// The mangled name, which follows `__device_stub_` in the stub's name.
    pub stub: String,
    /// The kernel's name in the PTX: not the mangled one if it is `extern "C"`.
    pub symbol: String,
    pub change: StubChange,
}

/// What a launch stub does before nvcc's own launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StubChange {
    /// It runs winners.
    Dispatch(Dispatch),
    /// It records launches.
    Capture(Capture),
}

/// A stub file with its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewrittenStubs {
    pub text: String,
    /// For each stub, in the order given: why it was left as cicc wrote it, or `None` if it was
    /// rewritten.
    pub problems: Vec<Option<String>>,
}

/// The line of a stub file that includes the macros and functions of launch stubs.
const LAUNCH_HEADER: &str = "#include \"crt/host_runtime.h\"\n";

/// Returns the stub file with these changes. A stub with a problem stays as it is. Of host code
/// that launches kernels `by_address`, too, each changed stub is one that these launches find.
pub fn rewrite_stubs(file: &str, stubs: &[&StubText], by_address: Option<&LaunchesByAddress>) -> RewrittenStubs {
    let mut insertions: Vec<Insertion> = Vec::new();
    let (mut keys, mut dispatches, mut captured) = (0, Vec::new(), None);
    let (mut problems, mut listed) = (Vec::new(), Vec::new());
    for stub in stubs {
        let made = launch_call(file, stub).and_then(|call| {
            let places = match &stub.change {
                StubChange::Dispatch(dispatch) => dispatch_insertions(file, stub, &call, dispatch, keys)?,
                StubChange::Capture(capture) => vec![capture_insertion(file, &call, capture, by_address)?],
            };
            Ok((call, places))
        });
        problems.push(match made {
            Ok((call, places)) => {
                if !places.is_empty() {
                    listed.push((function_name(stub), call.kernel));
                }
                insertions.extend(places);
                match &stub.change {
                    StubChange::Dispatch(dispatch) => {
                        keys += dispatch.entries().len();
                        dispatches.push(dispatch);
                    }
                    StubChange::Capture(capture) => captured = Some(capture),
                }
                None
            }
            Err(problem) => Some(problem),
        });
    }
    if keys == 0 && captured.is_none() {
        return RewrittenStubs { text: file.to_owned(), problems };
    }
    // After the header that declares the functions of launches.
    let head = file.find(LAUNCH_HEADER).map_or(0, |place| place + LAUNCH_HEADER.len());
    if keys > 0 {
        let words = dispatch::key_words(&dispatches);
        let keys: String = (0..keys).map(|number| format!("static int {}[{words}];\n", entry_key(number))).collect();
        insertions.push((head, dispatch::runtime(&dispatches) + &keys));
    }
    // Where the names of the module's kernels and variables are known.
    let end = registration_function(file).unwrap_or(file.len());
    if let Some(capture) = captured {
        insertions.push((head, capture.head()));
        insertions.push((end, capture::variables_text(&variables(file))));
    }
    if let Some(by_address) = by_address {
        insertions.insert(0, (0, by_address.names()));
        insertions.insert(0, (head, by_address.runtime()));
        insertions.push((end, by_address.functions(&listed)));
    }
    let text = String::from_utf8_lossy(&with_insertions(file.as_bytes(), insertions)).into_owned();
    RewrittenStubs { text, problems }
}

/// Returns the offset of the function that registers the module's kernels and variables.
fn registration_function(file: &str) -> Option<usize> {
    let mut functions = calls(file, "__nv_cudaEntityRegisterCallback").into_iter();
    let (definition, _) = functions.find(|(range, _)| file[range.end..].trim_start().starts_with('{'))?;
    file[..definition.start].rfind("static")
}

/// The call by which a stub launches its kernel.
struct LaunchCall<'t> {
    /// The range of the stub's body.
    body: Range<usize>,
    /// The offset of the call.
    place: usize,
    /// The kernel's host address.
    kernel: &'t str,
    is_of_tiles: bool,
}

/// Finds the launch in a kernel's stub, or returns why the file is not understood.
fn launch_call<'t>(file: &'t str, stub: &StubText) -> Result<LaunchCall<'t>, String> {
    let body = exactly_one(bodies(file, &function_name(stub)), "the definition of its launch stub")?;
    let (launch, arguments) =
        exactly_one(calls(&file[body.clone()], "__cudaLaunch"), "`__cudaLaunch` in its launch stub")?;
    let kernel = arguments.first().ok_or("`__cudaLaunch` of its launch stub has no argument")?;
    let is_of_tiles = arguments.get(1).is_some_and(|is_tile| *is_tile != "0U");
    Ok(LaunchCall { place: body.start + launch.start, body, kernel, is_of_tiles })
}

/// Returns the insertions for a stub that dispatches, or why the file is not understood. Its
/// entries are numbered from `first_key` on.
fn dispatch_insertions(
    file: &str,
    stub: &StubText,
    call: &LaunchCall<'_>,
    dispatch: &Dispatch,
    first_key: usize,
) -> Result<Vec<Insertion>, String> {
    let entries = dispatch.entries();
    if let Some(entry) = entries.iter().find(|entry| !is_identifier(entry)) {
        return Err(format!("the entry name `{entry}` is no C identifier"));
    }
    let (registration, handle) =
        exactly_one(registrations(file, &stub.symbol), "the registration of its entry in the stub file")?;
    if call.is_of_tiles {
        return Err("its launch stub is that of a tile kernel".to_owned());
    }
    if dispatch.is_unused() {
        return Ok(Vec::new());
    }
    let text = dispatch.text(call.kernel, first_key);
    let registered: String = entries
        .iter()
        .zip(first_key..)
        .map(|(entry, number)| {
            format!(" __cudaRegisterEntry({handle}, ((char *){}), {entry}, (-1));", entry_key(number))
        })
        .collect();
    Ok(vec![(call.place, text), (registration, registered)])
}

/// Returns the insertion for a stub that records launches, or why the file is not understood.
fn capture_insertion(
    file: &str,
    call: &LaunchCall<'_>,
    capture: &Capture,
    by_address: Option<&LaunchesByAddress>,
) -> Result<Insertion, String> {
    let mut arguments: Vec<(usize, StubArgument<'_>)> = Vec::new();
    for name in ["__cudaSetupArgSimple", "__cudaSetupArg"] {
        for (range, given) in calls(&file[call.body.clone()], name) {
            let expression = given.first().ok_or("an argument of its launch stub has no name")?;
            arguments.push((range.start, StubArgument { expression }));
        }
    }
    arguments.sort_by_key(|(place, _)| *place);
    let arguments: Vec<StubArgument<'_>> = arguments.into_iter().map(|(_, argument)| argument).collect();
    let mut text = capture.text(call.kernel, &arguments);
    if by_address.is_some() {
        text += &format!("if (__nvtune_detail::launch_as_called({}, __args_arr)) return;\n", call.kernel);
    }
    Ok((call.place, text))
}

/// Returns the variables that a stub file registers: symbol, name and bytes, as written.
fn variables(file: &str) -> Vec<[&str; 3]> {
    let registered = calls(file, "__cudaRegisterVariable").into_iter().filter_map(|(_, arguments)| {
        let [_, shadow, _, bytes, _, _] = arguments[..] else { return None };
        let names = split_at_commas(shadow.strip_prefix("__shadow_var").and_then(text_in_parentheses)?);
        let [symbol, name] = names[..] else { return None };
        Some([symbol, name, bytes])
    });
    registered.collect()
}

/// Returns the only item, or what is wrong with the number of `items`.
fn exactly_one<T>(items: impl IntoIterator<Item = T>, what: &str) -> Result<T, String> {
    let mut items = items.into_iter();
    match (items.next(), items.next()) {
        (Some(item), None) => Ok(item),
        (None, _) => Err(format!("cicc did not write {what}")),
        (Some(_), Some(_)) => Err(format!("cicc wrote {what} more than once")),
    }
}

/// The name of the function that is a kernel's launch stub.
fn function_name(stub: &StubText) -> String {
    format!("__device_stub_{}", stub.stub)
}

/// Returns the range of the body, without its braces, of each definition of a function.
fn bodies<'t>(file: &'t str, name: &str) -> impl Iterator<Item = Range<usize>> + 't {
    calls(file, name).into_iter().filter_map(|(range, _)| {
        let rest = file[range.end..].trim_start();
        let start = file.len() - rest.len() + 1;
        // A definition, not a declaration or a call.
        let body = text_inside(rest, "{", "}")?;
        Some(start..start + body.len())
    })
}

/// Returns the offset after each registration of an entry, and the handle that it is registered
/// with.
fn registrations<'t>(file: &'t str, symbol: &'t str) -> impl Iterator<Item = (usize, &'t str)> + 't {
    calls(file, "__cudaRegisterEntry").into_iter().filter_map(move |(range, arguments)| match arguments.as_slice() {
        [handle, _, name, _] if *name == symbol && file[range.end..].starts_with(';') => Some((range.end + 1, *handle)),
        _ => None,
    })
}

/// Returns the range of each `name(...)`, with its arguments.
fn calls<'t>(text: &'t str, name: &str) -> Vec<(Range<usize>, Vec<&'t str>)> {
    let opened = format!("{name}(");
    let call = |(start, _): (usize, &str)| {
        let arguments = text_in_parentheses(&text[start + name.len()..])?;
        let whole = !text[..start].ends_with(is_word);
        whole.then(|| (start..start + opened.len() + arguments.len() + 1, split_at_commas(arguments)))
    };
    text.match_indices(&opened).filter_map(call).collect()
}

/// Returns whether a text is one identifier of C.
fn is_identifier(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::{LaunchText, Winner};
    use expect_test::expect;

    /// By cicc of CUDA 13.0: ordinary, `extern "C"`, template, namespace and anonymous
    /// namespace.
    const STUBS: &str = include_str!("../../tests/stubs/kernels.stub.c");

    fn stub(stub: &str, symbol: &str) -> StubText {
        let change = StubChange::Dispatch(dispatch(symbol));
        StubText { source: "a.cu".into(), stub: stub.into(), symbol: symbol.into(), change }
    }

    fn dispatch(symbol: &str) -> Dispatch {
        let launch =
            |threads| LaunchText { block: [threads, 1, 1], grid: ["1LL"; 3].map(str::to_owned), shared: "0LL".into() };
        let winner = Winner {
            capability: 90,
            entry: format!("{symbol}__nvtune_1"),
            launch: launch(64),
            conditions: Vec::new(),
            carveout: None,
            coarsening: 1,
            is_clustered: false,
        };
        Dispatch { baseline: launch(256), winners: vec![winner], accepts_winner_launches: false, reshapes: true }
    }

    /// Returns the parts of the rewritten file that name an entry, and the launches that they
    /// stand before.
    fn changes(stubs: &[&StubText]) -> String {
        let rewritten = rewrite_stubs(STUBS, stubs, None);
        assert_eq!(rewritten.problems, vec![None; stubs.len()]);
        let runtime = dispatch::runtime(&[]);
        let (head, behind) = rewritten.text.split_once(&runtime).expect("the functions that dispatches call");
        assert!(head.ends_with(LAUNCH_HEADER));
        let lines = behind.lines();
        let parts = lines.flat_map(|line| match line.contains("__cudaRegisterEntry") {
            true => line.split_inclusive("; ").collect(),
            false => vec![line],
        });
        let parts = parts.filter(|part| part.contains("nvtune_key") || part.starts_with("__cudaLaunch("));
        parts.map(|part| part.trim().to_owned() + "\n").collect()
    }

    #[test]
    fn each_kind_of_kernel_gets_its_entry_and_dispatch() {
        let kinds = [
            ("_Z5plainifPKfPf", "_Z5plainifPKfPf"),
            ("_Z8typedefsfPfjmlPh", "typedefs"),
            ("_Z8instanceIfLi4EEvPT_i", "_Z8instanceIfLi4EEvPT_i"),
            ("_Z7nothingv", "_Z7nothingv"),
            (
                "_ZN43_GLOBAL__N__48378fa3_10_kernels_cu_711ddf6c9anonymousEyabd",
                "_ZN43_GLOBAL__N__48378fa3_10_kernels_cu_711ddf6c9anonymousEyabd",
            ),
        ];
        let stubs = kinds.map(|(name, symbol)| stub(name, symbol));
        expect![[r#"
            static int __nvtune_key_0[65];
            static int __nvtune_key_1[65];
            static int __nvtune_key_2[65];
            static int __nvtune_key_3[65];
            static int __nvtune_key_4[65];
            {{{__nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL)}, {64, 1, 1}, static_cast< ::size_t>(0LL)}, __nvtune_key_0, 90, -1, 1U, 10U}};
            __cudaLaunch(((char *)((void ( *)(int, float, const float *__restrict__, float *))plain)), 0U);}
            {{{__nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL)}, {64, 1, 1}, static_cast< ::size_t>(0LL)}, __nvtune_key_1, 90, -1, 1U, 10U}};
            __cudaLaunch(((char *)((void ( *)(real, real *, uint32_t, size_t, int64_t, uint8_t *))typedefs)), 0U); }
            {{{__nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL)}, {64, 1, 1}, static_cast< ::size_t>(0LL)}, __nvtune_key_2, 90, -1, 1U, 10U}};
            __cudaLaunch(((char *)((void ( *)(float *, int))instance<float, (int)4> )), 0U); }
            {{{__nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL)}, {64, 1, 1}, static_cast< ::size_t>(0LL)}, __nvtune_key_3, 90, -1, 1U, 10U}};
            __cudaLaunch(((char *)((void ( *)(void))nothing)), 0U); }
            {{{__nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL)}, {64, 1, 1}, static_cast< ::size_t>(0LL)}, __nvtune_key_4, 90, -1, 1U, 10U}};
            __cudaLaunch(((char *)((void ( *)(unsigned long long, signed char, bool, double))_NV_ANON_NAMESPACE::anonymous)), 0U); }
            __cudaRegisterEntry(__T1, ((char *)__nvtune_key_4), _ZN43_GLOBAL__N__48378fa3_10_kernels_cu_711ddf6c9anonymousEyabd__nvtune_1, (-1));
            __cudaRegisterEntry(__T1, ((char *)__nvtune_key_3), _Z7nothingv__nvtune_1, (-1));
            __cudaRegisterEntry(__T1, ((char *)__nvtune_key_2), _Z8instanceIfLi4EEvPT_i__nvtune_1, (-1));
            __cudaRegisterEntry(__T1, ((char *)__nvtune_key_1), typedefs__nvtune_1, (-1));
            __cudaRegisterEntry(__T1, ((char *)__nvtune_key_0), _Z5plainifPKfPf__nvtune_1, (-1));
        "#]].assert_eq(&changes(&stubs.iter().collect::<Vec<_>>()));
    }

    #[test]
    fn launch_of_an_older_toolkit_has_one_argument() {
        let file = "static void __device_stub__Z1kv(void);\n\
             static void __device_stub__Z1kv(void) {  __cudaLaunchPrologue(1); __cudaLaunch(((char *)((void ( *)(void))k<1, 2> ))); }\n\
             void k() {__device_stub__Z1kv(); }\n\
             static void f( void **__T7) { __cudaRegisterEntry(__T7, ((void ( *)(void))k<1, 2> ), _Z1kv, (-1)); }\n";
        let rewritten = rewrite_stubs(file, &[&stub("_Z1kv", "_Z1kv")], None);
        assert_eq!(rewritten.problems, [None]);
        for expected in [
            "__cudaLaunchPrologue(1); \n{ /* made by nvtune",
            "0LL)}, __nvtune_key_0, 90, -1, 1U, 10U}};\nvoid *__nvtune_arguments[sizeof(__args_arr) / sizeof(*__args_arr) + 1];\n__nvtune_launch(__args_arr, __args_idx, __nvtune_arguments, ((char *)((void ( *)(void))k<1, 2> )), &__nvtune_baseline, __nvtune_winners, 1);\nreturn;\n}\n__cudaLaunch(((char *)((void ( *)(void))k<1, 2> ))); }",
            "_Z1kv, (-1)); __cudaRegisterEntry(__T7, ((char *)__nvtune_key_0), _Z1kv__nvtune_1, (-1)); }",
        ] {
            assert!(rewritten.text.contains(expected), "{expected}\n{}", rewritten.text);
        }
    }

    #[test]
    fn file_that_is_not_understood_stays_as_it_is() {
        let definition = "void __device_stub_k(){__cudaLaunch(((char *)k), 0U);}\n";
        let registration = "__cudaRegisterEntry(__T0, k, k, (-1));\n";
        let mut bad = dispatch("k");
        bad.winners[0].entry = "k.nvtune".into();
        let bad_entry = StubText { change: StubChange::Dispatch(bad), ..stub("k", "k") };
        let good = stub("k", "k");
        let tile = definition.replace("0U", "1U");
        let mut problems = String::new();
        for (file, stub) in [
            (registration.to_owned(), &good),
            (definition.repeat(2) + registration, &good),
            (definition.replace("__cudaLaunch(", "launch(") + registration, &good),
            (definition.replace("{", "{__cudaLaunch(f);") + registration, &good),
            (tile + registration, &good),
            (definition.to_owned(), &good),
            (definition.to_owned() + "__cudaRegisterEntry(__T0, k, kk, (-1));\n", &good),
            (definition.to_owned() + &registration.repeat(2), &good),
            (definition.to_owned() + registration, &bad_entry),
        ] {
            let RewrittenStubs { text, problems: found } = rewrite_stubs(&file, &[stub], None);
            assert_eq!(text, file);
            problems += &format!("{}\n", found.into_iter().flatten().collect::<String>());
        }
        expect![[r#"
            cicc did not write the definition of its launch stub
            cicc wrote the definition of its launch stub more than once
            cicc did not write `__cudaLaunch` in its launch stub
            cicc wrote `__cudaLaunch` in its launch stub more than once
            its launch stub is that of a tile kernel
            cicc did not write the registration of its entry in the stub file
            cicc did not write the registration of its entry in the stub file
            cicc wrote the registration of its entry in the stub file more than once
            the entry name `k.nvtune` is no C identifier
        "#]]
        .assert_eq(&problems);
    }

    #[test]
    fn problem_of_one_stub_leaves_the_others_rewritten() {
        let (missing, good) = (stub("_Z1k", "_Z1k"), stub("_Z7nothingv", "_Z7nothingv"));
        let both = rewrite_stubs(STUBS, &[&missing, &good], None);
        assert_eq!(both.problems, [Some("cicc did not write the definition of its launch stub".to_owned()), None]);
        assert_eq!(both.text, rewrite_stubs(STUBS, &[&good], None).text);
    }

    #[test]
    fn dispatch_that_gives_no_launch_away_changes_nothing() {
        let idle = Dispatch { reshapes: false, ..dispatch("_Z7nothingv") };
        let idle = StubText { change: StubChange::Dispatch(idle), ..stub("_Z7nothingv", "_Z7nothingv") };
        assert_eq!(
            rewrite_stubs(STUBS, &[&idle], None),
            RewrittenStubs { text: STUBS.to_owned(), problems: vec![None] }
        );
    }
}
