//! People named by a trusted proxy, and their roles.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::{Credentials, Identity};
use crate::service::ServiceError;
use windrow_config::{Auth, AuthMode, Grant};
use windrow_core::business::access::Role;
use windrow_core::settings::Auto;
use windrow_core::text::names;

/// Longest user name accepted from a proxy, in characters; the width of the audit log's column.
const NAME_MAX: usize = 190;
/// Decoder of JWTs. The standard has no padding, but some proxies add it.
const JWT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Value of a header that may be absent or unusable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sent<'a> {
    /// The request doesn't have the header.
    #[default]
    Nothing,
    /// The header's only value.
    Text(&'a str),
    /// The header is repeated or no text.
    Unusable,
}

/// Returns the user named by a trusted proxy; `None` if the peer isn't one or names nobody.
///
/// # Errors
/// `NoRole` if neither the user's groups nor the default give one.
pub(super) fn person(auth: &Auth, sent: Credentials<'_>) -> Result<Option<Identity>, ServiceError> {
    match named(auth, sent) {
        Some(name) => identity(auth, name, sent.proxy_groups).map(Some),
        None => Ok(None),
    }
}

fn named<'a>(auth: &Auth, sent: Credentials<'a>) -> Option<&'a str> {
    if auth.mode != AuthMode::Proxy {
        return None;
    }
    // On a dual-stack socket, IPv4 peers appear as mapped IPv6 addresses.
    let peer = sent.peer?.to_canonical();
    let is_trusted = auth.proxy_trust.iter().any(|network| network.contains(peer));
    let name = sent.proxy_user.map(str::trim).filter(|name| !name.is_empty())?;
    let fits = name.chars().count() <= NAME_MAX && names::fault(name).is_none();
    (is_trusted && fits).then_some(name)
}

fn identity(auth: &Auth, name: &str, sent: Sent<'_>) -> Result<Identity, ServiceError> {
    let groups =
        groups(auth, sent).map_err(|why| ServiceError::NoRole(format!("{name} has no role: {why}")))?;
    let (grant, role_from) = match highest(auth, &groups) {
        Ok(Some((grant, group))) => (grant.clone(), format!("group {group}")),
        Ok(None) => (
            default_of(auth).ok_or_else(|| no_group(name, &groups))?,
            "default".to_owned(),
        ),
        Err([one, other]) => {
            let text =
                format!("{name} has no role: groups {one} and {other} give the roles of two businesses");
            return Err(ServiceError::NoRole(text));
        }
    };
    Ok(Identity {
        business: grant.business,
        role_from: Some(role_from),
        ..Identity::new(name.to_owned(), format!("proxy {name}"), grant.role)
    })
}

fn no_group(name: &str, groups: &[String]) -> ServiceError {
    let text = match groups {
        [] => format!("{name} has no role: the proxy names no group"),
        _ => format!(
            "{name} has no role: none of the groups has one ({})",
            groups.join(", ")
        ),
    };
    ServiceError::NoRole(text)
}

/// Returns the role of users without a mapped group. A map without a default must not make everybody an operator.
fn default_of(auth: &Auth) -> Option<Grant> {
    match &auth.proxy_default_role {
        Auto::Fixed(grant) => Some(grant.clone()),
        Auto::Auto => auth.proxy_roles.is_empty().then(|| Grant::of(Role::Operator)),
    }
}

/// Returns the highest role of the groups, with its group.
///
/// # Errors
/// Two groups, if their roles are equally high and belong to different businesses: a caller has one.
fn highest<'a>(auth: &'a Auth, groups: &'a [String]) -> Result<Option<(&'a Grant, &'a str)>, [&'a str; 2]> {
    let found = || {
        let one = |group: &'a String| Some((auth.proxy_roles.get(group)?, group.as_str()));
        groups.iter().filter_map(one)
    };
    let Some(best) = found().max_by_key(|(grant, _)| rank(grant)) else {
        return Ok(None);
    };
    let is_rival = |(grant, _): &(&Grant, &str)| rank(grant) == rank(best.0) && *grant != best.0;
    match found().find(is_rival) {
        Some(rival) => Err([rival.1, best.1]),
        None => Ok(Some(best)),
    }
}

fn rank(grant: &Grant) -> u8 {
    match (grant.role, &grant.business) {
        (Role::Admin, _) => 5,
        (Role::Operator, _) => 4,
        (Role::Viewer, _) => 3,
        (Role::Business, _) => 2,
        (Role::Reader, None) => 1,
        (Role::Reader, Some(_)) => 0,
    }
}

/// Returns the user's groups.
///
/// # Errors
/// The reason why the header can't be read. It isn't ignored: without its groups a user could get a higher role.
fn groups(auth: &Auth, sent: Sent<'_>) -> Result<Vec<String>, String> {
    let Some(header) = &auth.proxy_groups_header else {
        return Ok(Vec::new());
    };
    let text = match sent {
        Sent::Nothing => return Ok(Vec::new()),
        Sent::Unusable => return Err(format!("{header} is repeated or not text")),
        Sent::Text(text) => text,
    };
    match &auth.proxy_groups_claim {
        None => Ok(list(text)),
        Some(claim) => {
            let claims = claims(text).ok_or_else(|| format!("{header} is not a JWT"))?;
            match claimed(&claims, claim) {
                None | Some(Value::Null) => Ok(Vec::new()),
                Some(value) => texts(value)
                    .ok_or_else(|| format!("claim {claim} of {header} is neither text nor a list of texts")),
            }
        }
    }
}

fn list(text: &str) -> Vec<String> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Returns the claims of a JWT, whose signature the proxy has verified.
fn claims(text: &str) -> Option<Value> {
    let mut parts = text.trim().split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let json = JWT_BASE64.decode(claims).ok()?;
    serde_json::from_slice(&json).ok().filter(Value::is_object)
}

/// Returns a claim by its name, or by the path to it. A name may contain dots itself: claims are often URLs.
fn claimed<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    let by_path = || name.split('.').try_fold(claims, |value, part| value.get(part));
    claims.get(name).or_else(by_path)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(list(text)),
        Value::Array(all) => all.iter().map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth(mode: AuthMode) -> Auth {
        Auth {
            mode,
            proxy_trust: vec!["10.0.0.0/8".parse().expect("a network")],
            ..Auth::default()
        }
    }

    fn mapped() -> Auth {
        let roles = [
            ("admins", "admin"),
            ("ops", "operator"),
            ("all", "viewer"),
            ("push", "business:push"),
            ("mail", "business:mail"),
        ];
        let grant = |(group, role): (&str, &str)| (group.to_owned(), role.parse().expect(role));
        Auth {
            proxy_groups_header: Some("X-Forwarded-Groups".to_owned()),
            proxy_roles: roles.into_iter().map(grant).collect(),
            ..auth(AuthMode::Proxy)
        }
    }

    fn says<'a>(peer: Option<&str>, user: Option<&'a str>, groups: Sent<'a>) -> Credentials<'a> {
        Credentials {
            token: None,
            cookie: None,
            peer: peer.map(|text| text.parse().expect(text)),
            proxy_user: user,
            proxy_groups: groups,
        }
    }

    /// Role of ann with these groups and its origin, or the reason why she has none.
    fn role(auth: &Auth, groups: Sent<'_>) -> String {
        match person(auth, says(Some("10.1.2.3"), Some("ann"), groups)) {
            Ok(Some(ann)) => {
                let business = ann.business.unwrap_or_default();
                format!(
                    "{} {business} {}",
                    ann.role.as_str(),
                    ann.role_from.expect("an origin")
                )
            }
            Ok(None) => "nobody".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_trusted_proxy_names_an_operator_and_nobody_else_does() {
        let found = |auth: &Auth, peer, user| person(auth, says(peer, user, Sent::Nothing)).expect("a role");
        let proxy = auth(AuthMode::Proxy);
        let ann = found(&proxy, Some("10.1.2.3"), Some(" ann ")).expect("trusted");
        assert_eq!((ann.name.as_str(), ann.role), ("ann", Role::Operator));
        assert!(found(&proxy, Some("::ffff:10.1.2.3"), Some("ann")).is_some());
        for (peer, user) in [
            (Some("11.1.2.3"), Some("ann")),
            (Some("10.1.2.3"), None),
            (Some("10.1.2.3"), Some(" ")),
            (Some("10.1.2.3"), Some("a\tb")),
            (None, Some("ann")),
        ] {
            assert_eq!(found(&proxy, peer, user), None, "{peer:?} {user:?}");
        }
        assert_eq!(found(&auth(AuthMode::Token), Some("10.1.2.3"), Some("ann")), None);
    }

    #[test]
    fn the_highest_group_decides_and_without_one_the_default() {
        let mut auth = mapped();
        assert_eq!(role(&auth, Sent::Text("all, ops ,other")), "operator  group ops");
        assert_eq!(role(&auth, Sent::Text("push,all")), "viewer  group all");
        assert_eq!(role(&auth, Sent::Text("push,push")), "business push group push");
        assert_eq!(
            role(&auth, Sent::Text("push,mail")),
            "ann has no role: groups push and mail give the roles of two businesses"
        );
        assert_eq!(
            role(&auth, Sent::Text("Ops,other")),
            "ann has no role: none of the groups has one (Ops, other)"
        );
        assert_eq!(
            role(&auth, Sent::Nothing),
            "ann has no role: the proxy names no group"
        );
        auth.proxy_default_role = Auto::Fixed(Grant::of(Role::Viewer));
        assert_eq!(role(&auth, Sent::Text("other")), "viewer  default");
        assert_eq!(
            role(&auth, Sent::Unusable),
            "ann has no role: X-Forwarded-Groups is repeated or not text"
        );
    }

    #[test]
    fn groups_of_somebody_else_than_the_proxy_give_nothing() {
        let forged = says(Some("11.1.2.3"), Some("ann"), Sent::Text("admins"));
        assert_eq!(person(&mapped(), forged), Ok(None));
    }

    #[test]
    fn a_jwt_has_the_groups_in_a_claim_by_name_or_path() {
        let with = |claim: &str| Auth {
            proxy_groups_claim: Some(claim.to_owned()),
            ..mapped()
        };
        let jwt = |json: &str| format!("e30.{}.c2ln", JWT_BASE64.encode(json));
        let of = |claim: &str, json: &str| role(&with(claim), Sent::Text(&jwt(json)));
        assert_eq!(
            of("groups", r#"{"groups": ["all", "admins"]}"#),
            "admin  group admins"
        );
        assert_eq!(of("groups", r#"{"groups": "all,ops"}"#), "operator  group ops");
        assert_eq!(
            of("r.roles", r#"{"r": {"roles": ["ops"]}}"#),
            "operator  group ops"
        );
        assert_eq!(
            of("https://a.b/r", r#"{"https://a.b/r": ["ops"]}"#),
            "operator  group ops"
        );
        assert!(of("groups", "{}").contains("names no group"));
        assert!(of("groups", r#"{"groups": [7]}"#).contains("neither text nor a list"));
        for garbled in ["ops", "a.b", "e30.!.x", "e30.WzFd.x"] {
            let said = role(&with("groups"), Sent::Text(garbled));
            assert!(
                said.ends_with("X-Forwarded-Groups is not a JWT"),
                "{garbled}: {said}"
            );
        }
        let unpadded = jwt("{ }").replace('=', "");
        assert!(role(&with("groups"), Sent::Text(&unpadded)).contains("names no group"));
    }
}
