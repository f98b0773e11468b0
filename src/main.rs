//! The `kubectl-olm` binary: hands over to [`kubectl_olm::cli`] and returns its exit code.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The allocator asks for huge pages, and with them keeps half as much memory again for no gain in speed.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    kubectl_olm::cli::run()
}
