//! Vault for secrets in the store, with XChaCha20-Poly1305 under the key of `auth.key_file`.
//!
//! A sealed value consists of: version (1 byte), key id (8 bytes), nonce (24 bytes, random: 192 bits never repeat),
//! cipher text with its tag. Version, key id and the name of its owner are authenticated with it. The key id is a
//! hash of the key, to tell a wrong key from damage. Neither `Debug` nor an error shows the key.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};

use crate::secret_file::{self, SecretFile, SecretFileError};
use windrow_engine::ports::access::vault::{KeyId, Unopenable, Vault};

/// First byte of every sealed value.
const VERSION: u8 = 1;
/// Length of a key id in bytes.
const KEY_ID: usize = 8;
/// Length of a nonce in bytes.
const NONCE: usize = 24;
/// Name of the file created in the data directory if `auth.key_file` is not set.
const KEY_FILE_DEFAULT: &str = "key";
/// Kind of the key file, wherever it is.
const KEY: SecretFile = SecretFile {
    what: "key",
    setting: "auth.key_file",
    form: "is not 32 bytes in base64; to create a key: openssl rand -base64 32 > FILE; chmod 600 FILE",
    refused: 0o026,
};

/// Key of the node, ready for use.
pub struct KeyVault {
    cipher: XChaCha20Poly1305,
    id: [u8; KEY_ID],
    peers: [u8; 32],
}

impl fmt::Debug for KeyVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyVault")
    }
}

impl KeyVault {
    /// Opens a vault with the key of a file; without one, with that of a file in `data_dir`, which is created once.
    ///
    /// # Errors
    /// See [`SecretFileError`].
    pub fn open(key_file: Option<&Path>, data_dir: &Path) -> Result<KeyVault, SecretFileError> {
        if let Some(path) = key_file {
            return read(path);
        }
        let path = data_dir.join(KEY_FILE_DEFAULT);
        if !path.exists() {
            make(&path).map_err(|cause| KEY.unusable(&path, cause))?;
        }
        read(&path)
    }

    /// Checks that [`KeyVault::open`] would find a usable key or create one; creates none.
    ///
    /// # Errors
    /// See [`SecretFileError`].
    pub fn look(key_file: Option<&Path>, data_dir: &Path) -> Result<(), SecretFileError> {
        let made = data_dir.join(KEY_FILE_DEFAULT);
        match key_file {
            Some(path) => read(path).map(drop),
            None if made.exists() => read(&made).map(drop),
            None => Ok(()),
        }
    }

    /// Returns the path of the key that a node created, or was given, in its data directory; `None` if there is none.
    pub fn made_in(data_dir: &Path) -> Option<PathBuf> {
        Some(data_dir.join(KEY_FILE_DEFAULT)).filter(|path| path.exists())
    }

    /// Creates a vault with this key.
    pub fn with_key(key: [u8; 32]) -> KeyVault {
        let hash = Sha256::new()
            .chain_update(b"windrow key id")
            .chain_update(key)
            .finalize();
        let mut id = [0; KEY_ID];
        id.copy_from_slice(&hash[..KEY_ID]);
        let peers = Sha256::new()
            .chain_update(b"windrow peers 1")
            .chain_update(key)
            .finalize()
            .into();
        KeyVault {
            cipher: XChaCha20Poly1305::new(&Key::from(key)),
            id,
            peers,
        }
    }

    /// Returns a key derived from this one for messages between nodes. It reveals nothing about this one.
    pub fn peers_key(&self) -> &[u8; 32] {
        &self.peers
    }

    /// Returns the data that is authenticated besides the text.
    fn context(&self, belongs_to: &str) -> Vec<u8> {
        [&[VERSION], &self.id[..], belongs_to.as_bytes()].concat()
    }
}

fn read(path: &Path) -> Result<KeyVault, SecretFileError> {
    let bytes = STANDARD.decode(KEY.read(path)?.trim()).ok();
    let key = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    key.map(KeyVault::with_key).ok_or_else(|| KEY.malformed(path))
}

/// Creates a key file, completely or not at all; one that another process created meanwhile stays.
fn make(path: &Path) -> io::Result<()> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    // If a file existed already, that one is read.
    secret_file::write(path, &format!("{}\n", STANDARD.encode(key))).map(drop)
}

impl Vault for KeyVault {
    fn seal(&self, belongs_to: &str, plain: &[u8]) -> Vec<u8> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).expect("the operating system gives random bytes once it has started");
        let aad = self.context(belongs_to);
        let payload = Payload {
            msg: plain,
            aad: &aad,
        };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.expect("only texts of many gigabytes can't be sealed");
        [&[VERSION], &self.id[..], &nonce, &sealed].concat()
    }

    fn open(&self, belongs_to: &str, sealed: &[u8]) -> Result<Vec<u8>, Unopenable> {
        let (version, rest) = sealed.split_first().ok_or(Unopenable::Damaged)?;
        let (id, rest) = rest.split_first_chunk::<KEY_ID>().ok_or(Unopenable::Damaged)?;
        let (nonce, text) = rest.split_first_chunk::<NONCE>().ok_or(Unopenable::Damaged)?;
        if *version != VERSION {
            return Err(Unopenable::Damaged);
        }
        if *id != self.id {
            let (sealed, own) = (KeyId(*id), KeyId(self.id));
            return Err(Unopenable::OtherKey { sealed, own });
        }
        let aad = self.context(belongs_to);
        self.cipher
            .decrypt(&XNonce::from(*nonce), Payload { msg: text, aad: &aad })
            .map_err(|_| Unopenable::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::secret_file::SecretFault;

    const ROW: &str = "business/push";

    fn is_io(opened: Result<KeyVault, SecretFileError>) -> bool {
        matches!(opened, Err(error) if matches!(error.fault, SecretFault::Io(_)))
    }

    #[test]
    fn what_was_sealed_opens_again_and_shows_nothing_before() {
        let vault = KeyVault::with_key([7; 32]);
        let sealed = vault.seal(ROW, b"whsec_geheim");
        assert!(!sealed.windows(6).any(|part| part == b"geheim"));
        assert_ne!(sealed, vault.seal(ROW, b"whsec_geheim"), "each nonce is its own");
        assert_eq!(vault.open(ROW, &sealed).as_deref(), Ok(&b"whsec_geheim"[..]));
        assert_eq!(vault.open(ROW, &vault.seal(ROW, b"")).as_deref(), Ok(&b""[..]));
        assert_eq!(format!("{vault:?}"), "KeyVault");
    }

    #[test]
    fn each_changed_byte_is_noticed() {
        let vault = KeyVault::with_key([7; 32]);
        let sealed = vault.seal(ROW, b"secret");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            let opened = vault.open(ROW, &changed);
            let is_key_id = (1..=KEY_ID).contains(&at);
            let is_expected = match opened {
                Err(Unopenable::OtherKey { own, sealed }) => is_key_id && own.0 == vault.id && sealed != own,
                other => !is_key_id && other == Err(Unopenable::Damaged),
            };
            assert!(is_expected, "byte {at}");
        }
        for length in 0..sealed.len() {
            assert_eq!(
                vault.open(ROW, &sealed[..length]),
                Err(Unopenable::Damaged),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn another_row_or_key_opens_nothing() {
        let sealed = KeyVault::with_key([7; 32]).seal(ROW, b"secret");
        let vault = KeyVault::with_key([7; 32]);
        assert_eq!(vault.open("business/other", &sealed), Err(Unopenable::Damaged));
        let other = KeyVault::with_key([8; 32]);
        let (sealed_with, own) = (KeyId(vault.id), KeyId(other.id));
        assert_eq!(
            other.open(ROW, &sealed),
            Err(Unopenable::OtherKey {
                sealed: sealed_with,
                own
            })
        );
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_only_and_then_kept() {
        let place = tempfile::tempdir().expect("a directory");
        let sealed = KeyVault::open(None, place.path())
            .expect("made")
            .seal(ROW, b"secret");
        let path = place.path().join(KEY_FILE_DEFAULT);
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            std::fs::read_dir(place.path()).expect("readable").count(),
            1,
            "no draft is left"
        );
        let again = KeyVault::open(None, place.path()).expect("kept");
        assert_eq!(again.open(ROW, &sealed).as_deref(), Ok(&b"secret"[..]));
    }

    #[test]
    fn no_planted_link_is_followed_and_what_is_there_stays() {
        let place = tempfile::tempdir().expect("a directory");
        let (path, elsewhere) = (place.path().join("key"), place.path().join("elsewhere"));
        symlink(&elsewhere, &path).expect("planted");
        // The name that drafts once had.
        let guessed = path.with_extension(format!("new-{}", std::process::id()));
        symlink(&elsewhere, &guessed).expect("planted");
        assert!(
            !secret_file::write(&path, "secret").expect("refused"),
            "the name is taken"
        );
        assert!(!elsewhere.exists(), "nothing was written through a link");
        assert!(is_io(KeyVault::open(None, place.path())), "there is no key");
        std::fs::remove_file(&path).expect("removed");
        assert!(secret_file::write(&path, "first").expect("written"));
        assert!(!secret_file::write(&path, "second").expect("refused"));
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "first");
        assert_eq!(
            std::fs::read_dir(place.path()).expect("readable").count(),
            2,
            "no draft is left"
        );
    }

    #[test]
    fn a_key_that_is_none_or_lies_open_is_refused_without_being_shown() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("k");
        let open = || KeyVault::open(Some(&path), place.path());
        assert!(is_io(open()), "a named file is never made");
        for (text, mode, sound) in [
            (STANDARD.encode([1; 32]), 0o600, true),
            (format!("{}\n", STANDARD.encode([1; 32])), 0o440, true),
            (STANDARD.encode([1; 31]), 0o600, false),
            ("geheim".to_owned(), 0o600, false),
            (STANDARD.encode([1; 32]), 0o604, false),
            (STANDARD.encode([1; 32]), 0o660, false),
        ] {
            std::fs::write(&path, &text).expect("written");
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("set");
            match open() {
                Ok(_) => assert!(sound, "{text} {mode:o}"),
                Err(error) => assert!(!sound && !error.to_string().contains(&text), "{error}"),
            }
            std::fs::remove_file(&path).expect("removed");
        }
    }
}
