//! Items that failed, by index, by place, one by one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use async_trait::async_trait;

use super::state::{Item, ItemState, State};
use super::{Call, MemoryStore};
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::failure_list::{
    AMONG_MAX, FailureList, FailurePage, RecordedItem, RecordedState, WaitingCode,
};
use windrow_engine::ports::tasks::store::FailureGroup;

#[async_trait]
impl FailureList for MemoryStore {
    async fn groups(&self, task: TaskId) -> Result<Vec<FailureGroup>, StoreError> {
        self.act(Call::Read, |state| {
            let of_task = state.tasks.get(&task).map(|task| task.groups.values());
            let mut groups: Vec<FailureGroup> = of_task.into_iter().flatten().cloned().collect();
            groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.code.cmp(&b.code)));
            Ok(groups)
        })
        .await
    }

    async fn waiting(&self, task: TaskId) -> Result<Vec<WaitingCode>, StoreError> {
        self.act(Call::Read, |state| {
            let items = state
                .tasks
                .get(&task)
                .into_iter()
                .flat_map(|task| task.items.values());
            let mut found: BTreeMap<String, u64> = BTreeMap::new();
            for item in items.filter(|item| item.state != ItemState::Failed) {
                if let Some(failure) = &item.retrying.failure {
                    *found.entry(failure.code.clone().into_owned()).or_default() += 1;
                }
            }
            let mut found: Vec<_> = found
                .into_iter()
                .map(|(code, items)| WaitingCode { code, items })
                .collect();
            found.sort_by_key(|one| Reverse(one.items));
            Ok(found)
        })
        .await
    }

    async fn page(
        &self,
        task: TaskId,
        page: &FailurePage,
        limit: u32,
    ) -> Result<Vec<RecordedItem>, StoreError> {
        self.act(Call::Read, |state| {
            let mut found = failed(state, task);
            match page {
                FailurePage::ByIndex(after) => found.retain(|item| Some(item.index) > *after),
                FailurePage::OfGroup(code, first) => {
                    found.retain(|item| {
                        item.place
                            .as_ref()
                            .is_some_and(|(at, no)| at == code && no >= first)
                    });
                    found.sort_by_key(|item| item.place.clone());
                }
            }
            found.truncate(limit as usize);
            Ok(found)
        })
        .await
    }

    async fn places(
        &self,
        task: TaskId,
        group: &str,
        first: u64,
        count: u32,
    ) -> Result<Vec<ItemIndex>, StoreError> {
        let page = FailurePage::OfGroup(group.to_owned(), first);
        Ok(self
            .page(task, &page, count)
            .await?
            .into_iter()
            .map(|item| item.index)
            .collect())
    }

    async fn among(&self, task: TaskId, indexes: &[ItemIndex]) -> Result<Vec<RecordedItem>, StoreError> {
        if indexes.len() > AMONG_MAX {
            return Err(StoreError::Refused(format!(
                "{} indexes at once; at most {AMONG_MAX}",
                indexes.len()
            )));
        }
        self.act(Call::Read, |state| {
            let mut found = failed(state, task);
            found.retain(|item| indexes.contains(&item.index));
            Ok(found)
        })
        .await
    }

    async fn unconfirmed(
        &self,
        task: TaskId,
        groups: &[String],
        after: Option<ItemIndex>,
        limit: u32,
    ) -> Result<Vec<ItemIndex>, StoreError> {
        let is_of_group = |item: &RecordedItem| {
            let group = item.place.as_ref().map(|(group, _)| group);
            groups.is_empty() || group.is_some_and(|group| groups.contains(group))
        };
        self.act(Call::Read, |state| {
            let found = failed(state, task).into_iter();
            Ok(found
                .filter(|item| item.is_unconfirmed && Some(item.index) > after && is_of_group(item))
                .map(|item| item.index)
                .take(limit as usize)
                .collect())
        })
        .await
    }

    async fn item(&self, task: TaskId, index: ItemIndex) -> Result<Option<RecordedItem>, StoreError> {
        self.act(Call::Read, |state| {
            Ok(state
                .tasks
                .get(&task)
                .and_then(|task| task.items.get(&index))
                .map(recorded))
        })
        .await
    }
}

fn failed(state: &State, task: TaskId) -> Vec<RecordedItem> {
    let items = state
        .tasks
        .get(&task)
        .into_iter()
        .flat_map(|task| task.items.values());
    items
        .filter(|item| item.state == ItemState::Failed)
        .map(recorded)
        .collect()
}

fn recorded(item: &Item) -> RecordedItem {
    let (state, due_at) = match item.state {
        ItemState::Retrying => (RecordedState::Retrying, None),
        ItemState::Parked(due_at) => (RecordedState::Parked, Some(due_at)),
        ItemState::Failed => (RecordedState::Failed, None),
    };
    let failure = item.retrying.failure.as_ref();
    RecordedItem {
        index: item.retrying.index,
        shard: item.shard,
        state,
        attempts: item.retrying.attempts,
        charged: item.retrying.charged,
        is_unconfirmed: item.retrying.is_unconfirmed,
        others_answered: (state == RecordedState::Failed).then_some(item.retrying.others_answered),
        due_at,
        code: failure.map(|failure| failure.code.clone().into_owned()),
        message: failure.map(|failure| failure.message.clone()),
        output: failure.and_then(|failure| failure.output.clone()),
        first_at: item.first_at,
        last_at: item.retrying.at,
        history: None,
        place: item.group.clone(),
    }
}
