//! Loads of the parts, and their term in the score of each.
//!
//! The term of part p is `(max_e - e_p) * s_e + (max_r - r_p) * s_r`, evaluated in this order in f64: `e`
//! counts records, `r` replicas. It is kept up to date per part, so that scoring only reads it. All terms
//! change when a maximum rises, which happens at most `cap` times for records and twice that for replicas:
//! O(m) steps in all. A part that may take no record has the term -infinity.

use crate::base::error::Result;
use crate::sets::tournament::Tree;

/// Up to this number of parts all terms are scanned. The terms of more parts are searched by a tree.
pub(crate) const SCANNED: usize = 512;

/// The term of the loads in a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Balance {
    /// `lambda * (max_e - e_p) / (1 + max_e - min_e)`: HDRF.
    Records(f64),
    /// `(max_e - e_p) / max_e`, 0 while the max is: 2PS-HDRF.
    RecordsOfMost,
    /// `lambda / 2 * ((max_e - e_p) / max_e + (max_r - r_p) / max_r)`, a quotient being 0 while its max is:
    /// SIGMA, whose denominators are `epsilon + max - 1` with an epsilon of 1.
    RecordsAndReplicas(f64),
}

/// Loads and terms of `k` parts.
#[derive(Debug)]
pub struct EdgeLoads {
    balance: Balance,
    k: usize,
    /// Whole numbers below 2^53, in f64 so that all terms are computed without conversions.
    records: Vec<f64>,
    replicas: Vec<f64>,
    terms: Vec<f64>,
    most: [f64; 2],
    /// The least records of a part, and how many parts have them.
    least: f64,
    at_least: usize,
    scales: [f64; 2],
    limit: f64,
    /// Parts at the limit.
    closed: usize,
    tree: Option<Tree>,
}

impl EdgeLoads {
    /// Bytes of `k` parts.
    pub fn memory(k: u32) -> u64 {
        40 * u64::from(k)
    }

    /// `k` empty parts.
    pub fn new(k: u32, balance: Balance, limit: u64) -> Result<Self> {
        let k = k as usize;
        let mut loads = Self {
            balance,
            k,
            records: vec![0.0; k],
            replicas: vec![0.0; k],
            terms: vec![f64::NEG_INFINITY; k.next_multiple_of(64)],
            most: [0.0; 2],
            least: 0.0,
            at_least: k,
            scales: [0.0; 2],
            limit: limit as f64,
            closed: 0,
            tree: (k > SCANNED).then(|| Tree::new(k)),
        };
        loads.rescale();
        Ok(loads)
    }

    /// The term of each part, and -infinity up to a multiple of 64.
    #[inline(always)]
    pub fn terms(&self) -> &[f64] {
        &self.terms
    }

    /// The part of the largest term. Ties go to the lowest.
    #[inline(always)]
    pub fn best_balanced(&self) -> u32 {
        match &self.tree {
            Some(tree) => tree.best(),
            None => largest(&self.terms),
        }
    }

    /// The part with the fewest records. Ties go to the lowest.
    pub fn least_loaded(&self) -> u32 {
        let records = &self.records;
        (1..self.k).fold(0, |least, part| if records[part] < records[least] { part } else { least }) as u32
    }

    /// Records of each part.
    pub fn records(&self) -> Vec<u64> {
        self.records[..self.k].iter().map(|&load| load as u64).collect()
    }

    /// Records of one part.
    #[inline(always)]
    pub fn of(&self, part: u32) -> u64 {
        self.records[part as usize] as u64
    }

    /// Replicas of all parts.
    pub fn replicas(&self) -> u64 {
        self.replicas.iter().map(|&load| load as u64).sum()
    }

    /// Takes over the records of each part, and the replicas, if there are any. Then [`Self::settle`].
    pub fn resume(&mut self, records: &[u64], replicas: &[u64]) {
        for (loads, known) in [(&mut self.records, records), (&mut self.replicas, replicas)] {
            loads.iter_mut().zip(known).for_each(|(load, &known)| *load = known as f64);
        }
    }

    /// Counts a record and the replicas that are new with it, without looking at the terms. Then
    /// [`Self::settle`].
    #[inline(always)]
    pub fn count(&mut self, part: u32, replicas: u32) {
        self.records[part as usize] += 1.0;
        self.replicas[part as usize] += f64::from(replicas);
    }

    /// Brings all terms up to date, under a new `limit`.
    pub fn settle(&mut self, limit: u64) {
        self.limit = limit as f64;
        self.most = [&self.records, &self.replicas].map(|loads| loads.iter().copied().fold(0.0, f64::max));
        self.find_least();
        self.rescale();
    }

    /// Whether a part is at the limit.
    #[inline(always)]
    pub fn any_closed(&self) -> bool {
        self.closed > 0
    }

    /// Raises the limit of records. A lower one is ignored.
    #[inline(always)]
    pub fn raise(&mut self, limit: f64) {
        if limit > self.limit {
            self.limit = limit;
            self.rescale();
        }
    }

    /// Adds a record and the replicas that are new with it.
    #[inline(always)]
    pub fn add(&mut self, part: u32, replicas: u32) {
        let part = part as usize;
        let before = self.records[part];
        self.records[part] = before + 1.0;
        self.replicas[part] += f64::from(replicas);
        let rose = match self.balance {
            Balance::Records(_) => {
                self.at_least -= usize::from(before == self.least);
                self.records[part] > self.most[0] || self.at_least == 0
            }
            Balance::RecordsOfMost => self.records[part] > self.most[0],
            Balance::RecordsAndReplicas(_) => {
                self.records[part] > self.most[0] || self.replicas[part] > self.most[1]
            }
        };
        if rose {
            let larger = |a: f64, b: f64| if a > b { a } else { b };
            self.most = [larger(self.records[part], self.most[0]), larger(self.replicas[part], self.most[1])];
            if self.at_least == 0 {
                self.find_least();
            }
            self.rescale();
        } else {
            self.closed += usize::from(self.records[part] == self.limit);
            self.terms[part] = self.term(part);
            if let Some(tree) = &mut self.tree {
                tree.update(part, &self.terms);
            }
        }
    }

    /// Takes a record out of its part, whose replicas stay. The largest loads stay the largest that any part
    /// has had. Not for [`Balance::Records`], which also needs the least loads.
    #[inline(always)]
    pub fn remove(&mut self, part: u32) {
        let part = part as usize;
        self.closed -= usize::from(self.records[part] == self.limit);
        self.records[part] -= 1.0;
        self.terms[part] = self.term(part);
        if let Some(tree) = &mut self.tree {
            tree.update(part, &self.terms);
        }
    }

    #[inline(always)]
    fn find_least(&mut self) {
        let records = &self.records[..self.k];
        let least =
            records.iter().fold(f64::INFINITY, |least, &load| if load < least { load } else { least });
        self.least = least;
        self.at_least = records.iter().map(|&load| usize::from(load == least)).sum();
    }

    #[inline(always)]
    fn term(&self, part: usize) -> f64 {
        let term = (self.most[0] - self.records[part]) * self.scales[0]
            + (self.most[1] - self.replicas[part]) * self.scales[1];
        if self.records[part] < self.limit { term } else { f64::NEG_INFINITY }
    }

    /// All terms, after a maximum or the limit changed.
    #[inline(always)]
    fn rescale(&mut self) {
        self.scales = match self.balance {
            Balance::Records(lambda) => [lambda / (1.0 + self.most[0] - self.least), 0.0],
            Balance::RecordsOfMost => [1.0 / self.most[0].max(1.0), 0.0],
            Balance::RecordsAndReplicas(lambda) => {
                self.most.map(|most| if most > 0.0 { lambda / 2.0 / most } else { 0.0 })
            }
        };
        let [per_record, per_replica] = self.scales;
        let [most_records, most_replicas] = self.most;
        let mut closed = 0;
        let loads = self.records[..self.k].iter().zip(&self.replicas[..self.k]);
        for (term, (&records, &replicas)) in self.terms.iter_mut().zip(loads) {
            let open = (most_records - records) * per_record + (most_replicas - replicas) * per_replica;
            closed += usize::from(records >= self.limit);
            *term = if records < self.limit { open } else { f64::NEG_INFINITY };
        }
        self.closed = closed;
        if let Some(tree) = &mut self.tree {
            tree.rebuild(&self.terms);
        }
    }
}

/// The index of the largest item. Ties go to the lowest.
fn largest(items: &[f64]) -> u32 {
    (1..items.len()).fold(0, |best, index| if items[index] > items[best] { index } else { best }) as u32
}
