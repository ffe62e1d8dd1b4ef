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

/// The points of a policy on which the filter depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// Whether sockets of the internet may be opened.
    pub(super) net: bool,
    /// Whether processes may be started.
    pub(super) spawns: bool,
    /// The version of the kernel's rules. Before version 6 they do not keep signals inside the wall, so none may be sent;
    /// before version 3 they do not cover `truncate`, so it is forbidden.
    pub(super) rules: ABI,
}

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
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setaffinity, 0),
];

/// The bit by which a process on x86-64 makes calls of the ABI with 32-bit pointers, and the calls that only that ABI
/// has.
const X32_BIT: i64 = 0x4000_0000;
const X32_CALLS: std::ops::RangeInclusive<i64> = 512..=547;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Returns the filters, which are to be applied in this order.
pub(super) fn filters(needs: Needs) -> Result<[BpfProgram; 2], seccompiler::Error> {
    let mut rules = Rules::new();
    let mut forbid = |calls: &[i64]| rules.extend(calls.iter().map(|call| (*call, Vec::new())));
    forbid(FORBIDDEN);
    forbid(FORBIDDEN_OLD);
    if needs.rules < ABI::V6 {
        forbid(SIGNALS);
    }
    if needs.rules < ABI::V3 {
        forbid(&[libc::SYS_truncate]);
    }
    let is_any = |argument, bits: &[u64]| -> Result<Vec<SeccompRule>, seccompiler::Error> {
        bits.iter().map(|bit| rule(&[(argument, SeccompCmpOp::MaskedEq(*bit), *bit)])).collect()
    };
    for (call, argument) in MODES {
        rules.insert(*call, is_any(*argument, &MODE_BITS)?);
    }
    rules.insert(libc::SYS_clone, is_any(0, &NAMESPACES.map(|flag| u64::from(flag.unsigned_abs())))?);
    let requests: Result<Vec<_>, _> =
        REQUESTS.iter().map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)])).collect();
    rules.insert(libc::SYS_ioctl, requests?);
    for (call, argument) in OTHERS {
        rules.insert(*call, vec![rule(&[(*argument, SeccompCmpOp::Ne, 0)])?]);
    }
    rules.insert(libc::SYS_prlimit64, vec![limits_of_another()?]);
    rules.extend(NEW_CALLS.map(|call| (call, Vec::new())));
    if !needs.spawns {
        rules.extend(SPAWNS.iter().map(|call| (*call, Vec::new())));
    }
    rules.insert(libc::SYS_socket, sockets(needs.net)?);
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
    Ok([program(rules, libc::EPERM)?, program(clone3, libc::ENOSYS)?])
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
    let kinds = [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM];
    let of_kind = |kind: i32| rule(&[(1, SeccompCmpOp::MaskedEq(KIND), family(kind))]);
    let mut rules = kinds.into_iter().map(of_kind).collect::<Result<Vec<_>, _>>()?;
    rules.push(rule(&[(0, SeccompCmpOp::Ne, family(libc::AF_UNIX))])?);
    Ok(rules)
}

/// Returns the rule by which new limits for another process are refused.
fn limits_of_another() -> Result<SeccompRule, seccompiler::Error> {
    let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    let new = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    Ok(SeccompRule::new(vec![other, new])?)
}

fn family(number: i32) -> u64 {
    u64::from(number.unsigned_abs())
}

/// Returns a rule whose conditions must all hold.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::Error> {
    let condition = |(argument, operator, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    };
    let conditions = conditions.iter().map(condition).collect::<Result<_, _>>()?;
    Ok(SeccompRule::new(conditions)?)
}

fn program(rules: Rules, errno: i32) -> Result<BpfProgram, seccompiler::Error> {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let machine = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refuse, machine)?.try_into()?)
}
