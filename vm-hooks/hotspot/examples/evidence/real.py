#!/usr/bin/env python3
"""Measures the inference error of methods' shares, by what names the method (docs/truth.md).

    real.py EVIDENCE JDK=JAVA … [--keep FOLDER]

EVIDENCE is the built example `evidence`; JDK=JAVA names a JVM: `17=/usr/bin/java`. Needs perf, javac
and Debian's libh2-java, libclosure-compiler-java, libjs-jquery, jython, groovy and clojure. Each program
runs under C1 and under C1 with C2, with `-XX:+DebugNonSafepoints`. Its full records are the reference;
the inference gets the records of a JVM without the flag. `--keep`: measured lines, which a second call
uses again.

An entry is a method under one compiler. It counts if it has at least 1 % of a recording's samples and
most of them are inferred. Its relative error is |reported - right samples| / inferred samples. The bound of a
kind of evidence holds for 95 % of the entries with most inferred samples of this kind, in the programs
of CALIBRATION; the other programs test it.
"""
import argparse, collections, os, signal, subprocess, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
OWN = os.path.join(HERE, "../../tests/programs/evidence")
JARS = "/usr/share/java/"
CALIBRATION = ["h2", "jython", "groovy", "EvGraph", "EvJson"]
OPENS = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "io")]
WARM_UP, SECONDS = 16, 8


def jars(*names):
    return ":".join(JARS + name + ".jar" for name in names)


def programs(classes):
    real = os.path.join(HERE, "real/real_work.")
    yield "h2", ["-cp", jars("h2") + ":" + classes, "RealH2"]
    closure = jars("closure-compiler", "guava", "args4j", "rhino", "json", "protobuf")
    script = "/usr/share/javascript/jquery/jquery.js"
    yield "closure", ["-cp", closure + ":" + classes, "RealClosure", script]
    yield "jython", ["-jar", jars("jython"), real + "py"]
    groovy = jars("groovy-all", "asm", "antlr")
    yield "groovy", ["-cp", groovy, "groovy.ui.GroovyMain", real + "groovy"]
    clojure = jars("clojure", "spec.alpha", "core.specs.alpha")
    yield "clojure", ["-cp", clojure, "clojure.main", real + "clj"]
    for name in ["EvGraph", "EvJson", "EvParse", "EvStreams"]:
        yield name, ["-cp", classes, name]


def measured(evidence, java, flags, program, folder):
    """Lines of `evidence … entries`."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    full = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]
    vm = subprocess.Popen([java, "-Xmx600m", *full, *flags, *OPENS, *program], **quiet)
    data, ips = os.path.join(folder, "perf.data"), os.path.join(folder, "ips")
    try:
        time.sleep(WARM_UP)
        options = ["-e", "cpu-clock", "-F", "1999", "-p", str(vm.pid), "-o", data]
        subprocess.run(["perf", "record", *options, "--", "sleep", str(SECONDS)], **quiet)
        os.kill(vm.pid, signal.SIGSTOP)
        with open(ips, "w") as file:
            script = ["perf", "script", "-i", data, "-F", "ip"]
            subprocess.run(script, stdout=file, stderr=subprocess.DEVNULL)
        command = [evidence, str(vm.pid), ips, "entries"]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    finally:
        vm.kill()
        vm.wait()


def entries(lines):
    """Of one recording: relative error, right and all samples, inferred samples by kind."""
    reported, right = collections.Counter(), collections.Counter()
    inferred = collections.defaultdict(collections.Counter)
    for line in lines.splitlines():
        compiler, named_by, found, true, count = line.split("\t")
        reported[compiler, found] += int(count)
        right[compiler, true] += int(count)
        if named_by not in ("Record", "Certain"):
            inferred[compiler, found][f"{compiler} {named_by}"] += int(count)
    total = sum(reported.values())
    for entry, samples in reported.items():
        kinds = inferred[entry]
        if samples >= 0.01 * total and 2 * sum(kinds.values()) > samples:
            yield abs(samples - right[entry]), kinds


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("evidence")
    parser.add_argument("jdks", nargs="+")
    parser.add_argument("--keep")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        keep = options.keep or folder
        os.makedirs(keep, exist_ok=True)
        real, own = os.path.join(HERE, "real"), OWN
        sources = [os.path.join(at, name) for at in (real, own) for name in os.listdir(at)]
        sources = [source for source in sources if source.endswith(".java")]
        libraries = jars("h2", "closure-compiler")
        subprocess.run(["javac", "-nowarn", "-cp", libraries, "-d", folder, *sources], check=True)
        sides = {True: [], False: []}
        for name, program in programs(folder):
            for jdk, java in (one.split("=", 1) for one in options.jdks):
                for mode, flags in (("C1", ["-XX:TieredStopAtLevel=1"]), ("C2", [])):
                    kept = os.path.join(keep, f"{name}-{jdk}-{mode}.tsv")
                    if not os.path.exists(kept):
                        lines = measured(options.evidence, java, flags, program, folder)
                        with open(kept, "w") as file:
                            file.write(lines)
                    with open(kept) as file:
                        sides[name in CALIBRATION].extend(entries(file.read()))
    kinds = sorted({kind for side in sides.values() for _, of in side for kind in of})
    bounds = {}
    for kind in kinds:
        row = [f"{kind:12}"]
        for side, name in ((True, "calibration"), (False, "test")):
            of = [e / sum(by.values()) for e, by in sides[side] if by.most_common(1)[0][0] == kind]
            if side:
                bounds[kind] = quantile(of, 0.95) if of else 1.0
            figures = " ".join(f"{100 * quantile(of, part):4.0f}" for part in (0.5, 0.8, 0.95))
            row.append(f"{name}: {len(of):4} entries, 50/80/95 %: {figures}")
        print(" | ".join(row))
    for side, name in ((True, "calibration"), (False, "test")):
        holds = [e <= sum(bounds[kind] * n for kind, n in by.items()) + 0.5 for e, by in sides[side]]
        print(f"{name}: bound holds for {sum(holds)} of {len(holds)} entries")


if __name__ == "__main__":
    main()
