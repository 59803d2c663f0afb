//! Tree as lines of text: one column for each fact about an actor, children below their parents.

use std::time::Duration;

use super::ActorView;
use crate::actors::runtime::policy::Kind;

const COLUMNS: [&str; 7] = [
    "actor",
    "state",
    "up",
    "restarts",
    "mailbox",
    "last message",
    "doing",
];

/// Renders actors, given with parents before children as a tree gives them; those at the top are roots.
pub fn render(actors: &[ActorView]) -> String {
    let depth = |actor: &ActorView| actor.path.matches('/').count();
    let top = actors.iter().map(depth).min().unwrap_or(0);
    let row = |(at, actor): (usize, &ActorView)| cells(actor, &branches(&actor.path, &actors[at + 1..], top));
    let rows: Vec<[String; 7]> = actors.iter().enumerate().map(row).collect();
    let widths: [usize; 7] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([COLUMNS[column].len()]).max().unwrap_or(0)
    });
    let mut text = line(&COLUMNS.map(str::to_owned), &widths);
    rows.iter().for_each(|row| text.push_str(&line(row, &widths)));
    text
}

fn line(row: &[String; 7], widths: &[usize; 7]) -> String {
    let cells = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:<width$}"));
    format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
}

fn cells(actor: &ActorView, lead: &str) -> [String; 7] {
    let name = actor.path.rsplit('/').next().unwrap_or(&actor.path);
    let name = match actor.kind {
        Kind::Supervisor | Kind::Launcher => format!("{lead}{name} ({})", actor.kind.as_str()),
        _ => format!("{lead}{name}"),
    };
    let up = humantime::format_duration(Duration::from_secs(actor.uptime.as_secs()));
    let last = humantime::format_duration(Duration::from_millis(actor.last_handled.as_millis() as u64));
    [
        name,
        actor.activity.as_str().to_owned(),
        up.to_string(),
        actor.restarts.to_string(),
        actor.mailbox.to_string(),
        format!("{last} ago"),
        actor.text.clone(),
    ]
}

/// Returns the lines that lead from the root to a path: one column for each ancestor below the root, then the actor's
/// corner.
fn branches(path: &str, later: &[ActorView], top: usize) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let mut text = String::new();
    for depth in top + 1..parts.len() {
        // A column continues while a later actor hangs on the same parent.
        let parent = format!("{}/", parts[..depth].join("/"));
        let own = format!("{}/", parts[..=depth].join("/"));
        // Sorted: the first actor after this one's subtree is still below the parent, or none is.
        let next = later.iter().find(|next| !next.path.starts_with(&own));
        let goes_on = next.is_some_and(|next| next.path.starts_with(&parent));
        text.push_str(match (depth + 1 == parts.len(), goes_on) {
            (true, true) => "├─ ",
            (true, false) => "└─ ",
            (false, true) => "│  ",
            (false, false) => "   ",
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::runtime::tree::Activity;

    fn actor(path: &str) -> ActorView {
        let kind = if path.contains('/') {
            Kind::Session
        } else {
            Kind::Supervisor
        };
        ActorView {
            path: path.to_owned(),
            kind,
            activity: Activity::Ok,
            uptime: Duration::from_secs(61),
            restarts: 0,
            mailbox: 0,
            last_handled: Duration::from_millis(4),
            text: "beats".to_owned(),
        }
    }

    #[test]
    fn every_column_has_a_name_and_stands_below_it() {
        let text = render(&[actor("n1"), actor("n1/session")]);
        let wanted = "\
actor            state  up     restarts  mailbox  last message  doing
n1 (supervisor)  ok     1m 1s  0         0        4ms ago       beats
└─ session       ok     1m 1s  0         0        4ms ago       beats
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn branches_go_on_as_long_as_a_later_actor_hangs_on_them() {
        let drawn = |paths: &[&str]| -> Vec<String> {
            let actors: Vec<ActorView> = paths.iter().map(|path| actor(path)).collect();
            let lines = render(&actors);
            let first = |line: &str| line.split("  ").next().unwrap_or_default().to_owned();
            lines.lines().skip(1).map(first).collect()
        };
        let paths = [
            "n1",
            "n1/session",
            "n1/t1.0",
            "n1/t1.0/executor",
            "n1/t1.0/renewer",
            "n1/t2.0",
        ];
        assert_eq!(drawn(&paths)[..3], ["n1 (supervisor)", "├─ session", "├─ t1.0"]);
        let all: Vec<ActorView> = paths.into_iter().map(actor).collect();
        let branch = |at: usize| branches(&all[at].path, &all[at + 1..], 0);
        assert_eq!([branch(3), branch(4), branch(5)], ["│  ├─ ", "│  └─ ", "└─ "]);
        // A part of the tree begins at its own roots.
        assert_eq!(drawn(&paths[2..5]), ["t1.0", "├─ executor", "└─ renewer"]);
    }
}
