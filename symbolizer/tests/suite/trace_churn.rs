//! Fast turnover in a code zone, against the simulated truth and against an oracle that scans all
//! constituents per sample.
//!
//! The simulated VM loads, unloads, moves and replaces code at random times; an adapter polls now
//! and then and emits its observations.

use crate::recordings::{self, Draw, PROCESS, Recording, THREAD, code};
use proptest::prelude::*;
use vmscope_records::{Constituent, TimeNs};
use vmscope_symbolizer::profile::EntryKind;
use vmscope_symbolizer::{Filter, Profile, Region, Summary};

const ZONE: u64 = 0x10_0000;
const PAGE: u64 = 0x100;
const SLOTS: u64 = 64;

/// True position and times of code.
#[derive(Clone, Debug)]
struct Truth {
    key: u64,
    start: u64,
    end: u64,
    from: u64,
    until: u64,
}

/// An adapter's record of a residency.
#[derive(Clone, Debug)]
struct Told {
    key: u64,
    start: u64,
    end: u64,
    /// Earliest possible presence.
    maybe: u64,
    /// First poll with the code.
    from: u64,
    /// Last poll with the code.
    last_seen: u64,
    /// First poll without the code.
    until: u64,
}

struct Run {
    recording: Recording,
    truth: Vec<Truth>,
    told: Vec<Told>,
    samples: Vec<(u64, u64)>,
}

/// Simulates `steps` of a VM with a poll every `look` steps on average.
fn simulate(seed: u64, steps: u64, look: u64, samples: usize) -> Run {
    let mut draw = Draw(seed);
    let mut recording = Recording::of("Cog");
    let mut live: Vec<Truth> = Vec::new();
    let mut truth: Vec<Truth> = Vec::new();
    let mut told: Vec<Told> = Vec::new();
    // Code at the last poll: key → index in `told`.
    let mut seen: Vec<(u64, usize)> = Vec::new();
    let mut known: Vec<u64> = Vec::new();
    let mut last_look = 0;
    let mut key = 0;
    for step in 1..=steps {
        let time = step * 10;
        let slot = draw.below(SLOTS);
        let start = ZONE + slot * PAGE + draw.below(8) * 0x10;
        let end = start + 0x10 + draw.below(2 * PAGE);
        let is_free = |live: &[Truth], start: u64, end: u64| {
            live.iter()
                .all(|code| code.end <= start || end <= code.start)
        };
        match draw.below(8) {
            // New code, after unloading any at its place.
            0..=3 => {
                let (gone, stay): (Vec<_>, Vec<_>) = live
                    .into_iter()
                    .partition(|code| code.start < end && start < code.end);
                live = stay;
                truth.extend(gone.into_iter().map(|code| Truth {
                    until: time,
                    ..code
                }));
                key += 1;
                live.push(Truth {
                    key,
                    start,
                    end,
                    from: time,
                    until: u64::MAX,
                });
            }
            4 | 5 if !live.is_empty() => {
                let index = draw.below(live.len() as u64) as usize;
                let code = live.swap_remove(index);
                truth.push(Truth {
                    until: time,
                    ..code
                });
            }
            6 if !live.is_empty() => {
                let index = draw.below(live.len() as u64) as usize;
                let code = live.swap_remove(index);
                let to = start + (code.end - code.start);
                if is_free(&live, start, to) && code.start != start {
                    truth.push(Truth {
                        until: time,
                        ..code.clone()
                    });
                    live.push(Truth {
                        start,
                        end: to,
                        from: time,
                        ..code
                    });
                } else {
                    live.push(code);
                }
            }
            _ => {}
        }
        if draw.below(look) == 0 || step == steps {
            // A poll between two steps.
            let now = time + 5;
            let mut next = Vec::new();
            for (key, index) in seen.drain(..) {
                match live.iter().find(|code| code.key == key) {
                    Some(code) if code.start == told[index].start => {
                        told[index].last_seen = now;
                        next.push((key, index));
                    }
                    Some(code) => {
                        recording.moved(key, last_look, now, code.start);
                        told[index].until = now;
                        next.push((key, told.len()));
                        told.push(Told {
                            key,
                            start: code.start,
                            end: code.end,
                            maybe: last_look,
                            from: now,
                            last_seen: now,
                            until: u64::MAX,
                        });
                    }
                    None => {
                        recording.gone(key, last_look, now);
                        told[index].until = now;
                    }
                }
            }
            for fresh in &live {
                if known.contains(&fresh.key) {
                    continue;
                }
                known.push(fresh.key);
                recording.constituent(Constituent {
                    absent_at: Some(TimeNs(last_look)),
                    ..code(fresh.key, now, fresh.start, fresh.end)
                });
                next.push((fresh.key, told.len()));
                told.push(Told {
                    key: fresh.key,
                    start: fresh.start,
                    end: fresh.end,
                    maybe: last_look,
                    from: now,
                    last_seen: now,
                    until: u64::MAX,
                });
            }
            seen = next;
            last_look = now;
        }
    }
    truth.append(&mut live);
    // Code present at the end has no recorded end.
    let mut times: Vec<u64> = (0..samples).map(|_| draw.below(steps * 10 + 20)).collect();
    times.sort_unstable();
    let samples: Vec<(u64, u64)> = times
        .into_iter()
        // Avoids samples at the instant of a poll, where both answers are right.
        .map(|time| (time / 5 * 5 + 2, ZONE + draw.below((SLOTS + 2) * PAGE)))
        .collect();
    for &(time, pc) in &samples {
        recording.sample(time, THREAD, pc);
    }
    Run {
        recording,
        truth,
        told,
        samples,
    }
}

/// The possible owner of `pc` at `time` by the records: a key, none, or doubt.
fn oracle(told: &[Told], time: u64, pc: u64) -> Result<Option<u64>, ()> {
    let there =
        |stay: &&Told| stay.start <= pc && pc < stay.end && stay.maybe <= time && time < stay.until;
    let mut claims = told.iter().filter(there);
    let (first, second) = (claims.next(), claims.next());
    let firm = |stay: &Told| {
        stay.from <= time && (time < stay.last_seen || stay.until == u64::MAX && second.is_none())
    };
    match (first, second) {
        (None, _) => Ok(None),
        (Some(one), None) => Ok(Some(one.key)),
        (Some(one), Some(_)) if firm(one) => Ok(Some(one.key)),
        (Some(_), Some(other)) if firm(other) => Ok(Some(other.key)),
        _ => Err(()),
    }
}

fn who(profile: &Profile, sample: usize) -> Result<Option<u64>, ()> {
    let place = profile.trace.samples.places[sample];
    let site = profile.site_at(place);
    let entry = &profile.entries[site.entry];
    match entry.kind {
        EntryKind::Doubtful => Err(()),
        EntryKind::Code(_) => Ok(entry
            .name
            .strip_prefix('m')
            .and_then(|key| key.parse().ok())),
        _ => Ok(None),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_churning_zone_agrees_with_scanning_everything(seed: u64, look in 1u64..20) {
        let run = simulate(seed, 400, look, 1500);
        let profile = run.recording.profile();
        for (index, &(time, pc)) in run.samples.iter().enumerate() {
            let found = who(&profile, index);
            prop_assert_eq!(
                found, oracle(&run.told, time, pc),
                "pc {:#x} at {}: {:#?}", pc, time,
                run.told.iter().filter(|t| t.start <= pc && pc < t.end).collect::<Vec<_>>()
            );
        }
    }

    /// With a poll after every step, each sample's owner was truly present.
    #[test]
    fn nobody_gets_what_was_anothers(seed: u64) {
        let run = simulate(seed, 400, 1, 1500);
        let profile = run.recording.profile();
        let mut doubtful = 0;
        for (index, &(time, pc)) in run.samples.iter().enumerate() {
            let really = run.truth.iter().find(|code| {
                code.start <= pc && pc < code.end && code.from <= time && time < code.until
            });
            match who(&profile, index) {
                Err(()) => doubtful += 1,
                // Just before loading or after unloading, the code may be present.
                Ok(Some(key)) if really.is_none() => {
                    let near = run.truth.iter().any(|code| {
                        code.key == key && code.from <= time + 10 && time < code.until.saturating_add(10)
                    });
                    prop_assert!(near, "{key} at {time}");
                }
                found => prop_assert_eq!(found, Ok(really.map(|code| code.key)), "at {}", time),
            }
        }
        prop_assert!(doubtful < 200, "{doubtful} of 1500");
    }

    #[test]
    fn every_sample_is_counted_once(seed: u64, look in 1u64..20) {
        let run = simulate(seed, 100, look, 500);
        let profile = run.recording.profile();
        prop_assert_eq!(profile.site_of_place.len(), profile.trace.places.len());
        for filter in [
            Filter::default(),
            Filter { from: Some(TimeNs(300)), to: Some(TimeNs(700)), ..Filter::default() },
        ] {
            let summary = Summary::with_errors(&profile, &filter);
            let naive = run.samples.iter().filter(|(time, _)| {
                filter.from.is_none_or(|from| *time >= from.0) && filter.to.is_none_or(|to| *time < to.0)
            });
            prop_assert_eq!(summary.total, naive.count() as u64);
            prop_assert_eq!(summary.sites.iter().sum::<u64>(), summary.total);
            prop_assert_eq!(summary.entries.iter().sum::<u64>(), summary.total);
            prop_assert_eq!(summary.regions.iter().sum::<u64>(), summary.total);
            prop_assert_eq!(summary.threads.iter().map(|t| t.samples).sum::<u64>(), summary.total);
            let q = summary.quality;
            prop_assert_eq!(
                q.exact + q.approximate + q.method_only + q.unresolved + q.doubtful,
                summary.total
            );
            let vm = Region::ALL.into_iter().zip(summary.regions).filter(|(r, _)| r.is_vm());
            prop_assert_eq!(vm.map(|(_, n)| n).sum::<u64>(), summary.vm);
        }
    }
}

#[test]
fn the_simulated_process_is_the_one_that_is_sampled() {
    assert_eq!(code(1, 0, 0, 1).process, PROCESS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Polls are recorded late. Until each poll, a growing profile equals that of the whole
    /// recording.
    #[test]
    fn a_profile_that_grows_is_that_of_the_whole(
        seed in any::<u64>(),
        steps in 1u64..400,
        look in 1u64..40,
        settled in 1usize..50,
    ) {
        let bytes = simulate(seed, steps, look, 300).recording.bytes();
        let result = recordings::live::agree(&bytes, settled);
        prop_assert!(result.is_ok(), "{}", result.unwrap_err());
    }
}
