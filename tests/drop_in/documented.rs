//! What the man pages tell users to write into their build files, so that the tests build with that and nothing else.

use std::path::Path;

/// The first block of code of this kind (```` ```make ````) behind a heading of a page in `man/`.
pub fn block(page: &str, heading: &str, kind: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man").join(page);
    let text = std::fs::read_to_string(&path).expect(page);
    let section = text.split_once(&format!("# {heading}\n")).map(|(_, section)| section).expect(heading);
    let block = section.split_once(&format!("```{kind}\n")).and_then(|(_, rest)| rest.split_once("```\n"));
    block.map(|(block, _)| block.to_owned()).unwrap_or_else(|| panic!("{page}, {heading}: no {kind}"))
}
