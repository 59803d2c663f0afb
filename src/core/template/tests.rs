use super::*;
use crate::business::request::RequestSpec;
use request::RequestTemplate;

const ROW: &str = r#"{"id":"7","name":"Zoë \"Z\" O'Hara","note":"a\nb","n":3,"yes":true,"none":null,"obj":{"a":[1,{"b/c":"deep"}]},"key":"k","empty":""}"#;

fn filled(text: &str, place: Place) -> Result<String, String> {
    filled_with(text, place, ROW)
}

fn filled_with(text: &str, place: Place, row: &str) -> Result<String, String> {
    let mut roots = Roots::default();
    let template = Template::parse(text, place, &mut roots).map_err(|why| why.to_string())?;
    let params = RawValue::from_string(r#"{"x":"p/1","deep":{"a":1}}"#.to_owned()).expect("JSON");
    let secrets = Secrets([("token".to_owned(), "ge heim".to_owned())].into());
    let constants = Constants {
        params: Some(&params),
        secrets: &secrets,
        is_masked: false,
    };
    let template = template.bind(constants).map_err(|why| why.to_string())?;
    let item = Item::new(&roots, Some(row), 41, "k7f3q2-t1-41", 2);
    let mut out = String::new();
    template.render(&item, &mut out).map_err(|why| why.to_string())?;
    Ok(out)
}

#[test]
fn each_place_writes_values_in_its_own_way() {
    let table = [
        (Place::Path, "{name}", "Zo%C3%AB%20%22Z%22%20O%27Hara"),
        (
            Place::Query,
            "a={name}&b={n}",
            "a=Zo%C3%AB%20%22Z%22%20O%27Hara&b=3",
        ),
        (Place::Form, "a={note}", "a=a%0Ab"),
        (Place::Header, "Bearer {secret.token}; {id}", "Bearer ge heim; 7"),
        (Place::Text, "<b>{name}</b>", "<b>Zoë \"Z\" O'Hara</b>"),
        (
            Place::Xml,
            "<?xml version='1.0'?><!-- a --><b c='{name}'>{note} {n}</b>",
            "<?xml version='1.0'?><!-- a --><b c='Zoë &quot;Z&quot; O&#39;Hara'>a&#10;b 3</b>",
        ),
        (
            Place::Cookie,
            "a={id}; b={secret.token}; {key}",
            "a=7; b=ge heim; k7f3q2-t1-41",
        ),
        (Place::Header, r#"W/"{id}" {name}"#, r#"W/"7" Zoë "Z" O'Hara"#),
        (Place::Json, r#"{"a": {name}}"#, r#"{"a": "Zoë \"Z\" O'Hara"}"#),
        (
            Place::Json,
            r#"{"a": "to {name}"}"#,
            r#"{"a": "to Zoë \"Z\" O'Hara"}"#,
        ),
        (
            Place::Json,
            "[{id},{id:number},{n},{yes},{none},{obj}]",
            r#"["7",7,3,true,null,{"a":[1,{"b/c":"deep"}]}]"#,
        ),
        (
            Place::Json,
            "[{index},{attempt},{key},{/key}]",
            r#"[41,2,"k7f3q2-t1-41","k"]"#,
        ),
        (
            Place::Json,
            "[{param.x},{param.deep},{secret.token}]",
            r#"["p/1",{"a":1},"ge heim"]"#,
        ),
        (Place::Path, "{param.x}", "p%2F1"),
        (
            Place::Text,
            "{/obj/a/1/b~1c} {obj:json}",
            r#"deep {"a":[1,{"b/c":"deep"}]}"#,
        ),
        (
            Place::Json,
            "[{n:text},{index:text},{obj:text}]",
            r#"["3","41","{\"a\":[1,{\"b/c\":\"deep\"}]}"]"#,
        ),
    ];
    for (place, template, wanted) in table {
        assert_eq!(filled(template, place), Ok(wanted.to_owned()), "{template}");
    }
}

#[test]
fn braces_that_are_none_of_ours_stay_what_they_are() {
    let table = [
        (Place::Text, "a {{b}} {id}", "a {b} 7"),
        (
            Place::Json,
            r#"{"a":{"b":{}, "c":{ "d":{id}}}}"#,
            r#"{"a":{"b":{}, "c":{ "d":"7"}}}"#,
        ),
        (Place::Json, r#"{"t":"{{id}} is {id}"}"#, r#"{"t":"{id} is 7"}"#),
        (
            Place::Json,
            r#"{"t":"say \"{id}\" \\{id}"}"#,
            r#"{"t":"say \"7\" \\7"}"#,
        ),
    ];
    for (place, template, wanted) in table {
        assert_eq!(filled(template, place), Ok(wanted.to_owned()), "{template}");
    }
}

#[test]
fn what_could_mean_two_things_is_refused() {
    let table = [
        (Place::Text, "a { b", "not part of a placeholder"),
        (Place::Text, "a } b", "}}"),
        (Place::Text, "{id", "unclosed {; write {{"),
        (Place::Text, "{}", "not part of a placeholder"),
        (Place::Json, r#"{"t":"{ "}"#, "not part of a placeholder"),
        (Place::Json, "{id}5", "not JSON"),
        (Place::Json, "[5{n}]", "not JSON"),
        (Place::Json, "[-{n}]", "not JSON"),
        (Place::Json, "{{id}: 1}", "not JSON"),
        (Place::Json, r#"{"t":"\{id}"}"#, "not JSON"),
        (Place::Json, r#"{"t":"\u00{id}"}"#, "not JSON"),
        (Place::Json, "", "not JSON"),
        (Place::Path, "%{id}", "%25"),
        (Place::Path, "%4{id}", "%25"),
        (Place::Header, "a\nb", "control character"),
        (Place::Xml, "<{id}/>", "in a tag"),
        (Place::Xml, "<a {id}='1'/>", "in a tag"),
        (Place::Xml, "<a b={id}/>", "in a tag"),
        (Place::Xml, "<!-- {id} -->", "in a comment"),
        (Place::Xml, "<![CDATA[{id}]]>", "in CDATA"),
        (Place::Xml, "<?a {id}?>", "in a processing instruction"),
        (
            Place::Xml,
            "<!DOCTYPE a [<!ENTITY b '{id}'>]>",
            "in a declaration",
        ),
        (Place::Xml, "<a>&{id};</a>", "in a reference"),
        (Place::Xml, "<a>{id}</a", "not XML"),
        (Place::Text, "{/a~2}", "not a JSON pointer"),
    ];
    for (place, template, why) in table {
        let said = filled(template, place).expect_err(template);
        assert!(said.contains(why), "{template}: {said}");
    }
}

#[test]
fn a_value_that_does_not_fit_names_its_column() {
    let table = [
        (Place::Text, "{nope}", "\"nope\" is missing"),
        (Place::Text, "{/obj/z}", "\"/obj/z\" is missing"),
        (Place::Path, "{none}", "\"none\" in the item's data is null"),
        (Place::Query, "{obj}", "{…:json}"),
        (
            Place::Json,
            "{name:number}",
            "\"name\" in the item's data is not a number",
        ),
        (Place::Json, "{empty:number}", "is not a number"),
        (Place::Json, "{n:boolean}", "neither true nor false"),
        (Place::Json, "{name:json}", "is not JSON"),
        (Place::Header, "x {note}", "has the character '\\n'"),
        (Place::Header, "x=\"{name}\"", "would end or escape the quotes"),
        (Place::Cookie, "a={name}", "no cookie's value may have"),
        (Place::Cookie, "a={/obj/a:json}", "no cookie's value may have"),
        (Place::Text, "{param.y}", "no parameter \"y\""),
        (Place::Text, "{secret.y}", "no secret \"y\""),
    ];
    for (place, template, why) in table {
        let said = filled(template, place).expect_err(template);
        assert!(said.contains(why), "{template}: {said}");
    }
}

#[test]
fn a_lone_surrogate_is_no_text_and_hides_no_other_member() {
    let row =
        r#"{"s":"\ud800","t":"\\ud800","u":"\udc00\ud800","both":"\ud83d\ude00","\ud800":1,"z":"last"}"#;
    let places = [
        Place::Path,
        Place::Query,
        Place::Form,
        Place::Header,
        Place::Text,
        Place::Argument,
    ];
    for place in places {
        for name in ["s", "u"] {
            let said = filled_with(&format!("{{{name}}}"), place, row).expect_err("no text");
            assert!(said.contains("has a lone surrogate"), "{place:?}: {said}");
        }
        assert!(filled_with("{t}{both}{z}", place, row).is_ok(), "{place:?}");
    }
    assert!(
        filled_with(r#"["{s}"]"#, Place::Json, row).is_err(),
        "two halves could meet"
    );
    assert_eq!(
        filled_with("[{s},{t},{z}]", Place::Json, row),
        Ok(r#"["\ud800","\\ud800","last"]"#.to_owned())
    );
    assert_eq!(
        filled_with("{}", Place::Argument, r#"{"\ud800":"x"}"#),
        Ok("x".to_owned())
    );
}

#[test]
fn a_column_with_a_colon_or_a_reserved_name_has_a_way() {
    let row = r#"{"a:b":"1","index":"2","param.x":"3","x:number":"4"}"#;
    let said = filled_with("{a:b} {/index} {/param.x} {/x:number:text}", Place::Text, row);
    assert_eq!(said, Ok("1 2 3 4".to_owned()));
}

fn compile(spec: RequestSpec) -> Result<RequestTemplate, String> {
    RequestTemplate::compile(&spec).map_err(|faults| {
        let lines: Vec<String> = faults
            .iter()
            .map(|one| format!("{}: {}", one.pointer, one.what))
            .collect();
        lines.join("\n")
    })
}

fn to(request: &str) -> RequestSpec {
    RequestSpec {
        call: request.to_owned(),
        ..RequestSpec::default()
    }
}

fn url(request: &str, row: &str) -> Result<String, String> {
    let template = compile(to(request))?;
    let item = template.item(Some(row), 0, "k", 1);
    template
        .render(&item)
        .map(|rendered| rendered.url)
        .map_err(|why| why.to_string())
}

#[test]
fn a_url_is_filled_in_its_path_and_query_only() {
    assert_eq!(
        url("GET http://h:1/a b/{x}?q={x}&é=1", r#"{"x":"ü/?&"}"#),
        Ok("http://h:1/a%20b/%C3%BC%2F%3F%26?q=%C3%BC%2F%3F%26&%C3%A9=1".to_owned())
    );
    assert_eq!(url("GET http://h", "{}"), Ok("http://h/".to_owned()));
    assert_eq!(
        url("GET http://h?a={x}", r#"{"x":"1"}"#),
        Ok("http://h/?a=1".to_owned())
    );
    assert_eq!(
        url("GET http://h/{/a/b}/{/c?d}", r#"{"a":{"b":"1"},"c?d":"2"}"#),
        Ok("http://h/1/2".to_owned())
    );
    for (wrong, why) in [
        ("GET {x}://h/", "/call"),
        ("GET http{x}://h/", "begins with neither"),
        ("GET http://{x}/", "host"),
        ("GET http://h.{x}.example/", "host"),
        ("GET http://h:{x}/", "port"),
        ("GET http://{x}@h/", "user"),
        ("GET http://h/#{x}", "fragment"),
        ("http://h/", "no method"),
        ("POST", "no URL"),
        ("post http://h/", "did you mean POST"),
        ("POTS http://h/", "did you mean POST"),
        ("delte http://h/", "did you mean DELETE"),
        ("CONNECT http://h/", "CONNECT"),
    ] {
        let said = url(wrong, r#"{"x":"1"}"#).expect_err(wrong);
        assert!(said.contains(why), "{wrong}: {said}");
    }
}

#[test]
fn a_path_segment_that_leads_elsewhere_is_refused() {
    for x in ["", ".", ".."] {
        let row = format!("{{\"x\":\"{x}\"}}");
        assert!(
            url("GET http://h/a/{x}/b", &row).is_err_and(|said| said.contains("leads elsewhere")),
            "{x:?}"
        );
    }
    for (template, x) in [
        ("http://h/.{x}", "."),
        ("http://h/%2e{x}", "."),
        ("http://h/{x}{x}", ""),
    ] {
        let row = format!("{{\"x\":\"{x}\"}}");
        assert!(url(&format!("GET {template}"), &row).is_err(), "{template}");
    }
    assert_eq!(
        url("GET http://h/v{x}", r#"{"x":".."}"#),
        Ok("http://h/v..".to_owned())
    );
}

#[test]
fn a_wrong_description_is_told_whole() {
    let headers = [("X Y", "1"), ("host", "h"), ("x-a", "{"), ("X-A", "2")];
    let said = compile(RequestSpec {
        call: "POST http://{h}/".to_owned(),
        headers: headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        json: Some("{".to_owned()),
        form: Some("a".to_owned()),
        ..RequestSpec::default()
    })
    .expect_err("all of it is wrong");
    for pointer in [
        "/call: ",
        "/headers/X Y: ",
        "/headers/host: ",
        "/headers/x-a: ",
        "/form: ",
        "/json: ",
    ] {
        assert!(said.contains(pointer), "{pointer}\n{said}");
    }
}

#[test]
fn a_body_is_escaped_by_its_content_type_or_refused() {
    let body = |content_type: &str, text: &str, form: bool| {
        let mut spec = to("POST http://h/");
        *(if form { &mut spec.form } else { &mut spec.text }) = Some(text.to_owned());
        if !content_type.is_empty() {
            spec.headers = [("Content-Type".to_owned(), content_type.to_owned())].into();
        }
        let template = compile(spec)?;
        let item = template.item(Some(r#"{"x":"a<&b=1"}"#), 0, "k", 1);
        template
            .render(&item)
            .map(|done| done.body)
            .map_err(|why| why.to_string())
    };
    for (content_type, text, wanted) in [
        ("", "v={x}", "v=a<&b=1"),
        ("text/plain; charset=utf-8", "v={x}", "v=a<&b=1"),
        ("application/x-www-form-urlencoded", "v={x}\n", "v=a%3C%26b%3D1"),
        ("text/xml", "<v>{x}</v>\n", "<v>a&lt;&amp;b=1</v>\n"),
        (
            "application/SOAP+XML; charset=utf-8",
            "<v>{x}</v>",
            "<v>a&lt;&amp;b=1</v>",
        ),
        (
            "",
            "<?xml version=\"1.0\"?><v>{x}</v>",
            "<?xml version=\"1.0\"?><v>a&lt;&amp;b=1</v>",
        ),
        ("text/csv", "a,b", "a,b"),
    ] {
        assert_eq!(
            body(content_type, text, false),
            Ok(wanted.to_owned()),
            "{content_type}"
        );
    }
    for (content_type, is_form, why) in [
        (
            "text/csv",
            false,
            "doesn't know how a value is escaped in \"text/csv\"",
        ),
        ("text/html", false, "doesn't know how"),
        ("multipart/form-data; boundary=x", false, "doesn't know how"),
        ("{x}", false, "doesn't know how"),
        ("application/vnd.api+json", false, "give the body as `json`"),
        ("application/xml", true, "change one of them"),
    ] {
        let said = body(content_type, "v={x}", is_form).expect_err(content_type);
        assert!(said.contains(why), "{content_type}: {said}");
    }
}

#[test]
fn secrets_are_shown_as_a_mask_only_where_they_are_to_be() {
    let template = compile(RequestSpec {
        headers: [("authorization".to_owned(), "Bearer {secret.t}".to_owned())].into(),
        json: Some(r#"{"t":{secret.t},"u":"{secret.t}"}"#.to_owned()),
        ..to("POST http://h/{secret.t}")
    })
    .expect("fine");
    let secrets = Secrets([("t".to_owned(), "geheim".to_owned())].into());
    assert!(template.check_secrets(&secrets).is_ok());
    assert!(
        template
            .check_secrets(&Secrets::default())
            .is_err_and(|said| said.contains("\"t\""))
    );
    let one_more = Secrets([("t".to_owned(), String::new()), ("u".to_owned(), String::new())].into());
    assert!(
        template
            .check_secrets(&one_more)
            .is_err_and(|said| said.contains("\"u\""))
    );
    let filled = |is_masked| {
        let constants = Constants {
            params: None,
            secrets: &secrets,
            is_masked,
        };
        let bound = template.bind(constants).expect("bound");
        let rendered = bound.render(&bound.item(None, 0, "k", 1)).expect("filled");
        format!("{} {} {}", rendered.url, rendered.headers[0], rendered.body)
    };
    assert_eq!(
        filled(true),
        r#"http://h/•••• Bearer •••• {"t":"••••","u":"••••"}"#
    );
    assert_eq!(filled(false).matches("geheim").count(), 4);
    assert!(!format!("{secrets:?}").contains("geheim"));
}

mod properties {
    //! No content of a column can break out of its place: what was written is read by parsers that know nothing of templates.

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::*;
    use crate::business::request::RequestSpec;
    use request::{Rendered, RequestTemplate};

    /// Texts that have a meaning somewhere are likelier than others.
    fn content() -> impl Strategy<Value = String> {
        let hostile = prop::sample::select(vec![
            "\"", "\\", "/", "..", ".", "%", "%2e", "%2F", "?", "&", "=", "#", "+", " ", "\r\n", "\0", "\n",
            "\t", "{", "}", "{a}", "{{", "\u{7f}", "\u{85}", "\u{2028}", "é", "😀", "'", "<", ";", ":", "@",
            "\\u0022", "null", "a",
        ]);
        let piece =
            prop_oneof![3 => hostile.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)];
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
        fn xml_keeps_its_elements_and_its_values(a in content()) {
            let template = "<r a=\"{a}\" b='{a}'>x{a}</r>";
            let spec = RequestSpec {
                call: "POST http://h/".to_owned(),
                headers: [("content-type".to_owned(), "application/xml".to_owned())].into(),
                text: Some(template.to_owned()),
                ..RequestSpec::default()
            };
            let is_no_xml = |c: char| c < ' ' && !"\t\n\r".contains(c) || matches!(c, '\u{fffe}' | '\u{ffff}');
            let Ok(rendered) = render(&spec, &json!({"a": a})) else {
                prop_assert!(a.contains(is_no_xml));
                return Ok(());
            };
            let value = rendered.body.strip_prefix("<r a=\"").and_then(|rest| rest.split('"').next()).expect("a value");
            prop_assert_eq!(&rendered.body, &template.replace("{a}", value));
            prop_assert!(!value.contains(['<', '>', '"', '\'', '\n', '\t', '\r']));
            let read = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#9;", "\t"), ("&#10;", "\n"),
                ("&#13;", "\r"), ("&amp;", "&")].iter().fold(value.to_owned(), |text, (from, to)| text.replace(from, to));
            prop_assert_eq!(read, a);
        }

        #[test]
        fn cookies_keep_their_number_or_are_refused(a in content()) {
            let spec = RequestSpec {
                call: "GET http://h/".to_owned(),
                headers: [("Cookie".to_owned(), "a={a}; z=9".to_owned())].into(),
                ..RequestSpec::default()
            };
            let Ok(rendered) = render(&spec, &json!({"a": a})) else {
                prop_assert!(a.contains(|c: char| !c.is_ascii_graphic() || "\",;\\".contains(c)));
                return Ok(());
            };
            prop_assert_eq!(rendered.headers[0].split(';').collect::<Vec<_>>(), vec![format!("a={a}"), " z=9".to_owned()]);
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
}

#[test]
fn a_placeholder_where_nothing_is_filled_in_is_found() {
    assert_eq!(unfilled("http://h/user/{id}?a={b}"), Some("{id}"));
    for url in ["http://h/user/%7Bid%7D", "http://h/{", "http://h/}{", "http://h/"] {
        assert_eq!(unfilled(url), None, "{url}");
    }
}

#[test]
fn a_method_of_somebodys_own_is_taken_as_it_is() {
    for own in ["PURGE", "PROPFIND", "LIST", "OPTIONS"] {
        assert_eq!(
            url(&format!("{own} http://h/"), "{}"),
            Ok("http://h/".to_owned()),
            "{own}"
        );
    }
}
