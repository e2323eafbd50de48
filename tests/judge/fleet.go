package judge

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Fleet is what the documents say, read independently of the renderer: a shared misreading would prove nothing.
type Fleet struct {
	Clusters []*Cluster
	Services []*Service
	Access   []AccessPolicy
	Guards   []Guardrail
	Traffic  []TrafficPolicy
}

// Cluster is one document of that kind, with its defaults filled in.
type Cluster struct {
	Name   string
	Labels map[string]string
	Region string
	Zone   string

	Network string
	Drain   bool
	Mesh    Mesh
	Gateway *Gateway
}

// Mesh is the service mesh of a cluster.
type Mesh struct {
	Type               string
	Version            string
	TrustDomain        string
	TrustDomainAliases []string
	Namespace          string
	ImportNamespace    string
	DNSCapture         bool
}

// Gateway is where other clusters reach a cluster.
type Gateway struct {
	Address   oneOrMore
	Port      int
	Namespace string
	Selector  map[string]string
}

// ServiceID names a service of the fleet.
type ServiceID struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (id ServiceID) String() string { return id.Namespace + "/" + id.Name }

// Service is a MeshService together with where it runs.
type Service struct {
	ID        ServiceID
	Labels    map[string]string
	Exposed   bool
	Hostnames []string
	DependsOn []Dependency
	Egress    string
	Ports     []Port          // as callers see them
	Copies    map[string]Copy // by cluster
}

// Copy is a service in one cluster, where it may have another name, other ports and another identity.
type Copy struct {
	Service  *Service
	Cluster  *Cluster
	KubeName string
	Ports    []Port
	Selector map[string]string
	Account  string
}

// Port is a port of a Kubernetes Service.
type Port struct {
	Name       string `json:"name"`
	Port       int    `json:"port"`
	TargetPort int    `json:"targetPort"`
	Protocol   string `json:"protocol"`
}

// HTTP tells whether a proxy reads requests on this port.
func (p Port) HTTP() bool {
	switch strings.ToUpper(p.Protocol) {
	case "HTTP", "HTTP2", "GRPC", "GRPC-WEB":
		return true
	}
	return false
}

// appProtocol says it in Kubernetes' words, so that nothing depends on how a port is called.
func (p Port) appProtocol() string { return strings.ToLower(p.Protocol) }

// Dependency is what a service calls, in the clusters where it says so.
type Dependency struct {
	Service  ServiceID
	Clusters []string
}

// AccessPolicy is read only as far as needed to know which strangers it admits.
type AccessPolicy struct {
	Namespace string
	Default   bool
	To        *ServiceID
	From      []Admission
}

// Guardrail carries the identities that are always admitted, to services with some labels.
type Guardrail struct {
	For         map[string]string
	AlwaysAllow []Admission
}

// Admission is an item that admits more than a named service: a namespace, an account, or anybody of some clusters.
type Admission struct {
	Dependents     bool
	Service        string
	ServiceAccount string
	Namespace      string
	Clusters       []string // nil: every cluster
}

// Identity is what a workload's certificate says.
func (c Copy) Identity() string {
	return spiffe(c.Cluster.Mesh.TrustDomain, c.Service.ID.Namespace, c.Account)
}

// FQDN is the Kubernetes name of this copy.
func (c Copy) FQDN() string { return c.KubeName + "." + c.Service.ID.Namespace + ".svc.cluster.local" }

// PortFor finds the copy's own port for a number that callers use.
func (c Copy) PortFor(number int) (Port, error) {
	for _, base := range c.Service.Ports {
		if base.Port == number {
			return c.portNamed(base.Name)
		}
	}
	return Port{}, fmt.Errorf("service %s has no port %d", c.Service.ID, number)
}

func (c Copy) portNamed(name string) (Port, error) {
	for _, port := range c.Ports {
		if port.Name == name {
			return port, nil
		}
	}
	return Port{}, fmt.Errorf("service %s has no port named %q in %s", c.Service.ID, name, c.Cluster.Name)
}

func spiffe(trustDomain, namespace, account string) string {
	return "spiffe://" + trustDomain + "/ns/" + namespace + "/sa/" + account
}

// Istio tells whether the cluster's mesh is one that this judge can load.
func (c *Cluster) Istio() bool { return c.Mesh.Type == "istio" }

// Cluster finds a cluster by name.
func (f *Fleet) Cluster(name string) *Cluster {
	for _, c := range f.Clusters {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Service finds a service by name.
func (f *Fleet) Service(id ServiceID) *Service {
	for _, s := range f.Services {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// CopiesIn lists what runs in a cluster, in the order of the services.
func (f *Fleet) CopiesIn(cluster string) []Copy {
	var out []Copy
	for _, s := range f.Services {
		if c, ok := s.Copies[cluster]; ok {
			out = append(out, c)
		}
	}
	return out
}

// clusterNames lists all clusters in their order.
func (f *Fleet) clusterNames() []string {
	names := make([]string, len(f.Clusters))
	for i, c := range f.Clusters {
		names[i] = c.Name
	}
	return names
}

// oneOrMore reads a value or a list of values.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(o))
}

// clusterSet is `all`, or a list of names and label maps.
type clusterSet struct {
	all   bool
	items []any
}

func (s *clusterSet) UnmarshalJSON(data []byte) error {
	var word string
	if json.Unmarshal(data, &word) == nil {
		if word != "all" {
			return fmt.Errorf("cluster set %q", word)
		}
		s.all = true
		return nil
	}
	return json.Unmarshal(data, &s.items)
}

// in resolves the set; a nil set means every cluster, as it does wherever a document may leave it out.
func (s *clusterSet) in(f *Fleet) []string {
	var out []string
	for _, c := range f.Clusters {
		if s == nil || s.all || slices.ContainsFunc(s.items, func(item any) bool { return c.selectedBy(item) }) {
			out = append(out, c.Name)
		}
	}
	return out
}

func (c *Cluster) selectedBy(item any) bool {
	switch want := item.(type) {
	case string:
		return want == c.Name
	case map[string]any:
		for key, value := range want {
			have := c.Labels[key]
			switch key {
			case "region":
				have = c.Region
			case "zone":
				have = c.Zone
			case "network":
				have = c.Network
			}
			if have != fmt.Sprint(value) {
				return false
			}
		}
		return true
	}
	return false
}

type workload struct {
	Selector       map[string]string
	ServiceAccount string
}

type meshService struct {
	Clusters *clusterSet
	Ports    []Port
	Workload workload
	Expose   *struct{ Hostnames []string }
	// An item is a name or a map.
	DependsOn []json.RawMessage
	Egress    string
	Variants  []struct {
		Clusters *clusterSet
		Service  string
		Ports    []Port
		Workload workload
	}
}

type location struct {
	Namespace, Name string
	Clusters        *clusterSet
	ServiceAccounts []string
	Selector        map[string]string
	Ports           []Port
}

type admission struct {
	Service, ServiceAccount, Namespace string
	Clusters                           *clusterSet
}

// ReadFleet reads every document below a folder.
func ReadFleet(dir string) (*Fleet, error) {
	documents, err := readDocuments(dir)
	if err != nil {
		return nil, err
	}
	f := &Fleet{}
	var locations []location
	// Clusters first: everything else names them.
	for _, d := range documents {
		switch d.GetKind() {
		case "Cluster":
			if err := f.addCluster(d); err != nil {
				return nil, err
			}
		case "ServiceLocations":
			var spec struct{ Services []location }
			if err := decodeSpec(d, &spec); err != nil {
				return nil, err
			}
			locations = append(locations, spec.Services...)
		}
	}
	for _, d := range documents {
		var err error
		switch d.GetKind() {
		case "MeshService":
			err = f.addService(d, locations)
		case "TrafficPolicy":
			err = f.addTraffic(d)
		case "AccessPolicy":
			err = f.addAccess(d)
		case "Guardrail":
			err = f.addGuardrail(d)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(f.Clusters, func(a, b *Cluster) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(f.Services, func(a, b *Service) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return f, nil
}

func readDocuments(dir string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
		default:
			return nil
		}
		if strings.HasPrefix(entry.Name(), ".") || entry.Name() == "kustomization.yaml" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		objects, err := parseObjects(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, o := range objects {
			if strings.HasPrefix(o.GetAPIVersion(), "meshintent.dev/") {
				out = append(out, o)
			}
		}
		return nil
	})
	return out, err
}

func decodeSpec(d *unstructured.Unstructured, into any) error {
	text, err := json.Marshal(d.Object["spec"])
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s %s/%s: %w", d.GetKind(), d.GetNamespace(), d.GetName(), err)
	}
	return nil
}

func (f *Fleet) addCluster(d *unstructured.Unstructured) error {
	c := &Cluster{Mesh: Mesh{DNSCapture: true}}
	if err := decodeSpec(d, c); err != nil {
		return err
	}
	c.Name, c.Labels = d.GetName(), d.GetLabels()
	setDefault(&c.Mesh.Type, "istio")
	setDefault(&c.Mesh.TrustDomain, "cluster.local")
	setDefault(&c.Mesh.Namespace, "istio-system")
	setDefault(&c.Mesh.ImportNamespace, "istio-system")
	if c.Gateway != nil {
		setDefault(&c.Gateway.Namespace, "istio-system")
		if c.Gateway.Port == 0 {
			c.Gateway.Port = 15443
		}
		if c.Gateway.Selector == nil {
			c.Gateway.Selector = map[string]string{"istio": "eastwestgateway"}
		}
	}
	f.Clusters = append(f.Clusters, c)
	return nil
}

func (f *Fleet) addService(d *unstructured.Unstructured, locations []location) error {
	var spec meshService
	if err := decodeSpec(d, &spec); err != nil {
		return err
	}
	s := &Service{ID: ServiceID{d.GetNamespace(), d.GetName()}, Labels: d.GetLabels(), Egress: spec.Egress, Ports: spec.Ports, Copies: map[string]Copy{}}
	setDefault(&s.Egress, "open")
	if spec.Expose != nil {
		s.Exposed = true
		for _, name := range spec.Expose.Hostnames {
			s.Hostnames = append(s.Hostnames, strings.ToLower(name))
		}
	}
	for _, raw := range spec.DependsOn {
		dependency, err := f.dependency(raw, s.ID.Namespace)
		if err != nil {
			return fmt.Errorf("MeshService %s: %w", s.ID, err)
		}
		s.DependsOn = append(s.DependsOn, dependency)
	}
	var runs []string
	if spec.Clusters != nil {
		runs = spec.Clusters.in(f)
	}
	for _, l := range locations {
		if l.Namespace != s.ID.Namespace || l.Name != s.ID.Name {
			continue
		}
		if spec.Clusters == nil {
			runs = append(runs, l.Clusters.in(f)...)
		}
		if len(s.Ports) == 0 {
			s.Ports = l.Ports
		}
		if spec.Workload.Selector == nil {
			spec.Workload.Selector = l.Selector
		}
		if spec.Workload.ServiceAccount == "" && len(l.ServiceAccounts) == 1 {
			spec.Workload.ServiceAccount = l.ServiceAccounts[0]
		}
	}
	if spec.Workload.Selector == nil {
		spec.Workload.Selector = map[string]string{"app": s.ID.Name}
	}
	setDefault(&spec.Workload.ServiceAccount, s.ID.Name)
	fillPorts(s.Ports)
	for _, name := range runs {
		c := Copy{Service: s, Cluster: f.Cluster(name), KubeName: s.ID.Name, Ports: s.Ports,
			Selector: spec.Workload.Selector, Account: spec.Workload.ServiceAccount}
		for _, v := range spec.Variants {
			if !slices.Contains(v.Clusters.in(f), name) {
				continue
			}
			setIf(&c.KubeName, v.Service)
			setIf(&c.Account, v.Workload.ServiceAccount)
			if v.Workload.Selector != nil {
				c.Selector = v.Workload.Selector
			}
			if v.Ports != nil {
				c.Ports = variantPorts(v.Ports, s.Ports)
			}
		}
		s.Copies[name] = c
	}
	f.Services = append(f.Services, s)
	return nil
}

func (f *Fleet) dependency(raw json.RawMessage, namespace string) (Dependency, error) {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return Dependency{ServiceID{namespace, name}, f.clusterNames()}, nil
	}
	var item struct {
		Service, Namespace string
		Clusters           *clusterSet
	}
	if err := json.Unmarshal(raw, &item); err != nil {
		return Dependency{}, err
	}
	setDefault(&item.Namespace, namespace)
	return Dependency{ServiceID{item.Namespace, item.Service}, item.Clusters.in(f)}, nil
}

func (f *Fleet) addTraffic(d *unstructured.Unstructured) error {
	var spec struct {
		Default bool
		From    []admission
		To      struct{ Service, Namespace string }
		Match   matchItems
		Settings
	}
	if err := decodeSpec(d, &spec); err != nil {
		return err
	}
	setDefault(&spec.To.Namespace, d.GetNamespace())
	p := TrafficPolicy{Default: spec.Default, To: ServiceID{spec.To.Namespace, spec.To.Service}, Match: spec.Match, Settings: spec.Settings}
	for _, item := range spec.From {
		p.From = append(p.From, f.admission(item, d.GetNamespace()))
	}
	f.Traffic = append(f.Traffic, p)
	return nil
}

func (f *Fleet) addAccess(d *unstructured.Unstructured) error {
	var spec struct {
		Default bool
		To      *struct{ Service, Namespace string }
		Allow   []struct{ From []json.RawMessage }
	}
	if err := decodeSpec(d, &spec); err != nil {
		return err
	}
	p := AccessPolicy{Namespace: d.GetNamespace(), Default: spec.Default}
	if spec.To != nil {
		setDefault(&spec.To.Namespace, p.Namespace)
		p.To = &ServiceID{spec.To.Namespace, spec.To.Service}
	}
	for _, rule := range spec.Allow {
		for _, raw := range rule.From {
			var word string
			if json.Unmarshal(raw, &word) == nil {
				p.From = append(p.From, Admission{Dependents: true})
				continue
			}
			var item admission
			if err := json.Unmarshal(raw, &item); err != nil {
				return err
			}
			p.From = append(p.From, f.admission(item, p.Namespace))
		}
	}
	f.Access = append(f.Access, p)
	return nil
}

func (f *Fleet) addGuardrail(d *unstructured.Unstructured) error {
	var spec struct {
		Rules []struct {
			For         map[string]string
			AlwaysAllow []admission
		}
	}
	if err := decodeSpec(d, &spec); err != nil {
		return err
	}
	for _, rule := range spec.Rules {
		g := Guardrail{For: rule.For}
		for _, item := range rule.AlwaysAllow {
			g.AlwaysAllow = append(g.AlwaysAllow, f.admission(item, ""))
		}
		f.Guards = append(f.Guards, g)
	}
	return nil
}

func (f *Fleet) admission(item admission, namespace string) Admission {
	if item.Service != "" || item.ServiceAccount != "" {
		setDefault(&item.Namespace, namespace)
	}
	a := Admission{Service: item.Service, ServiceAccount: item.ServiceAccount, Namespace: item.Namespace}
	if item.Clusters != nil {
		a.Clusters = item.Clusters.in(f)
	}
	return a
}

// variantPorts fills in what a variant does not say: callers speak one protocol on a port, whatever serves it.
func variantPorts(ports, base []Port) []Port {
	for i := range ports {
		for _, b := range base {
			if b.Name == ports[i].Name {
				setDefault(&ports[i].Protocol, b.Protocol)
			}
		}
	}
	fillPorts(ports)
	return ports
}

func fillPorts(ports []Port) {
	for i := range ports {
		if ports[i].TargetPort == 0 {
			ports[i].TargetPort = ports[i].Port
		}
		setDefault(&ports[i].Protocol, "HTTP")
	}
}

func setDefault(to *string, value string) {
	if *to == "" {
		*to = value
	}
}

func setIf(to *string, value string) {
	if value != "" {
		*to = value
	}
}

// parseObjects reads a YAML stream strictly: a duplicate key is an error.
func parseObjects(text string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, part := range splitDocuments(text) {
		object := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(part), &object); err != nil {
			return nil, err
		}
		if len(object) == 0 {
			continue
		}
		// Through the unstructured codec, because CEL and Kubernetes want whole numbers as int64.
		encoded, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(encoded); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func splitDocuments(text string) []string {
	var out []string
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if strings.TrimRight(line, " \t\r") == "---" {
			out = append(out, strings.Join(lines, "\n"))
			lines = nil
			continue
		}
		lines = append(lines, line)
	}
	return append(out, strings.Join(lines, "\n"))
}
