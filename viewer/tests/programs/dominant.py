"""Most of the time is spent in one function of known name: python3 -X perf dominant.py [CPU_SECONDS=2]

Its code is run by the interpreter's loop, which is a native function: the perf trampoline
makes a Python function visible in call chains. So this one calls itself over and over, and
what a sample of a pc alone shows is the loop.
"""
import json
import os
import sys
import time


def dominant(n):
    x = 1
    for i in range(n):
        x = (x * 5 + i) & 0xFFFFFF
    return x


def minor(n):
    x = 1
    for i in range(n):
        x = (x * 3 + i) & 0xFFFFFF
    return x


until = time.process_time() + float(sys.argv[1] if len(sys.argv) > 1 else 2)
in_dominant = in_minor = total = 0
while time.process_time() < until:
    begin = time.thread_time()
    total += dominant(90000)
    between = time.thread_time()
    total += minor(10000)
    in_dominant += between - begin
    in_minor += time.thread_time() - between
print(json.dumps({"pid": os.getpid(), "dominant": in_dominant, "minor": in_minor, "odd": total % 2}))
