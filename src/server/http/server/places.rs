//! Connection limits: a total, a share for each address, and a small reserve for health checks.

use std::net::IpAddr;
use std::sync::Arc;

use super::Limits;
use crate::http::guard::shares::{Share, Shares};
use windrow_core::business::network::Network;

/// Reserve connections for health checks.
const HEALTH_CONNECTIONS: u64 = 64;
/// Reserve connections per address.
const HEALTH_PER_PEER: u64 = 8;

/// Connection slots that are shared out by address.
pub(super) struct Places {
    common: Arc<Shares<IpAddr>>,
    health: Arc<Shares<IpAddr>>,
    proxies: Vec<Network>,
}

/// Slot of a connection, released on drop.
pub(super) struct Place {
    _share: Share<IpAddr>,
    is_for_health: bool,
}

impl Place {
    /// Returns true if this is a reserve slot for health checks.
    pub(super) fn is_for_health(&self) -> bool {
        self.is_for_health
    }
}

impl Places {
    pub(super) fn new(limits: &Limits) -> Places {
        Places {
            common: Shares::new(limits.connections.into(), limits.per_peer.into()),
            health: Shares::new(HEALTH_CONNECTIONS, HEALTH_PER_PEER),
            proxies: limits.proxies.clone(),
        }
    }

    /// Takes a slot for a connection of this address; `None` if the address or the server has too many.
    pub(super) fn take(&self, peer: IpAddr) -> Option<Place> {
        let is_proxy = self
            .proxies
            .iter()
            .any(|network| network.contains(peer.to_canonical()));
        let peer = household(peer);
        let common = self.common.take(peer, 1, is_proxy).map(|share| (share, false));
        let (share, is_for_health) = common
            .or_else(|_| self.health.take(peer, 1, is_proxy).map(|share| (share, true)))
            .ok()?;
        Some(Place {
            _share: share,
            is_for_health,
        })
    }
}

/// Returns the unit that counts as one client: an IPv4 address, or a /64 network of IPv6.
fn household(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(proxies: &[&str]) -> Places {
        let proxies = proxies.iter().map(|text| text.parse().expect(text)).collect();
        Places::new(&Limits {
            connections: 6,
            per_peer: 2,
            proxies,
            ..Limits::default()
        })
    }

    fn taken(places: &Places, peer: &str, times: usize) -> Vec<Place> {
        (0..times)
            .filter_map(|_| places.take(peer.parse().expect(peer)))
            .collect()
    }

    #[test]
    fn an_address_has_its_share_and_a_few_more_for_health() {
        let places = places(&[]);
        let held = taken(&places, "192.0.2.1", 100);
        let of = |health| {
            held.iter()
                .filter(|place| place.is_for_health() == health)
                .count() as u64
        };
        assert_eq!((of(false), of(true)), (2, HEALTH_PER_PEER));
        assert!(
            taken(&places, "::ffff:192.0.2.1", 1).is_empty(),
            "it is the same address"
        );
        let other = taken(&places, "192.0.2.2", 1);
        assert!(!other[0].is_for_health(), "others have theirs");
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let places = places(&[]);
        let mut held = taken(&places, "2001:db8::1", 1);
        held.extend(taken(&places, "2001:db8::2", 2));
        assert_eq!(held.iter().filter(|place| !place.is_for_health()).count(), 2);
        assert!(!taken(&places, "2001:db8:0:1::1", 1)[0].is_for_health());
    }

    #[test]
    fn a_trusted_proxy_has_no_share_but_what_there_is() {
        let places = places(&["10.0.0.0/8"]);
        let held = taken(&places, "10.1.2.3", 100);
        assert_eq!(held.iter().filter(|place| !place.is_for_health()).count(), 6);
        assert_eq!(held.len() as u64, 6 + HEALTH_CONNECTIONS);
    }
}
