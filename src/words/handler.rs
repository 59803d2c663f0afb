//! Messages about how a handler fares.

use std::time::Duration as Span;

use crate::message::messages;
use crate::{Count, Message, Text};

messages! { "handler";
    down(lasting: Span) "handler down for {lasting}" "处理器已不可用 {lasting}";
    down_why(lasting: Span, said: Message) "handler down for {lasting} ({said})" "处理器已不可用 {lasting}（{said}）";
    at_item(code: Text, item: Text, example: Text) "{code} at item {item}: {example}" "条目 {item}：{code}：{example}";
    next_probe(wait: Span) "next probe in {wait}" "{wait} 后再探测";
    was_down_why(lasting: Span, said: Message)
        "handler was down for {lasting} ({said}) and responds again; the rate grows"
        "处理器曾有 {lasting} 不可用（{said}），现已恢复响应；速率在回升";
    down_on(nodes: Text) "down for {nodes}, other nodes reach it" "{nodes} 连不上，其他节点可以";
    paused(left: Span) "the handler asks to wait; calls resume in {left}" "处理器要求等待，{left} 后继续";
    paused_why(why: Text, left: Span)
        "the handler asks to wait ({why}); calls resume in {left}" "处理器要求等待（{why}），{left} 后继续";
    failed(calls: Count, lasting: Span, last: Message)
        "{calls#call} failed in {lasting}, the last with {last}" "{lasting} 内失败 {calls} 次调用，最近：{last}";

    unjudged(items: Count)
        "{items#item} left that got only 502 or 503; a `judge_after` of 0s fails {items?it|them} now"
        "剩 {items} 个条目只得到 502 或 503；`judge_after` 设为 0s 立即判为失败";
    one_item(item: Text) "item {item} keeps failing" "条目 {item} 一直失败";
    some_items(items: Count) "{items#item} {items?keeps|keep} failing" "{items} 个条目一直失败";
    named_items(items: Count, named: Text)
        "{items#item} {items?keeps|keep} failing ({named})" "{items} 个条目一直失败（{named}）";
    until_proven(failing: Message) "{failing}; called until it can't be chance" "{failing}；反复调用直到排除偶然";
    result_in(failing: Message, wait: Span)
        "{failing}; final result in {wait}, a shorter `judge_after` decides sooner"
        "{failing}；{wait} 后定论，缩短 `judge_after` 可更早";
    result_after(failing: Message, tries: Count, wait: Span)
        "{failing}; {tries} more {tries?attempt|attempts} each, final result in {wait}; a shorter `judge_after` decides sooner"
        "{failing}；各再试 {tries} 次，{wait} 后定论，缩短 `judge_after` 可更早";

    is_down(code: Text) "handler down ({code})" "处理器不可用（{code}）";
    asks_to_wait() "the handler asks to wait" "处理器要求等待";
    calls_fail(code: Text) "calls fail ({code})" "调用失败（{code}）";

    more_failed(calls: Count, since: Span, last: Text)
        "{calls} more {calls?call|calls} failed in {since}, the last: {last}" "{since} 内又失败 {calls} 次调用，最近：{last}";
    no_more_codes(code: Text, example: Text)
        "{code}: {example}; further codes of this run are not logged" "{code}：{example}；此次运行的其他代码不再记入日志";
    back(lasted: Span, probes: Count)
        "the handler responds again after {lasted} and {probes#probe}" "处理器在 {lasted}、{probes} 次探测后恢复响应";
    no_response(lasting: Span)
        "the handler has not responded for {lasting}; one probe at a time is sent, no attempt is charged"
        "处理器已有 {lasting} 没有响应；每次只发一个探测，不计尝试次数";
    no_response_why(lasting: Span, code: Text, example: Text)
        "the handler has not responded for {lasting} ({code}: {example}); one probe at a time is sent, no attempt is charged"
        "处理器已有 {lasting} 没有响应（{code}：{example}）；每次只发一个探测，不计尝试次数";
}
