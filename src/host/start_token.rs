//! Start tokens: proof of a business that it was asked to prepare one start of a task. Only a hash is stored and,
//! until the hook is delivered, the sealed token: whatever a database keeps of deleted rows, of its log and of its
//! backups is worthless without the node's key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use windrow_core::ids::TaskId;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::vault::{Unopenable, Vault};

/// Prefix of a start token.
pub const PREFIX: &str = "wst_";
/// Prefix of a sealed start token.
const SEALED: &str = "sealed:";

/// Creates a token of 256 random bits.
///
/// # Errors
/// If the operating system has no randomness.
pub fn make() -> Result<String, StoreError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Unavailable(format!("no randomness: {error}")))?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// Returns the hash that is stored of a token: its SHA-256 as 64 hexadecimal digits.
pub fn hash(token: &str) -> String {
    Sha256::digest(token.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Seals a token for the store until it is delivered; it opens only for this task.
pub fn seal(vault: &dyn Vault, task: TaskId, plain: &str) -> String {
    let sealed = vault.seal(&place(task), plain.as_bytes());
    format!("{SEALED}{}", URL_SAFE_NO_PAD.encode(sealed))
}

/// Opens a token that [`seal`] made; one that isn't sealed is returned as is.
///
/// # Errors
/// If another key sealed it, or if it was changed or moved.
pub fn open(vault: &dyn Vault, task: TaskId, text: &str) -> Result<String, Unopenable> {
    let Some(sealed) = text.strip_prefix(SEALED) else {
        return Ok(text.to_owned());
    };
    let sealed = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| Unopenable::Damaged)?;
    let plain = vault.open(&place(task), &sealed)?;
    String::from_utf8(plain).map_err(|_| Unopenable::Damaged)
}

fn place(task: TaskId) -> String {
    format!("start_token/{task}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::KeyVault;

    #[test]
    fn a_sealed_token_opens_for_its_task_and_under_its_key_only() {
        let (ours, other) = (KeyVault::with_key([1; 32]), KeyVault::with_key([2; 32]));
        let sealed = seal(&ours, TaskId(7), "wst_secret");
        assert!(!sealed.contains("secret"), "{sealed}");
        assert_eq!(open(&ours, TaskId(7), &sealed).as_deref(), Ok("wst_secret"));
        assert_eq!(open(&ours, TaskId(8), &sealed), Err(Unopenable::Damaged));
        let with_other = open(&other, TaskId(7), &sealed);
        assert!(
            matches!(with_other, Err(Unopenable::OtherKey { .. })),
            "{with_other:?}"
        );
        assert_eq!(open(&ours, TaskId(7), "sealed:?"), Err(Unopenable::Damaged));
        assert_eq!(open(&ours, TaskId(7), "wst_open").as_deref(), Ok("wst_open"));
    }

    #[test]
    fn tokens_are_long_different_and_kept_as_a_hash() {
        let (one, other) = (make().expect("randomness"), make().expect("randomness"));
        assert_ne!(one, other);
        assert_eq!(one.len(), PREFIX.len() + 43);
        assert_eq!(
            hash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
