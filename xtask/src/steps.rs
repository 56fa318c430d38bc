//! Steps of each task, in execution order: what is quick and fails often comes first.

use crate::run::{Need, Step};

/// A step that needs nothing but the toolchain.
const fn plain(name: &'static str, command: &'static [&'static str]) -> Step {
    Step {
        name,
        command,
        env: &[],
        needs: None,
    }
}

/// What CI runs, and README's second command.
pub const TEST: &[Step] = &[
    plain("format", &["cargo", "fmt", "--all", "--check"]),
    plain(
        "lints",
        &[
            "cargo",
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
    ),
    Step {
        name: "tests",
        // Every failure, not the first only. Examples are checked with the lints.
        command: &[
            "cargo",
            "nextest",
            "run",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--locked",
            "--no-fail-fast",
        ],
        env: &[],
        needs: Some(Need {
            probe: &["cargo", "nextest", "--version"],
            instead: &[
                "cargo",
                "test",
                "--workspace",
                "--lib",
                "--bins",
                "--tests",
                "--locked",
                "--no-fail-fast",
            ],
            hint: "cargo-nextest is not installed: cargo test does it",
        }),
    },
    plain(
        "documentation tests",
        &["cargo", "test", "--workspace", "--doc", "--locked"],
    ),
    Step {
        name: "documentation",
        command: &["cargo", "doc", "--workspace", "--no-deps", "--locked"],
        env: &[("RUSTDOCFLAGS", "-D warnings")],
        needs: None,
    },
    Step {
        name: "aarch64 compiles",
        command: &[
            "cargo",
            "check",
            "--workspace",
            "--locked",
            "--target",
            "aarch64-unknown-linux-gnu",
        ],
        // A check links nothing: the machine's own C compiler will do for zstd's sources.
        env: &[
            ("CC_aarch64_unknown_linux_gnu", "cc"),
            ("AR_aarch64_unknown_linux_gnu", "ar"),
        ],
        needs: Some(Need {
            probe: &[
                "sh",
                "-c",
                "rustup target list --installed | grep -q '^aarch64-unknown-linux-gnu$'",
            ],
            instead: &[],
            hint: "rustup target add aarch64-unknown-linux-gnu",
        }),
    },
    Step {
        name: "all orders of the published ring's memory accesses (loom)",
        command: &[
            "cargo",
            "test",
            "--package=vmscope-publish",
            "--locked",
            "--test=loom",
        ],
        env: &[
            ("RUSTFLAGS", "--cfg loom"),
            ("CARGO_TARGET_DIR", "target/loom"),
        ],
        needs: None,
    },
    Step {
        name: "fuzzing, short",
        command: &[".ci/fuzz", "20000", "4"],
        // Less optimised targets: their build takes longer than their short runs.
        env: &[("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")],
        needs: None,
    },
];

/// What takes longer or needs more.
pub const DEEP: &[Step] = &[
    // At most 20 minutes for each target: 2 h 40 min on two processors.
    plain(
        "fuzzing, ten million inputs for each target",
        &[".ci/fuzz", "10000000", "1200"],
    ),
    Step {
        name: "property tests, many cases",
        command: &[
            "cargo",
            "test",
            "--workspace",
            "--profile=profiling",
            "--locked",
        ],
        env: &[("PROPTEST_CASES", "20000")],
        needs: None,
    },
    Step {
        name: "miri on the records",
        // Compression and files are beyond miri; the encoding is not.
        command: &[
            "rustup",
            "run",
            "nightly",
            "cargo",
            "miri",
            "test",
            "-p",
            "vmscope-records",
            "--lib",
        ],
        env: &[
            ("CARGO_TARGET_DIR", "target/miri"),
            ("MIRIFLAGS", "-Zmiri-disable-isolation"),
        ],
        needs: Some(Need {
            probe: &["rustup", "run", "nightly", "cargo", "miri", "--version"],
            instead: &[],
            hint: "rustup toolchain install nightly --component miri",
        }),
    },
    Step {
        name: "licences, duplicates, advisories",
        command: &["cargo", "deny", "check"],
        env: &[],
        needs: Some(Need {
            probe: &["cargo", "deny", "--version"],
            instead: &[],
            hint: "cargo install cargo-deny --locked",
        }),
    },
    plain(
        "benches build",
        &["cargo", "bench", "--workspace", "--no-run", "--locked"],
    ),
    plain(
        "live truth tests, ten times",
        &[
            "sh",
            "-ec",
            "for run in 1 2 3 4 5 6 7 8 9 10; do echo \"run $run\"; \
             cargo test --workspace --profile=profiling --locked -- truth; done",
        ],
    ),
    Step {
        name: "all VMs in all ways",
        command: &[
            "cargo",
            "nextest",
            "run",
            "--package=vmscope",
            "--package=vmscope-reference-vm",
            "--test=jvm",
            "--test=v8",
            "--test=differential",
            "--locked",
            "--no-fail-fast",
        ],
        env: &[
            ("VMSCOPE_ALL_SHARES", "1"),
            ("VMSCOPE_DIFFERENTIAL_PROGRAMS", "2000"),
        ],
        needs: Some(Need {
            probe: &["cargo", "nextest", "--version"],
            instead: &[],
            hint: "cargo install cargo-nextest --locked",
        }),
    },
    plain(
        "bytes per sample",
        &[
            "cargo",
            "run",
            "--release",
            "--locked",
            "-p",
            "vmscope-records",
            "--example",
            "bytes_per_sample",
        ],
    ),
    plain(
        "release build",
        &["cargo", "build", "--release", "--locked"],
    ),
    plain("kills at random moments", &["viewer/benches/kills.py"]),
    plain(
        "overload, storms and hostile recordings",
        &["viewer/benches/abuse.py"],
    ),
    Step {
        name: "large Java programs",
        command: &[
            "viewer/benches/jvm_programs.py",
            "--only",
            "Spark",
            "Tomcat",
        ],
        env: &[],
        needs: Some(Need {
            probe: &[
                "sh",
                "-c",
                "command -v java && command -v perf && command -v apt-get",
            ],
            instead: &[],
            hint: "apt-get install openjdk-17-jre-headless linux-perf",
        }),
    },
    Step {
        name: "benchmark against perf",
        command: &[
            "python3",
            "viewer/benches/against_perf.py",
            "--vmscope",
            "target/release/vmscope",
        ],
        env: &[],
        needs: Some(Need {
            probe: &["perf", "--version"],
            instead: &[],
            hint: "apt-get install linux-perf",
        }),
    },
];
