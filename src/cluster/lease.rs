//! Who may change an install now: a Lease, which a run that is killed loses by itself.
//!
//! The clocks of others are not believed: a Lease has run out when we have seen it stay the same for as long as it holds.
//! The times in it are for people. A run whose process has ended on this machine is not waited for.

use serde_json::{Value, json};

/// How long a Lease holds after it was renewed last, in seconds.
pub const SECONDS: u64 = 15;
/// How often it is renewed, in seconds: twice may fail.
pub const RENEWED_EVERY: u64 = 5;
/// As long is waited at most for a Lease that somebody else has given another time, in seconds.
const LONGEST_SECONDS: u64 = 60;
/// Characters of a text of a holder.
const LONGEST_TEXT: usize = 64;

/// Who holds a Lease: a process of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The user, for messages.
    pub user: String,
    /// The machine.
    pub host: String,
    /// The time since the machine was started, by an id of its own, and the processes that see each other.
    pub boot: String,
    /// The process; 0 when it is not known.
    pub pid: u32,
    /// When the process was started, as its system counts.
    pub started: String,
}

/// What to do about a Lease that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    /// It is nobody's, or ours: take it.
    Now,
    /// It is held; wait and look again.
    Wait(Holder),
}

impl Holder {
    /// The text in `spec.holderIdentity`: `user@host boot pid started`. What a part may not have in it is taken out.
    #[must_use]
    pub fn identity(&self) -> String {
        let word = |text: &str| {
            let good = text
                .chars()
                .filter(|character| character.is_ascii_graphic() && *character != '@');
            let word: String = good.take(LONGEST_TEXT).collect();
            if word.is_empty() {
                "-".to_owned()
            } else {
                word
            }
        };
        format!(
            "{}@{} {} {} {}",
            word(&self.user),
            word(&self.host),
            word(&self.boot),
            self.pid,
            word(&self.started)
        )
    }

    /// The holder that such a text names; one whose user is the text, when it is no such text.
    #[must_use]
    pub fn of_identity(identity: &str) -> Self {
        let known = || {
            let (user, rest) = identity.split_once('@')?;
            let mut words = rest.split(' ');
            let mut word = || {
                words
                    .next()
                    .filter(|word| !word.is_empty())
                    .map(str::to_owned)
            };
            let (host, boot, pid, started) = (word()?, word()?, word()?, word()?);
            let pid = pid.parse().ok().filter(|_| words.next().is_none())?;
            Some(Self {
                user: user.to_owned(),
                host,
                boot,
                pid,
                started,
            })
        };
        let known = known().filter(|holder| holder.identity() == identity);
        known.unwrap_or_else(|| Self {
            user: identity
                .chars()
                .filter(|c| !c.is_control())
                .take(LONGEST_TEXT)
                .collect(),
            host: String::new(),
            boot: String::new(),
            pid: 0,
            started: String::new(),
        })
    }

    /// Whether both are of one machine that was not started again between them.
    fn is_on_machine_of(&self, other: &Self) -> bool {
        !matches!(self.boot.as_str(), "" | "-")
            && self.boot == other.boot
            && self.host == other.host
    }
}

/// `user@host, process 4711`.
impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.user)?;
        if self.pid > 0 {
            write!(f, "@{}, process {}", self.host, self.pid)?;
        }
        Ok(())
    }
}

/// What to do about a live Lease: `unchanged` is how long, in seconds, it has been seen not to change by us, and `is_dead`
/// whether a process of this machine has ended.
#[must_use]
pub fn take(live: &Value, me: &Holder, unchanged: u64, is_dead: &dyn Fn(&Holder) -> bool) -> Take {
    let spec = |field: &str| live.get("spec")?.get(field);
    let identity = spec("holderIdentity")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let seconds = spec("leaseDurationSeconds").and_then(Value::as_u64);
    let seconds = seconds.unwrap_or(SECONDS).clamp(1, LONGEST_SECONDS);
    if identity.is_empty() || identity == me.identity() || unchanged >= seconds {
        return Take::Now;
    }
    let holder = Holder::of_identity(identity);
    // Parts of both identities have been through the same rule, so that they can be compared.
    let me = Holder::of_identity(&me.identity());
    if holder.is_on_machine_of(&me) && is_dead(&holder) {
        return Take::Now;
    }
    Take::Wait(holder)
}

/// Whether a live Lease says that this process holds it.
#[must_use]
pub fn is_held_by(live: &Value, me: &Holder) -> bool {
    let identity = live
        .get("spec")
        .and_then(|spec| spec.get("holderIdentity")?.as_str());
    identity == Some(&me.identity())
}

/// Who a live Lease says that holds it.
#[must_use]
pub fn holder(live: &Value) -> Holder {
    let identity = live.pointer("/spec/holderIdentity").and_then(Value::as_str);
    Holder::of_identity(identity.unwrap_or_default())
}

/// Whether a live Lease was renewed last at this time.
#[must_use]
pub fn is_renewed_at(live: &Value, time: &str) -> bool {
    live.pointer("/spec/renewTime").and_then(Value::as_str) == Some(time)
}

/// The Lease of a holder, taken or renewed at a time (RFC 3339, in microseconds); `before` is the one that is there, and
/// the state of it that is replaced.
#[must_use]
pub fn held(name: &str, namespace: &str, me: &Holder, now: &str, before: Option<&Value>) -> Value {
    let mut lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "kubectl-olm"},
        },
        "spec": {
            "holderIdentity": me.identity(),
            "leaseDurationSeconds": SECONDS,
            "acquireTime": now,
            "renewTime": now,
        },
    });
    let Some(before) = before else {
        return lease;
    };
    let there = |path: &str| before.pointer(path).cloned().unwrap_or_default();
    lease["metadata"]["resourceVersion"] = there("/metadata/resourceVersion");
    lease["metadata"]["uid"] = there("/metadata/uid");
    if is_held_by(before, me) {
        lease["spec"]["acquireTime"] = there("/spec/acquireTime");
    }
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(host: &str, pid: u32) -> Holder {
        Holder {
            user: "ann".to_owned(),
            host: host.to_owned(),
            boot: "b00t".to_owned(),
            pid,
            started: "77".to_owned(),
        }
    }

    fn lease(identity: &str) -> Value {
        json!({"spec": {"holderIdentity": identity, "leaseDurationSeconds": 15}})
    }

    #[test]
    fn a_lease_is_taken_when_its_holder_is_gone_and_waited_for_when_not() {
        let me = holder("here", 1);
        let (neighbour, stranger) = (holder("here", 2), holder("there", 2));
        let dead = |holder: &Holder| holder.pid == 2;
        let alive = |_: &Holder| false;
        let of = |holder: &Holder| lease(&holder.identity());
        assert_eq!(
            take(&of(&neighbour), &me, 0, &alive),
            Take::Wait(neighbour.clone())
        );
        assert_eq!(take(&of(&neighbour), &me, 0, &dead), Take::Now);
        // A process of the same number on another machine is another one.
        assert_eq!(
            take(&of(&stranger), &me, 14, &dead),
            Take::Wait(stranger.clone())
        );
        assert_eq!(take(&of(&stranger), &me, 15, &dead), Take::Now);
        assert_eq!(take(&of(&me), &me, 0, &alive), Take::Now);
        assert_eq!(take(&lease(""), &me, 0, &alive), Take::Now);
        assert_eq!(take(&json!({}), &me, 0, &alive), Take::Now);
        let restarted = Holder {
            boot: "b00t2".to_owned(),
            ..neighbour
        };
        assert_eq!(
            take(&of(&restarted), &me, 0, &dead),
            Take::Wait(restarted.clone())
        );
    }

    #[test]
    fn a_lease_for_ever_is_waited_for_a_minute() {
        let live = json!({"spec": {"holderIdentity": "x", "leaseDurationSeconds": u32::MAX, "renewTime": "2999-01-01T00:00:00Z"}});
        let alive = |_: &Holder| false;
        assert!(matches!(
            take(&live, &holder("here", 1), 59, &alive),
            Take::Wait(_)
        ));
        assert_eq!(take(&live, &holder("here", 1), 60, &alive), Take::Now);
    }

    #[test]
    fn identities_that_are_not_ours_are_shown_and_never_dead() {
        let me = holder("here", 1);
        for identity in [
            "controller-7d9f_1b2c",
            "ann@here b00t 2",
            "ann@here b00t 2 77 x",
            "@ - - -",
            "a@here b00t x 77",
            "ann@here b00t 99999999999 77",
        ] {
            let Take::Wait(holder) = take(&lease(identity), &me, 0, &|_| true) else {
                panic!("{identity} is taken");
            };
            assert_eq!(holder.to_string(), identity);
        }
        let Take::Wait(hostile) = take(&lease("a\u{1b}[2Jb"), &me, 0, &|_| true) else {
            panic!("it is taken");
        };
        assert_eq!(hostile.to_string(), "a[2Jb");
    }

    #[test]
    fn what_a_user_is_called_breaks_no_identity() {
        let odd = Holder {
            user: "Ann B\u{e9}@x".to_owned(),
            host: String::new(),
            ..holder("here", 4711)
        };
        assert_eq!(odd.identity(), "AnnBx@- b00t 4711 77");
        assert_eq!(
            Holder::of_identity(&odd.identity()).to_string(),
            "AnnBx@-, process 4711"
        );
    }

    #[test]
    fn renewing_keeps_when_it_was_taken() {
        let me = holder("here", 1);
        let mut live = held(
            "kubectl-olm.queues",
            "ops",
            &me,
            "2026-01-01T00:00:00.000000Z",
            None,
        );
        live["metadata"]["resourceVersion"] = json!("7");
        live["metadata"]["uid"] = json!("u1");
        let later = held(
            "kubectl-olm.queues",
            "ops",
            &me,
            "2026-01-01T00:00:05.000000Z",
            Some(&live),
        );
        assert_eq!(later["spec"]["acquireTime"], "2026-01-01T00:00:00.000000Z");
        assert_eq!(later["metadata"]["resourceVersion"], "7");
        let other = held(
            "kubectl-olm.queues",
            "ops",
            &holder("there", 2),
            "2026-01-01T00:00:06.000000Z",
            Some(&live),
        );
        assert_eq!(other["spec"]["acquireTime"], "2026-01-01T00:00:06.000000Z");
    }
}
