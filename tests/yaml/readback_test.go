// Package yaml reads back what the suite writes with the reader that kubectl, Argo CD and Flux use. The program's JSON
// of the same objects, which leaves no room for interpretation, says what has to come out.
package yaml

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Strings that YAML readers like to take for something else.
var awkward = strings.Split(`on,off,On,OFF,yes,no,Yes,NO,y,n,Y,N,true,false,True,FALSE,null,Null,NULL,~,`+
	`0,1,-1,+1,007,014,0o14,0x1F,0b11,1_000,1.0,1.,.5,1e3,1E-3,12:30,12:30:45,2024-01-02,2024-01-02T10:00:00Z,`+
	`.inf,-.inf,.nan,.NaN,=,<<,-,--,---,...,?,:,#,a #b,a: b,a:b,a:,:a,- a,? a,&a,*a,!a,!!str,|,>,%a,@a,`+"`a"+`,{,},[,],{a},[a],`+
	`'a','',"a",\a,/#x,/a?b=c#d,*.json,${A},$(A),{{ .A }}, a,a ,  a  ,é,日本語,😀,a\tb`, ",")

// Long, so that a writer might fold it; and with everything that a folded line could lose.
var long = strings.Repeat("word: [x] #y 'z' \"q\"  ", 40) + "end"

// Whether a string may stand where names of headers and labels stand.
func isName(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~|`'*+!#$%&^") == ""
}

func isLabel(text string) bool {
	inner := strings.Trim(text, "-_.")
	return inner == text && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

type object = map[string]any
type list = []any

func document(kind, namespace, name string, spec object) object {
	metadata := object{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return object{"apiVersion": "meshintent.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
}

// A fleet in which every awkward string is a header's value, a header's name, a label's key and value, a path and a
// text to compare with, wherever each may be one.
func fleet() []object {
	set, labels := object{}, object{"app": "b"}
	paths, matches := list{}, list{}
	for index, text := range append(awkward, long) {
		set[fmt.Sprintf("x-value-%d", index)] = strings.ReplaceAll(text, "\\t", " ")
		if isName(text) {
			set[strings.ToLower(text)] = "name"
		}
		if isLabel(text) {
			labels[fmt.Sprintf("value-%d", index)] = text
			if text != "" {
				labels[text] = "key"
			}
		}
		if text != "" && len(matches) < 90 {
			matches = append(matches, object{"headers": object{"x-try": object{"exact": text}}, "path": object{"exact": "/" + inPath(text)}})
		}
		if !strings.ContainsAny(text, "*{} \t") {
			paths = append(paths, "/"+inPath(text))
		}
	}
	cluster := func(name, address string) object {
		return document("Cluster", "", name, object{
			"region": "here", "network": name, "mesh": object{"trustDomain": name + ".example"},
			"gateway": object{"address": address, "selector": object{"on": "yes", "1": ""}},
		})
	}
	ports := list{object{"name": "http", "port": 8080}}
	return []object{
		cluster("one", "192.0.2.1"), cluster("two", "192.0.2.2"),
		document("MeshService", "on", "a", object{"clusters": "all", "ports": ports, "dependsOn": list{object{"service": "b"}}}),
		document("MeshService", "on", "b", object{
			"clusters": "all", "ports": ports, "workload": object{"selector": labels},
			"expose": object{"hostnames": list{"no.mesh.example", "1.2e3.example"}},
		}),
		document("TrafficPolicy", "on", "headers", object{
			"to": object{"service": "b"}, "headers": object{"request": object{"set": set}, "response": object{"add": set}},
		}),
		document("TrafficPolicy", "on", "matches", object{
			"to": object{"service": "b"}, "match": matches, "timeout": "1s",
		}),
		document("AccessPolicy", "on", "paths", object{
			"to": object{"service": "b"}, "allow": list{object{"from": list{"dependents"}, "paths": paths}},
		}),
	}
}

// A path ends before these two.
func inPath(text string) string {
	return strings.NewReplacer("?", "", "#", "").Replace(text)
}

func program(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("MESH_BIN_DIR")
	if folder == "" {
		t.Fatal("MESH_BIN_DIR does not say where the programs are; tests/run sets it")
	}
	return filepath.Join(folder, "kubectl-mesh")
}

func render(t *testing.T, fleet, cluster, form string) []byte {
	t.Helper()
	command := exec.Command(program(t), "render", "-f", fleet, "--cluster", cluster, "-o", form)
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return output
}

// readBack compares the YAML of a cluster with its JSON and returns how many strings were compared.
func readBack(t *testing.T, fleet, cluster string) int {
	t.Helper()
	var expected any
	if err := json.Unmarshal(render(t, fleet, cluster, "json"), &expected); err != nil {
		t.Fatal(err)
	}
	items, ok := expected.(object)["items"].(list)
	if !ok {
		items = list{expected}
	}
	parts := strings.Split(string(render(t, fleet, cluster, "yaml")), "\n---\n")
	if len(parts) != len(items) {
		t.Fatalf("%d documents, %d objects", len(parts), len(items))
	}
	count := 0
	for index, part := range parts {
		var actual any
		if err := yaml.UnmarshalStrict([]byte(part), &actual); err != nil {
			t.Fatalf("%v in\n%s", err, part)
		}
		if !reflect.DeepEqual(actual, items[index]) {
			t.Errorf("%s: YAML is read as %v, JSON as %v", cluster, actual, items[index])
		}
		count += stringsIn(actual)
	}
	return count
}

func stringsIn(value any) int {
	switch value := value.(type) {
	case string:
		return 1
	case list:
		sum := 0
		for _, item := range value {
			sum += stringsIn(item)
		}
		return sum
	case object:
		sum := 0
		for _, item := range value {
			sum += 1 + stringsIn(item)
		}
		return sum
	}
	return 0
}

func TestAwkwardStringsAreReadBackUnchanged(t *testing.T) {
	folder := t.TempDir()
	for index, document := range fleet() {
		content, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.json", index)), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, cluster := range []string{"one", "two"} {
		count := readBack(t, folder, cluster)
		if count < 5*len(awkward) {
			t.Errorf("only %d strings were compared", count)
		}
		// The strings are really there.
		output := string(render(t, folder, cluster, "json"))
		for _, text := range append(awkward, long) {
			quoted, _ := json.Marshal(strings.ReplaceAll(text, "\\t", " "))
			var escaped strings.Builder
			encoder := json.NewEncoder(&escaped)
			encoder.SetEscapeHTML(false)
			_ = encoder.Encode(strings.ReplaceAll(text, "\\t", " "))
			if !strings.Contains(output, strings.TrimSpace(escaped.String())) && !strings.Contains(output, string(quoted)) {
				t.Errorf("%q is nowhere", text)
			}
		}
	}
}

func TestGoldenWorldsAreReadBackUnchanged(t *testing.T) {
	fleets, err := filepath.Glob("../golden/*/fleet")
	if err != nil || len(fleets) < 4 {
		t.Fatalf("%v, %v", fleets, err)
	}
	for _, fleet := range fleets {
		clusters, err := os.ReadDir(filepath.Join(filepath.Dir(fleet), "rendered"))
		if err != nil {
			t.Fatal(err)
		}
		for _, cluster := range clusters {
			readBack(t, fleet, cluster.Name())
		}
	}
}
