//! What the book has users write into their build files, so that the tests build with that and nothing else.

use crate::support::book;

/// The first block of code of this kind (```` ```make ````) behind a heading of a recipe, a page in `docs/recipes/`.
pub fn block(recipe: &str, heading: &str, kind: &str) -> String {
    let text = book::page(&format!("docs/recipes/{recipe}"));
    let section = text.split_once(&format!("# {heading}\n")).map(|(_, section)| section).expect(heading);
    let blocks = book::blocks(section, kind);
    blocks.first().map(|block| (*block).to_owned()).unwrap_or_else(|| panic!("{recipe}, {heading}: no {kind}"))
}
