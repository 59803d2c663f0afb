//! Reasons why a shard waits for room on a node.

use crate::message::messages;
use crate::{Message, Text};

messages! { "capacity";
    full(need: Text, free: Text, capacity: Text)
        "it needs {need}; only {free} of the node's {capacity} would fit now" "需要 {need}，节点的 {capacity} 现在只容得下 {free}";
    taken(need: Text, capacity: Text)
        "it needs {need}; too much of the node's {capacity} is used by other tasks"
        "需要 {need}，节点的 {capacity} 被其他任务占用过多";
    taken_by(need: Text, capacity: Text, holder: Text)
        "it needs {need}; too much of the node's {capacity} is used by other tasks, mostly {holder}"
        "需要 {need}，节点的 {capacity} 被其他任务占用过多，主要是 {holder}";
    too_big(need: Text, capacity: Text)
        "it needs {need}, more than the node's whole capacity of {capacity}; lower its rate or raise `node.capacity_rate`"
        "需要 {need}，超过节点的全部容量 {capacity}；降低速率或提高 `node.capacity_rate`";
    behind(task: Text)
        "it waits behind {task}, which is ahead in the line and doesn't fit yet" "排在 {task} 之后，它还放不下";
    held() "it already runs here" "它已在这里运行";
    not_held() "it doesn't run here" "它不在这里运行";
    will_wait(why: Message) "it will wait: {why}" "将会等待：{why}";
    will_wait_behind(task: Text)
        "it will wait behind {task}, which is ahead in the line and doesn't fit yet" "将排在 {task} 之后，它还放不下";
    will_wait_for(task: Text, need: Text, free: Text, capacity: Text)
        "it will wait behind {task}: it needs {need}, and only {free} of the node's {capacity} is free"
        "将排在 {task} 之后：需要 {need}，节点的 {capacity} 只剩 {free}";
}
