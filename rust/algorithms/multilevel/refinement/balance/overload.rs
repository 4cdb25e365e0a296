//! Overload relief: the price of moving vertices out of parts above their caps, and the choice of the
//! vertices that move.
//!
//! **Overload relief**, or relief for short, is how much a move lowers the excess of both parts together. It
//! is measured against *tight* caps, which lie a fifth of the way from the cap to the mean. Only parts above
//! the real caps lose vertices, though. Measured against the real caps, a part slightly over in volume would
//! be stuck beside parts that are full in vertices. Then a hub would relieve only the small remainder, and
//! cost a whole vertex. The *price* of a move is its loss for the cut per relief.
//!
//! **Samples.** The first round brings parts to within some thousandths of their caps. Later rounds move a
//! few hundred vertices, and would spend most of the time on the prices of all. Under several bounds, where
//! nearly all calls take several rounds, a part therefore prices a sample ([`Relief::shares`]) that weighs a
//! multiple of its surplus ([`SAMPLED`]). The offers are the cheapest vertices of that. Each round draws
//! another sample.
//!
//! A round has four steps. Each is a function of vertices and of the state at its start, so that vertices can
//! be divided among threads, or machines, in any way.
//! 1. [`Relief::prices`]: the least price of each vertex of a part above its caps, and a histogram of the
//!    weights by part and price. Histograms of other vertices are added ([`Histogram::add`]).
//! 2. [`Relief::limits`]: for each part, the price below which vertices weigh a multiple of its surplus
//!    ([`OFFERED`]).
//! 3. [`Relief::offers`]: the vertices below that price, with their connections to their own parts and to the
//!    [`TARGETS`] parts that take them at the least prices.
//! 4. [`Relief::commit`]: moves them by ascending price, until no part is above its caps. When a vertex has
//!    its turn, its price is computed again from the loads as they are now, but the connections that it was
//!    offered with. If that is higher, it is queued again ([`Moves`]). No list of neighbours is read.
//!
//! **Parallelism.** The first step and the third.
//!
//! **Memory.** 4 bytes per vertex, and 72 per offer: at most half of the vertices.

use std::ops::Range;
use std::sync::Mutex;

use bytemuck::{Pod, Zeroable};
use rustc_hash::FxHashMap;

use crate::algorithms::multilevel::model::{Assignment, BySlack, Connections, Graph};
use crate::algorithms::multilevel::refinement::move_queue::{Moves, OrderedF64};
use crate::base::{Buffer, Error, NONE, Result, Run, locked, reserved, splitmix64, zeros};
use crate::capacity::{Load, excess, fits, minus, plus, relative};
use crate::exec::{fill, propose, scratches, share};

/// Distance of the tight cap from the cap, as a share of the way to the mean.
const TIGHTNESS: f64 = 0.2;
/// The weight of a rise of the target's excess over its tight cap, if the target keeps its real cap.
const WITHIN: f64 = 0.25;
/// The least relief of a move into a part that keeps its cap, as a share of the relief of leaving alone.
const LEAST_RELIEF: f64 = 0.1;
/// The least relief of a move into a part above its cap.
const LEAST_RELIEF_ABOVE: f64 = 0.3;
/// A queued move is still accepted if its price has risen by at most this fraction. Every move changes the
/// loads, and so the prices of all others, by a little.
const STALE: f64 = 0.05;
/// Parts with the most slack that are tried beside those with a connection.
const EMPTIEST: usize = 4;
/// Parts that an offer names.
const TARGETS: usize = 4;
/// The weight of the offers of a part, as a multiple of its surplus.
const OFFERED: f64 = 1.5;
/// The weight of the offers of a part under several bounds, as a multiple of its surplus. It is larger
/// because a target may fill up under any of them.
const OFFERED_UNDER_BOUNDS: f64 = 3.0;
/// The weight of the vertices that a part prices under several bounds, as a multiple of its surplus.
const SAMPLED: f64 = 32.0;
/// Minimum vertices per part in a sample. Smaller graphs are priced whole.
const LEAST_SAMPLE: f64 = 4096.0;
/// Minimum number of offers of a part.
const LEAST_OFFERS: u64 = 16;
/// The largest share of the vertices of a part that it offers.
const MOST_OFFERS: f64 = 0.5;
/// Purpose of the memory, for errors.
const PRICES: &str = "prices of vertices";
/// Bins that a thread keeps before it adds them to the shared ones.
const BINS: usize = 1 << 10;
/// Vertices whose offers a thread computes at a time.
const OFFERS_AT_A_TIME: usize = 256;

/// A vertex that may leave its part.
#[derive(Debug, Clone, Copy, PartialEq, Zeroable, Pod)]
#[repr(C)]
pub struct Offer {
    v: u32,
    /// Its connection to its own part.
    home: u32,
    /// Parts that would take it. Where there are fewer, [`NONE`].
    parts: [u32; TARGETS],
    /// Its connections to them.
    connections: [u32; TARGETS],
}

/// Weights by part and price. Appending the bins of more vertices adds their weights.
#[derive(Debug, Default)]
pub struct Histogram<const D: usize> {
    /// The part and the code of the price, and the number of vertices. Bins may repeat.
    bins: Vec<[u64; 2]>,
    /// Weight of the vertices of each bin.
    loads: Vec<Load<D>>,
}

impl<const D: usize> Histogram<D> {
    /// Adds the weights of other vertices.
    pub fn add(&mut self, other: &Self) {
        self.bins.extend(&other.bins);
        self.loads.extend(&other.loads);
    }

    /// The weights of the vertices of all replicas.
    pub(crate) fn of_all(self, graph: &Graph<D>) -> Result<Self> {
        let loads = graph.all(self.loads.into_flattened())?;
        Ok(Self { bins: graph.all(self.bins)?, loads: loads.as_chunks().0.to_vec() })
    }

    /// Whether no vertex has a price.
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// The bins, each once, ascending by part and price.
    fn sorted(&self) -> Vec<(u64, Bin<D>)> {
        let bin = |(&[at, count], &load): (&[u64; 2], &Load<D>)| (at, Bin { load, count });
        let mut bins: Vec<_> = self.bins.iter().zip(&self.loads).map(bin).collect();
        bins.sort_unstable_by_key(|&(at, _)| at);
        bins.dedup_by(|next, bin| {
            let same = next.0 == bin.0;
            if same {
                bin.1.add(next.1);
            }
            same
        });
        bins
    }
}

/// Vertices of a part with nearly the same price: their weight and their number.
#[derive(Clone, Copy)]
struct Bin<const D: usize> {
    load: Load<D>,
    count: u64,
}

impl<const D: usize> Bin<D> {
    const EMPTY: Self = Self { load: [0; D], count: 0 };

    fn add(&mut self, other: Self) {
        *self = Self { load: plus(self.load, other.load), count: self.count + other.count };
    }
}

/// Bins by part and code of the price.
type Bins<const D: usize> = FxHashMap<u64, Bin<D>>;

/// Adds the bins of a thread to the shared bins, which become `None` if memory for them is refused.
fn add_all<const D: usize>(all: &mut Option<Bins<D>>, bins: &mut Bins<D>) {
    if all.as_mut().is_some_and(|all| all.try_reserve(bins.len()).is_err()) {
        *all = None;
    }
    for (at, bin) in bins.drain() {
        if let Some(all) = all {
            all.entry(at).or_insert(Bin::EMPTY).add(bin);
        }
    }
}

/// The prices of some vertices: the *rank* of each by price and then by a hash, or [`NONE`].
pub struct Ranks {
    first: u32,
    ranks: Buffer<u32>,
}

/// The parts in some state of their loads.
struct Parts<'a, const D: usize> {
    caps: &'a [Load<D>],
    tight: &'a [Load<D>],
    loads: Vec<Load<D>>,
    /// By how much each load exceeds its tight cap, and how full the part is.
    over_tight: Vec<f64>,
    fullness: Vec<f64>,
    by_slack: BySlack,
}

impl<'a, const D: usize> Parts<'a, D> {
    fn new(relief: &'a Relief<D>, assignment: &Assignment<D>) -> Self {
        let Relief { caps, tight, .. } = relief;
        let loads = assignment.loads.clone();
        let over_tight = loads.iter().zip(tight).map(|(&load, &tight)| excess(load, tight)).collect();
        let fullness = assignment.fullness(caps);
        Self { caps, tight, loads, over_tight, fullness, by_slack: assignment.by_slack(tight) }
    }

    #[inline(always)]
    fn is_over(&self, part: u32) -> bool {
        !fits(self.loads[part as usize], self.caps[part as usize])
    }

    /// Notes the load of a part.
    fn set(&mut self, part: u32, load: Load<D>) {
        let part = part as usize;
        self.loads[part] = load;
        self.over_tight[part] = excess(load, self.tight[part]);
        self.fullness[part] = relative(load, self.caps[part]);
    }

    /// The relief of leaving `part`, if there is any.
    #[inline(always)]
    fn leave(&self, part: u32, weight: Load<D>) -> Option<f64> {
        let after = excess(minus(self.loads[part as usize], weight), self.tight[part as usize]);
        let leave = self.over_tight[part as usize] - after;
        (leave > 1e-12).then_some(leave)
    }

    /// The loss per relief of a move to `part` of what relieves its own part by `leave`, if it is below
    /// `limit`.
    #[inline(always)]
    fn price(&self, part: u32, weight: Load<D>, leave: f64, loss: i64, limit: f64) -> Option<f64> {
        let part = part as usize;
        // Where nothing is lost or gained, the emptier part has more to offer later.
        let (loss, fullness) = (loss as f64, 1e-3 * self.fullness[part].min(100.0));
        let per =
            |relief| if loss >= 0.0 { (loss + 1e-3 + fullness) / relief } else { (loss + fullness) * relief };
        // A move relieves no more than leaving does.
        if per(leave) >= limit {
            return None;
        }
        let after = plus(self.loads[part], weight);
        let within = fits(after, self.caps[part]);
        let rise = excess(after, self.tight[part]) - self.over_tight[part];
        let relief = leave - if within { WITHIN * rise } else { rise };
        let (price, least) = (per(relief), if within { LEAST_RELIEF } else { LEAST_RELIEF_ABOVE });
        (relief > leave * least && price < limit).then_some(price)
    }

    /// The part that takes what is offered at the least price.
    #[inline(always)]
    fn best(&self, own: u32, weight: Load<D>, offer: &Offer) -> Option<(f64, u32)> {
        let leave = self.leave(own, weight)?;
        let emptiest = self.by_slack.iter().take(EMPTIEST).map(|part| (part, 0));
        let named = offer.parts.into_iter().zip(offer.connections).take_while(|&(part, _)| part != NONE);
        let mut best: Option<(f64, u32)> = None;
        for (part, w) in named.chain(emptiest).filter(|&(part, _)| part != own) {
            let (loss, limit) =
                (i64::from(offer.home) - i64::from(w), best.map_or(f64::INFINITY, |best| best.0));
            if let Some(price) = self.price(part, weight, leave, loss, limit) {
                best = Some((price, part));
            }
        }
        best
    }
}

/// The weight of the edges of a vertex, if all are known to lead to its own part.
pub(crate) type Known<'a> = &'a (dyn Fn(u32) -> Option<u32> + Sync);

/// Moves out of parts above their caps.
pub struct Relief<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    caps: &'a [Load<D>],
    tight: Vec<Load<D>>,
}

impl<'a, const D: usize> Relief<'a, D> {
    /// Moves under these caps.
    pub fn new(graph: &'a Graph<'a, D>, caps: &'a [Load<D>]) -> Self {
        let all = caps.iter().fold([0.0; D], |sum, cap| std::array::from_fn(|i| sum[i] + cap[i] as f64));
        let tight = caps.iter().map(|cap| {
            std::array::from_fn(|i| {
                let (cap, mean) = (cap[i] as f64, cap[i] as f64 / all[i].max(1.0) * graph.total()[i] as f64);
                (cap - (cap - mean.ceil()).max(0.0) * TIGHTNESS) as u64
            })
        });
        Self { graph, caps, tight: tight.collect() }
    }

    /// The share of the vertices of each part that are priced: none of a part within its caps, and all of
    /// another one, or a sample.
    pub fn shares(&self, assignment: &Assignment<D>, is_sampled: bool) -> Vec<f64> {
        let least = LEAST_SAMPLE * self.caps.len() as f64 / self.graph.len().max(1) as f64;
        let share = |(&load, &cap): (&Load<D>, &Load<D>)| {
            if fits(load, cap) {
                return 0.0;
            }
            let surplus = |i: usize| load[i].saturating_sub(cap[i]) as f64 / load[i].max(1) as f64;
            let sample = (SAMPLED * (0..D).map(surplus).fold(0.0, f64::max)).max(least);
            if is_sampled && D > 1 { sample.min(1.0) } else { 1.0 }
        };
        assignment.loads.iter().zip(self.caps).map(share).collect()
    }

    /// The prices of the vertices in `range`: of each part a sample of this share. Ties are broken by a hash
    /// with the seed.
    pub fn prices(
        &self,
        assignment: &Assignment<D>,
        range: Range<u32>,
        (shares, seed): (&[f64], u64),
        known: Known,
        run: &Run,
    ) -> Result<(Ranks, Histogram<D>)> {
        let parts = Parts::new(self, assignment);
        // Hashes below this are in the sample.
        let below: Vec<u64> = shares.iter().map(|share| (share * 4_294_967_296.0) as u64).collect();
        let mut ranks: Buffer<u32> = Buffer::zeroed(range.len(), PRICES)?;
        let all: Mutex<Option<Bins<D>>> = Mutex::new(Some(Bins::default()));
        let scratch = || Ok((Connections::new(assignment)?, Bins::default()));
        let mut found = scratches(run, self.graph.entries_of(range.clone()), scratch)?;
        let price = |(connections, bins): &mut (Connections, Bins<D>), v: u32, rank: &mut u32| {
            let own = assignment.part(v);
            *rank = NONE;
            let hash = splitmix64(seed ^ u64::from(v));
            if hash >> 32 >= below[own as usize] || !self.graph.may_move(v) {
                return;
            }
            let weight = self.graph.weight(v);
            let mut least = f64::INFINITY;
            self.each(assignment, &parts, connections, v, known, |_, _, price| {
                least = price;
                price
            });
            if least < f64::INFINITY {
                let code = code(least);
                let at = u64::from(own) << 16 | u64::from(code);
                bins.entry(at).or_insert(Bin::EMPTY).add(Bin { load: weight, count: 1 });
                *rank = u32::from(code) << 16 | hash as u32 >> 16;
                if bins.len() > BINS {
                    add_all(&mut locked(&all), bins);
                }
            }
        };
        let first = range.start;
        let ranges = self.graph.ranges(range).map(|range| range.start - first..range.end - first);
        propose(&mut found, ranges, &mut ranks, run, |scratch, v, rank| price(scratch, first + v, rank))?;
        let mut all = locked(&all);
        found.into_iter().for_each(|(_, mut bins)| add_all(&mut all, &mut bins));
        let needed = 64 * ranks.len() as u64;
        let all = all.take().ok_or_else(|| Error::MemoryRefused { what: PRICES.into(), needed })?;
        let (mut bins, mut loads) = (reserved(all.len(), PRICES)?, reserved(all.len(), PRICES)?);
        for (at, Bin { load, count }) in all {
            bins.push([at, count]);
            loads.push(load);
        }
        Ok((Ranks { first, ranks }, Histogram { bins, loads }))
    }

    /// The ranks below which vertices of each part are offered.
    pub fn limits(&self, assignment: &Assignment<D>, histogram: &Histogram<D>) -> Vec<u32> {
        let mut limits = vec![0; self.caps.len()];
        let bins = histogram.sorted();
        for bins in bins.chunk_by(|(one, _), (other, _)| one >> 16 == other >> 16) {
            let part = (bins[0].0 >> 16) as usize;
            let surplus = |bound: usize| assignment.loads[part][bound].saturating_sub(self.caps[part][bound]);
            let multiple = if D > 1 { OFFERED_UNDER_BOUNDS } else { OFFERED };
            let needed: [f64; D] = std::array::from_fn(|bound| multiple * surplus(bound) as f64);
            limits[part] = limit(bins, needed);
        }
        limits
    }

    /// The vertices of lower rank than the limit of their part, ascending.
    pub fn offers(
        &self,
        assignment: &Assignment<D>,
        ranks: &Ranks,
        limits: &[u32],
        known: Known,
        run: &Run,
    ) -> Result<Vec<Offer>> {
        let parts = Parts::new(self, assignment);
        let ranked = || (ranks.first..).zip(ranks.ranks.iter());
        let is_below = |&(v, &rank): &(u32, &u32)| rank < NONE && rank < limits[assignment.part(v) as usize];
        let mut offers = reserved(ranked().filter(is_below).count(), "vertices that may move")?;
        offers.extend(ranked().filter(is_below).map(|(v, _)| Offer { v, ..Offer::zeroed() }));
        let entries = offers.iter().map(|offer| self.graph.degree(offer.v) as u64).sum();
        let mut connections = scratches(run, entries, || Connections::new(assignment))?;
        share(&mut connections, offers.chunks_mut(OFFERS_AT_A_TIME), run, |connections, offers| {
            offers.iter_mut().for_each(|offer| self.fill(offer, assignment, &parts, connections, known));
            run.check()
        })?;
        Ok(offers)
    }

    /// Completes an offer.
    fn fill(
        &self,
        offer: &mut Offer,
        assignment: &Assignment<D>,
        parts: &Parts<D>,
        connections: &mut Connections,
        known: Known,
    ) {
        let mut best = [(f64::INFINITY, NONE, 0); TARGETS];
        self.each(assignment, parts, connections, offer.v, known, |part, w, price| {
            let mut next = (price, part, w);
            if best.iter().all(|&(_, known, _)| known != part) {
                for slot in &mut best {
                    if next.0 < slot.0 {
                        std::mem::swap(slot, &mut next);
                    }
                }
            }
            best[TARGETS - 1].0
        });
        offer.home = connections.to(assignment.part(offer.v));
        offer.parts = best.map(|(_, part, _)| part);
        offer.connections = best.map(|(.., w)| w);
    }

    /// Calls `visit` with the parts that may take `v`, its connections to them, and the prices. It returns
    /// the limit for those after.
    #[inline(always)]
    fn each(
        &self,
        assignment: &Assignment<D>,
        parts: &Parts<D>,
        connections: &mut Connections,
        v: u32,
        known: Known,
        mut visit: impl FnMut(u32, u32, f64) -> f64,
    ) {
        let (own, weight) = (assignment.part(v), self.graph.weight(v));
        let Some(leave) = parts.leave(own, weight) else { return };
        match known(v) {
            Some(home) => connections.only(own, home),
            None => connections.count(self.graph, assignment, v),
        }
        let home = i64::from(connections.to(own));
        let emptiest = parts.by_slack.iter().take(EMPTIEST).map(|part| (part, connections.to(part)));
        let mut limit = f64::INFINITY;
        for (part, w) in connections.iter().chain(emptiest).filter(|&(part, _)| part != own) {
            if let Some(price) = parts.price(part, weight, leave, home - i64::from(w), limit) {
                limit = visit(part, w, price);
            }
        }
    }

    /// Makes moves that were offered, until all caps hold or none is left. Returns their number.
    pub fn commit(
        &self,
        assignment: &mut Assignment<D>,
        offers: &[Offer],
        seed: u64,
        run: &Run,
    ) -> Result<u64> {
        let mut parts = Parts::new(self, assignment);
        let mut prices = zeros(offers.len(), PRICES)?;
        fill(&mut prices, run, |index, price: &mut f64| {
            let offer = &offers[index];
            let best = parts.best(assignment.part(offer.v), self.graph.weight(offer.v), offer);
            *price = best.map_or(f64::NAN, |(price, _)| price);
        })?;
        // Offers ascend, so that what is queued is their place.
        let tie_break = |v: u32| splitmix64(seed ^ u64::from(v)) as u32;
        let keys = prices.iter().zip(offers).zip(0..).filter(|((price, _), _)| !price.is_nan());
        let keys = keys.map(|((&price, offer), place)| ((OrderedF64(price), tie_break(offer.v)), place));
        let mut moves = Moves::sorted(keys, run)?;
        let mut moved = 0;
        while let Some(((OrderedF64(price), tie_break), place)) = moves.next()? {
            let offer = &offers[place as usize];
            let (v, own) = (offer.v, assignment.part(offer.v));
            if !parts.is_over(own) {
                continue;
            }
            let weight = self.graph.weight(v);
            let Parts { by_slack, loads, caps, .. } = &mut parts;
            by_slack.skip(|part| !fits(plus(loads[part], weight), caps[part]));
            match parts.best(own, weight, offer) {
                Some((now, _)) if now > price + price.abs() * STALE + 1e-9 => {
                    moves.push((OrderedF64(now), tie_break), place);
                }
                Some((_, to)) => {
                    assignment.shift(v, weight, to);
                    [own, to].into_iter().for_each(|part| parts.set(part, assignment.loads[part as usize]));
                    moved += 1;
                }
                None => {}
            }
        }
        Ok(moved)
    }
}

/// The rank below which the vertices of these bins have the weight needed.
fn limit<const D: usize>(bins: &[(u64, Bin<D>)], needed: [f64; D]) -> u32 {
    let all: u64 = bins.iter().map(|(_, bin)| bin.count).sum();
    let least = LEAST_OFFERS as f64;
    let most = (all as f64 * MOST_OFFERS).max(least);
    let mut below = Bin::EMPTY;
    for &(at, bin) in bins {
        let share = |needed: f64, below: u64, bin: u64| (needed - below as f64) / bin.max(1) as f64;
        let of_bound = |bound: usize| share(needed[bound], below.load[bound], bin.load[bound]);
        // Prices in a bin are nearly equal, so that some of its vertices are chosen by hash.
        let enough = (0..D).map(of_bound).fold(share(least, below.count, bin.count), f64::max);
        let enough = enough.min(share(most, below.count, bin.count));
        if enough < 1.0 {
            return (at as u32) << 16 | (enough.max(0.0) * 65536.0) as u32;
        }
        below.add(bin);
    }
    NONE
}

/// The highest bits of a price, so that lower prices have lower codes: sign, exponent and 4 bits.
fn code(price: f64) -> u16 {
    let bits = price.to_bits() as i64;
    // As in `f64::total_cmp`.
    let ordered = bits ^ ((bits >> 63) as u64 >> 1) as i64;
    ((ordered >> 48) as u16) ^ (1 << 15)
}
