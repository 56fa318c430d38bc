//! Colours and signs of a terminal. Views name roles, never colours. Each role also has a sign, a
//! letter, bold or reversed text.

use crate::present::names::region_letter;
use ratatui::style::{Color, Modifier, Style};
use vmscope_symbolizer::Region;

/// Number of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colors {
    /// No colours: bold, dim, underlined and reversed text.
    None,
    /// 16 colours of the user's palette.
    Sixteen,
    /// 256 colours.
    Many,
}

/// Terminal capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    pub colors: Colors,
    /// Whether the terminal shows Unicode beyond ASCII.
    pub unicode: bool,
}

/// Meaning of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    Text,
    /// Less important.
    Dim,
    /// More important.
    Strong,
    /// Heading.
    Title,
    /// Selected row, tab or cell.
    Selected,
    /// Search match.
    Match,
    /// Filter in the breadcrumb.
    Chip,
    /// Key.
    Key,
    /// Limit on the accuracy.
    Warning,
    /// Error.
    Bad,
    Region(Region),
    /// Box filled with a region's colour; `None` outside regions.
    Block(Option<Region>),
    /// Heat, 0 to 1: share of the hottest.
    Heat(f64),
}

impl Theme {
    /// Capabilities from environment variables: `NO_COLOR`, `TERM`, `COLORTERM`, and the locale in
    /// `LC_ALL`, `LC_CTYPE`, `LANG`.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let term = variable("TERM").unwrap_or_default();
        let colors = if is_set("NO_COLOR") || term == "dumb" || term.starts_with("vt1") {
            Colors::None
        } else if is_set("COLORTERM") || term.contains("256") || term.contains("kitty") {
            Colors::Many
        } else {
            Colors::Sixteen
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"];
        let locale = locale.into_iter().filter_map(&variable);
        let locale = locale.into_iter().find(|value| !value.is_empty());
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        Theme {
            colors,
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
        }
    }

    /// Style of a role.
    pub fn style(&self, role: Role) -> Style {
        let plain = Style::new();
        let (many, sixteen, bare) = match role {
            Role::Text => (plain, plain, plain),
            Role::Dim => (
                plain.fg(Color::Indexed(245)),
                plain.fg(Color::DarkGray),
                plain.add_modifier(Modifier::DIM),
            ),
            Role::Strong => {
                let bold = plain.add_modifier(Modifier::BOLD);
                (bold, bold, bold)
            }
            Role::Title => {
                let bold = plain.add_modifier(Modifier::BOLD);
                (
                    bold.fg(Color::Indexed(75)),
                    bold.fg(Color::Cyan),
                    bold.add_modifier(Modifier::UNDERLINED),
                )
            }
            Role::Selected => (
                plain.bg(Color::Indexed(238)).add_modifier(Modifier::BOLD),
                plain.add_modifier(Modifier::REVERSED),
                plain.add_modifier(Modifier::REVERSED),
            ),
            Role::Match => (
                plain.fg(Color::Indexed(16)).bg(Color::Indexed(221)),
                plain.fg(Color::Black).bg(Color::Yellow),
                plain.add_modifier(Modifier::UNDERLINED | Modifier::BOLD),
            ),
            Role::Chip => (
                plain.fg(Color::Indexed(16)).bg(Color::Indexed(110)),
                plain.fg(Color::Black).bg(Color::Cyan),
                plain.add_modifier(Modifier::REVERSED),
            ),
            Role::Key => (
                plain.fg(Color::Indexed(221)),
                plain.fg(Color::Yellow),
                plain.add_modifier(Modifier::BOLD),
            ),
            Role::Warning => (
                plain.fg(Color::Indexed(215)),
                plain.fg(Color::Yellow),
                plain.add_modifier(Modifier::BOLD),
            ),
            Role::Bad => {
                let bold = plain.add_modifier(Modifier::BOLD);
                (bold.fg(Color::Indexed(203)), bold.fg(Color::Red), bold)
            }
            Role::Region(region) => {
                let (index, named) = region_color(region);
                (plain.fg(Color::Indexed(index)), plain.fg(named), plain)
            }
            Role::Block(region) => {
                let (index, named) = region.map_or((252, Color::White), region_color);
                (
                    plain.fg(Color::Indexed(16)).bg(Color::Indexed(index)),
                    plain.fg(Color::Black).bg(named),
                    plain,
                )
            }
            Role::Heat(heat) => {
                let (index, named) = heat_color(heat);
                let hot = if heat > 0.5 {
                    Modifier::BOLD
                } else {
                    Modifier::empty()
                };
                (
                    plain.fg(Color::Indexed(index)),
                    plain.fg(named),
                    plain.add_modifier(hot),
                )
            }
        };
        match self.colors {
            Colors::Many => many,
            Colors::Sixteen => sixteen,
            Colors::None => bare,
        }
    }

    /// Fill sign of a region in charts: unique, for terminals without colours.
    pub fn fill(&self, region: Region, is_native: bool) -> char {
        if !self.unicode {
            return region_letter(region, is_native);
        }
        match region {
            Region::Generated => '█',
            Region::Interpreter => '▓',
            Region::Gc => '▒',
            Region::Compiler => '▞',
            Region::Vm => '▚',
            Region::Library => '░',
            Region::Kernel => '╳',
            Region::Idle => '·',
            Region::Unknown => '?',
        }
    }

    /// Bar for a share of 0 to 1, padded to `columns`. Every share above 0 is visible.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "columns of a terminal"
    )]
    pub fn bar(&self, share: f64, columns: usize) -> String {
        const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
        let share = if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        };
        let mut eighths = (share * columns as f64 * 8.0).round() as usize;
        if share > 0.0 {
            eighths = eighths.max(1);
        }
        let mut bar = String::new();
        if self.unicode {
            bar.extend(std::iter::repeat_n('█', eighths / 8));
            if !eighths.is_multiple_of(8) {
                bar.extend(EIGHTHS.get(eighths % 8));
            }
        } else {
            let full = eighths.div_ceil(8).min(columns);
            bar.extend(std::iter::repeat_n('#', full));
        }
        let drawn = bar.chars().count();
        bar.extend(std::iter::repeat_n(' ', columns.saturating_sub(drawn)));
        bar
    }

    /// Column of eight heights for a share of 0 to 1, for sparklines and histograms.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number from 0 to 8"
    )]
    pub fn column(&self, share: f64) -> char {
        const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const ASCII: [char; 9] = [' ', '.', '.', ':', ':', '|', '|', '#', '#'];
        let share = if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        };
        let mut height = (share * 8.0).round() as usize;
        if share > 0.0 {
            height = height.max(1);
        }
        let heights = if self.unicode { HEIGHTS } else { ASCII };
        heights.get(height).copied().unwrap_or(' ')
    }

    /// `unicode`, or `ascii` on ASCII terminals.
    pub fn sign<'a>(&self, unicode: &'a str, ascii: &'a str) -> &'a str {
        if self.unicode { unicode } else { ascii }
    }
}

const fn region_color(region: Region) -> (u8, Color) {
    match region {
        Region::Generated => (77, Color::Green),
        Region::Interpreter => (221, Color::Yellow),
        Region::Gc => (204, Color::Magenta),
        Region::Compiler => (75, Color::Blue),
        Region::Vm => (80, Color::Cyan),
        Region::Library => (180, Color::LightYellow),
        Region::Kernel => (209, Color::Red),
        Region::Idle => (240, Color::DarkGray),
        Region::Unknown => (250, Color::Gray),
    }
}

fn heat_color(heat: f64) -> (u8, Color) {
    match heat {
        heat if heat > 0.75 => (203, Color::Red),
        heat if heat > 0.4 => (215, Color::LightRed),
        heat if heat > 0.15 => (221, Color::Yellow),
        heat if heat > 0.04 => (150, Color::Green),
        _ => (245, Color::DarkGray),
    }
}
