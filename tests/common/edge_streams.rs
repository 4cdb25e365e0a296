//! What streams records, scored by hand: every rule over all parts, with sets.

use std::collections::HashSet;

use fastpart::internals::edges::Record;

/// What presence in a part is worth, and what loads are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    Hdrf(f64),
    Greedy,
    Sigma(f64),
}

/// The state of the oracle.
pub struct Oracle {
    pub loads: Vec<u64>,
    pub parts: Vec<Option<u32>>,
    holds: Vec<HashSet<usize>>,
    degrees: Vec<u64>,
    rule: Rule,
}

impl Oracle {
    pub fn new(n: u64, records: &[Record], k: u32, rule: Rule) -> Self {
        let mut degrees = vec![0; n as usize];
        for &[u, v] in records.iter().filter(|[u, v]| u != v) {
            degrees[u as usize] += 1;
            degrees[v as usize] += 1;
        }
        Self {
            loads: vec![0; k as usize],
            parts: vec![None; records.len()],
            holds: vec![HashSet::new(); k as usize],
            degrees,
            rule,
        }
    }

    pub fn put(&mut self, index: usize, [u, v]: Record, part: usize) {
        self.parts[index] = Some(part as u32);
        self.loads[part] += 1;
        self.holds[part].extend([u as usize, v as usize]);
    }

    /// The part of the largest score among those below `limit`; else the one with the fewest records.
    pub fn best(&mut self, [u, v]: Record, limit: u64) -> usize {
        let [du, dv] = [u, v].map(|end| self.degrees[end as usize]);
        let (gain_u, gain_v) = match self.rule {
            Rule::Greedy if du >= dv => (2.0, 1.0),
            Rule::Greedy => (1.0, 2.0),
            _ => (2.0 - du as f64 / (du + dv) as f64, 2.0 - dv as f64 / (du + dv) as f64),
        };
        if self.rule == Rule::Greedy {
            self.degrees[u as usize] -= 1;
            self.degrees[v as usize] -= 1;
        }
        let terms = self.terms();
        let mut best: Option<(f64, usize)> = None;
        for part in (0..self.loads.len()).filter(|&part| self.loads[part] < limit) {
            let gain =
                |end: u32, gain: f64| if self.holds[part].contains(&(end as usize)) { gain } else { 0.0 };
            let score = gain(u, gain_u) + gain(v, gain_v) + terms[part];
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, part));
            }
        }
        let least = || (0..self.loads.len()).min_by_key(|&part| self.loads[part]);
        best.map(|(_, part)| part).or_else(least).unwrap()
    }

    /// What loads add to the score of each part.
    fn terms(&self) -> Vec<f64> {
        let records: Vec<f64> = self.loads.iter().map(|&load| load as f64).collect();
        let replicas: Vec<f64> = self.holds.iter().map(|held| held.len() as f64).collect();
        let most = |loads: &[f64]| loads.iter().copied().fold(0.0, f64::max);
        let (most_records, most_replicas) = (most(&records), most(&replicas));
        let least = records.iter().copied().fold(f64::INFINITY, f64::min);
        let relative = |load: f64, most: f64, lambda: f64| match most {
            0.0 => 0.0,
            most => (most - load) * (lambda / 2.0 / most),
        };
        let term = |(&records, &replicas): (&f64, &f64)| match self.rule {
            Rule::Hdrf(lambda) => (most_records - records) * (lambda / (1.0 + most_records - least)),
            Rule::Greedy => (most_records - records) * (1.0 / (1.0 + most_records - least)),
            Rule::Sigma(lambda) => {
                relative(records, most_records, lambda) + relative(replicas, most_replicas, lambda)
            }
        };
        records.iter().zip(&replicas).map(term).collect()
    }

    /// Loops, after all other records.
    pub fn loops(&mut self, records: &[Record], cap: u64) {
        for (index, &[u, v]) in records.iter().enumerate().filter(|(_, [u, v])| u == v) {
            let all = 0..self.loads.len();
            let held = all.clone().filter(|&p| self.holds[p].contains(&(u as usize)) && self.loads[p] < cap);
            let part = held.min_by_key(|&p| self.loads[p]).or_else(|| all.min_by_key(|&p| self.loads[p]));
            self.put(index, [u, v], part.unwrap());
        }
    }

    pub fn finish(self) -> Vec<u32> {
        self.parts.into_iter().map(|part| part.unwrap()).collect()
    }
}
