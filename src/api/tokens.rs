//! Access tokens and browser sessions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use windrow_core::business::access::Role;

/// A signed-in browser session.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SignIn {
    /// Id of the session.
    pub id: i64,
    /// Id of the token used to sign in.
    pub token: i64,
    /// Name of the token's holder.
    pub name: String,
    /// Role of the token.
    pub role: String,
    /// Address from which the browser signed in.
    pub address: Option<String>,
    /// Time of the sign-in.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time from which on it is no longer accepted.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// An access token, without its secret.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Id of the token.
    pub id: i64,
    /// Name of the holder.
    pub name: String,
    /// First characters of the token.
    pub prefix: String,
    /// Role of the token.
    pub role: String,
    /// Business that the token is limited to, for the role `business`.
    pub business: Option<String>,
    /// Time from which on it is no longer accepted.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Time when it was revoked.
    #[schema(format = DateTime)]
    pub revoked_at: Option<String>,
    /// Time when it was created.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Name of whoever created it.
    pub created_by: String,
    /// The token itself; only in the response that created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// Identity of the caller, as seen by the node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Whoami {
    /// Name of the token.
    pub name: String,
    /// Role: viewer, operator, admin, business or reader.
    pub role: String,
    /// Origin of the role of a user behind a proxy: `group` with its name, or `default`; null for a token.
    #[serde(default)]
    pub role_from: Option<String>,
    /// Business of the role business. For a reader, the business whose datasets it may read, or null for all.
    pub business: Option<String>,
    /// Authentication mode of the node, `auth.mode`: token, proxy or off.
    pub auth: String,
    /// Browser session of the caller; null if authenticated in another way.
    pub session: Option<OwnSession>,
    /// Name of the responding node.
    pub node: String,
    /// Version of the node's program.
    pub version: String,
    /// Current time by the node's clock.
    #[schema(format = DateTime)]
    pub now: String,
}

/// Browser session of the caller.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct OwnSession {
    /// Id of the session.
    pub id: i64,
    /// Time when the browser has to sign in again.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// A token to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// Name of the holder, shown in the audit log.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
    /// Role: `viewer`, `operator`, `admin`, `business`, or `reader` (of datasets).
    #[schema(value_type = String, pattern = "^(viewer|operator|admin|business|reader)$")]
    pub role: Role,
    /// Business, for the roles `business` and `reader` only. A reader without one reads the datasets of all
    /// businesses.
    #[schema(max_length = 40)]
    pub business: Option<String>,
    /// Time from which on it is no longer accepted; without one it never expires.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Credentials to sign in with a browser.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignInRequest {
    /// Token of any role.
    #[schema(min_length = 1, max_length = 100)]
    pub token: String,
}
