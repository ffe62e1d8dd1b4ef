//! A program that tries to get out of its sandbox, or to use up the machine. The tests run it as what a model or a change brings.
//!
//! `report` tries one thing after another, and prints a line for each: its name, and `done` or why it could not be done. `connect`
//! reaches for a server. The other words do one thing without end.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket, socketpair};
use nix::unistd::{Pid, getppid};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map_or("", String::as_str) {
        "report" => report(&words[1..]),
        "loop" => loop {
            std::hint::spin_loop();
        },
        "sleep" => loop {
            std::thread::sleep(Duration::from_mins(1));
        },
        "print" => print_without_end(),
        "allocate" => println!("allocated {} bytes", vec![1_u8; 10 << 30].len()),
        "allocate-apart" => spawn(16, "allocate-1"),
        "allocate-1" => {
            let held = vec![1_u8; 1 << 30];
            std::thread::sleep(Duration::from_mins(10));
            println!("{}", held.len());
        }
        "fork" => spawn(1_000, "sleep"),
        "connect" => drop(TcpStream::connect(&words[1]).expect("the network is within reach")),
        word => panic!("there is no `{word}`"),
    }
}

fn try_it<T, E: std::fmt::Display>(name: &str, result: Result<T, E>) {
    match result {
        Ok(_) => println!("{name}: done"),
        Err(why) => println!("{name}: {why}"),
    }
}

/// Tries to reach everything that a sandbox should keep apart. The words are files to read, and `@` before a folder to write into.
fn report(words: &[String]) {
    for word in words {
        match word.strip_prefix('@') {
            Some(folder) => {
                try_it(&format!("write {folder}"), fs::write(Path::new(folder).join("left"), "x"));
            }
            None => try_it(&format!("read {word}"), fs::read(word)),
        }
    }
    for family in [
        AddressFamily::Unix,
        AddressFamily::Inet,
        AddressFamily::Inet6,
        AddressFamily::Netlink,
        AddressFamily::Packet,
        AddressFamily::Alg,
        AddressFamily::Vsock,
    ] {
        for kind in [SockType::Stream, SockType::Datagram, SockType::Raw] {
            try_it(&format!("socket {family:?} {kind:?}"), socket(family, kind, SockFlag::empty(), None));
        }
    }
    try_it("pair", socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::empty()));
    for kind in [SockType::Datagram, SockType::Raw] {
        try_it(&format!("pair {kind:?}"), socketpair(AddressFamily::Unix, kind, None, SockFlag::empty()));
    }
    try_it("inherited file", fs::read("/proc/self/fd/9"));
    try_it("docker", UnixStream::connect("/var/run/docker.sock"));
    let parent = getppid();
    try_it("kill parent", kill(parent, Signal::SIGKILL));
    try_it("environment of parent", fs::read(format!("/proc/{parent}/environ")));
    try_it("list processes", fs::read_dir("/proc"));
    try_it("follow a link", leads_out());
    try_it("lend rights", fs::set_permissions(in_scratch("left"), fs::Permissions::from_mode(0o4755)));
    try_it("use the scratch folder", fs::write(in_scratch("own"), "x"));
    let names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    println!("environment: {}", names.join(" "));
}

fn in_scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(name);
    let _ = fs::write(&path, "x");
    path
}

fn leads_out() -> std::io::Result<Vec<u8>> {
    let link = std::env::temp_dir().join("link");
    symlink("/etc/shadow", &link)?;
    fs::read(link)
}

fn print_without_end() {
    let line = [b'x'; 1 << 12];
    let mut out = std::io::stdout().lock();
    while out.write_all(&line).is_ok() {}
}

/// Starts this program again and again, each time in a group of its own, and never ends.
fn spawn(count: usize, word: &str) {
    use std::os::unix::process::CommandExt as _;
    let own = std::env::current_exe().unwrap_or_default();
    let mut children = Vec::new();
    for number in 0..count {
        match Command::new(&own).arg(word).stdin(Stdio::null()).process_group(0).spawn() {
            Ok(child) => children.push(child),
            Err(why) => {
                println!("after {number}: {why}");
                break;
            }
        }
    }
    println!("started {}", children.len());
    let _ = kill(Pid::from_raw(0), Signal::SIGCONT);
    std::thread::sleep(Duration::from_mins(10));
}
