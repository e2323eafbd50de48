"""`kubectl mesh` on a fleet of real API servers.

Three clusters of the example fleet run (`tests/fleet`), the other two do not exist. The programs are called through the real
kubectl. After every test, whatever the suite does not own must be as it was before.

    python3 -m unittest tests/live/live_test.py              # everything, with the programs of $MESH_BIN_DIR or target/release
    python3 tests/live/live_test.py Live.test_expired        # one test
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
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
                      r"|endpoints|endpointslices\..*|flowschemas\..*|prioritylevelconfigurations\..*)$")


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


class Live(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="mesh-live-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.servers = cls.folder / "servers"
        cls.addClassCleanup(lambda: cls.fleet("down"))
        cls.fleet("up", "--clusters", ",".join(CLUSTERS))
        # kubectl's own list of names; istiod adds nothing to it later.
        names = run("kubectl", "--context", "eks", "api-resources", "--verbs=list", "-o", "name", env=cls.environment()).stdout
        cls.resources = [name for name in names.split() if not VOLATILE.match(name)]

    @classmethod
    def environment(cls, **more):
        return {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(cls.servers / "kubeconfig"), **more}

    @classmethod
    def fleet(cls, *arguments):
        done = run(FLEET, "--dir", cls.servers, *arguments)
        if done.returncode:
            raise RuntimeError(f"fleet {arguments}: {done.stderr}")

    def setUp(self):
        self.intents = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copytree(ROOT / "tests/golden/example/fleet", self.intents, dirs_exist_ok=True)
        self.mesh("apply", "--prune", "--yes")
        self.before = self.everything_else()

    def tearDown(self):
        now = self.everything_else()
        changed = [key for key in self.before.keys() | now.keys() if self.before.get(key) != now.get(key)]
        self.assertEqual([(self.before.get(key), now.get(key)) for key in changed], [], "the suite does not own this")

    # What the tests are written in.

    def mesh(self, verb, *arguments, code=0, clusters=CLUSTERS, env=None):
        """Runs a verb through kubectl, on the clusters that exist unless told otherwise."""
        chosen = ["--cluster", ",".join(clusters)] if clusters else []
        done = run("kubectl", "mesh", verb, "-f", self.intents, *chosen, *arguments, env=env or self.environment())
        if code is not None:
            self.assertEqual(done.returncode, code, f"{verb} {arguments}\n{done.stdout[-2000:]}\n{done.stderr}")
        return done

    def kubectl(self, cluster, *arguments, **options):
        done = run("kubectl", "--context", cluster, *arguments, env=self.environment(), **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

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
                                 env=self.environment()).stdout)
        items = objects["items"] if objects["kind"] == "List" else [objects]
        return {identity(item) for item in items}

    def ours(self, cluster):
        items = json.loads(self.kubectl(cluster, "get", KINDS, "-A", "-l", OURS, "-o", "json"))["items"]
        return {identity(item): item["metadata"]["resourceVersion"] for item in items}

    def stored(self, cluster):
        """How many objects are there, asked past the delay of a slow cluster."""
        direct = self.environment(KUBECONFIG=str(self.servers / cluster / "istiod.kubeconfig"))
        return len(run("kubectl", "get", KINDS, "-A", "-l", OURS, "-o", "name", env=direct).stdout.split())

    def assert_in_sync(self, clusters=CLUSTERS):
        for cluster in clusters:
            self.assertEqual(set(self.ours(cluster)), self.rendered(cluster), cluster)
        self.assertEqual(self.mesh("diff", "--prune", clusters=clusters).stdout, "")

    def everything_else(self):
        """Every object that does not carry our label, without what servers and istiod write by themselves."""
        found = {}
        for cluster in CLUSTERS:
            text = self.kubectl(cluster, "get", ",".join(self.resources), "-A", "--show-managed-fields", "-o", "json",
                                "-l", "app.kubernetes.io/managed-by!=kubectl-mesh")
            for item in json.loads(text)["items"]:
                metadata = item["metadata"]
                if metadata["name"] == "istio-ca-root-cert" or "control-plane.alpha.kubernetes.io/leader" in metadata.get("annotations", {}):
                    continue  # istiod's own
                item.pop("status", None)
                metadata.pop("resourceVersion", None)
                metadata["managedFields"] = [entry for entry in metadata.get("managedFields", []) if "subresource" not in entry]
                found[cluster, *identity(item)] = item
        return found

    def status(self, **options):
        clusters = json.loads(self.mesh("status", "-o", "json", **options).stdout)
        return {cluster["cluster"]: cluster for cluster in clusters}

    def broken(self, cluster):
        return {f"{item['kind']}/{item['name']}": item for item in self.status()[cluster]["objects"] if item["state"] != "in sync"}

    # The tests.

    def test_apply_creates_and_then_changes_nothing(self):
        for cluster in CLUSTERS:
            self.kubectl(cluster, "delete", KINDS, "-A", "-l", OURS, "--wait=false")
        self.assertIn("to create", self.mesh("diff", code=1).stdout)
        self.mesh("apply", "--dry-run=server")
        self.mesh("apply", "--dry-run=client")
        self.assertEqual([self.ours(cluster) for cluster in CLUSTERS], [{}, {}, {}], "a dry run writes nothing")
        first = self.mesh("apply")
        self.assertIn("eks: virtualservice.networking.istio.io/user.mesh.bank.example serverside-applied", first.stdout)
        self.assertIn("3 clusters ok", first.stderr)
        versions = [self.ours(cluster) for cluster in CLUSTERS]
        second = self.mesh("apply")
        self.assertNotIn("serverside-applied", second.stdout)
        self.assertEqual(second.stdout.count(" unchanged"), sum(map(len, versions)))
        self.assertEqual([self.ours(cluster) for cluster in CLUSTERS], versions)
        self.assert_in_sync()
        waited = self.mesh("status", "--wait", "--timeout", "30s")
        self.assertEqual(waited.stdout.count("in sync"), 3)

    def test_edit_by_hand_is_shown_and_repaired(self):
        self.kubectl("eks", "patch", "virtualservice", "-n", "bank", "user.mesh.bank.example", "--type=merge",
                     "-p", '{"spec": {"exportTo": ["*"], "gateways": ["mesh"]}}')
        self.kubectl("eks", "label", "destinationrule", "-n", "bank", "user.mesh.bank.example", "app.kubernetes.io/managed-by-")
        self.kubectl("cluster-1", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        broken = self.broken("eks")
        self.assertEqual(set(broken), {"VirtualService/user.mesh.bank.example", "DestinationRule/user.mesh.bank.example"})
        changes = {change["field"]: change for change in broken["VirtualService/user.mesh.bank.example"]["changes"]}
        self.assertIn(".spec.gateways", changes)
        self.assertEqual(changes[".spec.gateways"]["owners"][0]["manager"], "kubectl-patch")
        self.assertEqual(self.broken("cluster-1")["VirtualService/user.mesh.bank.example"]["state"], "missing")
        self.assertEqual(self.broken("cluster-2"), {})
        self.assertIn("kubectl-patch", self.mesh("status").stdout)
        difference = self.mesh("diff", code=1).stdout
        self.assertIn("-  gateways:", difference)
        self.assertNotIn("cluster cluster-2", difference)
        self.assertEqual(self.mesh("apply").stdout.count("serverside-applied"), 3)
        self.assert_in_sync()

    def test_external_diff(self):
        self.kubectl("eks", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        done = self.mesh("diff", code=1, env=self.environment(KUBECTL_EXTERNAL_DIFF="diff -u -N ;rm"))
        self.assertRegex(done.stdout, r"\+\+\+ /.*/MERGED/networking.istio.io.v1.VirtualService.bank.user.mesh.bank.example")
        self.assertIn("of KUBECTL_EXTERNAL_DIFF", self.mesh("diff", code=2, env=self.environment(KUBECTL_EXTERNAL_DIFF="no-such-program")).stderr)
        self.mesh("apply")

    def test_removed_intent_is_pruned_and_nothing_else(self):
        before = {cluster: self.ours(cluster) for cluster in CLUSTERS}
        # An object with our label that no intent ever caused is someone's copy.
        self.kubectl("eks", "create", "configmap", "copy", "-n", "shop", "--from-literal=a=b")
        self.kubectl("eks", "label", "configmap", "copy", "-n", "shop", OURS)
        self.addCleanup(self.kubectl, "eks", "delete", "configmap", "copy", "-n", "shop")
        self.remove_document("intents/shop.yaml", "bar-to-wine")
        wanted = {cluster: self.rendered(cluster) for cluster in CLUSTERS}
        gone = {cluster: set(before[cluster]) - wanted[cluster] for cluster in CLUSTERS}
        self.assertTrue(any(gone.values()))
        self.assertIn("surplus", self.mesh("status").stdout)
        self.mesh("apply")
        for cluster in CLUSTERS:
            self.assertGreaterEqual(set(self.ours(cluster)), gone[cluster], "without --prune nothing is deleted")
        refused = self.mesh("apply", "--prune", code=1)
        self.assertIn("--yes", refused.stderr)
        for cluster in CLUSTERS:
            for kind, namespace, name in gone[cluster]:
                self.assertIn(f"{cluster}: {kind.lower()}.", refused.stderr)
                self.assertIn(f"{name} in namespace {namespace}", refused.stderr)
            self.assertGreaterEqual(set(self.ours(cluster)), gone[cluster])
        done = self.mesh("apply", "--prune", "--yes")
        self.assertEqual(done.stdout.count(" deleted"), sum(map(len, gone.values())))
        for cluster in CLUSTERS:
            self.assertEqual(set(self.ours(cluster)) - {("ConfigMap", "shop", "copy")}, wanted[cluster], cluster)

    def test_missing_clusters_do_not_stop_the_others(self):
        self.kubectl("eks", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        done = self.mesh("apply", clusters=None, code=1)
        self.assertIn('error: wine: context "wine" does not exist in the kubeconfig', done.stderr)
        self.assertIn("3 clusters ok, 2 failed", done.stderr)
        self.assert_in_sync()

    def test_cluster_stopped_in_the_middle(self):
        self.fleet("slow", "eks", "700")
        try:
            for cluster in CLUSTERS:
                self.kubectl(cluster, "delete", KINDS, "-A", "-l", OURS, "--wait=false")
            command = ["kubectl", "mesh", "apply", "-f", str(self.intents), "--cluster", ",".join(CLUSTERS)]
            with subprocess.Popen(command, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as apply:
                until(lambda: self.stored("eks"))
                self.fleet("stop", "eks")
                _, errors = apply.communicate(timeout=60)
            self.assertEqual(apply.returncode, 1, errors)
            self.assertRegex(errors, "error: eks: (The connection to|Unable to connect to) the server")
            self.assertIn("2 clusters ok, 1 failed", errors)
            self.assert_in_sync(["cluster-1", "cluster-2"])
        finally:
            self.fleet("start", "eks")
            self.fleet("fast", "eks")
        found = set(self.ours("eks"))
        self.assertTrue(found and found < self.rendered("eks"), "it was stopped in the middle")
        self.mesh("apply")
        self.assert_in_sync()

    def test_interrupted_apply_converges(self):
        self.fleet("slow", "eks", "100")
        try:
            for moment in (0.05, 0.3, 0.6, 1.0):
                self.kubectl("eks", "delete", KINDS, "-A", "-l", OURS, "--wait=false")
                command = ["kubectl-mesh", "apply", "-f", str(self.intents), "--cluster", "eks"]
                with subprocess.Popen(command, env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as apply:
                    time.sleep(moment)
                    apply.send_signal(signal.SIGKILL)
                kinds = [kind for kind, _, _ in self.ours("eks")]
                if "VirtualService" in kinds:
                    self.assertLessEqual({"ServiceEntry", "DestinationRule", "AuthorizationPolicy"}, set(kinds), "make before break")
                self.mesh("apply", clusters=["eks"])
                self.assert_in_sync(["eks"])
        finally:
            self.fleet("fast", "eks")

    def test_foreign_field_manager_is_left_alone(self):
        name = ["destinationrule", "-n", "bank", "user.mesh.bank.example"]
        self.kubectl("eks", "patch", *name, "--type=merge", "--field-manager=traffic-robot",
                     "-p", '{"spec": {"exportTo": ["robot"], "workloadSelector": {"matchLabels": {"a": "b"}}}}')
        self.kubectl("eks", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        self.kubectl("cluster-1", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        done = self.mesh("apply", code=1)
        self.assertRegex(done.stderr, r'error: eks: destinationrule.*user.mesh.bank.example: .*"traffic-robot"')
        self.assertIn("--force-conflicts", done.stderr)
        self.assertIn("1 held back", done.stderr.replace("4 held back", "1 held back"), "later kinds wait")
        self.assertIn("2 clusters ok, 1 failed", done.stderr)
        self.assertIn("robot", self.kubectl("eks", "get", *name, "-o", "json"))
        self.assertIn("traffic-robot", self.mesh("diff", code=1).stderr)
        self.mesh("apply", "--force-conflicts")
        self.assert_in_sync()

    def test_foreign_object_of_the_same_name_is_left_alone(self):
        name = ["virtualservice", "-n", "bank", "user.mesh.bank.example"]
        self.kubectl("eks", "delete", *name)
        theirs = {"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
                  "metadata": {"name": name[-1], "namespace": "bank"},
                  "spec": {"hosts": ["x.example"], "http": [{"route": [{"destination": {"host": "x.example"}}]}]}}
        self.kubectl("eks", "create", "-f", "-", input=json.dumps(theirs))
        done = self.mesh("apply", code=1)
        self.assertIn("was not put there by kubectl-mesh", done.stderr)
        self.assertEqual(json.loads(self.kubectl("eks", "get", *name, "-o", "json"))["spec"], theirs["spec"])
        self.assertEqual(self.broken("eks")["VirtualService/user.mesh.bank.example"]["state"], "foreign")
        self.mesh("apply", "--force-conflicts")
        self.assert_in_sync()

    def test_no_permission_for_one_kind(self):
        self.edit("inventory/clusters.yaml", "context: eks", "context: editor@eks")
        self.kubectl("eks", "delete", "authorizationpolicy,virtualservice", "-n", "bank", "-l", OURS)
        users = self.environment(KUBECONFIG=f"{self.servers}/users.kubeconfig:{self.servers}/kubeconfig")
        done = self.mesh("apply", env=users, code=1)
        self.assertRegex(done.stderr, r"error: eks: authorizationpolicy.*Error from server \(Forbidden\)")
        self.assertNotIn("eks: virtualservice.networking.istio.io/user.mesh.bank.example serverside-applied", done.stdout,
                         "routes wait for access")
        self.assertIn("2 clusters ok, 1 failed", done.stderr)
        self.assertNotIn("unknown", self.mesh("status", env=users).stdout, "reading is allowed")
        self.edit("inventory/clusters.yaml", "context: editor@eks", "context: eks")
        self.mesh("apply")
        self.assert_in_sync()

    def test_expired(self):
        self.edit("inventory/clusters.yaml", "context: eks", "context: expired@eks")
        users = self.environment(KUBECONFIG=f"{self.servers}/users.kubeconfig:{self.servers}/kubeconfig")
        for verb, code in (("apply", 1), ("diff", 2), ("status", 1)):
            done = self.mesh(verb, env=users, code=code)
            self.assertEqual(done.stderr.count("error: eks: You must be logged in to the server (Unauthorized)"), 1, done.stderr)

    def test_slow_server(self):
        self.fleet("slow", "eks", "400")
        try:
            self.kubectl("eks", "delete", "virtualservice", "-n", "bank", "--all")
            started = time.monotonic()
            self.mesh("apply")
            self.assertLess(time.monotonic() - started, 15, "requests go side by side")
            done = self.mesh("diff", "--request-timeout", "200ms", code=2)
            self.assertIn("no answer within 200ms", done.stderr)
            self.assertIn("2 clusters ok, 1 failed", done.stderr)
        finally:
            self.fleet("fast", "eks")
        self.assert_in_sync()

    def test_missing_crd(self):
        name = "peerauthentications.security.istio.io"
        crd = json.loads(self.kubectl("cluster-2", "get", "crd", name, "-o", "json"))
        crd.pop("status")
        crd["metadata"] = {key: crd["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
        self.kubectl("cluster-2", "delete", "crd", name)
        try:
            done = self.mesh("apply", code=1)
            self.assertIn('no matches for kind "PeerAuthentication" in version "security.istio.io/v1"; ensure CRDs are installed first',
                          done.stderr)
            self.assertIn("2 clusters ok, 1 failed", done.stderr)
        finally:
            self.kubectl("cluster-2", "create", "-f", "-", input=json.dumps(crd))
            self.kubectl("cluster-2", "wait", "--for=condition=Established", f"crd/{name}", "--timeout=30s")
        until(lambda: self.mesh("apply", code=None).returncode == 0)
        self.assert_in_sync()
        self.before = {key: value for key, value in self.before.items() if key[2:] != ("", name)}
        self.before.update({key: value for key, value in self.everything_else().items() if key[2:] == ("", name)})

    def test_istio_has_its_say(self):
        """What istiod's analysis writes into the status of an object is shown, as long as it is about what is there."""
        name = ["virtualservice", "-n", "bank", "user.mesh.bank.example"]
        live = json.loads(self.kubectl("eks", "get", *name, "-o", "json"))
        message = {"level": "ERROR", "type": {"code": "IST0101", "name": "ReferencedResourceNotFound"}}
        for seen, shown in ((live["metadata"]["generation"], 1), (live["metadata"]["generation"] - 1, 0)):
            status = {"observedGeneration": seen, "validationMessages": [message]}
            self.kubectl("eks", "patch", *name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
            self.assertEqual(self.mesh("status").stdout.count("IST0101 ReferencedResourceNotFound"), shown)

    def test_broken_documents_reach_no_cluster(self):
        self.edit("intents/bank.yaml", "dependsOn: [user]", "dependsOn: [usr]")
        for verb, code in (("apply", 1), ("diff", 2), ("status", 1)):
            done = self.mesh(verb, code=code)
            self.assertEqual(done.stdout, "")
            self.assertIn("bank.yaml", done.stderr)

    def test_unknown_cluster(self):
        self.assertIn("eks", self.mesh("apply", clusters=["ekss"], code=1).stderr)

    def test_import_writes_the_inventory(self):
        done = run("kubectl", "mesh", "clusters", "import", env=self.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.intents / "inventory/clusters.yaml").write_text(done.stdout)
        listed = json.loads(run("kubectl", "mesh", "clusters", "list", "-f", self.intents / "inventory", "-o", "json",
                                env=self.environment()).stdout)
        eks = next(cluster for cluster in listed if cluster["name"] == "eks")
        self.assertEqual((eks["region"], eks["network"], eks["trustDomain"], eks["gateway"], eks["version"]),
                         ("us-east-1", "aws", "eks.bank.example", "203.0.113.9:15443", "1.31"), done.stdout)
        self.assertIn("# label topology.istio.io/network of namespace istio-system", done.stdout)

    def test_import_from_argo_cd_shows_no_credentials(self):
        server = json.loads((self.servers / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
        self.kubectl("eks", "create", "namespace", "argocd")
        self.kubectl("eks", "create", "secret", "generic", "one", "-n", "argocd", "--from-literal=name=Prod.EU",
                     f"--from-literal=server={server}", "--from-literal=config=topsecret")
        self.kubectl("eks", "label", "secret", "one", "-n", "argocd", "argocd.argoproj.io/secret-type=cluster", "tier=foo")
        done = run("kubectl", "mesh", "clusters", "import", "--from", "argocd", "--context", "eks", env=self.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("name: prod-eu ", "tier: foo", "context: eks", "region: us-east-1"):
            self.assertIn(part, done.stdout)
        self.assertNotIn("topsecret", done.stdout + done.stderr)
        self.kubectl("eks", "delete", "secret", "one", "-n", "argocd")
        self.before = self.everything_else()  # the namespace stays: nothing here finishes deleting one
        done = run("kubectl", "mesh", "clusters", "import", "--from", "ocm", "--context", "eks", env=self.environment())
        self.assertIn("could not find the requested resource", done.stderr)

    def test_discover_follows_the_services(self):
        observed = self.intents / "inventory/observed.yaml"
        for name in ("wine", "canary-1"):
            self.drop_cluster(name)
        command = ["kubectl", "mesh", "discover", "-f", self.intents, "--output", observed]
        self.assertEqual(run(*command, env=self.environment()).returncode, 0)
        before = observed.read_text()
        self.assertIn("  - namespace: bank\n    name: user\n    clusters:\n    - cluster-1\n    - cluster-2\n    - eks\n", before)
        self.fleet("stop", "eks")
        try:
            done = run(*command, env=self.environment())
            self.assertEqual(done.returncode, 1)
            self.assertIn("what was known about eks is kept", done.stderr)
            self.assertEqual(observed.read_text(), before)
        finally:
            self.fleet("start", "eks")
        foreign = self.intents / "intents/bank.yaml"
        done = run("kubectl", "mesh", "discover", "-f", self.intents, "--output", foreign, env=self.environment())
        self.assertIn("was not written by `kubectl mesh discover`", done.stderr)

    def drop_cluster(self, name):
        path = self.intents / "inventory/clusters.yaml"
        documents = path.read_text().split("---\n")
        path.write_text("---\n".join(document for document in documents if f"name: {name}\n" not in document))

    def test_two_thousand_objects(self):
        folder = self.folder / "many"
        folder.mkdir(exist_ok=True)
        services = "".join(SERVICE.format(number=number) for number in range(500))
        shutil.copy(self.intents / "inventory/clusters.yaml", folder)
        (folder / "services.yaml").write_text(services)
        self.intents = folder
        count = len(self.rendered("eks"))
        self.assertGreaterEqual(count, 2000)
        for what, arguments in (("first", []), ("again", [])):
            started = time.monotonic()
            done = self.mesh("apply", *arguments, clusters=["eks"])
            print(f"\n{count} objects, {what} apply: {time.monotonic() - started:.2f} s", flush=True)
            self.assertEqual(done.stdout.count("serverside-applied"), count if what == "first" else 0)
        started = time.monotonic()
        self.mesh("diff", clusters=["eks"])
        print(f"{count} objects, diff: {time.monotonic() - started:.2f} s", flush=True)
        started = time.monotonic()
        shutil.copytree(ROOT / "tests/golden/example/fleet", self.folder / "again", dirs_exist_ok=True)
        self.intents = self.folder / "again"
        self.mesh("apply", "--prune", "--yes", clusters=["eks"])
        print(f"{count} objects, pruned: {time.monotonic() - started:.2f} s", flush=True)
        self.assert_in_sync()


SERVICE = """\
---
apiVersion: meshintent.dev/v1alpha1
kind: MeshService
metadata: {{name: s{number}, namespace: shop}}
spec: {{clusters: [eks, cluster-1], ports: [{{name: http, port: 8080}}], expose: {{hostnames: [s{number}.mesh.example]}}}}
---
apiVersion: meshintent.dev/v1alpha1
kind: MeshService
metadata: {{name: c{number}, namespace: shop}}
spec: {{clusters: [eks], ports: [{{name: http, port: 8080}}], dependsOn: [s{number}]}}
"""


def identity(item):
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        with contextlib.suppress(InterruptedError):
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
