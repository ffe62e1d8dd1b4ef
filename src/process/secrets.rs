//! Hiding the memory of this process, such as keys for providers, from other programs of the same user.

/// Keeps programs of the same user from looking into this process, by a debugger or through `/proc`. Such a program may come
/// from a change or from a model.
pub fn hide_memory() {
    // If the system refuses, nothing else can be done here.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_dumpable(false);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    /// Other programs of the same user cannot look into this process.
    #[test]
    fn hidden_memory_is_not_dumpable() {
        super::hide_memory();
        assert!(!nix::sys::prctl::get_dumpable().unwrap());
    }
}
