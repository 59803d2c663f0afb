//! Advice against the causes of a missing rate, and what stands against it.

use std::time::Duration as Span;

use crate::message::messages;
use crate::{Count, Message, Rate, Text};

messages! { "advice";
    larger_window(items: Count, held: Span)
        "a window of {items} outlasts the slowest item ({held})" "窗口加到 {items}，可撑过最慢的条目（{held}）";
    park_sooner(after: Span)
        "or park items in flight that hold a full window for {after}" "或者：在途条目占住满窗口 {after} 后就停放它";
    without_ordered() "remove `ordered`, if the items allow it" "若条目允许，去掉 `ordered`";
    without_ordered_or_faster()
        "remove `ordered`, if the items allow it, or make the handler faster"
        "若条目允许，去掉 `ordered`，或加快处理器";
    ordered_waits()
        "an ordered task has one item in flight, and each waits for the one before"
        "顺序任务只有一个在途条目，每个都等前一个";
    ordered_rate()
        "an ordered task has one item in flight: its rate is at most 1 ÷ the latency of a call"
        "顺序任务只有一个在途条目：速率至多为 1 ÷ 调用时长";
    faster_items() "speed up the slowest items, or shorten their timeout" "加快最慢的条目，或缩短其超时";
    window_at_most() "the window is at its maximum" "窗口已到上限";
    more_in_flight(items: Count) "allow {items#item} in flight" "允许 {items} 个条目在途";
    unsaved_auto() "allow as many unsaved completions as the rate needs" "按速率所需放宽未保存上限";
    faster_store()
        "give the database a faster disk, or lower the task's rate" "给数据库更快的磁盘，或降低任务速率";
    checkpoints_slow()
        "the database is slower than the task; checkpoints already follow one another"
        "数据库比任务慢，检查点已一个接一个";
    save_every(every: Span) "save progress every {every}" "每 {every} 保存一次进度";
    more_parked(items: Count)
        "allow {items} parked items; better, find out why so many fail"
        "允许停放 {items} 个条目；最好查明为何失败这么多";
    larger_burst() "a larger burst lets the node catch up after a delay" "更大的突发让节点在延迟后追上";
    more_cpu() "give the node more CPU, larger batches, or fewer tasks" "给节点更多 CPU、更大的批次或更少的任务";
    cpu_busy() "the node's CPU is too busy to start every call in time" "节点 CPU 太忙，无法按时开始每次调用";

    lower_to_taken(rate: Text)
        "lower the rate to the {rate} that the handler accepts, so that it rejects no calls"
        "把速率降到处理器能接受的 {rate}，让它不再拒绝调用";
    wait_for_handler() "wait until the handler accepts calls again" "等处理器重新接受调用";
    raise_usage() "raise the limit in units, if the service and the money allow it" "若服务方与预算允许，请提高单位限额";
    raise_usage_limit(limit: Text)
        "raise the limit of {limit}, if the service and the money allow it" "若服务方与预算允许，请提高限额 {limit}";
    wait_for_costs() "wait for the first responses" "请等最初的响应";
    costs_are_learned()
        "at most four calls are in flight until eight responses show what a call costs"
        "在八个响应表明一次调用的费用之前，最多四个调用在途";
    usage_is_told() "the headers of its answers say what is left until the next reset" "其响应头表明重置之前的剩余量";
    usage_is_set() "the task may use no more than its limits say" "任务的用量不得超过其限额";
    ask_service()
        "ask the service for more, or run it on more machines" "请服务方放宽限制，或为它增加机器";
    service_takes_no_more()
        "it refuses faster calls, or more at once make them slower; a fixed `rate` or `concurrency` overrules the autopilot"
        "再快它就会拒绝，再多调用会变慢；写明 `rate` 或 `concurrency` 则不再自动调速";
    wait_for_autopilot() "wait a few seconds" "请等几秒";
    autopilot_raises() "the autopilot is still raising the calls in flight" "自动调速还在增加在途调用";
    ask_for_more()
        "no setting makes the handler faster: have it allow more, then raise the rate again"
        "没有设置能加快处理器：先请对方放宽，再提高速率";
    fix_failures() "fix the failing calls" "修复失败的调用";
    fix_code(code: Text) "fix the failing calls (most often {code})" "修复失败的调用（最常见 {code}）";
    or_raise(fix: Message, rate: Text, each: Text)
        "{fix}; or raise the rate to {rate}, since an item takes {each} attempts"
        "{fix}；或把速率提高到 {rate}，因为每个条目要 {each} 次尝试";
    retries_at_any_rate()
        "the remaining items wait for their next attempt, at any rate" "剩下的条目在等下一次尝试，与速率无关";
    rate_is_not_used() "the rate isn't used up: something else holds calls back" "速率并未用满：另有原因拖住了调用";
    retries_take_slots() "failed attempts take the place of others" "失败的尝试占了别的位置";
    rate_at_most() "the rate is at its maximum" "速率已到上限";
    node_has_only(free: Rate) "the node has only {free} left" "节点只剩 {free}";
    raise_limit(name: Text)
        "raise the limit {name}, or stop another task that uses it" "提高限额 {name}，或停止另一个使用它的任务";
    raise_or_wait(name: Text)
        "raise the limit {name}, or wait for its next period" "提高限额 {name}，或等它的下一个周期";
    period_begins(next: Text)
        "tasks under the limit go on by themselves at {next}" "受此限额的任务会在 {next} 自行继续";
    raise_own_limit()
        "raise the limit of the business, or stop another task that uses it"
        "提高业务的限额，或停止另一个使用它的任务";
    limit_is_shared() "all tasks under the limit share it, on all nodes" "所有节点上受此限额的任务共享它";
    check_database() "check the database and the connection to it: nodes could not write" "检查数据库及其连接：节点无法写入";
    nothing_lost_once_saved()
        "nothing more is sent until progress is saved: no setting helps, and nothing is lost"
        "进度保存前不再发出：无需设置，也不会丢失";
    check_pause(node: Text)
        "find out what paused {node}: its machine, or a suspended process" "查明 {node} 为何停住：机器，或进程被挂起";
    time_is_gone() "no setting recovers the time in which a node stood still" "节点停住的时间无法用设置补回";
    decide_sooner() "decide sooner: a shorter `judge_after`" "更早判定：缩短 `judge_after`";
    only_failing_left() "only items that failed each time are left" "只剩每次都失败的条目";
    more_workers() "give the handler more workers" "给处理器更多工作进程";
    slots_are_handlers()
        "no setting of the task helps: the handler limits its items in flight"
        "任务的设置帮不上：处理器限制了在途条目";
    shorter_backoff() "a shorter back-off, if the handler recovers sooner" "若处理器恢复得更快，缩短退避";
    only_waits_left() "nothing else is left to send until the waits end" "等待结束前没有别的可发";
    faster_source() "a faster disk, smaller rows, or a lower rate" "更快的磁盘、更小的行，或更低的速率";
    source_at_most() "the source is at its maximum: no setting helps" "来源已达最快：无需设置";
    check_writes()
        "check the database: outages, and how long its writes take; if most items fail, find out why"
        "检查数据库：是否中断、写入多久；若大多失败，查明原因";
    check_slow_database() "check the database: it does not respond in time" "检查数据库：它没有及时响应";
    no_lease_no_calls()
        "nothing is sent while the node can't prove that it owns the task" "节点无法证明任务归它时不会发出";
    wait_for_canary()
        "wait for the canary; if it stops the task, start the task to continue" "等试跑结束；若任务因此停止，启动它以继续";
    canary_first() "all other items are held back until the canary is settled" "试跑了结前，其余条目都被暂缓";
    start_handler()
        "start the handler, or correct its address; calls resume automatically"
        "启动处理器，或更正其地址；调用会自动恢复";
    down_is_free()
        "no setting helps while it does not respond; no attempt is charged" "它没有响应时设置帮不上；不计尝试次数";
    find_crash()
        "find out what ended the node while these items were in flight" "查明这些条目在途时节点为何结束";
    single_file_ends()
        "this ends automatically once each suspect item was tried" "每个可疑条目试过后自动结束";
    see_settings() "check the settings" "检查设置";
    nothing_known() "no cause is known" "原因未知";
    append_or_seal()
        "append items, or seal the task if there are no more" "添加条目；若没有更多，封口任务";
    producers_first() "the task waits for its producers: no setting helps" "任务在等生产者：设置帮不上";
    wait_for_last() "wait for the last responses" "等最后的响应";
    all_sent() "all items are sent: no setting speeds up the last calls" "条目都已发出：设置无法加快最后的调用";
    check_nodes(nodes: Text) "check {nodes}" "检查 {nodes}";
    see_report() "see the task's history for what happened" "看任务历史了解经过";
    no_run_no_time() "no setting recovers time without a run" "没有运行的时间无法用设置补回";
    cpu_or_batches() "give the node more CPU, or the task larger batches" "给节点更多 CPU，或给任务更大的批次";
    two_millis()
        "permits not used within 2 ms go back, so that the burst stays within its limit"
        "2 毫秒内没用掉的许可会退回，以守住突发上限";
    ask_business() "ask the business" "询问业务方";
    slowed_for_now() "its handler asked for the lower rate; that ends automatically" "处理器要求了降速，会自动结束";
    move_shard()
        "move the shard to a node with more room, raise the node's capacity, or stop another task there"
        "把分片移到有余量的节点、提高节点容量，或停止那里的另一任务";
    asked_every_5s()
        "the rest is requested again every 5 s; no setting of the task makes room"
        "不足的部分每 5 秒再申请一次；任务的设置腾不出余量";
    wait_for_rate() "wait: the rate recovers automatically" "请等待：速率会自动恢复";
    outage_is_lost()
        "the time lost isn't made up; no attempt was charged" "中断期间的速率补不回；没有计尝试次数";

    start_task() "start the task" "启动任务";
    move_deadline() "move or remove the deadline first, then start the task" "先推迟或去掉截止时间，再启动任务";
    deadline_passed() "the deadline has passed: the task would stop at once" "截止时间已过：任务会立即停止";
    fix_handler(business: Text)
        "fix the handler, or correct the calls of {business}; then start the task"
        "修复处理器，或更正 {business} 的调用方式；然后启动任务";
    would_stop_again() "started unchanged, it would stop again" "原样启动会再次停止";
    undrain() "undrain a node that serves its pool, or start one" "恢复一个服务其池的节点，或启动一个";
    none_takes() "no node accepts tasks now" "现在没有节点接受任务";
    dormant()
        "idle longer than `cluster.restore_window`, so no node resumes it" "闲置超过 `cluster.restore_window`，没有节点会恢复它";
    wait_for_node() "wait: a node takes it as soon as possible" "请等待：节点会尽快接手";
    not_yet() "no part of it runs yet" "还没有任何部分在运行";
    same_key()
        "give the node above the same key (`auth.key_file`) and restart it, or start a node that has it"
        "给上述节点相同的密钥（`auth.key_file`）并重启，或启动一个有它的节点";
    retried_elsewhere() "it is retried automatically; the other nodes go first" "会自动重试，其他节点优先";
    recover_now() "recover it now, or see its log for what failed" "立即恢复，或看日志了解失败原因";
    retried() "it is retried automatically" "会自动重试";
    not_ready() "it has not reported that it is ready" "它还没有表示就绪";
    only_if_started() "nothing else starts it" "不会自行启动";
    wait_draining() "wait: it is stopping" "请等待：正在停止";
    no_new_calls() "no new calls" "不再发出新调用";
    nothing_to_do() "nothing to do" "无需操作";
    items_done() "its items are done" "条目已全部完成";
    raise_capacity() "raise the node's capacity" "提高节点容量";
    add_node() "add a node, raise a node's capacity" "增加节点、提高节点容量";
    or_stop_other(more: Message) "{more}, or stop another task" "{more}，或停止另一个任务";
    lower_to_free(rate: Text, more: Message)
        "lower the rate to {rate}, which this node has left; or {more}" "把速率降到此节点剩余的 {rate}；或{more}";
    no_node_has_room() "no node has room for the rate" "没有节点有余量容纳此速率";
}
