//! What nvtune says to the user, all of it on standard error, in nvcc's own form.

use std::cell::Cell;

/// Prints messages and remembers whether one of them must fail the build.
#[derive(Debug, Default)]
pub struct Console {
    strict: bool,
    failed: Cell<bool>,
}

impl Console {
    /// With `strict`, warnings are errors.
    pub fn new(strict: bool) -> Self {
        Self { strict, failed: Cell::new(false) }
    }

    /// Something that keeps a kernel from being tuned, or that the user surely wants to know.
    pub fn warning(&self, message: &str) {
        if self.strict {
            self.failed.set(true);
            eprintln!("nvtune error   : {message}");
        } else {
            eprintln!("nvtune warning : {message}");
        }
    }

    /// Something that ends the call.
    pub fn fatal(&self, message: &str) {
        self.failed.set(true);
        eprintln!("nvtune fatal   : {message}");
    }

    /// The one line that says what was decided for a kernel.
    pub fn summary(&self, message: &str) {
        eprintln!("nvtune: {message}");
    }

    /// A diagnostic that is already in the compiler's form.
    pub fn diagnostic(&self, text: &impl std::fmt::Display) {
        eprintln!("{text}");
    }

    /// Whether the build must not go on.
    pub fn failed(&self) -> bool {
        self.failed.get()
    }
}
