//! Seals on questions between nodes. The key is derived from that of `auth.key_file`, so nodes that share a store and
//! can open its secrets trust one another, and nobody else.
//!
//! Authenticated are the path, the target session, the sender, the time, the nonce and the body. A question is
//! accepted within a minute of its time, once: nonces are remembered as long as they could be used again. Answers are
//! authenticated with the nonce of their question, so that a listener at an old address of a node isn't trusted
//! either.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use windrow_core::ids::{SessionId, WallMs};
use windrow_engine::ports::ownership::peers::{PATH, PeerSeal, SKEW_MAX, Seal, SealError};

/// Maximum nonces remembered in each of two time spans; questions above that are rejected. A node with hundreds of
/// peers stays far below it.
const NONCES_MAX: usize = 200_000;
/// Length of a nonce in bytes.
const NONCE: usize = 16;
/// Maximum length of a nonce or a name that is examined, in bytes.
const TEXT_MAX: usize = 128;

/// Key shared by the nodes of a store.
pub struct PeerKey {
    mac: Hmac<Sha256>,
    heard: Mutex<Heard>,
}

/// Nonces seen, in two spans: the older one is dropped when the newer one is as long as a seal is valid.
#[derive(Debug, Default)]
struct Heard {
    since: i64,
    now: HashSet<String>,
    before: HashSet<String>,
}

impl fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PeerKey")
    }
}

impl PeerKey {
    /// Creates the key from one derived from the key that seals secrets.
    pub fn new(derived: &[u8; 32]) -> PeerKey {
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(derived);
        PeerKey {
            mac: mac.expect("HMAC takes keys of any length"),
            heard: Mutex::default(),
        }
    }

    fn proof(&self, parts: &[&str], body: &[u8]) -> String {
        let mut mac = self.mac.clone();
        for part in parts {
            // With its length, so that no two lists of parts look alike.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac.update(&Sha256::digest(body));
        hex(&mac.finalize().into_bytes())
    }

    fn question(&self, seal: &Seal, body: &[u8]) -> String {
        let (to, at) = (seal.to.0.to_string(), seal.at.0.to_string());
        self.proof(
            &[
                "windrow question 1",
                "POST",
                PATH,
                &to,
                &seal.from,
                &at,
                &seal.nonce,
            ],
            body,
        )
    }
}

impl PeerSeal for PeerKey {
    fn seal(&self, to: SessionId, from: &str, body: &[u8], now: WallMs) -> Seal {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).expect("the operating system gives random bytes once it has started");
        let mut seal = Seal {
            to,
            from: from.to_owned(),
            at: now,
            nonce: hex(&nonce),
            proof: String::new(),
        };
        seal.proof = self.question(&seal, body);
        seal
    }

    fn check(&self, seal: &Seal, body: &[u8], now: WallMs) -> Result<(), SealError> {
        if seal.nonce.len() > TEXT_MAX || seal.from.len() > TEXT_MAX {
            return Err(SealError::Forged);
        }
        if !is_same(&self.question(seal, body), &seal.proof) {
            return Err(SealError::Forged);
        }
        if now.since(seal.at) > SKEW_MAX || seal.at.since(now) > SKEW_MAX {
            return Err(SealError::Stale);
        }
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .hear(&seal.nonce, now)
    }

    fn prove(&self, nonce: &str, body: &[u8]) -> String {
        self.proof(&["windrow answer 1", nonce], body)
    }

    fn is_proved(&self, nonce: &str, body: &[u8], proof: &str) -> bool {
        is_same(&self.prove(nonce, body), proof)
    }
}

impl Heard {
    fn hear(&mut self, nonce: &str, now: WallMs) -> Result<(), SealError> {
        // Valid from a minute before its time to a minute after: a nonce may return two minutes later.
        let span = 2 * i64::try_from(SKEW_MAX.as_millis()).unwrap_or(i64::MAX);
        if now.0.saturating_sub(self.since) > span || now.0 < self.since {
            self.before = std::mem::take(&mut self.now);
            self.since = now.0;
        }
        if self.now.contains(nonce) || self.before.contains(nonce) {
            return Err(SealError::Replayed);
        }
        if self.now.len() >= NONCES_MAX {
            return Err(SealError::TooMany);
        }
        self.now.insert(nonce.to_owned());
        Ok(())
    }
}

/// Compares in constant time.
fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;

    const NOW: WallMs = WallMs(1_800_000_000_000);

    fn key() -> PeerKey {
        PeerKey::new(&[7; 32])
    }

    fn to() -> SessionId {
        SessionId(Uuid::from_u128(1))
    }

    #[test]
    fn a_question_is_believed_once_and_only_as_it_was_sealed() {
        let (asks, hears) = (key(), key());
        let seal = asks.seal(to(), "n1", b"{}", NOW);
        let changed = [
            Seal {
                to: SessionId(Uuid::from_u128(2)),
                ..seal.clone()
            },
            Seal {
                from: "n3".to_owned(),
                ..seal.clone()
            },
            Seal {
                at: NOW.plus(Duration::from_millis(1)),
                ..seal.clone()
            },
            Seal {
                nonce: "00".to_owned(),
                ..seal.clone()
            },
            Seal {
                proof: String::new(),
                ..seal.clone()
            },
            Seal {
                proof: seal.proof.to_uppercase(),
                ..seal.clone()
            },
        ];
        for forged in changed {
            assert_eq!(
                hears.check(&forged, b"{}", NOW),
                Err(SealError::Forged),
                "{forged:?}"
            );
        }
        assert_eq!(hears.check(&seal, b"{ }", NOW), Err(SealError::Forged));
        assert_eq!(
            PeerKey::new(&[8; 32]).check(&seal, b"{}", NOW),
            Err(SealError::Forged)
        );
        assert_eq!(
            hears.check(&seal, b"{}", NOW),
            Ok(()),
            "what was refused was not heard"
        );
        assert_eq!(hears.check(&seal, b"{}", NOW), Err(SealError::Replayed));
    }

    #[test]
    fn a_seal_holds_for_a_minute_and_its_nonce_is_remembered_for_longer() {
        let key = key();
        for (late_ms, heard) in [(59_000, true), (61_000, false), (-59_000, true), (-61_000, false)] {
            let seal = key.seal(to(), "n1", b"", NOW);
            let now = WallMs(NOW.0 + late_ms);
            assert_eq!(key.check(&seal, b"", now).is_ok(), heard, "{late_ms} ms");
        }
        let hears = self::key();
        let seal = key.seal(to(), "n1", b"", NOW);
        assert_eq!(hears.check(&seal, b"", WallMs(NOW.0 - 59_000)), Ok(()));
        for later in (-58_000..=60_000).step_by(1_000) {
            let heard = hears.check(&seal, b"", WallMs(NOW.0 + later));
            assert_eq!(heard, Err(SealError::Replayed), "{later} ms");
        }
    }

    #[test]
    fn an_answer_belongs_to_its_question() {
        let key = key();
        let proof = key.prove("abc", b"text");
        assert!(key.is_proved("abc", b"text", &proof));
        assert!(!key.is_proved("abd", b"text", &proof) && !key.is_proved("abc", b"other", &proof));
        assert!(!PeerKey::new(&[8; 32]).is_proved("abc", b"text", &proof));
        let seal = key.seal(to(), "n1", b"text", NOW);
        assert!(
            !key.is_proved(&seal.nonce, b"text", &seal.proof),
            "a question's proof is none of an answer"
        );
    }

    #[test]
    fn neither_key_nor_proof_shows() {
        assert_eq!(format!("{:?}", key()), "PeerKey");
    }
}
