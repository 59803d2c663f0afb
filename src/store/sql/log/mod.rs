//! Records about tasks: log lines, failures, the audit, the parts of reports.

pub mod audit_list;
pub mod data_log;
pub mod expire;
pub mod failure_groups;
pub mod failure_list;
pub mod node_audit;
pub mod report;
pub mod search;
