//! Implementation of `windrow biz apply`: brings businesses to the state described in a file.

use std::path::Path;

use api::Business;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::edit::{self, told};
use super::{ApplyArgs, path, register};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link, document};
use crate::output::difference::{Difference, differences};
use crate::output::screen;
use crate::output::table::csv;
use crate::shell::Shell;
use windrow_client::ClientError;

/// Members that the node maintains. A file may contain them, so that its own output can be applied.
const KEPT: [&str; 5] = ["revision", "created_at", "updated_at", "archived_at", "secret"];

/// Applies the file.
///
/// # Errors
/// `Rejected` for an unreadable file, before anything is done; `BadHandler` for a new business whose handler violates
/// the contract; otherwise same as [`Link::send`]. Businesses earlier in the file have been applied by then.
pub(super) async fn apply(args: &ApplyArgs, shell: &Shell) -> Result<Exit, Fault> {
    let wanted = wanted(&args.file)?;
    let link = Link::open(&args.write.remote, shell)?.of_file();
    let mut done = Vec::new();
    for (name, body) in wanted {
        let one = one(&link, args, &name, body).await;
        if one.is_err() && !done.is_empty() {
            tell(&link, &done)?;
        }
        done.extend(one?);
    }
    // A dry run prints its plans as they arrive.
    if !args.write.dry_run {
        tell(&link, &done)?;
    }
    Ok(Exit::Ok)
}

/// Name of a business, and its members in the file.
type Wanted = (String, Map<String, Value>);

/// Result of applying one business.
#[derive(Serialize)]
struct Applied {
    #[serde(skip)]
    lines: Vec<String>,
    name: String,
    outcome: &'static str,
    revision: u64,
    diff: Vec<Difference>,
    /// Secret created by the change. The node returns it only in this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

fn tell(link: &Link<'_>, done: &[Applied]) -> Result<(), Fault> {
    let told: String = match link.look.form {
        Form::Json => json!({"items": done}).to_string(),
        Form::Ndjson => done.iter().map(|one| json!(one).to_string() + "\n").collect(),
        Form::Name => done.iter().map(|one| format!("{}\n", one.name)).collect(),
        Form::Csv => {
            let rows = done.iter().map(|one| (one.name.as_str(), one.outcome));
            let rows = std::iter::once(("name", "outcome")).chain(rows);
            csv(
                rows.map(|(name, outcome)| vec![name.to_owned(), outcome.to_owned()]),
                link.look.guard.into(),
            )
        }
        Form::Table | Form::Wide => done.iter().map(|one| one.lines.join("\n") + "\n").collect(),
    };
    screen::put(&told)
}

/// Applies one business. Returns `None` for a dry run, whose plan is printed.
async fn one(
    link: &Link<'_>,
    args: &ApplyArgs,
    name: &str,
    mut body: Map<String, Value>,
) -> Result<Option<Applied>, Fault> {
    let before: Map<String, Value> = match link.client.get(&path(name)).await {
        Ok(before) => before.read()?,
        Err(ClientError::Problem(problem)) if problem.status == 404 => {
            body.retain(|_, value| !value.is_null());
            let made = register::send(link, (name, body), &args.write, args.force).await?;
            return made.map(|made| Ok(created(name, made.read()?))).transpose();
        }
        Err(error) => return Err(error.into()),
    };
    replace(&mut body, &before);
    // Send it even if nothing seems to differ: only the node can compare secrets.
    let Some((before, after)) = link.patch(&args.write, &path(name), body).await? else {
        return Ok(None);
    };
    let before: Business = serde_json::from_value(before).unwrap_or_default();
    let after: Business = after.read()?;
    let lines = told(name, &before, &after);
    let diff = differences(&json!(before), &json!(after));
    let outcome = match before.revision == after.revision {
        true => "unchanged",
        false => "changed",
    };
    Ok(Some(applied(after, lines, outcome, diff)))
}

fn created(name: &str, made: Business) -> Applied {
    let mut lines = vec![format!("{name}  registered")];
    lines.extend(edit::secret(&made));
    applied(made, lines, "registered", Vec::new())
}

fn applied(is: Business, lines: Vec<String>, outcome: &'static str, diff: Vec<Difference>) -> Applied {
    Applied {
        lines,
        name: is.name,
        outcome,
        revision: is.revision,
        diff,
        secret: is.secret,
    }
}

/// Makes a table in the file replace the present one as a whole: members missing in the file are removed.
fn replace(body: &mut Map<String, Value>, before: &Map<String, Value>) {
    for (name, is) in before {
        let (Value::Object(is), Some(Value::Object(wanted))) = (is, body.get_mut(name)) else {
            continue;
        };
        for member in is.keys() {
            wanted.entry(member).or_insert(Value::Null);
        }
    }
}

/// Returns the businesses of a file, each with its name.
fn wanted(file: &Path) -> Result<Vec<Wanted>, Fault> {
    let bad = |because: String| {
        let because = format!("{}: {because}", file.display());
        Fault::new(Exit::Rejected, "can't apply the file", because)
            .hint("`windrow biz show NAME -o json` prints an example; see `windrow biz apply --help`")
    };
    let json = document::json(file).map_err(bad)?;
    let parsed = serde_json::from_str(&json).map_err(|error| bad(error.to_string()))?;
    businesses(parsed).map_err(bad)
}

fn businesses(parsed: Value) -> Result<Vec<Wanted>, String> {
    let all = match parsed {
        Value::Array(all) => all,
        Value::Object(mut table) => match (table.len(), table.remove("business")) {
            (1, Some(Value::Array(all))) => all,
            (_, Some(_)) => {
                return Err("`business` is a list and must be the only member of its file".to_owned());
            }
            (_, None) => vec![Value::Object(table)],
        },
        _ => return Err("it is not a business or a list of businesses".to_owned()),
    };
    let named = all.into_iter().enumerate().map(|(at, one)| {
        let Value::Object(mut body) = one else {
            return Err(format!("number {} is not a table", at + 1));
        };
        body.retain(|name, _| !KEPT.contains(&name.as_str()));
        match body.remove("name") {
            Some(Value::String(name)) if !name.is_empty() => Ok((name, body)),
            _ => Err(format!("number {} has no name", at + 1)),
        }
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_business_or_a_list() {
        let names = |text: &str| {
            let found = businesses(toml::from_str(text).expect("TOML"));
            found.map(|all| all.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(names("name = 'a'\nurl = 'http://h/'"), Ok(vec!["a".to_owned()]));
        assert_eq!(
            names("[[business]]\nname = 'a'\n[[business]]\nname = 'b'").expect("two"),
            ["a", "b"]
        );
        assert!(names("url = 'http://h/'").is_err() && names("[business]\nname = 'a'").is_err());
        assert!(businesses(json!([1])).is_err() && businesses(json!("a")).is_err());
    }

    #[test]
    fn a_table_becomes_what_the_file_says_as_a_whole() {
        let members = |json: Value| serde_json::from_value::<Map<_, _>>(json).expect("an object");
        let mut body = members(json!({"defaults": {"rate": "5/s"}}));
        let before = json!({"defaults": {"rate": "1/s", "batch": 2}, "headers": {"a": "b"}});
        replace(&mut body, &members(before));
        let expected = json!({"defaults": {"rate": "5/s", "batch": null}});
        assert_eq!(Value::Object(body), expected);
    }
}
