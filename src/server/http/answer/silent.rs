//! Nodes that couldn't be reached while a response was built.

use windrow_engine::ports::ownership::peers::Unreachable;

/// Converts the unreachable nodes to their API form.
pub(crate) fn silent(all: &[Unreachable]) -> Vec<api::SilentNode> {
    let shown = |one: &Unreachable| api::SilentNode {
        node: one.node.clone(),
        why: one.why.clone(),
    };
    all.iter().map(shown).collect()
}
