//! Search for secrets by all their windows of eight bytes, in each encoding that isn't an escape.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use memchr::memmem::Finder;

use super::views::View;

/// Length of a secret's part that must not be left, in bytes.
const WINDOW: usize = 8;
/// Number of bits of the filter before the set; few windows of other texts pass it.
const FILTER_BITS: usize = 1 << 16;

/// Windows of all secrets, with a filter.
pub(super) struct Needles {
    windows: HashSet<u64>,
    filter: Box<[u64]>,
    /// Secrets that are shorter than a window.
    short: Vec<Finder<'static>>,
}

impl Needles {
    pub(super) fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Needles {
        let mut needles = Needles {
            windows: HashSet::new(),
            filter: vec![0; FILTER_BITS / 64].into(),
            short: Vec::new(),
        };
        for secret in secrets.map(str::as_bytes) {
            if secret.len() < WINDOW && !secret.is_empty() {
                needles.short.push(Finder::new(secret).into_owned());
            }
            needles.add(secret);
            needles.add_encoded(secret);
            if let Some(pair) = of_basic(secret) {
                needles.add(&pair);
            }
        }
        needles
    }

    pub(super) fn is_empty(&self) -> bool {
        self.windows.is_empty() && self.short.is_empty()
    }

    fn add(&mut self, text: &[u8]) {
        for window in text.windows(WINDOW) {
            let number = number(window);
            let bit = bit(number);
            self.filter[bit / 64] |= 1 << (bit % 64);
            self.windows.insert(number);
        }
    }

    /// Adds the encodings that are not escapes but texts of their own.
    fn add_encoded(&mut self, secret: &[u8]) {
        for before in 0..3 {
            // The position within three bytes decides how base64 encodes a text; characters that depend on its
            // neighbors are left out.
            let padded = [&[0; 2][..before.min(2)], secret].concat();
            let padded = &padded[..padded.len() / 3 * 3];
            let skipped = [0, 2, 3][before];
            for text in [STANDARD.encode(padded), URL_SAFE.encode(padded)] {
                self.add(text.as_bytes().get(skipped..).unwrap_or_default());
            }
        }
        let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        self.add(digits.to_ascii_uppercase().as_bytes());
        self.add(digits.as_bytes());
    }

    fn has(&self, number: u64) -> bool {
        let bit = bit(number);
        self.filter[bit / 64] >> (bit % 64) & 1 == 1 && self.windows.contains(&number)
    }

    /// Marks the places where the source of a view holds a part of a secret.
    pub(super) fn mark(&self, view: &View<'_>, marks: &mut Vec<(usize, usize)>) {
        let bytes = view.bytes();
        let mut add = |from: usize, len: usize| {
            let (from, to) = view.source_of(from, from + len);
            match marks.last_mut() {
                Some((first, last)) if (*first..=*last).contains(&from) => *last = to.max(*last),
                _ => marks.push((from, to)),
            }
        };
        let mut window = 0;
        for (at, byte) in bytes.iter().enumerate() {
            window = window << 8 | u64::from(*byte);
            if at + 1 >= WINDOW && self.has(window) {
                add(at + 1 - WINDOW, WINDOW);
            }
        }
        for short in &self.short {
            let len = short.needle().len();
            short.find_iter(bytes).for_each(|at| add(at, len));
        }
    }
}

/// Returns the name and password of `Basic …`, which servers repeat in decoded form.
fn of_basic(secret: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(secret).ok()?;
    let (scheme, pair) = text.trim().split_once(' ')?;
    let is_basic = scheme.eq_ignore_ascii_case("basic");
    STANDARD.decode(pair.trim()).ok().filter(|_| is_basic)
}

fn number(window: &[u8]) -> u64 {
    window
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn bit(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize % FILTER_BITS
}
