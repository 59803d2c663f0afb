//! The first administrator's token: read from `auth.bootstrap_token_file`, or made once.
//!
//! Without it nobody could make the first token. A node whose store knows a valid administrator makes none, so that the
//! file can be removed once its token was put in a safe place.

use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::adapters::vault::write_private;
use crate::config::AuthMode;
use crate::domain::access::Role;
use crate::ports::StoreError;
use crate::ports::task_store::Actor;
use crate::service::tokens::{self, TOKEN_PREFIX, TokenWish};
use crate::service::{Service, ServiceError};

/// The file in the data directory, when the configured one can't be written.
const TOKEN_FILE_DEFAULT: &str = "admin.token";
/// Tokens read at once.
const PAGE: u32 = 500;

/// There is no first administrator.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The file can't be read or made.
    #[error("the token file {} can't be used: {cause}; check auth.bootstrap_token_file and its permissions", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It holds something else.
    #[error("{} holds no token (wrk_ and 43 letters, digits, - or _); remove it, and one is made", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// Everybody on the machine may read it.
    #[error("everybody may read or change the token file {}; chmod 0600 it", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The store, or the system's randomness.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl From<StoreError> for BootstrapError {
    fn from(error: StoreError) -> BootstrapError {
        BootstrapError::Service(error.into())
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// Nobody signs in here, or there are administrators already.
    NotNeeded,
    /// The token of this file is an administrator's.
    Read(PathBuf),
    /// The same; the file was made now.
    Made(PathBuf),
}

/// Sees to it that there is an administrator's token, and says in which file it is.
///
/// # Errors
/// See [`BootstrapError`].
pub async fn admin(service: &Service, data_dir: &Path) -> Result<Bootstrap, BootstrapError> {
    let config = service.config();
    if config.auth.mode == AuthMode::Off {
        return Ok(Bootstrap::NotNeeded);
    }
    let fallback = data_dir.join(TOKEN_FILE_DEFAULT);
    let places: Vec<PathBuf> = config.auth.bootstrap_token_file.iter().cloned().chain([fallback]).collect();
    for place in &places {
        if let Some(token) = read(place)? {
            store(service, &token).await?;
            return Ok(Bootstrap::Read(place.clone()));
        }
    }
    if has_administrator(service).await? {
        return Ok(Bootstrap::NotNeeded);
    }
    let token = tokens::make(TOKEN_PREFIX)?;
    let place = write_to_first(&places, &token)?;
    store(service, &token).await?;
    Ok(Bootstrap::Made(place))
}

fn read(path: &Path) -> Result<Option<String>, BootstrapError> {
    let fail = |cause| BootstrapError::Io { path: path.to_owned(), cause };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(cause) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(cause) => return Err(fail(cause)),
    };
    let mode = std::fs::metadata(path).map_err(fail)?.permissions().mode();
    if mode & 0o026 != 0 {
        return Err(BootstrapError::Exposed { path: path.to_owned() });
    }
    let token = text.trim();
    if !tokens::is_token(token) {
        return Err(BootstrapError::Malformed { path: path.to_owned() });
    }
    Ok(Some(token.to_owned()))
}

/// Writes the token to the first place that can be written.
fn write_to_first(places: &[PathBuf], token: &str) -> Result<PathBuf, BootstrapError> {
    let mut last = None;
    for place in places {
        match write_private(place, &format!("{token}\n")) {
            Ok(()) => return Ok(place.clone()),
            Err(cause) => last = Some(BootstrapError::Io { path: place.clone(), cause }),
        }
    }
    let nowhere = || ServiceError::Internal("there is no place for the first token".to_owned()).into();
    Err(last.unwrap_or_else(nowhere))
}

/// A token that is stored already keeps what it is: one that was revoked stays revoked.
async fn store(service: &Service, token: &str) -> Result<(), BootstrapError> {
    let wish =
        TokenWish { name: "bootstrap".to_owned(), role: Role::Admin, business: None, expires_at: None };
    let reason = Some("the first administrator".to_owned());
    let actor = Actor { name: "windrow".to_owned(), source: "system", reason, request_id: None };
    let new = tokens::new_token(token, wish);
    service.parts.tokens.add_token(&new, &actor, service.now()).await?;
    Ok(())
}

async fn has_administrator(service: &Service) -> Result<bool, BootstrapError> {
    let (now, mut after) = (service.now(), None);
    loop {
        let page = service.tokens(after, PAGE).await?;
        let is_valid = |expires: Option<_>| expires.is_none_or(|at| at > now);
        let found = page.iter().any(|token| {
            token.role == Role::Admin && token.revoked_at.is_none() && is_valid(token.expires_at)
        });
        if found || page.len() < PAGE as usize {
            return Ok(found);
        }
        after = page.last().map(|token| token.id);
    }
}
