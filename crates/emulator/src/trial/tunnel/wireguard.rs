//! What ends of `WireGuard` are told: the configuration of its cross-platform userspace protocol
//! (<https://www.wireguard.com/xplatform>).

use std::io;
use std::process::Command;

use bentpipe_emulator::TUNNEL;

use super::Ends;

/// How an end is started.
pub fn arguments() -> Vec<String> {
    ["run", TUNNEL].map(str::to_owned).to_vec()
}

/// What the client's end and the other one are told, with new keys.
pub fn inputs(command: &[String], ends: Ends) -> io::Result<[String; 2]> {
    let [client, far] = [Keys::make(command)?, Keys::make(command)?];
    let end = |own: &Keys, peer: &Keys, port: Option<u16>| {
        let port = port.map(|port| format!("listen_port={port}\n"));
        format!(
            "private_key={}\n{}public_key={}\nallowed_ip=0.0.0.0/0\nallowed_ip=::/0\n",
            own.private,
            port.unwrap_or_default(),
            peer.public
        )
    };
    let there = format!("endpoint={}\n", ends.far);
    Ok([
        end(&client, &far, None) + &there,
        end(&far, &client, Some(ends.far.port())),
    ])
}

/// Two keys in hexadecimal.
struct Keys {
    private: String,
    public: String,
}

impl Keys {
    fn make(command: &[String]) -> io::Result<Self> {
        let program = &command[0];
        let failed = |what: String| io::Error::other(format!("{program} key: {what}"));
        let said = Command::new(program).arg("key").output();
        let said = said.map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let keys = text
            .trim()
            .split_once(' ')
            .filter(|_| said.status.success());
        let (private, public) = keys.ok_or_else(|| failed(format!("{}: {text:?}", said.status)))?;
        Ok(Self {
            private: private.to_owned(),
            public: public.to_owned(),
        })
    }
}
