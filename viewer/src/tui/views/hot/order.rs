//! What the hot list is sorted and grouped by.

/// What it is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Samples, most first.
    #[default]
    Share,
    /// The name.
    Name,
    /// The region, as reports order them.
    Region,
    /// What an entry is.
    Kind,
    /// Which compiler or level made it.
    Tier,
    /// Bytes of machine code, most first.
    Size,
    /// The error of its share, greatest first.
    Error,
}

impl By {
    /// All, in the order of the key's presses.
    pub const ALL: [By; 7] = [
        By::Share,
        By::Name,
        By::Region,
        By::Kind,
        By::Tier,
        By::Size,
        By::Error,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            By::Share => "share",
            By::Name => "name",
            By::Region => "region",
            By::Kind => "kind",
            By::Tier => "tier",
            By::Size => "size of machine code",
            By::Error => "error",
        }
    }

    /// The next one.
    pub fn next(self) -> By {
        step(&By::ALL, self, 1)
    }
}

/// What it is grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Nothing: all entries.
    #[default]
    None,
    /// All that ran of one method.
    Method,
    /// A class, or the file that code is in.
    Class,
    /// A region.
    Region,
    /// What an entry is.
    Kind,
    /// A thread.
    Thread,
    /// A compiler or level.
    Tier,
}

impl Grouping {
    /// All, in the order of the key's presses.
    pub const ALL: [Grouping; 7] = [
        Grouping::None,
        Grouping::Method,
        Grouping::Class,
        Grouping::Region,
        Grouping::Kind,
        Grouping::Thread,
        Grouping::Tier,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Grouping::None => "nothing",
            Grouping::Method => "method",
            Grouping::Class => "class or module",
            Grouping::Region => "region",
            Grouping::Kind => "kind",
            Grouping::Thread => "thread",
            Grouping::Tier => "tier",
        }
    }

    /// The next one, or the one before.
    pub fn next(self, back: bool) -> Grouping {
        let by = if back { Grouping::ALL.len() - 1 } else { 1 };
        step(&Grouping::ALL, self, by)
    }
}

fn step<T: Copy + PartialEq>(all: &[T], now: T, by: usize) -> T {
    let at = all.iter().position(|one| *one == now).unwrap_or(0);
    all.get((at + by) % all.len().max(1))
        .copied()
        .unwrap_or(now)
}
