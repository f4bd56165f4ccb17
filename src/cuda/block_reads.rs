//! Device code with what it calls -> the extents of the block that it reads, by its words.

use super::host_program::HostProgram;
use super::tokens::{CxxKind, cxx_tokens, member_dimension};
use std::collections::BTreeSet;
use std::ops::Range;

/// Names of cooperative groups, which read the whole block.
const GROUPS: [&str; 4] = ["cooperative_groups", "this_thread_block", "this_grid", "thread_rank"];

/// The most functions and macros that are looked into; code with more may read anything.
const MOST_CALLED: usize = 256;

/// Whether a word reads the size of the block, or may.
pub(super) fn names_block_size(word: &str) -> bool {
    word == "blockDim" || GROUPS.contains(&word)
}

impl HostProgram {
    /// Tells for each dimension whether code of a file reads `blockDim`, itself or through
    /// functions and macros.
    pub fn reads_block(&self, path: &str, code: Range<usize>) -> [bool; 3] {
        let mut reads = [false; 3];
        let Some(file) = self.files.iter().position(|file| file.path == path) else { return [true; 3] };
        let own = self.files[file].text.get(code).unwrap_or("");
        let mut pending: Vec<(usize, &str)> = vec![(file, own)];
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        while let Some((file, text)) = pending.pop() {
            let tokens = cxx_tokens(text);
            let word = |at: usize| tokens.get(at).map_or("", |token| &text[token.span.start..token.span.end]);
            for at in (0..tokens.len()).filter(|&at| tokens[at].kind == CxxKind::Name) {
                let name = word(at);
                if names_block_size(name) {
                    match member_dimension(word(at + 1), word(at + 2)) {
                        Some(dimension) => reads[dimension] = true,
                        None => reads = [true; 3],
                    }
                } else if !seen.contains(name) {
                    let before = pending.len();
                    pending.extend(self.macro_of(file, name).map(|found| (file, found.body.as_str())));
                    let called = self.functions.get(name).into_iter().flatten();
                    pending.extend(called.map(|place| (place.file, self.slice(place))));
                    if pending.len() > before {
                        seen.insert(name);
                    }
                    if seen.len() > MOST_CALLED {
                        return [true; 3];
                    }
                }
            }
        }
        reads
    }
}

#[cfg(test)]
mod tests {
    use super::HostProgram;

    #[test]
    fn block_is_read_through_functions_and_macros() {
        let head = "#define ROW (blockIdx.y * blockDim.y)\n__device__ int column() { return threadIdx.x + blockDim.x; }\n\
            __device__ int again() { return again(); }\nnamespace cg = cooperative_groups;\n";
        for (body, expected) in [
            ("x[threadIdx.x] = 1;", [false; 3]),
            ("x[blockIdx.x * blockDim.x + threadIdx.y] = 1; // blockDim.y", [true, false, false]),
            ("x[column()] = again();", [true, false, false]),
            ("x[ROW] = 1;", [false, true, false]),
            ("dim3 all = blockDim;", [true; 3]),
            ("x[cg::this_thread_block().size()] = 1;", [true; 3]),
        ] {
            let text = format!("{head}{body}");
            let program = HostProgram::new(&[("a.cu".to_owned(), text.clone())], &[], &[]);
            assert_eq!(program.reads_block("a.cu", head.len()..text.len()), expected, "{body}");
        }
    }

    #[test]
    fn only_functions_and_macros_count_among_what_is_looked_into() {
        let helper = "__device__ int column() { return blockDim.x; }\n";
        let words: String = (0..300).map(|at| format!("int v{at}; ")).collect();
        let macros: String = (0..300).map(|at| format!("#define M{at} 1\n")).collect();
        let read: String = (0..300).map(|at| format!("M{at}; ")).collect();
        for (head, body, expected) in
            [(helper.to_owned(), format!("{words} column();"), [true, false, false]), (macros, read, [true; 3])]
        {
            let text = format!("{head}{body}");
            let program = HostProgram::new(&[("a.cu".to_owned(), text.clone())], &[], &[]);
            assert_eq!(program.reads_block("a.cu", head.len()..text.len()), expected, "{body}");
        }
    }
}
