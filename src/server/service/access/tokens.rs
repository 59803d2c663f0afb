//! Access tokens: creation and revocation. A token is shown only once; the store keeps its SHA-256.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::service::access::Access;
use crate::service::{FieldFault, ServiceError};
use windrow_core::business::access::Role;
use windrow_core::ids::WallMs;
use windrow_core::text::names;
use windrow_engine::ports::access::actor::NODE_ACTOR;
use windrow_engine::ports::access::token_store::{NewToken, TokenGrant, TokenView};
use windrow_engine::ports::tasks::store::Write;

/// Prefix of every access token.
pub const TOKEN_PREFIX: &str = "wrk_";
/// Prefix of every start token, which authorizes a business for one start of one task.
pub const START_TOKEN_PREFIX: &str = "wst_";
/// Longest token name, in characters.
pub const TOKEN_NAME_MAX: usize = 100;
/// Leading part of a token that is shown to tell tokens apart, in bytes: the prefix, and 24 of its 256 random bits.
const SHOWN: usize = 8;
/// Length of an access token in bytes: the prefix, and 32 bytes in base64url.
const TOKEN_LENGTH: usize = 4 + 43;

/// New token with its text, which is shown only this once.
#[derive(Clone)]
pub struct MadeToken {
    /// Stored data of the token.
    pub view: TokenView,
    /// Text of the token, `wrk_…`
    pub token: String,
}

impl Access {
    /// Creates a token.
    ///
    /// # Errors
    /// `Unprocessable` if name, role, business and expiry don't fit together.
    pub async fn create(&self, grant: TokenGrant, write: &Write) -> Result<MadeToken, ServiceError> {
        let now = self.node.now();
        check_grant(&grant, now)?;
        if let Some(slug) = &grant.business
            && self.businesses.business(slug).await?.is_none()
        {
            return Err(ServiceError::unprocessable(
                "/business",
                format!("no business {slug}"),
            ));
        }
        let token = make(TOKEN_PREFIX)?;
        let new = new_token(&token, grant);
        let view = self.tokens.add_token(&new, write, now).await?;
        if !write.dry_run {
            tracing::info!(
                token = view.prefix,
                name = view.name,
                role = view.role.as_str(),
                "token created"
            );
        }
        Ok(MadeToken { view, token })
    }

    /// Revokes a token, effective immediately because every request queries the store. Does nothing if it is already
    /// revoked.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn revoke(&self, id: i64, write: &Write) -> Result<TokenView, ServiceError> {
        let revoked = self.tokens.revoke_token(id, write, self.node.now()).await?;
        revoked.ok_or_else(|| ServiceError::not_found("token", id))
    }
}

/// Name of the administrator token that a node creates at its first start.
pub const BOOTSTRAP: &str = "bootstrap";
/// Names reserved for the node, so that the audit log can tell people's tokens from it.
const RESERVED: [&str; 2] = [BOOTSTRAP, NODE_ACTOR];

fn check_grant(grant: &TokenGrant, now: WallMs) -> Result<(), ServiceError> {
    let length = grant.name.trim().chars().count();
    if length == 0 || length > TOKEN_NAME_MAX || grant.name.chars().any(char::is_control) {
        let text = format!("must be 1 to {TOKEN_NAME_MAX} characters without control characters");
        return Err(ServiceError::unprocessable("/name", text));
    }
    if let Some(why) = names::fault(&grant.name) {
        return Err(ServiceError::unprocessable("/name", format!("it {why}")));
    }
    if RESERVED
        .iter()
        .any(|name| name.eq_ignore_ascii_case(grant.name.trim()))
    {
        let text = "this name is reserved for a node's own actions in the audit log";
        return Err(FieldFault::new("/name", text)
            .advise("choose another name")
            .into());
    }
    match (grant.role, &grant.business) {
        (Role::Business, None) => {
            return Err(ServiceError::unprocessable(
                "/business",
                "required for the role `business`",
            ));
        }
        (Role::Viewer | Role::Operator | Role::Admin, Some(_)) => {
            return Err(ServiceError::unprocessable(
                "/business",
                "only allowed for the roles `business` and `reader`",
            ));
        }
        _ => {}
    }
    if grant.expires_at.is_some_and(|at| at <= now) {
        return Err(ServiceError::unprocessable(
            "/expires_at",
            "must be in the future",
        ));
    }
    Ok(())
}

/// Builds the stored form of a token.
pub fn new_token(token: &str, grant: TokenGrant) -> NewToken {
    NewToken {
        hash: hash(token),
        prefix: token.chars().take(SHOWN).collect(),
        grant,
    }
}

/// Generates a token: the prefix and 256 random bits.
///
/// # Errors
/// If the operating system provides no random bytes.
pub fn make(prefix: &str) -> Result<String, ServiceError> {
    Ok(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(random()?)))
}

/// Returns the SHA-256 of a token in hexadecimal. Its 256 random bits can't be recovered from the hash.
pub fn hash(token: &str) -> String {
    Sha256::digest(token.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns true if a text has the form of an access token.
pub fn is_token(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.len() == TOKEN_LENGTH && text.starts_with(TOKEN_PREFIX) && text.chars().all(is_plain)
}

pub(crate) fn random() -> Result<[u8; 32], ServiceError> {
    let mut bytes = [0; 32];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|cause| ServiceError::Internal(format!("no random bytes: {cause}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_their_form_and_differ_and_show_little() {
        let (one, other) = (
            make(TOKEN_PREFIX).expect("made"),
            make(TOKEN_PREFIX).expect("made"),
        );
        assert!(is_token(&one) && is_token(&other) && one != other);
        for wrong in [
            "",
            "wrk_",
            "wrk_short",
            &one.replace("wrk_", "wst_"),
            &format!("{one}x"),
            &one[..46],
        ] {
            assert!(!is_token(wrong), "{wrong}");
        }
        let grant = TokenGrant {
            name: "ann".to_owned(),
            role: Role::Viewer,
            business: None,
            expires_at: None,
        };
        let stored = new_token(&one, grant);
        assert_eq!(stored.prefix, one[..8]);
        assert!(!format!("{stored:?}").contains(&one[8..]));
        assert_eq!(
            hash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_wish_names_a_business_if_and_only_if_it_is_for_one() {
        let grant = |role, business: Option<&str>| TokenGrant {
            name: "ann".to_owned(),
            role,
            business: business.map(str::to_owned),
            expires_at: None,
        };
        let sound = |grant: TokenGrant| check_grant(&grant, WallMs(1_000)).is_ok();
        assert!(sound(grant(Role::Business, Some("push"))) && sound(grant(Role::Admin, None)));
        assert!(sound(grant(Role::Reader, None)) && sound(grant(Role::Reader, Some("push"))));
        assert!(!sound(grant(Role::Business, None)) && !sound(grant(Role::Admin, Some("push"))));
        assert!(!sound(TokenGrant {
            expires_at: Some(WallMs(1_000)),
            ..grant(Role::Admin, None)
        }));
        assert!(!sound(TokenGrant {
            name: " ".to_owned(),
            ..grant(Role::Admin, None)
        }));
        assert!(!sound(TokenGrant {
            name: "a\nb".to_owned(),
            ..grant(Role::Admin, None)
        }));
    }
}
