//! The linear equations that repair symbols are, in the symbols that are missing.

use std::collections::BTreeMap;

use crate::gf256;

/// The most equations that are kept; the oldest goes. Each has fewer unknowns than that: more than
/// so many losses in a window are not repaired, and a hostile sender could keep a processor busy.
const MOST_EQUATIONS: usize = 256;

/// An equation: the sum of coefficients times missing symbols is `sum`. Its first coefficient is 1.
#[derive(Debug, Clone)]
struct Equation {
    /// By ESI; none is 0.
    coefficients: BTreeMap<u64, u8>,
    sum: Vec<u8>,
}

/// Equations of which no two have the same first unknown, and none has that of another: what
/// Gauss-Jordan elimination leaves.
#[derive(Debug, Default)]
pub struct Equations {
    /// By age.
    kept: Vec<Equation>,
}

impl Equations {
    /// Adds an equation, and returns the symbols that are known with it.
    pub fn add(&mut self, coefficients: BTreeMap<u64, u8>, sum: Vec<u8>) -> Vec<(u64, Vec<u8>)> {
        if coefficients.len() > MOST_EQUATIONS {
            return Vec::new();
        }
        let mut new = Equation { coefficients, sum };
        for known in &self.kept {
            new.eliminate(known);
        }
        let Some((_, factor)) = new.coefficients.first_key_value() else {
            return Vec::new(); // it says nothing new
        };
        new.divide(*factor);
        for known in &mut self.kept {
            known.eliminate(&new);
        }
        self.kept.push(new);
        if self.kept.len() > MOST_EQUATIONS {
            self.kept.remove(0);
        }
        self.solved()
    }

    /// A symbol has come after all; returns the symbols that are known with it.
    pub fn know(&mut self, esi: u64, symbol: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut stale = Vec::new();
        self.kept.retain_mut(|equation| {
            let Some(factor) = equation.coefficients.remove(&esi) else {
                return true;
            };
            gf256::add_scaled(&mut equation.sum, symbol, factor);
            // Its first unknown may be another's now: it is added anew.
            stale.push((
                std::mem::take(&mut equation.coefficients),
                std::mem::take(&mut equation.sum),
            ));
            false
        });
        let again = stale
            .into_iter()
            .map(|(coefficients, sum)| self.add(coefficients, sum));
        let mut found: Vec<_> = again.flatten().collect();
        found.extend(self.solved());
        found
    }

    /// Drops the equations with symbols before `esi`, which nobody waits for any more.
    pub fn forget(&mut self, esi: u64) {
        let is_new = |it: &Equation| {
            it.coefficients
                .first_key_value()
                .is_some_and(|(first, _)| *first >= esi)
        };
        self.kept.retain(is_new);
    }

    /// Takes out the equations with a single unknown.
    fn solved(&mut self) -> Vec<(u64, Vec<u8>)> {
        let mut solved = Vec::new();
        self.kept.retain_mut(|equation| {
            if equation.coefficients.len() > 1 {
                return true;
            }
            let (esi, _) = equation
                .coefficients
                .pop_first()
                .expect("it has an unknown");
            solved.push((esi, std::mem::take(&mut equation.sum)));
            false
        });
        solved
    }
}

impl Equation {
    /// Takes the first unknown of `other` out of this one.
    fn eliminate(&mut self, other: &Self) {
        let (first, _) = other
            .coefficients
            .first_key_value()
            .expect("it has an unknown");
        let Some(factor) = self.coefficients.get(first).copied() else {
            return;
        };
        for (esi, coefficient) in &other.coefficients {
            let sum = self.coefficients.entry(*esi).or_default();
            *sum ^= gf256::mul(*coefficient, factor);
            if *sum == 0 {
                self.coefficients.remove(esi);
            }
        }
        gf256::add_scaled(&mut self.sum, &other.sum, factor);
    }

    fn divide(&mut self, factor: u8) {
        let factor = gf256::inverse(factor);
        for coefficient in self.coefficients.values_mut() {
            *coefficient = gf256::mul(*coefficient, factor);
        }
        gf256::scale(&mut self.sum, factor);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::coefficients::{Combination, FULL};

    fn equation(symbols: &[Vec<u8>], key: u16, lost: &[bool]) -> (BTreeMap<u64, u8>, Vec<u8>) {
        let count = u16::try_from(symbols.len()).unwrap();
        let density = FULL;
        let combination = Combination::Sliding {
            key,
            density,
            count,
        };
        let factors = combination.factors().map(|(_, factor)| factor);
        let (mut unknown, mut sum) = (BTreeMap::new(), Vec::new());
        for ((esi, symbol), factor) in (0..).zip(symbols).zip(factors) {
            if lost[usize::try_from(esi).unwrap()] {
                unknown.insert(esi, factor);
            }
            let known = vec![0; symbol.len()];
            let missing = if lost[usize::try_from(esi).unwrap()] {
                symbol
            } else {
                &known
            };
            gf256::add_scaled(&mut sum, missing, factor);
        }
        (unknown, sum)
    }

    proptest! {
        #[test]
        fn as_many_repairs_as_losses_bring_all_back_whatever_comes_first(
            symbols in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 1..24),
            lost in prop::collection::vec(any::<bool>(), 24),
            late in prop::collection::vec(any::<bool>(), 24),
        ) {
            let mut equations = Equations::default();
            let mut found: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
            let count = lost.iter().take(symbols.len()).filter(|it| **it).count();
            // Random matrices over 256 elements are singular in less than 1 of 200 cases: two more
            // than the losses are enough for the few hundred that are tried.
            for key in 0..u16::try_from(count + 2).unwrap() {
                let (unknown, sum) = equation(&symbols, key, &lost);
                let mut left = unknown.clone();
                let mut sum = sum;
                for (esi, symbol) in &found {
                    if let Some(factor) = left.remove(esi) {
                        gf256::add_scaled(&mut sum, symbol, factor);
                    }
                }
                found.extend(equations.add(left, sum));
                // Some come late by themselves.
                let at = usize::from(key) % symbols.len();
                if lost[at] && late[at] && !found.contains_key(&(at as u64)) {
                    found.extend(equations.know(at as u64, &symbols[at]));
                    found.insert(at as u64, symbols[at].clone());
                }
            }
            for (esi, symbol) in (0..).zip(&symbols) {
                if lost[usize::try_from(esi).unwrap()] {
                    let one = &found[&esi];
                    prop_assert_eq!(&one[..symbol.len()], &symbol[..]);
                }
            }
            prop_assert!(equations.kept.is_empty());
        }
    }
}
