//! The system calls that a walled command may not make.
//!
//! The input is the parts of a policy that system calls decide. The output is programs for the kernel's filter. The
//! filter forbids what file rules do not see: sockets, other processes, the kernel's keys and settings, and the changes
//! of a file's owner and attributes. A forbidden call fails with `EPERM`, as it would for lack of a right.

use std::collections::BTreeMap;

use landlock::ABI;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::WallPolicy;

/// Calls that concern other processes, the machine or the kernel, and file attributes that no file rule covers.
const FORBIDDEN: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
    // A file in memory counts for no process.
    libc::SYS_memfd_create,
    SYS_MEMFD_SECRET,
    // Memory and messages of System V and POSIX outlive the process that made them.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// `memfd_secret`, of Linux 5.14, which has the same number on every machine.
const SYS_MEMFD_SECRET: i64 = 447;

/// Older calls that some machines have beside the general ones.
#[cfg(target_arch = "x86_64")]
const FORBIDDEN_OLD: &[i64] = &[
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_OLD: &[i64] = &[];

/// Calls that send a signal.
const SIGNALS: &[i64] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// Commands of `fcntl` by which a file gets an owner, who is sent a signal when the file is ready, or gets the number of
/// that signal: `F_SETOWN`, `F_SETSIG` and `F_SETOWN_EX`.
const OWNER_COMMANDS: [u64; 3] = [8, 10, 15];

/// Requests to a socket by which it gets an owner: `FIOSETOWN` and `SIOCSPGRP`.
const OWNER_REQUESTS: [u64; 2] = [0x8901, 0x8902];

/// Calls that start a process or another program.
const SPAWNS: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_clone,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// Calls that change the mode of a file, with the place of the mode among their arguments.
const MODES: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (SYS_FCHMODAT2, 2),
];

/// `fchmodat2`, of Linux 6.6, which has the same number on every machine.
const SYS_FCHMODAT2: i64 = 452;

/// The bits of a mode that give rights to other users: write for all users, set-group-id and set-user-id.
const MODE_BITS: [u64; 3] = [0o2, 0o2000, 0o4000];

/// The flags of `clone` that make a namespace, in which a process would have rights that it lacks outside.
const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    CLONE_NEWTIME,
];

/// `CLONE_NEWTIME`, of Linux 5.6.
const CLONE_NEWTIME: i32 = 0x80;

/// Requests to a device or file: those that put words into a terminal as if a person had typed them (`TIOCSTI` and
/// `TIOCLINUX`), and those that change the flags of a file (`FS_IOC_SETFLAGS` and `FS_IOC_FSSETXATTR`).
const REQUESTS: [u64; 4] = [0x5412, 0x541C, 0x4008_6602, 0x401C_5820];

/// The calls that came with Linux 6.13 and later, which have the same number on every machine. They change the attributes
/// of files, or are not known here.
const NEW_CALLS: std::ops::RangeInclusive<i64> = 463..=511;

/// Calls that change how another process runs, with the place of its number among their arguments. Zero is the caller.
const OTHERS: &[(i64, u8)] = &[
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setaffinity, 0),
];

/// Calls that change how fast others run. The first argument says whether the second is the number of a process, a group
/// or a user, and zero is that of the caller. With each call is the first argument that means a process: `PRIO_PROCESS`
/// and `IOPRIO_WHO_PROCESS`.
const PRIORITIES: [(i64, u64); 2] = [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)];

/// The bit by which a process on x86-64 makes calls of the ABI with 32-bit pointers, and the calls that only that ABI
/// has.
const X32_BIT: i64 = 0x4000_0000;
const X32_CALLS: std::ops::RangeInclusive<i64> = 512..=547;

/// Returns the filters, which are to be applied in this order. `landlock` is the version of the kernel's rules for files.
pub(super) fn filters(policy: &WallPolicy, landlock: ABI) -> Result<[BpfProgram; 2], seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    rules.extend(FORBIDDEN.iter().chain(FORBIDDEN_OLD).map(|call| (*call, Vec::new())));
    if landlock < ABI::V3 {
        // The rules for files do not cover this call.
        rules.insert(libc::SYS_truncate, Vec::new());
    }
    let mut requests = REQUESTS.to_vec();
    if landlock < ABI::V6 {
        // The kernel does not keep signals inside the wall, whether they are sent by a call or by a file that has an owner.
        rules.extend(SIGNALS.iter().map(|call| (*call, Vec::new())));
        rules.insert(libc::SYS_fcntl, equals_any(1, &OWNER_COMMANDS)?);
        requests.extend(OWNER_REQUESTS);
    }
    rules.insert(libc::SYS_ioctl, equals_any(1, &requests)?);
    for (call, argument) in MODES {
        rules.insert(*call, any_bit_set(*argument, &MODE_BITS)?);
    }
    let namespaces = NAMESPACES.map(|flag| u64::from(flag.unsigned_abs()));
    rules.insert(libc::SYS_clone, any_bit_set(0, &namespaces)?);
    for (call, argument) in OTHERS {
        rules.insert(*call, vec![rule(&[(*argument, SeccompCmpOp::Ne, 0)])?]);
    }
    for (call, process) in PRIORITIES {
        let of_others = rule(&[(0, SeccompCmpOp::Ne, process)])?;
        let of_another = rule(&[(1, SeccompCmpOp::Ne, 0)])?;
        rules.insert(call, vec![of_others, of_another]);
    }
    rules.insert(libc::SYS_prlimit64, vec![limits_of_another()?]);
    rules.extend(NEW_CALLS.map(|call| (call, Vec::new())));
    if policy.interprets {
        rules.extend(SPAWNS.iter().map(|call| (*call, Vec::new())));
    }
    rules.insert(libc::SYS_socket, sockets(policy.net)?);
    rules.insert(libc::SYS_socketpair, pairs()?);
    if cfg!(target_arch = "x86_64") {
        let twins: Vec<(i64, Vec<SeccompRule>)> =
            rules.iter().map(|(call, rules)| (call | X32_BIT, rules.clone())).collect();
        rules.extend(twins);
        rules.extend(X32_CALLS.map(|call| (call | X32_BIT, Vec::new())));
    }
    // The flags of clone3 are behind a pointer. A library that does not find it uses clone.
    let clone3 = [libc::SYS_clone3, libc::SYS_clone3 | X32_BIT];
    let clone3 = clone3.into_iter().map(|call| (call, Vec::new())).collect();
    Ok([compile(rules, libc::EPERM)?, compile(clone3, libc::ENOSYS)?])
}

/// Returns the rules by which a socket is refused. Sockets of the internet need the kernel's routing tables too.
fn sockets(net: bool) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    if !net {
        return Ok(Vec::new());
    }
    let other =
        [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|known| (0, SeccompCmpOp::Ne, family(known)));
    Ok(vec![rule(&other)?])
}

/// Returns the rules by which a pair of sockets is refused. A pair without a connection could send to sockets outside.
fn pairs() -> Result<Vec<SeccompRule>, seccompiler::Error> {
    const KIND: u64 = 0xF;
    let mut rules = Vec::new();
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM] {
        rules.push(rule(&[(1, SeccompCmpOp::MaskedEq(KIND), family(kind))])?);
    }
    rules.push(rule(&[(0, SeccompCmpOp::Ne, family(libc::AF_UNIX))])?);
    Ok(rules)
}

/// Returns the rule by which new limits for another process are refused.
fn limits_of_another() -> Result<SeccompRule, seccompiler::Error> {
    let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    let new = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    Ok(SeccompRule::new(vec![other, new])?)
}

/// Returns the rules by which a call is refused if an argument has one of these values.
fn equals_any(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    values.iter().map(|value| rule(&[(argument, SeccompCmpOp::Eq, *value)])).collect()
}

/// Returns the rules by which a call is refused if an argument has one of these bits.
fn any_bit_set(argument: u8, bits: &[u64]) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    bits.iter().map(|bit| rule(&[(argument, SeccompCmpOp::MaskedEq(*bit), *bit)])).collect()
}

fn family(number: i32) -> u64 {
    u64::from(number.unsigned_abs())
}

/// Returns a rule whose conditions must all hold.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::Error> {
    let mut all = Vec::new();
    for (argument, operator, value) in conditions {
        all.push(SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)?);
    }
    Ok(SeccompRule::new(all)?)
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, seccompiler::Error> {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let machine = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refuse, machine)?.try_into()?)
}

#[cfg(test)]
mod tests {
    use seccompiler::BpfProgramRef;

    use super::*;

    /// Returns true if the filters for a kernel with this version of the rules refuse a call.
    fn refuse(rules: ABI, call: i64, arguments: &[u64]) -> bool {
        filters(&WallPolicy::default(), rules)
            .unwrap()
            .iter()
            .any(|program| returns(program, call, arguments) != libc::SECCOMP_RET_ALLOW)
    }

    /// Runs a program as the kernel does, and returns its answer to a call.
    fn returns(program: BpfProgramRef, call: i64, arguments: &[u64]) -> u32 {
        // The places of the number of the call, the machine and the arguments, as in `seccomp_data`. The first
        // comparison is with this machine.
        let machine = program[1].k;
        let word = |place: u32| match place {
            0 => u32::try_from(call).unwrap(),
            4 => machine,
            _ => {
                let argument = arguments.get(usize::try_from(place - 16).unwrap() / 8).copied().unwrap_or(0);
                let half = if place.is_multiple_of(8) { argument } else { argument >> 32 };
                u32::try_from(half & u64::from(u32::MAX)).unwrap()
            }
        };
        let (mut at, mut value) = (0, 0);
        loop {
            let step = &program[at];
            let jump_if = |is: bool| usize::from(if is { step.jt } else { step.jf });
            at += 1;
            match step.code {
                0x20 => value = word(step.k),
                0x54 => value &= step.k,
                0x05 => at += usize::try_from(step.k).unwrap(),
                0x15 => at += jump_if(value == step.k),
                0x25 => at += jump_if(value > step.k),
                0x35 => at += jump_if(value >= step.k),
                0x06 => return step.k,
                code => panic!("there is no instruction {code:#x}"),
            }
        }
    }

    /// A file with an owner sends signals, which kernels before 6.12 do not keep inside.
    #[test]
    fn old_kernels_give_files_no_owner() {
        // The kernel reads the lower half of the command alone.
        let disguised = 8 | (1 << 32);
        for command in [8, 10, 15, disguised] {
            assert!(refuse(ABI::V5, libc::SYS_fcntl, &[3, command, 1]), "{command:#x}");
            assert!(!refuse(ABI::V6, libc::SYS_fcntl, &[3, command, 1]), "{command:#x}");
        }
        for request in [0x8901, 0x8902] {
            assert!(refuse(ABI::V5, libc::SYS_ioctl, &[3, request, 1]), "{request:#x}");
            assert!(!refuse(ABI::V6, libc::SYS_ioctl, &[3, request, 1]), "{request:#x}");
        }
        // F_DUPFD, F_GETFD, F_SETFL, F_SETLK and F_GETOWN.
        for command in [0, 1, 4, 6, 9] {
            assert!(!refuse(ABI::V1, libc::SYS_fcntl, &[3, command, 1]), "{command}");
        }
        for rules in [ABI::V1, ABI::V6] {
            assert!(refuse(rules, libc::SYS_ioctl, &[0, 0x5412, 1]), "TIOCSTI");
            assert!(!refuse(rules, libc::SYS_ioctl, &[0, 0x5401, 1]), "TCGETS");
        }
        assert!(refuse(ABI::V5, libc::SYS_kill, &[1, 9]) && !refuse(ABI::V6, libc::SYS_kill, &[1, 9]));
    }

    /// A process may make itself slower, and neither its group nor its user, which have the number zero too.
    #[test]
    fn only_own_priority_changes() {
        for (call, which, number, is_refused) in [
            (libc::SYS_setpriority, 0, 0, false),
            (libc::SYS_setpriority, 0, 1, true),
            (libc::SYS_setpriority, 1, 0, true),
            (libc::SYS_setpriority, 2, 0, true),
            (libc::SYS_ioprio_set, 1, 0, false),
            (libc::SYS_ioprio_set, 1, 1, true),
            (libc::SYS_ioprio_set, 2, 0, true),
            (libc::SYS_ioprio_set, 3, 0, true),
        ] {
            assert_eq!(refuse(ABI::V7, call, &[which, number, 19]), is_refused, "{call} {which} {number}");
        }
    }

    /// A file in memory counts for no process, whichever call makes it.
    #[test]
    fn no_files_are_made_in_memory() {
        for call in [libc::SYS_memfd_create, SYS_MEMFD_SECRET, libc::SYS_shmget] {
            assert!(refuse(ABI::V7, call, &[]), "{call}");
        }
    }
}
