//! The access network of a satellite: carriers whose modulation follows the weather, and that
//! terminals share.

use std::path::Path;

use bentpipe_units::Size;

use crate::fields::{Fields, Problem};
use crate::rate::LinkRate;

mod acm;
mod assignment;
mod backlog;
mod carrier;
mod course;
mod dvb_s2;
mod gse;
mod modcod;
mod rcs2;
mod rcs2_reading;
mod requests;
mod return_carrier;
mod rle;
mod waveforms;

pub use acm::{Loop, Reception};
pub(crate) use carrier::Carrier;
pub use course::Course;
pub(crate) use dvb_s2::{CarrierRate, EXAMPLE};
pub use dvb_s2::{DvbS2, Terminal, TerminalGroup};
pub use modcod::{DVB_S2, DVB_S2X, FrameLength, Framing, Modcod};
pub(crate) use rcs2::ReturnRate;
pub use rcs2::{ControlChannel, Rcs2, ReturnTerminal, ReturnTerminalGroup, Signalling, Volume};
pub(crate) use return_carrier::ReturnCarrier;
pub use waveforms::{Burst, WAVEFORMS, Waveform};

/// Reads a rate that names a standard.
pub(crate) fn read(
    fields: &mut Fields,
    folder: &Path,
    mtu: Option<Size>,
) -> Result<LinkRate, Problem> {
    let standard = fields.required("standard", "\"dvb-s2\"")?;
    if standard.is_text("dvb-rcs2") {
        let carrier = Rcs2::read(fields, folder, mtu, &standard)?;
        return Ok(LinkRate::Rcs2(Box::new(carrier)));
    }
    let carrier = DvbS2::read(fields, folder, mtu, &standard)?;
    Ok(LinkRate::DvbS2(Box::new(carrier)))
}
