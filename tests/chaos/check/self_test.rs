//! The judge must be able to condemn: a sound life of a task, and each way to spoil it.

use std::collections::BTreeMap;

use serde_json::json;
use windrow_core::checkpoint::encode;
use windrow_core::ids::ItemIndex;

use super::judge;
use crate::evidence::{
    Bounds, Command, Delivery, Effect, Evidence, Fault, Harm, HookCall, Order, SECOND, ShardWrite, TaskWrite,
    Verdict,
};

const ITEMS: u64 = 200;
/// When it all began.
const BEGUN: i64 = 1_800_000_000 * SECOND;
/// At a hundred items per second.
const STEP: i64 = 10_000;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn delivery(index: u64, epoch: i64, node: &str, gate: i64) -> Delivery {
    Delivery {
        at: gate + 500,
        gate,
        node: node.to_owned(),
        task: 1,
        shard: 0,
        epoch,
        index,
        attempt: 1,
        key: format!("s-t1-{index}"),
        verdict: Verdict::Succeeded,
        answered: Some(gate + 1_000),
    }
}

/// Writes the rows of a shard one after the other.
struct Rows(Vec<ShardWrite>);

impl Rows {
    fn add(&mut self, at: i64, change: impl FnOnce(&mut ShardWrite)) {
        let mut row = self.0.last().cloned().unwrap_or_else(|| ShardWrite {
            task: 1,
            end: ITEMS.cast_signed(),
            blob: hex(&encode(ItemIndex(0), &[], &[])),
            ..ShardWrite::default()
        });
        row.id += 10;
        row.at = at;
        change(&mut row);
        self.0.push(row);
    }

    fn claim(&mut self, at: i64, epoch: i64, who: &str) {
        self.add(at, |row| {
            row.epoch = epoch;
            row.claim = Some(format!("claim {epoch}"));
            row.session = Some(format!("session of {who}"));
            row.seq = 0;
            row.state = "running".to_owned();
            row.who = who.to_owned();
        });
    }

    fn checkpoint(&mut self, at: i64, low: u64) {
        self.add(at, |row| {
            row.seq += 1;
            row.low = low.cast_signed();
            row.succeeded = row.low;
            row.blob = hex(&encode(ItemIndex(low), &[], &[]));
        });
    }

    fn release(&mut self, at: i64) {
        self.add(at, |row| row.session = None);
    }
}

/// n1 delivers 0 to 109 and dies with 100 saved; n2 goes on from 100, is told to stop at 150, and ends it.
fn sound() -> Evidence {
    let mut rows = Rows(Vec::new());
    let mut deliveries = Vec::new();
    rows.add(BEGUN, |row| row.state = "idle".to_owned());
    rows.claim(BEGUN, 100, "n1");
    let at = |index: u64| BEGUN + index.cast_signed() * STEP;
    deliveries.extend((0..110).map(|index| delivery(index, 100, "n1", at(index))));
    rows.checkpoint(at(105), 100);
    let taken = at(110) + 4 * SECOND;
    rows.claim(taken, 101, "n2");
    let later = |index: u64| taken + SECOND + (index - 100).cast_signed() * STEP;
    deliveries.extend((100..150).map(|index| delivery(index, 101, "n2", later(index))));
    let stop = later(150);
    rows.checkpoint(stop + STEP, 150);
    rows.release(stop + STEP);
    let started = stop + SECOND;
    rows.claim(started, 102, "n2");
    let last = |index: u64| started + (index - 149).cast_signed() * STEP;
    deliveries.extend((150..ITEMS).map(|index| delivery(index, 102, "n2", last(index))));
    let ended = last(ITEMS) + STEP;
    rows.checkpoint(ended, ITEMS);
    rows.release(ended);
    let command = |order, at| Command {
        sent: at - 5_000,
        acked: at,
        task: 1,
        node: "n3".to_owned(),
        order,
    };
    let task = |id, at, status: &str| TaskWrite {
        id,
        at,
        task: 1,
        status: status.to_owned(),
        desired: String::new(),
    };
    let hook = HookCall {
        at: ended + STEP,
        task: 1,
        kind: "task.finished".to_owned(),
        id: "h1".to_owned(),
    };
    Evidence {
        task: 1,
        bounds: Bounds {
            concurrency: 8,
            unsaved: 20,
            ttl: 3 * SECOND,
            burst: 3.0,
            rate: 100.0,
            items: ITEMS,
        },
        deliveries,
        hooks: vec![hook.clone(), hook],
        writes: rows.0,
        items: Vec::new(),
        tasks: vec![
            task(1, BEGUN, "running"),
            task(2, stop + STEP, "stopped"),
            task(3, started - STEP, "queued"),
            task(4, ended, "finished"),
        ],
        commands: vec![
            command(Order::Start, BEGUN),
            command(Order::Stop, stop),
            command(Order::Start, started - STEP),
        ],
        effects: vec![Effect {
            at: stop,
            what: "a command".to_owned(),
            wanted: "1".to_owned(),
            found: "1".to_owned(),
        }],
        faults: vec![Fault {
            name: "kill".to_owned(),
            harm: Harm::Node,
            from: at(110),
            until: taken,
        }],
        expected: BTreeMap::from([("succeeded".to_owned(), ITEMS), ("failed".to_owned(), 0)]),
        view: json!({"status": "finished", "counts": {"succeeded": ITEMS, "failed": 0}}),
        runs: vec![
            record(100, "n1", "lost"),
            record(101, "n2", "stopped"),
            record(102, "n2", "done"),
        ],
    }
}

fn record(epoch: i64, node: &str, end_reason: &str) -> serde_json::Value {
    let ended_at = "2026-11-20T17:02:11.000Z";
    json!({"shard": 0, "epoch": epoch, "node": node, "ended_at": ended_at, "end_reason": end_reason})
}

/// The rules that a spoilt life breaks.
fn broken(spoil: impl FnOnce(&mut Evidence)) -> Vec<String> {
    let mut evidence = sound();
    spoil(&mut evidence);
    let findings = judge(&evidence).findings;
    let mut rules: Vec<String> = findings
        .iter()
        .filter_map(|finding| finding.split_once(": "))
        .map(|(rule, _)| rule.to_owned())
        .collect();
    rules.dedup();
    rules
}

/// The place of the first row that fulfils this.
fn row(evidence: &Evidence, what: impl Fn(&ShardWrite) -> bool) -> usize {
    evidence.writes.iter().position(what).expect("such a row")
}

#[test]
fn a_sound_life_has_no_findings_and_its_numbers_are_right() {
    let judgement = judge(&sound());
    assert_eq!(judgement.findings, Vec::<String>::new());
    assert_eq!(
        (judgement.losses, judgement.handovers, judgement.repeats),
        (1, 1, 10)
    );
    assert_eq!((judgement.repeats_worst, judgement.repeats_allowed), (10, 28));
    assert_eq!(judgement.stop_lags, [0]);
    assert_eq!(judgement.gaps.len(), 1);
    assert!(judgement.pace_excess <= 1.5, "{}", judgement.pace_excess);
}

#[test]
fn a_lost_item_is_found() {
    assert_eq!(
        broken(|life| life.deliveries.retain(|delivery| delivery.index != 42)),
        ["nothing is lost"]
    );
    let unanswered = |life: &mut Evidence| life.deliveries[42].answered = None;
    assert_eq!(broken(unanswered), ["nothing is lost"]);
    let refused = |life: &mut Evidence| life.deliveries[42].verdict = Verdict::Retry;
    assert_eq!(broken(refused), ["nothing is lost"]);
    // Answered, but after the checkpoint that calls it settled.
    let late = |life: &mut Evidence| life.deliveries[42].answered = Some(BEGUN + 150 * STEP);
    assert_eq!(broken(late), ["nothing is lost"]);
    // Item 105 was answered in n1's run, which was lost; n2 may not call it settled without having sent it.
    let elsewhere = |life: &mut Evidence| {
        life.deliveries
            .retain(|delivery| delivery.index != 105 || delivery.epoch == 100);
    };
    assert_eq!(broken(elsewhere), ["nothing is lost"]);
}

#[test]
fn an_item_that_was_called_and_is_excluded_is_found() {
    let rule = "what was called is not excluded".to_owned();
    let cut = |life: &mut Evidence| life.writes.last_mut().expect("rows").end = 190;
    assert!(broken(cut).contains(&rule), "{:?}", broken(cut));
    let shown = |life: &mut Evidence| life.view["counts"]["excluded"] = 1.into();
    assert!(broken(shown).contains(&rule), "{:?}", broken(shown));
}

#[test]
fn an_acknowledged_command_without_its_effect_is_found() {
    let lost = |life: &mut Evidence| life.effects[0].found = "0".to_owned();
    assert_eq!(broken(lost), ["what is acknowledged is kept"]);
}

#[test]
fn a_run_without_a_record_or_without_its_end_is_found() {
    assert_eq!(broken(|life| drop(life.runs.remove(0))), ["runs are recorded"]);
    for member in ["node", "ended_at", "end_reason"] {
        let open = |life: &mut Evidence| life.runs[0][member] = serde_json::Value::Null;
        assert_eq!(broken(open), ["runs are recorded"], "{member}");
    }
}

#[test]
fn a_second_writer_is_found() {
    // A checkpoint of the first run after the second claim.
    let zombie = |life: &mut Evidence| {
        let at = row(life, |row| row.epoch == 101 && row.seq == 1);
        life.writes[at].who = "n1".to_owned();
    };
    assert_eq!(broken(zombie), ["one writer"]);
    let twice = |life: &mut Evidence| {
        let at = row(life, |row| row.epoch == 100 && row.seq == 1);
        let mut again = life.writes[at].clone();
        again.id += 1;
        again.low = 90;
        again.succeeded = 90;
        again.blob = hex(&encode(ItemIndex(90), &[], &[]));
        life.writes.insert(at + 1, again);
    };
    assert_eq!(broken(twice), ["one writer"]);
    let fallen = |life: &mut Evidence| {
        let at = row(life, |row| row.epoch == 101);
        life.writes[at].epoch = 99;
    };
    assert!(broken(fallen).contains(&"one writer".to_owned()));
    let same_claim = |life: &mut Evidence| {
        for write in life.writes.iter_mut().filter(|row| row.epoch == 101) {
            write.claim = Some("claim 100".to_owned());
        }
    };
    assert_eq!(broken(same_claim), ["one writer"]);
    let after_release = |life: &mut Evidence| {
        let at = row(life, |row| row.epoch == 102 && row.seq == 1);
        life.writes[at - 1].session = None;
    };
    assert_eq!(broken(after_release), ["one writer"]);
    let miscounted = |life: &mut Evidence| {
        let at = row(life, |row| row.epoch == 101 && row.seq == 1);
        life.writes[at].parked = 1;
    };
    assert!(broken(miscounted).contains(&"one writer".to_owned()));
}

#[test]
fn two_owners_at_once_are_found_and_the_foreseen_double_fault_is_told_apart() {
    let zombie = |life: &mut Evidence| {
        let claimed = life.writes[row(life, |row| row.epoch == 101)].at;
        life.deliveries.push(delivery(120, 100, "n1", claimed + 200_000));
    };
    assert_eq!(broken(zombie), ["one owner"]);
    let mut foreseen = sound();
    zombie(&mut foreseen);
    let (from, until) = (BEGUN, BEGUN + 100 * SECOND);
    for harm in [Harm::RedisLoss, Harm::Database] {
        foreseen.faults.push(Fault {
            name: String::new(),
            harm,
            from,
            until,
        });
    }
    let judgement = judge(&foreseen);
    assert_eq!((judgement.findings, judgement.excused.len()), (Vec::new(), 1));
    let stranger = |life: &mut Evidence| life.deliveries[5].node = "n3".to_owned();
    assert_eq!(broken(stranger), ["one owner"]);
    let invented = |life: &mut Evidence| life.deliveries[5].epoch = 77;
    assert!(broken(invented).contains(&"one owner".to_owned()));
}

#[test]
fn repeats_beyond_the_bound_are_found_and_so_is_any_after_a_hand_over() {
    let many = |life: &mut Evidence| {
        life.bounds.unsaved = 1;
    };
    assert_eq!(broken(many), ["bounded repeats"]);
    let after_release = |life: &mut Evidence| {
        let began = life.writes[row(life, |row| row.epoch == 102)].at;
        life.deliveries.push(delivery(149, 102, "n2", began + STEP / 2));
    };
    assert_eq!(broken(after_release), ["bounded repeats"]);
    let after_its_next_life_gave_it_up = |life: &mut Evidence| {
        after_release(life);
        let release = life.writes[row(life, |row| row.epoch == 101 && row.session.is_none())].at;
        let name = "kill -9 n2".to_owned();
        life.faults.push(Fault {
            name,
            harm: Harm::Node,
            from: release - 1,
            until: release,
        });
    };
    assert_eq!(broken(after_its_next_life_gave_it_up), [""; 0]);
    let twice = |life: &mut Evidence| {
        life.faults.clear();
        let again = delivery(3, 100, "n1", BEGUN + 50 * STEP + 5_000);
        life.deliveries.push(again);
    };
    assert_eq!(broken(twice), ["bounded repeats"]);
}

#[test]
fn a_stop_that_is_not_obeyed_is_found() {
    let late = |life: &mut Evidence| {
        let stopped = life.tasks[1].at;
        life.deliveries.push(delivery(149, 101, "n2", stopped + 20_000));
    };
    assert!(broken(late).contains(&"stopped is stopped".to_owned()));
    // Never recorded as stopped, and going on for seconds.
    let ignored = |life: &mut Evidence| {
        life.tasks.remove(1);
        life.commands.truncate(2);
        life.faults.clear();
        life.commands[1].acked -= 3 * SECOND;
        life.commands[1].sent -= 3 * SECOND;
    };
    assert_eq!(broken(ignored), ["stops are obeyed"]);
}

#[test]
fn too_many_in_an_interval_are_found_also_across_runs_and_changes() {
    let crowd = |life: &mut Evidence| {
        for delivery in life
            .deliveries
            .iter_mut()
            .filter(|delivery| (50..56).contains(&delivery.index))
        {
            delivery.gate = BEGUN + 53 * STEP;
            delivery.answered = Some(delivery.gate + 1_000);
        }
    };
    assert_eq!(broken(crowd), ["the pace holds"]);
    let slower = |life: &mut Evidence| {
        let command = Command {
            sent: BEGUN - 9 * SECOND,
            acked: BEGUN - 9 * SECOND,
            task: 1,
            node: String::new(),
            order: Order::Rate(50.0),
        };
        life.commands.insert(0, command);
    };
    assert_eq!(broken(slower), ["the pace holds"]);
    // Lowered, and raised again before the lower one had to be known everywhere.
    let restored = |life: &mut Evidence| {
        for (at, rate) in [(BEGUN - 2 * SECOND, 50.0), (BEGUN - SECOND, 100.0)] {
            life.commands.insert(
                0,
                Command {
                    sent: at,
                    acked: at,
                    task: 1,
                    node: String::new(),
                    order: Order::Rate(rate),
                },
            );
        }
        life.commands.sort_by_key(|command| command.sent);
    };
    assert_eq!(broken(restored), Vec::<String>::new());
}

#[test]
fn an_end_that_does_not_come_is_told_twice_or_does_not_add_up_is_found() {
    assert_eq!(
        broken(|life| life.view["status"] = "running".into()),
        ["tasks finish"]
    );
    assert_eq!(
        broken(|life| life.view["counts"]["succeeded"] = 199.into()),
        ["numbers add up"]
    );
    assert_eq!(broken(|life| life.hooks[1].id = "h2".to_owned()), ["told once"]);
    assert_eq!(broken(|life| life.hooks.clear()), ["told once"]);
    assert_eq!(
        broken(|life| life.deliveries[7].key = "s-t1-8".to_owned()),
        ["stable keys"]
    );
}
