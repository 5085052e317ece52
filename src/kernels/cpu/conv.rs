//! Convolutions on the CPU as matrix products: what a panel of output pixels sees is packed, then all output channels pass by it.
//! The picture's columns never exist as a whole.

use super::gemm::{DEPTH, Product, Start, multiply, panel_width};
use super::simd::Kind;
use super::work::{Shared, in_parts, room, rows_per_part};

/// The shape of a convolution: `[n, channels, height, width]` with a weight `[out, channels, kernel[0], kernel[1]]`.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub n: usize,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    pub out: usize,
    pub kernel: [usize; 2],
    pub stride: usize,
    /// Zeros before and after, for rows and columns.
    pub padding: [(usize, usize); 2],
}

impl Shape {
    /// Height and width of the output; `None` where the kernel is larger than the padded picture.
    pub fn output(&self) -> Option<[usize; 2]> {
        let size = |length: usize, kernel: usize, (before, after): (usize, usize)| {
            Some((length + before + after).checked_sub(kernel)? / self.stride.max(1) + 1)
        };
        Some([size(self.height, self.kernel[0], self.padding[0])?, size(self.width, self.kernel[1], self.padding[1])?])
    }
}

/// Values of one line of a panel that lie evenly spaced in a plane of the input.
#[derive(Clone, Copy)]
struct Run {
    column: usize,
    source: usize,
    length: usize,
}

/// What each place of the kernel sees of some output pixels.
struct View {
    /// By place of the kernel.
    runs: Vec<Vec<Run>>,
    stride: usize,
}

impl View {
    /// Of `count` pixels from `first` on, in the output's row order, to be put from `column` on.
    fn add(&mut self, shape: &Shape, out_width: usize, first: usize, count: usize, column: usize, image: usize) {
        let plane_of_image = image * shape.channels * shape.height * shape.width;
        let (top, left) = (shape.padding[0].0, shape.padding[1].0);
        for (place, runs) in self.runs.iter_mut().enumerate() {
            let (ky, kx) = (place / shape.kernel[1], place % shape.kernel[1]);
            let mut done = 0;
            while done < count {
                let (row, x) = ((first + done) / out_width, (first + done) % out_width);
                let length = (out_width - x).min(count - done);
                let y = (row * shape.stride + ky).wrapping_sub(top);
                if y < shape.height {
                    // The output columns whose input column lies in the picture.
                    let low = left.saturating_sub(kx).div_ceil(shape.stride).clamp(x, x + length);
                    let high = match (shape.width + left).checked_sub(kx + 1) {
                        Some(last) => (last / shape.stride + 1).clamp(low, x + length),
                        None => low,
                    };
                    if high > low {
                        let source = plane_of_image + y * shape.width + low * shape.stride + kx - left;
                        runs.push(Run { column: column + done + low - x, source, length: high - low });
                    }
                }
                done += length;
            }
        }
    }

    /// The lines `first..first + lines.len() / width` of the panel: input channel by input channel, place by place.
    fn pack(&self, x: &[f32], plane: usize, first: usize, lines: &mut [f32], width: usize) {
        let places = self.runs.len();
        for (i, line) in lines.chunks_exact_mut(width).enumerate() {
            let (channel, place) = ((first + i) / places, (first + i) % places);
            let runs = &self.runs[place];
            if runs.iter().map(|run| run.length).sum::<usize>() < width {
                line.fill(0.0);
            }
            for run in runs {
                let source = &x[run.source + channel * plane..];
                let line = &mut line[run.column..run.column + run.length];
                if self.stride == 1 {
                    line.copy_from_slice(&source[..run.length]);
                } else {
                    for (value, source) in line.iter_mut().zip(source.iter().step_by(self.stride)) {
                        *value = *source;
                    }
                }
            }
        }
    }
}

/// The convolution; `None` where there is no output. Lengths must fit the shape.
pub fn conv2d(kind: Kind, x: &[f32], weight: &[f32], bias: Option<&[f32]>, shape: &Shape) -> Option<Vec<f32>> {
    let [out_height, out_width] = shape.output()?;
    let (pixels, plane) = (out_height * out_width, shape.height * shape.width);
    let places = shape.kernel[0] * shape.kernel[1];
    let depth = shape.channels * places;
    assert_eq!(
        (x.len(), weight.len()),
        (shape.n * shape.channels * plane, shape.out * depth),
        "the shapes of a convolution"
    );
    assert!(bias.is_none_or(|bias| bias.len() == shape.out), "the shape of a bias");
    let mut y = vec![0.0; shape.n * shape.out * pixels];
    if y.is_empty() {
        return Some(y);
    }
    let width = panel_width(kind);
    // Small pictures share a panel.
    let images = (width / pixels).clamp(1, shape.n);
    let panels_each = pixels.div_ceil(width);
    let panels = shape.n.div_ceil(images) * panels_each;
    let each = rows_per_part(shape.out, panels);
    let chunks = shape.out.div_ceil(each);
    let target = Shared(y.as_mut_ptr());
    in_parts(panels * chunks, |buffer, part| {
        let (panel, row) = (part / chunks, part % chunks * each);
        let rows = each.min(shape.out - row);
        let (image, first) = (panel / panels_each * images, panel % panels_each * width);
        let (images, count) = (images.min(shape.n - image), width.min(pixels - first));
        let columns = images * count;
        let mut view = View { runs: vec![Vec::new(); places], stride: shape.stride };
        for i in 0..images {
            view.add(shape, out_width, first, count, i * count, image + i);
        }
        let block = DEPTH.min(depth);
        let shared = if images > 1 { rows * columns } else { 0 };
        let (lines, sums) = room(buffer, block * width + shared).split_at_mut(block * width);
        let place = target.at((image * shape.out + row) * pixels + first);
        let (c, c_stride) = if images > 1 { (sums.as_mut_ptr(), columns) } else { (place, pixels) };
        let mut start = bias.map_or(Start::Zero, |bias| Start::Rows(bias[row..].as_ptr()));
        for k in (0..depth).step_by(block) {
            let block = block.min(depth - k);
            let lines = &mut lines[..block * width];
            view.pack(x, plane, k, lines, width);
            let a = weight[row * depth + k..].as_ptr();
            let product = Product {
                a,
                a_stride: depth,
                b: lines.as_ptr(),
                b_stride: width,
                c,
                c_stride,
                rows,
                k: block,
                columns,
                start,
            };
            // SAFETY: all lines lie within `weight`, the buffer and `y` or the buffer, as the lengths checked above say; parts
            // write different rows or pixels; `kind` is the processor's.
            unsafe { multiply(kind, product) };
            start = Start::Sum;
        }
        for (line, sums) in sums.chunks_exact(columns.max(1)).enumerate() {
            for (i, sums) in sums.chunks_exact(count).enumerate() {
                let place = target.at(((image + i) * shape.out + row + line) * pixels);
                // SAFETY: a line of `count` = `pixels` values of an image of its own.
                unsafe { std::ptr::copy_nonoverlapping(sums.as_ptr(), place, count) };
            }
        }
    });
    Some(y)
}

#[cfg(test)]
mod tests {
    use super::super::simd::kinds;
    use super::super::tests::{close, noise};
    use super::*;

    fn plain(x: &[f32], w: &[f32], bias: &[f32], s: &Shape) -> Vec<f64> {
        let [oh, ow] = s.output().unwrap();
        let mut y = Vec::new();
        for n in 0..s.n {
            for o in 0..s.out {
                for (r, c) in (0..oh).flat_map(|r| (0..ow).map(move |c| (r, c))) {
                    let mut sum = f64::from(bias[o]);
                    for i in 0..s.channels {
                        for (ky, kx) in (0..s.kernel[0]).flat_map(|ky| (0..s.kernel[1]).map(move |kx| (ky, kx))) {
                            let (y, x_) = (
                                (r * s.stride + ky) as isize - s.padding[0].0 as isize,
                                (c * s.stride + kx) as isize - s.padding[1].0 as isize,
                            );
                            if y >= 0 && x_ >= 0 && (y as usize) < s.height && (x_ as usize) < s.width {
                                let value = x[((n * s.channels + i) * s.height + y as usize) * s.width + x_ as usize];
                                sum += f64::from(value)
                                    * f64::from(w[((o * s.channels + i) * s.kernel[0] + ky) * s.kernel[1] + kx]);
                            }
                        }
                    }
                    y.push(sum);
                }
            }
        }
        y
    }

    #[test]
    fn convolutions_of_all_shapes_are_right_on_every_kind() {
        let same = [(1, 1), (1, 1)];
        let shapes = [
            (1, 3, 5, 7, 4, 3, 1, same),
            (2, 5, 4, 4, 7, 3, 1, same),
            (3, 4, 3, 5, 9, 3, 2, same),
            (2, 6, 16, 13, 8, 3, 2, [(0, 1), (0, 1)]),
            (2, 8, 9, 9, 13, 1, 1, [(0, 0), (0, 0)]),
            (1, 2, 33, 70, 50, 3, 1, same),
            (5, 3, 2, 2, 3, 3, 1, same),
            (1, 1, 1, 1, 1, 3, 1, same),
            (2, 3, 6, 1, 2, 3, 1, [(0, 2), (3, 4)]),
            (1, 520, 4, 6, 5, 3, 1, same),
            (2, 3, 8, 8, 110, 1, 2, [(0, 0), (0, 0)]),
        ];
        for kind in kinds() {
            for (n, channels, height, width, out, kernel, stride, padding) in shapes {
                let s = Shape { n, channels, height, width, out, kernel: [kernel; 2], stride, padding };
                let depth = channels * kernel * kernel;
                let (x, w, b) = (noise(n * channels * height * width, 1), noise(out * depth, 2), noise(out, 3));
                let y = conv2d(kind, &x, &w, Some(&b), &s).unwrap();
                close(&y, &plain(&x, &w, &b, &s), 2e-6 * (depth as f64).sqrt().max(1.0));
                let zeros = vec![0.0; out];
                let y = conv2d(kind, &x, &w, None, &s).unwrap();
                close(&y, &plain(&x, &w, &zeros, &s), 2e-6 * (depth as f64).sqrt().max(1.0));
            }
        }
    }

    #[test]
    fn a_kernel_larger_than_the_picture_has_no_output() {
        let s = Shape {
            n: 1,
            channels: 1,
            height: 2,
            width: 2,
            out: 1,
            kernel: [3, 3],
            stride: 1,
            padding: [(0, 0), (0, 0)],
        };
        assert!(conv2d(super::super::simd::kind(), &[0.0; 4], &[0.0; 9], None, &s).is_none());
    }
}
