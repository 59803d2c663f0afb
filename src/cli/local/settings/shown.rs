//! Implementation of `windrow config show`: the values a node would run with, and the origin of each.

use serde::Serialize;
use serde_json::{Value, json};

use super::args::ShowArgs;
use super::chosen;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Look};
use crate::output::body::shown;
use crate::output::screen;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone};
use crate::shell::Shell;
use windrow_config::Origin;

/// Configuration key with its value and origin.
#[derive(Debug, Serialize)]
struct Key {
    key: String,
    value: Value,
    origin: String,
}

/// Listing of configuration keys.
const KEYS: Listing<Key> = Listing {
    columns: &[
        Column::text("KEY", Keep::Always, 20, |key: &Key| &key.key).tone(Tone::Strong),
        Column::new("VALUE", Side::Left, Keep::Always, 16, |key, _| {
            Cell::text(Some(shown(&key.value)).filter(|text| !text.is_empty()))
        }),
        Column::new("ORIGIN", Side::Left, Keep::Always, 10, |key, _| {
            Cell::new(&key.origin).tone(match key.origin.as_str() {
                "default" => Tone::Dim,
                _ => Tone::Plain,
            })
        }),
    ],
    name: |key| key.key.clone(),
    none: "no keys",
};

/// Prints every key.
///
/// # Errors
/// `Config` with every error in the configuration.
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
        Key {
            key: one.key.clone(),
            value: json!(one.value),
            origin,
        }
    });
    look.list(&KEYS, &keys.collect::<Vec<_>>(), shell)
}
