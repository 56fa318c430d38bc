//! A reader of pprof's `profile.proto`, written from its definition and apart from the
//! writer.

use std::collections::BTreeMap;
use std::io::Read;

#[derive(Clone, PartialEq, prost::Message)]
pub struct ValueType {
    #[prost(int64, tag = "1")]
    pub kind: i64,
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Label {
    #[prost(int64, tag = "1")]
    pub key: i64,
    #[prost(int64, tag = "2")]
    pub str: i64,
    #[prost(int64, tag = "3")]
    pub num: i64,
    #[prost(int64, tag = "4")]
    pub num_unit: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    #[prost(int64, tag = "5")]
    pub filename: i64,
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Location {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub address: u64,
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
    #[prost(bool, tag = "5")]
    pub is_folded: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Line {
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    #[prost(int64, tag = "2")]
    pub line: i64,
    #[prost(int64, tag = "3")]
    pub column: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Function {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "2")]
    pub name: i64,
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    #[prost(int64, tag = "4")]
    pub filename: i64,
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    #[prost(int64, tag = "7")]
    pub drop_frames: i64,
    #[prost(int64, tag = "8")]
    pub keep_frames: i64,
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

impl Profile {
    /// # Panics
    /// When the bytes are none.
    pub fn of(bytes: &[u8]) -> Self {
        prost::Message::decode(bytes).expect("a profile.proto")
    }

    pub fn string(&self, index: i64) -> &str {
        let index = usize::try_from(index).expect("an index");
        &self.string_table[index]
    }

    /// The innermost function's name of every sample, with the first value.
    pub fn leaves(&self) -> BTreeMap<String, u64> {
        let mut leaves = BTreeMap::new();
        for sample in &self.sample {
            let location = self.location(sample.location_id[0]);
            let name = self.function_name(location.line[0].function_id);
            let samples = u64::try_from(sample.value[0]).expect("a count");
            *leaves.entry(name.to_owned()).or_insert(0) += samples;
        }
        leaves
    }

    fn location(&self, id: u64) -> &Location {
        let found = self.location.iter().find(|location| location.id == id);
        found.expect("a location")
    }

    fn function_name(&self, id: u64) -> &str {
        let found = self.function.iter().find(|function| function.id == id);
        self.string(found.expect("a function").name)
    }
}

/// What gzip unpacks.
///
/// # Panics
/// When there is nothing to unpack.
pub fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes)
        .read_to_end(&mut plain)
        .expect("gzip");
    plain
}

/// Whole profile as text, string indices resolved.
pub fn text(profile: &Profile) -> String {
    let string = |index| profile.string(index).to_owned();
    let kind = |kind: &ValueType| format!("{}/{}", string(kind.kind), string(kind.unit));
    let mut lines = Vec::new();
    let kinds: Vec<String> = profile.sample_type.iter().map(kind).collect();
    lines.push(format!("values: {}", kinds.join(", ")));
    lines.push(format!("shown: {}", string(profile.default_sample_type)));
    lines.push(format!("time: {} ns", profile.time_nanos));
    lines.push(format!("duration: {} ns", profile.duration_nanos));
    let period = profile.period_type.as_ref().map(kind).unwrap_or_default();
    lines.push(format!("period: {} {period}", profile.period));
    for &comment in &profile.comment {
        lines.push(format!("comment: {}", string(comment)));
    }
    for mapping in &profile.mapping {
        let (file, build_id) = (string(mapping.filename), string(mapping.build_id));
        lines.push(format!("mapping {}: {file} {build_id}", mapping.id));
    }
    for function in &profile.function {
        let (name, file) = (string(function.name), string(function.filename));
        lines.push(format!("function {}: {name} {file}", function.id));
    }
    for location in &profile.location {
        let line = |line: &Line| format!("{}:{}", line.function_id, line.line);
        let inner: Vec<String> = location.line.iter().map(line).collect();
        let (id, mapping) = (location.id, location.mapping_id);
        lines.push(format!(
            "location {id}: mapping {mapping}, {}",
            inner.join(" < ")
        ));
    }
    for sample in &profile.sample {
        let label = |label: &Label| match label.str {
            0 => format!("{}={}", string(label.key), label.num),
            text => format!("{}={}", string(label.key), string(text)),
        };
        let labels: Vec<String> = sample.label.iter().map(label).collect();
        let (values, path) = (&sample.value, &sample.location_id);
        lines.push(format!("{values:?} {path:?} {}", labels.join(" ")));
    }
    lines.join("\n") + "\n"
}
