//! The part of HTTP that `GET /metrics` and `GET /healthz` need, for one request at a time: whoever
//! may ask is trusted not to flood it.
//!
//! No library: `tiny_http` 0.12 has no limit to how long it reads and starts a thread for each
//! connection that waits, so that who connects and says nothing takes ever more of them; `hyper`
//! has these limits, and brings a runtime for two pages. Here a read takes two seconds at most, a
//! request eight of them, and there is one thread.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// A request comes within this time, or not at all.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The most reads for a request: it usually comes in one piece.
const MOST_READS: usize = 8;

/// An answer to a request: status line, type and body.
#[derive(Debug)]
pub struct Answer {
    /// As in `200 OK`.
    pub status: &'static str,
    /// The media type of the body.
    pub kind: &'static str,
    /// The text.
    pub body: String,
}

impl Answer {
    /// One of plain text.
    pub fn text(status: &'static str, body: impl Into<String>) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }
}

/// Answers requests for as long as the program lives; `answer` is asked for paths. The address,
/// with the port if that was 0.
pub fn serve(
    place: SocketAddr,
    answer: impl Fn(&str) -> Option<Answer> + Send + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(place)?;
    let place = listener.local_addr()?;
    thread::Builder::new()
        .name("metrics".into())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that went away misses nothing.
                let _ = converse(stream, &answer);
            }
        })?;
    Ok(place)
}

fn converse(mut stream: TcpStream, answer: &impl Fn(&str) -> Option<Answer>) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    let request = read_head(&mut stream)?;
    let Answer { status, kind, body } = respond(&request, answer);
    let length = body.len();
    write!(
        stream,
        "HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: \
         close\r\n\r\n{body}"
    )
}

fn respond(request: &[u8], answer: &impl Fn(&str) -> Option<Answer>) -> Answer {
    let line = request.split(|&byte| byte == b'\r').next();
    let words: Vec<_> = line
        .unwrap_or_default()
        .split(|&byte| byte == b' ')
        .collect();
    let [method, path, _version] = words[..] else {
        return Answer::text("400 Bad Request", "this is no HTTP request\n");
    };
    if method != b"GET" {
        return Answer::text("405 Method Not Allowed", "write GET\n");
    }
    let path = std::str::from_utf8(path).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    answer(path)
        .unwrap_or_else(|| Answer::text("404 Not Found", "there are /metrics and /healthz\n"))
}

/// Until the empty line after the headers; what has come by then if the other side ends, is too
/// slow or says too much.
fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    for _ in 0..MOST_READS {
        let count = stream.read(&mut buffer)?;
        head.extend_from_slice(&buffer[..count]);
        if count == 0 || head.windows(4).any(|end| end == b"\r\n\r\n") {
            break;
        }
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(place: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(place).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn requests_are_answered_one_after_the_other() {
        let place = serve("127.0.0.1:0".parse().unwrap(), |path| {
            (path == "/metrics").then(|| Answer::text("200 OK", "one 1\n"))
        });
        let place = place.unwrap();
        for (request, status, body) in [
            (
                "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
                "200 OK",
                "one 1\n",
            ),
            ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200 OK", "one 1\n"),
            ("GET /else HTTP/1.1\r\n\r\n", "404 Not Found", "/healthz"),
            (
                "POST /metrics HTTP/1.1\r\n\r\n",
                "405 Method Not Allowed",
                "GET",
            ),
            ("\u{1}\u{2}\r\n\r\n", "400 Bad Request", "no HTTP"),
        ] {
            let text = ask(place, request);
            assert!(
                text.starts_with(&format!("HTTP/1.0 {status}\r\n")),
                "{text}"
            );
            assert!(text.contains(body), "{text}");
        }
    }
}
