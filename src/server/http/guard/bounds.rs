//! Size limits for strings and lists in bodies: added to the OpenAPI document where none is stated, and checked on
//! every body before anything is done with it.
//!
//! Only sizes are checked; the handlers check values and report them better. Strings inside free-form values (a
//! task's parameters, items) are limited only by the size of the whole body.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

use crate::service::{FieldFault, ServiceError};
use windrow_core::text::{QUOTE_CHARS_MAX, cut};

/// Longest member name, in characters.
const NAME_CHARS_MAX: usize = 256;
/// Longest string without a limit of its own, in characters.
const TEXT_CHARS_MAX: usize = 8192;
/// Longest parameter without a limit of its own, in characters. Together they are part of a URL or of the headers,
/// which may have 64 KiB.
const PARAMETER_CHARS_MAX: usize = 1000;
/// Longest string that has a pattern or format but no limit of its own, in characters.
const FORM_CHARS_MAX: usize = 128;
/// Most errors reported per body.
const FAULTS_MAX: usize = 10;
/// Location of named schemas in the document.
const NAMED: &str = "/components/schemas/";

/// Adds a length limit to every string in parameters and bodies that has none.
pub(crate) fn complete(document: &mut Value) {
    let mut named = std::mem::take(&mut document["components"]["schemas"]);
    let mut used = Vec::new();
    for operation in operations(document) {
        // Use pointers: indexing would insert `null` for missing members.
        let parameters = operation.pointer_mut("/parameters").and_then(Value::as_array_mut);
        let schemas = parameters
            .into_iter()
            .flatten()
            .filter_map(|one| one.get_mut("schema"));
        schemas.for_each(|schema| bound(schema, PARAMETER_CHARS_MAX, &mut used));
        let bodies = operation
            .pointer_mut("/requestBody/content")
            .and_then(Value::as_object_mut);
        let schemas = bodies
            .into_iter()
            .flatten()
            .filter_map(|(_, one)| one.get_mut("schema"));
        schemas.for_each(|schema| bound(schema, TEXT_CHARS_MAX, &mut used));
    }
    let mut at = 0;
    while let Some(name) = used.get(at).cloned() {
        if let Some(schema) = named.get_mut(&name) {
            bound(schema, TEXT_CHARS_MAX, &mut used);
        }
        at += 1;
    }
    document["components"]["schemas"] = named;
}

fn operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    paths.flat_map(|(_, item)| {
        item.as_object_mut()
            .into_iter()
            .flatten()
            .map(|(_, operation)| operation)
    })
}

/// Adds limits to the strings of a schema that have none, and collects the named schemas it refers to.
fn bound(schema: &mut Value, most: usize, used: &mut Vec<String>) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(|one| bound(one, most, used)),
        Value::Object(members) => {
            if let Some(name) = members
                .get("$ref")
                .and_then(named)
                .filter(|name| !used.contains(name))
            {
                used.push(name);
            }
            if members.get("type").is_some_and(is_text)
                && !["maxLength", "enum", "const"]
                    .iter()
                    .any(|one| members.contains_key(*one))
            {
                let is_form = members.contains_key("pattern") || members.contains_key("format");
                members.insert(
                    "maxLength".to_owned(),
                    json!(if is_form { FORM_CHARS_MAX } else { most }),
                );
            }
            for inner in ["items", "additionalProperties", "oneOf", "anyOf", "allOf"] {
                members
                    .get_mut(inner)
                    .into_iter()
                    .for_each(|inner| bound(inner, most, used));
            }
            let properties = members.get_mut("properties").and_then(Value::as_object_mut);
            properties
                .into_iter()
                .flatten()
                .for_each(|(_, inner)| bound(inner, most, used));
        }
        _ => {}
    }
}

fn is_text(kind: &Value) -> bool {
    is_kind(kind, "string")
}

fn is_kind(kind: &Value, name: &str) -> bool {
    kind == name
        || kind
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == name))
}

/// Returns the schema name in a reference.
fn named(reference: &Value) -> Option<String> {
    let (_, name) = reference.as_str()?.split_once(NAMED)?;
    Some(name.to_owned())
}

/// Size limits of a value. If it may have several forms, the widest limit counts.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// Set if the document leaves the value open; nothing inside it is checked.
    is_any: bool,
    /// Longest string, in characters.
    text: Option<usize>,
    /// Longest list, in entries.
    list: Option<usize>,
    members: BTreeMap<String, Shape>,
    /// Limits of list items and of members not named in the document.
    others: Option<Box<Shape>>,
}

impl Shape {
    /// Returns the limits of an operation's JSON body, `None` if it takes none.
    pub(crate) fn of_body(operation: &Value, document: &Value) -> Option<Shape> {
        let mut contents = operation["requestBody"]["content"].as_object()?.iter();
        let (_, content) = contents.find(|(kind, _)| is_json(kind))?;
        let mut shape = Shape::default();
        shape.add(&content["schema"], document, &mut Vec::new());
        Some(shape)
    }

    /// Adds the limits of a schema. `within` lists the enclosing named schemas, to stop at recursion.
    fn add(&mut self, schema: &Value, document: &Value, within: &mut Vec<String>) {
        if let Some(name) = named(&schema["$ref"]).filter(|name| !within.contains(name)) {
            within.push(name.clone());
            self.add(&document["components"]["schemas"][&name], document, within);
            within.pop();
        }
        if is_text(&schema["type"]) {
            let most = schema["maxLength"]
                .as_u64()
                .and_then(|most| usize::try_from(most).ok());
            // Nothing longer can match a closed list of words; the handler reports those it accepts.
            self.text = self.text.max(Some(most.unwrap_or(TEXT_CHARS_MAX)));
        }
        let most = schema["maxItems"]
            .as_u64()
            .and_then(|most| usize::try_from(most).ok());
        self.list = self.list.max(most);
        for form in ["oneOf", "anyOf", "allOf"] {
            let forms = schema[form].as_array().into_iter().flatten();
            forms.for_each(|one| self.add(one, document, within));
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            self.members
                .entry(name.clone())
                .or_default()
                .add(inner, document, within);
        }
        for inner in ["items", "additionalProperties"] {
            if schema[inner].is_object() {
                self.others
                    .get_or_insert_default()
                    .add(&schema[inner], document, within);
            }
        }
        self.is_any |= ["$ref", "type", "oneOf", "anyOf", "allOf"]
            .iter()
            .all(|key| schema.get(key).is_none());
    }

    /// Checks a body against the limits. Invalid JSON is left to the handler.
    ///
    /// # Errors
    /// The strings that are too long, with their pointers.
    pub(crate) fn check(&self, body: &[u8]) -> Result<(), ServiceError> {
        let mut found = Found::default();
        let mut reader = serde_json::Deserializer::from_slice(body);
        // Syntax errors are reported later by the handler's own parser.
        Look(self, &mut found).deserialize(&mut reader).ok();
        ServiceError::refuse(found.faults)
    }
}

/// Returns true for JSON media types that this node accepts.
pub(crate) fn is_json(kind: &str) -> bool {
    kind == "application/json" || kind.ends_with("+json")
}

/// Current position of the reader and the errors found so far.
#[derive(Default)]
struct Found {
    path: Vec<String>,
    faults: Vec<FieldFault>,
}

impl Found {
    fn add(&mut self, what: String) {
        if self.faults.len() < FAULTS_MAX {
            let place: String = self.path.iter().map(|part| format!("/{part}")).collect();
            self.faults.push(FieldFault::new(place, what));
        }
    }
}

/// Value being read, together with its limits.
struct Look<'a>(&'a Shape, &'a mut Found);

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        if self.0.is_any {
            return from.deserialize_ignored_any(IgnoredAny).map(drop);
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        let most = self.0.text.unwrap_or(TEXT_CHARS_MAX);
        if text.chars().nth(most).is_some() {
            self.1.add(format!("must have at most {most} characters"));
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<(), A::Error> {
        let open = Shape {
            is_any: true,
            ..Shape::default()
        };
        let shape = self.0.others.as_deref().unwrap_or(&open);
        let most = self.0.list.unwrap_or(usize::MAX);
        for at in 0.. {
            if at == most && from.next_element::<IgnoredAny>()?.is_some() {
                self.1.add(format!("must have at most {most} entries"));
                while from.next_element::<IgnoredAny>()?.is_some() {}
                break;
            }
            self.1.path.push(at.to_string());
            let next = from.next_element_seed(Look(shape, self.1))?;
            self.1.path.pop();
            if next.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<(), A::Error> {
        let open = Shape {
            is_any: true,
            ..Shape::default()
        };
        while let Some(name) = from.next_key::<String>()? {
            let is_long = name.chars().nth(NAME_CHARS_MAX).is_some();
            let known = self.0.members.get(&name).or(self.0.others.as_deref());
            let part = cut(&name, QUOTE_CHARS_MAX).replace('~', "~0").replace('/', "~1");
            self.1.path.push(part);
            if is_long {
                self.1
                    .add(format!("a name must have at most {NAME_CHARS_MAX} characters"));
            }
            from.next_value_seed(Look(known.unwrap_or(&open), self.1))?;
            self.1.path.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The bodies that fill one text of a shape with so many characters, and where that text is.
    fn filled(
        shape: &Shape,
        place: &str,
        chars: usize,
        fill: &dyn Fn(Value) -> Value,
        all: &mut Vec<(String, usize, Value)>,
    ) {
        if let Some(most) = shape.text {
            all.push((
                place.to_owned(),
                most,
                fill(Value::String("x".repeat(most + chars))),
            ));
        }
        for (name, inner) in &shape.members {
            let within = |value: Value| fill(json!({name: value}));
            filled(inner, &format!("{place}/{name}"), chars, &within, all);
        }
        if let Some(inner) = &shape.others {
            let within = |value: Value| fill(json!([value]));
            filled(inner, &format!("{place}/0"), chars, &within, all);
        }
    }

    /// Texts, and lists of what the document describes, that it takes without a bound.
    fn unbounded(
        schema: &Value,
        document: &Value,
        place: &str,
        seen: &mut HashSet<String>,
        found: &mut Vec<String>,
    ) {
        if !schema.is_object() {
            return;
        }
        if let Some(name) = named(&schema["$ref"]).filter(|name| seen.insert(name.clone())) {
            let schema = &document["components"]["schemas"][&name];
            unbounded(schema, document, place, seen, found);
        }
        if is_text(&schema["type"])
            && ["maxLength", "enum", "const"]
                .iter()
                .all(|one| schema.get(one).is_none())
        {
            found.push(place.to_owned());
        }
        let is_open = schema["items"].as_object().is_none_or(serde_json::Map::is_empty);
        if is_kind(&schema["type"], "array") && !is_open && schema.get("maxItems").is_none() {
            found.push(place.to_owned());
        }
        let listed = ["oneOf", "anyOf", "allOf"]
            .iter()
            .flat_map(|form| schema[form].as_array().into_iter().flatten());
        let inside = [&schema["items"], &schema["additionalProperties"]]
            .into_iter()
            .chain(listed);
        inside.for_each(|one| unbounded(one, document, &format!("{place}/-"), seen, found));
        for (name, one) in schema["properties"].as_object().into_iter().flatten() {
            unbounded(one, document, &format!("{place}/{name}"), seen, found);
        }
    }

    #[test]
    fn every_text_and_list_that_is_taken_has_a_bound_and_that_of_texts_is_held() {
        let mut document = crate::http::tests::document();
        let before = document.to_string().matches("null").count();
        complete(&mut document);
        assert_eq!(
            document.to_string().matches("null").count(),
            before,
            "nothing is put beside"
        );
        let (mut texts, mut free, mut seen) = (0, Vec::new(), HashSet::new());
        for (path, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("methods") {
                let bodies = operation["requestBody"]["content"]
                    .as_object()
                    .into_iter()
                    .flatten();
                let schemas = bodies.map(|(_, content)| &content["schema"]);
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                for schema in schemas.chain(parameters.map(|one| &one["schema"])) {
                    unbounded(
                        schema,
                        &document,
                        &format!("{method} {path}"),
                        &mut seen,
                        &mut free,
                    );
                }
                let Some(shape) = Shape::of_body(operation, &document) else {
                    continue;
                };
                let (mut fits, mut long) = (Vec::new(), Vec::new());
                filled(&shape, "", 0, &|value| value, &mut fits);
                filled(&shape, "", 1, &|value| value, &mut long);
                for (_, _, body) in fits {
                    assert_eq!(
                        shape.check(body.to_string().as_bytes()),
                        Ok(()),
                        "{method} {path}"
                    );
                }
                for (place, most, body) in long {
                    texts += 1;
                    let refused = shape.check(body.to_string().as_bytes());
                    let told = format!("must have at most {most} characters");
                    assert_eq!(
                        refused,
                        Err(FieldFault::new(place, told).into()),
                        "{method} {path}"
                    );
                }
            }
        }
        assert!(texts > 150, "texts are found: {texts}");
        assert_eq!(free, Vec::<String>::new());
    }

    #[test]
    fn a_list_is_held_against_its_bound_wherever_it_stands() {
        let schema = json!({"type": "object", "properties": {
            "names": {"type": ["array", "null"], "maxItems": 2, "items": {"type": "string"}},
        }});
        let mut shape = Shape::default();
        shape.add(&schema, &Value::Null, &mut Vec::new());
        assert_eq!(shape.check(br#"{"names": ["a", "b"]}"#), Ok(()));
        let long = json!({"names": vec!["a"; 100_000]}).to_string();
        assert_eq!(
            shape.check(long.as_bytes()),
            Err(FieldFault::new("/names", "must have at most 2 entries").into())
        );
    }

    #[test]
    fn the_name_of_a_member_is_bounded_too_and_told_cut() {
        let mut shape = Shape::default();
        shape.members.insert("a".to_owned(), Shape::default());
        let body = json!({"x".repeat(1 << 20): 1}).to_string();
        let Err(ServiceError::Unprocessable(faults)) = shape.check(body.as_bytes()) else {
            panic!("it is taken");
        };
        assert!(
            faults[0].pointer.chars().count() < 100,
            "{}",
            faults[0].pointer.len()
        );
        assert_eq!(shape.check(br#"{"b": 1, "a": "long"}"#), Ok(()));
        assert_eq!(shape.check(b"{no JSON"), Ok(()));
    }
}
