#!/usr/bin/env python3
"""vmscope beside large Java programs: names, losses, cost; collections against the JVM's log,
regions against perf.

    cargo build --release
    viewer/benches/jvm_programs.py [--only WORD …] [--java JAVA] [--seconds N] [--folder FOLDER]

The programs come from the Debian, Python and npm registries and are unpacked into --folder, not
installed. Each starts a JVM; after `delay` seconds `vmscope attach` and `perf record` sample it
together. A row: samples received of those expected; interpreted samples without a method, and
samples of JIT code with a method only; vmscope's own CPU time as a share of one core, and its peak
memory; collections and pauses by the JVM's log and by vmscope; shares of generated code by perf
and by vmscope, and of the JVM's library by perf. Fails where more than 1 % of the interpreted
samples have no method, or more than 2 % of the samples of generated code a method only. Needs
java 17 (--java), javac, perf, pip, npm, apt-get.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent.parent / "vm-hooks" / "hotspot" / "tests" / "programs"
PERIOD_NS = 713_927

SQL = "SELECT a.id % {0}, count(*), sum(a.id * b.id) FROM range({1}) a JOIN range(50) b " \
      "ON a.id % 50 = b.id GROUP BY a.id % {0} ORDER BY 2 DESC, 1 LIMIT 5;\n"
H2 = "SELECT x, count(*) FROM (SELECT MOD(t.k, {0}) x FROM t WHERE t.v LIKE '%{0}%') GROUP BY x " \
     "ORDER BY 2 DESC LIMIT 3;\n"
CLOJURE = """
(defprotocol Shape (area [s]))
(defrecord Square [a] Shape (area [_] (* a a)))
(defrecord Disc [r] Shape (area [_] (* 3 r r)))
(deftype Line [l] Shape (area [_] 0))
(def shapes (mapv #(case (mod % 3) 0 (->Square %) 1 (->Disc %) (Line. %)) (range 1000)))
(dotimes [i 1000000]
  (->> shapes (map area) (filter odd?) (group-by #(mod % 7)) (map (comp count val)) (reduce +)))
"""
SERVER = """<Server port="-1"><Service name="Catalina"><Connector port="{port}"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps">
<Context path="/x" docBase="{examples}"/></Host></Engine></Service></Server>"""


def run(command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def debian(folder, *packages):
    """Unpacks Debian packages; returns their root."""
    root = folder / "debian"
    for package in packages:
        if not list(folder.glob(package + "_*.deb")):
            run(["apt-get", "download", "-qq", package], cwd=folder, stderr=subprocess.DEVNULL)
        run(["dpkg", "-x", *folder.glob(package + "_*.deb"), root])
    return root


def jars(root, *names):
    return ":".join(str(root / "usr/share/java" / name) for name in names)


def written(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def spark(folder):
    home = folder / "spark"
    if not home.exists():
        run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", home,
             "pyspark==4.0.0"])
    queries = "".join(SQL.format(97 + i, 2_000_000 + i) for i in range(1000))
    exports = [f"--add-opens=java.base/{part}=ALL-UNNAMED" for part in (
        "java.lang", "java.lang.invoke", "java.io", "java.net", "java.nio", "java.util",
        "java.util.concurrent", "sun.nio.ch", "sun.security.action", "sun.util.calendar")]
    return ["-Xmx2g", *exports, "-cp", f"{home}/pyspark/jars/*",
            "org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", "--class",
            "org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver", "spark-internal",
            "-f", written(folder, "spark.sql", queries)]


def closure(folder):
    for package in ("google-closure-compiler-java@20240317.0.0", "typescript@5.4.5"):
        target = folder / package.split("@")[0]
        if not target.exists():
            name = run(["npm", "pack", "--silent", package], cwd=folder, text=True,
                       stdout=subprocess.PIPE).stdout.split()[-1]
            target.mkdir()
            run(["tar", "xzf", folder / name, "-C", target, "--strip-components=1"])
    return ["-jar", folder / "google-closure-compiler-java/compiler.jar", "--js",
            folder / "typescript/lib/typescript.js", "--js_output_file", "/dev/null"]


def clojure(folder):
    packages = ("libclojure-java", "libspec-alpha-clojure", "libcore-specs-alpha-clojure")
    root = debian(folder, *packages)
    paths = jars(root, "clojure-1.11.jar", "spec.alpha.jar", "core.specs.alpha.jar")
    return ["-cp", paths, "clojure.main", written(folder, "work.clj", CLOJURE)]


def h2(folder):
    root = debian(folder, "libh2-java")
    text = "CREATE TABLE t AS SELECT x k, random_uuid() || x v FROM system_range(1, 200000);\n"
    text += "".join(H2.format(7 + i) for i in range(3000))
    return ["-cp", jars(root, "h2.jar"), "org.h2.tools.RunScript", "-url", "jdbc:h2:mem:x",
            "-script", written(folder, "work.sql", text)]


def tomcat(folder):
    root = debian(folder, "tomcat10", "tomcat10-common", "libtomcat10-java", "tomcat10-examples",
                  "libeclipse-jdt-core-java", "libtaglibs-standard-impl-java")
    base = folder / "tomcat"
    (base / "conf").mkdir(parents=True, exist_ok=True)
    (base / "webapps").mkdir(exist_ok=True)
    written(base / "conf", "server.xml", SERVER.format(
        port=18080, examples=root / "usr/share/tomcat10-examples/examples"))
    shutil.copy(root / "usr/share/tomcat10/etc/web.xml", base / "conf/web.xml")
    paths = [root / "usr/share/java/*", root / "usr/share/tomcat10/lib/*",
             root / "usr/share/tomcat10/bin/*"]
    return ["-XX:+UseShenandoahGC", f"-Dcatalina.base={base}", f"-Dcatalina.home={base}", "-cp",
            ":".join(map(str, paths)), "org.apache.catalina.startup.Bootstrap", "start"]


def own(program, *arguments):
    def command(folder):
        sources = sorted(TESTS.glob("*.java"))
        run([shutil.which("javac"), "--release", "11", "-d", folder / "own", *sources])
        return ["-cp", folder / "own", f"programs.{program}", *arguments]
    return command


# Name, command of the JVM, seconds until the attach, whether HTTP requests are its work.
PROGRAMS = [
    ("Spark, start", spark, 8, False),
    ("Spark, warm", spark, 45, False),
    ("closure-compiler, start", closure, 1, False),
    ("Clojure", clojure, 10, False),
    ("H2", h2, 10, False),
    ("Tomcat, Shenandoah", tomcat, 8, True),
    ("class churn", own("Churn", "--lives", "1000000"), 5, False),
    ("many classes", own("Many", "--forever"), 5, False),
]


def measured(command, log):
    """Starts a profiler; returns its process, to be waited for with wait4."""
    return subprocess.Popen([str(part) for part in command], stdout=log, stderr=log)


def shares_of_perf(data):
    """Perf's shares of generated code and of the JVM's library."""
    script = run(["perf", "script", "-i", data, "-F", "ip,sym,dso"], text=True,
                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    counts = collections.Counter()
    for line in script.splitlines():
        place = line[line.rfind("("):]
        kind = "library" if "libjvm" in place else "other"
        if "anon" in place or "unknown" in place or "perf-" in place:
            kind = "generated" if not re.match(r"\s*ffff", line) else "other"
        counts[kind] += 1
    total = max(1, sum(counts.values()))
    return counts["generated"] / total, counts["library"] / total


def pauses_of_log(log, since, until):
    """Pauses in the log of `-Xlog:gc` between two times of the JVM's uptime: number, ms."""
    found = re.findall(r"\[([\d.]+)s\].*Pause .* ([\d.]+)ms", log.read_text(errors="replace"))
    lengths = [float(ms) for at, ms in found if since <= float(at) <= until]
    return len(lengths), sum(lengths)


def requests(stop):
    """Work for a server: requests one after the other, until `stop` exists."""
    script = ("import urllib.request as u, os, sys\n"
              "while not os.path.exists(sys.argv[1]):\n"
              " for p in ('HelloWorldExample', 'RequestInfoExample', 'RequestHeaderExample'):\n"
              "  try: u.urlopen('http://127.0.0.1:18080/x/servlets/servlet/' + p).read()\n"
              "  except OSError: pass\n")
    return subprocess.Popen([sys.executable, "-c", script, stop])


def row(args, name, command, delay, is_server):
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="programs."))
    log, out = scratch / "gc.log", open(scratch / "out", "wb")
    started = [args.java, f"-Xlog:gc:file={log}:uptime", *command(args.folder)]
    began = time.time()
    jvm = subprocess.Popen([str(part) for part in started], stdout=out, stderr=out, cwd=scratch,
                           stdin=subprocess.DEVNULL)
    load = requests(scratch / "stop") if is_server else None
    try:
        time.sleep(delay)
        since = time.time() - began
        perf = measured([args.perf, "record", "-q", "-N", "-e", "cpu-clock", "-c", PERIOD_NS,
                         "-p", jvm.pid, "-o", scratch / "perf.data", "--", "sleep",
                         args.seconds], out)
        ours = measured([args.vmscope, "attach", jvm.pid, "--duration", args.seconds, "--quiet",
                         "--output", scratch / "o.vmscope"], out)
        _, status, usage = os.wait4(ours.pid, 0)
        until = time.time() - began
        perf.wait()
        if status != 0 or jvm.poll() is not None:
            print(f"{name}: failed, see {scratch}")
            return False
    finally:
        (scratch / "stop").touch()
        jvm.kill()
        jvm.wait()
        if load:
            load.wait()
    report = json.loads(run([args.vmscope, "report", "--json", scratch / "o.vmscope"], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    samples, vm = report["samples"], report["vm"][0]["collections"]
    code = samples["code"]
    region = {one["region"]: one["samples"] / samples["total"] for one in report["regions"]}
    parts = {one["part"]: one["samples"] for one in report["parts"]}
    interpreted = region.get("interpreter", 0) * samples["total"]
    jit, library = shares_of_perf(scratch / "perf.data")
    generated = code["total"] / samples["total"]
    pauses, length = pauses_of_log(log, since, until)
    print(f"{name:24} {100 * samples['total'] / samples['promised']:6.1f} "
          f"{samples['without_method']:5} /{interpreted:6.0f} "
          f"{code['method_only']:5} /{code['total']:6} "
          f"{100 * (usage.ru_utime + usage.ru_stime) / (until - since):6.1f} "
          f"{usage.ru_maxrss // 1024:5} {pauses:5} {length:7.1f} "
          f"{(vm.get('count') or 0) + (vm.get('cycle_pauses') or 0):5.0f} "
          f"{(vm.get('pause_time_ns') or 0) / 1e6:7.1f} "
          f"{100 * jit:5.1f} {100 * generated:5.1f} {100 * library:5.1f}", flush=True)
    if args.keep:
        print(f"    {scratch}", json.dumps(region))
    else:
        shutil.rmtree(scratch)
    return (samples["without_method"] <= max(5, 0.01 * interpreted)
            and code["method_only"] <= 0.02 * code["total"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[""], metavar="WORD",
                        help="programs whose names contain one of these")
    parser.add_argument("--java", default="java")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--vmscope", default=HERE.parent.parent / "target/release/vmscope")
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--folder", type=pathlib.Path, default=HERE.parent.parent /
                        "target/jvm-programs")
    parser.add_argument("--keep", action="store_true", help="keep recordings and logs")
    args = parser.parse_args()
    args.folder = args.folder.resolve()
    args.folder.mkdir(parents=True, exist_ok=True)
    print("program                  recv %  no method  |  method only  |  CPU %  MB | log: pauses,"
          " ms | vmscope | JIT %: perf, vmscope | libjvm %: perf")
    is_good = True
    for name, command, delay, is_server in PROGRAMS:
        if any(word in name for word in args.only):
            is_good &= row(args, name, command, delay, is_server)
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
