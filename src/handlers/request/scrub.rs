//! Takes secrets out of texts: an API that says back what it was sent must not make a failure or an output of it.

use std::borrow::Cow;

use memchr::memmem::Finder;

use windrow_core::items::verdict::Failure;
use windrow_core::template::{MASK, Secrets, url_encoded};
use windrow_engine::ports::handling::handler::CallFailure;

/// A word of a secret that is looked for by itself: of `Bearer eyJ…` the token. Unit: bytes.
const WORD_BYTES_MIN: usize = 8;

/// See the module.
pub(super) struct Scrubber {
    /// Longest first, so that none is left over of one that holds another.
    needles: Vec<Finder<'static>>,
}

impl Scrubber {
    pub(super) fn new(secrets: &Secrets) -> Scrubber {
        let mut texts: Vec<String> = Vec::new();
        for secret in secrets.0.values() {
            let words = secret
                .split_whitespace()
                .filter(|word| word.len() >= WORD_BYTES_MIN);
            for text in std::iter::once(secret.as_str()).chain(words) {
                let json = serde_json::Value::from(text).to_string();
                texts.extend([
                    text.to_owned(),
                    url_encoded(text),
                    json[1..json.len() - 1].to_owned(),
                ]);
            }
        }
        texts.sort_unstable_by(|one, two| two.len().cmp(&one.len()).then_with(|| one.cmp(two)));
        texts.dedup();
        let found = texts.iter().filter(|text| !text.is_empty());
        Scrubber {
            needles: found
                .map(|text| Finder::new(text.as_bytes()).into_owned())
                .collect(),
        }
    }

    /// The bytes with a mask for each secret.
    pub(super) fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut text = Cow::Borrowed(bytes);
        for needle in &self.needles {
            if needle.find(&text).is_some() {
                text = Cow::Owned(masked(&text, needle));
            }
        }
        text
    }

    /// The text with a mask for each secret.
    pub(super) fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// The failure with a mask for each secret.
    pub(super) fn failure(&self, failure: CallFailure) -> CallFailure {
        let clean = |failure: Failure| Failure {
            message: self.text(&failure.message),
            ..failure
        };
        match failure {
            CallFailure::Failed {
                class,
                failure,
                after,
            } => CallFailure::Failed {
                class,
                failure: clean(failure),
                after,
            },
            CallFailure::BackPressure { after, failure } => CallFailure::BackPressure {
                after,
                failure: clean(failure),
            },
            CallFailure::Abandoned(failure) => CallFailure::Abandoned(clean(failure)),
            CallFailure::BadReply(failure) => CallFailure::BadReply(clean(failure)),
            CallFailure::Rejected(failure) => CallFailure::Rejected(clean(failure)),
            CallFailure::Unstarted(failure) => CallFailure::Unstarted(clean(failure)),
            CallFailure::Gone(failure) => CallFailure::Gone(clean(failure)),
            CallFailure::Unsendable(failure) => CallFailure::Unsendable(clean(failure)),
            other @ (CallFailure::Fenced | CallFailure::NotSent) => other,
        }
    }
}

fn masked(bytes: &[u8], needle: &Finder<'_>) -> Vec<u8> {
    let (mut out, mut from) = (Vec::with_capacity(bytes.len()), 0);
    for at in needle.find_iter(bytes) {
        out.extend_from_slice(&bytes[from..at]);
        out.extend_from_slice(MASK.as_bytes());
        from = at + needle.needle().len();
    }
    out.extend_from_slice(&bytes[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_however_it_is_written() {
        let secrets = [("a", "Bearer s3cr3t/\"tok\"en"), ("b", "s3cr3t")];
        let secrets = Secrets(
            secrets
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        );
        let scrubber = Scrubber::new(&secrets);
        let table = [
            ("you sent Bearer s3cr3t/\"tok\"en!", "you sent ••••!"),
            ("token s3cr3t/\"tok\"en", "token ••••"),
            (r#"{"sent":"Bearer s3cr3t/\"tok\"en"}"#, r#"{"sent":"••••"}"#),
            ("/x?a=Bearer%20s3cr3t%2F%22tok%22en&b=1", "/x?a=••••&b=1"),
            ("s3cr3ts3cr3t", "••••••••"),
            ("nothing of it", "nothing of it"),
        ];
        for (said, shown) in table {
            assert_eq!(scrubber.text(said), shown);
        }
    }
}
