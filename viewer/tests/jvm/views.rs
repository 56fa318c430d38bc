//! What somebody sees who attaches to a Java program that runs: report, listing, JSON.

use vmscope_symbolizer::Profile;

use crate::common::vmscope::{Folder, attached, can_sample, command, profile, report, run};
use crate::hotspot::java::sources;
use crate::hotspot::jdks::jdks;
use crate::hotspot::jvm::Jvm;
use crate::measured::{list, number};

/// The examined method of `programs.Strings`.
const METHOD: &str = "programs.Strings.parse(String)";

/// Samples whose innermost method it is.
fn samples_in(profile: &Profile, method: &str) -> usize {
    let places = profile.trace.samples.places.iter();
    let sites = places.map(|&place| profile.site_at(place));
    sites
        .filter(|site| site.frame.name.contains(method))
        .count()
}

#[test]
fn of_a_running_program() {
    if !can_sample() {
        return;
    }
    for jdk in jdks() {
        let Some(jvm) = Jvm::ready(
            &jdk,
            &["-XX:+UseG1GC", "-Xmx256m"],
            "Strings",
            &["--forever"],
        ) else {
            return;
        };
        let folder = Folder::new();
        let file = folder.file("out.vmscope");
        let working = attached(jvm.pid(), &file, 2000);
        // The JVM is killed: reports use the recording only.
        drop(jvm);
        working.end().code(0);

        let printed = report(&file, &["--width=100"])
            .code(0)
            .prints("JIT and interpreted code (")
            .prints("collector: G1 maximum heap: 256 MiB")
            .prints("-XX:+UseG1GC -Xmx256m")
            .prints("% of generated vm code (% of total)")
            .prints("**Safepoints**")
            .prints("**Java threads**");
        // Told by one name alone, and once.
        let text = printed.stdout.clone();
        printed
            .check(text.matches("\nJVM: ").count() == 1, "one JVM")
            .check(!text.contains("MaxHeapSize"), "an argument is no flag too");
        for width in ["80", "100", "200"] {
            let text = report(&file, &["--width", width]).code(0).stdout;
            let columns: usize = width.parse().expect("a number");
            let mut lines = text.lines();
            let wide = lines.find(|line| line.chars().count() > columns);
            assert_eq!(wide, None, "{width}: {text}");
            // Truncated names would lack the method, which takes several percent.
            assert!(text.contains("Strings.digits("), "{width}: {text}");
        }

        let (profile, summary) = profile(&file);
        let document = report(&file, &["--json"]).code(0).json();
        let samples = &document["samples"];
        assert_eq!(number(&samples["code"]["total"]), {
            let code = &summary.of_code;
            let all = code.exact + code.approximate + code.method_only;
            (all + code.unresolved + code.doubtful) as f64
        });
        assert!(number(&samples["code"]["total"]) <= number(&samples["total"]));

        let mut annotate = command(["annotate"]);
        annotate
            .arg(&file)
            .args([METHOD, "--width=140", "--source"]);
        // The classes are of package `programs`, in a folder of that name.
        annotate.arg(sources().parent().expect("the tests"));
        run(annotate)
            .code(0)
            .prints("Skid:")
            .prints("tiers: ")
            .prints("invokevirtual java.lang.String.substring(int, int)")
            .prints("// String key = text.substring(at, equals)");
        let mut annotate = command(["annotate"]);
        annotate.arg(&file).args([METHOD, "--json"]);
        let listing = run(annotate).code(0).json();
        let own = samples_in(&profile, METHOD);
        assert_eq!(number(&listing["own"]["samples"]), own as f64);
        assert!(list(&listing["listing"]).len() > 20);
        assert_eq!(number(&listing["listings"]), 1.0);

        // Part of two methods' names: both are told.
        let mut annotate = command(["annotate"]);
        annotate.arg(&file).arg("java.util.");
        run(annotate).code(2).says("be more specific");
    }
}

/// With and without compressed references and class pointers, and with small headers.
#[test]
fn threads_have_javas_names() {
    if !can_sample() {
        return;
    }
    for jdk in jdks() {
        let mut encodings = vec![
            vec!["-XX:+UseG1GC"],
            vec!["-XX:+UseParallelGC", "-XX:-UseCompressedOops"],
        ];
        if jdk.release < 21 {
            encodings.push(vec![
                "-XX:-UseCompressedOops",
                "-XX:-UseCompressedClassPointers",
            ]);
        }
        if jdk.release >= 25 {
            encodings.push(vec!["-XX:+UseCompactObjectHeaders"]);
            // Coloured references.
            encodings.push(vec!["-XX:+UseZGC"]);
        }
        for options in encodings {
            let Some(jvm) = Jvm::ready(&jdk, &options, "Named", &["--forever"]) else {
                return;
            };
            let folder = Folder::new();
            let file = folder.file("out.vmscope");
            let working = attached(jvm.pid(), &file, 1000);
            drop(jvm);
            working.end().code(0);
            let (profile, _) = profile(&file);
            let threads = profile.trace.threads.iter();
            let names: Vec<&str> = threads.map(|one| one.thread.name.as_str()).collect();
            for name in [
                "main",
                "http-nio-18080-exec-1",
                "http-nio-18080-exec-2",
                "Müller liest Dateien",
                "スレッド番号一二三四五",
                "Reference Handler",
            ] {
                let count = names.iter().filter(|one| **one == name).count();
                assert_eq!(count, 1, "{} {options:?}: {names:?}", jdk.release);
            }
        }
    }
}
