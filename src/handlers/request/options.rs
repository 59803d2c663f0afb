//! Settings of a `request` handler, and their check.

use std::fmt;

use hyper::Method;

use super::ONE_ITEM_WHY;
use crate::classify::Pointer;
use crate::http::REPLY_BYTES_MAX_DEFAULT;
use crate::http::options::{client_cert, connect, uri};
use crate::scrub::SECRET_BYTES_MIN;
use windrow_config::HttpHandler;
use windrow_core::business::LimitsFrom;
use windrow_core::business::request::{RequestHandlerSpec, RequestSpec};
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::items::verdict::Failure;
use windrow_core::template::Secrets;
use windrow_core::template::request::{RequestFault, RequestTemplate};
use windrow_engine::ports::handling::handler::{BAD_HANDLER, OpenError};
use windrow_net::Outbound;

/// Maximum length of a pointer to an output, in bytes.
const POINTER_BYTES_MAX: usize = 256;

/// Settings of a `request` handler. `Debug` shows neither secrets nor templates.
#[derive(Clone)]
pub struct RequestOptions {
    /// Request, with the meaning of its responses.
    pub spec: RequestSpec,
    /// Secrets that the request contains.
    pub secrets: Secrets,
    /// Source of the limits that the API describes.
    pub limits_from: LimitsFrom,
    /// Settings for making connections.
    pub outbound: Outbound,
    /// Maximum size of a response, in bytes.
    pub reply_bytes_max: usize,
    /// Name of this node, for `user-agent`.
    pub node: String,
    /// Items per call, which can only be 1.
    pub batch: u32,
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestOptions")
            .field("secrets", &self.secrets)
            .field("batch", &self.batch)
            .finish_non_exhaustive()
    }
}

/// Settings that passed their check.
pub(super) struct Checked {
    pub(super) template: RequestTemplate,
    pub(super) method: Method,
    pub(super) is_https: bool,
    pub(super) pointer: Pointer,
}

impl RequestOptions {
    /// Returns the defaults for a request.
    pub fn new(spec: RequestSpec) -> RequestOptions {
        RequestOptions {
            spec,
            secrets: Secrets::default(),
            limits_from: LimitsFrom::Auto,
            outbound: Outbound::default(),
            reply_bytes_max: REPLY_BYTES_MAX_DEFAULT,
            node: "n1".into(),
            batch: 1,
        }
    }

    /// Returns a business's options for its request on top of the configuration's.
    pub fn for_business(
        config: &HttpHandler,
        own: &RequestHandlerSpec,
        secrets: &BusinessSecrets,
    ) -> RequestOptions {
        let usual = RequestOptions::new(own.request.clone());
        let mut options = RequestOptions {
            secrets: Secrets(secrets.request.clone()),
            limits_from: own.limits_from.unwrap_or(usual.limits_from),
            outbound: Outbound::to_handlers(config),
            ..usual
        };
        connect(
            &mut options.outbound,
            &own.proxy,
            &own.ca_pem,
            client_cert(&own.client_cert_pem, secrets),
            own.insecure_skip_verify,
        );
        options
    }

    /// Parses the settings that are text.
    pub(super) fn check(&self) -> Result<Checked, OpenError> {
        if self.batch != 1 {
            return Err(refuse(ONE_ITEM_WHY));
        }
        let checked = checked(&self.spec).map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(told).collect();
            refuse(&lines.join("; "))
        })?;
        checked
            .template
            .check_secrets(&self.secrets)
            .map_err(|why| refuse(&why))?;
        if let Some(name) = short(&self.secrets) {
            let why =
                format!("the secret {name:?} is shorter than {SECRET_BYTES_MIN} bytes; is it the right one?");
            return Err(refuse(&why));
        }
        self.outbound.proxies().map_err(|why| refuse(&why))?;
        Ok(checked)
    }
}

/// Returns the name of a secret that is too short to be told from other text.
pub(super) fn short(secrets: &Secrets) -> Option<&str> {
    let mut all = secrets.0.iter();
    all.find(|(_, value)| value.len() < SECRET_BYTES_MIN)
        .map(|(name, _)| name.as_str())
}

/// Returns the faults with which no call of a business's request could be made, with pointers into the business.
pub(crate) fn faults(spec: &RequestSpec, secrets: &Secrets) -> Vec<RequestFault> {
    let fault = |pointer: String, what: String| RequestFault { pointer, what };
    let template = match checked(spec) {
        Ok(checked) => checked.template,
        Err(faults) => {
            let inside = |one: RequestFault| fault(format!("/request{}", one.pointer), one.what);
            return faults.into_iter().map(inside).collect();
        }
    };
    let given = template.check_secrets(secrets).err();
    let short = short(secrets).map(|name| format!("{name:?} is shorter than {SECRET_BYTES_MIN} bytes"));
    let secrets = given.into_iter().chain(short);
    secrets
        .map(|what| fault("/request_secrets".to_owned(), what))
        .collect()
}

/// Checks that a request can be made, and parses it.
pub(super) fn checked(spec: &RequestSpec) -> Result<Checked, Vec<RequestFault>> {
    let fault = |pointer: &str, what: String| RequestFault {
        pointer: pointer.to_owned(),
        what,
    };
    let template = RequestTemplate::compile(spec)?;
    let (origin, is_https) = uri(template.url.origin()).map_err(|why| vec![fault("/call", why)])?;
    debug_assert!(origin.query().is_none(), "an origin ends before the path");
    let method = Method::from_bytes(template.method.as_bytes());
    let method = method.map_err(|why| vec![fault("/call", why.to_string())])?;
    if spec.result.len() > POINTER_BYTES_MAX {
        let what = format!("it is longer than {POINTER_BYTES_MAX} bytes");
        return Err(vec![fault("/result", what)]);
    }
    let pointer = Pointer::new(&spec.result).map_err(|why| vec![fault("/result", why.to_string())])?;
    Ok(Checked {
        template,
        method,
        is_https,
        pointer,
    })
}

fn told(fault: &RequestFault) -> String {
    let part = fault.pointer.trim_start_matches('/').replacen('/', " ", 1);
    format!("the request's {part} can't be used: {}", fault.what)
}

fn refuse(why: &str) -> OpenError {
    Failure::new(BAD_HANDLER, why).into()
}
