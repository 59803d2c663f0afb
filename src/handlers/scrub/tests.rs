use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;

const SECRET: &str = "Bearer s3cr3t/\"tok\"en-éß+==x";

fn scrubber(secrets: &[&'static str]) -> Scrubber {
    Scrubber::new(secrets.iter().copied())
}

#[test]
fn a_secret_is_found_however_it_is_written() {
    let scrubber = scrubber(&[SECRET, "s3cr3t"]);
    let json = serde_json::Value::from(SECRET).to_string();
    let html = SECRET.replace('"', "&quot;").replace('/', "&#x2F;");
    let units: String = SECRET
        .encode_utf16()
        .map(|unit| format!("\\u{unit:04X}"))
        .collect();
    let percent: String = SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let twice = serde_json::Value::from(json.as_str()).to_string();
    let table = [
        (SECRET.to_owned(), "••••"),
        (json[1..json.len() - 1].to_owned(), "••••"),
        (json.replace('/', "\\/"), "\"••••\""),
        (twice, "\"\\\"••••\\\"\""),
        (format!("\"{units}\""), "\"••••\""),
        (html, "••••"),
        (format!("/x?a={percent}&b=1"), "/x?a=••••&b=1"),
        ("you sent s3cr3t/\"tok!".to_owned(), "you sent••••!"),
        ("en-üx is no part".to_owned(), "en-üx is no part"),
        (
            "tok\"en-ü is cut at characters".to_owned(),
            "•••• is cut at characters",
        ),
        ("s3cr3ts3cr3t, s3cr3".to_owned(), "••••, s3cr3"),
        (
            "nothing of it: \\n %41 &amp; Bearer token".to_owned(),
            "nothing of it: \\n %41 &amp; Bearer token",
        ),
    ];
    for (said, shown) in table {
        assert_eq!(scrubber.text(&said), shown, "{said}");
    }
}

#[test]
fn base64_hides_nothing_wherever_the_secret_stands_in_it() {
    let scrubber = scrubber(&[SECRET]);
    for before in ["", "a", "ab", "name:"] {
        let whole = format!("{before}{SECRET} and more");
        for text in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
            let shown = scrubber.text(&text);
            let left: String = shown.split(MASK).collect();
            assert!(
                shown.contains(MASK) && left.len() < text.len() - SECRET.len(),
                "{text} {shown}"
            );
        }
    }
    let basic = scrubber_of_basic();
    assert_eq!(basic.text("hello api-user:hunter2!"), "hello ••••!");
}

fn scrubber_of_basic() -> Scrubber {
    scrubber(&["Basic YXBpLXVzZXI6aHVudGVyMg=="])
}

/// Bytes as this writer would put them into a string.
fn written(writer: u8, secret: &str) -> String {
    secret
        .chars()
        .map(|c| match writer {
            0 => c.to_string(),
            1 => {
                let json = serde_json::Value::from(c.to_string()).to_string();
                json[1..json.len() - 1].replace('/', "\\/")
            }
            2 => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect(),
            3 => c.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect(),
            4 => format!("&#{};", u32::from(c)),
            _ => format!("&#x{:X};", u32::from(c)),
        })
        .collect()
}

proptest! {
    #[test]
    fn eight_bytes_of_a_secret_never_come_through_and_json_stays_json(
        before in "[pq\\\\]{0,6}", from in 0..SECRET.chars().count() - 8, len in 8..30_usize, writer in 0..6_u8, after in "[pq\\\\]{0,6}",
    ) {
        let scrubber = scrubber(&[SECRET]);
        let part: String = SECRET.chars().skip(from).take(len).collect();
        prop_assume!(part.len() >= 8);
        let json = |text: &str| { let json = serde_json::Value::from(text).to_string(); json[1..json.len() - 1].to_owned() };
        let middle = if writer == 0 { json(&part) } else { written(writer, &part) };
        let said = format!("[\"{}{middle}{}\"]", json(&before), json(&after));
        let shown = scrubber.text(&said);
        let read: Vec<String> = serde_json::from_str(&shown).expect("still JSON");
        // A backslash before it may be taken for one of its own escapes; a quote at its ends may be JSON's.
        let plain = |text: &str| text.replace(['\\', '"'], "");
        prop_assert_eq!(plain(&read[0]), plain(&format!("{before}{MASK}{after}")), "{} {}", said, shown);
    }
}
