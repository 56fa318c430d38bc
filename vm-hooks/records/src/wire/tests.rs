//! FORMAT.md matches the code.

const FORMAT: &str = include_str!("../../FORMAT.md");
const MESSAGES: &str = include_str!("messages.rs");

/// Messages in messages.rs: name and fields, `number name: type`.
fn messages() -> Vec<(String, Vec<String>)> {
    let body = MESSAGES.rsplit_once("messages! {").unwrap().1;
    body.split_terminator('}')
        .filter_map(|message| message.split_once('{'))
        .map(|(name, fields)| {
            let fields = fields.split(',').map(|field| {
                let words: Vec<&str> = field.split_whitespace().collect();
                words.join(" ")
            });
            let fields = fields.filter(|field| !field.is_empty()).collect();
            (name.split_whitespace().next().unwrap().to_owned(), fields)
        })
        .collect()
}

/// Row of message `name` in FORMAT.md's table: its kind and fields.
fn row(name: &str) -> Option<(&'static str, Vec<&'static str>)> {
    FORMAT.lines().find_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells[..] {
            ["", kind, message, fields, ""] if message == name => {
                Some((kind, fields.split(", ").collect()))
            }
            _ => None,
        }
    })
}

#[test]
fn every_field_of_every_message_is_described() {
    let messages = messages();
    assert!(messages.len() >= 41, "{} messages found", messages.len());
    for (name, fields) in messages {
        let (_, described) = row(&name).unwrap_or_else(|| panic!("{name} is not in FORMAT.md"));
        assert_eq!(described, fields, "{name} in FORMAT.md");
    }
}

#[test]
fn every_kind_has_its_number() {
    for (number, name) in crate::record::KINDS {
        let (kind, _) = row(name).unwrap_or_else(|| panic!("{name} is not in FORMAT.md"));
        assert_eq!(kind, number.to_string(), "{name} in FORMAT.md");
    }
    assert_eq!(
        row("SampleBatch").unwrap().0,
        crate::record::SAMPLES_KIND.to_string()
    );
}

/// Assumption of `budget.rs`: memory per nested message of 8 bytes.
#[test]
fn nested_messages_are_as_small_as_their_budget_assumes() {
    use super::messages as m;
    let sizes = [
        ("SampleDetail", size_of::<m::SampleDetail>()),
        ("Word", size_of::<m::Word>()),
        ("PicCase", size_of::<m::PicCase>()),
        ("Chain", size_of::<m::Chain>()),
        ("Phase", size_of::<m::Phase>()),
        ("SpaceUse", size_of::<m::SpaceUse>()),
        ("SurvivalBucket", size_of::<m::SurvivalBucket>()),
        ("NativeFunction", size_of::<m::NativeFunction>()),
        ("NativeLines", size_of::<m::NativeLines>()),
        ("NativeFrame", size_of::<m::NativeFrame>()),
    ];
    for (name, bytes) in sizes {
        assert!(bytes <= 200, "{name} takes {bytes} bytes: {sizes:?}");
    }
}
