//! Businesses: registration, changes with revisions, archiving. Every change keeps an audit entry in its transaction.

use async_trait::async_trait;
use windrow_words::engine as say;

use crate::ports::StoreError;
use crate::ports::tasks::store::{AuditEntry, Write};
use windrow_core::business::BusinessSpec;
use windrow_core::ids::WallMs;

/// Business as stored in the database.
#[derive(Clone, PartialEq, Eq)]
pub struct Business {
    /// Id of its row.
    pub id: i64,
    /// Name in URLs; never changes.
    pub slug: String,
    /// Description given by people.
    pub spec: BusinessSpec,
    /// Signing secrets and secret headers, sealed ([`crate::ports::access::vault::Vault`]); `None` if it has none.
    pub sealed: Option<Vec<u8>>,
    /// Revision, incremented by each change.
    pub revision: u64,
    /// Time since when it is hidden and gets no new tasks.
    pub archived_at: Option<WallMs>,
    /// Time of its registration, by the wall clock.
    pub created_at: WallMs,
    /// Time of its last change.
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

/// Values that a change of a business sets; `None` leaves a value as it is.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct BusinessChange {
    /// New description, replacing the whole old one.
    pub spec: Option<BusinessSpec>,
    /// New signing secrets and secret headers, sealed.
    pub sealed: Option<Vec<u8>>,
    /// True archives the business, false brings it back.
    pub archived: Option<bool>,
}

/// Error of registering or changing a business. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusinessError {
    /// No business has this slug.
    #[error("{}", say::no_business(.0))]
    NotFound(String),
    /// A business has this slug already.
    #[error("{}", say::business_exists(.0))]
    Taken(String),
    /// The business was changed since the caller read it.
    #[error("{}", say::business_changed(found.to_string(), expected.to_string()))]
    Changed {
        /// Revision that the caller saw.
        expected: u64,
        /// Revision that it has.
        found: u64,
    },
    /// The description names a limit that doesn't exist.
    #[error("{}", say::no_limit(.0))]
    NoLimit(String),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Store that registers, finds and changes businesses.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait BusinessStore: Send + Sync {
    /// Registers a business. One that only a command line has used so far, without a handler, keeps its row.
    async fn register(
        &self,
        slug: &str,
        spec: &BusinessSpec,
        sealed: Option<Vec<u8>>,
        write: &Write,
        now: WallMs,
    ) -> Result<Business, BusinessError>;

    /// Returns a business by its slug.
    async fn business(&self, slug: &str) -> Result<Option<Business>, StoreError>;

    /// Returns businesses in the order of their slugs, after one, at most `limit`.
    async fn businesses(
        &self,
        archived: bool,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Business>, StoreError>;

    /// Changes a business; with `expected` only while it has that revision. `action` is the audit's word, such as
    /// `business.edit`. If calls change by this, the runs of its tasks end cleanly and restart.
    async fn change_business(
        &self,
        slug: &str,
        expected: Option<u64>,
        change: &BusinessChange,
        action: &str,
        write: &Write,
        now: WallMs,
    ) -> Result<Business, BusinessError>;

    /// Returns the changes of a business, newest first, before a row of the audit, at most `limit`, each with its row
    /// number. `before` and `after` of an entry are `{"slug","revision","archived","spec"}`; the first has no
    /// `before`; `after` has `"secrets_changed":true` if secrets did.
    async fn business_revisions(
        &self,
        slug: &str,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, AuditEntry)>, StoreError>;
}
