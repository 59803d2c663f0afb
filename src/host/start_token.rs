//! Start tokens: what a business proves with that it was asked to prepare one start of a task. Only a hash is kept.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use windrow_engine::ports::StoreError;

/// How a start token begins.
pub const PREFIX: &str = "wst_";

/// A new token of 256 random bits.
///
/// # Errors
/// When the operating system has no randomness.
pub fn make() -> Result<String, StoreError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Unavailable(format!("no randomness: {error}")))?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// What is kept of a token: its SHA-256 as 64 hexadecimal digits.
pub fn hash(token: &str) -> String {
    Sha256::digest(token.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
