"""The three plugins for one kind of document on live clusters, by every name that kubectl and Krew give them; what kubectl
completes; and kubectl's forms of output."""

import itertools
import json
import os
import pathlib
import unittest

from common import BIN, CLUSTERS, Live, environment, identity, kubectl, run

# Word, document, the kinds of objects, and what can be removed without breaking the fleet.
PLUGINS = {
    "expose": ("bank/user", {"Service", "ServiceEntry", "Gateway", "DestinationRule", "VirtualService", "Sidecar"},
               ["shop/web"]),
    "failover": ("bank/account-to-user", {"DestinationRule", "VirtualService"}, ["bank/account-to-user"]),
    "authz": ("bank/user-callers", {"AuthorizationPolicy", "PeerAuthentication"}, []),
}


class Names(Live):
    """Programs linked as kubectl and Krew expect them: NAME in a folder of its own, so that nothing else is on PATH."""

    def linked(self, **links):
        path = pathlib.Path(self.intents).parent / f"links-{self.intents.name}-{len(list(self.intents.parent.iterdir()))}"
        path.mkdir()
        for name, program in links.items():
            (path / name.replace("__", "-")).symlink_to(BIN / program)
        rest = [entry for entry in os.environ["PATH"].split(os.pathsep) if pathlib.Path(entry).resolve() != BIN]
        return environment(PATH=os.pathsep.join([str(path), *rest])), path

    def ways(self, word):
        """Command lines that reach a plugin, each with its environment."""
        program = f"kubectl-mesh-{word}"
        built, built_path = self.linked(**{f"kubectl__mesh__{word}": program})
        krew, krew_path = self.linked(**{f"kubectl__mesh_{word}": program})
        alone, _ = self.linked(kubectl__mesh="kubectl-mesh")
        yield ["kubectl", "mesh", word], built
        yield ["kubectl", f"mesh-{word}"], krew
        yield ["kubectl", f"mesh_{word}"], krew
        yield [str(built_path / program)], built
        yield [str(krew_path / f"kubectl-mesh_{word}")], krew
        yield ["kubectl", "mesh", word], alone  # found beside the real file of kubectl-mesh

    def test_every_verb_by_every_name(self):
        for word, (document, kinds, removed) in PLUGINS.items():
            ways = list(self.ways(word))
            for way, env in ways:
                done = run(*way, "get", document, "-o", "name", "-f", self.intents, env=env)
                self.assertTrue(done.returncode == 0 and done.stdout.endswith(f"/{document.split('/')[1]}\n"), f"{way}: {done.stderr}")
            turn = itertools.cycle(ways)

            def call(verb, *arguments, code=0):
                way, env = next(turn)
                done = run(*way, verb, "-f", self.intents, *arguments, env=env)
                self.assertEqual(done.returncode, code, f"{way} {verb} {arguments}: {done.stdout[-500:]}{done.stderr}")
                return done.stdout

            chosen = ["--cluster", ",".join(CLUSTERS)]
            with self.subTest(plugin=word):
                objects = json.loads(call("render", "--cluster", "eks", "-o", "json"))["items"]
                self.assertLessEqual({item["kind"] for item in objects}, kinds)
                self.assertIn(document.split("/")[0], call("explain", document))
                self.assertEqual(call("diff", *chosen), "")
                others = {key: version for key, version in self.ours("eks").items() if key[0] not in kinds}
                for item in objects:
                    kubectl("eks", "delete", item["kind"], "-n", item["metadata"]["namespace"], item["metadata"]["name"])
                self.assertIn(f"{len(objects)} to create", call("diff", *chosen, code=1))
                self.assertIn("(server dry run)", call("apply", *chosen, "--dry-run=server"))
                self.assertEqual(call("apply", *chosen).count("serverside-applied"), len(objects))
                self.assertEqual(call("diff", *chosen), "")
                now = {key: version for key, version in self.ours("eks").items() if key[0] not in kinds}
                self.assertEqual(now, others, "objects of other kinds are not touched")
                if removed:
                    self.assertIn("\n-", call("remove", *removed, "--dry-run=client"))
                else:
                    call("remove", document, "--dry-run=client", code=1)  # a guardrail wants the policy
        self.assert_in_sync()

    def test_completion_through_kubectl(self):
        script = run("kubectl", "mesh", "completion", "kubectl", env=environment()).stdout
        links = {f"kubectl__{name}": f"kubectl-{name}" for name in ("mesh", "mesh-expose", "mesh-failover", "mesh-authz")}
        env, path = self.linked(**{name.replace("-", "__"): program for name, program in links.items()})
        for name in ("mesh", "mesh-expose", "mesh-failover", "mesh-authz", "mesh_expose"):
            (path / f"kubectl_complete-{name}").write_text(script)
            (path / f"kubectl_complete-{name}").chmod(0o755)
        files = ["-f", str(self.intents)]
        for words, wanted in (
            (["mesh", "app"], "apply\t"),
            (["mesh", "apply", "--clu"], "--cluster\t"),
            (["mesh", "apply", *files, "--cluster", "clus"], "cluster-1\t"),
            (["mesh", "apply", *files, "--cluster", "eks,clus"], "eks,cluster-2\t"),
            (["mesh", "status", "-o", ""], "jsonpath="),
            (["mesh", "explain", *files, "--to", "bank/u"], "bank/user\t"),
            (["mesh", "explain", *files, "--from", "bank/account@"], "bank/account@eks"),
            (["mesh", "expose", "get", *files, "bank/"], "bank/checkout\t"),
            (["mesh", "failover", "get", *files, ""], "bank/account-to-user\tTrafficPolicy"),
            (["mesh", "failover", "simulate", *files, "--down", ""], "canary-1\t"),
            (["mesh", "failover", "drain", *files, "wi"], "wine\t"),
            (["mesh", "authz", "remove", *files, ""], "bank/user-callers\tAccessPolicy"),
            (["mesh", "authz", "can-i", *files, "bank/account@cl"], "bank/account@cluster-1"),
            (["mesh", "authz", "who-can", *files, "--no"], "--no-headers\t"),
        ):
            done = run("kubectl", "__complete", *words, env=env)
            self.assertIn(wanted, done.stdout, f"{words}: {done.stderr}")
        done = run("kubectl", "__complete", "mesh", "failover", "get", *files, "", env=env)
        self.assertNotIn("user-callers", done.stdout, "a policy of another kind")
        # Krew's spelling alone.
        krew, path = self.linked(kubectl__mesh_expose="kubectl-mesh-expose", kubectl__mesh="kubectl-mesh")
        (path / "kubectl_complete-mesh_expose").write_text(script)
        (path / "kubectl_complete-mesh_expose").chmod(0o755)
        done = run("kubectl", "__complete", "mesh-expose", "get", *files, "bank/u", env=krew)
        self.assertIn("bank/user\t", done.stdout, done.stderr)


TEMPLATES = [
    "{.kind}", "{.items[*].metadata.name}", "{.items[0].metadata.name}", "{.items[-1].metadata.name}", "{.items[-1:].kind}",
    "{.items[0:3].metadata.name}", "{.items[0:5:2].metadata.name}", "{.items[*].metadata['name','namespace']}",
    "{.items[0].metadata.labels}", "{.items[0].spec}", "{.items[*].spec.hosts[*]}", "{.items[*].spec.http[0].route[0].weight}",
    "{.items[0].metadata.labels.app\\.kubernetes\\.io/managed-by}", "{.items[0].metadata.labels['app\\.kubernetes\\.io/managed-by']}",
    "{.items[?(@.kind==\"Gateway\")].metadata.name}", "{.items[?(@.kind!='ServiceEntry')].kind}", "{.items[?(@.spec.http)].metadata.name}",
    "{.items[?(@.spec.endpoints[0].address==\"198.51.100.11\")].metadata.name}", "{.items[*].spec.ports[?(@.number>80)].name}",
    "{range .items[*]}{.metadata.name}{\"\\t\"}{.kind}{\"\\n\"}{end}", "{range .items[*]}[{.metadata.name}, {.spec.location}] {end}",
    "{range .items[*]}{.metadata.name}:{range .spec.hosts[*]} {@}{end};{end}", "kinds: {.items[*].kind}!", "{$.kind} {@.kind}",
    "{.items[*].nothing.there}", "{.nothing}", "{.kind}{'\\n'}", "{range .items[?(@.kind=='Sidecar')]}{.kind}{end}none", "plain", "",
    "{.items[*].spec.http[*].route[*].destination.port.number}", "{.items[0]..principals}", "{.items[2:1].kind}", "{.items[99].kind}",
    "{.kind", "{.items[0}", "{.items[x]}", "{end}", "{foo}", "{.items[?(@.kind=='Gateway']}", "{\"x}", "{.kind[0]}", "{.items[?(@.kind=~'G')]}",
]


class Forms(Live):
    def test_jsonpath_is_kubectls(self):
        """The same templates on the same objects, by kubectl and by us: output, or that there is none."""
        objects = pathlib.Path(self.intents) / "objects.json"
        objects.write_text(self.mesh("render", "-o", "json", clusters=["eks"]).stdout)
        for template in TEMPLATES:
            theirs = run("kubectl", "--context", "eks", "get", "-f", objects, "-o", f"jsonpath={template}", env=environment())
            ours = self.mesh("render", "-o", f"jsonpath={template}", clusters=["eks"], code=None)
            with self.subTest(template=template):
                self.assertEqual((ours.returncode, ours.stdout), (theirs.returncode, theirs.stdout), f"{theirs.stderr}{ours.stderr}")

    def test_render_pipes_into_kubectl(self):
        manifests = self.mesh("render", clusters=["eks"]).stdout
        done = kubectl("eks", "apply", "--server-side", "--dry-run=server", "--field-manager=other", "--force-conflicts", "-f", "-",
                       input=manifests)
        self.assertEqual(done.count("serverside-applied (server dry run)"), len(self.rendered("eks")))

    def test_results_of_apply(self):
        kubectl("eks", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        names = self.mesh("apply", "-o", "name", "--dry-run=server").stdout
        self.assertIn("eks: virtualservice.networking.istio.io/user.mesh.bank.example\n", names)
        results = json.loads(self.mesh("apply", "-o", "json").stdout)
        applied = [one for one in results if one["result"] == "serverside-applied"]
        self.assertEqual([(one["cluster"], identity(one["object"])) for one in applied],
                         [("eks", ("VirtualService", "bank", "user.mesh.bank.example"))])
        self.assertIn("uid", applied[0]["object"]["metadata"], "as the server stored it")
        self.assertEqual({(one["cluster"], *identity(one["object"])) for one in results},
                         {(cluster, *key) for cluster in CLUSTERS for key in self.ours(cluster)})
        template = "jsonpath={range [*]}{.cluster}/{.object.kind} {end}"
        self.assertIn("cluster-1/Gateway ", self.mesh("apply", "-o", template).stdout)
        self.assertIn("- cluster: eks\n", self.mesh("apply", "-o", "yaml").stdout)

    def test_forms_of_status(self):
        kubectl("eks", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        self.assertIn("eks: virtualservice.networking.istio.io/user.mesh.bank.example\n", self.mesh("status", "-o", "name").stdout)
        template = "jsonpath={range [*]}{.cluster}: {.objects[?(@.state=='missing')].name}{\"\\n\"}{end}"
        self.assertIn("eks: user.mesh.bank.example\n", self.mesh("status", "-o", template).stdout)
        self.assertIn("state: missing\n", self.mesh("status", "-o", "yaml").stdout)
        self.assertRegex(self.mesh("status", "-o", "wide").stdout, r"^CLUSTER .* CONTEXT\n")
        waited = self.mesh("status", "--wait", "--timeout", "1s", code=1)
        self.assertIn("error: timed out waiting for the condition", waited.stderr)
        self.assertNotIn("CLUSTER", self.mesh("status", "--no-headers").stdout)
        refused = self.mesh("status", "-o", "tabel", code=1).stderr
        self.assertIn('unable to match a printer suitable for the output format "tabel", allowed formats are: table,wide', refused)
        self.mesh("apply")

    def test_verbosity(self):
        quiet = self.mesh("diff")
        self.assertNotIn("GET", quiet.stderr)
        told = self.mesh("diff", "-v", "6").stderr
        self.assertRegex(told, r"eks: GET https://127\.0\.0\.1:\d+/apis/networking\.istio\.io/v1/virtualservices\?\S+ 200 OK in \d+ milliseconds")
        self.assertNotIn("Response Body", told)
        more = self.mesh("diff", "--v=8").stderr
        self.assertRegex(more, r'eks: Response Body: \{"apiVersion"')
        self.assertRegex(more, r"\[truncated \d+ bytes\]")
        tokens = [user["user"]["token"] for user in json.loads(pathlib.Path(environment()["KUBECONFIG"]).read_text())["users"]]
        self.assertFalse([token for token in tokens if token in more], "headers are never shown")


if __name__ == "__main__":
    unittest.main()
