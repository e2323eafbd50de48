#!/usr/bin/env python3
"""What documents mean, worked out once more as plainly as possible, and compared with what the programs say:

    tests/random/meaning.py --programs DIR [--seeds 1..300]

Istio's code proves that what is rendered does what `explain` says. It cannot prove that `explain` says what the documents
mean; this does. Nothing here is shared with the programs, and nothing is fast: sets of names, and the rules in the order
of docs/translation.md.
"""

import collections
import json
import random
import subprocess
import tempfile

from seeds import run, said


REASONS = ["exclude", "access", "guardrail", "drain", "unreachable", "order"]
OUTCOMES = [*REASONS, "row", "matched row", "share", "refused", "admitted", "moved", "lost", "request refused", "request admitted"]


def compare(programs, seed):
    """The differences of a fleet, and what it had."""
    with tempfile.TemporaryDirectory() as folder:
        documents = json.loads(said(programs / "fleet-generator", "fleet", "--seed", seed, "--out", folder, "--json"))
        rows = json.loads(said(programs / "kubectl-mesh", "explain", "-f", folder, "-o", "json"))
        matrix = json.loads(said(programs / "kubectl-mesh-authz", "who-can", "-f", folder, "-o", "json"))
        fleet = Fleet(documents)
        counts = collections.Counter()
        differences = [
            *compare_requests(programs, folder, fleet, random.Random(seed), counts),
            *compare_outages(programs, folder, fleet, random.Random(seed), counts),
        ]

    told = collections.defaultdict(list)
    for row in rows:
        caller, service = row["caller"], row["service"]
        key = ((caller["namespace"], caller["service"], caller["cluster"]), (service["namespace"], service["name"]))
        told[key].append(
            {
                "match": "match" in row,
                "shares": [(share["clusters"], share["percent"]) for share in row["shares"]],
                "tiers": row["tiers"],
                "removed": {one["cluster"]: (one["reason"], one["document"]) for one in row["removed"]},
            }
        )
        counts["matched row" if "match" in row else "row"] += 1
        counts["share"] += len(row["shares"])
        counts.update(one["reason"] for one in row["removed"])
    meant = {(edge.caller, edge.provider): fleet.rows(edge) for edge in fleet.edges()}
    for key in sorted(set(told) | set(meant)):
        ours, theirs = meant.get(key, []), told.get(key, [])
        if texts(ours) != texts(theirs):
            differences.append(f"{key}\n  meant {ours}\n  told  {theirs}")

    copies = {}
    for copy in matrix:
        provider = (copy["service"]["namespace"], copy["service"]["name"])
        for one in copy["callers"]:
            caller = (one["caller"]["namespace"], one["caller"]["service"], one["caller"]["cluster"])
            copies[provider, copy["cluster"], caller] = one["allowed"]
    callers = [(*name, cluster) for name, service in fleet.services.items() for cluster in service.runs]
    expected = {
        (name, cluster, caller): fleet.admits(caller, name, cluster)
        for name, service in fleet.services.items()
        for cluster in service.runs
        for caller in callers
    }
    for key in sorted(set(copies) | set(expected)):
        if copies.get(key) != expected.get(key):
            differences.append(f"may {key[2]} call {key[0]} in {key[1]}: meant {expected.get(key)}, told {copies.get(key)}")
    counts.update("admitted" if allowed else "refused" for allowed in copies.values())
    return differences, counts


def compare_requests(programs, folder, fleet, dice, counts):
    """Some requests, asked one by one."""
    copies = [(*name, cluster) for name, service in fleet.services.items() for cluster in sorted(service.runs)]
    if not copies:
        return
    for _ in range(3):
        caller, called = dice.choice(copies), dice.choice(copies)
        provider = called[:2]
        port, protocol = dice.choice(sorted(fleet.services[provider].ports.items()))
        request = {"port": port}
        if protocol not in ("TCP", "TLS"):
            request |= {"method": dice.choice(["GET", "POST"]), "path": dice.choice(["/v1/orders", "/v2", "/healthz"])}
        flags = [f"--{name}={value}" for name, value in request.items()]
        words = ["can-i", "{}/{}@{}".format(*caller), "{}/{}".format(*provider), "--in", called[2], *flags, "-f", folder]
        told = subprocess.run([programs / "kubectl-mesh-authz", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        meant = fleet.admits(caller, provider, called[2], request)
        counts["request admitted" if meant else "request refused"] += 1
        if not told.stdout.startswith("yes - " if meant else "no - ") or told.returncode != (not meant):
            yield f"{words}: meant {meant}, told {told.returncode} {told.stdout!r}"


def compare_outages(programs, folder, fleet, dice, counts):
    """A failure of some clusters caller by caller, and of each cluster in numbers."""
    if not fleet.clusters:
        return
    rows = {edge: fleet.rows(edge) for edge in fleet.edges()}
    down = dice.sample(sorted(fleet.clusters), min(len(fleet.clusters), dice.choice([1, 1, 2])))
    words = ["simulate", "--down", ",".join(down), "--all", "-o", "json", "-f", folder]
    told = json.loads(said(programs / "kubectl-mesh-failover", *words))
    listed = [(row["caller"], row["service"], "match" in row, parts(row["before"]), parts(row["after"]), row["lost"]) for row in told]
    meant = []
    for edge, routes in rows.items():
        (namespace, service, cluster), provider = edge
        for row in routes if cluster not in down else []:
            before, _ = served(row, [])
            after, lost = served(row, down)
            caller = {"cluster": cluster, "namespace": namespace, "service": service}
            meant.append((caller, dict(zip(("namespace", "name"), provider)), row["match"], before, after, lost))
            counts["lost" if lost else "moved" if before != after else "stays"] += 1
    for ours, theirs in zip(sorted(meant, key=str), sorted(listed, key=str)):
        if ours != theirs:
            yield f"without {down}: meant {ours}, told {theirs}"
    if len(meant) != len(listed):
        yield f"without {down}: {len(meant)} rows are meant, {len(listed)} are told"
    for outage in json.loads(said(programs / "kubectl-mesh-failover", "simulate", "--each", "-o", "json", "-f", folder)):
        fates = [
            [(served(row, []), served(row, outage["down"])) for row in routes]
            for edge, routes in rows.items()
            if edge.caller[2] not in outage["down"]
        ]
        lost = sum(any(after[1] > before[1] for before, after in fate) for fate in fates)
        moved = sum(any(after != before for before, after in fate) for fate in fates) - lost
        if (outage["lost"], outage["moved"], len(outage["losing"])) != (lost, moved, lost):
            yield f"{outage}: meant {lost} and {moved}"


def parts(listed):
    return collections.Counter({tuple(sorted(part["clusters"])): part["percent"] for part in listed})


def served(row, down):
    """Who serves which part of the requests while clusters are down, and what nobody serves."""

    def healthy(clusters):
        return tuple(sorted(set(clusters) - set(down)))

    order = next((healthy(tier) for tier in row["tiers"] if healthy(tier)), ())
    out = collections.Counter()
    for clusters, percent in row["shares"]:
        out[healthy(clusters) or order] += percent
    out[order] += 100 - sum(percent for _, percent in row["shares"])
    lost = out.pop((), 0)
    return +out, lost


def texts(rows):
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


Edge = collections.namedtuple("Edge", "caller provider")


class Service:
    """A MeshService with what was observed of it."""

    def __init__(self, document, fleet):
        self.labels = document["metadata"].get("labels", {})
        self.spec = spec = document["spec"]
        self.name = (document["metadata"]["namespace"], document["metadata"]["name"])
        seen = [
            entry
            for observed in fleet.of_kind("ServiceLocations")
            for entry in observed["spec"]["services"]
            if (entry["namespace"], entry["name"]) == self.name
        ]
        if "clusters" in spec:
            self.runs = fleet.select(spec["clusters"])
        else:
            self.runs = {name for entry in seen for name in fleet.select(entry["clusters"])}
        observed = {account for entry in seen for account in entry.get("serviceAccounts", [])}
        usual = spec.get("workload", {}).get("serviceAccount") or (observed.pop() if len(observed) == 1 else self.name[1])
        self.accounts = dict.fromkeys(self.runs, usual)
        ports = spec.get("ports") or [port for entry in seen for port in entry.get("ports", [])]
        self.ports = {port["port"]: port.get("protocol", "HTTP") for port in ports}
        for variant in spec.get("variants", []):
            account = variant.get("workload", {}).get("serviceAccount")
            if account:
                self.accounts |= dict.fromkeys(fleet.select(variant["clusters"]) & self.runs, account)
        self.depends = {}
        for written in spec.get("dependsOn", []):
            item = {"service": written} if isinstance(written, str) else written
            provider = (item.get("namespace", self.name[0]), item["service"])
            self.depends[provider] = fleet.select(item["clusters"]) & self.runs if "clusters" in item else self.runs

    def is_exposed_to(self, caller):
        if "expose" not in self.spec:
            return False
        to = self.spec["expose"].get("to")
        namespace, name = caller
        return to is None or any(one["namespace"] == namespace and one.get("service", name) == name for one in to)


class Fleet:
    def __init__(self, documents):
        self.documents = documents
        self.clusters = {document["metadata"]["name"]: document for document in self.of_kind("Cluster")}
        self.services = {}
        for document in self.of_kind("MeshService"):
            service = Service(document, self)
            self.services[service.name] = service
        self.rules = [(guardrail, rule) for guardrail in self.of_kind("Guardrail") for rule in guardrail["spec"]["rules"]]

    def of_kind(self, kind):
        return [document for document in self.documents if document["kind"] == kind]

    # Sets of clusters.

    def select(self, written, caller=None):
        if written == "all":
            return set(self.clusters)
        return {name for item in written for name in self.item(item, caller)}

    def item(self, item, caller=None):
        if item == "all":
            return set(self.clusters)
        if item == "local":
            return {caller}
        if isinstance(item, str):
            return {item}
        return {name for name in self.clusters if all(self.has(name, key, value, caller) for key, value in item.items())}

    def has(self, name, key, value, caller):
        cluster = self.clusters[name]
        if key not in ("region", "zone", "network"):
            return cluster["metadata"].get("labels", {}).get(key) == value
        own = cluster["spec"].get(key)
        wanted = self.clusters[caller]["spec"].get(key) if value == "same" else value
        return own is not None and own == wanted

    # Who calls whom.

    def edges(self):
        for service in self.services.values():
            for name, clusters in service.depends.items():
                if self.services[name].is_exposed_to(service.name):
                    yield from (Edge((*service.name, cluster), name) for cluster in clusters)

    def rows(self, edge):
        """The row of an edge, and one for each policy that holds for some requests."""
        default = {}
        own = {}
        matched = []
        for policy in self.of_kind("TrafficPolicy"):
            units = {unit: (policy, value) for unit, value in units_of(policy["spec"]).items()}
            if policy["spec"].get("default"):
                default = units
            elif self.is_about(policy, edge):
                if "match" in policy["spec"]:
                    matched.append(units)
                else:
                    own |= units
        base = default | own
        return [self.row(edge, base, False), *(self.row(edge, base | units, True) for units in matched)]

    def is_about(self, policy, edge):
        home = policy["metadata"]["namespace"]
        to = policy["spec"]["to"]
        if (to.get("namespace", home), to["service"]) != edge.provider:
            return False
        namespace, name, cluster = edge.caller
        for item in policy["spec"].get("from", [{}]):
            wanted = item.get("namespace", home if "service" in item else namespace)
            if wanted == namespace and item.get("service", name) == name:
                if cluster in self.select(item.get("clusters", "all")):
                    return True
        return False

    def row(self, edge, units, match):
        here = edge.caller[2]
        runs = self.services[edge.provider].runs
        removed = {}
        for cluster in runs:
            reason = self.removal(edge, cluster, units)
            if reason:
                removed[cluster] = reason
        allowed = runs - set(removed)

        order_by, order = units.get("order", (None, ["local", {"region": "same"}, "all"]))
        tiers = []
        for item in order:
            tier = set().union(*(self.item(one, here) for one in (item if isinstance(item, list) else [item])))
            tiers.append(tier & allowed - set().union(*tiers))
        candidates = set().union(*tiers)

        usable = set(allowed)
        if self.is_drained(here) and candidates - {here}:
            usable -= {here}
            if here in candidates:
                removed[here] = ("drain", f"Cluster/{here}")
                candidates -= {here}
                tiers = [tier - {here} for tier in tiers]

        shares = []
        for share in units.get("weights", (None, []))[1]:
            clusters = self.select(share["clusters"]) & runs & usable
            if clusters:
                shares.append([sorted(clusters), share["percent"]])
        if shares and not candidates:
            for share, percent in zip(shares, in_proportion([percent for _, percent in shares])):
                share[1] = percent
        shared = {cluster for clusters, _ in shares for cluster in clusters}
        for cluster in runs - set(removed) - candidates - shared:
            removed[cluster] = ("order", name_of(order_by) if order_by else None)
        return {
            "match": match,
            "shares": [tuple(share) for share in shares],
            "tiers": [sorted(tier) for tier in tiers],
            "removed": removed,
        }

    def removal(self, edge, cluster, units):
        """Why the order has no say in this cluster; the first reason that applies."""
        here = edge.caller[2]
        elsewhere = cluster != here
        exclude_by, exclude = units.get("exclude", (None, []))
        if elsewhere and cluster in self.select(exclude, here):
            return "exclude", name_of(exclude_by)
        if not self.admits(edge.caller, edge.provider, cluster):
            return "access", self.decides(edge.provider)
        for guardrail, rule in self.rules:
            deny = rule.get("deny")
            if deny and self.is_for(rule, edge.provider):
                if here in self.select(deny["from"]) and cluster in self.select(deny["to"]):
                    return "guardrail", name_of(guardrail)
        if elsewhere and self.is_drained(cluster):
            return "drain", f"Cluster/{cluster}"
        if elsewhere and not self.is_reachable(here, cluster):
            return "unreachable", f"Cluster/{cluster}"
        return None

    def is_drained(self, cluster):
        return self.clusters[cluster]["spec"].get("drain", False)

    def is_reachable(self, here, cluster):
        same_mesh = self.mesh(here).get("type", "istio") == self.mesh(cluster).get("type", "istio")
        return "gateway" in self.clusters[cluster]["spec"] and same_mesh

    def mesh(self, cluster):
        return self.clusters[cluster]["spec"].get("mesh", {})

    def is_for(self, rule, provider):
        labels = self.services[provider].labels
        return all(labels.get(key) == value for key, value in rule.get("for", {}).items())

    # Who may call.

    def policies(self, provider):
        own = []
        default = []
        for policy in self.of_kind("AccessPolicy"):
            to = policy["spec"].get("to")
            if to is None:
                default.append(policy)
            elif (to.get("namespace", policy["metadata"].get("namespace")), to["service"]) == provider:
                own.append(policy)
        return own or default

    def decides(self, provider):
        return name_of(min(self.policies(provider), key=name_of))

    def admits(self, caller, provider, cluster, request=None):
        """Whether a request passes; without one: whether any does."""
        policies = self.policies(provider)
        if not policies or policies[0]["spec"].get("mode") == "audit":
            return True
        return any(
            cluster in self.select(rule.get("in", "all"))
            and self.is_from(item, caller, provider, policy)
            and (not request or self.is_about_request(rule, provider, request))
            for policy in policies
            for rule in policy["spec"]["allow"]
            for item in rule["from"]
        ) or any(
            self.always(rule, item, caller, provider, cluster)
            for _, rule in self.rules
            for item in rule.get("alwaysAllow", [])
        )

    def is_about_request(self, rule, provider, request):
        connection = self.services[provider].ports[request["port"]] in ("TCP", "TLS")
        if connection and (rule.get("methods") or rule.get("paths")):
            return False
        return (
            request["port"] in rule.get("ports", [request["port"]])
            and ("methods" not in rule or request["method"] in rule["methods"])
            and ("paths" not in rule or any(is_path(path, request["path"]) for path in rule["paths"]))
        )

    def is_from(self, item, caller, provider, policy):
        namespace, name, cluster = caller
        service = self.services[namespace, name]
        if item == "dependents":
            return cluster in service.depends.get(provider, ())
        home = policy["metadata"].get("namespace")
        named = "service" in item or "serviceAccount" in item
        return (
            item.get("namespace", home if named else namespace) == namespace
            and item.get("service", name) == name
            and item.get("serviceAccount", service.accounts[cluster]) == service.accounts[cluster]
            and cluster in self.select(item.get("clusters", "all"))
        )

    def always(self, rule, item, caller, provider, cluster):
        """An identity of whole trust domains: the called copy's own, and those of the clusters that are named."""
        namespace, name, here = caller
        account = self.services[namespace, name].accounts[here]
        if not self.is_for(rule, provider) or (namespace, account) != (item["namespace"], item["serviceAccount"]):
            return False
        clusters = {cluster} | self.select(item.get("clusters", []))
        return any(self.domain(here, cluster) == self.domain(one, cluster) for one in clusters)

    def domain(self, cluster, seen_by):
        """The trust domain of a cluster as another one sees it: its own and its aliases are one."""
        own = self.mesh(seen_by).get("trustDomain", "cluster.local")
        domain = self.mesh(cluster).get("trustDomain", "cluster.local")
        return own if domain in self.mesh(seen_by).get("trustDomainAliases", []) else domain


def is_path(pattern, path):
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return path.endswith(pattern[1:]) if pattern.startswith("*") else path == pattern


def units_of(spec):
    units = {key: value for key, value in spec.items() if key not in ("from", "to", "match", "default", "failover")}
    return units | spec.get("failover", {})


def in_proportion(parts):
    """Parts of 100; what rounding down leaves goes to the largest remainders."""
    exact = [part * 100 / sum(parts) for part in parts]
    rounded = [part * 100 // sum(parts) for part in parts]
    largest = sorted(range(len(parts)), key=lambda index: (rounded[index] - exact[index], index))
    for index in largest[: 100 - sum(rounded)]:
        rounded[index] += 1
    return rounded


def name_of(document):
    metadata = document["metadata"]
    return "/".join([document["kind"], *([metadata["namespace"]] if "namespace" in metadata else []), metadata["name"]])


if __name__ == "__main__":
    run(__doc__, "1..300", compare, "fleets mean what the programs say", OUTCOMES)
