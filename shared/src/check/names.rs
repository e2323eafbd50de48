//! Virtual IP addresses of host names do not collide.

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::resolve::{Effective, vip};
use std::collections::BTreeMap;

pub(super) fn check(effective: &Effective, found: &mut Diagnostics) {
    let mut taken: BTreeMap<std::net::Ipv4Addr, (&str, crate::source::Place)> = BTreeMap::new();
    for exposure in effective.fleet.services.iter().filter_map(|service| service.exposure.as_ref()) {
        for (host, place) in &exposure.hostnames {
            let address = vip::of_exposed(exposure, host.as_str());
            let Some((other, first)) = taken.insert(address, (host.as_str(), *place)) else { continue };
            if other == host.as_str() {
                continue;
            }
            let message = format!("{host} and {other} share the virtual IP address {address}");
            found.push(
                Diagnostic::new(&codes::VIP_COLLISION, *place, message)
                    .also(first, "the other host name")
                    .help("set `expose.vip` in one of the two, for example to 241.0.0.1"),
            );
        }
    }
}
