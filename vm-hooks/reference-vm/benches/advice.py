#!/usr/bin/env python3
"""Takes the advice of `vmscope gc`, and measures what it saves.

    advice.py VMSCOPE [--rounds N] [--rate 1/N]

Each program is recorded with lifetimes. Then the program runs again, as it is and with each piece of advice that an
option of the VM can follow (pretenured sites, a larger eden, another tenuring threshold, more growth of old space), or
that a changed program follows (no objects of a site), in random order in each round. These runs are recorded, too, without lifetimes, since watching lifetimes makes collections
longer: their collections tell the collector's CPU time. A row has the predicted saving (its share of the recorded time,
of the time without lifetimes) and the measured one: medians, with the half-width of the 95 % interval of the mean
difference.
"""

import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import tempfile

SOURCES = pathlib.Path(__file__).parent.parent / "smalltalk/programs"
LONG = ["--full-gc-ratio=300", "--growth-headroom=256M"]
# Program, argument, and the VM's options. With LONG, full collections are rare.
RUNS = [
    ("dataframe", "300000", []),
    ("dataframe", "300000", LONG),
    ("json", "100000", []),
    ("json", "100000", LONG),
    ("csv", "300000", []),
    ("csv", "300000", LONG),
    ("garbage", "400", []),
    ("binarytrees", "17", []),
    ("predatorprey", "200", []),
    ("particles", "40", []),
    ("binarytrees", "17", ["--eden-size=60M"]),
    ("predatorprey", "200", ["--eden-size=60M"]),
    ("particles", "40", ["--eden-size=60M"]),
    ("json", "100000", ["--eden-size=4M"]),
    ("predatorprey", "200", ["--eden-size=4M"]),
    ("particles", "40", ["--eden-size=4M"]),
    ("csv", "300000", ["--eden-size=4M"]),
    ("predatorprey", "200", ["--eden-size=1M"]),
    ("dataframe", "300000", ["--eden-size=1M"]),
    ("binarytrees", "17", ["--eden-size=1024K"]),
    ("csv", "300000", ["--eden-size=1024K"]),
]
# Programs that do without a site's objects: texts, and their replacements.
WITHOUT = {
    ("csv", "Fraction class>>numerator:denominator:"): [
        ("[value := value / self readInteger]", "[value := value asFloat / self readInteger]"),
        ("self readInteger / (10", "self readInteger asFloat / (10"),
    ],
    ("garbage", "GarbageBenchmark>>round:"): [
        ("array := Array new: each \\\\ 20 + 10.", ""),
        ("array at: 1 put: each.", ""),
        ("array at: 2 put: each printString.", "array := each printString."),
        ("(each at: 1) + (each at: 2) size", "each size"),
    ],
    ("binarytrees", "TreeNode class>>depth:@46"): [
        ("[self new]\n", "[nil]\n"),
        (
            "^left isNil ifTrue: [1] ifFalse: [1 + left check + right check]",
            "^1 + (left isNil ifTrue: [1] ifFalse: [left check]) + (right isNil ifTrue: [1] ifFalse: [right check])",
        ),
    ],
}


def recorded(vmscope, program, folder, record, options):
    """The document of `vmscope gc` of a run. `program`: its name or file, and its argument."""
    recording = f"{folder}/out.vmscope"
    vm = [vmscope, "reference-vm", *options, program[0], "--", program[1]]
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


def without(program, change, folder):
    """File of a program that does without a site's objects; None if there is none."""
    site = change.removeprefix("do without ")
    for (name, known), texts in WITHOUT.items():
        if name == program and change != site and site.startswith(known):
            text = (SOURCES / f"{name}.st").read_text()
            for old, new in texts:
                assert text.count(old) == 1, old
                text = text.replace(old, new)
            file = pathlib.Path(folder) / f"{name}-without.st"
            file.write_text(text)
            return str(file)
    return None


def options_of(change):
    """The VM's options that make a change; None for a change of the program."""
    if change.startswith("pretenure "):
        sites = change.removeprefix("pretenure ").split(", held by ")[0].split(" and ")
        return [f"--pretenure={site}" for site in sites]
    if change.startswith("enlarge eden"):
        return ["--eden-size=" + change.split(" to ")[1].replace(" ", "").removesuffix("iB")]
    if change.startswith("let old space grow"):
        return ["--full-gc-ratio=66", "--growth-headroom=32M"]
    if change.startswith("change the tenuring threshold"):
        return ["--tenuring-threshold=" + str(int(change.split(" to ")[1].split()[0]))]
    return None


def advice(vmscope, program, rate, folder, options):
    """Changes with their predicted savings and errors, as shares of the collectors' time."""
    tables = recorded(vmscope, program, folder, [f"--lifetimes={rate}"], options)
    rows = next((table["rows"] for table in tables if table["title"].startswith("Advice")), [])
    return [(row[0], row[3], row[3] * row[2] / row[1]) for row in rows if row[1] > 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vmscope")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rate", default="1/20")
    parser.add_argument("--only", default="", help="only runs whose options contain this text")
    given = parser.parse_args()
    folder = tempfile.mkdtemp()
    print("| program, change | collector | predicted | measured |\n|---|---|---|---|")
    for name, argument, options in RUNS:
        if given.only not in " ".join(options):
            continue
        changes, ways = [], {"": ((name, argument), options)}
        for change, predicted, error in advice(given.vmscope, (name, argument), given.rate, folder, options):
            file, more = without(name, change, folder), options_of(change)
            if file or more:
                changes.append((change, predicted, error))
                kept = [one for one in options if one.split("=")[0] not in [two.split("=")[0] for two in more or []]]
                ways[change] = ((file or name, argument), kept + (more or []))
        runs = {change: [] for change in ways}
        for _ in range(given.rounds):
            order = list(runs)
            random.shuffle(order)
            for change in order:
                program, all_options = ways[change]
                runs[change].append(run(given.vmscope, program, folder, all_options))
        base = statistics.median(runs[""])
        label = " ".join([name, *options])
        for change, predicted, error in changes:
            saved = [before - after for before, after in zip(runs[""], runs[change])]
            predicted, error = predicted * base, error * base
            half = 2 * statistics.stdev(saved) / math.sqrt(len(saved))
            print(
                f"| {label}: {change} | {base:.0f} ms | {predicted:.0f} ± {error:.0f} ms "
                f"| {statistics.median(saved):.0f} ± {half:.0f} ms |",
                flush=True,
            )


main()
