//! What the mouse does.

use super::{Callers, Form, draw, flame};
use crate::tui::views::{Act, Click, Cx, Press};
use crate::tui::widgets::data_table::Clicked;

/// Rows that the wheel moves the graph by.
const WHEEL: usize = 3;

impl Callers {
    pub(super) fn do_click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let Some(tree) = self.shown.clone().filter(|_| self.has_chains(cx)) else {
            if click.what == Press::Double {
                self.without_chains = true;
            }
            return Vec::new();
        };
        match self.form {
            Form::Flame => {
                let area = draw::graph(cx.area);
                let rows = usize::from(area.height);
                let (away, towards) = if self.turned {
                    (Press::WheelDown, Press::WheelUp)
                } else {
                    (Press::WheelUp, Press::WheelDown)
                };
                if click.what == away {
                    self.flame.top = self.flame.top.saturating_sub(WHEEL);
                } else if click.what == towards {
                    let wanted = self.flame.top + WHEEL;
                    let columns = usize::from(area.width);
                    let deep = flame::rows(&tree, self.flame.zoom, columns, wanted + rows).len();
                    self.flame.top = wanted.min(deep.saturating_sub(rows)).max(self.flame.top);
                } else if let (Press::Down | Press::Double, Some(node)) =
                    (click.what, self.look(&tree, cx).at(area, click.at))
                {
                    self.flame.selected = node;
                    if click.what == Press::Double {
                        self.flame.zoom_in();
                    }
                }
                Vec::new()
            }
            Form::Tree => self.click_tree(click, cx),
        }
    }

    fn click_tree(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let area = draw::rows(cx.area);
        match self.with_table(cx, |table, page, _| table.click(click, page, area)) {
            Some(Clicked::Row { twice: true, .. }) => self.open_method(cx),
            _ => Vec::new(),
        }
    }
}
