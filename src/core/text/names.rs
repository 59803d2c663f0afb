//! Rule for names that people give to things and others read: tasks, tokens, labels, display names of businesses.
//!
//! A name that looks like another can make somebody act on the wrong one.

use unicode_security::confusable_detection::skeleton;
use unicode_security::restriction_level::{RestrictionLevel, RestrictionLevelDetection};
use windrow_words::{Message, business as say};

use super::steers;

/// Returns the reason why a name can't be visually told from others, if there is one; the sentence continues after
/// its subject.
///
/// Letters of one script may be combined, and Latin ones with those of Chinese, Japanese and Korean (UTS #39, "highly
/// restrictive"). Symbols outside ASCII are allowed anywhere, unless they look like ASCII ones.
pub fn fault(name: &str) -> Option<String> {
    let shown =
        |c: char, why: fn(String) -> Message| Some(why(format!("U+{:04X}", u32::from(c))).to_string());
    for c in name.chars().filter(|c| !c.is_ascii_graphic()) {
        if steers(c) {
            return shown(c, say::name_control);
        }
        if is_invisible(c) {
            return shown(c, say::name_invisible);
        }
        if !c.is_alphanumeric() && is_like_ascii(c) {
            return shown(c, say::name_like_ascii);
        }
    }
    let letters: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    if letters
        .as_str()
        .check_restriction_level(RestrictionLevel::HighlyRestrictive)
    {
        return None;
    }
    Some(say::name_mixed().to_string())
}

/// Returns true for a character without width, or one that looks like a space and isn't one.
pub(super) fn is_invisible(c: char) -> bool {
    (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{AD}' | '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200D}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}' | '\u{FFA0}' | '\u{E0100}'..='\u{E01EF}')
}

fn is_like_ascii(c: char) -> bool {
    let alone = c.to_string();
    c != ' ' && skeleton(&alone).all(|c| c.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_script_are_sound_and_those_that_look_like_others_are_not() {
        for sound in [
            "",
            "push-campaign_2026.v1",
            "growth & more",
            "中文-name",
            "привет",
            "façade",
            "東京タワー",
            "🚀",
        ] {
            assert_eq!(fault(sound), None, "{sound}");
        }
        for wrong in [
            "p\u{430}ypal",
            "a\u{202E}b",
            "a\u{200B}b",
            "a\u{200D}b",
            "a\u{FEFF}",
            "a\u{AD}b",
            "a\u{3000}b",
            "a\u{A0}b",
            "＝1",
            "ａ",
            "a\u{2215}b",
            "a\u{2010}b",
            "𝐚",
            "a\u{7}",
            "a\u{2028}",
            "\u{3164}",
        ] {
            assert!(fault(wrong).is_some(), "{wrong:?}");
        }
    }
}
