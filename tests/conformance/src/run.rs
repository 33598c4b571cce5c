//! Does the cases, several at once, each in a namespace of its own. Never here: what is compared.

use std::{
    collections::HashMap,
    process::ExitCode,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, bail};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::{
    case::{Case, Step},
    kubectl, load,
    load::{Driver, Loaded},
    python,
    report::{Done, Outcome, Report},
    request::{self, Answer},
    target::{Server, Target},
    watch::Watch,
    webhook::Webhook,
    words::Words,
};

/// Most of a case is waiting for the server; more at once only makes each of them slower.
const LANES: usize = 8;

/// How long the server may take to come to what it promises: loops that look every few seconds need that often.
const PATIENCE: Duration = Duration::from_secs(40);

/// How long to leave the server alone between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// A case of many steps, each with patience.
const DEADLINE: Duration = Duration::from_secs(90);

/// Runs the whole suite, or the cases whose titles contain one of the arguments, and prints what came of it.
pub fn main(server: Server) -> ExitCode {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = runtime.context("cannot start the runtime").and_then(|runtime| {
        runtime.block_on(async {
            let target = Target::start(server).await?;
            run(&target, &wanted).await
        })
    });
    match result {
        Ok(report) => {
            report.print();
            if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            println!("{}: cannot run the suite: {error:#}", server.name());
            ExitCode::FAILURE
        }
    }
}

async fn run(target: &Target, wanted: &[String]) -> anyhow::Result<Report> {
    let began = Instant::now();
    let suite = Suite::prepare(target).await?;
    let mut cases = load::cases()?;
    let is_wanted =
        |title: &str| wanted.is_empty() || wanted.iter().any(|part| title.contains(part.as_str()));
    cases.retain(|case| is_wanted(&case.title));
    let mut left_out = Vec::new();
    if !kubectl::is_installed().await {
        let before = cases.len();
        cases.retain(|case| case.driver() != Driver::Kubectl);
        left_out.push(format!("{} cases with kubectl, which is not on the PATH", before - cases.len()));
    }
    let has_python = python::is_installed().await;
    if !has_python {
        left_out
            .push("the cases with the Python client: there is no python3 with venv on the PATH".to_owned());
    }
    let by_python = async {
        if !(has_python && is_wanted("python: ")) {
            return Vec::new();
        }
        python::run(target).await.unwrap_or_else(|error| {
            let outcome = Outcome::Fails(format!("  {error:#}"));
            vec![Done {
                title: "python: all cases".into(),
                driver: Driver::Python,
                outcome,
                took: Duration::ZERO,
            }]
        })
    };
    let by_us = futures::stream::iter(cases.into_iter().enumerate())
        .map(async |(number, case)| (number, suite.done(number, case).await))
        .buffer_unordered(LANES)
        .collect::<Vec<(usize, Done)>>();
    let (mut done, more) = tokio::join!(by_us, by_python);
    done.sort_by_key(|(number, _)| *number);
    let done = done.into_iter().map(|(_, done)| done).chain(more).collect();
    if std::env::var_os("CI").is_some() && !left_out.is_empty() {
        bail!("left out: {}", left_out.join("; "));
    }
    Ok(Report { server: target.server, done, left_out, is_whole: wanted.is_empty(), took: began.elapsed() })
}

/// What all cases share.
struct Suite<'a> {
    target: &'a Target,
    webhook: Webhook,
    directory: TempDir,
    /// Makes names differ from those of another run on the same server.
    run: String,
}

/// What a case has going.
struct Scene<'a> {
    suite: &'a Suite<'a>,
    words: Words,
    watches: HashMap<String, Watch>,
    commands: HashMap<String, kubectl::Running>,
    /// The last thing asked and what came of it, for the story of a failure.
    last: String,
}

impl<'a> Suite<'a> {
    async fn prepare(target: &'a Target) -> anyhow::Result<Suite<'a>> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        Ok(Suite {
            target,
            webhook: Webhook::start().await?,
            directory: tempfile::Builder::new().prefix("conformance-").tempdir()?,
            run: format!("{:x}", now.as_millis() & 0xff_ffff),
        })
    }

    async fn done(&self, number: usize, loaded: Loaded) -> Done {
        let (began, driver) = (Instant::now(), loaded.driver());
        let Loaded { title, mut words, case } = loaded;
        let id = format!("case-{number}-{}", self.run);
        words.set("id", id.as_str());
        words.set("webhook", self.webhook.url.as_str());
        words.set("dead_webhook", self.webhook.dead_url.as_str());
        words.set("webhook_ca", self.webhook.ca_bundle.as_str());
        if case.namespace {
            words.set("ns", id);
        }
        let mut scene = Scene {
            suite: self,
            words,
            watches: HashMap::new(),
            commands: HashMap::new(),
            last: String::new(),
        };
        let story = match timeout(DEADLINE, scene.play(&case)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("{error:#}")),
            Err(_) => {
                Some(format!("  it is not done after {} s; the last was {}", DEADLINE.as_secs(), scene.last))
            }
        };
        let outcome = Outcome::of(self.target.server, story, case.differs);
        Done { title, driver, outcome, took: began.elapsed() }
    }
}

impl Scene<'_> {
    async fn play(&mut self, case: &Case) -> anyhow::Result<()> {
        if case.namespace {
            self.make_namespace(case.pods).await.context("  cannot make the namespace of the case")?;
        }
        for (number, step) in case.steps.iter().enumerate() {
            let place = format!("  step {} of {}", number + 1, case.steps.len());
            let differences = self.step(step).await.with_context(|| place.clone())?;
            if !differences.is_empty() {
                bail!("{place}: {}\n    {}", self.last, differences.join("\n    "));
            }
        }
        Ok(())
    }

    /// The account is what pods are refused without; the loop that makes it may lag.
    async fn make_namespace(&mut self, pods: bool) -> anyhow::Result<()> {
        let name = json!("${ns}");
        let mut steps = vec![(
            "/api/v1/namespaces".to_owned(),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        )];
        if pods {
            steps.push((
                "/api/v1/namespaces/${ns}/serviceaccounts".to_owned(),
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}),
            ));
        }
        for (path, body) in steps {
            let step = Step {
                post: Some(path),
                body: Some(body),
                answer: Some(Value::Object(Default::default())),
                ..Step::default()
            };
            let call = request::call(&step, &self.words)?.context("a step that posts is a request")?;
            let answer = Answer::read(call.send(&self.suite.target.client).await?).await?;
            let is_there = answer.body["reason"] == "AlreadyExists";
            let differences = answer.check(&step, &mut self.words)?;
            if !(differences.is_empty() || is_there) {
                bail!("{answer}");
            }
        }
        Ok(())
    }

    /// Does a step, again and again if it says so, and returns what differs from what it expects.
    async fn step(&mut self, step: &Step) -> anyhow::Result<Vec<String>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let differences = self.once(step).await?;
            if differences.is_empty() || !step.eventually || Instant::now() > deadline {
                return Ok(differences);
            }
            sleep(PAUSE).await;
        }
    }

    async fn once(&mut self, step: &Step) -> anyhow::Result<Vec<String>> {
        if let Some(name) = &step.events {
            self.last = format!("events of `{name}`");
            let watch = self.watches.get_mut(name).with_context(|| format!("no watch is called `{name}`"))?;
            return watch.next(&step.are, step.in_any_order, &mut self.words).await;
        }
        if let Some(name) = &step.ended {
            self.last = format!("the end of `{name}`");
            let watch = self.watches.get_mut(name).with_context(|| format!("no watch is called `{name}`"))?;
            return Ok(watch.end().await);
        }
        if let Some(name) = &step.lines {
            self.last = format!("lines of `{name}`");
            let wanted = self.words.value(step.prints.as_ref().context("`lines` come with `prints`")?)?;
            let command =
                self.commands.get_mut(name).with_context(|| format!("nothing is called `{name}`"))?;
            return command.next(&wanted).await;
        }
        if let Some(arguments) = &step.kubectl {
            return self.kubectl(arguments, step).await;
        }
        self.request(step).await
    }

    async fn request(&mut self, step: &Step) -> anyhow::Result<Vec<String>> {
        let call = request::call(step, &self.words)?.context("it says nothing to do")?;
        self.last = call.to_string();
        let response = call.send(&self.suite.target.client).await?;
        if step.watch.is_some() && step.refused.is_none() && response.status().is_success() {
            let name = step.name.clone().unwrap_or_else(|| "w".to_owned());
            self.watches.insert(name, Watch::new(response));
            return Ok(Vec::new());
        }
        let answer = Answer::read(response).await?;
        self.last = format!("{call}\n    answered {answer}");
        answer.check(step, &mut self.words)
    }

    async fn kubectl(&mut self, arguments: &str, step: &Step) -> anyhow::Result<Vec<String>> {
        let paths = (self.suite.target.kubeconfig.as_path(), self.suite.directory.path());
        let command = kubectl::command(arguments, step, &self.words, paths)?;
        self.last = format!("kubectl {}", self.words.text(arguments)?);
        if let Some(name) = &step.name {
            self.commands.insert(name.clone(), kubectl::Running::start(command)?);
            return Ok(Vec::new());
        }
        let stdin = step.stdin.as_ref().map(|text| self.words.text(text)).transpose()?;
        let output = kubectl::run(command, stdin).await?;
        self.last = format!("{}\n    came to {output}", self.last);
        output.check(step, &mut self.words)
    }
}
