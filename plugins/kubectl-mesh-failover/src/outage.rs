//! What becomes of a route when clusters are down: a share without a healthy cluster follows the order, and of the order
//! the first tier with a healthy cluster serves. A cluster that is down calls nobody either.

use mesh::fleet::{ClusterId, Clusters, Fleet};
use mesh::resolve::Route;
use serde::Serialize;

/// A part of the requests and the clusters that serve it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Part {
    pub(crate) clusters: Vec<String>,
    pub(crate) percent: u8,
}

/// Where requests go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    parts: Vec<(Vec<ClusterId>, u8)>,
    /// The part that nobody serves, in per cent.
    pub(crate) lost: u8,
}

impl Served {
    /// Where the requests of a route go while these clusters are down.
    pub(crate) fn of(route: &Route, down: &Clusters) -> Self {
        let healthy = |clusters: &[ClusterId]| -> Vec<ClusterId> {
            clusters.iter().copied().filter(|cluster| !down.contains(*cluster)).collect()
        };
        let order = route.tiers.iter().map(healthy).find(|tier| !tier.is_empty()).unwrap_or_default();
        let mut served = Self::default();
        for share in &route.shares {
            let own = healthy(&share.clusters);
            served.add(if own.is_empty() { order.clone() } else { own }, share.percent);
        }
        served.add(order, route.rest());
        served
    }

    fn add(&mut self, clusters: Vec<ClusterId>, percent: u8) {
        if percent == 0 {
            return;
        }
        if clusters.is_empty() {
            self.lost += percent;
            return;
        }
        match self.parts.iter_mut().find(|(known, _)| *known == clusters) {
            Some((_, sum)) => *sum += percent,
            None => self.parts.push((clusters, percent)),
        }
    }

    /// The parts by name.
    pub(crate) fn parts(&self, fleet: &Fleet) -> Vec<Part> {
        self.parts
            .iter()
            .map(|(clusters, percent)| Part {
                clusters: clusters.iter().map(|id| fleet.cluster(*id).name.to_string()).collect(),
                percent: *percent,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Served;
    use mesh::fleet::{ClusterId, Clusters};
    use mesh::resolve::{Route, Share};

    fn route() -> Route {
        Route {
            units: mesh::resolve::units::Units::default(),
            shares: Box::new([Share { clusters: vec![ClusterId(3), ClusterId(4)], percent: 20 }]),
            tiers: [clusters(&[0]), Clusters::NONE, clusters(&[1, 2])].as_slice().into(),
            removed: Box::default(),
            mirror: Box::default(),
        }
    }

    fn clusters(ids: &[u16]) -> Clusters {
        ids.iter().map(|id| ClusterId(*id)).collect()
    }

    fn down(ids: &[u16]) -> Served {
        Served::of(&route(), &clusters(ids))
    }

    fn parts(parts: &[(&[u16], u8)]) -> Vec<(Vec<ClusterId>, u8)> {
        parts.iter().map(|(ids, percent)| (ids.iter().map(|id| ClusterId(*id)).collect(), *percent)).collect()
    }

    #[test]
    fn shares_and_tiers_fail_over() {
        assert_eq!(down(&[]).parts, parts(&[(&[3, 4], 20), (&[0], 80)]));
        assert_eq!(down(&[3]).parts, parts(&[(&[4], 20), (&[0], 80)]));
        assert_eq!(down(&[3, 4]).parts, parts(&[(&[0], 100)]));
        assert_eq!(down(&[0, 1]).parts, parts(&[(&[3, 4], 20), (&[2], 80)]));
        let lost = down(&[0, 1, 2]);
        assert_eq!((lost.parts, lost.lost), (parts(&[(&[3, 4], 20)]), 80));
        assert_eq!(down(&[0, 1, 2, 3, 4]).lost, 100);
    }
}
