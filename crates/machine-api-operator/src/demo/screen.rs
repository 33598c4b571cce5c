//! Where the demo is seen: a table that is drawn anew in place on a terminal, lines of text elsewhere, and frames for
//! pictures.
//!
//! Never here: what is in the lines.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write as _, stdout};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

use super::frame::{Board, Size, counts, frame};
use super::text::{Line, Style};

/// What is taken for the size of a terminal that does not tell.
const USUAL: Size = Size { columns: 80, rows: 24 };

/// More machines than this are counted on a screen that is no terminal.
const FEW: usize = 50;

/// Hides the cursor and keeps long lines from going on in the next one, and the opposite.
const BEGIN: &str = "\x1b[?25l\x1b[?7l";
const END: &str = "\x1b[?25h\x1b[?7h";

/// Terminals that know these show all between them at once, others ignore them.
const AT_ONCE: [&str; 2] = ["\x1b[?2026h", "\x1b[?2026l"];

/// A machine whose phase changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, from the beginning.
    pub at: Duration,
    /// Its name.
    pub machine: String,
    /// The phase that it was in; none if it is new.
    pub from: Option<&'static str>,
    /// The phase that it is in; none if it is gone.
    pub to: Option<&'static str>,
}

/// Where the demo is seen.
pub struct Screen {
    kind: Kind,
    /// What stays above the table.
    intro: Vec<String>,
    film: Option<Film>,
}

enum Kind {
    Terminal(Terminal),
    Plain(Plain),
}

#[derive(Default)]
struct Terminal {
    has_colour: bool,
    /// The size when it was drawn last, and how many lines that were.
    drawn: Option<(Size, usize)>,
}

#[derive(Default)]
struct Plain {
    last: String,
}

impl Screen {
    /// Standard output as it is, and a file for frames.
    pub fn new(frames: Option<&Path>) -> anyhow::Result<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_terminal = stdout().is_terminal() && variable("TERM").is_some_and(|term| term != "dumb");
        let kind = if is_terminal {
            Kind::Terminal(Terminal { has_colour: variable("NO_COLOR").is_none(), drawn: None })
        } else {
            Kind::Plain(Plain::default())
        };
        Ok(Self { kind, intro: vec![], film: frames.map(Film::new).transpose()? })
    }

    /// Whether it is drawn anew in place, so that a clock on it goes on.
    pub fn is_live(&self) -> bool {
        self.is_terminal() || self.film.is_some()
    }

    /// Whether it is a terminal.
    pub fn is_terminal(&self) -> bool {
        matches!(self.kind, Kind::Terminal(_))
    }

    /// How many lines the table may have.
    pub fn size(&self) -> Size {
        match &self.kind {
            Kind::Terminal(_) => for_table(terminal_size(), &self.intro),
            Kind::Plain(_) => for_table(USUAL, &self.intro),
        }
    }

    /// Says a line, for good.
    pub fn say(&mut self, line: &str) -> io::Result<()> {
        self.leave();
        let mut out = stdout().lock();
        writeln!(out, "{line}")?;
        out.flush()
    }

    /// Says what stays above the table.
    pub fn introduce(&mut self, intro: Vec<String>) -> io::Result<()> {
        for line in &intro {
            self.say(line)?;
        }
        self.intro = intro;
        Ok(())
    }

    /// Shows how things stand. On a terminal that is the table; elsewhere the steps, or, of many machines, the counts.
    pub fn show(&mut self, board: &Board<'_>, steps: Vec<Step>) -> io::Result<()> {
        if let Some(film) = &mut self.film {
            film.note(board, &self.intro)?;
        }
        match &mut self.kind {
            Kind::Terminal(terminal) => terminal.draw(board, &self.intro),
            Kind::Plain(plain) => plain.tell(board, steps),
        }
    }

    /// Leaves the table as it stands and goes on below it.
    fn leave(&mut self) {
        if let Kind::Terminal(terminal) = &mut self.kind
            && terminal.drawn.take().is_some()
        {
            // If it cannot be written now, nobody is there to see it.
            let _ = write!(stdout(), "{END}").and_then(|()| stdout().flush());
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Terminal {
    fn draw(&mut self, board: &Board<'_>, intro: &[String]) -> io::Result<()> {
        let whole = terminal_size();
        let size = below(whole, intro);
        let mut text = String::from(AT_ONCE[0]);
        text += BEGIN;
        match self.drawn {
            Some((before, lines)) if before == whole && lines > 0 => text += &format!("\x1b[{lines}A"),
            Some((before, _)) if before != whole => {
                // A terminal that changed its width may have broken our lines anew: nobody knows where they are.
                text += "\x1b[2J\x1b[H";
                if size != whole {
                    text.extend(intro.iter().map(|line| format!("\x1b[?7h{line}\r\n")));
                    text += BEGIN;
                }
            }
            Some(_) | None => {}
        }
        let lines = frame(board, for_table(whole, intro));
        for line in &lines {
            text += &if self.has_colour { line.ansi() } else { line.plain() };
            // Behind the last column the cursor stands on it, and would erase it.
            text += if line.width() < size.columns { "\x1b[K\r\n" } else { "\r\n" };
        }
        text += "\x1b[J";
        text += AT_ONCE[1];
        self.drawn = Some((whole, lines.len()));
        let mut out = stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

impl Plain {
    fn tell(&mut self, board: &Board<'_>, steps: Vec<Step>) -> io::Result<()> {
        let mut out = BufWriter::new(stdout().lock());
        let all = &board.snapshot.counts;
        if all.wanted.max(all.total()) > FEW {
            let line = counts(all, "machines run").plain();
            if line != self.last {
                writeln!(out, "{} {line}", time(board.elapsed))?;
                self.last = line;
            }
        } else {
            for step in steps {
                writeln!(out, "{} {}", time(step.at), tell(&step))?;
            }
        }
        out.flush()
    }
}

/// `sample-a-2xk4p  Provisioning → Provisioned`.
fn tell(Step { at: _, machine, from, to }: &Step) -> String {
    match (from, to) {
        (None, Some(to)) => format!("{machine}  {to}"),
        (Some(from), Some(to)) => format!("{machine}  {from} → {to}"),
        (Some(_) | None, None) => format!("{machine}  gone"),
    }
}

/// Seconds from the beginning, with a tenth, as wide as any of them.
pub fn time(elapsed: Duration) -> String {
    format!("{:>6.1} s ", elapsed.as_secs_f64())
}

/// What is left of a size below lines of text. On a terminal with no room for a table below them they are not kept.
fn below(size: Size, intro: &[String]) -> Size {
    const LEAST: usize = 8;
    let height = |line: &String| line.chars().count().div_ceil(size.columns.max(1)).max(1);
    let above: usize = intro.iter().map(height).sum();
    if size.rows < above + LEAST { size } else { Size { rows: size.rows - above, ..size } }
}

/// What the table may have of that: the last line is where the cursor stands.
fn for_table(size: Size, intro: &[String]) -> Size {
    let size = below(size, intro);
    Size { rows: size.rows.saturating_sub(1), ..size }
}

fn terminal_size() -> Size {
    match rustix::termios::tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            Size { columns: size.ws_col.into(), rows: size.ws_row.into() }
        }
        Ok(_) | Err(_) => USUAL,
    }
}

/// A file of frames, a line of JSON each, as they would be on a terminal of the usual size.
struct Film {
    file: File,
    last: Vec<Line>,
}

#[derive(Serialize)]
struct Shot<'a> {
    seconds: f64,
    lines: &'a [Line],
}

impl Film {
    fn new(path: &Path) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot make `{}`", path.display()))?;
        Ok(Self { file, last: vec![] })
    }

    fn note(&mut self, board: &Board<'_>, intro: &[String]) -> io::Result<()> {
        let size = for_table(USUAL, intro);
        let above = intro.iter().map(|line| Line::default().and(Style::Plain, line));
        let lines: Vec<Line> = above.chain(frame(board, size)).collect();
        if lines == self.last {
            return Ok(());
        }
        let shot = Shot { seconds: board.elapsed.as_secs_f64(), lines: &lines };
        writeln!(self.file, "{}", serde_json::to_string(&shot)?)?;
        self.last = lines;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_tells_where_a_machine_comes_from() {
        let step = |from, to| tell(&Step { at: Duration::ZERO, machine: "a".into(), from, to });
        assert_eq!(step(None, Some("New")), "a  New");
        assert_eq!(step(Some("New"), Some("Running")), "a  New → Running");
        assert_eq!(step(Some("Deleting"), None), "a  gone");
        assert_eq!(time(Duration::from_millis(9_876)), "   9.9 s ");
    }

    #[test]
    fn what_stays_above_takes_as_many_lines_as_it_is_broken_into() {
        let size = Size { columns: 10, rows: 24 };
        let lines = ["", "0123456789", "0123456789a"].map(String::from);
        assert_eq!(below(size, &lines).rows, 20);
        assert_eq!(below(Size { rows: 9, ..size }, &lines).rows, 9);
    }
}
