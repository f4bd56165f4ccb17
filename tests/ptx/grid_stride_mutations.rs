//! Grid-stride loops with random changes of their PTX: what is still proved to do the same in a grid of any size does so in the
//! interpreter.

use super::grid_stride::compiled_text;
use super::interpreted::written;
use crate::support::full::random_cases;
use nvtune::analysis::grid_stride;
use nvtune::launch::Launch;
use nvtune::ptx::{Module, isolate_entry};
use nvtune::workload::random::Random;

/// Blocks and threads of a block.
const LAUNCHES: [(u32, u32); 4] = [(1, 1), (1, 3), (2, 4), (3, 16)];

/// Words that may stand for each other in an opcode.
const ALTERNATIVES: [&[&str]; 8] = [
    &[".lt.", ".le.", ".gt.", ".ge.", ".eq.", ".ne."],
    &[".s32", ".u32", ".b32"],
    &[".s64", ".u64", ".b64"],
    &["add.", "sub.", "xor.", "max."],
    &["mul.lo", "mul.hi"],
    &["mul.wide", "mad.wide"],
    &["ld.global", "ld.global.nc"],
    &["%tid.x", "%ctaid.x", "%ntid.x", "%nctaid.x", "%laneid", "%tid.y"],
];

/// A kernel's text, line by line.
struct Mutant {
    random: Random,
    lines: Vec<String>,
}

impl Mutant {
    fn new(text: &str, seed: u64) -> Self {
        let mut mutant = Self { random: Random::new(seed), lines: text.lines().map(str::to_owned).collect() };
        for _ in 0..=mutant.below(3) {
            mutant.mutate();
        }
        mutant
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.random.next_u64() % limit as u64) as usize
    }

    /// The place of an instruction.
    fn instruction(&mut self) -> usize {
        let is_instruction = |line: &&String| line.starts_with('\t') && line.ends_with(';') && !line.contains(".reg");
        let places: Vec<usize> =
            self.lines.iter().enumerate().filter(|(_, line)| is_instruction(line)).map(|(at, _)| at).collect();
        places[self.below(places.len())]
    }

    fn mutate(&mut self) {
        let at = self.instruction();
        match self.below(12) {
            0 => self.lines[at].clear(),
            1 => {
                let other = self.instruction();
                let line = self.lines[at].clone();
                self.lines.insert(other, line);
            }
            2 => {
                let other = self.instruction();
                let line = self.lines.remove(at);
                self.lines.insert(other.min(self.lines.len()), line);
            }
            3..6 => self.replace_register(at),
            6..8 => self.replace_number(at),
            8 => self.change_guard(at),
            _ => self.replace_word(at),
        }
    }

    /// Puts a register of another instruction, of the same kind, in the place of one here.
    fn replace_register(&mut self, at: usize) {
        let here = registers(&self.lines[at]);
        let all: Vec<String> = self.lines.iter().flat_map(|line| registers(line)).collect();
        if here.is_empty() {
            return;
        }
        let old = here[self.below(here.len())].clone();
        let kind = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        let same: Vec<&String> = all.iter().filter(|name| kind(name) == kind(&old)).collect();
        let new = same[self.below(same.len())].clone();
        self.lines[at] = replace_once(&self.lines[at], &old, &new, |c| !c.is_ascii_digit());
    }

    fn replace_number(&mut self, at: usize) {
        let new = [" 0", " 1", " 2", " 3", " 4", " 8", " -4"][self.below(7)];
        let line = &self.lines[at];
        let number = line.split([',', ';']).rfind(|part| part.trim().parse::<i64>().is_ok()).map(str::to_owned);
        if let Some(number) = number {
            self.lines[at] = line.replacen(&format!(",{number}"), &format!(",{new}"), 1);
        } else if let Some((start, rest)) = line.split_once(']').filter(|_| line.contains("global")) {
            self.lines[at] = format!("{start}+{}]{rest}", new.trim());
        }
    }

    fn change_guard(&mut self, at: usize) {
        let line = self.lines[at].trim_start().to_owned();
        let changed = match line.strip_prefix('@') {
            Some(rest) if rest.starts_with('!') => format!("@{}", &rest[1..]),
            Some(rest) => format!("@!{rest}"),
            None => format!("@%p1 {line}"),
        };
        self.lines[at] = format!("\t{changed}");
    }

    fn replace_word(&mut self, at: usize) {
        let words = ALTERNATIVES[self.below(ALTERNATIVES.len())];
        let new = words[self.below(words.len())];
        if let Some(old) = words.iter().find(|word| self.lines[at].contains(**word)) {
            self.lines[at] = self.lines[at].replacen(old, new, 1);
        }
    }
}

fn registers(line: &str) -> Vec<String> {
    let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '%');
    let is_register = |word: &&str| {
        let digits = word.trim_start_matches(|c: char| c == '%' || c.is_ascii_alphabetic());
        word.starts_with('%') && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    words.filter(is_register).map(str::to_owned).collect()
}

/// Replaces the first occurrence of a word that nothing follows which would make it another word.
fn replace_once(line: &str, old: &str, new: &str, ends: impl Fn(char) -> bool) -> String {
    let place = line.match_indices(old).find(|(at, _)| line[at + old.len()..].chars().next().is_none_or(&ends));
    place.map_or_else(|| line.to_owned(), |(at, _)| format!("{}{new}{}", &line[..at], &line[at + old.len()..]))
}

fn launch((blocks, threads): (u32, u32)) -> Launch {
    Launch { grid: [blocks, 1, 1], block: [threads, 1, 1], shared: 0, carveout: None, coarsening: None }
}

#[test]
fn kernel_that_is_proved_writes_the_same_in_each_grid() {
    let text = compiled_text("tests/ptx/grid_stride.cu", 90);
    let module = Module::parse(&text).expect("PTX");
    let kernels: Vec<(String, String)> = module
        .functions
        .iter()
        .filter(|function| function.entry)
        .map(|kernel| (kernel.name.to_string(), isolate_entry(&text, &kernel.name).expect("the kernel")))
        .collect();
    let cases = random_cases(400, 20_000);
    let (mut proved, mut refused, mut unknown) = (0, 0, 0);
    for seed in 0..u64::from(cases) {
        let (symbol, text) = &kernels[seed as usize % kernels.len()];
        let text = Mutant::new(text, seed).lines.join("\n");
        let Ok(module) = Module::parse(&text) else { continue };
        if grid_stride::find(&module, symbol).is_none() {
            refused += 1;
            continue;
        }
        let mut results = LAUNCHES.map(launch).map(|launch| written(&module, symbol, &launch)).into_iter();
        let first = results.next().flatten();
        if first.is_none() {
            unknown += 1;
        }
        assert!(results.all(|result| result == first), "seed {seed}\n{text}");
        proved += 1;
    }
    assert!(
        proved > cases / 20 && refused > cases / 20 && unknown < proved / 4,
        "{proved}, {refused} and {unknown} of {cases}"
    );
}
