//! Lists the `__device__` variables that a kernel may write, each with its type and its tolerance
//! in the comparison of results.

use crate::analysis::written_variables;
use crate::comment::{Annotation, variable_element};
use crate::cuda::{Element, Scalar, Type};
use crate::ptx;
use crate::ptx::{Linkage, Module, PtxVariable};
use crate::workload::{Entry, WrittenVariable, demangled_name, variable_check};

/// The element of a variable of unknown type.
const BYTES: Element = Element { scalar: Scalar::U8, lanes: 1 };

/// Lists the variables that a kernel may write; `module` is its PTX.
pub fn written(annotation: &Annotation, entry: &Entry, module: &Module) -> Vec<WrittenVariable> {
    let describe = |variable: &PtxVariable| {
        let name = demangled_name(&variable.name);
        let element = element(annotation, entry, variable, &name);
        let check = variable_check(annotation, &name, element.scalar).filter(|_| has_own_memory(variable));
        WrittenVariable { symbol: variable.name.to_string(), name, element, check }
    };
    written_variables::written(module, &entry.symbol).into_iter().map(describe).collect()
}

/// Adds the variables of `others` that are not in `variables`.
pub fn extend(variables: &mut Vec<WrittenVariable>, others: &[WrittenVariable]) {
    for other in others {
        if variables.iter().all(|variable| variable.symbol != other.symbol) {
            variables.push(other.clone());
        }
    }
}

/// Returns whether the module itself has the variable and its extent is known.
fn has_own_memory(variable: &PtxVariable) -> bool {
    variable.linkage != Linkage::Extern && variable.size > 0 && variable.scalar != ptx::Scalar::Opaque
}

/// What a variable is made of: by the comment, by PTX, by its declaration in the file.
fn element(annotation: &Annotation, entry: &Entry, variable: &PtxVariable, name: &str) -> Element {
    let plain_name = name.rsplit("::").next().unwrap_or(name);
    let is_registered =
        |given: &str| entry.variables.iter().any(|known| *known.symbol == *variable.name && known.is_called(given));
    let given = annotation.clauses.symbols.iter().find(|given| is_registered(&given.name));
    let by_comment = || Type::element(given?.element.as_deref()?);
    // Another variable of this name may have another type.
    let is_alone = entry.variables.iter().all(|known| !known.is_called(plain_name) || *known.symbol == *variable.name);
    let by_declaration = || Type::element(&variable_element(&annotation.source, plain_name).filter(|_| is_alone)?);
    let fits = |element: &Element| variable.size.is_multiple_of(element.size().max(1) as u64);
    by_comment().or_else(|| by_ptx(variable)).or_else(by_declaration).filter(fits).unwrap_or(BYTES)
}

/// The type of a variable that PTX declares as a number. Arrays and structures are bytes there.
fn by_ptx(variable: &PtxVariable) -> Option<Element> {
    let scalar = match variable.scalar {
        ptx::Scalar::U16 => Scalar::U16,
        ptx::Scalar::U32 => Scalar::U32,
        ptx::Scalar::U64 => Scalar::U64,
        ptx::Scalar::S16 => Scalar::I16,
        ptx::Scalar::S32 => Scalar::I32,
        ptx::Scalar::S64 => Scalar::I64,
        ptx::Scalar::F32 => Scalar::F32,
        ptx::Scalar::F64 => Scalar::F64,
        _ => return None,
    };
    Some(Element { scalar, lanes: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comment::annotations;
    use crate::diag::Source;
    use crate::workload::Variable;
    use std::collections::BTreeMap;

    /// Describes what the kernel of a source writes: each variable with its type and tolerance.
    fn described(clause: &str) -> Vec<String> {
        let source = format!(
            "__device__ float sums[64];\n__device__ int3 odd;\n__device__ unsigned long long total;\nnamespace a {{ __device__ double twice; }}\n\
             namespace b {{ __device__ unsigned long long twice; }}\n\
             //@tune threads(1) block(64) {clause}\n__global__ void k() {{}}\n"
        );
        let annotation = annotations(&Source::new("a.cu", source.as_bytes())).expect("a comment").remove(0);
        let names = ["sums", "odd", "a::twice", "b::twice", "shared", "unknown", "total"];
        let variable = |name: &str| Variable {
            symbol: name.replace("::", "_"),
            qualified: name.to_owned(),
            bytes: 0,
            constant: false,
        };
        let entry = Entry {
            symbol: "k".to_owned(),
            mangled: None,
            qualified: "k".to_owned(),
            parameters: Vec::new(),
            line: None,
            file: None,
            max_threads: None,
            variables: names.map(variable).into(),
            layouts: BTreeMap::new(),
        };
        let declared = ".global .align 4 .b8 sums[256];\n.global .align 4 .b8 odd[10];\n.global .align 8 .b8 a_twice[8];\n\
                        .global .align 8 .b8 b_twice[8];\n.extern .global .align 4 .u32 shared;\n\
                        .global .align 4 .b8 unknown[4];\n.global .align 8 .u64 total;\n.global .align 4 .u32 untouched;\n";
        let symbols = names.map(|name| name.replace("::", "_"));
        let stores = symbols.map(|symbol| format!("st.global.u8 [{symbol}], %r1;\n")).concat();
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n{declared}.visible .entry k()\n{{\n{stores}ret;\n}}\n"
        );
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let describe = |WrittenVariable { name, element: Element { scalar, lanes }, check, .. }| match check {
            Some(check) => format!("{name}: {scalar:?} x {lanes}, {} {:?}", check.relative, check.absolute),
            None => format!("{name}: {scalar:?} x {lanes}, not compared"),
        };
        written(&annotation, &entry, &module).into_iter().map(describe).collect()
    }

    #[test]
    fn types_come_from_ptx_and_from_unique_declarations() {
        assert_eq!(
            described(""),
            [
                "sums: F32 x 1, 0.0001 None",
                // No whole number of elements.
                "odd: U8 x 1, 0 None",
                // Two variables have the name.
                "a_twice: U8 x 1, 0 None",
                "b_twice: U8 x 1, 0 None",
                "shared: U32 x 1, not compared",
                "unknown: U8 x 1, 0 None",
                "total: U64 x 1, 0 None",
            ]
        );
    }

    #[test]
    fn types_of_the_comment_come_first() {
        let all = described("symbol(int sums = zeros[64], half2 unknown = zeros[1])");
        assert_eq!([&all[0], &all[5]], ["sums: I32 x 1, 0 None", "unknown: F16 x 2, 0.004 None"]);
    }

    #[test]
    fn check_names_what_is_compared() {
        let all = described("check(sums, rtol = 0.5, atol = 2)");
        assert_eq!(all[0], "sums: F32 x 1, 0.5 Some(2.0)");
        assert!(all[1..].iter().all(|variable| variable.ends_with("not compared")), "{all:?}");
        assert!(described("check(none)").iter().all(|variable| variable.ends_with("not compared")));
        assert_eq!(described("check(sums, total, rtol = 0.5)")[6], "total: U64 x 1, 0 None");
    }

    #[test]
    fn extended_list_has_each_variable_once() {
        let variable = |symbol: &str| WrittenVariable {
            symbol: symbol.to_owned(),
            name: symbol.to_owned(),
            element: BYTES,
            check: None,
        };
        let mut variables = vec![variable("a"), variable("b")];
        extend(&mut variables, &[variable("b"), variable("c"), variable("c")]);
        assert_eq!(variables, ["a", "b", "c"].map(variable));
    }
}
