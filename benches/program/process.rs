//! The server in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The server's process; it ends with this value.
pub struct Running {
    child: Child,
    pub address: String,
}

impl Running {
    pub fn start() -> Running {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("serve")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut address).unwrap();
        Running {
            child,
            address: address.trim().to_owned(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
