// flux-build prints what Flux's kustomize-controller would apply: the controller's own steps from a folder to objects, in
// its order, with its library. Their caller in the controller and in the flux program needs modules that are not published.
//
//	flux-build KUSTOMIZATION FOLDER    a file that holds the Kustomization, and the folder that its path means
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	if err := build(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func build(file, folder string) error {
	kustomization, err := read(file)
	if err != nil {
		return err
	}
	if _, err := kustomize.NewGenerator(folder, kustomization).WriteFile(folder); err != nil {
		return err
	}
	resources, err := kustomize.SecureBuild(folder, folder, false)
	if err != nil {
		return err
	}
	for _, resource := range resources.Resources() {
		// Without variables the controller leaves this step out.
		if _, found, _ := unstructured.NestedMap(kustomization.Object, "spec", "postBuild"); found {
			replaced, err := kustomize.SubstituteVariables(context.Background(), nil, kustomization, resource,
				kustomize.SubstituteWithDryRun(true), kustomize.SubstituteWithStrict(true))
			if err != nil {
				return fmt.Errorf("%s: %w", resource.CurId(), err)
			}
			if replaced != nil {
				resource.ResetRNode(replaced)
			}
		}
	}
	text, err := resources.AsYaml()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

// read finds the Kustomization among the documents of a file.
func read(file string) (unstructured.Unstructured, error) {
	var found unstructured.Unstructured
	text, err := os.ReadFile(file)
	if err != nil {
		return found, err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		if err := decoder.Decode(&found.Object); errors.Is(err, io.EOF) {
			return found, fmt.Errorf("%s has no Kustomization", file)
		} else if err != nil {
			return found, err
		}
		if found.GetKind() == "Kustomization" {
			return found, nil
		}
		found.Object = nil
	}
}
