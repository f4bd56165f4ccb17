//! Words that other tools have for what a clause says -> how it is said here.
//!
//! No slip of the pen leads from `maxrregcount` to `regs`, so that the nearest name would not
//! find it.

/// Words without `_` and capitals, and what to write instead.
const WORDS: [(&[&str], &str); 12] = [
    (
        &["maxrregcount", "maxregcount", "maxnreg", "maxregs", "maxregisters", "registers", "numregs"],
        "register caps are `regs`, as in regs({0, 32, 64})",
    ),
    (
        &["launchbounds", "maxntid", "reqntid", "minnctapersm", "minblocks", "maxthreads"],
        "write block(64:256:32), or regs(auto) for register caps",
    ),
    (&["blockdim", "blocksize", "threadsperblock", "ntid"], "blocks are `block`, as in block(64:256:32)"),
    (&["griddim", "gridsize", "numblocks", "nblocks", "nctaid"], "the blocks of a grid are `grid`, as in grid(rows)"),
    (
        &["size", "problemsize", "workitems", "globalsize", "elements"],
        "the threads of the whole grid are `threads`, as in threads(n)",
    ),
    (
        &["smem", "shmem", "sharedmem", "sharedmemory", "dynamicshared"],
        "dynamic shared memory is `shared`, as in shared(block.x * 4)",
    ),
    (
        &["macro", "macros", "param", "params", "parameter", "parameters", "tunable", "unroll"],
        "macros that vary are `define`, as in define(UNROLL = {1, 2, 4})",
    ),
    (
        &["arguments", "input", "inputs", "workload", "data"],
        "what the kernel is timed on is `args`, as in args(n = 1 << 20, x = random[n])",
    ),
    (
        &["constraint", "constraints", "restrictions", "restrict", "where", "assert"],
        "constraints are `require`, as in require(block.x >= 64)",
    ),
    (&["baseline", "defaults", "initial"], "the baseline is `default`, as in default(block = 256)"),
    (
        &["tolerance", "rtol", "atol", "output", "outputs", "verify", "validate", "answer"],
        "compared results are `check`, as in check(y, rtol = 1e-5)",
    ),
    (
        &["instance", "instantiate", "instances", "types"],
        "an instance of a template is `template`, as in template(float, 4)",
    ),
];

/// What to write instead of a word that is no clause.
pub(super) fn meant(word: &str) -> Option<&'static str> {
    let plain = word.replace('_', "").to_lowercase();
    WORDS.iter().find(|(words, _)| words.contains(&plain.as_str())).map(|(_, remedy)| *remedy)
}
