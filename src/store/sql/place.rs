//! Folders beside the database that all nodes of a store share: each belongs to one store and is the same on every
//! node.

use std::path::Path;
use windrow_words::store as say;

use sea_orm::ActiveValue::Set;
use sea_orm::EntityTrait;
use uuid::Uuid;

use crate::folder::{Folder, FolderKind};
use crate::sql::entity::meta;
use crate::sql::{Fetch, Run, Store};
use windrow_engine::ports::StoreError;

impl Store {
    /// Opens a shared folder of this store.
    ///
    /// # Errors
    /// `Refused` if it is not the folder that the store's other nodes use.
    pub(crate) async fn place(&self, kind: FolderKind, folder: &Path) -> Result<Folder, StoreError> {
        let known = self.known_place(kind).await?;
        let fresh = known.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        let looked_at = folder.to_owned();
        let is_known = known.is_some();
        let opened = tokio::task::spawn_blocking(move || {
            // Every node but the first finds the marker of the first.
            if is_known && !looked_at.is_dir() {
                return Err(kind.other(&looked_at));
            }
            Folder::open(kind, &looked_at, (!is_known).then_some(&*fresh))
        });
        let (opened, said) = opened
            .await
            .map_err(|error| StoreError::Unavailable(error.to_string()))??;
        let known = match known {
            Some(known) => known,
            None => self.note_place(kind, &said).await?,
        };
        match said == known {
            true => Ok(opened),
            false => Err(kind.other(folder)),
        }
    }

    async fn known_place(&self, kind: FolderKind) -> Result<Option<String>, StoreError> {
        let fact = meta::Entity::find_by_id(kind.fact.to_owned())
            .row(&self.writer)
            .await?;
        Ok(fact.map(|fact| fact.val))
    }

    /// Records the folder's marker in the store. If two nodes start at once, the first one wins.
    async fn note_place(&self, kind: FolderKind, said: &str) -> Result<String, StoreError> {
        let fact = meta::ActiveModel {
            name: Set(kind.fact.to_owned()),
            val: Set(said.to_owned()),
        };
        let noted = meta::Entity::insert(fact).run(&self.writer).await;
        match self.known_place(kind).await? {
            Some(known) => Ok(known),
            None => Err(noted
                .err()
                .unwrap_or_else(|| StoreError::Unavailable(say::place_not_noted(kind.setting).to_string()))),
        }
    }
}
