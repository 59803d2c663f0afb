//! One suite of facts about the store ports, run over every adapter: in memory, over SQLite, and over real PostgreSQL and
//! MariaDB servers of its own (`engines`).
//!
//! `tasks`, `life`, `claims`, `checkpoints`, `sessions`, `records`, `history`, `statistics`: facts; `twins`: random sequences of calls, to which all
//! adapters must give the same answers; `crossing`: many writers at once; `cut`: connections and servers that end; `given_up`:
//! statements that nobody waits for any more; `sign_ins`: sessions of browsers;
//! `lists`, `inspected`, `alerts`, `administration`: what all databases keep and memory doesn't; `sqlite`: what holds for files only; `faults`: the hooks of the memory adapter.

#![allow(
    clippy::disallowed_methods,
    reason = "a failing seed is given by the environment"
)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by panicking")]
#![allow(unreachable_pub, reason = "facts are public to the list of facts below")]

mod administration;
mod alerts;
mod archive;
mod checkpoints;
mod claims;
mod crossing;
mod cut;
mod datasets;
mod engines;
mod failures;
mod far;
mod faults;
mod fixture;
mod found;
mod given_up;
mod history;
mod inspected;
mod life;
mod limits;
mod lists;
mod logs;
mod open;
mod records;
mod restored;
mod result_place;
mod results;
mod schedules;
mod sessions;
mod shards;
mod sign_ins;
mod sqlite;
mod statistics;
mod strand;
mod tasks;
mod twins;
mod upkeep;

#[path = "../servers/proxy.rs"]
mod proxy;
#[path = "../servers/mod.rs"]
mod servers;

/// Makes a test of each fact for SQLite, and one of each topic for each server: starting one takes seconds.
macro_rules! sql_facts {
    ($($module:ident { $($fact:ident),+ $(,)? })+) => {
        mod in_postgres {
            $(#[test]
            fn $module() {
                let cases = vec![$(crate::engines::case(stringify!($fact), crate::$module::$fact)),+];
                crate::engines::all(&crate::engines::Engine::postgres(), cases);
            })+
        }
        mod in_mariadb {
            $(#[test]
            fn $module() {
                let cases = vec![$(crate::engines::case(stringify!($fact), crate::$module::$fact)),+];
                crate::engines::all(&crate::engines::Engine::mariadb(), cases);
            })+
        }
        mod in_sqlite {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $fact() {
                crate::$module::$fact(crate::fixture::Harness::sqlite().await).await;
            })+)+
        }
    };
}

/// The same, and a test of each fact in memory.
macro_rules! facts {
    ($($module:ident { $($fact:ident),+ $(,)? })+) => {
        mod in_memory {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $fact() {
                crate::$module::$fact(crate::fixture::Harness::memory()).await;
            })+)+
        }
        sql_facts! { $($module { $($fact),+ })+ }
    };
}

/// What memory hasn't.
mod of_databases {
    sql_facts! {
        lists {
            tasks_are_found_by_each_filter,
            pages_meet_without_gap_or_overlap_while_tasks_are_made,
            runs_and_audit_are_told_newest_first,
            changes_are_found_by_their_object_and_their_time,
            the_run_of_a_dead_node_is_ended_by_who_takes_it_and_the_names_stay,
            an_answer_is_remembered_for_its_key_and_request,
            an_open_key_is_free_as_soon_as_the_session_that_answers_it_is_over,
            a_session_that_is_fenced_although_it_owns_nothing_is_told_once_with_its_node,
        }
        inspected {
            a_whole_database_has_no_faults_and_each_broken_rule_is_found,
            what_is_looked_at_beside_the_rules_is_answered,
            a_restore_leaves_open_what_tasks_with_limits_in_units_used,
        }
        alerts {
            alerts_are_kept_changed_and_deleted,
            an_event_is_told_once_and_a_handler_that_is_down_once_an_hour,
            fires_without_a_task_and_used_totals_are_told,
        }
        administration {
            tokens_are_kept_found_and_revoked,
            businesses_are_registered_changed_and_archived,
            named_limits_are_made_used_and_deleted,
            uploads_are_kept_in_parts_until_nobody_has_them,
            what_is_told_of_tasks_and_shards_is_answered,
        }
    }
}

facts! {
    tasks {
        a_deleted_task_has_no_redrives_and_gives_its_key_back,
        a_new_task_waits_for_its_start,
        terms_add_up_with_items_skipped_at_the_head,
        commands_follow_the_transition_table,
        a_start_after_a_stop_goes_on_where_it_was,
        stop_waits_for_the_owner_and_cancel_outlasts_it,
        one_audit_entry_per_accepted_command,
        a_replay_is_in_the_audit_of_the_task_whose_items_it_sends,
        the_same_key_and_request_make_one_task,
        a_name_is_taken_until_it_is_released,
        tuning_raises_the_revision_that_owners_see,
        a_queued_task_says_why_it_waits,
        unknown_things_are_named,
        a_dry_run_is_answered_as_what_then_comes_and_keeps_nothing,
    }
    schedules {
        a_schedule_is_kept_as_it_was_made_and_fires_at_its_next_time,
        names_are_unique_within_a_business_and_a_business_must_exist,
        a_business_has_so_many_schedules_and_no_more,
        a_change_moves_the_next_fire_and_a_pause_takes_it_away,
        a_due_fire_makes_one_task_and_the_next_one_follows,
        a_fire_whose_maker_died_is_taken_again_after_its_lease,
        of_many_that_fire_at_once_one_decides,
        after_an_outage_the_newest_goes_and_one_row_lists_the_others,
        a_running_task_is_in_the_way_until_it_ends_or_stops,
        a_fire_waits_for_the_one_before_it_where_they_queue,
        what_runs_is_cancelled_for_a_newer_fire_and_of_those_that_wait_the_newest_stays,
        a_fire_that_can_t_be_made_is_tried_again_and_then_has_failed,
        a_fire_that_ends_each_node_which_makes_it_is_given_up_and_those_after_it_go,
        people_fire_now_and_for_times_that_are_over,
        people_give_up_fires_that_wait_or_are_being_made,
        what_is_made_up_for_publishes_if_asked_for_and_never_after_a_later_time,
        a_missed_fire_is_made_up_for_and_the_rest_of_its_row_stays,
        a_next_fire_that_a_wrong_clock_set_is_computed_anew,
        old_fires_go_and_those_that_are_open_stay,
        a_deleted_schedule_leaves_its_tasks_and_nothing_else,
    }
    life {
        a_later_start_waits_for_its_time,
        what_waits_for_its_time_is_given_another,
        a_business_that_prepares_itself_is_asked_before_anything_runs,
        a_start_token_lies_in_no_row_as_it_is_delivered,
        an_answer_to_an_earlier_start_is_stale,
        a_business_hears_of_the_ends_it_wants_to_hear_of,
        a_start_after_the_canary_goes_on_with_the_rest,
        finishing_early_by_command_cuts_what_was_not_dispatched,
        a_recovering_task_is_tried_at_once_when_told,
        another_error_budget_ends_the_pause_of_the_old_one,
        codes_that_are_given_up_reach_every_owner_and_outlast_it,
        items_that_people_want_skipped_reach_every_owner_and_outlast_it,
        a_start_that_judges_items_changes_the_settings_with_it,
        what_a_task_means_changes_only_before_it_has_run,
        a_change_of_what_was_changed_meanwhile_is_refused,
        many_waiting_tasks_are_explained_at_once,
        an_ended_task_is_deleted_with_everything_of_it,
    }
    claims {
        of_24_concurrent_claimants_one_wins,
        a_lost_answer_to_a_claim_is_recognised,
        a_fenced_or_missing_session_claims_nothing,
        a_shard_of_a_live_session_is_not_to_be_had,
        epochs_grow_with_the_clock_and_without_it,
        claims_without_progress_are_counted,
        pages_of_candidates_show_each_once_whatever_their_size,
        only_tasks_of_the_pools_that_are_served_are_found,
        candidates_are_shards_without_a_live_owner,
        candidates_honour_waiting_time_and_restore_window,
        past_its_deadline_a_shard_is_a_candidate_to_be_stopped_only,
        a_stopped_task_of_a_dead_owner_is_claimed_to_commit_stopped,
        a_shard_that_its_node_does_not_run_is_released,
    }
    checkpoints {
        progress_comes_back_with_the_next_claim,
        a_repeat_of_the_same_number_is_stored_once,
        a_zombie_leaves_no_side_records,
        watermark_and_numbers_never_fall,
        a_fenced_shard_does_not_disturb_the_others,
        a_lost_answer_to_the_last_checkpoint_is_recognised,
        a_whole_task_finishes_in_the_transaction_of_its_last_checkpoint,
        a_task_that_does_not_add_up_is_not_finished,
        an_end_that_did_not_add_up_is_proved_again_when_told,
        failures_make_the_result_with_failures,
        finishing_early_excludes_what_was_not_dispatched,
        what_a_dead_owner_may_have_called_is_not_excluded,
        a_canary_is_kept_until_its_run_says_that_it_has_passed,
        a_run_may_stop_its_task,
        a_recovering_task_waits_for_its_time,
        a_run_that_would_recover_stops_when_its_task_is_to_stop,
        cancel_ends_in_cancelled_when_the_owner_stops,
        failed_items_are_counted_once,
        codes_past_the_hundredth_are_counted_as_other,
        items_come_and_go_with_their_records,
        parked_items_are_paged_by_due_time,
        more_than_a_hundred_shards_at_once_are_refused,
    }
    shards {
        a_task_is_cut_when_it_starts_and_again_only_before_it_ran,
        the_number_of_shards_changes_until_the_task_has_run,
        a_shard_that_is_done_leaves_its_part_and_the_last_one_finishes_the_task,
        a_command_is_answered_with_the_owners_that_a_look_shows,
        shards_that_do_not_add_up_are_not_finished,
        what_one_shard_is_told_all_hear,
        a_finish_that_one_shard_is_told_cuts_all,
        the_shards_of_a_task_recover_together_and_once,
        what_is_said_of_a_silent_owner_goes_when_its_shard_is_claimed,
        only_the_first_shard_is_to_be_had_before_the_canary_has_passed,
        auto_counts_the_nodes_that_live,
    }
    sessions {
        only_a_silent_heartbeat_is_fenced,
        a_fenced_session_stays_fenced,
        a_heartbeat_reads_the_shards_of_its_session,
        the_lock_holder_fences_all_others_at_once,
        the_first_witness_is_the_store_s_for_ever,
        a_session_that_holds_a_shard_is_not_deleted,
        a_node_that_is_to_be_drained_hears_it_with_its_heartbeat_and_after_a_fence,
        a_shard_that_is_moved_is_left_to_its_node_for_a_while,
    }
    limits {
        a_part_grows_only_into_what_no_live_session_holds,
        a_fenced_session_plays_no_round_and_holds_nothing,
        a_round_that_comes_late_changes_nothing,
        a_limit_is_read_as_its_business_has_it,
        a_named_limit_is_shared_apart_from_that_of_a_business_of_its_name,
        a_task_names_only_limits_that_are_there,
        nodes_that_play_at_once_never_hold_more_than_the_limit,
        an_allowance_is_counted_in_the_period_of_the_stores_clock,
        blocks_of_a_total_are_counted_whoever_ends,
    }
    found {
        shards_of_a_task_hear_each_other_and_nobody_else,
        last_news_of_a_business_at_a_service_is_found_until_it_is_swept,
    }
    open {
        an_open_task_begins_empty_and_grows_by_what_is_appended,
        a_block_is_appended_once_a_key_however_often_it_is_sent,
        a_key_outlasts_the_rows_that_it_was_used_for,
        a_sealed_task_takes_no_more_and_a_fixed_one_none,
        a_run_that_did_not_know_the_last_item_gives_its_shard_back,
        a_sealed_task_finishes_once_all_is_settled,
        a_seal_finishes_what_rests_and_has_nothing_left,
        a_task_that_is_finished_early_takes_no_more,
        items_are_read_by_index_from_their_blocks,
        of_many_writers_each_block_has_a_place_of_its_own,
        what_is_settled_is_forgotten_and_failures_stay,
        a_backlog_has_a_bound,
    }
    upkeep {
        a_hook_call_is_taken_by_one_dispatcher_until_its_time_is_up,
        calls_that_are_over_are_kept_for_a_while,
        what_is_past_its_deadline_is_found_while_that_matters,
        a_start_that_was_not_answered_in_time_is_found,
        tasks_that_no_pool_serves_and_starts_that_are_due_are_found,
        failures_and_tasks_are_found_once_they_ended_long_enough_ago,
        a_session_says_how_it_shows_itself_and_goes_when_it_is_over,
        what_a_fenced_session_held_waits_again_or_is_stopped,
        runs_elsewhere_whose_handler_is_not_down_are_found,
        old_entries_of_the_audit_go_and_those_of_tasks_that_are_kept_stay,
    }
    history {
        who_took_a_shard_from_whom_is_told,
        what_rested_for_too_long_is_found_and_told_and_only_a_command_wakes_it,
        what_recovers_for_too_long_is_dormant_too,
    }
    crossing {
        checkpoint_batches_of_two_nodes_and_commands_cross_without_a_lost_update,
        of_parallel_creates_with_the_same_key_or_name_one_makes_the_task,
        of_redrives_that_have_not_seen_each_other_one_is_made,
        a_follower_of_a_log_that_many_write_misses_no_line,
        writers_interleaved_at_random_never_take_progress_back,
        nodes_that_look_after_the_store_at_once_do_not_disturb_each_other,
    }
    records {
        the_newest_lines_at_or_above_a_level_come_first,
        a_source_and_its_index_read_back,
        a_newer_source_of_the_same_place_replaces_the_older,
        the_store_id_is_six_letters_and_stays,
    }
    results {
        segments_are_found_in_the_order_of_their_first_indexes,
        a_segment_that_grew_takes_the_place_of_what_it_was_and_a_repeat_changes_nothing,
        a_write_that_is_fenced_leaves_no_result,
        an_item_has_its_own_output_or_none,
        results_can_be_read_up_to_the_lowest_item_that_is_not_settled,
        the_next_run_goes_on_counting_and_has_segments_of_its_own,
        a_task_is_not_finished_while_a_result_is_missing,
        results_go_once_they_are_old_and_how_many_they_were_is_kept,
        results_go_with_their_task,
        as_many_bytes_as_a_run_may_hold_are_one_checkpoint,
    }
    datasets {
        a_task_that_publishes_has_its_number_from_the_day_it_is_made,
        a_dataset_belongs_to_the_business_of_its_first_task,
        results_are_published_with_the_end_of_their_task_by_the_owner_of_the_claim,
        a_publication_under_an_older_claim_moves_nothing,
        a_generation_that_comes_too_late_is_withheld_and_its_task_finishes,
        what_did_not_succeed_as_it_should_is_withheld,
        a_publication_is_stopped_started_again_and_cancelled,
        a_publication_past_its_deadline_is_still_to_be_had,
        a_reduce_that_is_not_to_be_had_is_tried_again_later,
        the_newest_stay_pinned_ones_too_and_results_outlive_their_task,
        a_rollback_moves_the_pointer_back_and_its_number_on,
        a_dataset_goes_only_when_no_task_is_to_publish_it,
        a_dataset_is_made_before_its_first_task_and_only_once,
        keys_are_found_by_their_hash_in_every_write_of_the_claim,
        a_copy_is_claimed_by_one_and_noted_under_the_newest_claim_alone,
        a_copy_that_fails_is_tried_again_and_one_that_is_lost_is_made_anew,
        a_copy_is_taken_away_when_it_is_switched_off_and_with_its_dataset,
        a_token_is_lent_by_the_owner_of_the_claim_for_as_long_as_it_publishes,
    }
    statistics {
        the_days_of_a_shard_sum_up_to_its_counters,
        what_is_refused_or_repeated_is_counted_once_or_never,
        a_batch_counts_each_of_its_shards,
        a_clock_that_is_behind_counts_for_the_later_day,
        days_businesses_and_tasks_are_told_apart,
        a_day_whose_counters_fell_again_is_none,
        a_deleted_task_leaves_its_days_to_its_business,
    }
    failures {
        places_follow_the_order_of_commits_and_never_change,
        an_item_gets_its_place_when_it_is_given_up,
        tasks_do_not_share_places_and_a_batch_of_shards_numbers_each,
        codes_past_the_hundredth_share_the_places_of_other,
        pages_go_by_index_or_by_place,
        what_waits_is_counted_by_its_code,
        each_failed_item_writes_one_line_with_its_checkpoint,
        calls_answered_for_others_are_kept_of_an_item_that_failed_for_good,
        unconfirmed_failures_are_counted_apart_and_once,
        unconfirmed_failures_are_found_by_group_and_page_by_page,
    }
    logs {
        a_search_gives_what_a_scan_of_all_lines_gives,
        a_business_finds_the_lines_of_its_own_tasks,
        lines_of_replies_are_stored_with_their_checkpoint_and_once,
        a_checkpoint_with_more_lines_than_a_statement_takes_is_stored_in_order,
        lines_come_oldest_first_after_a_number,
        old_lines_go_and_are_counted,
        of_too_many_lines_the_oldest_of_little_weight_go_first,
    }
}
