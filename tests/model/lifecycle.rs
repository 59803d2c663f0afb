//! The transition table against the status function: every task of up to three shards, every verb, exhaustively.
//! And `docs/lifecycle.md`, which is made of the table.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use windrow_core::task::lifecycle::{
    Desired, Edge, ShardState, Shards, Standing, Status, Verb, decide, edges, status_of,
};

/// A task as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Task {
    desired: Desired,
    status: Status,
    shards: Vec<ShardState>,
    awaiting: bool,
    finalized: bool,
    /// Whether its results are to be published.
    publishes: bool,
    /// The shard whose owner does it, once all others are done.
    publication: Option<ShardState>,
}

impl Task {
    fn new(shards: usize, publishes: bool) -> Task {
        Task {
            publishes,
            publication: None,
            desired: Desired::Rest,
            status: Status::Created,
            shards: vec![ShardState::Idle; shards],
            awaiting: false,
            finalized: false,
        }
    }

    fn shards(&self) -> Shards<'_> {
        Shards {
            states: &self.shards,
            publication: self.publication,
            awaiting_business: self.awaiting,
            finalized: self.finalized,
        }
    }

    /// The same with another state of a shard; the one behind the last publishes.
    fn with(&self, no: usize, state: ShardState) -> Task {
        let mut task = self.clone();
        match task.shards.get_mut(no) {
            Some(shard) => *shard = state,
            None => task.publication = Some(state),
        }
        task
    }

    fn state(&self, no: usize) -> Option<ShardState> {
        self.shards.get(no).copied().or(self.publication)
    }

    fn is_all_done(&self) -> bool {
        self.shards.iter().all(|state| *state == ShardState::Done)
    }

    /// Its end adds up, and its results are to be published: no verb, the status is made anew.
    fn publication_made(&self) -> Option<Task> {
        let is_due = self.publishes && self.publication.is_none() && self.is_all_done() && !self.finalized;
        let is_ending = matches!(self.desired, Desired::Stop | Desired::StopNow | Desired::Cancel);
        let state = if is_ending {
            ShardState::Stopped
        } else {
            ShardState::Idle
        };
        is_due.then(|| {
            let made = self.with(self.shards.len(), state);
            Task {
                status: status_of(made.desired, &made.shards()),
                ..made
            }
        })
    }

    /// What a verb does to the rows, before the table is asked; one task for each shard that it may be about.
    /// Only what can really arrive: a run reports only while it owns its shard.
    fn rows_after(&self, verb: Verb) -> Vec<Task> {
        let of = |from: &[ShardState], to| {
            let is_from = |no: &usize| self.state(*no).is_some_and(|state| from.contains(&state));
            let shards = (0..=self.shards.len()).filter(is_from);
            shards.map(|no| self.with(no, to)).collect::<Vec<_>>()
        };
        let claimable = !self.awaiting && !self.status.is_terminal();
        match verb {
            Verb::Claimed if claimable => {
                of(&[ShardState::Idle, ShardState::Recovering], ShardState::Running)
            }
            Verb::Claimed => vec![],
            Verb::Released => of(&[ShardState::Running], ShardState::Idle),
            Verb::Recovered => of(&[ShardState::Running], ShardState::Recovering),
            Verb::Drained => of(&[ShardState::Running], ShardState::Stopped),
            Verb::AllSettled => {
                let open = [
                    ShardState::Idle,
                    ShardState::Running,
                    ShardState::Recovering,
                    ShardState::Stopped,
                ];
                let done = if self.awaiting || self.is_all_done() {
                    vec![]
                } else {
                    of(&open, ShardState::Done)
                };
                done.into_iter().filter(Task::is_all_done).collect()
            }
            Verb::Finalized if self.publication == Some(ShardState::Running) => vec![Task {
                finalized: true,
                publication: Some(ShardState::Done),
                ..self.clone()
            }],
            Verb::Finalized if self.publishes || !self.is_all_done() => vec![],
            Verb::Finalized => vec![Task {
                finalized: true,
                ..self.clone()
            }],
            Verb::PublishAgain if self.publication.is_none() => vec![],
            Verb::Start if self.publication.is_some() => vec![],
            Verb::HookAsked if self.shards().is_owned() => vec![],
            Verb::HookAsked => vec![Task {
                awaiting: true,
                ..self.clone()
            }],
            Verb::HookReady | Verb::HookRefused | Verb::Start | Verb::PublishAgain => {
                vec![Task {
                    awaiting: false,
                    ..self.clone()
                }]
            }
            Verb::Recover | Verb::Woken => vec![self.unhurt()],
            Verb::Rescheduled => vec![self.clone()],
            // `Life` refuses it where nothing is left to stop.
            Verb::Stop | Verb::StopNow | Verb::Cancel
                if self.status == Status::Finalizing && self.publication.is_none() =>
            {
                vec![]
            }
            Verb::Stop | Verb::StopNow | Verb::Cancel => vec![self.clone()],
            Verb::Tune | Verb::Describe | Verb::Edit | Verb::Finish | Verb::Fail | Verb::Skip => {
                vec![self.clone()]
            }
            Verb::Append | Verb::Seal => vec![self.clone()],
        }
    }

    /// One of several shards is done; no verb, the status is made anew.
    fn shards_done(&self) -> Vec<Task> {
        let running = (0..self.shards.len()).filter(|no| self.shards[*no] == ShardState::Running);
        let done = running
            .map(|no| self.with(no, ShardState::Done))
            .filter(|task| task.shards.iter().any(|state| *state != ShardState::Done));
        done.map(|task| Task {
            status: status_of(task.desired, &task.shards()),
            ..task
        })
        .collect()
    }

    /// No shard waits for its time any more.
    fn unhurt(&self) -> Task {
        let mut task = self.clone();
        for state in task
            .shards
            .iter_mut()
            .chain(&mut task.publication)
            .filter(|state| **state == ShardState::Recovering)
        {
            *state = ShardState::Idle;
        }
        task
    }

    /// A start begins the stopped shards anew.
    fn reopened(mut self) -> Task {
        let all = self.shards.iter_mut().chain(&mut self.publication);
        for state in all.filter(|state| **state != ShardState::Done) {
            *state = ShardState::Idle;
        }
        self
    }
}

/// Follows every legal verb from a new task, and checks each step. Returns all states and the edges that were used.
fn explore(shards: usize) -> (HashSet<Task>, HashSet<(Verb, Status)>) {
    let mut open = vec![Task::new(shards, false), Task::new(shards, true)];
    let mut seen: HashSet<Task> = open.iter().cloned().collect();
    let mut used = HashSet::new();
    while let Some(task) = open.pop() {
        let verbs = Verb::ALL.iter().flat_map(|verb| {
            task.rows_after(*verb)
                .into_iter()
                .filter_map(|rows| step(&task, *verb, rows))
                .collect::<Vec<_>>()
        });
        used.extend(
            Verb::ALL
                .iter()
                .filter(|verb| {
                    task.rows_after(**verb)
                        .into_iter()
                        .any(|rows| step(&task, **verb, rows).is_some())
                })
                .map(|verb| (*verb, task.status)),
        );
        for next in verbs.chain(task.shards_done()).chain(task.publication_made()) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    (seen, used)
}

/// The task after a verb whose rows are changed already; none when the table refuses it.
fn step(before: &Task, verb: Verb, rows: Task) -> Option<Task> {
    let owned = rows.shards().is_owned();
    let decision = decide(
        verb,
        Standing {
            desired: before.desired,
            status: before.status,
            owned,
        },
    )
    .ok()?;
    let rows = if matches!(verb, Verb::Start | Verb::PublishAgain) {
        rows.reopened()
    } else {
        rows
    };
    let status = status_of(decision.desired, &rows.shards());
    // A fact about one of several shards leaves the status to the function; everything else must agree.
    let is_whole = verb.is_command() || rows.shards.len() == 1;
    if is_whole {
        assert_eq!(decision.status, status, "{verb} of {before:?} made {rows:?}");
    }
    Some(Task {
        desired: decision.desired,
        status,
        ..rows
    })
}

#[test]
fn the_table_and_the_status_function_agree_on_every_reachable_task() {
    for shards in 1..=3 {
        let (seen, _) = explore(shards);
        for task in &seen {
            assert_eq!(task.status, status_of(task.desired, &task.shards()), "{task:?}");
        }
        let statuses: HashSet<Status> = seen.iter().map(|task| task.status).collect();
        assert_eq!(
            statuses.len(),
            Status::ALL.len(),
            "every status is reached with {shards} shards"
        );
    }
}

#[test]
fn every_row_of_the_table_is_used() {
    let (_, used) = explore(2);
    let rows = edges()
        .iter()
        .flat_map(|edge| edge.from.iter().map(|from| (edge.verb, *from)));
    let idle: Vec<_> = rows.filter(|row| !used.contains(row)).collect();
    assert_eq!(idle, [], "rows that no task ever needs");
}

#[test]
fn the_table_has_one_answer_for_a_verb_in_a_state() {
    let rows = edges()
        .iter()
        .flat_map(|edge| edge.from.iter().map(|from| (edge.verb, *from)));
    let mut seen = HashSet::new();
    for row in rows {
        assert!(seen.insert(row), "{row:?} stands twice");
    }
}

#[test]
fn an_ended_task_stays_ended() {
    for status in Status::ALL.iter().copied().filter(|status| status.is_terminal()) {
        for (verb, desired) in Verb::ALL
            .iter()
            .flat_map(|verb| Desired::ALL.iter().map(move |desired| (*verb, *desired)))
        {
            for owned in [false, true] {
                let refusal = decide(
                    verb,
                    Standing {
                        desired,
                        status,
                        owned,
                    },
                )
                .expect_err("it is final");
                assert!(refusal.allowed.is_empty());
            }
        }
    }
}

#[test]
fn stop_is_immediate_only_where_nothing_is_owned() {
    for status in [
        Status::Queued,
        Status::AwaitingBusiness,
        Status::Running,
        Status::Recovering,
    ] {
        for (verb, desired, at_once) in [
            (Verb::Stop, Desired::Stop, Status::Stopped),
            (Verb::StopNow, Desired::StopNow, Status::Stopped),
            (Verb::Cancel, Desired::Cancel, Status::Cancelled),
        ] {
            let idle = decide(
                verb,
                Standing {
                    desired: Desired::Run,
                    status,
                    owned: false,
                },
            )
            .expect("legal");
            assert_eq!(
                (idle.desired, idle.status),
                (desired, at_once),
                "{verb} while {status}"
            );
            let owned = decide(
                verb,
                Standing {
                    desired: Desired::Run,
                    status,
                    owned: true,
                },
            )
            .expect("legal");
            assert_eq!(
                (owned.desired, owned.status),
                (desired, Status::Stopping),
                "{verb} while {status}"
            );
        }
    }
}

#[test]
fn a_repeated_stop_is_harmless_and_never_softens_an_earlier_one() {
    let stopping = |desired| Standing {
        desired,
        status: Status::Stopping,
        owned: true,
    };
    let wish_after = |verb, desired| decide(verb, stopping(desired)).expect("legal").desired;
    assert_eq!(wish_after(Verb::Stop, Desired::Stop), Desired::Stop);
    assert_eq!(wish_after(Verb::StopNow, Desired::Stop), Desired::StopNow);
    assert_eq!(wish_after(Verb::Stop, Desired::StopNow), Desired::StopNow);
    assert_eq!(wish_after(Verb::Cancel, Desired::StopNow), Desired::Cancel);
    assert_eq!(wish_after(Verb::StopNow, Desired::Cancel), Desired::Cancel);
    assert_eq!(wish_after(Verb::Drained, Desired::Cancel), Desired::Cancel);
}

#[test]
fn start_is_refused_while_it_runs_and_names_what_is_allowed() {
    for status in [
        Status::Queued,
        Status::Running,
        Status::Recovering,
        Status::Stopping,
        Status::Finalizing,
    ] {
        let refusal = decide(
            Verb::Start,
            Standing {
                desired: Desired::Run,
                status,
                owned: false,
            },
        );
        let refusal = refusal.expect_err("it is under way");
        assert_eq!((refusal.verb, refusal.status), ("start", status));
        let stops = refusal.allowed.contains(&"stop");
        assert!(stops, "{refusal}");
    }
}

#[test]
fn meaning_is_changed_only_while_it_does_not_run() {
    let legal = |verb| {
        let at = |status| {
            decide(
                verb,
                Standing {
                    desired: Desired::Run,
                    status,
                    owned: false,
                },
            )
            .is_ok()
        };
        Status::ALL
            .iter()
            .copied()
            .filter(|status| at(*status))
            .map(Status::as_str)
            .collect::<Vec<_>>()
    };
    assert_eq!(legal(Verb::Edit), ["created", "awaiting_business", "stopped"]);
    let open = [
        "created",
        "queued",
        "awaiting_business",
        "running",
        "recovering",
        "stopping",
        "stopped",
    ];
    assert_eq!(
        (legal(Verb::Tune), legal(Verb::Describe)),
        (open.to_vec(), open.to_vec())
    );
    assert_eq!(
        legal(Verb::Finish),
        ["queued", "running", "recovering", "stopped"]
    );
    assert_eq!(legal(Verb::Recover), ["recovering", "finalizing"]);
}

#[test]
fn the_documentation_is_the_table() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/lifecycle.md");
    let made = document();
    if crate::is_update() {
        std::fs::write(&path, &made).expect("docs/lifecycle.md can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        kept == made,
        "docs/lifecycle.md is stale; run `UPDATE=1 cargo nextest run --test model lifecycle`"
    );
}

fn document() -> String {
    let mut out = String::from(HEAD);
    let mut arrows = BTreeSet::new();
    for edge in edges() {
        for (from, to, verb) in arrows_of(edge) {
            arrows.insert((order(from), order(to), verb));
        }
    }
    for (from, to) in arrows
        .iter()
        .map(|(from, to, _)| (*from, *to))
        .collect::<BTreeSet<_>>()
    {
        let verbs: Vec<&str> = arrows
            .iter()
            .filter(|arrow| (arrow.0, arrow.1) == (from, to))
            .map(|arrow| arrow.2)
            .collect();
        line(
            &mut out,
            &format!(
                "    {} --> {}: {}",
                Status::ALL[from],
                Status::ALL[to],
                verbs.join(", ")
            ),
        );
    }
    out.push_str(TABLE_HEAD);
    for edge in edges() {
        let kind = if edge.verb.is_command() { "command" } else { "fact" };
        let from: Vec<&str> = edge.from.iter().map(|status| status.as_str()).collect();
        let desired = edge.desired.map_or("–", Desired::as_str);
        let (idle, owned) = (target(edge, edge.idle), target(edge, edge.owned));
        line(
            &mut out,
            &format!(
                "| `{}` | {kind} | {} | {desired} | {idle} | {owned} |",
                edge.verb,
                from.join(", ")
            ),
        );
    }
    out
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a String takes everything");
}

fn order(status: Status) -> usize {
    Status::ALL
        .iter()
        .position(|other| *other == status)
        .expect("ALL holds every status")
}

fn target(edge: &Edge, to: Option<Status>) -> &'static str {
    match to {
        None => "–",
        Some(Status::Stopped) if edge.desired == Some(Desired::Cancel) => "cancelled",
        Some(to) => to.as_str(),
    }
}

/// The arrows that change something; a repeat that leaves the status is in the table only.
fn arrows_of(edge: &Edge) -> Vec<(Status, Status, &'static str)> {
    let to = |status| match status {
        Status::Stopped if edge.desired == Some(Desired::Cancel) => Status::Cancelled,
        status => status,
    };
    let ends = edge.from.iter().flat_map(|from| {
        [edge.idle, edge.owned]
            .into_iter()
            .flatten()
            .map(|end| (*from, end))
    });
    // Nothing is owned before the first claim and after a stop, so these have one end only.
    let idle_only = [Status::Created, Status::Stopped, Status::AwaitingBusiness];
    let ends = ends.filter(|(from, end)| !(idle_only.contains(from) && *end == Status::Stopping));
    ends.map(|(from, end)| (from, to(end), edge.verb.as_str()))
        .filter(|(from, end, _)| from != end)
        .collect()
}

const HEAD: &str = "# Life of a task

Generated from the transition table in `src/core/task/lifecycle/transitions.rs` by `tests/model/lifecycle.rs`;
`UPDATE=1 cargo nextest run --test model lifecycle` writes it anew, and a test fails when it is stale.

```mermaid
stateDiagram-v2
    [*] --> created
    finished --> [*]
    cancelled --> [*]
";

const TABLE_HEAD: &str = "```

A stop (and a cancel) is complete at once where no node owns a shard of the task; otherwise the task is `stopping`
until its runs have drained. A stop that was asked for never becomes a weaker one: a task that is being cancelled ends
`cancelled`, whatever is asked later. What isn't in the table is refused, and the refusal names the commands that are
allowed. `–` leaves what was.

| verb | kind | while | then it wants | it is, nothing owned | it is, a shard owned |
|---|---|---|---|---|---|
";
