//! `cargo xtask picture`: runs the demo for real and makes the README's picture of it, `docs/demo.svg`.
//!
//! Never here: how a frame becomes a drawing; that is `svg`'s.

mod svg;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use crate::workspace;

/// Where the picture is, below the root.
const PICTURE: &str = "docs/demo.svg";

/// What the demo is asked to do: all machines come, one falls ill, and is replaced. Then it ends by itself.
const ARGUMENTS: [&str; 4] = ["demo", "--until-running", "--fail", "NodeNotReady"];

/// A picture of the README shall not be larger.
const LARGEST: usize = 60 << 10;

#[derive(clap::Args)]
pub struct Args {
    /// Use the API server of this kubeconfig file in place of the embedded one.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Frames that a demo has noted before, in place of running one.
    #[arg(long)]
    frames: Option<PathBuf>,
}

/// The table at one moment.
#[derive(Clone, Debug, Deserialize)]
struct Shot {
    /// From the beginning.
    seconds: f64,
    lines: Vec<Vec<Span>>,
}

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Span {
    text: String,
    style: Style,
}

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Style {
    Plain,
    Bold,
    Dim,
    Green,
    Yellow,
    Magenta,
    Red,
}

/// Makes the picture.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let shots = match &args.frames {
        Some(file) => read(file)?,
        None => film(args)?,
    };
    let chosen = choose(&shots);
    let text = svg::draw(&chosen);
    ensure!(text.len() <= LARGEST, "the picture has {} bytes, at most {LARGEST} are allowed", text.len());
    let path = workspace::root().join(PICTURE);
    fs::write(&path, &text).with_context(|| format!("cannot write `{PICTURE}`"))?;
    println!("wrote {PICTURE}: {} of {} frames, {} bytes", chosen.len(), shots.len(), text.len());
    Ok(())
}

/// Runs the demo and reads the frames that it notes.
fn film(args: &Args) -> anyhow::Result<Vec<Shot>> {
    crate::play::build()?;
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let frames = folder.path().join("frames");
    let kubeconfig = folder.path().join("demo.kubeconfig");
    println!("Running `machine-api-operator {}`", ARGUMENTS.join(" "));
    let mut command = Command::new(e2e::binary()?);
    command.args(ARGUMENTS).arg("--frames").arg(&frames).arg("--write-kubeconfig").arg(&kubeconfig);
    if let Some(kubeconfig) = &args.kubeconfig {
        command.arg("--kubeconfig").arg(kubeconfig);
    }
    let status = command.status().context("cannot run the demo")?;
    if !status.success() {
        bail!("the demo failed");
    }
    let mut shots = read(&frames)?;
    // The file is where the picture was made; a reader has it elsewhere.
    let here = folder.path().display().to_string();
    for span in shots.iter_mut().flat_map(|shot| shot.lines.iter_mut().flatten()) {
        span.text = span.text.replace(&here, "~");
    }
    if let Some(home) = env::var_os("HOME") {
        let home = home.to_string_lossy().into_owned();
        ensure!(
            home.len() < 2
                || !shots.iter().flat_map(|shot| shot.lines.iter().flatten()).any(|s| s.text.contains(&home)),
            "a frame has a path of this machine"
        );
    }
    Ok(shots)
}

fn read(file: &Path) -> anyhow::Result<Vec<Shot>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    let shots: Result<Vec<Shot>, _> = text.lines().map(serde_json::from_str).collect();
    let shots = shots.context("a frame is not as expected")?;
    ensure!(!shots.is_empty(), "the demo has noted no frame");
    Ok(shots)
}

/// Of frames that tell of the same numbers only the last: it shows all that is to be said of them. Those that lasted
/// less than a moment are left out.
fn choose(shots: &[Shot]) -> Vec<Shot> {
    /// What nobody could read.
    const MOMENT_S: f64 = 0.6;
    let mut chosen: Vec<(f64, Shot)> = vec![];
    for shot in shots {
        match chosen.last_mut() {
            Some((_, last)) if counts(last) == counts(shot) => *last = shot.clone(),
            Some(_) | None => chosen.push((shot.seconds, shot.clone())),
        }
    }
    let ends: Vec<f64> = chosen.iter().skip(1).map(|(began, _)| *began).chain([f64::INFINITY]).collect();
    let lasting = chosen.into_iter().zip(ends).filter(|((began, _), end)| end - began >= MOMENT_S);
    lasting.map(|((_, shot), _)| shot).collect()
}

/// The line of a frame that has the numbers: the one below the title.
fn counts(shot: &Shot) -> Option<&[Span]> {
    let title = shot.lines.iter().position(|line| line.iter().any(|span| span.style == Style::Bold))?;
    shot.lines.get(title + 1).map(Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shot(seconds: f64, counts: &str) -> Shot {
        let line = |style, text: &str| vec![Span { text: text.into(), style }];
        let lines = vec![
            line(Style::Plain, "above"),
            line(Style::Bold, "title"),
            line(Style::Plain, counts),
            line(Style::Green, &format!("<{seconds}>")),
        ];
        Shot { seconds, lines }
    }

    #[test]
    fn of_frames_with_the_same_numbers_the_last_is_taken_and_short_ones_are_left_out() {
        let shots = [(1.0, "a"), (2.0, "a"), (3.0, "b"), (3.1, "c"), (9.0, "c"), (10.0, "d")];
        let chosen = choose(&shots.map(|(seconds, counts)| shot(seconds, counts)));
        let seconds: Vec<f64> = chosen.iter().map(|shot| shot.seconds).collect();
        assert_eq!(seconds, [2.0, 9.0, 10.0]);
    }

    #[test]
    fn a_frame_as_the_demo_notes_it_can_be_read() {
        let text = r#"{"seconds":1.5,"lines":[[{"text":"a","style":"bold"}],[]]}"#;
        let shot: Shot = serde_json::from_str(text).unwrap();
        assert_eq!(shot.lines[0], [Span { text: "a".into(), style: Style::Bold }]);
    }

    #[test]
    fn a_picture_shows_the_text_of_every_frame_and_is_valid_xml() {
        let text = svg::draw(&[shot(1.0, "a"), shot(2.0, "b & c")]);
        for part in ["&lt;1&gt;", "b &amp; c", "title"] {
            assert!(text.contains(part), "no {part}");
        }
        assert_eq!(text.matches("<g").count(), text.matches("</g>").count());
        assert_eq!(text.matches("<text").count(), text.matches("</text>").count());
    }
}
