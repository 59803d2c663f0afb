//! Audit records of runs that didn't end calmly and of fenced nodes, worded the same for every store.

use std::time::Duration;

use windrow_words::{Message, life as say, list};

use crate::ids::{RunNo, SessionId};

/// Describes a shard for its log: another node has left its run.
pub fn left(shard: u32, from: &str, may_repeat: u64) -> Message {
    repeating(say::left(shard.to_string(), from), may_repeat)
}

fn repeating(what: Message, items: u64) -> Message {
    match items {
        0 => what,
        items => say::may_repeat(what, items),
    }
}

/// Irregular end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate<'a> {
    /// This node claimed the shard of an owner that was fenced and had not released it.
    TakenOver(&'a str),
    /// The owner is gone, and no node has taken the shard.
    Lost,
    /// The run ended itself to be tried again, for this reason.
    Recovering(&'a str),
}

/// Irregular end of a run, with the known facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode<'a> {
    /// Number of the shard.
    pub shard: u32,
    /// Number of the run.
    pub run: RunNo,
    /// Node of the run; `None` if it was started by a version that didn't store names.
    pub node: Option<&'a str>,
    /// Time since the run last saved anything in the store.
    pub silent: Duration,
    /// Maximum number of items dispatched without being saved as settled: they may be called again.
    pub may_repeat: u64,
    /// Irregular end of the run.
    pub fate: Fate<'a>,
}

impl Episode<'_> {
    /// Returns the action name in the audit.
    pub fn action(&self) -> &'static str {
        match self.fate {
            Fate::TakenOver(_) => "shard.taken_over",
            Fate::Lost => "shard.lost",
            Fate::Recovering(_) => "shard.recovering",
        }
    }

    /// Returns the sentence for people.
    ///
    /// ```
    /// use std::time::Duration;
    /// use windrow_core::ids::RunNo;
    /// use windrow_core::life::succession::{Episode, Fate};
    ///
    /// let (fate, silent) = (Fate::TakenOver("n2"), Duration::from_secs(12));
    /// let episode = Episode { shard: 0, run: RunNo(3), node: Some("n1"), silent, may_repeat: 120, fate };
    /// let said = "n2 took over shard 0 from n1, which was fenced after 12s without a save; up to 120 items may be called again";
    /// assert_eq!(episode.sentence().to_string(), said);
    /// ```
    pub fn sentence(&self) -> Message {
        let (shard, silent) = (self.shard.to_string(), self.silent);
        let node = self.node.map_or_else(say::nameless, list::quoted);
        let what = match self.fate {
            Fate::TakenOver(to) if Some(to) == self.node => say::taken_over_again(to, shard, silent),
            Fate::TakenOver(to) => say::taken_over(to, shard, node, silent),
            Fate::Lost => say::lost(node, shard, silent),
            Fate::Recovering(why) => return say::recovering(shard, node, why),
        };
        repeating(what, self.may_repeat)
    }

    /// Returns the shard's owner before, as JSON.
    pub fn before(&self) -> String {
        serde_json::json!({"shard": self.shard, "run": self.run.0, "node": self.node}).to_string()
    }

    /// Returns the shard's owner afterwards, as JSON.
    pub fn after(&self) -> String {
        let (shard, silent, items) = (self.shard, self.silent.as_secs(), self.may_repeat);
        let after = match self.fate {
            Fate::TakenOver(to) => {
                let run = self.run.0 + 1;
                serde_json::json!({"shard": shard, "run": run, "node": to, "silent_seconds": silent, "may_repeat": items})
            }
            Fate::Lost => {
                serde_json::json!({"shard": shard, "node": null, "silent_seconds": silent, "may_repeat": items})
            }
            Fate::Recovering(_) => serde_json::json!({"shard": shard, "node": null}),
        };
        after.to_string()
    }
}

/// Run whose node didn't release its shard, as the audit records it: taken over, or lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Number of the shard.
    pub shard: u32,
    /// Number of the run.
    pub run: RunNo,
    /// Node of the run, if its name was stored.
    pub node: Option<String>,
    /// Time since the run last saved anything in the store; earlier versions wrote it in the sentence only.
    pub silent: Duration,
    /// Maximum number of items that may be called again; earlier versions didn't record it.
    pub may_repeat: u64,
    /// Node that has the shard since, or `None` if the shard was waiting for a node then.
    pub heir: Option<String>,
}

#[derive(serde::Deserialize)]
struct Before {
    shard: u32,
    run: u32,
    node: Option<String>,
}

#[derive(serde::Deserialize)]
struct After {
    node: Option<String>,
    #[serde(default)]
    silent_seconds: u64,
    #[serde(default)]
    may_repeat: u64,
}

impl Loss {
    /// Parses the loss recorded by [`Episode::before`] and [`Episode::after`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use windrow_core::ids::RunNo;
    /// use windrow_core::life::succession::{Episode, Fate, Loss};
    ///
    /// let (node, silent) = (Some("n1"), Duration::from_secs(12));
    /// let episode = Episode { shard: 2, run: RunNo(3), node, silent, may_repeat: 7, fate: Fate::Lost };
    /// let mut loss = Loss::of(&episode.before(), &episode.after()).expect("it was lost");
    /// assert_eq!((loss.run, loss.silent, loss.sentence()), (RunNo(3), silent, None));
    /// loss.heir = Some("n2".to_owned());
    /// let taken = Episode { fate: Fate::TakenOver("n2"), ..episode };
    /// assert_eq!(loss.sentence(), Some(taken.sentence()));
    /// assert_eq!(Loss::of(&taken.before(), &taken.after()), Some(loss));
    /// ```
    pub fn of(before: &str, after: &str) -> Option<Loss> {
        let before: Before = serde_json::from_str(before).ok()?;
        let after: After = serde_json::from_str(after).ok()?;
        Some(Loss {
            shard: before.shard,
            run: RunNo(before.run),
            node: before.node,
            silent: Duration::from_secs(after.silent_seconds),
            may_repeat: after.may_repeat,
            heir: after.node,
        })
    }

    /// Returns the sentence for people, if a node has the shard.
    pub fn sentence(&self) -> Option<Message> {
        let episode = Episode {
            shard: self.shard,
            run: self.run,
            node: self.node.as_deref(),
            silent: self.silent,
            may_repeat: self.may_repeat,
            fate: Fate::TakenOver(self.heir.as_deref()?),
        };
        Some(episode.sentence())
    }
}

/// Session that stopped reporting and may not write any more, with or without a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fenced<'a> {
    /// Node of the session.
    pub node: &'a str,
    /// Id of the fenced session.
    pub session: SessionId,
}

impl Fenced<'_> {
    /// Action name in the audit.
    pub const ACTION: &'static str = "node.fenced";

    /// Returns the sentence for people.
    ///
    /// ```
    /// use windrow_core::ids::SessionId;
    /// use windrow_core::life::succession::Fenced;
    ///
    /// let told = Fenced { node: "n1", session: SessionId(uuid::Uuid::nil()) };
    /// let said = "n1 stopped responding and was fenced; other nodes may take its shards";
    /// assert_eq!(told.sentence().to_string(), said);
    /// ```
    pub fn sentence(&self) -> Message {
        say::fenced(self.node)
    }

    /// Returns the unfenced state as JSON.
    pub fn before(&self) -> String {
        self.as_json(false)
    }

    /// Returns the fenced state as JSON.
    pub fn after(&self) -> String {
        self.as_json(true)
    }

    fn as_json(&self, fenced: bool) -> String {
        let session = self.session.0.to_string();
        serde_json::json!({"node": self.node, "session": session, "fenced": fenced}).to_string()
    }
}
