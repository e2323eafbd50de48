package argocd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const syncWave = "argocd.argoproj.io/sync-wave"

func TestEveryClusterIsRenderedAsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	for _, cluster := range exampleClusters(t) {
		t.Run(cluster, func(t *testing.T) {
			t.Parallel()
			app := exampleApplication(t, "fleet", cluster)
			printed := run(t, app, server.kubectl, nil, "render", "-f", ".", "--cluster", cluster)
			expected := objects(t, strings.Split(string(printed), "\n---\n")...)
			require.NotEmpty(t, expected)

			ordered, err := app.render(t.Context(), t)
			require.NoError(t, err)
			assert.Equal(t, expected, withoutWaves(t, ordered))

			app.parameters = append(app.parameters, text("waves", "false"))
			plain, err := app.render(t.Context(), t)
			require.NoError(t, err)
			assert.Equal(t, expected, plain)

			// Argo CD splits what it is given, so the bytes are compared at the program itself.
			env, err := app.parameters.Environ()
			require.NoError(t, err)
			assert.Equal(t, string(printed), string(run(t, app, server.plugin, env, "generate")))
		})
	}
}

func TestTheClusterMayComeFromTheEnvironment(t *testing.T) {
	t.Parallel()
	expected, err := exampleApplication(t, "fleet", "eks").render(t.Context(), t)
	require.NoError(t, err)
	for name, change := range map[string]func(*application){
		"environment alone": func(a *application) { a.parameters = nil; a.env = cluster("eks") },
		"both agree":        func(a *application) { a.env = cluster("eks") },
		"Argo CD's variables are expanded": func(a *application) {
			a.parameters, a.name, a.env = nil, "eks", cluster("${ARGOCD_APP_NAME}")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := exampleApplication(t, "fleet", "eks")
			change(&app)
			rendered, err := app.render(t.Context(), t)
			require.NoError(t, err)
			assert.Equal(t, expected, rendered)
		})
	}
}

func TestTheFolderMayBeAnywhereInTheRepository(t *testing.T) {
	t.Parallel()
	expected, err := exampleApplication(t, "fleet", "eks").render(t.Context(), t)
	require.NoError(t, err)
	for _, path := range []string{".", "teams/mesh/prod", "größe $HOME"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			app := exampleApplication(t, path, "eks")
			rendered, err := app.render(t.Context(), t)
			require.NoError(t, err)
			assert.Equal(t, expected, rendered)
		})
	}
}

func TestTheIntentsMayBeAPartOfTheFolder(t *testing.T) {
	t.Parallel()
	expected, err := exampleApplication(t, "fleet", "eks").render(t.Context(), t)
	require.NoError(t, err)
	app := exampleApplication(t, "mesh/intents", "eks")
	app.path = "mesh"
	app.write(t, "drafts/broken.yaml", "kind: [")
	app.parameters = append(app.parameters, list("intents", "intents"))
	rendered, err := app.render(t.Context(), t)
	require.NoError(t, err)
	assert.Equal(t, expected, rendered)
}

func TestASecondRunPrintsTheSame(t *testing.T) {
	t.Parallel()
	first, err := exampleApplication(t, "fleet", "wine").render(t.Context(), t)
	require.NoError(t, err)
	second, err := exampleApplication(t, "fleet", "wine").render(t.Context(), t)
	require.NoError(t, err)
	assert.Equal(t, first, second)
}

func TestTheParametersAreAnnouncedWithTheFleetsClusters(t *testing.T) {
	t.Parallel()
	tooltips := exampleApplication(t, "fleet", "").announce(t)
	assert.Contains(t, tooltips, "waves")
	for _, cluster := range exampleClusters(t) {
		assert.Contains(t, tooltips["cluster"], cluster)
	}
}

// Without its form nobody could repair an Application in the user interface.
func TestABrokenDocumentDoesNotTakeTheFormAway(t *testing.T) {
	t.Parallel()
	app := exampleApplication(t, "fleet", "")
	app.write(t, "broken.yaml", "apiVersion: meshintent.dev/v1alpha1\nkind: [")
	assert.Contains(t, app.announce(t), "cluster")
}

// announce asks for the parameters and their tooltips as Argo CD does to draw its form: with fewer variables than a
// rendering gets, and before a cluster is chosen.
func (a application) announce(t *testing.T) map[string]string {
	t.Helper()
	stream, err := client(t).GetParametersAnnouncement(t.Context())
	require.NoError(t, err)
	a.send(t, stream, "ARGOCD_APP_NAME=mesh", "ARGOCD_APP_SOURCE_REPO_URL=https://git.example/fleet.git",
		"ARGOCD_APP_SOURCE_PATH="+a.path, "ARGOCD_APP_SOURCE_TARGET_REVISION=main")
	response, err := stream.CloseAndRecv()
	require.NoError(t, err)
	tooltips := map[string]string{}
	for _, parameter := range response.ParameterAnnouncements {
		tooltips[parameter.Name] = parameter.Tooltip
	}
	return tooltips
}

// exampleClusters reads the names from the documents, not from the programs under test.
func exampleClusters(t *testing.T) []string {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(exampleFleet, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, document := range objects(t, strings.Split("\n"+string(content), "\n---\n")...) {
			if document["kind"] == "Cluster" {
				names = append(names, document["metadata"].(object)["name"].(string))
			}
		}
		return nil
	}))
	require.Len(t, names, 5)
	slices.Sort(names)
	return names
}

// withoutWaves removes the annotations that Argo CD orders a sync by; at least one object has to carry one.
func withoutWaves(t *testing.T, all []object) []object {
	t.Helper()
	found := false
	for _, one := range all {
		annotations, _ := one["metadata"].(object)["annotations"].(object)
		if wave, ok := annotations[syncWave]; ok {
			found = true
			_, err := strconv.Atoi(wave.(string))
			assert.NoError(t, err)
			delete(annotations, syncWave)
		}
	}
	assert.True(t, found, "no object says when it is to be applied")
	return all
}

func cluster(name string) v1alpha1.Env {
	return v1alpha1.Env{{Name: "CLUSTER", Value: name}}
}

// run calls a program in the application's folder and returns what it printed.
func run(t *testing.T, app application, program string, env []string, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = filepath.Join(app.repo, app.path)
	command.Env = append([]string{}, env...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	printed, err := command.Output()
	require.NoError(t, err, stderr.String())
	return printed
}
