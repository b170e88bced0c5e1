//! Estimators by their definitions in plain f64: recursions from the end, and sums over a rectangle of episodes ×
//! steps.

use offpolicy_core::estimators::Estimator::{self, *};

use super::{BASELINE, Log, P, PI_0, PI_1, Q, R, R_HAT, Row, V};

/// A value, its standard error, and the size that both would have if nothing in them cancelled, by which rounding is
/// measured.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub value: f64,
    pub error: f64,
    pub scale: f64,
}

/// Returns ρ_t.
fn rho(row: &Row) -> f64 {
    row[PI_1] / row[PI_0]
}

/// Returns ρ_{1:t} for t = 0, 1, …, H. It stays constant after the end of the episode.
fn cumulative(rows: &[Row], horizon: usize) -> Vec<f64> {
    let mut c = vec![1.0];
    (0..horizon).for_each(|t| c.push(c[t] * rows.get(t).map_or(1.0, rho)));
    c
}

/// Computes a trajectory's value by the recursion that defines it.
pub fn backward(rows: &[Row], estimator: Estimator, gamma: f64, horizon: usize) -> f64 {
    let (mut next, mut v_next) = (0.0, 0.0);
    for (t, row) in rows.iter().enumerate().rev() {
        let b = BASELINE * (0..horizon - t).map(|k| gamma.powi(k as i32)).sum::<f64>();
        next = match estimator {
            Mc => row[R] + gamma * next,
            StepIs => rho(row) * (row[R] + gamma * next),
            Dr => row[V] + rho(row) * (row[R] + gamma * next - row[Q]),
            DrBsl => b + rho(row) * (row[R] + gamma * next - b),
            DrV2 => row[V] + rho(row) * (row[R] + gamma * next - row[R_HAT] - gamma * v_next * row[P]),
            _ => unreachable!("no recursion"),
        };
        v_next = row[V];
    }
    next
}

/// Bounds the sum of the magnitudes of a trajectory's terms.
fn terms(rows: &[Row], gamma: f64, horizon: usize) -> f64 {
    let c = cumulative(rows, horizon);
    let term = |(t, row): (usize, &Row)| {
        let model = row[Q].abs() + row[R_HAT].abs() + row[V].abs() * (1.0 + row[P]) + BASELINE * horizon as f64;
        // `mc` has weight 1, and P̂/P is that of the transition into the next step.
        let weight = 1.0 + c[t] + c[t + 1] + rows.get(t.wrapping_sub(1)).map_or(0.0, |before| before[P] * c[t]);
        gamma.powi(t as i32) * weight * (row[R].abs() + model)
    };
    rows.iter().enumerate().map(term).sum()
}

/// Computes an estimator that is a mean over trajectories.
pub fn average(log: &Log, estimator: Estimator, gamma: f64) -> Expected {
    let (n, horizon) = (log.episodes.len() as f64, log.horizon());
    let values: Vec<f64> = log.episodes.iter().map(|rows| backward(rows, estimator, gamma, horizon)).collect();
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let scale = log.episodes.iter().map(|rows| terms(rows, gamma, horizon)).sum();
    Expected { value: mean, error: (variance / n).sqrt(), scale }
}

/// Computes a weighted estimator: θ = Σ_k w_k Σ_i y_ki c_ki / Σ_i c_ki, ψ_i = Σ_k w_k c_ki (y_ki − mean_k) / D_k.
pub fn weighted(log: &Log, estimator: Estimator, gamma: f64) -> Expected {
    let (n, horizon) = (log.episodes.len(), log.horizon());
    let c: Vec<Vec<f64>> = log.episodes.iter().map(|rows| cumulative(rows, horizon)).collect();
    // Each ratio has its factor w_k, and c and y of each trajectory.
    let mut ratios: Vec<(f64, Vec<(f64, f64)>)> = vec![];
    let at = |i: usize, t: usize, slot: usize| log.episodes[i].get(t).map_or(0.0, |row| row[slot]);
    let mut ratio = |factor: f64, weight: usize, y: &dyn Fn(usize) -> f64| {
        ratios.push((factor, (0..n).map(|i| (c[i][weight], y(i))).collect()));
    };
    if estimator == Wis {
        ratio(1.0, horizon, &|i| backward(&log.episodes[i], Mc, gamma, horizon));
    }
    for t in 0..horizon {
        let power = gamma.powi(t as i32);
        match estimator {
            StepWis => ratio(power, t + 1, &|i| at(i, t, R)),
            Wdr => {
                ratio(power, t + 1, &|i| at(i, t, R) - at(i, t, Q));
                ratio(power, t, &|i| at(i, t, V));
            }
            _ => {}
        }
    }
    let (mut value, mut psi, mut scale) = (0.0, vec![0.0; n], 0.0);
    for (factor, pairs) in &ratios {
        let total: f64 = pairs.iter().map(|(c, _)| c).sum();
        let mean = pairs.iter().map(|(c, y)| c * y).sum::<f64>() / total;
        value += factor * mean;
        psi.iter_mut().zip(pairs).for_each(|(psi, (c, y))| *psi += factor * c * n as f64 / total * (y - mean));
    }
    for rows in &log.episodes {
        scale += n as f64 * rows.iter().map(|row| row[R].abs() + row[Q].abs() + row[V].abs()).sum::<f64>();
    }
    let squares: f64 = psi.iter().map(|psi| psi * psi).sum();
    Expected { value, error: (squares / (n as f64 * (n as f64 - 1.0))).sqrt(), scale }
}

/// Computes any estimator that has weights.
pub fn by_definition(log: &Log, estimator: Estimator, gamma: f64) -> Expected {
    if matches!(estimator, Wis | StepWis | Wdr) {
        weighted(log, estimator, gamma)
    } else {
        average(log, estimator, gamma)
    }
}
