package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"

	"istio.io/istio/manifests"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// customSchema is what the API server knows of one kind.
type customSchema struct {
	validator  validation.SchemaValidator
	structural *structuralschema.Structural
	rules      *cel.Validator
}

// schemas are Istio's CRDs, as its chart installs them.
var schemas = sync.OnceValues(func() (map[schema.GroupVersionKind]customSchema, error) {
	file, err := manifests.FS.Open("charts/base/files/crd-all.gen.yaml")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readSchemas(file)
})

func readSchemas(file fs.File) (map[schema.GroupVersionKind]customSchema, error) {
	out := map[schema.GroupVersionKind]customSchema{}
	decoder := kubeyaml.NewYAMLOrJSONDecoder(file, 512*1024)
	for {
		versioned := &apiextensionsv1.CustomResourceDefinition{}
		err := decoder.Decode(versioned)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		crd := &apiextensions.CustomResourceDefinition{}
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(versioned, crd, nil); err != nil {
			return nil, err
		}
		for _, version := range crd.Spec.Versions {
			read, err := newSchema(crd, version)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", crd.Name, version.Name, err)
			}
			out[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}] = read
		}
	}
}

func newSchema(crd *apiextensions.CustomResourceDefinition, version apiextensions.CustomResourceDefinitionVersion) (customSchema, error) {
	properties := version.Schema
	if properties == nil {
		properties = crd.Spec.Validation // where all versions have one
	}
	validator, _, err := validation.NewSchemaValidator(properties.OpenAPIV3Schema)
	if err != nil {
		return customSchema{}, err
	}
	structural, err := structuralschema.NewStructural(properties.OpenAPIV3Schema)
	if err != nil {
		return customSchema{}, err
	}
	return customSchema{validator, structural, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// checkSchema does what the API server does with a custom object: schema, lists, rules in CEL, and, as with strict
// validation, no unknown fields.
func checkSchema(o *unstructured.Unstructured) error {
	all, err := schemas()
	if err != nil {
		return err
	}
	s, ok := all[o.GroupVersionKind()]
	if !ok {
		return fmt.Errorf("%s is not a kind that Istio installs", o.GroupVersionKind())
	}
	content := o.DeepCopy().Object
	defaulting.Default(content, s.structural)
	if err := validation.ValidateCustomResource(nil, content, s.validator).ToAggregate(); err != nil {
		return err
	}
	if err := listtype.ValidateListSetsAndMaps(nil, s.structural, content).ToAggregate(); err != nil {
		return err
	}
	if failures, _ := s.rules.Validate(context.Background(), nil, s.structural, content, nil, celconfig.RuntimeCELCostBudget); len(failures) > 0 {
		return failures.ToAggregate()
	}
	for _, path := range pruning.PruneWithOptions(content, s.structural, false, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		// CRDs do not spell out metadata; Kubernetes reads it by itself.
		if !strings.HasPrefix(path, "metadata.") {
			return fmt.Errorf("unknown field %s", path)
		}
	}
	return nil
}
