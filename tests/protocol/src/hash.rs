//! Hashes of states: a few words where deriving would feed hundreds of single bytes. What is empty costs one byte.

use std::hash::{Hash, Hasher};

use crate::state::{About, Lease, Local, Message, Node, Part, Seen, SessionRow, ShardRow};

fn bits(flags: [bool; 8]) -> u8 {
    flags.iter().fold(0, |bits, flag| bits << 1 | u8::from(*flag))
}

impl Hash for SessionRow {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let flags = bits([self.exists, self.fenced, false, false, false, false, false, false]);
        hasher.write_u32(u32::from_le_bytes([flags, self.hb, self.lease_duration, 0]));
    }
}

impl Hash for ShardRow {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let life = self.life as u8 | u8::from(self.wish_stop) << 4;
        hasher.write_u64(u64::from_le_bytes([
            self.epoch,
            self.claim,
            self.session,
            self.seq,
            self.progress,
            life,
            self.newest,
            self.given,
        ]));
    }
}

impl Hash for Lease {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u16(u16::from_le_bytes([self.token, self.left]));
    }
}

impl Hash for Local {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        if self.part == Part::Nothing {
            return hasher.write_u8(0);
        }
        let flags = bits([
            self.is_fenced,
            self.in_flight,
            self.is_closed,
            self.stop_seen,
            self.lease_lost,
            self.claim_lost,
            self.is_claiming,
            true,
        ]);
        let first = [
            self.part as u8,
            self.claim,
            self.epoch,
            self.lease,
            self.owner,
            self.silent,
            flags,
            self.sent,
        ];
        hasher.write_u64(u64::from_le_bytes(first));
        hasher.write_u32(u32::from_le_bytes([
            self.progress,
            self.saved,
            self.seq,
            self.round,
        ]));
    }
}

impl Hash for Seen {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u16(u16::from_le_bytes([self.hb, self.silence]));
    }
}

impl Hash for Node {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u32(u32::from_le_bytes([
            self.session,
            self.trust,
            self.cap,
            u8::from(self.heartbeat_lost) | self.unheard << 1,
        ]));
        self.seen.iter().for_each(|seen| seen.hash(hasher));
        self.shards.iter().for_each(|local| local.hash(hasher));
    }
}

impl Hash for Message {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        if self.about == About::Empty {
            return hasher.write_u8(0);
        }
        let [one, two] = self.stops;
        let flags = bits([self.flag, one, two, false, false, false, false, true]);
        let first = [
            self.about as u8 | (self.answer as u8) << 4,
            self.node | self.shard << 4,
            self.session,
            self.claim,
            self.epoch,
            self.seq,
            self.value,
            flags,
        ];
        hasher.write_u64(u64::from_le_bytes(first));
        let [first, second] = self.claims;
        hasher.write_u32(u32::from_le_bytes([self.age, first, second, 0]));
    }
}
