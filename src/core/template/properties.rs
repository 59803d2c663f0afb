//! No content of a column can break out of its place: what was written is read by parsers that know nothing of templates.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::business::request::RequestSpec;
use request::{Rendered, RequestTemplate};

/// Texts that have a meaning somewhere are likelier than others.
fn content() -> impl Strategy<Value = String> {
    let hostile = prop::sample::select(vec![
        "\"", "\\", "/", "..", ".", "%", "%2e", "%2F", "?", "&", "=", "#", "+", " ", "\r\n", "\0", "\n",
        "\t", "{", "}", "{a}", "{{", "\u{7f}", "\u{85}", "\u{2028}", "é", "😀", "'", "<", ";", ":", "@",
        "\\u0022", "null", "a",
    ]);
    let piece = prop_oneof![3 => hostile.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn render(spec: &RequestSpec, row: &Value) -> Result<Rendered, ValueFault> {
    let template = RequestTemplate::compile(spec).expect("the template is sound");
    let row = row.to_string();
    template.render(&template.item(Some(&row), 7, "k", 1))
}

proptest! {
    #[test]
    fn a_url_keeps_its_host_its_segments_and_its_parameters(a in content(), b in content()) {
        let request = "GET https://api.example:8443/v1/{a}/x{b}?q={b}&{a}=1&z=9".to_owned();
        let spec = RequestSpec { call: request, ..RequestSpec::default() };
        let rendered = match render(&spec, &json!({"a": a, "b": b})) {
            Ok(rendered) => rendered,
            Err(_) => {
                prop_assert!(["", ".", ".."].contains(&a.as_str()));
                return Ok(());
            }
        };
        let read = ::url::Url::parse(&rendered.url).expect("a URL");
        prop_assert_eq!((read.scheme(), read.host_str(), read.port()), ("https", Some("api.example"), Some(8443)));
        prop_assert_eq!((read.username(), read.password(), read.fragment()), ("", None, None));
        let segments: Vec<String> = read.path_segments().expect("a path")
            .map(|one| percent_encoding::percent_decode_str(one).decode_utf8().expect("UTF-8").into_owned()).collect();
        prop_assert_eq!(segments, vec!["v1".to_owned(), a.clone(), format!("x{b}")]);
        let pairs: Vec<(String, String)> = read.query_pairs().map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        prop_assert_eq!(pairs, vec![pair("q", &b), pair(&a, "1"), pair("z", "9")]);
    }

    #[test]
    fn json_keeps_its_shape_and_its_values(a in content(), n in any::<i64>()) {
        let template = r#"{"v":{a},"in":"<{a}>","{a}!":[{n},{n:text},"{n}"],"end":{"x":{a:text}}}"#;
        let spec = RequestSpec {
            call: "POST http://h/".to_owned(),
            json: Some(template.to_owned()),
            ..RequestSpec::default()
        };
        let rendered = render(&spec, &json!({"a": a, "n": n})).expect("any text is JSON");
        let read: Value = serde_json::from_str(&rendered.body).expect("JSON");
        let text = n.to_string();
        let wanted = json!({"v": a, "in": format!("<{a}>"), format!("{a}!"): [n, text, text], "end": {"x": a}});
        prop_assert_eq!(read, wanted);
    }

    #[test]
    fn any_json_stands_for_itself(a in content(), b in content()) {
        let value = json!({a.as_str(): [b, null, 1.5, true]});
        let spec = RequestSpec {
            call: "POST http://h/".to_owned(),
            json: Some(r#"[{v},{t:json},{v:text}]"#.to_owned()),
            ..RequestSpec::default()
        };
        let rendered = render(&spec, &json!({"v": value, "t": value.to_string()})).expect("JSON");
        let read: Value = serde_json::from_str(&rendered.body).expect("JSON");
        prop_assert_eq!(read, json!([value, value, value.to_string()]));
    }

    #[test]
    fn a_form_keeps_its_fields(a in content(), b in content()) {
        let spec = RequestSpec {
            call: "POST http://h/".to_owned(),
            form: Some("a={a}&fixed=1&{b}={a}".to_owned()),
            ..RequestSpec::default()
        };
        let rendered = render(&spec, &json!({"a": a, "b": b})).expect("any text fits a form");
        let read: Vec<(String, String)> = ::url::form_urlencoded::parse(rendered.body.as_bytes()).into_owned().collect();
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        prop_assert_eq!(read, vec![pair("a", &a), pair("fixed", "1"), pair(&b, &a)]);
    }

    #[test]
    fn a_header_is_one_line_or_refused(a in content()) {
        let spec = RequestSpec {
            call: "GET http://h/".to_owned(),
            headers: [("x-a".to_owned(), "<{a}>".to_owned())].into(),
            ..RequestSpec::default()
        };
        let is_fit = !a.chars().any(|c| c.is_ascii_control() && c != '\t');
        match render(&spec, &json!({"a": a})) {
            Ok(rendered) => {
                prop_assert!(is_fit && !rendered.headers[0].contains(['\r', '\n', '\0']));
                prop_assert_eq!(&rendered.headers[0], &format!("<{a}>"));
            }
            Err(_) => prop_assert!(!is_fit),
        }
    }

    #[test]
    fn conversions_write_what_they_say_or_nothing(a in content()) {
        for (conversion, is) in [("number", Value::is_number as fn(&Value) -> bool), ("boolean", Value::is_boolean)] {
            let spec = RequestSpec {
                call: "POST http://h/".to_owned(),
                json: Some(format!("[{{a:{conversion}}},1]")),
                ..RequestSpec::default()
            };
            for text in [a.clone(), "1".to_owned(), format!("1{a}"), format!("true{a}")] {
                if let Ok(rendered) = render(&spec, &json!({"a": text})) {
                    let read: Value = serde_json::from_str(&rendered.body).expect("JSON");
                    prop_assert!(is(&read[0]) && read[1] == 1 && read[2].is_null(), "{}", rendered.body);
                }
            }
        }
    }

    #[test]
    fn no_template_panics_and_what_compiles_can_be_filled(text in content(), row in content()) {
        for place in [Place::Path, Place::Query, Place::Header, Place::Json, Place::Form, Place::Text] {
            let mut roots = Roots::default();
            if let Ok(template) = Template::parse(&text, place, &mut roots) {
                let item = Item::new(&roots, Some(&row), 0, "k", 1);
                let mut out = String::new();
                if template.render(&item, &mut out).is_ok() && place == Place::Json {
                    prop_assert!(serde_json::from_str::<Value>(&out).is_ok(), "{text:?} became {out:?}");
                }
            }
        }
    }
}
