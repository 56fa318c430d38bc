#!/usr/bin/env python3
"""Compares ways to sample objects with the exact counts of all objects, by class.

    sampling.py VMSCOPE [--programs NAME ...] [--ways 1/100,windows ...]

Each program runs once with every object observed, and once for each way. A way's errors are relative to the observation of every object: of the number of
objects, of bytes, and of the mean lifetime in allocated bytes, up to the death or the end of the run; over the classes with at least 1 % of the objects,
the root mean square and the largest. The counts of all objects are exact. Their mean lifetimes come from single records: all of the first 250,000, and
fewer later.
"""

import argparse
import csv
import json
import math
import os
import subprocess
import tempfile

PROGRAMS = ["dataframe", "binarytrees", "predatorprey"]
WAYS = ["1/100", "1/100,threads", "1/100,windows", "1/100,every-nth", "1/100,buffers", "4800B"]
MEASURES = ["objects", "bytes", "mean lifetime"]


def observed(vmscope, program, rate, folder):
    """A table by class, and how many objects have a record."""
    file = os.path.join(folder, "recording")
    subprocess.run(
        [vmscope, "record", f"--lifetimes={rate}", "-o", file, "--", vmscope, "reference-vm", program],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # All classes: one with 1 % of the objects may have less in a sample.
    command = [vmscope, "lifetimes", file, "--by", "class", "--most-allocated", "0"]
    parts = json.loads(subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE).stdout)["parts"]
    table = next(part["table"] for part in parts if "table" in part)
    lines = next(part["text"] for part in parts if "text" in part)
    if any("lost" in line for line in lines):
        raise SystemExit(f"{program} {rate}: records were lost")
    title = lines[0]
    rows = {row[0]: dict(zip(table["columns"], row)) for row in table["rows"]}
    lines = subprocess.run([*command, "--csv"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("class,site,size,stands for"))
    sums = {}
    for one in csv.DictReader(lines[first:]):
        weight = float(one["stands for"])
        weights, lifetimes = sums.get(one["class"], (0, 0))
        sums[one["class"]] = weights + weight, lifetimes + weight * float(one["lifetime in bytes"])
    for name, (weights, lifetimes) in sums.items():
        if name in rows:
            rows[name]["mean lifetime"] = lifetimes / weights
    return rows, title.split(" objects recorded", 1)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vmscope")
    parser.add_argument("--programs", nargs="+", default=PROGRAMS)
    parser.add_argument("--ways", nargs="+", default=WAYS)
    options = parser.parse_args()
    print("| program | way | records | " + " | ".join(f"{name}: r.m.s. | largest" for name in MEASURES) + " |")
    print("|" + "---|" * (3 + 2 * len(MEASURES)))
    for program in options.programs:
        with tempfile.TemporaryDirectory() as folder:
            exact, _ = observed(options.vmscope, program, "1/1", folder)
            total = sum(row["objects"] for row in exact.values())
            classes = [name for name, row in exact.items() if row["objects"] >= total / 100]
            for way in options.ways:
                rows, records = observed(options.vmscope, program, way, folder)
                cells = []
                for measure in MEASURES:
                    errors = []
                    for name in classes:
                        truth = exact[name][measure]
                        found = rows.get(name, {}).get(measure) or 0
                        errors.append(found / truth - 1)
                    mean_square = sum(error * error for error in errors) / len(errors)
                    largest = max(errors, key=abs)
                    cells += [f"{100 * math.sqrt(mean_square):.1f} %", f"{100 * largest:+.1f} %"]
                print(f"| {program} ({len(classes)} classes) | {way} | {records} | " + " | ".join(cells) + " |", flush=True)


main()
