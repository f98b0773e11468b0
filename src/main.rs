//! The `kubectl-olm` binary: hands over to [`kubectl_olm::cli`] and returns its exit code.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kubectl_olm::cli::run()
}
