//! Settings of a shard: the one place where a share is applied to its task's settings.

use std::num::NonZeroU32;

use windrow_words::execution as say;

use crate::pace::{burst_items, burst_items_min};
use crate::settings::check::TuningFault;
use crate::settings::{Auto, Burst, ErrorBudget};
use crate::shards::{SHARDS_AUTO_MAX, Sharding, Share};
use crate::task::{Canary, Tuning};

/// Returns the settings of a run with this share of its task. Rates, burst and concurrency are shared; everything
/// else applies to each shard. Whatever the shares are, rates and bursts never add up to more than the task's, and a
/// burst given as a span is never too short for a batch to be sent.
pub fn part_of(tuning: &Tuning, share: Share) -> Tuning {
    if share.is_all() {
        return tuning.clone();
    }
    let in_flight = |number: NonZeroU32| {
        let part = u32::try_from(share.of(u64::from(number.get()))).unwrap_or(u32::MAX);
        NonZeroU32::new(part.max(tuning.batch.get())).unwrap_or(NonZeroU32::MIN)
    };
    let budget = tuning.error_budget;
    Tuning {
        rate: share.of_limit(tuning.rate),
        burst: burst(tuning, share),
        concurrency: match tuning.concurrency {
            Auto::Auto => Auto::Auto,
            Auto::Fixed(number) => Auto::Fixed(in_flight(number)),
        },
        max_concurrency: in_flight(tuning.max_concurrency),
        error_budget: ErrorBudget {
            failed_attempts: budget
                .failed_attempts
                .map(|attempts| attempts.with_rate(share.of_rate(attempts.rate()))),
            ..budget
        },
        ..tuning.clone()
    }
}

fn burst(tuning: &Tuning, share: Share) -> Burst {
    let batch = tuning.batch.get();
    let items = match (tuning.burst, tuning.rate.most()) {
        (Burst::Span(_), None) => return tuning.burst,
        (Burst::Items(items), _) => share.of(u64::from(items.get())),
        (Burst::Span(_), Some(rate)) => {
            let least = burst_items_min(share.of_rate(rate), batch);
            share.of(burst_items(tuning.burst, rate, batch)).max(least)
        }
    };
    let items = u32::try_from(items).unwrap_or(u32::MAX);
    NonZeroU32::new(items).map_or(Burst::Items(NonZeroU32::MIN), Burst::Items)
}

/// Returns the faults of settings that this many shards would share.
pub fn shared_faults(tuning: &Tuning, shards: u32) -> Vec<TuningFault> {
    let share = Share::one_of(shards);
    let batch = tuning.batch.get();
    let mut faults = Vec::new();
    if share.is_all() {
        return faults;
    }
    if tuning.ordered {
        let what = say::one_shard(shards).to_string();
        faults.push(TuningFault {
            key: "shards",
            what,
            advice: "1".to_owned(),
        });
        return faults;
    }
    if let (Burst::Items(items), Some(rate)) = (tuning.burst, tuning.rate.most()) {
        let least = burst_items_min(share.of_rate(rate), batch);
        let part = share.of(u64::from(items.get()));
        if part < least {
            let what = say::small_burst(items.get(), shards, part, least).to_string();
            let advice = say::burst_advice((least * u64::from(shards)).to_string()).to_string();
            faults.push(TuningFault {
                key: "burst",
                what,
                advice,
            });
        }
    }
    if let Auto::Fixed(number) = tuning.concurrency
        && share.of(u64::from(number.get())) < u64::from(batch)
    {
        let what = say::few_slots(number.get(), shards, batch).to_string();
        let least = u64::from(batch) * u64::from(shards);
        let advice = say::slots_advice(least.to_string()).to_string();
        faults.push(TuningFault {
            key: "concurrency",
            what,
            advice,
        });
    }
    faults
}

/// Returns the settings of a task that determine the number of its shards.
pub fn sharding(shards: Auto<NonZeroU32>, tuning: &Tuning, canary: Option<Canary>) -> Sharding {
    let fits = |parts: &u32| shared_faults(tuning, *parts).is_empty();
    Sharding {
        shards,
        rate: tuning.rate,
        concurrency: tuning.concurrency,
        max_concurrency: tuning.max_concurrency,
        ordered: tuning.ordered,
        parts_max: (1..=SHARDS_AUTO_MAX).rev().find(fits),
        canary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Rate, RateLimit};

    fn tuning(rate: &str, burst: Burst, batch: u32) -> Tuning {
        let rate: Rate = rate.parse().expect("a rate");
        let batch = NonZeroU32::new(batch).expect("not zero");
        let tuning: Tuning = serde_json::from_str(
            r#"{"rate":"500/s","burst":"100ms","concurrency":"auto","max_concurrency":1024,"window":4096,
"batch":1,"batch_linger":"5ms","timeout":"10s","max_attempts":5,"backoff":"1s..60s x2 jitter 20%",
"on_exhausted":"fail","error_budget":"10/s 1%","error_window":"30s","checkpoint_interval":"1s",
"unsaved_max":"auto","straggler_after":"1s","park_after":"2s","parked_max":10000,"ordered":false}"#,
        )
        .expect("the text is sound");
        Tuning {
            rate: RateLimit::Limited(rate),
            burst,
            batch,
            ..tuning
        }
    }

    fn items(number: u32) -> Burst {
        Burst::Items(NonZeroU32::new(number).expect("not zero"))
    }

    #[test]
    fn the_bursts_of_all_parts_make_no_more_than_the_tasks_and_each_lets_a_batch_leave() {
        for (rate, batch) in [("1/h", 1), ("10/s", 1), ("1000/s", 7), ("200k/s", 1)] {
            for parts in 1..=64 {
                for burst in [
                    Burst::Span(std::time::Duration::from_millis(100)),
                    items(100),
                    items(640),
                ] {
                    let whole = tuning(rate, burst, batch);
                    let (RateLimit::Limited(rate), faults) = (whole.rate, shared_faults(&whole, parts))
                    else {
                        continue;
                    };
                    let share = Share::one_of(parts);
                    let part = part_of(&whole, share);
                    let of_part = burst_items(part.burst, share.of_rate(rate), batch);
                    let of_task = burst_items(burst, rate, batch);
                    let least = burst_items_min(share.of_rate(rate), batch);
                    if let (Burst::Items(_), true) = (burst, faults.is_empty()) {
                        assert!(
                            of_part * u64::from(parts) <= of_task,
                            "{of_part} × {parts} of {of_task}"
                        );
                    }
                    if parts > 1 && faults.is_empty() {
                        assert!(of_part >= least, "{of_part} of {least}");
                        let floor = of_task.max(least * u64::from(parts));
                        assert!(
                            of_part * u64::from(parts) <= floor,
                            "{of_part} × {parts}, {floor}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_burst_or_a_concurrency_too_small_for_all_is_refused_with_what_would_do() {
        let narrow = Tuning {
            concurrency: Auto::Fixed(NonZeroU32::MIN),
            ..tuning("100/s", items(5), 1)
        };
        let keys: Vec<&str> = shared_faults(&narrow, 4).iter().map(|fault| fault.key).collect();
        assert_eq!(keys, ["burst", "concurrency"]);
        assert!(shared_faults(&narrow, 1).is_empty());
        let text = shared_faults(&narrow, 4)[0].to_string();
        assert_eq!(
            text,
            "burst: 5 items shared by 4 shards are 1 for each, which needs 2; try \"8 items\", a span such as \
\"100ms\", or fewer shards"
        );
        assert_eq!(
            sharding(Auto::Auto, &tuning("100/s", items(5), 1), None).parts_max,
            Some(2)
        );
    }

    #[test]
    fn an_only_shard_has_the_settings_as_they_are() {
        let whole = tuning("100/s", items(5), 1);
        assert_eq!(part_of(&whole, Share::ALL), whole);
    }
}
