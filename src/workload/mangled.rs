//! A mangled function name -> its parameter types as C++ text.
//!
//! The stub file spells a typedef as the source does (`real`, `uint32_t`), but its symbols are mangled from canonical types.
//! Reads the part of the Itanium C++ ABI (section 5.1) that kernels' parameters need; a name that goes beyond it (member
//! pointers, decltype, packs) gives `None`, never a wrong type.

/// The builtin types by their codes.
const BUILTINS: [(u8, &str); 21] = [
    (b'v', "void"),
    (b'w', "wchar_t"),
    (b'b', "bool"),
    (b'c', "char"),
    (b'a', "signed char"),
    (b'h', "unsigned char"),
    (b's', "short"),
    (b't', "unsigned short"),
    (b'i', "int"),
    (b'j', "unsigned int"),
    (b'l', "long"),
    (b'm', "unsigned long"),
    (b'x', "long long"),
    (b'y', "unsigned long long"),
    (b'n', "__int128"),
    (b'o', "unsigned __int128"),
    (b'f', "float"),
    (b'd', "double"),
    (b'e', "long double"),
    (b'g', "__float128"),
    (b'z', "..."),
];

/// How deep types may nest.
const MAX_DEPTH: usize = 64;

/// The types of the parameters of a function (none for `(void)`).
pub(super) fn parameter_types(symbol: &str) -> Option<Vec<String>> {
    let mut reader =
        Reader { bytes: symbol.strip_prefix("_Z")?.as_bytes(), seen: Vec::new(), arguments: Vec::new(), depth: 0 };
    let template = reader.function_name()?;
    if template {
        // The mangled name of a template's instance begins with its return type.
        reader.kind()?;
    }
    let mut types = Vec::new();
    while !reader.bytes.is_empty() && reader.bytes[0] != b'.' {
        types.push(reader.kind()?);
    }
    if types == ["void"] {
        types.clear();
    }
    Some(types)
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// What `S_`, `S0_`, ... stand for.
    seen: Vec<String>,
    /// What `T_`, `T0_`, ... stand for.
    arguments: Vec<String>,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.first().copied()
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.bytes.strip_prefix(text.as_bytes()) {
            Some(rest) => {
                self.bytes = rest;
                true
            }
            None => false,
        }
    }

    fn keep(&mut self, text: String) -> String {
        self.seen.push(text.clone());
        text
    }

    /// The function's own name; true where it is an instance of a template.
    fn function_name(&mut self) -> Option<bool> {
        if self.peek() == Some(b'N') {
            let (_, template) = self.nested(true)?;
            return Some(template);
        }
        self.eat("St");
        let name = self.source_name()?;
        if self.peek() != Some(b'I') {
            return Some(false);
        }
        self.keep(name);
        self.arguments = self.template_arguments()?;
        Some(true)
    }

    fn source_name(&mut self) -> Option<String> {
        // `L` marks internal linkage in names that GCC makes.
        self.eat("L");
        let length = self.number()?;
        if length > self.bytes.len() {
            return None;
        }
        let (name, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        String::from_utf8(name.to_vec()).ok()
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&self.bytes[..digits]).ok()?.parse().ok()?;
        self.bytes = &self.bytes[digits..];
        Some(number)
    }

    /// `N ... E`; the name, and whether it ends in template arguments, to which `T_` refers where it is the function's.
    fn nested(&mut self, is_function: bool) -> Option<(String, bool)> {
        self.bytes = self.bytes.strip_prefix(b"N")?;
        while self.eat("r") || self.eat("V") || self.eat("K") {}
        let mut name = String::new();
        let mut template = false;
        loop {
            template = match self.peek()? {
                b'E' => {
                    self.bytes = &self.bytes[1..];
                    return Some((name, template));
                }
                b'S' if self.bytes.starts_with(b"St") => {
                    self.bytes = &self.bytes[2..];
                    name = "std".to_string();
                    continue;
                }
                b'S' => {
                    name = self.substitution()?;
                    continue;
                }
                b'I' => {
                    let arguments = self.template_arguments()?;
                    name = format!("{name}<{}>", arguments.join(", "));
                    if is_function {
                        self.arguments = arguments;
                    }
                    true
                }
                _ => {
                    let part = self.source_name()?;
                    name = if name.is_empty() { part } else { format!("{name}::{part}") };
                    false
                }
            };
            // The whole name is not a candidate as a function's name; as a type it is kept by `kind`.
            if self.peek() != Some(b'E') {
                self.seen.push(name.clone());
            }
        }
    }

    fn template_arguments(&mut self) -> Option<Vec<String>> {
        self.bytes = self.bytes.strip_prefix(b"I")?;
        let mut arguments = Vec::new();
        while !self.eat("E") {
            arguments.push(match self.peek()? {
                b'L' => self.literal()?,
                b'X' | b'J' => return None,
                _ => self.kind()?,
            });
        }
        Some(arguments)
    }

    /// `Li4E`: a value of an integral type.
    fn literal(&mut self) -> Option<String> {
        self.bytes = self.bytes.strip_prefix(b"L")?;
        self.kind()?;
        let sign = if self.eat("n") { "-" } else { "" };
        let value = self.number()?;
        self.eat("E").then(|| format!("{sign}{value}"))
    }

    fn substitution(&mut self) -> Option<String> {
        self.bytes = self.bytes.strip_prefix(b"S")?;
        let index = self.sequence()?;
        self.seen.get(index).cloned()
    }

    /// `_` is 0, `0_` is 1, in base 36.
    fn sequence(&mut self) -> Option<usize> {
        let length = self.bytes.iter().position(|&byte| byte == b'_')?;
        let text = std::str::from_utf8(&self.bytes[..length]).ok()?;
        let index = if text.is_empty() { 0 } else { usize::from_str_radix(text, 36).ok()?.checked_add(1)? };
        self.bytes = &self.bytes[length + 1..];
        Some(index)
    }

    fn kind(&mut self) -> Option<String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let kind = self.kind_inside();
        self.depth -= 1;
        kind
    }

    fn kind_inside(&mut self) -> Option<String> {
        let code = self.peek()?;
        if let Some((_, name)) = BUILTINS.iter().find(|(known, _)| *known == code) {
            self.bytes = &self.bytes[1..];
            return Some(name.to_string());
        }
        match code {
            b'P' | b'R' | b'O' => {
                self.bytes = &self.bytes[1..];
                let target = self.kind()?;
                let mark = match code {
                    b'P' => "*",
                    b'R' => "&",
                    _ => "&&",
                };
                let blank = if target.ends_with(['*', '&']) { "" } else { " " };
                Some(self.keep(format!("{target}{blank}{mark}")))
            }
            b'K' | b'V' | b'r' => {
                let mut words = Vec::new();
                while let Some((_, word)) = [("r", "__restrict__"), ("V", "volatile"), ("K", "const")]
                    .into_iter()
                    .find(|(code, _)| self.eat(code))
                {
                    words.insert(0, word);
                }
                let target = self.kind()?;
                let words = words.join(" ");
                let text = if target.ends_with('*') { format!("{target}{words}") } else { format!("{words} {target}") };
                Some(self.keep(text))
            }
            b'A' => {
                self.bytes = &self.bytes[1..];
                let length = self.number().map(|length| length.to_string()).unwrap_or_default();
                if !self.eat("_") {
                    return None;
                }
                let element = self.kind()?;
                Some(self.keep(format!("{element}[{length}]")))
            }
            b'F' => {
                self.bytes = &self.bytes[1..];
                self.eat("Y");
                let mut parts = Vec::new();
                while !self.eat("E") {
                    parts.push(self.kind()?);
                }
                let (result, parameters) = parts.split_first()?;
                Some(self.keep(format!("{result}({})", parameters.join(", "))))
            }
            b'D' => {
                let codes = [("Ds", "char16_t"), ("Di", "char32_t"), ("Du", "char8_t"), ("Dn", "decltype(nullptr)")];
                codes.into_iter().find(|(code, _)| self.eat(code)).map(|(_, name)| name.to_string())
            }
            b'T' => {
                self.bytes = &self.bytes[1..];
                let index = self.sequence()?;
                let argument = self.arguments.get(index).cloned()?;
                Some(self.keep(argument))
            }
            b'S' if !self.bytes.starts_with(b"St") => {
                let name = self.substitution()?;
                self.instance(name)
            }
            b'N' => {
                let (name, _) = self.nested(false)?;
                Some(self.keep(name))
            }
            _ => {
                let scope = if self.eat("St") { "std::" } else { "" };
                let name = self.source_name()?;
                let name = self.keep(format!("{scope}{name}"));
                self.instance(name)
            }
        }
    }

    /// The name with template arguments, if some follow.
    fn instance(&mut self, name: String) -> Option<String> {
        if self.peek() != Some(b'I') {
            return Some(name);
        }
        let arguments = self.template_arguments()?;
        Some(self.keep(format!("{name}<{}>", arguments.join(", "))))
    }
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
        ] {
            assert_eq!(parameter_types(symbol).map(|types| types.join("; ")).as_deref(), Some(types), "{symbol}");
        }
        for symbol in ["cee", "_Z", "_Z99x", "_Z1fM1Af", "_Z1fS9_", "_Z1fPPP", "_Z1fT_"] {
            assert_eq!(parameter_types(symbol), None, "{symbol}");
        }
    }
}
