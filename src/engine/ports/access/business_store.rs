//! Businesses: register, change with revisions, archive. Every change keeps an audit entry in its transaction.

use async_trait::async_trait;
use windrow_words::engine as say;

use crate::ports::StoreError;
use crate::ports::tasks::store::{AuditEntry, Write};
use windrow_core::business::BusinessSpec;
use windrow_core::ids::WallMs;

/// A business as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Business {
    /// Its row.
    pub id: i64,
    /// Its name in URLs; never changes.
    pub slug: String,
    /// What people say of it.
    pub spec: BusinessSpec,
    /// Its signing secrets and secret headers, sealed ([`crate::ports::access::vault::Vault`]); none has none.
    pub sealed: Option<Vec<u8>>,
    /// Grows with each change.
    pub revision: u64,
    /// Hidden, and no new tasks, since then.
    pub archived_at: Option<WallMs>,
    /// When it was registered.
    pub created_at: WallMs,
    /// When it was last changed.
    pub updated_at: WallMs,
}

impl std::fmt::Debug for Business {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Business")
            .field("slug", &self.slug)
            .field("revision", &self.revision)
            .finish()
    }
}

/// What a change of a business sets; what is none stays.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct BusinessChange {
    /// The whole new description.
    pub spec: Option<BusinessSpec>,
    /// The sealed secrets.
    pub sealed: Option<Vec<u8>>,
    /// Archive it, or bring it back.
    pub archived: Option<bool>,
}

/// A business could not be registered or changed. Nothing was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusinessError {
    /// There is none of this slug.
    #[error("{}", say::no_business(.0))]
    NotFound(String),
    /// There is one of this slug.
    #[error("{}", say::business_exists(.0))]
    Taken(String),
    /// It was changed since the caller looked.
    #[error("{}", say::business_changed(found.to_string(), expected.to_string()))]
    Changed {
        /// What the caller saw.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// It names a limit that isn't there.
    #[error("{}", say::no_limit(.0))]
    NoLimit(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Registers, finds and changes businesses.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait BusinessStore: Send + Sync {
    /// Registers a business; one that only a command line used so far, without a handler, is the same row.
    async fn register(
        &self,
        slug: &str,
        spec: &BusinessSpec,
        sealed: Option<Vec<u8>>,
        write: &Write,
        now: WallMs,
    ) -> Result<Business, BusinessError>;

    /// A business by its slug.
    async fn business(&self, slug: &str) -> Result<Option<Business>, StoreError>;

    /// Businesses in the order of their slugs, after one, at most `limit`.
    async fn businesses(
        &self,
        archived: bool,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Business>, StoreError>;

    /// Changes a business; with `expected` only while it has that revision. `action` is the audit's word, such as
    /// `business.edit`. Where calls are made otherwise from now on, the runs of its tasks are to end in order and begin anew.
    async fn change_business(
        &self,
        slug: &str,
        expected: Option<u64>,
        change: &BusinessChange,
        action: &str,
        write: &Write,
        now: WallMs,
    ) -> Result<Business, BusinessError>;

    /// What was changed of a business, newest first, before a row of the audit, at most `limit`: each row with its number.
    /// Its `before` and `after` are `{"slug","revision","archived","spec"}`; none before the first; the latter with
    /// `"secrets_changed":true` where secrets did.
    async fn business_revisions(
        &self,
        slug: &str,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, AuditEntry)>, StoreError>;
}
