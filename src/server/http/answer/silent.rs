//! Nodes that an answer could not ask.

use serde::Serialize;
use utoipa::ToSchema;

use windrow_engine::ports::ownership::peers::Unreachable;

/// A node that has a part in this and gave no answer: of its part the answer has what is stored.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = SilentNode)]
pub(crate) struct SilentJson {
    /// Its name.
    pub(crate) node: String,
    /// Why it can't be asked.
    pub(crate) why: String,
}

/// All of them.
pub(crate) fn silent(all: &[Unreachable]) -> Vec<SilentJson> {
    let shown = |one: &Unreachable| SilentJson {
        node: one.node.clone(),
        why: one.why.clone(),
    };
    all.iter().map(shown).collect()
}
