//! Queues as scenario files describe them.

use bentpipe_units::Ratio;
use serde::{Serialize, Serializer};

use crate::aqm::Aqm;
use crate::fields::{Entry, Problem};
use crate::queue_size::{BILLION, EXAMPLES, QueueSize};

/// A queue: drop-tail, with random drops above a threshold if asked for, or under another
/// discipline: `{ size = "1 BDP", aqm = "fq-codel" }` ([`Aqm`]).
///
/// In a drop-tail queue a packet that does not have to wait is never dropped. One that has to is
/// dropped if it would take what waits above `size`; else, if it takes it above
/// `random_drop.above`, with the probability `random_drop.ratio`. The packet in transmission does
/// not wait. Written `"25 packets"`, or as a table: `{ size = "36 MB", drop_above = "18 MB",
/// drop_ratio = "25 %" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The most that may wait.
    pub size: QueueSize,
    /// Random drops above a threshold.
    pub random_drop: Option<RandomDrop>,
    /// Active queue management or scheduling; None: drop-tail.
    pub aqm: Option<Aqm>,
}

/// Random drops of a queue that is filled above a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomDrop {
    /// The threshold.
    pub above: QueueSize,
    /// The share of arriving packets that is dropped.
    pub ratio: Ratio,
}

impl Default for Queue {
    /// Drop-tail, 1 BDP.
    fn default() -> Self {
        Self {
            size: QueueSize::Bdp(BILLION),
            random_drop: None,
            aqm: None,
        }
    }
}

impl Queue {
    pub(crate) fn read(entry: Entry) -> Result<Self, Problem> {
        if !entry.is_table() {
            return Ok(Self {
                size: entry.parse()?,
                random_drop: None,
                aqm: None,
            });
        }
        let mut fields = entry.table()?;
        let size = fields.required("size", EXAMPLES)?.parse()?;
        let above = fields.take("drop_above");
        let ratio = fields.take("drop_ratio");
        let random_drop = match (above, ratio) {
            (None, None) => None,
            (Some(above), Some(ratio)) => Some(RandomDrop {
                above: above.parse()?,
                ratio: ratio.parse()?,
            }),
            (Some(entry), None) => return Err(entry.problem("needs a drop_ratio beside it")),
            (None, Some(entry)) => return Err(entry.problem("needs a drop_above beside it")),
        };
        let aqm = fields.take("aqm");
        let aqm = aqm.map(|name| match &random_drop {
            None => Aqm::read(&name, &mut fields, size),
            Some(_) => Err(name.problem("stands in place of drop_above and drop_ratio")),
        });
        let aqm = aqm.transpose()?;
        fields.finish()?;
        Ok(Self {
            size,
            random_drop,
            aqm,
        })
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if (self.random_drop, self.aqm) == (None, None) {
            return serializer.collect_str(&self.size);
        }
        let mut keys = vec![("size", self.size.to_string())];
        if let Some(drop) = self.random_drop {
            keys.push(("drop_above", drop.above.to_string()));
            keys.push(("drop_ratio", drop.ratio.to_string()));
        }
        if let Some(aqm) = self.aqm {
            keys.push(("aqm", aqm.name().to_owned()));
            keys.extend(aqm.parameters());
        }
        serializer.collect_map(keys)
    }
}
