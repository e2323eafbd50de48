package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"istio.io/istio/pilot/pkg/config/kube/crd"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/analysis/analyzers"
	"istio.io/istio/pkg/config/analysis/diag"
	"istio.io/istio/pkg/config/analysis/local"
	"istio.io/istio/pkg/config/resource"
	"istio.io/istio/pkg/config/schema/collections"
	"istio.io/istio/pkg/config/validation/agent"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// describe names an object as kubectl would.
func describe(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// allowedWarnings are warnings of the webhook that are understood and harmless; the reason stands beside each.
var allowedWarnings = []string{}

// istioConfig converts an object and validates it as the webhook does.
func istioConfig(o *unstructured.Unstructured) (config.Config, []error, error) {
	text, err := json.Marshal(o.Object)
	if err != nil {
		return config.Config{}, nil, err
	}
	parsed, unknown, err := crd.ParseInputs(string(text))
	if err != nil {
		return config.Config{}, nil, err
	}
	if len(parsed) != 1 || len(unknown) != 0 {
		return config.Config{}, nil, fmt.Errorf("not a kind that Istio knows")
	}
	schema, ok := collections.All.FindByGroupVersionAliasesKind(parsed[0].GroupVersionKind)
	if !ok {
		return config.Config{}, nil, fmt.Errorf("not a kind that Istio knows")
	}
	warning, err := schema.ValidateConfig(parsed[0])
	var warnings []error
	for _, w := range unwrapWarning(warning) {
		if !slices.ContainsFunc(allowedWarnings, func(allowed string) bool { return strings.Contains(w.Error(), allowed) }) {
			warnings = append(warnings, w)
		}
	}
	return parsed[0], warnings, err
}

func unwrapWarning(w agent.Warning) []error {
	if w == nil {
		return nil
	}
	if many, ok := w.(interface{ WrappedErrors() []error }); ok {
		return many.WrappedErrors()
	}
	return []error{w}
}

// kubernetesObject reads a core object strictly and fills in what the API server would.
func kubernetesObject(o *unstructured.Unstructured) (runtime.Object, error) {
	var object runtime.Object
	switch o.GetKind() {
	case "Service":
		object = &core.Service{}
	case "ConfigMap":
		object = &core.ConfigMap{}
	default:
		return nil, fmt.Errorf("kind %s is not one that this suite renders", o.GetKind())
	}
	text, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	return object, yaml.UnmarshalStrict(text, object)
}

// admitService gives a rendered Service what the API server would give it.
func (w *Workloads) admitService(s *core.Service) {
	if s.Spec.ClusterIP == "" {
		s.Spec.ClusterIP = fmt.Sprintf("172.21.%d.%d", len(w.ClusterIPs)/250, len(w.ClusterIPs)%250+1)
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	if s.Spec.Type == "" {
		s.Spec.Type = core.ServiceTypeClusterIP
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.Protocol == "" {
			p.Protocol = core.ProtocolTCP
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	w.ClusterIPs[s.Name+"."+s.Namespace+".svc.cluster.local"] = s.Spec.ClusterIP
}

type analysisMessage struct{ object, text string }

// analyze runs istioctl's analyzers over the cluster's workloads and rendered objects together. Only
// AddTestReaderKubeSource keeps Services, Pods and Namespaces in the input.
func analyze(cluster *Cluster, w *Workloads, objects []*unstructured.Unstructured) []analysisMessage {
	var out []analysisMessage
	fail := func(err error) []analysisMessage {
		return append(out, analysisMessage{"(analyzer)", oneLine(err.Error())})
	}
	var text strings.Builder
	for _, o := range w.Objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return fail(err)
		}
		typed := &unstructured.Unstructured{Object: content}
		typed.SetGroupVersionKind(kindOf(o))
		objects = append(slices.Clip(objects), typed)
	}
	for _, o := range objects {
		encoded, err := yaml.Marshal(o.Object)
		if err != nil {
			return fail(err)
		}
		text.WriteString("---\n")
		text.Write(encoded)
	}
	sa := local.NewIstiodAnalyzer(analyzers.AllCombined(), "", resource.Namespace(cluster.Mesh.Namespace), nil)
	if err := sa.AddTestReaderKubeSource([]local.ReaderSource{{Name: cluster.Name, Reader: strings.NewReader(text.String())}}); err != nil {
		return fail(err)
	}
	stop := make(chan struct{})
	defer close(stop)
	result, err := sa.Analyze(stop)
	if err != nil {
		return fail(err)
	}
	if len(result.SkippedAnalyzers) > 0 {
		return fail(fmt.Errorf("analyzers were skipped: %v", result.SkippedAnalyzers))
	}
	for _, m := range result.Messages {
		if m.Type.Level() == diag.Info {
			continue
		}
		where := ""
		if m.Resource != nil {
			where = m.Resource.Origin.FriendlyName()
		}
		out = append(out, analysisMessage{where, oneLine(m.String())})
	}
	return out
}
