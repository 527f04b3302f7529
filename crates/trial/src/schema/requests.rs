//! Requests of a page: generated from schemas/requests.toml by `make schemas`.

#![allow(
    clippy::doc_markdown,
    clippy::struct_field_names,
    reason = "words and names are those of the reference page"
)]

use crate::job::ResourceType;
use serde::Serialize;

/// The requests of a page in a trial.
#[derive(Debug, Serialize)]
pub struct PageRequests {
    /// The number of this file's format, as at the top of this page.
    pub format: u64,
    /// An entry for each resource, in the order of the page, its document first; of a live stream
    /// one for each segment that was requested, of type `media`.
    pub requests: Vec<PageRequest>,
    /// Pictures of the page as it was loaded, where its browser reports them: the picture before
    /// it, and up to 23 others, the last one as it stayed.
    pub film: Vec<FilmFrame>,
}

/// A picture of the page from a moment on.
#[derive(Debug, Serialize)]
pub struct FilmFrame {
    /// When it was drawn; less than 0 of what was there before the client's first packet.
    pub at_s: f64,
    /// The picture: JPEG, in base64.
    pub jpeg: String,
}

/// The request of a resource.
#[derive(Debug, Serialize)]
pub struct PageRequest {
    /// Its path: a number, the size and the type, as in `/3-12000.css`.
    pub path: String,
    /// Its type: a word of [pages](pages.md).
    pub r#type: ResourceType,
    /// The size of its body, when all of it is there.
    pub bytes: u64,
    /// The path of the resource that led to it. Null: the page begins with it.
    pub initiator: Option<String>,
    /// 0 to 7, the lowest first (RFC 9218, section 4.1).
    pub urgency: u8,
    /// The application protocol that it came over, by its ALPN, where a browser says. Null: not
    /// reported: that of the trial.
    pub protocol: Option<String>,
    /// When a connection accepted the request. Null: none did.
    pub asked_s: Option<f64>,
    /// When the response began, its head included. Null: it never did.
    pub first_byte_s: Option<f64>,
    /// When the response ended, all of the body being there. Null: not all of it came.
    pub last_byte_s: Option<f64>,
}
