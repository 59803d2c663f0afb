//! Templates against a naive twin: no value can leave its argument, whatever it is.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Argv, ItemFacts, ProgramFault, ShellText};
use crate::ids::{Attempt, ItemIndex};

fn facts(data: Option<&str>) -> ItemFacts<'_> {
    ItemFacts {
        index: ItemIndex(7),
        key: "k7f3q2-t1-7",
        attempt: Attempt::new(2),
        data,
    }
}

fn filled(words: &[&str], data: Option<&str>) -> Result<Vec<String>, String> {
    let argv = Argv::parse(words, false).expect("a sound template");
    argv.fill(&facts(data)).map_err(|why| why.0)
}

/// Whether it isn't filled, and says so.
fn is_refused(filled: Result<Vec<String>, String>, said: &str) {
    let why = filled.expect_err(said);
    assert!(why.contains(said), "{why}");
}

#[test]
fn places_are_filled_and_doubled_braces_are_text() {
    let data = r#"{"in":"a b.png","n":1.50,"deep":{"x/y":[10,"z"]},"ok":true,"obj":{"a":1}}"#;
    let words = [
        "p",
        "{in}",
        "-o={n}",
        "{{in}}",
        "{/deep/x~1y/1}",
        "{index}:{key}:{attempt}",
        "{ok}",
        "{obj:json}",
    ];
    let expected = [
        "a b.png",
        "-o=1.50",
        "{in}",
        "z",
        "7:k7f3q2-t1-7:2",
        "true",
        r#"{"a":1}"#,
    ];
    assert_eq!(
        filled(&words, Some(data)),
        Ok(expected.map(str::to_owned).to_vec())
    );
}

#[test]
fn the_only_member_needs_no_name() {
    let one = |data| filled(&["p", "{}"], data);
    assert_eq!(one(None), Ok(vec!["7".to_owned()]));
    assert_eq!(one(Some(r#"{"line":"a b"}"#)), Ok(vec!["a b".to_owned()]));
    assert_eq!(one(Some(r#""a b""#)), Ok(vec!["a b".to_owned()]));
    assert_eq!(one(Some("17")), Ok(vec!["17".to_owned()]));
    is_refused(one(Some(r#"{"a":1,"b":2}"#)), "an object with 2");
    is_refused(one(Some("{}")), "an object with 0");
    is_refused(one(Some("[1]")), "a list");
    is_refused(one(Some("null")), "is null");
}

#[test]
fn a_value_that_is_missing_null_or_an_option_is_the_items_fault() {
    let one = |word, data| filled(&["p", word], Some(data));
    is_refused(one("{x}", r#"{"y":1}"#), "\"x\" is missing in the item's data");
    is_refused(one("{/x/0}", r#"{"x":{}}"#), "\"/x/0\" is missing");
    is_refused(one("{x}", r#"{"x":null}"#), "is null");
    is_refused(one("{x}", r#"{"x":{"a":1}}"#), "{…:json}");
    is_refused(one("{x}", r#"{"x":"-rf"}"#), "be taken for an option");
    is_refused(one("{e}{x}", r#"{"e":"","x":"-rf"}"#), "be taken for an option");
    is_refused(one("{x}", r#"{"x":-5}"#), "be taken for an option");
    is_refused(one("{e}-x", r#"{"e":""}"#), "be taken for an option");
    is_refused(one("{x}", r#"{"x":"a\u0000b"}"#), "has a NUL character");
    assert_eq!(one("./{x}", r#"{"x":"-rf"}"#), Ok(vec!["./-rf".to_owned()]));
    assert_eq!(one("{x}", r#"{"x":""}"#), Ok(vec![String::new()]));
    let allowed = Argv::parse(&["p", "{x}"], true).expect("sound");
    assert_eq!(
        allowed.fill(&facts(Some(r#"{"x":"-rf"}"#))),
        Ok(vec!["-rf".to_owned()])
    );
}

#[test]
fn a_template_that_can_not_work_is_refused() {
    let fault = |words: &[&str]| Argv::parse(words, false).expect_err("unsound");
    assert_eq!(fault(&[]), ProgramFault::NoProgram);
    assert_eq!(fault(&["", "x"]), ProgramFault::NoProgram);
    assert_eq!(fault(&["{x}"]), ProgramFault::ProgramVaries("{x}".to_owned()));
    let wrong = [
        ("{", "not part of a placeholder"),
        ("}", "not part of a placeholder"),
        ("a{b", "unclosed {"),
        ("a}b", "not part of a placeholder"),
        ("{a{b}", "unclosed {"),
        ("{{a}", "not part of a placeholder"),
        ("{a}}", "not part of a placeholder"),
        ("{/a~}", "not a JSON pointer"),
        ("a\0", "a NUL character"),
        ("{secret.key}", "every user of the machine"),
    ];
    for (word, said) in wrong {
        let why = fault(&["p", word]).to_string();
        assert!(why.contains(said), "{word}: {why}");
    }
}

#[test]
fn a_column_that_is_not_there_is_named_with_those_that_are() {
    let columns = ["in".to_owned(), "out".to_owned()];
    let check = |word: &str, has_data| {
        let argv = Argv::parse(&["p", word], false).expect("sound");
        argv.check(has_data, if has_data { &columns } else { &[] })
    };
    for fine in ["{in}", "{/out/x}", "{index}", "text"] {
        assert_eq!(check(fine, true), Ok(()), "{fine}");
    }
    let wrong = check("{oops}", true).expect_err("no such column");
    assert!(
        wrong.what.contains("{oops}") && wrong.there_is.contains("{in} {out}"),
        "{wrong:?}"
    );
    assert!(check("{}", true).expect_err("two").what.contains("here are 2"));
    assert_eq!(check("{}", false), Ok(()));
    assert!(
        check("{in}", false)
            .expect_err("no data")
            .there_is
            .contains("{index}")
    );
}

#[test]
fn a_shell_gets_variables_and_never_text() {
    let text =
        ShellText::parse(r#"cat "$ROW_in_file" > "${ROW_out}" && echo $ROW_in_file $HOME"#).expect("sound");
    let data = r#"{"in-file":"$(rm -rf /)","out":"; ls","other":"x"}"#;
    let expected = [("ROW_in_file", "$(rm -rf /)"), ("ROW_out", "; ls")];
    let expected = expected
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    assert_eq!(text.variables(&facts(Some(data))), Ok(expected));
    let missing = text
        .variables(&facts(Some(r#"{"out":"x"}"#)))
        .expect_err("missing");
    assert_eq!(missing.0, "$ROW_in_file is missing in the item's data");
    let twice = text.variables(&facts(Some(r#"{"in-file":"a","in_file":"b","out":"x"}"#)));
    assert_eq!(
        twice.expect_err("two").0,
        "$ROW_in_file is the name of several columns"
    );
}

#[test]
fn a_variable_is_named_with_a_dollar_or_without() {
    let named = |text: &str| {
        let text = ShellText::parse(text).expect("sound");
        let set = text.variables(&facts(Some(r#"{"n":"1","m":"2"}"#)));
        let names = set.expect("they fit").into_iter().map(|(name, _)| name);
        names.collect::<Vec<_>>()
    };
    assert_eq!(named("echo ${#ROW_n} ${ROW_m:-none}"), ["ROW_m", "ROW_n"]);
    assert_eq!(named("awk 'BEGIN {print ENVIRON[\"ROW_n\"]}'"), ["ROW_n"]);
    assert_eq!(named("test $((ROW_n + ROW_m)) -gt 2"), ["ROW_m", "ROW_n"]);
    for text in ["echo MY_ROW_n", "echo ARROW_n", "echo ROW_", "echo row_n"] {
        assert_eq!(named(text), [""; 0], "{text}");
    }
}

#[test]
fn a_text_for_a_shell_is_compared_with_the_columns() {
    let columns = ["in file".to_owned(), "out".to_owned()];
    let check = |text: &str| ShellText::parse(text).expect("sound").check(true, &columns);
    assert_eq!(
        check("cp \"$ROW_in_file\" \"$ROW_out\"; awk '{print $1}'; echo ${out}"),
        Ok(())
    );
    let wrong = check("cp $ROW_oops x").expect_err("no such column");
    assert!(
        wrong.what.contains("$ROW_oops") && wrong.there_is.contains("\"$ROW_in_file\""),
        "{wrong:?}"
    );
    let braced = check("cp {out} x").expect_err("no place");
    assert_eq!(braced.there_is, "\"$ROW_out\"");
}

/// A template as a list of literal texts and names of columns, and the same as it is written.
fn argument() -> impl Strategy<Value = Vec<Result<String, usize>>> {
    let part = prop_oneof![any::<String>().prop_map(Ok), (0..3_usize).prop_map(Err)];
    prop::collection::vec(part, 0..5)
}

fn written(parts: &[Result<String, usize>]) -> String {
    let text = |text: &String| text.replace('\0', "").replace('{', "{{").replace('}', "}}");
    let one = |part: &Result<String, usize>| match part {
        Ok(plain) => text(plain),
        Err(column) => format!("{{c{column}}}"),
    };
    parts.iter().map(one).collect()
}

proptest! {
    #[test]
    fn no_value_leaves_its_argument(
        arguments in prop::collection::vec(argument(), 0..5),
        values in prop::collection::vec(any::<String>(), 3),
    ) {
        let words: Vec<String> = std::iter::once("p".to_owned()).chain(arguments.iter().map(|parts| written(parts))).collect();
        let row: Value = json!({"c0": values[0], "c1": values[1], "c2": values[2]});
        let row = row.to_string();
        let value = |part: &Result<String, usize>| match part {
            Ok(text) => text.replace('\0', ""),
            Err(column) => values[*column].clone(),
        };
        let naive: Vec<String> = arguments.iter().map(|parts| parts.iter().map(value).collect()).collect();
        let argv = Argv::parse(&words, true).expect("what was escaped is sound");
        match argv.fill(&facts(Some(&row))) {
            Ok(filled) => {
                prop_assert_eq!(filled, naive);
            }
            Err(why) => {
                prop_assert!(why.0.contains("a NUL") && values.iter().any(|value| value.contains('\0')));
            }
        }
    }

    #[test]
    fn no_value_begins_an_argument_with_a_dash(parts in argument(), values in prop::collection::vec("[-a]{0,2}", 3)) {
        let row = json!({"c0": values[0], "c1": values[1], "c2": values[2]}).to_string();
        let argv = Argv::parse(&["p", &written(&parts)], false).expect("sound");
        let is_empty = |part: &&Result<String, usize>| part.as_ref().is_ok_and(|text| text.replace('\0', "").is_empty());
        let begins_with_value = parts.iter().find(|part| !is_empty(part)).is_some_and(Result::is_err);
        let value = |part: &Result<String, usize>| match part {
            Ok(text) => text.replace('\0', ""),
            Err(column) => values[*column].clone(),
        };
        let naive: String = parts.iter().map(value).collect();
        let is_refused = begins_with_value && naive.starts_with('-');
        prop_assert_eq!(argv.fill(&facts(Some(&row))).is_err(), is_refused);
    }

    #[test]
    fn a_shell_gets_every_value_whole(value in any::<String>()) {
        let text = ShellText::parse("x \"$ROW_a\"").expect("sound");
        let row = json!({"a": value}).to_string();
        match text.variables(&facts(Some(&row))) {
            Ok(set) => prop_assert_eq!(set, vec![("ROW_a".to_owned(), value)]),
            Err(why) => prop_assert!(why.0.contains("a NUL") && value.contains('\0')),
        }
        prop_assert_eq!(text.text(), "x \"$ROW_a\"");
    }
}

#[test]
fn what_gnu_parallel_writes_is_told_with_what_stands_for_it() {
    let columns = ["line".to_owned()];
    for (place, there_is) in [
        ("{.}", r#""${ROW_line%.*}""#),
        ("{/}", r#""${ROW_line##*/}""#),
        ("{//}", r#""$(dirname "$ROW_line")""#),
        ("{/.}", r#""$(basename "${ROW_line%.*}")""#),
        ("{#}", "{index}"),
        ("{1}", "{line}"),
        ("{%}", "one of {line}"),
    ] {
        let argv = Argv::parse(&["echo", place], false).expect("a template");
        let fault = argv.check(true, &columns).expect_err("no column");
        assert_eq!(fault.what, format!("there is no column for {place}"));
        assert!(fault.there_is.contains(there_is), "{place}: {}", fault.there_is);
    }
}
