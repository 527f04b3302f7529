//! A qlog file for each connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_endpoint::LogFolder;
use bentpipe_noq_adapter::Library as _;
use noq_proto::{ConnectionId, QlogConfig, QlogFactory, Side, TransportConfig};

use crate::library::Noq;

/// Has noq write a file per connection.
pub fn log_to(folder: &LogFolder, start: Instant, transport: &mut TransportConfig) {
    transport.qlog_factory(Arc::new(FilePerConnection {
        folder: folder.clone(),
        start,
    }));
}

struct FilePerConnection {
    folder: LogFolder,
    start: Instant,
}

impl QlogFactory for FilePerConnection {
    fn for_connection(
        &self,
        _side: Side,
        _remote: SocketAddr,
        _initial_dst_cid: ConnectionId,
        _now: Instant,
    ) -> Option<QlogConfig> {
        let mut config = QlogConfig::new(Box::new(self.folder.create()?));
        config.title(Some(Noq::NAME.into())).start_time(self.start);
        Some(config)
    }
}
