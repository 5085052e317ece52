//! The matrix product behind convolutions and linear layers.
//!
//! c = a · b with a `[rows, k]` read where it lies, and b given as panels: `k` lines of a fixed number of columns, packed so that a
//! panel stays in the second-level cache while all rows of `a` pass by. A tile of c lives in registers for the whole of k.

use super::simd::{Kind, Simd, dispatch};

/// Lines of a panel that are gone through at a time: with 64 columns one megabyte, half of a common second-level cache.
pub const DEPTH: usize = 4096;

/// The columns of a panel: as many as a tile's registers hold.
pub fn panel_width(kind: Kind) -> usize {
    match kind {
        Kind::Avx512 => 64,
        Kind::Avx2 | Kind::Portable => 16,
    }
}

/// A product of some rows with one panel.
///
/// Pointers, not slices: several threads write different columns of the same rows.
#[derive(Clone, Copy)]
pub struct Product {
    /// `rows` lines of `k` values, `a_stride` apart.
    pub a: *const f32,
    pub a_stride: usize,
    /// `k` lines of `columns` values, and as many more as fill whole vectors; `b_stride` apart.
    pub b: *const f32,
    pub b_stride: usize,
    /// `rows` lines of `columns` values, `c_stride` apart.
    pub c: *mut f32,
    pub c_stride: usize,
    pub rows: usize,
    pub k: usize,
    pub columns: usize,
    pub start: Start,
}

/// What the sums start from.
#[derive(Clone, Copy)]
pub enum Start {
    Zero,
    /// What `c` holds.
    Sum,
    /// One value for each row.
    Rows(*const f32),
    /// One value for each column, and as many more as fill whole vectors.
    Columns(*const f32),
}

dispatch! {
    /// Computes a [`Product`].
    ///
    /// # Safety
    /// All lines must be valid for as many values as said, those of `b` and of [`Start::Columns`] for whole vectors; `c` must
    /// overlap nothing else; and the processor must have `kind`.
    pub unsafe fn multiply(product: Product) = multiply_on
}

#[inline(always)]
unsafe fn multiply_on<S: Simd>(p: Product) {
    // A tile holds 24 vectors with AVX-512, which has 32 registers, and 12 with AVX2, which has 16; narrow panels take more rows.
    // SAFETY: the tiles stay within the lines that the caller vouches for.
    unsafe {
        match (S::LANES, p.columns.div_ceil(S::LANES)) {
            (16, 1) => by_rows::<S, 12, 1>(p),
            (16, 2) => by_rows::<S, 12, 2>(p),
            (16, 3) => by_rows::<S, 8, 3>(p),
            (16, _) => by_rows::<S, 6, 4>(p),
            (_, 1) => by_rows::<S, 12, 1>(p),
            _ => by_rows::<S, 6, 2>(p),
        }
    }
}

/// All rows in tiles of R, V vectors wide.
#[inline(always)]
unsafe fn by_rows<S: Simd, const R: usize, const V: usize>(p: Product) {
    let mut row = 0;
    // SAFETY: as `multiply`.
    unsafe {
        while row + R <= p.rows {
            tile::<S, R, V>(&p, row);
            row += R;
        }
        while row + 4 <= p.rows {
            tile::<S, 4, V>(&p, row);
            row += 4;
        }
        while row < p.rows {
            tile::<S, 1, V>(&p, row);
            row += 1;
        }
    }
}

/// R rows from `row` on, V vectors wide.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize, const V: usize>(p: &Product, row: usize) {
    let lanes = S::LANES;
    // SAFETY: as `multiply`; partial columns go through a buffer as wide as a panel.
    unsafe {
        let c = p.c.add(row * p.c_stride);
        let whole = p.columns == V * lanes;
        let mut sums = [[S::splat(0.0); V]; R];
        match p.start {
            Start::Zero => {}
            Start::Rows(values) => {
                for (r, sums) in sums.iter_mut().enumerate() {
                    *sums = [S::splat(*values.add(row + r)); V];
                }
            }
            Start::Columns(values) => {
                for sums in &mut sums {
                    for (v, sum) in sums.iter_mut().enumerate() {
                        *sum = S::load(values.add(v * lanes));
                    }
                }
            }
            Start::Sum => {
                for (r, sums) in sums.iter_mut().enumerate() {
                    let line = c.add(r * p.c_stride);
                    if whole {
                        for (v, sum) in sums.iter_mut().enumerate() {
                            *sum = S::load(line.add(v * lanes));
                        }
                    } else {
                        let mut buffer = [0.0f32; 64];
                        std::ptr::copy_nonoverlapping(line, buffer.as_mut_ptr(), p.columns);
                        for (v, sum) in sums.iter_mut().enumerate() {
                            *sum = S::load(buffer.as_ptr().add(v * lanes));
                        }
                    }
                }
            }
        }
        let mut b = p.b;
        let mut a: [*const f32; R] = [p.a; R];
        for (r, a) in a.iter_mut().enumerate() {
            *a = p.a.add((row + r) * p.a_stride);
        }
        for k in 0..p.k {
            let mut line = [S::splat(0.0); V];
            for (v, value) in line.iter_mut().enumerate() {
                *value = S::load(b.add(v * lanes));
            }
            b = b.add(p.b_stride);
            for r in 0..R {
                let x = S::splat(*a[r].add(k));
                for v in 0..V {
                    sums[r][v] = S::fma(x, line[v], sums[r][v]);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            let line = c.add(r * p.c_stride);
            if whole {
                for (v, sum) in sums.iter().enumerate() {
                    S::store(line.add(v * lanes), *sum);
                }
            } else {
                let mut buffer = [0.0f32; 64];
                for (v, sum) in sums.iter().enumerate() {
                    S::store(buffer.as_mut_ptr().add(v * lanes), *sum);
                }
                std::ptr::copy_nonoverlapping(buffer.as_ptr(), line, p.columns);
            }
        }
    }
}
