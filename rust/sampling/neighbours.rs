//! Uniform samples of in-edges, without replacement.

use rustc_hash::FxHashSet;

use super::picks::Picks;
use super::random::HopKey;
use super::targets::Target;
use super::topology::Part;

/// Samples up to this size are searched from front to back for what they already hold.
const SMALL: usize = 64;

/// Picks `fanout` of the in-edges of `target`, which has more, all subsets with the same probability.
///
/// Floyd's algorithm (Bentley and Floyd, "A Sample of Brilliance", CACM 1987): `fanout` draws, whatever the degree.
#[inline(always)]
pub fn uniform(target: &Target, part: &Part, fanout: usize, key: HopKey, picks: &mut Picks) {
    let draws = key.draws(target.id);
    if fanout > SMALL {
        return large(target, part, fanout, key, picks);
    }
    let begin = picks.len();
    for (index, last) in (target.degree - fanout..target.degree).enumerate() {
        let edge = target.first + draws.below(index as u64, last as u64 + 1) as usize;
        let edge = if picks.contains(begin, edge) { target.first + last } else { edge };
        picks.push(part, edge);
    }
}

/// The same with a hash set.
fn large(target: &Target, part: &Part, fanout: usize, key: HopKey, picks: &mut Picks) {
    let draws = key.draws(target.id);
    let mut held = FxHashSet::default();
    held.reserve(fanout);
    for (index, last) in (target.degree - fanout..target.degree).enumerate() {
        let edge = draws.below(index as u64, last as u64 + 1) as usize;
        let edge = if held.insert(edge) { edge } else { last };
        held.insert(edge);
        picks.push(part, target.first + edge);
    }
}
