//! The table as it stands at one moment: from a look, a size and the time to lines. A function of values.
//!
//! Never here: caches, clocks, terminals.

use std::time::Duration;

use super::text::{Line, Style, cut};
use super::view::{Counts, Phase, Row, SetView, Snapshot};

/// How much can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Characters of a line.
    pub columns: usize,
    /// Lines.
    pub rows: usize,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// When, from the beginning.
    pub at: Duration,
    /// What, in a word.
    pub what: String,
    /// The object that it happened to.
    pub object: String,
    /// Details.
    pub text: String,
    /// Whether somebody should look.
    pub is_warning: bool,
}

/// What is shown.
pub struct Board<'a> {
    /// Where all of it happens.
    pub place: &'a str,
    /// The machines.
    pub snapshot: &'a Snapshot,
    /// What happened, the newest last.
    pub notes: &'a [Note],
    /// Time since the beginning.
    pub elapsed: Duration,
}

/// A table that is wider is no easier to read.
const WIDEST: usize = 120;

/// What happened last, this many.
const NOTES: usize = 3;

/// With fewer lines than this the notes make room.
const TIGHT: usize = 16;

/// Lines beside the machines that are always there: title, counts, heading, the sets, and, unless it is tight, notes.
fn overhead(size: Size, sets: usize) -> usize {
    3 + sets + if size.rows < TIGHT { 0 } else { NOTES }
}

/// How many machines can be shown.
pub fn room(size: Size, sets: usize) -> usize {
    size.rows.saturating_sub(overhead(size, sets))
}

/// The lines of the table, never more or wider than there is room for.
pub fn frame(board: &Board<'_>, size: Size) -> Vec<Line> {
    let Board { place, snapshot, notes, elapsed } = board;
    let width = size.columns.min(WIDEST);
    let seconds = format!("{} s", elapsed.as_secs());
    let title = Line::default()
        .and(Style::Bold, "machine-api-operator demo")
        .and(Style::Dim, format!(" · {}", cut(place, width.saturating_sub(30 + seconds.len()))))
        .pad(width.saturating_sub(seconds.len()))
        .and(Style::Plain, seconds);
    let head = vec![title, counts(&snapshot.counts, "machines run")];
    let last = &notes[notes.len().saturating_sub(NOTES)..];
    let is_tight = size.rows < TIGHT;
    let notes: Vec<Line> = if is_tight { vec![] } else { last.iter().map(note).collect() };
    // Empty lines between the parts make room for machines if that lets all of them be shown.
    let room = room(size, snapshot.sets.len());
    let is_airy = !is_tight && (!snapshot.is_whole() || snapshot.rows.len() + 2 <= room);
    let table = table(snapshot, room.saturating_sub(if is_airy { 2 } else { 0 }));
    let gap = || is_airy.then(Line::default);
    let lines = head.into_iter().chain(gap()).chain(table).chain(gap()).chain(notes);
    lines.take(size.rows).map(|line| line.cut(width)).collect()
}

/// `3 of 6 machines run · 2 Provisioned · 1 New`.
pub fn counts(counts: &Counts, what: &str) -> Line {
    let all = if counts.is_complete() { Style::Green } else { Style::Plain };
    let line = Line::default().and(all, format!("{} of {} {what}", counts.up, counts.wanted));
    counts.others().fold(line, |line, (phase, count)| {
        // Those that run by their phase and are not among those that run.
        let (style, name) = match phase {
            Phase::Running => (Style::Yellow, "not Ready"),
            Phase::New | Phase::Provisioning | Phase::Provisioned | Phase::Deleting | Phase::Failed => {
                (style(phase), phase.name())
            }
        };
        line.and(Style::Dim, " · ").and(style, format!("{count} {name}"))
    })
}

fn style(phase: Phase) -> Style {
    match phase {
        Phase::New => Style::Plain,
        Phase::Provisioning | Phase::Provisioned => Style::Yellow,
        Phase::Running => Style::Green,
        Phase::Deleting => Style::Magenta,
        Phase::Failed => Style::Red,
    }
}

/// Widths of the columns of names, the same for all rows.
struct Widths {
    name: usize,
    node: usize,
}

impl Widths {
    /// As wide as what is in them: names of the sample take 14, and more than 30 is cut.
    fn of(rows: &[Row]) -> Self {
        let widest = |text: fn(&Row) -> &str| {
            rows.iter().map(|row| text(row).chars().count()).max().unwrap_or_default().clamp(14, 30)
        };
        Self { name: widest(|row| &row.name), node: widest(|row| &row.node) }
    }

    fn line(&self, [name, phase, node]: [&str; 3], phase_style: Style) -> Line {
        let Self { name: name_width, node: node_width } = *self;
        Line::default()
            .and(Style::Plain, format!("  {:<name_width$}  ", cut(name, name_width)))
            .and(phase_style, format!("{phase:<12}  "))
            .and(Style::Plain, format!("{:<node_width$}  ", cut(node, node_width)))
    }
}

/// All machines below their sets, or the sets and then the first machines that wait.
fn table(snapshot: &Snapshot, room: usize) -> Vec<Line> {
    let widths = Widths::of(&snapshot.rows);
    let heading = widths.line(["MACHINE", "PHASE", "NODE"], Style::Plain).and(Style::Plain, "WAITS FOR");
    let heading = Line::default().and(Style::Dim, heading.plain());
    let row = |row: &Row| {
        let Row { set: _, name, phase, node, waits_for } = row;
        // A machine that runs by its phase and does not by its Node is no good news.
        let style =
            if *phase == Phase::Running && waits_for.is_some() { Style::Yellow } else { style(*phase) };
        let line = widths.line([name, phase.name(), node], style);
        line.and(Style::Plain, waits_for.as_deref().unwrap_or_default())
    };
    let set = |set: &SetView| {
        let (name, zone) = match set.name.as_str() {
            "" => ("no set", String::new()),
            name => (name, format!(" · {}", set.zone)),
        };
        let mut line = Line::default().and(Style::Bold, name).and(Style::Dim, format!("{zone} · "));
        line.0.extend(counts(&set.counts, "run").0);
        line
    };
    let mut lines = vec![heading];
    if snapshot.is_whole() {
        for (place, of) in snapshot.sets.iter().enumerate() {
            lines.push(set(of));
            lines.extend(snapshot.rows.iter().filter(|row| row.set == place).map(row));
        }
        return lines;
    }
    lines.extend(snapshot.sets.iter().map(set));
    let waiting = snapshot.counts.total() - snapshot.counts.up;
    let shown = if waiting > room { room.saturating_sub(1) } else { waiting }.min(snapshot.rows.len());
    lines.extend(snapshot.rows[..shown].iter().map(row));
    if waiting > shown {
        lines.push(Line::default().and(Style::Dim, format!("  … and {} more that wait", waiting - shown)));
    }
    lines
}

fn note(Note { at, what, object, text, is_warning }: &Note) -> Line {
    Line::default()
        .and(Style::Dim, format!("{:>5} s  ", at.as_secs()))
        .and(if *is_warning { Style::Yellow } else { Style::Plain }, format!("{what} "))
        .and(Style::Bold, format!("{object} "))
        .and(Style::Dim, text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::{Expect, expect};
    use mapi_api::Machine;

    use super::*;
    use crate::demo::view::look;
    use crate::demo::view::tests::{machine, ready, set};

    fn notes() -> Vec<Note> {
        let note = |at, what: &str, text: &str| Note {
            at: Duration::from_secs(at),
            what: what.into(),
            object: "sample-a-2xk4p".into(),
            text: text.into(),
            is_warning: false,
        };
        vec![
            note(1, "Create", "created the instance of machine `sample-a-2xk4p`"),
            note(2, "Create", "again"),
            note(3, "Create", "and again"),
            note(
                12,
                "DetectedUnhealthy",
                "Machine machine-api-demo/sample/sample-a-2xk4p has an unhealthy node",
            ),
        ]
    }

    #[track_caller]
    fn check(machines: &[Arc<Machine>], replicas: i64, size: Size, expected: Expect) {
        let sets = [set("sample-a", replicas), set("sample-b", replicas)];
        let snapshot = look(machines, &sets, ready, room(size, sets.len()));
        let board = Board {
            place: "embedded API server",
            snapshot: &snapshot,
            notes: &notes(),
            elapsed: Duration::from_millis(14_900),
        };
        let lines = frame(&board, size);
        assert!(lines.len() <= size.rows, "{} lines of {}", lines.len(), size.rows);
        assert!(lines.iter().all(|line| line.width() <= size.columns));
        let text: String = lines.iter().map(|line| format!("{}\n", line.plain().trim_end())).collect();
        expected.assert_eq(&text);
    }

    fn few() -> Vec<Arc<Machine>> {
        vec![
            machine("sample-a", "sample-a-2xk4p", 1, "Running"),
            machine("sample-a", "sample-a-7hj2m", 1, "Provisioned"),
            machine("sample-b", "sample-b-q8w9z", 2, "Running"),
            machine("sample-b", "sample-b-vv4tt", 1, "Running"),
        ]
    }

    fn many() -> Vec<Arc<Machine>> {
        let phase = |i: usize| ["Running", "Running", "Provisioning"][i % 3];
        (0..3000).map(|i| machine("sample-b", &format!("sample-b-{i:05}"), 1, phase(i))).collect()
    }

    #[test]
    fn a_few_machines_are_shown_below_their_sets_with_what_they_wait_for() {
        check(
            &few(),
            2,
            Size { columns: 80, rows: 18 },
            expect![[r#"
            machine-api-operator demo · embedded API server                             14 s
            3 of 4 machines run · 1 Provisioned

              MACHINE         PHASE         NODE            WAITS FOR
            sample-a · zone-sample-a · 1 of 2 run · 1 Provisioned
              sample-a-2xk4p  Running       sample-a-2xk4p
              sample-a-7hj2m  Provisioned                   the instance
            sample-b · zone-sample-b · 2 of 2 run
              sample-b-vv4tt  Running       sample-b-vv4tt
              sample-b-q8w9z  Running       sample-b-q8w9z

                2 s  Create sample-a-2xk4p again
                3 s  Create sample-a-2xk4p and again
               12 s  DetectedUnhealthy sample-a-2xk4p Machine machine-api-demo/sample/sampl…
        "#]],
        );
    }

    #[test]
    fn empty_lines_make_room_before_machines_are_left_out() {
        let machines: Vec<_> =
            (0..8).map(|i| machine("sample-a", &format!("sample-a-{i:05}"), 1, "Running")).collect();
        check(
            &machines,
            8,
            Size { columns: 80, rows: 16 },
            expect![[r#"
            machine-api-operator demo · embedded API server                             14 s
            8 of 16 machines run
              MACHINE         PHASE         NODE            WAITS FOR
            sample-a · zone-sample-a · 8 of 8 run
              sample-a-00000  Running       sample-a-00000
              sample-a-00001  Running       sample-a-00001
              sample-a-00002  Running       sample-a-00002
              sample-a-00003  Running       sample-a-00003
              sample-a-00004  Running       sample-a-00004
              sample-a-00005  Running       sample-a-00005
              sample-a-00006  Running       sample-a-00006
              sample-a-00007  Running       sample-a-00007
            sample-b · zone-sample-b · 0 of 8 run
                2 s  Create sample-a-2xk4p again
                3 s  Create sample-a-2xk4p and again
               12 s  DetectedUnhealthy sample-a-2xk4p Machine machine-api-demo/sample/sampl…
        "#]],
        );
        check(
            &machines,
            8,
            Size { columns: 80, rows: 18 },
            expect![[r#"
            machine-api-operator demo · embedded API server                             14 s
            8 of 16 machines run

              MACHINE         PHASE         NODE            WAITS FOR
            sample-a · zone-sample-a · 8 of 8 run
              sample-a-00000  Running       sample-a-00000
              sample-a-00001  Running       sample-a-00001
              sample-a-00002  Running       sample-a-00002
              sample-a-00003  Running       sample-a-00003
              sample-a-00004  Running       sample-a-00004
              sample-a-00005  Running       sample-a-00005
              sample-a-00006  Running       sample-a-00006
              sample-a-00007  Running       sample-a-00007
            sample-b · zone-sample-b · 0 of 8 run

                2 s  Create sample-a-2xk4p again
                3 s  Create sample-a-2xk4p and again
               12 s  DetectedUnhealthy sample-a-2xk4p Machine machine-api-demo/sample/sampl…
        "#]],
        );
    }

    #[test]
    fn thousands_are_counted_and_the_first_that_wait_are_shown() {
        check(
            &many(),
            3000,
            Size { columns: 80, rows: 18 },
            expect![[r#"
            machine-api-operator demo · embedded API server                             14 s
            2000 of 6000 machines run · 1000 Provisioning

              MACHINE         PHASE         NODE            WAITS FOR
            sample-a · zone-sample-a · 0 of 3000 run
            sample-b · zone-sample-b · 2000 of 3000 run · 1000 Provisioning
              sample-b-00002  Provisioning                  the instance
              sample-b-00005  Provisioning                  the instance
              sample-b-00008  Provisioning                  the instance
              sample-b-00011  Provisioning                  the instance
              sample-b-00014  Provisioning                  the instance
              sample-b-00017  Provisioning                  the instance
              sample-b-00020  Provisioning                  the instance
              … and 993 more that wait

                2 s  Create sample-a-2xk4p again
                3 s  Create sample-a-2xk4p and again
               12 s  DetectedUnhealthy sample-a-2xk4p Machine machine-api-demo/sample/sampl…
        "#]],
        );
    }

    #[test]
    fn a_small_terminal_is_not_left() {
        check(
            &few(),
            2,
            Size { columns: 40, rows: 9 },
            expect![[r#"
            machine-api-operator demo · embed…  14 s
            3 of 4 machines run · 1 Provisioned
              MACHINE         PHASE         NODE   …
            sample-a · zone-sample-a · 1 of 2 run ·…
              sample-a-2xk4p  Running       sample-…
              sample-a-7hj2m  Provisioned          …
            sample-b · zone-sample-b · 2 of 2 run
              sample-b-vv4tt  Running       sample-…
              sample-b-q8w9z  Running       sample-…
        "#]],
        );
        check(
            &many(),
            3000,
            Size { columns: 60, rows: 7 },
            expect![[r#"
            machine-api-operator demo · embedded API server         14 s
            2000 of 6000 machines run · 1000 Provisioning
              MACHINE         PHASE         NODE            WAITS FOR
            sample-a · zone-sample-a · 0 of 3000 run
            sample-b · zone-sample-b · 2000 of 3000 run · 1000 Provisio…
              sample-b-00002  Provisioning                  the instance
              … and 999 more that wait
        "#]],
        );
        check(
            &many(),
            3000,
            Size { columns: 20, rows: 2 },
            expect![[r#"
            machine-api-operato…
            2000 of 6000 machin…
        "#]],
        );
    }
}
