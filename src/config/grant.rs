//! Roles that the configuration gives to people behind a proxy.

use std::fmt;
use std::str::FromStr;

use windrow_core::business::access::Role;
use windrow_core::business::is_slug;
use windrow_core::settings::text::TextError;

/// Role with the business that it is limited to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Role of the person.
    pub role: Role,
    /// Business of [`Role::Business`]; for [`Role::Reader`], the only one whose datasets may be read.
    pub business: Option<String>,
}

impl Grant {
    /// Returns the grant of a role without a business.
    pub fn of(role: Role) -> Grant {
        Grant { role, business: None }
    }
}

impl FromStr for Grant {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Grant, TextError> {
        let (word, business) = match text.split_once(':') {
            Some((word, business)) => (word, Some(business.to_owned())),
            None => (text, None),
        };
        let is_business_sound = |role| match (role, business.as_deref()) {
            (Role::Business | Role::Reader, Some(slug)) => is_slug(slug),
            (role, business) => role != Role::Business && business.is_none(),
        };
        match Role::parse(word).filter(|role| is_business_sound(*role)) {
            Some(role) => Ok(Grant { role, business }),
            None => Err(TextError::new(
                text,
                "a role; \"business\" needs the name of one, \"reader\" may have it",
                "\"viewer\", \"operator\", \"admin\", \"business:push\", \"reader\", \"reader:push\"",
            )),
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.role.as_str())?;
        match &self.business {
            Some(business) => write!(f, ":{business}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_reads_back_and_has_a_business_where_it_needs_one() {
        for sound in [
            "viewer",
            "operator",
            "admin",
            "business:push",
            "reader",
            "reader:push-2",
        ] {
            let grant: Grant = sound.parse().expect(sound);
            assert_eq!(grant.to_string(), sound);
        }
        for wrong in [
            "",
            "root",
            "Admin",
            "business",
            "business:",
            "business:A b",
            "admin:push",
            "reader:",
        ] {
            assert!(wrong.parse::<Grant>().is_err(), "{wrong}");
        }
    }
}
