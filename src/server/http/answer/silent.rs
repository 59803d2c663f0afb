//! Nodes that an answer could not ask.

use windrow_engine::ports::ownership::peers::Unreachable;

/// All of them.
pub(crate) fn silent(all: &[Unreachable]) -> Vec<api::SilentNode> {
    let shown = |one: &Unreachable| api::SilentNode {
        node: one.node.clone(),
        why: one.why.clone(),
    };
    all.iter().map(shown).collect()
}
