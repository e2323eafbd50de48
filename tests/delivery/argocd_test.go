// Package delivery holds the samples for Argo CD against Argo CD's own code: what its ApplicationSet controller makes of
// them, and what its health assessment says with the shipped scripts.
package delivery

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/argoproj/argo-cd/v3/applicationset/controllers/template"
	"github.com/argoproj/argo-cd/v3/applicationset/generators"
	"github.com/argoproj/argo-cd/v3/applicationset/services"
	appset "github.com/argoproj/argo-cd/v3/applicationset/utils"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/gitops-engine/pkg/health"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"
)

const (
	samples = "../../argocd-cmp/samples/"
	install = "../../argocd-cmp/install/"
)

func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// documents splits a sample into its objects.
func documents(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Split(string(text), "\n---\n")
}

func read[T any](t *testing.T, text string) T {
	t.Helper()
	var out T
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &out))
	return out
}

// cluster is what Argo CD stores of a cluster.
func cluster(name string, labels map[string]string) *corev1.Secret {
	all := map[string]string{"argocd.argoproj.io/secret-type": "cluster"}
	maps.Copy(all, labels)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-" + name, Namespace: "argocd", Labels: all},
		Data:       map[string][]byte{"name": []byte(name), "server": []byte("https://" + name + ".example"), "config": []byte("{}")},
	}
}

// repository is a checkout, as Argo CD's git generator sees it.
type repository struct {
	services.Repos
	files map[string][]byte
}

func (r repository) GetFiles(_ context.Context, _, _, _, pattern string, _, _ bool) (map[string][]byte, error) {
	out := map[string][]byte{}
	for path, content := range r.files {
		if matched, err := filepath.Match(pattern, path); err != nil || matched {
			out[path] = content
		}
	}
	return out, nil
}

// generate is what the ApplicationSet controller does with a sample, on these clusters, decisions and files.
func generate(t *testing.T, set v1alpha1.ApplicationSet, files map[string][]byte, decided []string, secrets ...*corev1.Secret) ([]v1alpha1.Application, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	// How the placement's decisions are read; it stands in the sample.
	var config corev1.ConfigMap
	for _, text := range documents(t, "../../docs/samples/ocm/applicationset-placement.yaml") {
		if strings.Contains(text, "kind: ConfigMap") {
			config = read[corev1.ConfigMap](t, text)
		}
	}
	objects := []runtime.Object{&config}
	project := read[v1alpha1.AppProject](t, documents(t, samples+"appproject.yaml")[0])
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&project)
	for _, secret := range secrets {
		builder = builder.WithObjects(secret.DeepCopy())
		objects = append(objects, secret.DeepCopy())
	}
	clients := builder.Build()
	kube := kubefake.NewClientset(objects...)
	decision := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1beta1",
		"kind":       "PlacementDecision",
		"metadata": map[string]any{
			"name": "mesh-decision-1", "namespace": "argocd",
			"labels": map[string]any{"cluster.open-cluster-management.io/placement": "mesh"},
		},
	}}
	var list []any
	for _, name := range decided {
		list = append(list, map[string]any{"clusterName": name, "reason": ""})
	}
	decision.Object["status"] = map[string]any{"decisions": list}
	resource := schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Resource: "placementdecisions"}
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource: "PlacementDecisionList"}, decision)

	all := map[string]generators.Generator{
		"Clusters":                generators.NewClusterGenerator(t.Context(), clients, kube, "argocd"),
		"Git":                     generators.NewGitGenerator(repository{files: files}, "argocd"),
		"ClusterDecisionResource": generators.NewDuckTypeGenerator(t.Context(), dynamic, kube, "argocd"),
	}
	applications, _, err := template.GenerateApplications(logrus.NewEntry(logrus.StandardLogger()), set, all, &appset.Render{}, clients)
	return applications, err
}

// set finds the ApplicationSet of a sample.
func set(t *testing.T, path string) v1alpha1.ApplicationSet {
	t.Helper()
	for _, text := range documents(t, path) {
		if strings.Contains(text, "kind: ApplicationSet\n") {
			return read[v1alpha1.ApplicationSet](t, text)
		}
	}
	require.Fail(t, "no ApplicationSet in "+path)
	return v1alpha1.ApplicationSet{}
}

var member = map[string]string{"meshintent.dev/member": "true"}

func wave(name string) map[string]string {
	return map[string]string{"meshintent.dev/member": "true", "meshintent.dev/wave": name}
}

// inventory is the example fleet's inventory, one file for each cluster, as the git generator wants it.
func inventory(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, text := range documents(t, "../golden/example/fleet/inventory/clusters.yaml") {
		var document struct{ Metadata struct{ Name string } }
		require.NoError(t, yaml.Unmarshal([]byte(text), &document))
		files["fleet/inventory/clusters/"+document.Metadata.Name+".yaml"] = []byte(text)
	}
	return files
}

func TestEveryClusterGetsItsOwnApplication(t *testing.T) {
	clusters := []*corev1.Secret{
		cluster("eks", wave("main")), cluster("cluster-1", wave("main")), cluster("canary-1", wave("canary")),
		cluster("wine", nil), // known to Argo CD, and no member by its labels
	}
	members := []string{"canary-1", "cluster-1", "eks"}
	for path, expected := range map[string][]string{
		samples + "applicationset-clusters.yaml":               members,
		samples + "applicationset-progressive.yaml":            members,
		samples + "applicationset-inventory.yaml":              {"canary-1", "cluster-1", "cluster-2", "eks", "wine"},
		"../../docs/samples/ocm/applicationset-placement.yaml": {"eks", "wine"},
	} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			applications, err := generate(t, set(t, path), inventory(t), []string{"wine", "eks"}, clusters...)
			require.NoError(t, err)
			var names []string
			for _, application := range applications {
				name := application.Spec.Destination.Name
				names = append(names, name)
				assert.Equal(t, "mesh-"+name, application.Name)
				assert.Equal(t, "mesh", application.Spec.Project)
				assert.Empty(t, application.Spec.Destination.Server)
				plugin := application.Spec.Source.Plugin
				assert.Equal(t, pluginName(t), plugin.Name)
				require.Len(t, plugin.Parameters, 1)
				assert.Equal(t, "cluster", plugin.Parameters[0].Name)
				assert.Equal(t, name, *plugin.Parameters[0].String_, "the cluster that is rendered is the destination")
				assert.True(t, application.Spec.SyncPolicy.Automated.Prune, "a progressive sync prunes only with this")
				assert.False(t, application.Spec.SyncPolicy.Automated.AllowEmpty)
			}
			slices.Sort(names)
			assert.Equal(t, expected, names)
		})
	}
}

// pluginName is what Applications have to call the shipped plugin.
func pluginName(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../argocd-cmp/plugin.yaml")
	require.NoError(t, err)
	var plugin struct {
		Metadata struct{ Name string }
		Spec     struct{ Version string }
	}
	require.NoError(t, yaml.Unmarshal(text, &plugin))
	return plugin.Metadata.Name + "-" + plugin.Spec.Version
}

func TestPluginNamesAreTheShippedOne(t *testing.T) {
	for _, folder := range []string{samples, "../../docs/samples"} {
		require.NoError(t, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), "plugin:") {
				assert.Contains(t, string(text), "name: "+pluginName(t), path)
			}
			return err
		}))
	}
}

func TestEveryApplicationOfAProgressiveSyncBelongsToAStep(t *testing.T) {
	sample := set(t, samples+"applicationset-progressive.yaml")
	clusters := []*corev1.Secret{cluster("eks", wave("main")), cluster("canary-1", wave("canary")), cluster("no-member", nil)}
	applications, err := generate(t, sample, nil, nil, clusters...)
	require.NoError(t, err)
	var order []string
	for _, step := range sample.Spec.Strategy.RollingSync.Steps {
		for _, application := range applications {
			value, ok := application.Labels[step.MatchExpressions[0].Key]
			if ok && slices.Contains(step.MatchExpressions[0].Values, value) {
				order = append(order, application.Spec.Destination.Name)
			}
		}
	}
	assert.Equal(t, []string{"canary-1", "eks"}, order)
	assert.Len(t, applications, len(order), "an Application of no step would never be synced")

	for name, odd := range map[string]*corev1.Secret{"without-wave": cluster("without-wave", member), "misspelt": cluster("misspelt", wave("canray"))} {
		_, err := generate(t, sample, nil, nil, append(clusters, odd)...)
		assert.ErrorContains(t, err, "cluster "+name+" needs the label meshintent.dev/wave=canary or =main")
	}
}

// What the plugin renders passes the project of the samples, and little else does.
func TestTheProjectAdmitsWhatIsRenderedOnly(t *testing.T) {
	project := read[v1alpha1.AppProject](t, documents(t, samples+"appproject.yaml")[0])
	require.NoError(t, project.ValidateProject())
	permitted := func(group, kind, namespace string) bool {
		destination := &v1alpha1.Cluster{Name: "eks", Server: "https://eks.example"}
		out, err := project.IsResourcePermitted(schema.GroupKind{Group: group, Kind: kind}, namespace, destination, nil)
		require.NoError(t, err)
		return out
	}
	paths, err := filepath.Glob("../golden/*/rendered/*/*.yaml")
	require.NoError(t, err)
	seen := 0
	for _, path := range paths {
		if filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		for _, text := range documents(t, path) {
			var object unstructured.Unstructured
			require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
			kind := object.GroupVersionKind()
			assert.True(t, permitted(kind.Group, kind.Kind, object.GetNamespace()), path)
			seen++
		}
	}
	assert.Greater(t, seen, 100)
	for _, other := range []struct{ group, kind, namespace string }{
		{"", "Secret", "bank"},
		{"apps", "Deployment", "bank"},
		{"batch", "Job", "bank"},
		{"rbac.authorization.k8s.io", "ClusterRoleBinding", ""},
		{"", "Namespace", ""},
		{"argoproj.io", "Application", "bank"},
		{"networking.istio.io", "VirtualService", "argocd"},
		{"", "ConfigMap", "argocd"},
		{"", "ConfigMap", "kube-system"},
	} {
		assert.False(t, permitted(other.group, other.kind, other.namespace), "%v", other)
	}
	assert.True(t, project.IsSourcePermitted(v1alpha1.ApplicationSource{RepoURL: "https://git.example.com/platform/fleet.git"}))
	assert.False(t, project.IsSourcePermitted(v1alpha1.ApplicationSource{RepoURL: "https://git.example.com/other.git"}))
}

func TestHealth(t *testing.T) {
	config := read[corev1.ConfigMap](t, documents(t, install+"health.yaml")[0])
	overrides := map[string]v1alpha1.ResourceOverride{}
	require.NoError(t, yaml.Unmarshal([]byte(config.Data["resource.customizations"]), &overrides))
	assess := func(api, kind, status string) *health.HealthStatus {
		object := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte("metadata: {name: x, namespace: y}\n"+status), &object))
		object["apiVersion"], object["kind"] = api, kind
		out, err := health.GetResourceHealth(&unstructured.Unstructured{Object: object}, lua.ResourceHealthOverrides(overrides))
		require.NoError(t, err)
		return out
	}
	const analysis = `{status: {validationMessages: [{level: %, type: {code: IST0101, name: ReferencedResourceNotFound}}]}}`
	for name, test := range map[string]struct {
		api, kind, status string
		expected          health.HealthStatusCode
	}{
		"no status":          {"networking.istio.io/v1", "VirtualService", "", health.HealthStatusHealthy},
		"an error":           {"networking.istio.io/v1", "VirtualService", strings.Replace(analysis, "%", "ERROR", 1), health.HealthStatusDegraded},
		"a warning":          {"networking.istio.io/v1", "ServiceEntry", strings.Replace(analysis, "%", "WARNING", 1), health.HealthStatusHealthy},
		"an error elsewhere": {"security.istio.io/v1", "AuthorizationPolicy", strings.Replace(analysis, "%", "ERROR", 1), health.HealthStatusDegraded},
		"no waypoint":        {"security.istio.io/v1", "AuthorizationPolicy", `{status: {conditions: [{type: WaypointAccepted, status: "False", message: no}]}}`, health.HealthStatusDegraded},
		"a waypoint":         {"security.istio.io/v1", "AuthorizationPolicy", `{status: {conditions: [{type: WaypointAccepted, status: "True"}]}}`, health.HealthStatusHealthy},
		"a new application":  {"argoproj.io/v1alpha1", "Application", "", health.HealthStatusProgressing},
		"a sick application": {"argoproj.io/v1alpha1", "Application", `{status: {health: {status: Degraded}}}`, health.HealthStatusDegraded},
	} {
		t.Run(name, func(t *testing.T) {
			status := test.status
			if status != "" {
				status = strings.TrimSuffix(strings.TrimPrefix(status, "{"), "}")
			}
			assert.Equal(t, test.expected, assess(test.api, test.kind, status).Status)
		})
	}
}
