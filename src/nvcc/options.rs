//! nvcc's option table, read from `options.tsv`: which options exist and how each takes its
//! value.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

const TEXT: &str = include_str!("options.tsv");

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

/// Short options whose value may be glued to them (`-Iinclude`, `-O3`); no other option allows
/// it.
const GLUED: [&str; 8] = ["-I", "-D", "-U", "-L", "-l", "-O", "-t", "-m"];

/// The rows of the text, read by the compiler: a call that is handed over has no time to fill a
/// table.
static TABLE: [NvccOption; rows(TEXT)] = table(TEXT);

const fn rows(mut text: &str) -> usize {
    let mut count = 0;
    while !text.is_empty() {
        let (line, rest) = cut(text, b'\n');
        count += !is_remark(line) as usize;
        text = rest;
    }
    count
}

/// Does not compile where a row is not as the others.
const fn table<const ROWS: usize>(mut text: &'static str) -> [NvccOption; ROWS] {
    let mut table = [NvccOption { long: "", short: "", arity: Arity::Flag }; ROWS];
    let mut row = 0;
    while !text.is_empty() {
        let (line, rest) = cut(text, b'\n');
        if !is_remark(line) {
            let (long, columns) = cut(line, b'\t');
            let (short, columns) = cut(columns, b'\t');
            let (arity, _) = cut(columns, b'\t');
            let arity = match arity.as_bytes() {
                b"flag" => Arity::Flag,
                b"value" => Arity::Value,
                b"list" => Arity::List,
                _ => panic!("options.tsv: an option is a flag or takes a value or a list"),
            };
            table[row] = NvccOption { long, short, arity };
            row += 1;
        }
        text = rest;
    }
    table
}

/// What stands before the first `at`, and what behind it.
const fn cut(text: &str, at: u8) -> (&str, &str) {
    let mut end = 0;
    while end < text.len() && text.as_bytes()[end] != at {
        end += 1;
    }
    let (head, tail) = text.split_at(end);
    (head, if tail.is_empty() { tail } else { tail.split_at(1).1 })
}

const fn is_remark(line: &str) -> bool {
    line.is_empty() || line.as_bytes()[0] == b'#'
}

/// The row of a name, long or short.
fn row(name: &str) -> Option<NvccOption> {
    if !name.starts_with('-') {
        return None;
    }
    let long = TABLE.iter().find(|option| option.long == name);
    long.or_else(|| TABLE.iter().find(|option| option.short == name)).copied()
}

/// Finds the option that `argument` is, and the value that is part of the argument itself, if
/// any.
pub fn lookup(argument: &str) -> Option<(NvccOption, Option<&str>)> {
    if let Some(option) = row(argument) {
        return Some((option, None));
    }
    if let Some((name, value)) = argument.split_once('=')
        && let Some(option) = row(name)
        && option.arity != Arity::Flag
    {
        return Some((option, Some(value)));
    }
    let glued = GLUED.iter().find(|short| argument.starts_with(**short))?;
    Some((row(glued)?, Some(&argument[glued.len()..])))
}

/// The values of a list as nvcc splits it: at commas outside double quotes, which stay.
pub fn list_values(value: &OsStr) -> Vec<OsString> {
    let (mut values, mut quoted) = (vec![Vec::new()], false);
    for &byte in value.as_bytes() {
        quoted ^= byte == b'"';
        match values.last_mut() {
            Some(last) if byte != b',' || quoted => last.push(byte),
            _ => values.push(Vec::new()),
        }
    }
    values.into_iter().map(OsString::from_vec).collect()
}

/// `value` as one value of a list, though it has commas: in double quotes, which reach the
/// shell that nvcc starts.
pub fn list_value(value: &OsStr) -> OsString {
    let mut quoted = value.to_owned();
    if value.as_bytes().contains(&b',') {
        quoted = OsString::from("\"");
        quoted.push(value);
        quoted.push("\"");
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_read() {
        let lines: Vec<&str> = TEXT.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines.len(), TABLE.len());
        for (line, option) in lines.into_iter().zip(TABLE) {
            let arity = format!("{:?}", option.arity).to_lowercase();
            assert!(line.starts_with(&format!("{}\t{}\t{arity}", option.long, option.short)), "{line}");
            assert_eq!(row(option.long), Some(option), "{line}");
            // Two long names share `-MF`.
            assert_eq!(
                row(option.short).map(|found| (found.short, found.arity)),
                Some((option.short, option.arity)),
                "{line}"
            );
        }
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
        for (list, values) in [("a,b", vec!["a", "b"]), ("\"a,b\",c", vec!["\"a,b\"", "c"]), ("", vec![""])] {
            assert_eq!(list_values(OsStr::new(list)), values, "{list}");
        }
        assert_eq!(list_value(OsStr::new("a,b c")), "\"a,b c\"");
        assert_eq!(list_value(OsStr::new("a b")), "a b");
        assert_eq!(lookup("-fPIC"), None);
        assert_eq!(lookup("a.cu"), None);
    }
}
