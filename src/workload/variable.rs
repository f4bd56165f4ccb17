//! cicc's stub file -> the variables that it registers.
//!
//! `__cudaRegisterVariable(__T0, __shadow_var(_ZN2ns2ckE,::ns::ck), 0, 32768UL, 1, 0)`: symbol, name, bytes, whether it is in
//! constant memory. Managed variables are registered otherwise, and are not among them.

use super::entry::{group, split};

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
    /// Whether the comment's name is this variable's, or the end of it.
    pub fn is_called(&self, name: &str) -> bool {
        let scope = self.qualified.strip_suffix(name);
        scope.is_some_and(|scope| scope.is_empty() || scope.ends_with("::"))
    }
}

/// All variables of a stub file, in the order of their registration.
pub(super) fn variables(stub: &str) -> Vec<Variable> {
    const REGISTER: &str = "__cudaRegisterVariable";
    let mut found = Vec::new();
    for (at, _) in stub.match_indices(REGISTER) {
        let Some(arguments) = group(&stub[at + REGISTER.len()..]) else { continue };
        let [_, shadow, _, bytes, constant, _] = split(arguments)[..] else { continue };
        let Some(names) = shadow.strip_prefix("__shadow_var").and_then(group) else { continue };
        let ([symbol, name], Ok(bytes)) = (&split(names)[..], bytes.trim_end_matches(['U', 'L']).parse()) else {
            continue;
        };
        let qualified = name.trim_start_matches(':').to_owned();
        found.push(Variable { symbol: (*symbol).to_owned(), qualified, bytes, constant: constant == "1" });
    }
    found
}
