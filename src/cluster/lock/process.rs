//! This process and others of the machine: who it is, whether one has ended, and the time.

use std::{env, time::Duration};

use crate::cluster::lease::Holder;

/// This process, as Leases name it.
#[must_use]
pub fn this_process() -> Holder {
    Holder {
        user: user(),
        host: system::host(),
        boot: system::boot().unwrap_or_default(),
        pid: std::process::id(),
        started: system::started(std::process::id()).unwrap_or_default(),
    }
}

/// Whether a process of this machine has ended. What cannot be told is no.
pub(super) fn is_dead(holder: &Holder) -> bool {
    system::is_dead(holder)
}

/// The time, for people: RFC 3339 in microseconds, as `metav1.MicroTime` has it.
pub(super) fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// A time that only ever grows, also while the machine sleeps.
#[cfg(unix)]
pub(super) fn clock() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    // Linux' CLOCK_MONOTONIC stands still while the machine sleeps; elsewhere it does not.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: ClockId = ClockId::Monotonic;
    let time = clock_gettime(CLOCK);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanoseconds)
}

/// A time that only ever grows.
#[cfg(not(unix))]
pub(super) fn clock() -> Duration {
    use std::{sync::LazyLock, time::Instant};
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGUN.elapsed()
}

fn user() -> String {
    let names = ["USER", "LOGNAME", "USERNAME"].into_iter();
    let mut names = names.filter_map(|name| env::var(name).ok());
    names
        .find(|name| !name.is_empty())
        .unwrap_or_else(system::user)
}

#[cfg(unix)]
mod system {
    use std::fs;

    use rustix::{io::Errno, process};

    use crate::cluster::lease::Holder;

    /// The user by number.
    pub(super) fn user() -> String {
        format!("uid-{}", process::getuid().as_raw())
    }

    pub(super) fn host() -> String {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    }

    /// The id of this start of the machine, and of the processes that see each other: containers on one machine have one
    /// start and may have one host name. Nothing where there is no such file.
    pub(super) fn boot() -> Option<String> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let seen = fs::read_link("/proc/self/ns/pid").ok()?;
        let seen: String = seen
            .to_string_lossy()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        Some(format!("{}/{seen}", boot.trim()))
    }

    /// When a process was started, in ticks since the start of the machine; nothing when that is not told.
    pub(super) fn started(pid: u32) -> Option<String> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Stat::of(&stat)?.started.to_owned())
    }

    /// Whether no process has the number, or the one that has it is another one, or has ended and only not been waited for.
    pub(super) fn is_dead(holder: &Holder) -> bool {
        let Some(pid) = i32::try_from(holder.pid)
            .ok()
            .and_then(process::Pid::from_raw)
        else {
            return false;
        };
        // A process that we may not see in /proc still answers this, if only that we may not ask.
        if process::test_kill_process(pid) == Err(Errno::SRCH) {
            return true;
        }
        let stat = fs::read_to_string(format!("/proc/{}/stat", holder.pid)).unwrap_or_default();
        Stat::of(&stat).is_some_and(|stat| stat.is_over() || stat.started != holder.started)
    }

    /// What is used of `/proc/PID/stat` (proc_pid_stat(5)).
    struct Stat<'t> {
        state: &'t str,
        started: &'t str,
    }

    impl<'t> Stat<'t> {
        fn of(text: &'t str) -> Option<Self> {
            // The program's name stands in parentheses, and may have any in it.
            let (_, rest) = text.rsplit_once(')')?;
            let mut fields = rest.split_ascii_whitespace();
            let state = fields.next()?;
            let started = fields.nth(18)?;
            Some(Self { state, started })
        }

        fn is_over(&self) -> bool {
            matches!(self.state, "Z" | "X" | "x")
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_program_may_be_called_anything() {
            let text = "7 (a) S 1) Z 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 99 100";
            let stat = Stat::of(text).expect("a process");
            assert!(stat.is_over());
            assert_eq!(stat.started, "4242");
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::env;

    use crate::cluster::lease::Holder;

    pub(super) fn user() -> String {
        String::new()
    }

    pub(super) fn host() -> String {
        env::var("COMPUTERNAME").unwrap_or_default()
    }

    pub(super) fn boot() -> Option<String> {
        None
    }

    pub(super) fn started(_: u32) -> Option<String> {
        None
    }

    /// Without an id of the start of the machine no holder is known to be of it.
    pub(super) fn is_dead(_: &Holder) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_is_dead_when_it_has_ended_or_its_number_is_anothers() {
        let me = this_process();
        assert_eq!(Holder::of_identity(&me.identity()).pid, me.pid);
        assert!(!me.boot.is_empty() && !is_dead(&me));
        let earlier = Holder {
            started: "1".to_owned(),
            ..me.clone()
        };
        assert!(is_dead(&earlier));
        // It has ended, and is not waited for yet.
        let mut child = std::process::Command::new("true")
            .spawn()
            .expect("a process");
        let pid = child.id();
        let born = system::started(pid).expect("its start");
        let ended = Holder {
            pid,
            started: born,
            ..me
        };
        let patience = clock() + Duration::from_secs(30);
        while !is_dead(&ended) && clock() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(is_dead(&ended));
        child.wait().expect("its end");
        assert!(is_dead(&ended));
    }

    #[test]
    fn the_time_is_a_micro_time() {
        let now = now();
        assert_eq!(now.len(), "2026-01-01T00:00:00.000000Z".len(), "{now}");
    }
}
