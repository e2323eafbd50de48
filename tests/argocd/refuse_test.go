package argocd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The beginning of a document; what follows is its spec.
const service = "apiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {name: a, namespace: b}\nspec: "

// A success that prints too little would make Argo CD prune a live mesh, so whatever is wrong has to be an error, and its
// first line is all that many people will ever see of it.
func TestWhatIsWrongIsRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000) // Linux takes 128 KiB for one variable
	for name, wrong := range map[string]struct {
		change func(*testing.T, *application)
		says   []string
	}{
		"no parameters": {
			func(_ *testing.T, a *application) { a.parameters = nil },
			[]string{`"cluster"`, "spec.source.plugin.parameters"},
		},
		"an empty list of parameters": {
			func(_ *testing.T, a *application) { a.parameters = v1alpha1.ApplicationSourcePluginParameters{} },
			[]string{`"cluster"`, "spec.source.plugin.parameters"},
		},
		"an empty name": {
			func(_ *testing.T, a *application) { a.parameters = parameters(text("cluster", "")) },
			[]string{`"cluster"`},
		},
		"a list instead of a name": {
			func(_ *testing.T, a *application) { a.parameters = parameters(list("cluster", "eks")) },
			[]string{`"cluster"`, "string"},
		},
		"the parameter twice": {
			func(_ *testing.T, a *application) {
				a.parameters = parameters(text("cluster", "eks"), text("cluster", "wine"))
			},
			[]string{`"cluster"`},
		},
		"an unknown cluster": {
			func(_ *testing.T, a *application) { a.parameters = parameters(text("cluster", "cluster-11")) },
			[]string{`"cluster-11"`, "cluster-1"},
		},
		"parameter and environment contradict": {
			func(_ *testing.T, a *application) { a.env = cluster("wine") },
			[]string{`"cluster"`, "ARGOCD_ENV_CLUSTER"},
		},
		"a wave switch that is neither": {
			func(_ *testing.T, a *application) { a.parameters = append(a.parameters, text("waves", "maybe")) },
			[]string{`"waves"`},
		},
		"a parameter that does not exist": {
			func(_ *testing.T, a *application) { a.parameters = append(a.parameters, text("wave", "false")) },
			[]string{`"wave"`, "waves"},
		},
		"intents above the folder": {
			func(_ *testing.T, a *application) { a.parameters = append(a.parameters, list("intents", "../fleet")) },
			[]string{`"intents"`},
		},
		"intents anywhere on the machine": {
			func(_ *testing.T, a *application) { a.parameters = append(a.parameters, list("intents", "/etc")) },
			[]string{`"intents"`},
		},
		"intents behind a link": {
			func(t *testing.T, a *application) {
				require.NoError(t, os.Symlink(".", filepath.Join(a.repo, a.path, "link")))
				a.parameters = append(a.parameters, list("intents", "link"))
			},
			[]string{`"intents"`},
		},
		"intents that are not there": {
			func(_ *testing.T, a *application) { a.parameters = append(a.parameters, list("intents", "nowhere")) },
			[]string{"nowhere"},
		},
		"a path instead of a name": {
			func(_ *testing.T, a *application) { a.parameters = parameters(text("cluster", "../../etc/passwd")) },
			[]string{`"cluster"`},
		},
		"letters that no cluster has": {
			func(_ *testing.T, a *application) { a.parameters = parameters(text("cluster", "clüster-1")) },
			[]string{`"cluster"`},
		},
		"a variable that nobody expands": {
			func(_ *testing.T, a *application) { a.parameters = parameters(text("cluster", "$ARGOCD_APP_NAME")) },
			[]string{`"cluster"`},
		},
		"a line break": {
			func(_ *testing.T, a *application) { a.parameters = parameters(text("cluster", "eks\nwine")) },
			[]string{`"cluster"`},
		},
		"a very long name": {
			func(_ *testing.T, a *application) { a.parameters = parameters(text("cluster", long)) },
			[]string{`"cluster"`},
		},
		"a broken document": {
			func(t *testing.T, a *application) {
				a.write(t, "teams/broken.yaml", service+"[\n")
			},
			[]string{"teams/broken.yaml:"},
		},
		"an unknown field": {
			func(t *testing.T, a *application) {
				a.write(t, "teams/typo.yaml", service+"{clusters: [eks], ports: [{name: http, port: 80}],\n dependson: []}\n")
			},
			[]string{"teams/typo.yaml:5:2", "dependson"},
		},
		"a cluster without its document": {
			func(t *testing.T, a *application) {
				require.NoError(t, os.RemoveAll(filepath.Join(a.repo, a.path)))
				a.write(t, "only.yaml", service+"{clusters: [eks], ports: [{name: http, port: 80}]}\n")
			},
			[]string{`"eks"`, "no Cluster document was read"},
		},
		"only other people's documents": {
			func(t *testing.T, a *application) {
				require.NoError(t, os.RemoveAll(filepath.Join(a.repo, a.path)))
				a.write(t, "values.yaml", "replicas: 1\n")
			},
			[]string{`"eks"`, "no Cluster document was read"},
		},
		"a folder without documents": {
			func(t *testing.T, a *application) {
				require.NoError(t, os.RemoveAll(filepath.Join(a.repo, a.path)))
				a.write(t, "README.md", "no documents yet")
			},
			[]string{"spec.source.path"},
		},
		"a link out of the folder": {
			func(t *testing.T, a *application) {
				require.NoError(t, os.WriteFile(filepath.Join(a.repo, "outside.yaml"), []byte("kind: Secret"), 0o600))
				require.NoError(t, os.Symlink("../outside.yaml", filepath.Join(a.repo, a.path, "link.yaml")))
			},
			[]string{"link.yaml"},
		},
		"a link to nothing": {
			func(t *testing.T, a *application) {
				require.NoError(t, os.Symlink("nowhere.yaml", filepath.Join(a.repo, a.path, "link.yaml")))
			},
			[]string{"link.yaml"},
		},
		"a link to its own folder": {
			func(t *testing.T, a *application) {
				require.NoError(t, os.Symlink(".", filepath.Join(a.repo, a.path, "loop")))
			},
			[]string{"loop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := exampleApplication(t, "fleet", "eks")
			wrong.change(t, &app)
			_, err := app.render(t.Context(), t)
			assertActionable(t, err, wrong.says...)
		})
	}
}

// What no Application can send, but whoever reaches the socket can.
func TestAMalformedRequestIsRefused(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]struct {
		env  []string
		says string
	}{
		"no variable at all":  {nil, `"cluster"`},
		"broken JSON":         {[]string{`ARGOCD_APP_PARAMETERS=[{"name":"cluster","string":"eks"`}, "ARGOCD_APP_PARAMETERS"},
		"not a list":          {[]string{`ARGOCD_APP_PARAMETERS={"cluster":"eks"}`}, "ARGOCD_APP_PARAMETERS"},
		"deeply nested":       {[]string{"ARGOCD_APP_PARAMETERS=" + strings.Repeat("[", 50_000)}, "ARGOCD_APP_PARAMETERS"},
		"a number for a name": {[]string{`ARGOCD_APP_PARAMETERS=[{"name":"cluster","string":7}]`}, "ARGOCD_APP_PARAMETERS"},
		"not Unicode":         {[]string{"ARGOCD_ENV_CLUSTER=eks\xff"}, "ARGOCD_ENV_CLUSTER"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := exampleApplication(t, "fleet", "")
			stream, err := client(t).GenerateManifest(t.Context())
			require.NoError(t, err)
			app.send(t, stream, wrong.env...)
			_, err = stream.CloseAndRecv()
			assertActionable(t, err, wrong.says)
		})
	}
}

// Argo CD merges these files over an Application's source before it calls a plugin: whoever may write the intents could
// choose another cluster.
func TestTheRepositoryCannotOverrideTheApplication(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]struct{ name, content string }{
		"parameters":            {".argocd-source.yaml", "plugin: {parameters: [{name: cluster, string: wine}]}"},
		"for one application":   {".argocd-source-mesh.yaml", "plugin: {parameters: [{name: cluster, string: wine}]}"},
		"environment":           {".argocd-source.yaml", "plugin: {env: [{name: CLUSTER, value: eks}]}"},
		"written as JSON":       {".argocd-source.yaml", `{"plugin": {"parameters": [{"name": "cluster", "string": "wine"}]}}`},
		"the same value again":  {".argocd-source.yaml", "plugin: {parameters: [{name: cluster, string: eks}]}"},
		"an anchor hides it":    {".argocd-source.yaml", "a: &a plugin\n*a : {parameters: [{name: cluster, string: wine}]}"},
		"a merge key brings it": {".argocd-source.yaml", "a: &a {plugin: {parameters: [{name: cluster, string: wine}]}}\n<<: *a"},
		"an escaped key":        {".argocd-source.yaml", `"pl\x75gin": {parameters: [{name: cluster, string: wine}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := exampleApplication(t, "fleet", "eks")
			app.write(t, file.name, file.content)
			_, err := app.render(t.Context(), t)
			assertActionable(t, err, file.name)
		})
	}
}

func TestAnOverrideOfAnotherApplicationIsNoneOfOurs(t *testing.T) {
	t.Parallel()
	app := exampleApplication(t, "fleet", "eks")
	app.write(t, ".argocd-source-other.yaml", "plugin: {parameters: [{name: cluster, string: wine}]}")
	_, err := app.render(context.Background(), t)
	require.NoError(t, err)
}

// assertActionable wants an error of the plugin itself, in the form that Argo CD's user interface shows, whose first line
// names what is to be changed.
func assertActionable(t *testing.T, err error, says ...string) {
	t.Helper()
	require.Error(t, err)
	shown := err.Error()
	_, own, found := strings.Cut(shown, "argocd-mesh-cmp generate` failed exit status 1: ")
	require.True(t, found, shown)
	first, _, _ := strings.Cut(own, "\n")
	assert.True(t, strings.HasPrefix(first, "error: "), first)
	for _, part := range says {
		assert.Contains(t, first, part)
	}
	assert.LessOrEqual(t, len(first), 400, "the first line fits on a screen")
	assert.LessOrEqual(t, len(own), 4096)
	assert.NotContains(t, own, "\x1b")
	assert.NotContains(t, own, server.workspace, "the server's folder has another name in every run")
}

func parameters(all ...v1alpha1.ApplicationSourcePluginParameter) v1alpha1.ApplicationSourcePluginParameters {
	return all
}
