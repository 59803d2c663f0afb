//! What the program says of itself.

use super::support::{Place, repository};

#[test]
fn the_version_says_package_commit_and_target() {
    let place = Place::new();
    let told = place.windrow(&["version"]).expect(0).stdout;
    assert_eq!(place.windrow(&["--version"]).expect(0).stdout, told);
    let rest = told.strip_prefix(concat!("windrow ", env!("CARGO_PKG_VERSION"), " ("));
    let rest = rest.and_then(|rest| rest.strip_suffix(")\n"));
    let (commit, target) = rest.and_then(|rest| rest.split_once(", ")).expect(&told);
    assert!(target.starts_with(std::env::consts::ARCH), "{told}");
    let has_date = |words: &str| {
        words.split_once(' ').is_some_and(|(hash, date)| {
            hash.len() >= 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()) && date.split('-').count() == 3
        })
    };
    let is_debug = cfg!(debug_assertions) && commit == "debug build";
    assert!(is_debug || commit == "unknown" || has_date(commit), "{told}");
}

#[test]
fn every_command_has_a_man_page() {
    let place = Place::new();
    let folder = place.path("man");
    std::fs::create_dir(&folder).unwrap();
    place.windrow(&["man", folder.to_str().unwrap()]).expect(0);
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    assert!(page("windrow-run.1").contains("rate"), "flags are on the page");
    assert!(page("windrow-task-redrive.1").starts_with(".ie"));
    let pages = std::fs::read_dir(&folder).unwrap().count();
    assert!(pages > 80, "{pages} pages");
    place.windrow(&["man", "/nowhere"]).expect(1);
}

#[test]
fn every_exit_code_is_explained() {
    let done = Place::new().windrow(&["help", "exit-codes"]).expect(0);
    for code in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 70, 78, 130] {
        let starts = |line: &str| line.trim_start().starts_with(&format!("{code}  "));
        assert!(
            done.stdout.lines().any(starts),
            "{code} is not in\n{}",
            done.stdout
        );
    }
}

#[test]
fn the_rate_that_a_task_has_without_one_is_told() {
    let help = |words: &[&str]| {
        let done = Place::new().windrow(words).expect(0).stdout;
        done.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let told = "else of the node's configuration, else 100/s";
    let of_task = help(&["task", "create", "--help"]);
    assert!(of_task.contains(told), "{of_task}");
    assert!(
        !help(&["run", "--help"]).contains(told),
        "a run is unpaced without it"
    );
}

#[test]
fn help_of_run_has_examples() {
    let done = Place::new().windrow(&["run", "--help"]).expect(0);
    assert!(
        done.stdout
            .contains("windrow run --csv users.csv --rate 500/s -- "),
        "{}",
        done.stdout
    );
    for status in ["410 stops the job", "other 4xx (also 404)"] {
        assert!(done.stdout.contains(status), "{status}: {}", done.stdout);
    }
    assert!(
        Place::new()
            .windrow(&["help", "run"])
            .expect(0)
            .stdout
            .contains("Examples:")
    );
}

#[test]
fn completions_are_those_of_the_shell() {
    let done = Place::new().windrow(&["completions", "bash"]).expect(0);
    assert!(
        done.stdout.contains("complete ") && done.stdout.contains("WINDROW_COMPLETE="),
        "{}",
        done.stdout
    );
}

#[test]
fn completions_that_nobody_reads_to_the_end_are_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let program = env!("CARGO_BIN_EXE_windrow");
    let done = std::process::Command::new(program)
        .args(["completions", "bash"])
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!(
        (done.status.code(), String::from_utf8_lossy(&done.stderr).as_ref()),
        (Some(0), "")
    );
}

#[test]
fn a_mistyped_topic_is_told_with_the_one_that_is_meant() {
    Place::new()
        .windrow(&["help", "runn"])
        .refused(2, &["did you mean windrow help run?"]);
}

#[test]
fn the_default_configuration_is_the_documented_one_and_sound() {
    let place = Place::new();
    let done = place.windrow(&["config", "default"]).expect(0);
    assert_eq!(
        done.stdout.trim_end(),
        std::fs::read_to_string(repository("config.toml"))
            .unwrap()
            .trim_end()
    );
    place.write("config.toml", &done.stdout);
    place.windrow(&["config", "check", "config.toml"]).expect(0);
    let shown = place
        .windrow_with(&["config", "show"], "", &[("WINDROW_TASK_DEFAULTS__RATE", "7/s")])
        .expect(0);
    assert!(
        shown.stdout.contains("\ntask_defaults.rate = \"7/s\"\n"),
        "{}",
        shown.stdout
    );
    // What is shown is a configuration itself.
    place.write("shown.toml", &shown.stdout);
    let again = place.windrow(&["config", "show", "shown.toml"]).expect(0);
    assert_eq!(again.stdout, shown.stdout);
    place
        .windrow(&["config", "check", "--config", "shown.toml"])
        .expect(0);
}

#[test]
fn help_of_serve_says_what_a_node_needs() {
    for words in [["serve", "--help"], ["help", "serve"]] {
        let text = Place::new().windrow(&words).expect(0).stdout;
        for word in [
            "node.data_dir",
            "http.listen",
            "auth.bootstrap_token_file",
            "SIGTERM",
            "SIGHUP",
            "/docs",
        ] {
            assert!(text.contains(word), "{words:?} doesn't say {word}:\n{text}");
        }
    }
}

#[test]
fn a_check_finds_what_a_start_would_refuse_and_says_what_a_node_needs() {
    let place = Place::new();
    place.write(
        "config.toml",
        "[node]\ndata_dir = \"data\"\n[http]\nlisten = \"127.0.0.1:7701\"\n",
    );
    let said = place
        .windrow(&["config", "check", "config.toml"])
        .expect(0)
        .stdout;
    for word in [
        "config.toml is valid",
        "127.0.0.1:7701 (http)",
        "data/key",
        "admin.token",
    ] {
        assert!(said.contains(word), "{word} is not in\n{said}");
    }
    place.write("config.toml", "[log]\nfilter = \"a=b=c\"\n");
    place
        .windrow(&["config", "check", "config.toml"])
        .refused(78, &["log.filter"]);
    place.windrow(&["serve"]).refused(78, &["log.filter"]);
    place.write("config.toml", "[dashboard]\nlocale = \"en\"\n");
    let removed = ["dashboard.locale", "removed in an earlier version"];
    place.windrow(&["serve"]).refused(78, &removed);
    place.write("config.toml", "[store]\nurl = \"postgres://db/windrow\"\n");
    place
        .windrow(&["config", "check", "config.toml"])
        .refused(78, &["auth.key_file"]);
}

/// The help of each command below these words, as wide as the terminal.
fn helps(words: &[&str], found: &mut Vec<(String, String, String)>) {
    let at = |columns| {
        let words = [words, &["--help"]].concat();
        Place::new()
            .windrow_with(&words, "", &[("COLUMNS", columns)])
            .expect(0)
            .stdout
    };
    let (narrow, wide) = (at("80"), at("1000"));
    let commands = wide.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next());
    for command in commands.filter(|command| *command != "help") {
        helps(&[words, &[command]].concat(), found);
    }
    found.push((words.join(" "), narrow, wide));
}

#[test]
fn help_is_80_columns_wide_where_nobody_says_how_wide() {
    for words in [["help", "run"], ["task", "--help"], ["serve", "--help"]] {
        let help = Place::new().windrow(&words).expect(0).stdout;
        let longest = help.lines().map(|line| line.chars().count()).max();
        assert!(
            longest.is_some_and(|cells| (70..=80).contains(&cells)),
            "{words:?}: {longest:?}"
        );
    }
}

#[test]
fn help_fits_80_columns_and_examples_keep_their_lines() {
    let mut found = Vec::new();
    helps(&[], &mut found);
    assert!(
        found.len() > 60 && found.iter().any(|(words, ..)| words == "task create"),
        "{}",
        found.len()
    );
    for topic in ["exit-codes", "templates"] {
        let text = Place::new().windrow(&["help", topic]).expect(0).stdout;
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "windrow help {topic}: {line}");
        }
    }
    for (words, narrow, wide) in found {
        for line in narrow.lines() {
            assert!(line.chars().count() <= 80, "windrow {words} --help: {line}");
        }
        let (_, examples) = wide.rsplit_once("\n\nExample").unwrap_or_default();
        for line in examples.lines().filter(|line| line.starts_with("  ")) {
            assert!(
                narrow.lines().any(|kept| kept == line),
                "windrow {words} --help breaks: {line}"
            );
        }
    }
}
