"""A fleet of real API servers with istiod, for all tests of this folder, and the real kubectl that calls the programs.

Three clusters of the example fleet run (`tests/fleet`), the other two do not exist. After every test, whatever the suite does
not own must be as it was before.

    python3 -m unittest discover -s tests/live -p '*_test.py'     # everything, with the programs of $MESH_BIN_DIR or target/release
    python3 -m unittest discover -s tests/live -p '*_test.py' -k test_expired     # one test
"""

import atexit
import base64
import concurrent.futures
import contextlib
import functools
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("MESH_BIN_DIR") or ROOT / "target/release").resolve()
FLEET = ROOT / "tests/fleet/fleet"
CLUSTERS = ["eks", "cluster-1", "cluster-2"]
OURS = "app.kubernetes.io/managed-by=kubectl-mesh"
KINDS = ("configmaps,services,authorizationpolicies.security.istio.io,peerauthentications.security.istio.io,"
         "serviceentries.networking.istio.io,gateways.networking.istio.io,destinationrules.networking.istio.io,"
         "virtualservices.networking.istio.io,sidecars.networking.istio.io")
# What changes by itself, or is no object of its own.
VOLATILE = re.compile(r"^(events|events\.events\.k8s\.io|leases\.coordination\.k8s\.io|componentstatuses|apiservices\..*"
                      r"|endpoints|endpointslices\..*|ipaddresses\..*|flowschemas\..*|prioritylevelconfigurations\..*)$")


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


@functools.cache
def folder():
    """Where everything of this run is kept; it goes with the process."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="mesh-live-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@functools.cache
def servers():
    """The fleet's folder. One fleet serves all tests."""
    path = folder() / "servers"
    atexit.register(run, FLEET, "--dir", path, "down")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # else servers would outlive a run that takes too long
    done = run(FLEET, "--dir", path, "up", "--clusters", ",".join(CLUSTERS))
    if done.returncode:
        raise RuntimeError(f"the fleet does not start: {done.stderr}")
    return path


class Server:
    """An API server asked directly: hundreds of lists by kubectl would take minutes."""

    def __init__(self, cluster):
        config = json.loads((servers() / cluster / "istiod.kubeconfig").read_text())
        entry = config["clusters"][0]["cluster"]
        users = json.loads((servers() / "kubeconfig").read_text())["users"]
        self.token = next(user["user"]["token"] for user in users if user["name"] == f"admin@{cluster}")
        trust = ssl.create_default_context(cadata=base64.b64decode(entry["certificate-authority-data"]).decode())
        self.connection = http.client.HTTPSConnection(entry["server"].removeprefix("https://"), context=trust)

    def get(self, path):
        self.connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}", "Accept": "application/json"})
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise AssertionError(f"{path}: {body[:500]}")
        return json.loads(body)

    def close(self):
        self.connection.close()


@functools.cache
def resources():
    """All kinds of objects that can be listed, with their paths; istiod adds nothing to them later."""
    found = {}
    with contextlib.closing(Server("eks")) as server:
        versions = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in server.get("/apis")["groups"])]
        for version in versions:
            for resource in server.get(version)["resources"]:
                group = version.split("/")[2] if version.startswith("/apis/") else ""
                name = f"{resource['name']}.{group}".rstrip(".")
                if "list" in resource["verbs"] and "/" not in resource["name"] and not VOLATILE.match(name):
                    found[name] = f"{version}/{resource['name']}"
    return found


def environment(**more):
    return {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(servers() / "kubeconfig"), **more}


def users():
    """The environment in which contexts of users with fewer rights are known as well."""
    return environment(KUBECONFIG=f"{servers()}/users.kubeconfig:{servers()}/kubeconfig")


def fleet(*arguments):
    done = run(FLEET, "--dir", servers(), *arguments)
    if done.returncode:
        raise RuntimeError(f"fleet {arguments}: {done.stderr}")


class Live(unittest.TestCase):
    maxDiff = None
    everything = None  # what the suite does not own, after the last test

    def setUp(self):
        servers()  # before threads ask for it
        self.intents = pathlib.Path(tempfile.mkdtemp(dir=folder()))
        shutil.copytree(ROOT / "tests/golden/example/fleet", self.intents, dirs_exist_ok=True)
        if Live.everything is None:
            Live.everything = everything_else()
        self.mesh("apply", "--prune", "--yes")
        # What a test changes itself, and means to leave: resource, namespace and name.
        self.leaves = set()

    def tearDown(self):
        before, now = Live.everything, everything_else()
        Live.everything = now
        changed = [key for key in before.keys() | now.keys() if before.get(key) != now.get(key) and key[1:] not in self.leaves]
        self.assertEqual([(before.get(key), now.get(key)) for key in changed], [], "the suite does not own this")

    # What the tests are written in.

    def mesh(self, verb, *arguments, code=0, clusters=CLUSTERS, env=None):
        """Runs a verb through kubectl, on the clusters that exist unless told otherwise."""
        chosen = ["--cluster", ",".join(clusters)] if clusters else []
        done = run("kubectl", "mesh", verb, "-f", self.intents, *chosen, *arguments, env=env or environment())
        if code is not None:
            self.assertEqual(done.returncode, code, f"{verb} {arguments}\n{done.stdout[-2000:]}\n{done.stderr}")
        return done

    def edit(self, file, old, new):
        path = self.intents / file
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new))

    def remove_document(self, file, name):
        path = self.intents / file
        documents = path.read_text().split("---\n")
        kept = [document for document in documents if f"metadata: {{name: {name}," not in document]
        self.assertEqual(len(kept), len(documents) - 1, f"{name} in {file}")
        path.write_text("---\n".join(kept))

    def rendered(self, cluster):
        objects = json.loads(run("kubectl", "mesh", "render", "-f", self.intents, "--cluster", cluster, "-o", "json",
                                 env=environment()).stdout)
        items = objects["items"] if objects["kind"] == "List" else [objects]
        return {identity(item) for item in items}

    def ours(self, cluster):
        items = json.loads(kubectl(cluster, "get", KINDS, "-A", "-l", OURS, "-o", "json"))["items"]
        return {identity(item): item["metadata"]["resourceVersion"] for item in items}

    def stored(self, cluster):
        """How many objects are there, asked past the delay of a slow cluster."""
        direct = environment(KUBECONFIG=str(servers() / cluster / "istiod.kubeconfig"))
        return len(run("kubectl", "get", KINDS, "-A", "-l", OURS, "-o", "name", env=direct).stdout.split())

    def assert_in_sync(self, clusters=CLUSTERS):
        for cluster in clusters:
            self.assertEqual(set(self.ours(cluster)), self.rendered(cluster), cluster)
        self.assertEqual(self.mesh("diff", "--prune", clusters=clusters).stdout, "")

    def status(self, **options):
        clusters = json.loads(self.mesh("status", "-o", "json", **options).stdout)
        return {cluster["cluster"]: cluster for cluster in clusters}

    def broken(self, cluster):
        return {f"{item['kind']}/{item['name']}": item for item in self.status()[cluster]["objects"] if item["state"] != "in sync"}

def everything_else():
    """Every object that does not carry our label, without what servers and istiod write by themselves."""
    def of(cluster):
        found = {}
        with contextlib.closing(Server(cluster)) as server:
            for name, path in resources().items():
                for item in server.get(f"{path}?labelSelector=app.kubernetes.io/managed-by!=kubectl-mesh")["items"]:
                    metadata = item["metadata"]
                    istiod = {"istio.io/config", "control-plane.alpha.kubernetes.io/leader"}
                    if istiod & {*metadata.get("labels", {}), *metadata.get("annotations", {})}:
                        continue
                    item.pop("status", None)
                    metadata.pop("resourceVersion", None)
                    metadata["managedFields"] = [entry for entry in metadata.get("managedFields", []) if "subresource" not in entry]
                    found[cluster, name, metadata.get("namespace", ""), metadata["name"]] = item
        return found

    resources()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return {key: item for found in pool.map(of, CLUSTERS) for key, item in found.items()}


def kubectl(cluster, *arguments, **options):
    done = run("kubectl", "--context", cluster, *arguments, env=environment(), **options)
    if done.returncode:
        raise AssertionError(f"kubectl {arguments}: {done.stderr}")
    return done.stdout


def identity(item):
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        with contextlib.suppress(InterruptedError):
            time.sleep(0.05)
