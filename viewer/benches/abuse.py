#!/usr/bin/env python3
"""What vmscope delivers and takes beside overload and storms, and on hostile recordings.

    cargo build --release
    viewer/benches/abuse.py [--vmscope PATH] [--only WORD ...]

A row of the first table: `vmscope attach --quiet` beside a program; samples received of those
expected, peak memory, CPU time, and wall time from the end of --duration (or from the Ctrl-C) to
the exit. A row of the second: `vmscope report --full` on a recording made to ask for much memory;
peak memory and wall time. The programs are those of viewer/tests/programs. Needs a C compiler and
zstd. Writes Markdown tables to stdout. Exit code: 0, or 1 if vmscope failed or a recording can't
be read.
"""

import argparse
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

from kills import build, waited

# Case, program and arguments, seconds of --duration, further options, whether Ctrl-C ends it.
STORMS = [
    ("100 busy threads", "known_shares --threads 100 --forever", 2, [], False),
    ("1,000 busy threads", "known_shares --threads 1000 --forever", 2, [], False),
    ("1,000 busy threads, Ctrl-C", "known_shares --threads 1000 --forever", 3, [], True),
    ("threads that live for 20 µs", "thread_storm --seconds 60", 5, [], False),
    ("10,000 changes of mappings of files/s", "map_storm --seconds 60 --rate 10000 --kind files",
     5, [], False),
    ("the same, --keep-last 1", "map_storm --seconds 60 --rate 10000 --kind files",
     5, ["--keep-last", "1"], False),
    ("20,000 changes of protection/s", "map_storm --seconds 60 --rate 20000 --kind flip",
     5, [], False),
    ("perf map of 1,000,000 lines", "perf_map --lines 1000000 --run 16", 3, [], False),
]


def storm(vmscope, folder, case):
    name, words, seconds, options, is_interrupted = case
    program, *arguments = words.split()
    output = folder / "out.vmscope"
    target = subprocess.Popen([build(program, folder), *arguments], stdout=subprocess.PIPE)
    try:
        target.stdout.readline()
        command = [vmscope, "attach", str(target.pid), "--quiet", "--output", output, *options]
        if not is_interrupted:
            command += ["--duration", str(seconds)]
        began = time.monotonic()
        child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        if is_interrupted:
            time.sleep(seconds)
            child.send_signal(signal.SIGINT)
            began = time.monotonic() - seconds
        code, used = waited(child)
        late = time.monotonic() - began - seconds
    finally:
        target.kill()
        target.wait()
    # A child's peak memory begins with that of this program, which must stay small: no --json.
    report = subprocess.run([vmscope, "report", output], capture_output=True, check=False, text=True)
    for left in folder.glob("out.vmscope*"):
        left.unlink()
    if code != 0 or report.returncode != 0:
        print(f"{name}: exit code {code}, {report.stderr}", file=sys.stderr)
        return False
    received = re.search(r"Accuracy: ([\d.]+)% of expected", report.stdout)
    print(f"| {name} | {received[1] if received else '?'} % | "
          f"{used.ru_maxrss // 1024} MB | {used.ru_utime + used.ru_stime:.1f} s | {late:.1f} s |",
          flush=True)
    return True


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def frame(kind, message):
    return varint(kind) + varint(len(message)) + message


def chunk(payload, content, records):
    """A compressed chunk (vm-hooks/records/FORMAT.md)."""
    stored = subprocess.run(["zstd", "-q", "-c"], input=payload, stdout=subprocess.PIPE,
                            check=True).stdout
    head = struct.pack("<4sB3xIIIIQQI", b"VMSC", 1, content, len(payload), len(stored),
                       zlib.crc32(stored), 1, 2, records)
    return head + struct.pack("<I", zlib.crc32(head)) + stored


def bombs(vmscope, folder):
    """A recording with some 100 kB of chunks that inflate as far as readers allow, or beyond."""
    path = folder / "small.vmscope"
    subprocess.run([vmscope, "record", "--quiet", "--output", path, "--", "true"], check=True,
                   stderr=subprocess.DEVNULL)
    head = path.read_bytes()
    limit = frame(2, b"")
    columns = [(2, bytes(65536)), (3, b"\x01" * 65536), (4, bytes(65536)), (5, bytes(65536))]
    packed = b"".join(bytes([field << 3 | 2]) + varint(len(each)) + each for field, each in columns)
    batch = frame(11, b"\x08\x01" + packed)
    # A frame of an unknown kind that does not compress.
    noise = frame(100, random.Random(1).randbytes(16 << 10))
    for name, record, content in (("empty limits", limit, 4), ("samples of one moment", batch, 1)):
        for beyond, padding, chunks in ((True, b"", 100), (False, noise, 6)):
            count = ((4 << 20) - len(padding)) // len(record)
            payload = padding + record * count
            said = "inflating beyond the limit" if beyond else "inflating 250 times"
            yield f"{name}, {said}", head + chunk(payload, content, count) * chunks


def bomb(vmscope, folder, name, data):
    path = folder / "bomb.vmscope"
    path.write_bytes(data)
    began = time.monotonic()
    child = subprocess.Popen([vmscope, "report", "--full", path], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    code, used = waited(child)
    print(f"| {name} | {len(data):,} | {used.ru_maxrss // 1024} MB | "
          f"{time.monotonic() - began:.1f} s |", flush=True)
    return code == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vmscope", default="target/release/vmscope")
    parser.add_argument("--only", nargs="*", default=[""])
    options = parser.parse_args()
    vmscope = os.path.abspath(options.vmscope)
    try:
        # This program's own turns must not count.
        policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(1))
    except PermissionError:
        print("no real-time priority: on overloaded machines, ends are measured late",
              file=sys.stderr)

    def is_wanted(name):
        return any(word in name for word in options.only)

    good = True
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        print("| beside | received of those expected | peak memory | CPU time | end |")
        print("|---|---|---|---|---|")
        for case in STORMS:
            good &= not is_wanted(case[0]) or storm(vmscope, folder, case)
        print("\n| recording | bytes | peak memory | time |")
        print("|---|---|---|---|")
        for name, data in bombs(vmscope, folder):
            good &= not is_wanted(name) or bomb(vmscope, folder, name, data)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
