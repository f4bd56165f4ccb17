//! The canonical text of an entry: equal for equal code, whatever its names and places.

use super::*;

/// Returns a module's text with the canonical text of its entry `gcds` and the entry's name.
fn control() -> (String, String, String) {
    let text = fixtures::ptx("control/sm_90");
    let module = Module::parse(&text).unwrap();
    let entry = module.functions.iter().find(|f| f.entry && f.name.contains("gcds")).unwrap().name.to_string();
    let canonical = module.canonical_text(&entry).unwrap();
    (text, entry, canonical)
}

#[test]
fn canonical_text_has_no_names() {
    let (_, _, canonical) = control();
    assert!(!canonical.contains("gcd") && !canonical.contains("%r") && canonical.contains("rem.s32"), "{canonical}");
}

#[test]
fn canonical_text_is_independent_of_line_information() {
    let (_, entry, canonical) = control();
    let with_lines = fixtures::ptx("control/sm_90.lineinfo");
    assert_eq!(Module::parse(&with_lines).unwrap().canonical_text(&entry).unwrap(), canonical);
}

#[test]
fn canonical_text_is_independent_of_names_and_places() {
    let (text, _, canonical) = control();
    let renamed =
        text.replace("%r", "%q").replace("$L__BB", "$M__").replace("_Z4gcdsPKiS0_Pi", "other").replace("_Z3gcdii", "f");
    let renamed = format!("{}// moved\n\n.global .u32 unused;\n{}", "", renamed);
    assert_eq!(Module::parse(&renamed).unwrap().canonical_text("other").unwrap(), canonical);
}

#[test]
fn canonical_text_differs_by_operation() {
    let (text, entry, canonical) = control();
    let rem = text.replace("rem.s32", "rem.u32");
    assert_ne!(Module::parse(&rem).unwrap().canonical_text(&entry).unwrap(), canonical);
}

#[test]
fn canonical_text_differs_by_directive() {
    let (text, entry, canonical) = control();
    let capped = set_register_cap(&text, &entry, 32).unwrap();
    assert_ne!(Module::parse(&capped).unwrap().canonical_text(&entry).unwrap(), canonical);
}

/// Returns the canonical text of [`EVERYTHING`] with another initial value.
fn with_initial_value(value: &str) -> String {
    let text = EVERYTHING.replace("0f40400000", value);
    Module::parse(&text).unwrap().canonical_text("kernel").unwrap()
}

#[test]
fn canonical_text_differs_by_initial_value() {
    assert_ne!(with_initial_value("0f40400000"), with_initial_value("0f40400001"));
}

#[test]
fn canonical_text_keeps_names_of_linked_functions() {
    assert!(with_initial_value("0f40400000").contains("vprintf"));
}

#[test]
fn missing_entry_has_no_canonical_text() {
    let (text, ..) = control();
    assert_eq!(Module::parse(&text).unwrap().canonical_text("none"), None);
}
