//! tquic as an endpoint program (`endpoints/CONTRACT.md`).

mod adapter;
mod boringssl;
mod config;
mod connection;
mod handler;
mod qlog;
mod timeout;

use std::process::ExitCode;

fn main() -> ExitCode {
    bentpipe_endpoint::run::<adapter::Adapter>()
}

#[cfg(test)]
mod tests {
    use bentpipe_endpoint::Stack;

    use crate::adapter::Adapter;

    #[test]
    fn the_version_is_the_one_that_is_locked() {
        let (name, version) = Adapter::VERSION.split_once(' ').unwrap();
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(
            include_str!("../Cargo.lock").contains(&entry),
            "update VERSION"
        );
    }
}
