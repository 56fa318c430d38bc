#!/usr/bin/env python3
"""The cost of each engine to the embedded VM: its CPU time for a fixed program.

    engines.py VMSCOPE [--rounds N] [--work N]

Each round runs the program alone, under vmscope's kernel engine (without and with callers), under the VM's own
sampler, and under perf record at the same rate, in random order. A row has the mean difference to the same round's
run alone in per cent of its CPU time, with the half-width of the 95 % interval. The profiler attaches while the VM
waits for a line of input, so that the whole program is sampled.
"""

import argparse
import math
import os
import random
import statistics
import subprocess
import tempfile
import time

PERIOD_NS = 713_927


def program(work):
    return f"{work} benchFib printString size"


def cpu_of(vmscope, profiler, work):
    """CPU seconds of the VM's threads, from the program's start to its end."""
    vm = subprocess.Popen(
        [vmscope, "reference-vm", "tinyBenchmarks", "-e", "(Delay forMilliseconds: 700) wait", "-e", program(work)],
        stdout=subprocess.DEVNULL,
    )
    time.sleep(0.3)
    beside = subprocess.Popen(profiler(vm.pid), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) if profiler else None
    _, status, usage = os.wait4(vm.pid, 0)
    vm.returncode = status
    if beside:
        beside.wait()
    if status:
        raise SystemExit(f"the VM ended with status {status}")
    return usage.ru_utime + usage.ru_stime


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("vmscope")
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--work", type=int, default=42)
    options = options.parse_args()
    folder = tempfile.mkdtemp()
    attach = [options.vmscope, "attach", "--quiet", "--output", f"{folder}/out.vmscope"]
    engines = {
        "alone": None,
        "alone, again": None,
        "kernel engine, without callers": lambda pid: [*attach, "--call-graph=off", str(pid)],
        "kernel engine": lambda pid: [*attach, str(pid)],
        "in-VM engine": lambda pid: [*attach, "--engine", "in-vm", str(pid)],
        "perf record": lambda pid: [
            "perf", "record", "-q", "-e", "cpu-clock", "-c", str(PERIOD_NS), "-o", f"{folder}/perf.data", "-p", str(pid)
        ],
    }
    differences = {name: [] for name in engines}
    for number in range(options.rounds):
        order = list(engines)
        random.shuffle(order)
        times = {name: cpu_of(options.vmscope, engines[name], options.work) for name in order}
        for name, seconds in times.items():
            differences[name].append(100 * (seconds / times["alone"] - 1))
        print(f"round {number + 1}: alone {times['alone']:.2f} s", flush=True)
    print("\n| engine | cost | median |\n|---|---|---|")
    for name, all_of in differences.items():
        if name != "alone":
            half = 2 * statistics.stdev(all_of) / math.sqrt(len(all_of))
            print(f"| {name} | {statistics.mean(all_of):+.2f} % ± {half:.2f} | {statistics.median(all_of):+.2f} % |")


main()
