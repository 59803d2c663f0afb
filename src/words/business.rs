//! Messages about businesses, their datasets, their limits and the names that people give.

use crate::message::messages;
use crate::{Count, Message, Text};

messages! { "business";
    no_statuses(text: Text, advice: Message) "{text} is not a list of statuses from 200 to 599; {advice}" "{text} 不是 200 到 599 的状态码列表；{advice}";
    did_you_mean(meant: Text) "did you mean {meant}?" "是否指 {meant}？";
    statuses_example(one: Text, more: Text) "one looks like {one} or {more}" "例如 {one} 或 {more}";
    no_network(text: Text, example: Text) "{text} is not a network; one looks like {example}" "{text} 不是网络；例如 {example}";
    own_limit(business: Text) "the limit of {business}" "{business} 的限额";
    named_limit(limit: Text) "the limit {limit}" "限额 {limit}";

    publish_if(good: Count, items: Count, condition: Text)
        "{good} of {items#item} succeeded; publish_if is {condition}"
        "{items} 个条目中成功 {good} 个；publish_if 为 {condition}";
    no_publish_if() "must be all, any, or a percentage above 0% and up to 100% with at most two decimals" "须为 all、any，或大于 0% 且不超过 100%、最多两位小数的百分比";
    no_reduce() "must be none, hook, or command:NAME with a command of the node's configuration" "须为 none、hook，或 command:NAME（节点配置中的命令）";
    superseded(generation: Count) "generation {generation} was published before" "第 {generation} 代已先发布";
    summary_empty() "the response is empty; a summary is JSON" "应答为空；摘要须为 JSON";
    summary_not_json(why: Text) "the response is not JSON: {why}" "应答不是 JSON：{why}";
    summary_too_large(bytes: Count) "the response is longer than {bytes#byte}, the most that a summary may have" "应答超过摘要的上限 {bytes} 字节";

    name_control(code: Text) "has {code}, a control character" "含有控制字符 {code}";
    name_invisible(code: Text) "has {code}, which is invisible" "含有不可见字符 {code}";
    name_like_ascii(code: Text) "has {code}, which looks like an ASCII character" "含有与 ASCII 字符相似的 {code}";
    name_mixed() "mixes letters of several scripts, or has letters that look like others" "混用多种文字的字母，或含有相似字母";
}
