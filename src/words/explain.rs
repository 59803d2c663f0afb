//! Sentences that explain a pace.

use std::time::Duration as Span;

use crate::message::messages;
use crate::{Count, Message, Rate, Share, Text};

messages! { "explain";
    on_target() "on target" "速率达标";
    due_every(every: Span) "on target: one item is due every {every}" "速率达标：每 {every} 一个条目";
    just_started() "the run has just started; check again in a few seconds" "运行刚开始，请过几秒再看";
    stands(status: Message) "the task is {status}" "任务{status}";
    stands_why(status: Message, reason: Text) "the task is {status} ({reason})" "任务{status}（{reason}）";
    stands_text(status: Message, text: Text) "the task is {status}: {text}" "任务{status}：{text}";
    stands_as(text: Text) "{text}" "{text}";
    stands_why_text(status: Message, reason: Text, text: Text)
        "the task is {status} ({reason}): {text}" "任务{status}（{reason}）：{text}";
    unreachable(shards: Count, of: Count, nodes: Text)
        "{shards} of {of#shard} unreachable: {nodes}" "{of} 个分片中有 {shards} 个联系不上：{nodes}";
    owner_unreachable(node: Text, why: Text)
        "{node} runs it but can't be reached: {why}" "运行它的节点 {node} 联系不上：{why}";
    will_be_taken_over()
        "if that node is gone, another node takes it over" "若它已不在，其他节点会自动接管";
    redis_lost(why: Text) "this node can't reach Redis: {why}" "此节点连不上 Redis：{why}";
    run_just_started()
        "its run there has just started; check again in a few seconds" "那里的运行刚开始，请过几秒再看";
    skips(items: Count)
        "{items#item} {items?is|are} skipped without a call, as requested (see the task's revisions)"
        "按要求跳过 {items} 个条目，不再调用（见任务的修订）";
    but(detail: Text) "but {detail}" "但是：{detail}";

    no_rate() "no rate limit" "没有速率限制";
    at_full_speed()
        "no rate limit, and nothing to wait for: handler and node are at full speed"
        "没有速率限制，也无需等待：处理器和节点已达全速";
    autopilot_rate() "the autopilot finds the rate" "速率由自动调速找出";
    found(rate: Rate, calls: Count)
        "found by the autopilot: {rate}, {calls#call} in flight" "自动调速找到：{rate}，在途 {calls} 个";
    found_in_flight(calls: Count)
        "found by the autopilot: {calls#call} in flight, no bound on the rate" "自动调速找到：在途 {calls} 个，速率没有上限";
    refused(share: Share) "{share} of the calls were refused" "{share} 的调用被拒绝";
    at_ceiling(rate: Text) "at the ceiling of {rate}" "已到上限 {rate}";
    crowd(tasks: Count)
        "{tasks#task} beside this one call the same service, each with its own autopilot, and don't share it fairly; give them one named limit (windrow limit create)"
        "另有 {tasks} 个任务各用自己的自动调速调用同一服务，分配不会公平；请给它们同一个命名限额（windrow limit create）";
    waited(share: Share, title: Message, detail: Message)
        "{share} of the run was spent waiting: {title} ({detail})" "运行时间的 {share} 在等待：{title}（{detail}）";
    slots_carry(slots: Count, latency: Span, most: Rate)
        "{slots#call} in flight ÷ p50 {latency} = {most} at most" "{slots} 个并发 ÷ p50 {latency}，至多 {most}";
    little(rate: Rate, latency: Span, needed: Count, but: Message)
        "{rate} × p95 {latency} needs about {needed#call} in flight; {but}"
        "{rate} × p95 {latency} 约需 {needed} 个在途调用；{but}";
    window_is(window: Count) "the window is {window}" "窗口为 {window}";
    in_flight_max(items: Count) "at most {items} may be in flight" "在途至多 {items} 个";
    handler_has(slots: Count) "the handler takes {slots}" "处理器只有 {slots} 个";
    slots_taken(slots: Count) "{slots#call} {slots?is|are} in flight, as many as allowed" "{slots} 个并发全部占用";
    handler_slots_taken(slots: Count)
        "the handler is busy with {slots#call}, all it takes" "处理器的 {slots} 个名额全部占用";
    handler_slots_few() "the handler has no free worker" "处理器没有空闲名额";
    window_lasts(window: Count, lasts: Span, rate: Rate, holder: Message)
        "the window is {window}: {lasts} at {rate}, then everything waits for {holder}"
        "窗口为 {window}，按 {rate} 可撑 {lasts}，之后全部等待 {holder}";
    slow_item() "one slow item" "一个慢条目";
    back_pressure(taken: Rate, rate: Rate)
        "the handler rejects calls: it accepted {taken} of the target {rate}"
        "处理器在拒绝调用：目标 {rate}，只接受 {taken}";
    source_slow(delivered: Rate, rate: Rate)
        "the source delivers {delivered}, the rate is {rate}" "来源只供给 {delivered}，速率为 {rate}";
    recovered() "the handler was down and has recovered" "处理器曾不可用，现已恢复";
    attempts_each(each: Text, rate: Rate, most: Rate)
        "{each} attempts per item, each uses the rate: {rate} settles at most {most}"
        "每个条目平均 {each} 次尝试，每次都占用速率：{rate} 至多了结 {most}";
    most_often(code: Text, times: Count) "most often {code} ×{times}" "最常见 {code} ×{times}";
    no_room(why: Text)
        "a shard got a larger share of the rate, but its node has no room for it: {why}"
        "分片应得更大的速率份额，但其节点没有余量：{why}";
}
