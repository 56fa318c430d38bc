//! The JVM's report of its own code, written by `tests/agent/oracle.c`; the file's head describes
//! the format.

use std::collections::HashMap;

use super::attach;
use super::java::agent;
use super::jvm::Jvm;

/// A method as JVMTI has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OracleMethod {
    /// "Ljava/lang/String;", a hidden class "La/B.0x00…;" where the VM has `a/B+0x00…`.
    pub class: String,
    pub name: String,
    pub signature: String,
    pub native: bool,
    pub source: Option<String>,
    /// (bci, line), in the table's order.
    pub lines: Vec<(u32, u32)>,
}

impl OracleMethod {
    /// The class as programs name it: `java.lang.String`, `a.B.0x00…`.
    pub fn binary_class(&self) -> String {
        let inner = self.class.strip_prefix('L').unwrap_or(&self.class);
        let inner = inner.strip_suffix(';').unwrap_or(inner);
        inner.replace('/', ".")
    }

    /// Methods with a shared id: JVMTI gives all of them one name.
    pub fn is_intrinsic_handle(&self) -> bool {
        self.class == "Ljava/lang/invoke/MethodHandle;"
            && (self.name.starts_with("linkTo") || self.name == "invokeBasic")
    }
}

/// A debug record: a machine pc, and (method, bci) innermost first. A bci of -1 is the method's
/// entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleRecord {
    pub pc: u64,
    pub frames: Vec<(u64, i32)>,
}

/// A compiled method.
#[derive(Clone, Debug, Default)]
pub struct OracleNmethod {
    pub address: u64,
    /// Bytes of its code, out-of-line stubs included (not in JDK 11).
    pub size: u64,
    pub method: u64,
    pub records: Vec<OracleRecord>,
    /// The address location map: (pc, bci of the outermost method).
    pub outer: Vec<(u64, i32)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleStub {
    pub address: u64,
    pub size: u64,
    pub name: String,
}

#[derive(Clone, Debug, Default)]
pub struct Oracle {
    pub methods: HashMap<u64, OracleMethod>,
    /// By address.
    pub nmethods: Vec<OracleNmethod>,
    pub stubs: Vec<OracleStub>,
}

impl Oracle {
    /// Asks a JVM; `None`, said, where the agent can't be compiled.
    ///
    /// # Panics
    /// Where JVMTI refused something, or the answer is not whole.
    pub fn of(jvm: &Jvm) -> Option<Self> {
        let agent = agent()?;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("oracle");
        attach::load(jvm.pid(), &agent, file.to_str().expect("UTF-8"));
        let text = std::fs::read_to_string(file).expect("what the agent wrote");
        Some(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut oracle = Oracle::default();
        let mut whole = false;
        for line in text.lines() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            let words: Vec<&str> = rest.split(' ').collect();
            match kind {
                "method" => {
                    let lines = words[6].split(',').filter(|pair| *pair != "-");
                    let method = OracleMethod {
                        native: words[1] == "native",
                        class: words[2].to_owned(),
                        name: words[3].to_owned(),
                        signature: words[4].to_owned(),
                        source: (words[5] != "-").then(|| words[5].to_owned()),
                        lines: lines.map(pair::<u32, u32>).collect(),
                    };
                    oracle.methods.insert(hex(words[0]), method);
                }
                "nmethod" => oracle.nmethods.push(OracleNmethod {
                    address: hex(words[0]),
                    size: words[1].parse().expect("bytes"),
                    method: hex(words[2]),
                    ..OracleNmethod::default()
                }),
                "pc" => {
                    let frames = words[1..].iter().map(|frame| {
                        let (method, bci) = frame.split_once(':').expect("METHOD:BCI");
                        (hex(method), bci.parse().expect("a bci"))
                    });
                    let record = OracleRecord {
                        pc: hex(words[0]),
                        frames: frames.collect(),
                    };
                    let nmethod = oracle.nmethods.last_mut().expect("an nmethod before");
                    nmethod.records.push(record);
                }
                "outer" => {
                    let nmethod = oracle.nmethods.last_mut().expect("an nmethod before");
                    let bci = words[1].parse().expect("a bci");
                    nmethod.outer.push((hex(words[0]), bci));
                }
                "stub" => oracle.stubs.push(OracleStub {
                    address: hex(words[0]),
                    size: words[1].parse().expect("bytes"),
                    name: words[2..].join(" "),
                }),
                "end" => whole = true,
                _ => panic!("the agent says: {line}"),
            }
        }
        assert!(whole, "the agent's file is torn");
        oracle.nmethods.sort_by_key(|nmethod| nmethod.address);
        oracle
    }
}

fn hex(word: &str) -> u64 {
    u64::from_str_radix(word, 16).expect("hexadecimal")
}

fn pair<A: std::str::FromStr, B: std::str::FromStr>(text: &str) -> (A, B) {
    let (a, b) = text.split_once(':').expect("A:B");
    let parsed = a.parse().ok().zip(b.parse().ok());
    parsed.unwrap_or_else(|| panic!("numbers: {text}"))
}
