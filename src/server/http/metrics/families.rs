//! Declarations of all metric families of `/metrics`.

/// Type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Value that only increases.
    Counter,
    /// Value that goes up and down.
    Gauge,
    /// Durations counted by size.
    Histogram,
}

/// Metric family: name, type and help text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
}

/// Declares metric families: constant, name, type, and the help text shown by Prometheus.
macro_rules! families {
    ($($family:ident, $name:literal, $kind:ident, $help:literal;)*) => {
        $(pub(super) const $family: Family = Family { name: $name, kind: Kind::$kind, help: $help };)*

        /// All declared families, for tests.
        #[cfg(test)]
        pub(super) const ALL: &[Family] = &[$($family,)*];
    };
}

families! {
    BUILD_INFO, "windrow_build_info", Gauge, "The program";
    ITEMS, "windrow_items_total", Counter, "Items that are settled";
    ITEM_ATTEMPTS, "windrow_item_attempts_total", Counter,
        "Attempts that came to something: those that went well since the task began, failed ones since this process did";
    FAILED_CALLS, "windrow_failed_calls_total", Counter,
        "Calls that brought no success since this process began, by whose fault they are";
    HANDLER_DURATION, "windrow_handler_duration_seconds", Histogram,
        "How long calls took; what answers at once, in this process, is not among them";
    DISPATCH_DELAY, "windrow_dispatch_delay_seconds", Histogram,
        "From the time at which the rate allowed an item to leave until it left";
    TASK_ITEMS, "windrow_task_items", Gauge, "Items of a task by state";
    TASK_PROGRESS_RATIO, "windrow_task_progress_ratio", Gauge, "Settled items of those that are to be done";
    TASK_ACTUAL_RATE, "windrow_task_actual_rate", Gauge, "Item attempts sent per second here, over the last ten seconds";
    TASK_TARGET_RATE, "windrow_task_target_rate", Gauge, "Item attempts per second that may leave";
    WINDOW_SIZE, "windrow_window_size", Gauge, "Items between watermark and the highest that may leave";
    WINDOW_USED, "windrow_window_used", Gauge, "Items between watermark and the highest that left";
    WINDOW_WATERMARK, "windrow_window_watermark", Gauge, "Below it every item is settled or parked";
    WINDOW_HEAD_AGE, "windrow_window_head_age_seconds", Gauge,
        "How long the item at watermark has held it there";
    ERROR_BUDGET_REMAINING_RATIO, "windrow_error_budget_remaining_ratio", Gauge,
        "What is left of the tightest part of the error budget";
    CHECKPOINT_AGE, "windrow_checkpoint_age_seconds", Gauge, "How long completions have waited to be saved";
    HANDLER_DURATION_P95, "windrow_handler_duration_p95_seconds", Gauge,
        "The 95th percentile of how long calls take";
    HANDLER_DOWN, "windrow_handler_down", Gauge,
        "1 while the handler of a task that runs here doesn't answer";
    TASK_RUNNING, "windrow_task_running", Gauge, "1 while a task runs here";
    TASK_STATUS, "windrow_task_status", Gauge, "1 for the status that a task has";
    TASKS_ENDED, "windrow_tasks_ended_total", Counter,
        "Tasks that ran here last and ended: succeeded, with failures, stopped by themselves, by people, or cancelled";
    DISPATCH_STALL, "windrow_dispatch_stall_seconds_total", Counter,
        "Time in which nothing left although the rate allowed it";
    CHECKPOINT_DURATION, "windrow_checkpoint_duration_seconds", Histogram,
        "How long transactions of checkpoints took";
    CHECKPOINT_ERRORS, "windrow_checkpoint_errors_total", Counter,
        "Transactions of checkpoints that failed; they are tried again";
    LEASE_RENEWALS, "windrow_lease_renewals_total", Counter,
        "Heartbeats, each of which renews the leases of all shards of the node";
    FENCED_RUNS, "windrow_fenced_runs_total", Counter,
        "Runs that ended because another node owns their shard";
    RECOVERIES, "windrow_recoveries_total", Counter, "Runs that ended here and are tried again";
    SCHEDULE_FIRES, "windrow_schedule_fires_total", Counter,
        "Fires of schedules by what they came to on this node";
    SCHEDULE_IDLE, "windrow_schedule_idle_fires", Gauge,
        "The newest fires of a schedule that made no task, one after the other; of the newest ten";
    SCHEDULE_LATE, "windrow_schedule_late_seconds", Histogram,
        "How long after they were due fires were decided here";
    SINK_COPIES, "windrow_sink_copies_total", Counter,
        "Copies of datasets for readers of a sink, by what became of them on this node";
    SINK_BEHIND, "windrow_sink_behind", Gauge,
        "Datasets whose sink shows something else than what is current";
    SINK_LAG, "windrow_sink_lag_seconds", Gauge,
        "For how long the sink of a dataset has shown something else than what is current; of the one that waits longest";
    ARCHIVED_TASKS, "windrow_archived_tasks_total", Counter,
        "Tasks that were to be deleted, by whether they could be written to the archive; those that could not are kept";
    PUBLICATIONS, "windrow_publications_total", Counter,
        "Publications that were worked out here: done (or withheld, since a later one came first), tried again, or failed";
    PUBLICATIONS_WITHHELD, "windrow_publications_withheld_total", Counter,
        "Tasks that ran here last and ended without publishing what they were to publish";
    DATASET_AGE, "windrow_dataset_age_seconds", Gauge,
        "How long ago the current generation of a dataset was published, or made current again";
    DATASET_PUBLICATIONS, "windrow_dataset_publications_total", Counter,
        "How often a generation of a dataset became current";
    APPENDS, "windrow_appends_total", Counter, "Requests that append items to open tasks, by what they came to";
    APPENDED_ITEMS, "windrow_appended_items_total", Counter, "Items that were appended here";
    TASK_BACKLOG_ITEMS, "windrow_task_backlog_items", Gauge, "Items of an open task that aren't settled, as last saved";
    TASK_BACKLOG_BYTES, "windrow_task_backlog_bytes", Gauge, "Their rows";
    DATA_LOG_ENTRIES, "windrow_data_log_entries_total", Counter, "Lines of the data log that were stored";
    DATA_LOG_DROPPED, "windrow_data_log_dropped_total", Counter,
        "Lines of the data log that are gone: not kept longer, or too many to be written";
    REDIS_UP, "windrow_redis_up", Gauge,
        "Whether Redis answers; without it the database alone decides, and hints are found by polling";
    LEASE_TRIP_DURATION, "windrow_lease_trip_duration_seconds", Histogram,
        "How long round trips for leases took";
    LEASE_TRIP_ERRORS, "windrow_lease_trip_errors_total", Counter,
        "Round trips for leases that failed; trust decays until one succeeds";
    HINTS, "windrow_hints_total", Counter, "Hints among nodes, which save the wait for the next poll";
    STORE_QUERY_DURATION, "windrow_store_query_duration_seconds", Histogram,
        "How long statements of the store took";
    STORE_ERRORS, "windrow_store_errors_total", Counter, "Statements of the store that failed";
    NODE_CAPACITY_RATE, "windrow_node_capacity_rate", Gauge,
        "The sum of task rates that the node may hold, items per second";
    NODE_RESERVED_RATE, "windrow_node_reserved_rate", Gauge, "How much of it is taken, items per second";
    NODE_DRAINING, "windrow_node_draining", Gauge, "1 while the node takes no tasks";
    LEASES_HELD, "windrow_leases_held", Gauge, "Shards that run here";
    NODE_WAITING_TASKS, "windrow_node_waiting_tasks", Gauge, "Tasks that wait for room";
    SSE_CLIENTS, "windrow_sse_clients", Gauge, "Open streams of events";
    HTTP_BODY_BYTES, "windrow_http_body_bytes", Gauge, "Bodies that are read or worked on";
    HTTP_UPLOADS, "windrow_http_uploads", Gauge, "Uploads that arrive";
    UPLOAD_QUOTA_BYTES, "windrow_upload_quota_bytes", Gauge, "What the uploads of a business may take";
    RESULTS_FREE_BYTES, "windrow_results_free_bytes", Gauge,
        "What may still be written where results are kept, if it is on this machine";
    TASK_RESULTS_BYTES, "windrow_task_results_bytes", Gauge, "What the results of a task take, about";
    TASK_RESULTS_NEEDED_BYTES, "windrow_task_results_needed_bytes", Gauge,
        "What the results of the items that are left will take, about";
    UPLOAD_STORED_BYTES, "windrow_upload_stored_bytes", Gauge,
        "What the uploads of a business take, of those who store most";
    ACTORS, "windrow_actors", Gauge, "Actors";
    ACTOR_MAILBOX_MESSAGES, "windrow_actor_mailbox_messages", Gauge, "Messages that wait";
    ACTOR_RESTARTS, "windrow_actor_restarts_total", Counter, "Actors that were started again";
    PROCESS_CPU, "process_cpu_seconds_total", Counter, "Time on processors";
    PROCESS_RESIDENT_MEMORY_BYTES, "process_resident_memory_bytes", Gauge, "Memory in use";
    PROCESS_THREADS, "process_threads", Gauge, "Threads";
    PROCESS_OPEN_FDS, "process_open_fds", Gauge, "Open file descriptors";
    HTTP_SERVER_REQUESTS, "windrow_http_server_requests_total", Counter, "Requests answered";
    HTTP_SERVER_REQUEST_DURATION, "windrow_http_server_request_duration_seconds", Histogram,
        "From the head of a request to the head of its answer";
}
