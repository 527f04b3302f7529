//! `MsQuic` as an endpoint program, in socket mode only (`endpoints/CONTRACT.md`): it owns its
//! sockets, its clock and its threads.

mod connection;
mod messages;
mod secrets;
mod settings;
mod stack;
mod stream;

use std::io;
use std::process::ExitCode;
use std::sync::mpsc::Sender;
use std::thread;

use bentpipe_endpoint::{
    Application, EndpointError, Migration, Options, Role, Setup, Stack, keep_freed_memory,
};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use messages::Message;
use stack::MsQuic;

fn main() -> ExitCode {
    keep_freed_memory();
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => run(),
        ["--version"] => {
            println!("{}", MsQuic::VERSION);
            Ok(())
        }
        _ => {
            eprintln!("usage: bentpipe-endpoint-msquic [--version]");
            eprintln!("endpoints/CONTRACT.md says what it does.");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bentpipe-endpoint-msquic: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run() -> Result<(), EndpointError> {
    let setup = Setup::from_environment()?;
    let (mut stack, mut application, migration) = prepare(&setup)?;
    terminate(stack.sender()).map_err(EndpointError::io("handling SIGTERM"))?;
    if setup.role == Role::Server {
        stack.listen(setup.local)?;
        println!("ready");
    }
    let result = live(&setup, &mut stack, &mut application, migration);
    stack.leave();
    if let Some(keylog) = &setup.keylog {
        keylog.complete()?;
    }
    result?;
    match application.finish()?.error {
        Some(words) if setup.role == Role::Client => Err(EndpointError::Failed(words)),
        _ => Ok(()),
    }
}

/// All that can be unsupported is found out here, before the first packet.
fn prepare(setup: &Setup) -> Result<(MsQuic, Application, Option<Migration>), EndpointError> {
    if !MsQuic::TEST_CASES.contains(&setup.test_case) {
        let what = format!("test case {:?}", setup.test_case.name());
        return Err(EndpointError::Unsupported(what));
    }
    let mut options = Options::new(setup.options.clone());
    let migration = Migration::take::<MsQuic>(setup, &mut options)?;
    let stack = MsQuic::new(setup, &mut options)?;
    let application = Application::new(setup, &mut options)?;
    options.finish()?;
    Ok((stack, application, migration))
}

/// Passes events of `MsQuic`'s threads to the application, until a client is done or a server is
/// asked to terminate.
fn live(
    setup: &Setup,
    stack: &mut MsQuic,
    application: &mut Application,
    mut migration: Option<Migration>,
) -> Result<(), EndpointError> {
    application.start(stack, setup.clock.elapsed())?;
    while !(setup.role == Role::Client && application.is_done()) {
        stack.start()?;
        let wake = migration.as_ref().and_then(Migration::next_wake);
        let left = wake.map(|time| time.saturating_sub(setup.clock.elapsed()));
        match stack.wait(left) {
            Some(Message::Terminated) => return Ok(()),
            Some(message) => {
                if let Some(event) = stack.take(message) {
                    application.handle(stack, setup.clock.elapsed(), &event)?;
                }
            }
            None => {}
        }
        if let Some(migration) = &mut migration {
            migration.act(stack, setup.clock.elapsed());
        }
    }
    Ok(())
}

/// Makes a message of SIGTERM.
fn terminate(sender: Sender<Message>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM])?;
    thread::spawn(move || {
        for _ in signals.forever() {
            // Nobody listens any more when the program is ending anyway.
            let _ = sender.send(Message::Terminated);
        }
    });
    Ok(())
}
