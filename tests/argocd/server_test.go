// Package argocd runs the Argo CD plugin under the real argocd-cmp-server, called by Argo CD's own repo-server code:
// what is between an Application and the objects that Argo CD will apply is not imitated here.
//
// MESH_BIN_DIR is the folder that holds argocd-mesh-cmp and kubectl-mesh:
//
//	cargo build --release && MESH_BIN_DIR=$PWD/target/release go -C tests/argocd test ./...
package argocd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/v3/cmpserver/apiclient"
	"github.com/argoproj/argo-cd/v3/cmpserver/plugin"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	repo "github.com/argoproj/argo-cd/v3/reposerver/apiclient"
	"github.com/argoproj/argo-cd/v3/reposerver/repository"
	"github.com/argoproj/argo-cd/v3/util/cmp"
	"github.com/argoproj/argo-cd/v3/util/git"
	utilio "github.com/argoproj/argo-cd/v3/util/io"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

const (
	exampleFleet = "../golden/example/fleet"
	pluginConfig = "../../argocd-cmp/plugin.yaml"
	installed    = "/usr/local/bin/argocd-mesh-cmp" // where the plugin's image has the program
)

// One server serves all tests, as one sidecar serves all Applications.
var server struct {
	plugin    string // absolute path of argocd-mesh-cmp
	kubectl   string // absolute path of kubectl-mesh
	name      string // what an Application calls the plugin
	address   string
	workspace string // the server unpacks each request into a folder of its own here
}

func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard) // Argo CD's code logs every failure that a test provokes
	code, err := runWithServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = 1
	}
	os.Exit(code)
}

func runWithServer(m *testing.M) (int, error) {
	binaries, err := filepath.Abs(os.Getenv("MESH_BIN_DIR"))
	if err != nil || os.Getenv("MESH_BIN_DIR") == "" {
		return 1, errors.New("MESH_BIN_DIR has to name the folder that holds argocd-mesh-cmp and kubectl-mesh")
	}
	server.plugin = filepath.Join(binaries, "argocd-mesh-cmp")
	server.kubectl = filepath.Join(binaries, "kubectl-mesh")
	if folder := os.Getenv("MESH_CMP_SOCKETS"); folder != "" { // a server runs already: that of the plugin's image
		if err := nameServer(folder, filepath.Dir(pluginConfig)); err != nil {
			return 1, err
		}
		if err := os.Setenv("ARGOCD_PLUGINSOCKFILEPATH", folder); err != nil {
			return 1, err
		}
		server.workspace = "/tmp/_cmp_server"
		return m.Run(), nil
	}

	built, err := exec.Command("../parts/build", "argocd-cmp-server").Output()
	if err != nil {
		return 1, fmt.Errorf("building argocd-cmp-server: %w", err)
	}

	// The path of a socket holds 108 bytes, so no t.TempDir with a long name.
	folder, err := os.MkdirTemp("", "cmp")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	if err := installPlugin(folder); err != nil {
		return 1, err
	}
	server.workspace = filepath.Join(folder, "_cmp_server")

	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return 1, err
	}
	defer log.Close()
	process := exec.Command(strings.TrimSpace(string(built)), "--config-dir-path", folder)
	// The plugin inherits the sidecar's environment: it has to do without HOME and whatever else a shell has.
	process.Env = []string{"PATH=/usr/bin:/bin", "ARGOCD_PLUGINSOCKFILEPATH=" + folder, "ARGOCD_CMP_WORKDIR=" + folder}
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		return 1, err
	}
	defer func() {
		_ = process.Process.Kill() // at SIGTERM it removes its socket and stays
		_ = process.Wait()
	}()
	// Argo CD's client code reads the folder of sockets from its own environment, and leaves an empty folder in TMPDIR for
	// every request.
	if err := errors.Join(os.Setenv("ARGOCD_PLUGINSOCKFILEPATH", folder), os.Setenv("TMPDIR", folder)); err != nil {
		return 1, err
	}
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(server.address); err == nil {
			return m.Run(), nil
		}
		if time.Since(start) > 20*time.Second {
			text, _ := os.ReadFile(log.Name())
			return 1, fmt.Errorf("argocd-cmp-server has not opened its socket within 20 s:\n%s", text)
		}
	}
}

// installPlugin writes the suite's plugin.yaml with the path of the program under test.
func installPlugin(folder string) error {
	text, err := os.ReadFile(pluginConfig)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), installed) {
		return fmt.Errorf("%s does not call %s", pluginConfig, installed)
	}
	text = []byte(strings.ReplaceAll(string(text), installed, server.plugin))
	if err := os.WriteFile(filepath.Join(folder, "plugin.yaml"), text, 0o600); err != nil {
		return err
	}
	return nameServer(folder, folder)
}

// nameServer finds out what the plugin is called, and where its socket is.
func nameServer(sockets, folder string) error {
	config, err := plugin.ReadPluginConfig(folder)
	if err != nil {
		return err
	}
	server.name = config.Metadata.Name + "-" + config.Spec.Version
	server.address = filepath.Join(sockets, server.name+".sock")
	return nil
}

// application is what the render step sees of an Argo CD Application.
type application struct {
	name       string
	repo       string // the checked-out repository
	path       string // spec.source.path
	parameters v1alpha1.ApplicationSourcePluginParameters
	env        v1alpha1.Env
}

// exampleApplication renders one cluster of the example fleet, which is at `path` of its repository.
func exampleApplication(t *testing.T, path, cluster string) application {
	t.Helper()
	repo := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(repo, path), os.DirFS(exampleFleet)))
	app := application{name: "mesh", repo: repo, path: path}
	if cluster != "" {
		app.parameters = append(app.parameters, text("cluster", cluster))
	}
	return app
}

func text(name, value string) v1alpha1.ApplicationSourcePluginParameter {
	return v1alpha1.ApplicationSourcePluginParameter{Name: name, String_: &value}
}

func list(name string, values ...string) v1alpha1.ApplicationSourcePluginParameter {
	return v1alpha1.ApplicationSourcePluginParameter{Name: name, OptionalArray: &v1alpha1.OptionalArray{Array: values}}
}

func (a application) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(a.repo, a.path, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

type object = map[string]any

// render is Argo CD's own way from an Application to its objects: overrides from the repository, environment, stream to
// the plugin, and reading what the plugin printed.
func (a application) render(ctx context.Context, t *testing.T) ([]object, error) {
	t.Helper()
	const url = "https://git.example/fleet.git"
	response, err := repository.GenerateManifests(
		ctx, filepath.Join(a.repo, a.path), a.repo, "0123456789abcdef0123456789abcdef01234567",
		&repo.ManifestRequest{
			Repo:        &v1alpha1.Repository{Repo: url},
			AppName:     a.name,
			Namespace:   "istio-system",
			ProjectName: "mesh",
			KubeVersion: "1.34.0",
			ApplicationSource: &v1alpha1.ApplicationSource{
				RepoURL: url,
				Path:    a.path,
				Plugin:  &v1alpha1.ApplicationSourcePlugin{Name: server.name, Env: a.env, Parameters: a.parameters},
			},
		},
		false, git.NoopCredsStore{}, resource.MustParse("0"), utilio.NewRandomizedTempPaths(t.TempDir()),
	)
	if err != nil {
		return nil, err
	}
	return objects(t, response.Manifests...), nil
}

func objects(t *testing.T, documents ...string) []object {
	t.Helper()
	var all []object
	for _, document := range documents {
		var one object
		require.NoError(t, yaml.Unmarshal([]byte(document), &one))
		if one != nil {
			all = append(all, one)
		}
	}
	return all
}

// client talks to the server without the repo-server in between, to say what no Application can.
func client(t *testing.T) apiclient.ConfigManagementPluginServiceClient {
	t.Helper()
	connection, client, err := apiclient.NewConfigManagementPluginClientSet(server.address).NewConfigManagementPluginClient()
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return client
}

func (a application) send(t *testing.T, stream cmp.StreamSender, env ...string) {
	t.Helper()
	require.NoError(t, cmp.SendRepoStream(t.Context(), filepath.Join(a.repo, a.path), a.repo, stream, env, []string{".git"}))
}
