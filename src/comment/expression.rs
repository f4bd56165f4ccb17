//! Expressions as trees that keep their places.
//!
//! A tree and a way to look names up -> a value, or a fault and where it is. A name is text as
//! parsed (`n`, `TILE`, `block.x`); a space replaces it by the number of a slot, so that
//! evaluating millions of times needs no text. The parser bounds the number of nodes, so that
//! recursion over a tree is bounded too.

use super::value::{Binary, Fault, Function, Unary, Value};
use crate::diag::Span;
use std::fmt;

/// An expression whose names are of type `N`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr<N = String> {
    pub span: Span,
    pub node: Node<N>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Node<N> {
    Value(Value),
    Name(N),
    Unary(Unary, Box<Expr<N>>),
    /// The span is the operator's.
    Binary(Binary, Span, Box<Expr<N>>, Box<Expr<N>>),
    /// `a ? b : c`
    Choice(Box<Expr<N>>, Box<Expr<N>>, Box<Expr<N>>),
    Call(Function, Vec<Expr<N>>),
}

/// A fault and the token it is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    pub span: Span,
    pub fault: Fault,
}

impl<N> Expr<N> {
    /// The value under the names' values.
    pub fn evaluate<F>(&self, lookup: &F) -> Result<Value, Located>
    where
        F: Fn(&N) -> Result<Value, Fault>,
    {
        let at = |span| move |fault| Located { span, fault };
        match &self.node {
            Node::Value(value) => Ok(*value),
            Node::Name(name) => lookup(name).map_err(at(self.span)),
            Node::Unary(operator, a) => operator.apply(a.evaluate(lookup)?).map_err(at(self.span)),
            Node::Binary(operator, span, a, b) => {
                let a = a.evaluate(lookup)?;
                match operator {
                    Binary::And if !a.is_true() => return Ok(Value::from(false)),
                    Binary::Or if a.is_true() => return Ok(Value::from(true)),
                    _ => {}
                }
                operator.apply(a, b.evaluate(lookup)?).map_err(at(*span))
            }
            Node::Choice(condition, a, b) => {
                if condition.evaluate(lookup)?.is_true() {
                    a.evaluate(lookup)
                } else {
                    b.evaluate(lookup)
                }
            }
            Node::Call(function, arguments) => {
                let mut values = arguments.iter();
                let mut result = match values.next() {
                    Some(first) => first.evaluate(lookup)?,
                    None => Value::Int(0),
                };
                for value in values {
                    result = function.apply(result, value.evaluate(lookup)?).map_err(at(self.span))?;
                }
                Ok(result)
            }
        }
    }

    /// The same expression at another place.
    pub fn at(self, span: Span) -> Self {
        let inner = |expression: Box<Expr<N>>| Box::new(expression.at(span));
        let node = match self.node {
            node @ (Node::Value(_) | Node::Name(_)) => node,
            Node::Unary(operator, a) => Node::Unary(operator, inner(a)),
            Node::Binary(operator, _, a, b) => Node::Binary(operator, span, inner(a), inner(b)),
            Node::Choice(condition, a, b) => Node::Choice(inner(condition), inner(a), inner(b)),
            Node::Call(function, arguments) => {
                Node::Call(function, arguments.into_iter().map(|argument| argument.at(span)).collect())
            }
        };
        Expr { span, node }
    }

    /// The same expression over other names; stops at the first name that `rename` refuses.
    pub fn rename<M, E>(&self, rename: &mut impl FnMut(&N, Span) -> Result<M, E>) -> Result<Expr<M>, E> {
        let node = match &self.node {
            Node::Value(value) => Node::Value(*value),
            Node::Name(name) => Node::Name(rename(name, self.span)?),
            Node::Unary(operator, a) => Node::Unary(*operator, Box::new(a.rename(rename)?)),
            Node::Binary(operator, span, a, b) => {
                Node::Binary(*operator, *span, Box::new(a.rename(rename)?), Box::new(b.rename(rename)?))
            }
            Node::Choice(condition, a, b) => Node::Choice(
                Box::new(condition.rename(rename)?),
                Box::new(a.rename(rename)?),
                Box::new(b.rename(rename)?),
            ),
            Node::Call(function, arguments) => {
                Node::Call(*function, arguments.iter().map(|a| a.rename(rename)).collect::<Result<_, E>>()?)
            }
        };
        Ok(Expr { span: self.span, node })
    }

    /// Puts expressions in place of the names that `by` knows. Each keeps the place of its
    /// name.
    pub fn replace<'a>(&mut self, by: &impl Fn(&N) -> Option<&'a Expr<N>>)
    where
        N: Clone + 'a,
    {
        match &mut self.node {
            Node::Value(_) => {}
            Node::Name(name) => {
                if let Some(expression) = by(name) {
                    self.node = expression.node.clone();
                }
            }
            Node::Unary(_, a) => a.replace(by),
            Node::Binary(_, _, a, b) => {
                a.replace(by);
                b.replace(by);
            }
            Node::Choice(condition, a, b) => {
                condition.replace(by);
                a.replace(by);
                b.replace(by);
            }
            Node::Call(_, arguments) => arguments.iter_mut().for_each(|a| a.replace(by)),
        }
    }

    /// Tells whether one of its names satisfies `predicate`.
    pub fn any_name(&self, predicate: impl Fn(&N) -> bool) -> bool {
        let mut any = false;
        self.names(&mut |name, _| any = any || predicate(name));
        any
    }

    /// Calls `visit` with every name and its place, left to right.
    pub fn names<'a>(&'a self, visit: &mut impl FnMut(&'a N, Span)) {
        match &self.node {
            Node::Value(_) => {}
            Node::Name(name) => visit(name, self.span),
            Node::Unary(_, a) => a.names(visit),
            Node::Binary(_, _, a, b) => {
                a.names(visit);
                b.names(visit);
            }
            Node::Choice(condition, a, b) => {
                condition.names(visit);
                a.names(visit);
                b.names(visit);
            }
            Node::Call(_, arguments) => arguments.iter().for_each(|a| a.names(visit)),
        }
    }
}

/// As C++ source with every operation in parentheses; `ceildiv`, `min` and `max` as calls.
impl<N: fmt::Display> Expr<N> {
    /// The text of [`Display`](fmt::Display) without the parentheses around all of it.
    pub fn unparenthesized(&self) -> String {
        let text = self.to_string();
        let is_wrapped = matches!(self.node, Node::Binary(..) | Node::Choice(..));
        let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).filter(|_| is_wrapped);
        inner.unwrap_or(&text).to_owned()
    }
}

impl<N: fmt::Display> fmt::Display for Expr<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Node::Value(value) => write!(f, "{value}"),
            Node::Name(name) => write!(f, "{name}"),
            Node::Unary(operator @ Unary::Math(_), a) => write!(f, "{}({a})", operator.symbol()),
            Node::Unary(operator, a) => write!(f, "({}{a})", operator.symbol()),
            Node::Binary(operator, _, a, b) => write!(f, "({a} {} {b})", operator.symbol()),
            Node::Choice(condition, a, b) => write!(f, "({condition} ? {a} : {b})"),
            Node::Call(function, arguments) => {
                write!(f, "{}(", function.name())?;
                for (index, argument) in arguments.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{argument}")?;
                }
                f.write_str(")")
            }
        }
    }
}
