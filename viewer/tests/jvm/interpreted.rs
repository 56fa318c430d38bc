//! Methods in the interpreter have names, also while a large program loads its classes.

use nix::sys::signal::Signal;

use crate::common::vmscope::{Folder, attached, can_sample, report};
use crate::common::{in_turn, say};
use crate::hotspot::jdks::jdks;
use crate::hotspot::jvm::Jvm;
use crate::measured::number;

/// One loader has thousands of classes, and defines more all the time.
#[test]
fn methods_of_classes_just_loaded_have_names() {
    if !can_sample() {
        return;
    }
    for jdk in in_turn(jdks(), 1) {
        let Some(jvm) = Jvm::ready(&jdk, &["-Xint"], "Many", &["--forever"]) else {
            return;
        };
        let folder = Folder::new();
        // The number of classes grows with the time.
        for file in ["1.vmscope", "2.vmscope"].map(|name| folder.file(name)) {
            let working = attached(jvm.pid(), &file, 3000);
            working.signal(Signal::SIGINT);
            working.end().code(0);
            let document = report(&file, &["--json"]).code(0).json();
            let samples = &document["samples"];
            let interpreted = number(&samples["code"]["total"]);
            let nameless = number(&samples["without_method"]);
            say(&format!(
                "JDK {}: {nameless} of {interpreted} without a method",
                jdk.release
            ));
            assert!(interpreted > 1500.0 && nameless <= 0.002 * interpreted);
        }
    }
}
