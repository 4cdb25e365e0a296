//! Balancing: loads are brought back within their caps, at the least cost for the cut.
//!
//! Vertices of parts above their cap are moved by descending gain per weight that they relieve. Each goes to the
//! part that is best for it among those with room. If no vertex fits anywhere, two vertices are exchanged: the one
//! that leaves the part relieves it more than the one that comes burdens it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::graph::Weight;
use super::state::State;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::capacity::bounds::{excess, fits, minus, plus};

/// Rounds beyond one for each part. Exchanges, of which each looks at all vertices, could go on for as many as there are
/// vertices, for ever smaller relief.
const ROUNDS: usize = 16;
/// Pairs of vertices that are tried for an exchange.
const TRIED: usize = 64;
/// By which share of its rate a move may have become worse since it was queued. Every move changes the loads, and so the
/// rates of all others by a little: without it all of them would be queued anew for each.
const STALE: f64 = 0.01;
/// What a move must take off the excess, in shares of a cap: less is rounding.
const LEAST_RELIEF: f64 = 1e-9;

/// Moves vertices until all caps hold, or nothing helps any more; whether they hold.
pub fn balance(state: &mut State, run: &Run) -> Result<bool> {
    for _ in 0..ROUNDS + state.k {
        let Some(part) = heaviest(state) else { return Ok(true) };
        run.check()?;
        if !relieve(state, part, run)? && !exchange(state, part, run)? {
            return Ok(false);
        }
    }
    Ok(heaviest(state).is_none())
}

/// The part that exceeds its caps most.
fn heaviest(state: &State) -> Option<usize> {
    let over = |part: usize| excess(state.loads[part], state.caps[part]);
    let parts = (0..state.k).filter(|&part| over(part) > 0.0);
    parts.max_by(|&a, &b| over(a).total_cmp(&over(b)).then(b.cmp(&a)))
}

/// The move of `v` that brings down the excess of all parts together at the best rate, and that rate: the gain times the
/// excess taken off, losses divided by it.
fn best_relief(state: &State, v: u32) -> Option<(usize, Key)> {
    let (own, weight, ties) = (state.part(v), state.graph.weight(v), state.ties(v));
    let change = |part: usize, load: Weight| {
        excess(load, state.caps[part]) - excess(state.loads[part], state.caps[part])
    };
    let leaving = change(own, minus(state.loads[own], weight));
    let mut best: Option<(usize, Key)> = None;
    for part in (0..state.k).filter(|&part| part != own) {
        let relief = -leaving - change(part, plus(state.loads[part], weight));
        if relief <= LEAST_RELIEF {
            continue;
        }
        let gain = f64::from(ties[part]) - f64::from(ties[own]);
        // Where nothing is lost or gained, the emptier part has more to offer later.
        let gain = if gain == 0.0 { -1e-3 * (1.0 + state.relative_load(part)) } else { gain };
        let key = Key(if gain > 0.0 { gain * relief } else { gain / relief });
        if best.as_ref().is_none_or(|(_, most)| key > *most) {
            best = Some((part, key));
        }
    }
    best
}

/// A number ordered as floats are.
#[derive(PartialEq)]
struct Key(f64);
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Moves vertices out of `part` until its caps hold; whether any moved.
fn relieve(state: &mut State, part: usize, run: &Run) -> Result<bool> {
    let mut queue = Vec::new();
    run.each(state.graph.len(), |v| {
        if state.part(v) == part {
            queue.extend(best_relief(state, v).map(|(_, key)| (key, Reverse(v))));
        }
    })?;
    let mut queue = BinaryHeap::from(queue);
    let (mut moved, mut steps) = (false, 0_u32);
    while excess(state.loads[part], state.caps[part]) > 0.0 {
        let Some((key, Reverse(v))) = queue.pop() else { break };
        steps += 1;
        if steps % 256 == 0 {
            run.check()?;
        }
        let Some((to, now)) = best_relief(state, v) else { continue };
        if now.0 < key.0 - STALE * key.0.abs() {
            queue.push((now, Reverse(v)));
        } else {
            state.shift(v, to);
            moved = true;
        }
    }
    Ok(moved)
}

/// Exchanges a vertex of `part` with one of another part so that the excess of both together falls; whether it did.
fn exchange(state: &mut State, part: usize, run: &Run) -> Result<bool> {
    let over: Vec<usize> =
        (0..2).filter(|&bound| state.loads[part][bound] > state.caps[part][bound]).collect();
    for bound in over {
        let heavy = top(state, |v| state.part(v) == part, |weight| weight[bound], run)?;
        let light = top(state, |v| state.part(v) != part, |weight| u64::MAX - weight[bound], run)?;
        let mut best: Option<(i64, u32, u32)> = None;
        for &v in &heavy {
            // Looked up once for all partners: a hub has many edges, and the heaviest vertices are hubs.
            let mut between: FxHashMap<u32, i64> = light.iter().map(|&u| (u, 0)).collect();
            for [u, w] in state.graph.edges(v) {
                if let Some(joined) = between.get_mut(u) {
                    *joined += i64::from(*w);
                }
            }
            for &u in &light {
                let other = state.part(u);
                let here = plus(minus(state.loads[part], state.graph.weight(v)), state.graph.weight(u));
                let there = plus(minus(state.loads[other], state.graph.weight(u)), state.graph.weight(v));
                let falls = excess(here, state.caps[part]) < excess(state.loads[part], state.caps[part]);
                if !falls || !fits(there, state.caps[other]) {
                    continue;
                }
                let gain = gain_of_exchange(state, v, u, between.get(&u).copied().unwrap_or_default());
                if best.is_none_or(|(most, ..)| gain > most) {
                    best = Some((gain, v, u));
                }
            }
        }
        if let Some((_, v, u)) = best {
            let other = state.part(u);
            state.shift(v, other);
            state.shift(u, part);
            return Ok(true);
        }
    }
    Ok(false)
}

/// The vertices with the largest keys.
fn top(
    state: &State,
    eligible: impl Fn(u32) -> bool,
    key: impl Fn(Weight) -> u64,
    run: &Run,
) -> Result<Vec<u32>> {
    let mut least = BinaryHeap::new();
    run.each(state.graph.len(), |v| {
        if eligible(v) {
            least.push(Reverse((key(state.graph.weight(v)), Reverse(v))));
        }
        if least.len() > TRIED {
            least.pop();
        }
    })?;
    Ok(least.into_iter().map(|Reverse((_, Reverse(v)))| v).collect())
}

/// What it gains that `v` and `u`, with edges of the weight `between` between them, change places.
fn gain_of_exchange(state: &State, v: u32, u: u32, between: i64) -> i64 {
    let (a, b) = (state.part(v), state.part(u));
    let (of_v, of_u) = (state.ties(v), state.ties(u));
    i64::from(of_v[b]) - i64::from(of_v[a]) + i64::from(of_u[a]) - i64::from(of_u[b]) - 2 * between
}
