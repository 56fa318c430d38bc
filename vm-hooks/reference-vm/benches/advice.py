#!/usr/bin/env python3
"""Takes the advice of `vmscope gc`, and measures what it saves.

    advice.py VMSCOPE [--rounds N] [--rate 1/N]

Each program is recorded with lifetimes. Then the program runs again, as it is and with each piece of advice that an
option of the VM can follow (pretenured sites, a larger eden, another tenuring threshold, more growth of old space), in
random order in each round. These runs are recorded, too, without lifetimes, since watching lifetimes makes collections
longer: their collections tell the collector's CPU time. A row has the predicted saving (its share of the recorded time,
of the time without lifetimes) and the measured one: medians, with the half-width of the 95 % interval of the mean
difference.
"""

import argparse
import json
import math
import random
import statistics
import subprocess
import tempfile

PROGRAMS = {"dataframe": ["300000"], "binarytrees": ["15"], "predatorprey": ["200"], "particles": ["40"]}


def recorded(vmscope, program, folder, record, options):
    """The document of `vmscope gc` of a run."""
    recording = f"{folder}/out.vmscope"
    vm = [vmscope, "reference-vm", *options, program, "--", *PROGRAMS[program]]
    subprocess.run(
        [vmscope, "record", "--quiet", *record, "--output", recording, "--", *vm],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    told = subprocess.run([vmscope, "gc", recording, "--json"], check=True, capture_output=True, text=True)
    return [part["table"] for part in json.loads(told.stdout)["parts"] if "table" in part]


def run(vmscope, program, folder, options):
    """The collectors' CPU time in milliseconds."""
    tables = recorded(vmscope, program, folder, [], options)
    rows = next(table["rows"] for table in tables if table["title"] == "Collections")
    return sum(1000 * row[2] for row in rows)


def options_of(change):
    """The VM's options that make a change; None for a change of the program."""
    if change.startswith("pretenure "):
        sites = change.removeprefix("pretenure ").split(", held by ")[0].split(" and ")
        return [option for site in sites for option in ("--pretenure", site)]
    if change.startswith("enlarge eden"):
        return ["--eden-size", change.split(" to ")[1].replace(" ", "").removesuffix("iB")]
    if change.startswith("let old space grow"):
        return ["--full-gc-ratio", "66"]
    if change.startswith("change the tenuring threshold"):
        return ["--tenuring-threshold", str(int(change.split(" to ")[1].split()[0]))]
    return None


def advice(vmscope, program, rate, folder):
    """Changes with their predicted savings and errors, as shares of the collectors' time."""
    tables = recorded(vmscope, program, folder, [f"--lifetimes={rate}"], [])
    rows = next(table["rows"] for table in tables if table["title"].startswith("Advice"))
    rows = [row for row in rows if options_of(row[0]) is not None and row[1] > 0]
    return [(row[0], row[3], row[3] * row[2] / row[1]) for row in rows]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("vmscope")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--rate", default="1/20")
    options = options.parse_args()
    folder = tempfile.mkdtemp()
    print("| program, change | collector | predicted | measured |\n|---|---|---|---|")
    for program in PROGRAMS:
        changes = advice(options.vmscope, program, options.rate, folder)
        runs = {"": [], **{change: [] for change, _, _ in changes}}
        for _ in range(options.rounds):
            order = list(runs)
            random.shuffle(order)
            for change in order:
                runs[change].append(run(options.vmscope, program, folder, options_of(change) or []))
        base = statistics.median(runs[""])
        for change, predicted, error in changes:
            saved = [before - after for before, after in zip(runs[""], runs[change])]
            predicted, error = predicted * base, error * base
            half = 2 * statistics.stdev(saved) / math.sqrt(len(saved))
            print(
                f"| {program}: {change} | {base:.0f} ms | {predicted:.0f} ± {error:.0f} ms "
                f"| {statistics.median(saved):.0f} ± {half:.0f} ms |",
                flush=True,
            )


main()
