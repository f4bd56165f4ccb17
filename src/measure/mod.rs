//! Candidates -> timings, in a process of their own.
