#!/usr/bin/env python3
"""Takes the advice of `vmscope gc`, and measures what it saves.

    advice.py VMSCOPE [--rounds N] [--rate 1/N]

Each program is recorded with lifetimes. Then the program runs without vmscope, as it is and with each piece of advice
that an option of the VM can follow (pretenured sites, a larger eden, more growth of old space), in random order in each
round. A row has the predicted saving (its share of the recorded collectors' time, of the time without vmscope: watching
lifetimes makes collections longer) and the measured one: medians of the collectors' time by the VM's own clock, with
the half-width of the 95 % interval of the mean difference. CPU is the saving of the whole program.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import tempfile

PROGRAMS = {"dataframe": ["300000"], "binarytrees": ["15"], "predatorprey": ["200"], "particles": ["40"]}
GC_TIME = "(Smalltalk vmParameterAt: 8) printString, ' ', (Smalltalk vmParameterAt: 10) printString"


def run(vmscope, program, options):
    """The collectors' milliseconds and the CPU seconds of a run."""
    command = [vmscope, "reference-vm", *options, program, "-e", GC_TIME, "--", *PROGRAMS[program]]
    vm = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = vm.stdout.read()
    _, status, usage = os.wait4(vm.pid, 0)
    vm.returncode = status
    if status:
        raise SystemExit(f"{command} ended with status {status}")
    full, scavenges = output.strip().splitlines()[-1].strip("'").split()
    return int(full) + int(scavenges), usage.ru_utime + usage.ru_stime


def options_of(change):
    """The VM's options that make a change; None for a change of the program."""
    if change.startswith("pretenure "):
        sites = change.removeprefix("pretenure ").split(" and ")
        return [option for site in sites for option in ("--pretenure", site)]
    if change.startswith("enlarge eden"):
        return ["--eden-size", change.split(" to ")[1].replace(" ", "").removesuffix("iB")]
    if change.startswith("let old space grow"):
        return ["--full-gc-ratio", "66"]
    return None


def advice(vmscope, program, rate, folder):
    """Changes with their predicted savings and errors, as shares of the collectors' time."""
    recording = f"{folder}/out.vmscope"
    vm = [vmscope, "reference-vm", program, "--", *PROGRAMS[program]]
    subprocess.run(
        [vmscope, "record", "--quiet", f"--lifetimes={rate}", "--output", recording, "--", *vm],
        check=True, stdout=subprocess.DEVNULL,
    )
    told = subprocess.run([vmscope, "gc", recording, "--json"], check=True, capture_output=True, text=True)
    tables = [part["table"] for part in json.loads(told.stdout)["parts"] if "table" in part]
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
    print("| program, change | collector | predicted | measured | CPU saved |\n|---|---|---|---|---|")
    for program in PROGRAMS:
        changes = advice(options.vmscope, program, options.rate, folder)
        runs = {"": [], **{change: [] for change, _, _ in changes}}
        for _ in range(options.rounds):
            order = list(runs)
            random.shuffle(order)
            for change in order:
                runs[change].append(run(options.vmscope, program, options_of(change) or []))
        base = statistics.median(ms for ms, _ in runs[""])
        for change, predicted, error in changes:
            saved = [before[0] - after[0] for before, after in zip(runs[""], runs[change])]
            cpu = statistics.median(b[1] - a[1] for b, a in zip(runs[""], runs[change]))
            predicted, error = predicted * base, error * base
            half = 2 * statistics.stdev(saved) / math.sqrt(len(saved))
            print(
                f"| {program}: {change} | {base:.0f} ms | {predicted:.0f} ± {error:.0f} ms "
                f"| {statistics.median(saved):.0f} ± {half:.0f} ms | {1000 * cpu:.0f} ms |",
                flush=True,
            )


main()
