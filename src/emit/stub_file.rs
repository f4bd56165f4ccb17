//! Rewrites the stub file that cicc makes: registers the winners' entries and puts each
//! dispatch before its launch.

use super::dispatch::{Dispatch, RUNTIME, key};
use crate::cuda::brackets::{split_at_commas, text_in_parentheses, text_inside};
use crate::cuda::tokens::is_word;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Gives the dispatch of one kernel of one source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StubText {
    /// The source as nvcc names it.
    pub source: String,
    /// The stub is `__device_stub_` and this: the mangled name.
    pub stub: String,
    /// The kernel's name in the PTX: another where it is `extern "C"`.
    pub symbol: String,
    pub dispatch: Dispatch,
}

/// A stub file with dispatches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewrittenStubs {
    pub text: String,
    /// For each stub, in the order given: why it is as cicc wrote it, or `None` if it is
    /// rewritten.
    pub problems: Vec<Option<String>>,
}

/// The line of a stub file that includes the macros and functions of launch stubs.
const LAUNCH_HEADER: &str = "#include \"crt/host_runtime.h\"\n";

/// Text to insert at a place.
type Insertion = (usize, String);

/// Returns the stub file with a dispatch in each of these stubs. A stub with a problem stays as
/// it is.
pub fn rewrite_stubs(file: &str, stubs: &[&StubText]) -> RewrittenStubs {
    let mut insertions: Vec<Insertion> = Vec::new();
    let mut keys = String::new();
    let mut problems = Vec::new();
    for stub in stubs {
        problems.push(match insertions_for(file, stub) {
            Ok(places) => {
                insertions.extend(places);
                keys.extend(
                    stub.dispatch.entries().into_iter().map(|entry| format!("static int {}[64];\n", key(entry))),
                );
                None
            }
            Err(problem) => Some(problem),
        });
    }
    if keys.is_empty() {
        return RewrittenStubs { text: file.to_owned(), problems };
    }
    // Behind what declares the functions of launches.
    let head = file.find(LAUNCH_HEADER).map_or(0, |place| place + LAUNCH_HEADER.len());
    insertions.push((head, format!("{RUNTIME}{keys}")));
    insertions.sort_by_key(|(place, _)| *place);
    let mut text = String::new();
    let mut copied = 0;
    for (place, inserted) in insertions {
        text += &file[copied..place];
        text += &inserted;
        copied = place;
    }
    text += &file[copied..];
    RewrittenStubs { text, problems }
}

/// Returns what to insert for one stub, or why that is unknown.
fn insertions_for(file: &str, stub: &StubText) -> Result<Vec<Insertion>, String> {
    let entries = stub.dispatch.entries();
    if let Some(entry) = entries.iter().find(|entry| !is_identifier(entry)) {
        return Err(format!("the entry name `{entry}` is no C identifier"));
    }
    let body = one(bodies(file, &stub.stub), "the definition of its launch stub")?;
    let (launch, arguments) = one(calls(&file[body.clone()], "__cudaLaunch"), "`__cudaLaunch` in its launch stub")?;
    let (registration, handle) =
        one(registrations(file, &stub.symbol), "the registration of its entry in the stub file")?;
    let kernel = arguments.first().ok_or("`__cudaLaunch` of its launch stub has no argument")?;
    if stub.dispatch.is_nothing() {
        return Ok(Vec::new());
    }
    let dispatch = stub.dispatch.text(kernel);
    let registered: String = entries
        .iter()
        .map(|entry| format!(" __cudaRegisterEntry({handle}, ((char *){}), {entry}, (-1));", key(entry)))
        .collect();
    Ok(vec![(body.start + launch.start, dispatch), (registration, registered)])
}

/// Returns the only item, or what is wrong with the number of `items`.
fn one<T>(items: impl IntoIterator<Item = T>, what: &str) -> Result<T, String> {
    let mut items = items.into_iter();
    match (items.next(), items.next()) {
        (Some(item), None) => Ok(item),
        (None, _) => Err(format!("cicc did not write {what}")),
        (Some(_), Some(_)) => Err(format!("cicc wrote {what} more than once")),
    }
}

/// Returns the insides of the braces of each definition of `__device_stub_NAME`.
fn bodies<'t>(file: &'t str, name: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
    let stub = format!("__device_stub_{name}");
    calls(file, &stub).into_iter().filter_map(|(range, _)| {
        let rest = file[range.end..].trim_start();
        let start = file.len() - rest.len() + 1;
        // A definition, not a declaration or a call.
        let body = text_inside(rest, "{", "}")?;
        Some(start..start + body.len())
    })
}

/// Returns the places behind the registrations of an entry, and the handle that they register
/// it with.
fn registrations<'t>(file: &'t str, symbol: &'t str) -> impl Iterator<Item = (usize, &'t str)> + 't {
    calls(file, "__cudaRegisterEntry").into_iter().filter_map(move |(range, arguments)| match arguments.as_slice() {
        [handle, _, name, _] if *name == symbol && file[range.end..].starts_with(';') => Some((range.end + 1, *handle)),
        _ => None,
    })
}

/// Returns each place of `name(...)` with its arguments.
fn calls<'t>(text: &'t str, name: &str) -> Vec<(Range<usize>, Vec<&'t str>)> {
    let opened = format!("{name}(");
    let call = |(start, _): (usize, &str)| {
        let arguments = text_in_parentheses(&text[start + name.len()..])?;
        let whole = !text[..start].ends_with(is_word);
        whole.then(|| (start..start + opened.len() + arguments.len() + 1, split_at_commas(arguments)))
    };
    text.match_indices(&opened).filter_map(call).collect()
}

/// Returns whether the preprocessor reads a text as one name.
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
        let launch =
            |threads| LaunchText { block: [threads, 1, 1], grid: ["1LL"; 3].map(str::to_owned), shared: "0LL".into() };
        let winner = Winner {
            capability: 90,
            entry: format!("{symbol}__nvtune_1"),
            launch: launch(64),
            conditions: Vec::new(),
            carveout: None,
        };
        let dispatch =
            Dispatch { baseline: launch(256), winners: vec![winner], accepts_winner_launches: false, reshapes: true };
        StubText { source: "a.cu".into(), stub: stub.into(), symbol: symbol.into(), dispatch }
    }

    /// Returns the parts of the rewritten file that name an entry, and the launches that they
    /// stand before.
    fn changes(stubs: &[&StubText]) -> String {
        let rewritten = rewrite_stubs(STUBS, stubs);
        assert_eq!(rewritten.problems, vec![None; stubs.len()]);
        let (head, behind) = rewritten.text.split_once(RUNTIME).expect("the functions that dispatches call");
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
            static int __nvtune_key__Z5plainifPKfPf__nvtune_1[64];
            static int __nvtune_key_typedefs__nvtune_1[64];
            static int __nvtune_key__Z8instanceIfLi4EEvPT_i__nvtune_1[64];
            static int __nvtune_key__Z7nothingv__nvtune_1[64];
            static int __nvtune_key__ZN43_GLOBAL__N__48378fa3_10_kernels_cu_711ddf6c9anonymousEyabd__nvtune_1[64];
            if (__nvtune_detail::launch_winner(__nvtune_device, __args_arr, __nvtune_key__Z5plainifPKfPf__nvtune_1, ((char *)((void ( *)(int, float, const float *__restrict__, float *))plain)), -1, &__nvtune_baseline, &__nvtune_winner, true, false, true)) return;
            __cudaLaunch(((char *)((void ( *)(int, float, const float *__restrict__, float *))plain)), 0U);}
            if (__nvtune_detail::launch_winner(__nvtune_device, __args_arr, __nvtune_key_typedefs__nvtune_1, ((char *)((void ( *)(real, real *, uint32_t, size_t, int64_t, uint8_t *))typedefs)), -1, &__nvtune_baseline, &__nvtune_winner, true, false, true)) return;
            __cudaLaunch(((char *)((void ( *)(real, real *, uint32_t, size_t, int64_t, uint8_t *))typedefs)), 0U); }
            if (__nvtune_detail::launch_winner(__nvtune_device, __args_arr, __nvtune_key__Z8instanceIfLi4EEvPT_i__nvtune_1, ((char *)((void ( *)(float *, int))instance<float, (int)4> )), -1, &__nvtune_baseline, &__nvtune_winner, true, false, true)) return;
            __cudaLaunch(((char *)((void ( *)(float *, int))instance<float, (int)4> )), 0U); }
            if (__nvtune_detail::launch_winner(__nvtune_device, __args_arr, __nvtune_key__Z7nothingv__nvtune_1, ((char *)((void ( *)(void))nothing)), -1, &__nvtune_baseline, &__nvtune_winner, true, false, true)) return;
            __cudaLaunch(((char *)((void ( *)(void))nothing)), 0U); }
            if (__nvtune_detail::launch_winner(__nvtune_device, __args_arr, __nvtune_key__ZN43_GLOBAL__N__48378fa3_10_kernels_cu_711ddf6c9anonymousEyabd__nvtune_1, ((char *)((void ( *)(unsigned long long, signed char, bool, double))_NV_ANON_NAMESPACE::anonymous)), -1, &__nvtune_baseline, &__nvtune_winner, true, false, true)) return;
            __cudaLaunch(((char *)((void ( *)(unsigned long long, signed char, bool, double))_NV_ANON_NAMESPACE::anonymous)), 0U); }
            __cudaRegisterEntry(__T1, ((char *)__nvtune_key__ZN43_GLOBAL__N__48378fa3_10_kernels_cu_711ddf6c9anonymousEyabd__nvtune_1), _ZN43_GLOBAL__N__48378fa3_10_kernels_cu_711ddf6c9anonymousEyabd__nvtune_1, (-1));
            __cudaRegisterEntry(__T1, ((char *)__nvtune_key__Z7nothingv__nvtune_1), _Z7nothingv__nvtune_1, (-1));
            __cudaRegisterEntry(__T1, ((char *)__nvtune_key__Z8instanceIfLi4EEvPT_i__nvtune_1), _Z8instanceIfLi4EEvPT_i__nvtune_1, (-1));
            __cudaRegisterEntry(__T1, ((char *)__nvtune_key_typedefs__nvtune_1), typedefs__nvtune_1, (-1));
            __cudaRegisterEntry(__T1, ((char *)__nvtune_key__Z5plainifPKfPf__nvtune_1), _Z5plainifPKfPf__nvtune_1, (-1));
        "#]].assert_eq(&changes(&stubs.iter().collect::<Vec<_>>()));
    }

    #[test]
    fn launch_of_an_older_toolkit_has_one_argument() {
        let file = "static void __device_stub__Z1kv(void);\n\
             static void __device_stub__Z1kv(void) {  __cudaLaunchPrologue(1); __cudaLaunch(((char *)((void ( *)(void))k<1, 2> ))); }\n\
             void k() {__device_stub__Z1kv(); }\n\
             static void f( void **__T7) { __cudaRegisterEntry(__T7, ((void ( *)(void))k<1, 2> ), _Z1kv, (-1)); }\n";
        let rewritten = rewrite_stubs(file, &[&stub("_Z1kv", "_Z1kv")]);
        assert_eq!(rewritten.problems, [None]);
        for expected in [
            "__cudaLaunchPrologue(1); \n{ /* made by nvtune",
            "launch_winner(__nvtune_device, __args_arr, __nvtune_key__Z1kv__nvtune_1, ((char *)((void ( *)(void))k<1, 2> )), -1, &__nvtune_baseline,",
            "return;\n}\n}\n__cudaLaunch(((char *)((void ( *)(void))k<1, 2> ))); }",
            "_Z1kv, (-1)); __cudaRegisterEntry(__T7, ((char *)__nvtune_key__Z1kv__nvtune_1), _Z1kv__nvtune_1, (-1)); }",
        ] {
            assert!(rewritten.text.contains(expected), "{expected}\n{}", rewritten.text);
        }
    }

    #[test]
    fn file_that_is_not_understood_stays_as_it_is() {
        let definition = "void __device_stub_k(){__cudaLaunch(((char *)k), 0U);}\n";
        let registration = "__cudaRegisterEntry(__T0, k, k, (-1));\n";
        let mut bad_entry = stub("k", "k");
        bad_entry.dispatch.winners[0].entry = "k.nvtune".into();
        let good = stub("k", "k");
        let mut problems = String::new();
        for (file, stub) in [
            (registration.to_owned(), &good),
            (definition.repeat(2) + registration, &good),
            (definition.replace("__cudaLaunch(", "launch(") + registration, &good),
            (definition.replace("{", "{__cudaLaunch(f);") + registration, &good),
            (definition.to_owned(), &good),
            (definition.to_owned() + "__cudaRegisterEntry(__T0, k, kk, (-1));\n", &good),
            (definition.to_owned() + &registration.repeat(2), &good),
            (definition.to_owned() + registration, &bad_entry),
        ] {
            let RewrittenStubs { text, problems: found } = rewrite_stubs(&file, &[stub]);
            assert_eq!(text, file);
            problems += &format!("{}\n", found.into_iter().flatten().collect::<String>());
        }
        expect![[r#"
            cicc did not write the definition of its launch stub
            cicc wrote the definition of its launch stub more than once
            cicc did not write `__cudaLaunch` in its launch stub
            cicc wrote `__cudaLaunch` in its launch stub more than once
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
        let both = rewrite_stubs(STUBS, &[&missing, &good]);
        assert_eq!(both.problems, [Some("cicc did not write the definition of its launch stub".to_owned()), None]);
        assert_eq!(both.text, rewrite_stubs(STUBS, &[&good]).text);
    }

    #[test]
    fn dispatch_that_gives_no_launch_away_changes_nothing() {
        let mut idle = stub("_Z7nothingv", "_Z7nothingv");
        idle.dispatch.reshapes = false;
        assert_eq!(rewrite_stubs(STUBS, &[&idle]), RewrittenStubs { text: STUBS.to_owned(), problems: vec![None] });
    }
}
