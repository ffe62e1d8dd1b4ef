//! Hosts that are made of network namespaces, with a bridge between them in a namespace of its own.
//!
//! In: the names of the hosts. Out: for each host an address, a way to run code inside it, and the faults of a network.
//! Nothing here touches the interfaces, the addresses and the routes of the machine itself.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sched::{CloneFlags, setns};

/// The namespace of the bridge.
pub(super) const HUB: &str = "hub";

/// The hosts of one test; they are gone when it is over.
pub(super) struct Hosts {
    /// The beginning of each name, which no other test has.
    prefix: String,
    /// The first three numbers of each address.
    subnet: String,
    names: Vec<&'static str>,
}

impl Hosts {
    /// Connects a host for each name. Where the system does not allow it, a line on stderr says so.
    pub(super) fn new(names: &[&'static str]) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (pid, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let [.., high, low] = pid.to_be_bytes();
        let subnet = format!("10.{high}.{low}");
        let hosts = Self { prefix: format!("consensus-it-{pid}-{count}"), subnet, names: names.to_vec() };
        if let Err(why) = hosts.make_hub() {
            // The macros of the standard library would hide this line as long as the test passes.
            let line = format!("reviewers across hosts: SKIPPED, no namespaces can be had here: {why}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            return None;
        }
        for name in names {
            hosts.connect(name);
        }
        Some(hosts)
    }

    /// Makes the bridge, and tries a pair of interfaces: what fails here cannot be had on this system.
    fn make_hub(&self) -> Result<(), String> {
        let hub = self.namespace(HUB);
        ip(&format!("netns add {hub}"))?;
        ip(&format!("-n {hub} link add spare type veth peer name other"))?;
        ip(&format!("-n {hub} link add bridge type bridge"))?;
        ip(&format!("-n {hub} address add {}/24 dev bridge", self.address(HUB)))?;
        ip(&format!("-n {hub} link set bridge up"))?;
        Ok(())
    }

    fn connect(&self, host: &str) {
        let (hub, own) = (self.namespace(HUB), self.namespace(host));
        must(&format!("netns add {own}"));
        must(&format!("-n {hub} link add {host} type veth peer name eth0 netns {own}"));
        must(&format!("-n {hub} link set {host} master bridge up"));
        must(&format!("-n {own} address add {}/24 dev eth0", self.address(host)));
        must(&format!("-n {own} link set eth0 up"));
    }

    fn namespace(&self, host: &str) -> String {
        format!("{}-{host}", self.prefix)
    }

    pub(super) fn address(&self, host: &str) -> String {
        let at = self.names.iter().position(|name| *name == host).map_or(254, |at| at + 1);
        format!("{}.{at}", self.subnet)
    }

    /// Does something on a host: the processes, threads and sockets that it begins stay there.
    pub(super) fn within<T: Send>(&self, host: &str, act: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(Path::new("/run/netns").join(self.namespace(host))).unwrap();
        let inside = || {
            setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap();
            act()
        };
        let ended = std::thread::scope(|scope| scope.spawn(inside).join());
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Pulls the cable of a host.
    pub(super) fn unplug(&self, host: &str) {
        must(&format!("-n {} link set {host} down", self.namespace(HUB)));
    }

    pub(super) fn plug(&self, host: &str) {
        must(&format!("-n {} link set {host} up", self.namespace(HUB)));
    }

    /// Lets all that a host sends to another vanish.
    pub(super) fn lose(&self, from: &str, to: &str) {
        must(&format!("-n {} route replace blackhole {}/32", self.namespace(from), self.address(to)));
    }

    /// Lets nothing vanish any more.
    pub(super) fn lose_nothing(&self) {
        for host in &self.names {
            must(&format!("-n {} route flush type blackhole", self.namespace(host)));
        }
    }

    /// The processes that run on a host.
    pub(super) fn processes(&self, host: &str) -> String {
        ip(&format!("netns pids {}", self.namespace(host))).unwrap()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in self.names.iter().chain(&[HUB]) {
            let _ = ip(&format!("netns del {}", self.namespace(host)));
        }
    }
}

#[track_caller]
fn must(words: &str) {
    ip(words).unwrap();
}

/// Calls `ip`, and returns its output.
fn ip(words: &str) -> Result<String, String> {
    let mut command = Command::new("ip");
    let said = command.args(words.split(' ')).stdin(Stdio::null()).output();
    let said = said.map_err(|why| format!("`ip` cannot be run: {why}"))?;
    if said.status.success() {
        return Ok(String::from_utf8_lossy(&said.stdout).into_owned());
    }
    Err(format!("`ip {words}`: {}", String::from_utf8_lossy(&said.stderr).trim()))
}
