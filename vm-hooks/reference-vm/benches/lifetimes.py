#!/usr/bin/env python3
"""Measures the CPU time that lifetimes cost: collectors of the embedded VM, and finalization with and without pretenured ephemerons.

    lifetimes.py VMSCOPE [--rounds N] [--by vm|finalization|finalization-pretenured ...]

Each round runs all rates of a program after each other, in a random order, so that the machine's other load meets all of them alike. A row has the median CPU
time without lifetimes, and the medians of the ratios to the run without lifetimes in the same round. Nobody listens.
"""

import argparse
import os
import random
import statistics
import subprocess

# Programs and arguments that make some millions of objects.
PROGRAMS = {"binarytrees": "17", "json": "40000", "csv": "150000", "collections": "300"}
RATES = ["1/1", "1/2", "1/100", "1/1000"]


def cpu(command):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vmscope")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--by", nargs="+", default=["vm", "finalization", "finalization-pretenured"])
    options = parser.parse_args()
    means = {}
    print("| program | by | off | " + " | ".join(RATES) + " |")
    for by in options.by:
        for program, argument in PROGRAMS.items():
            vm = [options.vmscope, "reference-vm", program]
            end = ["--", argument]
            offs, ratios = [], {rate: [] for rate in RATES}
            for _ in range(options.rounds):
                times = {}
                for rate in random.sample(["off", *RATES], len(RATES) + 1):
                    flags = [] if rate == "off" else ["--lifetimes", rate, "--lifetimes-by", by]
                    times[rate] = cpu(vm + flags + end)
                offs.append(times["off"])
                for rate in RATES:
                    ratios[rate].append(times[rate] / times["off"])
            medians = {rate: statistics.median(ratios[rate]) for rate in RATES}
            for rate in RATES:
                means.setdefault((by, rate), []).append(medians[rate])
            row = " | ".join(f"{medians[rate]:.2f}" for rate in RATES)
            print(f"| {program} | {by} | {statistics.median(offs):.2f} s | {row} |", flush=True)
        row = " | ".join(f"{statistics.geometric_mean(means[by, rate]):.3f}" for rate in RATES)
        print(f"| mean | {by} | | {row} |", flush=True)


main()
