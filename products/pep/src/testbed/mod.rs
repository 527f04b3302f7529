//! The proxy in a trial (`endpoints/contract/middleboxes.md`): in virtual time as a child of the
//! coordinator, in real time on a host of the emulator. Both get the same HELLO.

mod job;
mod sockets;
mod virtual_time;

use std::process::ExitCode;

use bentpipe_endpoint::EndpointError;

/// Runs the proxy if it is started as part of a trial; None: it is not.
pub fn run(arguments: &[String]) -> Option<ExitCode> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["--virtual-time"] => virtual_time::run(),
        ["trial"] => sockets::run(),
        _ => return None,
    };
    Some(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bentpipe-pep: {error}");
            ExitCode::from(error.exit_code())
        }
    })
}

/// A mistake of the library's user is one of whoever wrote the trial's options.
fn plain(error: bentpipe_pep::PepError) -> EndpointError {
    match error {
        bentpipe_pep::PepError::Option(error) => error,
        other => EndpointError::Failed(other.to_string()),
    }
}
