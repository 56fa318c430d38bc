#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails is to panic"
)]

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::prelude::*;

use super::wire::Length;
use super::*;

fn text() -> impl Strategy<Value = Text<'static>> {
    ".{0,12}".prop_map(Text::from)
}

fn list<T: Clone + std::fmt::Debug + 'static>(
    item: impl Strategy<Value = T>,
) -> impl Strategy<Value = Cow<'static, [T]>> {
    vec(item, 0..5).prop_map(Cow::Owned)
}

fn case<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(all)
}

fn number() -> impl Strategy<Value = f64> {
    -1e18..1e18_f64
}

fn pic_cases() -> impl Strategy<Value = Cow<'static, [PicCase<'static>]>> {
    let case = (text(), any::<u64>(), text());
    list(case.prop_map(|(class, method, target)| PicCase {
        class,
        method,
        target,
    }))
}

fn pc_map() -> impl Strategy<Value = PcMap<'static>> {
    let boundary = any::<(u32, u32)>().prop_map(|(offset, bytecode)| Boundary { offset, bytecode });
    let cover = any::<[u32; 5]>().prop_map(|[start, end, first, count, exactness]| Cover {
        start,
        end,
        first,
        count,
        exactness,
    });
    let frame = any::<(u64, u32, u32)>().prop_map(|(method, position, value)| ChainFrame {
        method,
        position,
        value,
    });
    prop_oneof![
        Just(PcMap::None),
        (
            case(BoundaryRule::ALL),
            case(Exactness::ALL),
            list(boundary)
        )
            .prop_map(|(rule, exactness, entries)| PcMap::Boundary {
                rule,
                exactness,
                entries
            }),
        (list(cover), list(frame)).prop_map(|(covers, frames)| PcMap::Covers { covers, frames }),
    ]
}

fn constituent() -> impl Strategy<Value = Constituent<'static>> {
    let numbers = any::<(u64, u64, u64, Option<u64>, u64)>();
    let texts = (text(), text(), text());
    (
        numbers,
        texts,
        case(ConstituentKind::ALL),
        pic_cases(),
        pc_map(),
    )
        .prop_map(
            |((id, start, end, since, method), (kind_word, tier, name), kind, cases, map)| {
                Constituent {
                    id,
                    start,
                    end,
                    since,
                    kind,
                    kind_word,
                    tier,
                    name,
                    method,
                    cases,
                    map,
                }
            },
        )
}

fn code_event() -> impl Strategy<Value = Event<'static>> {
    let lines = any::<(u32, u32)>().prop_map(|(bytecode, line)| LineEntry { bytecode, line });
    let listing = any::<(u32, u32)>().prop_map(|(bytecode, end)| ListingEntry { bytecode, end });
    let method = (
        (any::<u64>(), text(), text(), text(), any::<u32>()),
        (
            list(lines),
            list(any::<u8>()),
            list(listing),
            list(any::<u8>()),
        ),
    );
    let method = method.prop_map(|(head, tail)| {
        let (id, class, name, file, line) = head;
        let (lines, bytecodes, listing, listing_text) = tail;
        Event::Method(Method {
            id,
            class,
            name,
            file,
            line,
            lines,
            bytecodes,
            listing,
            listing_text,
        })
    });
    prop_oneof![
        any::<u64>().prop_map(|number| Event::SnapshotBegin(Snapshot { number })),
        any::<u64>().prop_map(|number| Event::SnapshotEnd(Snapshot { number })),
        method,
        (any::<u64>(), text()).prop_map(|(id, name)| Event::Class(Class { id, name })),
        constituent().prop_map(Event::Constituent),
        constituent().prop_map(Event::Described),
        (any::<u64>(), case(GoneReason::ALL))
            .prop_map(|(id, reason)| Event::Gone(Gone { id, reason })),
        any::<(u64, u64)>().prop_map(|(id, to)| Event::Moved(Moved { id, to })),
        (any::<u64>(), pic_cases()).prop_map(|(id, cases)| Event::Cases(Cases { id, cases })),
    ]
}

fn vm_event() -> impl Strategy<Value = Event<'static>> {
    let compilation = (any::<(u32, u64, u64, Option<u32>)>(), text(), text());
    let source = (
        case(SamplePlace::ALL),
        any::<(u32, i32)>(),
        case(InterpreterValue::ALL),
    );
    let source = source.prop_map(|(place, (register, offset), holds)| InterpreterSource {
        place,
        register,
        offset,
        holds,
    });
    let range = any::<(u64, u64)>().prop_map(|(start, end)| AddressRange { start, end });
    let rule = (
        (
            text(),
            prop::option::of(case(ThreadRole::ALL)),
            text(),
            text(),
            text(),
        ),
        (text(), case(Region::ALL), text(), any::<bool>()),
    );
    let rule = rule.prop_map(|(head, (suffix, region, part, strip))| {
        let (module, role, identifiers, prefix, contains) = head;
        RegionRule {
            module,
            role,
            identifiers,
            prefix,
            contains,
            suffix,
            region,
            part,
            strip,
        }
    });
    prop_oneof![
        (any::<u32>(), case(ThreadRole::ALL), text())
            .prop_map(|(tid, role, name)| Event::Thread(Thread { tid, role, name })),
        any::<u32>().prop_map(|tid| Event::ThreadEnd(ThreadEnd { tid })),
        compilation.prop_map(|((tid, number, method, osr_bytecode), name, tier)| {
            Event::CompilationBegin(CompilationBegin {
                tid,
                number,
                method,
                name,
                tier,
                osr_bytecode,
            })
        }),
        any::<u32>().prop_map(|tid| Event::CompilationEnd(CompilationEnd { tid })),
        (text(), text(), text(), case(CounterMeaning::ALL), number()).prop_map(
            |(section, name, unit, meaning, value)| Event::Counter(Counter {
                section,
                name,
                unit,
                meaning,
                value
            })
        ),
        (text(), text()).prop_map(|(name, value)| Event::Fact(Fact { name, value })),
        (list(range), list(source))
            .prop_map(|(ranges, sources)| Event::Interpreter(Interpreter { ranges, sources })),
        list(rule).prop_map(|rules| Event::Regions(Regions { rules })),
        any::<(u64, i32)>().prop_map(|(interpreted_return, next)| Event::Frames(Frames {
            interpreted_return,
            next
        })),
    ]
}

fn heap_event() -> impl Strategy<Value = Event<'static>> {
    let space = (text(), any::<(Option<u64>, Option<u64>)>());
    let space = space.prop_map(|(name, (used, capacity))| SpaceUse {
        name,
        used,
        capacity,
    });
    let spaces = list(space).boxed();
    let begin = (
        any::<u64>(),
        case(CollectionScope::ALL),
        (text(), text(), text()),
        spaces.clone(),
    );
    let phase = (any::<(u64, u32, Option<u32>, bool, u32)>(), text());
    let frame = any::<(u64, u32)>().prop_map(|(method, bytecode)| SiteFrame {
        method,
        bytecode,
        reserved: 0,
    });
    let birth = (any::<[u64; 6]>(), number()).prop_map(|(words, weight)| {
        let [time, object, class, site, bytes, allocated_bytes] = words;
        Birth {
            time,
            object,
            class,
            site,
            bytes,
            allocated_bytes,
            weight,
        }
    });
    let survival = any::<[u64; 4]>().prop_map(|[time, object, tenured, holder]| Survival {
        time,
        object,
        tenured,
        holder,
    });
    let death = any::<[u64; 2]>().prop_map(|[time, object]| Death { time, object });
    let bucket = any::<[u64; 6]>().prop_map(|words| SurvivalBucket {
        scavenges: words[0],
        fulls: words[1],
        objects: words[2],
        bytes: words[3],
        alive_objects: words[4],
        alive_bytes: words[5],
    });
    prop_oneof![
        begin.prop_map(|(id, scope, (collector, kind, cause), spaces)| {
            Event::CollectionBegin(CollectionBegin {
                id,
                scope,
                collector,
                kind,
                cause,
                spaces,
            })
        }),
        (any::<(u64, [Option<u64>; 4])>(), spaces).prop_map(|(numbers, spaces)| {
            let (id, [survived_bytes, tenured_bytes, survived_objects, cpu_ns]) = numbers;
            Event::CollectionEnd(CollectionEnd {
                id,
                spaces,
                survived_bytes,
                tenured_bytes,
                survived_objects,
                cpu_ns,
            })
        }),
        phase.prop_map(|((collection, phase, within, stop_the_world, tid), name)| {
            Event::PhaseBegin(PhaseBegin {
                collection,
                phase,
                name,
                within,
                stop_the_world,
                tid,
            })
        }),
        any::<(u64, u32)>()
            .prop_map(|(collection, phase)| Event::PhaseEnd(PhaseEnd { collection, phase })),
        (any::<u64>(), list(frame)).prop_map(|(id, frames)| Event::Site(Site { id, frames })),
        (any::<u32>(), list(birth)).prop_map(|(tid, births)| Event::Births(Births { tid, births })),
        (any::<u64>(), list(survival)).prop_map(|(collection, survivals)| {
            Event::Survivals(Survivals {
                collection,
                survivals,
            })
        }),
        (any::<u64>(), list(death))
            .prop_map(|(collection, deaths)| Event::Deaths(Deaths { collection, deaths })),
        (any::<[u64; 4]>(), list(bucket)).prop_map(|([class, site, objects, bytes], buckets)| {
            Event::Lifetimes(Lifetimes {
                class,
                site,
                objects,
                bytes,
                buckets,
            })
        }),
    ]
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(
        event in prop_oneof![code_event(), vm_event(), heap_event()],
        more in vec(any::<u64>(), 0..3),
    ) {
        let mut words = Vec::new();
        event.encode(&mut words);
        let mut length = Length::default();
        event.encode(&mut length);
        prop_assert_eq!(length.0, words.len());
        prop_assert_eq!(&Event::decode(event.kind(), &words).unwrap(), &event);
        // A truncated record is no event.
        let part = words.len().saturating_sub(1);
        prop_assert!(Event::decode(event.kind(), &words[..part]).is_err());
        // Fields of later versions are left out.
        words.extend(more);
        prop_assert_eq!(Event::decode(event.kind(), &words).unwrap(), event);
    }

    /// Arbitrary words are decoded or refused. A decoded event encodes to no more words than its
    /// source.
    #[test]
    fn any_words_are_decoded_or_refused(
        kind in 0..=30_u8,
        words in vec(prop_oneof![0..4_u64, 0..100_u64, any::<u64>()], 0..60),
    ) {
        match Event::decode(kind, &words) {
            Ok(event) => {
                // Unknown enum numbers decode as the first case, so only the lengths are compared.
                let mut length = Length::default();
                event.encode(&mut length);
                prop_assert!(length.0 <= words.len());
            }
            Err(DecodeError::Kind(unknown)) => prop_assert!(!Event::KINDS.contains(&unknown)),
            Err(_) => prop_assert!(Event::KINDS.contains(&kind)),
        }
    }
}

#[test]
fn counts_are_compared_with_the_record_before_memory_is_taken() {
    // Births: 2^60 objects, a count with an overflowing product, and a count beyond the record.
    for count in [1 << 60, u64::MAX, 2] {
        let words = [1, count, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Event::decode(23, &words), Err(DecodeError::Count(count)));
    }
    let text = [7, u64::MAX, 1];
    assert_eq!(Event::decode(4, &text), Err(DecodeError::Count(u64::MAX)));
}

#[test]
fn texts_are_cut_and_need_not_be_utf8() {
    let long = "x".repeat(wire::LONGEST_TEXT + 1);
    let event = Event::Fact(Fact {
        name: long.as_str().into(),
        value: [b'a', 0xff].as_slice().into(),
    });
    let mut words = Vec::new();
    event.encode(&mut words);
    let Event::Fact(fact) = Event::decode(19, &words).unwrap() else {
        panic!("another event");
    };
    assert_eq!(fact.name.as_bytes().len(), wire::LONGEST_TEXT);
    assert_eq!(fact.value.to_str(), "a\u{fffd}");
}

#[test]
fn a_listing_has_its_texts() {
    let entry = |bytecode, end| ListingEntry { bytecode, end };
    let method = Method {
        listing: vec![entry(0, 4), entry(1, 2), entry(3, 7), entry(4, 99)].into(),
        listing_text: b"pushret"[..].into(),
        ..Method::default()
    };
    let lines: Vec<_> = method.listing_lines().collect();
    let expected = [(0, "push"), (1, ""), (3, "ret"), (4, "")];
    assert_eq!(lines, expected.map(|(pc, text)| (pc, Cow::Borrowed(text))));
}
