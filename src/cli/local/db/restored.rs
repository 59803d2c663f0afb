//! Implementation of `windrow db restored`, and the messages after any restore.

use std::time::Duration;

use super::args::RestoredArgs;
use super::{Target, configured, held};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::screen;
use crate::shell::Shell;
use windrow_engine::ports::clock::Clock as _;
use windrow_node::database::{self, Heartbeat, Inspection, Restored};
use windrow_node::{ServerAddress, SystemClock};

/// Interval between two readings of the nodes' heartbeats.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Marks a database that other tools restored.
///
/// # Errors
/// `NotFound` without a database; `Conflict` while a node uses it; `Config` for a schema of another program version.
pub(super) async fn restored(args: &RestoredArgs, shell: &Shell) -> Result<Exit, Fault> {
    let config = configured(&args.place, shell)?;
    let target = Target::of(&config)?;
    let marks = (args.schedules.pause_schedules, SystemClock::new().wall());
    let marked = match &target {
        Target::File(path) => {
            let directory = held(
                &config,
                "stop the node first: it assigns new numbers while it runs",
            )?;
            database::mark(path, &directory, marks).await?
        }
        Target::Server(server) => {
            silence(server, shell).await?;
            database::mark_server(server, marks).await?
        }
    };
    tell(&marked, &target.shown(), &|line| shell.screen.must_say(line));
    screen::put(&target.shown()).map(|()| Exit::Ok)
}

/// Waits for the longest heartbeat interval that a node promised, and fails if any node writes meanwhile.
async fn silence(server: &ServerAddress, shell: &Shell) -> Result<(), Fault> {
    let inspection = Inspection::connect(server).await?;
    let silent = watch(&inspection, shell).await;
    inspection.close().await?;
    silent
}

async fn watch(inspection: &Inspection, shell: &Shell) -> Result<(), Fault> {
    if inspection.schema().await?.done.is_empty() {
        let fault = Fault::new(
            Exit::NotFound,
            "nothing was marked",
            "the database has no windrow tables",
        );
        return Err(fault.hint("check store.url, and check that the restore went into this database"));
    }
    let first = inspection.heartbeats().await?;
    let Some(wait) = first.iter().map(|heartbeat| heartbeat.promise).max() else {
        return Ok(());
    };
    let line = format!(
        "checking for {} s that no node writes to the database",
        wait.as_secs()
    );
    shell.screen.must_say(&line);
    for _ in 0..wait.as_secs().max(1) {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = inspection.heartbeats().await?;
        if let Some(alive) = now.iter().find(|heartbeat| !first.contains(heartbeat)) {
            return Err(busy(alive));
        }
    }
    Ok(())
}

fn busy(alive: &Heartbeat) -> Fault {
    let because = format!("the node {} uses this database", alive.node);
    Fault::new(Exit::Conflict, "nothing was marked", because)
        .hint("stop all nodes, restore again what they overwrote, then run this command again")
}

/// Prints the consequences of a restore, to be read before a node starts.
pub(super) fn tell(marked: &Restored, database: &str, say: &impl Fn(&str)) {
    say(&format!(
        "new tasks begin at {}: numbers, item keys, epochs and publications assigned since the backup \
            are not reused",
        marked.first_task
    ));
    if !marked.sealed.is_empty() {
        let tasks: Vec<String> = marked.sealed.iter().map(ToString::to_string).collect();
        say(&format!(
            "sealed, because new items would reuse the keys of items appended since the backup: {}",
            tasks.join(", ")
        ));
    }
    match (marked.firing, marked.paused) {
        (0, 0) => {}
        (0, paused) => say(&format!("paused schedules: {paused}")),
        (firing, _) => say(&format!(
            "schedules that will fire again for times since the backup, in tasks with new keys: \
                {firing}. Before starting a node, windrow db restored --pause-schedules pauses those \
                of {database}"
        )),
    }
    say("items settled since the backup are processed again, under the same keys");
}
