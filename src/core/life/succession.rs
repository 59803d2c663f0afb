//! What is remembered of a shard whose run didn't end calmly, and of a node that was fenced: the words of the audit, the same
//! for every store.

use std::time::Duration;

use crate::ids::{RunNo, SessionId};

/// What befell a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate<'a> {
    /// This node claimed what its owner, fenced by then, had not given back.
    TakenOver(&'a str),
    /// Its owner is gone, and nobody has taken it.
    Lost,
    /// It ended itself, to be tried again; why.
    Recovering(&'a str),
}

/// What befell a run, with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode<'a> {
    /// The number of its shard.
    pub shard: u32,
    /// Its number.
    pub run: RunNo,
    /// Its node; none when a program that didn't keep names began it.
    pub node: Option<&'a str>,
    /// How old the last word of it in the store was.
    pub silent: Duration,
    /// What befell it.
    pub fate: Fate<'a>,
}

impl Episode<'_> {
    /// The audit's word for it.
    pub fn action(&self) -> &'static str {
        match self.fate {
            Fate::TakenOver(_) => "shard.taken_over",
            Fate::Lost => "shard.lost",
            Fate::Recovering(_) => "shard.recovering",
        }
    }

    /// The sentence for people.
    ///
    /// ```
    /// use std::time::Duration;
    /// use windrow_core::ids::RunNo;
    /// use windrow_core::life::succession::{Episode, Fate};
    ///
    /// let fate = Fate::TakenOver("n2");
    /// let episode = Episode { shard: 0, run: RunNo(3), node: Some("n1"), silent: Duration::from_secs(12), fate };
    /// assert_eq!(episode.sentence(), "n2 took shard 0 over from n1, which was fenced and had saved nothing for 12 s");
    /// ```
    pub fn sentence(&self) -> String {
        let (shard, node) = (self.shard, self.node.unwrap_or("a node whose name was not kept"));
        let silent = self.silent.as_secs();
        match self.fate {
            Fate::TakenOver(to) if Some(to) == self.node => {
                format!(
                    "{to} took shard {shard} over from an earlier life of its own, which had saved nothing for {silent} s"
                )
            }
            Fate::TakenOver(to) => format!(
                "{to} took shard {shard} over from {node}, which was fenced and had saved nothing for {silent} s"
            ),
            Fate::Lost => format!(
                "{node} was fenced and had saved nothing of shard {shard} for {silent} s; it waits for a node"
            ),
            Fate::Recovering(why) => format!("shard {shard} on {node}: {why}"),
        }
    }

    /// Who ran it, as JSON.
    pub fn before(&self) -> String {
        serde_json::json!({"shard": self.shard, "run": self.run.0, "node": self.node}).to_string()
    }

    /// Who runs it now, as JSON.
    pub fn after(&self) -> String {
        match self.fate {
            Fate::TakenOver(to) => {
                let (run, silent) = (self.run.0 + 1, self.silent.as_secs());
                let after = serde_json::json!({"shard": self.shard, "run": run, "node": to, "silent_seconds": silent});
                after.to_string()
            }
            Fate::Lost | Fate::Recovering(_) => {
                serde_json::json!({"shard": self.shard, "node": null}).to_string()
            }
        }
    }
}

/// Whose run it was, as [`Episode::before`] has it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Predecessor {
    /// The number of the shard.
    pub shard: u32,
    /// The number of the run.
    pub run: u32,
}

impl Predecessor {
    /// The one of an entry of the audit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use windrow_core::ids::RunNo;
    /// use windrow_core::life::succession::{Episode, Fate, Predecessor};
    ///
    /// let (silent, fate) = (Duration::ZERO, Fate::Lost);
    /// let episode = Episode { shard: 2, run: RunNo(3), node: None, silent, fate };
    /// assert_eq!(Predecessor::of(&episode.before()), Some(Predecessor { shard: 2, run: 3 }));
    /// ```
    pub fn of(before: &str) -> Option<Predecessor> {
        serde_json::from_str(before).ok()
    }
}

/// Who took a shard over, as [`Episode::after`] has it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Successor {
    /// The node.
    pub node: String,
    /// For how long nothing had been saved; earlier versions wrote it in the sentence only. Unit: seconds.
    #[serde(default)]
    pub silent_seconds: u64,
}

impl Successor {
    /// The one of an entry of the audit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use windrow_core::ids::RunNo;
    /// use windrow_core::life::succession::{Episode, Fate, Successor};
    ///
    /// let fate = Fate::TakenOver("n2");
    /// let episode = Episode { shard: 0, run: RunNo(3), node: Some("n1"), silent: Duration::from_secs(12), fate };
    /// let successor = Successor::of(&episode.after()).expect("it was taken over");
    /// assert_eq!((successor.node.as_str(), successor.silent_seconds), ("n2", 12));
    /// ```
    pub fn of(after: &str) -> Option<Successor> {
        serde_json::from_str(after).ok()
    }
}

/// A session that fell silent and may not write any more, whether it owned a shard or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fenced<'a> {
    /// Its node.
    pub node: &'a str,
    /// The session.
    pub session: SessionId,
}

impl Fenced<'_> {
    /// The audit's word for it.
    pub const ACTION: &'static str = "node.fenced";

    /// The sentence for people.
    ///
    /// ```
    /// use windrow_core::ids::SessionId;
    /// use windrow_core::life::succession::Fenced;
    ///
    /// let told = Fenced { node: "n1", session: SessionId(uuid::Uuid::nil()) };
    /// assert_eq!(told.sentence(), "n1 fell silent and was fenced: what it ran may be taken");
    /// ```
    pub fn sentence(&self) -> String {
        format!(
            "{} fell silent and was fenced: what it ran may be taken",
            self.node
        )
    }

    /// What it was, as JSON.
    pub fn before(&self) -> String {
        self.as_json(false)
    }

    /// What it is, as JSON.
    pub fn after(&self) -> String {
        self.as_json(true)
    }

    fn as_json(&self, fenced: bool) -> String {
        let session = self.session.0.to_string();
        serde_json::json!({"node": self.node, "session": session, "fenced": fenced}).to_string()
    }
}
