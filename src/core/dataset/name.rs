//! Dataset names: one namespace for all readers, part of which each business owns.

/// Maximum length of a name, in bytes.
pub const NAME_BYTES_MAX: usize = 40;

/// True if the text is a name: parts of `a-z`, `0-9` and `-` with dots between them, such as `board` or `shop.users`.
pub fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_part = |part: &str| !part.is_empty() && part.chars().all(fits);
    text.len() <= NAME_BYTES_MAX && text.split('.').all(is_part)
}

/// True if the name is one that a business owns: its slug, and all below it (`shop`, `shop.users`).
pub fn is_own_name(name: &str, slug: &str) -> bool {
    let rest = name.strip_prefix(slug);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_parts_between_dots() {
        let longest = "a".repeat(NAME_BYTES_MAX);
        for name in ["board", "shop.users", "a.b.c-1", &longest] {
            assert!(is_name(name), "{name:?}");
        }
        let too_long = "a".repeat(NAME_BYTES_MAX + 1);
        for wrong in [
            "", ".", "shop.", ".users", "a..b", "Shop", "a_b", "a/b", &too_long,
        ] {
            assert!(!is_name(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_business_owns_its_slug_and_what_is_below_it() {
        for own in ["shop", "shop.users", "shop.a.b"] {
            assert!(is_own_name(own, "shop"), "{own}");
        }
        for other in ["board", "shop-eu", "shop-eu.users", "shops", "sho", "eu.shop"] {
            assert!(!is_own_name(other, "shop"), "{other}");
        }
    }
}
