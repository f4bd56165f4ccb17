//! The processes that descend from one: what a signal must reach that only its ancestor was sent.

/// The living descendants of `ancestor`, children before their own children; none where the system does not tell (no `/proc`).
pub fn of(ancestor: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(text) = std::fs::read(entry.path().join("stat")) else { continue };
        parents.extend(parent(&text).map(|parent| (process, parent)));
    }
    let mut found = vec![ancestor];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        let children = parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process);
        let new: Vec<u32> = children.filter(|process| !found.contains(process)).collect();
        found.extend(new);
        next += 1;
    }
    found.remove(0);
    found
}

/// Whether a process is there and has not ended.
pub fn is_running(process: u32) -> bool {
    std::fs::read(format!("/proc/{process}/stat")).is_ok_and(|text| parent(&text).is_some())
}

/// The parent in the text of `/proc/PID/stat`; the name before it is in brackets and may hold anything. A dead process that
/// waits to be collected is none of ours to care for.
fn parent(stat: &[u8]) -> Option<u32> {
    let end = memchr::memrchr(b')', stat)?;
    let mut words = std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace();
    let state = words.next()?;
    let parent = words.next()?.parse().ok()?;
    (state != "Z").then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_stands_behind_the_name_whatever_that_is() {
        for (text, found) in [
            ("12 (sh) S 7 12 12 0", Some(7)),
            ("12 (a) b) (c) R 8 1", Some(8)),
            ("12 (sh) Z 7 12", None),
            ("12 (sh", None),
            ("", None),
        ] {
            assert_eq!(parent(text.as_bytes()), found, "{text}");
        }
    }
}
