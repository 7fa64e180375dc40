/* SPDX-License-Identifier: Apache-2.0 */
/* All but f64 is computed in float, where the host takes doubles: scale x - largest is rounded once, and a largest
 * element that is rounded makes all exponentials of the row larger or smaller by one factor, which the division takes
 * away. So an element differs by |scale x - largest| + 4 units of 2^-24 of itself, and the sum, which is in double but for
 * packs of up to 8 columns, by 3 units more. */
#include "kernels/begin.cuh"
#include "kernels/rows.cuh"
#include "kernels/softmax.cuh"

static __device__ inline float power(float scale, float x, float largest) { return gy_exp(fmaf(scale, x, -largest)); }
static __device__ inline double power(double scale, double x, double largest) { return gy_exp(fma(scale, x, -largest)); }

/* How many columns of a row count: all; or, if `causal`, one in the first row of each `period`, one more in each row
 * after it, and `before` more in all of them. Row 0 is row `first` of a period. */
struct mask {
    int64_t causal, first, period, before;
};

/* How many of `count` columns from c on come before `stop`. */
static __device__ inline int seen(int64_t c, int count, int64_t stop)
{
    return stop - c < count ? (int)(stop - c) : count;
}

/* Of attention: of its queries the logarithms of sums of exponentials, which are given or wanted, if there are any. Rows are `period`
 * queries of each head from the one that `at` is of on, heads `step` queries apart. */
template <typename Wide> struct logarithms {
    Wide *at;
    int64_t given, period, step;
    __device__ Wide *of(int64_t r) const { return at + r / period * step + r % period; }
};

template <bool PACKED, typename Wide, typename T, typename Kept>
static __device__ inline void soften(Wide scale, const mask &m, const logarithms<Wide> &lse, const T *__restrict__ x, T *__restrict__ y,
                                     int64_t rows, int64_t width, const Kept &kept)
{
    typedef gy_element<Wide> e;
    GY_FOR_EACH_ROW (r, rows) {
        const T *row = x + r * width;
        const int64_t stop = m.causal ? m.before + (m.first + r) % m.period + 1 : width;
        /* Columns behind are not read before the last loop, which overwrites them. */
        const int64_t packs = (stop + gy_pack<T>::COUNT - 1) / gy_pack<T>::COUNT * gy_pack<T>::COUNT;
        const int64_t read = packs < width ? packs : width;
        Wide largest = -(Wide)INFINITY;
        double sum = 0;
        const auto compare = [&](int64_t c, const gy_pack<T> &v, int count) {
#pragma unroll
            for (int j = 0; j < gy_pack<T>::COUNT; j++)
                largest = j < seen(c, count, stop) ? fmax(largest, scale * (Wide)e::load(v.at[j])) : largest;
        };
        if (!lse.given) {
            gy_each_pack<PACKED>(row, read, compare, kept);
            largest = gy_lanes_join(largest, [](Wide a, Wide b) { return fmax(a, b); });
        }
        const auto add = [&](int64_t c, const gy_pack<T> &v, int count) {
            Wide part = 0; /* of a pack: converting each would take longer than computing it */
#pragma unroll
            for (int j = 0; j < gy_pack<T>::COUNT; j++)
                part += j < seen(c, count, stop) ? power(scale, (Wide)e::load(v.at[j]), largest) : (Wide)0;
            sum += (double)part;
        };
        if (!lse.given) {
            gy_each_pack<PACKED, true>(row, read, add, kept);
            sum = gy_lanes_sum(sum);
        }
        if (lse.given)
            largest = *lse.of(r);
        else if (lse.at && threadIdx.x == 0)
            *lse.of(r) = largest + (Wide)log(sum);
        const Wide inverse = lse.given ? (Wide)1 : (Wide)(1 / sum);
        const auto write = [&](int64_t c, const gy_pack<T> &v, int count) {
            gy_pack<T> to;
#pragma unroll
            for (int j = 0; j < gy_pack<T>::COUNT; j++)
                to.at[j] = e::template store<T>(
                    j < seen(c, count, stop) ? power(scale, (Wide)e::load(v.at[j]), largest) * inverse : (Wide)0);
            gy_store_pack<PACKED>(y + r * width + c, to, count);
        };
        gy_each_pack<PACKED, true>(row, width, write, kept); /* packs behind `read`, which nobody kept, are not seen */
    }
}

template <typename Wide, typename T, typename Kept>
static __device__ inline void soften_rows(double scale, const mask &m, const logarithms<Wide> &lse, const T *__restrict__ x,
                                          T *__restrict__ y, int64_t rows, int64_t width, const Kept &kept)
{
    if (gy_row_is_packed(width, x) && gy_row_is_packed(width, y))
        soften<true>((Wide)scale, m, lse, x, y, rows, width, kept);
    else
        soften<false>((Wide)scale, m, lse, x, y, rows, width, gy_row_unpacked(kept));
}

#define KERNEL(name, type, wide, kept, ...)                                                                            \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__)                                                          \
        name(double scale, int64_t causal, int64_t first, const type *x, type *y, int64_t rows, int64_t width)         \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        soften_rows<wide>(scale, mask{ causal, first, width, 0 }, logarithms<wide>{}, x, y, rows, width, kept);        \
    }
#define READ(name, LONG, type, wide) KERNEL(name, type, wide, gy_row_kept<LONG>(), GY_ROW_BOUNDS(LONG, type))
#define HELD(name, PACKS, type, wide)                                                                                  \
    KERNEL(name, type, wide, (gy_row_held<PACKS, type>()), GY_HELD_ROW_BOUNDS(PACKS))
GY_ROW_KERNELS(softmax, READ)
GY_HELD_ROW_KERNELS(softmax, HELD)
#undef KERNEL

/* Of attention: the same `period` queries of each head, of which the first sees `before` keys and one more. y may be x:
 * a thread reads an element for the last time before it writes it, and nobody else reads it. `lse`: logarithms, which
 * are given or are to be kept, of `lines` rows of a head and `step` queries from head to head; or NULL. */
#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_ROW_BOUNDS(false, type))                                                  \
        softmax_of_##suffix(double scale, int64_t causal, int64_t before, int64_t period, const type *x, type *y,      \
                            int64_t rows, int64_t width, wide *lse, int64_t given, int64_t lines, int64_t step)        \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        soften_rows<wide>(scale, mask{ causal, 0, period, before }, logarithms<wide>{ lse, given, lines, step }, \
                          x, y, rows, width, gy_row_kept<false>());                                                                   \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
