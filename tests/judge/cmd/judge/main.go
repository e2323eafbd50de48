// Command judge judges worlds: judge [-json] [-parallel N] WORLD...
//
// A WORLD is a world folder, a folder of world folders, or a file that lists world folders. The exit code is 0 if
// Istio does what every world's intents say, 1 if it does not, and 2 if a world could not be judged.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	"meshintent.dev/judge"
)

func main() {
	asJSON := flag.Bool("json", false, "write one JSON object for each world")
	parallel := flag.Int("parallel", 3, "how many worlds to judge at a time")
	lines := flag.Int("lines", 10, "how many differences of each check to write for a world")
	flag.Parse()
	os.Exit(run(flag.Args(), *asJSON, *parallel, *lines))
}

func run(arguments []string, asJSON bool, parallel, lines int) int {
	folders, err := judge.FindWorlds(arguments)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 2
	}
	if len(folders) == 0 {
		fmt.Fprintln(os.Stderr, "error: no world to judge")
		return 2
	}
	judge.Quiet()
	// Control planes come and go; collecting after every doubling of what little stays costs a third of the time.
	debug.SetGCPercent(400)
	code := 0
	for result := range judge.All(folders, parallel) {
		switch {
		case result.Err != nil:
			code = 2
		case len(result.Verdicts) > 0:
			code = max(code, 1)
		}
		if asJSON {
			if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
				fmt.Fprintln(os.Stderr, "error:", err)
				return 2
			}
			continue
		}
		switch {
		case result.Err != nil:
			fmt.Printf("%s: no judgement: %v\n", result.World, result.Err)
		case len(result.Verdicts) > 0:
			judge.Report(os.Stdout, result.Verdicts, lines)
			fmt.Printf("%s: %d differences (%.1f s)\n", result.World, len(result.Verdicts), result.Seconds)
		default:
			fmt.Printf("%s: as intended (%.1f s)\n", result.World, result.Seconds)
		}
	}
	return code
}
