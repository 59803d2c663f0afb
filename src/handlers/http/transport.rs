//! Pools of connections, shared by runs with equal options for connecting.
//!
//! Otherwise each of ten thousand runs would have its own pool and its own copy of the trusted certificates. Over
//! HTTP/2 only a few runs share a pool: it has one connection per host, and a server limits the calls of a
//! connection.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hyper::body::Incoming;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;

use super::client::{GatedBody, HEADER_BYTES_MAX, HEADERS_MAX};
use super::direct::{Connect, Direct, Wire};
use super::fault::RequestError;
use crate::sign::{KeyRing, SecretError, Signer};
use windrow_core::items::verdict::Failure;
use windrow_engine::ports::handling::handler::OpenError;
use windrow_net::line::Lines;
use windrow_net::{Identity, Outbound, tls};

/// Maximum number of runs that share a pool over HTTP/2. (Servers allow 100 to 250 calls at a time on an HTTP/2
/// connection, and a run begins with 64 in flight.)
const USERS_MAX: usize = 4;

/// Way in which requests reach their host.
enum Way {
    /// Over HTTP/1.1, with connections that calls drive.
    Direct(Direct),
    /// Over a negotiated protocol, which may be HTTP/2.
    Negotiated(Box<Client<Lines, GatedBody>>),
}

/// Connections, with the number that were made.
pub(crate) struct Pool {
    way: Way,
    pub(crate) made: Arc<AtomicUsize>,
    users: Arc<()>,
}

impl Pool {
    fn has_room(&self) -> bool {
        matches!(self.way, Way::Direct(_)) || Arc::strong_count(&self.users) <= USERS_MAX
    }

    /// Returns true if a TLS handshake is answered at the address of this plain HTTP URL. No request is sent, and no
    /// certificate is trusted.
    pub(super) async fn speaks_tls(&self, plain: &Uri) -> bool {
        match &self.way {
            Way::Direct(direct) => direct.speaks_tls(plain).await,
            Way::Negotiated(_) => false,
        }
    }

    /// Begins an exchange over the pool.
    pub(super) fn exchange(&self) -> Exchange<'_> {
        Exchange {
            way: &self.way,
            used: None,
        }
    }
}

/// One request and its response. Dropping it before the end closes its connection.
pub(super) struct Exchange<'a> {
    way: &'a Way,
    used: Option<Box<Wire>>,
}

impl Exchange<'_> {
    /// Sends the request. If the server didn't take it, or if the kept connection ended before any byte of a
    /// response, it is sent once more, as `again` makes it.
    pub(super) async fn send(
        &mut self,
        request: Request<GatedBody>,
        again: impl FnOnce() -> Option<Request<GatedBody>>,
    ) -> Result<Response<Incoming>, RequestError> {
        let error = match self.send_once(request, Connect::IfNoneIsIdle).await {
            Err(error) if error.is_to_be_sent_again() => error,
            sent => return sent,
        };
        let request = again().ok_or(error)?;
        // Boxed: this is rare, and would make the future of every call large.
        Box::pin(self.send_once(request, Connect::Anew)).await
    }

    async fn send_once(
        &mut self,
        request: Request<GatedBody>,
        connection: Connect,
    ) -> Result<Response<Incoming>, RequestError> {
        match self.way {
            Way::Direct(direct) => direct.send(request, &mut self.used, connection).await,
            Way::Negotiated(client) => client.request(request).await.map_err(RequestError::negotiated),
        }
    }

    /// Reads the response or a part of it, while driving the connection.
    pub(super) async fn read<F: Future>(&mut self, work: F) -> F::Output {
        match &mut self.used {
            Some(wire) => wire.drive(work).await,
            None => work.await,
        }
    }

    /// Ends the exchange once the response was read, so that another may use the connection.
    pub(super) fn end(self) {
        if let (Way::Direct(direct), Some(wire)) = (self.way, self.used) {
            direct.keep(wire);
        }
    }
}

/// Right to use a pool; the pool's connections close with the last lease.
pub(crate) struct Lease {
    pub(crate) pool: Arc<Pool>,
    _user: Arc<()>,
}

/// Connection pools of a node. Cheap to share behind an `Arc`.
#[derive(Default)]
pub struct Transports {
    pools: Mutex<HashMap<[u8; 32], Vec<Weak<Pool>>>>,
    /// TLS settings with the system's certificates or those of a file, which are read once.
    trusts: Mutex<HashMap<Option<PathBuf>, ClientConfig>>,
    /// Signers of businesses with live runs, by slug.
    rings: Mutex<HashMap<String, Weak<KeyRing>>>,
}

impl std::fmt::Debug for Transports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transports({} kinds)", lock(&self.pools).len())
    }
}

impl Transports {
    /// Returns the key ring of a business, which signs with these secrets from now on; all runs of the business share
    /// it.
    ///
    /// # Errors
    /// If a secret is invalid.
    pub fn ring(&self, business: &str, secrets: &[String]) -> Result<Arc<KeyRing>, SecretError> {
        let signer = Signer::new(secrets)?;
        let mut rings = lock(&self.rings);
        if let Some(ring) = rings.get(business).and_then(Weak::upgrade) {
            ring.set(signer);
            return Ok(ring);
        }
        rings.retain(|_, ring| ring.strong_count() > 0);
        let ring = Arc::new(KeyRing::new(signer));
        rings.insert(business.to_owned(), Arc::downgrade(&ring));
        Ok(ring)
    }

    /// Returns a lease on a pool for these options that has room for another user.
    ///
    /// # Errors
    /// If there are no certificates to trust, the client certificate can't be presented, or the proxy is invalid.
    pub(crate) fn lease(&self, outbound: &Outbound, is_https: bool) -> Result<Lease, OpenError> {
        let identity = identity(outbound, is_https)?;
        let kind = kind(outbound, is_https, identity.as_ref());
        let mut pools = lock(&self.pools);
        // The newest pool is the most likely to have room.
        let same = pools
            .get(&kind)
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .rev();
        let free = same.filter_map(Weak::upgrade).find(|pool| pool.has_room());
        if let Some(pool) = free {
            return Ok(Lease {
                _user: pool.users.clone(),
                pool,
            });
        }
        let pool = Arc::new(self.make(outbound, is_https, identity)?);
        pools.retain(|_, same| {
            same.retain(|pool| pool.strong_count() > 0);
            !same.is_empty()
        });
        pools.entry(kind).or_default().push(Arc::downgrade(&pool));
        Ok(Lease {
            _user: pool.users.clone(),
            pool,
        })
    }

    /// Returns a lease on a pool that nobody shares.
    ///
    /// # Errors
    /// As for [`Transports::lease`].
    pub(crate) fn alone(&self, outbound: &Outbound, is_https: bool) -> Result<Lease, OpenError> {
        let identity = identity(outbound, is_https)?;
        let pool = Arc::new(self.make(outbound, is_https, identity)?);
        Ok(Lease {
            _user: pool.users.clone(),
            pool,
        })
    }

    fn make(
        &self,
        outbound: &Outbound,
        is_https: bool,
        identity: Option<Identity>,
    ) -> Result<Pool, OpenError> {
        let made = Arc::new(AtomicUsize::new(0));
        let mut tls = self.tls(outbound, is_https)?;
        if let Some(identity) = identity {
            identity.apply(&mut tls);
        }
        let refuse = |why| OpenError::from(Failure::new("BAD_HANDLER", why));
        let lines = outbound.lines(tls, made.clone()).map_err(refuse)?;
        let way = if is_https && outbound.http2 {
            Way::Negotiated(Box::new(negotiated(lines, outbound)))
        } else {
            Way::Direct(Direct::new(lines, outbound.pool_idle))
        };
        Ok(Pool {
            way,
            made,
            users: Arc::new(()),
        })
    }

    fn tls(&self, options: &Outbound, is_https: bool) -> Result<ClientConfig, OpenError> {
        let failed = |why| OpenError::from(Failure::new("TLS", why));
        if !is_https {
            return Ok(tls::trusting_nobody());
        }
        if options.insecure_skip_verify || options.ca_pem.is_some() {
            return tls::config(options).map_err(failed);
        }
        let mut trusts = lock(&self.trusts);
        if let Some(known) = trusts.get(&options.ca_file) {
            return Ok(known.clone());
        }
        let config = tls::config(options).map_err(failed)?;
        trusts.insert(options.ca_file.clone(), config.clone());
        Ok(config)
    }
}

/// Returns the client certificate for these options, if TLS is spoken.
fn identity(outbound: &Outbound, is_https: bool) -> Result<Option<Identity>, OpenError> {
    let client_cert = outbound.client_cert.as_ref().filter(|_| is_https);
    let loaded = client_cert.map(|one| one.load()).transpose();
    loaded.map_err(|why| Failure::new("CLIENT_CERT", format!("client certificate: {why}")).into())
}

fn negotiated(lines: Lines, outbound: &Outbound) -> Client<Lines, GatedBody> {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .pool_idle_timeout(outbound.pool_idle)
        .http1_max_buf_size(HEADER_BYTES_MAX)
        .http1_max_headers(HEADERS_MAX)
        .http2_max_header_list_size(HEADER_BYTES_MAX as u32)
        .build(lines)
}

/// Returns a digest of everything that a pool is made of, and of the thread that its connections are on: used on
/// another thread, each response would wake it.
fn kind(outbound: &Outbound, is_https: bool, identity: Option<&Identity>) -> [u8; 32] {
    let Outbound {
        connect_timeout,
        first_contact: _,
        pool_idle,
        http2,
        ca_file,
        ca_pem,
        client_cert: _,
        insecure_skip_verify,
        egress,
        proxy,
        environment,
    } = outbound;
    let times = (connect_timeout, pool_idle, http2, is_https);
    let thread = Handle::try_current().map(|thread| thread.id()).ok();
    let trust = (
        ca_file,
        ca_pem,
        insecure_skip_verify,
        identity.map(Identity::digest),
    );
    let text = format!("{:?}", (times, trust, egress, proxy, environment, thread));
    Sha256::digest(text.as_bytes()).into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HttpOptions;

    #[tokio::test]
    async fn runs_with_equal_options_share_a_pool_until_it_is_full() {
        let transports = Transports::default();
        let lease = |options: &HttpOptions| transports.lease(&options.outbound, true).expect("leased");
        let options = |url| {
            let mut options = HttpOptions::new(url);
            options.outbound.insecure_skip_verify = true;
            options
        };
        let (here, there) = (options("https://a"), options("https://b"));
        let mut leases: Vec<Lease> = (0..USERS_MAX).map(|_| lease(&here)).collect();
        assert!(leases.iter().all(|one| Arc::ptr_eq(&one.pool, &leases[0].pool)));
        assert!(
            !Arc::ptr_eq(&lease(&there).pool, &leases[0].pool),
            "the url doesn't matter, room does"
        );
        leases.pop();
        assert!(Arc::ptr_eq(&lease(&there).pool, &leases[0].pool));
        let mut plain = here;
        plain.outbound.http2 = false;
        let many: Vec<Lease> = (0..=USERS_MAX).map(|_| lease(&plain)).collect();
        assert!(!Arc::ptr_eq(&many[0].pool, &leases[0].pool));
        assert!(
            many.iter().all(|one| Arc::ptr_eq(&one.pool, &many[0].pool)),
            "over HTTP/1.1 a call has a connection of its own"
        );
        let gone = Arc::downgrade(&leases[0].pool);
        leases.clear();
        assert_eq!(gone.strong_count(), 0, "nothing keeps a pool without users");
    }
}
