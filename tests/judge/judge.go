package judge

import (
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/kube/krt"
	"istio.io/istio/pkg/log"
	"istio.io/istio/pkg/test"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func init() {
	// Istio registers every collection of every control plane here for a debug page, and forgets none: some hundreds
	// of worlds would fill the machine's memory.
	krt.GlobalDebugHandler = nil
}

// Judge compares a world with what Istio makes of it. An error means that there is no judgement.
func Judge(w *World) ([]Verdict, error) {
	var out []Verdict
	// Wrap gives Istio's test server the cleanup of a test in any program.
	err := test.Wrap(func(t test.Failer) {
		defer func() {
			// Some configuration makes istiod's generators panic: a verdict on the world, not an end of the judge.
			if reason := recover(); reason != nil {
				t.Fatalf("a panic, as it would stop istiod: %v\n%s", reason, debug.Stack())
			}
		}()
		c := &court{world: w, out: newVerdicts(w.Name), istiods: map[string]*Istiod{}, traces: map[string]*trace{}, deliveries: map[string]delivery{}}
		if err := c.convene(t); err != nil {
			t.Fatalf("%v", err)
		}
		c.judgeRouting()
		c.judgeAccess()
		c.judgeNeed()
		c.judgeVisibility()
		c.judgeEgress()
		out = c.out.list
	})
	if err != nil {
		return nil, fmt.Errorf("world %s: %w", w.Name, err)
	}
	return out, nil
}

// court is one judgement in progress.
type court struct {
	world      *World
	out        *verdicts
	istiods    map[string]*Istiod
	traces     map[string]*trace
	deliveries map[string]delivery
}

// trace remembers what the requests of a cluster really used, to tell what was rendered for nobody.
type trace struct {
	dialled  map[string]bool // hosts that callers ask for
	hosts    map[string]bool // hosts of Envoy clusters that sidecars or the gateway sent to
	received map[ServiceID]bool
}

// convene checks every object and starts every control plane.
func (c *court) convene(t test.Failer) error {
	for _, cluster := range c.world.Fleet.Clusters {
		c.traces[cluster.Name] = &trace{dialled: map[string]bool{}, hosts: map[string]bool{}, received: map[ServiceID]bool{}}
		if !cluster.Istio() {
			continue
		}
		workloads := newWorkloads(c.world.Fleet, cluster)
		configs, kube := c.validate(cluster, workloads)
		m, err := meshConfigOf(c.world.Fleet, cluster)
		if err != nil {
			return err
		}
		istiod, err := startIstiod(t, workloads, m, configs, kube)
		if err != nil {
			return err
		}
		c.istiods[cluster.Name] = istiod
	}
	return nil
}

// validate checks the rendered objects of one cluster and returns them as Istio and Kubernetes hold them. Objects
// that are not valid are left out, as the API server would leave them out.
func (c *court) validate(cluster *Cluster, w *Workloads) ([]config.Config, []runtime.Object) {
	objects := c.world.Rendered[cluster.Name]
	var configs []config.Config
	var kube []runtime.Object
	seen := map[string]bool{}
	for _, o := range objects {
		name := describe(o)
		fail := func(expected string, err error) {
			c.out.add(Verdict{Check: "validity", Cluster: cluster.Name, Host: name, Expected: expected, Istio: oneLine(err.Error())})
		}
		if seen[name] {
			fail("one object of this name", fmt.Errorf("there are two"))
			continue
		}
		seen[name] = true
		if o.GroupVersionKind().Group == "" {
			object, err := kubernetesObject(o)
			if err != nil {
				fail("an object that Kubernetes takes", err)
				continue
			}
			if service, ok := object.(*core.Service); ok {
				w.admitService(service)
			}
			kube = append(kube, object)
			continue
		}
		if err := checkSchema(o); err != nil {
			fail("an object that fits Istio's schema", err)
			continue
		}
		cfg, warnings, err := istioConfig(o)
		if err != nil {
			fail("an object that Istio's webhook takes", err)
			continue
		}
		for _, warning := range warnings {
			fail("no warning of Istio's webhook", warning)
		}
		configs = append(configs, cfg)
	}
	for _, message := range analyze(cluster, w, objects) {
		c.out.add(Verdict{Check: "validity", Cluster: cluster.Name, Host: message.object, Expected: "no message of Istio's analyzer", Istio: message.text})
	}
	return configs, kube
}

// Quiet turns off Istio's own log, which would drown the verdicts.
func Quiet() {
	for _, scope := range log.Scopes() {
		scope.SetOutputLevel(log.NoneLevel)
	}
}

// Report writes verdicts, at most a number of lines for each check.
func Report(w io.Writer, list []Verdict, perCheck int) {
	count := map[string]int{}
	for _, v := range list {
		count[v.Check]++
		if count[v.Check] <= perCheck {
			fmt.Fprintln(w, v)
		}
	}
	for _, check := range slices.Sorted(maps.Keys(count)) {
		if more := count[check] - perCheck; more > 0 {
			fmt.Fprintf(w, "%s: %d more of check %s\n", list[0].World, more, check)
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
