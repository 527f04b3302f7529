//! The configuration of a client: one TOML file, flags that change what it says, or flags alone.
//!
//! [`ClientFile`] is what may be written; the target and the proxy have no default.

use std::net::SocketAddr;
use std::path::PathBuf;

use bentpipe_masque::{IpTemplate, Prefix, Target, Template};
use bentpipe_service::settings::{
    HostPort, LogSettings, MetricsSettings, Options, Problem, SettingsFile, wrong,
};
use bentpipe_units::Size;
use serde::{Deserialize, Serialize};

use crate::program::{device, tunnel};

/// The settings: everything that a configuration file may say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClientFile {
    /// Where datagrams for the target come, over UDP.
    pub listen: SocketAddr,
    /// Where they are to go: `HOST:PORT`. The proxy looks a name up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<HostPort>,
    pub tun: Tun,
    pub proxy: ProxyTable,
    /// The options of the tunnel: its congestion control, in the words of the noq endpoint's
    /// variants, and how datagrams are carried.
    pub tunnel: Options,
    pub limits: Limits,
    pub metrics: MetricsSettings,
    pub log: LogSettings,
}

/// The TUN device, by which all IP packets of this machine go that the proxy carries.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tun {
    /// Its name; absent: there is none, but a UDP port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where packets go by it, of what the proxy carries; absent: all of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<Prefix>>,
}

/// The proxy.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProxyTable {
    /// Where it is; absent: where the template says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<HostPort>,
    /// How its requests are written; absent: the default of RFC 9298.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The token that it asks for: the first line of this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<PathBuf>,
    /// The authority that signs its certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// `true`: any certificate will do, and so will anybody on the way.
    pub any_certificate: bool,
    /// The certificate of this client where the proxy asks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// The key log of the connections to it, for decrypting captures in a laboratory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keylog: Option<PathBuf>,
}

/// The limits of the tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Bytes of datagrams, or of a request's capsules, that wait for congestion control.
    pub queue: Size,
    /// Bytes of streams that wait behind a gap, or to be taken.
    pub stream_buffer: Size,
}

impl SettingsFile for ClientFile {
    const EXAMPLE: &'static str = "examples/masque-client.toml";
    const CHECK: &'static str = "bentpipe masque client --check";

    fn check(&self) -> Result<(), Problem> {
        self.check_ends()?;
        self.check_tls()?;
        let sizes = [
            ("limits.queue", self.limits.queue),
            ("limits.stream-buffer", self.limits.stream_buffer),
        ];
        tunnel::check(&self.tunnel, &sizes)
    }

    fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let proxy = &mut self.proxy;
        let all = [
            &mut proxy.token,
            &mut proxy.ca,
            &mut proxy.certificate,
            &mut proxy.key,
            &mut proxy.keylog,
        ];
        all.into_iter().flatten()
    }
}

impl ClientFile {
    fn check_ends(&self) -> Result<(), Problem> {
        match (&self.tun.name, &self.target) {
            (Some(name), None) => self.check_tun(name)?,
            (Some(_), Some(_)) => {
                let hint = "leave one of them out: a client has a device for all packets (--tun), \
                            or a UDP port for one target (--target)";
                return wrong("tun.name and target: both are there", hint);
            }
            (None, _) if self.tun.routes.is_some() => {
                let hint = "name the device with tun.name = \"masque0\" (--tun)";
                return wrong("tun.routes: there is no device", hint);
            }
            (None, Some(target)) => self.check_target(target)?,
            (None, None) => {
                let hint = "name one with target = \"HOST:PORT\" (--target), or a device for all \
                            IP packets with tun.name = \"masque0\" (--tun)";
                return wrong("target: there is none", hint);
            }
        }
        if self.proxy.address.is_none() && self.proxy.template.is_none() {
            let hint = "name it with proxy.address = \"HOST:PORT\" (--proxy), or with \
                        proxy.template (--template)";
            return wrong("proxy: there is none", hint);
        }
        Ok(())
    }

    fn check_target(&self, target: &HostPort) -> Result<(), Problem> {
        if let Err(error) = target.to_string().parse::<Target>() {
            let what = format!("target = \"{target}\": {error}");
            return wrong(what, "write one such as \"server.example:443\"");
        }
        if let Some(template) = &self.proxy.template
            && let Err(error) = template.parse::<Template>()
        {
            let hint = "write one such as \"https://proxy.example/{target_host}/{target_port}/\"";
            return wrong(format!("proxy.template: {error}"), hint);
        }
        Ok(())
    }

    fn check_tun(&self, name: &str) -> Result<(), Problem> {
        device::check_name("tun.name", name)?;
        if let Some(template) = &self.proxy.template
            && let Err(error) = template.parse::<IpTemplate>()
        {
            let hint = "write one such as \"https://proxy.example/ip/{target}/{ipproto}/\"";
            return wrong(format!("proxy.template: {error}"), hint);
        }
        if self.listen != Self::default().listen {
            let what = format!("listen = \"{}\", but packets come by a device", self.listen);
            return wrong(what, "leave out listen, or tun.name");
        }
        Ok(())
    }

    fn check_tls(&self) -> Result<(), Problem> {
        let proxy = &self.proxy;
        if proxy.certificate.is_some() != proxy.key.is_some() {
            let what = "proxy.certificate and proxy.key: one of them is missing";
            return wrong(what, "give both, or neither");
        }
        if proxy.any_certificate && proxy.ca.is_some() {
            let what = "proxy.any-certificate = true, but proxy.ca is there to verify with";
            return wrong(what, "leave one of them out");
        }
        if !proxy.any_certificate && proxy.ca.is_none() {
            let what = "proxy.ca: missing, so that the proxy's certificate cannot be verified";
            let hint = "name the file with the certificates that sign it, as in ca = \
                        \"/etc/ssl/certs/ca-certificates.crt\" (--ca), or in a laboratory \
                        any-certificate = true (--no-verify)";
            return wrong(what, hint);
        }
        Ok(())
    }
}

impl Default for ClientFile {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4443)),
            target: None,
            tun: Tun::default(),
            proxy: ProxyTable::default(),
            tunnel: Options::new(),
            limits: Limits::default(),
            metrics: MetricsSettings::default(),
            log: LogSettings::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queue: Size::from_bytes(1 << 20),
            stream_buffer: Size::from_bytes(32 << 20),
        }
    }
}
