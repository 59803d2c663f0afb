//! The browser of whoever sits at this machine: shown an address, if there is one.

use std::process::Stdio;

use tokio::process::Command;

use crate::output::screen::Screen;

/// What shows an address in the browser that a person chose.
const OPENER: (&str, &[&str]) = if cfg!(target_os = "macos") {
    ("open", &[])
} else if cfg!(windows) {
    ("cmd", &["/c", "start", ""])
} else {
    ("xdg-open", &[])
};

/// Has the browser show an address. A machine without one is told of, and fails nothing: the address was printed.
pub(crate) fn open(url: &str, screen: &Screen) {
    let (program, words) = OPENER;
    let mut command = Command::new(program);
    command.args(words).arg(url);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Ctrl-C is for Windrow; a browser that was begun by this would end with it.
    #[cfg(unix)]
    command.process_group(0);
    match command.spawn() {
        Ok(child) => drop(child),
        Err(error) => screen.say(&format!(
            "no browser was opened ({program}: {error}); the address is {url}"
        )),
    }
}
