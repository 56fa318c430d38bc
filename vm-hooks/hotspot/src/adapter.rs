//! The adapter: looks at a JVM again and again and tells what is new.

mod figures;
mod index;
mod interpreted;
mod kept;
mod maps;
mod methods;
mod zone;

use std::time::{Duration, Instant};

use vmscope_records::{Avma, VmIdentity};
use vmscope_target::{Adapter, AdapterError, Look, ProcessView, SampleNeeds};

use crate::bytecode::PoolLayout;
use crate::evidence::FactsLayout;
use crate::family::sample_needs;
use crate::jvm::{Jvm, TESTED};
use crate::pages::Pages;
use crate::regions::rules;
use crate::vm_data::{Known, VmData};
use interpreted::Interpreted;
use maps::Maps;
use methods::Methods;
use zone::Zone;

/// The VM's word in records.
const VM: &str = "hotspot";

/// How often it is seen to at all.
const TICK: Duration = Duration::from_millis(25);

/// Reads one JVM.
#[derive(Debug, Default)]
pub struct HotSpotAdapter {
    opened: Option<Opened>,
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
        let interpreted = Interpreted::new(&jvm, look);
        look.rules(VM, rules());
        let known = Known {
            structs: Some(&jvm.structs),
            libjvm: Some(&jvm.library),
            methods: Some(&jvm.methods),
        };
        let data = VmData::new(process, known);
        tell_precision(&jvm, &data, look);
        let pools = PoolLayout::of(&jvm.structs, jvm.methods.clone()).ok();
        self.opened = Some(Opened {
            methods: Methods::new(&jvm, look),
            data,
            maps: Maps::new(
                pools.map(|pools| FactsLayout::of(&jvm.structs, pools)),
                jvm.version.has_wrong_positions(),
            ),
            zone,
            interpreted,
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
        self.open(process, look)?;
        let Some(opened) = &mut self.opened else {
            return Ok(());
        };
        opened.look(process, look, false)
    }

    fn next_look(&self) -> Duration {
        TICK
    }

    fn finish(&mut self, process: &ProcessView, look: &mut Look) -> Result<(), AdapterError> {
        if process.is_alive() {
            self.open(process, look)?;
        }
        match &mut self.opened {
            Some(opened) => {
                let result = if process.is_alive() {
                    opened.look(process, look, true)
                } else {
                    // What was hit last is known from before.
                    opened.tell_hits(None, look);
                    Ok(())
                };
                opened.data.finish(process, look);
                result
            }
            None => Ok(()),
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
        let pages = Pages::new(process.memory());
        if is_last || self.zone.is_due(look.touched(), Instant::now()) {
            self.zone
                .look(process, &pages, &mut self.methods, is_last, look)?;
        }
        self.tell_hits(Some(&pages), look);
        let touched: Vec<Avma> = look.touched().to_vec();
        let values = touched.into_iter().filter(|at| !self.zone.holds(*at));
        let interpreted = &mut self.interpreted;
        interpreted.look(values, &self.jvm, &pages, &mut self.methods, look)
    }

    /// Tells the pc maps of the code that samples hit.
    fn tell_hits(&mut self, pages: Option<&Pages<'_>>, look: &mut Look) {
        let hit = self.zone.hit(look.touched());
        if !hit.is_empty() {
            let hit = self.zone.kept(&hit);
            self.maps.tell(hit, pages, &mut self.methods, look);
        }
    }
}
