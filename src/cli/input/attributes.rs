//! Flags for the plain-valued attributes of a task, generated from the attribute table. Attributes with a special
//! form (name, labels, times, params, canary) have their own flags.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::sync::LazyLock;

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use serde_json::{Value, json};

use windrow_core::settings::Auto;
use windrow_core::task::spec::{ATTRIBUTES, Attribute, Kind, Request};

/// Heading of these flags in the help.
const HEADING: &str = "Content";

/// Request whose attributes become flags.
pub trait Of: Clone + Debug + Default + 'static {
    /// Request that selects the attributes.
    const REQUEST: Request;
}

/// Marker for the request that creates a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Making;

/// Marker for the request that redrives failed items of a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redriving;

/// Marker for the request that edits a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Editing;

impl Of for Making {
    const REQUEST: Request = Request::Create;
}

impl Of for Redriving {
    const REQUEST: Request = Request::Redrive;
}

impl Of for Editing {
    const REQUEST: Request = Request::Edit;
}

/// Attributes given as flags, each with its value as JSON.
#[derive(Clone, Debug, Default)]
pub struct Attributes<R>(pub Vec<(&'static str, Value)>, PhantomData<R>);

/// Flag of each attribute: its name with hyphens.
static FLAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    ATTRIBUTES
        .iter()
        .map(|attribute| attribute.name.replace('_', "-"))
        .collect()
});

type Unread = Box<dyn std::error::Error + Send + Sync>;

/// Parses a plain value of the given kind.
fn read(kind: Kind, text: &str) -> Result<Value, Unread> {
    Ok(match kind {
        Kind::Integer => json!(text.parse::<i32>()?),
        Kind::Index => json!(text.parse::<u64>()?),
        Kind::NumberOrAuto => json!(text.parse::<Auto<NonZeroU32>>()?),
        _ => json!(text.parse::<bool>()?),
    })
}

impl<R: Of> Attributes<R> {
    fn flags() -> impl Iterator<Item = (&'static Attribute, &'static str)> {
        let all = ATTRIBUTES.iter().zip(FLAGS.iter().map(String::as_str));
        all.filter(|(attribute, _)| {
            let is_plain = matches!(
                attribute.kind,
                Kind::Integer | Kind::Index | Kind::NumberOrAuto | Kind::Switch
            );
            is_plain && attribute.rule.requests.contains(&R::REQUEST)
        })
    }

    fn arg((attribute, flag): (&'static Attribute, &'static str)) -> Arg {
        let kind = attribute.kind;
        let arg = Arg::new(flag)
            .long(flag)
            .help(attribute.about_in(R::REQUEST))
            .help_heading(HEADING)
            .value_parser(move |text: &str| read(kind, text));
        match kind {
            Kind::Switch => arg
                .value_name("BOOL")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true"),
            Kind::NumberOrAuto => arg.value_name("N|auto"),
            _ => arg.value_name("N").allow_negative_numbers(kind == Kind::Integer),
        }
    }
}

impl<R: Of> Args for Attributes<R> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::flags().map(Self::arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<R: Of> FromArgMatches for Attributes<R> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Attributes<R>, Error> {
        let mut attributes = Attributes::default();
        attributes.update_from_arg_matches(matches)?;
        Ok(attributes)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for (attribute, flag) in Self::flags() {
            if let Some(value) = matches.get_one::<Value>(flag) {
                self.0.push((attribute.name, value.clone()));
            }
        }
        Ok(())
    }
}
