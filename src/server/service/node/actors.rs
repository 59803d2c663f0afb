//! Hierarchical view of the node's actors.

use super::ThisNode;
use windrow_core::ids::TaskId;
pub use windrow_engine::actors::runtime::tree::ActorView;
use windrow_engine::actors::runtime::tree::table;

/// Actor with its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorNode {
    /// State of the actor.
    pub actor: ActorView,
    /// Actors directly below it.
    pub children: Vec<ActorNode>,
}

impl ThisNode {
    /// Returns the root actors: the supervisor, or the launchers of one task. Actors more than `depth` levels below
    /// are left out.
    pub fn actors(&self, task: Option<TaskId>, depth: usize) -> Vec<ActorNode> {
        let all = self.supervisor.tree().view();
        let level = |path: &str| path.matches('/').count();
        let is_root = |actor: &ActorView| match task {
            None => level(&actor.path) == 0,
            Some(id) => {
                let shard = actor
                    .path
                    .split('/')
                    .nth(1)
                    .and_then(|name| name.split('.').next());
                level(&actor.path) == 1 && shard == Some(id.to_string().as_str())
            }
        };
        all.iter()
            .filter(|actor| is_root(actor))
            .map(|root| below(root, &all, depth))
            .collect()
    }
}

fn below(actor: &ActorView, all: &[ActorView], depth: usize) -> ActorNode {
    let is_child = |other: &&ActorView| {
        let rest = other
            .path
            .strip_prefix(&actor.path)
            .and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|name| !name.contains('/'))
    };
    let children = if depth == 0 {
        Vec::new()
    } else {
        all.iter()
            .filter(is_child)
            .map(|child| below(child, all, depth - 1))
            .collect()
    };
    ActorNode {
        actor: actor.clone(),
        children,
    }
}

/// Formats trees as lines of text.
pub fn text(roots: &[ActorNode]) -> String {
    fn flat(nodes: &[ActorNode], all: &mut Vec<ActorView>) {
        for node in nodes {
            all.push(node.actor.clone());
            flat(&node.children, all);
        }
    }
    let mut all = Vec::new();
    flat(roots, &mut all);
    if all.is_empty() {
        String::new()
    } else {
        table::render(&all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use windrow_engine::actors::runtime::policy::Kind;
    use windrow_engine::actors::runtime::tree::Activity;

    #[test]
    fn children_hang_below_their_parents_as_deep_as_was_asked() {
        let view = |path: &str| ActorView {
            path: path.to_owned(),
            kind: Kind::Launcher,
            activity: Activity::Ok,
            uptime: Duration::ZERO,
            restarts: 0,
            mailbox: 0,
            last_handled: Duration::ZERO,
            text: String::new(),
        };
        let all: Vec<ActorView> = [
            "n1",
            "n1/session",
            "n1/t1.0",
            "n1/t1.0/executor",
            "n1/t10.0",
            "n1/t10.0/executor",
        ]
        .map(view)
        .into();
        let root = below(&all[0], &all, usize::MAX);
        let names = |node: &ActorNode| {
            node.children
                .iter()
                .map(|child| child.actor.path.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&root), ["n1/session", "n1/t1.0", "n1/t10.0"]);
        assert_eq!(names(&root.children[1]), ["n1/t1.0/executor"]);
        assert_eq!(
            text(std::slice::from_ref(&root)).lines().count(),
            7,
            "a line each, and the columns' names"
        );
        assert_eq!(text(&[]), "");
        assert!(
            below(&all[0], &all, 1)
                .children
                .iter()
                .all(|child| child.children.is_empty())
        );
    }
}
