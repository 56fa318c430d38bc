//! Reading back what a target wrote.

use std::io::Cursor;
use vmscope_records::recording::{Item, Reader};
use vmscope_records::{Content, Record};

/// All records of an undamaged recording, and the number of undecodable records.
pub fn records(recording: &[u8]) -> (Vec<Record>, usize) {
    let (mut records, mut others) = (Vec::new(), 0);
    let Ok(mut reader) = Reader::open(Cursor::new(recording)) else {
        panic!("an honest header was refused");
    };
    while let Ok(Some(chunk)) = reader.next_chunk(Content::ALL) {
        for item in chunk.items() {
            match item {
                Item::Record(record) => records.push(record),
                Item::Samples(samples) => records.extend(samples.into_iter().map(Record::Sample)),
                Item::Unknown(_) | Item::Malformed(..) => others += 1,
            }
        }
    }
    assert_eq!(reader.ending().damage_count, 0);
    (records, others)
}

/// Debug texts, since NaN does not equal itself.
pub fn texts<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<String> {
    let records = records.into_iter();
    records.map(|record| format!("{record:?}")).collect()
}
