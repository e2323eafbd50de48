"""What the comparisons of random fleets share: the way through the seeds, and the programs."""

import argparse
import collections
import concurrent.futures
import pathlib
import subprocess
import sys


def run(description, seeds, compare, summary, outcomes):
    """Compares the fleets of some seeds, two at a time, and ends the program.

    COMPARE takes the folder of the programs and a seed, and returns the differences and what the fleet had. All of OUTCOMES
    have to occur: a run that met nothing would agree with everything.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of the suite's programs")
    parser.add_argument("--seeds", default=seeds, help="FIRST..LAST; the last one is compared too")
    arguments = parser.parse_args()
    first, _, last = arguments.seeds.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    seen = collections.Counter()
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for seed, (differences, counts) in zip(seeds, pool.map(lambda seed: compare(arguments.programs, seed), seeds)):
            seen += counts
            for difference in differences[:5]:
                print(f"seed {seed}: {difference}")
            wrong += bool(differences)
    print(f"{len(seeds) - wrong} of {len(seeds)} {summary}: {dict(sorted(seen.items()))}")
    missing = [what for what in outcomes if not seen[what]]
    if len(seeds) >= 100 and missing:
        sys.exit(f"no fleet has {missing}")
    sys.exit(1 if wrong else 0)


def said(program, *words):
    """What a program prints; it has to succeed."""
    return subprocess.run([program, *map(str, words)], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
