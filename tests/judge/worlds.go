package judge

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// FindWorlds expands arguments: a world folder, a folder of world folders, or a file with a path on each line.
func FindWorlds(arguments []string) ([]string, error) {
	var out []string
	for _, argument := range arguments {
		info, err := os.Stat(argument)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			text, err := os.ReadFile(argument)
			if err != nil {
				return nil, err
			}
			listed, err := FindWorlds(strings.Fields(string(text)))
			if err != nil {
				return nil, err
			}
			out = append(out, listed...)
			continue
		}
		if isWorld(argument) {
			out = append(out, argument)
			continue
		}
		inside, err := filepath.Glob(filepath.Join(argument, "*", "explain.json"))
		if err != nil {
			return nil, err
		}
		if len(inside) == 0 {
			return nil, fmt.Errorf("%s is no world and holds none: a world has fleet/, rendered/, explain.json and access.json", argument)
		}
		for _, file := range inside {
			out = append(out, filepath.Dir(file))
		}
	}
	return out, nil
}

func isWorld(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "explain.json"))
	return err == nil
}

// Result is the judgement of one world.
type Result struct {
	World    string
	Verdicts []Verdict
	Err      error
	Seconds  float64
}

// MarshalJSON writes the error as text.
func (r Result) MarshalJSON() ([]byte, error) {
	out := struct {
		World    string    `json:"world"`
		Verdicts []Verdict `json:"verdicts"`
		Error    string    `json:"error,omitempty"`
		Seconds  float64   `json:"seconds"`
	}{r.World, r.Verdicts, "", r.Seconds}
	if r.Verdicts == nil {
		out.Verdicts = []Verdict{}
	}
	if r.Err != nil {
		out.Error = r.Err.Error()
	}
	return json.Marshal(out)
}

// All judges worlds, some at a time, and yields the results in the order of the folders.
func All(folders []string, parallel int) iter.Seq[Result] {
	results := make([]chan Result, len(folders))
	slots := make(chan struct{}, max(parallel, 1))
	for i := range folders {
		results[i] = make(chan Result, 1)
	}
	go func() {
		for i, folder := range folders {
			slots <- struct{}{}
			go func() {
				results[i] <- judgeFolder(folder)
				<-slots
			}()
		}
	}()
	return func(yield func(Result) bool) {
		for _, result := range results {
			if !yield(<-result) {
				return
			}
		}
	}
}

func judgeFolder(folder string) Result {
	start := time.Now()
	out := Result{World: filepath.Base(filepath.Clean(folder))}
	w, err := ReadWorld(folder)
	if err == nil {
		out.Verdicts, err = Judge(w)
	}
	out.Err, out.Seconds = err, time.Since(start).Seconds()
	return out
}
