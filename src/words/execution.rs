//! Reasons why a run ends itself or fails an item, and settings that shards can't share.

use std::time::Duration as Span;

use crate::message::messages;
use crate::{Count, Message, Rate, Text};

messages! { "execution";
    said(code: Text, text: Text) "{code}: {text}" "{code}：{text}";
    none_succeeds(last: Message)
        "the handler was reached repeatedly, but no item ever succeeded; last error {last}"
        "多次联系到处理器，但没有条目成功；最近的错误 {last}";
    limit_reached(limit: Text)
        "the limit of {limit} is used up; nothing is lost: raise it and start the task to continue"
        "{limit} 的限额已用完；没有丢失：提高限额并启动任务以继续";
    cost_unknown(unit: Text)
        "no answer says what a call costs in {unit}; say where with cost_from, then start the task to continue"
        "没有应答说明一次调用的 {unit} 费用；请用 cost_from 指明，再启动任务以继续";
    refused_too_long(patience: Span, said: Text)
        "the handler has turned every call away for {patience}; last answer {said}; nothing is lost, start the task to continue"
        "处理器已有 {patience} 拒绝每个调用；最近的回答 {said}；没有丢失，启动任务以继续";
    down_too_long(lasted: Span, last: Message)
        "the handler was down for {lasted}; last error {last}; nothing is lost, start the task to continue"
        "处理器已不可用 {lasted}；最近的错误 {last}；没有丢失，启动任务以继续";
    canary_done(items: Count, succeeded: Count, skipped: Count, failed: Count)
        "the canary of {items#item} is done: {succeeded} succeeded, {skipped} skipped, {failed} failed; start the task to continue"
        "{items} 个条目的试跑已完成：成功 {succeeded}，跳过 {skipped}，失败 {failed}；启动任务以继续";
    canary_failed(items: Count, succeeded: Count, skipped: Count, failed: Count)
        "the canary of {items#item} is done: {succeeded} succeeded, {skipped} skipped, {failed} failed, and any failure stops it; start the task to continue"
        "{items} 个条目的试跑已完成：成功 {succeeded}，跳过 {skipped}，失败 {failed}，有失败即停止；启动任务以继续";
    too_many_attempts_fail(allowed: Rate, window: Span, last: Message)
        "attempts failed faster than {allowed} over {window}; last error {last}"
        "{window} 内失败的尝试快于 {allowed}；最近的错误 {last}";
    most_attempts_fail(allowed: Rate, window: Span, last: Message)
        "attempts failed faster than {allowed} over {window}, and more than succeeded; last error {last}"
        "{window} 内失败的尝试快于 {allowed}，且多于成功的；最近的错误 {last}";
    too_many_items_fail(failed: Count, last: Message)
        "{failed#item} failed, more than the error budget allows; {last}" "失败 {failed} 个条目，超出错误预算；{last}";
    last_code(code: Text) "the last with {code}" "最近一个是 {code}";
    last_without_code() "the last without a code" "最近一个没有代码";
    last_elsewhere() "the last in another shard" "最近一个在另一个分片";
    no_request(last: Message)
        "no request could be built from any item so far; last error {last}" "至今没有条目能组成请求；最近的错误 {last}";
    maybe_items(last: Message)
        "{last}; if only these items are bad, `judge_after` of 0s fails them" "{last}；若只是这些条目有问题，`judge_after` 设为 0s 可判其失败";
    only_attempt(why: Text)
        "only one attempt is allowed, and the handler was down: {why}" "只允许一次尝试，而处理器不可用：{why}";
    attempts_used(item: Text, attempts: Count) "item {item} used all {attempts#attempt}" "条目 {item} 用完了 {attempts} 次尝试";
    node_crash() "the node ended while this item was in flight" "此条目在途时节点结束了";

    one_shard(shards: Count) "an ordered task has one shard, not {shards}" "顺序任务只有一个分片，不是 {shards} 个";
    small_burst(items: Count, shards: Count, part: Count, least: Count)
        "{items#item} shared by {shards#shard} are {part} for each, which needs {least}"
        "{shards} 个分片分 {items} 个条目，每个得 {part}，至少要 {least}";
    burst_advice(least: Text)
        "\"{least} items\", a span such as \"100ms\", or fewer shards" "\"{least} items\"、时长如 \"100ms\"，或更少分片";
    few_slots(items: Count, shards: Count, batch: Count)
        "{items#item} in flight can't be shared by {shards#shard} with a batch of {batch}"
        "批次为 {batch} 时，{shards} 个分片无法共享 {items} 个在途条目";
    slots_advice(least: Text) "at least {least}, \"auto\", or fewer shards" "至少 {least}、\"auto\"，或更少分片";
}
