//! Text format of hints on a channel that others can write to. Unreadable input is counted and has no effect.
//!
//! ```text
//! windrow-hints 1 5c0ffee5-…     version, sender
//! task t42
//! work
//! session 7d1…
//! ```

use uuid::Uuid;

use windrow_core::ids::{SessionId, TaskId};
use windrow_engine::ports::ownership::hints::Hint;

/// Maximum number of hints per message.
pub(super) const HINTS_MAX: usize = 100;
/// Maximum size of a message that is read, in bytes; ours stay below 5 KB.
const BYTES_MAX: usize = 16 * 1024;
const HEAD: &str = "windrow-hints 1 ";

/// Content of a received message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) sender: Uuid,
    pub(super) hints: Vec<Hint>,
    /// Number of lines ignored: unknown to this version, or beyond `HINTS_MAX`.
    pub(super) unreadable: u64,
}

pub(super) fn write(sender: Uuid, hints: impl IntoIterator<Item = Hint>) -> String {
    let mut text = format!("{HEAD}{sender}");
    for hint in hints {
        text.push('\n');
        match hint {
            Hint::Task(task) => text.push_str(&format!("task {task}")),
            Hint::Work => text.push_str("work"),
            Hint::Session(session) => text.push_str(&format!("session {}", session.0)),
        }
    }
    text
}

pub(super) fn read(message: &[u8]) -> Option<Said> {
    let text = std::str::from_utf8(message)
        .ok()
        .filter(|text| text.len() <= BYTES_MAX)?;
    let mut lines = text.lines();
    let sender = lines.next()?.strip_prefix(HEAD)?.parse().ok()?;
    let mut said = Said {
        sender,
        hints: Vec::new(),
        unreadable: 0,
    };
    for line in lines {
        match hint(line).filter(|_| said.hints.len() < HINTS_MAX) {
            Some(hint) => said.hints.push(hint),
            None => said.unreadable += 1,
        }
    }
    Some(said)
}

fn hint(line: &str) -> Option<Hint> {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("task", id) => id.parse::<TaskId>().ok().map(Hint::Task),
        ("work", "") => Some(Hint::Work),
        ("session", id) => id.parse().ok().map(|id| Hint::Session(SessionId(id))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_read_back_as_they_were_written() {
        let sender = Uuid::new_v4();
        let hints = vec![
            Hint::Task(TaskId(42)),
            Hint::Work,
            Hint::Session(SessionId(Uuid::new_v4())),
        ];
        let said = read(write(sender, hints.clone()).as_bytes()).expect("readable");
        assert_eq!(
            said,
            Said {
                sender,
                hints,
                unreadable: 0
            }
        );
    }

    #[test]
    fn what_is_forged_or_of_another_version_has_no_effect() {
        let head = format!("{HEAD}{}", Uuid::nil());
        for message in [
            "",
            "x",
            "windrow-hints 1",
            "windrow-hints 1 me\nwork",
            "windrow-hints 2 a\nwork",
            "\0",
        ] {
            assert_eq!(read(message.as_bytes()), None, "{message:?}");
        }
        assert_eq!(read(&[0xff, 0xfe]), None);
        assert_eq!(
            read(format!("{head}\n{}", "work\n".repeat(4000)).as_bytes()),
            None,
            "too long"
        );
        let said =
            read(format!("{head}\ntask 42\ntask t0\nwork now\nmove t1\nwork").as_bytes()).expect("a head");
        assert_eq!((said.hints, said.unreadable), (vec![Hint::Work], 4));
        let said = read(format!("{head}\n{}", "work\n".repeat(300)).as_bytes()).expect("a head");
        assert_eq!((said.hints.len(), said.unreadable), (HINTS_MAX, 200));
    }
}
