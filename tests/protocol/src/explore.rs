//! The search through the states of one of the smaller models.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, Expectation, Model};

/// How many states there are, and the properties that fail or are never seen, each with the steps that show it.
pub(crate) fn explore<M>(model: M) -> (usize, Vec<(&'static str, String)>)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = model.checker().threads(2).spawn_bfs().join();
    let mut faults: Vec<(&'static str, String)> = Vec::new();
    for property in checker.model().properties() {
        let found = checker.discovery(property.name);
        match (&property.expectation, found) {
            (Expectation::Always, Some(path)) => {
                faults.push((property.name, format!("{:?}", path.into_actions())));
            }
            (Expectation::Sometimes, None) => faults.push((property.name, "never".to_owned())),
            _ => {}
        }
    }
    (checker.unique_state_count(), faults)
}
