//! Values of one item. Only the members that a template names are parsed; the rest is skipped.

use std::collections::BTreeMap;
use std::fmt;
use windrow_words::request as say;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{TemplateFault, ValueFault};

/// Columns or members that the templates of one request name, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roots(Vec<String>);

impl Roots {
    fn number(&mut self, name: &str) -> usize {
        if let Some(known) = self.0.iter().position(|root| root == name) {
            return known;
        }
        self.0.push(name.to_owned());
        self.0.len() - 1
    }

    /// Returns the names, in the order in which they first appeared.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

/// Reference to a part of an item's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Number of its first name in [`Roots`].
    root: usize,
    /// Further path below the first name, as in a JSON pointer.
    rest: Vec<String>,
    /// Text as people wrote it.
    written: String,
}

impl Member {
    /// Parses the name of a column or member, or a JSON pointer (RFC 6901).
    pub(super) fn parse(text: &str, roots: &mut Roots) -> Result<Member, TemplateFault> {
        let mut tokens = match text.strip_prefix('/') {
            None => vec![text.to_owned()],
            Some(pointer) => {
                let tokens = pointer.split('/').map(unescaped).collect::<Option<Vec<_>>>();
                tokens.ok_or_else(|| TemplateFault(say::no_pointer(format!("{text:?}"))))?
            }
        };
        let rest = tokens.split_off(1);
        Ok(Member {
            root: roots.number(&tokens[0]),
            rest,
            written: text.to_owned(),
        })
    }

    /// Returns the number of the first name in [`Roots`].
    pub(super) fn root(&self) -> usize {
        self.root
    }

    /// Returns the text as people wrote it.
    pub fn written(&self) -> &str {
        &self.written
    }
}

fn unescaped(token: &str) -> Option<String> {
    let is_escape = |tail: &str| tail.starts_with('0') || tail.starts_with('1');
    let fine = token.split('~').skip(1).all(is_escape);
    fine.then(|| token.replace("~1", "/").replace("~0", "~"))
}

/// Data for one attempt of one item.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    data: Option<&'a str>,
    /// Values of the named members, by their numbers.
    values: Vec<Option<&'a RawValue>>,
    /// Index of the item.
    pub index: u64,
    /// Key of the item, the same for each attempt.
    pub key: &'a str,
    /// Attempt number, starting at 1.
    pub attempt: u32,
}

impl<'a> Item<'a> {
    /// Creates the item with this data (JSON text; `None` if items are only counted).
    pub fn new(roots: &Roots, data: Option<&'a str>, index: u64, key: &'a str, attempt: u32) -> Item<'a> {
        let mut values = vec![None; roots.0.len()];
        if let Some(data) = data.filter(|_| !values.is_empty()) {
            let mut deserializer = serde_json::Deserializer::from_str(data);
            // Data that isn't JSON has no members; sources never return such data.
            drop(deserializer.deserialize_any(Named {
                roots: &roots.0,
                values: &mut values,
            }));
        }
        Item {
            data,
            values,
            index,
            key,
            attempt,
        }
    }

    /// Returns the only value of the data: that of an object with one member, or a value that isn't an object.
    /// Returns `None` without data.
    pub(super) fn only(&self) -> Result<Option<&'a RawValue>, ValueFault> {
        let Some(data) = self.data else {
            return Ok(None);
        };
        let several = |what| Err(say::not_only(what, "{}", "{column}").into());
        match data.trim_start().as_bytes().first() {
            Some(b'[') => several(say::a_list()),
            Some(b'{') => {
                let members: Vec<_> = members(data).collect();
                match members.as_slice() {
                    [(_, value)] => Ok(Some(value)),
                    many => several(say::object_of(many.len())),
                }
            }
            _ => match serde_json::from_str(data) {
                Ok(value) => Ok(Some(value)),
                Err(_) => several(say::not_json()),
            },
        }
    }

    /// Returns the value of a member, or fails if it is missing.
    pub(super) fn member(&self, member: &Member) -> Result<&'a RawValue, ValueFault> {
        let missing = || ValueFault::from(say::member_missing(format!("{:?}", member.written)));
        let mut value = self
            .values
            .get(member.root)
            .copied()
            .flatten()
            .ok_or_else(missing)?;
        for token in &member.rest {
            value = self::member(value, token).ok_or_else(missing)?;
        }
        Ok(value)
    }
}

/// Returns a member of an object, or an element of an array.
pub(super) fn member<'a>(of: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let mut values = [None];
    let mut deserializer = serde_json::Deserializer::from_str(of.get());
    let roots = std::slice::from_ref(&name);
    deserializer
        .deserialize_any(Named {
            roots,
            values: &mut values,
        })
        .ok()?;
    values[0]
}

/// Iterates over the members of an object, compared by the bytes of their names: a lone surrogate in one is valid
/// JSON, but not text. Other JSON has no members.
pub(super) fn members(json: &str) -> impl Iterator<Item = (String, &RawValue)> {
    let members: BTreeMap<Name, &RawValue> = serde_json::from_str(json).unwrap_or_default();
    members
        .into_iter()
        .map(|(name, value)| (String::from_utf8_lossy(&name.0).into_owned(), value))
}

/// Name of a member. If it has a lone surrogate it is in WTF-8, which is the name of no column.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name(Vec<u8>);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_bytes<E>(self, name: &[u8]) -> Result<Name, E> {
                Ok(Name(name.to_owned()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Visitor that picks the named members out of an object or array; of a repeated one it takes the last.
struct Named<'r, 'v, 'a, S> {
    roots: &'r [S],
    values: &'v mut [Option<&'a RawValue>],
}

impl<'a, S: AsRef<str>> Visitor<'a> for Named<'_, '_, 'a, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("members")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(number) = map.next_key_seed(Number(self.roots))? {
            match number {
                Some(number) => self.values[number] = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<Q: SeqAccess<'a>>(self, mut seq: Q) -> Result<(), Q::Error> {
        let mut at = 0_usize;
        while let Some(element) = seq.next_element::<&'a RawValue>()? {
            let name = at.to_string();
            let named = self.roots.iter().position(|root| root.as_ref() == name);
            if let Some(number) = named {
                self.values[number] = Some(element);
            }
            at += 1;
        }
        Ok(())
    }
}

/// Seed that finds the number of a key among the names.
struct Number<'r, S>(&'r [S]);

impl<'a, S: AsRef<str>> DeserializeSeed<'a> for Number<'_, S> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        // Read as bytes, because a lone surrogate in one name must not hide the members behind it.
        deserializer.deserialize_bytes(self)
    }
}

impl<S: AsRef<str>> Visitor<'_> for Number<'_, S> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|root| root.as_ref().as_bytes() == name))
    }
}
