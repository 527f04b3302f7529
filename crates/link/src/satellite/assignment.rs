//! The network control centre (NCC): which terminals get the slots of a superframe.
//!
//! Source: the capacity categories of DVB-RCS2 (ETSI EN 301 545-2, section 9; TS 101 545-3), in
//! their order: constant rates (CRA), requested rates (RBDC), requested volumes (VBDC, AVBDC), and
//! what is left (FCA). Where a category wants more slots than there are, its terminals get one each
//! in turn; in each superframe another terminal begins.
//!
//! Chosen here: of a rate, each superframe gets whole slots, as many as have become due by its end
//! since time 0. A constant rate that was cut gets its slots later; a requested one does not.

use bentpipe_units::Span;

use super::rcs2::{Rcs2, Volume};

/// The NCC of a carrier.
pub(crate) struct ControlCentre {
    accounts: Vec<Account>,
    superframe: Span,
    slots_of_a_carrier: u64,
    carriers: u64,
    rbdc_timeout: u64,
    fca: bool,
}

/// The NCC's state of a terminal.
struct Account {
    cra_bps: u64,
    /// Slots of the constant rate that are due and were not there.
    owed: u64,
    rbdc_bps: u64,
    /// The first superframe for which the requested rate does not hold.
    rbdc_ends: u64,
    /// How it requests volumes.
    volume: Volume,
    /// The bytes that it has requested and has not got.
    balance: u64,
}

/// The capacity that a terminal is assigned in a superframe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assigned {
    /// Slots of all categories.
    pub slots: u64,
    /// Slots of requested volumes.
    pub by_volume: u64,
    /// Slots of requested rates.
    pub by_rate: u64,
}

impl ControlCentre {
    pub fn new(carrier: &Rcs2) -> Self {
        let accounts = carrier.terminals().map(|terminal| Account {
            cra_bps: terminal.cra.bps(),
            owed: 0,
            rbdc_bps: 0,
            rbdc_ends: 0,
            volume: terminal.volume,
            balance: 0,
        });
        Self {
            accounts: accounts.collect(),
            superframe: carrier.superframe,
            slots_of_a_carrier: carrier.slots_of_a_carrier(),
            carriers: carrier.carriers,
            rbdc_timeout: carrier.rbdc_timeout,
            fca: carrier.fca,
        }
    }

    /// A request takes effect with a superframe. `bps`: the rate that holds from now on; `volume`:
    /// None if it requests none.
    pub fn hear(&mut self, terminal: usize, superframe: u64, bps: u64, volume: Option<u64>) {
        let account = &mut self.accounts[terminal];
        account.rbdc_bps = bps;
        account.rbdc_ends = superframe + self.rbdc_timeout;
        account.balance = match account.volume {
            Volume::Adds => account.balance.saturating_add(volume.unwrap_or(0)),
            Volume::Replaces => volume.unwrap_or(account.balance),
            Volume::Off => account.balance,
        };
    }

    /// The requested rate of a terminal, and the first superframe for which it does not hold.
    pub fn requested_rate(&self, terminal: usize) -> (u64, u64) {
        let account = &self.accounts[terminal];
        (account.rbdc_bps, account.rbdc_ends)
    }

    /// Whether something has been requested that is still to be assigned, in a superframe or later.
    pub fn has_requests(&self, superframe: u64) -> bool {
        let has = |it: &Account| it.balance > 0 || it.rate_in(superframe) > 0;
        self.accounts.iter().any(has)
    }

    /// Forgets owed slots: a terminal with nothing to send has missed none.
    pub fn forget_owed(&mut self) {
        self.accounts.iter_mut().for_each(|it| it.owed = 0);
    }

    /// The slots of a superframe for each terminal, whose bursts carry `payloads` bytes.
    pub fn assign(&mut self, superframe: u64, payloads: &[u64]) -> Vec<Assigned> {
        let mut deal = SlotDistribution::new(self, superframe);
        let most = self.slots_of_a_carrier;
        let rate = |bps, index: usize| self.slots_due(bps, superframe, payloads[index]);
        let accounts = self.accounts.iter().enumerate();
        let constant = accounts
            .clone()
            .map(|(n, it)| it.owed + rate(it.cra_bps, n));
        let constant: Vec<u64> = constant.collect();
        let requested = accounts.map(|(n, it)| rate(it.rate_in(superframe), n));
        let requested: Vec<u64> = requested.collect();
        let given = deal.out(&constant);
        for (account, (due, given)) in self.accounts.iter_mut().zip(constant.iter().zip(given)) {
            account.owed = (due - given).min(most);
        }
        let by_rate = deal.out(&requested);
        let mut by_volume = vec![0; payloads.len()];
        for kind in [Volume::Adds, Volume::Replaces] {
            for (index, given) in self.volumes(kind, payloads, &mut deal) {
                by_volume[index] = given;
            }
        }
        if self.fca {
            deal.out(&vec![most; payloads.len()]);
        }
        let all = deal
            .given
            .into_iter()
            .zip(by_rate.into_iter().zip(by_volume));
        let assigned = all.map(|(slots, (by_rate, by_volume))| Assigned {
            slots,
            by_volume,
            by_rate,
        });
        assigned.collect()
    }

    /// Deals out what is requested by one kind of volumes: to each terminal with slots of it.
    fn volumes(
        &mut self,
        kind: Volume,
        payloads: &[u64],
        deal: &mut SlotDistribution,
    ) -> Vec<(usize, u64)> {
        let wanted = self.accounts.iter().zip(payloads).map(|(it, payload)| {
            if it.volume == kind {
                it.balance.div_ceil(*payload)
            } else {
                0
            }
        });
        let wanted: Vec<u64> = wanted.collect();
        let given = deal.out(&wanted).into_iter().enumerate();
        let given: Vec<_> = given.filter(|(_, slots)| *slots > 0).collect();
        for (index, slots) in &given {
            let account = &mut self.accounts[*index];
            account.balance = account.balance.saturating_sub(slots * payloads[*index]);
        }
        given
    }

    /// The slots that become due of a rate by the end of a superframe, and not before it.
    fn slots_due(&self, bps: u64, superframe: u64, payload: u64) -> u64 {
        let bit_nanos = u128::from(bps) * u128::from(self.superframe.as_nanos());
        let slot = u128::from(payload) * 8_000_000_000;
        let before = u128::from(superframe) * bit_nanos / slot;
        let after = (u128::from(superframe) + 1) * bit_nanos / slot;
        u64::try_from(after - before).unwrap_or(u64::MAX)
    }
}

impl Account {
    fn rate_in(&self, superframe: u64) -> u64 {
        if superframe < self.rbdc_ends {
            self.rbdc_bps
        } else {
            0
        }
    }
}

/// Slots that are dealt out.
struct SlotDistribution {
    /// Slots that no terminal has.
    left: u64,
    /// The slots of each terminal.
    given: Vec<u64>,
    /// The most that one may have.
    most: u64,
    /// The terminal that begins.
    first: usize,
}

impl SlotDistribution {
    fn new(centre: &ControlCentre, superframe: u64) -> Self {
        let terminals = centre.accounts.len();
        Self {
            left: centre.slots_of_a_carrier * centre.carriers,
            given: vec![0; terminals],
            most: centre.slots_of_a_carrier,
            first: first(superframe, terminals),
        }
    }

    /// Deals out what terminals want, one slot each in turn; returns what each gets of it.
    fn out(&mut self, wanted: &[u64]) -> Vec<u64> {
        let terminals = wanted.len();
        let mut given = vec![0; terminals];
        loop {
            let before = self.left;
            for index in (self.first..terminals).chain(0..self.first) {
                let is_open = given[index] < wanted[index] && self.given[index] < self.most;
                if is_open && self.left > 0 {
                    given[index] += 1;
                    self.given[index] += 1;
                    self.left -= 1;
                }
            }
            if self.left == before {
                return given;
            }
        }
    }
}

/// The terminal that begins in a superframe.
pub(crate) fn first(superframe: u64, terminals: usize) -> usize {
    let first = superframe % terminals as u64;
    usize::try_from(first).expect("less than the terminals")
}
