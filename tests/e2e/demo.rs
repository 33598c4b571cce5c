//! The demo, as a user runs it: the whole product in one process, on the embedded control plane.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use e2e::{Heard, Signal, Talk, binary};
use tempfile::TempDir;

/// A demo in a folder of its own, where everything is that it leaves on the disk.
struct Demo {
    talk: Talk,
    temporary: TempDir,
}

impl Demo {
    #[track_caller]
    fn start(arguments: &[&str]) -> Demo {
        let temporary = tempfile::tempdir().expect("a folder can be made");
        let mut command = Command::new(binary().expect("the product is built"));
        command.arg("demo").args(arguments).env("TMPDIR", temporary.path()).env_remove("RUST_LOG");
        Demo { talk: Talk::start(&mut command), temporary }
    }

    /// Waits for what is printed for a second terminal: the kubeconfig, and the commands.
    async fn commands(&mut self) -> (PathBuf, Vec<String>) {
        let export = self.talk.line("`export KUBECONFIG=`", |line| line.contains("export KUBECONFIG=")).await;
        let kubeconfig = PathBuf::from(export.split_once('=').expect("it was just found").1);
        let mut commands = vec![];
        for _ in 0..3 {
            let line = self.talk.line("a kubectl command", |line| line.contains("kubectl")).await;
            commands.push(line.trim().to_owned());
        }
        (kubeconfig, commands)
    }

    async fn all_run(&mut self) {
        self.talk.line("the line that says that all run", |line| line.contains("6 of 6 machines run")).await;
    }

    /// Waits for its end; it must have left nothing on the disk. Returns its exit code and what it said.
    async fn end(self) -> (Option<i32>, Heard) {
        let (status, heard) = self.talk.end().await;
        let left: Vec<_> = fs::read_dir(self.temporary.path()).expect("the folder is there").collect();
        assert!(left.is_empty(), "{left:?}");
        (status.code(), heard)
    }
}

/// A command as a user types it into a second terminal.
fn shell(kubeconfig: &Path, line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("KUBECONFIG", kubeconfig);
    command
}

#[track_caller]
fn says(lines: &[String], word: &str) {
    assert!(lines.iter().any(|line| line.contains(word)), "no `{word}` in {lines:#?}");
}

#[tokio::test]
async fn a_demo_that_waits_ends_well_once_every_machine_runs_and_tells_of_each_step() {
    let demo = Demo::start(&["--machines=3", "--until-running"]);
    let (code, heard) = demo.end().await;
    assert_eq!(code, Some(0), "{heard:#?}");
    for step in ["New → Provisioning", "Provisioning → Provisioned", "Provisioned → Running"] {
        let count = heard.stdout.iter().filter(|line| line.ends_with(step)).count();
        assert_eq!(count, 3, "{step} in {heard:#?}");
    }
    says(&heard.stdout, "3 of 3 machines run, after ");
}

#[tokio::test]
async fn many_machines_are_counted_and_not_told_one_by_one() {
    let demo = Demo::start(&["--machines=60", "--profile=instant", "--until-running"]);
    let (code, heard) = demo.end().await;
    assert_eq!(code, Some(0), "{heard:#?}");
    says(&heard.stdout, "of 60 machines run");
    assert!(!heard.stdout.iter().any(|line| line.contains("→")), "{heard:#?}");
}

#[tokio::test]
async fn a_demo_whose_time_is_up_ends_badly_and_says_who_waits_for_what() {
    let demo = Demo::start(&["--until-running", "--timeout=20s", "--profile=instant", "--fail=CreateError"]);
    let (code, heard) = demo.end().await;
    assert_eq!(code, Some(1), "{heard:#?}");
    says(&heard.stderr, "error: 5 of 6 machines run after 20.0 s");
    says(&heard.stderr, "waits for an instance: ");
    assert!(heard.stderr.iter().filter(|line| line.contains("waits for")).count() == 1, "{heard:#?}");
}

#[tokio::test]
async fn what_is_printed_for_a_second_terminal_works_and_an_interrupt_leaves_nothing() {
    let mut demo = Demo::start(&[]);
    let (kubeconfig, commands) = demo.commands().await;
    demo.all_run().await;
    assert!(kubeconfig.starts_with(demo.temporary.path()), "{}", kubeconfig.display());

    let [get, scale, delete] = commands.try_into().unwrap();
    let mut watch = Talk::start(&mut shell(&kubeconfig, &get));
    watch.line("the table of machines", |line| line.contains("Running")).await;
    let (status, heard) = Talk::start(&mut shell(&kubeconfig, &scale)).end().await;
    assert!(status.success(), "{heard:#?}");
    watch.line("a new machine", |line| line.contains("Provisioning")).await;
    demo.talk.line("a new machine", |line| line.contains("sample-a") && line.ends_with("New")).await;
    let (status, heard) = Talk::start(&mut shell(&kubeconfig, &delete)).end().await;
    assert!(status.success(), "{heard:#?}");
    demo.talk.line("a machine that is gone", |line| line.ends_with("gone")).await;
    drop(watch);

    demo.talk.signal(Signal::Interrupt);
    let (code, heard) = demo.end().await;
    assert_eq!(code, Some(0), "{heard:#?}");
    says(&heard.stdout, "nothing is left");
    let (status, _) = Talk::start(&mut shell(&kubeconfig, "kubectl version")).end().await;
    assert!(!status.success(), "the API server still answers");
}

#[tokio::test]
async fn a_kubeconfig_goes_where_it_is_wanted_and_goes_away_with_the_demo() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a kubeconfig");
    let mut demo = Demo::start(&["--write-kubeconfig", file.to_str().unwrap()]);
    demo.all_run().await;
    let (status, heard) = Talk::start(&mut shell(&file, "kubectl get machinesets")).end().await;
    assert!(status.success(), "{heard:#?}");
    says(&heard.stdout, "sample-b");
    demo.talk.signal(Signal::Terminate);
    assert_eq!(demo.end().await.0, Some(0));
    assert!(!file.exists());
}

#[tokio::test]
async fn a_kubeconfig_that_is_there_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, "mine").unwrap();
    let demo = Demo::start(&["--write-kubeconfig", file.to_str().unwrap()]);
    let (code, heard) = demo.end().await;
    assert_eq!(code, Some(1));
    says(&heard.stderr, "exists already and is not overwritten");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[tokio::test]
async fn a_machine_that_falls_ill_is_replaced() {
    let demo = Demo::start(&["--profile=instant", "--fail=NodeNotReady", "--until-running"]);
    let (code, heard) = demo.end().await;
    assert_eq!(code, Some(0), "{heard:#?}");
    let fault = heard.stdout.iter().find(|line| line.contains("has the fault NodeNotReady")).unwrap();
    let name = fault.split_whitespace().nth(2).unwrap();
    says(&heard.stdout, &format!("{name}  Running → Deleting"));
    says(&heard.stdout, &format!("{name}  gone"));
}

#[tokio::test]
async fn a_machine_that_is_born_ill_is_replaced_too() {
    let demo = Demo::start(&["--profile=instant", "--fail=NeverJoin", "--until-running"]);
    let (code, heard) = demo.end().await;
    assert_eq!(code, Some(0), "{heard:#?}");
    let fault = heard.stdout.iter().find(|line| line.contains("has the fault NeverJoin")).unwrap();
    let name = fault.split_whitespace().nth(2).unwrap();
    says(&heard.stdout, &format!("{name}  gone"));
}

#[tokio::test]
async fn an_unknown_fault_is_refused_with_those_there_are() {
    let (code, heard) = Demo::start(&["--fail=Fire"]).end().await;
    assert_eq!(code, Some(2));
    says(&heard.stderr, "NodeNotReady, NodeUnknown");
}
