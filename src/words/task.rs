//! Messages about a task: its meaning, its attributes, the refusal of a command, notes of its status.

use std::time::Duration as Span;

use crate::message::messages;
use crate::{Count, Message, Text};

messages! { "task";
    too_many_codes(most: Count)
        "items of {most#code} are marked failed already, the most that a task keeps"
        "已有 {most} 个代码的条目被标记为失败，达到任务的上限";
    skip_beyond(skip: Count, items: Count) "{skip} is more than the {items#item}" "{skip} 大于条目数 {items}";
    cut_head()
        "the task was finished early, and this would undo it; clone the task instead"
        "任务已提前完成，更改会使其撤销；请改为克隆任务";
    fixed() "it is fixed once the task has run; clone the task instead" "任务运行过后不可更改；请改为克隆任务";
    fixed_shards()
        "it is fixed once the task has run, because each shard keeps its progress; clone the task instead"
        "任务运行过后不可更改，因为各分片保存了进度；请改为克隆任务";
    too_many_items(most: Count) "a task has at most {most#item}" "任务最多 {most} 个条目";
    cut_end() "the task was finished early; its end is decided" "任务已提前完成，终点已定";
    total_shrinks(items: Count) "the task has run, so it keeps its {items#item}; finish it early instead" "任务运行过，{items} 个条目不可减少；请改为提前完成";
    total_of_source()
        "only the total of a range can change; this source has a fixed number of items"
        "只有区间的总数可改；此来源的条目数是固定的";
    empty_canary() "a canary has at least one item" "试跑至少一个条目";

    cut_off(items: Count, which: Text) "{items#item} {items?was|were} in flight and may repeat: {which}" "{items} 个条目当时在途，可能重复：{which}";
    handler_unreachable() "the handler can't be reached" "处理器不可达";
    handler_unusable() "the handler can't be used" "处理器不可用";
    no_item_succeeds() "no item succeeds" "没有条目成功";
    verb_changed() "changed" "更改";
    verb_started() "started" "启动";
    verb_stopped() "stopped" "停止";
    verb_cancelled() "cancelled" "取消";
    verb_finished() "finished" "提前完成";
    verb_appended() "appended to" "追加条目";
    verb_sealed() "sealed" "封存";
    verb_recovered() "recovered" "恢复";
    verb_deleted() "deleted" "删除";
    cant(done: Message, status: Text) "it can't be {done} while the task is {status}" "任务处于 {status} 状态，不能{done}";
    cant_ended(done: Message, status: Text)
        "the task has ended ({status}) and can't be {done} any more; clone it"
        "任务已结束（{status}），不能再{done}；可克隆它";
    impossible(verb: Text, status: Text) "{verb} is not possible while the task is {status}" "任务处于 {status} 状态，不能 {verb}";
    impossible_ended(verb: Text, status: Text)
        "the task has ended ({status}), so {verb} is no longer possible; clone it"
        "任务已结束（{status}），不能再 {verb}；可克隆它";

    dormant(idle: Span, setting: Text)
        "idle longer than {idle} (`{setting}`), so no node resumes it; start it"
        "闲置超过 {idle}（`{setting}`），节点不会自行恢复；请启动";
    cancelled_by_command() "cancelled by command" "按命令取消";
    deadline_passed() "its deadline passed" "已过截止时间";
    stopped_by_business() "stopped by command of the business" "按业务的命令停止";
    part_recovers() "a shard of the task will be retried; its other shards have ended or wait" "任务的一个分片将重试；其他分片已结束或在等待";

    not_a_time(why: Text, example: Text) "{why}: RFC 3339, for example {example}," "{why}：RFC 3339，例如 {example}，";
    no_time(text: Text) "{text} is not a time" "{text} 不是时间";
    no_task_id(text: Text, example: Text) "{text} is not a task id; one looks like {example}" "{text} 不是任务编号；例如 {example}";
    no_schedule_id(text: Text, example: Text)
        "{text} is not the number of a schedule; one looks like {example}"
        "{text} 不是定时计划的编号；例如 {example}";
    null_clears(about: Text) "{about}; null removes it" "{about}；null 表示删除";
    only_before_run(about: Text) "{about}; only before it has run" "{about}；仅在运行之前";
    only_at_rest(about: Text) "{about}; only while the task doesn't run" "{about}；仅在任务未运行时";
    no_attribute(name: Text) "there is no attribute {name}" "没有属性 {name}";

    not_open(task: Text) "{task} takes no items: it was not created open" "{task} 不接收条目：创建时不是开放的";
    sealed(task: Text) "{task} is sealed: it takes no more items" "{task} 已封存：不再接收条目";
    append_size(items: Count, bytes: Count, items_max: Count, bytes_max: Count)
        "{items#item} of {bytes#byte}; a request appends at most {items_max#item} and {bytes_max#byte}"
        "{items} 个条目，{bytes} 字节；一次最多追加 {items_max} 个条目、{bytes_max} 字节";
    append_full(items: Count, bytes: Count, task: Text, items_max: Count, bytes_max: Count)
        "{items#item} of {bytes#byte} would wait in {task}, which keeps at most {items_max#item} and {bytes_max#byte}"
        "{task} 中将有 {items} 个条目、{bytes} 字节等待；最多 {items_max} 个条目、{bytes_max} 字节";
}
