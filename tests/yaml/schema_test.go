package yaml

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// schema is what editors get: the file in the repository, which a test of the program keeps as it is printed.
func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	compiled, err := jsonschema.NewCompiler().Compile(filepath.Join("../../shared/schema", name))
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// documents are the documents of our API below a folder, as Go's reader sees them.
func documents(t *testing.T, folder string) map[string]any {
	t.Helper()
	found := map[string]any{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, part := range bytes.Split(content, []byte("\n---\n")) {
			converted, err := yaml.YAMLToJSONStrict(part)
			if err != nil {
				return err
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(converted))
			if err != nil {
				return err
			}
			found[path+"\n"+string(part)] = value
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestGoldenDocumentsFitTheSchema(t *testing.T) {
	all := schema(t, "mesh.schema.json")
	fleets, err := filepath.Glob("../golden/*/fleet")
	if err != nil || len(fleets) < 4 {
		t.Fatalf("%v, %v", fleets, err)
	}
	for _, fleet := range fleets {
		for name, document := range documents(t, fleet) {
			if err := all.Validate(document); err != nil {
				t.Errorf("%s\n%v", name, err)
			}
			kind := schema(t, document.(object)["kind"].(string)+".schema.json")
			if err := kind.Validate(document); err != nil {
				t.Errorf("%s\n%v", name, err)
			}
		}
	}
}

// What the program refuses for its shape alone, an editor with the schema refuses as well.
func TestCasesOfWrongShapeDoNotFitTheSchema(t *testing.T) {
	all := schema(t, "mesh.schema.json")
	for _, code := range []string{"MESH101", "MESH102", "MESH104", "MESH106"} {
		cases, err := filepath.Glob("../cases/" + code + "-*")
		if err != nil || len(cases) == 0 {
			t.Fatalf("%v, %v", cases, err)
		}
		for _, folder := range cases {
			// Go's reader takes `yes` for true, which is why the program refuses it; a schema cannot see it.
			if strings.HasSuffix(folder, "/MESH104-yes-for-true") {
				continue
			}
			wrong := 0
			for _, document := range documents(t, filepath.Join(folder, "fleet")) {
				if all.Validate(document) != nil {
					wrong++
				}
			}
			if wrong == 0 {
				t.Errorf("every document of %s fits the schema", folder)
			}
		}
	}
}

func TestTheSchemaIsTheOneThatIsPrinted(t *testing.T) {
	files, err := filepath.Glob("../../shared/schema/*.json")
	if err != nil || len(files) != 7 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		arguments := []string{"schema"}
		if kind := strings.TrimSuffix(filepath.Base(file), ".schema.json"); kind != "mesh" {
			arguments = append(arguments, kind)
		}
		printed, err := exec.Command(program(t), arguments...).Output()
		if err != nil {
			t.Fatal(err)
		}
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(file, printed, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(kept, printed) {
			t.Errorf("%s is not what `kubectl mesh schema` prints; UPDATE_GOLDEN=1 writes it", file)
		}
	}
}
