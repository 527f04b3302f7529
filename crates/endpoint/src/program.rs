//! An endpoint program from its first line to its exit code.

use std::env;
use std::process::ExitCode;

use crate::application::Application;
use crate::contract::{H3, HELLO, Hello, READY, RanMessage, Ready, encode_message, message_name};
use crate::driver::{Endpoint, Pipes, Sockets, VirtualTime};
use crate::entropy;
use crate::error::EndpointError;
use crate::memory::keep_freed_memory;
use crate::migration::Migration;
use crate::options::Options;
use crate::setup::{Role, Setup};
use crate::stack::Stack;
use crate::test_case::TestCase;

/// Runs the program around `S`: virtual time with the argument `--virtual-time`, sockets with none.
#[must_use]
pub fn run<S: Stack>() -> ExitCode {
    keep_freed_memory();
    let arguments: Vec<_> = env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--virtual-time"] => run_virtual_time::<S>(),
        [] => run_sockets::<S>(),
        _ => {
            eprintln!("usage: bentpipe-endpoint-{} [--virtual-time]", S::NAME);
            eprintln!("endpoints/CONTRACT.md says what it does.");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bentpipe-endpoint-{}: {error}", S::NAME);
            ExitCode::from(error.exit_code())
        }
    }
}

fn run_virtual_time<S: Stack>() -> Result<(), EndpointError> {
    let mut pipes = Pipes::inherited();
    let Some((kind, body)) = pipes.receive()? else {
        return Ok(());
    };
    if kind != HELLO {
        let what = format!("{} in place of HELLO", message_name(kind));
        return Err(EndpointError::Conversation(what));
    }
    let hello: Hello = serde_json::from_slice(body)?;
    seed_entropy(&hello.seed, u64::from(hello.role == "server"))?;
    let shared_memory = pipes.share(hello.shared_memory)?;
    let setup = Setup::from_hello(hello)?;
    let endpoint = new_endpoint::<S>(&setup)?;
    let knows_paths = !setup.paths.is_empty() && endpoint.stack.knows_paths();
    let ready = Ready {
        stack: S::NAME.into(),
        version: S::VERSION.into(),
        driver: format!("{}{}", VirtualTime::<S>::DRIVER, S::POLLING),
        next_wake: (setup.role == Role::Client).then_some(0),
        shared_memory,
        paths: knows_paths,
    };
    pipes.send(&encode_message(READY, &serde_json::to_vec(&ready)?))?;
    let remote = setup.remote.expect("HELLO names the other side");
    let ran = RanMessage::with_body_in(pipes.take_shared_out());
    let paths = if knows_paths { setup.paths } else { Vec::new() };
    VirtualTime::new(endpoint, setup.clock, remote, ran)
        .over(paths)
        .run(&mut pipes)
        .map(drop)
}

fn run_sockets<S: Stack>() -> Result<(), EndpointError> {
    let setup = Setup::from_environment()?;
    let endpoint = new_endpoint::<S>(&setup)?;
    let start = setup.clock.start_unix();
    let bye = Sockets::new(endpoint, &setup)?.run()?;
    if let Some(file) = &setup.report {
        bye.clone().later(start).write(file)?;
    }
    match bye.error {
        Some(words) if setup.role == Role::Client => Err(EndpointError::Failed(words)),
        _ => Ok(()),
    }
}

/// All that can be unsupported is found out here, before the first packet.
fn new_endpoint<S: Stack>(setup: &Setup) -> Result<Endpoint<S>, EndpointError> {
    if !S::TEST_CASES.contains(&setup.test_case) {
        let what = format!("test case {:?}", setup.test_case.name());
        return Err(EndpointError::Unsupported(what));
    }
    if setup.alpn == H3 && !S::TEST_CASES.contains(&TestCase::Page) {
        return Err(EndpointError::Unsupported(format!(
            "application protocol {H3:?}"
        )));
    }
    let mut options = Options::new(setup.options.clone());
    let migration = Migration::take::<S>(setup, &mut options)?;
    let stack = S::new(setup, &mut options)?;
    let application = Application::new(setup, &mut options)?;
    options.finish()?;
    Ok(Endpoint {
        stack,
        application,
        migration,
        keylog: setup.keylog.clone(),
        qlog: setup.qlog.clone(),
    })
}

/// From now on every random byte of this process is a function of `seed`, in hexadecimal, and
/// `stream`: several programs of a trial may be given the same seed.
pub fn seed_entropy(seed: &str, stream: u64) -> Result<(), EndpointError> {
    let number = u64::from_str_radix(seed, 16).map_err(|_| EndpointError::Field {
        field: "seed",
        value: seed.to_owned(),
        problem: "write up to 16 hexadecimal digits".into(),
    })?;
    entropy::seed(number, stream);
    Ok(())
}
