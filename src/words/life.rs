//! Messages about the life of a task: its states, its runs and what it refuses.

use std::time::Duration as Span;

use crate::message::messages;
use crate::{Count, Message, Text};

messages! { "life";
    taken_over(to: Text, shard: Text, from: Message, silent: Span)
        "{to} took over shard {shard} from {from}, which was fenced after {silent} without a save"
        "{to} 从 {from} 接管了分片 {shard}，后者 {silent} 没有保存，已被隔离";
    taken_over_again(to: Text, shard: Text, silent: Span)
        "{to} took over shard {shard} from its earlier process, which had saved nothing for {silent}"
        "{to} 从自己之前的进程接管了分片 {shard}，后者 {silent} 没有保存";
    lost(node: Message, shard: Text, silent: Span)
        "{node} was fenced after {silent} without a save of shard {shard}, which waits for a node"
        "{node} 有 {silent} 没有保存分片 {shard}，已被隔离；分片在等节点";
    left(shard: Text, from: Text) "shard {shard} was taken over from {from}" "分片 {shard} 从 {from} 接管而来";
    may_repeat(what: Message, items: Count)
        "{what}; up to {items#item} may be called again" "{what}；至多 {items} 个条目可能再次调用";
    recovering(shard: Text, node: Message, why: Text) "shard {shard} on {node}: {why}" "{node} 上的分片 {shard}：{why}";
    nameless() "an unnamed node" "未记名的节点";
    fenced(node: Text)
        "{node} stopped responding and was fenced; other nodes may take its shards" "{node} 停止响应，已被隔离；其他节点可接管其分片";

    released() "handed over: any node may take it" "已交出：任何节点都可接手";
    owner_gone()
        "the node that ran it is gone; it resumes from its last checkpoint once a node takes it"
        "运行它的节点已不在；有节点接手后从最近的检查点继续";
    preparing() "the business is preparing for this start" "业务正在为此次启动做准备";
    starts_at(at: Text) "it starts at {at}" "将于 {at} 启动";
    cancelled() "the task was cancelled" "任务已取消";

    open_items()
        "the task is open: its items are the appended ones, in one shard" "任务未封口：条目就是已添加的那些，只有一个分片";
    fixed_while(status: Message)
        "it is fixed while the task is {status}; stop the task first" "任务{status}时不能更改；先停止任务";
    not_open(task: Text) "{task} can't be sealed: it was not created open" "{task} 不能封口：创建时不是开放任务";
    stale_start(given: Count, present: Count)
        "start {given} is over; the current start is {present}" "第 {given} 次启动已结束；现在是第 {present} 次";
    name_taken(name: Text, task: Text) "the name \"{name}\" is taken by {task}" "名称 \"{name}\" 已被 {task} 使用";
    early_finish(items: Count)
        "the task has {items#item}; an early finish must be below that" "任务有 {items} 个条目；提前完成须少于此数";
    no_item(item: Text, items: Count)
        "there is no item {item}: the task has {items#item}, counted from 0" "没有条目 {item}：任务有 {items} 个条目，从 0 数起";

    shards_apart(item: Text) "the shards don't meet at item {item}" "分片在条目 {item} 处不相接";
    shards_end(item: Text, total: Text) "the shards end at item {item} of {total}" "分片止于 {total} 中的条目 {item}";
    failures_differ(failed: Count, recorded: Count)
        "{failed#item} failed, but {recorded#failure} {recorded?is|are} recorded" "失败 {failed} 个条目，却记录了 {recorded} 个失败";
    still_parked() "an item is still parked" "仍有条目停放着";
    results_differ(said: Count, stored: Count)
        "{said#result} were kept, but {stored} are stored" "应有 {said} 个结果，只存了 {stored} 个";
    shard_incomplete(shard: Text, at: Text, end: Text, settled: Count, parked: Count)
        "shard {shard} ended at {at} of {end} with {settled#item} settled and {parked} parked"
        "分片 {shard} 止于 {end} 中的 {at}，了结 {settled} 个条目，停放 {parked} 个";
}
