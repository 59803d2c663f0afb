//! `windrow biz apply`: makes businesses as a file says.

use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::args::ApplyArgs;
use super::edit::{self, told};
use super::path;
use super::register;
use super::settings::read;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::change::differences;
use crate::link::{Form, Link};
use crate::output::screen;
use windrow_client::ClientError;

/// Members that the node keeps itself; what it shows can be given back to it.
const KEPT: [&str; 5] = ["revision", "created_at", "updated_at", "archived_at", "secret"];
/// Members that are tables, which become as the file says as a whole.
const TABLES: [&str; 5] = ["headers", "secret_headers", "hooks", "defaults", "limits"];

/// Makes them so.
///
/// # Errors
/// `Rejected` for a file that can't be read, before anything is done; `BadHandler` for a new business whose handler
/// breaks the contract; else as [`Link::send`]. Those before it in the file are done then.
pub(super) async fn apply(args: &ApplyArgs, shell: &Shell) -> Result<Exit, Fault> {
    let wanted = wanted(&args.file)?;
    let link = Link::open(&args.remote, shell)?.of_file();
    let mut done = Vec::new();
    for (name, body) in wanted {
        let one = one(&link, shell, args, &name, body).await;
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
    let text: String = match link.look.form {
        Form::Json => json!({"items": done.iter().map(|one| &one.json).collect::<Vec<_>>()}).to_string(),
        Form::Ndjson => done.iter().map(|one| format!("{}\n", one.json)).collect(),
        Form::Name => done
            .iter()
            .filter_map(|one| Some(format!("{}\n", one.json["name"].as_str()?)))
            .collect(),
        Form::Csv => {
            let rows = done.iter().map(|one| (&one.json["name"], &one.json["outcome"]));
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let rows = rows.map(|(name, outcome)| format!("{},{}\n", text(name), text(outcome)));
            ["name,outcome\n".to_owned()].into_iter().chain(rows).collect()
        }
        Form::Table | Form::Wide => done.iter().map(|one| one.lines.join("\n") + "\n").collect(),
    };
    screen::put(&text)
}

/// None is a dry run, which is printed.
async fn one(
    link: &Link<'_>,
    shell: &Shell,
    args: &ApplyArgs,
    name: &str,
    mut body: Map<String, Value>,
) -> Result<Option<Applied>, Fault> {
    let before = match link.client.get(&path(name)).await {
        Ok(before) => before.json()?,
        Err(ClientError::Problem(problem)) if problem.status == 404 => {
            body.retain(|_, value| !value.is_null());
            let made = register::send(link, shell, body, &args.write, args.force).await?;
            return made.map(|made| Ok(created(name, &made.json()?))).transpose();
        }
        Err(error) => return Err(error.into()),
    };
    body.remove("name");
    for table in TABLES {
        replace(&mut body, &before, table);
    }
    // It is sent even where it seems to be so already: of a secret only the node can tell.
    let Some((before, after)) = edit::send(link, name, body, &args.write).await? else {
        return Ok(None);
    };
    let (before, after) = (before.json()?, after.json()?);
    let outcome = if before["revision"] == after["revision"] {
        "unchanged"
    } else {
        "changed"
    };
    let diff = differences(&before, &after).into_iter();
    let diff: Vec<Value> = diff
        .map(|one| json!({"member": one.member, "from": one.from, "to": one.to}))
        .collect();
    let json = json!({"name": name, "outcome": outcome, "revision": after["revision"], "diff": diff});
    Ok(Some(Applied {
        lines: told(name, &before, &after),
        json,
    }))
}

fn created(name: &str, made: &Value) -> Applied {
    let secret = made["secret"].as_str().unwrap_or_default();
    let lines = vec![
        format!("{name}  registered"),
        format!("  its signing secret, shown this once  {secret}"),
    ];
    let json = json!({"name": name, "outcome": "registered", "revision": made["revision"], "diff": [], "secret": secret});
    Applied { lines, json }
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
        Fault::new(
            Exit::Rejected,
            "the file can't be applied",
            format!("{}: {because}", file.display()),
        )
        .hint("`windrow biz show NAME -o json` is an example; `windrow biz apply --help` says more")
    };
    let parsed = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .lock()
            .read_to_string(&mut text)
            .map_err(|error| bad(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?
    } else if file.extension().is_some_and(|end| end == "toml") {
        toml::from_str(&read(file)?).map_err(|error| bad(error.to_string().trim().replace('\n', " ")))?
    } else {
        serde_json::from_str(&read(file)?).map_err(|error| bad(error.to_string()))?
    };
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
        _ => return Err("it is neither a business nor a list of them".to_owned()),
    };
    let named = all.into_iter().enumerate().map(|(at, one)| {
        let Value::Object(mut body) = one else {
            return Err(format!("the {}. isn't a table", at + 1));
        };
        body.retain(|name, _| !KEPT.contains(&name.as_str()));
        match body
            .get("name")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty())
        {
            Some(name) => Ok((name.to_owned(), body)),
            None => Err(format!("the {}. has no name", at + 1)),
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
