#!/usr/bin/env python3
"""vmscope against perf on this machine: each figure a ratio in one run.

    cargo build --release
    viewer/benches/against_perf.py [--pairs 30] [--samples 1000000] [--only delivery,cost,report]

What is measured, and how:

1. delivery   Samples delivered against those that the threads' CPU time promises
              (docs/truth.md section 2), as vmscope's own report counts them, and against the
              CPU time that the program itself measured. Median and spread of --runs.
2. cost       The CPU time of the target for a fixed amount of work: alone, under vmscope
              at its default rate, and under `perf record -e cpu-clock -c 713927`. One
              round runs all three in random order; a figure is the mean over the rounds
              of the difference in per cent of the same round's run alone, with the
              half-width of its 95 % confidence interval (Student's t). CPU time is the
              program's own CLOCK_PROCESS_CPUTIME_ID, so the profiler's is not in it.
              Pairs in random order cancel what drifts (heat, neighbours); a round during
              which the machine did something else widens the interval, none is dropped.
3. report     Wall time, CPU time and peak memory (ru_maxrss of wait4) of `vmscope
              report` on a recording of --samples samples, against `perf report --stdio`
              on a perf.data of about as many. `first` is the first run after recording;
              the page cache can't be dropped without privileges, so the files are warm
              in it: `first` is cold only in what the tools themselves cache. Both
              figures per million samples too, since the two counts differ a little.
4. size       Bytes per sample on disk of those two recordings.

The target is viewer/tests/programs/known_shares.c. Needs perf, a C compiler, and nothing
but Python's own library. Writes a Markdown table to stdout, progress to stderr.
Exit code: 0 when everything ran, 1 when a figure could not be taken, 2 for bad use.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

PERIOD_NS = 713_927
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent / "tests" / "programs" / "known_shares.c"
# The kernel ends cpu-clock periods shorter than 10 µs at 10 µs.
MAX_RATE_HZ = 100_000

# Two-sided 95 % points of Student's t for 1, 2, 3 ... degrees of freedom.
T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
       2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
       2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]


class Failed(Exception):
    """A command failed, or printed what can't be understood."""


def say(text):
    print(text, file=sys.stderr, flush=True)


# What a process inherits through exec is its peak memory too: a child of Python never
# shows less than Python itself. So `report` is started by a program that is small.
LAUNCHER = r"""
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* launcher RESULT COMMAND...: writes wall seconds, CPU seconds, peak kilobytes. */
int main(int argc, char **argv)
{
    struct rusage u;
    int status;
    double begin = now(), end;
    pid_t pid;
    FILE *result;

    if (argc < 3)
        return 126;
    pid = fork();
    if (pid == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &u) != pid)
        return 126;
    end = now();
    result = fopen(argv[1], "w");
    if (!result)
        return 126;
    fprintf(result, "%.6f %.6f %ld\n", end - begin,
            u.ru_utime.tv_sec + u.ru_stime.tv_sec
                + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6,
            u.ru_maxrss);
    fclose(result);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
"""


def run(command, **options):
    """Runs a command and returns what it printed."""
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip()[-2000:]
        raise Failed(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{message}")
    return done.stdout.decode(errors="replace")


def truth_of(text):
    """The JSON object that known_shares prints among what the profiler prints."""
    for line in text.splitlines():
        if line.startswith('{"pid"'):
            return json.loads(line)
    raise Failed(f"the target printed no JSON:\n{text[-500:]}")


def half_width(values):
    """Half of the 95 % confidence interval of the values' mean."""
    if len(values) < 2:
        return math.inf
    degrees = len(values) - 1
    t = T95[degrees - 1] if degrees <= len(T95) else 1.96 + 2.4 / degrees
    return t * statistics.stdev(values) / math.sqrt(len(values))


def median_and_spread(values, form="{:.3f}"):
    return " ".join([form.format(statistics.median(values)),
                     f"({form.format(min(values))} to {form.format(max(values))})"])


def counted(args, work, name):
    """Numbers the runs with the target alone, so that its work fits --seconds."""
    begin = truth_of(run([work, "--threads", args.threads, "--cycles", 50]))
    each = begin["process_cpu_seconds"] / 50 / args.threads
    cycles = max(50, round(args.seconds / each))
    say(f"{name}: {cycles} cycles in each of {args.threads} threads")
    return [work, "--threads", str(args.threads), "--cycles", str(cycles)]


def vmscope_record(args, file, target, rate=None):
    options = ["--rate", f"{rate:.0f}"] if rate else []
    return [args.vmscope, "record", *options, "--output", file, "--", *target]


def perf_record(args, file, target, period=PERIOD_NS):
    return [args.perf, "record", "-q", "-e", "cpu-clock", "-c", str(period), "-o", file, "--",
            *target]


def vmscope_counts(args, file):
    report = json.loads(run([args.vmscope, "report", "--json", file]))
    return report["samples"], report["session"]


def perf_samples(args, file):
    """Samples in a perf.data. perf prints the number rounded (`# Samples: 3M`), so the
    events are counted instead."""
    text = run([args.perf, "report", "--stats", "-i", file])
    found = re.search(r"^\s*SAMPLE events:\s+(\d+)", text, re.M)
    if not found:
        raise Failed("`perf report --stats` says no number of SAMPLE events")
    return int(found.group(1))


def delivery(args, work, scratch, rows):
    target = counted(args, work, "delivery")
    own, against_clock, perf = [], [], []
    for number in range(args.runs):
        say(f"delivery: run {number + 1} of {args.runs}")
        file = scratch / "delivery.vmscope"
        truth = truth_of(run(vmscope_record(args, file, target)))
        samples, session = vmscope_counts(args, file)
        if samples["promised"]:
            own.append(100 * samples["total"] / samples["promised"])
        # At the rate that was asked for: the achieved one would hide what was lost.
        promised = truth["process_cpu_seconds"] * 1e9 / PERIOD_NS
        against_clock.append(100 * samples["total"] / promised)
        file.unlink()
        file = scratch / "delivery.perf"
        truth = truth_of(run(perf_record(args, file, target)))
        promised = truth["process_cpu_seconds"] * 1e9 / PERIOD_NS
        perf.append(100 * perf_samples(args, file) / promised)
        file.unlink()
    rows.append(("delivered against promised, %, by vmscope's own count",
                 median_and_spread(own, "{:.2f}") if own else "nothing promised", "",
                 f"{args.runs} runs"))
    rows.append(("delivered against the target's own CPU clock, %",
                 median_and_spread(against_clock, "{:.2f}"), median_and_spread(perf, "{:.2f}"),
                 f"{args.runs} runs"))


def cost(args, work, scratch, rows):
    target = counted(args, work, "cost")
    files = {"vmscope": scratch / "cost.vmscope", "perf": scratch / "cost.perf"}
    commands = {"alone": target, "vmscope": vmscope_record(args, files["vmscope"], target),
                "perf": perf_record(args, files["perf"], target)}
    rounds = []
    for number in range(args.pairs):
        order = list(commands)
        random.shuffle(order)
        seconds = {}
        for name in order:
            truth = truth_of(run(commands[name]))
            seconds[name] = truth["process_cpu_seconds"]
            if name in files and files[name].exists():
                files[name].unlink()
        rounds.append(seconds)
        say(f"cost: round {number + 1} of {args.pairs}: "
            + ", ".join(f"{name} {seconds[name]:.4f} s" for name in commands))

    def against(one, other):
        return [100 * (r[one] - r[other]) / r["alone"] for r in rounds]

    def figure(values):
        return f"{statistics.mean(values):+.2f} ± {half_width(values):.2f}"

    n = f"{args.pairs} rounds"
    rows.append(("CPU time added to the target, points", figure(against("vmscope", "alone")),
                 figure(against("perf", "alone")), n))
    rows.append(("vmscope minus perf, points", figure(against("vmscope", "perf")), "", n))
    rows.append(("the target alone, CPU seconds",
                 median_and_spread([r["alone"] for r in rounds]), "", n))


def timed_report(args, scratch, command):
    """The first run and the later ones, each as (wall seconds, CPU seconds, peak bytes)."""
    results = []
    for _ in range(args.runs + 1):
        run([scratch / "launcher", scratch / "result", *command])
        wall, cpu, peak = (scratch / "result").read_text().split()
        results.append((float(wall), float(cpu), int(peak) * 1024))
    return results[0], results[1:]


def report(args, work, scratch, rows):
    rate = min(args.report_rate, MAX_RATE_HZ)
    cpu_seconds = args.samples / rate
    target = [work, "--threads", str(args.threads), "--seconds",
              f"{cpu_seconds / args.threads:.3f}"]
    say(f"report: {cpu_seconds:.0f} CPU seconds at {rate:.0f} Hz, for each of the two")
    ours, theirs = scratch / "million.vmscope", scratch / "million.perf"
    run(vmscope_record(args, ours, target, rate))
    run(perf_record(args, theirs, target, round(1e9 / rate)))
    # The target's output is of no interest here; nor is what was lost: the counts are.
    count = vmscope_counts(args, ours)[0]["total"], perf_samples(args, theirs)
    if not all(count):
        raise Failed("a recording without samples")
    say("report: vmscope report, perf report")
    ours_first, ours_later = timed_report(args, scratch, [args.vmscope, "report", ours])
    theirs_first, theirs_later = timed_report(
        args, scratch, [args.perf, "report", "--stdio", "-i", theirs])

    def row(name, scale, first, later, index, form):
        pick = [[one[index] / scale for one in runs] for runs in later]
        rows.append((f"report: {name}, median of {args.runs}",
                     median_and_spread(pick[0], form), median_and_spread(pick[1], form),
                     f"ratio {statistics.median(pick[1]) / statistics.median(pick[0]):.1f}"))
        rows.append((f"report: {name}, first run", form.format(first[0][index] / scale),
                     form.format(first[1][index] / scale),
                     f"ratio {first[1][index] / first[0][index]:.1f}"))

    first, later = (ours_first, theirs_first), (ours_later, theirs_later)
    rows.append(("report: samples in the recording", f"{count[0]:,}", f"{count[1]:,}", ""))
    row("wall seconds", 1, first, later, 0, "{:.3f}")
    row("CPU seconds", 1, first, later, 1, "{:.3f}")
    row("peak memory, MiB", 2**20, first, later, 2, "{:.1f}")
    per_million = [statistics.median([one[0] for one in later[i]]) * 1e6 / count[i] for i in (0, 1)]
    rows.append(("report: wall seconds for a million samples", f"{per_million[0]:.3f}",
                 f"{per_million[1]:.3f}", f"ratio {per_million[1] / per_million[0]:.1f}"))
    sizes = [os.path.getsize(file) / n for file, n in zip((ours, theirs), count)]
    rows.append(("bytes per sample on disk, all included", f"{sizes[0]:.2f}", f"{sizes[1]:.2f}",
                 f"ratio {sizes[1] / sizes[0]:.1f}"))


def machine(args):
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    paranoid = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
    level = paranoid.read_text().strip() if paranoid.exists() else "none"
    return [f"- {os.cpu_count()} CPUs ({model}), Linux {platform.release()}",
            f"- {run([args.vmscope, '--version']).strip()}; {run([args.perf, '--version']).strip()}",
            f"- perf_event_paranoid {level}, {'root' if os.geteuid() == 0 else 'an ordinary user'},"
            f" load {os.getloadavg()[0]:.2f} at the start",
            f"- period {PERIOD_NS} ns ({1e9 / PERIOD_NS:.1f} Hz); "
            f"seed {args.seed}, {args.threads} threads, about {args.seconds:g} CPU seconds each"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    release = HERE.parent.parent / "target" / "release" / "vmscope"
    parser.add_argument("--vmscope", default=str(release), help="the vmscope to measure")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--pairs", type=int, default=30, help="rounds of the cost measurement")
    parser.add_argument("--runs", type=int, default=5, help="runs of everything else")
    parser.add_argument("--samples", type=float, default=1e6, help="samples of the report's file")
    parser.add_argument("--report-rate", type=float, default=20_000,
                        help="Hz at which that file is recorded, to get there sooner")
    parser.add_argument("--seconds", type=float, default=2, help="CPU seconds of a thread per run")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--only", default="delivery,cost,report", help="some of these")
    parser.add_argument("--seed", type=int, default=None, help="of the random order")
    args = parser.parse_args()
    if args.seed is None:
        args.seed = random.randrange(1 << 32)
    if args.pairs < 2 or args.runs < 1 or args.threads < 1 or args.samples < 1 \
            or args.seconds <= 0 or args.report_rate <= 0:
        parser.error("--pairs from 2, the other numbers from 1")
    for tool in (args.vmscope, args.perf, args.cc):
        if not shutil.which(tool):
            parser.error(f"{tool} is not there (vmscope: cargo build --release)")
    return args, parser


def main():
    args, parser = arguments()
    random.seed(args.seed)
    parts = {"delivery": delivery, "cost": cost, "report": report}
    chosen = args.only.split(",")
    if not set(chosen) <= set(parts):
        parser.error(f"--only takes some of {', '.join(parts)}")
    rows, failed = [], False
    with tempfile.TemporaryDirectory(prefix="against_perf.") as folder:
        scratch = pathlib.Path(folder)
        work = scratch / "known_shares"
        run([args.cc, "-O2", "-g", "-pthread", "-o", work, SOURCE])
        source = scratch / "launcher.c"
        source.write_text(LAUNCHER)
        run([args.cc, "-O2", "-o", scratch / "launcher", source])
        facts = machine(args)
        for name in chosen:
            try:
                parts[name](args, work, scratch, rows)
            except (Failed, OSError, ValueError, KeyError) as error:
                failed = True
                say(f"{name}: {type(error).__name__}: {error}")
                rows.append((name, "could not be measured", "", type(error).__name__))
    print("\n".join(facts))
    print()
    print("| figure | vmscope | perf | of |")
    print("|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        say(error)
        sys.exit(1)
