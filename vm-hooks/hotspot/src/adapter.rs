//! The adapter: looks at a JVM again and again and tells what is new.

mod describe;
mod figures;
mod index;
mod interpreted;
mod kept;
mod maps;
mod methods;
mod partly;
mod zone;

use std::time::{Duration, Instant};

use vmscope_records::{Avma, VmIdentity};
use vmscope_target::{Adapter, AdapterError, Look, ProcessView, SampleNeeds};

use crate::evidence::MethodsLayout;
use crate::family::sample_needs;
use crate::jvm::{Jvm, TESTED};
use crate::pages::Pages;
use crate::regions::rules;
use crate::vm_data::{Known, VmData};
use interpreted::{ClassCounts, Interpreted};
use maps::Maps;
use methods::Methods;
use zone::{Signs, Zone};

/// The VM's word in records.
const VM: &str = "hotspot";

/// How often it is seen to at all.
const TICK: Duration = Duration::from_millis(25);

/// Reads one JVM.
#[derive(Debug, Default)]
pub struct HotSpotAdapter {
    opened: Option<Opened>,
    /// What is told where nothing else can be.
    partly: Option<VmData>,
    has_begun: bool,
    identity: Option<VmIdentity>,
}

/// What is known once the JVM has described itself.
#[derive(Debug)]
struct Opened {
    jvm: Jvm,
    zone: Zone,
    methods: Methods,
    interpreted: Interpreted,
    data: VmData,
    /// Whether the code cache was read once.
    has_read: bool,
    maps: Maps,
}

impl HotSpotAdapter {
    /// An adapter that has not looked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn open(&mut self, process: &ProcessView, look: &mut Look) -> Result<(), AdapterError> {
        if self.opened.is_some() {
            return Ok(());
        }
        let pages = Pages::new(process.memory());
        let jvm = Jvm::open(process, &pages)?;
        self.identity = Some(VmIdentity {
            kind: "HotSpot".to_owned(),
            version: jvm.version.release.clone(),
        });
        look.fact("JVM", format!("HotSpot {}", jvm.version.release));
        if !jvm.is_tested() {
            look.limit(
                format!(
                    "this JVM's version ({}) is none that was tested ({} to {}): what its own \
                     tables do not say is assumed to be as in the nearest one",
                    jvm.version.release, TESTED.0, TESTED.1
                ),
                "",
            );
        }
        let zone = Zone::new(process, &jvm, &pages, look)?;
        for sentence in jvm.missing() {
            look.limit(sentence, "");
        }
        let interpreted = Interpreted::new(&jvm, look);
        let known = Known {
            structs: Some(&jvm.structs),
            libjvm: Some(&jvm.library),
            methods: Some(&jvm.methods),
        };
        let data = VmData::new(process, known);
        tell_precision(&jvm, &data, look);
        let evidence = MethodsLayout::of(&jvm.structs);
        if let Err(error) = &evidence {
            let text = format!("bytecodes of compiled code are less certain: {error}");
            look.limit(text, "");
        }
        self.opened = Some(Opened {
            methods: Methods::new(&jvm, look),
            data,
            maps: Maps::new(evidence.ok(), jvm.version.has_wrong_positions()),
            zone,
            interpreted,
            has_read: false,
            jvm,
        });
        Ok(())
    }
}

impl Adapter for HotSpotAdapter {
    fn identity(&self) -> VmIdentity {
        self.identity.clone().unwrap_or_else(|| VmIdentity {
            kind: "HotSpot".to_owned(),
            version: String::new(),
        })
    }

    fn sample_needs(&self) -> SampleNeeds {
        sample_needs()
    }

    fn look(&mut self, process: &ProcessView, look: &mut Look) -> Result<(), AdapterError> {
        if !std::mem::replace(&mut self.has_begun, true) {
            // Its native functions need nothing of its memory.
            look.rules(VM, rules());
        }
        if let Some(data) = &mut self.partly {
            return data.look(process, look);
        }
        match self.open(process, look) {
            Err(error @ AdapterError::Gone { .. }) => return Err(error),
            Err(error) if error.is_final() => {
                let data = self.partly.insert(partly::begin(process, &error, look));
                return data.look(process, look);
            }
            other => other?,
        }
        let Some(opened) = &mut self.opened else {
            return Ok(());
        };
        opened.look(process, look, false)
    }

    fn tells_all_code(&self) -> bool {
        self.partly.is_none()
    }

    fn next_look(&self) -> Duration {
        TICK
    }

    fn finish(&mut self, process: &ProcessView, look: &mut Look) -> Result<(), AdapterError> {
        if self.opened.is_none() && process.is_alive() {
            self.look(process, look)?;
        }
        if let Some(data) = &mut self.partly {
            data.finish(process, look);
            return Ok(());
        }
        match &mut self.opened {
            Some(opened) => {
                let result = if process.is_alive() {
                    opened.look(process, look, true)
                } else {
                    if !opened.has_read {
                        partly::missed(look);
                    }
                    // What was hit last is known from before.
                    opened.tell_hits(None, look);
                    Ok(())
                };
                opened.data.finish(process, look);
                result
            }
            None => {
                if !self.has_begun {
                    look.rules(VM, rules());
                }
                partly::missed(look);
                Ok(())
            }
        }
    }
}

/// Says what would make positions better, where the JVM records only what it needs
/// itself, or what it records is wrong.
fn tell_precision(jvm: &Jvm, data: &VmData, look: &mut Look) {
    const FLAG: &str = "DebugNonSafepoints";
    let Some(flags) = data.flags() else {
        return;
    };
    match (flags.is_on(FLAG), jvm.version.has_wrong_positions()) {
        (false, false) => look.limit(
            "this JVM records few positions of optimised code: the bytecode being executed \
             there is often inferred from the machine code, and approximate"
                .to_owned(),
            "start it with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints, or \
             with vmscope record --precise",
        ),
        (is_on, true) => look.limit(
            format!(
                "JVM {} records {} of C2's code (JDK-8201516): the bytecode being executed \
                 there is often inferred from the machine code, and approximate",
                jvm.version.release,
                if is_on {
                    "wrong positions, which are not used,"
                } else {
                    "few positions"
                }
            ),
            "a newer update: 11.0.21, 17.0.8, 21 and later record right ones with \
             -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints",
        ),
        (true, false) => {}
    }
}

impl Opened {
    fn look(
        &mut self,
        process: &ProcessView,
        look: &mut Look,
        is_last: bool,
    ) -> Result<(), AdapterError> {
        self.data.look(process, look)?;
        let unloaded = class_counts(&self.data).map(|counts| counts.unloaded);
        self.methods.begin(look.began(), unloaded);
        let pages = Pages::new(process.memory());
        let signs = signs(&self.data, self.jvm.version.major);
        self.zone.count(signs, look.began());
        let counts = class_counts(&self.data);
        if is_last || self.zone.is_due(look.touched(), signs, Instant::now()) {
            let methods = &mut self.methods;
            let knows_dead = self.interpreted.knows_dead(counts);
            let what = (is_last, signs, knows_dead);
            self.zone.look(process, &pages, methods, what, look)?;
            self.has_read = true;
        }
        self.tell_hits(Some(&pages), look);
        let touched: Vec<Avma> = look.touched().to_vec();
        let values = touched.into_iter().filter(|at| !self.zone.holds(*at));
        let from = (&self.jvm, &pages);
        self.interpreted
            .look(values, counts, from, &mut self.methods, look)
    }

    /// Tells the pc maps of the code that samples hit.
    fn tell_hits(&mut self, pages: Option<&Pages<'_>>, look: &mut Look) {
        let methods = &mut self.methods;
        self.zone.tell_hits(&self.maps, pages, methods, look);
    }
}

/// What the VM has counted that makes and unmakes code.
fn signs(data: &VmData, major: u32) -> Option<Signs> {
    const COLLECTORS: u32 = 3;
    // These unload while the program runs.
    const CONCURRENT: [&str; 2] = ["UseZGC", "UseShenandoahGC"];
    let flags = data.flags();
    let is_concurrent = flags.is_none_or(|flags| CONCURRENT.iter().any(|name| flags.is_on(name)));
    let data = data.perf_data()?;
    let each = |what: &'static str| {
        let name = move |number| format!("sun.gc.collector.{number}.{what}");
        (0..COLLECTORS).map(move |number| data.long(&name(number)).unwrap_or(0))
    };
    let mut times = each("lastEntryTime").zip(each("lastExitTime"));
    let is_collecting = times.any(|(entry, exit)| entry > exit);
    let collections = each("invocations").fold(0, i64::wrapping_add);
    Some(Signs {
        compilations: data.long("sun.ci.totalCompiles")?,
        collections: (!is_collecting).then_some(collections),
        // Up to JDK 19 a sweeper frees code at any time (JDK-8290025).
        are_deaths: major >= 20 && !is_concurrent,
    })
}

/// How many classes the VM has loaded and unloaded.
fn class_counts(data: &VmData) -> Option<ClassCounts> {
    let data = data.perf_data()?;
    let sum = |own: &str, shared: &str| {
        let shared = data.long(shared).unwrap_or(0);
        Some(data.long(own)?.wrapping_add(shared))
    };
    Some(ClassCounts {
        loaded: sum("java.cls.loadedClasses", "java.cls.sharedLoadedClasses")?,
        unloaded: sum("java.cls.unloadedClasses", "java.cls.sharedUnloadedClasses")?,
    })
}
