/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Factors of a tall matrix with few columns, as qr_tall.c has them: a block of threads factors a block of rows, and so on
 * with the stack of their triangles. The columns of a block of rows lie in registers, lane by lane, and column j belongs to
 * warp j % WARPS; a reflection is made by the warp whose column it is, and the others read it in shared memory. Going back
 * the columns of q have nothing to do with each other: each warp applies all reflections to its own and waits for nobody.
 * Sums are those of lanes, so their order is the same in every run.
 */
#ifndef GY_KERNELS_QR_TALL_CUH
#define GY_KERNELS_QR_TALL_CUH

#include "kernels/qr/tall.h"

#include <cfloat>
#include <stdint.h>

enum { GY_TALL_WARPS = GY_TALL_THREADS / 32 };

/* Squares of what lies between do not leave the range of the type, nor does what is small against them count. */
static __device__ inline float gy_tall_tiny(float) { return 1e-30f; }
static __device__ inline double gy_tall_tiny(double) { return 1e-280; }

template <typename T> static __device__ inline T gy_tall_sum(T x)
{
    for (int by = 16; by > 0; by /= 2)
        x += __shfl_xor_sync(~0u, x, by);
    return x;
}

/* Columns of a warp: element e of column c is of row 32 e + lane. */
template <typename T, int COLUMNS> struct gy_tall {
    enum { LANES = GY_TALL_ROWS(sizeof(T), COLUMNS) / 32, ROWS = 32 * LANES };
    T x[COLUMNS][LANES];
};

/* Shared by the threads of a block: some rows on their way, and reflections, of which the next is written while others
 * read the last. */
template <typename T> struct gy_tall_room {
    T line[32][GY_TALL_COLUMNS + 1];
    T v[2][GY_TALL_MOST_ROWS], tau[2], sign[GY_TALL_COLUMNS];
};

/* The first `rows` rows of n columns, and zeros behind them. */
template <typename T, int COLUMNS>
static __device__ inline void gy_tall_load(gy_tall<T, COLUMNS> &m, const T *from, int rows, int n, gy_tall_room<T> &room)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int e = 0; e < m.LANES; e++) {
        const int left = (rows - 32 * e) * n; /* elements from these rows on */
        if (left > 0) {
            __syncthreads(); /* the rows before have been read */
            for (int i = threadIdx.x; i < 32 * n; i += GY_TALL_THREADS)
                room.line[i / n][i % n] = i < left ? from[(int64_t)32 * e * n + i] : (T)0;
            __syncthreads();
        }
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const int j = c * GY_TALL_WARPS + warp;
            m.x[c][e] = left > 0 && j < n ? room.line[lane][j] : (T)0;
        }
    }
}

template <typename T, int COLUMNS>
static __device__ inline void gy_tall_store(const gy_tall<T, COLUMNS> &m, T *to, int rows, int n, gy_tall_room<T> &room)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int e = 0; e < m.LANES; e++) {
        const int left = (rows - 32 * e) * n;
        if (left <= 0)
            continue;
        __syncthreads();
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const int j = c * GY_TALL_WARPS + warp;
            if (j < n)
                room.line[lane][j] = m.x[c][e];
        }
        __syncthreads();
        for (int i = threadIdx.x; i < 32 * n && i < left; i += GY_TALL_THREADS)
            to[(int64_t)32 * e * n + i] = room.line[i / n][i % n];
    }
}

/* A reflection of a column: element k becomes `left`, those behind it 0, and its vector is x times `inverse` there. tau 0:
 * it does nothing. */
template <typename T> struct gy_tall_turn {
    T left, inverse, tau, scale; /* x is divided by scale first */
};

/* Squares are added up as they are where that is safe, else of elements over the largest of them. */
template <typename T, int LANES>
static __device__ inline gy_tall_turn<T> gy_tall_turn_of(const T (&x)[LANES], int k)
{
    const int lane = threadIdx.x % 32;
    const T first = __shfl_sync(~0u, k < 32 ? x[0] : x[1], k % 32), tiny = gy_tall_tiny(T());
    T sum = 0, largest = 0, scale = 1;
#pragma unroll
    for (int e = 0; e < LANES; e++)
        sum = 32 * e + lane > k ? fma(x[e], x[e], sum) : sum;
    sum = gy_tall_sum(sum);
    if (!(sum > tiny && fma(first, first, sum) < 1 / tiny)) {
        for (int e = 0; e < LANES; e++)
            largest = 32 * e + lane > k ? fmax(largest, fabs(x[e])) : largest;
        for (int by = 16; by > 0; by /= 2)
            largest = fmax(largest, __shfl_xor_sync(~0u, largest, by));
        if (largest == 0 && sum == 0)
            return { first, 0, 0, 1 };
        scale = fmax(largest, fabs(first));
        sum = 0;
        for (int e = 0; e < LANES; e++)
            sum = 32 * e + lane > k ? fma(x[e] / scale, x[e] / scale, sum) : sum;
        sum = gy_tall_sum(sum);
    }
    const T head = first / scale, norm = sqrt(fma(head, head, sum)), left = head < 0 ? norm : -norm;
    return { left * scale, 1 / (head - left), (left - head) / left, scale };
}

/* Where a block of rows leaves what is found: its reflections, column by column, and its triangle, row i of which is turned
 * by sign[i] if there is a `sign`. */
template <typename T> struct gy_tall_result {
    T *v, *tau, *r, *sign;
};

/* Reflection k is made of column k, which is x, by one warp. */
template <typename T, int LANES>
static __device__ inline void gy_tall_reflect(const T (&x)[LANES], int k, int n, gy_tall_room<T> &room,
                                              const gy_tall_result<T> &to)
{
    const int lane = threadIdx.x % 32;
    const gy_tall_turn<T> turn = gy_tall_turn_of(x, k);
    const T sign = to.sign && turn.left < 0 ? (T)-1 : (T)1;
#pragma unroll
    for (int e = 0; e < LANES; e++) {
        const int i = 32 * e + lane;
        const T tail = (turn.scale == 1 ? x[e] : x[e] / turn.scale) * turn.inverse, v = i < k ? (T)0 : i == k ? (T)1 : tail;
        room.v[k % 2][i] = v;
        to.v[(int64_t)k * 32 * LANES + i] = v;
        if (32 * e < GY_TALL_COLUMNS && i < n)
            to.r[i * n + k] = i > k ? (T)0 : i == k ? sign * turn.left : (to.sign ? room.sign[i] : (T)1) * x[e];
    }
    if (lane == 0) {
        room.tau[k % 2] = to.tau[k] = turn.tau;
        room.sign[k] = sign;
        if (to.sign)
            to.sign[k] = sign;
    }
}

/* Multiplies the columns of this warp from `from` on by the reflection v. */
template <typename T, int COLUMNS>
static __device__ inline void gy_tall_apply(gy_tall<T, COLUMNS> &m, const T (&v)[gy_tall<T, COLUMNS>::LANES], T tau, int from)
{
    T sum[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        sum[c] = 0;
#pragma unroll
        for (int e = 0; e < m.LANES; e++)
            sum[c] = fma(v[e], m.x[c][e], sum[c]);
    }
#pragma unroll
    for (int by = 16; by > 0; by /= 2)
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            sum[c] += __shfl_xor_sync(~0u, sum[c], by);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        const T factor = c >= from ? -tau * sum[c] : (T)0;
#pragma unroll
        for (int e = 0; e < m.LANES; e++)
            m.x[c][e] = fma(factor, v[e], m.x[c][e]);
    }
}

/* Factors the rows of this block of threads. */
template <typename T, int COLUMNS>
static __device__ inline void gy_tall_fold(const T *from, int rows, int n, const gy_tall_result<T> &to, gy_tall_room<T> &room)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    gy_tall<T, COLUMNS> m;
    gy_tall_load(m, from, rows, n, room);
    if (warp == 0)
        gy_tall_reflect(m.x[0], 0, n, room, to);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        for (int at = 0; at < GY_TALL_WARPS && c * GY_TALL_WARPS + at < n; at++) {
            const int k = c * GY_TALL_WARPS + at, next = k + 1;
            T v[gy_tall<T, COLUMNS>::LANES];
            __syncthreads();
#pragma unroll
            for (int e = 0; e < m.LANES; e++)
                v[e] = room.v[k % 2][32 * e + lane];
            gy_tall_apply(m, v, room.tau[k % 2], warp > at ? c : c + 1);
            if (next == n || next % GY_TALL_WARPS != warp)
                continue;
            if (at + 1 < GY_TALL_WARPS)
                gy_tall_reflect(m.x[c], next, n, room, to);
            else
                gy_tall_reflect(m.x[c + 1 < COLUMNS ? c + 1 : c], next, n, room, to);
        }
    }
}

/* The rows of q: reflections, the last first, of n rows `c` and zeros below; without `c` those of the identity, turned by
 * `sign`. */
template <typename T, int COLUMNS>
static __device__ inline void gy_tall_unfold(const T *c, const T *v, const T *tau, const T *sign, int rows, int n, T *to,
                                             gy_tall_room<T> &room)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    gy_tall<T, COLUMNS> m;
    if (c) {
        gy_tall_load(m, c, n, n, room);
    } else {
#pragma unroll
        for (int k = 0; k < COLUMNS; k++)
#pragma unroll
            for (int e = 0; e < m.LANES; e++) {
                const int j = k * GY_TALL_WARPS + warp;
                m.x[k][e] = j < n && 32 * e + lane == j ? sign[j] : (T)0;
            }
    }
    T at[gy_tall<T, COLUMNS>::LANES], next[gy_tall<T, COLUMNS>::LANES];
#pragma unroll
    for (int e = 0; e < m.LANES; e++)
        next[e] = v[(int64_t)(n - 1) * m.ROWS + 32 * e + lane];
    for (int k = n - 1; k >= 0; k--) {
#pragma unroll
        for (int e = 0; e < m.LANES; e++) {
            at[e] = next[e];
            next[e] = v[(int64_t)(k > 0 ? k - 1 : 0) * m.ROWS + 32 * e + lane];
        }
        gy_tall_apply(m, at, tau[k], 0);
    }
    gy_tall_store(m, to, rows, n, room);
}

/* The block's rows of the matrix, in parts as even as can be. */
static __device__ inline int64_t gy_tall_first(int64_t m, unsigned block)
{
    return block * m / gridDim.x;
}

template <typename T, int COLUMNS>
static __device__ inline void gy_tall_fold_block(const T *from, int64_t m, int n, const gy_tall_result<T> &to,
                                                 gy_tall_room<T> &room)
{
    const int64_t b = blockIdx.x, first = gy_tall_first(m, blockIdx.x), last = gy_tall_first(m, blockIdx.x + 1);
    const gy_tall_result<T> mine = { to.v + b * n * gy_tall<T, COLUMNS>::ROWS, to.tau + b * n, to.r + b * n * n, to.sign };
    gy_tall_fold<T, COLUMNS>(from + first * n, (int)(last - first), n, mine, room);
}

template <typename T, int COLUMNS>
static __device__ inline void gy_tall_unfold_block(const T *c, const T *v, const T *tau, const T *sign, int64_t m, int n, T *to,
                                                   gy_tall_room<T> &room)
{
    const int64_t b = blockIdx.x, first = gy_tall_first(m, blockIdx.x), last = gy_tall_first(m, blockIdx.x + 1);
    gy_tall_unfold<T, COLUMNS>(c ? c + b * n * n : NULL, v + b * n * gy_tall<T, COLUMNS>::ROWS, tau + b * n, sign,
                               (int)(last - first), n, to + first * n, room);
}

#endif
