//! Faults of a stored checkpoint.

use crate::message::messages;
use crate::{Count, Text};

messages! { "checkpoint";
    cut_off() "the checkpoint is truncated" "检查点被截断";
    wrong_sum(found: Text, made: Text)
        "the checkpoint's checksum is {found}, but its bytes give {made}" "检查点的校验和是 {found}，按内容应为 {made}";
    wrong_mark(byte: Text) "the first byte is {byte}, a checkpoint starts with 0xb7" "首字节是 {byte}，检查点以 0xb7 开头";
    wrong_version(version: Text)
        "the checkpoint has version {version}; this program reads version 1" "检查点版本为 {version}；本程序只读版本 1";
    wrong_encoding(encoding: Text)
        "the checkpoint has encoding {encoding}; 0, 1 and 2 are known" "检查点编码为 {encoding}；已知 0、1、2";
    wrong_flags(flags: Text) "the checkpoint has flags {flags}; none are known" "检查点带有未知标志 {flags}";
    wrong_watermark(found: Text, expected: Text)
        "the checkpoint was written for watermark {found}, the row says {expected}" "检查点属于 {found}，记录却是 {expected}";
    wrong_span(span: Text)
        "the checkpoint has a span of {span}; it is 1 to 1048576, and 0 only for an empty set"
        "检查点跨度为 {span}；应为 1 到 1048576，只有空集为 0";
    long_number() "a number in the checkpoint has too many bytes" "检查点中的数字字节过多";
    bitmap_end() "the checkpoint's bitmap doesn't end at its span" "检查点的位图没有止于其跨度";
    runs_end() "the checkpoint's runs don't end at its span" "检查点的区段没有止于其跨度";
    wrong_extension() "its extension can't be read" "其扩展部分无法读取";
    bytes_left(bytes: Count) "the checkpoint has {bytes#byte} too many" "检查点多出 {bytes} 字节";
}
