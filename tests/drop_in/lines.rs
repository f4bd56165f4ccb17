//! The command lines that both compilers are given: generated from nvcc's option table, and those of `lines.txt`.

use super::sandbox::Call;

/// A command line with what it is.
#[derive(Clone, Debug)]
pub struct Line {
    /// As it is written, for messages.
    pub text: String,
    pub call: Call,
    pub kind: Kind,
}

impl Line {
    /// Whether nvcc works on several steps at once, in an order of chance.
    pub fn is_threaded(&self) -> bool {
        let text = |word: &std::ffi::OsString| word.to_string_lossy().into_owned();
        self.call.arguments.iter().map(text).any(|word| {
            word.starts_with("--threads")
                || word.strip_prefix("-t").is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphabetic()))
        })
    }
}

/// What must be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everything.
    Same,
    /// Everything but one line of nvtune's own on standard error.
    OneLine,
}

const TABLE: &str = include_str!("../../src/nvcc/options.tsv");

/// A value that nvcc takes for each option that has one; other options get `1`.
const VALUES: &str = include_str!("values.tsv");

const WRITTEN: &str = include_str!("lines.txt");

/// A row of the table.
pub struct Row {
    pub long: &'static str,
    pub short: &'static str,
    pub arity: &'static str,
    /// As in the table: `13.5-`, `-13.0`, `hidden` or empty.
    pub releases: &'static str,
}

/// The rows of the table.
pub fn table() -> impl Iterator<Item = Row> {
    TABLE.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut columns = line.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        Row { long: next(), short: next(), arity: next(), releases: next() }
    })
}

/// Each option in every form in which it can be written, by `--dryrun`: what nvcc understood is in what it prints.
pub fn generated() -> Vec<Line> {
    let mut texts = Vec::new();
    for Row { long, short, arity, .. } in table() {
        let value = VALUES.lines().find_map(|line| line.strip_prefix(long)?.strip_prefix('\t')).unwrap_or("1");
        for name in if long == short { vec![long] } else { vec![long, short] } {
            if arity == "flag" {
                texts.push(format!("--dryrun {name} -c plain.cu -o out.o"));
            } else {
                texts.push(format!("--dryrun {name} '{value}' -c plain.cu"));
                texts.push(format!("--dryrun '{name}={value}' -c plain.cu"));
            }
        }
        if arity == "flag" {
            texts.push(format!("--dryrun {long}=1 -c plain.cu"));
        } else {
            texts.push(format!("--dryrun -c plain.cu {short}"));
            texts.push(format!("--dryrun '{short}{value}' -c plain.cu"));
        }
    }
    texts.iter().map(|text| line(text)).collect()
}

/// The lines of `lines.txt`.
pub fn written() -> Vec<Line> {
    WRITTEN.lines().filter(|text| !text.is_empty() && !text.starts_with('#')).map(line).collect()
}

/// Reads `[one-line] [NAME=value ...] arguments [<file]`, with quotes as in a shell.
fn line(text: &str) -> Line {
    let (kind, rest) = match text.strip_prefix("one-line ") {
        Some(rest) => (Kind::OneLine, rest),
        None => (Kind::Same, text),
    };
    let mut call = Call::default();
    for word in words(rest) {
        if let Some(file) = word.strip_prefix('<') {
            call.stdin = Some(file.to_owned());
            continue;
        }
        match word.split_once('=') {
            Some((name, value))
                if call.arguments.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') =>
            {
                call.environment.push((name.to_owned(), value.to_owned()));
            }
            _ => call.arguments.push(word.into()),
        }
    }
    Line { text: text.to_owned(), call, kind }
}

fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in text.chars() {
        match (character, quote) {
            ('\'', None) => {
                quote = Some('\'');
                word.get_or_insert_default();
            }
            ('\'', Some(_)) => quote = None,
            (' ', None) => words.extend(word.take()),
            (other, _) => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}
