//! Networks in CIDR notation, such as `10.0.0.0/8`, for the handler's address guard and the trusted proxies.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use windrow_words::business as say;

/// IPv4 or IPv6 network in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    prefix: u8,
}

/// Error for a text that is not a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::no_network(format!("{:?}", .0), "10.0.0.0/8, fd00::/8"))]
pub struct NotANetwork(pub String);

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Network, NotANetwork> {
        let bad = || NotANetwork(text.to_owned());
        let (base, prefix) = match text.split_once('/') {
            Some((base, prefix)) => (base, Some(prefix.parse::<u8>().map_err(|_| bad())?)),
            None => (text, None),
        };
        let base: IpAddr = base.parse().map_err(|_| bad())?;
        let bits = if base.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(bits);
        if prefix > bits {
            Err(bad())
        } else {
            Ok(Network { base, prefix })
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl Network {
    /// True if the network contains the address; an IPv6 network never contains an IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let (base, address) = (u128::from(base.to_bits()), u128::from(address.to_bits()));
                same_head(base, address, 32, self.prefix)
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                same_head(base.to_bits(), address.to_bits(), 128, self.prefix)
            }
            _ => false,
        }
    }
}

fn same_head(one: u128, other: u128, bits: u8, prefix: u8) -> bool {
    prefix == 0 || (one ^ other) >> (bits - prefix) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_read_back_and_hold_their_addresses() {
        for (text, inside, outside) in [
            ("10.0.0.0/8", "10.255.1.2", "11.0.0.0"),
            ("127.0.0.1/32", "127.0.0.1", "127.0.0.2"),
            ("fe80::/10", "febf::1", "fec0::1"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
        ] {
            let network: Network = text.parse().expect(text);
            assert_eq!(network.to_string(), text);
            assert!(
                network.contains(inside.parse().expect(inside)),
                "{inside} is in {text}"
            );
            assert!(
                !network.contains(outside.parse().expect(outside)),
                "{outside} isn't in {text}"
            );
        }
    }

    #[test]
    fn nonsense_is_no_network() {
        for text in [
            "",
            "10.0.0.0/33",
            "fe80::/129",
            "10.0.0/8",
            "ten",
            "10.0.0.0/",
            "10.0.0.0/-1",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
