/* SPDX-License-Identifier: Apache-2.0 */
/* The passes and the padding of the host's plain version (fft_passes.h), a launch for each pass of all transforms along
 * an axis. Neighbours along it are `inner` numbers apart, and transforms that begin beside each other are threads beside
 * each other. */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

enum { RADIX = 13 };

template <typename T> struct complex {
    T re, im;
};

template <typename T> static __device__ inline complex<T> times(complex<T> a, complex<T> b)
{
    return { a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

static __device__ inline void sine_and_cosine(float x, float *s, float *c) { sincosf(x, s, c); }
static __device__ inline void sine_and_cosine(double x, double *s, double *c) { sincos(x, s, c); }

/* e^(sign 2 pi i k / n) for 0 <= k < n, by an angle of at most an eighth of a turn. */
template <typename T> static __device__ inline complex<T> root(int64_t k, int64_t n, int sign)
{
    const int64_t quarter = (8 * k + n) / (2 * n), rest = 4 * k - quarter * n;
    const double eighth_turns = 1.5707963267948966192313216916398 * ((double)rest / (double)n);
    T s, c;
    sine_and_cosine((T)eighth_turns, &s, &c);
    switch (quarter & 3) {
    case 0:
        return { c, sign * s };
    case 1:
        return { -s, sign * c };
    case 2:
        return { -c, -sign * s };
    default:
        return { s, -sign * c };
    }
}

/* One pass over `count` transforms of n numbers: a thread makes one transform of `radix` of them. x may be y where that
 * is all, n being the radix. */
struct pass {
    int64_t n, l, count, inner;
    int32_t radix, sign;
    double scale;
};

template <typename T>
static __device__ inline void store(complex<T> *to, complex<T> z, T scale)
{
    *to = { z.re * scale, z.im * scale };
}

template <typename T>
static __device__ inline void four(const pass &p, const complex<T> *x, complex<T> *y, int64_t k, int64_t step, T scale)
{
    const T turn = (T)p.sign;
    const int64_t turns = 4 * p.l, apart = p.l * p.inner;
    complex<T> a = x[0], b = times(x[step], root<T>(k, turns, p.sign)),
               c = times(x[2 * step], root<T>(2 * k, turns, p.sign)),
               d = times(x[3 * step], root<T>(3 * k, turns, p.sign));
    complex<T> q = { a.re + c.re, a.im + c.im }, r = { a.re - c.re, a.im - c.im }, s = { b.re + d.re, b.im + d.im },
               t = { -turn * (b.im - d.im), turn * (b.re - d.re) };
    store(y, { q.re + s.re, q.im + s.im }, scale);
    store(y + apart, { r.re + t.re, r.im + t.im }, scale);
    store(y + 2 * apart, { q.re - s.re, q.im - s.im }, scale);
    store(y + 3 * apart, { r.re - t.re, r.im - t.im }, scale);
}

template <typename T>
static __device__ inline void any(const pass &p, const complex<T> *x, complex<T> *y, int64_t k, int64_t step, T scale)
{
    complex<T> v[RADIX];
    for (int q = 0; q < p.radix; q++)
        v[q] = times(x[q * step], root<T>(q * k, p.radix * p.l, p.sign));
    for (int c = 0; c < p.radix; c++) {
        complex<T> sum = v[0];
        for (int q = 1; q < p.radix; q++) {
            complex<T> term = times(v[q], root<T>(q * c % p.radix, p.radix, p.sign));
            sum.re += term.re;
            sum.im += term.im;
        }
        store(y + c * p.l * p.inner, sum, scale);
    }
}

template <typename T> static __device__ void transform(const pass &p, const complex<T> *x, complex<T> *y)
{
    const int64_t step = p.n / p.radix;
    GY_FOR_EACH (i, p.count * step) {
        const int64_t line = i / p.inner, t = line % step, first = line / step * p.n * p.inner + i % p.inner, k = t % p.l;
        const complex<T> *from = x + first + t * p.inner;
        complex<T> *to = y + first + ((t - k) * p.radix + k) * p.inner;
        if (p.radix == 4)
            four(p, from, to, k, step * p.inner, (T)p.scale);
        else
            any(p, from, to, k, step * p.inner, (T)p.scale);
    }
}

/* ---- padding: rows of m numbers, one for each transform, and the filter behind them ---- */

struct padding {
    int64_t n, m, count, inner;
    int32_t sign;
    double scale;
};

/* Where number j of a transform is. */
static __device__ inline int64_t place(const padding &p, int64_t row, int64_t j)
{
    return (row / p.inner * p.n + j) * p.inner + row % p.inner;
}

/* e^(sign pi i j^2 / n) */
template <typename T> static __device__ inline complex<T> chirp(int64_t j, int64_t n, int sign)
{
    return root<T>((int64_t)((uint64_t)j * (uint64_t)j % (2 * (uint64_t)n)), 2 * n, sign);
}

template <typename T> static __device__ void pad(const padding &p, const complex<T> *x, complex<T> *a)
{
    GY_FOR_EACH (i, (p.count + 1) * p.m) {
        const int64_t row = i / p.m, j = i % p.m, back = p.m - j;
        complex<T> z = { 0, 0 };
        if (row < p.count)
            z = j < p.n ? times(x[place(p, row, j)], chirp<T>(j, p.n, p.sign)) : z;
        else
            z = j < p.n ? chirp<T>(j, p.n, -p.sign) : back < p.n ? chirp<T>(back, p.n, -p.sign) : z;
        a[i] = z;
    }
}

/* The conjugate of each row times the filter, in place. */
template <typename T> static __device__ void filter(const padding &p, complex<T> *a)
{
    const complex<T> *by = a + p.count * p.m;
    GY_FOR_EACH (i, p.count * p.m) {
        const complex<T> z = times(a[i], by[i % p.m]);
        a[i] = { z.re, -z.im };
    }
}

template <typename T> static __device__ void unpad(const padding &p, const complex<T> *a, complex<T> *y)
{
    const T inverse = (T)(1 / (double)p.m), scale = (T)p.scale;
    GY_FOR_EACH (i, p.count * p.n) {
        const int64_t row = i / p.n, k = i % p.n;
        const complex<T> z = a[row * p.m + k];
        store(y + place(p, row, k), times({ z.re * inverse, -z.im * inverse }, chirp<T>(k, p.n, p.sign)), scale);
    }
}

#define KERNEL(suffix, type)                                                                                           \
    extern "C" __global__ void fft_pass_##suffix(pass p, const complex<type> *x, complex<type> *y)                     \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        transform(p, x, y);                                                                                            \
    }                                                                                                                  \
    extern "C" __global__ void fft_pad_##suffix(padding p, const complex<type> *x, complex<type> *a)                   \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        pad(p, x, a);                                                                                                  \
    }                                                                                                                  \
    extern "C" __global__ void fft_filter_##suffix(padding p, complex<type> *a)                                        \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        filter(p, a);                                                                                                  \
    }                                                                                                                  \
    extern "C" __global__ void fft_unpad_##suffix(padding p, const complex<type> *a, complex<type> *y)                 \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        unpad(p, a, y);                                                                                                \
    }
KERNEL(f32, float)
KERNEL(f64, double)
