//! The processes that a command has started, and the memory that they use, as the kernel lists them.
//!
//! Nothing is listed on systems other than Linux.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::fs::MetadataExt as _;

use nix::unistd::{Pid, geteuid};

/// The places of figures in `statm`: all mappings, the resident pages, and the data and stack.
const MAPPED: usize = 0;
const RESIDENT: usize = 1;
const DATA: usize = 5;

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
pub(super) fn all_descendants() -> Vec<Pid> {
    let mut found = children();
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(children_of(parent));
        next += 1;
    }
    found
}

/// Returns true if all descendants of this process together use more than `max` bytes of memory. `shared` is the
/// [size](shared_size) of the memory that they share without a file.
///
/// Memory that the kernel holds for a process does not count: the buffers of its sockets and pipes, and the tables of its
/// mappings.
pub(super) fn use_more_than(max: u64, shared: u64) -> bool {
    let Some(left) = max.checked_sub(shared) else { return true };
    let all = all_descendants();
    // The resident memory counts a page once for each process that shares it. The exact share takes long to find, and a
    // process can hide it.
    sum(&all, resident) > left && sum(&all, |process| share(process).or_else(|| resident(process))) > left
}

/// Returns the size of the memory that descendants of this process share without a file, in bytes.
///
/// The size counts and not the resident part, because a process can drop pages that the kernel then keeps. Each piece
/// counts once, however many processes share it. Where this process may not ask for the size of a piece, which only root
/// may, the parts that are mapped count.
pub(super) fn shared_size() -> u64 {
    let mut pieces = BTreeMap::new();
    let mut hidden = 0_u64;
    for process in all_descendants() {
        match File::open(format!("/proc/{process}/maps")) {
            Ok(maps) => add_shared(&process, BufReader::new(maps), &mut pieces),
            Err(why) if why.kind() == ErrorKind::PermissionDenied => {
                hidden = hidden.saturating_add(most_hidden(&process));
            }
            // The process has ended.
            Err(_) => {}
        }
    }
    pieces.into_values().fold(hidden, u64::saturating_add)
}

/// Adds the shared memory in the list of a process's mappings. `pieces` has the size of each piece that is known.
fn add_shared(process: &Pid, maps: impl BufRead, pieces: &mut BTreeMap<String, u64>) {
    // A name in the list need not be UTF-8.
    for line in maps.split(b'\n').map_while(Result::ok) {
        // A mapping of any other kind adds nothing.
        let _ = add_mapping(process, &String::from_utf8_lossy(&line), pieces);
    }
}

/// Adds the memory of a line of `/proc/PID/maps`, if processes share it without a file. Returns `None` if they do not.
fn add_mapping(process: &Pid, line: &str, pieces: &mut BTreeMap<String, u64>) -> Option<()> {
    let mut fields = line.split_ascii_whitespace();
    let range = fields.next()?;
    let rights = fields.next()?;
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let (device, inode) = (fields.next()?, fields.next()?);
    let name = fields.next().unwrap_or_default();
    // A process may give such memory a name, and no other memory gets a name of this form.
    let has_no_file = matches!(name, "" | "/dev/zero") || name.starts_with("[anon_shmem:");
    if !rights.ends_with('s') || !has_no_file {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    // The mapping may be a part of the memory, and shows it up to its own end.
    let shown = end.saturating_sub(start).saturating_add(offset);
    let whole = std::fs::metadata(format!("/proc/{process}/map_files/{start:x}-{end:x}"));
    let whole = whole.as_ref().map_or(0, Metadata::len);
    // The key identifies the memory for every process that has a part of it mapped.
    let piece = if inode == "0" { range.to_owned() } else { format!("{device} {inode}") };
    let known = pieces.entry(piece).or_default();
    *known = whole.max(shown).max(*known);
    Some(())
}

/// Returns the most memory that a process can share if it keeps its mappings from this process: all but its own data.
///
/// A process of the same user has chosen to hide them. Those of another user are out of reach where root lacks the right
/// to look into processes, as in many containers, and nothing is known of them.
fn most_hidden(process: &Pid) -> u64 {
    let is_own =
        std::fs::metadata(format!("/proc/{process}")).is_ok_and(|folder| folder.uid() == geteuid().as_raw());
    if !is_own {
        return 0;
    }
    let mapped = in_statm(process, MAPPED).unwrap_or(0);
    mapped.saturating_sub(in_statm(process, DATA).unwrap_or(0))
}

fn resident(process: &Pid) -> Option<u64> {
    in_statm(process, RESIDENT)
}

/// Returns the figure at this place in the `statm` of a process, in bytes.
fn in_statm(process: &Pid, place: usize) -> Option<u64> {
    let pages = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    Some(pages.split_whitespace().nth(place)?.parse::<u64>().ok()?.saturating_mul(page_size()))
}

fn share(process: &Pid) -> Option<u64> {
    share_in(&std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?)
}

/// Returns the share of a process in the resident memory, by the text of its `smaps_rollup`. It is without memory that has
/// no file, whose size counts in its place.
fn share_in(shares: &str) -> Option<u64> {
    let all = kilobytes(shares, "Pss:")?;
    let without_file = kilobytes(shares, "Pss_Shmem:").unwrap_or(0);
    Some(all.saturating_sub(without_file).saturating_mul(1024))
}

fn kilobytes(shares: &str, name: &str) -> Option<u64> {
    let figure = shares.lines().find_map(|line| line.strip_prefix(name))?;
    figure.split_whitespace().next()?.parse().ok()
}

fn sum(processes: &[Pid], memory: impl Fn(&Pid) -> Option<u64>) -> u64 {
    processes.iter().filter_map(memory).fold(0, u64::saturating_add)
}

fn page_size() -> u64 {
    let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|size| u64::try_from(size).ok()).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Returns the size of the memory that processes with these lists of mappings share.
    fn size_of(lists: &[&str]) -> u64 {
        let mut pieces = BTreeMap::new();
        for maps in lists {
            // There is no such process, so the lists alone count.
            add_shared(&Pid::from_raw(0), maps.as_bytes(), &mut pieces);
        }
        pieces.into_values().sum()
    }

    #[test]
    fn shared_memory_counts_once_in_full() {
        let one =
            "7f6609c00000-7f660bc00000 rw-s 00000000 00:01 32                         /dev/zero (deleted)\n";
        assert_eq!(size_of(&[one]), 32 * MIB);
        assert_eq!(size_of(&[one, one]), 32 * MIB, "a child has it mapped as well");
        let other =
            "7f660bc00000-7f660dc00000 rw-s 00000000 00:01 33                         /dev/zero (deleted)\n";
        assert_eq!(size_of(&[&format!("{one}{other}"), other]), 64 * MIB);
        // The middle may be read only, so that the kernel lists three parts of one piece. The first is given back.
        let parts = "7f6609d00000-7f660ac00000 r--s 00100000 00:01 32                         /dev/zero (deleted)\n\
                     7f660ac00000-7f660bc00000 rw-s 01000000 00:01 32                         /dev/zero (deleted)\n";
        assert_eq!(size_of(&[parts]), 32 * MIB);
    }

    /// A name changes nothing, whether or not it is UTF-8, and the low addresses of a process count too.
    #[test]
    fn shared_memory_has_no_disguise() {
        let named =
            "00010000-00110000 rw-s 00000000 00:01 40                                 [anon_shmem:x y]\n";
        assert_eq!(size_of(&[named]), MIB);
        assert_eq!(size_of(&["00010000-00110000 rw-s 00000000 00:00 0\n"]), MIB);
        let mut maps = b"7f0000000000-7f0000100000 r--p 00000000 fe:00 7    /tmp/\xff\xfe\n".to_vec();
        maps.extend_from_slice(named.as_bytes());
        let mut pieces = BTreeMap::new();
        add_shared(&Pid::from_raw(0), &maps[..], &mut pieces);
        assert_eq!(pieces.into_values().sum::<u64>(), MIB);
    }

    #[test]
    fn files_and_own_memory_are_not_shared() {
        for line in [
            "7f661a2b3000-7f661a2ba000 r--s 00000000 fe:00 325745                     /usr/lib/gconv-modules.cache",
            "7f661a2b3000-7f661a2ba000 rw-p 00000000 00:01 9                          /dev/zero (deleted)",
            "7f661a2b3000-7f661a2ba000 rw-p 00000000 00:00 0                          [heap]",
            "7f661a2b3000-7f661a2ba000 rw-p 00000000 00:00 0",
            "7f661a2b3000-7f661a2ba000 rw-s 00000000 fe:00 8                          /tmp/dev/zero (deleted)",
            "",
            "x",
        ] {
            assert_eq!(size_of(&[line]), 0, "{line}");
        }
    }

    /// The size of shared memory takes the place of its resident part.
    #[test]
    fn share_leaves_shared_memory_out() {
        let shares = "7f00-7fff ---p 00000000 00:00 0  [rollup]\nRss:   900 kB\nPss:   700 kB\n";
        assert_eq!(share_in(shares), Some(700 << 10));
        assert_eq!(share_in(&format!("{shares}Pss_Anon:   100 kB\nPss_Shmem:   600 kB\n")), Some(100 << 10));
        assert_eq!(share_in(""), None);
    }
}
