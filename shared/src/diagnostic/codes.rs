//! Every code, with its page. A code never changes its meaning and is never used again after it is gone.
//!
//! 0xx text · 1xx one document · 2xx documents that refer to each other · 3xx traffic · 4xx access · 5xx guardrails ·
//! 6xx what a mesh cannot express · 7xx the run itself

use super::{Code, Severity};

macro_rules! codes {
    ($( $name:ident = $id:literal $severity:ident $title:literal $page:literal; )*) => {
        $(
            #[doc = $title]
            pub static $name: Code = Code { id: $id, severity: Severity::$severity, title: $title, page: $page };
        )*
        /// All codes, sorted.
        pub static ALL: &[&Code] = &[$(&$name),*];
    };
}

codes! {
    SYNTAX = "MESH001" Error "text that is not YAML"
        "The file cannot be read as YAML from the given place on. Typical causes: a missing space after a colon, a tab in the indentation, a quote that does not end, a Helm template that was not rendered. What stands behind the place in the same file was not looked at.";
    NOT_UTF8 = "MESH002" Error "a file that is not UTF-8"
        "Kubernetes reads UTF-8 only. Save the file as UTF-8.";
    TOO_LARGE = "MESH003" Error "a file beyond the limits"
        "Files are bounded so that a broken or hostile file cannot exhaust memory. Split the documents into several files; the number of files does not change what is rendered.";
    TOO_DEEP = "MESH004" Error "maps and lists nested too deep"
        "No document of this API needs more than a few levels. The file is refused before anything is built from it.";
    ANCHOR = "MESH005" Error "anchors, aliases or merge keys"
        "Anchors (`&a`), aliases (`*a`) and merge keys (`<<`) hide what a reviewer has to see, multiply small files into large ones, and are read differently by different readers. Write the value out where it is used.";
    TAG = "MESH006" Error "a YAML tag"
        "Tags (`!!str`, `!custom`) change the type of a value in ways that readers do not agree on. Remove the tag, and quote the value if it is a string.";
    DUPLICATE_KEY = "MESH007" Error "a key twice in one map"
        "Some readers take the first value, others the last. Keep one of them.";
    KEY_NOT_STRING = "MESH008" Error "a key that is not a string for every reader"
        "YAML 1.1 readers take `on`, `no` or `1` for a boolean or number, also as a key. Put the key in double quotes.";
    UNREADABLE = "MESH009" Error "a file that cannot be read"
        "A file or folder was named, or found in a folder, and cannot be opened. Nothing is rendered, because an unread document could have changed the result. Symbolic links below a folder are not followed, so that a repository cannot point out of itself: replace the link by the file.";

    UNKNOWN_KIND = "MESH101" Error "an unknown kind or version"
        "The API version is meshintent.dev/v1alpha1; the kinds are Cluster, MeshService, ServiceLocations, TrafficPolicy, AccessPolicy and Guardrail.";
    UNKNOWN_FIELD = "MESH102" Error "an unknown field"
        "A misspelt field would silently do nothing, so it is an error. The message names the nearest known field or all that may stand there. `kubectl mesh schema` prints a JSON Schema with which editors complete and check the documents.";
    MISSING_FIELD = "MESH103" Error "a missing field"
        "The field has no default, because no default would be right for everyone. Add it.";
    WRONG_TYPE = "MESH104" Error "a value of the wrong type"
        "Also plain words that YAML 1.1 readers take for something else (`no`, `on`, `014`, `1_000`, `12:30`): put strings in double quotes, and write numbers in decimal digits.";
    BAD_VALUE = "MESH105" Error "a value that is not allowed"
        "The type is right, the value is not. The message says which rule it breaks and what to write.";
    EMPTY_LIST = "MESH106" Error "an empty list"
        "An empty list could be meant as \"nothing\" or as \"everything\". Name at least one item, or leave the field out. Only `allow: []` has a meaning: nobody may call.";
    NAMESPACE = "MESH107" Error "a namespace where none belongs"
        "Cluster, ServiceLocations, Guardrail and defaults of the fleet belong to no namespace. A default in a namespace could be taken for a default of that namespace, which it is not.";
    DEFAULT_DOCUMENT = "MESH108" Error "a default that names what it holds for"
        "A document with `default: true` holds wherever no other one says otherwise, so it names no `from`, `to` or `match`. There is at most one default TrafficPolicy.";
    FOREIGN_DOCUMENT = "MESH109" Error "a document of another API in a named file"
        "In folders, documents of other API groups are skipped. In a file that is named by itself every document has to be one of ours, so that a misspelt apiVersion is seen.";
    DUPLICATE_DOCUMENT = "MESH110" Error "a document twice"
        "Two documents of the same kind, namespace and name. Which one holds would depend on the order of files. Keep one, or rename one.";
    RESERVED = "MESH111" Error "a reserved word as a name"
        "`all`, `local` and `same` have a meaning where clusters are named, so no cluster can have them as its name. `region`, `zone` and `network` are fields of a cluster, so no label of a cluster can have them as its key.";

    NO_CLUSTERS = "MESH201" Error "a fleet without clusters"
        "No Cluster document was read, so there is nothing to render for. Usually the inventory was not named: give its folder with a further `-f`.";
    UNKNOWN_CLUSTER = "MESH202" Error "a cluster that is not in the inventory"
        "The name must be that of a Cluster document. It is an error so that a misspelt name cannot silently drop a cluster from a policy.";
    EMPTY_SELECTION = "MESH203" Error "labels that no cluster carries"
        "An item of a cluster set that selects nothing is usually a misspelt label or value. All entries of one map must match the same cluster; `region`, `zone` and `network` read the cluster's own fields.";
    UNKNOWN_SERVICE = "MESH204" Error "a service that does not exist"
        "The name must be that of a MeshService. A bare name is looked up in the document's own namespace; write {service: NAME, namespace: NAMESPACE} for another one.";
    NO_LOCATION = "MESH205" Error "a service that runs nowhere"
        "The MeshService names no `clusters`, and no ServiceLocations document knows where the service runs. Name the clusters, or let `kubectl mesh discover` write the locations.";
    LOCATION_DIFFERS = "MESH206" Warning "a service observed elsewhere than declared"
        "The MeshService names its clusters, and ServiceLocations observed others. The MeshService counts. Correct it, or remove `clusters` so that the observation counts.";
    LOCATION_UNUSED = "MESH207" Note "an observed service without a MeshService"
        "The entry is ignored: nobody declared anything about this service.";
    NO_PORTS = "MESH208" Error "a service without ports"
        "Neither the MeshService nor a location names the ports. Add `ports: [{name: http, port: 8080}]`.";
    ACCOUNT_CHOICE = "MESH209" Error "several observed service accounts"
        "The pods of the service were seen with several service accounts. Say which one counts: `workload: {serviceAccount: NAME}`. One identity must stand for the service, because callers check it and policies name it.";
    HOST_TAKEN = "MESH210" Error "a host name of two services"
        "A host name belongs to one MeshService of the fleet; two answers to one name cannot both be right.";
    LOCAL_NAME = "MESH211" Error "a cluster-local name of another service"
        "A name below svc.cluster.local may be exposed only by the service it names, and only if no variant gives the Kubernetes Service another name or other port numbers: callers use one name and the numbers of `ports` everywhere.";
    RESERVED_HOST = "MESH212" Error "a host name of the suite's own domain"
        "Names below meshintent.dev are used for the suite's own objects inside the meshes.";
    PORTS_DIFFER = "MESH213" Error "ports of a variant that do not fit the service"
        "Ports are matched by name between a service and its variants, so a variant names exactly the ports of the service, and what is spoken on them does not change.";
    TWO_VARIANTS = "MESH214" Error "two variants for one cluster"
        "Which of the two holds would be a guess. Put both into one variant, or make their clusters distinct.";
    VARIANT_UNUSED = "MESH215" Warning "a variant for a cluster where the service does not run"
        "The variant does nothing there.";
    DUPLICATE_DEPENDENCY = "MESH216" Error "a dependency twice"
        "The same provider stands twice in `dependsOn`. Write one entry with all its clusters.";
    DEPENDENCY_NOWHERE = "MESH217" Error "a dependency in clusters where the service does not run"
        "None of the clusters of this entry runs the service, so the entry does nothing. Correct the clusters.";
    NOT_EXPOSED = "MESH218" Error "a dependency that cannot be reached"
        "The provider does not run beside the caller and is not exposed to it, so the call would fail. Expose the provider (`expose: {hostnames: […]}`, and the caller in `expose.to` if there is one), run it beside the caller, or limit the dependency with `clusters`.";
    DUPLICATE_PORT = "MESH219" Error "a port twice"
        "Names and numbers of ports are unique within a service, and so are the workload ports of one copy, because access rules are written by them.";
    VIP_COLLISION = "MESH220" Error "two host names with one virtual IP address"
        "The address of a host name is computed from the name alone, so that adding a service never changes another's. Two names of this fleet share one. Set `expose.vip` in one of the services.";
    SHARED_WORKLOAD = "MESH221" Error "two services that choose the same pods"
        "Two MeshServices of one namespace choose the same pods in one cluster and at least one of them has an access policy. Rules of both would add up on these pods: whoever may call one could call the other. Use distinct selectors, or make it one service.";
    TOO_MANY_CLUSTERS = "MESH222" Error "more clusters than one fleet can have"
        "One fleet has at most 512 clusters. Split the inventory into fleets that do not depend on each other.";
    FOREIGN_SERVICE_NAME = "MESH223" Error "two services with one Kubernetes Service"
        "Two MeshServices of one namespace name the same Kubernetes Service in one cluster. Which of them a call means could not be told.";
    SELF_DEPENDENCY = "MESH224" Note "a service that depends on itself"
        "The service's own pods call its host name. This is rendered like any other dependency.";
    SAME_GATEWAY = "MESH225" Error "two clusters with one gateway"
        "Requests for one of the clusters would arrive in whichever the address leads to, so no exclusion, order or share between the two could be kept. Give every cluster's gateway an address or a port of its own.";

    UNIT_CONFLICT = "MESH301" Error "two policies that set the same thing for one call"
        "Policies that match the same calls may set different things; the same thing set twice would need a precedence, and there is none by age, name or specificity. Narrow one of the two with `from`, or move the setting into one policy.";
    MATCH_CONFLICT = "MESH302" Error "two matched policies that set the same thing for one request"
        "A request can fit both. Only an exact path, method or header that differs keeps them apart. Make the matches exclude each other, or put the setting into one policy.";
    SHARE_TWICE = "MESH303" Error "a cluster in two shares of one call"
        "One cluster gets one share. Join the two entries of `weights`.";
    POLICY_UNUSED = "MESH304" Warning "a policy that matches no call"
        "No service that depends on `to` fits `from`. Nothing is rendered for the policy. Usually a dependency is missing, or a name is misspelt.";
    CLUSTER_UNUSED = "MESH305" Warning "a cluster where the service does not run"
        "The clusters named in `weights`, `mirror` or `in` include some where the called service does not run. They have no effect.";
    SHARE_DROPPED = "MESH306" Warning "a share without a cluster left"
        "Every cluster of the share is excluded, denied, drained or unreachable for this caller. Its percentage follows the order.";
    MIRROR_DROPPED = "MESH307" Warning "a mirror without a cluster left"
        "Every cluster of the mirror is excluded, denied, drained or unreachable for this caller. Nothing is copied.";
    NO_CANDIDATE = "MESH308" Error "a dependency that nobody may serve"
        "For this caller every cluster that runs the service is removed, by exclusions, access, guardrails or an order that holds none of them. The table of `explain` says which rule removes which cluster. Allow one of them, or remove the dependency.";
    NO_CANDIDATE_NOW = "MESH309" Warning "a dependency that nobody serves while clusters are drained or unreachable"
        "For this caller no cluster is left because of `drain` or because a gateway is missing. Nothing is rendered for it until that changes.";
    HTTP_ONLY = "MESH310" Error "a setting that needs HTTP on a service without HTTP"
        "`match`, retries, timeouts, faults, mirrors, CORS and headers work on requests, and the service has only TCP or TLS ports. Remove the setting, or correct the protocol of the port.";
    TOO_MANY_MATCHES = "MESH311" Error "too many overlapping matches"
        "Requests that fit several matched policies get the settings of all of them, so every combination needs a route of its own. Make the matches exclude each other with an exact path, method or header.";
    MATCH_COMBINATION = "MESH312" Error "two matches that cannot be joined"
        "A request can fit both policies, and no single route can say so: they compare the same path, header or parameter in ways that do not include each other. Make one of them exact.";
    TWO_DEFAULTS = "MESH313" Error "two default traffic policies"
        "There is one default of the fleet. Join the two, or make one of them a policy with `to`.";
    NO_TIMEOUT = "MESH314" Note "failover that a frozen copy does not trigger"
        "Without a timeout, a copy that accepts requests and never answers is not left: nothing fails, so nothing is counted. Set `timeout`, or `retries.perTryTimeout`, in the default policy.";

    MODES_DIFFER = "MESH401" Error "policies of one service with different modes"
        "The policies of a service add up, and a call cannot be both refused and only logged. Give them one mode.";
    NOT_WHOLE_TRUST_DOMAIN = "MESH402" Error "a rule that identities cannot carry"
        "An identity names a trust domain, a namespace and a service account, not a cluster. Clusters that share a trust domain (or that the called cluster's `trustDomainAliases` make one) cannot be told apart: admitting one would admit all. Give the clusters trust domains of their own, admit all of them, or use distinct service accounts.";
    SHARED_ACCOUNT = "MESH403" Error "a rule that would admit a second service"
        "Another service of the same namespace and cluster runs under the same service account, so admitting one admits both. Give the services distinct service accounts, or admit both.";
    NO_SUCH_PORT = "MESH404" Error "a rule none of whose ports the service has"
        "The rule could never admit a call. `ports` are the service's port numbers, as callers use them.";
    L7_ON_TCP = "MESH405" Error "methods or paths on a port without requests"
        "Methods and paths exist in HTTP only; on a TCP or TLS port the rule could never admit a call. Name an HTTP port, or remove the condition.";
    NO_POLICY = "MESH406" Note "services without an access policy"
        "These services are open to everyone in the mesh. Write an AccessPolicy for them, or a default one.";
    NO_PERMISSION = "MESH407" Warning "a dependency without permission"
        "The service depends on another one whose access policy does not admit it where it would be called. Add the caller to the policy, or remove the dependency.";
    UNUSED_PERMISSION = "MESH408" Note "a permission without dependency"
        "The rule admits a service that does not declare the dependency. Access is separate from routing, so this may be meant; otherwise add the dependency or remove the rule.";
    ALWAYS_ALLOW_WIDE = "MESH409" Note "alwaysAllow admits a whole trust domain"
        "The identity is admitted from every cluster that shares the trust domain of the called copy, because identities do not name clusters.";
    CALLER_NOWHERE = "MESH410" Warning "a rule whose caller does not run there"
        "The service does not run in any of the clusters of this item, so the item admits nobody today.";
    NAMESPACE_MISSING = "MESH411" Error "an item of a default that does not say which namespace"
        "A default belongs to no namespace, so a service or service account in it needs `namespace:` beside it.";

    GUARDRAIL_MAX = "MESH501" Error "a share beyond a guardrail"
        "The shares that this caller sends to the guarded clusters together exceed the guardrail's `max`. Lower the share, or change the guardrail.";
    GUARDRAIL_HOSTNAME = "MESH502" Error "a host name against a guardrail"
        "A guardrail requires host names of certain domains. Use one of them; the service's own cluster-local name is exempt.";
    GUARDRAIL_ACCESS = "MESH503" Error "a service without the access policy that a guardrail requires"
        "A guardrail requires an enforcing access policy for services with these labels: their own, or the default.";
    DUPLICATE_RULE = "MESH504" Error "two guardrail rules with one name"
        "Rule names are what people see in explanations, so they are unique in the fleet.";

    NO_BACKEND = "MESH601" Error "a mesh that cannot be rendered yet"
        "The cluster's mesh has no backend. Its services take no part in failover of other meshes, and nothing is rendered for it, so rendering it is refused instead of yielding an empty result.";
    MESH_MODE = "MESH602" Error "a data plane or discovery that cannot be rendered"
        "Rendered objects are for Istio with sidecars and isolated control planes. In ambient mode two entries of one host do not merge and exclusions could not be kept; with shared discovery a control plane sees the other clusters' endpoints by itself, so exclusions could not be kept either.";
    MESH_VERSION = "MESH603" Error "a version of Istio that is not supported"
        "Objects are rendered for Istio 1.24 to 1.31. Correct `mesh.version`, or upgrade the cluster.";
    DNS_GATEWAY_VERSION = "MESH604" Error "gateway host names need Istio 1.30"
        "Before 1.30 Istio ignores the failover order of entries that are looked up in DNS. Give the gateway fixed addresses, or upgrade the calling cluster.";
    NAME_DOES_NOT_RESOLVE = "MESH605" Warning "a host name that callers cannot resolve by themselves"
        "The calling cluster has no DNS capture (`mesh.dnsCapture: false`), so nobody there answers for the host name. Add it to the cluster's DNS with the virtual IP address that the ServiceEntry shows, or switch DNS capture on.";
    DNS_LOCAL_PODS = "MESH607" Note "local pods behind their Kubernetes Service"
        "A gateway of this service has a host name instead of an address, so all endpoints are looked up in DNS, and the caller's own pods are reached through their Kubernetes Service: they are balanced per connection and ejected together.";
    NAME_NOT_VISIBLE = "MESH608" Error "a cluster-local name that cannot resolve"
        "Callers in this cluster have no DNS capture, the service does not run there, and its namespace does not exist there, so no stub Service can stand for the name. Use a further host name, create the namespace by running a service in it, or switch DNS capture on.";

    CALLERS_ALIKE = "MESH609" Error "two callers that cannot be told apart"
        "Routes tell callers apart by namespace and labels of their pods. The selectors of these two fit the same pods, and what holds for their calls differs, so one would get what is meant for the other. Give the workloads distinct selectors, or let the policies treat both alike.";
    CLUSTER_LOCAL_DOMAIN = "MESH610" Error "cluster.local cannot name another cluster's trust domain"
        "In an AuthorizationPolicy, Istio replaces `cluster.local` by the trust domain of the cluster it stands in. A rule for a caller whose cluster still has that default would admit the called cluster's own workloads instead. Give the calling cluster a trust domain of its own.";
    LANE_VIP_COLLISION = "MESH611" Error "two internal hosts with one virtual IP address"
        "Ports that carry no requests need an address for every way that callers can go, computed from names. Two of them share one in this cluster. Rename one of the services, or change the order of one policy.";
    OBJECT_TOO_LARGE = "MESH612" Error "more than Istio takes in one object"
        "Istio's resources hold at most 512 rules, 128 ports of an endpoint, 256 tiers, 4096 gateways' addresses and 256 labels of a selector. The API server would refuse the object and keep the one that is there. Write fewer distinct rules or tiers, or split the service.";
    SIDECAR_PORT = "MESH613" Error "a port that sidecars keep for themselves"
        "Sidecars capture what leaves a pod on port 15001 and what reaches it on port 15006, and drop what is sent to these numbers. Choose another number.";

    CLUSTER_NOT_FOUND = "MESH701" Error "a cluster that is not in the inventory"
        "The cluster to render for must be the name of a Cluster document. An unknown cluster is never an empty success: that would remove everything from a live mesh.";
}
