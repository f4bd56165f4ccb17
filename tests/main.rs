//! All tests that need no GPU, in one program: `cargo test --test main MODULE::` runs those of one module.
//!
//! [README.md](README.md) lists what each module guards.

mod support;

mod advice;
mod book;
mod cache;
mod capture;
mod clauses;
mod comment;
mod conformance;
mod cubin;
mod device_code;
mod dispatch;
mod drop_in;
mod end_to_end;
mod faults;
mod fixtures;
mod frequency;
mod fuzzing;
mod header;
mod host_code;
mod init;
mod language;
mod layers;
mod measure;
mod memory;
mod messages;
mod model;
mod packages;
mod ptx;
mod results;
mod space;
mod suite;
mod together;
mod workload;
