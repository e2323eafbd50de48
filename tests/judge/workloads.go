package judge

import (
	"fmt"
	"maps"
	"slices"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Pod is a running workload of the fleet.
type Pod struct {
	Copy      Copy // zero for a gateway
	Name      string
	Namespace string
	IP        string
	Zone      string
	Labels    map[string]string
}

// Workloads are the Kubernetes objects that one cluster has before anything is rendered into it.
type Workloads struct {
	Cluster    *Cluster
	Namespaces []string
	Pods       []*Pod
	Gateways   []*Pod
	ClusterIPs map[string]string // of Services, by their full name
	Objects    []runtime.Object
}

// podsPerCopy is two, in two zones: with one pod, or one zone, locality failover by node would look like the
// failover that was asked for.
const podsPerCopy = 2

// newWorkloads builds the world of a cluster. The defaults of the API server are filled in, because the analyzer
// and the port mapping answer differently without them.
func newWorkloads(f *Fleet, c *Cluster) *Workloads {
	index := slices.Index(f.Clusters, c)
	w := &Workloads{Cluster: c, ClusterIPs: map[string]string{}}
	zones := []string{c.Zone, c.Region + "-zone-2"}
	if c.Zone == "" {
		zones[0] = c.Region + "-zone-1"
	}
	for i, zone := range zones {
		w.Objects = append(w.Objects, &core.Node{ObjectMeta: meta.ObjectMeta{Name: fmt.Sprintf("node-%d", i),
			Labels: map[string]string{"topology.kubernetes.io/region": c.Region, "topology.kubernetes.io/zone": zone}}})
	}
	copies := f.CopiesIn(c.Name)
	namespaces := map[string]bool{c.Mesh.Namespace: true, c.Mesh.ImportNamespace: true}
	if c.Gateway != nil {
		namespaces[c.Gateway.Namespace] = true
	}
	injected := map[string]bool{}
	for _, cp := range copies {
		namespaces[cp.Service.ID.Namespace], injected[cp.Service.ID.Namespace] = true, true
	}
	w.Namespaces = slices.Sorted(maps.Keys(namespaces))
	for _, name := range w.Namespaces {
		labels := map[string]string{"kubernetes.io/metadata.name": name}
		if injected[name] {
			labels["istio-injection"] = "enabled"
		}
		w.Objects = append(w.Objects, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name, Labels: labels}})
	}
	for i, cp := range copies {
		var pods []*Pod
		for n := range podsPerCopy {
			pod := &Pod{Copy: cp, Name: fmt.Sprintf("%s-%d", cp.KubeName, n), Namespace: cp.Service.ID.Namespace,
				IP: fmt.Sprintf("10.%d.%d.%d", index+10, i+1, n+1), Zone: zones[n], Labels: podLabels(cp)}
			pods = append(pods, pod)
			w.Objects = append(w.Objects, podObject(pod, n, cp.Account, containerPorts(cp)))
		}
		w.Pods = append(w.Pods, pods...)
		w.addService(cp.KubeName, cp.Service.ID.Namespace, fmt.Sprintf("172.20.%d.%d", index, i+1), core.ServiceTypeClusterIP, cp.Selector, servicePorts(cp), pods)
	}
	if c.Gateway != nil {
		labels := maps.Clone(c.Gateway.Selector)
		labels["security.istio.io/tlsMode"] = "istio"
		pod := &Pod{Name: "eastwest-0", Namespace: c.Gateway.Namespace, IP: fmt.Sprintf("10.%d.250.1", index+10), Zone: zones[0], Labels: labels}
		w.Gateways = append(w.Gateways, pod)
		w.Objects = append(w.Objects, podObject(pod, 0, "eastwest", nil))
		port := core.ServicePort{Name: "tls", Port: int32(c.Gateway.Port), TargetPort: intstr.FromInt(c.Gateway.Port), Protocol: core.ProtocolTCP}
		w.addService("eastwest", c.Gateway.Namespace, fmt.Sprintf("172.20.%d.250", index), core.ServiceTypeLoadBalancer, c.Gateway.Selector, []core.ServicePort{port}, w.Gateways)
	}
	return w
}

// PodAt finds the pod with an address.
func (w *Workloads) PodAt(ip string) *Pod {
	for _, pod := range slices.Concat(w.Pods, w.Gateways) {
		if pod.IP == ip {
			return pod
		}
	}
	return nil
}

// PodsOf lists the pods of a service in this cluster.
func (w *Workloads) PodsOf(id ServiceID) []*Pod {
	var out []*Pod
	for _, pod := range w.Pods {
		if pod.Copy.Service.ID == id {
			out = append(out, pod)
		}
	}
	return out
}

func podLabels(cp Copy) map[string]string {
	labels := map[string]string{
		"security.istio.io/tlsMode":           "istio",
		"service.istio.io/canonical-name":     cp.KubeName,
		"service.istio.io/canonical-revision": "latest",
	}
	maps.Copy(labels, cp.Selector)
	return labels
}

func containerPorts(cp Copy) []core.ContainerPort {
	var out []core.ContainerPort
	for _, p := range cp.Ports {
		out = append(out, core.ContainerPort{Name: p.Name, ContainerPort: int32(p.TargetPort), Protocol: core.ProtocolTCP})
	}
	return out
}

func servicePorts(cp Copy) []core.ServicePort {
	var out []core.ServicePort
	for _, p := range cp.Ports {
		protocol := p.appProtocol()
		out = append(out, core.ServicePort{Name: p.Name, Port: int32(p.Port), TargetPort: intstr.FromInt(p.TargetPort),
			Protocol: core.ProtocolTCP, AppProtocol: &protocol})
	}
	return out
}

func podObject(pod *Pod, node int, account string, ports []core.ContainerPort) *core.Pod {
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels},
		Spec: core.PodSpec{ServiceAccountName: account, NodeName: fmt.Sprintf("node-%d", node), Containers: []core.Container{
			{Name: "app", Image: "example/app", Ports: ports},
			// The analyzer asks whether the sidecar was injected.
			{Name: "istio-proxy", Image: "example/proxyv2"},
		}},
		Status: core.PodStatus{Phase: core.PodRunning, PodIP: pod.IP, PodIPs: []core.PodIP{{IP: pod.IP}},
			Conditions: []core.PodCondition{{Type: core.PodReady, Status: core.ConditionTrue}}},
	}
}

func (w *Workloads) addService(name, namespace, ip string, kind core.ServiceType, selector map[string]string, ports []core.ServicePort, pods []*Pod) {
	w.ClusterIPs[name+"."+namespace+".svc.cluster.local"] = ip
	service := &core.Service{
		ObjectMeta: meta.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       core.ServiceSpec{Type: kind, ClusterIP: ip, ClusterIPs: []string{ip}, Selector: selector, Ports: ports},
	}
	// Nothing makes EndpointSlices in Istio's test server.
	slice := &discovery.EndpointSlice{
		ObjectMeta:  meta.ObjectMeta{Name: name + "-slice", Namespace: namespace, Labels: map[string]string{discovery.LabelServiceName: name}},
		AddressType: discovery.AddressTypeIPv4,
	}
	ready, protocol := true, core.ProtocolTCP
	for _, p := range ports {
		target := p.TargetPort.IntVal
		slice.Ports = append(slice.Ports, discovery.EndpointPort{Name: &p.Name, Port: &target, Protocol: &protocol, AppProtocol: p.AppProtocol})
	}
	for _, pod := range pods {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{
			Addresses:  []string{pod.IP},
			Conditions: discovery.EndpointConditions{Ready: &ready},
			TargetRef:  &core.ObjectReference{Kind: "Pod", Name: pod.Name, Namespace: namespace},
		})
	}
	w.Objects = append(w.Objects, service, slice)
}
