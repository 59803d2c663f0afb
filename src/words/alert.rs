//! Notices to people about what may need them.

use crate::message::messages;
use crate::{Count, Text};

messages! { "alert";
    stopped(task: Text) "{task} stopped" "{task} 已停止";
    failed(task: Text, failed: Count) "{task} finished with failed items: {failed}" "{task} 已结束，失败项：{failed}";
    finished(task: Text) "{task} finished" "{task} 已完成";
    items(succeeded: Count, skipped: Count, failed: Count) "succeeded: {succeeded}, skipped: {skipped}, failed: {failed}" "成功：{succeeded}，跳过：{skipped}，失败：{failed}";
    handler_down(business: Text) "{business}: handler down" "{business}：处理器不可用";
    down_since(node: Text) "No call from node {node} has succeeded for 30s; its tasks resume by themselves" "节点 {node} 的调用已 30 秒未成功；任务会自动恢复";
    withheld(task: Text, dataset: Text) "{task} did not publish {dataset}" "{task} 未发布 {dataset}";
    missed(schedule: Text, fires: Count) "{schedule}: missed fires: {fires}" "{schedule}：错过的触发：{fires}";
    missed_between(first: Text, last: Text) "due from {first} to {last}, while no node ran or beyond the schedule's catch-up" "应于 {first} 至 {last} 触发，当时没有节点运行或已超出补跑范围";
    fire_failed(schedule: Text) "{schedule}: no task created" "{schedule}：未创建任务";
    limit_used(limit: Text) "limit {limit}: 80% used" "限额 {limit}：已用 80%";
    used_of(used: Text, limit: Text) "{used} of {limit}" "{limit} 中的 {used}";
    test(alert: Text) "Test of alert {alert}" "提醒 {alert} 的测试";
    test_text() "Notices of this alert arrive here" "此提醒的通知会送达这里";
    only_members(title: Text, text: Text) "a notice fills only members such as {title} and {text}; remove parameters, secrets, indexes and conversions" "通知只能填入 {title}、{text} 等成员；请去掉参数、密钥、序号和转换";
    not_found(alert: Text) "no alert {alert}" "没有提醒 {alert}";
    taken(alert: Text) "an alert {alert} exists already" "提醒 {alert} 已存在";
    changed(found: Text, expected: Text) "the alert has revision {found}, not {expected}: it was changed in the meantime" "提醒的版本是 {found}，而不是 {expected}：其间已被修改";
    too_many(most: Count) "there are {most} alerts already, the maximum" "提醒数量已达上限 {most}";
    elsewhere() "this node sends no notices" "此节点不发送通知";
    gone() "the alert was deleted" "提醒已删除";
}
