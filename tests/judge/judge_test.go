package judge_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"meshintent.dev/judge"
)

func TestMain(m *testing.M) {
	judge.Quiet()
	os.Exit(m.Run())
}

// TestOwnWorlds judges worlds that were written by hand: the judge itself is what this tests.
func TestOwnWorlds(t *testing.T) {
	expectAsIntended(t, []string{exampleDir(), filepath.Join("testdata", "kinds")})
}

// TestWorlds judges the worlds of the renderer.
func TestWorlds(t *testing.T) {
	folders, err := judge.FindWorlds(rendered(t))
	if err != nil {
		t.Fatal(err)
	}
	expectAsIntended(t, folders)
}

// rendered is what MESH_JUDGE_WORLDS names, separated by ':': folders with the worlds of tests/golden as they are rendered
// now. Without them nothing would be judged, so their absence is an error.
func rendered(t *testing.T) []string {
	t.Helper()
	folders := filepath.SplitList(os.Getenv("MESH_JUDGE_WORLDS"))
	if len(folders) == 0 {
		t.Fatal("MESH_JUDGE_WORLDS names no world; tests/run judge renders them and sets it")
	}
	return folders
}

func expectAsIntended(t *testing.T, folders []string) {
	t.Helper()
	for result := range judge.All(folders, runtime.NumCPU()) {
		if result.Err != nil {
			t.Errorf("%s: no judgement: %v", result.World, result.Err)
			continue
		}
		var lines strings.Builder
		judge.Report(&lines, result.Verdicts, 10)
		if lines.Len() > 0 {
			t.Error(lines.String())
		}
	}
}

// exampleDir is the example fleet: the one that MESH_JUDGE_EXAMPLE names, so that the mutations break what the
// renderer wrote, else the one that was written by hand.
func exampleDir() string {
	if dir := os.Getenv("MESH_JUDGE_EXAMPLE"); dir != "" {
		return dir
	}
	return filepath.Join("testdata", "example")
}
