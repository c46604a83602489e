//! The real binary from outside: what it prints, and what its exit code says. What the libraries
//! decide is tested there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use core_workcoord::config::CoordinatorConfig;
use core_workcoord::coordinator::{Action, Coordinator, Input};
use core_workcoord::id::{ApiId, Endpoint, SessionId};
use core_workcoord::journal::{Header, Recorder};
use core_workcoord::moment::Moment;

fn tributary(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
    command.args(args).stdin(Stdio::null());
    command
}

#[track_caller]
fn run(args: &[&str]) -> Output {
    let output = tributary(args).output().expect("the binary starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(!complaint.contains("panicked"), "{args:?}: {complaint}");
    output
}

/// What a command that exits with `code` printed on standard output.
#[track_caller]
fn said(args: &[&str], code: i32) -> String {
    let output = run(args);
    let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}{complaint}");
    text
}

/// What a command that exits with 2 printed on standard error.
#[track_caller]
fn complaint(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).expect("the complaint is UTF-8")
}

/// A new folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
        _ => fs::create_dir_all(&folder).expect("the folder can be made"),
    }
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

#[test]
fn help_names_the_commands_and_the_exit_codes() {
    let help = said(&["--help"], 0);
    for word in
        ["import", "segments", "promqltest", "simulate", "replay", "completions", "Exit codes:"]
    {
        assert!(help.contains(word), "{word} is missing in {help}");
    }
    assert!(help.contains("a promise was broken"), "{help}");
    assert!(said(&["simulate", "--help"], 0).contains("--seeds"));
    assert!(said(&["replay", "--help"], 0).contains("Exit codes:"));
}

#[test]
fn version_is_the_packages() {
    assert_eq!(said(&["--version"], 0), format!("tributary {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = said(&["completions", shell], 0);
        for command in ["import", "segments", "promqltest", "simulate", "replay", "completions"] {
            assert!(script.contains(command), "{command} is missing for {shell}");
        }
    }
}

#[test]
fn nonsense_exits_with_2_and_says_why() {
    assert!(complaint(&[]).contains("Usage:"));
    assert!(complaint(&["fly"]).contains("fly"));
    assert!(complaint(&["completions", "tcsh"]).contains("tcsh"));
    assert!(complaint(&["replay"]).contains("FILE"));
    assert!(complaint(&["simulate", "--seeds", "0"]).contains("--seeds"));
    assert!(complaint(&["simulate", "--seeds", "many"]).contains("many"));
    assert!(complaint(&["simulate", "--threads", "0"]).contains("--threads"));
    let last = u64::MAX.to_string();
    assert!(complaint(&["simulate", "--seeds", "2", "--from", &last]).contains("seed"));
}

#[test]
fn a_few_seeds_keep_every_promise() {
    let table = said(&["simulate", "--seeds", "5", "--from", "1"], 0);
    for part in ["1 to 5", "simulated time", "faults", "reassigned", "seeds/s per core"] {
        assert!(table.contains(part), "{part} is missing in\n{table}");
    }
    let violations = table.lines().find(|line| line.starts_with("violations"));
    assert!(violations.is_some_and(|line| line.trim_end().ends_with(" 0")), "{table}");
}

#[test]
fn the_figures_do_not_depend_on_the_threads() {
    let figures = |threads: &str| {
        let table = said(&["simulate", "--seeds", "6", "--threads", threads], 0);
        let (figures, speed) = table.trim_end().rsplit_once('\n').expect("it ends with the speed");
        assert!(speed.contains("seeds/s"), "{speed}");
        String::from(figures)
    };
    assert_eq!(figures("1"), figures("3"));
}

#[test]
fn what_a_simulation_recorded_replays_to_the_same_decisions() {
    let folder = folder("simulate-journal");
    let told = said(&["simulate", "--seeds", "1", "--from", "2", "--journal", text(&folder)], 0);
    assert!(told.contains("journals of seed 2 are in"), "{told}");
    let files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder was made")
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    assert!(files.len() > 2, "several nodes have a journal each: {files:?}");
    for file in files {
        let told = said(&["replay", "--different", text(&file)], 0);
        assert!(told.contains("every decision as recorded"), "{told}");
    }
}

#[test]
fn journals_that_can_not_be_written_are_complained_about() {
    let file = folder("simulate-no-folder").join("taken");
    fs::write(&file, "").expect("the file can be written");
    let said = complaint(&["simulate", "--seeds", "1", "--journal", text(&file)]);
    assert!(said.contains("taken"), "{said}");
}

#[test]
fn replay_of_something_else_exits_with_2() {
    let folder = folder("replay-garbage");
    let missing = folder.join("missing.journal");
    assert!(complaint(&["replay", text(&missing)]).contains("missing.journal"));
    assert!(complaint(&["replay", text(&folder)]).contains("replay-garbage"));
    let garbage = folder.join("garbage.journal");
    for bytes in [&b""[..], b"hello", b"TRIBJRN\x01", b"TRIBJRN\x01\xff\xff\xff\xff\xff\xff\xff"] {
        fs::write(&garbage, bytes).expect("the file can be written");
        assert!(complaint(&["replay", text(&garbage)]).contains("garbage.journal"), "{bytes:?}");
    }
}

/// A coordinator that is told of a worker and lets the dial time out, `steps` inputs in all. A
/// mistaken record has one more dial in its last step.
fn journal(steps: u64, mistaken: bool) -> Vec<u8> {
    let config = CoordinatorConfig::default();
    let api_id = ApiId::new("api-0").expect("a fine name");
    let header = Header::Coordinator { config: config.clone(), api_id: api_id.clone(), seed: 7 };
    let mut coordinator = Coordinator::new(config, api_id, 7).expect("the defaults fit");
    let mut recorder = Recorder::new(&header);
    for step in 0..steps {
        let now = Moment::ZERO + Duration::from_secs(step * 10);
        let endpoint = Endpoint::new("worker-0:9001").expect("a fine name");
        let input = if step == 0 { Input::WorkerDiscovered { endpoint } } else { Input::Tick };
        coordinator.handle(now, input.clone());
        let mut actions: Vec<Action> = std::iter::from_fn(|| coordinator.poll_action()).collect();
        if mistaken && step + 1 == steps {
            actions.push(Action::Dial {
                session: SessionId(99),
                endpoint: Endpoint::new("elsewhere:1").expect("a fine name"),
            });
        }
        recorder.record::<Coordinator>(now, &input, &actions);
    }
    recorder.take()
}

#[test]
fn replay_tells_each_decision_and_finds_them_as_recorded() {
    let file = folder("replay-good").join("api-0.journal");
    fs::write(&file, journal(4, false)).expect("the file can be written");
    let told = said(&["replay", text(&file)], 0);
    assert!(told.contains("WorkerDiscovered") && told.contains("→ Dial"), "{told}");
    assert!(told.contains("4 steps, every decision as recorded"), "{told}");
    assert_eq!(said(&["replay", "--different", text(&file)], 0).lines().count(), 1);
}

#[test]
fn replay_exits_with_1_where_a_decision_differs() {
    let file = folder("replay-different").join("api-0.journal");
    fs::write(&file, journal(4, true)).expect("the file can be written");
    let told = said(&["replay", "--different", text(&file)], 1);
    assert!(told.contains("≠ Dial") && told.contains("elsewhere:1"), "{told}");
    assert!(told.contains("4 steps, 1 decided differently"), "{told}");
}

#[test]
fn a_journal_cut_short_is_replayed_up_to_there_and_a_damaged_one_refused() {
    let file = folder("replay-cut").join("api-0.journal");
    let mut bytes = journal(4, false);
    fs::write(&file, &bytes[..bytes.len() - 3]).expect("the file can be written");
    let told = said(&["replay", text(&file)], 0);
    assert!(told.contains("3 steps") && told.contains("cut short"), "{told}");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, &bytes).expect("the file can be written");
    assert!(complaint(&["replay", text(&file)]).contains("damaged"));
}

#[test]
fn a_reader_that_leaves_is_no_reason_to_panic() {
    let file = folder("replay-pipe").join("api-0.journal");
    // More than a pipe holds, so that the writer does meet the closed end.
    fs::write(&file, journal(2_000, true)).expect("the file can be written");
    let mut child = tributary(&["replay", text(&file)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the binary ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(1), "the verdict stands, whoever reads it");
}

const SCRIPT: &str = "\
load 1m
  m{n=\"1\"} 1 2 3
  h {{sum:1}}

eval instant at 2m sum(m)
  {} 3

eval instant at 2m h
";

#[test]
fn scripts_that_pass_end_with_the_figures() {
    let folder = folder("promqltest-passes");
    fs::write(folder.join("one.test"), SCRIPT).expect("the script can be written");
    fs::write(folder.join("notes.txt"), "no script").expect("the notes can be written");
    let told = said(&["promqltest", text(&folder)], 0);
    assert!(told.ends_with("\n1 passed, 0 failed, 1 skipped\n"), "{told}");
    assert!(told.contains("1 skipped: a selector reaches native histograms"), "{told}");
    assert!(!told.contains("notes"), "{told}");
}

#[test]
fn a_case_that_fails_and_a_script_that_is_none_are_told_with_their_lines() {
    let folder = folder("promqltest-fails");
    let (wrong, broken) = (folder.join("wrong.test"), folder.join("broken.test"));
    fs::write(&wrong, SCRIPT.replace("{} 3", "{} 4")).expect("the script can be written");
    fs::write(&broken, "clear\nfly\n").expect("the script can be written");
    let told = said(&["promqltest", "--seeds", "0", text(&wrong), text(&broken)], 1);
    for part in ["wrong.test:5\n", "{} 4.0", "{} 3.0", "broken.test:2\n", "invalid command \"fly\""]
    {
        assert!(told.contains(part), "{part} is missing in\n{told}");
    }
    assert!(told.ends_with("\n0 passed, 2 failed, 1 skipped\n"), "{told}");
}

#[test]
fn scripts_that_are_not_there_are_complained_about() {
    let folder = folder("promqltest-nothing");
    assert!(complaint(&["promqltest", text(&folder.join("none.test"))]).contains("none.test"));
    assert!(complaint(&["promqltest"]).contains("PATH"));
}
