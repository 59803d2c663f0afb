//! What is remembered of a shard whose run didn't end calmly, and of a node that was fenced: the words of the audit, the same
//! for every store.

use std::time::Duration;

use crate::explain::counted;
use crate::ids::{RunNo, SessionId};

/// What is said behind a run's end of the items that may be called again, if there are any.
pub fn again(may_repeat: u64) -> String {
    match may_repeat {
        0 => String::new(),
        items => format!(": up to {} may be called again", counted(items, "item")),
    }
}

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
    /// How many items at most had left without being saved as settled: they may be called again.
    pub may_repeat: u64,
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
    /// let (fate, silent) = (Fate::TakenOver("n2"), Duration::from_secs(12));
    /// let episode = Episode { shard: 0, run: RunNo(3), node: Some("n1"), silent, may_repeat: 120, fate };
    /// let said = "n2 took shard 0 over from n1, which was fenced and had saved nothing for 12 s: up to 120 items may be called again";
    /// assert_eq!(episode.sentence(), said);
    /// ```
    pub fn sentence(&self) -> String {
        let (shard, node) = (self.shard, self.node.unwrap_or("a node whose name was not kept"));
        let silent = self.silent.as_secs();
        let again = again(self.may_repeat);
        match self.fate {
            Fate::TakenOver(to) if Some(to) == self.node => {
                format!(
                    "{to} took shard {shard} over from an earlier life of its own, which had saved nothing for {silent} s{again}"
                )
            }
            Fate::TakenOver(to) => format!(
                "{to} took shard {shard} over from {node}, which was fenced and had saved nothing for {silent} s{again}"
            ),
            Fate::Lost => format!(
                "{node} was fenced and had saved nothing of shard {shard} for {silent} s{again}; it waits for a node"
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

/// A run whose node didn't give its shard back, as the audit has it: taken over, or lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The number of its shard.
    pub shard: u32,
    /// Its number.
    pub run: RunNo,
    /// Its node, as far as its name was kept.
    pub node: Option<String>,
    /// How old the last word of it in the store was; earlier versions wrote that in the sentence only.
    pub silent: Duration,
    /// How many items at most may be called again; earlier versions didn't say.
    pub may_repeat: u64,
    /// Who has the shard since; none where it waited for a node then.
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
    /// The one that [`Episode::before`] and [`Episode::after`] tell of.
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

    /// The sentence for people, where somebody has the shard.
    pub fn sentence(&self) -> Option<String> {
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
