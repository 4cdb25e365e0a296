//! Exchanges of pairs of vertices, which move volume out of a part and keep the numbers of vertices.

use std::cmp::Reverse;

use super::Repair;
use crate::base::{CancelCheck, Result, reserved};

/// Exchanges vertices of parts above the cap on volume for others of lower degree, until the cap holds or no
/// pair can.
///
/// The other part is the one with the most slack that has such a pair. The pair is the one that carries the
/// least volume among those that bring the part under its cap. Without such a pair, the one that carries
/// most.
pub(super) fn exchange(repair: &mut Repair) -> Result<()> {
    let k = repair.loads.k();
    let cap = repair.loads.caps()[1];
    let over: Vec<u32> = (0..k).filter(|&part| repair.loads.load(part)[1] > cap).collect();
    if over.is_empty() {
        return Ok(());
    }
    let mut members = by_degree(repair)?;
    let mut work = CancelCheck::new(repair.run);
    for part in over {
        while let Some(excess) = repair.loads.load(part)[1].checked_sub(cap).filter(|&excess| excess > 0) {
            let mut others: Vec<(u64, u32)> = (0..k)
                .map(|other| (cap.saturating_sub(repair.loads.load(other)[1]), other))
                .filter(|&(slack, _)| slack > 0)
                .collect();
            others.sort_unstable_by_key(|&(slack, other)| (Reverse(slack), other));
            let mut pairs = others.iter().map(|&(slack, other)| {
                let [mine, theirs] = [part, other].map(|part| &members[part as usize][..]);
                work.count(1 + mine.len() + theirs.len())?;
                let degree = |&v: &u32| u64::from(repair.csr.degree(v));
                Ok(pair(mine, theirs, degree, excess, slack).map(|(v, w)| (v, w, other)))
            });
            let Some((v, w, other)) = pairs.find_map(Result::transpose).transpose()? else { break };
            for (vertex, from, to) in [(v, part, other), (w, other, part)] {
                repair.shift(vertex, to);
                let key = |&v: &u32| (repair.csr.degree(v), v);
                members[from as usize].retain(|&member| member != vertex);
                let place = members[to as usize].partition_point(|member| key(member) < key(&vertex));
                members[to as usize].insert(place, vertex);
            }
        }
    }
    Ok(())
}

/// The members of each part, by degree, then id.
fn by_degree(repair: &Repair) -> Result<Vec<Vec<u32>>> {
    let mut members = Vec::new();
    for load in repair.loads.all() {
        members.push(reserved(load[0] as usize + 1, "members of the parts")?);
    }
    for (v, &part) in (0..).zip(repair.parts.iter()) {
        members[part as usize].push(v);
    }
    for members in &mut members {
        members.sort_unstable_by_key(|&v| (repair.csr.degree(v), v));
        repair.run.check()?;
    }
    Ok(members)
}

/// The pair of one of `mine` and one of `theirs`, both by ascending degree, that carries at least `excess`
/// and at most `slack`, as little as possible. Without such a pair, the one that carries most, but less than
/// `excess`.
fn pair(
    mine: &[u32],
    theirs: &[u32],
    degree: impl Fn(&u32) -> u64,
    excess: u64,
    slack: u64,
) -> Option<(u32, u32)> {
    let mut best: Option<(u64, u32, u32)> = None;
    let mut last = theirs.iter().peekable();
    let mut under = None;
    for v in mine {
        // The largest of theirs that is at least `excess` below v.
        while let Some(w) = last.next_if(|w| degree(w) + excess <= degree(v)) {
            under = Some(w);
        }
        if let Some(w) = under {
            let carried = degree(v) - degree(w);
            if carried <= slack && best.is_none_or(|(least, ..)| carried < least) {
                best = Some((carried, *v, *w));
            }
        }
    }
    if best.is_none() {
        let most = slack.min(excess - 1);
        let mut first = theirs.iter().peekable();
        for v in mine {
            // The smallest of theirs that is at most `most` below v.
            while first.next_if(|w| degree(w) + most < degree(v)).is_some() {}
            if let Some(w) = first.peek() {
                let carried = degree(v).saturating_sub(degree(w));
                if carried > best.map_or(0, |(most, ..)| most) {
                    best = Some((carried, *v, **w));
                }
            }
        }
    }
    best.map(|(_, v, w)| (v, w))
}
