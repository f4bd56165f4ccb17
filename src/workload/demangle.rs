//! A mangled function name -> its parameter types as C++ text.
//!
//! The stub file spells a typedef as the source does (`real`, `uint32_t`), but its symbols are
//! mangled from canonical types. What demanglers print is put as the rest of nvtune has it:
//! `float const (*) [4]` becomes `const float[4] *`.

use crate::cuda::brackets::{split_at_commas, text_in_parentheses, text_inside};
use cpp_demangle::{DemangleOptions, Symbol};

/// How the crate tells the types of numbers among template arguments.
const CASTS: [&str; 9] = [
    "(unsigned int)",
    "(long)",
    "(unsigned long)",
    "(long long)",
    "(unsigned long long)",
    "(short)",
    "(unsigned short)",
    "(signed char)",
    "(unsigned char)",
];

/// What begins the namespace that cicc gives names of internal linkage.
const INTERNAL: &str = "_INTERNAL_";

/// Returns a symbol's name as the source has it, without parameters; the symbol itself if it is
/// not mangled.
pub fn demangled_name(symbol: &str) -> String {
    let name =
        Symbol::new(symbol).ok().and_then(|name| name.demangle_with_options(&DemangleOptions::new().no_params()).ok());
    let Some(name) = name else { return symbol.to_owned() };
    let in_source = name.split_once("::").filter(|_| name.starts_with(INTERNAL)).map_or(&*name, |(_, rest)| rest);
    in_source.replace("(anonymous namespace)::", "")
}

/// The types of the parameters of a function (none for `(void)`); `None` for a name that is not
/// a function's, or cannot be read. Of an expanded pack (`T *...`) the crate forgets the mark:
/// who knows that there is one must not believe it.
pub(super) fn parameter_types(symbol: &str) -> Option<Vec<String>> {
    let symbol = Symbol::new(symbol).ok()?;
    let function = symbol.demangle_with_options(&DemangleOptions::new()).ok()?;
    let name = symbol.demangle_with_options(&DemangleOptions::new().no_params()).ok()?;
    let parameters = text_in_parentheses(function.strip_prefix(&name)?)?;
    // A namespace without a name needs none in the source either.
    let parameters = parameters.replace("(anonymous namespace)::", "");
    // Numbers need no cast, enumerators do.
    let parameters = CASTS.iter().fold(parameters, |text, cast| text.replace(cast, ""));
    // What compares within an expression closes no list of arguments.
    if parameters.contains(")>(") || parameters.contains(")>>(") {
        return None;
    }
    match split_at_commas(&parameters).as_slice() {
        [""] => Some(Vec::new()),
        types => Some(types.iter().map(|text| in_order(text)).collect()),
    }
}

/// A type with its qualifiers before what they qualify, and the mark of a pointer to an array
/// or a function behind that.
fn in_order(text: &str) -> String {
    if let Some((target, marks, rest)) = declarator(text) {
        let extents = match rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            Some(parameters) => {
                let parameters: Vec<String> = split_at_commas(parameters).into_iter().map(in_order).collect();
                format!("({})", parameters.join(", "))
            }
            None => rest.to_owned(),
        };
        return format!("{}{extents} {marks}", in_order(target));
    }
    let text = text.trim();
    let (mut base, mut marks) = (text, Vec::new());
    loop {
        const MARKS: [(&str, &str); 6] = [
            ("&&", "&&"),
            ("&", "&"),
            ("*", "*"),
            (" const", "const"),
            (" volatile", "volatile"),
            (" restrict", "__restrict__"),
        ];
        let Some((rest, mark)) = MARKS.iter().find_map(|(end, mark)| Some((base.strip_suffix(end)?, *mark))) else {
            break;
        };
        // A member of a class is pointed to.
        if rest.ends_with("::") {
            break;
        }
        base = rest.trim_end();
        marks.insert(0, mark);
    }
    let own = marks.iter().take_while(|mark| !mark.starts_with(['*', '&'])).count();
    let mut words: Vec<String> = marks[..own].iter().map(|&word| word.to_owned()).collect();
    words.push(arguments_in_order(base));
    let text = words.join(" ");
    marks[own..].iter().fold(text, |text, mark| {
        let is_together = text.ends_with(['*', '&']);
        format!("{text}{}{mark}", if is_together { "" } else { " " })
    })
}

/// Target, marks and extents or parameters of `float (*) [4]`, `int (&)[4]` and `void
/// (*)(int)`.
fn declarator(text: &str) -> Option<(&str, &str, &str)> {
    let open = text.find("(*").or_else(|| text.find("(&"))?;
    let target = &text[..open];
    // Within the arguments of a template it is another type's.
    if target.matches('<').count() != target.matches('>').count() {
        return None;
    }
    let marks = &text[open + 1..];
    let close = marks.find(')')?;
    Some((target, &marks[..close], marks[close + 1..].trim()))
}

/// A name whose template arguments are put in order.
fn arguments_in_order(name: &str) -> String {
    let Some((stem, inner)) =
        name.find('<').and_then(|open| Some((&name[..open], text_inside(&name[open..], "<", ">")?)))
    else {
        return name.to_owned();
    };
    let arguments: Vec<String> = split_at_commas(inner).into_iter().map(in_order).collect();
    let rest = &name[stem.len() + inner.len() + 2..];
    format!("{stem}<{}>{}", arguments.join(", "), arguments_in_order(rest))
}

#[cfg(test)]
mod tests {
    use super::parameter_types;

    #[test]
    fn types_are_read_from_names() {
        for (symbol, types) in [
            ("_Z5emptyv", ""),
            ("_Z5plainifPKfPf", "int; float; const float *; float *"),
            ("_Z3ceefPfjjmlPh", "float; float *; unsigned int; unsigned int; unsigned long; long; unsigned char *"),
            (
                "_ZN2ns5inner3nskE6__halfPS1_P13__nv_bfloat16P6float47__half2PK14__nv_bfloat162",
                "__half; __half *; __nv_bfloat16 *; float4 *; __half2; const __nv_bfloat162 *",
            ),
            ("_Z5templIfLi4EEvPT_i", "float *; int"),
            ("_Z4statPcPbPKPKiRA4_fPVKi", "char *; bool *; const int *const *; float[4] &; const volatile int *"),
            ("_Z1kPrKf", "const __restrict__ float *"),
            ("_Z1kPA4_A2_KfPA4_PfPFvPA4_iE", "const float[4][2] *; float *[4] *; void(int[4] *) *"),
            // Arguments that are instances of templates in a namespace themselves.
            (
                "_ZN1a1b1kIfLi4ENS0_1VIfLi4EEEEEviPKT1_PS4_S4_",
                "int; const a::b::V<float, 4> *; a::b::V<float, 4> *; a::b::V<float, 4>",
            ),
            ("_ZN1a1kINS_1VIfEEEEvPT_PS2_", "a::V<float> *; a::V<float> *"),
            (
                "_Z4view4ViewIfEPS_IKdEPPfPFviERA4_fS_IS0_Efj",
                "View<float>; View<const double> *; float **; void(int) *; float[4] &; View<View<float>>; float; unsigned int",
            ),
            // Types that depend on the arguments of the template.
            ("_Z1kILi4EEvi3VecIXT_EEPf", "int; Vec<4>; float *"),
            ("_Z2k2IfEviN2TrIT_E3accEPf", "int; Tr<float>::acc; float *"),
            ("_Z2k3ILb1EEviSt17integral_constantIbXT_EEPf", "int; std::integral_constant<bool, true>; float *"),
            ("_Z2k4IfJiiEEvjPf", "unsigned int; float *"),
            ("_Z1kIJifEEvDpT_", "int; float"),
            ("_Z1kI1LLS0_1EEv3MatIfXT0_EE", "Mat<float, (L)1>"),
            ("_Z1kILm3EEvSt5arrayIfXT_EE", "std::array<float, 3>"),
            ("_Z10copy3Dpartiff", "int; float; float"),
            ("_Z2k5IXadL_Z5twicefEEEvjPf", "unsigned int; float *"),
            ("_Z2k6I4ModeLS0_1EEvT_Pf", "Mode; float *"),
            (
                "_Z2k2ILi4EEviN42_GLOBAL__N__f4b2dc96_4_b_cu_4b96af60_181403VecIXT_EfEENS0_4ModeEPf",
                "int; Vec<4, float>; Mode; float *",
            ),
            ("_Z1fM1Af", "float A::*"),
        ] {
            assert_eq!(parameter_types(symbol).map(|types| types.join("; ")).as_deref(), Some(types), "{symbol}");
        }
        for symbol in
            ["cee", "_Z", "_Z99x", "_Z1fS9_", "_Z1fPPP", "_Z1fT_", "_Z1kILi4EEv3OffIXgtT_Li2EEE", "_ZTI1A", "_ZN1a1bE"]
        {
            assert_eq!(parameter_types(symbol), None, "{symbol}");
        }
    }
}
