//! Messages of the stores: databases, Redis, shared folders.

use std::time::Duration as Span;

use crate::message::messages;
use crate::{Count, Message, Text};

messages! { "store";
    damaged(found: Text, column: Text) "the database holds {found} as {column}; restore it from a backup" "数据库的 {column} 为 {found}；请从备份恢复";
    other_folder(setting: Text, folder: Text, file: Text)
        "{setting} {folder} is not the folder of this store. Check that it is mounted and the same on every node; its file {file} names the owner"
        "{setting} {folder} 不是此存储的文件夹。请确认已挂载且各节点相同；其中的 {file} 写明了所属";
    folder_unusable(setting: Text, folder: Text, why: Text) "{setting} {folder} can't be used: {why}" "{setting} {folder} 不可用：{why}";
    folder_unusable_now(setting: Text, folder: Text, why: Text) "{setting} {folder} can't be used now: {why}" "{setting} {folder} 暂不可用：{why}";
    not_packed(why: Text) "results can't be packed: {why}" "结果无法打包：{why}";
    no_hook_task() "its task is being deleted, or a newer program left it" "其任务正在被删除，或由更新的程序留下";
    line_without_index() "a line has no index" "有一行没有序号";

    redis(whom: Text, what: Message) "Redis at {whom} {what}" "位于 {whom} 的 Redis {what}";
    redis_replica() "is a replica and takes no writes; its master is looked for" "是只读副本；正在寻找主节点";
    redis_no_password(section: Text) "requires a password; check {section}.redis_password_file" "需要密码；请检查 {section}.redis_password_file";
    redis_wrong_password(section: Text)
        "refused the password; check {section}.redis_password_file and the user in {section}.redis_url"
        "拒绝了密码；请检查 {section}.redis_password_file 和 {section}.redis_url 中的用户";
    redis_no_permission(section: Text, uses: Message, why: Text)
        "doesn't let the user of {section}.redis_url do what {uses} need (docs/operations.md): {why}"
        "不允许 {section}.redis_url 的用户执行{uses}所需的命令（docs/operations.md）：{why}";
    redis_loading() "is loading its data" "正在加载数据";
    redis_out_of_memory() "is out of memory (maxmemory)" "内存不足 (maxmemory)";
    redis_disk() "refuses writes because it can't save to its disk" "因无法存盘而拒绝写入";
    redis_no_replicas() "refuses writes because it has too few replicas (min-replicas-to-write)" "因副本过少而拒绝写入 (min-replicas-to-write)";
    redis_cluster_down() "is part of a cluster that is down" "所在的集群不可用";
    redis_no_master() "is a replica without a master" "是没有主节点的副本";
    redis_moving() "is moving the keys to another server of its cluster" "正在把键迁移到集群的另一台服务器";
    redis_moved() "redirected the call to another server of its cluster, which redirected it again" "把调用重定向到集群的另一台服务器，后者又再次重定向";
    redis_busy() "is busy with a script of another client" "正忙于其他客户端的脚本";
    redis_protected() "is in protected mode and takes only local connections" "处于保护模式，只接受本机连接";
    redis_no_database(section: Text) "doesn't have the database that {section}.redis_url names" "没有 {section}.redis_url 指定的数据库";
    redis_no_room() "has no room for another connection (maxclients)" "连接数已满 (maxclients)";
    redis_late() "did not answer in time" "没有及时应答";
    redis_closed() "takes no connections" "不接受连接";
    redis_unreachable(why: Text) "can't be reached: {why}" "不可达：{why}";
    redis_refused(why: Text) "refused: {why}" "拒绝：{why}";
    uses_cluster() "leases and hints" "租约和提示";
    uses_readers() "copies of datasets" "数据集副本";
    redis_no_answer() "Redis did not answer in time" "Redis 没有及时应答";
    redis_ended(why: Text) "the call to Redis ended: {why}" "对 Redis 的调用中断：{why}";
    redis_strange() "Redis returned an unexpected answer to a script" "Redis 对脚本的应答不符合预期";
    redis_hangup() "the connection was closed" "连接已关闭";
    redis_dead() "the connection is dead" "连接已失效";
    redis_other_end() "the other end" "对端";
    no_sentinel(section: Text) "{section}.redis_url names no Sentinel" "{section}.redis_url 没有指定 Sentinel";
    no_master(whom: Text, master: Text, section: Text)
        "Redis at {whom} knows no master {master}; check {section}.redis_url"
        "Redis {whom} 不知道主节点 {master}；请检查 {section}.redis_url";
    unreadable(key: Text, file: Text, why: Text) "{key}: {file} can't be read: {why}" "{key}：无法读取 {file}：{why}";
    no_driver() "this program is built without the driver for this database" "此程序未包含该数据库的驱动";
    this_node() "this node takes" "本节点需要";
    bad_setting(key: Text, why: Text) "{key}: {why}" "设置 {key}：{why}";
    copy_lost() "Redis lost a part of the copy while it was made; it is made again" "制作副本期间 Redis 丢失了一部分；正在重做";
    copy_ahead(newest: Text, own: Count)
        "readers already see publication {newest}, later than {own} of the database. If the database was restored, delete the dataset's keys in Redis"
        "读者已看到发布 {newest}，晚于数据库的 {own}。如果数据库是恢复的，请删除 Redis 中该数据集的键";
    later_one() "a later one" "更晚的一次";

    no_store_id() "the database has no store id" "数据库没有存储标识";
    place_not_noted(setting: Text) "the place of {setting} could not be saved" "无法保存 {setting} 的位置";
    restored() "the database was restored from a backup" "数据库从备份恢复";
    not_sealed(task: Text, why: Text) "{task} can't be sealed: {why}" "{task} 无法封存：{why}";
    not_paused(schedule: Text, why: Text) "schedule {schedule} can't be paused: {why}" "计划 {schedule} 无法暂停：{why}";
    no_key() "the store was opened without the node's key" "打开存储时没有节点密钥";
    no_key_for_token()
        "the store was opened without the node's key, which seals the token of a prepare hook"
        "打开存储时没有节点密钥，无法封装准备钩子的令牌";
    token_revoked() "the token was revoked at the same time" "令牌同时被吊销";
    no_business(business: Text) "there is no business {business}" "没有业务 {business}";
    no_task(task: Text) "there is no task {task}" "没有任务 {task}";
    no_shard(shard: Text) "there is no shard {shard}" "没有分片 {shard}";
    changed_meanwhile(what: Text) "{what} was changed at the same time" "{what} 同时被更改";
    shard_changed(task: Text) "a shard of {task} was changed" "{task} 的一个分片被更改";
    dataset_gone(dataset: Text) "the dataset {dataset} is gone" "数据集 {dataset} 已不存在";
    dataset_deleted() "the dataset was deleted" "数据集已删除";
    deleting() "it is being deleted, so its data is incomplete" "正在删除，数据不完整";
    no_answer_within(limit: Span) "the database did not answer within {limit}" "数据库在 {limit} 内没有应答";
    no_counter(table: Text) "the database returned no counter of {table}" "数据库没有返回 {table} 的计数";
    no_time() "the database returned no time" "数据库没有返回时间";
    no_settings() "the database returned no settings" "数据库没有返回设置";
    no_answer() "no answer in time" "没有及时应答";
    migrating() "another node is migrating the schema" "另一节点正在升级表结构";
    database_unusable(file: Text, why: Message, advice: Message) "can't use the database {file}: {why}; {advice}" "无法使用数据库 {file}：{why}；{advice}";
    cant_open(file: Text, why: Text) "can't open the database {file}: {why}" "无法打开数据库 {file}：{why}";
    half_restored(marker: Text, file: Text) "{marker}, {file} is there" "恢复被中断，{file} 存在 ({marker})";
    by_system(why: Text) "{why}" "{why}";
    is_directory() "it is a directory" "是目录";
    is_read_only() "it is read-only" "是只读的";
    restore_again() "restore it again" "请再次恢复";
    name_a_file() "name a file" "请指定文件";
    make_writable() "make it writable or use another state directory" "请改为可写，或使用其他状态目录";
    check_path() "check the path and its permissions" "请检查路径及其权限";

    rule_business() "every task has its business" "每个任务都有业务";
    rule_task() "every shard has its task" "每个分片都有任务";
    rule_cover() "the shards of a task cover its items" "任务的分片覆盖其条目";
    rule_watermark() "watermark lies within its shard" "水位在分片之内";
    rule_counts() "no shard counts more items than it has" "分片的计数不超过其条目";
    rule_settled() "a finished task has settled every item" "已完成的任务了结了所有条目";
    rule_run() "every run has its shard" "每次运行都有分片";
    rule_days() "the days of a shard add up" "分片的每日合计相符";
    rule_pages() "pages and indexes are sound" "页和索引完好";
    rule_references() "references lead somewhere" "引用都有目标";
    rule_triggers() "nothing acts by itself" "没有自行动作的对象";
    utf8_only() "SQLite writes only to file names in UTF-8" "SQLite 只写入 UTF-8 文件名";
    copy_schema() "the copy has another schema" "副本的表结构不同";
    copy_damaged(why: Text) "the copy is damaged: {why}" "副本已损坏：{why}";
    stranger(kind: Text, name: Text) "a {kind} that isn't Windrow's: {name}" "不属于 Windrow 的 {kind}：{name}";
    dangling(table: Text, parent: Text) "a row of {table} refers to a row of {parent} that doesn't exist" "{table} 的一行引用了 {parent} 中不存在的行";
    broken(one: Text) "not so for {one}" "{one} 不符";
    broken_more(one: Text, more: Count) "not so for {one} and {more} more" "{one} 等 {more} 个以上不符";
    exists(file: Text) "{file} already exists" "{file} 已存在";
    not_written(file: Text, why: Text) "{file} can't be written: {why}" "无法写入 {file}：{why}";

    lines_kept(removed: Count, wanted: Count) "only {removed} of {wanted#line} could be removed" "{wanted} 行中只删除了 {removed} 行";
    too_many_indexes(count: Count, most: Count) "{count} indexes at once; at most {most}" "一次 {count} 个序号；最多 {most}";
    too_many_checkpoints(count: Count, most: Count) "{count#checkpoint} at once; at most {most}" "一次 {count} 个检查点；最多 {most}";
    answers(count: Count, wanted: Count) "the database gave {count#answer} instead of {wanted}" "数据库给出 {count} 个应答，应为 {wanted}";
    results_in_folder()
        "the results of this store are in a folder; set results.location as its other nodes have it"
        "此存储的结果在文件夹中；请与其他节点一样设置 results.location";
    segment(no: Text, epoch: Text, shard: Text, why: Text) "segment {no} of run epoch {epoch} of {shard}: {why}" "{shard} 运行纪元 {epoch} 的段 {no}：{why}";
    crowded() "too many tasks of the schedule were about to be made" "计划有太多任务待创建";
    superseded() "a newer fire took its place" "被更新的触发取代";
    rearmed() "its next fire was set by a database clock that was ahead; it was computed again" "下次触发是由超前的数据库时钟设定的；已重新计算";
    too_many_parts() "too many parts" "部分过多";
    upload_not_open(upload: Text) "{upload} isn't open, or isn't complete" "{upload} 未打开或不完整";
}
