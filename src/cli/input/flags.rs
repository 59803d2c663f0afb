//! Flags that several commands take: where items come from, and how a URL is called.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use windrow_config::Config;

/// Where items come from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Items")]
pub struct Items {
    /// Rows of a CSV file; - is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["ndjson", "lines"])]
    pub csv: Option<String>,
    /// Lines of JSON; - is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "lines")]
    pub ndjson: Option<String>,
    /// Lines of text, each an item {"line": "…"}; lines without any character are skipped; - is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub lines: Option<String>,
    /// A NUL ends each text of --lines, as find -print0 writes it
    #[arg(short = '0', long, requires = "lines")]
    pub null: bool,
    /// Between the fields of the CSV; "tab" is a tab
    #[arg(long, value_name = "CHAR", value_parser = one_char)]
    pub delimiter: Option<char>,
    /// The first row of the CSV is data; columns are c1, c2 …
    #[arg(long)]
    pub no_header: bool,
    /// Quotes in the CSV are text
    #[arg(long)]
    pub no_quote: bool,
    /// Take rows of the CSV whose quotes don't pair; fields may change, rows may be swallowed
    #[arg(long)]
    pub lenient: bool,
}

impl Items {
    /// The flags that only a CSV has, of those that are given.
    pub(crate) fn csv_flags(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            ("--delimiter", self.delimiter.is_some()),
            ("--no-header", self.no_header),
            ("--no-quote", self.no_quote),
            ("--lenient", self.lenient),
        ];
        flags
            .into_iter()
            .filter(|(_, is_given)| *is_given)
            .map(|(name, _)| name)
    }

    /// The files that are named, - included.
    pub(crate) fn files(&self) -> impl Iterator<Item = &String> {
        self.csv.iter().chain(&self.ndjson).chain(&self.lines)
    }
}

fn one_char(text: &str) -> Result<char, String> {
    let mut chars = text.chars();
    match (text, chars.next(), chars.next()) {
        ("tab" | "\\t", ..) => Ok('\t'),
        (_, Some(only), None) => Ok(only),
        _ => Err("one character is needed, such as , ; | or tab".to_owned()),
    }
}

/// How a URL is called.
#[derive(Debug, Args)]
#[command(next_help_heading = "Handler")]
pub struct HttpArgs {
    /// A header to send to the URL, as 'name: value'; may be repeated
    #[arg(long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// A file with the secrets that sign calls of the URL, one whsec_… a line, newest first
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Authorities to trust at the URL beside the system's, as PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub handler_ca_file: Option<PathBuf>,
    /// Trust any certificate of the URL; for a test system only
    #[arg(long)]
    pub insecure_skip_verify: bool,
}

impl HttpArgs {
    /// Whom these flags trust, in the place of what a configuration says.
    pub(crate) fn trust(&self, config: &mut Config) {
        let of_http = &mut config.http_handler;
        if self.handler_ca_file.is_some() {
            of_http.ca_file.clone_from(&self.handler_ca_file);
        }
        of_http.insecure_skip_verify |= self.insecure_skip_verify;
    }
}

/// When there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// As the environment and the terminal say
    Auto,
    /// Always, also into pipes
    Always,
    /// Never
    Never,
}

/// Colours of all that is printed.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct Colors {
    /// Colours; without it the terminal, NO_COLOR, CLICOLOR_FORCE and TERM=dumb decide
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        alias = "colour",
        value_enum,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "always"
    )]
    pub color: Option<When>,
    /// No colours: --color=never
    #[arg(long, global = true, hide_short_help = true, overrides_with = "color")]
    pub no_color: bool,
}

impl Colors {
    /// Whether there are colours; none where the environment and the terminal decide.
    pub(crate) fn wanted(self) -> Option<bool> {
        match self.color {
            _ if self.no_color => Some(false),
            Some(When::Always) => Some(true),
            Some(When::Never) => Some(false),
            Some(When::Auto) | None => None,
        }
    }
}
