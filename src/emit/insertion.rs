//! Insertions into a text.

/// A byte offset in a text, and what to insert there.
pub(super) type Insertion = (usize, String);

/// Returns a text with insertions. Those at one offset keep their order.
pub(super) fn with_insertions(text: &[u8], mut insertions: Vec<Insertion>) -> Vec<u8> {
    insertions.sort_by_key(|(offset, _)| *offset);
    let length = insertions.iter().map(|(_, inserted)| inserted.len()).sum::<usize>();
    let mut changed = Vec::with_capacity(text.len() + length);
    let mut copied = 0;
    for (offset, inserted) in insertions {
        changed.extend_from_slice(&text[copied..offset]);
        changed.extend_from_slice(inserted.as_bytes());
        copied = offset;
    }
    changed.extend_from_slice(&text[copied..]);
    changed
}
