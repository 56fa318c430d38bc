//! The VMs of the process.

use serde::Serialize;

use super::super::facts::{Trouble, VmFacts, VmReading, Vms};

#[derive(Serialize)]
pub(super) struct VmJson<'a> {
    family: &'a str,
    kind: &'a str,
    version: &'a str,
    facts: Vec<FactJson<'a>>,
    found: Option<FoundJson>,
    limits: Vec<TroubleJson<'a>>,
    trouble: Option<TroubleJson<'a>>,
}

#[derive(Serialize)]
struct FactJson<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct FoundJson {
    code: u64,
    methods: u64,
    collections: u64,
    figures: u64,
    threads: u64,
    compiling: u64,
    lost: u64,
}

#[derive(Serialize)]
struct TroubleJson<'a> {
    text: &'a str,
    #[serde(rename = "do")]
    remedy: Option<&'a str>,
}

/// `None` where they were not asked, or did not answer.
pub(super) fn vms(vms: &Vms) -> Option<Vec<VmJson<'_>>> {
    match vms {
        Vms::Asked(vms) => Some(vms.iter().map(vm).collect()),
        Vms::NotAsked | Vms::TooLong(_) => None,
    }
}

fn vm(vm: &VmFacts) -> VmJson<'_> {
    VmJson {
        family: &vm.family,
        kind: &vm.kind,
        version: &vm.version,
        facts: (vm.facts.iter())
            .map(|(name, value)| FactJson { name, value })
            .collect(),
        found: vm.reading.map(found),
        limits: vm.limits.iter().map(trouble).collect(),
        trouble: vm.trouble.as_ref().map(trouble),
    }
}

fn found(reading: VmReading) -> FoundJson {
    FoundJson {
        code: reading.code,
        methods: reading.methods,
        collections: reading.collections,
        figures: reading.counters,
        threads: reading.threads,
        compiling: reading.compiling,
        lost: reading.lost,
    }
}

fn trouble(trouble: &Trouble) -> TroubleJson<'_> {
    TroubleJson {
        text: &trouble.text,
        remedy: (!trouble.remedy.is_empty()).then_some(&trouble.remedy),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A VM with something of everything.
    pub(in super::super) fn made_up() -> VmFacts {
        let trouble = |text: &str| Trouble {
            text: text.to_owned(),
            remedy: "do something".to_owned(),
        };
        VmFacts {
            family: "hotspot".to_owned(),
            kind: "HotSpot".to_owned(),
            version: "25".to_owned(),
            facts: vec![("collector".to_owned(), "G1".to_owned())],
            reading: Some(VmReading::default()),
            limits: vec![trouble("a limit")],
            trouble: Some(trouble("no memory")),
        }
    }

    #[test]
    fn whoever_is_not_asked_is_null() {
        assert!(vms(&Vms::NotAsked).is_none());
        assert!(vms(&Vms::Asked(Vec::new())).is_some_and(|vms| vms.is_empty()));
    }
}
