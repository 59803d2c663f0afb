//! Kinds of objects in files, in the order of their dependencies, and their present state on a node.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::KindWord;
use super::schema::Schemas;
use crate::fault::Fault;
use crate::link::{Link, Paging};
use windrow_client::{ClientError, Request, segment};
use windrow_core::settings::json::{tree, trees};
use windrow_core::task::lifecycle::Status;

/// Members of an object.
pub(super) type Members = Map<String, Value>;

/// Objects of one resource of the API, as files name them.
#[derive(Debug)]
pub(super) struct Kind {
    /// Word on the command line.
    pub(super) word: KindWord,
    /// Name in files and addresses.
    pub(super) name: &'static str,
    /// API path of the list.
    pub(super) path: &'static str,
    /// Member by which the API addresses one.
    key: &'static str,
    /// Members that identify one in files.
    pub(super) identity: &'static [&'static str],
    /// True if a change merges members at every depth.
    pub(super) merges: bool,
    /// Members that commands switch, with the commands for true and false.
    pub(super) switches: &'static [(&'static str, &'static str, &'static str)],
    /// Members with secret values.
    pub(super) secrets: &'static [&'static str],
    /// Command that ends one; `None` deletes it.
    pub(super) end: Option<&'static str>,
}

/// Members that only a creation uses and that the API doesn't show.
pub(super) const OF_CREATION: [&str; 2] = ["start", "if_empty"];

const PLAIN: Kind = Kind {
    word: KindWord::Limit,
    name: "limit",
    path: "/v1/limits",
    key: "name",
    identity: &["name"],
    merges: false,
    switches: &[],
    secrets: &[],
    end: None,
};

/// All kinds; each refers only to those before it.
pub(super) static KINDS: [Kind; 6] = [
    PLAIN,
    Kind {
        word: KindWord::Business,
        name: "business",
        path: "/v1/businesses",
        merges: true,
        switches: &[("archived", "archive", "unarchive")],
        secrets: &["request_secrets", "secret_headers"],
        end: Some("archive"),
        ..PLAIN
    },
    Kind {
        word: KindWord::Dataset,
        name: "dataset",
        path: "/v1/datasets",
        ..PLAIN
    },
    Kind {
        word: KindWord::Schedule,
        name: "schedule",
        path: "/v1/schedules",
        key: "id",
        identity: &["business", "name"],
        merges: true,
        switches: &[("paused", "pause", "resume")],
        ..PLAIN
    },
    Kind {
        word: KindWord::Task,
        name: "task",
        path: "/v1/tasks",
        key: "id",
        identity: &["business", "name"],
        end: Some("cancel"),
        ..PLAIN
    },
    Kind {
        word: KindWord::Token,
        name: "token",
        path: "/v1/tokens",
        key: "id",
        // A token can't change: with another role it is another one.
        identity: &["role", "business", "name"],
        ..PLAIN
    },
];

/// Object of a node.
#[derive(Debug)]
pub(super) struct Present {
    /// Address such as `schedule/push/nightly`.
    pub(super) address: String,
    /// API path of the object.
    pub(super) path: String,
    /// Members in the form of a request.
    pub(super) members: Members,
    /// Revision to expect in a change, if it has one.
    pub(super) revision: Option<u64>,
    /// Reason why files can't describe it.
    pub(super) left_out: Option<&'static str>,
}

impl Kind {
    /// Returns the address of an object, or `None` without a name.
    pub(super) fn address(&self, members: &Members) -> Option<String> {
        let named = members.get("name").is_some_and(Value::is_string);
        let parts = self
            .identity
            .iter()
            .filter_map(|member| members.get(*member)?.as_str());
        named.then(|| parts.fold(self.name.to_owned(), |address, part| format!("{address}/{part}")))
    }

    /// Reads the objects that a node has, in the order of their addresses.
    ///
    /// # Errors
    /// Same as [`Link::send`].
    pub(super) async fn present(&self, link: &Link<'_>) -> Result<Vec<Present>, Fault> {
        let request = Request::get(self.path);
        let request = match self.word {
            KindWord::Task => {
                let open = Status::ALL.into_iter().filter(|status| !status.is_terminal());
                let open: Vec<&str> = open.map(Status::as_str).collect();
                request.query("status", open.join(","))
            }
            _ => request,
        };
        let listed = link.list(request, Some(&Paging::ALL)).await?;
        let raw = listed.things::<Box<RawValue>>()?;
        let mut all: Vec<Present> = raw.iter().map(|raw| self.read(raw, listed.now_ms)).collect();
        // The end of a token is no state of it: those of the past are history.
        all.retain(|one| one.left_out != Some(OVER));
        all.sort_by(|a, b| a.address.cmp(&b.address));
        Ok(all)
    }

    /// Looks for an object that the list leaves out: an archived business, or a task that has ended.
    ///
    /// # Errors
    /// Same as [`Link::send`].
    pub(super) async fn beyond(&self, link: &Link<'_>, wanted: &Members) -> Result<Option<Present>, Fault> {
        let text = |member: &str| wanted.get(member).and_then(Value::as_str).unwrap_or_default();
        match self.word {
            KindWord::Business => {
                let path = format!("{}/{}", self.path, segment(text("name")));
                match link.client.get(&path).await {
                    Ok(answer) => Ok(Some(
                        self.read(&answer.read::<Box<RawValue>>()?, link.now_ms(&answer)),
                    )),
                    Err(ClientError::Problem(problem)) if problem.status == 404 => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
            KindWord::Task => {
                let request = Request::get(self.path).query("limit", 1);
                let request = request
                    .query("business", text("business"))
                    .query("name", text("name"));
                let listed = link.page(&link.send(request).await?)?;
                let found = listed.things::<Box<RawValue>>()?;
                Ok(found.first().map(|raw| self.read(raw, listed.now_ms)))
            }
            _ => Ok(None),
        }
    }

    /// Converts an object as the API shows it.
    pub(super) fn read(&self, raw: &RawValue, now_ms: i64) -> Present {
        let (whole, is_whole) = match (tree(raw.get()), trees(&raw)) {
            (Value::Object(members), _) => (members, true),
            // Some member can't be read as a tree; the rest has the address.
            (_, Ok(Value::Object(members))) => (members, false),
            _ => (Members::new(), false),
        };
        let key = whole
            .get(self.key)
            .map(super::differing::text)
            .unwrap_or_default();
        let revision = whole.get("revision").and_then(Value::as_u64);
        let is_exact = is_whole && whole.values().all(is_exact);
        let left_out = match self.left_out(&whole, now_ms) {
            None if !is_exact => Some("has a number beyond 64 bits"),
            reason => reason,
        };
        let members = match self.word {
            KindWord::Task => declared_task(whole),
            KindWord::Business => {
                let mut members = whole;
                let archived = members.get("archived_at").is_some_and(Value::is_string);
                members.insert("archived".to_owned(), json!(archived));
                members
            }
            _ => whole,
        };
        Present {
            address: self
                .address(&members)
                .unwrap_or_else(|| format!("{}/{key}", self.name)),
            path: format!("{}/{}", self.path, segment(&key)),
            members,
            revision,
            left_out,
        }
    }

    fn left_out(&self, whole: &Members, now_ms: i64) -> Option<&'static str> {
        let text = |member: &str| whole.get(member).and_then(Value::as_str);
        let source = whole
            .get("source")
            .and_then(|source| source.get("type")?.as_str());
        let has_url = whole
            .get("source")
            .is_some_and(|source| source.get("url").is_some());
        match self.word {
            KindWord::Token if text("revoked_at").is_some() => Some(OVER),
            KindWord::Token => {
                let end = text("expires_at").and_then(crate::output::table::times::parsed);
                end.filter(|end| end.timestamp_millis() <= now_ms).map(|_| OVER)
            }
            KindWord::Task if text("schedule").is_some() => Some("was created by a schedule"),
            KindWord::Task if text("name").is_none() => Some("has no name"),
            KindWord::Task if !matches!(source, Some("range" | "appended")) && !has_url => {
                Some("has items that the API doesn't show")
            }
            _ => None,
        }
    }

    /// Returns the members that a request may have, for a file.
    pub(super) fn exported(&self, schemas: &Schemas, present: &Present) -> Members {
        let mut members = present.members.clone();
        let known = schemas.to_create(self.path);
        let strangers = known
            .map(|known| schemas.strangers(known, &members))
            .unwrap_or_default();
        let mut whole = Value::Object(std::mem::take(&mut members));
        for pointer in strangers {
            let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
            let parent = whole.pointer_mut(parent).and_then(Value::as_object_mut);
            parent.and_then(|parent| parent.remove(&name.replace("~1", "/").replace("~0", "~")));
        }
        if let Value::Object(whole) = whole {
            members = whole;
        }
        // Empty params are params; anything else that is empty is what an object has without the member.
        members.retain(|name, value| !is_empty(value) || (name == "params" && !value.is_null()));
        members
    }
}

/// Reason of objects whose time has passed.
const OVER: &str = "is over";

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// True if every number kept its value while it was read: integers beyond 64 bits don't.
pub(super) fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => {
            // The reader makes a float of an integer that 64 bits can't hold.
            number.as_f64().is_some_and(|number| number.abs() < 9.2e18)
        }
        Value::Array(all) => all.iter().all(is_exact),
        Value::Object(members) => members.values().all(is_exact),
        _ => true,
    }
}

/// Converts a task as the API shows it to the members that would create it.
fn declared_task(mut whole: Members) -> Members {
    // The same settings stand beside it.
    whole.remove("retry");
    // The number of starts, which a creation means otherwise.
    whole.retain(|name, _| !OF_CREATION.contains(&name.as_str()));
    let publish = whole.remove("publish").unwrap_or_default();
    for (shown, member) in [
        ("dataset", "publish"),
        ("if", "publish_if"),
        ("key", "publish_key"),
        ("reduce", "reduce"),
    ] {
        whole.insert(member.to_owned(), publish.get(shown).cloned().unwrap_or_default());
    }
    let source = whole.remove("source").unwrap_or_default();
    let part = |member: &str| source.get(member).cloned().unwrap_or_default();
    let total = whole.get("total").cloned().unwrap_or_default();
    let declared = match source.get("type").and_then(Value::as_str) {
        Some("appended") => {
            whole.insert("open".to_owned(), json!(true));
            // An open task always has one shard, and no items to leave out.
            whole.remove("shards");
            whole.remove("skip_first");
            Value::Null
        }
        Some("range") => json!({"type": "range", "total": total}),
        Some("inline") => json!({"type": "inline"}),
        Some(kind) if !part("url").is_null() => json!({"type": "url", "url": part("url"), "format": kind}),
        Some(_) if !part("upload").is_null() => json!({"type": "file", "upload": part("upload")}),
        _ => source.clone(),
    };
    whole.insert("source".to_owned(), declared);
    whole
}
