//! Address and token of the node, taken from flags, then the environment, then the current context, then the default
//! on this machine.
//!
//! A context's token and authorities are used only for that context's server: `--server` never passes the token of
//! one node to another.

use std::fs;
use std::path::{Path, PathBuf};

use super::args::Remote;
use super::contexts::{Context, Contexts};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::shell::Shell;
use windrow_core::business::secrets::unmarked;

/// Default address of a node. (`config.toml`, `http.listen`.)
pub const SERVER_DEFAULT: &str = "http://127.0.0.1:7700";

/// Connection parameters of a node.
#[derive(Debug, PartialEq, Eq)]
pub struct Reach {
    /// URL of the node.
    pub server: String,
    /// Token that authenticates the caller, if any.
    pub token: Option<String>,
    /// File of authorities to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
}

/// Resolves the connection parameters.
///
/// # Errors
/// Fails if the contexts or a token file can't be read, or the named context doesn't exist.
pub fn reach(remote: &Remote, shell: &Shell) -> Result<Reach, Fault> {
    let contexts = Contexts::load(shell)?;
    resolve(remote, |name| shell.var(name).map(str::to_owned), &contexts)
}

fn resolve(
    remote: &Remote,
    var: impl Fn(&str) -> Option<String>,
    contexts: &Contexts,
) -> Result<Reach, Fault> {
    let context = chosen(remote, &var, contexts)?;
    let own = context.map(|context| context.server.clone());
    // A context named by a flag wins over an address in the environment.
    let by_env = var("WINDROW_SERVER").filter(|_| remote.context.is_none());
    let by_other = remote.server.clone().or(by_env);
    let context = context.filter(|context| by_other.as_ref().is_none_or(|server| *server == context.server));
    let token = match (&remote.token_file, &context) {
        (Some(file), _) => Some(read_token(file)?),
        // So does the token of that context.
        (None, Some(context)) if remote.context.is_some() && context.has_token() => stored_token(context)?,
        (None, context) => match (var("WINDROW_TOKEN"), var("WINDROW_TOKEN_FILE")) {
            (Some(token), _) => Some(token),
            (None, Some(file)) => Some(read_token(Path::new(&file))?),
            (None, None) => context.map(stored_token).transpose()?.flatten(),
        },
    };
    let ca_file = remote.ca_file.clone().or_else(|| context?.ca_file.clone());
    let server = by_other.or(own).unwrap_or_else(|| SERVER_DEFAULT.to_owned());
    Ok(Reach {
        server,
        token,
        ca_file,
    })
}

/// Returns the named context, or else the current one.
fn chosen<'a>(
    remote: &Remote,
    var: &impl Fn(&str) -> Option<String>,
    contexts: &'a Contexts,
) -> Result<Option<&'a Context>, Fault> {
    let named = remote.context.clone().or_else(|| var("WINDROW_CONTEXT"));
    match named.or_else(|| contexts.current.clone()) {
        Some(name) => contexts.get(&name).map(Some),
        None => Ok(None),
    }
}

fn stored_token(context: &Context) -> Result<Option<String>, Fault> {
    match (&context.token, &context.token_file) {
        (Some(token), _) => Ok(Some(token.clone())),
        (None, Some(file)) => read_token(file).map(Some),
        (None, None) => Ok(None),
    }
}

/// Reads a token from its file.
fn read_token(file: &Path) -> Result<String, Fault> {
    let unusable = |why: String| {
        let because = format!("{}: {why}", file.display());
        Fault::new(Exit::NotAllowed, "can't use the token file", because)
            .hint("give a readable file that contains only the token")
    };
    let text = fs::read_to_string(file).map_err(|error| error.to_string());
    text.and_then(|text| one_token(&text)).map_err(unusable)
}

/// Returns the single token in a text.
///
/// # Errors
/// Returns why the text isn't a single token.
pub fn one_token(text: &str) -> Result<String, String> {
    match unmarked(text).trim() {
        "" => Err("it is empty".to_owned()),
        token if token.contains(char::is_whitespace) => Err("it contains more than a token".to_owned()),
        token => Ok(token.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        remote: Remote,
    }

    fn contexts() -> Contexts {
        let text = "current = \"home\"\n[context.home]\nserver = \"http://home:1\"\ntoken = \"wrk_home\"\n\
                    [context.prod]\nserver = \"https://prod\"\ntoken = \"wrk_prod\"\nca_file = \"/ca.pem\"\n";
        Contexts::parse(text, Path::new("contexts.toml")).expect("contexts")
    }

    fn of(flags: &[&str], env: &[(&str, &str)], contexts: &Contexts) -> Result<Reach, Fault> {
        let line = Line::try_parse_from([&["x"], flags].concat()).expect("flags");
        let var = |name: &str| {
            env.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        resolve(&line.remote, var, contexts)
    }

    fn seen(flags: &[&str], env: &[(&str, &str)]) -> (String, Option<String>) {
        let found = of(flags, env, &contexts()).expect("a reach");
        (found.server, found.token)
    }

    fn some(server: &str, token: &str) -> (String, Option<String>) {
        (server.to_owned(), Some(token.to_owned()))
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_current_context() {
        let env = [("WINDROW_SERVER", "http://env"), ("WINDROW_TOKEN", "wrk_env")];
        assert_eq!(seen(&[], &[]), some("http://home:1", "wrk_home"));
        assert_eq!(seen(&[], &env), some("http://env", "wrk_env"));
        assert_eq!(
            seen(&["--server", "http://flag"], &env),
            some("http://flag", "wrk_env")
        );
        assert_eq!(
            seen(&["--context", "prod"], &env),
            some("https://prod", "wrk_prod")
        );
        assert_eq!(
            seen(&[], &[("WINDROW_CONTEXT", "prod")]),
            some("https://prod", "wrk_prod")
        );
        let nothing = of(&[], &[], &Contexts::default()).expect("a reach");
        assert_eq!(
            nothing,
            Reach {
                server: SERVER_DEFAULT.to_owned(),
                token: None,
                ca_file: None
            }
        );
        assert_eq!(
            of(&["--context", "prod"], &[], &contexts())
                .expect("a reach")
                .ca_file,
            Some("/ca.pem".into())
        );
    }

    #[test]
    fn a_stored_token_goes_to_its_own_server_only() {
        assert_eq!(
            seen(&["--server", "http://other"], &[]),
            ("http://other".to_owned(), None)
        );
        assert_eq!(
            seen(&[], &[("WINDROW_SERVER", "http://other")]),
            ("http://other".to_owned(), None)
        );
        let both = ["--context", "prod", "--server", "http://other"];
        assert_eq!(seen(&both, &[]), ("http://other".to_owned(), None));
        assert_eq!(
            seen(&["--server", "http://home:1"], &[]),
            some("http://home:1", "wrk_home")
        );
    }

    #[test]
    fn an_unknown_context_is_not_found() {
        let fault = of(&["--context", "prd"], &[], &contexts()).expect_err("no such context");
        assert_eq!(fault.exit, Exit::NotFound);
        assert!(fault.to_string().contains("prod"), "{fault}");
    }

    #[test]
    fn a_token_file_holds_one_token() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("t");
        for (text, good) in [("wrk_a\n", true), ("", false), ("wrk_a wrk_b", false)] {
            fs::write(&file, text).expect("written");
            assert_eq!(read_token(&file).is_ok(), good, "{text:?}");
        }
        assert_eq!(
            read_token(&place.path().join("gone")).expect_err("no file").exit,
            Exit::NotAllowed
        );
    }
}
