//! Messages about settings: what a text should be, and which values contradict each other.

use crate::message::messages;
use crate::{Count, Message, Text};

messages! { "settings";
    not_expected(text: Text, expected: Message, examples: Text)
        "{text} is not {expected}; examples: {examples}"
        "{text} 不是{expected}；例如：{examples}";
    meant(text: Text, expected: Message, meant: Text, examples: Text)
        "{text} is not {expected}; did you mean {meant}? examples: {examples}"
        "{text} 不是{expected}；是否指 {meant}？例如：{examples}";
    other(expected: Text) "{expected}" "{expected}";
    fault(key: Text, what: Text, advice: Text) "{key}: {what}; try {advice}" "{key}：{what}；可改为 {advice}";
    span() "a span of time" "时长";
    rate() "a rate" "速率";
    rate_or_unlimited(unlimited: Text) "{unlimited} or a rate (whole items per time)" "{unlimited} 或速率（每段时间的整数条目数）";
    burst() "a span of time or a number of items above 0" "时长或大于 0 的条目数";
    number_or_auto(auto: Text) "{auto} or a number above 0" "{auto} 或大于 0 的数";
    span_or_auto(auto: Text) "{auto} or a span of time" "{auto} 或时长";
    backoff()
        "a back-off (first wait..longest wait, x factor of at least 1, jitter of 0 to 100 %)"
        "退避（首次等待..最长等待，x 至少为 1 的倍数，抖动 0 到 100 %）";
    on_exhausted() "a choice for exhausted items" "对用尽尝试的条目的处理方式";
    results() "a choice for responses" "对应答的处理方式";
    error_budget()
        "an error budget (a rate of failed attempts or auto, a number or share of failed items, or both)"
        "错误预算（失败尝试的速率或 auto，失败条目的数量或占比，或两者）";
    byte_size() "a size in bytes" "字节大小";
    share() "a percentage" "百分比";

    text_or_number() "a text or a number" "文本或数字";
    object() "an object" "对象";
    object_of_texts() "an object of texts" "文本对象";
    too_long(most: Count) "a setting has at most {most#character}" "设置最多 {most} 个字符";
    too_many_members(most: Count) "it has more than {most#member}" "成员超过 {most} 个";
    unknown(name: Text) "there is no setting {name}" "没有设置 {name}";

    above(least: Text) "it must be more than {least}" "必须大于 {least}";
    at_most(most: Text) "it must be at most {most}" "最多为 {most}";
    between(least: Text, most: Text) "it must be more than {least} and at most {most}" "必须大于 {least}，最多为 {most}";
    linger_too_long() "an item would wait for its batch longer than its call may take" "条目等待成批的时间会超过调用时限";
    window_too_small(window: Count, concurrency: Count)
        "{window#item} can't keep {concurrency} in flight"
        "{window} 个条目无法保持 {concurrency} 个在途";
    at_least_or(least: Count, auto: Text) "at least {least}, or {auto}" "至少 {least}，或 {auto}";
    at_least(least: Count) "at least {least}" "至少 {least}";
    window_below_batch(items: Count, batch: Count) "{items#item} can't fill a batch of {batch}" "{items} 个条目填不满一批 {batch} 个";
    concurrency_below_batch(items: Count, batch: Count)
        "{items#item} in flight can't fill a batch of {batch}"
        "{items} 个在途条目填不满一批 {batch} 个";
    burst_below_batch(items: Count, batch: Count) "{items#item} at once can't fill a batch of {batch}" "一次 {items} 个条目填不满一批 {batch} 个";
    ordered_concurrency(concurrency: Count) "an ordered task has one item in flight, not {concurrency}" "有序任务只有一个条目在途，不是 {concurrency}";
    ordered_batch(batch: Count) "an ordered task has one item per call, not {batch}" "有序任务每次调用一个条目，不是 {batch}";
}
