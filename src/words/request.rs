//! Messages about requests, programs and their templates.

use crate::message::messages;
use crate::{Count, Message, Text};

messages! { "request";
    no_pointer(text: Text) "{text} is not a JSON pointer: write ~ as ~0, and / in a name as ~1" "{text} 不是 JSON 指针：~ 写作 ~0，名称中的 / 写作 ~1";
    not_only(what: Message, only: Text, example: Text)
        "{only} is the only value of an item's data, but the data is {what}; name a column: {example}"
        "{only} 表示条目数据的唯一值，但数据是{what}；请指明列：{example}";
    a_list() "a list" "列表";
    not_json() "not JSON" "非 JSON";
    object_of(members: Count) "an object with {members#member}" "含 {members} 个成员的对象";
    member_missing(name: Text) "{name} is missing in the item's data" "条目数据中缺少 {name}";

    other_type(content_type: Text)
        "the body is not {content_type}, which content-type names; change one of them"
        "正文不是 content-type 所说的 {content_type}；请更改其一";
    json_as_text()
        "content-type says JSON; give the body as `json`, so that values are written as JSON"
        "content-type 为 JSON；请用 `json` 给出正文，使值按 JSON 写入";
    unknown_escapes(content_type: Text)
        "Windrow doesn't know how a value is escaped in {content_type}; use JSON, a form, XML or text/plain, or a handler of your own"
        "Windrow 不知道 {content_type} 中的值如何转义；请用 JSON、表单、XML 或 text/plain，或自己的处理器";

    not_json_filled(why: Text, value: Text, quoted: Text)
        "with values filled in, it is not JSON: {why}. A placeholder stands for a whole value, {value}, or inside quotes, {quoted}"
        "填入值后不是 JSON：{why}。占位符代表整个值 {value}，或在引号内 {quoted}";
    no_parameter(name: Text) "the task has no parameter {name}" "任务没有参数 {name}";
    no_secret(name: Text) "there is no secret {name}" "没有密钥 {name}";
    not_bound(name: Text) "{name} has no value yet" "{name} 尚无值";
    header_control() "it has a control character, which no header may have" "含有标头不允许的控制字符";
    text_nul() "it has a NUL character, which can't be passed to a program" "含有 NUL 字符，无法传给程序";
    public_argument(placeholder: Text)
        "{placeholder} can't be an argument, because every user of the machine sees arguments; pass it in an environment variable"
        "{placeholder} 不能作为参数，因为机器上的所有用户都能看到参数；请用环境变量传递";

    secret_missing(name: Text, placeholder: Text)
        "the secret {name} of {placeholder} is not set"
        "{placeholder} 用到的密钥 {name} 没有设置";
    secret_unused(name: Text, placeholder: Text)
        "nothing uses the secret {name}: the request has no {placeholder}"
        "没有用到密钥 {name}：请求中没有 {placeholder}";
    in_header(name: Text, why: Message) "header {name}: {why}" "标头 {name}：{why}";
    too_long(bytes: Count) "it is longer than {bytes#byte}" "超过 {bytes} 字节";
    too_many_headers(most: Count) "there are more than {most#header}" "标头超过 {most} 个";
    header_name(name: Text) "{name} is not the name of a header" "{name} 不是标头名";
    header_reserved(name: Text) "the header {name} can't be set, because Windrow sets it; remove it" "标头 {name} 由 Windrow 设置；请删除";
    header_twice(name: Text) "the header {name} is set twice; remove one" "标头 {name} 设置了两次；请删除一个";
    two_bodies(first: Text) "a request has one body, and `{first}` gives it already" "请求只有一个正文，`{first}` 已给出";
    status_twice(status: Count) "status {status} has two meanings; keep one" "状态码 {status} 有两种含义；请保留一种";
    no_method(example: Text) "it has no method; an example is {example}" "缺少方法；例如 {example}";
    no_url(example: Text) "it has no URL; an example is {example}" "缺少 URL；例如 {example}";
    bad_method(method: Text, example: Text) "{method} is not a method; an example is {example}" "{method} 不是方法；例如 {example}";
    near_method(method: Text, meant: Text) "{method} is not a method; did you mean {meant}?" "{method} 不是方法；是否指 {meant}？";
    useless_method(method: Text) "{method} requests no work; use POST, PUT, GET …" "{method} 不请求任何工作；请用 POST、PUT、GET …";

    placeholder_control(inside: Text) "the placeholder {inside} has a control character" "占位符 {inside} 含有控制字符";
    unclosed_brace(at: Text, brace: Text, escape: Text)
        "at {at}: unclosed {brace}; write {escape} for a literal brace"
        "在 {at} 处：{brace} 没有闭合；花括号本身写作 {escape}";
    stray_brace(at: Text, brace: Text, escape: Text, example: Text)
        "at {at}: {brace} is not part of a placeholder like {example}; write {escape} for a literal brace"
        "在 {at} 处：{brace} 不属于 {example} 这样的占位符；花括号本身写作 {escape}";

    no_scheme(url: Text) "{url} begins with neither http:// nor https://" "{url} 不以 http:// 或 https:// 开头";
    fixed_host(authority: Text)
        "{authority}: a placeholder can't be in the scheme, user, host or port of a URL, because items must not choose the host; run one job per host"
        "{authority}：占位符不能在 URL 的协议、用户、主机或端口中，因为条目不得选择主机；请为每个主机运行一个作业";
    has_fragment() "it has a fragment (#…), which is never sent; write # as %23" "含有不会发送的片段 (#…)；# 写作 %23";
    bad_segment(segment: Text) "a segment of the URL's path would be {segment}, which leads elsewhere" "URL 路径的一段会是 {segment}，指向别处";
    has_control(character: Text) "it has the control character {character}" "含有控制字符 {character}";
    bad_percent() "a % needs two hexadecimal digits after it; write %25 for the character itself" "% 后须有两个十六进制数字；字符本身写作 %25";

    of_member(name: Text) "{name} in the item's data" "条目数据中 {name} ";
    of_only() "the only value of the item's data" "条目数据的唯一值";
    of_index() "the index" "序号";
    of_key() "the key" "条目键";
    of_attempt() "the attempt" "尝试次数";
    of_parameter(name: Text) "the parameter {name}" "参数 {name} ";
    of_secret(name: Text) "the secret {name}" "密钥 {name} ";
    of_variable(name: Text) "{name}" "{name} ";
    value_is(whose: Message, what: Message) "{whose} {what}" "{whose}的值{what}";
    lone_surrogate(range: Text) "has a lone surrogate ({range}), which no text can have" "含有单独的代理项（{range}），文本中不允许";
    has_nul() "has a NUL character, which can't be passed to a program" "含有 NUL 字符，无法传给程序";
    not_in_header(character: Text) "has the character {character}, which no header may have" "含有标头不允许的字符 {character}";
    ends_quotes(character: Text) "has the character {character}, which would end or escape the quotes around it" "含有会结束引号或转义的字符 {character}";
    not_in_cookie(character: Text) "has the character {character}, which no cookie's value may have" "含有 cookie 值不允许的字符 {character}";
    not_in_xml(character: Text) "has the character {character}, which no XML may have" "含有 XML 不允许的字符 {character}";
    is_null() "is null" "是 null";
    is_composite(conversion: Text) "is an object or a list; {conversion} writes its JSON" "是对象或列表；{conversion} 写出其 JSON";
    is_no_number() "is not a number" "不是数字";
    is_no_boolean() "is neither true nor false" "既非 true 也非 false";
    is_no_boolean_text() "is neither true nor false, 1 nor 0" "既非 true 或 false，也非 1 或 0";
    is_no_json() "is not JSON" "不是 JSON";
    is_missing() "is missing in the item's data" "在条目数据中缺失";
    is_ambiguous() "is the name of several columns" "对应多个列";
    is_option(prefixes: Text, joined: Text)
        "would begin an argument with \"-\" and be taken for an option; put {prefixes} before it, join it to a flag ({joined}), or allow dashes"
        "会使参数以 \"-\" 开头，像选项一样；请在其前加 {prefixes}，与选项相连（{joined}），或允许 -";

    slot_in_xml(place: Message)
        "a placeholder is {place}, where it can't be escaped; put it into the text of an element or between the quotes of an attribute"
        "占位符在{place}，无法转义；请放到元素的文本或属性的引号内";
    in_reference() "in a reference (&…;)" "引用 (&…;) 中";
    in_tag() "in a tag, outside a quoted value" "标签中、引号之外";
    in_comment() "in a comment" "注释中";
    in_cdata() "in CDATA" "CDATA 中";
    in_instruction() "in a processing instruction" "处理指令中";
    in_declaration() "in a declaration" "声明中";
    open_xml() "it ends within a tag, a comment or CDATA, so it is not XML" "在标签、注释或 CDATA 中结束，不是 XML";

    no_program() "it names no program" "没有指定程序";
    program_varies(program: Text) "the program {program} has a placeholder; only its arguments may have one" "程序 {program} 含有占位符；只有参数可以有";
    wrong_argument(argument: Text, why: Message) "{argument}: {why}" "参数 {argument}：{why}";
    not_only_column(only: Text, columns: Count) "{only} is the only value of a row, and here are {columns#column}" "{only} 表示行的唯一值，这里有 {columns} 列";
    no_column(placeholder: Text) "there is no column for {placeholder}" "没有与 {placeholder} 对应的列";
    from_zero(index: Text) "{index}, which counts from 0" "{index}，从 0 开始";
    named_columns(column: Text) "columns by their names: {column}" "按名称引用列：{column}";
    in_shell(shell: Text, text: Text) "{shell}, where that is {text}" "{shell}，其中写作 {text}";
    without_data(names: Text) "these items have no data; use {names}" "这些条目没有数据；请用 {names}";
    among_columns(names: Text, open: Text, close: Text) "one of {names}, or {open} and {close} for braces that are text" "{names} 之一；花括号本身写作 {open} 和 {close}";
    among_variables(names: Text) "one of {names}" "{names} 之一";
    not_in_shell(placeholder: Text) "{placeholder} can't be in the text of a shell: values are variables there" "{placeholder} 不能出现在 shell 文本中：那里的值是变量";
}
