//! Token of the first administrator: read from `auth.bootstrap_token_file`, or created once.
//!
//! Without it nobody could create the first token. A node whose store has a valid administrator creates none, so the
//! file can be deleted once its token is in a safe place.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use windrow_config::{Auth, AuthMode};
use windrow_core::business::access::Role;
use windrow_core::ids::WallMs;
use windrow_engine::actors::runtime::begin;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::token_store::{TokenGrant, TokenStore, TokenView};
use windrow_engine::ports::tasks::store::Actor;
use windrow_host::secret_file::{self, SecretFault, SecretFile, SecretFileError};
use windrow_server::service::access::tokens::{self, BOOTSTRAP, TOKEN_PREFIX};
use windrow_server::service::{Service, ServiceError};

/// File in the data directory, used if the configured one can't be written.
const TOKEN_FILE_DEFAULT: &str = "admin.token";
/// Rules for both possible token files.
const TOKEN: SecretFile = SecretFile {
    what: "token file",
    setting: "auth.bootstrap_token_file",
    form: "contains no token (wrk_ and 43 letters, digits, - or _); remove it to have one created",
    refused: 0o026,
};
/// Number of tokens read per page.
const PAGE: u32 = 500;

/// Error in providing the first administrator's token.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The file can't be read or created, or has other content.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// The system's random number generator failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Ensures that an administrator's token exists, and returns its file. `None` if authentication is off, or if the
/// store has an administrator and no file has a token.
///
/// # Errors
/// See [`BootstrapError`].
pub(crate) async fn admin(service: &Service, data_dir: &Path) -> Result<Option<PathBuf>, BootstrapError> {
    let (config, now) = (service.config(), service.now());
    first(&*service.access.tokens, &config.auth, data_dir, now).await
}

/// Checks that existing token files are usable, without creating any.
///
/// # Errors
/// See [`BootstrapError`].
pub(crate) fn look(auth: &Auth, data_dir: &Path) -> Result<(), BootstrapError> {
    match auth.mode {
        AuthMode::Off => Ok(()),
        AuthMode::Token | AuthMode::Proxy => known(&places(auth, data_dir)).map(drop),
    }
}

/// Returns the possible paths of the token file, the configured one first.
fn places(auth: &Auth, data_dir: &Path) -> Vec<PathBuf> {
    auth.bootstrap_token_file
        .iter()
        .cloned()
        .chain([data_dir.join(TOKEN_FILE_DEFAULT)])
        .collect()
}

/// Returns the first path that has a token.
fn known(places: &[PathBuf]) -> Result<Option<(&PathBuf, String)>, BootstrapError> {
    for place in places {
        if let Some(token) = read(place)? {
            return Ok(Some((place, token)));
        }
    }
    Ok(None)
}

async fn first(
    store: &dyn TokenStore,
    auth: &Auth,
    data_dir: &Path,
    now: WallMs,
) -> Result<Option<PathBuf>, BootstrapError> {
    if auth.mode == AuthMode::Off {
        return Ok(None);
    }
    let places = places(auth, data_dir);
    let (place, token) = match known(&places)? {
        Some((place, token)) => (place.clone(), token),
        None if has_administrator(store, now).await? => return Ok(None),
        None => {
            let place = write_to_first(&places, &tokens::make(TOKEN_PREFIX)?)?;
            // Another process may have created one at this moment. A dangling link is no token.
            let gone = || TOKEN.unusable(&place, ErrorKind::AlreadyExists.into());
            let token = read(&place)?.ok_or_else(gone)?;
            (place, token)
        }
    };
    remember(store, &token, now).await?;
    Ok(Some(place))
}

fn read(path: &Path) -> Result<Option<String>, BootstrapError> {
    let is_none = |fault: &SecretFault| {
        matches!(fault, SecretFault::Io(cause)
        if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
    };
    let text = match TOKEN.read(path) {
        Err(error) if is_none(&error.fault) => return Ok(None),
        text => text?,
    };
    let token = text.trim();
    if tokens::is_token(token) {
        Ok(Some(token.to_owned()))
    } else {
        Err(TOKEN.malformed(path).into())
    }
}

/// Writes the token to the first writable path. Never overwrites a file.
fn write_to_first(places: &[PathBuf], token: &str) -> Result<PathBuf, BootstrapError> {
    let mut last = ServiceError::Internal("no place to write the first token".to_owned()).into();
    for place in places {
        match secret_file::write(place, &format!("{token}\n")) {
            Ok(_) => return Ok(place.clone()),
            Err(cause) => last = TOKEN.unusable(place, cause).into(),
        }
    }
    Err(last)
}

/// Stores the token. One that is already stored is left as it is: a revoked token stays revoked.
async fn remember(store: &dyn TokenStore, token: &str, now: WallMs) -> Result<(), BootstrapError> {
    let wish = TokenGrant {
        name: BOOTSTRAP.to_owned(),
        role: Role::Admin,
        business: None,
        expires_at: None,
    };
    let write = Actor::windrow(Some("the first administrator".to_owned())).writes();
    let token = tokens::new_token(token, wish);
    begin::asked(|| store.add_token(&token, &write, now)).await?;
    Ok(())
}

async fn has_administrator(store: &dyn TokenStore, now: WallMs) -> Result<bool, BootstrapError> {
    let is_valid = |token: &TokenView| {
        let lasts = token.expires_at.is_none_or(|at| at > now);
        token.role == Role::Admin && token.revoked_at.is_none() && lasts
    };
    let mut after = None;
    loop {
        let page = begin::asked(|| store.tokens(after, PAGE)).await?;
        let found = page.iter().any(is_valid);
        if found || page.len() < PAGE as usize {
            return Ok(found);
        }
        after = page.last().map(|token| token.id);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use windrow_store::sql::Store;

    const NOW: WallMs = WallMs(1_000);

    struct Place {
        directory: tempfile::TempDir,
        store: Store,
    }

    impl Place {
        async fn new() -> Place {
            let directory = tempfile::tempdir().expect("a directory");
            let store = Store::open(&directory.path().join("windrow.db"))
                .await
                .expect("opened");
            Place { directory, store }
        }

        /// With `auth.bootstrap_token_file` at this path in the directory.
        async fn first(&self, file: &str) -> Result<Option<PathBuf>, BootstrapError> {
            let auth = Auth {
                bootstrap_token_file: Some(self.path(file)),
                ..Auth::default()
            };
            first(&self.store, &auth, self.directory.path(), NOW).await
        }

        fn path(&self, file: &str) -> PathBuf {
            self.directory.path().join(file)
        }

        async fn role_of(&self, file: &str) -> Option<Role> {
            let text = std::fs::read_to_string(self.path(file)).expect("there");
            let found = self.store.token(&tokens::hash(text.trim())).await.expect("read");
            found.map(|token| token.role)
        }
    }

    fn is(error: &BootstrapError, fault: impl Fn(&SecretFault) -> bool) -> bool {
        matches!(error, BootstrapError::File(why) if fault(&why.fault))
    }

    fn write(path: &Path, text: &str, mode: u32) {
        std::fs::write(path, text).expect("written");
        set_permissions(path, Permissions::from_mode(mode)).expect("set");
    }

    #[tokio::test]
    async fn a_token_is_made_once_for_its_owner_only_and_is_an_administrators() {
        let place = Place::new().await;
        let made = place.first("a.token").await.expect("made");
        assert_eq!(made, Some(place.path("a.token")));
        assert_eq!(place.role_of("a.token").await, Some(Role::Admin));
        let mode = std::fs::metadata(place.path("a.token"))
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            place.first("a.token").await.expect("read"),
            Some(place.path("a.token"))
        );
        assert_eq!(place.store.tokens(None, 9).await.expect("listed").len(), 1);
        std::fs::remove_file(place.path("a.token")).expect("put in a safe place");
        assert_eq!(place.first("a.token").await.expect("looked"), None);
    }

    #[tokio::test]
    async fn where_the_named_file_can_not_be_written_it_lies_in_the_data_directory() {
        let place = Place::new().await;
        let made = place.first("no/such/directory/a.token").await.expect("made");
        assert_eq!(made, Some(place.path(TOKEN_FILE_DEFAULT)));
        assert_eq!(place.role_of(TOKEN_FILE_DEFAULT).await, Some(Role::Admin));
    }

    #[tokio::test]
    async fn a_file_that_people_made_is_taken_unless_it_is_garbage_or_lies_open() {
        let place = Place::new().await;
        let token = tokens::make(TOKEN_PREFIX).expect("made");
        write(&place.path("a.token"), &format!("{token}\n"), 0o640);
        assert_eq!(
            place.first("a.token").await.expect("read"),
            Some(place.path("a.token"))
        );
        assert_eq!(place.role_of("a.token").await, Some(Role::Admin));
        write(&place.path("b.token"), "password1", 0o600);
        let garbage = place.first("b.token").await.expect_err("garbage");
        assert!(
            is(&garbage, |fault| matches!(fault, SecretFault::Malformed))
                && !garbage.to_string().contains("password1")
        );
        write(&place.path("c.token"), &token, 0o644);
        let open = place.first("c.token").await.expect_err("everybody may read it");
        assert!(is(&open, |fault| matches!(fault, SecretFault::Exposed)), "{open}");
    }

    #[tokio::test]
    async fn a_link_in_the_place_of_the_file_is_no_token() {
        let place = Place::new().await;
        let elsewhere = place.path("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, place.path("a.token")).expect("planted");
        let link = place.first("a.token").await.expect_err("a link");
        assert!(is(&link, |fault| matches!(fault, SecretFault::Io(_))), "{link}");
        assert!(!elsewhere.exists(), "nothing was written through it");
        assert!(
            place.store.tokens(None, 9).await.expect("listed").is_empty(),
            "nobody became administrator"
        );
    }

    #[tokio::test]
    async fn a_revoked_first_token_stays_revoked() {
        let place = Place::new().await;
        place.first("a.token").await.expect("made");
        let actor = Actor {
            name: "ann".to_owned(),
            source: "api",
            ..Actor::windrow(None)
        }
        .writes();
        let id = place.store.tokens(None, 1).await.expect("listed")[0].id;
        place.store.revoke_token(id, &actor, NOW).await.expect("revoked");
        place.first("a.token").await.expect("read");
        assert!(
            place.store.tokens(None, 9).await.expect("listed")[0]
                .revoked_at
                .is_some()
        );
    }
}
