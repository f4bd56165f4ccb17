//! A recorded grid that follows no argument, of a kernel that does the same in every grid -> the
//! comment with the clauses by which a hand-written one makes the grid an axis.
//!
//! Invariant: the grid varies only if [`grid_stride`] proves that results do not depend on it,
//! for all arguments that the launch stub lets a winner have.

use crate::analysis::grid_stride::GridStride;
use crate::analysis::{grid_stride, unrolled_loop};
use crate::comment::{Annotation, Binary, Expr, GivenValue, Grid, Node, Spanned, Value};
use crate::cuda::{Scalar, Type};
use crate::ptx::Module;
use crate::space::MAX_BLOCK_THREADS;
use crate::workload::Entry;

/// Grids that are tried, as quotients of the recorded one: from a quarter of its blocks to eight
/// times as many, as hand-written comments have them
/// (`kernels/black_scholes/black_scholes.cu`).
const RATIOS: [(u32, u32); 6] = [(1, 4), (1, 2), (1, 1), (2, 1), (4, 1), (8, 1)];

/// The most blocks of a grid that varies. Positions of its threads are numbers of 31 bits then.
const MOST_BLOCKS: u32 = i32::MAX as u32 / MAX_BLOCK_THREADS;

/// Returns the comment with the recorded grid as an axis. `None` if the comment gives the grid
/// itself, if that follows the arguments, or if nothing proves that another grid does the same.
/// `not_unrolled` compiles the kernel with its loops not unrolled; it is called only if nothing is
/// proved of `module`.
pub fn with_grid_axis(
    annotation: &Annotation,
    entry: &Entry,
    module: &Module,
    not_unrolled: impl FnOnce() -> Option<Module>,
) -> Option<Annotation> {
    let clauses = &annotation.clauses;
    let is_recorded = ["threads", "grid"].iter().all(|clause| clauses.place(clause).is_none());
    // What is proved is of the code under the baseline's macros.
    if annotation.inferred.is_none() || !is_recorded || !clauses.macros.is_empty() || clauses.cooperative {
        return None;
    }
    let (block, blocks) = fixed_grid(annotation)?;
    let found = grid_stride::find(module, &entry.symbol).or_else(|| {
        let rolled = if unrolled_loop::may_be_unrolled(module, &entry.symbol) { not_unrolled()? } else { return None };
        grid_stride::find(&rolled, &entry.symbol)
    })?;
    if !found.must_not_alias.iter().all(|parameter| is_restrict(annotation, *parameter)) {
        return None;
    }
    let span = annotation.comment;
    let grids = RATIOS.map(|(times, over)| blocks.saturating_mul(times).div_ceil(over));
    let mut grids: Vec<u32> = grids.into_iter().filter(|grid| *grid <= MOST_BLOCKS).collect();
    grids.dedup();
    let mut wider = annotation.clone();
    wider.clauses.threads = None;
    wider.clauses.grid = Some(Spanned { value: Grid::Lists(vec![grids]), span });
    wider.clauses.default.grid = Some(Spanned { value: [blocks, 1, 1], span });
    wider.clauses.require.extend(index_bound((annotation, entry), &found, i64::from(blocks) * i64::from(block))?);
    Some(wider)
}

/// The threads of a block and the blocks of a recorded grid of one dimension that is a number.
fn fixed_grid(annotation: &Annotation) -> Option<(u32, u32)> {
    let [block, 1, 1] = annotation.clauses.default.block.as_ref()?.value else { return None };
    let threads = annotation.clauses.threads.as_ref()?;
    let numbers: Option<Vec<i64>> = threads.value.iter().map(number).collect();
    let numbers = numbers?;
    let (threads, others) = numbers.split_first()?;
    let blocks = u32::try_from(threads / i64::from(block)).ok().filter(|blocks| (1..=MOST_BLOCKS).contains(blocks))?;
    let is_whole = threads % i64::from(block) == 0 && others.iter().all(|threads| *threads == 1);
    is_whole.then_some((block, blocks))
}

/// Returns what must hold of a grid so that the loop's index cannot overflow: nothing for an
/// index of 64 bits. `None` if the recorded launch, which has `threads` threads, does not meet it.
///
/// The index of the program's own launch reaches the bound plus all its threads, so no fewer
/// threads can make it overflow.
fn index_bound((annotation, entry): (&Annotation, &Entry), found: &GridStride, threads: i64) -> Option<Option<Expr>> {
    let Some(limit) = found.index_limit else { return Some(None) };
    let span = annotation.comment;
    let node = |node: Node<String>| Box::new(Expr { span, node });
    let name = |name: &str| node(Node::Name(name.to_owned()));
    let value = |value: i64| node(Node::Value(Value::Int(value)));
    let most = match found.bound.and_then(|parameter| whole_argument((annotation, entry), parameter, limit)) {
        Some((bound, recorded)) if threads <= limit - recorded => {
            node(Node::Binary(Binary::Subtract, span, value(limit), name(&bound)))
        }
        Some(_) => return None,
        None => value(threads),
    };
    let threads = node(Node::Binary(Binary::Multiply, span, name("grid.x"), name("block.x")));
    Some(Some(Expr { span, node: Node::Binary(Binary::LessEqual, span, threads, most) }))
}

/// The name and the recorded value of a parameter whose type has this largest number.
fn whole_argument((annotation, entry): (&Annotation, &Entry), parameter: usize, limit: i64) -> Option<(String, i64)> {
    let name = annotation.kernel.parameters.get(parameter)?.as_ref()?;
    let expected = if limit == i64::from(i32::MAX) { Scalar::I32 } else { Scalar::U32 };
    let declared = Type::parse_type(entry.parameters.get(parameter)?);
    let given = annotation.clauses.args.iter().flatten().find(|given| given.parameter == parameter)?;
    let GivenValue::Scalar(value) = &given.value else { return None };
    (declared == Type::Scalar(expected)).then_some((name.clone(), number(value)?))
}

fn number(expression: &Expr) -> Option<i64> {
    match expression.node {
        Node::Value(Value::Int(value)) => Some(value),
        _ => None,
    }
}

/// Whether the kernel promises that it uses a parameter's memory through that parameter alone.
fn is_restrict(annotation: &Annotation, parameter: usize) -> bool {
    let is_promise = |word: &str| matches!(word, "__restrict__" | "__restrict");
    let declaration = annotation.kernel.declarations.get(parameter);
    let words = declaration.map(|of| of.split(|of: char| !of.is_alphanumeric() && of != '_'));
    words.into_iter().flatten().any(is_promise)
}
