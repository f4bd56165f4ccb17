//! nvtune in nvcc's place, seen from the build: the same command lines through both, and whole builds of every kind.
//!
//! A quick part runs always; `make test-full` (NVTUNE_TEST_FULL=1) runs all of it and keeps what it says in `tests/FULL.txt`.

mod builds;
mod compiler_caches;
mod consumers;
mod differential;
mod documented;
mod forms;
mod full;
mod inherited;
mod lines;
mod options;
mod parallel;
mod projects;
mod sandbox;
