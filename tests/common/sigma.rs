//! SIGMA of vertices in the most obvious way, from its description and not from the code: every part is scored for
//! every vertex, all counts are made anew.

use std::collections::BTreeSet;

use super::Graph;
use fastpart::internals::algorithms::sigma::Sigma;
use fastpart::internals::algorithms::sigma::vertex::Objective;

pub type Load = [u64; 2];

/// What the rule comes to.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub parts: Vec<i32>,
    /// The cap on volume that holds, and whether all vertices were dealt; none without repair.
    pub volume: Option<(u64, bool)>,
}

pub struct Oracle<'a> {
    sigma: &'a Sigma,
    k: usize,
    /// Neighbours of each vertex; parallel edges count.
    pub neighbours: Vec<Vec<usize>>,
    pub caps: Load,
    parts: Vec<Option<usize>>,
    /// Parts when the batch began: what presence goes by.
    before: Vec<Option<usize>>,
}

impl<'a> Oracle<'a> {
    pub fn new(graph: &Graph, sigma: &'a Sigma) -> Self {
        let mut neighbours = vec![Vec::new(); graph.n as usize];
        for [u, v] in graph.records.iter().map(|record| record.map(|id| id as usize)) {
            if u != v {
                neighbours[u].push(v);
                neighbours[v].push(u);
            }
        }
        let total: usize = neighbours.iter().map(|all| all.len() + 1).sum();
        let cap = |ratio: f64, items: usize| {
            (ratio.min(f64::from(sigma.k)) * items as f64 / f64::from(sigma.k)).ceil() as u64
        };
        let caps = [cap(sigma.balance.unwrap_or(1.03), neighbours.len()), cap(sigma.volume_balance, total)];
        Self {
            sigma,
            k: sigma.k as usize,
            parts: vec![None; neighbours.len()],
            before: Vec::new(),
            neighbours,
            caps,
        }
    }

    pub fn item(&self, v: usize) -> Load {
        [1, self.neighbours[v].len() as u64 + 1]
    }

    fn load(&self, part: usize) -> Load {
        let members = (0..self.parts.len()).filter(|&v| self.parts[v] == Some(part));
        members.fold([0, 0], |sum, v| [sum[0] + 1, sum[1] + self.item(v)[1]])
    }

    fn relative(&self, load: Load) -> f64 {
        (load[0] as f64 / self.caps[0] as f64).max(load[1] as f64 / self.caps[1] as f64)
    }

    fn fits(&self, v: usize, part: usize, scale: f64) -> bool {
        let (load, item) = (self.load(part), self.item(v));
        (0..2).all(|i| (load[i] + item[i]) as f64 <= self.caps[i] as f64 * scale)
    }

    fn in_part(&self, v: usize, part: usize) -> usize {
        self.neighbours[v].iter().filter(|&&u| self.parts[u] == Some(part)).count()
    }

    /// Member, or neighbour of a member.
    fn is_present(&self, v: usize, part: usize) -> bool {
        self.before[v] == Some(part) || self.neighbours[v].iter().any(|&u| self.before[u] == Some(part))
    }

    fn replicas(&self, v: usize, part: usize) -> f64 {
        let new = self.neighbours[v].iter().filter(|&&u| !self.is_present(u, part)).count();
        let homes: BTreeSet<usize> = self.neighbours[v].iter().filter_map(|&u| self.before[u]).collect();
        let away = homes.iter().filter(|&&home| home != part && !self.is_present(v, home)).count();
        (new + away) as f64
    }

    fn score(&self, v: usize, part: usize) -> f64 {
        let degree = self.neighbours[v].len() as f64;
        let penalty = libm::pow(self.relative(self.load(part)), self.sigma.gamma - 1.1);
        let score = self.in_part(v, part) as f64 / degree - penalty;
        match self.sigma.objective {
            Objective::Cut => score,
            Objective::Multi => {
                score - self.sigma.tau * self.replicas(v, part) / (degree + f64::from(self.sigma.k))
            }
        }
    }

    /// The first of the parts with the largest key.
    fn argmax(&self, parts: impl Iterator<Item = usize>, key: impl Fn(usize) -> f64) -> Option<usize> {
        parts.fold(None, |best, part| match best {
            Some(best) if key(best) >= key(part) => Some(best),
            _ => Some(part),
        })
    }

    fn decide(&self, v: usize, scale: f64) -> usize {
        let open = (0..self.k).filter(|&part| self.fits(v, part, scale));
        let after = |part: usize| {
            let (load, item) = (self.load(part), self.item(v));
            self.relative([load[0] + item[0], load[1] + item[1]])
        };
        let best = self.argmax(open, |part| self.score(v, part));
        best.unwrap_or_else(|| self.argmax(0..self.k, |part| -after(part)).unwrap())
    }

    /// The whole rule.
    pub fn run(mut self, preferred: &[u32], batch: usize) -> Outcome {
        let n = self.parts.len();
        for v in (0..n).filter(|&v| !self.neighbours[v].is_empty()).collect::<Vec<_>>() {
            let part = preferred[v] as usize;
            let agree = self.neighbours[v].iter().all(|&u| self.parts[u].is_none_or(|other| other == part));
            if agree && self.fits(v, part, 1.0) {
                self.parts[v] = Some(part);
            }
        }
        let deferred: Vec<usize> =
            (0..n).filter(|&v| self.parts[v].is_none() && !self.neighbours[v].is_empty()).collect();
        let fullest = (0..self.k).map(|part| self.relative(self.load(part))).fold(0.9, f64::max);
        let scale = |done: usize| fullest + (1.0 - fullest) * (done as f64 / deferred.len() as f64).sqrt();
        for (index, batch) in deferred.chunks(batch).enumerate().map(|(i, b)| (i * batch, b)) {
            self.before = self.parts.clone();
            let frozen: Vec<usize> = batch.iter().map(|&v| self.decide(v, scale(index))).collect();
            for ((done, &v), decided) in (index..).zip(batch).zip(frozen) {
                let holds = self.fits(v, decided, scale(done));
                self.parts[v] = Some(if holds { decided } else { self.decide(v, scale(done)) });
            }
        }
        for v in (0..n).filter(|&v| self.neighbours[v].is_empty()).collect::<Vec<_>>() {
            let fewest = |part: &usize| self.load(*part)[0];
            let open = (0..self.k).filter(|&part| self.fits(v, part, 1.0)).min_by_key(fewest);
            self.parts[v] = Some(open.unwrap_or_else(|| (0..self.k).min_by_key(fewest).unwrap()));
        }
        let volume = self.sigma.strict.then(|| self.repair());
        Outcome { parts: self.parts.iter().map(|part| part.unwrap() as i32).collect(), volume }
    }

    fn repair(&mut self) -> (u64, bool) {
        let n = self.parts.len();
        let nominal = self.caps[1];
        let largest = (0..n).map(|v| self.item(v)[1]).max().unwrap_or(0);
        let total: u64 = (0..n).map(|v| self.item(v)[1]).sum();
        let bound = total.div_ceil(self.k as u64) + largest;
        if largest > nominal {
            self.caps[1] = bound;
        }
        while self.move_out() {}
        self.push_vertices();
        for part in 0..self.k {
            while self.load(part)[1] > self.caps[1] && self.exchange(part) {}
        }
        let reached = |oracle: &Self| (0..oracle.k).map(|part| oracle.load(part)[1]).max().unwrap();
        let dealt = reached(self) > nominal.max(bound);
        if dealt {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by_key(|&v| (std::cmp::Reverse(self.neighbours[v].len()), v));
            order.iter().enumerate().for_each(|(turn, &v)| self.parts[v] = Some(turn % self.k));
        }
        (reached(self).max(nominal), dealt)
    }

    fn is_over(&self, part: usize) -> bool {
        let load = self.load(part);
        load[0] > self.caps[0] || load[1] > self.caps[1]
    }

    /// The part that `v` would best move to, and the cut lost by that.
    fn best_move(&self, v: usize) -> Option<(i64, usize)> {
        let open = (0..self.k).filter(|&part| self.fits(v, part, 1.0));
        let most = open.clone().map(|part| self.in_part(v, part)).max()?;
        let best = self.argmax(open.filter(|&part| self.in_part(v, part) == most), |part| {
            -self.relative(self.load(part))
        })?;
        Some((self.in_part(v, self.parts[v].unwrap()) as i64 - most as i64, best))
    }

    /// One round of moves; whether any was made.
    fn move_out(&mut self) -> bool {
        let mut waiting: BTreeSet<(i64, usize)> = (0..self.parts.len())
            .filter(|&v| self.is_over(self.parts[v].unwrap()))
            .filter_map(|v| self.best_move(v).map(|(loss, _)| (loss, v)))
            .collect();
        let mut moved = false;
        while let Some((loss, v)) = waiting.pop_first() {
            if !self.is_over(self.parts[v].unwrap()) {
                continue;
            }
            match self.best_move(v) {
                Some((now, part)) if now <= loss => {
                    self.parts[v] = Some(part);
                    moved = true;
                }
                Some((now, _)) => {
                    waiting.insert((now, v));
                }
                None => {}
            }
        }
        moved
    }

    fn push_vertices(&mut self) {
        let mut order: Vec<usize> = (0..self.parts.len()).collect();
        order.sort_by_key(|&v| (self.neighbours[v].len(), v));
        for v in order {
            if self.load(self.parts[v].unwrap())[0] > self.caps[0] {
                let open = (0..self.k).filter(|&part| self.load(part)[0] < self.caps[0]);
                self.parts[v] = open.min_by_key(|&part| self.load(part)[1]);
            }
        }
    }

    /// Exchanges one pair; whether there was one.
    fn exchange(&mut self, part: usize) -> bool {
        let excess = self.load(part)[1] - self.caps[1];
        let room = |oracle: &Self, other: usize| oracle.caps[1].saturating_sub(oracle.load(other)[1]);
        let mut others: Vec<usize> = (0..self.k).collect();
        others.sort_by_key(|&other| std::cmp::Reverse(room(self, other)));
        let mut members: Vec<usize> = (0..self.parts.len()).collect();
        members.sort_by_key(|&v| (self.neighbours[v].len(), v));
        for other in others {
            let parts = &self.parts;
            let of = |part: usize| members.iter().filter(move |&&v| parts[v] == Some(part));
            let mut pairs: Vec<(u64, usize, usize)> = Vec::new();
            for &v in of(part) {
                for &w in of(other) {
                    let carried = self.item(v)[1].saturating_sub(self.item(w)[1]);
                    if carried > 0 && carried <= room(self, other) {
                        pairs.push((carried, v, w));
                    }
                }
            }
            let enough = pairs.iter().map(|pair| pair.0).filter(|&carried| carried >= excess).min();
            let Some(carried) = enough.or(pairs.iter().map(|pair| pair.0).max()) else { continue };
            // The first of mine; of theirs, by degree then id, the last that will do, or the first.
            let v = pairs.iter().find(|pair| pair.0 == carried).unwrap().1;
            let mut partners =
                pairs.iter().filter(|pair| pair.0 == carried && pair.1 == v).map(|pair| pair.2);
            let w = if enough.is_some() { partners.next_back() } else { partners.next() }.unwrap();
            (self.parts[v], self.parts[w]) = (Some(other), Some(part));
            return true;
        }
        false
    }
}
