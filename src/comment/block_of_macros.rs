//! Dimensions of the block that follow macro axes, as in `define(TILE = {16, 32}) block(TILE,
//! TILE)`.
//!
//! In: the clauses as read, with an expression for each such dimension. Out: the same clauses
//! with the list of values that the expression takes, and the requirement that ties the
//! dimension to the macros.

use super::annotation::{Block, MacroAxis};
use super::expression::{Expr, Located, Node};
use super::parsed::Parsed;
use super::parser::Cursor;
use super::value::{Binary, Fault, Value};
use crate::diag::{Diagnostic, MessageCode, Source};
use crate::launch::DIMENSIONS;

/// Names in messages what such an expression gives.
const DIMENSION: &str = "a block dimension";

/// Maximum number of combinations of macro values for one expression: that of the values of a
/// list.
const MOST_COMBINATIONS: usize = 65_536;

/// Puts the values of the block's dimensions that follow macros into the `block` clause, and a
/// requirement for each.
pub(super) fn resolve(source: &Source, parsed: &mut Parsed, problems: &mut Vec<Diagnostic>) {
    for (dimension, expression) in std::mem::take(&mut parsed.block_of_macros) {
        let values = match values(source, &expression, &parsed.clauses.macros) {
            Ok(values) => values,
            Err(problem) => {
                problems.push(problem);
                // The error is reported; a value keeps the clause well formed.
                vec![1]
            }
        };
        if let Some(Block::Lists(lists)) = parsed.clauses.block.as_mut().map(|block| &mut block.value)
            && let Some(list) = lists.get_mut(dimension)
        {
            *list = values;
        }
        let span = expression.span;
        let extent = Expr { span, node: Node::Name(format!("block.{}", DIMENSIONS[dimension])) };
        let node = Node::Binary(Binary::Equal, span, Box::new(extent), Box::new(expression));
        parsed.clauses.require.push(Expr { span, node });
    }
}

/// Returns the values of an expression over macro axes, each once.
fn values(source: &Source, expression: &Expr, macros: &[MacroAxis]) -> Result<Vec<u32>, Diagnostic> {
    let mut axes: Vec<&MacroAxis> = Vec::new();
    let mut is_known = true;
    expression.names(&mut |name, _| match macros.iter().find(|axis| axis.name == *name) {
        Some(axis) if axes.iter().all(|known| known.name != axis.name) => axes.push(axis),
        Some(_) => {}
        None => is_known = false,
    });
    if !is_known {
        let mut others = expression.clone();
        let one = Expr { span: expression.span, node: Node::Value(Value::Int(1)) };
        others.replace(&|name| axes.iter().any(|axis| axis.name == *name).then_some(&one));
        Cursor::new(source, &[], expression.span).constant(&others, DIMENSION)?;
    }
    let combinations: usize = axes.iter().map(|axis| axis.values.len()).fold(1, usize::saturating_mul);
    if combinations > MOST_COMBINATIONS {
        let message = format!(
            "this follows {combinations} combinations of macros, of at most {MOST_COMBINATIONS}: list its values, and tie it by require(...)"
        );
        return Err(source.error(MessageCode::TooComplex, expression.span, message));
    }
    let mut found = Vec::new();
    for combination in 0..combinations {
        let mut rest = combination;
        let chosen: Vec<(&str, i64)> = axes
            .iter()
            .map(|axis| {
                let value = axis.values[rest % axis.values.len()];
                rest /= axis.values.len();
                (axis.name.as_str(), value)
            })
            .collect();
        let lookup = |name: &String| {
            let value = chosen.iter().find(|(known, _)| known == name).map(|(_, value)| Value::Int(*value));
            value.ok_or_else(|| Fault::NoValue(name.clone()))
        };
        let under = chosen.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ");
        let value = expression.evaluate(&lookup).map_err(|Located { span, fault }| {
            source.error(MessageCode::NoValue, span, format!("{fault}, where {under}"))
        })?;
        let extent = value.as_integer().and_then(|value| u32::try_from(value).ok()).filter(|extent| *extent > 0);
        let extent = extent.ok_or_else(|| {
            source.error(
                MessageCode::OutOfRange,
                expression.span,
                format!("{DIMENSION} must be 1 or more, not {value}, where {under}"),
            )
        })?;
        if !found.contains(&extent) {
            found.push(extent);
        }
    }
    Ok(found)
}
