//! Classes, sites and lifetimes of objects.

use vmscope_process::{Poll, ProcessView};
use vmscope_publish::event as e;
use vmscope_records::{
    AllocationSite, Birth, Births, BytecodePc, Class, ClassKey, Fate, Fates, LifetimeCounts,
    ObjectFate, ObjectKey, SiteKey, SurvivalBucket, ThreadKey, TimeNs,
};

use super::Books;

impl Books {
    pub(super) fn class(&mut self, class: &e::Class<'_>, poll: &mut Poll) {
        let keys = poll.keys().clone();
        if let Some(key) = self.classes.new_key(class.id, || keys.class()) {
            poll.class(Class {
                key,
                process: poll.process(),
                name: class.name.to_string(),
            });
        }
    }

    pub(super) fn site(&mut self, site: &e::Site<'_>, poll: &mut Poll) {
        let frame = |frame: &e::SiteFrame| {
            Some((self.methods.get(frame.method)?, BytecodePc(frame.bytecode)))
        };
        let Some(frames) = site.frames.iter().map(frame).collect::<Option<Vec<_>>>() else {
            self.complaints.unknown_ids += 1;
            return;
        };
        let keys = poll.keys().clone();
        if let Some(key) = self.sites.new_key(site.id, || keys.site()) {
            poll.site(AllocationSite {
                key,
                process: poll.process(),
                frames,
            });
        }
    }

    pub(super) fn births(
        &mut self,
        births: &e::Births<'_>,
        process: &ProcessView,
        poll: &mut Poll,
    ) {
        let thread = self.threads.outer(births.tid, process);
        let mut all = Births::new(poll.process(), thread.map(ThreadKey::of_tid));
        for birth in births.births.iter() {
            let (class, site) = self.class_and_site(birth.class, birth.site);
            let Some(class) = class.filter(|_| birth.weight >= 1.0) else {
                self.complaints.unknown_ids += 1;
                continue;
            };
            all.push(Birth {
                object: ObjectKey(birth.object),
                time: TimeNs(birth.time).min(poll.now()),
                class,
                site,
                bytes: birth.bytes,
                weight: birth.weight,
                allocated_bytes: Some(birth.allocated_bytes).filter(|bytes| *bytes < u64::MAX),
            });
        }
        if !all.is_empty() {
            poll.births(all);
        }
    }

    /// Finds the keys of a class and site. An unknown site counts as a complaint.
    fn class_and_site(&mut self, class: u64, site: u64) -> (Option<ClassKey>, Option<SiteKey>) {
        let found = self.sites.get(site);
        self.complaints.unknown_ids += u64::from(site != 0 && found.is_none());
        (self.classes.get(class), found)
    }

    pub(super) fn survivals(&mut self, survivals: &e::Survivals<'_>, poll: &mut Poll) {
        let mut fates = Fates::new(poll.process(), self.collections.key(survivals.collection));
        for one in survivals.survivals.iter() {
            let fate = match one.tenured {
                0 => Fate::Survived,
                _ => Fate::Tenured,
            };
            let holder = self.classes.get(one.holder);
            self.complaints.unknown_ids += u64::from(one.holder != 0 && holder.is_none());
            fates.push(ObjectFate {
                object: ObjectKey(one.object),
                time: TimeNs(one.time).min(poll.now()),
                fate,
                holder,
            });
        }
        if !fates.is_empty() {
            poll.fates(fates);
        }
    }

    pub(super) fn deaths(&mut self, deaths: &e::Deaths<'_>, poll: &mut Poll) {
        let mut fates = Fates::new(poll.process(), self.collections.key(deaths.collection));
        for one in deaths.deaths.iter() {
            fates.push(ObjectFate {
                object: ObjectKey(one.object),
                time: TimeNs(one.time).min(poll.now()),
                fate: Fate::Died,
                holder: None,
            });
        }
        if !fates.is_empty() {
            poll.fates(fates);
        }
    }

    pub(super) fn lifetimes(&mut self, time: TimeNs, counts: &e::Lifetimes<'_>, poll: &mut Poll) {
        let (class, site) = self.class_and_site(counts.class, counts.site);
        let Some(class) = class else {
            self.complaints.unknown_ids += 1;
            return;
        };
        let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let buckets = counts.buckets.iter().map(|bucket| SurvivalBucket {
            scavenges: number(bucket.scavenges),
            fulls: number(bucket.fulls),
            objects: bucket.objects,
            bytes: bucket.bytes,
            alive_objects: bucket.alive_objects,
            alive_bytes: bucket.alive_bytes,
        });
        poll.lifetime_counts(LifetimeCounts {
            process: poll.process(),
            time,
            class,
            site,
            objects: counts.objects,
            bytes: counts.bytes,
            buckets: buckets.collect(),
        });
    }
}
