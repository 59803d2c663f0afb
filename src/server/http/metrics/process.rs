//! Process metrics from the operating system, under Prometheus's conventional names.

use rustix::param::{clock_ticks_per_second, page_size};

use super::families as f;
use super::text::Page;

/// Writes the available process metrics; none on a system without `/proc`.
pub(super) fn write(page: &mut Page) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    if let Some(process) = Process::read(&stat) {
        page.one(f::PROCESS_CPU, process.cpu_seconds);
        page.one(f::PROCESS_RESIDENT_MEMORY_BYTES, process.resident_bytes);
        page.one(f::PROCESS_THREADS, process.threads);
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        page.one(f::PROCESS_OPEN_FDS, files.count() as u64);
    }
}

struct Process {
    cpu_seconds: f64,
    resident_bytes: f64,
    threads: f64,
}

impl Process {
    /// Parses `/proc/self/stat`; the name in parentheses may contain spaces.
    fn read(stat: &str) -> Option<Process> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
        // Fields are numbered from 3 in proc(5): utime 14, stime 15, num_threads 20, rss 24.
        let ticks = number(11)? + number(12)?;
        Some(Process {
            cpu_seconds: ticks / clock_ticks_per_second() as f64,
            threads: number(17)?,
            resident_bytes: number(21)? * page_size() as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_an_odd_name() {
        let fields: Vec<String> = (3..30).map(|field: u32| field.to_string()).collect();
        let process = Process::read(&format!("7 (a ) b) {}", fields.join(" "))).expect("it is read");
        assert_eq!(process.cpu_seconds, 29.0 / clock_ticks_per_second() as f64);
        assert_eq!(
            (process.threads, process.resident_bytes),
            (20.0, 24.0 * page_size() as f64)
        );
        assert!(Process::read("7 nothing").is_none());
    }
}
