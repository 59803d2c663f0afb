//! `windrow config show`: what a node would run with, and where each value comes from.

use serde_json::{Value, json};

use super::args::ShowArgs;
use super::chosen;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Look};
use crate::output::screen;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone};
use crate::shell::Shell;
use windrow_config::Origin;

/// Keys.
const KEYS: Listing = Listing {
    columns: &[
        Column::new("KEY", Side::Left, Keep::Always, 20, |key, _| {
            Cell::member(key, "key").tone(Tone::Strong)
        }),
        Column::new(
            "VALUE",
            Side::Left,
            Keep::Always,
            16,
            |key, _| match &key["value"] {
                Value::String(text) if text.is_empty() => Cell::nothing(),
                _ => Cell::member(key, "value"),
            },
        ),
        Column::new("ORIGIN", Side::Left, Keep::Always, 10, |key, _| {
            let tone = if key["origin"] == "default" {
                Tone::Dim
            } else {
                Tone::Plain
            };
            Cell::member(key, "origin").tone(tone)
        }),
    ],
    name: |key| key["key"].as_str().unwrap_or_default().to_owned(),
    none: "no keys",
};

/// Shows every key.
///
/// # Errors
/// `Config` with every fault of the configuration.
pub(super) fn show(args: &ShowArgs, shell: &Shell) -> Result<Exit, Fault> {
    let file = chosen(&args.file);
    let all = windrow_config::shown(file.as_deref(), shell.env.iter().cloned());
    let all = all.map_err(|faults| Fault::of_config(&faults))?;
    let look = Look::new(&args.view, shell);
    let as_toml = !args.origin && matches!(look.form, Form::Table | Form::Wide);
    if as_toml {
        let lines = all.iter().map(|one| format!("{} = {}\n", one.key, one.value));
        return screen::put(&lines.collect::<String>()).map(|()| Exit::Ok);
    }
    let keys = all.iter().map(|one| {
        let origin = match &one.origin {
            Origin::Default => "default".to_owned(),
            Origin::File(path) => path.display().to_string(),
            Origin::Env(name) => name.clone(),
        };
        Ok(json!({"key": one.key, "value": serde_json::to_value(&one.value)?, "origin": origin}))
    });
    let keys: Result<Vec<Value>, serde_json::Error> = keys.collect();
    let keys = keys.map_err(|error| Fault::bug(error.to_string()))?;
    look.list(&KEYS, &keys, shell)
}
