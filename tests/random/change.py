#!/usr/bin/env python3
"""What `plan` says of a change, compared with what both sides say of themselves:

    tests/random/change.py --programs DIR [--seeds 1..200]

A random fleet is changed once, and once more. The rows, answers and objects that `plan` lists have to be those that differ
between the outputs of `explain`, `who-can` and `render`.
"""

import collections
import json
import pathlib
import random
import subprocess
import tempfile

from seeds import run, said


def compare(programs, seed):
    """The differences of a fleet, and what was changed."""
    dice = random.Random(seed)
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sides = [folder / "before"]
        documents = json.loads(said(programs / "fleet-generator", "fleet", "--seed", seed, "--out", sides[0], "--json"))
        if not all(of_kind(documents, kind) for kind in NEEDED):
            return [], counts
        for _ in range(20):
            changed = json.loads(json.dumps(documents))
            change = dice.choice(CHANGES)
            change(changed, dice)
            after = folder / f"after-{len(sides)}"
            after.mkdir(exist_ok=True)
            (after / "fleet.yaml").write_text("\n---\n".join(map(json.dumps, changed)))
            # Some changes make a fleet wrong; those are tried again.
            check = subprocess.run([programs / "kubectl-mesh", "check", "-f", after], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if changed != documents and check.returncode == 0:
                counts[change.__name__] += 1
                documents = changed
                sides.append(after)
            if len(sides) == 3:
                break
        if len(sides) == 1:
            return [], counts
        plan = json.loads(said(programs / "kubectl-mesh", "plan", sides[0], sides[-1], "-o", "json"))
        before, after = (tables(programs, side) for side in (sides[0], sides[-1]))
    told = {
        "routes": {row_key(change["before"] or change["after"]) for change in plan["routes"]},
        "access": {(*call_key(one["service"], one["in"], one["caller"]), one["before"], one["after"]) for one in plan["access"]},
        "objects": {
            (cluster["cluster"], one["kind"], one["namespace"], one["name"], one["change"]) for cluster in plan["clusters"] for one in cluster["objects"]
        },
    }
    old, new = before["access"], after["access"]
    meant = {
        "routes": {key for key in before["routes"] | after["routes"] if before["routes"].get(key) != after["routes"].get(key)},
        # Who is there on one side only is seen in the rows.
        "access": {(*key, old[key], new[key]) for key in old.keys() & new.keys() if old[key] != new[key]},
        "objects": {
            (*key, "added" if key not in before["objects"] else "removed" if key not in after["objects"] else "changed")
            for key in before["objects"] | after["objects"]
            if before["objects"].get(key) != after["objects"].get(key)
        },
    }
    counts.update({what: len(all) for what, all in meant.items()})
    differences = [
        f"{what}: plan {word} {one}"
        for what in meant
        for word, some in (("misses", meant[what] - told[what]), ("invents", told[what] - meant[what]))
        for one in sorted(some, key=str)
    ]
    return differences, counts


def tables(programs, folder):
    """What a fleet says of itself."""
    routes = {row_key(row): row_text(row) for row in json.loads(said(programs / "kubectl-mesh", "explain", "-f", folder, "-o", "json"))}
    access = {}
    for copy in json.loads(said(programs / "kubectl-mesh-authz", "who-can", "-f", folder, "-o", "json")):
        for one in copy["callers"]:
            access[call_key(copy["service"], copy["cluster"], one["caller"])] = answer(copy["mode"], one)
    objects = {}
    for cluster in json.loads(said(programs / "kubectl-mesh", "clusters", "list", "-f", folder, "-o", "json")):
        listed = json.loads(said(programs / "kubectl-mesh", "render", "-f", folder, "--cluster", cluster["name"], "-o", "json"))
        for item in listed.get("items", [listed]):
            objects[cluster["name"], item["kind"], item["metadata"]["namespace"], item["metadata"]["name"]] = item
    return {"routes": routes, "access": access, "objects": objects}


def row_key(row):
    return json.dumps([row["caller"], row["service"], row.get("match")], sort_keys=True)


def row_text(row):
    """A row without the places of documents: moving a line is no effect."""
    removed = [{key: value for key, value in one.items() if key not in ("file", "line")} for one in row["removed"]]
    return json.dumps({**row, "removed": removed}, sort_keys=True)


def call_key(service, cluster, caller):
    return service["namespace"], service["name"], cluster, caller["namespace"], caller["service"], caller["cluster"]


def answer(mode, verdict):
    rules = verdict["rules"]
    if mode == "open":
        return "open"
    if mode == "audit" and not rules:
        return "audit"
    if not verdict["allowed"]:
        return "no"
    return "yes" if any(not (rule["ports"] or rule["methods"] or rule["paths"]) for rule in rules) else "partly"


def of_kind(documents, kind):
    return [document for document in documents if document["kind"] == kind]


NEEDED = ("Cluster", "MeshService")


def removes_a_document(documents, dice):
    # The other changes need a service and a cluster.
    documents.remove(dice.choice([one for one in documents if one["kind"] not in NEEDED or len(of_kind(documents, one["kind"])) > 1]))


def adds_a_service(documents, dice):
    """In front of all others, so that every number moves on."""
    cluster = dice.choice(of_kind(documents, "Cluster"))["metadata"]["name"]
    called = dice.choice(of_kind(documents, "MeshService"))["metadata"]
    spec = {"clusters": [cluster], "ports": [{"name": "http", "port": 8080, "protocol": "HTTP"}]}
    if dice.random() < 0.5:
        spec["dependsOn"] = [{"namespace": called["namespace"], "service": called["name"]}]
    service = {"apiVersion": "meshintent.dev/v1alpha1", "kind": "MeshService", "metadata": {"namespace": "aaa", "name": "aaa"}, "spec": spec}
    documents.insert(0, service)


def renames_an_account(documents, dice):
    service = dice.choice(of_kind(documents, "MeshService"))
    others = [other["metadata"]["name"] for other in of_kind(documents, "MeshService")]
    service["spec"].setdefault("workload", {})["serviceAccount"] = dice.choice(["renamed", *others])


def moves_a_service(documents, dice):
    service = dice.choice(of_kind(documents, "MeshService"))
    names = [cluster["metadata"]["name"] for cluster in of_kind(documents, "Cluster")]
    service["spec"]["clusters"] = sorted(dice.sample(names, dice.randint(1, len(names))))


def swaps_dependencies(documents, dice):
    one, other = dice.choices(of_kind(documents, "MeshService"), k=2)
    mine, theirs = one["spec"].pop("dependsOn", None), other["spec"].pop("dependsOn", None)
    for service, depends in ((one, theirs), (other, mine)):
        if depends:
            service["spec"]["dependsOn"] = depends


def replaces_a_cluster(documents, dice):
    """Another name at another place in the order, and no mention of the old one is left."""
    old = dice.choice(of_kind(documents, "Cluster"))["metadata"]["name"]
    new = dice.choice(["000", "zzz"])
    text = json.dumps(documents).replace(json.dumps(old), json.dumps(new))
    documents[:] = json.loads(text)


def moves_callers(documents, dice):
    """Another cluster in a rule of an access policy."""
    rules = [rule for policy in of_kind(documents, "AccessPolicy") for rule in policy["spec"]["allow"]]
    named = [item for rule in rules for item in rule["from"] if isinstance(item, dict)]
    if named:
        dice.choice(named)["clusters"] = [dice.choice(of_kind(documents, "Cluster"))["metadata"]["name"]]


def moves_a_trust_domain(documents, dice):
    cluster = dice.choice(of_kind(documents, "Cluster"))
    others = [other["spec"].get("mesh", {}).get("trustDomain", "cluster.local") for other in of_kind(documents, "Cluster")]
    cluster["spec"].setdefault("mesh", {})["trustDomain"] = dice.choice([*others, "moved.example"])


CHANGES = [
    removes_a_document,
    adds_a_service,
    renames_an_account,
    moves_a_service,
    swaps_dependencies,
    replaces_a_cluster,
    moves_callers,
    moves_a_trust_domain,
]


if __name__ == "__main__":
    run(__doc__, "1..200", compare, "changes are what plan says", [*(change.__name__ for change in CHANGES), "routes", "access", "objects"])
