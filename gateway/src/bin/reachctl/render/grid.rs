//! Tables of bounded width without lines, and their colors.

use agent_reach_sdk::schemas::WebhookId;
use agent_reach_sdk::{TaskId, Timestamp};
use comfy_table::{CellAlignment, Column, ColumnConstraint, ContentArrangement, Table, Width, presets};

use super::text::clean;

/// What the reader can take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// How many columns a line may have.
    pub(crate) width: u16,
    pub(crate) is_colored: bool,
    /// When it is looked at.
    pub(crate) now: Timestamp,
}

impl Look {
    /// The text in the color of its tone.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        match tone.color() {
            Some(color) if self.is_colored => format!("\x1b[{color}m{text}\x1b[0m"),
            Some(_) | None => text.to_owned(),
        }
    }

    /// The same with so many columns less.
    pub(crate) fn narrower(&self, by: u16) -> Self {
        Self { width: self.width.saturating_sub(by), ..*self }
    }
}

/// What a line means to its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Head,
    Good,
    Warn,
    Bad,
    Faint,
}

impl Tone {
    const ALL: [Self; 6] = [Self::Plain, Self::Head, Self::Good, Self::Warn, Self::Bad, Self::Faint];

    const fn color(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Head => Some("1"),
            Self::Good => Some("32"),
            Self::Warn => Some("33"),
            Self::Bad => Some("31"),
            Self::Faint => Some("2"),
        }
    }

    /// A character of one column that stands before each row while the table is set, and tells its rows apart after.
    fn mark(self) -> char {
        let at = Self::ALL.iter().position(|tone| *tone == self).unwrap_or(0);
        char::from_u32(0xE000 + at as u32).unwrap_or('\u{E000}')
    }

    fn of_mark(mark: char) -> Option<Self> {
        Self::ALL.into_iter().find(|tone| tone.mark() == mark)
    }
}

/// How a column takes its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As wide as its content, never broken.
    Fixed,
    /// As `Fixed`, to the right.
    Number,
    /// What is left, broken into lines where that is not enough, but never within an id.
    Text,
}

/// A table without lines. What goes into it may come from anyone: it is cleaned of what would steer a terminal.
pub(crate) struct Grid {
    shapes: Vec<Shape>,
    head: Option<Vec<String>>,
    rows: Vec<(Tone, Vec<String>)>,
    gap: u16,
}

impl Grid {
    pub(crate) fn new(columns: &[(&str, Shape)]) -> Self {
        let head: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let head = head.iter().any(|name| !name.is_empty()).then_some(head);
        Self { shapes: columns.iter().map(|(_, shape)| *shape).collect(), head, rows: Vec::new(), gap: 2 }
    }

    /// Sets how many blanks stand between columns.
    pub(crate) fn gap(mut self, gap: u16) -> Self {
        self.gap = gap;
        self
    }

    pub(crate) fn row(&mut self, tone: Tone, cells: impl IntoIterator<Item = String>) {
        self.rows.push((tone, cells.into_iter().map(|cell| clean(&cell)).collect()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines of at most the look's width, unless columns that are never broken need more.
    pub(crate) fn render(&self, look: &Look) -> String {
        let mut table = Table::new();
        // The marks are taken away again: two columns.
        table.load_style(presets::NOTHING).set_width(look.width + 2);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        let marked = |tone: Tone, cells: &[String]| -> Vec<String> {
            std::iter::once(tone.mark().to_string()).chain(cells.iter().cloned()).collect()
        };
        if let Some(head) = &self.head {
            table.set_header(marked(Tone::Head, head));
        }
        for (tone, cells) in &self.rows {
            table.add_row(marked(*tone, cells));
        }
        self.shape(&mut table);
        painted(table.lines(), look)
    }

    fn shape(&self, table: &mut Table) {
        let set = |column: Option<&mut Column>, shape: Shape, gap: u16, ids: u16| {
            let Some(column) = column else { return };
            column.set_padding((0, gap));
            match shape {
                Shape::Fixed => {
                    column.set_constraint(ColumnConstraint::ContentWidth);
                }
                Shape::Number => {
                    column.set_constraint(ColumnConstraint::ContentWidth);
                    column.set_cell_alignment(CellAlignment::Right);
                }
                Shape::Text if ids > 0 => {
                    column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(ids + gap)));
                }
                Shape::Text => {}
            }
        };
        set(table.column_mut(0), Shape::Fixed, 1, 0);
        for (at, shape) in self.shapes.iter().enumerate() {
            let gap = if at + 1 == self.shapes.len() { 0 } else { self.gap };
            set(table.column_mut(at + 1), *shape, gap, self.longest_id(at));
        }
    }

    /// How long the longest id in a column is: it is copied from there, and must not be broken.
    fn longest_id(&self, column: usize) -> u16 {
        let cells = self.rows.iter().filter_map(|(_, cells)| cells.get(column));
        let ids = cells.flat_map(|cell| cell.split_whitespace()).filter(|word| is_id(word));
        ids.map(|id| u16::try_from(id.len()).unwrap_or(0)).max().unwrap_or(0)
    }
}

/// Whether a word is the id of a task or of a webhook.
fn is_id(word: &str) -> bool {
    word.parse::<TaskId>().is_ok() || word.parse::<WebhookId>().is_ok()
}

/// Takes the marks away and colors each row by its own.
fn painted(lines: impl Iterator<Item = String>, look: &Look) -> String {
    let mut text = String::new();
    let mut tone = Tone::Plain;
    for line in lines {
        let mut rest = line.chars();
        tone = rest.next().and_then(Tone::of_mark).unwrap_or(tone);
        let rest: String = rest.skip(1).collect();
        text.push_str(&look.paint(tone, rest.trim_end()));
        text.push('\n');
    }
    text
}

/// Names and values, a row each. Values that are empty are left out.
pub(crate) fn sheet(rows: impl IntoIterator<Item = (&'static str, Tone, String)>, look: &Look) -> String {
    let mut grid = Grid::new(&[("", Shape::Fixed), ("", Shape::Text)]);
    for (name, tone, value) in rows {
        if !value.is_empty() {
            grid.row(tone, [name.to_owned(), value]);
        }
    }
    grid.render(look)
}

/// The text with so many blanks before each line.
pub(crate) fn indented(text: &str, by: usize) -> String {
    let indent = " ".repeat(by);
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{indent}{line}\n") }).collect()
}
