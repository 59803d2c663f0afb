//! Names of the states of a task.

use crate::message::messages;

messages! { "status";
    created() "created" "已创建";
    queued() "queued" "排队";
    awaiting_business() "awaiting business" "等待业务";
    running() "running" "运行中";
    not_here() "running, but not on this node" "运行中，但不在此节点";
    recovering() "recovering" "恢复中";
    stopping() "stopping" "停止中";
    stopped() "stopped" "已停止";
    finalizing() "finalizing" "收尾中";
    finished() "finished" "已完成";
    cancelled() "cancelled" "已取消";
}
