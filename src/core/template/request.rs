//! Template of a whole request: compiled once, checked against the available names, bound to constant values, then
//! rendered for each item.

use std::collections::HashSet;
use windrow_words::{Message, request as say};

use super::item::{Item, Roots};
use super::placeholder::{Placeholder, Source};
use super::{Constants, Place, Secrets, Template, TemplateFault, UrlTemplate, ValueFault, media};
use crate::business::request::RequestSpec;
use crate::text::quoted;

/// Maximum length of method and URL. Unit: bytes.
pub const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// Maximum length of a header value. Unit: bytes. (Many servers accept 8 KiB for all headers.)
pub const HEADER_BYTES_MAX: usize = 4 * 1024;
/// Maximum length of a body template. Unit: bytes.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Example of a call.
const EXAMPLE: &str = "'POST https://api.example/orders/{id}'";
/// Maximum number of headers in a request.
const HEADERS_MAX: usize = 50;

/// Headers that belong to the connection, or that Windrow must set itself to read the response.
const RESERVED: [&str; 11] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "proxy-connection",
    "accept-encoding",
    "expect",
];

/// Fault in a part of a request's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFault {
    /// JSON pointer to the part (RFC 6901), in the members of [`RequestSpec`].
    pub pointer: String,
    /// Sentence that is shown to people.
    pub what: String,
}

/// Format in which a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// JSON, with placeholders for values.
    Json,
    /// Form data, which is percent-encoded.
    Form,
    /// Text of any other type.
    Text,
}

impl BodyKind {
    /// Returns the content type, unless the headers set another.
    pub fn content_type(self) -> &'static str {
        match self {
            BodyKind::Json => "application/json",
            BodyKind::Form => "application/x-www-form-urlencoded",
            BodyKind::Text => "text/plain; charset=utf-8",
        }
    }
}

/// Compiled template of a whole request.
#[derive(Clone, Debug)]
pub struct RequestTemplate {
    /// HTTP method, the same for all items.
    pub method: String,
    /// URL with placeholders in its path and query.
    pub url: UrlTemplate,
    /// Header names in lower case, with their values.
    pub headers: Vec<(String, Template)>,
    /// Body, or `None` for a request without one.
    pub body: Option<(BodyKind, Template)>,
    roots: Roots,
}

/// Request that is ready to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// URL with all values filled in.
    pub url: String,
    /// Values of the template's headers, in their order.
    pub headers: Vec<String>,
    /// Request body; empty if there is none.
    pub body: String,
}

impl RequestTemplate {
    /// Compiles a request's description.
    ///
    /// # Errors
    /// Returns every fault at once.
    pub fn compile(spec: &RequestSpec) -> Result<RequestTemplate, Vec<RequestFault>> {
        let mut compiler = Compiler::default();
        let target = compiler.target(&spec.call);
        let headers = compiler.headers(spec);
        let body = compiler.body(spec);
        compiler.statuses(spec);
        match target {
            Some((method, url)) if compiler.faults.is_empty() => Ok(RequestTemplate {
                method,
                url,
                headers,
                body,
                roots: compiler.roots,
            }),
            _ => Err(compiler.faults),
        }
    }

    /// Iterates over the placeholders of all parts.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        let headers = self.headers.iter().map(|(_, value)| value);
        let templates = headers.chain(self.body.as_ref().map(|(_, body)| body));
        self.url
            .placeholders()
            .chain(templates.flat_map(Template::placeholders))
    }

    /// Returns the columns or members of items that it names.
    pub fn columns(&self) -> &[String] {
        self.roots.names()
    }

    /// Iterates over the names of the secrets that it uses.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.placeholders().filter_map(|one| match &one.source {
            Source::Secret(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Iterates over the names of the task parameters that it uses.
    pub fn params(&self) -> impl Iterator<Item = &str> {
        self.placeholders().filter_map(|one| match &one.source {
            Source::Param(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Fails if a secret that it uses is not given, or if one is given that it doesn't use.
    pub fn check_secrets(&self, given: &Secrets) -> Result<(), String> {
        if let Some(name) = self.secrets().find(|name| !given.0.contains_key(*name)) {
            let missing = say::secret_missing(quoted(name), format!("{{secret.{name}}}"));
            return Err(missing.to_string());
        }
        let named: HashSet<&str> = self.secrets().collect();
        match given.0.keys().find(|name| !named.contains(name.as_str())) {
            Some(name) => {
                let unused = say::secret_unused(quoted(name), format!("{{secret.{name}}}"));
                Err(unused.to_string())
            }
            None => Ok(()),
        }
    }

    /// Binds all parts to the constant values; see [`Template::bind`].
    ///
    /// # Errors
    /// Fails as [`Template::bind`] does.
    pub fn bind(&self, constants: Constants<'_>) -> Result<RequestTemplate, ValueFault> {
        let header = |(name, value): &(String, Template)| Ok((name.clone(), value.bind(constants)?));
        let body = self.body.as_ref();
        Ok(RequestTemplate {
            method: self.method.clone(),
            url: self.url.bind(constants)?,
            headers: self
                .headers
                .iter()
                .map(header)
                .collect::<Result<_, ValueFault>>()?,
            body: body
                .map(|(kind, body)| Ok::<_, ValueFault>((*kind, body.bind(constants)?)))
                .transpose()?,
            roots: self.roots.clone(),
        })
    }

    /// Returns the values of an item that this request needs.
    pub fn item<'a>(&self, data: Option<&'a str>, index: u64, key: &'a str, attempt: u32) -> Item<'a> {
        Item::new(&self.roots, data, index, key, attempt)
    }

    /// Returns the request for an item.
    ///
    /// # Errors
    /// Fails if the item's data can't fill it.
    pub fn render(&self, item: &Item<'_>) -> Result<Rendered, ValueFault> {
        let mut rendered = Rendered::default();
        self.url.render(item, &mut rendered.url)?;
        for (name, value) in &self.headers {
            let mut text = String::new();
            let named = |fault: ValueFault| ValueFault(format!("header {name}: {fault}"));
            value.render(item, &mut text).map_err(named)?;
            rendered.headers.push(text);
        }
        if let Some((_, body)) = &self.body {
            body.render(item, &mut rendered.body)?;
        }
        Ok(rendered)
    }
}

#[derive(Default)]
struct Compiler {
    roots: Roots,
    faults: Vec<RequestFault>,
}

impl Compiler {
    fn fault(&mut self, pointer: impl Into<String>, what: Message) {
        self.faults.push(RequestFault {
            pointer: pointer.into(),
            what: what.to_string(),
        });
    }

    fn template(&mut self, pointer: &str, text: &str, place: Place, bytes_max: usize) -> Option<Template> {
        if text.len() > bytes_max {
            self.fault(pointer, say::too_long(bytes_max));
            return None;
        }
        let parsed = Template::parse(text, place, &mut self.roots);
        parsed.map_err(|TemplateFault(why)| self.fault(pointer, why)).ok()
    }

    /// Parses the method and the URL of a call, such as `POST https://…`.
    fn target(&mut self, text: &str) -> Option<(String, UrlTemplate)> {
        let found = if text.len() > REQUEST_BYTES_MAX {
            Err(TemplateFault(say::too_long(REQUEST_BYTES_MAX)))
        } else {
            target(text, &mut self.roots)
        };
        found.map_err(|TemplateFault(why)| self.fault("/call", why)).ok()
    }

    fn headers(&mut self, spec: &RequestSpec) -> Vec<(String, Template)> {
        if spec.headers.len() > HEADERS_MAX {
            self.fault("/headers", say::too_many_headers(HEADERS_MAX));
        }
        let mut seen = HashSet::new();
        let mut headers = Vec::new();
        for (name, value) in &spec.headers {
            let pointer = format!("/headers/{}", name.replace('~', "~0").replace('/', "~1"));
            let lower = name.to_ascii_lowercase();
            if name.is_empty() || !name.bytes().all(is_token) {
                self.fault(&pointer, say::header_name(quoted(name)));
            } else if RESERVED.contains(&lower.as_str()) {
                self.fault(&pointer, say::header_reserved(lower));
            } else if !seen.insert(lower.clone()) {
                self.fault(&pointer, say::header_twice(lower));
            } else if let Some(value) = self.template(&pointer, value, header_place(&lower), HEADER_BYTES_MAX)
            {
                headers.push((lower, value));
            }
        }
        headers
    }

    fn body(&mut self, spec: &RequestSpec) -> Option<(BodyKind, Template)> {
        let kinds = [
            ("/json", &spec.json, BodyKind::Json),
            ("/form", &spec.form, BodyKind::Form),
            ("/text", &spec.text, BodyKind::Text),
        ];
        let mut given = kinds
            .into_iter()
            .filter_map(|(pointer, text, kind)| Some((pointer, text.as_deref()?, kind)));
        let (pointer, text, kind) = given.next()?;
        if let Some((second, ..)) = given.next() {
            self.fault(second, say::two_bodies(&pointer[1..]));
        }
        let mut content_type = spec.headers.iter();
        let content_type = content_type.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let place = media::place_of(kind, content_type.map(|(_, value)| value.as_str()), text);
        let (place, why) = match place {
            Ok(place) => (place, None),
            Err(why) => (Place::Text, Some(why)),
        };
        // A file ends with a newline, which is not part of a form.
        let text = if place == Place::Form {
            text.trim_end_matches(['\r', '\n'])
        } else {
            text
        };
        let body = self.template(pointer, text, place, BODY_BYTES_MAX)?;
        match why.filter(|_| !body.is_constant()) {
            Some(why) => {
                self.fault(pointer, why);
                None
            }
            None => Some((kind, body)),
        }
    }

    fn statuses(&mut self, spec: &RequestSpec) {
        if let Some(status) = spec.statuses.contradiction() {
            self.fault("/statuses", say::status_twice(u32::from(status)));
        }
    }
}

/// Returns the place for the value of a header.
fn header_place(name: &str) -> Place {
    match name {
        "cookie" => Place::Cookie,
        _ => Place::Header,
    }
}

fn target(text: &str, roots: &mut Roots) -> Result<(String, UrlTemplate), TemplateFault> {
    let text = text.trim();
    let Some((method, url)) = text.split_once(char::is_whitespace) else {
        return Err(TemplateFault(match text.contains("://") {
            true => say::no_method(EXAMPLE),
            false => say::no_url(EXAMPLE),
        }));
    };
    if method.contains("://") || !method.bytes().all(is_token) {
        return Err(TemplateFault(say::bad_method(quoted(method), EXAMPLE)));
    }
    if let Some(meant) = meant_method(method) {
        return Err(TemplateFault(say::near_method(quoted(method), meant)));
    }
    if matches!(method, "CONNECT" | "TRACE") {
        return Err(TemplateFault(say::useless_method(method)));
    }
    Ok((method.to_owned(), UrlTemplate::parse(url.trim_start(), roots)?))
}

/// Guesses the intended method for a misspelled one, if it is clear. Custom methods are accepted unchanged.
fn meant_method(method: &str) -> Option<String> {
    const USUAL: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let upper = method.to_ascii_uppercase();
    let is_near = |usual: &&str| strsim::osa_distance(&upper, usual) == 1;
    let near = USUAL
        .into_iter()
        .find(is_near)
        .filter(|_| !USUAL.contains(&upper.as_str()));
    near.map(str::to_owned)
        .or_else(|| (method != upper).then_some(upper))
}

/// Returns true if a byte is allowed in a method or in the name of a header (RFC 9110).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
