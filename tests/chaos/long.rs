//! As many rounds as one likes: `scripts/chaos.sh`.

use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures_util::FutureExt;
use serde_json::json;

use crate::check::Judgement;
use crate::cluster::Cluster;
use crate::rng::Rng;
use crate::round::play;
use crate::scenarios::{ALL, Scenario, fits, named};
use crate::settings::{Settings, number, text};

/// What all rounds came to.
#[derive(Default)]
struct Sums {
    rounds: usize,
    bad: Vec<String>,
    excused: usize,
    deliveries: usize,
    losses: usize,
    handovers: usize,
    repeats: u64,
    worst: u64,
    gaps: Vec<i64>,
    stops: Vec<i64>,
    effects: usize,
}

impl Sums {
    fn add(&mut self, judgement: &Judgement) {
        self.excused += judgement.excused.len();
        self.deliveries += judgement.deliveries;
        self.losses += judgement.losses;
        self.handovers += judgement.handovers;
        self.repeats += judgement.repeats;
        self.effects += judgement.effects;
        self.worst = self.worst.max(judgement.repeats_worst);
        self.gaps.extend(&judgement.gaps);
        self.stops.extend(&judgement.stop_lags);
    }

    fn print(&mut self) {
        self.gaps.sort_unstable();
        self.stops.sort_unstable();
        println!("rounds            {}", self.rounds);
        println!("with findings     {}", self.bad.len());
        println!("foreseen breaches {}", self.excused);
        println!("looked up         {} acknowledged commands", self.effects);
        println!("deliveries        {}", self.deliveries);
        println!("losses            {}, hand-overs {}", self.losses, self.handovers);
        println!(
            "repeats           {}, at most {} of one loss",
            self.repeats, self.worst
        );
        println!(
            "gap of a loss     p50 {} ms, p99 {} ms",
            quantile(&self.gaps, 50),
            quantile(&self.gaps, 99)
        );
        println!(
            "stop to last gate p50 {} ms, p99 {} ms",
            quantile(&self.stops, 50),
            quantile(&self.stops, 99)
        );
    }
}

/// Of sorted numbers; 0 where there are none.
pub(crate) fn quantile(sorted: &[i64], percent: usize) -> i64 {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rounds() {
    if text("ROUNDS").is_none() && text("SCENARIO").is_none() && text("SEED").is_none() {
        println!("nothing is wanted: scripts/chaos.sh says how");
        return;
    }
    let settings = Settings::wanted();
    let seed = number("SEED")
        .unwrap_or_else(|| std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), "chaos") >> 16);
    let rounds = number("ROUNDS").unwrap_or(1);
    let chosen = text("SCENARIO");
    let mut sums = Sums::default();
    let mut cluster: Option<Cluster> = None;
    for seed in seed..seed + rounds {
        let scenario = match chosen.as_deref() {
            Some("all") => pick(&settings, sums.rounds),
            Some(name) => named(name),
            None => pick(
                &settings,
                usize::try_from(Rng(seed).next() >> 8).expect("64 bits"),
            ),
        };
        let judgement = guarded(&mut cluster, &settings, scenario, seed).await;
        sums.rounds += 1;
        sums.add(&judgement);
        record(scenario, seed, &judgement);
        if !judgement.findings.is_empty() {
            let again = format!(
                "scripts/chaos.sh --scenario {} --seed {seed} {}",
                scenario.name,
                settings.flags()
            );
            println!(
                "FOUND in {} (seed {seed}): {:#?}\n  replay: {again}",
                scenario.name, judgement.findings
            );
            sums.bad.push(again);
            // What is wrong with this one must not spoil the next.
            cluster = None;
        }
    }
    sums.print();
    assert!(
        sums.bad.is_empty(),
        "{} rounds with findings:\n{}",
        sums.bad.len(),
        sums.bad.join("\n")
    );
}

/// One of those that make sense here.
fn pick(settings: &Settings, number: usize) -> &'static Scenario {
    let fitting: Vec<&Scenario> = ALL.iter().filter(|scenario| fits(scenario, settings)).collect();
    fitting[number % fitting.len()]
}

/// A round that can't even be played to its end is a finding too.
async fn guarded(
    cluster: &mut Option<Cluster>,
    settings: &Settings,
    scenario: &Scenario,
    seed: u64,
) -> Judgement {
    let begun = Instant::now();
    let playing = async {
        if cluster.is_none() {
            *cluster = Some(Cluster::start(settings).await);
        }
        let cluster = cluster.as_mut().expect("just made");
        play(cluster, scenario, seed).await
    };
    AssertUnwindSafe(playing)
        .catch_unwind()
        .await
        .unwrap_or_else(|fault| {
            let text = fault.downcast_ref::<String>().cloned();
            let text = text.or_else(|| fault.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let text = format!(
                "broke off after {:?}: {}",
                begun.elapsed(),
                text.unwrap_or_default()
            );
            Judgement {
                findings: vec![text],
                ..Judgement::default()
            }
        })
}

/// A line of JSON for whoever draws curves.
fn record(scenario: &Scenario, seed: u64, judgement: &Judgement) {
    let Some(path) = text("OUT") else { return };
    let line = json!({"scenario": scenario.name, "seed": seed, "judgement": judgement});
    let mut file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(path)
        .expect("the file of --out");
    writeln!(file, "{line}").expect("written");
}
