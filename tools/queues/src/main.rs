//! Sends the same packets through a queue discipline of Linux, in a guest, and through the link's,
//! and says how far they agree: an object of JSON for each comparison, a line each.

mod cases;
mod fates;
mod guest;
mod ours;
mod traffic;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use serde_json::Value;

use cases::{Case, RATE};

fn main() -> ExitCode {
    let given = definition().get_matches();
    for case in cases::all() {
        let wanted = given.get_many::<String>("case");
        if wanted.is_some_and(|mut names| !names.any(|it| it == case.name)) {
            continue;
        }
        match compare(&case, &given) {
            Ok(found) => println!("{found}"),
            Err(problem) => {
                eprintln!("error: {}: {problem}", case.name);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn definition() -> clap::Command {
    let names = cases::all().into_iter().map(|it| it.name);
    clap::Command::new("bentpipe-queue-comparison")
        .about("The same packets through Linux's queue disciplines and through the link's")
        .arg(path("guest").help("The program bentpipe-guest"))
        .arg(path("kernel").help("The guest's kernel"))
        .arg(
            Arg::new("seed")
                .long("seed")
                .help("Draws gaps, sizes and, on each side, drops")
                .default_value("1")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            Arg::new("case")
                .long("case")
                .help("Only this comparison; may be given again")
                .action(ArgAction::Append)
                .value_parser(names.collect::<Vec<_>>()),
        )
        .arg(
            Arg::new("at-root")
                .long("at-root")
                .help("Linux's discipline at the root, where packets bypass it while it is empty")
                .action(ArgAction::SetTrue),
        )
}

fn path(name: &'static str) -> Arg {
    let arg = Arg::new(name).required(true);
    arg.value_parser(value_parser!(PathBuf))
}

fn compare(case: &Case, given: &ArgMatches) -> Result<Value, String> {
    let program = |name| -> &Path { given.get_one::<PathBuf>(name).expect("clap asks for it") };
    let seed = *given.get_one("seed").expect("it has a default");
    let packets = traffic::packets(&case.flows, case.duration_ms, seed);
    let ours = ours::ends(case.ours, RATE, seed, &packets)?;
    let commands = cases::commands(case.linux, !given.get_flag("at-root"));
    let programs = ["guest", "kernel"].map(program);
    let (linux, said) = guest::ends(programs, &commands, RATE, seed, &packets)
        .map_err(|problem| problem.to_string())?;
    let mut found = fates::compare(&packets, &ours, &linux);
    found["case"] = case.name.into();
    found["seed"] = seed.into();
    found["tc"] = said;
    Ok(found)
}
