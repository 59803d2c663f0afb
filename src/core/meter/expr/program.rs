//! Program of an expression in postfix order, and the shape of a price.

use windrow_words::meter as say;

use super::CostFault;
use super::ratio::Ratio;
use super::source::{Source, Values};

/// Step of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Number(Ratio),
    Value(Source),
    Op(Op),
}

/// Operation on the two topmost numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Plus,
    Minus,
    Times,
    Over,
    Least,
    Most,
}

impl Op {
    fn apply(self, left: Ratio, right: Ratio) -> Result<Ratio, CostFault> {
        let result = match self {
            Op::Plus => left.plus(right),
            Op::Minus => left.minus(right),
            Op::Times => left.times(right),
            Op::Over if right.is_zero() => return Err(CostFault(say::value_by_zero())),
            Op::Over => left.over(right),
            Op::Least => left.least(right),
            Op::Most => left.most(right),
        };
        result.ok_or_else(|| CostFault(say::value_too_large()))
    }
}

/// Runs a program that the parser wrote.
pub(super) fn run(steps: &[Step], values: &impl Values) -> Result<Ratio, CostFault> {
    fold(
        steps,
        |number| Ok(*number),
        |source| source.value(values),
        |op, left, right| op.apply(left, right),
    )
}

/// Degree of a part of a price in its meters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Degree {
    Constant,
    Linear,
}

/// Returns true if the price of a sum is the sum of the prices: numbers times meters, added up. Only then may it be
/// applied to what all calls used together.
pub(super) fn is_linear(steps: &[Step]) -> bool {
    use Degree::{Constant, Linear};
    let degree = fold(
        steps,
        |_| Ok(Constant),
        |_| Ok(Linear),
        |op, left, right| match (op, left, right) {
            (_, Constant, Constant) => Ok(Constant),
            (Op::Plus | Op::Minus, Linear, Linear)
            | (Op::Times, Constant, Linear)
            | (Op::Times | Op::Over, Linear, Constant) => Ok(Linear),
            _ => Err(()),
        },
    );
    degree == Ok(Linear)
}

/// Folds a program over its numbers, its references and its operations.
fn fold<T, E>(
    steps: &[Step],
    number: impl Fn(&Ratio) -> Result<T, E>,
    value: impl Fn(&Source) -> Result<T, E>,
    apply: impl Fn(Op, T, T) -> Result<T, E>,
) -> Result<T, E> {
    let mut stack = Vec::with_capacity(steps.len() / 2 + 1);
    for step in steps {
        let result = match step {
            Step::Number(of) => number(of)?,
            Step::Value(source) => value(source)?,
            Step::Op(op) => {
                let right = pop(&mut stack);
                let left = pop(&mut stack);
                apply(*op, left, right)?
            }
        };
        stack.push(result);
    }
    Ok(pop(&mut stack))
}

fn pop<T>(stack: &mut Vec<T>) -> T {
    stack.pop().expect("the parser puts operands before operators")
}
