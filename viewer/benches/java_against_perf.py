#!/usr/bin/env python3
"""The cost of profiling a JVM: vmscope and perf, interleaved.

    cargo build --release
    viewer/benches/java_against_perf.py [--java JAVA] [--pairs N] [--rounds N]

A JVM does a fixed amount of work (vm-hooks/hotspot/tests/programs/Tiny.java and Strings.java)
alone, with `vmscope attach` and with `perf record -p`, both at vmscope's default period: rounds
of all three in random order. What counts is the CPU time of the whole JVM as the kernel
accounts it when it ends. Printed: mean differences in per cent of the same round's run alone,
with the half-width of the 95 % confidence interval, and vmscope's own CPU time in per cent of
the wall time. Needs javac, java, perf.
"""

import argparse
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
# pylint: disable=wrong-import-position
from against_perf import Failed, half_width, median_and_spread, run, say  # noqa: E402

PERIOD_NS = 713_927
HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parent.parent / "vm-hooks" / "hotspot" / "tests" / "programs"


def cpu_of(pid):
    """User and kernel CPU seconds of a child that ends, and its exit code."""
    _, status, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime, os.waitstatus_to_exitcode(status)


def profiled(args, scratch, work, profiler):
    """CPU seconds of the JVM; of the profiler; wall seconds."""
    began = time.monotonic()
    with open(os.devnull, "wb") as nothing:
        jvm = subprocess.Popen(work, stdout=nothing)
        command = {
            "vmscope": [args.vmscope, "attach", "--quiet", "--output", scratch / "o.vmscope",
                        jvm.pid],
            "perf": [args.perf, "record", "-q", "-N", "-e", "cpu-clock", "-c", PERIOD_NS, "-p",
                     jvm.pid, "-o", scratch / "perf.data"],
        }.get(profiler)
        other = command and subprocess.Popen([str(part) for part in command], stdout=nothing,
                                             stderr=nothing)
        cpu, code = cpu_of(jvm.pid)
        if code != 0:
            raise Failed(f"java ended with {code}")
        wall = time.monotonic() - began
        if other is None:
            return cpu, 0.0, wall
        # Both end when the process does that they are attached to.
        own, code = cpu_of(other.pid)
        if code != 0:
            raise Failed(f"{profiler} ended with {code}")
        return cpu, own, wall


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--java", default="java")
    parser.add_argument("--javac", default="javac")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--vmscope", default=HERE.parent.parent / "target/release/vmscope")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=6000)
    args = parser.parse_args()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="java."))
    try:
        sources = [PROGRAMS / f"{name}.java" for name in ("Program", "Tiny", "Strings")]
        run([args.javac, "--release", "11", "-d", scratch, *sources])
        for program in ("Tiny", "Strings"):
            work = [args.java, "-cp", str(scratch), f"programs.{program}", "--rounds",
                    str(args.rounds)]
            rounds, own = [], []
            for number in range(args.pairs):
                seconds = {}
                for name in random.sample(["alone", "vmscope", "perf"], 3):
                    cpu, cost, wall = profiled(args, scratch, work, name)
                    seconds[name] = cpu
                    if name == "vmscope":
                        own.append(100 * cost / wall)
                rounds.append(seconds)
                say(f"{program}: round {number + 1} of {args.pairs}: {seconds}")
            print(f"### {program}, {args.pairs} rounds\n")
            print("| run | CPU time of the JVM added, points |\n|---|---|")
            for name in ("vmscope", "perf"):
                added = [100 * (r[name] / r["alone"] - 1) for r in rounds]
                print(f"| {name} | {statistics.mean(added):+.2f} ± {half_width(added):.2f} |")
            added = [100 * (r["vmscope"] - r["perf"]) / r["alone"] for r in rounds]
            print(f"| vmscope minus perf | {statistics.mean(added):+.2f} ± "
                  f"{half_width(added):.2f} |")
            print(f"| alone, CPU seconds | {median_and_spread([r['alone'] for r in rounds])} |")
            print(f"| vmscope's own CPU, % of the wall time | "
                  f"{median_and_spread(own, '{:.2f}')} |\n", flush=True)
    except Failed as failed:
        say(str(failed))
        return 1
    finally:
        shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
