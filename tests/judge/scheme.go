package judge

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// kindOf names the kind of a typed object, which Go's types leave empty.
func kindOf(o runtime.Object) schema.GroupVersionKind {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		panic(err) // only kinds that workloads.go builds come here
	}
	return kinds[0]
}
