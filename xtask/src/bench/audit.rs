//! Who wrote what, from the audit log of the API server.
//!
//! Never here: writes of anybody but the controllers and the simulated cloud.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// Which part of the product wrote, by its user agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Actor {
    /// The controllers.
    Operator,
    /// The simulated cloud: its near side in the controllers' process and its far side.
    SimulatedCloud,
}

impl Actor {
    fn of(user_agent: &str) -> Option<Self> {
        if user_agent.starts_with("machine-api-operator/") {
            Some(Self::Operator)
        } else if user_agent.starts_with("machine-api-simulated-cloud/") {
            Some(Self::SimulatedCloud)
        } else {
            None
        }
    }
}

/// Writes that are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Write {
    /// Who wrote.
    pub actor: Actor,
    /// Resource, with its subresource behind a slash.
    pub resource: String,
    /// `create`, `patch`, `update` or `delete`.
    pub verb: String,
    /// The server's answer.
    pub code: u16,
    /// User name of the account.
    pub account: String,
}

impl Write {
    /// Whether the server did what was asked.
    pub fn is_accepted(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

/// How many writes there were of each sort.
pub type Tally = BTreeMap<Write, u64>;

/// Number of writes of one part of the product, refused ones too.
pub fn total(tally: &Tally, actor: Actor) -> u64 {
    tally.iter().filter(|(write, _)| write.actor == actor).map(|(_, count)| count).sum()
}

/// The audit log, read up to some line.
pub struct AuditLog {
    path: PathBuf,
    position: u64,
}

impl AuditLog {
    /// The log at `path`, from its first line.
    pub fn new(path: PathBuf) -> Self {
        Self { path, position: 0 }
    }

    /// Counts the whole lines that were written since the last call.
    pub fn take(&mut self) -> anyhow::Result<Tally> {
        let path = self.path.display();
        let mut file =
            File::open(&self.path).with_context(|| format!("cannot open the audit log `{path}`"))?;
        file.seek(SeekFrom::Start(self.position))?;
        let mut reader = BufReader::new(file);
        let mut tally = Tally::new();
        let mut line = String::new();
        loop {
            line.clear();
            let length =
                reader.read_line(&mut line).with_context(|| format!("cannot read the audit log `{path}`"))?;
            // The last line may be half written; it is read whole next time.
            if length == 0 || !line.ends_with('\n') {
                return Ok(tally);
            }
            self.position += u64::try_from(length).expect("a line is shorter than 2^64 bytes");
            if let Some(write) = parse(&line).with_context(|| format!("cannot parse a line of `{path}`"))? {
                *tally.entry(write).or_default() += 1;
            }
        }
    }
}

/// A line of the log, `None` if somebody else wrote.
fn parse(line: &str) -> anyhow::Result<Option<Write>> {
    let Entry { user_agent, verb, user, object_ref, response_status } = serde_json::from_str(line)?;
    let Some(actor) = Actor::of(&user_agent) else { return Ok(None) };
    let resource = match object_ref.subresource {
        Some(sub) => format!("{}/{sub}", object_ref.resource),
        None => object_ref.resource,
    };
    Ok(Some(Write { actor, resource, verb, code: response_status.code, account: user.username }))
}

/// The fields of a line that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    user_agent: String,
    verb: String,
    user: User,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
struct ObjectRef {
    #[serde(default)]
    resource: String,
    subresource: Option<String>,
}

#[derive(Default, Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use super::*;

    fn line(agent: &str, resource: &str, sub: Option<&str>, code: u16) -> String {
        let sub = sub.map(|sub| format!(r#","subresource":"{sub}""#)).unwrap_or_default();
        format!(
            r#"{{"verb":"patch","user":{{"username":"u"}},"userAgent":"{agent}","objectRef":{{"resource":"{resource}"{sub}}},"responseStatus":{{"code":{code}}}}}"#
        )
    }

    #[test]
    fn each_part_of_the_product_is_counted_by_resource_and_answer_and_nobody_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let lines = [
            line("machine-api-operator/0.1.0", "machines", Some("status"), 200),
            line("machine-api-operator/0.1.0", "machines", Some("status"), 200),
            line("machine-api-operator/0.1.0", "machines", Some("status"), 409),
            line("machine-api-simulated-cloud/0.1.0", "nodes", None, 201),
            line("kube-controller-manager/v1", "nodes", None, 200),
        ];
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let tally = AuditLog::new(path).take().unwrap();
        let seen: Vec<_> = tally.iter().map(|(w, n)| (w.actor, w.resource.as_str(), w.code, *n)).collect();
        assert_eq!(
            seen,
            [
                (Actor::Operator, "machines/status", 200, 2),
                (Actor::Operator, "machines/status", 409, 1),
                (Actor::SimulatedCloud, "nodes", 201, 1),
            ]
        );
        assert_eq!(total(&tally, Actor::Operator), 3);
        assert_eq!(tally.keys().filter(|write| !write.is_accepted()).count(), 1);
    }

    #[test]
    fn a_line_that_is_half_written_is_counted_once_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let text = line("machine-api-operator/0.1.0", "machines", None, 201);
        let (begin, end) = text.split_at(20);
        std::fs::write(&path, format!("{text}\n{begin}")).unwrap();
        let mut log = AuditLog::new(path.clone());
        assert_eq!(total(&log.take().unwrap(), Actor::Operator), 1);
        assert_eq!(total(&log.take().unwrap(), Actor::Operator), 0);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        writeln!(file, "{end}").unwrap();
        assert_eq!(total(&log.take().unwrap(), Actor::Operator), 1);
    }
}
