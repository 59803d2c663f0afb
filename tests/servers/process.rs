//! One server process: started under a parent-death signal, told apart by its pid, ended with its handle.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take until it answers; the machines that run tests are noisy.
const START_LIMIT: Duration = Duration::from_secs(60);

/// How the names of directories begin.
const PREFIX: &str = "windrow-";
/// A disk in memory. Servers wait for their writes to be on the disk, which is most of a test's time, and keep them there
/// when they are killed: no test cuts the power.
const MEMORY: &str = "/dev/shm";
/// Room that it has to have, or the system's temporary directory is taken. Unit: bytes.
const MEMORY_MIN: u64 = 4 << 30;

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}

/// A temporary directory, in memory where there is room, whose name tells whose it is; removed with the value.
pub struct Dir {
    path: PathBuf,
    is_mounted: bool,
}

impl Dir {
    pub fn new(what: &str) -> Dir {
        let name = format!("{PREFIX}{what}-{}-{}", std::process::id(), free_port());
        let path = place().join(name);
        std::fs::create_dir_all(&path).expect("a directory for the server");
        Dir {
            path,
            is_mounted: false,
        }
    }

    /// One on a disk of its own of so many megabytes, which can be full; none where this process may not mount.
    pub fn small(what: &str, megabytes: u32) -> Option<Dir> {
        let mut dir = Dir::new(what);
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&dir.path)
            .output();
        dir.is_mounted = mounted.is_ok_and(|output| output.status.success());
        dir.is_mounted.then_some(dir)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has a disk of its own.
    pub fn is_small(&self) -> bool {
        self.is_mounted
    }

    /// Leaves no byte free on its disk.
    pub fn fill(&self) {
        assert!(self.is_mounted, "the system's own disk isn't filled");
        let mut ballast = File::create(self.path.join("ballast")).expect("a file");
        let zeros = vec![0; 1 << 16];
        while std::io::Write::write_all(&mut ballast, &zeros).is_ok() {}
    }

    /// Takes back what [`Dir::fill`] took.
    pub fn spare(&self) {
        if self.is_mounted && self.path.join("ballast").exists() {
            std::fs::remove_file(self.path.join("ballast")).expect("the ballast goes");
        }
    }
}

/// Where directories are made.
fn place() -> PathBuf {
    let room = rustix::fs::statvfs(MEMORY).map_or(0, |disk| disk.f_bavail * disk.f_frsize);
    if room < MEMORY_MIN {
        return std::env::temp_dir();
    }
    sweep();
    PathBuf::from(MEMORY)
}

/// Removes what tests left there that were killed, since it takes memory.
fn sweep() {
    for entry in std::fs::read_dir(MEMORY).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.rsplit('-').nth(1));
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // Somebody else may sweep too.
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        if self.is_mounted {
            // Lazily: a process that was killed a moment ago may still hold a file.
            let unmounted = Command::new("umount").arg("-l").arg(&self.path).status();
            assert!(
                unmounted.is_ok_and(|status| status.success()),
                "{} stays mounted",
                self.path.display()
            );
        }
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            eprintln!("{} stays: {error}", self.path.display());
        }
    }
}

/// A process that the kernel kills when the thread that started it ends.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts `command` (program and arguments), as another user where one is given, logging to `log`.
    pub fn start(user: Option<&str>, command: &[String], log: &Path) -> Process {
        let mut setpriv = Command::new("setpriv");
        setpriv.args(["--pdeathsig", "KILL"]);
        if let Some(user) = user {
            setpriv.args([
                format!("--reuid={user}"),
                format!("--regid={user}"),
                "--init-groups".to_owned(),
            ]);
        }
        let file = || {
            File::options()
                .create(true)
                .append(true)
                .open(log)
                .expect("the server's log")
        };
        let child = setpriv
            .arg("--")
            .args(command)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(file())
            .stderr(file())
            .spawn()
            .expect("setpriv of util-linux");
        Process { child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name, for instance `STOP`, to the process and to those that it made.
    pub fn signal(&self, name: &str) {
        let mut pids = descendants(self.pid());
        pids.insert(0, self.pid());
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .args(pids.iter().map(u32::to_string))
            .stderr(Stdio::null())
            .status();
        sent.expect("kill of procps");
    }

    /// Kills it at once, and waits until it is gone.
    pub fn kill(&mut self) {
        self.signal("CONT");
        self.signal("KILL");
        self.child.wait().expect("a child");
    }

    /// Ends it by a signal of its choice, and waits until it is gone.
    pub fn terminate(&mut self, name: &str) {
        self.signal("CONT");
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.pid().to_string()])
            .status();
        sent.expect("kill of procps");
        self.child.wait().expect("a child");
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_alive() {
            self.kill();
        }
    }
}

/// Children of children too, nearest first.
fn descendants(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let children: Vec<u32> = text
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let below: Vec<u32> = children.iter().flat_map(|child| descendants(*child)).collect();
    children.into_iter().chain(below).collect()
}

/// Runs a helper program to its end.
pub fn run(user: Option<&str>, command: &[String]) {
    let mut program = match user {
        Some(user) => {
            let mut setpriv = Command::new("setpriv");
            setpriv.args([
                format!("--reuid={user}"),
                format!("--regid={user}"),
                "--init-groups".to_owned(),
            ]);
            setpriv.arg("--").args(command);
            setpriv
        }
        None => {
            let mut program = Command::new(&command[0]);
            program.args(&command[1..]);
            program
        }
    };
    let output = program
        .current_dir("/")
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {text}{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Runs a client to its end and returns what it prints.
pub fn said(client: &mut Command) -> String {
    let output = client
        .output()
        .unwrap_or_else(|error| panic!("{client:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    assert!(
        output.status.success(),
        "{client:?}: {text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Whether a client succeeds and prints this.
pub fn is_said(client: &mut Command, text: &str) -> bool {
    let output = client
        .output()
        .unwrap_or_else(|error| panic!("{client:?}: {error}"));
    output.status.success() && String::from_utf8_lossy(&output.stdout).contains(text)
}

/// Whether a client succeeds; what it prints is nobody's business.
pub fn is_done(client: &mut Command) -> bool {
    let status = client.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status
        .unwrap_or_else(|error| panic!("{client:?}: {error}"))
        .success()
}

/// Waits until something accepts connections on a port and `is_ready` agrees.
pub fn await_ready(port: u16, log: &Path, mut is_ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() || !is_ready() {
        let said = std::fs::read_to_string(log).unwrap_or_default();
        assert!(
            begun.elapsed() < START_LIMIT,
            "no server on port {port}; it said: {said}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The first of these programs that exists; a panic names the Debian package that has it.
pub fn program(candidates: &[&str], package: &str) -> String {
    let found = candidates.iter().find(|path| Path::new(path).exists());
    (*found.unwrap_or_else(|| panic!("none of {candidates:?}: install the package {package}"))).to_owned()
}

/// Borrowed words as a command.
pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
