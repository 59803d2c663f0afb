use super::*;

#[test]
fn a_second_holder_is_refused_and_told_who_works() {
    let place = tempfile::tempdir().expect("a directory");
    let held = StateDir::lock(&place.path().join("state")).expect("free");
    let error = StateDir::lock(held.path()).expect_err("held");
    assert!(matches!(error, LockError::LockedBy { pid: Some(pid), .. } if pid == std::process::id()));
    assert!(error.to_string().contains("is working in"), "{error}");
    let path = held.path().to_owned();
    assert!(StateDir::is_held(&path));
    drop(held);
    assert!(!StateDir::is_held(&path) && !StateDir::is_held(place.path()));
    assert!(path.join(LOCK_FILE).exists(), "the file is never unlinked");
    StateDir::lock(&path).expect("free again");
}

#[test]
fn a_directory_that_is_made_is_its_owner_s_alone() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("deep/state");
    drop(StateDir::lock(&path).expect("free"));
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let lock = path.join(LOCK_FILE);
    assert_eq!((mode(&path), mode(&lock)), (0o700, 0o600));
    std::fs::set_permissions(&lock, Permissions::from_mode(0o644)).expect("as it once was");
    drop(StateDir::lock(&path).expect("free"));
    assert_eq!(mode(&lock), 0o600);
}

fn unsafe_of(path: &Path) -> String {
    let looked = StateDir::look(path).expect_err("refused").to_string();
    let error = StateDir::lock(path).expect_err("refused");
    assert!(matches!(error, LockError::Unsafe { .. }), "{error:?}");
    assert_eq!(error.to_string(), looked, "a look says what a start says");
    looked
}

#[test]
fn a_directory_that_others_may_write_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path();
    for (mode, is_safe) in [
        (0o700, true),
        (0o755, true),
        (0o770, false),
        (0o757, false),
        (0o1777, false),
    ] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
        match is_safe {
            true => drop(StateDir::lock(path).expect("safe")),
            false => assert!(
                unsafe_of(path).ends_with("can be written by other users"),
                "{mode:o}"
            ),
        }
    }
}

#[test]
fn a_directory_below_one_that_others_may_write_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let (above, path) = (place.path(), place.path().join("windrow"));
    std::fs::create_dir_all(&path).expect("made");
    for (mode, is_safe) in [(0o755, true), (0o777, false), (0o1777, true)] {
        std::fs::set_permissions(above, Permissions::from_mode(mode)).expect("ours");
        match is_safe {
            true => drop(StateDir::lock(&path).expect("safe")),
            false => assert!(
                unsafe_of(&path).contains("replace the directories below it"),
                "{mode:o}"
            ),
        }
    }
}

#[test]
fn a_directory_of_another_user_is_refused() {
    if !geteuid().is_root() {
        // Nobody else can give a directory away.
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::chown(place.path(), Some(1234), None).expect("given away");
    assert!(unsafe_of(place.path()).contains("belongs to another user"));
}

#[test]
fn a_link_in_the_place_of_what_is_kept_there_is_not_followed() {
    for name in OWN {
        let place = tempfile::tempdir().expect("a directory");
        let elsewhere = place.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, place.path().join(name)).expect("planted");
        let told = unsafe_of(place.path());
        assert!(
            told.contains(name) && told.contains("is a symbolic link"),
            "{told}"
        );
        assert!(!elsewhere.exists(), "nothing was made through it");
    }
}

#[test]
fn a_file_in_the_way_is_no_directory() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("state");
    std::fs::write(&path, "x").expect("written");
    for path in [path.clone(), path.join("below")] {
        let error = StateDir::lock(&path).expect_err("a file");
        assert!(matches!(error, LockError::NotADirectory { .. }), "{error:?}");
    }
}

#[test]
fn a_command_line_is_kept_without_its_secrets() {
    let shown = |line: &str| shown(&line.split('|').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(
        shown("windrow|run|--header|authorization: Bearer s3|--header=x-key: s3|--url|https://h/p?key=s3"),
        "windrow run --header authorization --header=x-key --url https://h/p"
    );
    assert_eq!(
        shown("windrow|run|--header|s3|--total|3"),
        "windrow run --header … --total 3"
    );
    assert_eq!(
        shown("windrow|run|--total|3|--|./worker|--token|s3"),
        "windrow run --total 3 -- …"
    );
}

#[test]
fn what_the_system_refuses_is_named() {
    let path = Path::new("/here");
    let denied = refuse(path, io::Error::from(io::ErrorKind::PermissionDenied));
    assert!(
        denied.to_string().contains("nothing can be written to /here"),
        "{denied}"
    );
    let full = refuse(path, io::Error::from(io::ErrorKind::StorageFull));
    assert!(matches!(full, LockError::Io { .. }));
}

#[test]
fn a_child_process_does_not_inherit_the_lock() {
    let place = tempfile::tempdir().expect("a directory");
    let held = StateDir::lock(place.path()).expect("free");
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("a child");
    drop(held);
    let again = StateDir::lock(place.path());
    child.kill().expect("our own child");
    child.wait().expect("ended");
    again.expect("only this process held it");
}
