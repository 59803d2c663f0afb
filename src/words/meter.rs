//! Messages about limits in units, and about the expressions that say what a call costs.

use crate::message::messages;
use crate::{Count, Message, Text};

/// Examples of limits, for the error of a text that is none.
pub const LIMIT_EXAMPLES: &str = "\"300/min\", \"90k tokens/min\", \"2000/day Europe/Berlin\", \"500 eur/month\", \"5 eur\", \"20 at once\"";

messages! { "meter";
    limit()
        "a limit (an amount, a unit, a span), or the name of one"
        "限额（数量、单位、时段）或限额名称";
    limit_amount(thousand: Text, million: Text)
        "a limit: its amount is a number above 0 with at most 9 decimals, with {thousand} or {million} for thousands or millions"
        "限额：数量须为大于 0 的数，最多 9 位小数，{thousand} 表示千，{million} 表示百万";
    limit_unit()
        "a limit: a unit has lower-case letters, digits and underscores, and begins with a letter"
        "限额：单位由小写字母、数字和下划线组成，以字母开头";
    limit_span()
        "a limit: a span is at most a minute (paced evenly), or an hour, day, week or month of the calendar"
        "限额：时段最长一分钟（均匀放行），或为日历上的小时、日、周、月";
    limit_zone() "a limit: only an hour, day, week or month has a time zone" "限额：只有小时、日、周、月可以带时区";
    limit_no_zone() "a limit: the time zone has an IANA name" "限额：时区须为 IANA 名称";

    expression(position: Count, what: Message, why: Message)
        "at character {position}: {what}; {why}"
        "第 {position} 个字符：{what}；{why}";
    too_long() "the expression is too long" "表达式过长";
    bytes_most(most: Count) "it has at most {most#byte}" "最多 {most} 字节";
    too_many_nodes() "the expression has too many parts" "表达式的组成部分过多";
    nodes_most(most: Count) "numbers, references and operators are at most {most}" "最多 {most} 个数、引用和运算符";
    too_deep() "the expression is nested too deeply" "表达式嵌套过深";
    depth_most(most: Count) "parentheses and functions go {most#level} deep" "括号和函数最多 {most} 层";
    ends() "the expression ends" "表达式到此结束";
    unexpected(text: Text) "{text} has no place here" "{text} 不能出现在这里";
    wants_value(examples: Text) "a value comes here, such as {examples}" "此处应为值，如 {examples}";
    wants_operator(operators: Text) "an operator comes here: {operators}" "此处应为运算符：{operators}";
    wants_close() "a parenthesis is still open" "括号未闭合";
    wants_comma(function: Text) "{function} takes two values or more, with commas between them" "{function} 需要两个或更多的值，以逗号分隔";
    no_negative(example: Text) "a sign needs a value before it, as in {example}" "正负号前须有值，如 {example}";
    wants_open(function: Text) "{function} takes its values in parentheses" "{function} 的值写在括号内";
    no_number(text: Text) "{text} is no number" "{text} 不是数";
    number_form(examples: Text) "a number has at most 9 decimals, as in {examples}" "数最多 9 位小数，如 {examples}";
    unclosed() "a brace is never closed" "花括号未闭合";
    wants_brace(close: Text) "a reference ends with {close}" "引用以 {close} 结尾";
    no_reference(text: Text) "{text} names nothing" "{text} 没有指向任何值";
    bare_column(example: Text) "a column needs a measure, as in {example}" "列须带度量，如 {example}";
    reference_forms(examples: Text) "the forms are {examples}" "可用形式为 {examples}";
    not_before() "the answer isn't known before the call" "调用之前没有应答";
    only_meters() "a price is made of meters and numbers" "价格只由计量和数组成";
    own_price(unit: Text) "the price of {unit} can't depend on {unit}" "{unit} 的价格不能取决于 {unit}";
    not_linear() "a price must be the same for a sum of calls as for each of them" "价格对多次调用之和与对每次调用须一致";
    linear_form() "numbers times meters, added up" "数乘以计量，再相加";
    no_name() "the expression has no meter" "表达式没有计量名称";
    name_form(example: Text) "the name of a meter and `=` come first, as in {example}" "须先写计量名称和 `=`，如 {example}";
    built_in(unit: Text) "{unit} are counted by themselves" "{unit} 自动计数";

    many_limits(most: Count) "a task has at most {most#limit}" "一个任务最多 {most} 个限额";
    many_units(most: Count) "a task counts at most {most#unit} beside calls and items" "一个任务最多计 {most} 种单位（calls 和 items 除外）";
    no_at_once(limit: Text)
        "{limit}: named limits have no amounts at once; bound what is in flight with `concurrency`"
        "{limit}：命名限额没有“同时”限额；请用 `concurrency` 限制处理中的数量";
    unmeasured(limit: Text, unit: Text)
        "the limit {limit} reads the cost in {unit} from responses, and a program has none"
        "限额 {limit} 从应答中读取 {unit} 的费用，而程序没有应答";
    unmeasured_advice() "give the limit a `cost`, or use a handler with a URL" "为限额设置 `cost`，或使用带 URL 的处理程序";
    named_here(name: Text) "{name} is a named limit; it belongs to the task's limits" "{name} 是命名限额，应写在任务的 limits 中";
    no_cost(unit: Text)
        "nothing says what a call costs in {unit}: add a cost, a cost_from or a price of it"
        "没有说明一次调用的 {unit} 费用：请添加 cost、cost_from 或 price";
    priced_twice(unit: Text) "{unit} has a price and a cost of its own; keep one of them" "{unit} 既有价格又有自己的费用；请只保留其一";
    price_of_nothing(unit: Text, of: Text)
        "the price of {unit} is made of {of}, which nothing counts: add a cost or a cost_from of {of}"
        "{unit} 的价格由 {of} 构成，但没有对它计数：请添加 {of} 的 cost 或 cost_from";
    given_twice(unit: Text) "{unit} is given twice" "{unit} 给了两次";
    limited_twice(limit: Text) "{limit}: another limit of the same kind has this unit" "{limit}：该单位已有同类限额";

    cost_missing(unit: Text)
        "more than 1 % of the responses don't say their cost in {unit}; their estimates count, as unsure"
        "超过 1 % 的响应未说明 {unit} 费用；按预估计入，标为不确定";
    usual_place(unit: Text, place: Text)
        "the {unit} of a call are read from its response: {place}"
        "每次调用的 {unit} 从其响应读取：{place}";

    value_missing(reference: Text) "the cost can't be computed: {reference} is missing" "无法计算费用：缺少 {reference}";
    value_no_number(reference: Text, value: Text) "the cost can't be computed: {reference} is {value}, not a number" "无法计算费用：{reference} 为 {value}，不是数";
    value_by_zero() "the cost can't be computed: a division by 0" "无法计算费用：除以 0";
    value_negative() "the cost is below 0" "费用小于 0";
    value_too_large() "the cost is too large to be counted" "费用过大，无法计数";
}
