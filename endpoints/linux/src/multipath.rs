//! MPTCP as options ask for it.

use std::env;

use bentpipe_endpoint::{EndpointError, Options, Role};
use bentpipe_linux_tcp::{Mptcp, NamespaceSettings, Subflows, check_mptcp, mptcp_scheduler};

/// The client's addresses, each with the name of its path (`endpoints/contract/socket-mode.md`).
const PATHS: &str = "BENTPIPE_PATHS";

/// Takes the options of MPTCP, of which all others need `mptcp=on`; none: TCP is asked for.
pub fn take(
    options: &mut Options,
    role: Role,
    settings: &mut NamespaceSettings,
) -> Result<Option<Mptcp>, EndpointError> {
    if options.take_switch("mptcp")? != Some(true) {
        return refuse_others(options).map(|()| None);
    }
    check_mptcp()?;
    if let Some(name) = options.take("scheduler") {
        settings.change("mptcp/scheduler", mptcp_scheduler(&name)?)?;
    }
    if role == Role::Server {
        return Ok(Some(Mptcp::default()));
    }
    let paths = env::var(PATHS).unwrap_or_default();
    let mptcp = Mptcp {
        subflows: subflows(options)?,
        paths: Mptcp::read_paths(&paths)?,
        backups: options
            .take("backup")
            .map(|names| names.split('+').map(str::to_owned).collect())
            .unwrap_or_default(),
    };
    mptcp.check()?;
    Ok(Some(mptcp))
}

/// Refuses what says something of subflows that there are not.
fn refuse_others(options: &mut Options) -> Result<(), EndpointError> {
    for name in ["scheduler", "path-manager", "backup"] {
        if let Some(value) = options.take(name) {
            return Err(EndpointError::option(name, &value, "it needs mptcp=on"));
        }
    }
    Ok(())
}

fn subflows(options: &mut Options) -> Result<Subflows, EndpointError> {
    let words = [
        ("subflow", Subflows::FromEach),
        ("fullmesh", Subflows::FullMesh),
        ("none", Subflows::None),
    ];
    let asked = options.take_word("path-manager", &words)?;
    Ok(asked.unwrap_or_default())
}
