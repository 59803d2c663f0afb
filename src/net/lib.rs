//! Outgoing HTTP of a node: permitted destinations, connections, trust.
//!
//! | part | does |
//! |---|---|
//! | `outbound` | what a person may set for connections |
//! | `egress` | which addresses may be connected to |
//! | `connect`, `names`, `tls` | connects to a checked address of a name, through a proxy, with TLS |
//! | `line` | a connection that is cut off when it is given up in the middle of a call |
//! | `identity` | client certificates |
//! | `fetch` | the file behind a URL |
//! | `own` | requests to the operator's own services |
//! | `peers` | asks other nodes |

#![warn(missing_docs)]

pub mod connect;
pub mod egress;
mod fetch;
mod identity;
pub mod line;
mod names;
#[cfg(feature = "otlp")]
mod otlp;
mod outbound;
mod own;
pub mod peers;
pub mod tls;
mod words;

pub use fetch::{Fetched, Fetcher, Guard, checked_url};
pub use identity::{ClientCertificate, Half, Identity, IdentityFault};
#[cfg(feature = "otlp")]
pub use otlp::OtlpSender;
pub use outbound::{Outbound, Proxies};
pub use own::OwnClient;
pub use windrow_tls::{environment, idn, proxy};
pub use words::{is_header, is_port};
