use super::*;
use crate::limit::units::call::{Departing, Estimates, Taken};
use crate::meter::class::End;

/// Time at which paces have all of their credit.
const NOW: Now = Now {
    moment: Moment(60_000_000_000),
    wall: WallMs(0),
};

fn charges(metering: &str) -> Charges {
    let metering = serde_json::from_str(metering).expect("a metering");
    Charges::new(&metering, &Restored::default(), Now::default())
}

/// Sends a call with the estimates, as soon as a checkpoint allows it, and ends it as a success with the actuals.
fn succeed(charges: &mut Charges, raw: Usage, actuals: Usage) {
    let sent = |charges: &mut Charges| {
        charges.draft(1, false);
        charges.on_stored(1);
        let (departure, charge) = charges.depart(raw.clone(), 1, NOW);
        (departure == Departure::Go).then_some(charge)
    };
    let charge = sent(charges).or_else(|| sent(charges)).expect("it fits");
    charges.end(&charge, End::Succeeded, &actuals, true, NOW.moment);
}

#[test]
fn a_price_counts_units_that_no_limit_names() {
    let mut charges = charges(r#"{"limits":["5 eur"],"price":["eur = 0.5*{tokens} + 0.25*{calls}"]}"#);
    let units = |charges: &Charges| -> Vec<String> {
        let meters = charges.picture().into_iter();
        meters
            .map(|meter| format!("{} {}", meter.actual, meter.unit))
            .collect()
    };
    let tokens = Some(Amount::units(4));
    succeed(&mut charges, vec![None; 3], vec![None, tokens, None]);
    assert_eq!(units(&charges), ["1 calls", "4 tokens", "2.25 eur"]);
    assert_eq!(charges.unknown(), None);
}

#[test]
fn a_price_of_what_no_answer_says_stops_the_run() {
    let mut charges = charges(r#"{"limits":["5 eur"],"price":["eur = 0.5*{tokens}"]}"#);
    for _ in 0..8 {
        assert_eq!(charges.unknown(), None);
        succeed(&mut charges, vec![None; 2], vec![None; 2]);
    }
    assert_eq!(charges.unknown().map(Unit::as_str), Some("tokens"));
}

#[test]
fn a_unit_with_only_an_estimate_needs_no_answer() {
    let mut charges = charges(r#"{"limits":["900k tokens/s"],"cost":["tokens = 2"]}"#);
    for _ in 0..20 {
        succeed(&mut charges, vec![Some(Amount::units(2))], Usage::new());
    }
    assert_eq!(charges.unknown(), None);
    charges.out = 4;
    assert!(charges.leave(NOW).calls > 0, "more than four calls may be out");
    assert_eq!(charges.picture()[0].unsure, Amount::units(40));
}

#[test]
fn a_price_of_unsure_use_is_unsure_too() {
    let mut charges = charges(r#"{"limits":["5 eur"],"cost":["tokens = 4"],"price":["eur = 0.5*{tokens}"]}"#);
    let sent = (1..3).find_map(|no| {
        charges.draft(no, false);
        charges.on_stored(no);
        let (departure, charge) = charges.depart(vec![Some(Amount::units(4)), None], 1, NOW);
        (departure == Departure::Go).then_some(charge)
    });
    let charge = sent.expect("it fits");
    charges.end(&charge, End::TimedOut, &Usage::new(), true, NOW.moment);
    let eur = charges.picture().pop().expect("a price");
    assert_eq!((eur.actual, eur.unsure), (Amount::ZERO, Amount::units(2)));
}

#[test]
fn in_a_restored_database_nothing_is_left_of_totals_and_of_the_present_period() {
    let metering: Metering =
        serde_json::from_str(r#"{"limits":["5 eur","100/day"],"cost":["eur = 1"]}"#).expect("a metering");
    let restored = Restored {
        is_use_unknown: true,
        ..Restored::default()
    };
    let mut charges = Charges::new(&metering, &restored, NOW);
    charges.draft(1, false);
    charges.on_stored(1);
    let usage = || vec![None, Some(Amount::ONE)];
    assert_eq!(charges.depart(usage(), 1, NOW).0, Departure::Back);
    assert_eq!(charges.used_up().map(Limit::to_string).as_deref(), Some("5 eur"));
    let unsure = charges.picture().into_iter().map(|meter| meter.unsure);
    assert_eq!(unsure.collect::<Vec<_>>(), [Amount::ZERO, Amount::units(5)]);
    let day = charges.picture()[0].allowance.clone().expect("an allowance");
    assert_eq!(day.used, day.amount);
}

#[test]
fn one_dear_answer_fails_no_other_item() {
    let dear = Amount::units(900);
    for limit in ["5 eur", "5 eur/day", "5 eur/min", "5 eur at once"] {
        let depart = |own: Option<Amount>| {
            let mut charges = charges(&format!(r#"{{"limits":["{limit}"]}}"#));
            charges.meters[0].learn(own.map(|_| Amount::ONE), dear);
            let mut last = Departure::Back;
            for no in 1..4 {
                charges.draft(no, false);
                charges.on_stored(no);
                last = charges.depart(vec![own], 1, NOW).0;
                if last == Departure::Go {
                    break;
                }
            }
            last
        };
        assert_eq!(depart(None), Departure::Go, "{limit}");
        assert_eq!(depart(Some(Amount::ONE)), Departure::Go, "{limit}");
        let own = Departure::TooLarge(limit.to_owned());
        assert_eq!(depart(Some(Amount::units(6))), own, "its own estimate says so");
    }
}

/// Named limit that takes one unit of each call.
struct TakesOne;

impl Purse for TakesOne {
    fn take(&mut self, _: usize, call: Departing<'_>) -> Taken {
        assert_eq!(call.own, [Amount::units(2)], "without what others cost");
        call.total.fill(Amount::ONE);
        Taken::Yes(false)
    }

    fn give(&mut self, _: usize, _: Estimates<'_>) {}
}

#[test]
fn a_named_limit_judges_by_the_call_itself_and_hears_what_it_took() {
    let metering = r#"{"limits":["5 eur"],"cost":["eur = 2"]}"#;
    let metering: Metering = serde_json::from_str(metering).expect("a metering");
    let mut charges = Charges::new(&Metering::default(), &Restored::default(), NOW);
    charges.share(&[metering]);
    charges.meters[0].learn(Some(Amount::ONE), Amount::units(900));
    let (departure, mut charge) = charges.depart(vec![Some(Amount::units(2))], 1, NOW);
    assert_eq!(departure, Departure::Go);
    assert_eq!(charges.take_shared(&mut charge, &mut TakesOne), Departure::Go);
    charges.end(&charge, End::TimedOut, &Usage::new(), true, NOW.moment);
    assert_eq!(charges.shared_ends[0].total, [Amount::ONE]);
}
