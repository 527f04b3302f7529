//! A pair ends: one side has ended, or its time is over, and the other is told when it has all that came before.

use std::time::Instant;

use noq_proto::Connection;

use crate::proxy::Proxy;
use crate::proxy::event::{Event, Number};
use crate::relay::close::{Closing, Code};
use crate::relay::pair::{Ending, Facing, Leg, Overdue, Pair};
use crate::relay::pairs::both;

impl Proxy {
    /// The connection on one side has ended, or never began; the other is told when it has what came before.
    pub(crate) fn end(&mut self, now: Instant, number: Number, gone: Facing, closing: Closing) {
        self.end_with(now, number, gone, closing, None);
    }

    /// Likewise; `drained` is the connection, if its endpoint has it no more.
    pub(crate) fn end_with(
        &mut self,
        now: Instant,
        number: Number,
        gone: Facing,
        closing: Closing,
        drained: Option<&mut Connection>,
    ) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let left = gone.other();
        let handle = pair.handle_of(gone);
        let leg = pair.replace_leg(gone, Leg::Gone);
        if let Leg::Waiting(incoming) = leg {
            self.sides[Facing::Client as usize].ignore(*incoming);
        }
        if pair.ending.is_some() {
            return self.finish(now, number, gone, None);
        }
        let until = now + pair.config.limits.linger;
        let why = Pair::why(gone, &closing);
        let member = pair
            .handle_of(left)
            .and_then(|handle| self.sides[left as usize].get(handle));
        let acks = member.map_or(0, |member| member.connection.stats().frame_rx.acks);
        let connection = drained.or_else(|| {
            let member = self.sides[gone as usize].get(handle?)?;
            member.owner = None;
            Some(&mut member.connection)
        });
        let ending = Ending {
            left,
            closing,
            until,
            acks,
            why,
        };
        pair.end(gone, connection, ending);
        self.accept_waiting(now, number, None);
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let nobody_hears =
            left == Facing::Server && !pair.is_connected(left) && !pair.has_cargo(gone);
        match pair.handle_of(left) {
            Some(_) if nobody_hears => self.finish(now, number, left, None),
            None => self.finish(now, number, left, None),
            Some(handle) => {
                let member = self.sides[left as usize].get(handle);
                let member = member.expect("a leg that is there");
                pair.flush(left, &mut member.connection);
                self.settle(now, left, handle);
                self.keep_time(number);
            }
        }
    }

    /// A connection of a pair was touched: lets each side open what streams the other allows, or closes what is left of the pair if it has all
    /// that came from the side that has ended.
    pub(crate) fn progress(&mut self, now: Instant, number: Number) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        pair.watch_gaps(now);
        let connections = both(&mut self.sides, pair);
        for (facing, is_new) in Facing::BOTH
            .into_iter()
            .zip(pair.allow_streams(connections))
        {
            if is_new && let Some(handle) = pair.handle_of(facing) {
                self.touched.push_back((facing, handle));
            }
        }
        let left = pair.ending.as_ref().map(|ending| ending.left);
        if let Some(left) = left
            && let Some(handle) = pair.handle_of(left)
            && let Some(member) = self.sides[left as usize].get(handle)
            && pair.is_delivered(left, &mut member.connection)
        {
            return self.finish(now, number, left, None);
        }
        self.keep_time(number);
    }

    /// Closes what is left of a pair, and forgets it. `instead`: not with what the other side has ended with.
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        number: Number,
        at: Facing,
        instead: Option<Closing>,
    ) {
        let Some(mut pair) = self.pairs.remove(&number) else {
            return;
        };
        let ending = pair.ending.take();
        let closing = instead.or_else(|| ending.as_ref().map(|ending| ending.closing.clone()));
        let closing = closing.expect("nothing ends without a reason");
        let why = ending.map_or_else(|| Pair::why(at, &closing), |ending| ending.why);
        for facing in Facing::BOTH {
            match pair.replace_leg(facing, Leg::Gone) {
                Leg::There { handle, .. } => {
                    let side = &mut self.sides[facing as usize];
                    side.close(now, handle, closing.code, &closing.reason);
                    self.settle(now, facing, handle);
                }
                Leg::Waiting(incoming) => self.sides[facing as usize].refuse(*incoming),
                Leg::Missing | Leg::Gone => {}
            }
        }
        self.account(number, &pair, &closing);
        self.tell(Event::Closed {
            number,
            why,
            to_server: pair.carried(Facing::Client),
            to_client: pair.carried(Facing::Server),
        });
    }

    /// Takes a pair that has ended out of all books.
    fn account(&mut self, number: Number, pair: &Pair, closing: &Closing) {
        if let Some(time) = pair.timer {
            self.timers.remove(&(time, number));
        }
        if !pair.is_established {
            self.handshaking -= 1;
        }
        let address = self.client_addresses.entry(pair.client).or_default();
        *address -= 1;
        if *address == 0 {
            self.client_addresses.remove(&pair.client);
        }
        let statistics = &mut self.statistics;
        statistics.bytes_to_servers_total += pair.carried(Facing::Client);
        statistics.bytes_to_clients_total += pair.carried(Facing::Server);
        if closing.is_theirs {
            statistics.closed_by_application_total += 1;
        } else {
            statistics.closed_by_error_total += 1;
        }
    }

    /// A pair's timer is due, and out of the set of timers.
    pub(crate) fn handle_overdue(&mut self, now: Instant, number: Number) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        pair.timer = None;
        let connections = both(&mut self.sides, pair);
        let handles = Facing::BOTH.map(|facing| (facing, pair.handle_of(facing)));
        if pair.hand_on_signs_of_life(now, connections) {
            for (facing, handle) in handles {
                self.touched.extend(handle.map(|handle| (facing, handle)));
            }
            self.settle_touched(now);
        }
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let left = pair.ending.as_ref().map(|ending| ending.left);
        if let Some(left) = left
            && let Some(handle) = pair.handle_of(left)
            && let Some(member) = self.sides[left as usize].get(handle)
        {
            pair.prolong(now, &mut member.connection);
        }
        match pair.overdue(now) {
            Some(Overdue::Close(closing)) => {
                let at = pair.ending.as_ref().map_or(Facing::Client, |it| it.left);
                self.finish(now, number, at, Some(closing));
            }
            // The client is told as soon as its own handshake is complete.
            Some(Overdue::NextHop) => {
                let closing = Closing::from(Code::NextHopUnreachable);
                if let Some(handle) = pair.handle_of(Facing::Server) {
                    let side = &mut self.sides[Facing::Server as usize];
                    side.close(now, handle, closing.code, &closing.reason);
                    self.settle(now, Facing::Server, handle);
                }
                self.end(now, number, Facing::Server, closing);
            }
            None => self.keep_time(number),
        }
    }

    /// A pair may go on until then.
    pub(crate) fn end_by(&mut self, number: Number, until: Instant) {
        let pair = self.pair(number);
        pair.until = Some(until);
        self.keep_time(number);
    }
}
