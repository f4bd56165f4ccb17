//! PTX that was made with `-lineinfo` -> the source line of each PTX line.

use crate::ptx::Module;
use std::collections::HashMap;

/// A line of a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Place {
    pub file: String,
    /// 1-based.
    pub line: u32,
    /// 1-based.
    pub column: u32,
}

/// The `.loc` directives of a PTX text.
#[derive(Debug, Default)]
pub struct SourceLines {
    files: HashMap<u32, String>,
    /// The PTX line of each directive and what it says, ascending.
    places: Vec<(u32, Location)>,
    /// By PTX line from 1: whether the instruction there accesses a local array of the source.
    local: Vec<bool>,
}

/// File, line and column.
type Location = (u32, u32, u32);

impl SourceLines {
    /// Reads the directives. Code of a function that was inlined belongs to the place of its
    /// call if it is in another file than the kernel's source, `source`.
    pub fn new(ptx: &str, source: &str) -> Self {
        let mut lines = Self::default();
        let mut directives: Vec<(u32, Location, Option<Location>)> = Vec::new();
        for (text, number) in ptx.lines().zip(1u32..) {
            let text = text.trim_start();
            lines.local.push(text.contains("ld.local") || text.contains("st.local"));
            if let Some((index, path)) = text.strip_prefix(".file").and_then(file_directive) {
                // By the name that the user gave it.
                let path = if is_same_file(&path, source) { source.to_owned() } else { path };
                lines.files.insert(index, path);
            } else if let Some((own, call)) = text.strip_prefix(".loc").and_then(loc_directive) {
                directives.push((number, own, call));
            }
        }
        let is_own = |(file, ..): Location| lines.files.get(&file).is_some_and(|path| path == source);
        lines.places = directives
            .iter()
            .map(|&(number, own, call)| (number, if is_own(own) { own } else { call.unwrap_or(own) }))
            .collect();
        lines
    }

    /// Returns the source line of a PTX line.
    pub fn place(&self, ptx_line: u32) -> Option<Place> {
        let after = self.places.partition_point(|(number, _)| *number <= ptx_line);
        let (_, (file, line, column)) = *self.places.get(after.checked_sub(1)?)?;
        Some(Place { file: self.files.get(&file)?.clone(), line, column: column.max(1) })
    }

    /// Returns the source line of the first instruction of a kernel.
    pub fn first_of(&self, module: &Module, symbol: &str) -> Option<Place> {
        let body = module.entry(symbol)?.body.as_ref()?;
        body.instructions().find_map(|instruction| self.place(instruction.line))
    }

    /// Tells whether the instruction of a PTX line accesses a local array: ptxas spills nothing
    /// there.
    pub fn is_local_array(&self, ptx_line: u32) -> bool {
        (ptx_line as usize).checked_sub(1).and_then(|index| self.local.get(index)).copied().unwrap_or(false)
    }
}

fn is_same_file(path: &str, source: &str) -> bool {
    path == source || path.strip_suffix(source).is_some_and(|folder| folder.ends_with('/'))
}

/// `1 "nbody.cu", 1770000000, 3021`
fn file_directive(text: &str) -> Option<(u32, String)> {
    let (index, rest) = text.trim_start().split_once([' ', '\t'])?;
    let path = rest.trim_start().strip_prefix('"')?.split('"').next()?;
    Some((index.parse().ok()?, path.to_owned()))
}

/// `1 12 5, function_name $L__info_string0, inlined_at 1 20 3`
fn loc_directive(text: &str) -> Option<(Location, Option<Location>)> {
    let own = location(text)?;
    let call = text.split_once("inlined_at").and_then(|(_, rest)| location(rest));
    Some((own, call))
}

fn location(text: &str) -> Option<Location> {
    let mut numbers = text.split([' ', '\t', ',']).filter(|word| !word.is_empty()).map_while(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?, numbers.next().unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\t.file\t1 \"/src/a.cu\"\n.file 2 \"/cuda/math.h\", 1770000000, 3021\n.visible .entry k()\n{\n\
        \t.loc\t1 12 5\n\tld.global.f32 %f1, [%rd1];\n\
        \t.loc\t2 99 1, function_name $L__info_string0, inlined_at 1 13 7\n\tst.local.f32 [%rd2], %f1;\n}\n";

    #[test]
    fn lines_of_the_source_are_those_of_the_directive_before() {
        let lines = SourceLines::new(PTX, "a.cu");
        let place = |line: u32, column: u32| Some(Place { file: "a.cu".to_owned(), line, column });
        assert_eq!(lines.place(4), None);
        assert_eq!(lines.place(6), place(12, 5));
        // What a header has inlined is the caller's.
        assert_eq!(lines.place(8), place(13, 7));
        assert_eq!((lines.is_local_array(6), lines.is_local_array(8), lines.is_local_array(0)), (false, true, false));
    }

    #[test]
    fn malformed_directives_are_left_out() {
        assert_eq!(SourceLines::new(".loc\n.loc x\n.file\n.file 1 a\n.loc 1 2", "a.cu").place(5), None);
    }
}
