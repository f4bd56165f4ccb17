//! nvtune in nvcc's place, seen from the build: the same command lines through both, and whole builds of every kind.
//!
//! `make test` runs a part of each check. `make test-full` runs all of them, and keeps their outcomes in `tests/FULL.txt`.

mod builds;
mod compiler_caches;
mod consumers;
mod differential;
mod documented;
mod forms;
mod inherited;
mod lines;
mod options;
mod parallel;
mod projects;
mod sandbox;
