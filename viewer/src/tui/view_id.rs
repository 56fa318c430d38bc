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
    /// What allocated objects cost the collector.
    Costs,
    /// Lifetimes of allocated objects.
    Lifetimes,
}

impl ViewId {
    /// All views in key order.
    pub const ALL: [ViewId; 11] = [
        ViewId::Overview,
        ViewId::Hot,
        ViewId::Method,
        ViewId::Timeline,
        ViewId::Zone,
        ViewId::Collector,
        ViewId::Callers,
        ViewId::Threads,
        ViewId::Truth,
        ViewId::Costs,
        ViewId::Lifetimes,
    ];

    /// The key that shows it.
    pub const fn key(self) -> char {
        match self {
            ViewId::Overview => '1',
            ViewId::Hot => '2',
            ViewId::Method => '3',
            ViewId::Timeline => '4',
            ViewId::Zone => '5',
            ViewId::Collector => '6',
            ViewId::Callers => '7',
            ViewId::Threads => '8',
            ViewId::Truth => '9',
            ViewId::Costs => '0',
            ViewId::Lifetimes => 'L',
        }
    }

    /// Whether it needs lifetimes of objects, which few recordings have.
    pub const fn needs_lifetimes(self) -> bool {
        matches!(self, ViewId::Costs | ViewId::Lifetimes)
    }

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
            ViewId::Costs => "Collector costs",
            ViewId::Lifetimes => "Lifetimes",
        }
    }

    /// Name of at most eight columns, for tabs of narrow terminals.
    pub const fn short(self) -> &'static str {
        match self {
            ViewId::Hot => "Hot",
            ViewId::Timeline => "Time",
            ViewId::Collector => "GC",
            ViewId::Costs => "Costs",
            ViewId::Lifetimes => "Life",
            other => other.name(),
        }
    }
}
