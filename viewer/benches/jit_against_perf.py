#!/usr/bin/env python3
"""vmscope against perf on JIT code of Node: each figure a comparison in one run.

    cargo build --release
    viewer/benches/jit_against_perf.py [--only agreement,speed,cost] [--seconds S]

What is measured, and how:

1. agreement  (docs/truth.md section 8) One Node process runs viewer/tests/programs/bench.js with
              --perf-prof; `perf record -k CLOCK_MONOTONIC -e cpu-clock` and `vmscope attach`
              are attached to it at the same time, at the same period. `perf inject --jit` and
              `perf script` say which function perf gives each sample to; vmscope's report
              says it of its own. Only the main thread is compared, only user samples, from two
              seconds after both were started on, when both have read what is there, to the
              end of the process. Functions are compared by name and tier: perf's names are V8's
              (`JS:*fib FILE:1:2`), the marks * + ^ ~ are TurboFan, Maglev, Sparkplug and
              Ignition. Each share has its standard error: perf's by the means of 32 batches
              of consecutive samples, vmscope's as its report gives it (its 95 % half-width
              divided by 1.96). The difference is given in standard errors of the two
              together. Two samplers of one process see the same phases, so their errors are
              not independent: this overestimates them, if anything.
              Of each sampler, what is below --least of the samples is not compared one by one
              but together, as `the rest`.
2. speed      The same process, sampled at --rate Hz by both for --seconds (785,000 samples:
              7,000 Hz and 112 s). `perf inject --jit` and then `perf report`, against
              `vmscope report`; wall time, medians of --runs, interleaved. Cold: the page
              cache is dropped before each (root only, else it says warm). perf's build-id
              cache is emptied too. The sizes of what is read: perf.data and the dump; the
              recording, which holds all it needs.
3. cost       CPU time of Node (its own clock) for a fixed amount of work: alone; alone with
              --perf-prof; under `vmscope record`; under `vmscope record --jit-env`, which turns
              --perf-prof on; with `vmscope attach` from its start on; under `perf record` with
              --perf-prof and with --perf-basic-prof. Rounds of all in random order; mean
              differences in per cent of the same round's run alone, with the half-width of the
              95 % confidence interval, and medians of the ratios.

Needs node, perf, and nothing but Python's own library. Works in a temporary folder, and
leaves nothing. Writes Markdown to stdout, progress to stderr. Exit code: 0 when everything
ran and agreed within --within standard errors, 1 when not, 2 for bad use.
"""

import argparse
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
# pylint: disable=wrong-import-position
from against_perf import Failed, half_width, median_and_spread, run, say  # noqa: E402

PERIOD_NS = 713_927
PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "programs"
BATCHES = 32
TIERS = {"*": "TurboFan", "+": "Maglev", "^": "Sparkplug", "~": "Ignition"}


class Node:
    """A Node process that works in a folder of its own until it is asked to end."""

    def __init__(self, args, scratch, script, *arguments):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="node.", dir=scratch))
        command = [args.node, "--perf-prof", PROGRAMS / script, "--forever", *arguments]
        self.process = subprocess.Popen([str(part) for part in command], cwd=self.folder,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line.startswith(b"ready"):
            raise Failed(f"node said {line!r}")
        self.pid = self.process.pid

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)

    def cpu(self):
        """CPU seconds that it has used."""
        # Behind the name, which may hold anything: the state is field 3, the two times 14 and 15.
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def perf_command(args, scratch, *arguments):
    """perf, whose caches are in our folder."""
    return [args.perf, "--buildid-dir", str(scratch / "debug"), *map(str, arguments)]


def environment(scratch):
    """perf inject writes to $HOME/.debug/jit where the dump's folder does not do."""
    return {**os.environ, "HOME": str(scratch), "JITDUMPDIR": str(scratch)}


# Seconds after which both samplers are at work.
SETTLED = 2


def both(args, scratch, node, seconds, period):
    """Both attached at once; returns perf's file, vmscope's, and when they were started, on
    CLOCK_MONOTONIC."""
    theirs, ours = node.folder / "perf.data", node.folder / "out.vmscope"
    since = time.monotonic_ns()
    perf = subprocess.Popen(
        perf_command(args, scratch, "record", "-q", "-N", "-k", "CLOCK_MONOTONIC", "-e",
                     "cpu-clock", "-c", period, "-p", node.pid, "-o", theirs),
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(scratch))
    vmscope = subprocess.Popen(
        [args.vmscope, "attach", "--quiet", "--adapter", "jitdump", "--rate", f"{1e9 / period:.3f}",
         "--output", ours, str(node.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    time.sleep(SETTLED)
    # Of Node's CPU time: a busy machine may give it little, and samples are what is needed.
    until = node.cpu() + seconds
    while node.process.poll() is None and node.cpu() < until:
        time.sleep(0.05)
    try:
        node.end()
        for name, process in (("perf", perf), ("vmscope", vmscope)):
            _, errors = process.communicate(timeout=60)
            if process.returncode not in (0, -signal.SIGINT, -signal.SIGTERM):
                raise Failed(f"{name}: {errors.decode(errors='replace')[-1000:]}")
    finally:
        for process in (perf, vmscope):
            if process.poll() is None:
                process.kill()
                process.communicate()
    return theirs, ours, since


def inject(args, scratch, theirs):
    injected = theirs.with_name("injected.data")
    run(perf_command(args, scratch, "inject", "--jit", "-i", theirs, "-o", injected),
        cwd=theirs.parent, env=environment(scratch))
    return injected


SAMPLE = re.compile(r"^\s*(\d+)\s+(\d+)\.(\d+):\s+([0-9a-f]+)\s+(.*?)\s+\(([^()]*)\)\s*$")
JS = re.compile(r"^JS:([*+^~])(\S*) (.*?)(?::\d+:\d+)?(?:\+0x[0-9a-f]+)?$")


def native_name(symbol):
    """A native function's name without what demanglers write differently: return type,
    parameters, how a namespace without a name is called; and a builtin's without V8's
    prefix."""
    symbol = symbol.replace("(anonymous namespace)", "{anonymous}")
    symbol = re.sub(r"\.(constprop|isra|part|cold|lto_priv)[.0-9]*|@+[A-Z][\w.]*$", "", symbol)
    depth, begin, end = 0, 0, len(symbol)
    for at, letter in enumerate(symbol):
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth -= 1
        elif letter == " " and depth == 0:
            begin = at + 1
        elif letter == "(" and depth == 0:
            end = at
            break
    name = symbol[begin:end] if begin < end else symbol
    for prefix, suffix in (("Builtin:", ""), ("BytecodeHandler:", ""),
                           ("Builtins_", "Handler"), ("Builtins_", "")):
        if name.startswith(prefix) and name.endswith(suffix):
            return name[len(prefix):len(name) - len(suffix)]
    return name


def perf_name(symbol, module):
    """The function and tier by which vmscope knows what perf calls so."""
    js = JS.match(symbol)
    if js:
        return js.group(2) or "(anonymous)", TIERS[js.group(1)]
    symbol = re.sub(r"\+0x[0-9a-f]+$", "", symbol)
    if symbol.startswith("RegExp:"):
        return "RegExp", ""
    if symbol == "[unknown]":
        module = pathlib.Path(module).name
        return "[unnamed]" + (f" in {module}" if ".so" in module else ""), ""
    return native_name(symbol), ""


def in_perf(args, scratch, injected, tid, since):
    """(time in ns, name) of each user sample of a thread, in the order of time."""
    text = run(perf_command(args, scratch, "script", "-i", injected, "--ns", "-F",
                            "tid,time,ip,sym,dso"), env=environment(scratch))
    samples = []
    for line in text.splitlines():
        found = SAMPLE.match(line)
        if not found:
            if line.strip():
                raise Failed(f"perf script printed what is not known: {line!r}")
            continue
        thread, seconds, nanos, pc, symbol, module = found.groups()
        # Kernel addresses are the upper half's.
        if int(thread) != tid or int(pc, 16) >= 1 << 63:
            continue
        at = int(seconds) * 10**9 + int(nanos.ljust(9, "0"))
        if at >= since:
            samples.append((at, perf_name(symbol, module)))
    return sorted(samples)


def batch_means(names, name):
    """A name's share and its standard error."""
    size = len(names) // BATCHES
    hits = [sum(one == name for one in names[at * size:(at + 1) * size]) / size
            for at in range(BATCHES)]
    return names.count(name) / len(names), statistics.stdev(hits) / math.sqrt(BATCHES)


def vmscope_name(entry):
    name = entry["name"]
    if entry["kind"] == "regexp":
        return "RegExp", ""
    if entry["kind"] in ("unnamed", "doubtful"):
        return f"[{entry['kind']}]" + (f" in {entry['module']}" if entry["module"] else ""), ""
    tier = entry["tier"] if entry["tier"] in TIERS.values() else ""
    return (name if tier else native_name(name)), tier


def in_vmscope(args, ours, tid):
    """Shares of the thread's user samples, with their standard errors, and their number."""
    document = json.loads(run([args.vmscope, "report", "--json", "--threads", tid, "--from", SETTLED, ours]))
    user = [entry for entry in document["entries"] if entry["region"] != "kernel"]
    total = sum(entry["samples"] for entry in user)
    if not total:
        raise Failed("vmscope has no user samples of the main thread")
    # The report's errors are of shares in all samples; kernel samples are few.
    scale = document["samples"]["total"] / total
    shares = {}
    for entry in user:
        key = vmscope_name(entry)
        share, error = shares.get(key, (0.0, 0.0))
        own = entry["share_error"]
        own = own / 1.96 * scale if own is not None else math.sqrt(entry["samples"]) / total
        shares[key] = (share + entry["samples"] / total, math.hypot(error, own))
    return shares, total


def agreement(args, scratch):
    rows, worst, numbers, failed = [], 0.0, [], False
    for number in range(args.runs):
        say(f"agreement: run {number + 1} of {args.runs}")
        with Node(args, scratch, "bench.js") as node:
            theirs, ours, since = both(args, scratch, node, args.seconds or 20, PERIOD_NS)
            perf_samples = in_perf(args, scratch, inject(args, scratch, theirs), node.pid,
                                       since + SETTLED * 10**9)
            mine, total = in_vmscope(args, ours, node.pid)
        names = [name for _, name in perf_samples]
        if len(names) < 20 * BATCHES:
            raise Failed(f"perf has {len(names)} user samples of the main thread")
        hers = {name: batch_means(names, name) for name in set(names)}
        numbers.append(f"{total:,} and {len(names):,}")
        compared = sorted({name for name in set(hers) | set(mine)
                           if max(hers.get(name, (0,))[0], mine.get(name, (0,))[0]) >= args.least},
                          key=lambda name: -hers.get(name, (0,))[0])
        # One error for what one of the two does not have: that of a single sample.
        none = (0.0, 1 / len(names))
        lines = [(name, mine.get(name, none), hers.get(name, none)) for name in compared]
        rest = [(1 - sum(line[at][0] for line in lines)) for at in (1, 2)]
        lines.append((("the rest", ""), *((part, math.sqrt(max(part, 0) / count))
                                          for part, count in zip(rest, (total, len(names))))))
        for name, (one, its), (other, hers_error) in lines:
            error = math.hypot(its, hers_error)
            difference = (one - other) / error if error else 0.0
            if abs(difference) > args.within:
                failed = True
            worst = max(worst, abs(difference))
            rows.append((number + 1, " ".join(filter(None, name)), one, its, other, hers_error,
                         difference))
    print(f"### Agreement\n\nUser samples of the main thread (vmscope and perf): "
          f"{'; '.join(numbers)}. Largest difference: {worst:.1f} standard errors, "
          f"{max(abs(row[2] - row[4]) for row in rows) * 100:.2f} points.\n")
    print("| run | function | vmscope | perf | difference, standard errors |\n|---|---|---|---|---|")
    for run_number, name, one, its, other, hers_error, difference in rows:
        print(f"| {run_number} | `{name[:70]}` | {100 * one:.2f} ± {100 * its:.2f} % | "
              f"{100 * other:.2f} ± {100 * hers_error:.2f} % | {difference:+.1f} |")
    if failed:
        say(f"agreement: more than {args.within} standard errors apart")
    return not failed


def drop_caches():
    """Empties the page cache, if this process may."""
    try:
        os.sync()
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
        return True
    except OSError:
        return False


def timed(command, **options):
    begin = time.monotonic()
    run(command, **options)
    return time.monotonic() - begin


def speed(args, scratch):
    period = round(1e9 / args.rate)
    seconds = args.seconds or 785_000 / args.rate
    say(f"speed: {seconds:.0f} s at {args.rate:.0f} Hz, both attached")
    with Node(args, scratch, "bench.js") as node:
        theirs, ours, _ = both(args, scratch, node, seconds, period)
        dump = next(node.folder.glob("jit-*.dump"))
        counts = json.loads(run([args.vmscope, "report", "--json", ours]))["samples"]["total"]
        text = run(perf_command(args, scratch, "report", "--stats", "-i", theirs),
                   env=environment(scratch))
        found = re.search(r"^\s*SAMPLE events:\s+(\d+)", text, re.M)
        perf_count = int(found.group(1)) if found else 0
        sizes = [file.stat().st_size for file in (ours, theirs, dump)]
        cold = drop_caches()
        figures = {"inject": [], "report": [], "both": [], "vmscope": []}
        for number in range(args.runs):
            say(f"speed: run {number + 1} of {args.runs}, {'cold' if cold else 'warm'}")
            for who in random.sample(["perf", "vmscope"], 2):
                drop_caches()
                if who == "vmscope":
                    figures["vmscope"].append(timed([args.vmscope, "report", ours]))
                    continue
                shutil.rmtree(scratch / "debug", ignore_errors=True)
                for old in node.folder.glob("jitted-*.so"):
                    old.unlink()
                begin = time.monotonic()
                injected = inject(args, scratch, theirs)
                between = time.monotonic()
                drop_caches()
                again = time.monotonic()
                run(perf_command(args, scratch, "report", "--stdio", "-i", injected),
                    env=environment(scratch))
                end = time.monotonic()
                figures["inject"].append(between - begin)
                figures["report"].append(end - again)
                figures["both"].append(between - begin + end - again)
    ratios = [perf / own for perf, own in zip(figures["both"], figures["vmscope"])]
    print(f"### Speed, {'cold' if cold else 'warm (the page cache can not be dropped)'}\n")
    print("| figure | vmscope | perf | ratio |\n|---|---|---|---|")
    print(f"| samples | {counts:,} | {perf_count:,} | |")
    print(f"| inject, s | | {median_and_spread(figures['inject'])} | |")
    print(f"| report, s | {median_and_spread(figures['vmscope'])} "
          f"| {median_and_spread(figures['report'])} | |")
    print(f"| all, s | {median_and_spread(figures['vmscope'])} "
          f"| {median_and_spread(figures['both'])} | {median_and_spread(ratios, '{:.1f}')} |")
    print(f"| file, MB | {sizes[0] / 1e6:.2f} | {sizes[1] / 1e6:.2f} + dump {sizes[2] / 1e6:.2f} "
          f"| {sizes[1] / sizes[0]:.1f} |")
    print(f"| bytes a sample | {sizes[0] / max(counts, 1):.1f} "
          f"| {sizes[1] / max(perf_count, 1):.1f} | |")
    return True


def json_of(text):
    for line in text.splitlines():
        if line.startswith('{"pid"'):
            return json.loads(line)
    raise Failed(f"node printed no JSON: {text[-300:]}")


def run_attached(command, folder, scratch, attach):
    """What a command prints, with `attach` attached to it if that is given."""
    if attach is None:
        printed = run(command, cwd=folder, env=environment(scratch))
    else:
        with subprocess.Popen([str(part) for part in command], cwd=folder, text=True,
                              stdout=subprocess.PIPE) as node:
            vmscope = subprocess.Popen([str(part) for part in [*attach, node.pid]],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            printed, _ = node.communicate()
            _, errors = vmscope.communicate()
        if node.returncode != 0 or vmscope.returncode != 0:
            raise Failed(f"node or vmscope: {errors.decode(errors='replace')[-1000:]}")
    # V8 writes its map here, whatever the environment says.
    pathlib.Path(f"/tmp/perf-{json_of(printed)['pid']}.map").unlink(missing_ok=True)
    return printed


def cost(args, scratch):
    script = [PROGRAMS / "known_shares.js", "--cycles",
              str(round(250 * (args.seconds or 2)))]
    plain, traced, mapped = ([args.node, *flags, *script]
                             for flags in ([], ["--perf-prof"], ["--perf-basic-prof"]))
    ours, theirs = scratch / "cost.vmscope", scratch / "cost.perf"
    record = [args.vmscope, "record", "--quiet", "--output", ours]
    perf = perf_command(args, scratch, "record", "-q", "-N", "-k", "CLOCK_MONOTONIC", "-e",
                        "cpu-clock", "-c", PERIOD_NS, "-o", theirs, "--")
    commands = {
        "alone": plain,
        "node --perf-prof": traced,
        "vmscope": [*record, "--", *plain],
        "vmscope --jit-env": [*record, "--jit-env", "--", *plain],
        "vmscope attach": plain,
        "perf, --perf-prof": [*perf, *traced],
        "perf, --perf-basic-prof": [*perf, *mapped],
    }
    rounds = []
    for number in range(args.pairs):
        seconds = {}
        for name in random.sample(list(commands), len(commands)):
            folder = tempfile.mkdtemp(prefix="cost.", dir=scratch)
            attach = [args.vmscope, "attach", "--quiet", "--output", ours]
            printed = run_attached(commands[name], folder, scratch,
                                   attach if name == "vmscope attach" else None)
            seconds[name] = json_of(printed)["cpu_seconds"]
            shutil.rmtree(folder)
            for file in (ours, theirs):
                file.unlink(missing_ok=True)
        rounds.append(seconds)
        say(f"cost: round {number + 1} of {args.pairs}: "
            + ", ".join(f"{name} {seconds[name]:.3f} s" for name in commands))
    print(f"### Cost, {args.pairs} rounds\n")
    print("| run | CPU time of Node added, points | median ratio |\n|---|---|---|")
    for name in list(commands)[1:]:
        added = [100 * (r[name] - r["alone"]) / r["alone"] for r in rounds]
        ratio = statistics.median(r[name] / r["alone"] for r in rounds)
        print(f"| {name} | {statistics.mean(added):+.2f} ± {half_width(added):.2f} | {ratio:.3f} |")
    added = [100 * (r["vmscope"] - r["perf, --perf-prof"]) / r["alone"] for r in rounds]
    print(f"| vmscope minus perf | {statistics.mean(added):+.2f} ± {half_width(added):.2f} | |")
    print(f"| alone, CPU seconds | {median_and_spread([r['alone'] for r in rounds])} | |")
    return True


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    release = PROGRAMS.parents[2] / "target" / "release" / "vmscope"
    parser.add_argument("--vmscope", default=str(release), help="the vmscope to measure")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--node", default="node")
    parser.add_argument("--only", default="agreement,speed,cost", help="some of these")
    parser.add_argument("--seconds", type=float, default=0,
                        help="of sampling (agreement 20, speed 785,000 samples), of work (cost 2)")
    parser.add_argument("--rate", type=float, default=7000, help="Hz, for speed")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=15, help="rounds of the cost measurement")
    parser.add_argument("--least", type=float, default=0.005, help="smallest share compared")
    parser.add_argument("--within", type=float, default=math.inf,
                        help="standard errors that two shares may differ")
    parser.add_argument("--seed", type=int, default=None, help="of the random order")
    args = parser.parse_args()
    if args.pairs < 2 or args.runs < 1 or args.seconds < 0 or args.rate <= 0:
        parser.error("--pairs from 2, --runs from 1, the other numbers from 0")
    for tool in (args.vmscope, args.perf, args.node):
        if not shutil.which(tool):
            parser.error(f"{tool} is not there (vmscope: cargo build --release)")
    return args, parser


def main():
    args, parser = arguments()
    random.seed(args.seed)
    parts = {"agreement": agreement, "speed": speed, "cost": cost}
    chosen = args.only.split(",")
    if not set(chosen) <= set(parts):
        parser.error(f"--only takes some of {', '.join(parts)}")
    print(f"- {run([args.vmscope, '--version']).strip()}; {run([args.perf, '--version']).strip()}; "
          f"node {run([args.node, '--version']).strip()}; {os.cpu_count()} CPUs, load "
          f"{os.getloadavg()[0]:.2f}\n")
    good = True
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="jit_against_perf.") as folder:
            try:
                good = parts[name](args, pathlib.Path(folder).resolve()) and good
            except (Failed, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
                good = False
                say(f"{name}: {type(error).__name__}: {error}")
        print()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
