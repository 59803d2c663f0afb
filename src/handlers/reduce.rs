//! Program that reduces the results of a task: they are lines on its standard input, its output is the summary.
//!
//! The program is started once, reads to the end and exits with 0. Its output is read up to a limit, and its standard
//! error for the message of a failure. Dropping the future kills the process with everything it started.

use std::ffi::OsString;
use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use crate::command::group::ProcessGroup;
use crate::command::program::Program;
use crate::command::{Environment, Leftovers};
use crate::wire::shown;

/// Time that processes left by a program may hold its standard output open once it has exited.
const LEFT_GRACE: Duration = Duration::from_secs(1);
/// Number of bytes kept of the end of its standard error.
const TAIL_BYTES: usize = 1024;
/// Exit status by which a program says that another attempt may help (`EX_TEMPFAIL`).
const TRY_AGAIN: i32 = 75;

/// Source of the lines to reduce.
#[async_trait]
pub trait Lines: Send {
    /// Returns some more whole lines; `None` at the end.
    ///
    /// # Errors
    /// The reason why they can't be read.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, String>;
}

/// Reason why there is no summary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReduceError {
    /// The program failed, took too long or printed too much.
    #[error("{0}")]
    Failed(String),
    /// Not possible now; worth another attempt.
    #[error("{0}")]
    Unavailable(String),
}

/// Program that reduces results, with its settings.
pub struct Reducer {
    /// Program, followed by its arguments.
    pub argv: Vec<OsString>,
    /// Environment of the program.
    pub environment: Environment,
    /// Additional variables about the results to reduce.
    pub variables: Vec<(OsString, OsString)>,
    /// Maximum run time of the program.
    pub timeout: Duration,
    /// Maximum size of its output, in bytes; one more byte is read.
    pub answer_bytes_max: usize,
    /// Record of live processes, so that it is ended after a crash of this process.
    pub leftovers: Arc<Leftovers>,
}

/// Everything that came through the program's pipes.
struct Heard {
    fed: Result<(), String>,
    printed: io::Result<Vec<u8>>,
    tail: String,
}

impl Reducer {
    /// Runs the program over the lines and returns its output.
    ///
    /// # Errors
    /// See [`ReduceError`].
    pub async fn reduce(&self, lines: &mut dyn Lines) -> Result<Vec<u8>, ReduceError> {
        let program = Program::with(&self.argv, &self.environment, self.variables.iter().cloned());
        let program = program.map_err(|why| ReduceError::Failed(why.to_string()))?;
        let name = program.describe();
        let running = timeout(self.timeout, self.run(&program, lines)).await;
        let Ok(ended) = running else {
            let text = format!(
                "{name} took longer than {} s (reduce_timeout)",
                self.timeout.as_secs_f64()
            );
            return Err(ReduceError::Failed(text));
        };
        let (status, heard) = ended.map_err(|why| {
            ReduceError::Unavailable(format!("{name} can't be started or its output read: {why}"))
        })?;
        judge(&name, status, heard, self.answer_bytes_max)
    }

    async fn run(&self, program: &Program, lines: &mut dyn Lines) -> io::Result<(ExitStatus, Heard)> {
        let mut child = spawn(program)?;
        let group = child.id().and_then(ProcessGroup::led_by);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(group), (Some(stdin), Some(stdout), Some(stderr))) = (group, pipes) else {
            return Err(io::Error::other("the process has no id or no pipes"));
        };
        let mut running = Running {
            leftovers: self.leftovers.clone(),
            group,
        };
        running.leftovers.add(running.group.pid());
        let most = self.answer_bytes_max + 1;
        let mut heard = pin!(hear((stdin, lines), (stdout, most), stderr));
        tokio::select! {
            heard = &mut heard => {
                // A program that printed too much may wait for someone to read the rest.
                if heard.printed.as_ref().is_ok_and(|printed| printed.len() == most) || heard.fed.is_err() {
                    running.group.kill();
                }
                let status = child.wait().await?;
                running.group.disarm();
                Ok((status, heard))
            }
            status = child.wait() => {
                // A process that still holds its pipes was started by it, and dies with its group.
                let heard = match timeout(LEFT_GRACE, &mut heard).await {
                    Ok(heard) => heard,
                    Err(_) => {
                        running.group.kill();
                        heard.await
                    }
                };
                running.group.disarm();
                Ok((status?, heard))
            }
        }
    }
}

/// Running program: recorded as long as it lives, killed on drop.
struct Running {
    leftovers: Arc<Leftovers>,
    group: ProcessGroup,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.leftovers.remove(self.group.pid());
    }
}

fn spawn(program: &Program) -> io::Result<Child> {
    let mut command = Command::new(&program.path);
    command.arg0(&program.argv[0]).args(&program.argv[1..]);
    command.env_clear().envs(&program.environment);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true).spawn()
}

async fn hear(
    (stdin, lines): (ChildStdin, &mut dyn Lines),
    (stdout, most): (impl AsyncRead + Unpin, usize),
    stderr: impl AsyncRead + Unpin,
) -> Heard {
    let (fed, printed, tail) = tokio::join!(feed(stdin, lines), printed(stdout, most), tail(stderr));
    Heard { fed, printed, tail }
}

/// Writes all lines; a program that has read enough closes its standard input.
async fn feed(mut stdin: ChildStdin, lines: &mut dyn Lines) -> Result<(), String> {
    while let Some(some) = lines.next().await? {
        match stdin.write_all(&some).await {
            Ok(()) => {}
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(why) => return Err(why.to_string()),
        }
    }
    Ok(())
}

async fn printed(stdout: impl AsyncRead + Unpin, most: usize) -> io::Result<Vec<u8>> {
    let mut printed = Vec::new();
    stdout.take(most as u64).read_to_end(&mut printed).await?;
    Ok(printed)
}

/// Reads all of its standard error, and returns the end.
async fn tail(mut stderr: impl AsyncRead + Unpin) -> String {
    let (mut kept, mut some) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = stderr.read(&mut some).await {
        kept.extend_from_slice(&some[..read]);
        let beyond = kept.len().saturating_sub(TAIL_BYTES);
        kept.drain(..beyond);
    }
    shown(&kept).trim().to_owned()
}

fn judge(name: &str, status: ExitStatus, heard: Heard, most: usize) -> Result<Vec<u8>, ReduceError> {
    if let Err(why) = heard.fed {
        return Err(ReduceError::Unavailable(format!(
            "the results could not be read: {why}"
        )));
    }
    let printed = heard.printed;
    if printed.as_ref().is_ok_and(|printed| printed.len() > most) {
        return Err(ReduceError::Failed(format!(
            "{name} printed more than {most} bytes"
        )));
    }
    if status.success() {
        return printed
            .map_err(|why| ReduceError::Unavailable(format!("the output of {name} can't be read: {why}")));
    }
    let said = match heard.tail.as_str() {
        "" => "stderr was empty".to_owned(),
        tail => format!("stderr: {tail}"),
    };
    let text = format!("{name} ended with {status}; {said}");
    Err(match status.code() {
        Some(TRY_AGAIN) => ReduceError::Unavailable(text),
        _ => ReduceError::Failed(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Inherit;

    /// So many lines of a number each, and perhaps a fault behind them.
    struct Numbers(u64, u64, Option<&'static str>);

    #[async_trait]
    impl Lines for Numbers {
        async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
            if self.0 == self.1 {
                return self.2.take().map_or(Ok(None), |why| Err(why.to_owned()));
            }
            self.0 += 1;
            Ok(Some(format!("{}\n", self.0).into_bytes()))
        }
    }

    fn shell(text: &str) -> Reducer {
        let path = ("PATH".into(), "/usr/bin:/bin".into());
        Reducer {
            argv: vec!["sh".into(), "-c".into(), text.into()],
            environment: Environment {
                inherit: Inherit::Clean(vec![path]),
                variables: Vec::new(),
            },
            variables: vec![("WINDROW_GENERATION".into(), "7".into())],
            timeout: Duration::from_secs(20),
            answer_bytes_max: 100,
            leftovers: Arc::new(Leftovers::take_over(None)),
        }
    }

    async fn reduced(text: &str, lines: u64) -> Result<String, ReduceError> {
        let printed = shell(text).reduce(&mut Numbers(0, lines, None)).await;
        printed.map(|printed| String::from_utf8_lossy(&printed).into_owned())
    }

    #[tokio::test]
    async fn a_program_reads_all_lines_and_what_it_prints_is_the_answer() {
        let counted = reduced("wc -l; echo $WINDROW_GENERATION", 50_000)
            .await
            .expect("reduced");
        assert_eq!(counted.split_whitespace().collect::<Vec<_>>(), ["50000", "7"]);
        let first = reduced("head -n 1", 500_000).await;
        assert_eq!(first.as_deref(), Ok("1\n"), "one that has read enough");
        assert_eq!(reduced("cat", 0).await.as_deref(), Ok(""));
    }

    #[tokio::test]
    async fn a_failure_is_told_with_what_was_said_and_75_asks_for_another_try() {
        let failed = reduced("cat >/dev/null; echo oops >&2; exit 3", 10).await;
        let Err(ReduceError::Failed(text)) = failed else {
            panic!("{failed:?}")
        };
        assert!(
            text.contains("exit status: 3") && text.ends_with("stderr: oops"),
            "{text}"
        );
        let again = reduced("exit 75", 10).await;
        assert!(matches!(again, Err(ReduceError::Unavailable(_))), "{again:?}");
        let much = reduced("yes", 10).await;
        assert!(
            matches!(&much, Err(ReduceError::Failed(text)) if text.contains("more than 100 bytes")),
            "{much:?}"
        );
        let unread = shell("cat >/dev/null")
            .reduce(&mut Numbers(0, 3, Some("gone")))
            .await;
        assert!(matches!(unread, Err(ReduceError::Unavailable(_))), "{unread:?}");
        let missing = Reducer {
            argv: vec!["./no-such".into()],
            ..shell("")
        };
        let missing = missing.reduce(&mut Numbers(0, 1, None)).await;
        assert!(matches!(missing, Err(ReduceError::Failed(_))), "{missing:?}");
    }

    #[tokio::test]
    async fn one_that_takes_too_long_dies_with_all_that_it_started() {
        let slow = Reducer {
            timeout: Duration::from_millis(300),
            ..shell("sleep 1000 & sleep 1000")
        };
        let late = slow.reduce(&mut Numbers(0, 1, None)).await;
        assert!(
            matches!(&late, Err(ReduceError::Failed(text)) if text.contains("reduce_timeout")),
            "{late:?}"
        );
        let orphaned = reduced("sleep 1000 & echo done", 1).await;
        assert_eq!(orphaned.as_deref(), Ok("done\n"));
    }
}
