//! Every case, once. A backend runs them all by naming itself.

macro_rules! suite {
    ($backend:ident, $db:ty) => {
        mod $backend {
            crate::suite::cases! { $db, enqueue:
                e01_commit_stores_a_pending_event, e02_rollback_leaves_no_row, e03_nothing_is_seen_before_the_commit,
                e05_every_value_comes_back_equal, e05_what_would_not_come_back_is_refused_before_any_sql,
                e06_what_cannot_be_stored_or_queried_is_refused_before_any_sql,
                e07_sequence_numbers_are_distinct_and_increase, e08_a_transaction_that_commits_last_is_not_skipped,
                e09_attempts_are_given_by_call_constant_or_default, e10_an_event_waits_for_its_time,
                e11_a_dedup_key_is_stored_once, e12_an_id_of_ones_own_is_stored_once, e_headers_reach_the_handler,
                e_a_plain_insert_is_an_enqueue, e_a_begin_that_is_given_up_harms_no_connection,
            }
            crate::suite::cases! { $db, running:
                r01_success_completes_and_spends_nothing, r02_a_running_event_is_processing_and_knows_its_attempts,
                r03_r04_r05_a_failure_backs_off_until_the_last, r06_a_panic_is_a_failure_and_the_rest_goes_on,
                r07_a_timeout_drops_the_future_and_spends_an_attempt,
                r08_a_handler_that_blocks_its_thread_keeps_its_event,
                r09_an_unknown_type_is_left_alone_and_reported, r09_an_unknown_type_is_buried_by_policy_alone,
                r10_a_newer_version_is_left_alone,
                r11_what_does_not_decode_is_a_dead_letter_and_its_neighbours_run, r11_ten_in_a_row_rest_the_type,
                r12_an_error_text_is_whole_scrubbed_and_cut, r13_r14_a_handler_steers_what_follows,
                r15_outcomes_are_written_once_the_database_takes_them,
                r15_a_statement_that_came_at_a_bad_moment_is_tried_again,
                r16_a_follow_up_runs_in_the_same_batch,
                r17_spent_attempts_still_get_their_run, r_completed_rows_can_go_at_once,
                r_what_a_program_lacks_is_said_before_anything_is_claimed,
            }
            crate::suite::cases! { $db, payloads:
                r10_an_older_version_is_led_to_the_present_one,
                r11_what_cannot_be_led_to_the_present_is_a_dead_letter, r_events_under_an_old_name_are_handled,
                r_all_names_share_one_limit, r_a_name_has_one_handler,
            }
            crate::suite::cases! { $db, leases:
                l01_every_claim_raises_the_fence, l01_an_outcome_is_guarded_by_fence_owner_and_status,
                l02_a_claim_that_was_forgotten_is_the_same_claim, l02_a_lost_lease_cancels_the_handler,
                l02_a_worker_that_was_declared_dead_comes_back_under_a_new_id,
                l03_a_row_that_is_gone_or_finished_by_others_is_a_lost_lease,
                l04_a_dead_workers_events_come_back_unspent_and_alone,
                l04_a_second_crash_spends_an_attempt_until_it_is_a_dead_letter,
                l05_an_event_held_past_the_stuck_threshold_spends_an_attempt,
                l06_a_live_workers_event_is_never_reaped,
                l06_handlers_that_use_up_the_pool_take_nothing_from_the_loop, l07_a_row_without_owner_or_time_is_freed,
                l08_the_reaper_takes_everything_page_by_page,
                l08_reapers_side_by_side_free_each_event_once, l08_the_reaper_does_not_stand_in_the_queue,
                l08_neither_reaper_nor_settle_waits_for_a_row_that_somebody_locks, l08_a_completed_event_is_never_reaped,
                l09_two_claimers_never_get_the_same_event, l10_a_row_that_somebody_locks_is_passed_over,
                l11_shutdown_waits_for_what_runs_and_starts_nothing,
                l11_after_the_grace_time_running_events_go_back_unspent,
            }
            crate::suite::cases! { $db, oneshot:
                o01_a_batch_reaps_then_runs_until_its_size,
                o01_a_claim_that_fails_abandons_nothing_that_runs, o01_a_call_that_is_dropped_gives_back_what_it_runs,
                o01_time_that_never_suffices_is_an_error_before_any_sql, o02_one_event_and_what_stands_against_it,
                o03_two_calls_at_once_are_one_run, o04_has_inflight_compares_a_top_level_field_as_text,
                o05_dead_letters_are_found_newest_first_page_by_page, o06_only_a_dead_letter_is_requeued,
                o07_only_what_is_finished_is_discarded_or_pruned, o07_pruning_reaches_every_page,
            }
            crate::suite::cases! { $db, keys:
                p03_a_key_runs_one_at_a_time_and_in_sequence,
                p03_a_head_that_waits_or_retries_blocks_its_key_alone,
                p03_a_dead_letter_lets_the_next_go_or_blocks_visibly,
                p03_what_is_requeued_runs_beside_nothing_of_its_key,
                p03_an_older_event_that_commits_late_waits_for_the_younger,
                p03_strict_order_is_the_order_of_commits,
                p03_strict_order_outlives_a_rollback_of_whoever_came_first, p03_a_crowd_behind_one_key_hides_nobody,
                e13_many_are_stored_in_order_and_duplicates_alone_stay_out, e13_a_refused_payload_names_its_place,
                o04_a_subject_is_under_way_until_its_events_are_over,
            }
            crate::suite::cases! { $db, tx:
                p04_writes_and_completion_commit_together_or_not_at_all,
                p04_follow_ups_belong_to_the_same_transaction, p04_a_lost_lease_rolls_back,
                p04_a_commit_that_fails_is_a_failure, p04_a_transaction_that_is_kept_is_a_failure,
                p04_completed_rows_can_go_in_the_same_transaction,
                p04_what_no_transaction_can_do_is_said_at_start,
            }
            crate::suite::cases! { $db, tables:
                t_a_schema_may_have_any_name, t_twenty_may_migrate_at_once,
                t_an_interrupted_migration_is_gone_on_with, t_a_team_may_apply_the_files_itself,
                t_a_process_that_dies_while_it_migrates_blocks_no_other, t_the_applications_own_migrations_are_left_alone,
                t_the_tables_are_upgraded_under_running_workers,
                t_a_migration_keeps_no_producer_waiting_behind_a_long_transaction, t_tenants_share_a_database_and_nothing_else,
            }
            crate::suite::cases! { $db, order:
                p01_one_at_a_time_they_run_in_due_order,
                p01_what_appears_in_front_of_others_that_ran_still_runs, p02_a_backlog_holds_nobody_back, p02_types_share_the_only_slot,
                p02_each_handler_keeps_its_own_limit, p02_a_slow_types_queue_in_memory_hides_no_new_type,
            }
        }
    };
}
pub(crate) use suite;

macro_rules! cases {
    ($db:ty, $group:ident: $($case:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $case() {
            match <$db as outbox_tests::harness::Harness>::left_out() {
                Some(why) => outbox_tests::harness::say_left_out::<$db>(why),
                None => crate::$group::$case::<$db>().await,
            }
        })*
    };
}
pub(crate) use cases;
