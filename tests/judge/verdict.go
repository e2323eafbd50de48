package judge

import (
	"fmt"
	"strings"
)

// Verdict is one difference between what the intents say and what Istio does.
type Verdict struct {
	World    string `json:"world"`
	Check    string `json:"check"`
	Cluster  string `json:"cluster,omitempty"`
	Caller   string `json:"caller,omitempty"`
	Host     string `json:"host,omitempty"`
	Expected string `json:"expected"`
	Istio    string `json:"istio"`
}

func (v Verdict) String() string {
	var place []string
	for _, part := range []struct{ name, value string }{{"cluster", v.Cluster}, {"caller", v.Caller}, {"host", v.Host}} {
		if part.value != "" {
			place = append(place, part.name+" "+part.value)
		}
	}
	return fmt.Sprintf("%s: %s: %s: expected %s, Istio: %s", v.World, v.Check, strings.Join(place, ", "), v.Expected, v.Istio)
}

// verdicts collects differences and drops repetitions.
type verdicts struct {
	world string
	list  []Verdict
	seen  map[Verdict]bool
}

func newVerdicts(world string) *verdicts { return &verdicts{world: world, seen: map[Verdict]bool{}} }

func (v *verdicts) add(verdict Verdict) {
	verdict.World = v.world
	if !v.seen[verdict] {
		v.seen[verdict] = true
		v.list = append(v.list, verdict)
	}
}
