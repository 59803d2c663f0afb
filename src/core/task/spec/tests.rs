use super::*;

fn patch(request: Request, members: &str) -> Result<SpecPatch, serde_json::Error> {
    let members: BTreeMap<String, Box<serde_json::value::RawValue>> = serde_json::from_str(members)?;
    let mut patch = SpecPatch::default();
    for (name, value) in &members {
        let attribute = Attribute::find(name, request).expect("the request may name it");
        patch.read(attribute, &mut serde_json::Deserializer::from_str(value.get()))?;
    }
    Ok(patch)
}

const WHOLE: &str = r#"{"name":"x","labels":{"a":"b"},"skip_first":3,"params":{"n":12345678901234567890123},"send_params":true,
"limits":["vendor"],"metering":{"limits":["300/min","5 eur"],"cost":["eur = {n:number}"]},"shards":4,"priority":-7,"start_at":"2026-11-20T17:02:11.500Z","deadline":"2026-11-21T00:00:00.000Z",
"canary":{"items":10,"then":"continue"}}"#;

#[test]
fn every_attribute_is_read_and_written_the_same() {
    let spec: TaskSpec = serde_json::from_str(WHOLE).expect("a sound spec");
    assert_eq!(
        serde_json::to_string(&spec).expect("it can be written"),
        WHOLE.replace('\n', "")
    );
    let named = patch(Request::Create, WHOLE).expect("a sound request");
    assert_eq!(named.named().count(), ATTRIBUTES.len());
    assert_eq!(named.apply(&TaskSpec::default()), spec);
}

#[test]
fn a_patch_changes_the_attributes_it_names_and_no_other() {
    let spec: TaskSpec = serde_json::from_str(WHOLE).expect("a sound spec");
    assert_eq!(SpecPatch::default().apply(&spec), spec);
    let edit = patch(Request::Edit, r#"{"name":null,"deadline":null,"params":null}"#).expect("sound");
    let names: Vec<&str> = edit.named().map(|attribute| attribute.name).collect();
    assert_eq!(names, ["name", "deadline"], "null takes away what may be none");
    let edited = edit.apply(&spec);
    assert_eq!(
        (edited.name, edited.deadline, edited.params),
        (None, None, spec.params)
    );
}

#[test]
fn a_redrive_inherits_the_labels_and_no_canary_and_a_clone_inherits_both() {
    let origin: TaskSpec = serde_json::from_str(WHOLE).expect("a sound spec");
    let of = |request| {
        SpecPatch::default()
            .inherit(&origin, request)
            .apply(&TaskSpec::default())
    };
    let (copy, redrive) = (of(Request::Clone), of(Request::Redrive));
    assert_eq!((&copy.labels, &redrive.labels), (&origin.labels, &origin.labels));
    assert_eq!((copy.canary, redrive.canary), (origin.canary, None));
    assert_eq!((copy.name, copy.start_at, copy.deadline), (None, None, None));
}

#[test]
fn a_value_of_another_form_is_refused() {
    for wrong in [
        r#"{"priority":"high"}"#,
        r#"{"start_at":"tomorrow"}"#,
        r#"{"canary":[5]}"#,
        r#"{"canary":{"items":0}}"#,
        r#"{"labels":["a"]}"#,
        r#"{"shards":0}"#,
    ] {
        assert!(patch(Request::Create, wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_number_that_no_tree_holds_is_kept_as_it_was_written() {
    let spec = patch(Request::Create, r#"{"params":{"n":1e400}}"#)
        .expect("JSON")
        .apply(&TaskSpec::default());
    let written = serde_json::to_string(&spec.members(|attribute| attribute.name == "params"));
    assert_eq!(written.expect("it can be written"), r#"{"params":{"n":1e400}}"#);
    let tree = spec.params.map(|params| params.value());
    assert_eq!(tree, Some(serde_json::Value::from(r#"{"n":1e400}"#)));
}
