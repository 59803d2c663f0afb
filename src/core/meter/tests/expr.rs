//! Expressions: examples, errors with their positions, a twin that walks a tree, and texts of all kinds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::meter::amount::Amount;
use crate::meter::expr::{BYTES_MAX, DEPTH_MAX, Expr, Kind, NODES_MAX, Values, parse};
use crate::meter::unit::Unit;

/// Values of one call: columns, the answer, headers and meters by their names.
#[derive(Clone, Debug, Default)]
struct Row(BTreeMap<String, String>);

impl Row {
    fn of(values: &[(&str, &str)]) -> Row {
        Row(values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect())
    }

    fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.0.get(name).map(|text| Cow::Borrowed(text.as_str()))
    }
}

impl Values for Row {
    fn column(&self, name: &str) -> Option<Cow<'_, str>> {
        self.text(name)
    }

    fn request_bytes(&self) -> Option<u64> {
        self.0.get("request").map(|body| body.len() as u64)
    }

    fn answer(&self, pointer: &str) -> Option<Cow<'_, str>> {
        self.text(pointer)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn meter(&self, unit: &Unit) -> Option<Amount> {
        Amount::parse(&self.text(unit.as_str())?)
    }
}

fn cost(text: &str, kind: Kind, row: &Row) -> Result<Amount, String> {
    let expr = Expr::parse(text, kind).map_err(|error| error.to_string())?;
    expr.cost(row).map_err(|fault| fault.0.code().to_owned())
}

#[test]
fn a_cost_is_computed_from_row_request_answer_and_meters() {
    let row = Row::of(&[
        ("prompt", "grüße"),
        ("max_tokens", " 250 "),
        ("/a/b", "3"),
        ("request", "12345"),
        ("/usage/total_tokens", "1200"),
        ("/usage/prompt_tokens", "1000"),
        ("/usage/cached", "400"),
        ("x-cost", "1.25e-3"),
        ("tokens_in", "2M"),
        ("tokens_out", "0.5M"),
    ]);
    for (text, kind, wanted) in [
        ("{prompt:bytes}/4 + 300", Kind::Estimate, "301.75"),
        ("{prompt:chars}", Kind::Estimate, "5"),
        ("{max_tokens:number}", Kind::Estimate, "250"),
        ("{/a/b:number}*2k", Kind::Estimate, "6k"),
        ("{request:bytes}", Kind::Estimate, "5"),
        ("{answer./usage/total_tokens}", Kind::Actual, "1200"),
        (
            "{answer./usage/prompt_tokens} - {answer./usage/cached}",
            Kind::Actual,
            "600",
        ),
        ("{answer.header.X-Cost}", Kind::Actual, "0.00125"),
        ("max(0, {answer./usage/cached} - 1k)", Kind::Actual, "0"),
        ("min({prompt:bytes}, {prompt:chars}, 6)", Kind::Actual, "5"),
        ("(0.15*{tokens_in} + 0.6*{tokens_out}) / 1M", Kind::Price, "0.6"),
        ("0.6 * tokens_in / 1M", Kind::Price, "1.2"),
        ("2 - 1 - 1 + 8 / 2 / 2 * 3", Kind::Estimate, "6"),
        ("1/3*3", Kind::Estimate, "1"),
    ] {
        assert_eq!(
            cost(text, kind, &row),
            Ok(Amount::parse(wanted).expect("an amount")),
            "{text}"
        );
    }
}

#[test]
fn a_cost_without_a_value_says_which_is_missing_or_wrong() {
    let row = Row::of(&[("a", "0"), ("b", "twelve"), ("c", "null"), ("big", "1e15")]);
    for (text, code) in [
        ("{nothing:number}", "meter.value_missing"),
        ("{request:bytes}", "meter.value_missing"),
        ("{b:number}", "meter.value_no_number"),
        ("{c:number}", "meter.value_no_number"),
        ("1/{a:number}", "meter.value_by_zero"),
        ("{a:number} - 1", "meter.value_negative"),
        ("{big:number} * 2", "meter.value_too_large"),
        ("{big:number}*{big:number}*{big:number}", "meter.value_too_large"),
    ] {
        assert_eq!(cost(text, Kind::Estimate, &row), Err(code.to_owned()), "{text}");
    }
}

#[test]
fn an_error_has_its_position_what_is_wrong_and_why() {
    use Kind::{Actual, Estimate, Price};
    for (text, kind, position, what, why) in [
        ("", Estimate, 1, "ends", "wants_value"),
        ("1 +", Estimate, 4, "ends", "wants_value"),
        ("1 + * 2", Estimate, 5, "unexpected", "wants_value"),
        ("1 2", Estimate, 3, "unexpected", "wants_operator"),
        ("-5", Estimate, 1, "unexpected", "no_negative"),
        ("(1 + 2", Estimate, 7, "ends", "wants_close"),
        ("1 + 2)", Estimate, 6, "unexpected", "wants_operator"),
        ("min(1)", Estimate, 6, "unexpected", "wants_comma"),
        ("max 1", Estimate, 5, "unexpected", "wants_open"),
        ("5G", Estimate, 1, "no_number", "number_form"),
        ("1e3", Estimate, 1, "no_number", "number_form"),
        ("{a:number", Estimate, 1, "unclosed", "wants_brace"),
        ("ü {a}", Estimate, 1, "unexpected", "wants_value"),
        ("1 + {größe}", Estimate, 5, "no_reference", "reference_forms"),
        ("1 + {tokens}", Estimate, 5, "no_reference", "bare_column"),
        ("tokens", Estimate, 1, "unexpected", "bare_column"),
        ("{answer./usage}", Estimate, 1, "no_reference", "not_before"),
        ("{answer.usage}", Actual, 1, "no_reference", "reference_forms"),
        ("{answer./a~2}", Actual, 1, "no_reference", "reference_forms"),
        ("{a:number}", Price, 1, "no_reference", "only_meters"),
        ("2 * Tokens", Price, 5, "no_reference", "only_meters"),
    ] {
        let error = Expr::parse(text, kind).expect_err(text);
        let codes = (error.what.code(), error.why.code());
        assert_eq!(error.position, position, "{text}: {error}");
        assert_eq!(
            codes,
            (format!("meter.{what}").as_str(), format!("meter.{why}").as_str()),
            "{text}"
        );
    }
}

#[test]
fn a_name_stands_before_its_expression() {
    let (unit, expr) = parse(" tokens = {prompt:bytes}/4 + 300", Kind::Estimate).expect("an expression");
    assert_eq!((unit.as_str(), expr.text()), ("tokens", "{prompt:bytes}/4 + 300"));
    for (text, kind, position, what) in [
        ("{prompt:bytes}", Kind::Estimate, 1, "meter.no_name"),
        ("Tokens = 5", Kind::Estimate, 1, "meter.no_name"),
        (" = 5", Kind::Estimate, 2, "meter.no_name"),
        ("calls = 5", Kind::Estimate, 1, "meter.built_in"),
        ("tokens = 5 +", Kind::Estimate, 13, "meter.ends"),
        ("eur = 2*{eur}", Kind::Price, 1, "meter.own_price"),
    ] {
        let error = parse(text, kind).expect_err(text);
        assert_eq!((error.position, error.what.code()), (position, what), "{text}");
    }
}

#[test]
fn a_price_that_is_not_the_same_for_a_sum_is_refused() {
    for text in [
        "tokens + 1",
        "5",
        "tokens * tokens",
        "1 / tokens",
        "max(tokens, 5)",
        "min(tokens, calls)",
        "tokens - 1k",
    ] {
        let error = Expr::parse(text, Kind::Price).expect_err(text);
        assert_eq!(error.what.code(), "meter.not_linear", "{text}");
    }
    for text in [
        "tokens",
        "(tokens_in - cached) * min(1, 2) / (3 + 4)",
        "0.002 * calls + 2 * tokens / 1M",
    ] {
        assert!(Expr::parse(text, Kind::Price).is_ok(), "{text}");
    }
}

#[test]
fn length_parts_and_depth_are_bounded() {
    let code = |text: &str| Expr::parse(text, Kind::Estimate).map_err(|error| error.what.code());
    let deep = |depth| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(code(&deep(DEPTH_MAX)).is_ok());
    assert_eq!(code(&deep(DEPTH_MAX + 1)), Err("meter.too_deep"));
    assert_eq!(code(&deep(200)), Err("meter.too_deep"));
    let sum = |numbers: usize| vec!["1"; numbers].join("+");
    assert!(code(&sum(NODES_MAX / 2)).is_ok());
    assert_eq!(code(&sum(NODES_MAX / 2 + 1)), Err("meter.too_many_nodes"));
    let long = |bytes| format!("{:<bytes$}", "1");
    assert!(code(&long(BYTES_MAX)).is_ok());
    assert_eq!(code(&long(BYTES_MAX + 1)), Err("meter.too_long"));
}

/// Expression as a tree.
#[derive(Clone, Debug)]
enum Tree {
    /// Number in hundredths.
    Number(u32),
    Column(usize),
    Binary(char, Box<Tree>, Box<Tree>),
    Function(&'static str, Vec<Tree>),
}

/// Fraction whose denominator is above 0.
type Fraction = (i128, i128);

impl Tree {
    /// Writes the expression with as few parentheses as it needs.
    fn text(&self, level: u8) -> String {
        match self {
            Tree::Number(hundredths) => Amount(u128::from(*hundredths) * 10_000_000).to_string(),
            Tree::Column(at) => format!("{{c{at}:number}}"),
            Tree::Function(name, of) => {
                let of: Vec<String> = of.iter().map(|tree| tree.text(0)).collect();
                format!("{name}({})", of.join(", "))
            }
            Tree::Binary(op, left, right) => {
                let own = if matches!(op, '+' | '-') { 1 } else { 2 };
                let text = format!("{} {op} {}", left.text(own), right.text(own + 1));
                if own < level { format!("({text})") } else { text }
            }
        }
    }

    /// Computes the value; `Err` if it has none, `None` inside if the fraction outgrows the twin.
    fn value(&self, columns: &[i128]) -> Result<Option<Fraction>, ()> {
        match self {
            Tree::Number(hundredths) => Ok(Some((i128::from(*hundredths), 100))),
            Tree::Column(at) => Ok(Some((columns[*at], 1))),
            Tree::Binary(op, left, right) => {
                let (Some(left), Some(right)) = (left.value(columns)?, right.value(columns)?) else {
                    return Ok(None);
                };
                if *op == '/' && right.0 == 0 {
                    return Err(());
                }
                Ok(binary(*op, left, right))
            }
            Tree::Function(name, of) => {
                let values: Result<Vec<_>, ()> = of.iter().map(|tree| tree.value(columns)).collect();
                let Some(mut values) = values?.into_iter().collect::<Option<Vec<Fraction>>>() else {
                    return Ok(None);
                };
                values.sort_by_key(|(top, bottom)| (top * 1_000_000) / bottom);
                values.sort_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)));
                Ok(if *name == "min" {
                    values.first().copied()
                } else {
                    values.last().copied()
                })
            }
        }
    }
}

/// Computes by the rules of school, without a shortcut; `None` above 10¹⁵ in a part.
fn binary(op: char, (a, b): Fraction, (c, d): Fraction) -> Option<Fraction> {
    let (top, bottom) = match op {
        '+' => (a * d + c * b, b * d),
        '-' => (a * d - c * b, b * d),
        '*' => (a * c, b * d),
        _ => (a * d, b * c),
    };
    let (top, bottom) = if bottom < 0 {
        (-top, -bottom)
    } else {
        (top, bottom)
    };
    let mut common = 1;
    for prime in [2, 3, 5, 7, 11, 13, 17, 19] {
        while top % (common * prime) == 0 && bottom % (common * prime) == 0 {
            common *= prime;
        }
    }
    let is_small = (top / common).abs() < 10_i128.pow(15) && bottom / common < 10_i128.pow(15);
    is_small.then_some((top / common, bottom / common))
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (0..2000_u32).prop_map(Tree::Number),
        (0..3_usize).prop_map(Tree::Column)
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let op = prop_oneof![Just('+'), Just('-'), Just('*'), Just('/')];
        let binary = (op, inner.clone(), inner.clone());
        let function = (
            prop_oneof![Just("min"), Just("max")],
            proptest::collection::vec(inner, 2..4),
        );
        prop_oneof![
            3 => binary.prop_map(|(op, left, right)| Tree::Binary(op, Box::new(left), Box::new(right))),
            1 => function.prop_map(|(name, of)| Tree::Function(name, of)),
        ]
    })
}

/// Text that looks like an expression, or nearly.
fn scribble() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("{a:number}"),
        Just("{answer./x}"),
        Just("{answer.header.h}"),
        Just("{t}"),
        Just("{"),
        Just("}"),
        Just("("),
        Just(")"),
        Just("min("),
        Just("max("),
        Just(","),
        Just("+"),
        Just("-"),
        Just("*"),
        Just("/"),
        Just(" "),
        Just("1.5M"),
        Just("0"),
        Just("tokens"),
        Just("ü"),
        Just("="),
        Just("{request:bytes}"),
    ];
    proptest::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn an_expression_has_the_value_of_its_tree(tree in tree(), columns in proptest::array::uniform3(-50..500_i128)) {
        let row = Row((0..3).map(|at| (format!("c{at}"), columns[at].to_string())).collect());
        let text = tree.text(0);
        prop_assume!(text.len() <= BYTES_MAX);
        let expr = match Expr::parse(&text, Kind::Estimate) {
            Err(error) => {
                prop_assert_eq!(error.what.code(), "meter.too_many_nodes", "{}", text);
                return Ok(());
            }
            Ok(expr) => expr,
        };
        let wanted = match tree.value(&columns) {
            Ok(None) => return Ok(()),
            Ok(Some((top, bottom))) if top >= 0 => Some((top * 1_000_000_000 + bottom - 1) / bottom),
            _ => None,
        };
        let wanted = wanted.map(|parts| Amount(parts as u128)).filter(|amount| *amount <= Amount::MAX);
        prop_assert_eq!(expr.cost(&row).ok(), wanted, "{}", text);
    }

    #[test]
    fn any_text_is_an_expression_or_refused_and_its_cost_is_bounded(
        text in prop_oneof![scribble(), ".*".prop_map(String::from)], value in ".{0,12}|-?[0-9]{1,30}(e-?[0-9]{1,2})?",
    ) {
        let row = Row(["a", "/x", "h", "t", "tokens"].map(|name| (name.to_owned(), value.clone())).into());
        for kind in [Kind::Estimate, Kind::Actual, Kind::Price] {
            match Expr::parse(&text, kind) {
                Ok(expr) => prop_assert!(expr.cost(&row).is_ok_and(|cost| cost <= Amount::MAX) || expr.cost(&row).is_err()),
                Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.position)),
            }
            drop(parse(&text, kind));
        }
    }

    #[test]
    fn the_price_of_a_sum_is_the_sum_of_the_prices(
        text in "([0-9]{1,2}\\*)?(in|out|\\(in [-+] out\\))( [-+*/] ([1-9]\\*?|in|out|1M|min\\(1,2\\))){0,3}",
        (a, b) in (0..1_000_000_u64, 0..1_000_000_u64), (c, d) in (0..1_000_000_u64, 0..1_000_000_u64),
    ) {
        let Ok(price) = Expr::parse(&text, Kind::Price) else { return Ok(()) };
        let of = |input: u64, output: u64| {
            price.cost(&Row::of(&[("in", &input.to_string()), ("out", &output.to_string())]))
        };
        if let (Ok(one), Ok(other)) = (of(a, b), of(c, d)) {
            let both = of(a + c, b + d).expect("the sum of two prices");
            // Each is rounded up by less than one part.
            prop_assert!(both <= one.plus(other) && one.plus(other) <= both.plus(Amount(1)), "{}", text);
        }
    }
}
