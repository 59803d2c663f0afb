//! Messages about schedules and their fires.

use std::time::Duration as Span;

use crate::message::messages;
use crate::{Count, Message, Text};

messages! { "schedule";
    second() "second" "秒";
    minute() "minute" "分";
    hour() "hour" "时";
    day() "day of the month" "日";
    month() "month" "月";
    weekday() "weekday" "星期";
    wrong_field(field: Message, text: Text, range: Text) "the {field} can't be {text}; it is {range}" "{field}不能是 {text}；范围为 {range}";
    unreadable(text: Text, why: Message) "{text} can't be read: {why}" "无法解析 {text}：{why}";
    parser(why: Text) "{why}" "{why}";
    slip() "a part of it is empty or has no meaning" "其中一部分为空或没有意义";
    cron_form(daily: Text, quarterly: Text, weekdays: Text)
        "minute hour day month weekday: `{daily}` is daily at 3:00, `{quarterly}` every 15 minutes, `{weekdays}` on weekdays at 9:00"
        "分 时 日 月 星期：`{daily}` 为每天 3:00，`{quarterly}` 为每 15 分钟，`{weekdays}` 为工作日 9:00";
    no_zone(zone: Text) "there is no time zone {zone}" "没有时区 {zone}";
    zone_form(examples: Text) "an IANA name like {examples}" "IANA 名称，如 {examples}";
    cron_too_long(bytes: Count) "it has more than {bytes#byte}" "超过 {bytes} 字节";
    cron_fields(fields: Count) "it has {fields#field}, not 5 (or 6, with seconds first)" "有 {fields} 个字段，应为 5 个（或以秒开头的 6 个）";
    not_missed(text: Text, most: Count)
        "{text} is not a rule for missed fires; use latest, none, or all 10 (at most all {most})"
        "{text} 不是错过触发的规则；可用 latest、none 或 all 10（最多 all {most}）";
    end_before_start() "is not later than `start`" "不晚于 `start`";
    a_time_after(time: Text) "a time after {time}" "{time} 之后的时间";
    is_more_than(most: Text) "is more than {most}" "大于 {most}";
    less_than_period() "less than the time between two fires" "小于两次触发的间隔";
    no_period(period: Text) "{period} is not a period of a schedule" "{period} 不是计划的周期";
    period_form(least: Span, most: Span) "whole seconds, at least {least} and at most {most}" "整秒，至少 {least}，最多 {most}";
    no_placeholder(name: Text, names: Text, other: Text)
        "there is no placeholder {name}; there are {names}, and the same of {other}"
        "没有占位符 {name}；有 {names}，以及 {other} 的同样形式";
    did_you_mean(name: Text) "did you mean {name}?" "是否指 {name}？";
}
