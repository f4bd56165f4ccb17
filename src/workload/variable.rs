//! cicc's stub file -> the variables that it registers.
//!
//! `__cudaRegisterVariable(__T0, __shadow_var(_ZN2ns2ckE,::ns::ck), 0, 32768UL, 1, 0)`: symbol,
//! name, bytes, whether it is in constant memory. Managed variables are registered otherwise,
//! and are not among them.

use crate::cuda::brackets::{split_at_commas, text_in_parentheses};
use crate::cuda::template_instance;

/// A `__constant__` or `__device__` variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The symbol in PTX and cubin.
    pub symbol: String,
    /// The name with namespaces.
    pub qualified: String,
    pub bytes: u64,
    pub constant: bool,
}

impl Variable {
    /// Whether the comment's name is this variable's, or the end of it, with the template
    /// arguments of an instance.
    pub fn is_called(&self, name: &str) -> bool {
        let ((own, own_arguments), (name, arguments)) = (parts(&self.qualified), parts(name));
        let agree = |written: &[&str], compiled: &[&str]| {
            written.len() == compiled.len()
                && written
                    .iter()
                    .zip(compiled)
                    .all(|(written, compiled)| template_instance::arguments_agree(written, compiled))
        };
        ends_in(own, name)
            && match (arguments, own_arguments) {
                (Some(written), Some(compiled)) => agree(&written, &compiled),
                (None, None) => true,
                _ => false,
            }
    }

    /// Whether this is an instance of the template that the comment names, whatever the
    /// arguments.
    pub fn is_instance_of(&self, name: &str) -> bool {
        let (own, arguments) = parts(&self.qualified);
        arguments.is_some() && ends_in(own, parts(name).0)
    }
}

/// Whether a name is another one with scopes before it, or none.
fn ends_in(qualified: &str, name: &str) -> bool {
    qualified.strip_suffix(name).is_some_and(|scope| scope.is_empty() || scope.ends_with("::"))
}

/// A name, and the template arguments that it ends with.
fn parts(name: &str) -> (&str, Option<Vec<&str>>) {
    match name.split_once('<') {
        Some((plain, _)) if name.ends_with('>') => (plain.trim_end(), template_instance::template_arguments(name)),
        _ => (name, None),
    }
}

/// All variables of a stub file, in the order of their registration.
pub(super) fn variables(stub: &str) -> Vec<Variable> {
    const REGISTER: &str = "__cudaRegisterVariable";
    let mut found = Vec::new();
    for (at, _) in stub.match_indices(REGISTER) {
        let Some(arguments) = text_in_parentheses(&stub[at + REGISTER.len()..]) else { continue };
        let [_, shadow, _, bytes, constant, _] = split_at_commas(arguments)[..] else { continue };
        let Some(names) = shadow.strip_prefix("__shadow_var").and_then(text_in_parentheses) else { continue };
        let ([symbol, name], Ok(bytes)) = (&split_at_commas(names)[..], bytes.trim_end_matches(['U', 'L']).parse())
        else {
            continue;
        };
        // An instance stands in brackets: `(::mask<float> )`.
        let name = text_in_parentheses(name).unwrap_or(name).trim();
        let qualified = name.trim_start_matches(':').split_whitespace().collect::<Vec<_>>().join(" ");
        found.push(Variable { symbol: (*symbol).to_owned(), qualified, bytes, constant: constant == "1" });
    }
    found
}
