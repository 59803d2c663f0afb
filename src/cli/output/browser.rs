//! Opening an address in the browser of this machine, if there is one.

use std::process::Stdio;

use tokio::process::Command;

use crate::output::screen::Screen;

/// Command that opens an address in the user's preferred browser.
const OPENER: (&str, &[&str]) = if cfg!(target_os = "macos") {
    ("open", &[])
} else if cfg!(windows) {
    ("cmd", &["/c", "start", ""])
} else {
    ("xdg-open", &[])
};

/// Opens an address in the browser. Without a browser it only prints a message, since the address was printed before.
pub(crate) fn open(url: &str, screen: &Screen) {
    let (program, words) = OPENER;
    let mut command = Command::new(program);
    command.args(words).arg(url);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Own process group: Ctrl-C is meant for Windrow and would end a browser started here too.
    #[cfg(unix)]
    command.process_group(0);
    match command.spawn() {
        Ok(child) => drop(child),
        Err(error) => screen.say(&format!(
            "can't open a browser ({program}: {error}); the address is {url}"
        )),
    }
}
