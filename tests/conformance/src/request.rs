//! Requests as the cases give them, and what is checked of the answers. Never here: streams of events.

use anyhow::{Context as _, bail, ensure};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use serde_json::{Map, Value, json};

use crate::{
    case::Step,
    expect::{Expect, shortened},
    words::Words,
};

/// A request whose words are replaced.
#[derive(Debug)]
pub(crate) struct Call {
    pub method: Method,
    pub path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    status: u16,
    headers: HeaderMap,
    pub body: Value,
}

/// The request of a step, if it is one.
pub(crate) fn call(step: &Step, words: &Words) -> anyhow::Result<Option<Call>> {
    let methods = [
        (Method::GET, &step.get),
        (Method::GET, &step.watch),
        (Method::POST, &step.post),
        (Method::PUT, &step.put),
        (Method::PATCH, &step.patch),
        (Method::DELETE, &step.delete),
    ];
    let (method, path) = match (
        methods.into_iter().find_map(|(method, path)| Some((method, path.as_ref()?))),
        &step.request,
    ) {
        (Some((method, path)), None) => (method, path.as_str()),
        (None, Some(line)) => {
            let (method, path) = line.split_once(' ').context("`request` is a method and a path")?;
            (method.parse()?, path)
        }
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => bail!("a step has one request"),
    };
    let mut path = words.text(path)?;
    let mut query = match step.query.as_ref().map(|query| words.value(query)).transpose()? {
        None => Map::new(),
        Some(Value::Object(query)) => query,
        Some(other) => bail!("a query is a map, not {other}"),
    };
    if step.watch.is_some() {
        query.insert("watch".into(), true.into());
    }
    for (key, value) in query {
        let value = match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        path.push(if path.contains('?') { '&' } else { '?' });
        path.push_str(&format!("{}={}", encoded(&key), encoded(&value)));
    }
    let body = match &step.body {
        None => Vec::new(),
        Some(Value::String(text)) if !text.starts_with("${") => words.text(text)?.into_bytes(),
        Some(value) => words.value(value)?.to_string().into_bytes(),
    };
    let mut headers = Vec::new();
    let sort = step.patch_type.as_ref().map(|sort| words.text(sort)).transpose()?;
    if !body.is_empty() && !step.headers.contains_key("content-type") {
        headers.push(("content-type".to_owned(), content_type(sort.as_deref())?.to_owned()));
    }
    for (name, value) in &step.headers {
        headers.push((name.clone(), words.text(value)?));
    }
    Ok(Some(Call { method, path, headers, body }))
}

fn content_type(patch_type: Option<&str>) -> anyhow::Result<&'static str> {
    Ok(match patch_type {
        None => "application/json",
        Some("json") => "application/json-patch+json",
        Some("merge") => "application/merge-patch+json",
        Some("strategic") => "application/strategic-merge-patch+json",
        Some("apply") => "application/apply-patch+yaml",
        Some(other) => bail!("there is no sort of patch called `{other}`"),
    })
}

fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

impl Call {
    /// Sends it and returns the head of the answer.
    pub(crate) async fn send(&self, client: &Client) -> anyhow::Result<Response<Body>> {
        let mut request = Request::builder().method(self.method.clone()).uri(&self.path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(self.body.clone()))?;
        client.send(request).await.with_context(|| format!("no answer to {self}"))
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        if self.body.is_empty() {
            Ok(())
        } else {
            write!(f, " {}", shortened(&String::from_utf8_lossy(&self.body)))
        }
    }
}

impl Answer {
    /// Reads the rest of an answer.
    pub(crate) async fn read(response: Response<Body>) -> anyhow::Result<Answer> {
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.context("the answer broke off")?.to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }

    /// The differences from what the step expects. Saves what it names if there are none.
    pub(crate) fn check(&self, step: &Step, words: &mut Words) -> anyhow::Result<Vec<String>> {
        let (status, refusal) = wanted_status(step)?;
        let mut wanted = Vec::new();
        if let Some(refusal) = refusal {
            wanted.push(words.value(&refusal)?);
        }
        if let Some(answer) = &step.answer {
            wanted.push(words.value(answer)?);
        }
        let headers = words.value(&json!(step.answers_with))?;
        let warnings = step.warnings.as_ref().map(|texts| words.value(&json!(texts))).transpose()?;
        let mut expect = Expect::new(words);
        if self.status != status {
            expect.differences.push(format!("status: wanted {status}, got {}", self.status));
        }
        for wanted in &wanted {
            expect.part("", wanted, Some(&self.body));
        }
        if let Some(warnings) = warnings {
            expect.part("warnings", &warnings, Some(&self.warnings()));
        }
        for (name, wanted) in headers.as_object().into_iter().flatten() {
            let got = self.headers.get(name).and_then(|value| value.to_str().ok()).map(Value::from);
            expect.part(&format!("header {name}"), wanted, got.as_ref());
        }
        let differences = expect.differences;
        if differences.is_empty() {
            self.save(step.save.as_ref(), words)?;
        }
        Ok(differences)
    }

    fn save(&self, save: Option<&Value>, words: &mut Words) -> anyhow::Result<()> {
        match save {
            None => {}
            Some(Value::String(name)) => words.set(name, self.body.clone()),
            Some(Value::Object(paths)) => {
                for (name, path) in paths {
                    let path = path.as_str().context("`save` maps names to paths")?;
                    let pointer = format!("/{}", path.replace('.', "/"));
                    let value = self.body.pointer(&pointer);
                    words.set(
                        name,
                        value.with_context(|| format!("the answer has no `{path}` to save"))?.clone(),
                    );
                }
            }
            Some(other) => bail!("`save` is a name or a map of names to paths, not {other}"),
        }
        Ok(())
    }

    /// Texts of the warnings, without code and agent.
    fn warnings(&self) -> Value {
        let texts = self.headers.get_all("warning").iter().map(|value| {
            let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
            let quoted = text.splitn(3, ' ').nth(2).unwrap_or(&text).to_owned();
            serde_json::from_str::<String>(&quoted).unwrap_or(quoted)
        });
        texts.map(Value::from).collect()
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status, shortened(&self.body.to_string()))
    }
}

/// The status code, and of a refusal what its `Status` is to hold.
fn wanted_status(step: &Step) -> anyhow::Result<(u16, Option<Value>)> {
    let usual = if step.post.is_some() { 201 } else { 200 };
    let Some(refused) = &step.refused else {
        ensure!(step.message.is_none() && step.details.is_none(), "`message` and `details` are of a refusal");
        return Ok((step.status.unwrap_or(usual), None));
    };
    let (code, reason) = refused.split_once(' ').unwrap_or((refused, ""));
    let code: u16 = code.parse().context("`refused` begins with a status code")?;
    let mut status = Map::new();
    status.insert("kind".into(), "Status".into());
    status.insert("apiVersion".into(), "v1".into());
    status.insert("status".into(), "Failure".into());
    status.insert("code".into(), code.into());
    status.insert("reason".into(), if reason.is_empty() { "<absent>".into() } else { reason.into() });
    if let Some(message) = &step.message {
        status.insert("message".into(), message.trim_end().into());
    }
    if let Some(details) = &step.details {
        status.insert("details".into(), details.clone());
    }
    Ok((code, Some(Value::Object(status))))
}
