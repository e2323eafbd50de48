//! Virtual IP addresses of host names: computed from the name alone, so that adding a service never changes another's.

use crate::fleet::Exposure;
use std::net::Ipv4Addr;

/// The first address that is handed out. Nobody routes 241.0.0.0 to 254.255.255.255 (class E), and Istio's own
/// allocation stays in 240.240.0.0/16.
const FIRST: u32 = 0xF100_0000;
/// How many addresses there are.
const COUNT: u64 = 14 << 24;

/// The address of a host name.
#[must_use]
pub fn of(host: &str) -> Ipv4Addr {
    let offset = u32::try_from(hash(host.as_bytes()) % COUNT).expect("below 2^32");
    Ipv4Addr::from(FIRST + offset)
}

/// The address of one of a service's host names: the first one's may be set by hand.
#[must_use]
pub fn of_exposed(exposure: &Exposure, host: &str) -> Ipv4Addr {
    match (&exposure.vip, exposure.hostnames.first()) {
        (Some((vip, _)), Some((first, _))) if first.as_str() == host => vip.0,
        _ => of(host),
    }
}

/// FNV-1a with a final mix (MurmurHash3's), so that similar names do not get neighbouring values. Part of the contract:
/// addresses and names in live clusters depend on it.
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hash = bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3));
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ (hash >> 33)
}
