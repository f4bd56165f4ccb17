//! Contents that are computed from an element's number: `each(index * 32)[n + 1]`.
//!
//! An expression over `index` and given values -> the value of any element, computed alone, in
//! any process. It makes what programs walk: the starts of rows, neighbours, permutations.

use crate::comment::{Binary, Expr, Function, Located, Node, Unary, Value};
use crate::diag::Diagnostic;
use serde::{Deserialize, Serialize};

/// The name of the element's number in `each(...)`: 0, 1, 2, ... over the scalars of all
/// elements.
pub const INDEX: &str = "index";

/// An expression of one variable, as operations on a stack: flat, however deep the expression
/// is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Formula(Vec<FormulaStep>);

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum FormulaStep {
    Index,
    Value(Value),
    Unary(Unary),
    Binary(Binary),
    Call(Function),
    /// Of three values the second where the first is true, else the third.
    Choice,
}

/// What a name of the expression has become.
#[derive(Clone, Copy, Debug)]
enum Operand {
    Index,
    Given(Value),
}

/// How many elements at the start, at the end and in between are looked at for faults: few, for
/// a workload is bound for every configuration.
const PROBED: u64 = 64;

impl Formula {
    /// The formula of an expression, whose names other than `index` have the values that
    /// `given` knows.
    ///
    /// # Errors
    /// What `given` says of a name, and what `faulty` makes of the first fault among `count`
    /// elements: of all where they are few, else of those at both ends and evenly between.
    pub fn new(
        expression: &Expr,
        count: u64,
        given: impl Fn(&Expr) -> Result<Value, Diagnostic>,
        faulty: impl Fn(u64, Located) -> Diagnostic,
    ) -> Result<Formula, Diagnostic> {
        let bound = expression.rename(&mut |name: &String, span| match name.as_str() {
            INDEX => Ok(Operand::Index),
            _ => given(&Expr { span, node: Node::Name(name.clone()) }).map(Operand::Given),
        })?;
        let ends = (0..count.min(PROBED)).chain(count.saturating_sub(PROBED)..count);
        let between = (0..count).step_by(usize::try_from(count / PROBED).unwrap_or(usize::MAX).max(1));
        for index in ends.chain(between) {
            let value = bound.evaluate(&|operand: &Operand| match operand {
                Operand::Index => Ok(number(index)),
                Operand::Given(value) => Ok(*value),
            });
            value.map_err(|located| faulty(index, located))?;
        }
        let mut steps = Vec::new();
        flatten(&bound, &mut steps);
        Ok(Formula(steps))
    }

    /// Number of operations that a value takes.
    pub fn steps(&self) -> usize {
        self.0.len()
    }

    /// The value of one element; `None` where it has none, as after a division by zero.
    pub fn value(&self, index: u64) -> Option<Value> {
        // A value that is not there is no harm where nothing chooses it.
        let mut stack: Vec<Option<Value>> = Vec::with_capacity(8);
        for step in &self.0 {
            let value = match *step {
                FormulaStep::Index => Some(number(index)),
                FormulaStep::Value(value) => Some(value),
                FormulaStep::Unary(operator) => stack.pop()?.and_then(|a| operator.apply(a).ok()),
                FormulaStep::Binary(operator) => {
                    let (b, a) = (stack.pop()?, stack.pop()?);
                    match (operator, a) {
                        (Binary::And, Some(a)) if !a.is_true() => Some(Value::from(false)),
                        (Binary::Or, Some(a)) if a.is_true() => Some(Value::from(true)),
                        _ => a.zip(b).and_then(|(a, b)| operator.apply(a, b).ok()),
                    }
                }
                FormulaStep::Call(function) => {
                    let (b, a) = (stack.pop()?, stack.pop()?);
                    a.zip(b).and_then(|(a, b)| function.apply(a, b).ok())
                }
                FormulaStep::Choice => {
                    let (otherwise, then, condition) = (stack.pop()?, stack.pop()?, stack.pop()?);
                    condition.and_then(|condition| if condition.is_true() { then } else { otherwise })
                }
            };
            stack.push(value);
        }
        stack.pop()?
    }
}

/// Buffers have fewer elements than an i64 counts.
fn number(index: u64) -> Value {
    Value::Int(i64::try_from(index).unwrap_or(i64::MAX))
}

fn flatten(expression: &Expr<Operand>, steps: &mut Vec<FormulaStep>) {
    match &expression.node {
        Node::Value(value) | Node::Name(Operand::Given(value)) => steps.push(FormulaStep::Value(*value)),
        Node::Name(Operand::Index) => steps.push(FormulaStep::Index),
        Node::Unary(operator, a) => {
            flatten(a, steps);
            steps.push(FormulaStep::Unary(*operator));
        }
        Node::Binary(operator, _, a, b) => {
            flatten(a, steps);
            flatten(b, steps);
            steps.push(FormulaStep::Binary(*operator));
        }
        Node::Choice(condition, a, b) => {
            flatten(condition, steps);
            flatten(a, steps);
            flatten(b, steps);
            steps.push(FormulaStep::Choice);
        }
        Node::Call(function, arguments) => {
            for (position, argument) in arguments.iter().enumerate() {
                flatten(argument, steps);
                if position > 0 {
                    steps.push(FormulaStep::Call(*function));
                }
            }
        }
    }
}
