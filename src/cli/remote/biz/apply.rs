//! `windrow biz apply`: makes businesses as a file says.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::edit::{self, told};
use super::{ApplyArgs, path, register};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::change::differences;
use crate::link::{Form, Link, document};
use crate::output::body::text;
use crate::output::screen;
use crate::output::table::csv;
use crate::shell::Shell;
use windrow_client::ClientError;

/// Members that the node keeps itself; what it shows can be given back to it.
const KEPT: [&str; 5] = ["revision", "created_at", "updated_at", "archived_at", "secret"];
/// Members that are tables, which become as the file says as a whole.
const TABLES: [&str; 7] = [
    "headers",
    "secret_headers",
    "request",
    "request_secrets",
    "hooks",
    "defaults",
    "limits",
];

/// Makes them so.
///
/// # Errors
/// `Rejected` for a file that can't be read, before anything is done; `BadHandler` for a new business whose handler
/// breaks the contract; else as [`Link::send`]. Those before it in the file are done then.
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
    // The plans of a dry run are printed as they come.
    if !args.write.dry_run {
        tell(&link, &done)?;
    }
    Ok(Exit::Ok)
}

/// A business's name, and what the file says of it.
type Wanted = (String, Map<String, Value>);

/// What came of one business.
struct Applied {
    lines: Vec<String>,
    json: Value,
}

fn tell(link: &Link<'_>, done: &[Applied]) -> Result<(), Fault> {
    let told: String = match link.look.form {
        Form::Json => json!({"items": done.iter().map(|one| &one.json).collect::<Vec<_>>()}).to_string(),
        Form::Ndjson => done.iter().map(|one| format!("{}\n", one.json)).collect(),
        Form::Name => done
            .iter()
            .map(|one| format!("{}\n", text(&one.json["name"])))
            .collect(),
        Form::Csv => {
            let members = ["name", "outcome"];
            let rows = done
                .iter()
                .map(|one| members.map(|name| text(&one.json[name]).to_owned()).to_vec());
            csv(
                std::iter::once(members.map(str::to_owned).to_vec()).chain(rows),
                link.look.guard.into(),
            )
        }
        Form::Table | Form::Wide => done.iter().map(|one| one.lines.join("\n") + "\n").collect(),
    };
    screen::put(&told)
}

/// None is a dry run, which is printed.
async fn one(
    link: &Link<'_>,
    args: &ApplyArgs,
    name: &str,
    mut body: Map<String, Value>,
) -> Result<Option<Applied>, Fault> {
    let before = match link.client.get(&path(name)).await {
        Ok(before) => before.json()?,
        Err(ClientError::Problem(problem)) if problem.status == 404 => {
            body.retain(|_, value| !value.is_null());
            let made = register::send(link, body, &args.write, args.force).await?;
            return made.map(|made| Ok(created(name, &made.json()?))).transpose();
        }
        Err(error) => return Err(error.into()),
    };
    body.remove("name");
    for table in TABLES {
        replace(&mut body, &before, table);
    }
    // It is sent even where it seems to be so already: of a secret only the node can tell.
    let Some((before, after)) = link.patch(&args.write, &path(name), body).await? else {
        return Ok(None);
    };
    let after = after.json()?;
    let outcome = if before["revision"] == after["revision"] {
        "unchanged"
    } else {
        "changed"
    };
    let diff = differences(&before, &after);
    let mut json = json!({"name": name, "outcome": outcome, "revision": after["revision"], "diff": diff});
    keep_secret(&mut json, &after);
    Ok(Some(Applied {
        lines: told(name, &before, &after),
        json,
    }))
}

fn created(name: &str, made: &Value) -> Applied {
    let mut lines = vec![format!("{name}  registered")];
    lines.extend(edit::secret(made));
    let mut json = json!({"name": name, "outcome": "registered", "revision": made["revision"], "diff": []});
    keep_secret(&mut json, made);
    Applied { lines, json }
}

/// A secret that the change made is in the answer of the node this once.
fn keep_secret(json: &mut Value, answer: &Value) {
    if let Some(secret) = answer["secret"].as_str() {
        json["secret"] = secret.into();
    }
}

/// What a table of the file doesn't name, but the business has, goes.
fn replace(body: &mut Map<String, Value>, before: &Value, table: &str) {
    let Some(wanted) = body.get_mut(table).and_then(Value::as_object_mut) else {
        return;
    };
    for name in before[table].as_object().into_iter().flat_map(Map::keys) {
        if !wanted.contains_key(name) {
            wanted.insert(name.clone(), Value::Null);
        }
    }
}

/// The businesses of a file, each with its name.
fn wanted(file: &Path) -> Result<Vec<Wanted>, Fault> {
    let bad = |because: String| {
        let because = format!("{}: {because}", file.display());
        Fault::new(Exit::Rejected, "the file can't be applied", because)
            .hint("`windrow biz show NAME -o json` is an example; `windrow biz apply --help` says more")
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
            (_, Some(_)) => return Err("`business` is a list, and alone in its file".to_owned()),
            (_, None) => vec![Value::Object(table)],
        },
        _ => return Err("neither a business nor a list of businesses".to_owned()),
    };
    let named = all.into_iter().enumerate().map(|(at, one)| {
        let Value::Object(mut body) = one else {
            return Err(format!("the {}. isn't a table", at + 1));
        };
        body.retain(|name, _| !KEPT.contains(&name.as_str()));
        match body.get("name").map(text).unwrap_or_default().to_owned() {
            name if name.is_empty() => Err(format!("the {}. has no name", at + 1)),
            name => Ok((name, body)),
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
        let Value::Object(mut body) = json!({"defaults": {"rate": "5/s"}}) else {
            unreachable!()
        };
        let before = json!({"defaults": {"rate": "1/s", "batch": 2}, "headers": {"a": "b"}});
        for table in TABLES {
            replace(&mut body, &before, table);
        }
        assert_eq!(
            Value::Object(body),
            json!({"defaults": {"rate": "5/s", "batch": null}})
        );
    }
}
