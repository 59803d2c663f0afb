//! Secrets of a business: signing secrets and the values of secret headers, stored encrypted.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Businesses;
use super::written::{BusinessBody, MASK};
use crate::service::{FieldFault, ServiceError};
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::business::{BusinessSpec, HandlerSpec};
use windrow_core::ids::WallMs;
use windrow_engine::ports::access::business_store::Business;

impl Businesses {
    pub(super) fn seal(&self, slug: &str, secrets: &BusinessSecrets) -> Vec<u8> {
        self.vault
            .seal(&BusinessSecrets::place(slug), &secrets.to_bytes())
    }

    /// Checks that this node can decrypt the secrets of a business.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` that names both keys if they were encrypted with another one.
    pub async fn can_open(&self, slug: &str) -> Result<(), ServiceError> {
        self.unseal(&self.get(slug).await?).map(drop)
    }

    pub(super) fn unseal(&self, business: &Business) -> Result<BusinessSecrets, ServiceError> {
        let Some(sealed) = &business.sealed else {
            return Ok(BusinessSecrets::default());
        };
        let opened = self.vault.open(&BusinessSecrets::place(&business.slug), sealed);
        let opened = opened.map_err(|why| {
            let advice = "restore the node's key, or register the business again under another name";
            ServiceError::conflict(format!("{}: {why}", business.slug), advice)
        })?;
        let secrets = BusinessSecrets::from_bytes(&opened);
        secrets
            .ok_or_else(|| ServiceError::Internal(format!("{}: its secrets can't be parsed", business.slug)))
    }
}

/// Adds the given values of secret headers and request secrets. A [`MASK`] keeps the stored value, which stays bound
/// to the origin it was given for.
pub(super) fn given(
    body: &BusinessBody,
    known: &BusinessSecrets,
    before: Option<&HandlerSpec>,
) -> Result<BusinessSecrets, ServiceError> {
    let origin = before.and_then(HandlerSpec::origin);
    let moved_from = origin.filter(|origin| body.spec().handler.origin().as_ref() != Some(origin));
    let kept = |member: &str, given, known| {
        let values = values(member, given, known)?;
        match (given.iter().find(|(_, value)| *value == MASK), &moved_from) {
            (Some((name, _)), Some(origin)) => Err(of_another(member, name, origin)),
            _ => Ok(values),
        }
    };
    let nameless = |key: &String| (String::new(), key.clone());
    let stored = known.client_key.iter().map(nameless).collect();
    let client_key = client_key(body);
    let client_key = kept("client_key_pem", &client_key, &stored)?;
    Ok(known.with_values(
        kept("secret_headers", &body.secret_headers, &known.headers)?,
        kept("request_secrets", &body.request_secrets, &known.request)?,
        client_key.into_values().next(),
    ))
}

/// Returns the client key as a nameless value. A masked key goes with its certificate: a removal of one removes both.
fn client_key(body: &BusinessBody) -> BTreeMap<String, String> {
    let is_left = |key: &&String| *key == MASK && body.client_cert_pem.is_none();
    let given = body.client_key_pem.iter().filter(|key| !is_left(key));
    given.map(|key| (String::new(), key.clone())).collect()
}

fn of_another(member: &str, name: &str, origin: &str) -> ServiceError {
    let what = format!("the value was given for {origin} and isn't sent elsewhere");
    let fault = FieldFault::new(place(member, name), what);
    fault
        .advise("set it again together with the new address, or remove it (null)")
        .into()
}

fn place(member: &str, name: &str) -> String {
    if name.is_empty() {
        return format!("/{member}");
    }
    format!("/{member}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn values(
    member: &str,
    given: &BTreeMap<String, String>,
    known: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ServiceError> {
    let mut values = BTreeMap::new();
    for (name, value) in given {
        let value = if value == MASK {
            known.get(name)
        } else {
            Some(value)
        };
        let value = value.cloned().ok_or_else(|| {
            ServiceError::unprocessable(
                place(member, name),
                format!("{MASK} stands for a stored value, but none is stored"),
            )
        })?;
        values.insert(name.clone(), value);
    }
    Ok(values)
}

/// Adds a signing secret if calls are signed and there is none yet; also returns the new secret, to be shown.
pub(super) fn signing(
    spec: &BusinessSpec,
    known: BusinessSecrets,
    now: WallMs,
) -> Result<(BusinessSecrets, Option<String>), ServiceError> {
    if known.can_sign() || !spec.signs() {
        return Ok((known, None));
    }
    let secret = signing_secret()?;
    Ok((known.rotated(secret.clone(), now), Some(secret)))
}

/// Generates a signing secret: `whsec_` and 32 random bytes.
pub(crate) fn signing_secret() -> Result<String, ServiceError> {
    Ok(format!(
        "whsec_{}",
        STANDARD.encode(crate::service::access::tokens::random()?)
    ))
}
