//! Each rule is needed: left out or bent, some property fails, and the search shows how. Where it isn't needed for
//! safety, the test says so and why: no counter-example exists within the bounds.

use protocol_model::{Bend, Bounds, Setup, Sight, Start, Times, search};

use crate::{DATABASE, OPTIONAL, REDIS, with};

const ONE: &str = "one node in a shard's gate";
const SHUT: &str = "no open gate after stopped";
const EPOCH: &str = "one claim per epoch";
const OLDER: &str = "no write of an older claim after a newer one";
const CARRIED: &str = "a lease alone carries a run for a while";
const FELL: &str = "progress never falls";
const ANSWERED: &str = "nothing counts as done that was not answered";

/// A lease that outlasts the heartbeat.
const LONG_LEASE: Times = Times {
    lease_duration: [2, 2, 2],
    ttl: 4,
    margin: 1,
};

/// The bent rule lets this property fail.
fn is_caught(bend: Bend, setup: Setup, property: &str) {
    let outcome = search(setup.bent(bend), 1);
    println!("{bend:?}: {outcome}");
    let fault = outcome
        .faults
        .first()
        .unwrap_or_else(|| panic!("{bend:?} is not caught: {outcome}"));
    assert_eq!(fault.property, property, "{bend:?}");
}

/// The bent rule is not needed for safety within these bounds.
fn is_equivalent(bend: Bend, setup: Setup) {
    let outcome = search(setup.bent(bend), 1);
    println!("{bend:?} is equivalent: {outcome}");
    assert!(outcome.faults.is_empty(), "{bend:?}: {outcome}");
}

#[test]
fn a_candidate_waits_for_the_owners_promise_not_for_its_own() {
    let times = Times {
        lease_duration: [4, 2, 2],
        ttl: 2,
        margin: 1,
    };
    is_caught(Bend::OwnLeaseDuration, Setup { times, ..DATABASE }, ONE);
}

#[test]
fn a_heartbeat_never_returns_to_a_value_of_before_a_failover() {
    let setup = with!(DATABASE; failovers: 1);
    is_caught(
        Bend::HeartbeatPlusOne,
        Setup {
            times: Times {
                lease_duration: [3, 3, 3],
                ..DATABASE.times
            },
            ..setup
        },
        ONE,
    );
}

#[test]
fn a_heartbeat_tells_a_fenced_session_so() {
    is_caught(Bend::HeartbeatOfFenced, DATABASE, ONE);
}

#[test]
fn a_fenced_session_carries_nothing_into_the_next() {
    is_caught(Bend::FencedCarriesOn, with!(DATABASE; sessions: 3), ONE);
}

#[test]
fn a_run_whose_row_names_another_claim_is_dropped() {
    is_caught(
        Bend::ForeignRowIgnored,
        with!(DATABASE; failovers: 1, sessions: 3),
        ONE,
    );
}

#[test]
fn the_row_of_a_silent_session_that_shards_refer_to_stays() {
    is_caught(Bend::SilentSessionDeleted, with!(DATABASE; deletions: 1), ONE);
}

/// A missing row counts as fenced, and a fenced session never lives again, so nothing changes for anybody.
#[test]
fn the_row_of_a_fenced_session_could_be_deleted_early() {
    is_equivalent(Bend::FencedSessionDeleted, with!(REDIS; deletions: 1, claims: 3));
}

#[test]
fn a_heartbeats_trust_counts_from_its_sending() {
    is_caught(Bend::HeartbeatFromReply, with!(DATABASE; late: 1), ONE);
}

#[test]
fn a_leases_trust_counts_from_its_sending() {
    is_caught(
        Bend::LeaseFromReply,
        Setup {
            times: LONG_LEASE,
            ..with!(REDIS; late: 1)
        },
        ONE,
    );
}

#[test]
fn a_lease_does_not_revive_trust_that_has_ended() {
    let setup = Setup {
        lease_lives: 2,
        ..with!(REDIS; late: 1)
    };
    is_caught(Bend::LeaseRevives, setup, ONE);
}

#[test]
fn a_lease_that_revives_trust_opens_the_gate_of_a_stopped_shard() {
    let setup = Setup {
        times: LONG_LEASE,
        ..with!(REDIS; late: 1, stops: 1)
    };
    is_caught(Bend::LeaseRevives, setup, SHUT);
}

#[test]
fn the_margin_covers_the_error_of_clocks() {
    is_caught(Bend::NoMargin, with!(DATABASE; skews: 1), ONE);
}

#[test]
fn renewing_extends_only_the_own_lease() {
    is_caught(
        Bend::RenewalTakesAnyLease,
        Setup {
            times: LONG_LEASE,
            ..with!(REDIS; late: 1, claims: 3, handovers: 1)
        },
        ONE,
    );
}

/// With a quarantine, and since a lease doesn't revive trust: whoever sets it again has trust that never ended.
#[test]
fn an_absent_lease_could_be_set_again_without_a_fresh_heartbeat() {
    is_equivalent(Bend::SetAgainAlways, with!(REDIS; wipes: 1, late: 1));
}

#[test]
fn a_token_of_someone_else_ends_the_run() {
    is_equivalent(
        Bend::ForeignTokenIgnored,
        with!(REDIS; claims: 3, handovers: 1, stops: 1),
    );
}

#[test]
fn a_lease_alone_carries_its_run_for_a_while_only() {
    is_caught(Bend::LeaseCarriesAlone, REDIS, CARRIED);
}

/// Not a matter of safety: without it nobody else gets the shard for as long as its owner can't save.
#[test]
fn a_run_that_may_do_nothing_gives_its_lease_back() {
    is_equivalent(Bend::LeaseKeptShut, REDIS);
    assert!(search(REDIS, 1).has_seen(Sight::LeaseLetGo));
    assert!(!search(REDIS.bent(Bend::LeaseKeptShut), 1).has_seen(Sight::LeaseLetGo));
}

#[test]
fn a_lease_is_not_given_back_while_the_gate_is_open() {
    is_caught(Bend::LeaseReturnedOpen, REDIS, ONE);
}

/// A heartbeat opens the gate again, and what the lease once gave would outlast it.
#[test]
fn a_lease_that_was_given_back_is_forgotten() {
    let times = Times { ttl: 5, ..LONG_LEASE };
    is_caught(Bend::LeaseRemembered, Setup { times, ..REDIS }, ONE);
}

/// The giving back is long under way, a heartbeat revives the run, which takes the lease again, and only then it goes.
#[test]
fn a_lease_that_was_given_back_is_taken_again_under_another_token() {
    is_caught(Bend::TokenKept, with!(REDIS; late: 1), ONE);
}

#[test]
fn silence_counts_from_the_reply() {
    is_caught(Bend::SilenceFromSend, with!(DATABASE; late: 1), ONE);
}

#[test]
fn a_session_that_was_never_seen_is_not_silent() {
    is_caught(Bend::SilenceFromNothing, DATABASE, ONE);
}

#[test]
fn the_lease_is_held_not_looked_at() {
    is_caught(
        Bend::LeaseLookedAt,
        Setup {
            times: LONG_LEASE,
            ..with!(REDIS; sessions: 3, claims: 3)
        },
        ONE,
    );
}

#[test]
fn a_fenced_sessions_other_shard_needs_its_lease_too() {
    is_caught(Bend::NoLeaseForFenced, with!(REDIS; shards: 2, claims: 4), ONE);
}

#[test]
fn a_lease_that_is_taken_after_the_claim_was_sent_does_not_carry_the_run() {
    let setup = Setup {
        start: Start::Released,
        ..with!(REDIS; late: 1)
    };
    is_caught(Bend::LeaseAfterClaim, setup, ONE);
}

/// Since a lease doesn't revive trust: the owner had none when the lease was taken, and can't get any by it. That a second
/// candidate has come between shows in the epoch.
#[test]
fn fence_and_claim_could_be_sent_after_the_leases_trust() {
    is_equivalent(Bend::LeaseNotTrusted, with!(REDIS; late: 1));
}

#[test]
fn the_fence_asks_for_the_silent_heartbeat() {
    is_caught(Bend::FenceOfAnyHeartbeat, DATABASE, ONE);
}

#[test]
fn the_fence_asks_for_no_newer_heartbeat_than_the_silent_one() {
    is_caught(Bend::FenceOfNewestHeartbeat, DATABASE, ONE);
}

#[test]
fn nobody_claims_before_the_fence() {
    is_caught(Bend::ClaimBeforeFence, DATABASE, ONE);
}

/// Hygiene: a session that is fenced has no fresh heartbeat, so its gate is shut and its row is free to be claimed.
#[test]
fn a_claim_by_a_fenced_session_would_do_no_harm() {
    is_equivalent(Bend::ClaimOfFenced, with!(REDIS; late: 1, claims: 3));
}

#[test]
fn a_claim_asks_for_the_epoch_that_was_seen() {
    is_equivalent(
        Bend::ClaimOfAnyEpoch,
        with!(DATABASE; late: 1, claims: 3, handovers: 1),
    );
}

#[test]
fn epochs_come_from_the_database() {
    is_caught(Bend::EpochFromLeases, with!(REDIS; wipes: 1), EPOCH);
}

#[test]
fn the_checkpoint_is_read_in_the_claim() {
    is_caught(
        Bend::ReadBeforeClaim,
        with!(DATABASE; works: true, handovers: 1),
        FELL,
    );
}

#[test]
fn writes_are_fenced() {
    is_caught(Bend::UnfencedWrites, with!(DATABASE; works: true), OLDER);
}

#[test]
fn the_claim_id_tells_two_claims_of_one_epoch_apart() {
    is_caught(
        Bend::EpochOnly,
        with!(DATABASE; works: true, failovers: 1, claims: 3, late: 1),
        OLDER,
    );
}

#[test]
fn writes_are_numbered() {
    is_caught(
        Bend::NoSequence,
        with!(DATABASE; works: true, items: 2, late: 1),
        FELL,
    );
}

#[test]
fn a_gate_never_opens_again_after_a_release_was_sent() {
    is_caught(Bend::GateOpensAgain, with!(DATABASE; late: 1, handovers: 1), ONE);
}

#[test]
fn a_gate_is_closed_before_the_release_is_sent() {
    is_caught(
        Bend::GateClosedByReply,
        with!(DATABASE; late: 1, handovers: 1),
        ONE,
    );
}

/// The gate is closed before either, so nobody works; the order only spares candidates a wait after a crash between.
#[test]
fn the_lease_could_be_given_back_before_the_row() {
    is_equivalent(Bend::LeaseReturnedFirst, with!(REDIS; handovers: 1, claims: 3));
}

#[test]
fn only_a_run_or_a_claimant_clears_a_session() {
    is_caught(Bend::SecondWriter, with!(DATABASE; stops: 1), SHUT);
}

#[test]
fn a_stop_is_not_complete_because_the_session_is_fenced() {
    is_caught(
        Bend::StopOfFenced,
        with!(REDIS; shards: 2, claims: 3, stops: 1),
        SHUT,
    );
}

#[test]
fn an_item_is_done_when_it_was_answered() {
    is_caught(Bend::DoneAtDeparture, with!(DATABASE; works: true), ANSWERED);
}

#[test]
fn after_data_loss_no_lease_is_given_for_one_ttl() {
    is_caught(Bend::NoQuarantine, with!(REDIS; wipes: 1), ONE);
}

/// Every statement names what it has seen (heartbeat, epoch, claim, number), so that one which arrives after the failover
/// does nothing that isn't excused there already. Rule 20b assumes the cut all the same.
#[test]
fn a_failover_need_not_cut_the_statements_under_way() {
    is_equivalent(
        Bend::FailoverReplays,
        with!(DATABASE; failovers: 1, late: 1, claims: 3),
    );
}

/// Exception (a) as it was written: the heartbeat was fresh at the loss, ends, and a lease of before the loss goes on.
#[test]
fn a_heartbeat_that_was_fresh_at_the_loss_does_not_make_up_for_it() {
    let setup = Setup {
        quarantine: false,
        times: LONG_LEASE,
        ..with!(REDIS; wipes: 1)
    };
    is_caught(Bend::LossNarrow, setup, ONE);
}

/// Exception (b) as it was written: the lease was live at the failover and ends, the trust of a heartbeat that was lost
/// goes on.
#[test]
fn a_lease_that_was_live_at_the_failover_does_not_make_up_for_a_lost_heartbeat() {
    let times = Times {
        lease_duration: [3, 3, 3],
        ttl: 2,
        margin: 1,
    };
    is_caught(
        Bend::ExceptionAtLoss,
        Setup {
            times,
            ..with!(REDIS; failovers: 1)
        },
        ONE,
    );
}

/// Exception (b) as it was written: the older owner lives again with the row that lost its mark, and the newer one's
/// lease doesn't stop it.
#[test]
fn a_live_lease_does_not_make_up_for_a_lost_claim() {
    is_caught(Bend::ExceptionNarrow, with!(REDIS; failovers: 1), ONE);
}

#[test]
fn without_leases_a_lease_must_not_carry_for_ever() {
    is_caught(Bend::LeaseCarriesAlone, OPTIONAL, ONE);
}

#[test]
fn without_leases_a_fenced_session_must_be_silent_for_both_witnesses() {
    is_caught(
        Bend::NoSilenceForFenced,
        with!(OPTIONAL; shards: 2, claims: 4),
        ONE,
    );
}

/// Not a matter of safety: without it the shard stays with a session that lives and doesn't run it.
#[test]
fn a_shard_that_nobody_runs_is_released_by_its_session() {
    let setup = with!(DATABASE; late: 1);
    assert!(search(setup, 1).has_seen(Sight::OrphanReleased));
    assert!(!search(setup.bent(Bend::OrphanKept), 1).has_seen(Sight::OrphanReleased));
}
