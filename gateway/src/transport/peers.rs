//! How many connections each peer has open, so that one of them cannot take the places of all.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The counts. Only peers with open connections are in it.
#[derive(Debug, Default)]
pub(super) struct Peers {
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// A peer's connection, while it is open.
#[derive(Debug)]
pub(super) struct PeerPlace {
    peers: Arc<Peers>,
    peer: IpAddr,
}

impl Peers {
    /// A place for one more connection of a peer. None: it has as many as it may.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<PeerPlace> {
        let peer = one_who_is(address);
        let mut open = self.lock();
        let count = open.entry(peer).or_insert(0);
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(PeerPlace { peers: Arc::clone(self), peer })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeerPlace {
    /// Whose it is.
    pub(super) const fn peer(&self) -> IpAddr {
        self.peer
    }
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let mut open = self.peers.lock();
        if let Some(count) = open.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

/// Whom an address stands for: in IPv6 everybody has a whole network of 64 bits.
fn one_who_is(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_has_places_of_its_own_and_gives_them_back() {
        let peers = Arc::new(Peers::default());
        let enter = |address: &str| peers.enter(address.parse().unwrap(), 2);
        let (first, _second) = (enter("10.0.0.1").unwrap(), enter("::ffff:10.0.0.1").unwrap());
        assert!(enter("10.0.0.1").is_none() && enter("10.0.0.2").is_some());
        drop(first);
        let _third = enter("10.0.0.1").unwrap();
        assert!(enter("10.0.0.1").is_none());
        let _both = (enter("2001:db8::1").unwrap(), enter("2001:db8::ffff:1").unwrap());
        assert!(enter("2001:db8:0:0:1::").is_none(), "one network is one peer");
        assert!(enter("2001:db8:0:1::").is_some());
        assert_eq!(peers.lock().len(), 2, "who has nothing open is not remembered");
    }
}
