//! `cargo xtask gen`: writes what has a type, a table or a comment in the code as its source.
//!
//! Never here: how a file comes about; that is said by the module of its kind.

use crate::files::{self, File};
use crate::{crd, matrix, rbac};

/// Arguments of `gen`.
#[derive(clap::Args)]
pub struct Args {
    /// Write nothing, and fail when a committed file is not as it would be written.
    #[arg(long)]
    check: bool,
}

/// Writes or checks every generated file.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let files = all()?;
    if args.check { files::check(&files) } else { files::write(&files) }
}

fn all() -> anyhow::Result<Vec<File>> {
    let mut files = crd::files()?;
    files.extend(rbac::files());
    files.push(matrix::file()?);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_generated_files_are_fresh() {
        run(&Args { check: true }).unwrap_or_else(|error| panic!("{error:#}"));
    }
}
