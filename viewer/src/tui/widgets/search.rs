//! Incremental search in rows: origin, pattern, next match.

use crate::tui::views::Find;
use memchr::memmem;

/// Search under way, until an empty pattern ends it. `Origin` identifies the start row across
/// changes of the list.
#[derive(Clone, Debug)]
pub struct Search<Origin = usize> {
    origin: Option<Origin>,
    finder: Finder,
}

impl<Origin> Default for Search<Origin> {
    fn default() -> Self {
        Search {
            origin: None,
            finder: Finder::default(),
        }
    }
}

impl<Origin: Clone> Search<Origin> {
    /// Starts or continues a search: every pattern searches from the first pattern's origin. `None`
    /// for an empty pattern, which ends the search.
    pub fn begin(&mut self, pattern: &str, now: Origin) -> Option<(Origin, &mut Finder)> {
        self.finder = Finder::new(pattern);
        if pattern.is_empty() {
            self.origin = None;
            return None;
        }
        let origin = self.origin.get_or_insert(now).clone();
        Some((origin, &mut self.finder))
    }

    /// Ends the search; returns its origin.
    pub fn cancel(&mut self) -> Option<Origin> {
        self.finder = Finder::new("");
        self.origin.take()
    }

    /// The next pattern starts from the current row.
    pub fn forget_origin(&mut self) {
        self.origin = None;
    }
}

impl Search {
    /// Next row to select, of `rows`, from the selected row `now`; `fits` matches rows.
    pub fn find(
        &mut self,
        pattern: &str,
        find: Find,
        rows: usize,
        now: usize,
        mut fits: impl FnMut(usize, &mut Finder) -> bool,
    ) -> Found {
        if find == Find::Restore {
            return self.cancel().map_or(Found::Ended, Found::At);
        }
        let Some((origin, finder)) = self.begin(pattern, now) else {
            return Found::Ended;
        };
        match next_match(rows, origin, now, find, |row| fits(row, finder)) {
            Some(row) => Found::At(row),
            None => Found::Nothing,
        }
    }
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Ended by an empty pattern.
    Ended,
    /// No match.
    Nothing,
    /// Matching row.
    At(usize),
}

impl Found {
    /// Selects the match; `false` without a match.
    pub fn select(self, select: impl FnOnce(usize)) -> bool {
        if let Found::At(row) = self {
            select(row);
        }
        self != Found::Nothing
    }
}

/// Finds a pattern in texts, in any letter case. Reuses its buffer: lists have a hundred thousand
/// rows.
#[derive(Clone, Debug)]
pub struct Finder {
    pattern: memmem::Finder<'static>,
    lower: String,
}

impl Default for Finder {
    fn default() -> Self {
        Finder::new("")
    }
}

impl Finder {
    /// Finder of a pattern; an empty pattern matches every text.
    pub fn new(pattern: &str) -> Self {
        Finder {
            pattern: memmem::Finder::new(&pattern.to_lowercase()).into_owned(),
            lower: String::new(),
        }
    }

    /// Whether a text contains the pattern.
    pub fn is_in(&mut self, text: &str) -> bool {
        self.is_in_words(&[text])
    }

    /// Whether a text equals the pattern.
    pub fn is(&self, text: &str) -> bool {
        self.pattern.needle() == text.as_bytes()
    }

    /// Whether words, joined by blanks, contain the pattern.
    pub fn is_in_words(&mut self, words: &[&str]) -> bool {
        self.lower.clear();
        for (number, word) in words.iter().enumerate() {
            if number > 0 {
                self.lower.push(' ');
            }
            if word.is_ascii() {
                let from = self.lower.len();
                self.lower.push_str(word);
                if let Some(new) = self.lower.get_mut(from..) {
                    new.make_ascii_lowercase();
                }
            } else {
                self.lower.extend(word.chars().flat_map(char::to_lowercase));
            }
        }
        self.pattern.find(self.lower.as_bytes()).is_some()
    }
}

/// Next matching row of `count`, from the search's origin or the selected row `now`. Wraps around.
pub fn next_match(
    count: usize,
    origin: usize,
    now: usize,
    find: Find,
    mut fits: impl FnMut(usize) -> bool,
) -> Option<usize> {
    if count == 0 {
        return None;
    }
    let from = match find {
        Find::Here | Find::Restore => origin,
        Find::Next => now + 1,
        Find::Previous => now + count - 1,
    };
    let step = if find == Find::Previous { count - 1 } else { 1 };
    let rows = std::iter::successors(Some(from % count), |row| Some((row + step) % count));
    rows.take(count).find(|&row| fits(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [&str; 5] = ["Order", "BOOK", "order", "böök", "Ördnung"];

    fn find(search: &mut Search, pattern: &str, find: Find, now: usize) -> Found {
        search.find(pattern, find, ROWS.len(), now, |row, text| {
            text.is_in(ROWS[row])
        })
    }

    #[test]
    fn typing_looks_from_where_it_began_and_keys_from_where_one_is() {
        let mut search = Search::default();
        assert_eq!(find(&mut search, "o", Find::Here, 1), Found::At(1));
        // Typing ignores moves of the selection.
        assert_eq!(find(&mut search, "or", Find::Here, 4), Found::At(2));
        assert_eq!(find(&mut search, "or", Find::Next, 2), Found::At(0));
        assert_eq!(find(&mut search, "or", Find::Previous, 0), Found::At(2));
        assert_eq!(find(&mut search, "orx", Find::Here, 2), Found::Nothing);
        assert_eq!(find(&mut search, "", Find::Here, 2), Found::Ended);
        assert_eq!(find(&mut search, "ö", Find::Here, 4), Found::At(4));
        assert_eq!(find(&mut search, "Ö", Find::Next, 4), Found::At(3));
        search.forget_origin();
        assert_eq!(find(&mut search, "o", Find::Here, 2), Found::At(2));
        // A cancelled search returns to its origin, once.
        assert_eq!(find(&mut search, "", Find::Restore, 4), Found::At(2));
        assert_eq!(find(&mut search, "", Find::Restore, 4), Found::Ended);
    }

    #[test]
    fn nothing_is_found_where_there_is_nothing() {
        let mut search = Search::default();
        let found = search.find("x", Find::Previous, 0, 0, |_, _| true);
        assert_eq!(found, Found::Nothing);
        assert!(!found.select(|_| unreachable!("no row to be selected")));
        assert!(Found::Ended.select(|_| unreachable!("no row to be selected")));
    }

    #[test]
    fn words_are_looked_through_as_if_they_were_one_text() {
        let mut finder = Finder::new("Main 47");
        assert!(finder.is_in_words(&["MAIN", "4711", "mutator"]));
        assert!(!finder.is_in_words(&["main", "", "4711"]));
    }
}
