//! Flags shared by several commands: item sources, and HTTP options of a handler.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use windrow_config::Config;
use windrow_core::business::LimitsFrom;

/// Flags for the source of the items.
#[derive(Debug, Args)]
#[command(next_help_heading = "Items")]
pub struct Items {
    /// Read items from the rows of a CSV file; - is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["ndjson", "lines"])]
    pub csv: Option<String>,
    /// Read items from the lines of an NDJSON file; - is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "lines")]
    pub ndjson: Option<String>,
    /// Read items from lines of text, each {"line": "…"}; empty lines are skipped; - is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub lines: Option<String>,
    /// Lines of --lines end with NUL, as find -print0 writes them
    #[arg(short = '0', long, requires = "lines")]
    pub null: bool,
    /// Field separator of the CSV; "tab" is a tab
    #[arg(long, value_name = "CHAR", value_parser = one_char)]
    pub delimiter: Option<char>,
    /// The first row of the CSV is data; columns are named c1, c2 …
    #[arg(long)]
    pub no_header: bool,
    /// Treat quotes in the CSV as text
    #[arg(long)]
    pub no_quote: bool,
    /// Accept CSV rows with unbalanced quotes; fields may change, rows may be swallowed
    #[arg(long)]
    pub lenient: bool,
}

impl Items {
    /// Returns the CSV-only flags that were given.
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

    /// Returns the given files, including `-` for standard input.
    pub(crate) fn files(&self) -> impl Iterator<Item = &String> {
        self.csv.iter().chain(&self.ndjson).chain(&self.lines)
    }
}

fn one_char(text: &str) -> Result<char, String> {
    let mut chars = text.chars();
    match (text, chars.next(), chars.next()) {
        ("tab" | "\\t", ..) => Ok('\t'),
        (_, Some(only), None) => Ok(only),
        _ => Err("must be one character, such as , ; | or tab".to_owned()),
    }
}

/// Flags for calls to a URL.
#[derive(Debug, Args)]
#[command(next_help_heading = "Handler")]
pub struct HttpArgs {
    /// Header to send to the URL, as 'name: value'; may be repeated
    #[arg(long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// File with the secrets that sign calls to the URL, one whsec_… per line, newest first
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// PEM file of authorities to trust for the URL, besides the system's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub handler_ca_file: Option<PathBuf>,
    /// PEM file of the certificate to present to a server that demands one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "client_key")]
    pub client_cert: Option<PathBuf>,
    /// PEM file of the certificate's private key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "client_cert")]
    pub client_key: Option<PathBuf>,
    /// Accept any certificate of the URL; for test systems only
    #[arg(long)]
    pub insecure_skip_verify: bool,
    /// Read the service's limits from its headers: auto or off [default: auto for --request, off for --url]
    #[arg(long, value_name = "SOURCE", hide_short_help = true, value_parser = limits_from)]
    pub limits_from: Option<LimitsFrom>,
}

/// Parses the value of `--limits-from`.
pub(crate) fn limits_from(text: &str) -> Result<LimitsFrom, String> {
    let all = [LimitsFrom::Auto, LimitsFrom::Off];
    let found = all.into_iter().find(|from| from.as_str() == text);
    found.ok_or_else(|| "must be auto or off".to_owned())
}

impl HttpArgs {
    /// Returns the files that the flags name.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let trust = self.handler_ca_file.iter().chain(&self.client_cert);
        self.secret_file.iter().chain(trust).chain(&self.client_key)
    }

    /// Applies the trust settings of these flags to the configuration, which they override.
    pub(crate) fn trust(&self, config: &mut Config) {
        let of_http = &mut config.http_handler;
        if self.handler_ca_file.is_some() {
            of_http.ca_file.clone_from(&self.handler_ca_file);
        }
        if self.client_cert.is_some() {
            of_http.client_cert_file.clone_from(&self.client_cert);
            of_http.client_key_file.clone_from(&self.client_key);
        }
        of_http.insecure_skip_verify |= self.insecure_skip_verify;
    }
}

/// Values of `--color`, which decide about colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Follow the environment and the terminal
    Auto,
    /// Print colours always, even into pipes
    Always,
    /// Never print colours, not even on a terminal
    Never,
}

/// Flags for colours in all output.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct Colors {
    /// When to print colours; by default the terminal, NO_COLOR, CLICOLOR_FORCE and TERM=dumb decide
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
    /// Print no colours; same as --color=never
    #[arg(long, global = true, hide_short_help = true, overrides_with = "color")]
    pub no_color: bool,
}

impl Colors {
    /// Returns true or false if a flag decides about colours, `None` if the environment and the terminal do.
    pub(crate) fn wanted(self) -> Option<bool> {
        match self.color {
            _ if self.no_color => Some(false),
            Some(When::Always) => Some(true),
            Some(When::Never) => Some(false),
            Some(When::Auto) | None => None,
        }
    }
}
