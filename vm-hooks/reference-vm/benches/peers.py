#!/usr/bin/env python3
"""Compares the embedded VM with other interpreters, and its collector with a JVM's serial collector.

    peers.py VMSCOPE [--rounds N]

Each round runs all programs of a row after each other, so that the machine's other load meets all of them alike. A row gives the median
time of the embedded VM and the medians of the ratios. Missing interpreters are left out, with a line.
The last table has the cost of publication: nobody listens, against a VM that does not publish.
"""

import argparse
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

FIB = {
    "st": "!Integer methodsFor: 'x'!\nfib\n\t^self < 2 ifTrue: [1] ifFalse: [(self - 1) fib + (self - 2) fib + 1]! !\n"
    "Transcript showln: 31 fib printString!\n",
    "py": "def fib(n):\n    return 1 if n < 2 else fib(n - 1) + fib(n - 2) + 1\nprint(fib(31))\n",
    "lua": "local function fib(n) if n < 2 then return 1 end return fib(n - 1) + fib(n - 2) + 1 end\nprint(fib(31))\n",
}
SIEVE = {
    "st": "| count |\n1 to: 120 do: [:round | | flags |\n\tcount := 0. flags := Array new: 8190 withAll: true.\n"
    "\t1 to: 8190 do: [:i | (flags at: i) ifTrue: [ | prime k |\n\t\tprime := i + i + 1. k := i + prime.\n"
    "\t\t[k <= 8190] whileTrue: [flags at: k put: false. k := k + prime].\n\t\tcount := count + 1]]].\n"
    "Transcript showln: count printString!\n",
    "py": "def run():\n    for _ in range(120):\n        count = 0\n        flags = [True] * 8191\n        i = 1\n        while i <= 8190:\n"
    "            if flags[i]:\n                prime = i + i + 1\n                k = i + prime\n                while k <= 8190:\n"
    "                    flags[k] = False\n                    k += prime\n                count += 1\n            i += 1\n    print(count)\nrun()\n",
    "lua": "local count\nfor _ = 1, 120 do\n count = 0\n local flags = {}\n for i = 1, 8190 do flags[i] = true end\n for i = 1, 8190 do\n"
    "  if flags[i] then\n   local prime = i + i + 1\n   local k = i + prime\n   while k <= 8190 do flags[k] = false k = k + prime end\n"
    "   count = count + 1\n  end\n end\nend\nprint(count)\n",
}
METHODS = {
    "st": "Object subclass: #Counter instanceVariableNames: 'n' classVariableNames: '' package: 'x'!\n"
    "!Counter methodsFor: 'x'!\nstart\n\tn := 0!\n\nn\n\t^n!\n\nadd: k\n\tn := n + k! !\n"
    "| c | c := Counter new. c start. 1 to: 3000000 do: [:i | c add: i]. Transcript showln: c n printString!\n",
    "py": "class Counter:\n    def __init__(self):\n        self.n = 0\n    def add(self, k):\n        self.n = self.n + k\n"
    "def run():\n    c = Counter()\n    for i in range(1, 3000001):\n        c.add(i)\n    print(c.n)\nrun()\n",
    "lua": "local Counter = {}\nCounter.__index = Counter\nfunction Counter:add(k) self.n = self.n + k end\n"
    "local c = setmetatable({n = 0}, Counter)\nfor i = 1, 3000000 do c:add(i) end\nprint(c.n)\n",
}
TREES = {
    "st": "Object subclass: #Tree instanceVariableNames: 'left right' classVariableNames: '' package: 'x'!\n"
    "!Tree class methodsFor: 'x'!\ndepth: n\n\t^n = 0 ifTrue: [self basicNew] ifFalse: [self basicNew left: (self depth: n - 1) right: (self depth: n - 1)]! !\n"
    "!Tree methodsFor: 'x'!\nleft: l right: r\n\tleft := l. right := r!\n\ncheck\n\t^left isNil ifTrue: [1] ifFalse: [1 + left check + right check]! !\n"
    "| long sum | long := Tree depth: 16. sum := 0.\n1 to: 60 do: [:i | sum := sum + (Tree depth: 14) check].\n"
    "Transcript showln: (sum + long check) printString!\n",
    "py": "class Tree:\n    __slots__ = ('left', 'right')\n    def __init__(self, left, right):\n        self.left = left\n        self.right = right\n"
    "    def check(self):\n        return 1 if self.left is None else 1 + self.left.check() + self.right.check()\n"
    "def make(n):\n    return Tree(None, None) if n == 0 else Tree(make(n - 1), make(n - 1))\n"
    "long = make(16)\nprint(sum(make(14).check() for _ in range(60)) + long.check())\n",
    "lua": "local function make(n) if n == 0 then return {} end return {make(n - 1), make(n - 1)} end\n"
    "local function check(t) if not t[1] then return 1 end return 1 + check(t[1]) + check(t[2]) end\n"
    "local long, sum = make(16), 0\nfor _ = 1, 60 do sum = sum + check(make(14)) end\nprint(sum + check(long))\n",
}
JAVA = """
public class Trees {
    Trees left, right;
    static Trees make(int n) {
        Trees tree = new Trees();
        if (n > 0) { tree.left = make(n - 1); tree.right = make(n - 1); }
        return tree;
    }
    int check() { return left == null ? 1 : 1 + left.check() + right.check(); }
    public static void main(String[] args) {
        Trees all = make(18);
        long sum = 0;
        for (int i = 0; i < Integer.parseInt(args[0]); i++) sum += make(16).check();
        System.out.println(sum + all.check());
        long ns = 0, count = 0;
        for (var collector : java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()) {
            ns += collector.getCollectionTime(); count += collector.getCollectionCount();
        }
        System.out.println(count + " " + ns);
    }
}
"""
COLLECTOR = TREES["st"].replace("depth: 16)", "depth: 18)").replace("1 to: 60", "1 to: 40").replace("Tree depth: 14", "Tree depth: 16") + (
    "Transcript showln: ((Smalltalk vmParameterAt: 7) + (Smalltalk vmParameterAt: 9)) printString, ' ', "
    "((Smalltalk vmParameterAt: 8) + (Smalltalk vmParameterAt: 10)) printString!\n"
)


def timed(command):
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - begin, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vmscope")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    vm = [options.vmscope, "reference-vm"]
    others = {"py": [sys.executable], "lua": [shutil.which("lua5.4") or shutil.which("lua") or ""]}
    for suffix in [suffix for suffix, command in others.items() if not command[0]]:
        print(f"left out: {suffix} (not installed)")
        del others[suffix]
    programs = {"fib": FIB, "sieve": SIEVE, "methods": METHODS, "trees": TREES}
    print("| program | interpreted | " + " | ".join(f"{suffix} ÷ interpreted" for suffix in others)
          + " | interpreted ÷ jitted |")
    for name, texts in programs.items():
        for suffix, text in texts.items():
            (folder / f"{name}.{suffix}").write_text(text)
        ours, jitted, ratios = [], [], {suffix: [] for suffix in others}
        for _ in range(options.rounds):
            own, out = timed(vm + ["--interpret", folder / f"{name}.st"])
            ours.append(own)
            jitted.append(own / timed(vm + [folder / f"{name}.st"])[0])
            for suffix, command in others.items():
                took, their = timed(command + [folder / f"{name}.{suffix}"])
                assert out == their, (name, out, their)
                ratios[suffix].append(took / own)
        row = " | ".join(f"{statistics.median(ratios[suffix]):.2f}" for suffix in others)
        print(f"| {name} | {statistics.median(ours):.2f} s | {row} | {statistics.median(jitted):.1f} |", flush=True)

    (folder / "gc.st").write_text(COLLECTOR)
    (folder / "Trees.java").write_text(JAVA)
    if shutil.which("javac"):
        subprocess.run(["javac", "-d", folder, folder / "Trees.java"], check=True)
        # The same new space and number of nodes: 16 bytes of header and slots there, 24 here.
        java = ["java", "-XX:+UseSerialGC", "-Xmn21m", "-Xmx1g", "-cp", folder, "Trees", "40"]
        ratios, lines = [], None
        for _ in range(options.rounds):
            (_, ours), (_, theirs) = timed(vm + [folder / "gc.st"]), timed(java)
            lines = ours.split("\n")[1], theirs.split("\n")[1]
            ratios.append(int(lines[0].split()[1]) / max(1, int(lines[1].split()[1])))
        print(f"\ncollections and their ms: embedded VM {lines[0]}, serial collector {lines[1]};"
              f" median ratio of the times {statistics.median(ratios):.2f}")

    print("\n| program | publishing ÷ not publishing |")
    for name in programs:
        ratios = []
        for _ in range(options.rounds):
            on, _ = timed(vm + [folder / f"{name}.st"])
            off, _ = timed(vm + ["--no-publish", folder / f"{name}.st"])
            ratios.append(on / off)
        print(f"| {name} | {statistics.median(ratios):.3f} |", flush=True)


main()
