//! The point nearest to 0 in the convex hull of points p_1, …, p_m, of which only the products M_jk = p_j · p_k are
//! known:
//!
//!     min xᵀ M x = |Σ_j x_j p_j|²    over x_j ≥ 0, Σ_j x_j = 1
//!
//! Wolfe's algorithm (1976) starts from the point p_j that is nearest to 0, or the last one of several that are equally
//! near. A point p_j enters the face where p_j · x < x · x, because only then is any point of the hull nearer. The next
//! x is the nearest point of the affine hull of the face. Where that lies outside of the hull, the path to it stops at
//! a smaller face, and the search goes on from there. |x|² falls each time, so no face comes twice.

/// A gain below this, relative to the lengths of both points, may be mere rounding.
const LEAST_GAIN: f64 = 1.0 / (1u64 << 40) as f64;
/// A difference of points counts as linearly dependent on the others if its relative remainder is at most this.
const DEPENDENT: f64 = 1e-15;

/// Returns the shares x of the points. `gram` is M, symmetric and positive semidefinite.
pub fn nearest(gram: &[Vec<f64>]) -> Vec<f64> {
    let length: Vec<f64> = gram.iter().enumerate().map(|(j, row)| row[j].max(0.0).sqrt()).collect();
    let least = length.iter().copied().fold(f64::INFINITY, f64::min);
    let start = length.iter().rposition(|&length| length <= least * (1.0 + LEAST_GAIN)).unwrap_or(0);
    let mut face = Face { points: vec![start], shares: vec![1.0] };
    let mut barred = vec![false; gram.len()];
    loop {
        let products: Vec<f64> = gram.iter().map(|row| face.mean(row)).collect();
        let (square, size) = (face.mean(&products), face.mean(&length));
        let gain = |j: usize| square - products[j];
        let gains = |j: &usize| gain(*j) > LEAST_GAIN * size * length[*j].max(size);
        let outside = (0..gram.len()).filter(|j| !barred[*j] && !face.points.contains(j));
        let Some(best) = outside.filter(gains).max_by(|&j, &k| gain(j).total_cmp(&gain(k))) else {
            return face.spread(gram.len());
        };
        match face.with(best, gram).filter(|nearer| nearer.square(gram) < square) {
            Some(nearer) => face = nearer,
            None => barred[best] = true,
        }
    }
}

/// Some of the points, with their shares in x.
#[derive(Clone, Debug)]
struct Face {
    points: Vec<usize>,
    shares: Vec<f64>,
}

impl Face {
    /// Returns Σ_k x_k y_k.
    fn mean(&self, y: &[f64]) -> f64 {
        self.points.iter().zip(&self.shares).map(|(&k, share)| share * y[k]).sum()
    }

    /// Returns |x|².
    fn square(&self, gram: &[Vec<f64>]) -> f64 {
        self.points.iter().zip(&self.shares).map(|(&k, share)| share * self.mean(&gram[k])).sum()
    }

    /// Returns the shares of all points, which are 0 outside of the face.
    fn spread(&self, points: usize) -> Vec<f64> {
        let mut all = vec![0.0; points];
        self.points.iter().zip(&self.shares).for_each(|(&k, &share)| all[k] = share);
        all
    }

    /// Returns the nearest point of the hull of this face and one more point, or None where the points are dependent.
    fn with(&self, point: usize, gram: &[Vec<f64>]) -> Option<Self> {
        let mut face = self.clone();
        face.points.push(point);
        face.shares.push(0.0);
        loop {
            let target = face.affine_nearest(gram)?;
            let outside = (0..target.len()).filter(|&k| target[k] <= 0.0);
            let way = |k: usize| if face.shares[k] > 0.0 { face.shares[k] / (face.shares[k] - target[k]) } else { 0.0 };
            let Some(leaves) = outside.min_by(|&j, &k| way(j).total_cmp(&way(k))) else {
                face.shares = target;
                return Some(face);
            };
            let way = way(leaves);
            for (share, target) in face.shares.iter_mut().zip(target) {
                *share = (*share + way * (target - *share)).max(0.0);
            }
            face.points.remove(leaves);
            face.shares.remove(leaves);
        }
    }

    /// Returns the shares, of any sign, of the nearest point of the affine hull, or None where the points are
    /// dependent. With the shortest point p and the others k, l, it solves Σ_l (p_k − p)·(p_l − p) y_l = (p − p_k)·p,
    /// and p itself has the share 1 − Σ_l y_l.
    fn affine_nearest(&self, gram: &[Vec<f64>]) -> Option<Vec<f64>> {
        let shortest = (0..self.points.len()).min_by(|&j, &k| {
            let square = |j: usize| gram[self.points[j]][self.points[j]];
            square(j).total_cmp(&square(k))
        })?;
        let mut others = self.points.clone();
        let p = others.remove(shortest);
        let differences = |k: usize, l: usize| (gram[k][l] - gram[k][p]) - (gram[p][l] - gram[p][p]);
        let size: Vec<f64> = others.iter().map(|&k| differences(k, k).max(0.0).sqrt()).collect();
        if size.contains(&0.0) {
            return None;
        }
        let scaled = |i: usize, j: usize| differences(others[i], others[j]) / (size[i] * size[j]);
        let right = others.iter().zip(&size).map(|(&k, size)| (gram[p][p] - gram[k][p]) / size).collect();
        let mut shares: Vec<f64> = solve(scaled, right)?.iter().zip(&size).map(|(y, size)| y / size).collect();
        shares.insert(shortest, 1.0 - shares.iter().sum::<f64>());
        Some(shares)
    }
}

/// Solves Ay = right by the Cholesky factors of A, whose diagonal is 1. Returns None where A is singular.
fn solve(a: impl Fn(usize, usize) -> f64, right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    let (mut factor, mut y) = (vec![vec![0.0; n]; n], right);
    for i in 0..n {
        for j in 0..=i {
            let rest = a(i, j) - (0..j).map(|k| factor[i][k] * factor[j][k]).sum::<f64>();
            if i == j && rest <= DEPENDENT {
                return None;
            }
            factor[i][j] = if i == j { rest.sqrt() } else { rest / factor[j][j] };
        }
        y[i] = (y[i] - (0..i).map(|k| factor[i][k] * y[k]).sum::<f64>()) / factor[i][i];
    }
    for i in (0..n).rev() {
        y[i] = (y[i] - (i + 1..n).map(|k| factor[k][i] * y[k]).sum::<f64>()) / factor[i][i];
    }
    Some(y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn products(points: &[Vec<i32>]) -> Vec<Vec<i128>> {
        let dot = |p: &Vec<i32>, q: &Vec<i32>| p.iter().zip(q).map(|(a, b)| i128::from(a * b)).sum();
        points.iter().map(|p| points.iter().map(|q| dot(p, q)).collect()).collect()
    }

    fn determinant(rows: &[Vec<i128>]) -> i128 {
        let Some((first, rest)) = rows.split_first() else { return 1 };
        let minor =
            |j: usize| -> Vec<Vec<i128>> { rest.iter().map(|row| [&row[..j], &row[j + 1..]].concat()).collect() };
        let sign = |j: usize| 1 - 2 * (j as i128 % 2);
        (0..first.len()).filter(|&j| first[j] != 0).map(|j| sign(j) * first[j] * determinant(&minor(j))).sum()
    }

    /// Finds the least |x|² over all supports, each by Cramer's rule in integers: the multiplier of Σx = 1 is −|x|².
    fn by_enumeration(gram: &[Vec<i128>]) -> f64 {
        let squares = (1..1usize << gram.len()).filter_map(|support| {
            let points: Vec<usize> = (0..gram.len()).filter(|j| support >> j & 1 == 1).collect();
            let mut system: Vec<Vec<i128>> =
                points.iter().map(|&j| points.iter().map(|&k| gram[j][k]).chain([1]).collect()).collect();
            system.push(points.iter().map(|_| 1).chain([0]).collect());
            let whole = determinant(&system);
            let unknowns: Vec<i128> = (0..=points.len())
                .map(|column| {
                    let mut replaced = system.clone();
                    for (i, row) in replaced.iter_mut().enumerate() {
                        row[column] = i128::from(i == points.len());
                    }
                    determinant(&replaced)
                })
                .collect();
            let inside = whole != 0 && unknowns[..points.len()].iter().all(|y| y * whole.signum() >= 0);
            inside.then(|| -unknowns[points.len()] as f64 / whole as f64)
        });
        squares.fold(f64::INFINITY, f64::min)
    }

    fn square(gram: &[Vec<f64>], x: &[f64]) -> f64 {
        (0..x.len()).flat_map(|j| (0..x.len()).map(move |k| (j, k))).map(|(j, k)| x[j] * x[k] * gram[j][k]).sum()
    }

    fn floats(gram: &[Vec<i128>], scale: impl Fn(usize) -> f64) -> Vec<Vec<f64>> {
        let entry = |j: usize, k: usize| gram[j][k] as f64 * scale(j) * scale(k);
        (0..gram.len()).map(|j| (0..gram.len()).map(|k| entry(j, k)).collect()).collect()
    }

    proptest! {
        #[test]
        fn as_near_as_any_support(
            points in prop::collection::vec(prop::collection::vec(-4..5i32, 3), 1..6)
        ) {
            let exact = products(&points);
            let gram = floats(&exact, |_| 1.0);
            let x = nearest(&gram);
            prop_assert!(x.iter().all(|&share| share >= 0.0));
            prop_assert!((x.iter().sum::<f64>() - 1.0).abs() < 1e-14);
            prop_assert!((square(&gram, &x) - by_enumeration(&exact)).abs() < 1e-12);
        }

        /// Shows that x itself proves its optimality: no point of the hull is nearer than p_j · x / |x| for the best j.
        #[test]
        fn many_points_of_all_lengths_leave_nothing_nearer(
            points in prop::collection::vec(prop::collection::vec(-4..5i32, 12), 32), decades in 0..4i32
        ) {
            let gram = floats(&products(&points), |j| 10f64.powi(decades * (j as i32 % 5)));
            let x = nearest(&gram);
            let (near, length) = (square(&gram, &x), |j: usize| gram[j][j].sqrt());
            let size: f64 = x.iter().enumerate().map(|(j, share)| share * length(j)).sum();
            for (j, row) in gram.iter().enumerate() {
                let product: f64 = row.iter().zip(&x).map(|(m, share)| m * share).sum();
                prop_assert!(product >= near - 1e-11 * size * length(j).max(size));
            }
        }
    }

    #[test]
    fn among_equals_it_takes_the_last() {
        assert_eq!(nearest(&vec![vec![2.5; 3]; 3]), [0.0, 0.0, 1.0]);
        assert_eq!(nearest(&vec![vec![0.0; 3]; 3]), [0.0, 0.0, 1.0]);
    }

    #[test]
    fn a_point_at_zero_takes_all() {
        let gram = [vec![0.0, 0.0], vec![0.0, 3.0]];
        assert_eq!(nearest(&gram), [1.0, 0.0]);
    }

    #[test]
    fn opposite_points_cancel() {
        let gram = [vec![1.0, -3.0], vec![-3.0, 9.0]];
        assert_eq!(nearest(&gram), [0.75, 0.25]);
    }
}
