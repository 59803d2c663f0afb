//! Faults in a business's specification with which no call could be made. Makes no call and resolves no name.

use std::collections::HashSet;

use super::options;
use crate::classify::Pointer;
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::business::{BusinessSpec, HandlerSpec, HookKind, HttpHandlerSpec};
use windrow_core::template::{Secrets, unfilled};
use windrow_engine::ports::handling::hook::HandlerFault;
use windrow_net::proxy::Proxy;
use windrow_net::{ClientCertificate, Half, tls};

/// Maximum number of headers that a business may set.
const HEADERS_MAX: usize = 50;
/// Maximum length of a header's value, in bytes. (Many servers take 8 KiB for all headers.)
const HEADER_VALUE_BYTES_MAX: usize = 4 * 1024;
/// Maximum length of a url, in bytes.
const URL_BYTES_MAX: usize = 2048;
/// Maximum length of a response pointer, in bytes.
const POINTER_BYTES_MAX: usize = 256;
/// Maximum size of a certificate bundle, in bytes.
const CA_BYTES_MAX: usize = 64 * 1024;

/// Returns every fault; none if calls can be made.
pub(super) fn faults(spec: &BusinessSpec, secrets: &BusinessSecrets) -> Vec<HandlerFault> {
    let mut found = Faults(Vec::new());
    if let HandlerSpec::Http(http) = &spec.handler {
        // A business without url and command is reported elsewhere.
        if !http.url.is_empty() {
            found.url("/url", &http.url);
            if let Some(name) = unfilled(&http.url) {
                found.add("/url", filled_elsewhere(name));
            }
        }
        check_headers(http, secrets, &mut found);
        check_rest(http, &mut found);
        check_connections(&http.proxy, &http.ca_pem, http.insecure_skip_verify, &mut found);
        let is_https = http.url.starts_with("https:");
        check_identity(&http.client_cert_pem, secrets, is_https, &mut found);
    }
    if let HandlerSpec::Request(own) = &spec.handler {
        let faults = crate::request::faults(&own.request, &Secrets(secrets.request.clone()));
        for fault in faults {
            found.add(fault.pointer, fault.what);
        }
        check_connections(&own.proxy, &own.ca_pem, own.insecure_skip_verify, &mut found);
        let is_https = own
            .request
            .origin()
            .is_some_and(|origin| origin.starts_with("https:"));
        check_identity(&own.client_cert_pem, secrets, is_https, &mut found);
    }
    for kind in HookKind::ALL {
        if let Some(url) = spec.hooks.get(kind).and_then(|hook| hook.url.as_deref()) {
            found.url(
                &format!("/hooks/{}/url", kind.as_str().trim_start_matches("task.")),
                url,
            );
        }
    }
    found.0
}

/// Explains that a url is called as it stands: a placeholder in it suggests a request.
fn filled_elsewhere(name: &str) -> String {
    format!(
        "{name} would be sent literally: items go in the body. To fill values in, use a `request` \
         (--request 'POST https://…'); write literal braces as %7B and %7D"
    )
}

struct Faults(Vec<HandlerFault>);

impl Faults {
    fn add(&mut self, pointer: impl Into<String>, what: impl Into<String>) {
        self.0.push(HandlerFault {
            pointer: pointer.into(),
            what: what.into(),
        });
    }

    fn url(&mut self, pointer: &str, url: &str) {
        if url.len() > URL_BYTES_MAX {
            self.add(pointer, format!("it is longer than {URL_BYTES_MAX} bytes"));
        } else if let Err(why) = options::uri(url) {
            self.add(pointer, why);
        } else if url.contains('#') {
            self.add(pointer, "it has a fragment (#…), which is never sent");
        }
    }
}

fn check_headers(http: &HttpHandlerSpec, secrets: &BusinessSecrets, found: &mut Faults) {
    let mut seen = HashSet::new();
    let open = http.headers.iter().map(|header| ("headers", header));
    let secret = secrets.headers.iter().map(|header| ("secret_headers", header));
    for (member, (name, value)) in open.chain(secret) {
        let pointer = format!("/{member}/{}", name.replace('~', "~0").replace('/', "~1"));
        if value.len() > HEADER_VALUE_BYTES_MAX {
            found.add(
                &pointer,
                format!("its value is longer than {HEADER_VALUE_BYTES_MAX} bytes"),
            );
        }
        match options::header(name, value) {
            Err(why) => found.add(&pointer, why),
            Ok((name, _)) if !seen.insert(name.clone()) => {
                found.add(&pointer, format!("the header {name} is set twice; remove one"));
            }
            Ok(_) => {}
        }
    }
    if http.headers.len() + secrets.headers.len() > HEADERS_MAX {
        found.add("/headers", format!("there are more than {HEADERS_MAX} headers"));
    }
}

fn check_rest(http: &HttpHandlerSpec, found: &mut Faults) {
    if http.response_pointer.len() > POINTER_BYTES_MAX {
        found.add(
            "/response_pointer",
            format!("it is longer than {POINTER_BYTES_MAX} bytes"),
        );
    } else if let Err(why) = Pointer::new(&http.response_pointer) {
        found.add("/response_pointer", why.to_string());
    }
}

fn check_connections(proxy: &Option<String>, ca_pem: &Option<String>, trusts_any: bool, found: &mut Faults) {
    if let Some(Err(why)) = proxy.as_deref().map(Proxy::parse) {
        found.add("/proxy", why);
    }
    if let Some(pem) = ca_pem {
        if pem.len() > CA_BYTES_MAX {
            found.add("/ca_pem", format!("it is longer than {CA_BYTES_MAX} bytes"));
        } else if let Err(why) = tls::authorities(pem) {
            found.add("/ca_pem", why);
        }
        if trusts_any {
            found.add(
                "/insecure_skip_verify",
                "conflicts with `ca_pem`, which verifies certificates; remove one of them",
            );
        }
    }
}

fn check_identity(cert: &Option<String>, secrets: &BusinessSecrets, is_https: bool, found: &mut Faults) {
    let (cert, key) = match (cert, &secrets.client_key) {
        (None, None) => return,
        (Some(_), None) => return found.add("/client_key_pem", "required: the key of `client_cert_pem`"),
        (None, Some(_)) => {
            return found.add(
                "/client_cert_pem",
                "required: the certificate of `client_key_pem`",
            );
        }
        (Some(cert), Some(key)) => (cert.clone(), key.clone()),
    };
    if !is_https {
        found.add(
            "/client_cert_pem",
            "only applies to an https:// URL: plain HTTP has no certificates",
        );
    }
    for (pointer, text) in [("/client_cert_pem", &cert), ("/client_key_pem", &key)] {
        if text.len() > CA_BYTES_MAX {
            return found.add(pointer, format!("it is longer than {CA_BYTES_MAX} bytes"));
        }
    }
    if let Err(fault) = (ClientCertificate::Texts { cert, key }).load() {
        let pointer = match fault.half {
            Half::Certificate => "/client_cert_pem",
            Half::Key => "/client_key_pem",
        };
        found.add(pointer, fault.why);
    }
}
