//! Connected parts: fragments of parts move to the parts around them, as far as the bounds allow.
//!
//! A *fragment* is a connected component of a part other than its largest one. In a round, fragments move in
//! ascending order of size, each as a whole to the part with the strongest connection among those that stay
//! within their caps. No edge of a fragment ends in its own part outside of it, so the cut falls with every
//! move, and there is one component less. A fragment that another one has joined in the same round waits for
//! the next. Rounds end when nothing moves.
//!
//! Fragments that hold fixed vertices stay, and so do those that no edge leaves: they are components of the
//! graph.
//!
//! **Parallelism.** The search for the components. Fragments move one by one.
//!
//! **Memory.** 24 bytes per vertex.
//!
//! **Complexity.** O(n + m) in a round, and O(f log f) for f fragments.

use crate::algorithms::multilevel::model::{Assignment, Graph, Problem};
use crate::base::{Buffer, NONE, Result, Run};
use crate::capacity::{fits, plus};
use crate::exec::{propose, scratches};
use crate::sets::{DisjointSets, Groups, RatingMap};

/// Fragments that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fragments {
    /// Number of fragments.
    pub count: u64,
    /// Fragments that no edge leaves.
    pub alone: u64,
}

impl Fragments {
    /// The warning for users, if any fragments stay.
    pub(crate) fn warning(self) -> Option<String> {
        let Fragments { count, alone } = self;
        let reason = match count - alone {
            0 => "They are connected components of the graph, so no edge leaves them".into(),
            _ if alone == 0 => "The bounds, or fixed vertices in them, keep them there. Raise balance".into(),
            kept => format!(
                "The bounds, or fixed vertices in them, keep {kept} of them there. Raise balance. No edge leaves \
                 {alone} of them, which are connected components of the graph"
            ),
        };
        let text =
            format!("connected: fragments that stay apart from the rest of their part: {count}. {reason}");
        (count > 0).then_some(text)
    }
}

/// The decision on a fragment.
enum Fate {
    /// It moves to a part.
    Moves(u32),
    Stays,
    /// It stays, and no edge leaves it.
    Alone,
}

/// Moves fragments until nothing moves any more. Parts keep their caps, if they did, and their least numbers
/// of vertices.
pub(crate) fn connect<const D: usize>(
    problem: &Problem<D>,
    assignment: &mut Assignment<D>,
) -> Result<Fragments> {
    let &Problem { graph, run, .. } = problem;
    let k = problem.caps.len();
    let mut map = RatingMap::new(k, k)?;
    loop {
        let (fragments, members) = fragments(graph, assignment, run)?;
        let (mut left, mut moved) = (Fragments::default(), false);
        for index in 0..fragments {
            let members = members.group(index);
            match fate(problem, assignment, members, &mut map) {
                Fate::Moves(to) => {
                    members.iter().for_each(|&v| assignment.shift(v, graph.weight(v), to));
                    moved = true;
                }
                Fate::Stays => left.count += 1,
                Fate::Alone => (left.count, left.alone) = (left.count + 1, left.alone + 1),
            }
            if index % 256 == 0 {
                run.check()?;
            }
        }
        if !moved {
            return Ok(left);
        }
    }
}

/// The number of fragments, and their members, the smallest fragment first.
fn fragments<const D: usize>(
    graph: &Graph<D>,
    assignment: &Assignment<D>,
    run: &Run,
) -> Result<(u32, Groups)> {
    let n = graph.len();
    run.begin("connect", n as u64);
    let mut sets = DisjointSets::new(n, run)?;
    let shared = sets.share();
    let mut nothing: Vec<()> = vec![(); n];
    let mut workers = scratches(run, graph.num_entries(), || Ok(()))?;
    propose(&mut workers, graph.ranges(0..n as u32), &mut nothing, run, |(), v, ()| {
        let own = assignment.part(v);
        graph.each(v, |u, _| {
            if u < v && assignment.part(u) == own {
                shared.unite(u, v);
            }
        });
    })?;
    let roots = sets.roots(run)?;
    let mut sizes: Buffer<u32> = Buffer::zeroed(n, "sizes of components")?;
    run.each(n, |v| sizes[roots[v as usize] as usize] += 1)?;
    // The root of the largest component of each part.
    let mut largest = vec![NONE; assignment.loads.len()];
    run.each(n, |v| {
        let first = &mut largest[assignment.part(v) as usize];
        if roots[v as usize] == v && (*first == NONE || sizes[v as usize] > sizes[*first as usize]) {
            *first = v;
        }
    })?;
    let mut by_size: Vec<(u32, u32)> = Vec::new();
    run.each(n, |v| {
        if roots[v as usize] == v && largest[assignment.part(v) as usize] != v {
            by_size.push((sizes[v as usize], v));
        }
    })?;
    by_size.sort_unstable();
    let mut index_of = sizes;
    index_of.fill(NONE);
    let mut counts: Buffer<u32> = Buffer::zeroed(by_size.len(), "fragments")?;
    for (index, &(size, root)) in by_size.iter().enumerate() {
        index_of[root as usize] = index as u32;
        counts[index] = size;
    }
    let fragment = |v: u32| Some(index_of[roots[v as usize] as usize]).filter(|&index| index != NONE);
    let members = Groups::of(n, counts, fragment, |vertices| run.advance(vertices))?;
    Ok((by_size.len() as u32, members))
}

/// The decision on the fragment with these members.
fn fate<const D: usize>(
    problem: &Problem<D>,
    assignment: &Assignment<D>,
    members: &[u32],
    map: &mut RatingMap,
) -> Fate {
    let &Problem { graph, caps, least, .. } = problem;
    let own = assignment.part(members[0]);
    let (mut weight, mut is_free) = ([0; D], true);
    map.begin(members.iter().map(|&v| graph.degree(v)).sum(), caps.len());
    for &v in members {
        weight = plus(weight, graph.weight(v));
        is_free &= graph.may_move(v);
        graph.each(v, |u, w| {
            let part = assignment.part(u);
            // The fragment has no neighbours in its part, unless another one has come.
            is_free &= part != own || members.binary_search(&u).is_ok();
            if part != own {
                map.add(part, w);
            }
        });
    }
    let has_slack = |part: u32| fits(plus(assignment.loads[part as usize], weight), caps[part as usize]);
    let least = least.get(own as usize).copied().unwrap_or(0);
    let is_spared = assignment.loads[own as usize][0] >= least + weight[0];
    let mut sums = map.sums().peekable();
    if sums.peek().is_none() {
        return Fate::Alone;
    }
    let best = sums.filter(|&[part, _]| is_free && is_spared && has_slack(part));
    best.max_by_key(|&[part, w]| (w, std::cmp::Reverse(part)))
        .map_or(Fate::Stays, |[part, _]| Fate::Moves(part))
}
