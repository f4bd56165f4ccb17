//! Threads that depend on each other: what warps and blocks compute together, and how often they execute it.

use super::support::fixtures;

use nvtune::cuda::{Element, Scalar};
use nvtune::launch::Launch;
use nvtune::ptx::MemorySpace;
use nvtune::ptx::Module;
use nvtune::sim::Profile;
use nvtune::sim::{Limits, profile_entry, written_together};
use nvtune::workload::{Argument, Buffer, Fill, Workload, contents};
use std::sync::OnceLock;

struct Case {
    module: Module,
    entry: String,
    launch: Launch,
    workload: Workload,
}

impl Case {
    /// A kernel of `tests/ptx/together.cu`.
    fn of(kernel: &str, grid: u32, block: u32) -> Self {
        static TEXT: OnceLock<String> = OnceLock::new();
        let module = Module::parse(TEXT.get_or_init(|| fixtures::ptx("together/sm_90"))).expect("cicc's PTX parses");
        let entry = module.functions.iter().find(|f| f.entry && f.name.contains(kernel)).expect("the kernel");
        let entry = entry.name.to_string();
        let launch = Launch { grid: [grid, 1, 1], block: [block, 1, 1], shared: 0, carveout: None, coarsening: None };
        Self { module, entry, launch, workload: Workload::default() }
    }

    /// A kernel written by hand, which stores `%r9` of each thread.
    fn by_hand(block: u32, body: &str) -> Self {
        let text = format!(
            ".version 8.6\n.target sm_90\n.address_size 64\n.shared .align 4 .b8 s[1024];\n.entry k(.param .u64 a) {{\n\
             .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>;\nld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x;\n\
             mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\n{body}\nst.global.u32 [%rd3], %r9;\nret;\n}}\n"
        );
        let module = Module::parse(&text).expect("PTX");
        let launch = Launch { grid: [1; 3], block: [block, 1, 1], shared: 0, carveout: None, coarsening: None };
        let case = Self { module, entry: "k".into(), launch, workload: Workload::default() };
        case.buffer(u64::from(block), Fill::Poison)
    }

    fn buffer(mut self, count: u64, fill: Fill) -> Self {
        let index = self.workload.buffers.len();
        let element = Element { scalar: Scalar::U32, lanes: 1 };
        self.workload.arguments.push(Argument::Buffer(index));
        self.workload.buffers.push(Buffer { name: format!("b{index}"), element, count, fill, seed: index as u64 });
        self
    }

    fn int(mut self, value: u32) -> Self {
        self.workload.arguments.push(Argument::Scalar(value.to_le_bytes().to_vec()));
        self
    }

    fn input(&self, buffer: usize) -> Vec<u32> {
        let buffer = &self.workload.buffers[buffer];
        let mut bytes = vec![0; buffer.count as usize * 4];
        assert!(contents::fill_bytes(buffer, 0..buffer.count, &mut bytes));
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    fn profile(&self) -> Profile {
        profile_entry(&self.module, &self.entry, &self.launch, &self.workload, &Limits::default()).expect("a profile")
    }

    /// What a block writes to the elements of a buffer, in order, where it is known.
    fn output(&self, block: u32, buffer: usize) -> Vec<(u64, u32)> {
        let place = [block, 0, 0];
        let limits = Limits::default();
        let bytes = written_together(&self.module, &self.entry, &self.launch, &self.workload, place, &limits);
        let bytes = bytes.expect("it runs");
        let firsts = bytes.keys().filter(|(found, at)| *found == buffer && at % 4 == 0).map(|(_, at)| *at);
        let word = |at: u64| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[&(buffer, at + byte)]));
        firsts.map(|at| (at / 4, word(at))).collect()
    }

    fn values(&self, block: u32, buffer: usize) -> Vec<u32> {
        self.output(block, buffer).into_iter().map(|(_, value)| value).collect()
    }

    /// Lines of the entry whose instruction begins with `opcode`.
    fn lines(&self, opcode: &str) -> Vec<u32> {
        let body = self.module.entry(&self.entry).unwrap().body.as_ref().unwrap();
        body.instructions().filter(|i| i.opcode.text().starts_with(opcode)).map(|i| i.line).collect()
    }

    fn counts(&self, profile: &Profile, opcode: &str) -> Vec<f64> {
        self.lines(opcode).iter().map(|line| profile.counts.get(line).copied().unwrap_or(0.0)).collect()
    }
}

const RANDOM: Fill = Fill::Random { lo: 0.0, hi: 4000.0 };

#[test]
fn ballot_search_runs_to_longest_lane_of_warp() {
    let case = Case::of("probe", 3, 128).int(40).buffer(40, RANDOM).buffer(4096, Fill::Iota).buffer(40, Fill::Poison);
    let keys = case.input(0);
    for block in 0..3 {
        let expected: Vec<(u64, u32)> = (u64::from(block) * 16..40).take(16).map(|i| (i, keys[i as usize])).collect();
        assert_eq!(case.output(block, 2), expected);
    }
    let profile = case.profile();
    assert!(profile.exact);
    // Of the warps that are looked at the longest; a warp has four keys.
    let longest = keys[16..32].iter().map(|key| key % 50 / 8 + 1).max().unwrap();
    let least = keys.iter().map(|key| key % 50 / 8 + 1).max().unwrap();
    let ballots = case.counts(&profile, "vote");
    assert_eq!(ballots.len(), 1);
    assert!(ballots[0] >= f64::from(longest) && ballots[0] <= f64::from(least), "{ballots:?} {longest} {least}");
}

#[test]
fn block_sorts_its_keys_by_rank() {
    let case = Case::of("sorted", 3, 256).buffer(768, RANDOM).buffer(768, Fill::Poison);
    let keys = case.input(0);
    for block in [0, 2] {
        let mut expected = keys[block * 256..][..256].to_vec();
        expected.sort_by_key(|key| key % 16);
        assert_eq!(case.values(block as u32, 1), expected);
    }
    let profile = case.profile();
    assert!(profile.exact);
    // Keys in order: lanes that follow each other mostly write side by side. Sixteen digits, one to four sectors each.
    let store = case.lines("st.global").iter().map(|line| profile.accesses[line]).next().unwrap();
    assert!(store.sectors > 8.0 && store.sectors <= 32.0 && store.lanes == 32.0, "{store:?}");
}

#[test]
fn sum_by_shuffles_and_shared_memory_is_exact() {
    let case = Case::of("summed", 2, 192).buffer(384, RANDOM).buffer(2, Fill::Poison);
    let sum: u32 = case.input(0)[192..].iter().sum();
    assert_eq!(case.output(1, 1), [(1, sum)]);
    let profile = case.profile();
    assert!(profile.exact);
    assert_eq!(case.counts(&profile, "shfl"), [1.0; 5]);
}

#[test]
fn rounds_end_by_vote_at_barrier() {
    // Thread i points at i + 1, the last at itself: after k rounds everybody is 2^k further. Eight rounds change something.
    let case = Case::of("chains", 1, 256).buffer(256, Fill::Iota).buffer(256, Fill::Poison);
    assert_eq!(case.values(0, 1), [255; 256]);
    let profile = case.profile();
    assert!(profile.exact);
    assert_eq!(case.counts(&profile, "bar.sync"), [9.0, 9.0]);
    assert_eq!(case.counts(&profile, "bar.red"), [9.0]);
}

#[test]
fn lock_is_passed_between_lanes_of_warp() {
    let case = Case::of("locked", 1, 64).buffer(1, Fill::Poison);
    assert_eq!(case.output(0, 0), [(0, (0..64).sum())]);
}

#[test]
fn exchange_within_warp_follows_instruction_set() {
    type Expected = fn(u32) -> u32;
    let cases: [(&str, Expected); 14] = [
        ("setp.lt.u32 %p1, %r1, 5; vote.sync.ballot.b32 %r9, %p1, -1;", |_| 0x1f),
        ("setp.lt.u32 %p1, %r1, 5; vote.sync.ballot.b32 %r9, !%p1, -1;", |_| !0x1f),
        ("setp.lt.u32 %p1, %r1, 32; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;", |_| 1),
        ("setp.eq.u32 %p1, %r1, 7; vote.sync.any.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;", |_| 1),
        ("setp.eq.u32 %p1, %r1, 7; vote.sync.uni.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;", |_| 0),
        ("shr.u32 %r2, %r1, 2; match.any.sync.b32 %r9, %r2, -1;", |lane| 0xf << (lane / 4 * 4)),
        ("match.all.sync.b32 %r9|%p1, %r1, -1;\n@!%p1 mov.u32 %r9, 77;", |_| 77),
        ("mov.u32 %r2, 3; match.all.sync.b32 %r9|%p1, %r2, -1;", |_| u32::MAX),
        ("redux.sync.add.u32 %r9, %r1, -1;", |_| 31 * 16),
        ("sub.s32 %r2, 3, %r1; redux.sync.min.s32 %r9, %r2, -1;", |_| -28i32 as u32),
        (
            "shfl.sync.down.b32 %r9|%p1, %r1, 4, 31, -1;\n@!%p1 mov.u32 %r9, 99;",
            |lane| if lane < 28 { lane + 4 } else { 99 },
        ),
        ("shfl.sync.idx.b32 %r9, %r1, 3, 6175, -1;", |lane| lane / 8 * 8 + 3),
        ("mov.u32 %r9, 0; elect.sync %r2|%p1, -1;\n@%p1 mov.u32 %r9, 5;", |lane| if lane == 0 { 5 } else { 0 }),
        // Both sides of a branch have a vote of their own.
        (
            "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;\n@%p1 bra A;\nactivemask.b32 %r9; bra B;\n\
             A: vote.sync.ballot.b32 %r9, %p1, 0x55555555;\nB: bar.warp.sync -1;",
            |lane| 0x5555_5555 << (lane & 1),
        ),
    ];
    for (body, expected) in cases {
        let case = Case::by_hand(32, body);
        assert_eq!(case.values(0, 0), (0..32).map(expected).collect::<Vec<u32>>(), "{body}");
        assert!(case.profile().exact, "{body}");
    }
}

#[test]
fn diverged_warp_executes_paths_of_all_lanes() {
    // Two ways of 5 and 3 additions; then a loop of as many rounds as the lane's number modulo 4, plus 1.
    let body = "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;\n@%p1 bra A;\n\
                add.u32 %r3, %r3, 1;\nadd.u32 %r3, %r3, 1;\nadd.u32 %r3, %r3, 1;\nadd.u32 %r3, %r3, 1;\nadd.u32 %r3, %r3, 1;\nbra B;\n\
                A: sub.u32 %r3, %r3, 1;\nsub.u32 %r3, %r3, 1;\nsub.u32 %r3, %r3, 1;\n\
                B: and.b32 %r4, %r1, 3;\nL: xor.b32 %r9, %r9, %r4; setp.eq.u32 %p2, %r4, 0; sub.u32 %r4, %r4, 1;\n@!%p2 bra L;";
    let profile = Case::by_hand(64, body).profile();
    assert!(profile.exact);
    // 4 before, 3 for the first branch, 6 and 3 for its ways, 1, four rounds of 4, and 2 at the end.
    assert_eq!(profile.mean_instructions, 4.0 + 3.0 + 9.0 + 1.0 + 16.0 + 2.0);
}

#[test]
fn average_warp_is_that_of_whole_grid() {
    let ten = "add.u32 %r3, %r3, 1;\n".repeat(10);
    // Ten additions of the warps for which this does not hold; the part of all warps for which it does not, and that of blocks with such warps.
    for (leaves, part, of_blocks) in [
        ("mov.u32 %r2, %ctaid.x; setp.ge.u32 %p1, %r2, 500;", 500.0 / 528.0, 500.0 / 528.0),
        ("mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r2, 527;", 527.0 / 528.0, 527.0 / 528.0),
        ("mov.u32 %r2, %tid.x; setp.ge.u32 %p1, %r2, 32;", 1.0 / 8.0, 1.0),
        ("mov.u32 %r2, %tid.x; setp.lt.u32 %p1, %r2, 96;", 5.0 / 8.0, 1.0),
        // Idle lanes make a warp no cheaper.
        ("and.b32 %r2, %r1, 31; setp.ne.u32 %p1, %r2, 31;", 1.0, 1.0),
    ] {
        let mut case = Case::by_hand(256, &format!("{leaves}\n@%p1 bra E;\n{ten}E:"));
        case.launch.grid = [528, 1, 1];
        let profile = case.profile();
        let length = |part: f64| 4.0 + 3.0 + 10.0 * part + 2.0;
        let found = [profile.mean_instructions, profile.mean_instructions * profile.straggling];
        for (found, expected) in found.into_iter().zip([length(part), length(of_blocks)]) {
            assert!((found - expected).abs() < 0.005 * expected, "{leaves} {found} for {expected}");
        }
    }
}

#[test]
fn blocks_beyond_data_are_idle() {
    let much = "add.u32 %r3, %r3, 1;\n".repeat(2000);
    // Blocks of the grid, those at its end that only leave, and the share that is idle.
    for (grid, leaving, idle) in [
        (264, 166, 166.0 / 264.0),
        (1056, 665, 665.0 / 1056.0),
        (10_000, 9_609, 0.9609),
        (264, 0, 0.0),
        // The last of a grid is often only in part beyond the data.
        (264, 1, 0.0),
        // What is not worth a mention alone is most of the work together.
        (20_000, 19_999, 0.0),
    ] {
        let leaves = format!("mov.u32 %r2, %ctaid.x; setp.ge.u32 %p1, %r2, {};", grid - leaving);
        let mut case = Case::by_hand(256, &format!("{leaves}\n@%p1 bra E;\n{much}E:"));
        case.launch.grid = [grid, 1, 1];
        let found = case.profile().idle;
        assert!((found - idle).abs() < 0.01, "{leaving} of {grid}: {found}");
    }
}

#[test]
fn block_lasts_as_long_as_its_longest_warp() {
    // A hash of the warp's number in the grid says which warps, an eighth of them, add ten times.
    let ten = "add.u32 %r3, %r3, 1;\n".repeat(10);
    let leaves = "mov.u32 %r2, %ctaid.x; mov.u32 %r4, %tid.x; shr.u32 %r4, %r4, 5; mad.lo.u32 %r2, %r2, %r5, %r4;\n\
                  mul.lo.u32 %r2, %r2, 0x9e3779b1; shr.u32 %r3, %r2, 15; xor.b32 %r2, %r2, %r3;\n\
                  mul.lo.u32 %r2, %r2, 0x85ebca77; shr.u32 %r2, %r2, 29; setp.ne.u32 %p1, %r2, 0;";
    for (threads, warps) in [(64, 2), (256, 8), (1024, 32)] {
        let mut case = Case::by_hand(threads, &format!("mov.u32 %r5, {warps};\n{leaves}\n@%p1 bra E;\n{ten}E:"));
        case.launch.grid = [16384 / warps, 1, 1];
        let profile = case.profile();
        let found = profile.mean_instructions * profile.straggling - (4.0 + 1.0 + 11.0 + 2.0);
        let expected = 10.0 * (1.0 - (7.0_f64 / 8.0).powi(warps as i32));
        assert!((found / expected - 1.0).abs() < 0.5, "{threads}: {found} for {expected}");
    }
}

#[test]
fn longest_warp_is_found_outside_middle_block() {
    // Every eighth warp of the grid adds a hundred times, and is none of the middle block's.
    let hundred = "add.u32 %r3, %r3, 1;\n".repeat(100);
    let leaves = "mov.u32 %r2, %ctaid.x; mov.u32 %r4, %tid.x; shr.u32 %r4, %r4, 5; mad.lo.u32 %r2, %r2, %r5, %r4;\n\
                  and.b32 %r2, %r2, 7; setp.ne.u32 %p1, %r2, 7;";
    let mut case = Case::by_hand(128, &format!("mov.u32 %r5, 4;\n{leaves}\n@%p1 bra E;\n{hundred}E:"));
    case.launch.grid = [4096, 1, 1];
    let profile = case.profile();
    let found = profile.mean_instructions * profile.straggling - (4.0 + 1.0 + 6.0 + 1.0 + 2.0);
    // One of two blocks has such a warp; by the average warp alone it would be an eighth of the additions.
    assert!(found > 20.0 && found < 60.0, "{found}");
}

#[test]
fn blocks_partly_beyond_data_count_by_their_warps() {
    let ten = "add.u32 %r3, %r3, 1;\n".repeat(10);
    // Rows of 160 elements, in blocks of so many rows of so many threads: warps beyond a row's end do nothing.
    for ([x, y], part) in [([64, 1], 5.0 / 6.0), ([64, 4], 5.0 / 6.0), ([96, 2], 5.0 / 6.0), ([160, 2], 1.0)] {
        let leaves = format!("mad.lo.u32 %r2, %r4, {x}, %r5; setp.ge.u32 %p1, %r2, 160;");
        let body = format!("mov.u32 %r4, %ctaid.x; mov.u32 %r5, %tid.x;\n{leaves}\n@%p1 bra E;\n{ten}E:");
        let mut case = Case::by_hand(x, &body);
        case.launch.block = [x, y, 1];
        case.launch.grid = [160u32.div_ceil(x), 80, 80];
        let (found, expected) = (case.profile().mean_instructions, 4.0 + 5.0 + 10.0 * part + 2.0);
        assert!((found - expected).abs() < 0.005 * expected, "{x} x {y}: {found}, expected {expected}");
    }
}

#[test]
fn named_barrier_synchronizes_part_of_block() {
    // The first warp gives the second a value, by a barrier for two warps of three.
    let body = "setp.ge.u32 %p1, %r1, 64;\n@%p1 bra E;\nshl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r4, %r3, %r2;\n\
                setp.ge.u32 %p2, %r1, 32;\n@%p2 bra W;\nadd.u32 %r9, %r1, 100; st.shared.u32 [%r4], %r9; barrier.sync 3, 64; bra E;\n\
                W: barrier.sync 3, 64; ld.shared.u32 %r9, [%r4+-128];\nE:";
    let case = Case::by_hand(96, body);
    let expected: Vec<u32> = (0..32).chain(0..32).map(|i| i + 100).chain([0; 32]).collect();
    assert_eq!(case.values(0, 0), expected);
    assert!(case.profile().exact);
}

#[test]
fn thread_that_waits_in_vain_continues() {
    let apart = "setp.lt.u32 %p1, %r1, 7;\n@%p1 bra A;\nbarrier.sync 1; bra B;\nA: barrier.sync 2;\nB: mov.u32 %r9, 1;";
    let never = "barrier.sync 4, 1024; mov.u32 %r9, 1;";
    let alone =
        "setp.lt.u32 %p1, %r1, 7;\n@!%p1 bra B;\nvote.sync.ballot.b32 %r9, %p1, -1;\nB: mov.u32 %r9, 1;\nbar.sync 0;";
    let missing = "setp.eq.u32 %p1, %r1, 7;\n@!%p1 bra B;\nbar.warp.sync -1;\nbar.sync 0;\nB: mov.u32 %r9, 1;";
    for body in [apart, never, alone, missing] {
        let case = Case::by_hand(64, body);
        assert_eq!(case.values(0, 0), [1; 64], "{body}");
    }
}

/// No thread sets the word that all wait for.
#[test]
fn wait_without_end_makes_profile_inexact() {
    let forever = "L: ld.shared.u32 %r2, [s]; setp.eq.u32 %p1, %r2, 0;\n@%p1 bra L;";
    assert!(!Case::by_hand(64, forever).profile().exact);
}

#[test]
fn data_dependent_bank_conflicts_are_counted() {
    // Each thread reads the word that its neighbour named: all of one bank.
    let body = "xor.b32 %r2, %r1, 1; shl.b32 %r3, %r1, 2; shl.b32 %r4, %r2, 2; mov.u32 %r5, s; add.u32 %r6, %r5, %r3; add.u32 %r7, %r5, %r4;\n\
                and.b32 %r8, %r1, 7; shl.b32 %r8, %r8, 7; st.shared.u32 [%r6], %r8; bar.sync 0; ld.shared.u32 %r10, [%r7];\n\
                and.b32 %r10, %r10, 1023; add.u32 %r11, %r5, %r10;\nld.shared.u32 %r9, [%r11];";
    let profile = Case::by_hand(64, body).profile();
    let passes: Vec<f64> =
        profile.accesses.values().filter(|a| a.space == MemorySpace::Shared).map(|a| a.passes).collect();
    assert_eq!(passes.last(), Some(&8.0), "{passes:?}");
}
