//! Addresses that a callback may connect to (SSRF guard).
//!
//! Pure: only answers if an address is allowed. The connector asks for each address that a name resolved to and
//! connects to one that was allowed, never to the name again. An IPv4 address hidden in an IPv6 one (mapped,
//! compatible, NAT64, 6to4) is judged as both, and the unspecified one as loopback, which is where it leads.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windrow_core::business::network::Network;

/// Link-local networks, where cloud metadata services are. Loopback and private networks are allowed, since
/// businesses are there.
pub const DENY_NETWORKS_DEFAULT: [&str; 2] = ["169.254.0.0/16", "fe80::/10"];

/// Networks outside the public internet: this machine, its site, its provider's own networks, multicast groups,
/// examples.
const PRIVATE_NETWORKS: [&str; 20] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/127",
    "64:ff9b:1::/48",
    "2001::/32",
    "2001:db8::/32",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];

/// Networks that may and may not be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Networks that are allowed; empty allows all.
    pub allow: Vec<Network>,
    /// Networks that are forbidden, even if `allow` contains them.
    pub deny: Vec<Network>,
    /// Private networks that may be reached besides the public internet; `None` doesn't restrict private networks.
    pub private: Option<Vec<Network>>,
}

impl Default for Egress {
    fn default() -> Egress {
        let parse = |text: &&str| text.parse().expect("the default networks are networks");
        Egress {
            allow: Vec::new(),
            deny: DENY_NETWORKS_DEFAULT.iter().map(parse).collect(),
            private: None,
        }
    }
}

impl Egress {
    /// Returns the reason why the address may not be connected to; `None` if it may.
    pub fn refusal(&self, address: IpAddr) -> Option<String> {
        let faces = faces(address);
        let in_any = |networks: &[Network]| {
            networks
                .iter()
                .find(|network| faces.iter().any(|face| network.contains(*face)))
                .copied()
        };
        if let Some(network) = in_any(&self.deny) {
            return Some(format!(
                "{address} is in {network}, which `deny_networks` forbids"
            ));
        }
        if let Some(reachable) = &self.private
            && let Some(face) = faces
                .iter()
                .find(|face| is_private(**face) && !reachable.iter().any(|network| network.contains(**face)))
        {
            return Some(format!(
                "{face} is private and in no network of `source_networks`"
            ));
        }
        let allowed = self.allow.is_empty() || in_any(&self.allow).is_some();
        (!allowed).then(|| format!("{address} is in no network of `allow_networks`"))
    }
}

/// Returns every address that an address stands for.
fn faces(address: IpAddr) -> Vec<IpAddr> {
    let mut faces: Vec<IpAddr> = [Some(address), hidden_v4(address).map(IpAddr::V4)]
        .into_iter()
        .flatten()
        .collect();
    if faces.iter().any(IpAddr::is_unspecified) {
        faces.extend([IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    }
    faces
}

fn is_private(address: IpAddr) -> bool {
    PRIVATE_NETWORKS.iter().any(|text| {
        text.parse()
            .is_ok_and(|network: Network| network.contains(address))
    })
}

/// Returns the IPv4 address that an IPv6 address leads to.
fn hidden_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let s = address.segments();
    let joined = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match s {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] if address > Ipv6Addr::LOCALHOST => Some(joined(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(joined(high, low)),
        [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_is_denied_in_every_disguise_and_private_is_allowed() {
        let egress = Egress::default();
        let table = [
            ("169.254.169.254", false),
            ("169.254.0.0", false),
            ("169.253.255.255", true),
            ("169.255.0.0", true),
            ("::ffff:169.254.169.254", false),
            ("::169.254.169.254", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("2002:a9fe:a9fe::1", false),
            ("fe80::1", false),
            ("febf:ffff::1", false),
            ("fec0::1", true),
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.1.2.3", true),
            ("192.168.0.1", true),
            ("93.184.216.34", true),
            ("2606:2800::1", true),
        ];
        for (address, allowed) in table {
            let refusal = egress.refusal(address.parse().expect(address));
            assert_eq!(refusal.is_none(), allowed, "{address}: {refusal:?}");
        }
    }

    #[test]
    fn allow_narrows_and_deny_wins() {
        let networks = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.parse().expect(text))
                .collect::<Vec<_>>()
        };
        let (allow, deny) = (networks(&["10.0.0.0/8"]), networks(&["10.9.0.0/16"]));
        let egress = Egress {
            allow,
            deny,
            private: None,
        };
        for (address, allowed) in [
            ("10.1.1.1", true),
            ("::ffff:10.1.1.1", true),
            ("10.9.1.1", false),
            ("11.0.0.1", false),
            ("::1", false),
        ] {
            assert_eq!(
                egress.refusal(address.parse().expect(address)).is_none(),
                allowed,
                "{address}"
            );
        }
    }

    #[test]
    fn the_unspecified_address_is_judged_as_loopback() {
        for network in ["127.0.0.0/8", "::1/128"] {
            let egress = Egress {
                deny: vec![network.parse().expect(network)],
                ..Egress::default()
            };
            for address in ["0.0.0.0", "::", "::ffff:0.0.0.0"] {
                assert!(
                    egress.refusal(address.parse().expect(address)).is_some(),
                    "{address} by {network}"
                );
            }
        }
    }

    #[test]
    fn where_only_the_public_is_reached_private_networks_are_named_one_by_one() {
        let private = Some(vec!["10.1.0.0/16".parse().expect("a network")]);
        let egress = Egress {
            private,
            ..Egress::default()
        };
        for (address, allowed) in [
            ("93.184.216.34", true),
            ("2606:2800::1", true),
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("10.2.0.1", false),
            ("::ffff:10.2.0.1", false),
            ("64:ff9b::10.2.0.1", false),
            ("127.0.0.1", false),
            ("0.0.0.0", false),
            ("::", false),
            ("::1", false),
            ("172.31.255.255", false),
            ("100.64.0.1", false),
            ("224.0.0.1", false),
            ("fd00::1", false),
            ("2001:0:1::", false),
        ] {
            assert_eq!(
                egress.refusal(address.parse().expect(address)).is_none(),
                allowed,
                "{address}"
            );
        }
        assert!(
            PRIVATE_NETWORKS
                .iter()
                .all(|text| text.parse::<Network>().is_ok())
        );
    }

    #[test]
    fn networks_are_read_and_written() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "::/0", "fd00::/8", "::1/128"] {
            assert_eq!(text.parse::<Network>().expect(text).to_string(), text);
        }
        assert_eq!(
            "10.0.0.1".parse::<Network>().expect("one address").to_string(),
            "10.0.0.1/32"
        );
        for bad in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/-1",
            "host/8",
            "10.0.0.0/8/9",
        ] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }
}
