//! What nvtune says to the user, all of it on standard error, in nvcc's own form.

use super::code::MessageCode;
use super::diagnostic::{Diagnostic, errors, render_count, render_messages};
use super::exit_code::{FATAL, SOURCE_ERROR};
use crate::{say, say_on};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::fmt;

/// Prints why a call takes its time. The text ends in its code.
pub fn notice(text: &str) {
    say!("nvtune: {text}");
}

/// Prints a warning of a command, which no other message belongs to.
pub fn warn(code: MessageCode, message: impl fmt::Display) {
    say!("nvtune warning : {}", code.tag(message));
}

/// Prints an error that fails a strict build, or a tool that nvtune stands for.
pub fn error(code: MessageCode, message: impl fmt::Display) {
    say!("nvtune error   : {}", code.tag(message));
}

/// Prints why nvtune cannot go on.
pub fn fatal(code: MessageCode, message: impl fmt::Display) {
    say!("nvtune fatal   : {}", code.tag(message));
}

/// A message of an earlier build, printed again by a build that uses its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordedMessage {
    /// With its code.
    Warning(String),
    /// Places in the source, as they were printed.
    Diagnostics(String),
}

/// Prints messages and remembers whether one of them must fail the build.
#[derive(Debug, Default)]
pub struct Console {
    strict: bool,
    failure: Cell<Option<u8>>,
    /// The source that is compiled, as nvcc was given it.
    source: RefCell<Option<String>>,
    /// How many errors in it were printed.
    errors: Cell<usize>,
    /// How many warnings failed the build because it is strict.
    strict_failures: Cell<usize>,
    /// With their codes.
    deferred: RefCell<Vec<String>>,
    said: RefCell<Vec<RecordedMessage>>,
    /// What waits until something else is said.
    held: RefCell<Option<Vec<HeldMessage>>>,
}

/// A message that waits.
#[derive(Debug)]
pub enum HeldMessage {
    /// With its code.
    Warning(String),
    Diagnostics(Vec<Diagnostic>),
}

impl Console {
    /// With `strict`, warnings are errors.
    pub fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    /// Prints what keeps a kernel from being tuned, or what the user should know.
    pub fn warning(&self, code: MessageCode, message: impl fmt::Display) {
        self.warning_as_kept(&code.tag(message));
    }

    /// Prints a warning whose text ends in its code: one that was kept, as a note of a decision
    /// is.
    pub fn warning_as_kept(&self, message: &str) {
        if let Some(held) = self.held.borrow_mut().as_mut() {
            return held.push(HeldMessage::Warning(message.to_owned()));
        }
        self.said.borrow_mut().push(RecordedMessage::Warning(message.to_owned()));
        if self.strict {
            self.fail(FATAL);
            self.strict_failures.update(|count| count + 1);
            say!("nvtune error   : {message}");
        } else {
            say!("nvtune warning : {message}");
        }
    }

    /// A warning that is worth its line only where nvcc has nothing to say of the same thing.
    pub fn warn_if_the_build_passes(&self, code: MessageCode, message: impl fmt::Display) {
        self.defer_as_kept(code.tag(message));
    }

    /// Defers a warning whose text ends in its code.
    pub fn defer_as_kept(&self, message: String) {
        self.deferred.borrow_mut().push(message);
    }

    /// Whether nvcc's exit code must be waited for.
    pub fn has_deferred(&self) -> bool {
        !self.deferred.borrow().is_empty()
    }

    /// The warnings that wait for nvcc's exit code.
    pub fn deferred(&self) -> Vec<String> {
        self.deferred.borrow().clone()
    }

    /// Prints the deferred warnings.
    pub fn print_deferred(&self) {
        for message in self.deferred.take() {
            self.warning_as_kept(&message);
        }
    }

    /// Prints what ends the call.
    pub fn fatal(&self, code: MessageCode, message: impl fmt::Display) {
        self.fail(FATAL);
        fatal(code, message);
    }

    /// The one line that says what was decided for a kernel.
    pub fn summary(&self, message: &str) {
        say!("nvtune: {message}");
    }

    /// From now on errors are counted for this source, whichever of its files they are in.
    pub fn compiling(&self, source: &str) {
        self.print_error_count();
        *self.source.borrow_mut() = Some(source.to_owned());
    }

    /// Says how many errors there were in the source, once nothing else is said of it.
    pub fn print_error_count(&self) {
        let text = render_count(self.errors.take(), self.source.borrow().as_deref().unwrap_or_default());
        if !text.is_empty() {
            say_on!("{text}");
        }
    }

    /// Prints what the call ends with: the errors of the last source, and the warnings that
    /// failed a strict build.
    pub fn print_end(&self) {
        self.print_error_count();
        let count = self.strict_failures.take();
        if count > 0 {
            let (warnings, them) =
                if count == 1 { ("1 warning", "it") } else { (&*format!("{count} warnings"), "them") };
            error(
                MessageCode::StrictWarnings,
                format!(
                    "NVTUNE_STRICT turns {warnings} into errors: correct what caused {them}, or unset NVTUNE_STRICT"
                ),
            );
        }
    }

    /// What is wrong with a source, with its places.
    pub fn diagnostics(&self, diagnostics: &[Diagnostic]) {
        if let Some(held) = self.held.borrow_mut().as_mut() {
            return held.push(HeldMessage::Diagnostics(diagnostics.to_vec()));
        }
        if self.strict && !diagnostics.is_empty() || errors(diagnostics) > 0 {
            self.fail(SOURCE_ERROR);
        }
        let text = render_messages(diagnostics);
        // Two instances of a template have one comment, and so the same to say.
        let is_news =
            !self.said.borrow().iter().any(|said| matches!(said, RecordedMessage::Diagnostics(said) if *said == text));
        if is_news && !text.is_empty() {
            say_on!("{text}");
            self.errors.update(|count| count + errors(diagnostics));
            if self.strict {
                self.strict_failures.update(|count| count + diagnostics.len() - errors(diagnostics));
            }
            self.said.borrow_mut().push(RecordedMessage::Diagnostics(text));
        }
    }

    /// From now on warnings and diagnostics wait, where this is to be so: what comes before
    /// them is not known yet.
    pub fn hold(&self, is_to_be: bool) {
        *self.held.borrow_mut() = is_to_be.then(Vec::new);
    }

    /// Lets nothing wait any more; gives what did.
    pub fn release(&self) -> Vec<HeldMessage> {
        self.held.take().unwrap_or_default()
    }

    /// Says what waited.
    pub fn say(&self, held: Vec<HeldMessage>) {
        for message in held {
            match message {
                HeldMessage::Warning(message) => self.warning_as_kept(&message),
                HeldMessage::Diagnostics(diagnostics) => self.diagnostics(&diagnostics),
            }
        }
    }

    /// The warnings and diagnostics so far.
    pub fn said(&self) -> Vec<RecordedMessage> {
        self.said.borrow().clone()
    }

    /// Says again what a build before this one said of the same thing.
    pub fn repeat(&self, said: &[RecordedMessage]) {
        for said in said {
            match said {
                RecordedMessage::Warning(message) => self.warning_as_kept(message),
                RecordedMessage::Diagnostics(text) => {
                    if self.strict {
                        self.fail(SOURCE_ERROR);
                        self.strict_failures.update(|count| count + warnings_in(text));
                    }
                    say_on!("{text}");
                }
            }
        }
    }

    /// The exit code that the build must end with, where one of the messages forbids to go on.
    pub fn failure(&self) -> Option<u8> {
        self.failure.get()
    }

    fn fail(&self, code: u8) {
        self.failure.set(self.failure.get().or(Some(code)));
    }
}

/// Counts the warnings among diagnostics as they were printed.
fn warnings_in(text: &str) -> usize {
    text.lines().filter(|line| line.contains("): warning: ")).count()
}
