//! The processes that a command has started, as the kernel lists them.
//!
//! Nothing is listed on systems other than Linux.

use nix::unistd::Pid;

/// Returns the child processes of this process; empty if the kernel does not list them.
pub(super) fn children() -> Vec<Pid> {
    children_of(nix::unistd::getpid())
}

fn children_of(parent: Pid) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    let ids = lists.iter().flat_map(|list| list.split_whitespace());
    ids.filter_map(|id| id.parse().ok()).map(Pid::from_raw).collect()
}

/// Returns all descendants of this process, parents before their children.
pub(super) fn all() -> Vec<Pid> {
    let mut found = children();
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(children_of(parent));
        next += 1;
    }
    found
}

/// Returns true if all descendants of this process together use more than `max` bytes of memory.
pub(super) fn use_more_than(max: u64) -> bool {
    let all = all();
    // The resident memory counts a page once for each process that shares it. The exact share takes long to find, and a
    // process can hide it.
    sum(&all, resident) > max && sum(&all, |process| share(process).or_else(|| resident(process))) > max
}

fn resident(process: &Pid) -> Option<u64> {
    // Fields of statm, in pages: the size, and the resident part of it.
    let statm = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    Some(statm.split_whitespace().nth(1)?.parse::<u64>().ok()?.saturating_mul(page_size()))
}

fn share(process: &Pid) -> Option<u64> {
    let shares = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let share = shares.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(share.split_whitespace().next()?.parse::<u64>().ok()?.saturating_mul(1024))
}

fn sum(processes: &[Pid], memory: impl Fn(&Pid) -> Option<u64>) -> u64 {
    processes.iter().filter_map(memory).fold(0, u64::saturating_add)
}

fn page_size() -> u64 {
    let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|size| u64::try_from(size).ok()).unwrap_or(4096)
}
