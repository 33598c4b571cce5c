//! `cargo xtask tidy`: checks what the compiler cannot.
//!
//! Never here: a check of its own; each has a file.

mod arrows;
mod left_out;
mod purity;
mod texts;

use anyhow::bail;

use crate::{matrix, workspace};

/// Arguments of `tidy`.
#[derive(clap::Args)]
pub struct Args {}

/// Fails with every complaint there is.
pub fn run(_: &Args) -> anyhow::Result<()> {
    let (packages, sources) = (workspace::packages()?, workspace::sources()?);
    let mut found = arrows::complaints(&packages);
    found.extend(purity::complaints(&sources));
    found.extend(texts::complaints(&sources));
    found.extend(matrix::complaints(&sources));
    found.extend(left_out::complaints(&sources));
    if found.is_empty() {
        return Ok(());
    }
    bail!("{} complaints:\n{}", found.len(), found.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        run(&Args {}).unwrap_or_else(|error| panic!("{error:#}"));
    }
}
