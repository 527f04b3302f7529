//! The target of a request for UDP, and how a URI names it (RFC 9298, section 2).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;
use iri_string::spec::UriSpec;
use iri_string::template::UriTemplateString;
use iri_string::template::simple_context::SimpleContext;
use percent_encoding::percent_decode_str;
use thiserror::Error;

use crate::ip::Scope;

/// The path of the default template, with which a proxy serves (RFC 9298, section 3).
const WELL_KNOWN: &str = "/.well-known/masque/udp/";
/// The longest name of a host in DNS, as a text.
const LONGEST_NAME: usize = 253;

/// A host and a port of UDP.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// A name, or an IP address without brackets.
    pub host: String,
    /// The port, not 0.
    pub port: u16,
}

/// The reason for which a target, or a template for one, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// A path that is not one of the default template.
    #[error("the path {0:?} is not {WELL_KNOWN}HOST/PORT/")]
    Path(String),
    /// A host that is neither a name nor an address.
    #[error("{0:?} is neither a host's name nor an IP address")]
    Host(String),
    /// A port that is none.
    #[error("{0:?} is no port: write a number from 1 to 65535")]
    Port(String),
    /// A template that cannot be used.
    #[error("the template {template:?} {problem}")]
    Template {
        /// The template.
        template: String,
        /// The flaw, in words.
        problem: &'static str,
    },
}

impl Target {
    /// A target of these parts.
    pub fn new(host: &str, port: &str) -> Result<Self, TargetError> {
        let is_name = |host: &str| {
            let allowed = |it: u8| it.is_ascii_alphanumeric() || b"-._".contains(&it);
            !host.is_empty() && host.len() <= LONGEST_NAME && host.bytes().all(allowed)
        };
        if host.parse::<IpAddr>().is_err() && !is_name(host) {
            return Err(TargetError::Host(host.to_owned()));
        }
        let digits = !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit());
        let number = port.parse().ok().filter(|number| digits && *number > 0);
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port: number.ok_or_else(|| TargetError::Port(port.to_owned()))?,
        })
    }

    /// The target that a path of the default template names.
    pub fn of_path(path: &str) -> Result<Self, TargetError> {
        let wrong = || TargetError::Path(path.chars().take(100).collect());
        let rest = path.strip_prefix(WELL_KNOWN).ok_or_else(wrong)?;
        let parts: Vec<&str> = rest.split('/').collect();
        let [host, port, ""] = parts[..] else {
            return Err(wrong());
        };
        let decoded = |part| percent_decode_str(part).decode_utf8().map_err(|_| wrong());
        Self::new(&decoded(host)?, &decoded(port)?)
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        Self::new(inner.unwrap_or(host), port)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            return write!(f, "[{host}]:{port}");
        }
        write!(f, "{host}:{port}")
    }
}

/// A URI template (RFC 6570) of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(UriTemplateString);

impl Template {
    /// The default template of a proxy (RFC 9298, section 3).
    pub fn of_proxy(authority: &str) -> Result<Self, TargetError> {
        format!("https://{authority}{WELL_KNOWN}{{target_host}}/{{target_port}}/").parse()
    }

    /// The proxy's host and port, if it names one.
    #[must_use]
    pub fn authority(&self) -> (String, Option<u16>) {
        let target = Target {
            host: "a".to_owned(),
            port: 1,
        };
        let uri = self.expand(&target).ok();
        let authority = uri.and_then(|it| it.into_parts().authority);
        let authority = authority.expect("its parsing made sure of that");
        (authority.host().to_owned(), authority.port_u16())
    }

    /// The URI that names a target.
    pub fn expand(&self, target: &Target) -> Result<Uri, TargetError> {
        let mut variables = SimpleContext::new();
        variables.insert("target_host", target.host.as_str());
        variables.insert("target_port", target.port.to_string());
        let expanded = self.0.expand::<UriSpec, _>(&variables);
        let expanded = expanded.map_err(|_| self.wrong("cannot be expanded"))?;
        let uri = Uri::from_str(&expanded.to_string());
        uri.map_err(|_| self.wrong("does not become a URI"))
    }

    fn wrong(&self, problem: &'static str) -> TargetError {
        TargetError::Template {
            template: self.0.to_string(),
            problem,
        }
    }
}

/// A URI template of a proxy for IP (RFC 9484, section 3), with which everything is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpTemplate(Uri);

impl IpTemplate {
    /// The default template of a proxy.
    pub fn of_proxy(authority: &str) -> Result<Self, TargetError> {
        format!("https://{authority}{}", Scope::EVERYTHING).parse()
    }

    /// The proxy's host and port, if it names one.
    #[must_use]
    pub fn authority(&self) -> (String, Option<u16>) {
        let authority = self.0.authority();
        let authority = authority.expect("its parsing made sure of that");
        (authority.host().to_owned(), authority.port_u16())
    }

    /// The URI for packets of any protocol to anywhere.
    #[must_use]
    pub fn expand(&self) -> Uri {
        self.0.clone()
    }
}

impl FromStr for IpTemplate {
    type Err = TargetError;

    /// Refuses what RFC 9484, section 3, does not allow. Both variables may be left out.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let wrong = |problem| TargetError::Template {
            template: text.to_owned(),
            problem,
        };
        let template = UriTemplateString::try_from(text);
        let template = template.map_err(|_| wrong("is not one of RFC 6570"))?;
        let expand = |value: &str| {
            let mut variables = SimpleContext::new();
            variables.insert("target", value);
            variables.insert("ipproto", value);
            let expanded = template.expand::<UriSpec, _>(&variables);
            let expanded = expanded.map_err(|_| wrong("cannot be expanded"))?;
            // An asterisk may stand as it is, as in all examples of the RFC.
            let text = expanded.to_string().replace("%2A", "*");
            Uri::from_str(&text).map_err(|_| wrong("does not become a URI"))
        };
        let (any, other) = (expand("*")?, expand("1")?);
        if any.scheme_str() != Some("https") || any.authority().is_none() {
            return Err(wrong("does not begin with https:// and a host"));
        }
        if any.authority() != other.authority() {
            return Err(wrong("has a variable in its host, where none may be"));
        }
        Ok(Self(any))
    }
}

impl FromStr for Template {
    type Err = TargetError;

    /// Refuses what RFC 9298, section 2, does not allow.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let parsed = UriTemplateString::try_from(text);
        let template = Self(parsed.map_err(|_| TargetError::Template {
            template: text.to_owned(),
            problem: "is not one of RFC 6570",
        })?);
        let targets = [("a", 1), ("b", 1), ("a", 2)].map(|(host, port)| Target {
            host: host.to_owned(),
            port,
        });
        let [one, other_host, other_port] = targets.map(|target| template.expand(&target));
        let one = one?;
        if one.scheme_str() != Some("https") || one.authority().is_none() {
            return Err(template.wrong("does not begin with https:// and a host"));
        }
        let (other_host, other_port) = (other_host?, other_port?);
        if one.authority() != other_host.authority() || one.authority() != other_port.authority() {
            return Err(template.wrong("has a variable in its host, where none may be"));
        }
        if one == other_host || one == other_port {
            return Err(template.wrong("does not have both {target_host} and {target_port}"));
        }
        Ok(template)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_proxy_reads_what_its_template_wrote() {
        let template = Template::of_proxy("proxy.example:4443").unwrap();
        for text in ["192.0.2.6:443", "[2001:db8::42]:443", "target.example:1"] {
            let target: Target = text.parse().unwrap();
            let uri = template.expand(&target).unwrap();
            assert_eq!(Target::of_path(uri.path()), Ok(target.clone()), "{uri}");
            assert_eq!(target.to_string(), text);
        }
        let uri = template.expand(&"[2001:db8::42]:443".parse().unwrap());
        let path = "/.well-known/masque/udp/2001%3Adb8%3A%3A42/443/";
        assert_eq!(uri.unwrap().path(), path);
    }

    #[test]
    fn templates_with_a_query_are_expanded() {
        let text = "https://proxy.example:4443/masque{?target_host,target_port}";
        let template: Template = text.parse().unwrap();
        let uri = template.expand(&"192.0.2.6:443".parse().unwrap()).unwrap();
        let expected = "https://proxy.example:4443/masque?target_host=192.0.2.6&target_port=443";
        assert_eq!(uri.to_string(), expected);
    }

    #[test]
    fn a_template_for_ip_asks_for_everything() {
        let default = IpTemplate::of_proxy("proxy.example:4443").unwrap();
        assert_eq!(
            default.authority(),
            ("proxy.example".to_owned(), Some(4443))
        );
        for (text, expanded) in [
            (
                "https://proxy.example:4443/.well-known/masque/ip/{target}/{ipproto}/",
                "https://proxy.example:4443/.well-known/masque/ip/*/*/",
            ),
            (
                "https://proxy.example/masque/ip?t={target}&i={ipproto}",
                "https://proxy.example/masque/ip?t=*&i=*",
            ),
            (
                "https://proxy.example/masque{?target,ipproto}",
                "https://proxy.example/masque?target=*&ipproto=*",
            ),
            ("https://proxy.example/vpn", "https://proxy.example/vpn"),
        ] {
            let template: IpTemplate = text.parse().unwrap();
            assert_eq!(template.expand().to_string(), expanded);
        }
        for (text, words) in [
            ("https://a.example/{target", "is not one of RFC 6570"),
            ("http://a.example/vpn", "https://"),
            ("/vpn", "https://"),
            ("https://{target}/vpn", "in its host"),
        ] {
            let said = text.parse::<IpTemplate>().unwrap_err().to_string();
            assert!(said.contains(words), "{text}: {said}");
        }
    }

    #[test]
    fn what_is_no_template_for_udp_is_refused_with_words() {
        for (text, words) in [
            ("https://a.example/{target_host", "is not one of RFC 6570"),
            ("http://a.example/{target_host}/{target_port}/", "https://"),
            ("/{target_host}/{target_port}/", "https://"),
            ("https://a.example/{target_host}/", "both"),
            ("https://{target_host}/{target_port}/", "in its host"),
        ] {
            let said = text.parse::<Template>().unwrap_err().to_string();
            assert!(said.contains(words), "{text}: {said}");
        }
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for path in [
            "/",
            "/.well-known/masque/udp/",
            "/.well-known/masque/udp/a/443",
            "/.well-known/masque/udp/a/443//",
            "/.well-known/masque/udp/a/0/",
            "/.well-known/masque/udp/a/65536/",
            "/.well-known/masque/udp/a/+443/",
            "/.well-known/masque/udp//443/",
            "/.well-known/masque/udp/a%2Fb/443/",
            "/.well-known/masque/udp/a%00/443/",
            "/.well-known/masque/udp/%FF/443/",
            "/.well-known/masque/ip/a/443/",
        ] {
            assert!(Target::of_path(path).is_err(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_read_or_refused(path in "(/.well-known/masque/udp/)?[ -~]{0,300}") {
            if let Ok(target) = Target::of_path(&path) {
                prop_assert_eq!(target.to_string().parse(), Ok(target));
            }
        }

        #[test]
        fn any_template_is_read_or_refused(text in "(https://a)?[ -~{}]{0,80}") {
            if let Ok(template) = text.parse::<Template>() {
                prop_assert!(template.expand(&"a:1".parse().unwrap()).is_ok());
            }
        }
    }
}
