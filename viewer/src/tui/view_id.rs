//! Identity of a view: key order, names.

/// Views in key order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViewId {
    Overview,
    Hot,
    Method,
    Timeline,
    /// Addresses of code.
    Zone,
    Collector,
    Callers,
    Threads,
    /// Accuracy.
    Truth,
}

impl ViewId {
    /// All views in key order.
    pub const ALL: [ViewId; 9] = [
        ViewId::Overview,
        ViewId::Hot,
        ViewId::Method,
        ViewId::Timeline,
        ViewId::Zone,
        ViewId::Collector,
        ViewId::Callers,
        ViewId::Threads,
        ViewId::Truth,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            ViewId::Overview => "Overview",
            ViewId::Hot => "Hot list",
            ViewId::Method => "Method",
            ViewId::Timeline => "Timeline",
            ViewId::Zone => "Zone",
            ViewId::Collector => "Collector",
            ViewId::Callers => "Callers",
            ViewId::Threads => "Threads",
            ViewId::Truth => "Accuracy",
        }
    }

    /// Name of at most eight columns, for tabs of narrow terminals.
    pub const fn short(self) -> &'static str {
        match self {
            ViewId::Hot => "Hot",
            ViewId::Timeline => "Time",
            ViewId::Collector => "GC",
            other => other.name(),
        }
    }
}
