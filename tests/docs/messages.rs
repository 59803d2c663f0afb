//! `ui/app/words/messages.zh-CN.js`, the Chinese templates of the dashboard, is made from the messages of `windrow_words`.

use super::generated::check;

const HEAD: &str = "\
/** @file Chinese templates of the node's messages, by code. Made by tests/docs/messages.rs; write it anew with UPDATE_DOCS=1. */
export default {
";
/// Width at which a line is full. Unit: characters.
const WIDTH: usize = 180;

/// Areas of the messages that answers carry with their code: explanations, advice, the state of handlers, and their
/// parts. All others reach a page as text.
const AREAS: [&str; 8] = [
    "advice", "business", "cause", "explain", "handler", "list", "meter", "status",
];

/// Writes a text as a literal of JavaScript.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[test]
fn chinese_messages_of_the_dashboard_are_generated() {
    let (mut file, mut line) = (HEAD.to_owned(), String::new());
    let is_sent = |code: &str| code.split('.').next().is_some_and(|area| AREAS.contains(&area));
    for form in windrow_words::catalog().filter(|form| is_sent(form.code)) {
        let entry = format!(" {}: {},", literal(form.code), literal(form.chinese));
        if !line.is_empty() && line.chars().count() + entry.chars().count() > WIDTH {
            file += &format!(" {line}\n");
            line.clear();
        }
        line += &entry;
    }
    file += &format!(" {line}\n}};\n");
    check("ui/app/words/messages.zh-CN.js", &file);
}
