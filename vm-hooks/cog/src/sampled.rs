//! Listings of bytecodes for methods with samples in their generated code.

use rustc_hash::FxHashSet;
use vmscope_process::pages::Pages;
use vmscope_process::{AdapterError, MAX_TOUCHED_OF_A_POLL, Memory, Poll, read_consistently};
use vmscope_records::{Avma, Method, MethodKey};

use crate::cog_method::CogMethod;
use crate::describe::Describer;
use crate::listing::ListingRoom;
use crate::names::MethodName;
use crate::vm::{Vm, Zone};

/// Attempts to read methods without a collection meanwhile.
const ATTEMPTS: u32 = 8;

/// Methods whose listings were reported.
#[derive(Debug, Default)]
pub struct Sampled {
    told: FxHashSet<MethodKey>,
    /// Sampled addresses that wait for a reading of the zone.
    addresses: FxHashSet<Avma>,
    room: ListingRoom,
}

impl Sampled {
    /// Keeps the addresses of `poll`'s samples.
    pub fn take_addresses(&mut self, poll: &Poll) {
        for address in poll.touched() {
            if self.addresses.len() < MAX_TOUCHED_OF_A_POLL {
                self.addresses.insert(*address);
            }
        }
    }

    /// Reports listings of the entries at the addresses, once each. `method_of`: key and name of an entry's
    /// method.
    ///
    /// # Errors
    /// Failed reads; [`AdapterError::Torn`] if collections happen during each attempt.
    pub fn poll<'n>(
        &mut self,
        vm: &Vm,
        zone: &Zone,
        memory: &dyn Memory,
        method_of: impl Fn(&CogMethod) -> Option<(MethodKey, &'n MethodName)>,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let entries = self
            .addresses
            .iter()
            .filter_map(|at| zone.methods.around(*at));
        let methods = entries.filter_map(|entry| Some((entry, method_of(entry)?)));
        let mut methods: Vec<_> = methods
            .filter(|(_, (key, _))| !self.told.contains(key))
            .collect();
        methods.sort_unstable_by_key(|(_, (key, _))| *key);
        methods.dedup_by_key(|(_, (key, _))| *key);
        if methods.is_empty() {
            self.addresses.clear();
            return Ok(());
        }
        let stamp = || vm.stamp(memory);
        let (listings, room) = read_consistently("compiled methods", ATTEMPTS, stamp, |_| {
            let pages = Pages::new(memory);
            let mut describer = Describer::new(vm, zone, &pages)?;
            let mut room = self.room;
            let listings = methods
                .iter()
                .map(|(entry, _)| describer.listing(entry, &mut room));
            Ok((listings.collect::<Result<Vec<_>, _>>()?, room))
        })?;
        self.room = room;
        self.addresses.clear();
        for ((entry, (key, name)), listing) in methods.into_iter().zip(listings) {
            let Some(listing) = listing else {
                // The object moved since the zone was read.
                self.addresses.insert(entry.at);
                continue;
            };
            self.told.insert(key);
            poll.method(Method {
                key,
                time: poll.now(),
                class: name.class_with_blocks(),
                name: name.selector.clone(),
                ..listing.into_method()
            });
        }
        self.room.tell(poll);
        Ok(())
    }
}
