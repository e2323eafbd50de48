package judge

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// World is everything that is judged together: the intents, what was rendered from them, and what is said about them.
type World struct {
	Name     string
	Fleet    *Fleet
	Rendered map[string][]*unstructured.Unstructured // by cluster
	Explain  []Row
	Access   []AccessRow
}

// Row is one entry of the effective fleet: where the requests of a caller go.
type Row struct {
	Caller struct {
		Cluster   string `json:"cluster"`
		Namespace string `json:"namespace"`
		Service   string `json:"service"`
	} `json:"caller"`
	Service ServiceID  `json:"service"`
	Match   matchItems `json:"match"` // nil in the row for requests that match nothing
	Shares  []Share    `json:"shares"`
	Tiers   [][]string `json:"tiers"`
	Removed []Removed  `json:"removed"`
}

// Share is a part of the traffic that prefers some clusters.
type Share struct {
	Clusters []string `json:"clusters"`
	Percent  int      `json:"percent"`
}

// Removed is a cluster that runs the service and that this caller never uses.
type Removed struct {
	Cluster string `json:"cluster"`
	Reason  string `json:"reason"`
}

// AccessRow says who may call one copy of a service.
type AccessRow struct {
	Service ServiceID      `json:"service"`
	Cluster string         `json:"cluster"`
	Mode    string         `json:"mode"`
	Callers []AccessCaller `json:"callers"`
}

// AccessCaller is one identity and what it may do.
type AccessCaller struct {
	Caller struct {
		Cluster        string `json:"cluster"`
		Namespace      string `json:"namespace"`
		Service        string `json:"service"`
		ServiceAccount string `json:"serviceAccount"`
	} `json:"caller"`
	Allowed bool         `json:"allowed"`
	Rules   []AccessRule `json:"rules"`
}

// AccessRule is a condition under which a request is admitted; an empty list admits everything.
type AccessRule struct {
	Ports   []int    `json:"ports"`
	Methods []string `json:"methods"`
	Paths   []string `json:"paths"`
}

func (r Row) callerID() ServiceID { return ServiceID{r.Caller.Namespace, r.Caller.Service} }

func (r Row) callerName() string { return r.callerID().String() + "@" + r.Caller.Cluster }

// removed are the clusters that are removed for another reason than the order, which has no say in where copies go.
func (r Row) removed() []string {
	return r.removedFor(func(reason string) bool { return reason != "order" })
}

// excluded are the clusters that a policy excludes.
func (r Row) excluded() []string {
	return r.removedFor(func(reason string) bool { return reason == "exclude" })
}

func (r Row) removedFor(is func(reason string) bool) []string {
	var out []string
	for _, removed := range r.Removed {
		if is(removed.Reason) {
			out = append(out, removed.Cluster)
		}
	}
	return out
}

// targets are all clusters that this row may send to.
func (r Row) targets() []string {
	var out []string
	for _, share := range r.Shares {
		out = append(out, share.Clusters...)
	}
	for _, tier := range r.Tiers {
		out = append(out, tier...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ReadWorld reads a world folder.
func ReadWorld(dir string) (*World, error) {
	w := &World{Name: filepath.Base(filepath.Clean(dir)), Rendered: map[string][]*unstructured.Unstructured{}}
	var err error
	if w.Fleet, err = ReadFleet(filepath.Join(dir, "fleet")); err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(dir, "explain.json"), &w.Explain); err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(dir, "access.json"), &w.Access); err != nil {
		return nil, err
	}
	for _, c := range w.Fleet.Clusters {
		if !c.Istio() {
			continue
		}
		objects, err := readRendered(filepath.Join(dir, "rendered", c.Name))
		if err != nil {
			return nil, err
		}
		w.Rendered[c.Name] = objects
	}
	return w, nil
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// readRendered reads the files that kustomization.yaml lists, and refuses files that it does not list: they would
// never reach the cluster.
func readRendered(dir string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	kustomization, err := parseObjects(string(text))
	if err != nil || len(kustomization) != 1 {
		return nil, fmt.Errorf("%s: not one kustomization (%v)", dir, err)
	}
	listed, _, err := unstructured.NestedStringSlice(kustomization[0].Object, "resources")
	if err != nil {
		return nil, err
	}
	if !slices.IsSorted(listed) {
		return nil, fmt.Errorf("%s: the resources of kustomization.yaml are not sorted", dir)
	}
	var present []string
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") || entry.Name() == "kustomization.yaml" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		present = append(present, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(present)
	if !slices.Equal(listed, present) {
		return nil, fmt.Errorf("%s: kustomization.yaml lists %v, the folder holds %v", dir, listed, present)
	}
	var out []*unstructured.Unstructured
	for _, name := range listed {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		objects, err := parseObjects(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
		out = append(out, objects...)
	}
	return out, nil
}
