//! Who a caller is.

use super::{Service, ServiceError};
use crate::config::AuthMode;
use crate::domain::access::Role;

/// Who a caller is, as their token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Their name, for the audit.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// The business that they are, for [`Role::Business`].
    pub business: Option<String>,
}

impl Service {
    /// Who holds a token. With `auth.mode = "off"` everybody is an administrator.
    ///
    /// # Errors
    /// `Unauthenticated` without a token, or with one that is unknown, expired or revoked.
    pub async fn authenticate(&self, token: Option<&str>) -> Result<Identity, ServiceError> {
        if self.config().auth.mode == AuthMode::Off {
            return Ok(Identity { name: "local".to_owned(), role: Role::Admin, business: None });
        }
        let _token = token.ok_or_else(|| ServiceError::Unauthenticated("there is no token".to_owned()))?;
        Err(ServiceError::Unauthenticated("the token is not known".to_owned()))
    }
}
