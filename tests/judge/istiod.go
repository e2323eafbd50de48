package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/pkg/xds/endpoints"
	"istio.io/istio/pilot/test/xds"
	istiocluster "istio.io/istio/pkg/cluster"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/host"
	"istio.io/istio/pkg/config/labels"
	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/config/schema/gvk"
	"istio.io/istio/pkg/network"
	"istio.io/istio/pkg/test"
	"istio.io/istio/pkg/util/protomarshal"
	"k8s.io/apimachinery/pkg/runtime"
)

// Istiod is the control plane of one cluster, holding the rendered objects and the workloads, and nothing of any
// other cluster.
type Istiod struct {
	Cluster   *Cluster
	Workloads *Workloads
	mesh      *meshconfig.MeshConfig
	server    *xds.FakeDiscoveryServer
	proxies   map[string]*Proxy
}

// startIstiod loads a cluster and waits until everything that was loaded has reached the generators.
func startIstiod(t test.Failer, w *Workloads, m *meshconfig.MeshConfig, configs []config.Config, kube []runtime.Object) (*Istiod, error) {
	i := &Istiod{Cluster: w.Cluster, Workloads: w, mesh: m, proxies: map[string]*Proxy{}}
	i.server = xds.NewFakeDiscoveryServer(t, xds.FakeOptions{
		DefaultClusterName: istiocluster.ID(w.Cluster.Name),
		Configs:            configs,
		KubernetesObjects:  slices.Concat(w.Objects, kube),
		MeshConfig:         m,
	})
	return i, i.settle(configs)
}

// meshConfigOf is what the cluster's operator has to provide: other trust domains are accepted at the TLS layer
// through caCertificates, which, unlike aliases, does not make their identities equal to local ones.
func meshConfigOf(f *Fleet, c *Cluster) (*meshconfig.MeshConfig, error) {
	m := mesh.DefaultMeshConfig()
	m.TrustDomain = c.Mesh.TrustDomain
	m.TrustDomainAliases = c.Mesh.TrustDomainAliases
	m.RootNamespace = c.Mesh.Namespace
	foreign := map[string]bool{}
	for _, other := range f.Clusters {
		td := other.Mesh.TrustDomain
		if td != c.Mesh.TrustDomain && !slices.Contains(c.Mesh.TrustDomainAliases, td) {
			foreign[td] = true
		}
	}
	if len(foreign) > 0 {
		m.CaCertificates = []*meshconfig.MeshConfig_CertificateData{{
			CertificateData: &meshconfig.MeshConfig_CertificateData_Pem{Pem: "the fleet's root"},
			TrustDomains:    slices.Sorted(maps.Keys(foreign)),
		}}
	}
	// Through text, as an operator's ConfigMap would be, so that the result is what istiod reads.
	text, err := protomarshal.ToYAML(m)
	if err != nil {
		return nil, err
	}
	return mesh.ApplyMeshConfigDefaults(text)
}

// settleTimeout only bounds the wait for what will never come; a healthy control plane settles in milliseconds.
const settleTimeout = 10 * time.Second

// settle waits until the endpoints of every loaded object are in istiod's index. The test server announces that
// it is ready before its endpoint controllers have caught up.
func (i *Istiod) settle(configs []config.Config) error {
	want := i.expectedEndpoints(configs)
	deadline := time.Now().Add(settleTimeout)
	for {
		missing := i.missing(want)
		if missing == "" && i.server.Discovery.CommittedUpdates.Load() >= i.server.Discovery.InboundUpdates.Load() {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cluster %s: the control plane never settled: %s", i.Cluster.Name, missing)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

type indexKey struct{ host, namespace string }

// expectedEndpoints counts the endpoints that the loaded objects must produce.
func (i *Istiod) expectedEndpoints(configs []config.Config) map[indexKey]int {
	want := map[indexKey]int{}
	for _, c := range configs {
		if c.GroupVersionKind != gvk.ServiceEntry {
			continue
		}
		entry := c.Spec.(*networking.ServiceEntry)
		endpoints := len(entry.Endpoints)
		if entry.WorkloadSelector != nil {
			for _, pod := range i.Workloads.Pods {
				if pod.Namespace == c.Namespace && labels.Instance(entry.WorkloadSelector.Labels).SubsetOf(pod.Labels) {
					endpoints++
				}
			}
		}
		for _, host := range entry.Hosts {
			want[indexKey{host, c.Namespace}] += endpoints * len(entry.Ports)
		}
	}
	for _, pod := range i.Workloads.Pods {
		want[indexKey{pod.Copy.FQDN(), pod.Namespace}] += len(pod.Copy.Ports)
	}
	return want
}

func (i *Istiod) missing(want map[indexKey]int) string {
	known := i.server.PushContext().ServiceIndex.HostnameAndNamespace
	for key, count := range want {
		if known[host.Name(key.host)][key.namespace] == nil {
			return key.host + " is not in the push context"
		}
		if have := i.indexed(key); have < count {
			return fmt.Sprintf("%d of %d endpoints of %s", have, count, key.host)
		}
	}
	return ""
}

func (i *Istiod) indexed(key indexKey) int {
	shards, ok := i.server.Discovery.Env.EndpointIndex.ShardsForService(key.host, key.namespace)
	if !ok {
		return 0
	}
	shards.RLock()
	defer shards.RUnlock()
	count := 0
	for _, shard := range shards.Shards {
		count += len(shard)
	}
	return count
}

// Proxy is the Envoy configuration that istiod generates for one proxy.
type Proxy struct {
	Istiod    *Istiod
	Pod       *Pod
	Listeners []*listenerpb.Listener
	Clusters  map[string]*clusterpb.Cluster
	Names     map[string][]string // answers of the sidecar's DNS, if it captures DNS

	model     *model.Proxy
	routes    map[string]*routepb.RouteConfiguration
	endpoints map[string][]Endpoint
	gates     map[*listenerpb.FilterChain]*gate
}

// Sidecar generates the configuration of a pod's sidecar, once.
func (i *Istiod) Sidecar(pod *Pod) *Proxy {
	return i.proxy(pod, &model.Proxy{
		Type:     model.SidecarProxy,
		Metadata: &model.NodeMetadata{DNSCapture: model.StringBool(i.Cluster.Mesh.DNSCapture)},
	})
}

// GatewayProxy generates the configuration of the east-west gateway, which sees only its own network.
func (i *Istiod) GatewayProxy(pod *Pod) *Proxy {
	return i.proxy(pod, &model.Proxy{
		Type:     model.Router,
		Metadata: &model.NodeMetadata{RequestedNetworkView: []string{i.Cluster.Network}},
	})
}

func (i *Istiod) proxy(pod *Pod, m *model.Proxy) *Proxy {
	key := pod.Namespace + "/" + pod.Name
	if p, ok := i.proxies[key]; ok {
		return p
	}
	podLabels := maps.Clone(pod.Labels)
	podLabels["topology.istio.io/cluster"] = i.Cluster.Name
	podLabels["topology.istio.io/network"] = i.Cluster.Network
	podLabels["topology.kubernetes.io/region"] = i.Cluster.Region
	podLabels["topology.kubernetes.io/zone"] = pod.Zone
	m.ID = pod.Name + "." + pod.Namespace
	m.ConfigNamespace = pod.Namespace
	m.IPAddresses = []string{pod.IP}
	m.Labels = podLabels
	m.Locality = &corepb.Locality{Region: i.Cluster.Region, Zone: pod.Zone}
	m.Metadata.Namespace = pod.Namespace
	m.Metadata.ClusterID = istiocluster.ID(i.Cluster.Name)
	m.Metadata.Network = network.ID(i.Cluster.Network)
	m.Metadata.Labels = podLabels
	m.Metadata.IstioVersion = proxyVersion(i.Cluster.Mesh.Version)
	p := &Proxy{Istiod: i, Pod: pod, model: i.server.SetupProxy(m), Clusters: map[string]*clusterpb.Cluster{},
		endpoints: map[string][]Endpoint{}, gates: map[*listenerpb.FilterChain]*gate{}}
	p.Listeners = i.server.Listeners(p.model)
	for _, c := range i.server.Clusters(p.model) {
		p.Clusters[c.Name] = c
	}
	if m.Type == model.SidecarProxy {
		p.Names = map[string][]string{}
		for name, info := range i.server.ConfigGen.BuildNameTable(p.model, i.server.PushContext()).GetTable() {
			p.Names[name] = info.GetIps()
		}
	}
	i.proxies[key] = p
	return p
}

func proxyVersion(version string) string {
	switch strings.Count(version, ".") {
	case 0:
		return "1.31.0"
	case 1:
		return version + ".0"
	}
	return version
}

// Routes generates the HTTP routes, once.
func (p *Proxy) Routes() map[string]*routepb.RouteConfiguration {
	if p.routes == nil {
		p.routes = map[string]*routepb.RouteConfiguration{}
		for _, rc := range p.Istiod.server.RoutesFromListeners(p.model, p.Listeners) {
			p.routes[rc.Name] = rc
		}
	}
	return p.routes
}

// loadAssignment generates the endpoints of an EDS cluster.
func (p *Proxy) loadAssignment(name string) *endpointpb.ClusterLoadAssignment {
	builder := endpoints.NewEndpointBuilder(name, p.model, p.Istiod.server.PushContext())
	return builder.BuildClusterLoadAssignment(p.Istiod.server.Discovery.Env.EndpointIndex)
}

func hasListenerFilter(l *listenerpb.Listener, name string) bool {
	return slices.ContainsFunc(l.ListenerFilters, func(f *listenerpb.ListenerFilter) bool { return f.Name == name })
}
