//! nvcc's option table, read from `options.tsv`: which options exist and how each takes its value.

use std::collections::HashMap;
use std::sync::LazyLock;

const TABLE: &str = include_str!("options.tsv");

/// How an option takes its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// No value.
    Flag,
    /// One value: the next argument, or what follows `=`.
    Value,
    /// A comma-separated list, given like a value.
    List,
}

/// One option of nvcc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvccOption {
    /// The long name with its dashes, `--output-file`.
    pub long: &'static str,
    /// The short name with its dash, `-o`; the long one where there is none.
    pub short: &'static str,
    pub arity: Arity,
}

/// Short options whose value may be glued to them (`-Iinclude`, `-O3`); no other option allows it.
const GLUED: [&str; 8] = ["-I", "-D", "-U", "-L", "-l", "-O", "-t", "-m"];

static BY_NAME: LazyLock<HashMap<&'static str, NvccOption>> = LazyLock::new(|| {
    let mut by_name = HashMap::new();
    for row in rows() {
        by_name.insert(row.long, row);
        by_name.insert(row.short, row);
    }
    by_name
});

fn rows() -> impl Iterator<Item = NvccOption> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut columns = line.split('\t');
        let (long, short, arity) = (columns.next()?, columns.next()?, columns.next()?);
        let arity = match arity {
            "flag" => Arity::Flag,
            "value" => Arity::Value,
            "list" => Arity::List,
            _ => return None,
        };
        Some(NvccOption { long, short, arity })
    })
}

/// Finds the option that `argument` is, and the value that is part of the argument itself, if any.
pub fn lookup(argument: &str) -> Option<(NvccOption, Option<&str>)> {
    if let Some(option) = BY_NAME.get(argument) {
        return Some((*option, None));
    }
    if let Some((name, value)) = argument.split_once('=')
        && let Some(option) = BY_NAME.get(name)
        && option.arity != Arity::Flag
    {
        return Some((*option, Some(value)));
    }
    let glued = GLUED.iter().find(|short| argument.starts_with(**short))?;
    let option = BY_NAME.get(glued)?;
    Some((*option, Some(&argument[glued.len()..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_read() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(rows().count(), lines);
    }

    #[test]
    fn values_are_found_in_every_form() {
        let cases: [(&str, &str, Option<&str>); 9] = [
            ("-o", "--output-file", None),
            ("-o=x.o", "--output-file", Some("x.o")),
            ("--output-file=x.o", "--output-file", Some("x.o")),
            ("-Iinclude", "--include-path", Some("include")),
            ("-DX=1", "--define-macro", Some("X=1")),
            ("-O3", "--optimize", Some("3")),
            ("-t4", "--threads", Some("4")),
            ("-gencode=arch=a,code=b", "--generate-code", Some("arch=a,code=b")),
            ("-MD", "--generate-dependencies-with-compile", None),
        ];
        for (argument, long, value) in cases {
            let (option, found) = lookup(argument).unwrap_or_else(|| panic!("{argument} is not found"));
            assert_eq!((option.long, found), (long, value), "{argument}");
        }
        assert_eq!(lookup("-fPIC"), None);
        assert_eq!(lookup("a.cu"), None);
    }
}
