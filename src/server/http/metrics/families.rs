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
    BUILD_INFO, "windrow_build_info", Gauge, "Version and build of the program; always 1";
    ITEMS, "windrow_items_total", Counter, "Settled items";
    ITEM_ATTEMPTS, "windrow_item_attempts_total", Counter,
        "Finished item attempts: successful ones since the task began, failed ones since this process \
         started";
    FAILED_CALLS, "windrow_failed_calls_total", Counter,
        "Unsuccessful calls since this process started, by the side at fault";
    HANDLER_DURATION, "windrow_handler_duration_seconds", Histogram,
        "Duration of calls, except handlers in this process that respond at once";
    DISPATCH_DELAY, "windrow_dispatch_delay_seconds", Histogram,
        "Delay from the time the rate allowed an item to its dispatch";
    TASK_ITEMS, "windrow_task_items", Gauge, "Items of a task, by state";
    TASK_PROGRESS_RATIO, "windrow_task_progress_ratio", Gauge, "Settled share of the items to be done";
    TASK_ACTUAL_RATE, "windrow_task_actual_rate", Gauge,
        "Item attempts dispatched per second on this node, averaged over ten seconds";
    TASK_TARGET_RATE, "windrow_task_target_rate", Gauge, "Allowed item attempts per second";
    WINDOW_SIZE, "windrow_window_size", Gauge,
        "Items between the watermark and the highest index that may be dispatched";
    WINDOW_USED, "windrow_window_used", Gauge, "Items between the watermark and the highest index dispatched";
    WINDOW_WATERMARK, "windrow_window_watermark", Gauge, "Index below which every item is settled or parked";
    WINDOW_HEAD_AGE, "windrow_window_head_age_seconds", Gauge,
        "Time since the item at the watermark has held it back";
    ERROR_BUDGET_REMAINING_RATIO, "windrow_error_budget_remaining_ratio", Gauge,
        "Unused part of the tightest error budget";
    CHECKPOINT_AGE, "windrow_checkpoint_age_seconds", Gauge, "Age of the oldest completion that isn't saved";
    HANDLER_DURATION_P95, "windrow_handler_duration_p95_seconds", Gauge,
        "95th percentile of call durations";
    AUTOPILOT_CONCURRENCY, "windrow_autopilot_concurrency", Gauge,
        "Calls in flight that the autopilot allows";
    AUTOPILOT_RATE, "windrow_autopilot_rate", Gauge,
        "Calls per second that the autopilot allows, since the service refused some";
    AUTOPILOT_SLOPE, "windrow_autopilot_slope", Gauge,
        "Growth of call durations with calls in flight: 0 is room, 1 is a queue, 2 is harm";
    AUTOPILOT_SLOWER, "windrow_autopilot_slower", Gauge,
        "Factor by which calls are slower than at their best";
    AUTOPILOT_REFUSED_SHARE, "windrow_autopilot_refused_share", Gauge,
        "Share of the last few hundred calls that the service refused";
    AUTOPILOT_SCOUTING, "windrow_autopilot_scouting", Gauge,
        "1 while one call at a time is sent until the service takes calls again";
    TASK_COST, "windrow_task_cost", Gauge,
        "Use of a unit by the calls of a task so far, with what they may have used";
    HANDLER_DOWN, "windrow_handler_down", Gauge,
        "1 if the handler of a task that runs here is down";
    WORKERS, "windrow_workers", Gauge,
        "Worker processes of a business's handler that run here: busy with an item, or idle";
    TASK_RUNNING, "windrow_task_running", Gauge, "1 if the task runs here";
    TASK_STATUS, "windrow_task_status", Gauge, "1 for the current status of the task";
    TASKS_ENDED, "windrow_tasks_ended_total", Counter,
        "Tasks that last ran here and have ended, by outcome";
    DISPATCH_STALL, "windrow_dispatch_stall_seconds_total", Counter,
        "Time without dispatches although the rate allowed them";
    CHECKPOINT_DURATION, "windrow_checkpoint_duration_seconds", Histogram,
        "Duration of checkpoint transactions";
    CHECKPOINT_ERRORS, "windrow_checkpoint_errors_total", Counter,
        "Failed checkpoint transactions; they are retried";
    LEASE_RENEWALS, "windrow_lease_renewals_total", Counter,
        "Heartbeats; each renews the leases of all shards of the node";
    FENCED_RUNS, "windrow_fenced_runs_total", Counter,
        "Runs that ended because another node owns their shard";
    RECOVERIES, "windrow_recoveries_total", Counter, "Runs that failed on this node and are retried";
    LIMIT_USED, "windrow_limit_used_share", Gauge,
        "Share that is used of a named limit's total, or of its allowance in the present period";
    SCHEDULE_FIRES, "windrow_schedule_fires_total", Counter,
        "Schedule fires on this node, by outcome";
    SCHEDULE_IDLE, "windrow_schedule_idle_fires", Gauge,
        "Consecutive recent fires of a schedule without a task, up to ten";
    SCHEDULE_LATE, "windrow_schedule_late_seconds", Histogram,
        "Delay between the due time of a fire and its decision on this node";
    SINK_COPIES, "windrow_sink_copies_total", Counter,
        "Copies of datasets to a sink by this node, by outcome";
    SINK_BEHIND, "windrow_sink_behind", Gauge,
        "Datasets whose sink doesn't have the current generation";
    SINK_LAG, "windrow_sink_lag_seconds", Gauge,
        "Longest time for which the sink of a dataset hasn't had the current generation";
    ARCHIVED_TASKS, "windrow_archived_tasks_total", Counter,
        "Tasks due for deletion, by archive outcome; those that can't be archived are kept";
    PUBLICATIONS, "windrow_publications_total", Counter,
        "Publications prepared on this node: done (or withheld because of a later one), retried or failed";
    PUBLICATIONS_WITHHELD, "windrow_publications_withheld_total", Counter,
        "Tasks that last ran here and ended without the publication they were created for";
    DATASET_AGE, "windrow_dataset_age_seconds", Gauge,
        "Time since the current generation of a dataset was published or restored";
    DATASET_PUBLICATIONS, "windrow_dataset_publications_total", Counter,
        "Changes of a dataset's current generation";
    APPENDS, "windrow_appends_total", Counter, "Requests that append items to open tasks, by outcome";
    APPENDED_ITEMS, "windrow_appended_items_total", Counter, "Items appended on this node";
    TASK_BACKLOG_ITEMS, "windrow_task_backlog_items", Gauge,
        "Unsettled items of an open task, as of its last checkpoint";
    TASK_BACKLOG_BYTES, "windrow_task_backlog_bytes", Gauge,
        "Size of appended rows not yet settled, in bytes";
    DATA_LOG_ENTRIES, "windrow_data_log_entries_total", Counter, "Lines of the data log that were stored";
    DATA_LOG_DROPPED, "windrow_data_log_dropped_total", Counter,
        "Lines of the data log that were lost: past their retention, or too many to write";
    REDIS_UP, "windrow_redis_up", Gauge,
        "1 if Redis responds; otherwise the database alone decides, and changes are found by polling";
    LEASE_TRIP_DURATION, "windrow_lease_trip_duration_seconds", Histogram,
        "Duration of lease round trips";
    LEASE_TRIP_ERRORS, "windrow_lease_trip_errors_total", Counter,
        "Failed lease round trips; lease validity runs out unless one succeeds";
    HINTS, "windrow_hints_total", Counter, "Hints between nodes; each saves waiting for the next poll";
    STORE_QUERY_DURATION, "windrow_store_query_duration_seconds", Histogram,
        "Duration of database statements";
    STORE_ERRORS, "windrow_store_errors_total", Counter, "Failed database statements";
    NODE_CAPACITY_RATE, "windrow_node_capacity_rate", Gauge,
        "Capacity of the node for task rates, in items per second";
    NODE_RESERVED_RATE, "windrow_node_reserved_rate", Gauge,
        "Reserved part of the node's capacity, in items per second";
    NODE_DRAINING, "windrow_node_draining", Gauge, "1 if the node accepts no tasks";
    LEASES_HELD, "windrow_leases_held", Gauge, "Shards that run here";
    NODE_WAITING_TASKS, "windrow_node_waiting_tasks", Gauge, "Tasks that wait for capacity";
    SSE_CLIENTS, "windrow_sse_clients", Gauge, "Open event streams";
    HTTP_BODY_BYTES, "windrow_http_body_bytes", Gauge, "Request bodies in memory, in bytes";
    HTTP_UPLOADS, "windrow_http_uploads", Gauge, "Uploads in progress";
    UPLOAD_QUOTA_BYTES, "windrow_upload_quota_bytes", Gauge, "Upload quota per business, in bytes";
    RESULTS_FREE_BYTES, "windrow_results_free_bytes", Gauge,
        "Free space for results, if they are stored on this machine";
    TASK_RESULTS_BYTES, "windrow_task_results_bytes", Gauge, "Approximate size of a task's results";
    TASK_RESULTS_NEEDED_BYTES, "windrow_task_results_needed_bytes", Gauge,
        "Approximate size of the results of a task's remaining items";
    UPLOAD_STORED_BYTES, "windrow_upload_stored_bytes", Gauge,
        "Size of a business's uploads, for those with the most";
    ACTORS, "windrow_actors", Gauge, "Actors";
    ACTOR_MAILBOX_MESSAGES, "windrow_actor_mailbox_messages", Gauge, "Queued messages";
    ACTOR_RESTARTS, "windrow_actor_restarts_total", Counter, "Restarted actors";
    PROCESS_CPU, "process_cpu_seconds_total", Counter, "CPU time of the process";
    PROCESS_RESIDENT_MEMORY_BYTES, "process_resident_memory_bytes", Gauge, "Resident memory";
    PROCESS_THREADS, "process_threads", Gauge, "Threads";
    PROCESS_OPEN_FDS, "process_open_fds", Gauge, "Open file descriptors";
    HTTP_SERVER_REQUESTS, "windrow_http_server_requests_total", Counter, "HTTP requests answered";
    HTTP_SERVER_REQUEST_DURATION, "windrow_http_server_request_duration_seconds", Histogram,
        "Time from the head of a request to the head of its response";
}
