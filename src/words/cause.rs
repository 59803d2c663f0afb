//! Titles and details of the causes of a missing rate.

use std::time::Duration as Span;

use crate::message::messages;
use crate::{Count, Message, Rate, Share, Text};

messages! { "cause";
    window_full() "window full" "窗口已满";
    concurrency() "concurrency" "并发上限";
    handler_slots() "handler concurrency" "处理器并发";
    back_pressure() "handler back-off" "处理器限流";
    retry_wait() "retry waiting" "等待重试";
    parked_full() "parked full" "停放已满";
    source_wait() "source waiting" "等待来源";
    unsaved() "unsaved limit" "未保存上限";
    checkpoint() "progress unsaved" "进度未保存";
    lease() "lease not renewed" "租约未续";
    canary() "canary" "试跑";
    tail() "waiting for last responses" "等待最后的响应";
    single_file() "one at a time" "逐个进行";
    limit() "shared limit" "共享限额";
    handler_down() "handler down" "处理器不可用";
    results_unsaved() "results unwritten" "结果未写入";
    items() "waiting for items" "等待条目";
    autopilot() "held by autopilot" "自动调速";
    usage() "held by limit" "受限额限制";
    usage_holds() "no more calls are allowed now" "暂不允许更多调用";
    usage_limit(limit: Text) "{limit}" "{limit}";
    usage_allowance(limit: Text, next: Text) "{limit} is used; next at {next}" "{limit} 已用完；{next} 起恢复";
    usage_headers(unit: Text) "the service says too few {unit} are left" "服务方表示剩余的 {unit} 不足";
    usage_learns(unit: Text)
        "few calls at a time until responses show what they cost in {unit}" "在响应表明 {unit} 费用之前，只放行少数调用";
    autopilot_holds() "calls wait for what the service takes" "调用在等服务方接受";
    calls_slower(calls: Count) "calls get slower beyond {calls} in flight" "在途超过 {calls} 个，调用就变慢";
    calls_slower_by(calls: Count, slower: Share)
        "calls get slower beyond {calls} in flight (10 % more in flight made calls {slower} slower)"
        "在途超过 {calls} 个，调用就变慢（在途多 10 %，调用慢 {slower}）";
    refused_above_rate(rate: Rate) "refused above {rate}" "高于 {rate} 会被拒绝";
    refused_in_flight(calls: Count) "refused above {calls} in flight" "在途超过 {calls} 个会被拒绝";
    scouting(since: Span, next: Span)
        "one call at a time until the service takes calls again (since {since}, next in {next})"
        "每次只试一个调用，直到服务方重新接受（已 {since}，{next} 后再试）";
    scout_out(since: Span)
        "one call at a time until the service takes calls again (since {since})"
        "每次只试一个调用，直到服务方重新接受（已 {since}）";
    service_window(rest: Span)
        "the service says its window is used up for another {rest}" "服务方称其额度已用完，还要 {rest} 恢复";
    service_window_used() "the service says its window is used up" "服务方称其额度已用完";
    autopilot_starts(calls: Count) "starting with {calls} in flight" "刚开始，在途 {calls} 个";
    retries() "repeated attempts" "重复尝试";
    returned() "sent too late" "来不及发出";
    late() "node overloaded" "节点过载";
    slowed() "handler slow-down" "处理器要求降速";
    no_room() "no room on node" "节点没有余量";
    not_running() "not running" "未运行";
    unknown() "unknown" "未知";

    was_returned() "the rate allowed these calls, but the node was too slow to make them" "速率允许这些调用，但节点太慢，没能发出";
    was_late() "calls started late: the node was paused, or short of CPU" "调用开始得太晚：节点曾暂停，或 CPU 不足";
    stood_still(node: Text, spell: Message)
        "{node} stood still {spell}: paused, or short of CPU" "{node} {spell}没有动静：曾暂停，或 CPU 不足";
    so_far(lasted: Span) "for {lasted} so far" "至今 {lasted} ";
    until(lasted: Span, ago: Span) "for {lasted}, until {ago} ago" "有 {lasted}（到 {ago} 前为止）";
    asked_to_slow() "the handler asked for a lower rate for a while" "处理器曾要求降低速率";
    instead_of(rate: Text, wanted: Text) "{rate} instead of {wanted}" "{rate}，而不是 {wanted}";
    unreachable(shards: Count, of: Count, nodes: Text)
        "{shards} of {of#shard}: no response from {nodes}; work done there isn't counted"
        "{of} 个分片中的 {shards} 个：{nodes} 没有响应，那里的进展未计入";
    nothing_ran(lasted: Span) "nothing ran for {lasted}" "有 {lasted} 没有运行";
    shards_stood(shards: Count, of: Count, longest: Span)
        "{shards} of {of#shard} did not run for {longest}" "{of} 个分片中有 {shards} 个停了 {longest}";
    because(status: Message, reason: Text) "{status} ({reason})" "{status}（{reason}）";
    said(status: Message, text: Text) "{status}: {text}" "{status}：{text}";

    no_writes(spell: Message) "the database accepted no writes {spell}" "数据库{spell}没有接受写入";
    held_by(head: Message) "held by {head}" "被 {head} 占住";
    head(index: Count, attempt: Count, age: Span)
        "#{index} (attempt {attempt}, {age})" "#{index}（第 {attempt} 次尝试，{age}）";
    head_waiting(index: Count, attempt: Count, age: Span)
        "#{index} (waiting for attempt {attempt}, {age})" "#{index}（等待第 {attempt} 次尝试，{age}）";
    window_sent(window: Count) "all {window#item} of the window were sent" "窗口的 {window} 个条目都已发出";
    in_flight_max(items: Count) "at most {items#item} may be in flight" "在途至多 {items} 个条目";
    handler_takes(items: Count)
        "the handler works on {items#item} at a time" "处理器同时只处理 {items} 个条目";
    no_slot() "the handler had no free worker" "处理器没有空闲名额";
    pushed_back()
        "429, 503 with Retry-After, or a pause requested by the handler"
        "429、带 Retry-After 的 503，或处理器要求暂停";
    retrying(items: Count)
        "{items#item} {items?waits|wait} for the next attempt" "{items} 个条目在等待下一次尝试";
    parked(items: Count) "{items#item} {items?is|are} parked" "停放了 {items} 个条目";
    no_rows() "the source had no rows ready" "来源还没有给出数据";
    saved_slowly() "completions could not be saved fast enough" "完成情况保存得不够快";
    progress_first()
        "progress must be saved before more is sent; the database was slow or unavailable"
        "进度保存后才能继续发出；数据库曾缓慢或不可用";
    results_slowly() "results could not be written fast enough" "结果写入得不够快";
    lease_unproven() "the node could not renew its lease on the task" "节点没能续上任务的租约";
    canary_only() "all items but the canary are held back" "除试跑外的条目都被暂缓";
    all_sent() "all items are sent" "条目都已发出";
    appended_sent() "all appended items are sent; the task is open" "已添加的条目都已发出；任务未封口";
    no_answer()
        "the handler did not respond; only one probe at a time was sent" "处理器没有响应，每次只发一个探测";
    crashed_often()
        "the node crashed repeatedly, so items run one at a time" "节点反复崩溃，条目改为逐个进行";
    limit_used() "the limit is used up by the tasks that share it" "限额已被共享它的任务用完";
    limit_of(business: Text) "the limit of {business}" "{business} 的限额";
    limit_named(name: Text) "the limit {name}" "限额 {name}";
    limit_named_of(name: Text, limit: Text) "the limit {name} of {limit}" "限额 {name}（{limit}）";
    limit_shared(limit: Message, runs: Count, nodes: Count)
        "{limit} is shared by {runs#run} on {nodes#node}" "{limit}由 {nodes} 个节点上的 {runs} 个运行共享";
    limit_spent(limit: Message, used: Text, of: Text, next: Text)
        "{limit} is used ({used} of {of}); next period at {next}" "{limit}已用完（{used} / {of}）；{next} 起恢复";
    limit_shared_by(limit: Message, users: Text, runs: Count, nodes: Count)
        "{limit}, used by {users}, is shared by {runs#run} on {nodes#node}"
        "{limit}（{users} 使用）由 {nodes} 个节点上的 {runs} 个运行共享";
}
