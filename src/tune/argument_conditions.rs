//! The arguments that a winner may be used for: those that meet the comment's requirements and
//! that its grid divides.
//!
//! In: a kernel's space and a configuration of it. Out: the requirements, the divisions that
//! the configuration's grid is computed by, what they leave on the workload, and problems on
//! which each of them leaves a remainder.

use crate::comment::{Annotation, Binary, Expr, Function, Grid, Node, Spanned};
use crate::launch::Configuration;
use crate::space::Space;
use std::collections::BTreeSet;

/// How much smaller than the workload the problems are on which remainders are tried. Odd
/// numbers leave a remainder under most divisors.
const REDUCTIONS: [i64; 12] = [1, 3, 5, 7, 9, 13, 17, 33, 65, 129, 257, 513];

/// A division that a launch's grid is computed by.
#[derive(Clone, Debug)]
pub struct Division {
    pub dividend: Expr,
    pub divisor: Divisor,
}

#[derive(Clone, Debug)]
pub enum Divisor {
    Expression(Expr),
    /// The block's extent in a dimension.
    Extent(usize),
    /// The remainder is not known.
    Unknown,
}

/// Returns the divisions in a configuration's grid whose divisor differs from the baseline's:
/// an extent of the block, or an expression with a macro that the configuration changes. Those
/// that are exact whatever the arguments are left out.
pub fn divisions(space: &Space, configuration: &Configuration) -> Vec<Division> {
    let (annotation, baseline) = (space.annotation(), space.baseline());
    if configuration.grid.is_some() {
        return Vec::new();
    }
    let is_changed = |name: &String| match name.as_str() {
        "block.x" => configuration.block[0] != baseline.block[0],
        "block.y" => configuration.block[1] != baseline.block[1],
        "block.z" => configuration.block[2] != baseline.block[2],
        "block.size" => configuration.block != baseline.block,
        _ => configuration.macros.get(name) != baseline.macros.get(name),
    };
    let changes = |expression: &Expr| expression.any_name(is_changed);
    let depends_on_arguments = |expression: &Expr| depends_on_arguments(annotation, expression);
    let mut reader =
        DivisionReader { changes: &changes, depends_on_arguments: &depends_on_arguments, divisions: Vec::new() };
    if let Some(Grid::Expressions(expressions)) = annotation.clauses.grid.as_ref().map(|grid| &grid.value) {
        expressions.iter().for_each(|expression| reader.read(expression));
    }
    for (dimension, expression) in annotation.clauses.threads.iter().flat_map(|threads| &threads.value).enumerate() {
        reader.read(expression);
        let Some(&extent) = configuration.block.get(dimension) else { continue };
        if extent > 1 && (extent != baseline.block[dimension] || changes(expression)) {
            reader.add(expression, Divisor::Extent(dimension));
        }
    }
    let mut divisions = reader.divisions;
    let is_one = |division: &Division| match &division.divisor {
        Divisor::Expression(divisor) => {
            space.evaluate(configuration, divisor).ok().and_then(|value| value.as_integer()) == Some(1)
        }
        Divisor::Extent(_) | Divisor::Unknown => false,
    };
    // `threads(n, 64)` with 8 rows a block: no argument changes it, so it is exact on all problems.
    let is_always_exact = |division: &Division| {
        let varies = depends_on_arguments(&division.dividend)
            || matches!(&division.divisor, Divisor::Expression(divisor) if depends_on_arguments(divisor));
        !varies && remainder(space, configuration, division) == Some(0)
    };
    divisions.retain(|division| !is_one(division) && !is_always_exact(division));
    divisions
}

/// Returns the requirements of the comment that depend on the arguments of a launch.
pub fn requirements(annotation: &Annotation) -> impl Iterator<Item = &Expr> {
    annotation.clauses.require.iter().filter(|expression| depends_on_arguments(annotation, expression))
}

/// Tells whether an expression depends on more than the configuration: `n / 2` does, `TILE / 2`
/// does not.
fn depends_on_arguments(annotation: &Annotation, expression: &Expr) -> bool {
    let is_axis = |name: &str| annotation.clauses.macros.iter().any(|axis| axis.name == name);
    let is_grid_axis = matches!(annotation.clauses.grid, Some(Spanned { value: Grid::Lists(_), .. }));
    let is_of_grid = |name: &str| is_grid_axis && name.starts_with("grid.");
    expression.any_name(|name| !name.starts_with("block.") && !is_of_grid(name) && !is_axis(name))
}

/// Finds the divisions in expressions whose remainders depend on the arguments.
struct DivisionReader<'a> {
    /// Tells whether the configuration changes the value of an expression.
    changes: &'a dyn Fn(&Expr) -> bool,
    depends_on_arguments: &'a dyn Fn(&Expr) -> bool,
    divisions: Vec<Division>,
}

impl DivisionReader<'_> {
    fn add(&mut self, dividend: &Expr, divisor: Divisor) {
        self.divisions.push(Division { dividend: dividend.clone(), divisor });
    }

    fn read(&mut self, expression: &Expr) {
        if !(self.depends_on_arguments)(expression) {
            return;
        }
        match &expression.node {
            Node::Value(_) | Node::Name(_) => {}
            Node::Unary(_, a) => self.read(a),
            Node::Binary(operator, span, a, b) => {
                // `a / b / c` is `a / (b * c)`.
                if let (Binary::Divide, Node::Binary(Binary::Divide, _, dividend, divisor)) = (*operator, &a.node) {
                    let product = Node::Binary(Binary::Multiply, *span, divisor.clone(), b.clone());
                    let product = Expr { span: divisor.span.to(b.span), node: product };
                    let node = Node::Binary(Binary::Divide, *span, dividend.clone(), Box::new(product));
                    return self.read(&Expr { span: expression.span, node });
                }
                match (*operator, rounded_up(a, b)) {
                    (Binary::Divide, Some(dividend)) if (self.changes)(b) => {
                        self.add(dividend, Divisor::Expression((**b).clone()));
                    }
                    // What is added before the division may be anything.
                    (Binary::Divide, None) if (self.changes)(a) => self.add(a, Divisor::Unknown),
                    (Binary::Divide, None) if (self.changes)(b) => self.add(a, Divisor::Expression((**b).clone())),
                    (Binary::ShiftRight, _) if (self.changes)(a) || (self.changes)(b) => {
                        self.add(a, Divisor::Unknown);
                    }
                    _ => {}
                }
                [a, b].into_iter().for_each(|part| self.read(part));
            }
            Node::Choice(a, b, c) => [a, b, c].into_iter().for_each(|part| self.read(part)),
            Node::Call(function, arguments) => {
                if let (Function::Ceildiv, [a, b]) = (function, arguments.as_slice())
                    && (self.changes)(b)
                {
                    self.add(a, Divisor::Expression(b.clone()));
                }
                arguments.iter().for_each(|part| self.read(part));
            }
        }
    }
}

/// Returns `n` of a dividend that is written `n + d - 1` or `n + (d - 1)`, where `d` is the
/// divisor.
fn rounded_up<'e>(dividend: &'e Expr, divisor: &Expr) -> Option<&'e Expr> {
    let text = |expression: &Expr| expression.to_string().replace([' ', '(', ')'], "");
    let is_one = |expression: &Expr| text(expression) == "1";
    let Node::Binary(operator, _, a, b) = &dividend.node else { return None };
    match (operator, &a.node, &b.node) {
        (Binary::Subtract, Node::Binary(Binary::Add, _, n, d), _) if is_one(b) && text(d) == text(divisor) => Some(n),
        (Binary::Add, _, Node::Binary(Binary::Subtract, _, d, one)) if is_one(one) && text(d) == text(divisor) => {
            Some(a)
        }
        _ => None,
    }
}

/// Returns the divisor of a division in a configuration.
fn divisor(space: &Space, configuration: &Configuration, division: &Division) -> Option<i64> {
    match &division.divisor {
        Divisor::Expression(expression) => space.evaluate(configuration, expression).ok()?.as_integer(),
        Divisor::Extent(at) => Some(i64::from(configuration.block[*at])),
        Divisor::Unknown => None,
    }
}

/// Returns the remainders of a configuration's divisions on the workload; `None` for one that
/// cannot be computed.
pub fn remainders(space: &Space, configuration: &Configuration) -> Vec<Option<i64>> {
    divisions(space, configuration).iter().map(|division| remainder(space, configuration, division)).collect()
}

fn remainder(space: &Space, configuration: &Configuration, division: &Division) -> Option<i64> {
    let divisor = divisor(space, configuration, division)?;
    space.evaluate(configuration, &division.dividend).ok()?.as_integer()?.checked_rem(divisor)
}

/// Tells whether the winner's grid covers the workload without a remainder.
pub fn is_exact(space: &Space, configuration: &Configuration) -> bool {
    remainders(space, configuration).into_iter().all(|remainder| remainder == Some(0))
}

/// Returns the space on up to two smaller problems on which every division of the
/// configuration's grid leaves a remainder. On the second one a division leaves 1, which gives
/// the largest surplus.
pub fn problems_with_remainders(space: &Space, configuration: &Configuration) -> Vec<Space> {
    let is_inexact = |smaller: &Space| {
        let remainders = remainders(smaller, configuration);
        remainders.into_iter().all(|remainder| remainder.is_some_and(|rest| rest != 0))
    };
    let divisions = divisions(space, configuration);
    let mut names = BTreeSet::new();
    let mut collect = |expression: &Expr| {
        expression.names(&mut |name, _| {
            names.insert(name.clone());
        });
    };
    for Division { dividend, divisor } in &divisions {
        collect(dividend);
        if let Divisor::Expression(divisor) = divisor {
            collect(divisor);
        }
    }
    let inexact = |less: i64| space.with_less(&names, less).filter(is_inexact).map(|smaller| (less, smaller));
    let Some((first, smaller)) = REDUCTIONS.into_iter().find_map(inexact) else { return Vec::new() };
    let largest = divisions.iter().filter_map(|division| divisor(space, configuration, division)).max();
    let second = largest.map(|divisor| divisor - 1).filter(|less| *less > 0 && *less != first).and_then(inexact);
    [Some(smaller), second.map(|(_, smaller)| smaller)].into_iter().flatten().collect()
}

/// Returns what must hold of the arguments for the winner to be used, in the comment's words.
pub fn conditions_text(space: &Space, configuration: &Configuration) -> String {
    let annotation = space.annotation();
    let mut conditions: Vec<(String, Option<i64>, String)> = Vec::new();
    for division in divisions(space, configuration) {
        let dividend = annotation.written(&division.dividend);
        let number = divisor(space, configuration, &division);
        let text = match (number, &division.divisor) {
            (Some(number), _) => number.to_string(),
            (None, Divisor::Expression(expression)) => annotation.written(expression),
            (None, _) => "what it is divided by".to_owned(),
        };
        let condition = format!("{dividend} a multiple of {text}");
        conditions.push((dividend, number, condition));
    }
    let implied = |at: usize, (dividend, number, text): &(String, Option<i64>, String)| {
        conditions.iter().enumerate().any(|(other, (of, by, stated))| {
            let is_stronger = number.zip(*by).is_some_and(|(number, by)| by != number && by % number == 0);
            of == dividend && (is_stronger || other < at && stated == text)
        })
    };
    let needed = conditions.iter().enumerate().filter(|(at, condition)| !implied(*at, condition));
    needed.map(|(_, (_, _, text))| text.as_str()).collect::<Vec<_>>().join(" and ")
}
