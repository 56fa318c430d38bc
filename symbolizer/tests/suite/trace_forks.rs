//! Processes that fork, execute other programs and map libraries over code, against a naive model
//! that scans all records.

use crate::recordings::{Draw, PROCESS, Recording, code, who};
use proptest::prelude::*;
use vmscope_records::{Constituent, ModuleKey, ProcessKey, ThreadKey, ThreadRole, TimeNs};

const ZONE: u64 = 0x10_0000;

/// Residency of code or a library in a process.
#[derive(Clone, Copy, Debug)]
struct Stay {
    /// 0: a library.
    key: u64,
    process: usize,
    start: u64,
    end: u64,
    maybe: u64,
    from: u64,
    fades: u64,
    until: u64,
}

/// An address space.
#[derive(Clone, Copy, Debug)]
struct Space {
    pid: u32,
    from: u64,
    /// The forking parent.
    parent: Option<usize>,
    /// Time of an exec that kept the key.
    anew: u64,
}

#[derive(Debug, Default)]
struct World {
    spaces: Vec<Space>,
    /// In recording order; times are distinct within a process.
    stays: Vec<Stay>,
}

impl World {
    /// Whether newer code of `process` overlaps `stay` between `since` and `time`.
    fn is_over(&self, process: usize, stay: &Stay, since: u64, time: u64) -> bool {
        self.stays.iter().any(|other| {
            other.process == process
                && other.start < stay.end
                && stay.start < other.end
                && (since + 1..=time).contains(&other.from)
                && other.from < other.until
        })
    }

    /// Own code certainly at `pc`.
    fn firm(&self, time: u64, process: usize, pc: u64) -> Option<&Stay> {
        self.stays.iter().find(|stay| {
            stay.key != 0
                && stay.process == process
                && (stay.start..stay.end).contains(&pc)
                && (stay.from..stay.until).contains(&time)
                && !self.is_over(process, stay, stay.from, time)
        })
    }

    /// Ancestor's code at `pc` at the time of the fork, regardless of later changes in the
    /// ancestor.
    fn inherited(&self, time: u64, process: usize, pc: u64) -> Option<&Stay> {
        let space = &self.spaces[process];
        let parent = space.parent.filter(|_| time < space.anew)?;
        let own = self.firm(space.from, parent, pc);
        let stay = own.or_else(|| self.inherited(space.from, parent, pc))?;
        (!self.is_over(process, stay, space.from, time)).then_some(stay)
    }

    fn who(&self, time: u64, process: usize, pc: u64) -> Result<Option<u64>, ()> {
        let maybe: Vec<&Stay> = (self.stays.iter())
            .filter(|stay| stay.process == process && (stay.start..stay.end).contains(&pc))
            .filter(|stay| stay.maybe <= time && time < stay.from && time < stay.until)
            .collect();
        let inherited = self.inherited(time, process, pc);
        match (self.firm(time, process, pc), maybe.as_slice(), inherited) {
            (Some(firm), [], _) => Ok(Some(firm.key)),
            (Some(firm), ..) if time < firm.fades => Ok(Some(firm.key)),
            (None, [], inherited) => Ok(inherited.map(|stay| stay.key)),
            (None, [one], None) => Ok(Some(one.key)),
            _ => Err(()),
        }
    }
}

fn key_of(process: usize) -> ProcessKey {
    ProcessKey(PROCESS.0 + u32::try_from(process).unwrap())
}

fn thread_of(process: usize) -> ThreadKey {
    ThreadKey(1 + u32::try_from(process).unwrap())
}

/// Records of 300 random steps.
fn told(seed: u64, places: u64) -> (Recording, World) {
    let mut draw = Draw(seed);
    let mut recording = Recording::of("PHP");
    let mut world = World::default();
    world.spaces.push(Space {
        pid: 100,
        from: 0,
        parent: None,
        anew: u64::MAX,
    });
    for step in 1..=300 {
        let time = step * 10;
        let count = world.spaces.len();
        let process = draw.below(count as u64) as usize;
        let start = ZONE + draw.below(places) * 0x20;
        let end = start + 0x10 + draw.below(0x60);
        match draw.below(20) {
            kind @ 0..=3 if count < 12 => {
                let is_fork = kind > 0;
                let fresh = 100 + u32::try_from(count).unwrap();
                let pid = if is_fork {
                    fresh
                } else {
                    world.spaces[process].pid
                };
                let (key, thread) = (key_of(count), thread_of(count));
                recording
                    .process(key, time, pid, Some(key_of(process)))
                    .thread(thread, key, time, "child", ThreadRole::Other);
                world.spaces.push(Space {
                    pid,
                    from: time,
                    parent: is_fork.then_some(process),
                    anew: u64::MAX,
                });
            }
            4 if world.spaces[process].parent.is_some() => {
                let space = &mut world.spaces[process];
                if space.anew == u64::MAX {
                    space.anew = time;
                    recording.process(key_of(process), time, space.pid, None);
                }
            }
            5..=6 => {
                let module = ModuleKey(100 + u32::try_from(step).unwrap());
                recording.module(module, "/lib/x.so", false).map(
                    key_of(process),
                    time,
                    start,
                    end,
                    0,
                    Some(module),
                );
                world.stays.push(Stay {
                    key: 0,
                    process,
                    start,
                    end,
                    maybe: time,
                    from: time,
                    fades: time,
                    until: u64::MAX,
                });
            }
            _ => {
                let maybe = time.saturating_sub(draw.below(2) * draw.below(400));
                recording.constituent(Constituent {
                    absent_at: (maybe < time).then_some(TimeNs(maybe)),
                    process: key_of(process),
                    ..code(step, time, start, end)
                });
                let mut stay = Stay {
                    key: step,
                    process,
                    start,
                    end,
                    maybe,
                    from: time,
                    fades: time,
                    until: u64::MAX,
                };
                if draw.below(3) == 0 {
                    stay.fades = time + draw.below(300);
                    stay.until = stay.fades + 1 + draw.below(100);
                    recording.gone(step, stay.fades, stay.until);
                }
                world.stays.push(stay);
            }
        }
    }
    (recording, world)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn forks_and_execs_agree_with_scanning_all_that_was_told(seed: u64, places in 1u64..60) {
        let (mut recording, world) = told(seed, places);
        let mut draw = Draw(!seed);
        let mut samples: Vec<(u64, u64, usize)> = (0..2500)
            .map(|_| {
                let pc = ZONE + draw.below(places * 4 + 12) * 8;
                (draw.below(3300), pc, draw.below(world.spaces.len() as u64) as usize)
            })
            .collect();
        samples.retain(|&(time, _, process)| time >= world.spaces[process].from);
        samples.sort_unstable();
        for &(time, pc, process) in &samples {
            recording.sample(time, thread_of(process), pc);
        }
        let profile = recording.profile();
        for (index, &(time, pc, process)) in samples.iter().enumerate() {
            let wanted = world.who(time, process, pc);
            prop_assert_eq!(
                who(&profile, index), wanted,
                "pc {:#x} at {} in {}: {:#?} {:#?}", pc, time, process, world.spaces,
                world.stays.iter().filter(|stay| (stay.start..stay.end).contains(&pc)).collect::<Vec<_>>()
            );
        }
    }
}

/// The comparison is meaningful: in most such worlds, processes inherit code.
#[test]
fn such_worlds_hand_code_on() {
    let hands_on = |seed: &u64| {
        let (_, world) = told(*seed, 30);
        let mut draw = Draw(!seed);
        (0..2500).any(|_| {
            let (time, pc) = (draw.below(3300), ZONE + draw.below(132) * 8);
            let process = draw.below(world.spaces.len() as u64) as usize;
            time >= world.spaces[process].from
                && world.who(time, process, pc).is_ok()
                && world.inherited(time, process, pc).is_some()
        })
    };
    assert!((0..16).filter(hands_on).count() > 12);
}
