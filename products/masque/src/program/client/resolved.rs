//! A client's settings with all files read and the proxy's address looked up.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use bentpipe_connections::tls::{self, ClientTls};
use bentpipe_endpoint::{Clock, Role};
use bentpipe_masque::{ClientSettings, IpTemplate, Purpose, Target, TargetError, Template};
use bentpipe_noq_options::RememberedPaths;
use bentpipe_service::SettingsError;
use bentpipe_service::settings::HostPort;

use super::file::ClientFile;
use crate::program::tunnel;

/// The port of a proxy whose template names none.
const HTTPS: u16 = 443;

/// Reads the files that the settings name, and looks up where the proxy is.
pub fn settings(file: &ClientFile, clock: &Clock) -> Result<ClientSettings, SettingsError> {
    let proxy = &file.proxy;
    let (wanted, (name, port)) = purpose(file)?;
    let address = match &proxy.address {
        Some(address) => address.clone(),
        None => host_port(&format!("{name}:{}", port.unwrap_or(HTTPS)))?,
    };
    let found = address.resolve().map_err(|error| {
        let hint = "write an address, or a name that the system can resolve";
        SettingsError::new("proxy.address", format!("{address}: {error}"), hint)
    })?;
    let of_proxy = ClientTls {
        table: "proxy",
        ca: proxy.ca.as_deref(),
        certificate: proxy.certificate.as_deref().zip(proxy.key.as_deref()),
        keylog: proxy.keylog.as_deref(),
    };
    let peers = RememberedPaths::default();
    let queue = file.limits.queue;
    let mut tunnel = tunnel::settings(&file.tunnel, queue, Role::Client, clock, peers)?;
    let held = usize::try_from(file.limits.stream_buffer.bytes());
    tunnel.carriage.held = held.expect("the setting's range ensures it");
    Ok(ClientSettings {
        tunnel,
        proxy: found,
        proxy_name: name.trim_matches(['[', ']']).to_owned(),
        wanted,
        token: proxy.token.as_deref().map(token).transpose()?,
        tls: tls::client(of_proxy)?,
    })
}

/// The target, which the file's check has seen.
pub fn target(file: &ClientFile) -> Result<Target, SettingsError> {
    let text = file.target.as_ref().map(ToString::to_string);
    let parsed = text.unwrap_or_default().parse::<Target>();
    parsed.map_err(|error| {
        SettingsError::new("target", error.to_string(), "write \"server.example:443\"")
    })
}

/// The purpose of requests, and the proxy's name and port in them.
fn purpose(file: &ClientFile) -> Result<(Purpose, (String, Option<u16>)), SettingsError> {
    if file.tun.name.is_some() {
        let template = template(file, IpTemplate::of_proxy)?;
        let authority = template.authority();
        let clients = None;
        return Ok((Purpose::Ip { template, clients }, authority));
    }
    let template = template(file, Template::of_proxy)?;
    let authority = template.authority();
    let target = target(file)?;
    Ok((Purpose::Udp { template, target }, authority))
}

fn template<T: FromStr<Err = TargetError>>(
    file: &ClientFile,
    of_proxy: fn(&str) -> Result<T, TargetError>,
) -> Result<T, SettingsError> {
    let parsed = match (&file.proxy.template, &file.proxy.address) {
        (Some(text), _) => text.parse(),
        (None, Some(address)) => of_proxy(&address.to_string()),
        (None, None) => of_proxy(""),
    };
    parsed.map_err(|error| {
        let hint = "name the proxy with proxy.address = \"HOST:PORT\", or with proxy.template";
        SettingsError::new("proxy", error.to_string(), hint)
    })
}

fn host_port(text: &str) -> Result<HostPort, SettingsError> {
    text.parse().map_err(|error: String| {
        let hint = "name the proxy's address with proxy.address = \"HOST:PORT\"";
        SettingsError::new("proxy.template", error, hint)
    })
}

/// The first line of a file.
fn token(file: &Path) -> Result<String, SettingsError> {
    let problem = |what: String| {
        let what = format!("{}: {what}", file.display());
        let hint = "name a file whose first line is the token that the proxy's operator gave you";
        SettingsError::new("proxy.token", what, hint)
    };
    let text = fs::read_to_string(file).map_err(|error| problem(error.to_string()))?;
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() || !line.bytes().all(|it| it.is_ascii_graphic()) {
        return Err(problem("its first line is no token".to_owned()));
    }
    Ok(line.to_owned())
}
