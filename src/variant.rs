//! Invocation + configuration -> variant: the PTX of a set of macros and the cubin of a register cap and cache operator.
//!
//! nvcc is never run for a variant: the front end (`gcc -E`, `cicc`) runs once for each set of macros and
//! `ptxas --entry` once for each register cap and cache operator, each as `nvcc --dryrun` printed it.

