//! Runs of one task that tell each other what they found: who is heard, and what it means for a run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Heard, Knowledge, Moment};

/// Time after which a run that says nothing new is left out: it tells its state each second while it runs.
const HEARD_FOR: Duration = Duration::from_secs(6);

/// State of a run, as it tells the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct News {
    /// Calls in flight that the run allows itself.
    pub allows: u32,
    /// Limits that it found.
    #[serde(flatten)]
    pub knowledge: Knowledge,
}

/// Other runs of a task, by the number of their shard.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    known: BTreeMap<u32, Voice>,
    now: Moment,
}

#[derive(Clone, Copy, Debug)]
struct Voice {
    /// Number that changes with each news of the run.
    said: i64,
    /// Time at which it was last seen to change; `None` before the first change, since the news may be of a run that is
    /// long over. Clocks of nodes aren't compared.
    at: Option<Moment>,
    news: News,
}

impl Neighbours {
    /// Takes in the last news of each run, with the number of its shard and one that changes with its news.
    pub fn hear(&mut self, all: impl IntoIterator<Item = (u32, i64, News)>, now: Moment) {
        self.now = now;
        for (shard, said, news) in all {
            let at = match self.known.get(&shard) {
                Some(known) if known.said == said => known.at,
                Some(_) => Some(now),
                None => None,
            };
            self.known.insert(shard, Voice { said, at, news });
        }
    }

    /// Returns what the other runs mean for the run of this shard: the one of the lowest shard leads, and each that is
    /// heard has an equal part.
    pub fn of(&self, shard: u32) -> Heard {
        let others = || self.heard().filter(|(no, _)| *no != shard).map(|(_, news)| news);
        let leader = self.heard().next().filter(|(no, _)| *no < shard);
        Heard {
            part: 1.0 / (1.0 + others().count() as f64),
            in_flight: others().fold(0, |sum, news| sum.saturating_add(news.allows)),
            rate: others().map(|news| news.knowledge.rate).sum(),
            leader: leader.map(|(_, news)| news.knowledge),
        }
    }

    /// Iterates over the runs that said something new lately, by shard.
    fn heard(&self) -> impl Iterator<Item = (u32, News)> {
        let is_heard = |voice: &Voice| voice.at.is_some_and(|at| self.now.since(at) < HEARD_FOR);
        let heard = self.known.iter().filter(move |(_, voice)| is_heard(voice));
        heard.map(|(no, voice)| (*no, voice.news))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(allows: u32, rate: Option<f64>) -> News {
        let knowledge = Knowledge {
            in_flight: f64::from(allows),
            rate,
            top: rate,
            base: None,
            refused_above: None,
        };
        News { allows, knowledge }
    }

    fn second(second: u64) -> Moment {
        Moment(second * 1_000_000_000)
    }

    #[test]
    fn each_run_that_is_heard_has_an_equal_part_and_the_lowest_shard_leads() {
        let mut neighbours = Neighbours::default();
        let all = [(1, 10, news(4, Some(2.0))), (2, 10, news(6, Some(3.0)))];
        neighbours.hear(all, second(0));
        assert_eq!(neighbours.of(0).part, 1.0, "they may be long over");
        neighbours.hear(all.map(|(no, said, news)| (no, said + 1, news)), second(1));
        let heard = neighbours.of(0);
        assert_eq!(
            (heard.part, heard.in_flight, heard.rate),
            (1.0 / 3.0, 10, Some(5.0))
        );
        assert_eq!(heard.leader, None);
        assert_eq!(neighbours.of(2).leader, Some(all[0].2.knowledge));
        assert_eq!(neighbours.of(2).part, 0.5);
        neighbours.hear([(2, 12, news(6, None))], second(2));
        assert_eq!(neighbours.of(0).rate, None, "one of them has found none");
    }

    #[test]
    fn run_that_says_nothing_new_is_left_out_whatever_its_clock_says() {
        let mut neighbours = Neighbours::default();
        for at in 0..20 {
            let all = [(1, -7, news(4, None)), (2, at, news(6, None))];
            neighbours.hear(all, second(at.unsigned_abs()));
        }
        let heard = neighbours.of(0);
        assert_eq!((heard.part, heard.in_flight), (0.5, 6));
        neighbours.hear([], second(40));
        assert_eq!(neighbours.of(0).part, 1.0);
    }

    #[test]
    fn run_without_others_hears_of_nobody() {
        let heard = Neighbours::default().of(3);
        assert_eq!((heard.part, heard.in_flight, heard.leader), (1.0, 0, None));
    }
}
