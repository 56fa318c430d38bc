#!/usr/bin/env python3
"""What is readable after kills at random moments, and what --keep-last costs.

    cargo build --release
    viewer/benches/kills.py [--vmscope PATH] [--only kills,cost] [--runs 10] [--seed 1]

kills   Each way of recording is killed --runs times (SIGKILL) at a random moment in the first
        seconds: the recorder, its target, or both. `readable` counts the files that hold samples
        and that `vmscope report` reads. `missing` is the time between the last sample in the
        file and the end of sampling, at worst: the recorder's or the target's death, whichever
        comes first. `not sampled` is a target thread's CPU time in that time, at worst: a
        program that did not run can't be sampled. `kept` says whether all samples before are
        there, or those of the window, and how long a time at most. Times come from the chunks'
        headers (vm-hooks/records/FORMAT.md), not from vmscope.
cost    CPU time and peak memory of `vmscope attach --quiet --duration 30`, plain and with
        --keep-last 10, on the same target; --target COMMAND adds one, such as a JVM.

The targets are viewer/tests/programs/known_shares.c and map_storm.c. Needs a C compiler. Writes Markdown
tables to stdout, progress to stderr. Exit code: 0, or 1 if a file was not readable, lacks
more than a second of the target's CPU time, or lacks a part of its window.
"""

import argparse
import bisect
import os
import pathlib
import pty
import random
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "tests" / "programs"
WINDOW = 2.0
LONGEST = 6.0
THREADS = 2
MODES = {
    "record": ("record", []),
    "attach": ("attach", []),
    "record --keep-last": ("record", ["--keep-last", str(WINDOW)]),
    "attach --keep-last": ("attach", ["--keep-last", str(WINDOW)]),
    "top --output": ("top", []),
}


def say(text):
    print(text, file=sys.stderr, flush=True)


def build(name, folder):
    program = folder / name
    subprocess.run(["cc", "-O2", "-g", "-pthread", "-o", program, PROGRAMS / f"{name}.c", "-lm"],
                   check=True)
    return program


def sample_times(path):
    """First and last time of the samples in a recording's whole chunks, in seconds."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    at, first, last = 16, None, None
    while at + 48 <= len(data) and data[at:at + 4] == b"VMSC":
        content, _, stored = struct.unpack_from("<III", data, at + 8)
        begin, end = struct.unpack_from("<QQ", data, at + 24)
        at += 48 + stored
        if at > len(data):
            break
        if content & 1:
            first, last = begin if first is None else first, end
    return None if first is None else (first / 1e9, last / 1e9)


def waited(child):
    """Waits for a child; returns its exit code and usage."""
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, used


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class CpuTime(threading.Thread):
    """CPU time of a process over time, read every few milliseconds until the process is gone."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        # The kernel's clock of a process (CPUCLOCK_SCHED in linux/posix-timers.h).
        self.clock = (~pid << 3) | 2
        self.stat = f"/proc/{pid}/stat"
        self.times, self.used, self.stopped = [], [], False
        self.start()

    def run(self):
        while not self.stopped and self.read():
            time.sleep(0.004)

    def read(self):
        """Notes the CPU time now; returns whether the process still lives."""
        try:
            with open(self.stat, encoding="ascii") as stat:
                state = stat.read().rpartition(")")[2].split()[0]
            used = time.clock_gettime(self.clock)
        except OSError:
            return False
        self.times.append(time.monotonic())
        self.used.append(used)
        return state not in "ZX"

    def death(self):
        """Waits for the end of the process; returns the time of the last reading."""
        self.join(20)
        return self.times[-1]

    def between(self, begin, end):
        """CPU seconds that the process used from the moment `begin` to the moment `end`."""
        first, last = (bisect.bisect_right(self.times, moment) - 1 for moment in (begin, end))
        return self.used[max(last, 0)] - self.used[max(first, 0)]


class Run:
    """One recording."""

    def __init__(self, vmscope, mode, program, folder):
        self.output = folder / "out.vmscope"
        verb, options = MODES[mode]
        words = [vmscope, verb, *options, "--output", self.output]
        target = [program, "--forever", "--threads", str(THREADS)]
        self.target, self.terminal = None, None
        if verb == "record":
            self.vmscope = subprocess.Popen(words + ["--quiet", "--", *target], stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL)
            self.target_pid = int(self.vmscope.stdout.readline().split()[1])
            self.cpu_time = CpuTime(self.target_pid)
            return
        self.target = subprocess.Popen(target, stdout=subprocess.PIPE)
        self.target.stdout.readline()
        self.target_pid = self.target.pid
        self.cpu_time = CpuTime(self.target_pid)
        words.append(str(self.target_pid))
        if verb != "top":
            self.vmscope = subprocess.Popen(words + ["--quiet"], stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL)
            return
        self.terminal, other = pty.openpty()
        self.vmscope = subprocess.Popen(words, stdin=other, stdout=other, stderr=other,
                                        env={**os.environ, "TERM": "xterm"})
        os.close(other)
        threading.Thread(target=self.read_terminal, daemon=True).start()

    def read_terminal(self):
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:
            pass

    def first_sample(self):
        """Waits for the first sample, at most five seconds; returns its time."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            if times := sample_times(self.output):
                return times[0]
            time.sleep(0.01)
        return 0

    def end(self, victim):
        """Kills, ends what is left, and returns the moment at which sampling ended."""
        moment = time.monotonic()
        if victim != "vmscope":
            kill(self.target_pid)
        if victim != "target":
            kill(self.vmscope.pid)
        if victim == "target":
            # A busy machine lets a killed program run on until its next turn.
            moment = self.cpu_time.death()
        self.cpu_time.stopped = True
        if self.terminal is not None and victim == "target":
            # The screen stays, with what was recorded, until the user leaves.
            time.sleep(1.5)
            os.write(self.terminal, b"q")
        try:
            self.vmscope.wait(20)
        finally:
            kill(self.vmscope.pid)
            kill(self.target_pid)
            if self.target:
                self.target.wait()
            if self.terminal is not None:
                os.close(self.terminal)
        return moment


def kills(options, folder):
    draw = random.Random(options.seed)
    program = build("known_shares", folder)
    good = True
    print("| recording | killed | readable | missing at the end, at most | of it not sampled | kept |")
    print("|---|---|---|---|---|---|")
    for mode in MODES:
        for victim in ("vmscope", "target", "both"):
            readable, missing, unsampled, kept, whole = 0, 0.0, 0.0, 0.0, True
            for _ in range(options.runs):
                with tempfile.TemporaryDirectory(dir=folder) as own:
                    run = Run(options.vmscope, mode, program, pathlib.Path(own))
                    began = run.first_sample()
                    time.sleep(draw.uniform(0, LONGEST))
                    moment = run.end(victim)
                    times = sample_times(run.output)
                    report = subprocess.run([options.vmscope, "report", run.output, "--json"],
                                            capture_output=True, check=False)
                    if times is None or report.returncode != 0:
                        say(f"{mode}, {victim}: {os.listdir(own)} {report.stderr.decode()}")
                        continue
                    readable += 1
                    missing = max(missing, moment - times[1])
                    used = run.cpu_time.between(times[1], moment) / THREADS
                    unsampled = max(unsampled, used)
                    window = WINDOW if "keep" in mode else LONGEST + 60
                    kept = max(kept, moment - times[0])
                    # An edge is as exact as a chunk.
                    whole &= times[0] <= max(began, moment - window) + 0.01
            say(f"{mode}, {victim}: {readable} of {options.runs}")
            good &= readable == options.runs and unsampled < 1 and whole
            part = "all" if "keep" not in mode else f"{WINDOW:.0f} s or all; at most {kept:.1f} s"
            part = part if whole else "not all"
            print(f"| `{mode}` | {victim} | {readable} of {options.runs} | {missing:.2f} s | "
                  f"{unsampled:.2f} s | {part} |", flush=True)
    return good


def cost(options, folder):
    targets = {
        "known_shares, 2 threads": [build("known_shares", folder), "--forever", "--threads", "2"],
        "map_storm, 10,000 mappings of a file/s": [build("map_storm", folder), "--seconds", "600",
                                                   "--rate", "10000", "--kind", "files"],
    }
    for words in options.target:
        targets[f"`{words}`"] = shlex.split(words)
    print("| target | recording | CPU time | peak memory | file |")
    print("|---|---|---|---|---|")
    for name, words in targets.items():
        target = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        try:
            time.sleep(5)
            for keep in ([], ["--keep-last", "10"]):
                output = folder / "cost.vmscope"
                attach = [options.vmscope, "attach", str(target.pid), "--quiet", "--duration", "30",
                          "--output", output, *keep]
                child = subprocess.Popen(attach, stderr=subprocess.DEVNULL)
                _, used = waited(child)
                cpu = used.ru_utime + used.ru_stime
                shown = "`attach " + " ".join(keep) + "`" if keep else "`attach`"
                print(f"| {name} | {shown} | {cpu:.2f} s | {used.ru_maxrss / 1024:.0f} MiB | "
                      f"{output.stat().st_size / 1024:.0f} KiB |", flush=True)
                for left in folder.glob("cost.vmscope*"):
                    left.unlink()
        finally:
            target.kill()
            target.wait()
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vmscope", default="target/release/vmscope")
    parser.add_argument("--only", default="kills,cost")
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.vmscope = os.path.abspath(options.vmscope)
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for part in options.only.split(","):
            good &= {"kills": kills, "cost": cost}[part](options, pathlib.Path(folder))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
