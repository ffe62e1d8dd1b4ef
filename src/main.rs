//! The binary: arguments in, exit code out.

fn main() -> std::process::ExitCode {
    consensus::cli::main(std::env::args_os()).into()
}
