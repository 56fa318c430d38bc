//! Publishes code zone events to profilers. The VM changes its tables before sending news.

use vmscope_publish::event::{
    Boundary, BoundaryRule, Cases, CompilationBegin, CompilationEnd, Constituent, ConstituentKind,
    Exactness, Gone, GoneReason, Moved, PcMap, PicCase,
};

use super::machine::{Code, Machine, Pic};
use super::sends::PIC_BYTES;
use super::trampolines::{NAMES, Stub};
use crate::interpreter::{Vm, objects};
use crate::memory::Oop;
use crate::publish::To;

/// First id of trampolines; ids of other machine code follow. Ids of methods and handlers are
/// smaller.
const FIRST: u64 = 1 << 41;
/// Id of the free space.
const FREE: u64 = FIRST - 1;
/// Ids of methods, blocks and PICs begin here.
const FIRST_CODE: u64 = FIRST + 1000;

/// Code zone events, identified by zone offset or id.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Code(usize),
    Pic(usize),
    Cases(usize),
    Gone(u64),
    Moved(u64, usize),
}

impl Vm {
    /// Publishes pending code zone events.
    pub(crate) fn publish_code_changes(&mut self) {
        let Some(machine) = &mut self.jit.machine else {
            return;
        };
        let changes = std::mem::take(&mut machine.changes);
        let (Some(machine), Some(publisher)) = (&self.jit.machine, self.publication.listener())
        else {
            return;
        };
        let to = To::News(publisher);
        let base = machine.zone.base() as u64;
        for change in &changes {
            match *change {
                Change::Code(start) => {
                    if let Some(code) = machine.code_at(start) {
                        self.publish_code(machine, code, &to);
                    }
                }
                Change::Pic(start) => {
                    if let Some(pic) = machine.pic_at(start) {
                        self.publish_pic(machine, pic, &to);
                    }
                }
                Change::Cases(start) => {
                    if let Some(pic) = machine.pic_at(start) {
                        let names = self.case_names(pic);
                        to.publish(&Cases {
                            id: FIRST_CODE + pic.id,
                            cases: cases(&names).into(),
                        });
                    }
                }
                Change::Gone(id) => to.publish(&Gone {
                    id: FIRST_CODE + id,
                    reason: GoneReason::Freed,
                }),
                Change::Moved(id, place) => to.publish(&Moved {
                    id: FIRST_CODE + id,
                    to: base + place as u64,
                }),
            }
        }
        if !changes.is_empty() {
            publish_free(machine, &to);
        }
    }

    /// Publishes all of the code zone.
    pub(crate) fn publish_zone(&self, to: &To<'_>) {
        let Some(machine) = &self.jit.machine else {
            return;
        };
        let base = machine.zone.base();
        for (at, (name, start)) in NAMES.iter().zip(machine.stubs).enumerate() {
            let later = machine.stubs.iter().filter(|other| **other > start).min();
            let end = later.copied().unwrap_or(machine.first);
            let is_enilopmart = at == Stub::Enter as usize;
            to.publish(&Constituent {
                id: FIRST + at as u64,
                start: (base + start) as u64,
                end: (base + end) as u64,
                since: Some(self.started_ns()),
                kind: match is_enilopmart {
                    true => ConstituentKind::Enilopmart,
                    false => ConstituentKind::Trampoline,
                },
                name: (*name).into(),
                ..Constituent::default()
            });
        }
        for code in &machine.codes {
            self.publish_code(machine, code, to);
        }
        for pic in &machine.pics {
            self.publish_pic(machine, pic, to);
        }
        publish_free(machine, to);
    }

    /// Contents of the code zone, sorted by address: name, address, and for methods and blocks the
    /// pairs (machine-code address, bytecode pc). Equivalent to Cog's
    /// primitiveCollectCogCodeConstituents.
    pub(crate) fn code_constituents(&self) -> Vec<(String, Vec<u64>)> {
        let Some(machine) = &self.jit.machine else {
            return Vec::new();
        };
        let base = machine.zone.base();
        let address = |start: usize| vec![(base + start) as u64];
        let stubs = NAMES.iter().zip(machine.stubs);
        let mut all: Vec<(String, Vec<u64>)> = stubs
            .map(|(name, start)| ((*name).to_owned(), address(start)))
            .collect();
        for code in &machine.codes {
            let Some(method) = self.image.method(code.method) else {
                continue;
            };
            let mut words = address(code.start);
            for (offset, bytecode) in &code.made.boundaries {
                let machine_pc = (base + code.start) as u64 + u64::from(*offset);
                words.extend([machine_pc, u64::from(method.first_pc() + bytecode)]);
            }
            all.push((method.title(), words));
        }
        for pic in &machine.pics {
            let selector = String::from_utf8_lossy(objects::bytes(pic.selector));
            all.push((selector.into_owned(), address(pic.start)));
        }
        all.sort_by(|one, other| one.1.cmp(&other.1));
        all
    }

    fn publish_code(&self, machine: &Machine, code: &Code, to: &To<'_>) {
        let Some(method) = self.image.method(code.method) else {
            return;
        };
        let first = method.first_pc();
        let boundary = |entry: &(u32, u32)| Boundary {
            offset: entry.0,
            bytecode: first + entry.1,
        };
        let start = (machine.zone.base() + code.start) as u64;
        to.publish(&Constituent {
            id: FIRST_CODE + code.id,
            start,
            end: start + code.bytes as u64,
            since: Some(code.since),
            kind: match objects::class_index(code.method) == crate::memory::classes::COMPILED_BLOCK
            {
                true => ConstituentKind::Block,
                false => ConstituentKind::Method,
            },
            name: method.title().as_str().into(),
            method: method.id,
            map: PcMap::Boundary {
                rule: BoundaryRule::AtStart,
                exactness: Exactness::Exact,
                entries: code
                    .made
                    .boundaries
                    .iter()
                    .map(boundary)
                    .collect::<Vec<_>>()
                    .into(),
            },
            ..Constituent::default()
        });
    }

    fn publish_pic(&self, machine: &Machine, pic: &Pic, to: &To<'_>) {
        let names = self.case_names(pic);
        let start = (machine.zone.base() + pic.start) as u64;
        let selector = String::from_utf8_lossy(objects::bytes(pic.selector));
        to.publish(&Constituent {
            id: FIRST_CODE + pic.id,
            start,
            end: start + PIC_BYTES as u64,
            since: Some(pic.since),
            kind: match pic.is_open {
                true => ConstituentKind::OpenPic,
                false => ConstituentKind::ClosedPic,
            },
            name: selector.as_ref().into(),
            cases: cases(&names).into(),
            ..Constituent::default()
        });
    }

    /// Class names, ids and names of a PIC's methods.
    fn case_names(&self, pic: &Pic) -> Vec<(String, u64, String)> {
        let case = |(class, method): &(u32, Oop)| {
            let class = self.image.class(*class);
            let method = self.image.method(*method);
            (
                class.map_or_else(String::new, |class| class.name.clone()),
                method.map_or(0, |method| method.id),
                method.map_or_else(String::new, crate::image::Method::title),
            )
        };
        pic.cases.iter().map(case).collect()
    }

    /// Says that a compilation begins.
    pub(super) fn publish_compilation(&self, method: Oop, osr_bytecode: Option<u32>) {
        if let (Some(publisher), Some(method)) =
            (self.publication.listener(), self.image.method(method))
        {
            publisher.publish(&CompilationBegin {
                tid: self.publication.thread(),
                number: self.jit.events.compiled + 1,
                method: method.id,
                name: method.title().as_str().into(),
                tier: "".into(),
                osr_bytecode: osr_bytecode.map(|offset| method.first_pc() + offset),
            });
        }
    }

    /// Publishes the compilation's end and its result.
    pub(super) fn publish_compiled(&mut self) {
        if let Some(publisher) = self.publication.listener() {
            publisher.publish(&CompilationEnd {
                tid: self.publication.thread(),
            });
        }
        self.publish_code_changes();
    }
}

fn cases(names: &[(String, u64, String)]) -> Vec<PicCase<'_>> {
    names
        .iter()
        .map(|(class, method, target)| PicCase {
            class: class.as_str().into(),
            method: *method,
            target: target.as_str().into(),
        })
        .collect()
}

fn publish_free(machine: &Machine, to: &To<'_>) {
    let base = machine.zone.base();
    if machine.zone.free == machine.zone.bytes() {
        return;
    }
    to.publish(&Constituent {
        id: FREE,
        start: (base + machine.zone.free) as u64,
        end: (base + machine.zone.bytes()) as u64,
        kind: ConstituentKind::Free,
        name: "free space".into(),
        ..Constituent::default()
    });
}
