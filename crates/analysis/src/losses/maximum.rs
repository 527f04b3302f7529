//! The maximum of a function of four variables, and how far one may go from it.
//!
//! Newton's method with derivatives from differences, damped as Levenberg and Marquardt do it, so
//! that no step goes down. A variable can be held: what is then found is the profile of the
//! function over it.

/// The number of variables.
pub const VARIABLES: usize = 4;

/// Values of the variables.
pub type Point = [f64; VARIABLES];

type Matrix = [[f64; VARIABLES]; VARIABLES];

/// Variables stay within this far from 0: as logarithms of odds, from 1e-9 to 1 - 1e-9.
pub const BOUND: f64 = 20.7;
/// For differences: large enough for the second, which lose half of the digits.
const STEP: f64 = 2e-3;
/// A gain below this ends the search: intervals ask for two digits of a difference of 1.92.
const ENOUGH: f64 = 1e-5;
const ROUNDS: usize = 200;
/// No step of Newton's goes further in a variable.
const LONGEST: f64 = 2.0;

/// A point, and the function there.
#[derive(Debug, Clone, Copy)]
pub struct Maximum {
    /// The point.
    pub at: Point,
    /// The function there.
    pub value: f64,
}

/// Climbs from `start` over the variables that are `free`.
pub fn climb(function: &impl Fn(&Point) -> f64, start: Point, free: &[usize]) -> Maximum {
    let start = start.map(|it| it.clamp(-BOUND, BOUND));
    let mut top = Maximum {
        at: start,
        value: function(&start),
    };
    let mut damping = 1e-3;
    for _ in 0..ROUNDS {
        let (slope, curvature) = derivatives(function, &top, free);
        let before = top.value;
        while damping < 1e12 {
            let next = step(&top.at, &slope, &curvature, free, damping);
            let next = next.map(|at| Maximum {
                at,
                value: function(&at),
            });
            match next {
                Some(next) if next.value > top.value => {
                    top = next;
                    damping = (damping * 0.2_f64).max(1e-9);
                    break;
                }
                _ => damping = damping.max(1e-6) * 10.0,
            }
        }
        if top.value - before < ENOUGH {
            break;
        }
    }
    top
}

/// The range in which the function stays within `drop` of its top: the lowest and the highest value
/// of one variable, with the best values of the others. An end that is a bound is None. A point
/// that is higher than `top` ends the search: it is the better top.
pub fn profile(
    function: &impl Fn(&Point) -> f64,
    top: &Maximum,
    variable: usize,
    drop: f64,
) -> Result<[Option<f64>; 2], Maximum> {
    let others: Vec<usize> = (0..VARIABLES).filter(|it| *it != variable).collect();
    let mut ends = [None; 2];
    for (end, sign) in ends.iter_mut().zip([-1.0, 1.0]) {
        let mut inside = (top.at[variable], 0.0);
        let mut best = top.at;
        let mut reach = 0.25;
        // Out by growing steps, until it is too far.
        let outside = loop {
            let far = (inside.0 + sign * reach).clamp(-BOUND, BOUND);
            best[variable] = far;
            let found = climb(function, best, &others);
            if found.value > top.value + 0.01 {
                return Err(found);
            }
            let lost = top.value - found.value;
            if lost >= drop {
                break Some((far, lost));
            }
            if far.abs() >= BOUND {
                break None;
            }
            best = found.at;
            inside = (far, lost);
            reach *= 1.7;
        };
        let Some(mut outside) = outside else { continue };
        // Back between the two.
        for _ in 0..12 {
            if outside.1 - drop < 0.02 || drop - inside.1 < 0.02 {
                break;
            }
            let middle = between(inside, outside, drop);
            best[variable] = middle;
            let found = climb(function, best, &others);
            let lost = top.value - found.value;
            if lost >= drop {
                outside = (middle, lost);
            } else {
                inside = (middle, lost);
                best = found.at;
            }
        }
        *end = Some(between(inside, outside, drop));
    }
    Ok(ends)
}

/// Where the loss is `drop`, between a point where it is less and one where it is more: the root of
/// what a parabola loses is a line.
fn between(inside: (f64, f64), outside: (f64, f64), drop: f64) -> f64 {
    let roots = [inside.1, drop, outside.1].map(|it| it.max(0.0).sqrt());
    let share = (roots[1] - roots[0]) / (roots[2] - roots[0]);
    inside.0 + share.clamp(0.01, 0.99) * (outside.0 - inside.0)
}

/// The first and the second derivatives by the free variables.
fn derivatives(
    function: &impl Fn(&Point) -> f64,
    top: &Maximum,
    free: &[usize],
) -> (Point, Matrix) {
    let moved = |moves: &[(usize, f64)]| {
        let mut at = top.at;
        for (variable, by) in moves {
            at[*variable] += by;
        }
        function(&at)
    };
    let mut slope = [0.0; VARIABLES];
    let mut curvature = [[0.0; VARIABLES]; VARIABLES];
    for (position, one) in free.iter().enumerate() {
        let (up, down) = (moved(&[(*one, STEP)]), moved(&[(*one, -STEP)]));
        slope[*one] = (up - down) / (2.0 * STEP);
        curvature[*one][*one] = (up - 2.0 * top.value + down) / (STEP * STEP);
        for other in &free[..position] {
            let corner = |a: f64, b: f64| moved(&[(*one, a * STEP), (*other, b * STEP)]);
            let mixed =
                corner(1.0, 1.0) - corner(1.0, -1.0) - corner(-1.0, 1.0) + corner(-1.0, -1.0);
            curvature[*one][*other] = mixed / (4.0 * STEP * STEP);
            curvature[*other][*one] = curvature[*one][*other];
        }
    }
    (slope, curvature)
}

/// A step of Newton's, damped. None if even so the curvature leads nowhere.
fn step(
    at: &Point,
    slope: &Point,
    curvature: &Matrix,
    free: &[usize],
    damping: f64,
) -> Option<Point> {
    let size = free.len();
    let mut left = [[0.0; VARIABLES + 1]; VARIABLES];
    for (row, one) in free.iter().enumerate() {
        for (column, other) in free.iter().enumerate() {
            left[row][column] = -curvature[*one][*other];
        }
        left[row][row] += damping * curvature[*one][*one].abs().max(1.0);
        left[row][size] = slope[*one];
    }
    // Elimination without pivots: where one is not above 0, the matrix is not positive definite.
    for row in 0..size {
        if left[row][row].is_nan() || left[row][row] <= 0.0 {
            return None;
        }
        for below in row + 1..size {
            let factor = left[below][row] / left[row][row];
            let pivots = left[row];
            for (value, pivot) in left[below].iter_mut().zip(pivots).skip(row) {
                *value -= factor * pivot;
            }
        }
    }
    let mut next = *at;
    let mut moves = [0.0; VARIABLES];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|it| left[row][it] * moves[it]).sum();
        moves[row] = (left[row][size] - known) / left[row][row];
    }
    let longest = moves.iter().fold(0.0_f64, |most, it| most.max(it.abs()));
    let shorter = if longest > LONGEST {
        LONGEST / longest
    } else {
        1.0
    };
    for (one, by) in free.iter().zip(moves) {
        next[*one] = (next[*one] + by * shorter).clamp(-BOUND, BOUND);
    }
    next.iter().all(|it| it.is_finite()).then_some(next)
}
