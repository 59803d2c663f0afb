//! Messages of the engine: what its ports refuse, why runs end and tasks wait, the activity of its actors.

use std::time::Duration as Span;

use crate::message::messages;
use crate::{Count, Message, Text};

messages! { "engine";
    store_unavailable(why: Text) "store unavailable: {why}" "存储不可用：{why}";
    store_refused(why: Text) "store refused: {why}" "存储拒绝：{why}";
    newer_schema(migration: Text)
        "the database was written by a newer windrow (migration {migration}); this one can't read it"
        "数据库由更新版本的 windrow 写入（迁移 {migration}）；本版本无法读取";
    older_schema(command: Text, setting: Text)
        "the database's schema is older than this program; migrate it with `{command}`, or set {setting}"
        "数据库的表结构比本程序旧；请用 `{command}` 升级，或设置 {setting}";
    no_schedule(schedule: Text) "there is no schedule {schedule}" "没有定时计划 {schedule}";
    no_business(business: Text) "there is no business {business}" "没有业务 {business}";
    no_limit(limit: Text) "there is no limit {limit}" "没有限额 {limit}";
    no_task(task: Text) "there is no task {task}" "没有任务 {task}";
    no_node(node: Text) "there is no live node {node}" "没有在线的节点 {node}";
    no_shard(shard: Text) "there is no shard {shard}" "没有分片 {shard}";
    no_dataset(dataset: Text) "there is no dataset {dataset}" "没有数据集 {dataset}";
    no_generation(dataset: Text, generation: Text) "the dataset {dataset} has no published generation {generation}" "数据集 {dataset} 没有已发布的第 {generation} 代";
    schedule_exists(schedule: Text) "the schedule {schedule} already exists" "定时计划 {schedule} 已存在";
    limit_exists(limit: Text) "the limit {limit} already exists" "限额 {limit} 已存在";
    business_exists(business: Text) "the business {business} already exists" "业务 {business} 已存在";
    schedule_changed(found: Text, expected: Text) "the schedule was changed: it has revision {found}, not {expected}" "定时计划已更改：修订号为 {found}，不是 {expected}";
    limit_changed(found: Text, expected: Text) "the limit was changed: it has revision {found}, not {expected}" "限额已更改：修订号为 {found}，不是 {expected}";
    business_changed(found: Text, expected: Text) "the business was changed: it has revision {found}, not {expected}" "业务已更改：修订号为 {found}，不是 {expected}";
    task_changed(found: Text, expected: Text) "the task was changed: it has version {found}, not {expected}" "任务已更改：版本为 {found}，不是 {expected}";
    dataset_changed(found: Text, expected: Text) "the dataset was changed: it has version {found}, not {expected}" "数据集已更改：版本为 {found}，不是 {expected}";
    limit_in_use(limit: Text) "the limit {limit} is in use" "限额 {limit} 正在使用";
    schedules_full(business: Text, most: Count) "{business} has {most#schedule}, the most that a business may have" "{business} 已有 {most} 个定时计划，达到上限";
    fires_full(waiting: Count, most: Count) "{waiting#fire} of the schedule {waiting?waits|wait} already; at most {most} may wait" "计划已有 {waiting} 次触发在等待；最多 {most} 次";
    fire_not_open(time: Text) "the schedule has no fire at {time} that waits, or whose task is being made" "计划在 {time} 没有等待中或正在建任务的触发";
    running_task(task: Text, schedule: Text, overlap: Text) "{task} of {schedule} has not ended, and its overlap setting is `{overlap}`" "{schedule} 的 {task} 尚未结束，且计划设定 overlap = {overlap}";
    running_task_fires(task: Text, schedule: Text, waiting: Count, overlap: Text)
        "{task} of {schedule} has not ended, {waiting#fire} {waiting?waits|wait} already, and its overlap setting is `{overlap}`"
        "{schedule} 的 {task} 尚未结束，已有 {waiting} 次触发在等待，且计划设定 overlap = {overlap}";
    coming_task(schedule: Text, overlap: Text) "a task of {schedule} is still to be made, and its overlap setting is `{overlap}`" "{schedule} 的一个任务尚待创建，且计划设定 overlap = {overlap}";
    coming_task_fires(schedule: Text, waiting: Count, overlap: Text)
        "a task of {schedule} is still to be made, {waiting#fire} {waiting?waits|wait} already, and its overlap setting is `{overlap}`"
        "{schedule} 的一个任务尚待创建，已有 {waiting} 次触发在等待，且计划设定 overlap = {overlap}";
    given_up(tries: Count)
        "given up after {tries} tries: each time the node ended while it made the task, or couldn't continue"
        "尝试 {tries} 次后放弃：每次节点都在建任务时结束或无法继续";
    given_up_after(tries: Count, before: Text)
        "given up after {tries} tries: the node ended while it made the task, or couldn't continue; an earlier try: {before}"
        "尝试 {tries} 次后放弃：节点在建任务时结束或无法继续；之前的一次：{before}";
    skipped_why(task: Text, status: Text, why: Text) "{task} of the schedule had not ended; it is {status}: {why}" "计划的 {task} 尚未结束，处于 {status}：{why}";
    skipped_for(task: Text, status: Text) "{task} of the schedule had not ended; it is {status}" "计划的 {task} 尚未结束，处于 {status}";
    skipped_for_coming() "a task of the schedule was still to be made" "计划的一个任务尚待创建";
    skipped_by(who: Text) "given up by {who}" "由 {who} 放弃";
    skipped_by_after(who: Text, before: Text) "given up by {who}; an earlier try: {before}" "由 {who} 放弃；之前的一次：{before}";
    publishes_nothing(later: Text)
        "it publishes nothing, because the later fire of {later} made its task first"
        "不发布，因为更晚的触发 {later} 已先建任务";
    bug(why: Text) "a bug of Windrow: {why}" "Windrow 的缺陷：{why}";
    bug_of_fire() "a bug of Windrow; please report it with the log of the node that tried" "Windrow 的缺陷；请连同尝试节点的日志一起报告";
    fire_over() "the fire needs no task any more" "该触发不再需要任务";
    source_late(limit: Span) "its source was not read within {limit}" "{limit} 内没有读完来源";
    newer_fire() "a newer fire of its schedule takes its place" "被计划的更新触发取代";

    node_drains(node: Text) "the node {node} drains and takes no tasks; undrain it, or name another node" "节点 {node} 正在排空，不接收任务；请恢复接单或指定其他节点";
    not_running(what: Text) "{what} runs on no node now; only what runs can be moved" "{what} 现在没有运行；只能移动运行中的";
    already_there(what: Text, node: Text) "{what} is already on the node {node}" "{what} 已在节点 {node}";
    has_redrive(task: Text) "its redrive {task} has not ended" "其重做 {task} 尚未结束";
    not_archived(why: Text) "it can't be archived, so it is kept: {why}" "无法归档，因此保留：{why}";
    name_taken(name: Text, task: Text) "the name {name} is taken by {task}" "名称 {name} 已被 {task} 使用";
    key_reused(task: Text) "the idempotency key was used for another request (task {task})" "幂等键已用于另一请求（任务 {task}）";
    no_parent(task: Text) "{task}, whose failures it would redrive, is deleted" "要重做其失败的 {task} 已删除";
    dataset_exists(dataset: Text) "the dataset {dataset} exists already" "数据集 {dataset} 已存在";
    dataset_taken(dataset: Text) "the dataset {dataset} belongs to another business" "数据集 {dataset} 属于其他业务";
    too_many_datasets(count: Count) "the business has {count#dataset}, the most that it may have" "业务已有 {count} 个数据集，达到上限";
    fire_settled(schedule: Text, time: Text) "the fire of {schedule} at {time} needs no task any more" "{schedule} 在 {time} 的触发不再需要任务";
    redriven(task: Text) "{task} was redriven by someone else at the same time" "{task} 同时被他人重做";
    too_many_items(most: Count, items: Count) "a task has at most {most#item}, not {items}" "任务最多 {most} 个条目，不是 {items}";
    no_upload(text: Text, example: Text) "{text} is not an upload; one looks like {example}" "{text} 不是上传；例如 {example}";
    pins_full(count: Count) "{count#generation} of the dataset {count?is|are} pinned, the most that may be" "数据集已固定 {count} 代，达到上限";
    to_publish(task: Text) "{task} is to publish it and has not ended" "{task} 将发布它且尚未结束";
    other_items(task: Text) "other items were appended to {task} with this key" "已用此键向 {task} 追加过其他条目";
    publishing_elsewhere() "another node publishes it" "另一节点正在发布";
    sink_fenced() "a newer claim holds the copy, or the copy is gone" "副本已被更新的认领占用，或已不存在";
    no_object(examples: Text) "an object is a kind and a name, for example {examples}" "对象由种类和名称组成，例如 {examples}";
    other_key(sealed: Text, own: Text)
        "a stored secret was sealed with another key ({sealed}, not {own}); set auth.key_file to the key that sealed it"
        "已存的密钥由另一把钥匙封装（{sealed}，不是 {own}）；请把 auth.key_file 设为封装它的钥匙";
    secret_damaged() "a stored secret is damaged; restore the database from a backup, or set the secret again" "已存的密钥已损坏；请从备份恢复数据库，或重新设置密钥";
    node_unreachable(node: Text, why: Text) "{node} can't be asked: {why}" "问不到 {node}：{why}";
    seal_forged() "it was not sealed with this node's key" "不是用本节点的钥匙封装的";
    seal_stale() "it was sealed at another time: the clocks of two nodes differ, or it is old" "封装时间不符：两个节点的时钟不同，或消息已旧";
    seal_replayed() "it was received before" "之前已收到";
    seal_too_many() "there are too many" "数量过多";
    node_name_taken(node: Text) "another live node is called {node}; each node needs its own name (node.id)" "另一在线节点名为 {node}；每个节点需要自己的名称 (node.id)";
    no_actors(why: Text) "the node's actors did not start: {why}" "节点的 actor 没有启动：{why}";

    with_hint(why: Text, hint: Text) "{why}; try {hint}" "{why}；可改为 {hint}";
    failed_in_flight() "the item failed while its call was in flight" "条目在调用期间被判失败";
    taken_over(shard: Text, from: Text, repeats: Text) "shard {shard} was taken over from {from}{repeats}" "分片 {shard} 从 {from} 接管{repeats}";
    unknown_node() "a node that was never seen here" "此处从未见过的节点";
    fenced_node(node: Text) "{node}, which was fenced" "{node}（已隔离）";
    leaving_node(node: Text) "{node}, handed over" "{node}（移交）";
    disk_full() "the database's disk is full. Make room there, and work continues; nothing is lost" "数据库磁盘已满。腾出空间后会自动继续；没有丢失";
    disk_full_repeats(items: Count)
        "the database's disk is full. Make room there, and work continues; up to {items#item} may be called again if the process ends"
        "数据库磁盘已满。腾出空间后会自动继续；若进程结束，最多 {items} 个条目可能再次调用";
    cost_too_large(limit: Text)
        "its cost is above the whole limit of {limit}, so it was not called"
        "其费用超过整个限额 {limit}，因此没有调用";
    output_too_large(bytes: Count, most: Count) "its output of {bytes#byte} isn't kept; at most {most} are" "{bytes} 字节的输出没有保存；最多 {most}";
    crash_loop(times: Count) "it was claimed {times#time} and never completed" "认领了 {times} 次，从未完成";
    last_error(text: Text, code: Text, item: Text) "{text}; last error {code} at item {item}" "{text}；最近错误 {code}，条目 {item}";
    recoveries_exhausted(times: Count, why: Text) "recovered {times#time} in a row; the last time: {why}" "连续恢复 {times} 次；最后一次：{why}";
    recovery(why: Text, no: Count, most: Count) "{why}; recovery {no} of {most}" "{why}；第 {no} 次恢复，共 {most} 次";
    stopped() "stopped by command" "按命令停止";
    core_broken(why: Text) "the core of the run is broken: {why}" "运行的核心已损坏：{why}";
    core_broke() "the core broke inside a step" "核心在一步之内损坏";
    failed_too_often(actor: Text, why: Text) "{actor} failed too often: {why}" "{actor} 失败过多：{why}";
    newer_run() "the handler has seen a newer run of the shard" "处理器见过该分片更新的运行";
    store_gave_no_answer() "the store did not answer before the node's end" "存储在节点结束前没有应答";
    not_had() "not claimed: another node was faster" "未认领：另一节点更快";
    not_had_lease() "not claimed: its owner may hold a lease" "未认领：其所有者可能持有租约";
    not_had_version(version: Text) "not claimed: its checkpoint has version {version} of a newer program" "未认领：检查点版本 {version} 属于更新的程序";
    dropped() "dropped: its session was fenced, or another run owns it" "已放下：会话被隔离，或另一次运行拥有它";
    still_owned(why: Text) "left as it was saved: {why}" "保持已保存的状态：{why}";
    publishing() "publishes the results of its task" "正在发布任务的结果";
    closing_handler() "closing the handler" "正在关闭处理器";
    old_share(why: Text) "at its old share of the rate: {why}" "仍为原先的速率份额：{why}";
    task_recovers(until: Text) "the task recovers until {until}" "任务恢复至 {until}";
    lease_expired() "lease expired; only a heartbeat revives it" "租约已失效；只有心跳能恢复";
    offered(shards: Count, took: Span) "{shards#shard} offered, scanned in {took}" "提供 {shards} 个分片，扫描用时 {took}";
    was_silent() "it was silent for too long" "静默过久";
    taken_by_other() "another node took over" "另一节点已接管";
    heartbeat_missed() "heartbeat not written; the lease runs out" "心跳未写入；租约将到期";
    late(who: Message) "{who} did not answer in time" "{who}没有及时应答";
    the_store() "the store" "存储";
    the_lease_store() "the lease store" "租约存储";
    run_failed() "its run failed on this node; it continues from the last checkpoint" "它在此节点的运行失败；将从上一个检查点继续";
    silent_owner_later(later: Span, setting: Text)
        "its node is silent, but may still hold its lease in Redis, which can't be reached. It continues {later} later than usual ({setting}), or once Redis answers"
        "其节点无声，但可能仍持有 Redis 中的租约，而 Redis 不可达。将比平常晚 {later} 继续（{setting}），或在 Redis 应答后继续";
    silent_owner(setting: Text)
        "its node is silent, but may still hold its lease in Redis, which can't be reached. It continues once Redis answers (or set {setting})"
        "其节点无声，但可能仍持有 Redis 中的租约，而 Redis 不可达。Redis 应答后继续（或设置 {setting}）";
    newer_checkpoint(version: Text)
        "its checkpoint has version {version}, which this node can't read; a node of that version continues it"
        "检查点版本为 {version}，此节点无法读取；由该版本的节点继续";
    hook_panicked() "the call panicked" "调用崩溃";
    hook_late(limit: Span) "no answer within {limit}" "{limit} 内没有应答";
    hook_unusable(why: Text) "its response can't be used: {why}" "应答无法使用：{why}";
    hook_given_up(kind: Text, attempts: Count, why: Text) "the hook {kind} failed after {attempts#attempt}: {why}" "钩子 {kind} 在 {attempts} 次尝试后失败：{why}";
    hook_no_number(name: Text, value: Text) "the business answered with a {name} that is not a number: {value}" "业务应答的 {name} 不是数字：{value}";
    hook_no_object() "the business answered with params that are not a JSON object" "业务应答的 params 不是 JSON 对象";
    not_ready() "the business did not say in time that it is ready" "业务没有及时表示就绪";
    pool_drained(pool: Text, node: Text)
        "every node that serves its pool {pool} is drained; undrain one, for example {node}"
        "服务池 {pool} 的节点都已排空；请让一个恢复接单，例如 {node}";
    pool_unserved(pool: Text)
        "no node that runs tasks serves its pool {pool}; undrain one that does, or start one with {pool} in node.pools and node.run_tasks = true"
        "没有运行任务的节点服务池 {pool}；请让一个恢复接单，或以含 {pool} 的 node.pools 和 node.run_tasks = true 启动一个";
    upkeep_done(commanded: Count, removed: Count) "{commanded#task} commanded, {removed#row} removed in the last round" "上一轮：命令 {commanded} 个任务，删除 {removed} 行";
    leases_asked(leases: Count) "{leases#lease} requested" "请求 {leases} 个租约";
    in_flight(now: Count, most: Count, watermark: Text) "in flight {now}/{most}  watermark {watermark}" "在途 {now}/{most}  水位 {watermark}";
    store_away(times: Count) "store unavailable {times#time} in a row" "存储连续 {times} 次不可用";
    no_hooks() "no hooks here" "此处没有钩子";
    no_schedules() "no schedules here" "此处没有定时计划";
    no_sink() "no sink here" "此处没有读者副本";
}
