"""Functions with known callers: python3 -X perf callers.py [CPU_SECONDS=2]

`leaf` is called through in_a, in_b and in_c, which give it 1 : 2 : 3 parts of its work. Prints
  {"pid":…, "chains":{"leaf":["leaf;in_a;callerA;middle;main", …]}}
"""
import json
import os
import sys
import time


def leaf(n):
    s = 0
    for i in range(n):
        s += i & 7
    return s


def in_a(n): return leaf(n)
def in_b(n): return leaf(n)
def in_c(n): return leaf(n)
def callerA(n): return in_a(n)
def callerB(n): return in_b(2 * n)
def callerC(n): return in_c(3 * n)
def middle(n): return callerA(n) + callerB(n) + callerC(n)


def main(until):
    n = 0
    while time.process_time() < until:
        # Rounds of equal length can keep in step with the samples.
        n = (n + 1009) % 10000
        middle(5000 + n)


main(time.process_time() + float(sys.argv[1] if len(sys.argv) > 1 else 2))
chains = [f"leaf;in_{one.lower()};caller{one};middle;main" for one in "ABC"]
print(json.dumps({"pid": os.getpid(), "chains": {"leaf": chains}}))
