//! Bytes as PTX text -> the module, its canonical text, and the text under register caps.
//!
//! Invariant: no panic; a text that can be read can be read again once a cap is written into it, with as many lines.

use nvtune::ptx::Module;
use nvtune::ptx::directives::set_register_cap;

pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(module) = Module::parse(&text) else { return };
    for entry in module.functions.iter().filter(|function| function.entry && function.body.is_some()) {
        let _ = module.canonical_text(&entry.name);
        let capped = set_register_cap(&text, &entry.name, 40).expect("a body to write the cap before");
        assert_eq!(capped.matches('\n').count(), text.matches('\n').count());
        let again = Module::parse(&capped).expect("what could be read can be read again");
        let entry = again.entry(&entry.name).expect("the same kernel");
        let caps = entry.directives.iter().filter(|directive| &*directive.name == ".maxnreg");
        assert_eq!(caps.map(|directive| directive.values.as_slice()).collect::<Vec<_>>(), [[40]]);
    }
}
