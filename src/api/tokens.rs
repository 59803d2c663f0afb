//! Tokens and sessions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use windrow_core::business::access::Role;

/// A browser that is signed in.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SignIn {
    /// Its number.
    pub id: i64,
    /// The number of the token that it stands for.
    pub token: i64,
    /// Who holds that.
    pub name: String,
    /// What it allows.
    pub role: String,
    /// The address from which the browser signed in.
    pub address: Option<String>,
    /// When it signed in.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Not believed from then on.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// A token.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its number.
    pub id: i64,
    /// Who holds it.
    pub name: String,
    /// Its first characters.
    pub prefix: String,
    /// What it allows.
    pub role: String,
    /// The business, for the role business.
    pub business: Option<String>,
    /// Not believed from then on.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Not believed since then.
    #[schema(format = DateTime)]
    pub revoked_at: Option<String>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Who made it.
    pub created_by: String,
    /// The token itself; only in the answer that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// Who the node takes the caller for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Whoami {
    /// The token's name.
    pub name: String,
    /// viewer, operator, admin, business or reader.
    pub role: String,
    /// The business, for the role business; of a reader that whose datasets it reads, null is all.
    pub business: Option<String>,
    /// How callers are known here, `auth.mode`: token, proxy or off.
    pub auth: String,
    /// The browser's session; null for who is known by something else.
    pub session: Option<OwnSession>,
    /// The node that answers.
    pub node: String,
    /// The version of its program.
    pub version: String,
    /// The time by its clock.
    #[schema(format = DateTime)]
    pub now: String,
}

/// The session by which a browser is known.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct OwnSession {
    /// Its number.
    pub id: i64,
    /// When the browser has to sign in again.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// A token to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// Who will hold it, for the audit.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
    /// What it allows: `viewer`, `operator`, `admin`, `business`, or `reader` (of datasets).
    #[schema(value_type = String, pattern = "^(viewer|operator|admin|business|reader)$")]
    pub role: Role,
    /// The business, for the roles business and reader only; a reader without one reads the datasets of all.
    #[schema(max_length = 40)]
    pub business: Option<String>,
    /// Not believed from then on; none is never.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// What a browser signs in with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignInRequest {
    /// A token of any role.
    #[schema(min_length = 1, max_length = 100)]
    pub token: String,
}
