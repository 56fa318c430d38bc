//! Births, survivals and deaths against independent books.

use std::collections::{BTreeMap, VecDeque};

use vmscope_publish::event::{Birth, SurvivalBucket};
use vmscope_publish::{LifetimeRate, LifetimeUnit};

use super::*;

fn rate(unit: LifetimeUnit, distance: u64) -> LifetimeRate {
    LifetimeRate {
        unit,
        distance,
        callers: 0,
    }
}

/// Makes bytes at a site, as the interpreter does.
fn make(heap: &mut Heap, class: u32, bytes: usize, site: u32) -> Oop {
    let format = Format::with_bytes(Format::BYTES, bytes);
    let slots = bytes.div_ceil(8);
    if let Some(oop) = heap.allocate_quickly(class, format, slots) {
        return oop;
    }
    if let Some(seen) = heap.allocate_seen(class, format, slots) {
        if seen.1.is_some() || heap.notes_all() {
            heap.note_seen(seen, class, slots, site, || u64::from(site));
        }
        return seen.0;
    }
    let oop = heap.allocate_slowly(class, format, slots).expect("memory");
    heap.note_birth(site, || u64::from(site));
    oop
}

/// The model's entry for an object.
#[derive(Clone, Copy, Debug)]
struct Entry {
    object: u64,
    class: u32,
    site: u32,
    bytes: u64,
    root: Option<usize>,
    tenured: bool,
    age: (u64, u64),
}

/// Counts by class, site and age: dead objects and bytes, living objects and bytes.
type Table = BTreeMap<(u32, u32, u64, u64), [u64; 4]>;

/// Independent books: which objects live, where, and how old they are.
#[derive(Default)]
struct Books {
    entries: Vec<Entry>,
    dead: Table,
    births: Vec<Birth>,
    allocated: u64,
}

impl Books {
    fn birth(&mut self, heap: &Heap, oop: Oop, (class, site): (u32, u32), root: Option<usize>) {
        // SAFETY: the object was just made.
        let bytes = unsafe { object::size_in_bytes(oop) } as u64;
        let object = self.births.len() as u64 + 1;
        self.entries.push(Entry {
            object,
            class,
            site,
            bytes,
            root,
            tenured: !heap.is_new(oop),
            age: (0, 0),
        });
        self.births.push(Birth {
            time: site.into(),
            object,
            class: class.into(),
            site: site.into(),
            bytes,
            allocated_bytes: self.allocated,
            weight: 1.0,
        });
        self.allocated += bytes;
    }

    /// A collection: a scavenge leaves old objects alone. Returns survivors and dead.
    fn collect(&mut self, full: bool) -> (Vec<u64>, Vec<u64>) {
        let (mut survivors, mut dead) = (Vec::new(), Vec::new());
        let Self {
            entries,
            dead: table,
            ..
        } = self;
        entries.retain_mut(|entry| {
            if entry.tenured && !full {
                return true;
            }
            if entry.root.is_none() {
                dead.push(entry.object);
                let key = (entry.class, entry.site, entry.age.0, entry.age.1);
                let row = table.entry(key).or_default();
                (row[0], row[1]) = (row[0] + 1, row[1] + entry.bytes);
                return false;
            }
            survivors.push(entry.object);
            let age = if full {
                &mut entry.age.1
            } else {
                &mut entry.age.0
            };
            *age = (*age + 1).min(63);
            true
        });
        (survivors, dead)
    }

    fn table(&self) -> Table {
        let mut table = self.dead.clone();
        for entry in &self.entries {
            let key = (entry.class, entry.site, entry.age.0, entry.age.1);
            let row = table.entry(key).or_default();
            (row[2], row[3]) = (row[2] + 1, row[3] + entry.bytes);
        }
        table
    }
}

fn table_of(heap: &mut Heap) -> Table {
    let mut table = Table::new();
    for counts in heap.changed_counts(true) {
        let sum = |value: fn(&SurvivalBucket) -> u64| counts.buckets.iter().map(value).sum::<u64>();
        assert_eq!(counts.objects, sum(|row| row.objects + row.alive_objects));
        assert_eq!(counts.bytes, sum(|row| row.bytes + row.alive_bytes));
        for row in counts.buckets.iter() {
            let (class, site) = (counts.class as u32, counts.site as u32);
            let values = [row.objects, row.bytes, row.alive_objects, row.alive_bytes];
            let is_new = table.insert((class, site, row.scavenges, row.fulls), values);
            assert_eq!(is_new, None);
        }
    }
    table
}

/// Numbers and kinds of collections.
#[derive(Default)]
struct Kinds(Vec<(u64, Kind)>);

impl Observer for Kinds {
    fn collection_begin(&mut self, begin: &Begin<'_>) {
        self.0.push((begin.number, begin.kind));
    }
    fn phase_begin(&mut self, _: &'static str) {}
    fn phase_end(&mut self) {}
    fn collection_end(&mut self, _: &End) -> u64 {
        self.0.len() as u64
    }
}

/// Modes of the memory: ordinary ones, and all kinds of stress.
fn modes() -> Vec<Parameters> {
    let stress = |collect_every, full_every, tenure_all| Parameters {
        tenuring_threshold: if tenure_all { 0 } else { 90 },
        stress: Stress {
            collect_every,
            full_every,
            verify: !cfg!(miri),
        },
        ..small()
    };
    vec![
        small(),
        stress(0, 2, false),
        stress(0, 0, true),
        stress(0, 3, true),
        stress(31, 0, false),
        stress(17, 3, false),
        stress(13, 4, true),
    ]
}

/// Rings of objects: an object of ring r lives until `lengths[r]` further objects joined the ring.
fn run_rings(parameters: &Parameters, count: usize) {
    let lengths = [0, 1, 40, 700];
    let mut heap = heap(parameters);
    // Not tracked: it exists before.
    let early = make(&mut heap, BYTE_ARRAY, 9, 0);
    let mut books = Books {
        allocated: heap.statistics().allocated_bytes,
        ..Books::default()
    };
    heap.track_lifetimes(rate(LifetimeUnit::Objects, 1), 1);
    let mut roots = vec![Oop::small(0); lengths.iter().sum::<usize>() + 1];
    roots[lengths.iter().sum::<usize>()] = early;
    let mut rings: Vec<VecDeque<usize>> = Vec::new();
    let mut next = 0;
    for length in lengths {
        rings.push((next..next + length).collect());
        next += length;
    }
    let mut collections = 0;
    for number in 0..count {
        let ring = number % lengths.len();
        // Large objects go to old space at once.
        let bytes = match number % 197 {
            0 => 9000,
            1 => 2500,
            other => other % 50,
        };
        let class = BYTE_ARRAY + (number % 3) as u32;
        let site = 1 + (number % 7) as u32;
        let oop = make(&mut heap, class, bytes, site);
        let place = rings[ring].pop_front();
        if let Some(place) = place {
            rings[ring].push_back(place);
            roots[place] = oop;
            let before = books
                .entries
                .iter_mut()
                .find(|entry| entry.root == Some(place));
            if let Some(before) = before {
                before.root = None;
            }
        }
        books.birth(&heap, oop, (class, site), place);
        let mut kinds = Kinds::default();
        heap.collect_if_wanted(&mut roots, &mut kinds);
        let fates = heap.take_fates();
        assert_eq!(fates.len(), kinds.0.len());
        for (fates, (number, kind)) in fates.into_iter().zip(kinds.0) {
            collections += 1;
            assert_eq!((fates.collection, number), (collections, collections));
            let full = kind == Kind::Full;
            let (survivors, dead) = books.collect(full);
            let mut seen: Vec<u64> = fates.survivals.iter().map(|one| one.object).collect();
            seen.sort_unstable();
            assert_eq!(seen, survivors, "collection {collections}");
            let mut seen: Vec<u64> = fates.deaths.iter().map(|one| one.object).collect();
            seen.sort_unstable();
            assert_eq!(seen, dead, "collection {collections}");
            // Roots hold all objects. The observer tells the number of begun collections as the time.
            let of_survivals = fates.survivals.iter().map(|one| (one.holder, one.time));
            let of_deaths = fates.deaths.iter().map(|one| (0, one.time));
            let mut told = of_survivals.chain(of_deaths);
            assert!(told.all(|(holder, time)| holder == 0 && time > 0));
            let entries = books.entries.iter_mut();
            let mut tenured: Vec<u64> = Vec::new();
            for entry in entries {
                let is_old = entry.root.is_some_and(|place| !heap.is_new(roots[place]));
                if is_old && !entry.tenured {
                    entry.tenured = true;
                    tenured.push(entry.object);
                }
            }
            let tenures = fates.survivals.iter().filter(|one| one.tenured == 1);
            let seen: Vec<u64> = tenures.map(|one| one.object).collect();
            assert_eq!(seen, tenured, "collection {collections}");
        }
    }
    assert!(collections > 5, "{collections}");
    assert_eq!(heap.take_births(), books.births);
    assert_eq!(table_of(&mut heap), books.table());
}

#[test]
fn every_birth_survival_and_death_is_exact_in_every_mode() {
    for parameters in modes() {
        run_rings(&parameters, if cfg!(miri) { 1500 } else { 12_000 });
    }
}

/// Makes an object of references, at an unknown site.
fn make_holder(heap: &mut Heap, class: u32, format: Format, slots: &[Oop]) -> Oop {
    let oop = heap.allocate(class, format, slots.len()).expect("memory");
    for (index, slot) in slots.iter().enumerate() {
        heap.store(oop, index, *slot);
    }
    oop
}

/// Classes of the holders of the objects that the newest collection found alive, by the objects'
/// classes.
fn holders(heap: &mut Heap, classes: &BTreeMap<u64, u64>) -> Vec<(u64, u64)> {
    let fates = heap.take_fates();
    let newest = fates.last().expect("a collection");
    let pairs = newest
        .survivals
        .iter()
        .map(|one| (classes[&one.object], one.holder));
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort_unstable();
    pairs
}

#[test]
fn survivors_name_the_class_of_their_holder() {
    let (owner, list, ring, leaf) = (100, 101, 102, 200);
    let mut heap = heap(&small());
    heap.track_lifetimes(rate(LifetimeUnit::Objects, 1), 1);
    let leaves: Vec<Oop> = (0..8).map(|n| make(&mut heap, leaf + n, 8, 1)).collect();
    // An Array stands for its holder, also an Array of Arrays.
    let inner = make_holder(&mut heap, ARRAY, Format::INDEXED, &leaves[..1]);
    let outer = make_holder(&mut heap, ARRAY, Format::INDEXED, &[inner, leaves[1]]);
    let owner_oop = make_holder(&mut heap, owner, Format::FIXED, &[outer]);
    // Indexed objects with fields of their own stand for themselves.
    let list_oop = make_holder(&mut heap, list, Format::FIXED_AND_INDEXED, &leaves[2..3]);
    let ring_oop = make_holder(&mut heap, ring, Format::FIXED, &[Oop::small(0), leaves[3]]);
    heap.store(ring_oop, 0, ring_oop);
    let alone = make_holder(&mut heap, ARRAY, Format::INDEXED, &leaves[4..5]);
    let living = ephemeron(&mut heap, ring_oop, leaves[5]);
    let mourning = ephemeron(&mut heap, leaves[6], leaves[5]);
    let weak = weak_array(&mut heap, 1);
    heap.store(weak, 0, leaves[7]);
    let mut roots = vec![owner_oop, list_oop, ring_oop, alone, living, mourning, weak];
    let births = heap.take_births();
    let classes: BTreeMap<u64, u64> = births.iter().map(|one| (one.object, one.class)).collect();
    let [array, weakling, keeper] = [ARRAY, WEAK_ARRAY, EPHEMERON].map(u64::from);
    let leaf = u64::from(leaf);
    let of = |class: u32| u64::from(class);
    let mut expected = vec![
        (array, 0),
        (array, of(owner)),
        (array, of(owner)),
        (keeper, 0),
        (keeper, 0),
        (weakling, 0),
        (of(owner), 0),
        (of(list), 0),
        (of(ring), 0),
        (leaf, of(owner)),
        (leaf + 1, of(owner)),
        (leaf + 2, of(list)),
        (leaf + 3, of(ring)),
        (leaf + 4, array),
        (leaf + 5, keeper),
        (leaf + 6, keeper),
    ];
    expected.sort_unstable();
    // Holders take the place of hashes for a while.
    let hash_of = |heap: &mut Heap, oop: &Oop| heap.identity_hash(*oop);
    let hashes: Vec<u32> = roots[1..]
        .iter()
        .map(|root| hash_of(&mut heap, root))
        .collect();
    for _ in 0..3 {
        heap.scavenge("test", &mut roots, &mut ());
        assert_eq!(holders(&mut heap, &classes), expected);
        heap.collect_full("test", &mut roots, &mut ());
        assert_eq!(holders(&mut heap, &classes), expected);
        heap.mourners.clear();
        let now = roots[1..].iter().map(|root| hash_of(&mut heap, root));
        assert_eq!(now.collect::<Vec<_>>(), hashes);
        // Nothing asked for the first object's hash.
        // SAFETY: the root is an object.
        assert_eq!(unsafe { object::header(roots[0]) }.hash(), 0);
    }
}

/// Each group of objects has an owner with an Array of elements, of classes that no other group has.
#[test]
fn holders_are_exact_in_every_mode() {
    for parameters in modes() {
        let mut heap = heap(&parameters);
        heap.track_lifetimes(rate(LifetimeUnit::Objects, 1), 1);
        let mut roots = vec![Oop::small(0); 50];
        let mut classes = BTreeMap::new();
        let (mut of_owner, mut of_array) = (0, 0);
        for number in 0..if cfg!(miri) { 200 } else { 3000 } {
            let group = (number % 97) as u32;
            let elements: Vec<Oop> = (0..1 + number % 9)
                .map(|_| make(&mut heap, 1000 + group, 40, 1))
                .collect();
            let array = make_holder(&mut heap, ARRAY, Format::INDEXED, &elements);
            let root = number * 7 % roots.len();
            roots[root] = match group % 5 {
                0 => array,
                _ => make_holder(&mut heap, 500 + group, Format::FIXED, &[array]),
            };
            heap.collect_if_wanted(&mut roots, &mut ());
            let births = heap.take_births().into_iter();
            classes.extend(births.map(|birth| (birth.object, birth.class)));
            for survival in heap.take_fates().iter().flat_map(|one| &one.survivals) {
                let (class, holder) = (classes[&survival.object], survival.holder);
                let Some(group) = class.checked_sub(1000) else {
                    continue;
                };
                // Array and elements may be in different spaces: then nothing is known of the owner.
                let is_array = holder == u64::from(ARRAY);
                assert!(
                    is_array || group % 5 > 0 && holder == 500 + group,
                    "{group}: {holder}"
                );
                if group % 5 > 0 {
                    *(if is_array {
                        &mut of_array
                    } else {
                        &mut of_owner
                    }) += 1;
                }
            }
        }
        assert!(
            of_owner > 10 * of_array,
            "{of_owner} {of_array}: {parameters:?}"
        );
    }
}

/// Exact and estimated numbers of births and deaths by class.
fn estimates(rate: LifetimeRate, seed: u64, count: usize) -> [(u64, f64, f64, f64); 4] {
    let sizes = [1, 70, 700, 9000];
    let mut heap = heap(&small());
    heap.track_lifetimes(rate, seed);
    let mut exact = [0; 4];
    let mut weights = BTreeMap::new();
    let mut sums = [(0.0, 0.0, 0.0); 4];
    let mut add = |heap: &mut Heap, weights: &mut BTreeMap<u64, (usize, f64)>| {
        for birth in heap.take_births() {
            let class = (birth.class - u64::from(BYTE_ARRAY)) as usize;
            weights.insert(birth.object, (class, birth.weight));
            sums[class].0 += birth.weight;
            // Horvitz and Thompson's estimate of the variance.
            sums[class].1 += birth.weight * (birth.weight - 1.0);
        }
        for death in heap.take_fates().iter().flat_map(|fates| &fates.deaths) {
            let (class, weight) = weights.remove(&death.object).expect("a birth before");
            sums[class].2 += weight;
        }
    };
    for number in 0..count {
        // Periodic: each 500th object is large.
        let class = match number % 500 {
            0 => 3,
            other => other % 3,
        };
        let _ = make(&mut heap, BYTE_ARRAY + class as u32, sizes[class], 1);
        exact[class] += 1;
        heap.collect_if_wanted(&mut Vec::new(), &mut ());
        add(&mut heap, &mut weights);
    }
    heap.collect_full("test", &mut Vec::new(), &mut ());
    add(&mut heap, &mut weights);
    assert!(weights.is_empty(), "all objects are dead");
    std::array::from_fn(|class| {
        let (births, variance, deaths) = sums[class];
        (exact[class], births, variance.sqrt(), deaths)
    })
}

#[test]
fn random_samples_estimate_the_totals_of_all_sizes() {
    let rates = [
        rate(LifetimeUnit::Objects, 2),
        rate(LifetimeUnit::Objects, 16),
        rate(LifetimeUnit::Bytes, 300),
        rate(LifetimeUnit::Bytes, 16),
        rate(LifetimeUnit::Threads, 2),
        rate(LifetimeUnit::Threads, 100),
    ];
    for rate in rates {
        for seed in 0..6 {
            for (exact, births, error, deaths) in estimates(rate, seed, 30_000) {
                let off = (births - exact as f64).abs();
                assert!(
                    off <= 4.0 * error + 1e-6,
                    "{rate:?} {seed}: {births} of {exact}, ± {error}"
                );
                assert!((deaths - births).abs() < 1e-6, "{deaths} of {births}");
            }
        }
    }
}

#[test]
fn every_nth_object_is_sampled_and_locks_on_to_a_period() {
    let mut heap = heap(&small());
    heap.track_lifetimes(rate(LifetimeUnit::EveryNth, 7), 1);
    for number in 0..7000 {
        let _ = make(&mut heap, BYTE_ARRAY + number % 7, 8, 1);
        heap.collect_if_wanted(&mut Vec::new(), &mut ());
    }
    let births = heap.take_births();
    assert_eq!(births.len(), 1000);
    let last = u64::from(BYTE_ARRAY) + 6;
    assert!(
        births
            .iter()
            .all(|birth| birth.weight == 7.0 && birth.class == last)
    );
}

/// A new object as the program knows it: bytes allocated before it, its class, its size in bytes.
type Known = (u64, u64, u64);

/// Makes objects of two classes in two phases, some of them large, some in old space. Returns the
/// births, and all objects.
fn phases(rate: LifetimeRate, seed: u64, count: usize) -> (Vec<Birth>, Vec<Known>) {
    let mut heap = heap(&small());
    let _ = make(&mut heap, BYTE_ARRAY, 80, 1);
    heap.track_lifetimes(rate, seed);
    let (mut births, mut objects) = (Vec::new(), Vec::new());
    for number in 0..count {
        let class = BYTE_ARRAY + u32::from(number > count / 2);
        let bytes = match number % 97 {
            0 => 700,
            1 if number % 7 == 0 => 9000,
            other => 1 + other / 2,
        };
        let before = heap.statistics().allocated_bytes;
        if number % 101 == 0 {
            let format = Format::with_bytes(Format::BYTES, bytes);
            let _ = heap.allocate_old(class, format, bytes.div_ceil(8));
            heap.note_birth(1, || 1);
        } else {
            let _ = make(&mut heap, class, bytes, 1);
        }
        let after = heap.statistics().allocated_bytes;
        objects.push((before, u64::from(class), after - before));
        heap.collect_if_wanted(&mut Vec::new(), &mut ());
        births.append(&mut heap.take_births());
    }
    (births, objects)
}

/// By class: number of objects, bytes and mean lifetime in allocated bytes, each with its variance.
/// Objects of the second class live until 300 more of them exist, the others not at all.
fn means(rate: LifetimeRate, seed: u64) -> [[(f64, f64); 3]; 2] {
    let mut heap = heap(&small());
    heap.track_lifetimes(rate, seed);
    let mut roots = vec![Oop::small(0); 300];
    let mut born = BTreeMap::new();
    let mut lives: [Vec<(f64, f64, f64)>; 2] = Default::default();
    let mut observe = |heap: &mut Heap| {
        born.extend(heap.take_births().into_iter().map(|one| (one.object, one)));
        let now = heap.statistics().allocated_bytes;
        for death in heap.take_fates().iter().flat_map(|fates| &fates.deaths) {
            let birth: Birth = born.remove(&death.object).expect("a birth before");
            let lifetime = (now - birth.allocated_bytes) as f64;
            let class = (birth.class - u64::from(BYTE_ARRAY)) as usize;
            lives[class].push((birth.weight, birth.bytes as f64, lifetime));
        }
    };
    for number in 0..60_000 {
        let class = number % 3 / 2;
        let bytes = if number % 97 == 0 {
            700
        } else {
            1 + number % 60
        };
        let oop = make(&mut heap, BYTE_ARRAY + class as u32, bytes, 1);
        if class == 1 {
            roots[number / 3 % 300] = oop;
        }
        heap.collect_if_wanted(&mut roots, &mut ());
        observe(&mut heap);
    }
    heap.collect_full("test", &mut Vec::new(), &mut ());
    observe(&mut heap);
    assert!(born.is_empty(), "all objects are dead");
    lives.map(|lives| {
        // Horvitz and Thompson's estimates of totals and of their variances.
        let total = |of: &dyn Fn(&(f64, f64, f64)) -> f64| {
            let sums = lives
                .iter()
                .map(|one| (one.0 * of(one), one.0 * (one.0 - 1.0) * of(one).powi(2)));
            sums.fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1))
        };
        let objects = total(&|_| 1.0);
        let mean = total(&|one| one.2).0 / objects.0;
        let variance = total(&|one| one.2 - mean).1 / objects.0.powi(2);
        [objects, total(&|one| one.1), (mean, variance)]
    })
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn random_samples_estimate_objects_bytes_and_mean_lifetimes() {
    let exact = means(rate(LifetimeUnit::Objects, 1), 1);
    for rate in [
        rate(LifetimeUnit::Objects, 20),
        rate(LifetimeUnit::Threads, 40),
        rate(LifetimeUnit::Bytes, 900),
    ] {
        for seed in 0..8 {
            for (found, exact) in means(rate, seed)
                .as_flattened()
                .iter()
                .zip(exact.as_flattened())
            {
                let (found, variance) = *found;
                assert!(
                    variance > 0.0 && (found - exact.0).abs() <= 4.0 * variance.sqrt(),
                    "{rate:?} {seed}: {found} of {}, ± {}",
                    exact.0,
                    variance.sqrt()
                );
            }
        }
    }
}

#[test]
fn of_each_group_of_windows_one_is_sampled_whole() {
    const WINDOW: u64 = 1 << 14;
    let every = 5;
    let mut phases_seen = Vec::new();
    for seed in 0..6 {
        let (births, objects) = phases(rate(LifetimeUnit::Windows, every), seed, 60_000);
        let start = objects[0].0;
        let window = |before: u64| (before - start) / WINDOW;
        let mut sampled: Vec<u64> = births
            .iter()
            .map(|one| window(one.allocated_bytes))
            .collect();
        sampled.dedup();
        assert!(
            sampled
                .windows(2)
                .all(|two| two[0] / every < two[1] / every),
            "one of a group: {sampled:?}"
        );
        assert!(sampled.len() > 20, "{sampled:?}");
        let expected = objects
            .iter()
            .filter(|one| sampled.contains(&window(one.0)));
        let found = births
            .iter()
            .map(|one| (one.allocated_bytes, one.class, one.bytes));
        assert!(found.eq(expected.copied()), "all of a window's objects");
        assert!(births.iter().all(|birth| birth.weight == every as f64));
        for class in [BYTE_ARRAY, BYTE_ARRAY + 1].map(u64::from) {
            let mut windows: BTreeMap<u64, f64> = BTreeMap::new();
            for known in objects.iter().filter(|known| known.1 == class) {
                *windows.entry(window(known.0)).or_default() += 1.0;
            }
            let mut groups: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
            for (window, objects) in &windows {
                let group = groups.entry(window / every).or_default();
                *group = (group.0 + objects, group.1 + objects * objects);
            }
            // The variance of one window of each group, times `every`.
            let variance: f64 = groups
                .values()
                .map(|group| every as f64 * group.1 - group.0 * group.0)
                .sum();
            let exact: f64 = windows.values().sum();
            let of_class = births.iter().filter(|birth| birth.class == class);
            let estimate: f64 = of_class.map(|birth| birth.weight).sum();
            assert!(
                (estimate - exact).abs() <= 4.0 * variance.sqrt(),
                "seed {seed}: {estimate} of {exact}, ± {}",
                variance.sqrt()
            );
        }
        phases_seen.push(sampled);
    }
    phases_seen.dedup();
    assert_eq!(phases_seen.len(), 6, "random windows");
}

#[test]
fn the_object_that_needs_a_new_buffer_is_sampled() {
    let size = 2000;
    let (births, objects) = phases(rate(LifetimeUnit::Buffers, size), 1, 60_000);
    let mut births = births.into_iter();
    let first = births.next().expect("a birth");
    let mut end = first.allocated_bytes + size;
    let mut count = 0;
    for (before, class, bytes) in objects {
        if before <= first.allocated_bytes {
            continue;
        }
        let is_outside = bytes > size;
        if is_outside {
            end += bytes;
        } else if before + bytes > end {
            end = before + size;
        } else {
            continue;
        }
        let birth = births.next().expect("a birth");
        let found = (birth.allocated_bytes, birth.class, birth.bytes);
        assert_eq!(found, (before, class, bytes));
        let weight = if is_outside {
            1.0
        } else {
            size as f64 / bytes as f64
        };
        assert_eq!(birth.weight, weight);
        count += 1;
    }
    assert!(births.next().is_none() && count > 1000, "{count}");
}

#[test]
fn a_process_with_few_objects_gets_samples_of_its_own() {
    let every = 256;
    let (mut few, mut sums) = (0, [(0.0, 0.0); 2]);
    for seed in 0..40 {
        let mut heap = heap(&small());
        heap.track_lifetimes(rate(LifetimeUnit::Threads, every), seed);
        // Of 20,000 objects, 100 are process 7's.
        for _ in 0..100 {
            for _ in 0..199 {
                let _ = make(&mut heap, BYTE_ARRAY, 40, 1);
            }
            heap.switch_process(0, true, 7);
            let _ = make(&mut heap, BYTE_ARRAY + 1, 40, 1);
            heap.switch_process(7, true, 0);
            heap.collect_if_wanted(&mut Vec::new(), &mut ());
        }
        for birth in heap.take_births() {
            let process = (birth.class - u64::from(BYTE_ARRAY)) as usize;
            few += process;
            sums[process].0 += birth.weight;
            sums[process].1 += birth.weight * (birth.weight - 1.0);
            assert!((16.0..=256.0).contains(&birth.weight));
            assert!(process == 0 || birth.weight == 16.0, "{}", birth.weight);
        }
    }
    // A sixteenth of 4000, ± 15.3. One distance for all classes would give 16.
    assert!((190..=311).contains(&few), "{few}");
    for ((sum, variance), exact) in sums.into_iter().zip([40.0 * 19_900.0, 4000.0]) {
        assert!(
            (sum - exact).abs() <= 4.0 * f64::sqrt(variance),
            "{sum} of {exact}"
        );
    }
}

#[test]
fn off_means_off_and_ids_are_never_reused() {
    let mut heap = heap(&small());
    let mut newest = 0;
    for _ in 0..3 {
        heap.track_lifetimes(rate(LifetimeUnit::Objects, 1), 1);
        let oop = make(&mut heap, BYTE_ARRAY, 8, 1);
        let births = heap.take_births();
        assert_eq!(births.len(), 1);
        assert!(births[0].object > newest);
        newest = births[0].object;
        heap.track_lifetimes(LifetimeRate::default(), 1);
        let _ = make(&mut heap, BYTE_ARRAY, 8, 1);
        heap.scavenge("test", &mut vec![oop], &mut ());
        assert_eq!(
            (heap.take_births(), heap.take_fates()),
            (Vec::new(), Vec::new())
        );
        assert_eq!(heap.changed_counts(true), []);
    }
}

#[test]
fn another_rate_keeps_the_counts_and_the_tracked_objects() {
    let rates = [
        rate(LifetimeUnit::Objects, 1),
        rate(LifetimeUnit::Objects, 100),
        rate(LifetimeUnit::Bytes, 512),
        LifetimeRate {
            callers: 3,
            ..rate(LifetimeUnit::Bytes, 8)
        },
        rate(LifetimeUnit::EveryNth, 50),
        rate(LifetimeUnit::Threads, 50),
    ];
    let mut heap = heap(&small());
    let mut roots = Vec::new();
    let mut expected = 0;
    for (turn, rate) in rates.into_iter().enumerate() {
        heap.track_lifetimes(rate, 1);
        for number in 0..5000 {
            let oop = make(&mut heap, BYTE_ARRAY, 8, 1);
            if number % 50 == 0 {
                roots.push(oop);
            }
            heap.collect_if_wanted(&mut roots, &mut ());
        }
        expected += 5000;
        let counts = heap.changed_counts(true);
        assert_eq!(counts.len(), 1);
        assert_eq!(counts[0].objects, expected, "after turn {turn}");
    }
    let births = heap.take_births();
    // All of two turns, and a part of the others: each sum of weights is near 5000.
    let weight: f64 = births.iter().map(|birth| birth.weight).sum();
    let variance = births.iter().map(|one| one.weight * (one.weight - 1.0));
    let off = (weight - expected as f64).abs();
    assert!(off < 4.0 * variance.sum::<f64>().sqrt(), "{weight}");
    assert!((10_000..11_500).contains(&births.len()), "{}", births.len());
    // What was tracked first dies now.
    roots.clear();
    heap.collect_full("test", &mut roots, &mut ());
    let fates = heap.take_fates();
    let deaths = fates.iter().flat_map(|fates| &fates.deaths);
    let mut dead: Vec<u64> = deaths.map(|death| death.object).collect();
    dead.sort_unstable();
    let born: Vec<u64> = births.iter().map(|birth| birth.object).collect();
    assert_eq!(dead, born);
    let counts = heap.changed_counts(true);
    let dead: u64 = counts[0].buckets.iter().map(|bucket| bucket.objects).sum();
    assert_eq!((counts[0].objects, dead), (expected, expected));
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn single_records_are_bounded_and_counts_stay_exact() {
    let mut heap = heap(&small());
    heap.track_lifetimes(rate(LifetimeUnit::Objects, 1), 3);
    let count = 1_500_000_u64;
    let (mut births, mut weight, mut variance) = (0, 0.0, 0.0);
    for number in 0..count {
        let _ = make(&mut heap, BYTE_ARRAY, 8, 1 + (number % 5) as u32);
        if heap.collection_wanted() {
            heap.collect_if_wanted(&mut Vec::new(), &mut ());
            let _ = heap.take_fates();
            for birth in heap.take_births() {
                births += 1;
                weight += birth.weight;
                variance += birth.weight * (birth.weight - 1.0);
            }
        }
    }
    heap.scavenge("test", &mut Vec::new(), &mut ());
    for birth in heap.take_births() {
        births += 1;
        weight += birth.weight;
        variance += birth.weight * (birth.weight - 1.0);
    }
    // Watched: 250,000 objects at 1/1, 125,000 at 1/2, 125,000 at 1/4, and 62,500 ± 234 at 1/8.
    assert_eq!(heap.lifetime_distance(), 8);
    assert!((560_000..565_000).contains(&births), "{births}");
    assert!(
        (weight - count as f64).abs() < 4.0 * f64::sqrt(variance),
        "{weight}"
    );
    let counts = heap.changed_counts(false);
    assert_eq!(counts.len(), 5);
    assert!(counts.iter().all(|counts| counts.objects == count / 5));
    assert_eq!(heap.changed_counts(false), [], "nothing changed");
}

#[test]
fn too_many_sites_share_a_count() {
    let mut heap = heap(&Parameters {
        eden_bytes: 8 << 20,
        ..small()
    });
    heap.track_lifetimes(rate(LifetimeUnit::Objects, 1), 3);
    for site in 1..=70_000 {
        let _ = make(&mut heap, BYTE_ARRAY, 8, site);
    }
    let counts = heap.changed_counts(true);
    assert_eq!(counts.len(), (1 << 16) + 1);
    assert_eq!(heap.shared_counts(), 70_000 - (1 << 16));
    assert_eq!(
        counts.iter().map(|counts| counts.objects).sum::<u64>(),
        70_000
    );
}
