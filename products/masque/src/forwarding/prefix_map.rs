//! Values by connection ID, found by the packets that begin with it.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::Cid;

/// Values by connection IDs none of which begins with another. A short header does not say how long
/// its connection ID is: of two where one begins with the other, nobody could tell which it has.
#[derive(Debug)]
pub struct PrefixMap<T> {
    by_id: BTreeMap<Cid, T>,
}

impl<T> Default for PrefixMap<T> {
    fn default() -> Self {
        Self {
            by_id: BTreeMap::new(),
        }
    }
}

impl<T> PrefixMap<T> {
    /// The connection ID that these bytes begin with, and its value.
    pub fn find(&self, bytes: &[u8]) -> Option<(&Cid, &T)> {
        // Whatever stands in order between a connection ID and bytes that begin with it begins with
        // it, too; so there is nothing between them.
        let up_to = (Bound::Unbounded, Bound::Included(bytes));
        let (id, value) = self.by_id.range::<[u8], _>(up_to).next_back()?;
        bytes.starts_with(id).then_some((id, value))
    }

    /// As [`Self::find`], to change the value.
    pub fn find_mut(&mut self, bytes: &[u8]) -> Option<(&Cid, &mut T)> {
        let up_to = (Bound::Unbounded, Bound::Included(bytes));
        let (id, value) = self.by_id.range_mut::<[u8], _>(up_to).next_back()?;
        bytes.starts_with(id).then_some((id, value))
    }

    /// The value of exactly this connection ID.
    pub fn get_mut(&mut self, id: &[u8]) -> Option<&mut T> {
        self.by_id.get_mut(id)
    }

    /// Whether one begins with `id`, or `id` with one of them (section "Detecting Conflicts").
    pub fn conflicts(&self, id: &[u8]) -> bool {
        let from = (Bound::Included(id), Bound::Unbounded);
        let next = self.by_id.range::<[u8], _>(from).next();
        next.is_some_and(|(it, _)| it.starts_with(id)) || self.find(id).is_some()
    }

    /// Adds one, unless it conflicts with another.
    pub fn insert(&mut self, id: Cid, value: T) -> bool {
        let has_room = !self.conflicts(&id);
        if has_room {
            self.by_id.insert(id, value);
        }
        has_room
    }

    pub fn remove(&mut self, id: &[u8]) -> Option<T> {
        self.by_id.remove(id)
    }

    pub fn clear(&mut self) {
        self.by_id.clear();
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Cid, &T)> {
        self.by_id.iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Of few different bytes, so that many begin with another.
        #[test]
        fn it_finds_what_a_search_of_all_finds(
            ids in prop::collection::vec(prop::collection::vec(0..3_u8, 0..6), 0..40),
            bytes in prop::collection::vec(0..3_u8, 0..8),
        ) {
            let mut map = PrefixMap::default();
            let mut all: Vec<Vec<u8>> = Vec::new();
            for id in ids {
                let conflicts = all.iter().any(|it| it.starts_with(&id) || id.starts_with(it));
                prop_assert_eq!(map.insert(Cid::copy_from_slice(&id), id.clone()), !conflicts);
                if !conflicts {
                    all.push(id);
                }
            }
            let wanted = all.iter().find(|id| bytes.starts_with(id));
            prop_assert_eq!(map.find(&bytes).map(|(_, value)| value), wanted);
        }
    }
}
