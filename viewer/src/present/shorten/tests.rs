use super::*;
use crate::present::text::width;
use proptest::prelude::*;

const NAME: &str = "java.lang.Integer.getChars(int, int, byte[])";

#[test]
fn what_tells_least_goes_first() {
    for wanted in [
        "java.lang.Integer.getChars(int, int, byte[]) Integer.java:503 (C2)",
        "java.lang.Integer.getChars(int, int, byte[]) (C2)",
        "j.l.Integer.getChars(int, int, byte[]) (C2)",
        "j.l.Integer.getChars(...) (C2)",
        "Integer.getChars(...) (C2)",
        "Integer.getChars (C2)",
        "getChars (C2)",
        "getChars",
        "ge...rs",
    ] {
        let name = Name {
            name: NAME,
            place: Some("Integer.java:503".to_owned()),
            tail: " (C2)".to_owned(),
        };
        let text = |columns| name.label(columns);
        let at_least = text(wanted.len());
        assert!(at_least == wanted || wanted.len() < 8, "{at_least}");
        assert_ne!(text(wanted.len() - 1), wanted);
    }
    // A class goes in steps, before the own name stands alone.
    let worker = "java.util.concurrent.ThreadPoolExecutor$Worker.run()";
    for (columns, wanted) in [
        (43, "ThreadPoolExecutor$Worker.run (interpreter)"),
        (42, "Worker.run (interpreter)"),
        (24, "Worker.run (interpreter)"),
        (23, "run (interpreter)"),
    ] {
        assert_eq!(label(worker, " (interpreter)", columns), wanted);
    }
    let state = "G1ParScanThreadState::trim_queue()";
    for (columns, wanted) in [
        (38, "G1ParSca...ate::trim_queue (C2: parse)"),
        (32, "G1Pa...e::trim_queue (C2: parse)"),
        (31, "trim_queue (C2: parse)"),
    ] {
        assert_eq!(label(state, " (C2: parse)", columns), wanted);
    }
    assert_eq!(label("/(a+b).(c|d::e)+f/g", "", 14), "/(a+b).(...f/g");
    // .NET's type arguments hold dots, and the constructor's name begins with one.
    let span = "System.Buffers.SharedArrayPool`1[System.Byte]..ctor(System.Span`1<uint8>)";
    for (columns, wanted) in [
        (
            71,
            "S.B.SharedArrayPool`1[System.Byte]..ctor(System.Span`1<uint8>) (PreJIT)",
        ),
        (70, "S.B.SharedArrayPool`1[System.Byte]..ctor(...) (PreJIT)"),
        (50, "SharedArrayPool`1[System.Byte]..ctor(...) (PreJIT)"),
        (49, "SharedArrayPool`1[...]..ctor(...) (PreJIT)"),
        (41, "SharedArrayPool`1[...]..ctor (PreJIT)"),
        (35, "SharedArrayPool..ctor (PreJIT)"),
        (20, ".ctor (PreJIT)"),
    ] {
        assert_eq!(label(span, " (PreJIT)", columns), wanted);
    }
    let nested = "System.Collections.Generic.NonRandomizedStringEqualityComparer+OrdinalComparer.Equals(string)";
    assert_eq!(
        label(nested, " (PreJIT)", 40),
        "OrdinalComparer.Equals (PreJIT)"
    );
    let osr = "a.b.Churn.run() (OSR at 46)";
    assert_eq!(label(osr, " (C2)", 33), "a.b.Churn.run() (OSR at 46) (C2)");
    assert_eq!(label(osr, " (C2)", 29), "Churn.run() (OSR at 46) (C2)");
}

#[test]
fn native_functions_keep_their_own_name() {
    let insert = "std::__cxx11::basic_string<char, std::char_traits<char> >::_M_replace(\
                  unsigned long, char const*) const [clone .isra.0]";
    for (name, shorter) in [
        (
            insert,
            &[
                "std::__cxx11::basic_string<char, std::char_traits<char> >::_M_replace(...) \
                 const [clone .isra.0]",
                "std::__cxx11::basic_string<char, std::char_traits<char> >::_M_replace(...)",
                "std::__cxx11::basic_string<...>::_M_replace(...)",
                "std::__cxx11::basic_string<...>::_M_replace",
                "__cxx11::basic_string<...>::_M_replace",
                "basic_string<...>::_M_replace",
                "_M_replace",
                "_M_r...ce",
            ][..],
        ),
        (
            "void app::(anonymous namespace)::Parser::parse_line<int, long>(std::string const&)",
            &[
                "void app::(anonymous namespace)::Parser::parse_line<int, long>(...)",
                "app::(anonymous namespace)::Parser::parse_line<int, long>(...)",
                "app::(anonymous namespace)::Parser::parse_line<...>(...)",
                "app::(anonymous namespace)::Parser::parse_line<...>",
                "app::(anonymous namespace)::Parser::parse_line",
                "(anonymous namespace)::Parser::parse_line",
                "Parser::parse_line",
                "parse_line",
            ],
        ),
        (
            "<alloc::vec::Vec<T, A> as core::ops::index::Index<I>>::index",
            &["<Vec<T, A> as Index<I>>::index", "index"],
        ),
        (
            "rs::tally::{{closure}}",
            &["tally::{{closure}}", "{{closure}}"],
        ),
        (
            "main::{lambda(int)#1}::operator()(int) const",
            &["main::{lambda(int)#1}::operator()(int)", "operator()"],
        ),
        (
            "core::ptr::read_volatile::<u32>",
            &["core::ptr::read_volatile", "read_volatile"],
        ),
        (
            "encoding/json.(*decodeState).object",
            &["(*decodeState).object", "object"],
        ),
        ("do_syscall_64.constprop.0", &["do_syscall_64"]),
        ("memcpy@plt", &["memcpy"]),
    ] {
        let mut columns = width(name);
        assert_eq!(label(name, "", columns), name);
        for wanted in shorter {
            let text = (width(wanted)..columns).map(|columns| label(name, "", columns));
            let texts: Vec<String> = text.collect();
            assert!(
                texts.iter().any(|text| text == wanted),
                "{wanted}: {texts:?}"
            );
            columns = width(wanted);
        }
    }
}

#[test]
fn parts_of_native_names() {
    for (name, result, scopes, own, rest) in [
        ("main", "", &[][..], "main", ["", "", ""]),
        (
            "operator new(unsigned long)",
            "",
            &[],
            "operator new",
            ["", "(unsigned long)", ""],
        ),
        (
            "std::ostream::operator<<(int)",
            "",
            &["std", "ostream"],
            "operator<<",
            ["", "(int)", ""],
        ),
        (
            "bool ns::operator< <char>(A, B)",
            "bool ",
            &["ns"],
            "operator< <char>",
            ["", "(A, B)", ""],
        ),
        (
            "A::operator std::string() const",
            "",
            &["A"],
            "operator std::string",
            ["", "()", " const"],
        ),
        (
            "A::operator->() const",
            "",
            &["A"],
            "operator->",
            ["", "()", " const"],
        ),
        (
            "f(int)::{lambda()#1}::operator()()",
            "",
            &["f(int)", "{lambda()#1}"],
            "operator()",
            ["", "()", ""],
        ),
        (
            "std::enable_if<(1>0), int>::type ns::f<2>(int) [clone .cold]",
            "std::enable_if<(1>0), int>::type ",
            &["ns"],
            "f",
            ["<2>", "(int)", " [clone .cold]"],
        ),
        (
            "non-virtual thunk to A::b()",
            "non-virtual thunk to ",
            &["A"],
            "b",
            ["", "()", ""],
        ),
        (
            "<usize as core::cmp::PartialOrd>::lt",
            "",
            &["<usize as core::cmp::PartialOrd>"],
            "lt",
            ["", "", ""],
        ),
        (
            "core::fmt::num::<impl core::fmt::Debug for usize>::fmt",
            "",
            &["core", "fmt", "num", "<impl core::fmt::Debug for usize>"],
            "fmt",
            ["", "", ""],
        ),
        (
            "core::ops::FnOnce<fn(A) -> B>::call",
            "",
            &["core", "ops", "FnOnce<fn(A) -> B>"],
            "call",
            ["", "", ""],
        ),
        (
            "(no symbol) libfoo.so",
            "",
            &[],
            "(no symbol) libfoo.so",
            ["", "", ""],
        ),
        (
            "/usr/lib/node/x.js",
            "",
            &[],
            "/usr/lib/node/x.js",
            ["", "", ""],
        ),
        (
            "Foo::bar [libx.so.6]",
            "",
            &["Foo"],
            "bar",
            ["", "", " [libx.so.6]"],
        ),
    ] {
        let parts = Parts::of(name);
        assert_eq!(
            (parts.result, &*parts.scopes, parts.own),
            (result, scopes, own),
            "{name}"
        );
        assert_eq!(
            [parts.generics, parts.parameters, parts.suffix],
            rest,
            "{name}"
        );
    }
}

#[test]
fn equal_rows_keep_what_tells_them_apart() {
    let of = |names: &[&str], columns: usize| {
        let rows = names.iter().map(|name| {
            let name = Name {
                name,
                ..Name::default()
            };
            (name, columns)
        });
        labels(&rows.collect::<Vec<_>>())
    };
    assert_eq!(
        of(
            &[
                "v8::internal::Heap::New(int)",
                "v8::internal::Heap::New(long)",
                "x"
            ],
            12
        ),
        ["New(int)", "New(long)", "x"]
    );
    assert_eq!(
        of(
            &["a::Map::Parser::run(int)", "a::Set::Parser::run(int)"],
            18
        ),
        ["Map::Parser::run", "Set::Parser::run"]
    );
    assert_eq!(
        of(
            &["ns::work(int, long)", "ns::work(int, long) [clone .cold]"],
            18
        ),
        ["work", "work [clone .cold]"]
    );
    assert_eq!(
        of(
            &[
                "f(aaaaaaaaaaaaaaaaaaaaaaa, int)",
                "f(aaaaaaaaaaaaaaaaaaaaaaa, long)"
            ],
            12
        ),
        ["f ...int", "f ...long"]
    );
    // The whole word that differs.
    let read = "int v8::Deserializer<v8::Isolate>::ReadData";
    let objects =
        format!("{read}<v8::AccessorForHeapObject>(unsigned char, v8::AccessorForHeapObject)");
    let handles = format!("{read}<v8::AccessorForHandle<v8::Isolate> >(unsigned char, int)");
    assert_eq!(
        of(&[&objects, &handles], 34),
        [
            "ReadData ...AccessorForHeapObject",
            "ReadData ...AccessorForHandle"
        ]
    );
    // Two rows have equal words: an excerpt goes beyond the word.
    assert_eq!(
        of(
            &[
                "f(aaaaaaaaaa, b, int)",
                "f(aaaaaaaaaa, b, long)",
                "f(aaaaaaaaaa, c)"
            ],
            12
        ),
        ["f ...b, int)", "f ...b, long", "f ...c)"]
    );
    assert_eq!(
        of(&["ns::run(int)", "ns::run(long)"], 6),
        ["run #1", "run #2"]
    );
    // A piece of the class stays, if all rows have room for it.
    assert_eq!(
        of(
            &[
                "a.Orders$PriceComparator.compare(Object, Object)",
                "a.Orders$PriceComparator.compare(long[], long[])"
            ],
            36
        ),
        [
            "PriceC...tor.compare(Object, Object)",
            "PriceC...tor.compare(long[], long[])"
        ]
    );
    // One function in two rows is no collision.
    assert_eq!(of(&["ns::run(int)", "ns::run(int)"], 6), ["run", "run"]);
}

#[test]
fn boxes_show_the_own_name() {
    for (name, columns, wanted) in [
        (
            "app::(anonymous namespace)::Parser::parse_line(int)",
            20,
            "Parser::parse_line",
        ),
        (
            "com.acme.orders.OrderBook.match(int)",
            20,
            "OrderBook.match",
        ),
        ("com.acme.orders.OrderBook.match(int)", 8, "match"),
        ("sim::Grid::relax()", 12, "Grid::relax"),
        ("sim::Grid::relax()", 3, "relax"),
        ("(x)", 1, "(x)"),
    ] {
        assert_eq!(bare(name, columns), wanted);
    }
}

#[test]
fn as_many_callers_as_fit_are_shown() {
    let outer = [
        (
            "java.lang.AbstractStringBuilder.append(int)",
            "@31".to_owned(),
        ),
        ("java.lang.StringBuilder.append(int)", "@2".to_owned()),
        ("Churn.render(int)", "@20".to_owned()),
    ];
    let text = |columns| chain(("~69 (line 516)", "~69"), &outer, columns);
    for wanted in [
        "~69 (line 516) < j.l.AbstractStringBuilder.append(int)@31 \
         < j.l.StringBuilder.append(int)@2 < Churn.render(int)@20",
        "~69 (line 516) < AbstractStringBuilder.append@31 < StringBuilder.append@2 \
         < Churn.render@20",
        "~69 (line 516) < append@31 < append@2 < render@20",
        "~69 < append@31 < append@2 < render@20",
        "~69 < append@31 < 1 more < render@20",
        "~69 (line 516) < append@31 < 2 more",
        "~69 < append@31 < 2 more",
    ] {
        assert_eq!(text(wanted.len()), wanted);
        assert!(wanted.len() == 24 || text(wanted.len() - 1) != wanted);
    }
    assert_eq!(chain(("~69", "~69"), &[], 2), "~69");
    assert_eq!(text(5), "~69 < append@31 < 2 more");
}

fn word() -> impl Strategy<Value = String> {
    "[a-d]{1,3}|[a-z]{1,12}"
}

/// A C++ name, with its own name.
fn function() -> impl Strategy<Value = (String, String)> {
    let scope = prop_oneof![
        word(),
        (word(), word()).prop_map(|(name, of)| format!("{name}<{of}::x, {of}>")),
        Just("(anonymous namespace)".to_owned()),
        (word(), word()).prop_map(|(name, of)| format!("<{name} as a::{of}>")),
    ];
    let scopes = prop::collection::vec(scope, 0..4);
    let optional = |text: &'static str| {
        let shown = move |(is_there, word): (bool, String)| match is_there {
            true => text.replace("%", &word),
            false => String::new(),
        };
        (any::<bool>(), word()).prop_map(shown)
    };
    let around = (optional("% "), optional("<%, %>"), optional("(%, %&)"));
    let suffix = optional(" [clone .%.0]");
    (scopes, word(), around, suffix).prop_map(
        |(scopes, own, (result, generics, parameters), suffix)| {
            // Words alone are a name.
            let is_bare = scopes.is_empty() && generics.is_empty() && parameters.is_empty();
            let result = if is_bare { String::new() } else { result };
            let scopes: String = scopes.iter().map(|scope| format!("{scope}::")).collect();
            (
                format!("{result}{scopes}{own}{generics}{parameters}{suffix}"),
                own,
            )
        },
    )
}

proptest! {
    #[test]
    fn parts_are_the_name(name in "[a-c<>(){}\\[\\]:. &*@~-]{0,24}|\\PC{0,12}") {
        let parts = Parts::of(&name);
        prop_assert_eq!(parts.text(WHOLE), name);
    }

    #[test]
    fn any_text_has_labels(
        names in prop::collection::vec("[a-c<>(){}:. &*@~-]{0,12}|\\PC{0,12}", 1..6),
        columns in 0usize..20,
    ) {
        let rows = names.iter().map(|name| {
            let (place, tail) = (Some(name.clone()), name.clone());
            (Name { name, place, tail }, columns)
        });
        for text in labels(&rows.collect::<Vec<_>>()) {
            prop_assert!(text.width() <= columns, "{} in {}", text, columns);
        }
        let _ = chain((&names[0], &names[0]), &[(&*names[0], String::new())], columns);
        let _ = (bare(&names[0], columns), class_and_own(&names[0]));
    }

    #[test]
    fn the_own_name_is_cut_last(
        (name, own) in function(),
        tail in "( \\([A-Z]{2,9}\\))?",
        columns in 1usize..60,
    ) {
        let text = label(&name, &tail, columns);
        if own.len() <= columns {
            prop_assert!(text.contains(&own), "{} in {} is {}", name, columns, text);
        } else {
            prop_assert_eq!(text, fit(&own, columns).trim_end().to_owned());
        }
    }

    #[test]
    fn different_functions_have_different_rows(
        functions in prop::collection::vec(function(), 2..12),
        columns in 4usize..50,
    ) {
        let names = functions.iter().map(|(name, _)| {
            let name = Name { name, ..Name::default() };
            (name, columns)
        });
        let labels = labels(&names.collect::<Vec<_>>());
        for ((one, own), label) in functions.iter().zip(&labels) {
            prop_assert!(label.contains(own) || own.len() > columns, "{} is {}", one, label);
            for ((other, _), same) in functions.iter().zip(&labels) {
                // ` #12` is what the columns need beside the own name.
                let has_room = own.len() + 4 <= columns;
                let is_apart = one == other || label != same || !has_room;
                prop_assert!(is_apart, "{} and {} are {} in {}", one, other, label, columns);
            }
        }
    }
}
