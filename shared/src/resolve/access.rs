//! Who may call whom. An identity names a trust domain, a namespace and a service account, never a cluster; what that
//! means for rules about clusters is decided here, for every mesh alike.

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::{
    AccessPolicy, AccessRule, ClusterId, Clusters, Dependency, Fleet, GuardrailVerb, Identity, Origin, Service,
    ServiceId, Source,
};
use crate::intent::access::{Mode, PathPattern};
use crate::intent::types::{Method, Namespace, ServiceAccount, TrustDomain};
use crate::source::Place;
use std::collections::{BTreeMap, BTreeSet};

/// The access of a fleet.
#[derive(Clone, Debug)]
pub struct Access {
    services: Vec<ServiceAccess>,
    /// Who declares a dependency on the service.
    dependents: Vec<Vec<(ServiceId, Dependency)>>,
    /// Which services run under an account, and where.
    carriers: BTreeMap<(Namespace, ServiceAccount), Vec<(ServiceId, Clusters)>>,
    /// The clusters of each trust domain.
    domains: BTreeMap<TrustDomain, Clusters>,
    /// The clusters whose trust domain is another cluster's as well.
    shared: Clusters,
}

/// The access to one service.
#[derive(Clone, Debug, Default)]
pub struct ServiceAccess {
    /// Its policies, or the defaults: indices into the fleet's access policies.
    pub policies: Vec<usize>,
    /// What happens to calls that are not allowed; absent: no policy holds, everyone may call.
    pub mode: Option<Mode>,
    /// Identities that guardrails always admit.
    pub always: Vec<Always>,
}

/// An identity that a guardrail always admits.
#[derive(Clone, Debug)]
pub struct Always {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its service account.
    pub account: ServiceAccount,
    /// From these clusters beside the called copy's own.
    pub clusters: Clusters,
    /// The rule that says so.
    pub origin: Origin,
}

impl Always {
    /// The clusters that are meant, for a called copy.
    fn wanted(&self, copy: ClusterId) -> Clusters {
        self.clusters.or(&Clusters::one(copy))
    }
}

/// What one rule, or one guardrail, grants at one copy of a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// On which requests.
    pub conditions: Conditions,
    /// To whom, from where.
    pub identities: BTreeSet<(Identity, Clusters)>,
    /// The rule that says so.
    pub origin: Origin,
}

/// Conditions on requests; absent: none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conditions {
    /// The service's port numbers; absent: all of the service's ports.
    pub ports: Option<BTreeSet<u16>>,
    /// Methods.
    pub methods: BTreeSet<Method>,
    /// Paths.
    pub paths: BTreeSet<PathPattern>,
    /// Any port of the workload, also those that are no port of the service.
    pub whole_workload: bool,
}

impl Conditions {
    fn of(rule: &AccessRule) -> Self {
        Self {
            ports: rule.ports.as_ref().map(|ports| ports.iter().map(|(port, _)| *port).collect()),
            methods: rule.methods.iter().flat_map(|(methods, _)| methods).cloned().collect(),
            paths: rule.paths.iter().flat_map(|(paths, _)| paths).cloned().collect(),
            whole_workload: false,
        }
    }

    /// Whether every request is granted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ports.is_none() && self.methods.is_empty() && self.paths.is_empty()
    }

    /// Whether whatever fits `other` fits these conditions as well. It may miss cases in which patterns include others.
    fn include(&self, other: &Self) -> bool {
        let wider = |mine: bool, same: bool| mine || same;
        wider(self.ports.is_none(), self.ports == other.ports)
            && wider(self.methods.is_empty(), self.methods == other.methods)
            && wider(self.paths.is_empty(), self.paths == other.paths)
    }
}

/// One admission at a copy, as the rules intend it.
struct Admission<'a> {
    identity: Identity,
    clusters: Clusters,
    conditions: &'a Conditions,
    place: Place,
    /// The author named the clusters: nobody else's identity may pass, known or not.
    strict: bool,
    /// The service that was meant; absent: whoever carries the identity.
    service: Option<ServiceId>,
}

impl Access {
    pub(super) fn of(fleet: &Fleet, found: &mut Diagnostics) -> Self {
        let mut access = Self {
            services: vec![ServiceAccess::default(); fleet.services.len()],
            dependents: vec![Vec::new(); fleet.services.len()],
            carriers: BTreeMap::new(),
            domains: BTreeMap::new(),
            shared: Clusters::NONE,
        };
        for (id, cluster) in fleet.cluster_ids() {
            access.domains.entry(cluster.mesh.trust_domain.clone()).or_default().insert(id);
        }
        for clusters in access.domains.values().filter(|clusters| clusters.len() > 1) {
            access.shared = access.shared.or(clusters);
        }
        for (id, service) in fleet.service_ids() {
            for dependency in &service.dependencies {
                access.dependents[dependency.provider.index()].push((id, *dependency));
            }
            for (account, clusters) in accounts(service, &service.runs) {
                access.carriers.entry((service.namespace.clone(), account)).or_default().push((id, clusters));
            }
        }
        // Most of these lists have one element, and vectors have room for four.
        access.dependents.iter_mut().for_each(Vec::shrink_to_fit);
        access.carriers.values_mut().for_each(Vec::shrink_to_fit);
        access.assign_policies(fleet, found);
        access.assign_always(fleet, found);
        for (id, service) in fleet.service_ids() {
            access.check_service(fleet, id, service, found);
        }
        access
    }

    /// The access to a service.
    #[must_use]
    pub fn service(&self, id: ServiceId) -> &ServiceAccess {
        &self.services[id.index()]
    }

    /// Who declares a dependency on a service, by caller.
    #[must_use]
    pub fn dependents(&self, id: ServiceId) -> &[(ServiceId, Dependency)] {
        &self.dependents[id.index()]
    }

    /// The clusters that a called copy cannot tell from the given one: those of its trust domain, where the called
    /// cluster's own trust domain and its aliases are one.
    #[must_use]
    pub fn indistinguishable(&self, fleet: &Fleet, copy: ClusterId, from: ClusterId) -> Clusters {
        let domain = &fleet.cluster(from).mesh.trust_domain;
        let own = &fleet.cluster(copy).mesh;
        let members = |domain: &TrustDomain| self.domains.get(domain).copied().unwrap_or_default();
        if *domain == own.trust_domain || own.trust_domain_aliases.contains(domain) {
            own.trust_domain_aliases.iter().fold(members(&own.trust_domain), |sum, alias| sum.or(&members(alias)))
        } else {
            members(domain)
        }
    }

    /// The copies that admit at least one request of a caller; conditions on requests do not count.
    #[must_use]
    pub fn admits(&self, fleet: &Fleet, provider: ServiceId, caller: ServiceId, cluster: ClusterId) -> Clusters {
        let runs = fleet.service(provider).runs;
        let service = self.service(provider);
        if service.mode != Some(Mode::Enforce) {
            return runs;
        }
        let mut admitted = Clusters::NONE;
        for rule in service.policies.iter().flat_map(|policy| &fleet.access[*policy].rules) {
            if rule.sources.iter().any(|source| self.fits(fleet, source, provider, caller, cluster)) {
                admitted = admitted.or(&rule.within);
            }
        }
        let identity = (&fleet.service(caller).namespace, &fleet.service(caller).copy(cluster).account);
        for always in &service.always {
            if identity == (&always.namespace, &always.account) {
                for copy in runs.iter() {
                    if self.always_from(fleet, always, copy).contains(cluster) {
                        admitted.insert(copy);
                    }
                }
            }
        }
        admitted.and(&runs)
    }

    /// The clusters from which a guardrail's identity is admitted at a copy: identities do not name clusters, so it is
    /// the whole trust domain.
    fn always_from(&self, fleet: &Fleet, always: &Always, copy: ClusterId) -> Clusters {
        let wanted = always.wanted(copy);
        wanted.iter().fold(Clusters::NONE, |sum, cluster| sum.or(&self.indistinguishable(fleet, copy, cluster)))
    }

    /// Whether a source means this caller.
    fn fits(&self, fleet: &Fleet, source: &Source, provider: ServiceId, caller: ServiceId, cluster: ClusterId) -> bool {
        let service = fleet.service(caller);
        let own_account = &service.copy(cluster).account;
        match source {
            Source::Dependents(_) => self
                .dependents(provider)
                .iter()
                .any(|(dependent, dependency)| *dependent == caller && dependency.clusters.contains(cluster)),
            Source::Service { service: wanted, account, clusters, place: _, explicit: _ } => {
                *wanted == caller
                    && clusters.contains(cluster)
                    && account.as_ref().is_none_or(|account| account == own_account)
            }
            Source::Identity { identity, clusters, place: _ } => {
                clusters.contains(cluster)
                    && match identity {
                        Identity::Account(namespace, account) => {
                            *namespace == service.namespace && account == own_account
                        }
                        Identity::Namespace(namespace) => *namespace == service.namespace,
                        Identity::Any => true,
                    }
            }
        }
    }

    /// The policy to name when a caller is not admitted: the first one.
    #[must_use]
    pub fn origin(&self, fleet: &Fleet, provider: ServiceId) -> Option<Origin> {
        let policy = fleet.access.get(*self.service(provider).policies.first()?)?;
        Some(Origin { place: policy.allow, ..policy.origin })
    }

    /// The rule that admits a caller at a copy, if one does.
    #[must_use]
    pub fn admitted_by(
        &self,
        fleet: &Fleet,
        provider: ServiceId,
        copy: ClusterId,
        caller: ServiceId,
        cluster: ClusterId,
    ) -> Vec<(Origin, Conditions)> {
        let service = self.service(provider);
        let mut rules = Vec::new();
        for policy in service.policies.iter().map(|policy| &fleet.access[*policy]) {
            for rule in &policy.rules {
                if rule.within.contains(copy)
                    && rule.sources.iter().any(|source| self.fits(fleet, source, provider, caller, cluster))
                {
                    rules.push((Origin { place: rule.place, ..policy.origin }, Conditions::of(rule)));
                }
            }
        }
        let identity = (&fleet.service(caller).namespace, &fleet.service(caller).copy(cluster).account);
        for always in &service.always {
            if identity == (&always.namespace, &always.account)
                && self.always_from(fleet, always, copy).contains(cluster)
            {
                rules.push((always.origin, Conditions { whole_workload: true, ..Conditions::default() }));
            }
        }
        rules
    }

    /// What is granted at one copy of a service that has a policy, rule by rule.
    #[must_use]
    pub fn grants(&self, fleet: &Fleet, provider: ServiceId, copy: ClusterId) -> Vec<Grant> {
        let service = self.service(provider);
        let mut grants = Vec::new();
        for policy in service.policies.iter().map(|policy| &fleet.access[*policy]) {
            for rule in policy.rules.iter().filter(|rule| rule.within.contains(copy)) {
                let identities: BTreeSet<(Identity, Clusters)> = rule
                    .sources
                    .iter()
                    .flat_map(|source| self.identities(fleet, source, provider))
                    .map(|(identity, clusters, ..)| (identity, clusters))
                    .filter(|(_, clusters)| !clusters.is_empty())
                    .collect();
                if !identities.is_empty() {
                    grants.push(Grant {
                        conditions: Conditions::of(rule),
                        identities,
                        origin: Origin { place: rule.place, ..policy.origin },
                    });
                }
            }
        }
        for always in &service.always {
            let identity = Identity::Account(always.namespace.clone(), always.account.clone());
            let clusters = self.always_from(fleet, always, copy);
            grants.push(Grant {
                conditions: Conditions { whole_workload: true, ..Conditions::default() },
                identities: [(identity, clusters)].into_iter().collect(),
                origin: always.origin,
            });
        }
        grants
    }

    /// The documents of the services that carry an identity in these clusters.
    #[must_use]
    pub fn carriers_of(&self, identity: &Identity, clusters: &Clusters, fleet: &Fleet) -> BTreeSet<u32> {
        let Identity::Account(namespace, account) = identity else { return BTreeSet::new() };
        let carriers = self.carriers.get(&(namespace.clone(), account.clone()));
        carriers
            .into_iter()
            .flatten()
            .filter(|(_, runs)| !runs.and(clusters).is_empty())
            .flat_map(|(service, _)| fleet.service(*service).documents())
            .collect()
    }

    /// The identities behind a source: which, from where they really call, whether strictly only from there, and the
    /// service that was meant.
    fn identities(
        &self,
        fleet: &Fleet,
        source: &Source,
        provider: ServiceId,
    ) -> Vec<(Identity, Clusters, bool, Option<ServiceId>)> {
        let of_service = |id: ServiceId, clusters: &Clusters, strict: bool, only: Option<&ServiceAccount>| {
            let service = fleet.service(id);
            accounts(service, clusters)
                .into_iter()
                .filter(|(account, _)| only.is_none_or(|only| only == account))
                .map(|(account, clusters)| {
                    (Identity::Account(service.namespace.clone(), account), clusters, strict, Some(id))
                })
                .collect::<Vec<_>>()
        };
        match source {
            Source::Dependents(_) => self
                .dependents(provider)
                .iter()
                .flat_map(|(dependent, dependency)| of_service(*dependent, &dependency.clusters, false, None))
                .collect(),
            Source::Service { service, account, clusters, explicit, place: _ } => {
                of_service(*service, &clusters.and(&fleet.service(*service).runs), *explicit, account.as_ref())
            }
            Source::Identity { identity, clusters, place: _ } => vec![(identity.clone(), *clusters, true, None)],
        }
    }

    fn assign_policies(&mut self, fleet: &Fleet, found: &mut Diagnostics) {
        for (index, policy) in fleet.access.iter().enumerate() {
            if let Some(to) = policy.to {
                self.services[to.index()].policies.push(index);
            }
        }
        let is_default =
            |policy: &AccessPolicy| policy.to.is_none() && fleet.document(policy.origin).namespace.is_none();
        let defaults: Vec<usize> =
            fleet.access.iter().enumerate().filter(|(_, policy)| is_default(policy)).map(|(index, _)| index).collect();
        for service in &mut self.services {
            if service.policies.is_empty() {
                service.policies.clone_from(&defaults);
            }
            service.mode = service.policies.first().map(|policy| fleet.access[*policy].mode.0);
        }
        let mut reported = BTreeSet::new();
        for service in &self.services {
            let Some((first, rest)) = service.policies.split_first() else { continue };
            for other in rest {
                let (first, other) = (&fleet.access[*first], &fleet.access[*other]);
                if first.mode.0 != other.mode.0 && reported.insert((first.origin, other.origin)) {
                    let message = format!(
                        "{} says {}, {} says {}",
                        fleet.document(first.origin),
                        first.mode.0.as_str(),
                        fleet.document(other.origin),
                        other.mode.0.as_str()
                    );
                    found.push(
                        Diagnostic::new(&codes::MODES_DIFFER, other.mode.1, message)
                            .also(first.mode.1, "the other mode")
                            .help("give both one mode"),
                    );
                }
            }
        }
    }

    fn assign_always(&mut self, fleet: &Fleet, found: &mut Diagnostics) {
        for rule in &fleet.guardrails {
            let GuardrailVerb::AlwaysAllow(list) = &rule.verb else { continue };
            for (namespace, account, clusters, place) in list {
                let always = Always {
                    namespace: namespace.clone(),
                    account: account.clone(),
                    clusters: clusters.unwrap_or_default(),
                    origin: Origin { place: *place, ..rule.origin },
                };
                let mut wide = Clusters::NONE;
                for (service, access) in fleet.services.iter().zip(&mut self.services) {
                    if access.mode == Some(Mode::Enforce) && service.labels.contain(&rule.services) {
                        access.always.push(always.clone());
                        wide = wide.or(&service.runs);
                    }
                }
                let widened = wide.iter().find(|copy| {
                    let wanted = always.wanted(*copy);
                    !self.always_from(fleet, &always, *copy).is_subset(&wanted)
                });
                if let Some(copy) = widened {
                    let message = format!(
                        "{namespace}/{account} is admitted at {} from every cluster of the same trust domain",
                        fleet.cluster(copy).name
                    );
                    found.push(
                        Diagnostic::new(&codes::ALWAYS_ALLOW_WIDE, *place, message)
                            .help("give the clusters trust domains of their own to tell them apart"),
                    );
                }
            }
        }
    }

    fn check_service(&self, fleet: &Fleet, id: ServiceId, service: &Service, found: &mut Diagnostics) {
        for policy in self.service(id).policies.iter().map(|policy| &fleet.access[*policy]) {
            for rule in &policy.rules {
                if policy.to.is_some() {
                    self.check_conditions(rule, service, found);
                }
            }
        }
        let mut impossible = Vec::new();
        for copy in service.runs.iter() {
            self.check_identities(fleet, id, copy, &mut impossible);
        }
        for impossible in impossible {
            found.push(impossible.diagnostic(fleet, service));
        }
    }

    /// Ports that the service has, and conditions that its ports can carry.
    fn check_conditions(&self, rule: &AccessRule, service: &Service, found: &mut Diagnostics) {
        let has = |number: u16| service.ports.iter().find(|port| port.number == number);
        if let Some(ports) = &rule.ports
            && !ports.iter().any(|(port, _)| has(*port).is_some())
        {
            let known: Vec<String> = service.ports.iter().map(|port| port.number.to_string()).collect();
            let place = ports.first().map_or(rule.place, |(_, place)| *place);
            found.push(
                Diagnostic::new(&codes::NO_SUCH_PORT, place, format!("{} has none of these ports", service.name))
                    .help(format!("its ports are {}", known.join(", "))),
            );
        }
        let conditions = [
            rule.methods.as_ref().map(|(_, place)| ("methods", *place)),
            rule.paths.as_ref().map(|(_, place)| ("paths", *place)),
        ];
        let meant: Vec<_> = service
            .ports
            .iter()
            .filter(|port| {
                rule.ports.as_ref().is_none_or(|ports| ports.iter().any(|(number, _)| *number == port.number))
            })
            .collect();
        for (field, place) in conditions.into_iter().flatten() {
            let wrong = if rule.ports.is_some() {
                meant.iter().any(|port| !port.protocol.is_http())
            } else {
                !meant.iter().any(|port| port.protocol.is_http())
            };
            if wrong && !meant.is_empty() {
                found.push(
                    Diagnostic::new(
                        &codes::L7_ON_TCP,
                        place,
                        format!("`{field}` on a port of {} that does not speak HTTP", service.name),
                    )
                    .help("name an HTTP port in `ports`, or remove the condition"),
                );
            }
        }
    }

    /// Whether what the rules intend at one copy can be said with identities.
    fn check_identities(&self, fleet: &Fleet, id: ServiceId, copy: ClusterId, found: &mut Vec<Impossible>) {
        let rules: Vec<(&AccessRule, Conditions)> = self
            .service(id)
            .policies
            .iter()
            .flat_map(|policy| &fleet.access[*policy].rules)
            .filter(|rule| rule.within.contains(copy))
            .map(|rule| (rule, Conditions::of(rule)))
            .collect();
        let mut admissions: Vec<Admission<'_>> = Vec::new();
        for (rule, conditions) in &rules {
            for source in &rule.sources {
                let place = match source {
                    Source::Dependents(place) | Source::Service { place, .. } | Source::Identity { place, .. } => {
                        *place
                    }
                };
                for (identity, clusters, strict, service) in self.identities(fleet, source, id) {
                    // What the author wrote counts, also where the service does not run today.
                    let clusters = match source {
                        Source::Service { clusters: written, explicit: true, .. } => {
                            clusters.or(&written.without(&fleet.service(service.expect("a service source")).runs))
                        }
                        _ => clusters,
                    };
                    admissions.push(Admission { identity, clusters, conditions, place, strict, service });
                }
            }
        }
        for admission in &admissions {
            let problems =
                [self.check_domains(fleet, copy, admission, &admissions), self.check_sharing(admission, &admissions)];
            for problem in problems.into_iter().flatten() {
                Impossible::add(found, copy, admission, problem);
            }
        }
    }

    /// Clusters that would be admitted with those that are meant.
    fn check_domains(
        &self,
        fleet: &Fleet,
        copy: ClusterId,
        admission: &Admission<'_>,
        all: &[Admission<'_>],
    ) -> Option<Problem> {
        let own = &fleet.cluster(copy).mesh;
        if own.trust_domain_aliases.is_empty() && admission.clusters.and(&self.shared).is_empty() {
            return None;
        }
        let mut class = Clusters::NONE;
        for cluster in admission.clusters.iter() {
            if !class.contains(cluster) {
                class = class.or(&self.indistinguishable(fleet, copy, cluster));
            }
        }
        let extra = class.without(&admission.clusters).iter().find(|extra| {
            let carried = match &admission.identity {
                Identity::Account(namespace, account) => self
                    .carriers
                    .get(&(namespace.clone(), account.clone()))
                    .is_some_and(|carriers| carriers.iter().any(|(_, clusters)| clusters.contains(*extra))),
                Identity::Namespace(_) | Identity::Any => true,
            };
            (admission.strict || carried) && !admission.is_covered(all, *extra, None)
        })?;
        let meant = admission
            .clusters
            .iter()
            .find(|cluster| self.indistinguishable(fleet, copy, *cluster).contains(extra))
            .expect("it is in the class of one of them");
        Some(Problem::Domain { meant, extra })
    }

    /// Services that would be admitted with the one that is meant.
    fn check_sharing(&self, admission: &Admission<'_>, all: &[Admission<'_>]) -> Option<Problem> {
        let (Some(meant), Identity::Account(namespace, account)) = (admission.service, &admission.identity) else {
            return None;
        };
        let carriers = self.carriers.get(&(namespace.clone(), account.clone()))?;
        carriers.iter().filter(|(other, _)| *other != meant).find_map(|(other, clusters)| {
            let shared = clusters.and(&admission.clusters);
            let cluster = shared.iter().find(|cluster| !admission.is_covered(all, *cluster, Some(*other)))?;
            Some(Problem::Account { meant, extra: *other, cluster })
        })
    }
}

impl Admission<'_> {
    /// Whether the rules admit whoever carries the identity in a cluster as well; with a service: that service.
    fn is_covered(&self, all: &[Admission<'_>], cluster: ClusterId, service: Option<ServiceId>) -> bool {
        all.iter().any(|other| {
            other.clusters.contains(cluster)
                && covers(&other.identity, &self.identity)
                && other.conditions.include(self.conditions)
                && (service.is_none() || other.service.is_none() || other.service == service)
        })
    }
}

/// Why identities cannot carry an admission.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Problem {
    /// The called copy cannot tell a cluster from one that is meant.
    Domain { meant: ClusterId, extra: ClusterId },
    /// In a cluster, another service carries the identity of the one that is meant.
    Account { meant: ServiceId, extra: ServiceId, cluster: ClusterId },
}

/// An admission that identities cannot carry, and the copies where they cannot.
struct Impossible {
    place: Place,
    identity: Identity,
    problem: Problem,
    copies: Vec<ClusterId>,
}

impl Impossible {
    /// The same problem at several copies is one finding.
    fn add(list: &mut Vec<Self>, copy: ClusterId, admission: &Admission<'_>, problem: Problem) {
        let same = |known: &&mut Self| {
            known.place == admission.place && known.problem == problem && known.identity == admission.identity
        };
        match list.iter_mut().find(same) {
            Some(known) if known.copies.last() == Some(&copy) => {}
            Some(known) => known.copies.push(copy),
            None => list.push(Self {
                place: admission.place,
                identity: admission.identity.clone(),
                problem,
                copies: vec![copy],
            }),
        }
    }

    fn diagnostic(self, fleet: &Fleet, service: &Service) -> Diagnostic {
        let copies: Vec<&str> = self.copies.iter().map(|copy| fleet.cluster(*copy).name.as_str()).collect();
        let called = format!("{}/{} in {}", service.namespace, service.name, copies.join(", "));
        match self.problem {
            Problem::Domain { meant, extra } => {
                let (meant, extra) = (fleet.cluster(meant), fleet.cluster(extra));
                let alike = meant.mesh.trust_domain == extra.mesh.trust_domain;
                let reason =
                    if alike { "the trust domain is the same" } else { "aliases make their trust domains one there" };
                let message = format!(
                    "{called} cannot admit {} from {} and refuse it from {}: {reason}",
                    describe(&self.identity),
                    meant.name,
                    extra.name,
                );
                let mut diagnostic = Diagnostic::new(&codes::NOT_WHOLE_TRUST_DOMAIN, self.place, message)
                    .also(meant.origin.place, "the cluster that is meant")
                    .also(extra.origin.place, "the cluster that would be admitted as well");
                if !alike {
                    diagnostic =
                        diagnostic.also(fleet.cluster(self.copies[0]).origin.place, "a cluster with such aliases");
                }
                diagnostic
                    .help("give the clusters trust domains of their own, admit both, or use distinct service accounts")
            }
            Problem::Account { meant, extra, cluster } => {
                let (meant, extra) = (fleet.service(meant), fleet.service(extra));
                let message = format!(
                    "{called} cannot admit {} and refuse {}: in {} both run as {}",
                    meant.name,
                    extra.name,
                    fleet.cluster(cluster).name,
                    describe(&self.identity),
                );
                Diagnostic::new(&codes::SHARED_ACCOUNT, self.place, message)
                    .also(extra.origin.place, "the service that would be admitted as well")
                    .help("give the services distinct service accounts, or admit both")
            }
        }
    }
}

/// The accounts under which a service runs in these clusters.
fn accounts(service: &Service, clusters: &Clusters) -> Vec<(ServiceAccount, Clusters)> {
    let mut accounts: BTreeMap<ServiceAccount, Clusters> = BTreeMap::new();
    let mut base = *clusters;
    for (variant, copy) in &service.variants {
        let part = variant.and(clusters);
        base = base.without(variant);
        if !part.is_empty() {
            let sum = accounts.entry(copy.account.clone()).or_default();
            *sum = sum.or(&part);
        }
    }
    if !base.is_empty() {
        let sum = accounts.entry(service.copy.account.clone()).or_default();
        *sum = sum.or(&base);
    }
    accounts.into_iter().collect()
}

/// Whether whoever fits `narrow` fits `wide` as well.
fn covers(wide: &Identity, narrow: &Identity) -> bool {
    match (wide, narrow) {
        (Identity::Any, _) => true,
        (Identity::Namespace(wide), Identity::Account(narrow, _) | Identity::Namespace(narrow)) => wide == narrow,
        (Identity::Account(..), Identity::Account(..)) => wide == narrow,
        _ => false,
    }
}

/// An identity for messages.
#[must_use]
pub fn describe(identity: &Identity) -> String {
    match identity {
        Identity::Account(namespace, account) => format!("{namespace}/{account}"),
        Identity::Namespace(namespace) => format!("any account of {namespace}"),
        Identity::Any => "anyone".to_owned(),
    }
}
