//! The window's own widgets, one a file. They know the theme and egui, and nothing of the studio: a panel hands them values
//! and names, and gets back what the person did.

mod icon_button;
mod picture_canvas;
mod row;
mod size_frames;
mod stack_graph;
mod step_line;
mod thumbnail;
mod trailing;

pub use icon_button::{icon_button, icon_toggle, text_button};
pub use picture_canvas::{PictureCanvas, View};
pub use row::{caption, elided, row, section};
pub use size_frames::size_frames;
pub use stack_graph::{GraphColumn, GraphMark, StackGraph};
pub use step_line::step_line;
pub use thumbnail::thumbnail;
pub use trailing::{trailing, trailing_width};
