//! Widgets at the right end of a line, made from left to right all the same: so the Tab key and a screen reader walk them in
//! the order in which one reads, which egui's right-to-left layout turns round.

use egui::{Align, Id, Layout, Rect, Sense, Ui, UiBuilder, pos2};

/// Adds widgets that end where the line ends. `salt` tells this place from others in the same `ui`.
///
/// How wide they are is known once they are drawn, so the width is the last pass's; a pass in which it changed is drawn again
/// before anyone sees it.
pub fn trailing<R>(ui: &mut Ui, salt: &str, add: impl FnOnce(&mut Ui) -> R) -> R {
    let id = trailing_id(ui, salt);
    let line = ui.available_rect_before_wrap();
    let last: Option<f32> = ui.data(|d| d.get_temp(id));
    let left = (line.right() - last.unwrap_or(line.width())).max(line.left());
    let place = Rect::from_min_max(pos2(left, line.top()), line.max);
    let mut inside = ui.new_child(UiBuilder::new().max_rect(place).layout(Layout::left_to_right(Align::Center)));
    let answer = add(&mut inside);
    let drawn = inside.min_rect();
    if last.is_none_or(|last| (last - drawn.width()).abs() > 0.5) {
        ui.data_mut(|d| d.insert_temp(id, drawn.width()));
        ui.ctx().request_discard("the end of a line changed its width");
    }
    // Not what sticks out while the width is the last pass's: a panel would grow by it for good.
    ui.allocate_rect(drawn.intersect(line), Sense::hover());
    answer
}

/// How wide the widgets of [`trailing`] were in the last pass, for what stands before them; 0 before the first.
pub fn trailing_width(ui: &Ui, salt: &str) -> f32 {
    ui.data(|d| d.get_temp(trailing_id(ui, salt))).unwrap_or(0.0)
}

fn trailing_id(ui: &Ui, salt: &str) -> Id {
    ui.scope_id().with(("trailing", salt))
}
