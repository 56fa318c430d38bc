//! Lifetimes as a profiler reads them: births, deaths, sites and counts of whole programs.

mod common;

use std::collections::{BTreeMap, HashMap};

use vmscope_publish::event::{Event, SiteFrame};
use vmscope_publish::reader::{Attached, Next};
use vmscope_publish::{LifetimeRate, LifetimeUnit};
use vmscope_reference_vm::memory::Parameters;
use vmscope_reference_vm::{JitOptions, LifetimeObserver, LifetimeOptions, Options, Outcome, Vm};

/// What a profiler has read.
#[derive(Default)]
struct Read {
    classes: HashMap<u64, String>,
    sites: HashMap<u64, Vec<SiteFrame>>,
    methods: HashMap<u64, String>,
    /// Begin of each collection, by id.
    collections: BTreeMap<u64, u64>,
    /// Object, class, site, bytes.
    births: Vec<(u64, u64, u64, u64)>,
    /// Object, class of its holder.
    survivals: Vec<(u64, u64)>,
    deaths: BTreeMap<u64, u64>,
    /// Whether earlier collections may be unknown.
    lenient: bool,
    /// The newest figures about finalization.
    figures: HashMap<String, f64>,
    /// Objects, dead objects and living objects by class and site.
    counts: BTreeMap<(u64, u64), (u64, u64, u64)>,
}

impl Read {
    fn take(&mut self, attached: &mut Attached) {
        loop {
            match attached.read() {
                Next::Event { event, time, .. } => self.event(event, time),
                other => {
                    assert_eq!(other, Next::Empty, "nothing is lost");
                    return;
                }
            }
        }
    }

    /// A birth without ids.
    fn name(&self, (_, class, site, bytes): &(u64, u64, u64, u64)) -> Named {
        let frames = self.sites.get(site).into_iter().flatten();
        let frames = frames.map(|frame| (self.methods[&frame.method].clone(), frame.bytecode));
        (self.classes[class].clone(), frames.collect(), *bytes)
    }

    /// Observations have the time of their collection's end, also if another collection follows at once.
    fn assert_observed_in(&self, collection: u64, time: u64) {
        let Some(begin) = self.collections.get(&collection) else {
            assert!(self.lenient, "{collection}");
            return;
        };
        let next = self.collections.get(&(collection + 1));
        let is_before_next = next.is_none_or(|next| time < *next);
        assert!(*begin < time && is_before_next, "{collection}: {time}");
    }

    fn event(&mut self, event: Event<'_>, time: u64) {
        match event {
            Event::Class(class) => {
                self.classes.insert(class.id, class.name.to_string());
            }
            Event::Site(site) => {
                self.sites.insert(site.id, site.frames.into_owned());
            }
            Event::Method(method) => {
                let title = format!("{}>>{}", method.class, method.name);
                self.methods.insert(method.id, title);
            }
            Event::CollectionBegin(begin) => {
                self.collections.insert(begin.id, time);
            }
            Event::Births(births) => {
                for birth in births.births.iter() {
                    if !self.lenient {
                        assert!(self.classes.contains_key(&birth.class));
                        assert!(birth.site == 0 || self.sites.contains_key(&birth.site));
                    }
                    assert!(birth.time > 0 && birth.weight >= 1.0);
                    let row = (birth.object, birth.class, birth.site, birth.bytes);
                    self.births.push(row);
                }
            }
            Event::Survivals(survivals) => {
                for one in survivals.survivals.iter() {
                    self.assert_observed_in(survivals.collection, one.time);
                    assert!(one.holder == 0 || self.classes.contains_key(&one.holder));
                    self.survivals.push((one.object, one.holder));
                }
            }
            Event::Deaths(deaths) => {
                for death in deaths.deaths.iter() {
                    self.assert_observed_in(deaths.collection, death.time);
                    let before = self.deaths.insert(death.object, deaths.collection);
                    assert_eq!(before, None, "an object dies once");
                }
            }
            Event::Counter(counter) if counter.section.to_string() == "Finalization" => {
                self.figures.insert(counter.name.to_string(), counter.value);
            }
            Event::Lifetimes(counts) => {
                let rows = counts.buckets.iter();
                let dead = rows.clone().map(|row| row.objects).sum();
                let alive = rows.map(|row| row.alive_objects).sum();
                let key = (counts.class, counts.site);
                self.counts.insert(key, (counts.objects, dead, alive));
            }
            _ => {}
        }
    }
}

fn every_object(callers: u32) -> LifetimeOptions {
    LifetimeOptions {
        rate: LifetimeRate {
            unit: LifetimeUnit::Objects,
            distance: 1,
            callers,
        },
        ..LifetimeOptions::default()
    }
}

/// Runs until the VM has answered the request for a rate.
fn await_rate(vm: &mut Vm, rate: LifetimeRate) {
    while vm.heap.lifetime_rate() != rate {
        let outcome = vm.load("wait", "1 to: 1000 do: [:i | i printString]!\n");
        assert!(matches!(outcome, Ok(Outcome::Value(_))));
    }
}

/// Starts a VM, attaches, and runs a text.
fn run(memory: Parameters, jit: JitOptions, lifetimes: LifetimeOptions, text: &str) -> Read {
    let mut vm = Vm::new(Options {
        memory,
        jit,
        publish: true,
        ..Options::default()
    })
    .expect("a VM");
    let file = vm.publication_file().expect("a publisher");
    let mut attached = Attached::new(file.try_clone().expect("a file"), None).expect("attached");
    attached.request_snapshot();
    attached.set_lifetime_rate(lifetimes.rate);
    let mut read = Read::default();
    await_rate(&mut vm, lifetimes.rate);
    read.take(&mut attached);
    read.births.clear();
    let outcome = vm.load("test.st", text).expect("no errors");
    assert!(matches!(outcome, Outcome::Value(_)), "{outcome:?}");
    drop(vm);
    read.take(&mut attached);
    read
}

const PROGRAM: &str = "
Object subclass: #Node instanceVariableNames: 'next payload' classVariableNames: '' package: 'x'!
!Node class methodsFor: 'x'!
before: aNode
\t^self new next: aNode! !
!Node methodsFor: 'x'!
next: aNode
\tnext := aNode.
\tpayload := Array new: 3! !
| list floats block |
1 to: 300 do: [:i |
\tlist := nil.
\t1 to: 5 do: [:k | list := Node before: list].
\tblock := [:x | list := x].
\tblock value: (String new: i \\\\ 7).
\tfloats := {i. i printString. i asFloat * 1.0e200. i * 1000000000000000000}.
\tfloats := floats copy.
\tlist := Object new] !
";

/// A birth: class, frames of the site, bytes.
type Named = (String, Vec<(String, u32)>, u64);

/// Births without ids, from the program's first Node on: class and site by name.
fn named(read: &Read) -> Vec<Named> {
    let births = read.births.iter().map(|birth| read.name(birth));
    births.skip_while(|birth| birth.0 != "Node").collect()
}

#[test]
fn machine_code_and_interpreter_make_the_same_births() {
    for callers in [0, 2] {
        let lifetimes = every_object(callers);
        let memory = Parameters::default;
        let interpreted = run(memory(), common::interpreted(), lifetimes, PROGRAM);
        let births = named(&interpreted);
        assert!(births.len() > 5000, "{}", births.len());
        let of = |class: &str, method: &str| {
            let births = births.iter();
            births
                .filter(|birth| birth.0 == class && birth.1[0].0 == method)
                .count()
        };
        // `new` belongs to its caller.
        assert_eq!(of("Node", "Node class>>before:"), 1500);
        assert_eq!(of("Array", "Node>>next:"), 1500);
        for jit in [
            common::compiled_at_once(),
            common::compiled_in_a_tiny_zone(),
        ] {
            let compiled = named(&run(memory(), jit, lifetimes, PROGRAM));
            for (at, (left, right)) in births.iter().zip(&compiled).enumerate() {
                assert_eq!(left, right, "birth {at}");
            }
            assert_eq!(births.len(), compiled.len());
        }
    }
}

const LIBRARY: &str = "
Object subclass: #Page instanceVariableNames: 'text' classVariableNames: '' package: 'x'!
Object subclass: #Book instanceVariableNames: 'pages' classVariableNames: '' package: 'x'!
Object subclass: #Library instanceVariableNames: 'books' classVariableNames: '' package: 'x'!
!Page methodsFor: 'x'!
initialize
\ttext := String new: 20! !
!Book methodsFor: 'x'!
initialize
\tpages := (1 to: 5) collect: [:each | Page new]! !
!Library methodsFor: 'x'!
initialize
\tbooks := OrderedCollection new.
\t100 timesRepeat: [books addLast: Book new]! !
| library |
library := Library new.
Smalltalk garbageCollect.
library := Library new.
Smalltalk garbageCollect !
";

#[test]
fn survivors_have_their_true_holders() {
    for jit in [common::interpreted(), common::compiled_at_once()] {
        let read = run(Parameters::default(), jit, every_object(0), LIBRARY);
        let births: HashMap<u64, Named> = (read.births.iter())
            .map(|birth| (birth.0, read.name(birth)))
            .collect();
        let mut pairs = BTreeMap::<(&str, &str), u64>::new();
        for (object, holder) in &read.survivals {
            // Objects older than the program have no known birth.
            let Some((class, site, _)) = births.get(object) else {
                continue;
            };
            let is_ours = class != "String" || site[0].0 == "Page>>initialize";
            if is_ours && ["Page", "Book", "Library", "String"].contains(&class.as_str()) {
                let holder = read.classes.get(holder).map_or("", String::as_str);
                *pairs.entry((class, holder)).or_default() += 1;
            }
        }
        // Two libraries, each seen by a scavenge and a full collection. Arrays stand for their holders.
        let expected = [
            (("Book", "OrderedCollection"), 400),
            (("Library", ""), 4),
            (("Page", "Book"), 2000),
            (("String", "Page"), 2000),
        ];
        assert_eq!(pairs, BTreeMap::from(expected));
    }
}

#[test]
fn records_and_counts_agree_in_every_mode() {
    for (mode, memory, jit) in common::all_modes() {
        let read = run(memory, jit, every_object(0), PROGRAM);
        let mut counts = BTreeMap::<_, u64>::new();
        for (_, class, site, _) in &read.births {
            *counts.entry((*class, *site)).or_default() += 1;
        }
        for (pair, objects) in counts {
            let counted = read.counts.get(&pair).copied().unwrap_or_default();
            assert!(
                counted.0 >= objects,
                "{mode}: {pair:?} {counted:?} {objects}"
            );
            assert_eq!(counted.0, counted.1 + counted.2, "{mode}: {pair:?}");
        }
        let dead = read.counts.values().map(|counts| counts.1).sum::<u64>();
        assert_eq!(dead, read.deaths.len() as u64, "{mode}");
    }
}

#[test]
fn the_callers_of_a_site_are_those_asked_for() {
    for callers in [0, 1, 9] {
        let read = run(
            Parameters::default(),
            JitOptions::default(),
            every_object(callers),
            PROGRAM,
        );
        let births = named(&read);
        let mut arrays = births.iter().filter(|birth| birth.0 == "Array");
        let array = arrays.find(|birth| birth.1[0].0 == "Node>>next:");
        let frames = array.expect("an Array").1.iter();
        let names: Vec<&str> = frames.map(|frame| frame.0.as_str()).collect();
        let chain = [
            "Node>>next:",
            "Node class>>before:",
            "UndefinedObject>>DoIt",
        ];
        assert_eq!(names, chain[..chain.len().min(callers as usize + 1)]);
    }
}

#[test]
fn a_profiler_that_leaves_ends_the_tracking() {
    let mut vm = Vm::new(Options {
        publish: true,
        ..Options::default()
    })
    .expect("a VM");
    let file = vm.publication_file().expect("a publisher");
    let mut attached = Attached::new(file.try_clone().expect("a file"), None).expect("attached");
    let rate = every_object(0).rate;
    attached.set_lifetime_rate(rate);
    await_rate(&mut vm, rate);
    let text = "1 to: 9 do: [:i | i printString]!\n";
    assert!(vm.load("a", text).is_ok());
    attached.set_lifetime_rate(LifetimeRate::default());
    await_rate(&mut vm, LifetimeRate::default());
    let mut read = Read::default();
    read.take(&mut attached);
    assert!(!read.births.is_empty() && !read.counts.is_empty());
}

#[test]
fn a_profilers_rate_does_not_restart_the_counts_of_the_vms_options() {
    let mut vm = Vm::new(Options {
        publish: true,
        lifetimes: every_object(0),
        ..Options::default()
    })
    .expect("a VM");
    let file = vm.publication_file().expect("a publisher");
    let mut attached = Attached::new(file.try_clone().expect("a file"), None).expect("attached");
    attached.request_snapshot();
    let rates = [
        LifetimeRate::default(),
        LifetimeRate {
            distance: 100,
            ..every_object(0).rate
        },
        every_object(2).rate,
        LifetimeRate::default(),
    ];
    let mut read = Read {
        lenient: true,
        ..Read::default()
    };
    let text = "1 to: 50 do: [:i | Association basicNew]!\n";
    for rate in rates {
        attached.set_lifetime_rate(rate);
        let granted = if rate.distance == 0 {
            every_object(0).rate
        } else {
            rate
        };
        await_rate(&mut vm, granted);
        assert!(vm.load("a", text).is_ok());
        read.take(&mut attached);
    }
    drop(vm);
    read.take(&mut attached);
    let class = read.classes.iter().find(|class| class.1 == "Association");
    let class = *class.expect("the class").0;
    let of_text = read.counts.iter().filter(|((of, site), _)| {
        *of == class && read.methods[&read.sites[site][0].method] == "UndefinedObject>>DoIt"
    });
    let objects: u64 = of_text.map(|(_, counts)| counts.0).sum();
    assert_eq!(objects, 4 * 50);
}

#[test]
fn each_process_has_samples_of_its_own() {
    let text = "
1 to: 50 do: [:i |
	[1 to: 20 do: [:j | Association basicNew]] fork.
	Processor yield.
	1 to: 1000 do: [:j | Object basicNew]]!
";
    let rate = LifetimeRate {
        unit: LifetimeUnit::Threads,
        distance: 1024,
        callers: 0,
    };
    let read = run(
        Parameters::default(),
        JitOptions::default(),
        LifetimeOptions {
            rate,
            ..LifetimeOptions::default()
        },
        text,
    );
    let births: Vec<Named> = read.births.iter().map(|birth| read.name(birth)).collect();
    let of = |class: &str| births.iter().filter(|birth| birth.0 == class).count();
    // A 64th of 1000, with four standard errors. One distance for all classes would give 1 object.
    assert!((4..=32).contains(&of("Association")), "{births:?}");
    // Each shorter distance gives at most 16 objects; after them, one object in 1024 is watched.
    assert!((10..=150).contains(&of("Object")), "{births:?}");
}

/// The finalization process waits forever in the first `mourn`.
const STUCK: &str = "
Object ephemeronSubclass: #Stuck instanceVariableNames: 'key' classVariableNames: '' package: 'x'!
!Stuck methodsFor: 'x'!
key: anObject
	key := anObject!
mourn
	Semaphore new wait! !
Smalltalk at: #All put: ((1 to: 5) collect: [:i | Stuck new key: Object new; yourself]).
Smalltalk garbageCollect.
(Delay forMilliseconds: 20) wait!
";

#[test]
fn a_finalization_queue_that_never_drains_is_published() {
    let read = run(
        Parameters::default(),
        JitOptions::default(),
        every_object(0),
        STUCK,
    );
    // One of five is being finalized.
    assert_eq!(read.figures["waiting"], 4.0);
    assert!(read.figures["waiting for"] > 0.0);
    let usual = "Smalltalk garbageCollect. (Delay forMilliseconds: 20) wait!\n";
    let read = run(
        Parameters::default(),
        JitOptions::default(),
        every_object(0),
        usual,
    );
    assert_eq!(
        (read.figures["waiting"], read.figures["waiting for"]),
        (0.0, 0.0)
    );
}

const KNOWN: &str = "
Object subclass: #Known instanceVariableNames: '' classVariableNames: '' package: 'x'!
| kept |
kept := Array new: 10.
Smalltalk at: #Kept put: kept.
1 to: 700 do: [:i | kept at: i \\\\ 10 + 1 put: Known basicNew].
Smalltalk garbageCollect.
(Delay forMilliseconds: 20) wait!
";

/// Runs a program whose Knowns live for ten allocations, the last ten on. Returns births by site,
/// the collections of the deaths, and the bytes allocated by the program.
fn known(observer: LifetimeObserver, rate: LifetimeRate) -> (Vec<Named>, Vec<u64>, u64) {
    let mut vm = Vm::new(Options {
        publish: true,
        lifetimes: LifetimeOptions {
            rate,
            observer,
            ..LifetimeOptions::default()
        },
        ..Options::default()
    })
    .expect("a VM");
    let file = vm.publication_file().expect("a publisher");
    let mut attached = Attached::new(file.try_clone().expect("a file"), None).expect("attached");
    let number = attached.request_snapshot();
    while attached.snapshots().1 < number {
        let outcome = vm.load("wait", "1 to: 1000 do: [:i | i printString]!\n");
        assert!(matches!(outcome, Ok(Outcome::Value(_))));
    }
    let before = vm.heap.statistics().allocated_bytes;
    let outcome = vm.load("test.st", KNOWN).expect("no errors");
    assert!(matches!(outcome, Outcome::Value(_)), "{outcome:?}");
    let bytes = vm.heap.statistics().allocated_bytes - before;
    drop(vm);
    let mut read = Read {
        lenient: true,
        ..Read::default()
    };
    read.take(&mut attached);
    assert!(
        read.classes
            .values()
            .all(|name| name != "LifetimeEphemeron")
    );
    let is_known = |birth: &&(u64, u64, u64, u64)| read.classes[&birth.1] == "Known";
    let objects = read.births.iter().filter(is_known).map(|birth| birth.0);
    let deaths = objects.filter_map(|object| read.deaths.get(&object).copied());
    let deaths = deaths.collect();
    let births = read
        .births
        .iter()
        .filter(is_known)
        .map(|birth| read.name(birth));
    (births.collect(), deaths, bytes)
}

#[test]
fn finalization_sees_the_same_births_and_deaths_at_a_price() {
    let every = every_object(0).rate;
    let (births, deaths, bytes) = known(LifetimeObserver::Vm, every);
    assert_eq!((births.len(), deaths.len()), (700, 690));
    assert!(deaths.iter().all(|collection| *collection > 0));
    for pretenured in [false, true] {
        let observer = LifetimeObserver::Finalization { pretenured };
        let (seen, their_deaths, their_bytes) = known(observer, every);
        assert_eq!(seen, births);
        assert_eq!(their_deaths, [0; 690], "no collection reports them");
        // An ephemeron has a header and four fields.
        assert!(their_bytes >= bytes + 700 * 40, "{their_bytes}, {bytes}");
        for (unit, range) in [
            (LifetimeUnit::EveryNth, 100..=100),
            (LifetimeUnit::Objects, 50..=150),
        ] {
            let rate = LifetimeRate {
                unit,
                distance: 7,
                callers: 0,
            };
            let (births, deaths, _) = known(observer, rate);
            assert!(range.contains(&births.len()), "{unit:?} {}", births.len());
            assert!(deaths.len() < births.len() || unit == LifetimeUnit::Objects);
            assert!(deaths.len() + 10 >= births.len());
        }
    }
}
