//! Frames as a drawing of a terminal that shows them one after the other, readable on light and dark pages.
//!
//! Never here: which frames.

use std::fmt::Write as _;

use super::{Shot, Span, Style};

/// What was typed, above the frames.
const COMMAND: &str = "cargo run --release -- demo --fail NodeNotReady";

/// Size of a character and a line.
const COLUMN: f64 = 8.0;
const LINE: usize = 18;
/// Columns and lines of the terminal.
const SIZE: (usize, usize) = (80, 24);
const MARGIN: usize = 16;
/// Height of the bar above the terminal.
const BAR: usize = 34;

/// How long a frame stays, and the last one, in seconds.
const STAY_S: f64 = 2.0;
const LAST_S: f64 = 5.0;

/// The drawing.
pub fn draw(shots: &[Shot]) -> String {
    let width = (SIZE.0 as f64 * COLUMN).ceil() as usize + 2 * MARGIN;
    let height = BAR + SIZE.1 * LINE + MARGIN;
    let mut text = String::new();
    let mut add = |line: &str| {
        text += line;
        text.push('\n');
    };
    add(&format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{}">"#,
        escape(&format!("A terminal that shows `{COMMAND}`: machines come, one falls ill and is replaced"))
    ));
    add("<!-- Written by `cargo xtask picture` from a real run. Do not edit. -->");
    add(&format!("<style>{}{}</style>", STYLE, timing(shots.len())));
    add(&format!(r##"<rect width="{width}" height="{height}" rx="8" fill="#12161d" stroke="#444c56"/>"##));
    for (place, colour) in ["#ff5f57", "#febc2e", "#28c840"].into_iter().enumerate() {
        add(&format!(r#"<circle cx="{}" cy="17" r="5.5" fill="{colour}"/>"#, MARGIN + 6 + place * 18));
    }
    add(&format!(r#"<g transform="translate({MARGIN} {BAR})">"#));
    let prompt =
        [Span { text: "$ ".into(), style: Style::Green }, Span { text: COMMAND.into(), style: Style::Bold }];
    add(&line(0, &prompt));
    let common = common(shots);
    for place in 0..common {
        add(&line(place + 1, &shots[0].lines[place]));
    }
    for (frame, shot) in shots.iter().enumerate() {
        add(&format!(r#"<g class="f f{frame}">"#));
        for (place, spans) in
            shot.lines.iter().enumerate().skip(common).filter(|(_, spans)| !spans.is_empty())
        {
            add(&line(place + 1, spans));
        }
        add("</g>");
    }
    add("</g>\n</svg>");
    text
}

const STYLE: &str = "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;\
    fill:#d5dbe3;white-space:pre}.b{font-weight:700;fill:#fff}.d{fill:#8b949e}.g{fill:#56d364}.y{fill:#e3b341}\
    .m{fill:#d2a8ff}.r{fill:#ff7b72}.f{opacity:0}";

/// How many lines from the top all frames have in common.
fn common(shots: &[Shot]) -> usize {
    let first = &shots[0].lines;
    (0..first.len())
        .take_while(|place| shots.iter().all(|shot| shot.lines.get(*place) == Some(&first[*place])))
        .count()
}

/// When which frame is seen. Where nothing moves it is the first of the second half: something goes on there.
fn timing(frames: usize) -> String {
    let whole = STAY_S * (frames - 1) as f64 + LAST_S;
    let mut text = String::new();
    let mut add = |line: std::fmt::Arguments<'_>| text.write_fmt(line).expect("a text can be written to");
    add(format_args!(".f{}{{opacity:1}}", frames / 2));
    add(format_args!(
        "@media (prefers-reduced-motion:no-preference){{.f{{animation:{whole}s step-end infinite}}"
    ));
    for frame in 0..frames {
        add(format_args!(".f{frame}{{animation-name:k{frame}}}"));
    }
    add(format_args!("}}"));
    for frame in 0..frames {
        let percent = |seconds: f64| format!("{:.2}%", 100.0 * seconds / whole);
        let (from, to) = (STAY_S * frame as f64, STAY_S * (frame + 1) as f64);
        let before = if frame == 0 { String::new() } else { "0%{opacity:0}".into() };
        let after = if frame + 1 == frames { String::new() } else { format!("{}{{opacity:0}}", percent(to)) };
        add(format_args!("@keyframes k{frame}{{{before}{}{{opacity:1}}{after}}}", percent(from)));
    }
    text
}

fn line(place: usize, spans: &[Span]) -> String {
    let mut text = format!(r#"<text y="{}" xml:space="preserve">"#, place * LINE + 13);
    for Span { text: words, style } in spans {
        let words = escape(words);
        let class = match style {
            Style::Plain => None,
            Style::Bold => Some("b"),
            Style::Dim => Some("d"),
            Style::Green => Some("g"),
            Style::Yellow => Some("y"),
            Style::Magenta => Some("m"),
            Style::Red => Some("r"),
        };
        match class {
            Some(class) => text += &format!(r#"<tspan class="{class}">{words}</tspan>"#),
            None => text += &words,
        }
    }
    text + "</text>"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
