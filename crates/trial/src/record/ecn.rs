//! The columns of a record on ECN.

use bentpipe_analysis::Metrics;

use crate::schema::EcnResult;

impl From<&Metrics> for EcnResult {
    fn from(metrics: &Metrics) -> Self {
        let [forward, back] = [metrics.forward.ecn, metrics.back.ecn];
        Self {
            forward_ect: forward.codepoint,
            forward_ect_share: forward.capable_share,
            forward_ce_echoed: forward.ce_echoed,
            forward_ce_rounds: forward.ce_rounds,
            forward_ce_answered: forward.ce_answered,
            return_ect: back.codepoint,
            return_ect_share: back.capable_share,
            return_ce_echoed: back.ce_echoed,
            return_ce_rounds: back.ce_rounds,
            return_ce_answered: back.ce_answered,
        }
    }
}
