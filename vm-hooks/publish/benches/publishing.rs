//! What a call costs: `cargo bench -p vmscope-publish`.
#![cfg_attr(loom, allow(unused, reason = "the tests with loom have the ring only"))]
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark that fails is to panic"
)]

#[cfg(not(loom))]
mod benches {
    use divan::{Bencher, black_box};
    use vmscope_publish::event::{
        Birth, Boundary, BoundaryRule, Constituent, Exactness, Gone, PcMap,
    };
    use vmscope_publish::reader::{Attached, Next};
    use vmscope_publish::{Callbacks, Describer, Options, Publisher};

    struct Nothing;

    impl Callbacks for Nothing {
        fn describe(&mut self, _: &Describer<'_>) {}
    }

    fn publisher() -> Publisher {
        Publisher::new(&Options::default()).unwrap()
    }

    fn attach(publisher: &Publisher) -> Attached {
        Attached::new(publisher.file().try_clone().unwrap(), None).unwrap()
    }

    const ENTRIES: [Boundary; 20] = [Boundary {
        offset: 4,
        bytecode: 1,
    }; 20];

    /// A method with a name and 20 boundaries.
    fn method() -> Constituent<'static> {
        Constituent {
            id: 1,
            start: 0x1000,
            end: 0x2000,
            name: "OrderedCollection>>do:".into(),
            map: PcMap::Boundary {
                rule: BoundaryRule::AtStart,
                exactness: Exactness::Exact,
                entries: ENTRIES.as_slice().into(),
            },
            ..Constituent::default()
        }
    }

    #[divan::bench(threads = [1, 2])]
    fn gone_while_nobody_listens(bencher: Bencher) {
        let publisher = publisher();
        bencher.bench(|| black_box(&publisher).publish(&Gone::default()));
    }

    #[divan::bench(threads = [1, 2])]
    fn constituent_while_nobody_listens(bencher: Bencher) {
        let (publisher, method) = (publisher(), method());
        bencher.bench(|| black_box(&publisher).publish(&method));
    }

    #[divan::bench(threads = [1, 2])]
    fn poll_without_request(bencher: Bencher) {
        let publisher = publisher();
        bencher.bench(|| black_box(&publisher).poll(&mut Nothing));
    }

    #[divan::bench(threads = [1, 2], sample_size = 20_000)]
    fn gone(bencher: Bencher) {
        let publisher = publisher();
        let _attached = attach(&publisher);
        bencher.bench(|| black_box(&publisher).publish(&Gone::default()));
    }

    #[divan::bench(threads = [1, 2], sample_size = 20_000)]
    fn constituent(bencher: Bencher) {
        let (publisher, method) = (publisher(), method());
        let _attached = attach(&publisher);
        bencher.bench(|| black_box(&publisher).publish(&method));
    }

    #[divan::bench(threads = [1, 2], sample_size = 500)]
    fn hundred_births(bencher: Bencher) {
        let (publisher, births) = (publisher(), [Birth::default(); 100]);
        let _attached = attach(&publisher);
        bencher.bench(|| black_box(&publisher).births(1, &births));
    }

    #[divan::bench(sample_size = 1000)]
    fn reading_a_constituent(bencher: Bencher) {
        let (publisher, method) = (publisher(), method());
        let mut attached = attach(&publisher);
        bencher
            .with_inputs(|| publisher.publish(&method))
            .bench_local_values(|()| {
                let next = attached.read();
                assert!(matches!(next, Next::Event { .. }));
                next
            });
    }
}

fn main() {
    divan::main();
}
