//! Recorded launches -> the simplest expressions over arguments that give every recorded grid.
//!
//! A wrong inference is harmless: launches that the expressions do not give run nvcc's kernel.

use crate::comment::{Binary, Expr, Function, Node, Value};
use crate::diag::Span;
use crate::gpu::WARP;
use crate::launch::Dim3;

/// What inference knows of a launch.
#[derive(Clone, Debug)]
pub struct KnownLaunch {
    pub grid: Dim3,
    pub block: Dim3,
    /// Whole arguments by name, in the order of the parameters.
    pub arguments: Vec<(String, i64)>,
    /// Numbers in structures, which count where no argument gives the grid.
    pub members: Vec<(String, i64)>,
}

impl KnownLaunch {
    fn with_members(&self) -> Self {
        let arguments = self.arguments.iter().chain(&self.members).cloned().collect();
        Self { arguments, members: Vec::new(), ..*self }
    }
}

/// What is known of a kernel besides its launches.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelHints {
    /// See [`Kernel::may_take_any_grid`](crate::cuda::Kernel).
    pub may_take_any_grid: bool,
    /// See [`Kernel::has_fixed_tile`](crate::cuda::Kernel). No macro may change the tile.
    pub has_fixed_tile: bool,
}

/// The grid as a comment's clause would give it.
#[derive(Clone, Debug, PartialEq)]
pub enum InferredGrid {
    /// `threads(...)`
    Threads(Vec<Expr>),
    /// `grid(...)`
    Blocks(Vec<Expr>),
}

/// What one dimension of a grid counts.
#[derive(Clone, Debug)]
enum Extent {
    /// Threads, by an expression; the blocks follow by division.
    Threads(Expr),
    Blocks(Expr),
    /// One block, whatever the arguments.
    One,
}

const DIMENSIONS: [&str; 3] = ["block.x", "block.y", "block.z"];

/// Items of one thread or one block, and threads of one item, that are looked for.
const FACTORS: [i64; 6] = [2, 4, 8, 16, 32, 64];

/// Items of a block whose tile has a fixed size.
const LARGE_TILES: [i64; 10] = [128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

/// Threads by which a grid is smaller or larger than an argument: the borders of stencils.
const BORDERS: [i64; 6] = [-1, -2, 1, 2, -4, -8];

/// The most names of which products of three and four are looked for.
const MOST_MULTIPLIED: usize = 12;

/// Finds the grid of all launches, or of the first if nothing fits all; all are launched with
/// the first one's block. Places are `span`.
///
/// A kernel that takes any grid is often launched with a fixed one. One launch alone, or several
/// with the same arguments, may have a factor of an argument by chance then: `ceildiv(n, 64)`
/// threads for 1024 blocks of 256 and n = 2^24.
pub fn infer_grid(launches: &[KnownLaunch], hints: &KernelHints, span: Span) -> Option<InferredGrid> {
    let first = launches.first()?;
    let has_factors = |launches: &[KnownLaunch]| {
        !hints.may_take_any_grid || launches.iter().any(|launch| launch.arguments != launches[0].arguments)
    };
    let found = |launches: &[KnownLaunch], at: usize| infer_extent(launches, at, hints, has_factors(launches), span);
    let with_members: Vec<KnownLaunch> = launches.iter().map(KnownLaunch::with_members).collect();
    let extents = [0, 1, 2].map(|at| {
        let of_first = || found(&launches[..1], at).or_else(|| found(&with_members[..1], at));
        found(launches, at)
            .or_else(|| found(&with_members, at))
            .or_else(of_first)
            .unwrap_or_else(|| constant_extent(first, at, span))
    });
    let used = 3 - extents.iter().rev().take_while(|extent| matches!(extent, Extent::One)).count();
    let extents = &extents[..used.max(1)];
    let threads: Option<Vec<Expr>> = extents
        .iter()
        .enumerate()
        .map(|(at, extent)| match extent {
            Extent::Threads(threads) => Some(threads.clone()),
            Extent::One if first.block[at] == 1 => Some(number_node(1, span)),
            Extent::Blocks(_) | Extent::One => None,
        })
        .collect();
    if let Some(threads) = threads {
        return Some(InferredGrid::Threads(threads));
    }
    let blocks = extents.iter().enumerate().map(|(at, extent)| match extent {
        // Blocks of one thread in this dimension, of a grid that counts blocks elsewhere.
        Extent::Threads(threads) if first.block[at] == 1 => threads.clone(),
        Extent::Threads(threads) => ceildiv_node(threads.clone(), name_node(DIMENSIONS[at], span)),
        Extent::Blocks(blocks) => blocks.clone(),
        Extent::One => number_node(1, span),
    });
    Some(InferredGrid::Blocks(blocks.collect()))
}

/// The threads of a launch in one dimension, as a number.
fn constant_extent(launch: &KnownLaunch, at: usize, span: Span) -> Extent {
    match launch.grid[at] {
        1 if launch.block[at] == 1 => Extent::One,
        blocks => Extent::Threads(number_node(i64::from(blocks) * i64::from(launch.block[at]), span)),
    }
}

/// Finds what gives all launches their blocks in one dimension; factors of arguments, and what
/// is added to them, only `with_factors`.
fn infer_extent(
    launches: &[KnownLaunch],
    at: usize,
    hints: &KernelHints,
    with_factors: bool,
    span: Span,
) -> Option<Extent> {
    let first = launches.first()?;
    if launches.iter().all(|launch| launch.grid[at] == 1 && launch.block[at] == 1) {
        return Some(Extent::One);
    }
    extent_candidates(first, hints, with_factors, span)
        .find(|extent| launches.iter().all(|launch| gives_extent(extent, launch, at)))
}

/// The expressions that are tried, the simplest first.
fn extent_candidates(
    launch: &KnownLaunch,
    hints: &KernelHints,
    with_factors: bool,
    span: Span,
) -> impl Iterator<Item = Extent> {
    let names: Vec<&str> = launch.arguments.iter().map(|(name, _)| name.as_str()).collect();
    let alone: Vec<Expr> = names.iter().map(|name| name_node(name, span)).collect();
    let pairs = alone.iter().enumerate().flat_map(|(at, one)| alone[at + 1..].iter().map(move |other| (one, other)));
    let products: Vec<Expr> =
        pairs.map(|(one, other)| binary_node(Binary::Multiply, one.clone(), other.clone())).collect();
    let mut candidates: Vec<Extent> = alone
        .iter()
        .map(|of| Extent::Threads(of.clone()))
        .chain(alone.iter().map(|of| Extent::Blocks(of.clone())))
        .chain(products.iter().map(|of| Extent::Threads(of.clone())))
        .chain(products.iter().map(|of| Extent::Blocks(of.clone())))
        .collect();
    if with_factors {
        candidates.extend(candidates_with_factors(&alone, hints, span));
    }
    let longer = move |extent: fn(Expr) -> Extent| longer_products(&names, span).into_iter().map(extent);
    candidates.into_iter().chain([Extent::Threads as fn(Expr) -> Extent, Extent::Blocks].into_iter().flat_map(longer))
}

/// Those of each argument and a factor, or a border. A block whose tile has a fixed size is no
/// number of threads with some items each, even where a launch may be described so.
fn candidates_with_factors(arguments: &[Expr], hints: &KernelHints, span: Span) -> Vec<Extent> {
    let with = |factors: &[i64], extent: &dyn Fn(&Expr, Expr) -> Extent| -> Vec<Extent> {
        let of = |argument| factors.iter().map(move |&factor| extent(argument, number_node(factor, span)));
        arguments.iter().flat_map(of).collect()
    };
    let divided = |of: &Expr, factor: Expr| Extent::Threads(ceildiv_node(of.clone(), factor));
    let tiles = |of: &Expr, factor: Expr| Extent::Blocks(ceildiv_node(of.clone(), factor));
    let multiplied = |of: &Expr, factor: Expr| Extent::Threads(binary_node(Binary::Multiply, of.clone(), factor));
    let bordered = |of: &Expr, border: Expr| match border.node {
        Node::Value(Value::Int(border @ ..0)) => {
            Extent::Threads(binary_node(Binary::Subtract, of.clone(), number_node(-border, span)))
        }
        _ => Extent::Threads(binary_node(Binary::Add, of.clone(), border)),
    };
    let warps = with(&[i64::from(WARP)], &multiplied);
    // A tile for each block is more common than some threads for each item, but for a warp.
    if hints.has_fixed_tile {
        let tiles = with(&[&FACTORS[..], &LARGE_TILES].concat(), &tiles);
        [warps, tiles, with(&FACTORS, &divided), with(&BORDERS, &bordered), with(&FACTORS, &multiplied)].concat()
    } else {
        let tiles = with(&FACTORS, &tiles);
        [with(&FACTORS, &divided), with(&BORDERS, &bordered), warps, tiles, with(&FACTORS, &multiplied)].concat()
    }
}

/// Products of three and four names, if there are not too many.
fn longer_products(names: &[&str], span: Span) -> Vec<Expr> {
    if names.len() > MOST_MULTIPLIED {
        return Vec::new();
    }
    let mut products: Vec<(usize, Expr)> =
        names.iter().enumerate().map(|(at, name)| (at, name_node(name, span))).collect();
    let mut longer = Vec::new();
    for length in 2..=4 {
        let extended = |(last, product): &(usize, Expr)| {
            let (last, product) = (*last, product.clone());
            let names = names.iter().enumerate().skip(last + 1);
            let times = move |(at, name): (usize, &&str)| {
                (at, binary_node(Binary::Multiply, product.clone(), name_node(name, span)))
            };
            names.map(times).collect::<Vec<_>>()
        };
        products = products.iter().flat_map(extended).collect();
        if length > 2 {
            longer.extend(products.iter().map(|(_, product)| product.clone()));
        }
    }
    longer
}

/// Whether an expression gives a launch its blocks in one dimension.
fn gives_extent(extent: &Extent, launch: &KnownLaunch, at: usize) -> bool {
    let value = |expression: &Expr| {
        let found = expression.evaluate(&|name: &String| {
            let argument = launch.arguments.iter().find(|(own, _)| own == name);
            argument.map(|(_, value)| Value::Int(*value)).ok_or_else(|| crate::comment::Fault::NoValue(name.clone()))
        });
        found.ok().and_then(Value::as_integer)
    };
    let blocks = match extent {
        Extent::Threads(threads) => value(threads).map(|threads| {
            let block = i64::from(launch.block[at]);
            threads / block + i64::from(threads % block > 0)
        }),
        Extent::Blocks(blocks) => value(blocks),
        Extent::One => Some(1),
    };
    blocks == Some(i64::from(launch.grid[at]))
}

fn name_node(name: &str, span: Span) -> Expr {
    Expr { span, node: Node::Name(name.to_owned()) }
}

fn number_node(value: i64, span: Span) -> Expr {
    Expr { span, node: Node::Value(Value::Int(value)) }
}

fn binary_node(operator: Binary, left: Expr, right: Expr) -> Expr {
    let span = left.span;
    Expr { span, node: Node::Binary(operator, span, Box::new(left), Box::new(right)) }
}

fn ceildiv_node(left: Expr, right: Expr) -> Expr {
    Expr { span: left.span, node: Node::Call(Function::Ceildiv, vec![left, right]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(grid: Dim3, block: Dim3, arguments: &[(&str, i64)]) -> KnownLaunch {
        KnownLaunch {
            grid,
            block,
            arguments: arguments.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
            members: Vec::new(),
        }
    }

    #[test]
    fn numbers_in_structures_count_where_no_argument_gives_the_grid() {
        let with = |members: &[(&str, i64)], of: KnownLaunch| KnownLaunch {
            members: members.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
            ..of
        };
        // 30 * 32 is 12 * 80 as well.
        let table = [("p.v[0]", 12), ("p.v[1]", 80)];
        let rows = launch([8, 1, 1], [128, 1, 1], &[("rows", 30)]);
        assert_eq!(inferred(&[with(&table, rows)]), "threads(rows * 32)");
        let volume = launch([16, 1, 1], [128, 1, 1], &[("a", 11), ("b", 13), ("c", 14)]);
        let many: Vec<(String, i64)> = (0..13).map(|at| (format!("p.v[{at}]"), 3)).collect();
        let many: Vec<(&str, i64)> = many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(inferred(&[with(&many, volume)]), "threads((a * b) * c)");
        let image = |width: i64| launch([(width as u32).div_ceil(64), 1, 1], [64, 1, 1], &[("seed", 5)]);
        let images = [500, 900].map(|width| with(&[("p.width", width)], image(width)));
        assert_eq!(inferred(&images), "threads(p.width)");
    }

    fn inferred(launches: &[KnownLaunch]) -> String {
        inferred_of(launches, &KernelHints::default())
    }

    /// Of a kernel that takes any grid.
    fn inferred_of_strides(launches: &[KnownLaunch]) -> String {
        inferred_of(launches, &KernelHints { may_take_any_grid: true, ..KernelHints::default() })
    }

    fn inferred_of(launches: &[KnownLaunch], hints: &KernelHints) -> String {
        let list = |expressions: &[Expr]| expressions.iter().map(Expr::unparenthesized).collect::<Vec<_>>().join(", ");
        match infer_grid(launches, hints, Span { start: 0, end: 0 }) {
            Some(InferredGrid::Threads(threads)) => format!("threads({})", list(&threads)),
            Some(InferredGrid::Blocks(blocks)) => format!("grid({})", list(&blocks)),
            None => "nothing".to_owned(),
        }
    }

    #[test]
    fn simplest_expression_that_gives_every_grid_is_found() {
        let one = |n: i64| launch([n.div_euclid(256) as u32 + 1, 1, 1], [256, 1, 1], &[("n", n), ("m", 7)]);
        assert_eq!(inferred(&[one(1000), one(5001)]), "threads(n)");
        let flat = |w: i64, h: i64| {
            launch([(w as u32).div_ceil(16), (h as u32).div_ceil(8), 1], [16, 8, 1], &[("w", w), ("h", h)])
        };
        assert_eq!(inferred(&[flat(1000, 700), flat(31, 900)]), "threads(w, h)");
        let rows = |rows: i64| launch([rows as u32, 1, 1], [128, 1, 1], &[("rows", rows), ("columns", 4096)]);
        assert_eq!(inferred(&[rows(300), rows(17)]), "grid(rows)");
        let warps = launch([1000, 1, 1], [128, 1, 1], &[("rows", 4000)]);
        assert_eq!(inferred(&[warps]), "threads(rows * 32)");
        let product = launch([47, 1, 1], [256, 1, 1], &[("w", 100), ("h", 120)]);
        assert_eq!(inferred(&[product]), "threads(w * h)");
        let tiles = launch([120, 68, 1], [128, 1, 1], &[("width", 1920), ("height", 1088)]);
        assert_eq!(inferred(&[tiles]), "grid(ceildiv(width, 16), ceildiv(height, 16))");
        let inner = launch([4, 4, 1], [32, 8, 1], &[("w", 130), ("h", 34)]);
        assert_eq!(inferred(&[inner]), "threads(w - 2, h - 2)");
        let mixed = launch([8, 5, 1], [32, 1, 1], &[("n", 250), ("images", 5)]);
        assert_eq!(inferred(&[mixed]), "threads(n, images)");
        let two_blocks = launch([8, 5, 1], [32, 2, 1], &[("n", 250), ("images", 5)]);
        assert_eq!(inferred(&[two_blocks]), "grid(ceildiv(n, block.x), images)");
    }

    #[test]
    fn fixed_grid_of_a_stride_loop_is_no_factor_of_an_argument() {
        let one = |blocks: u32, n: i64| launch([blocks, 1, 1], [256, 1, 1], &[("n", n)]);
        assert_eq!(inferred(&[one(1024, 1 << 24)]), "threads(ceildiv(n, 64))");
        assert_eq!(inferred_of_strides(&[one(1024, 1 << 24)]), "threads(262144)");
        assert_eq!(inferred_of_strides(&[one(1024, 1 << 24), one(512, 1 << 23)]), "threads(ceildiv(n, 64))");
        assert_eq!(inferred_of_strides(&[one(1024, 1 << 24), one(1024, 1 << 23)]), "threads(262144)");
        assert_eq!(inferred_of_strides(&[one(1024, 1 << 18)]), "threads(n)");
    }

    #[test]
    fn tile_of_a_block_that_names_no_block_size_is_a_number() {
        let one = launch([1000, 1, 1], [256, 1, 1], &[("n", 4096 * 1000 - 5)]);
        let of = |has_fixed_tile| KernelHints { has_fixed_tile, ..KernelHints::default() };
        assert_eq!(inferred_of(std::slice::from_ref(&one), &of(false)), "threads(ceildiv(n, 16))");
        assert_eq!(inferred_of(&[one], &of(true)), "grid(ceildiv(n, 4096))");
        let helped = launch([16, 1, 1], [256, 1, 1], &[("n", 4096)]);
        assert_eq!(inferred_of(&[helped], &of(true)), "threads(n)");
        let warps = launch([125, 1, 1], [256, 1, 1], &[("rows", 1000)]);
        assert_eq!(inferred_of(&[warps], &of(true)), "threads(rows * 32)");
        let square = launch([8, 8, 1], [256, 1, 1], &[("m", 1000), ("n", 1024)]);
        assert_eq!(inferred_of(&[square], &of(true)), "grid(ceildiv(m, 128), ceildiv(m, 128))");
    }

    #[test]
    fn products_of_three_are_looked_for_among_few_arguments() {
        for (count, expected) in [(12, "threads((a0 * a1) * a2)"), (100, "threads(27)")] {
            let names: Vec<String> = (0..count).map(|at| format!("a{at}")).collect();
            let arguments: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 3)).collect();
            assert_eq!(inferred(&[launch([27, 1, 1], [1, 1, 1], &arguments)]), expected);
        }
    }

    #[test]
    fn grid_that_follows_no_argument_is_that_of_the_first_launch() {
        let fixed = launch([132, 1, 1], [256, 1, 1], &[("seed", 5)]);
        assert_eq!(inferred(&[fixed]), "threads(33792)");
        let one = launch([1, 1, 1], [256, 1, 1], &[]);
        assert_eq!(inferred(&[one]), "threads(256)");
        let other = [launch([10, 1, 1], [64, 1, 1], &[("n", 640)]), launch([3, 1, 1], [64, 1, 1], &[("n", 640)])];
        assert_eq!(inferred(&other), "threads(n)");
        assert_eq!(inferred(&[]), "nothing");
    }
}
