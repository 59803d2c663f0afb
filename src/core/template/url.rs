//! Template of a URL. An item can never choose the destination of a request (scheme, host, port).

use crate::text::quoted;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use windrow_words::request as say;

use super::item::{Item, Roots};
use super::placeholder::Placeholder;
use super::{Constants, Place, Template, TemplateFault, ValueFault};

/// Characters that can't be in a URL unescaped; those with a meaning there, including `%`, stay.
const UNFIT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// URL with placeholders in its path and query.
#[derive(Clone, Debug)]
pub struct UrlTemplate {
    /// Scheme, host and port: `https://host:port`
    origin: String,
    /// Path segments, which are separated by slashes.
    segments: Vec<Template>,
    query: Option<Template>,
}

impl UrlTemplate {
    /// Parses a URL with placeholders in its path and query.
    ///
    /// # Errors
    /// Fails if it isn't a URL, or if a placeholder is where none may be. The host is not
    /// checked.
    pub fn parse(text: &str, roots: &mut Roots) -> Result<UrlTemplate, TemplateFault> {
        let (scheme, rest) = text
            .split_once("://")
            .filter(|(scheme, _)| !scheme.contains(['{', '}', '/', '?', '#']))
            .ok_or_else(|| TemplateFault(say::no_scheme(quoted(text))))?;
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains(['{', '}']) {
            return Err(TemplateFault(say::fixed_host(quoted(authority))));
        }
        if outside(rest, '#').len() > 1 {
            return Err(TemplateFault(say::has_fragment()));
        }
        let mut halves = outside(rest, '?').into_iter();
        let path = halves.next().unwrap_or_default();
        let query = rest.get(path.len() + 1..);
        let path = path.strip_prefix('/').unwrap_or(path);
        let segments = outside(path, '/').into_iter();
        Ok(UrlTemplate {
            origin: format!("{scheme}://{authority}"),
            segments: segments
                .map(|segment| Template::parse(segment, Place::Path, roots))
                .collect::<Result<_, _>>()?,
            query: query
                .map(|query| Template::parse(query, Place::Query, roots))
                .transpose()?,
        })
    }

    /// Returns the destination: `https://host:port`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Iterates over the placeholders of path and query.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.segments
            .iter()
            .chain(&self.query)
            .flat_map(Template::placeholders)
    }

    /// Binds path and query to the constant values; see [`Template::bind`].
    ///
    /// # Errors
    /// Fails as [`Template::bind`] does, or if a bound value makes a segment that leads elsewhere: empty, `.` or
    /// `..`.
    pub fn bind(&self, constants: Constants<'_>) -> Result<UrlTemplate, ValueFault> {
        let segment = |template: &Template| {
            let bound = template.bind(constants)?;
            if let (false, [super::Piece::Text(text)]) = (template.is_constant(), bound.pieces.as_slice()) {
                check_segment(text)?;
            }
            Ok::<_, ValueFault>(bound)
        };
        Ok(UrlTemplate {
            origin: self.origin.clone(),
            segments: self.segments.iter().map(segment).collect::<Result<_, _>>()?,
            query: self
                .query
                .as_ref()
                .map(|query| query.bind(constants))
                .transpose()?,
        })
    }

    /// Appends the URL for an item to `out`.
    ///
    /// # Errors
    /// Fails if the item's data can't fill it, or makes a segment that leads elsewhere: empty, `.` or `..`.
    pub fn render(&self, item: &Item<'_>, out: &mut String) -> Result<(), ValueFault> {
        out.push_str(&self.origin);
        for segment in &self.segments {
            out.push('/');
            let from = out.len();
            segment.render(item, out)?;
            if !segment.is_constant() {
                check_segment(&out[from..])?;
            }
        }
        if let Some(query) = &self.query {
            out.push('?');
            query.render(item, out)?;
        }
        Ok(())
    }
}

/// Refuses a segment made by a placeholder if it is empty, `.` or `..`. (`%2e` is a dot in the URL standard.)
fn check_segment(segment: &str) -> Result<(), ValueFault> {
    let meant = segment.replace("%2e", ".").replace("%2E", ".");
    match meant.as_str() {
        "" | "." | ".." => Err(say::bad_segment(quoted(segment)).into()),
        _ => Ok(()),
    }
}

/// Checks and encodes the text between placeholders for a URL or a form.
pub(super) fn literal(text: &str) -> Result<String, TemplateFault> {
    if let Some(control) = text.chars().find(|c| c.is_control()) {
        return Err(TemplateFault(say::has_control(format!("{control:?}"))));
    }
    let is_escape = |tail: &str| tail.len() >= 2 && tail.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(is_escape) {
        return Err(TemplateFault(say::bad_percent()));
    }
    Ok(utf8_percent_encode(text, UNFIT).to_string())
}

/// Splits a text at a character, except inside of placeholders.
fn outside(text: &str, cut: char) -> Vec<&str> {
    let (mut parts, mut from, mut is_inside) = (Vec::new(), 0, false);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '{' if !is_inside && chars.next_if(|(_, next)| *next == '{').is_none() => is_inside = true,
            '}' => is_inside = false,
            c if c == cut && !is_inside => {
                parts.push(&text[from..at]);
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}
