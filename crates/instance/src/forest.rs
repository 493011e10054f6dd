//! The trees of calls of all threads of a run, put together as reports tell them.

use std::collections::HashMap;

use tomo_wire::chains::{LOST, Node, Way, number_of};
use tomo_wire::report::{Link, MOST_LINKS, NO_ROOM};
use tomo_wire::tally::NONE;
use zerocopy::little_endian::U32;

/// Chains, those above before those below.
#[derive(Debug, Default)]
pub(crate) struct Forest {
    /// By parent, way, site and unit.
    index: HashMap<(u32, u32, u32, u32), u32>,
    links: Vec<Link>,
    /// Calls by chains for which there was no room.
    lost: u64,
}

/// Where a node is among the chains.
#[derive(Clone, Copy)]
enum Place {
    /// It has this number, from 1; 0 is the root.
    Number(u32),
    NoRoom,
    /// It was never finished, or is no part of the tree.
    Nowhere,
}

impl Forest {
    /// Adds the tree of a thread, whose functions are these units, counted from `first`.
    pub(crate) fn add(&mut self, nodes: &[Node], units: &[U32], first: u32) {
        let mut places = vec![Place::Number(0)];
        for (at, node) in nodes.iter().enumerate().skip(1) {
            let place = match number_of(LOST) == Some(at) {
                true => Place::NoRoom,
                false => self.place(node, &places, units, first),
            };
            match place {
                Place::Number(number) => {
                    if let Some(link) = self.links.get_mut(number as usize - 1) {
                        link.calls = link.calls.get().saturating_add(node.count.get()).into();
                    }
                }
                Place::NoRoom => self.lost = self.lost.saturating_add(node.count.get()),
                Place::Nowhere => {}
            }
            places.push(place);
        }
    }

    fn place(&mut self, node: &Node, places: &[Place], units: &[U32], first: u32) -> Place {
        let above = number_of(node.parent.get()).and_then(|above| places.get(above));
        let parent = match above {
            Some(Place::Number(number)) => *number,
            Some(Place::NoRoom) => return Place::NoRoom,
            Some(Place::Nowhere) | None => return Place::Nowhere,
        };
        let unit = units.get(node.function.get() as usize);
        let unit = unit.filter(|unit| unit.get() != NONE);
        let (Some(unit), Some(way)) = (unit, Way::from_number(node.way.get())) else {
            return Place::Nowhere;
        };
        let unit = first + unit.get();
        let key = (parent, way as u32, node.site.get(), unit);
        if let Some(number) = self.index.get(&key) {
            return Place::Number(*number);
        }
        // One is kept for what finds no room.
        if self.links.len() as u32 + 1 >= MOST_LINKS {
            return Place::NoRoom;
        }
        self.links.push(Link {
            parent: parent.into(),
            way: (way as u32).into(),
            site: node.site,
            unit: unit.into(),
            calls: 0.into(),
        });
        let number = self.links.len() as u32;
        self.index.insert(key, number);
        Place::Number(number)
    }

    /// The chains, as a report has them.
    pub(crate) fn links(self) -> Vec<Link> {
        let mut links = self.links;
        if self.lost > 0 {
            links.push(Link {
                parent: 0.into(),
                way: 0.into(),
                site: 0.into(),
                unit: NO_ROOM.into(),
                calls: self.lost.into(),
            });
        }
        links
    }
}

#[cfg(test)]
mod tests {
    use super::Forest;
    use tomo_wire::chains::{NODE, Node, ROOT, Way};
    use tomo_wire::report::NO_ROOM;
    use tomo_wire::tally::NONE;
    use zerocopy::FromZeros as _;
    use zerocopy::little_endian::U32;

    fn node(parent: u32, way: Way, site: u32, function: u32, count: u64) -> Node {
        let mut node = Node::new_zeroed();
        node.parent = (ROOT + parent * NODE).into();
        node.way = (way as u32).into();
        node.site = site.into();
        node.function = function.into();
        node.count = count.into();
        node
    }

    #[test]
    fn threads_are_put_together_and_what_is_no_tree_is_left_out() {
        let root = node(0, Way::None, 0, 0, 0);
        // The second is for those without room.
        let tree = |lost, calls| {
            [
                root,
                node(0, Way::None, 0, 0, lost),
                node(0, Way::Outside, 0, 0, 1),
                node(2, Way::Call, 8, 1, calls),
                // Never finished, and what hangs on it; a parent that comes later; a function that is not assigned.
                node(2, Way::None, 9, 1, 5),
                node(4, Way::Call, 9, 1, 5),
                node(9, Way::Call, 9, 1, 5),
                node(2, Way::Call, 9, 2, 5),
            ]
        };
        let units: Vec<U32> = [7, 9, NONE].map(U32::new).to_vec();
        let mut forest = Forest::default();
        forest.add(&tree(3, 10), &units, 100);
        forest.add(&tree(0, 20), &units, 100);
        let links = forest.links();
        let said: Vec<_> = links
            .iter()
            .map(|link| {
                (
                    link.parent.get(),
                    link.site.get(),
                    link.unit.get(),
                    link.calls.get(),
                )
            })
            .collect();
        assert_eq!(said, [(0, 0, 107, 2), (1, 8, 109, 30), (0, 0, NO_ROOM, 3)]);
    }
}
