/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of mma_rows.cuh for f32. Tensor cores take 11 bits of a float, so each is split in two, big and small, of 11 bits each with a
 * sign, and of the four products of two floats the three are added up that are not below the last bit of the result:
 *
 *   a b = big(a) big(b) + big(a) small(b) + small(a) big(b)     but for 2^-22 of it
 *
 * Tensor cores do not round what they add up, they cut it off. So small products have sums of their own, and sums are those of one tile,
 * which an ordinary addition, one that rounds, adds to what there is. Infinities have no small part: they give NaN.
 */
#ifndef GY_KERNELS_MMA_F32_CUH
#define GY_KERNELS_MMA_F32_CUH

#include "kernels/mma_rows.cuh"

#ifdef GY_MMA
static __device__ inline void gy_split(float x, uint32_t &big, uint32_t &small)
{
    big = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    small = __float_as_uint(x - __uint_as_float(big));
}

/* x, which the compiler is to keep as it is, and not its parts: there are registers for one of both. */
static __device__ inline float gy_kept(float x)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : "+f"(x));
#endif
    return x;
}

/* A left operand, or a right one, split. */
template <int COUNT> struct gy_mma_split {
    uint32_t big[COUNT], small[COUNT];
    __device__ void set(int i, float x) { gy_split(x, big[i], small[i]); }
};

static __device__ inline void gy_mma_add_split(float (&big)[4], float (&small)[4], const gy_mma_split<4> &a, const gy_mma_split<2> &b)
{
    gy_mma_add_tf32(small, a.small, b.big);
    gy_mma_add_tf32(big, a.big, b.big);
    gy_mma_add_tf32(small, a.big, b.small);
}

template <int STEPS, typename Lines>
static __device__ inline void gy_mma_load_left(float (&to)[STEPS][4], const float *x, const Lines &lines, int64_t row, int64_t rows, int d, bool,
                                               bool flip)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int64_t r = row + lane / 4 + 8 * i;
        const float *const from = x + (r < rows ? lines.at(r) : 0);
#pragma unroll
        for (int s = 0; s < STEPS; s++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int c = 8 * s + 4 * half + lane % 4;
                const float value = r < rows && c < d ? from[c] : 0.0f;
                to[s][i + 2 * half] = flip ? -value : value;
            }
    }
}

template <typename T, int STEPS, int TILES, int LINE>
static __device__ inline void gy_mma_scores(float (&score)[TILES][4], const float (&left)[STEPS][4], const float (*tile)[LINE])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    float small[TILES][4];
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            score[j][i] = small[j][i] = 0;
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        gy_mma_split<4> a;
#pragma unroll
        for (int i = 0; i < 4; i++)
            a.set(i, gy_kept(left[s][i]));
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            gy_mma_split<2> b;
            b.set(0, tile[8 * j + g][8 * s + t]);
            b.set(1, tile[8 * j + g][8 * s + t + 4]);
            gy_mma_add_split(score[j], small[j], a, b);
        }
    }
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            score[j][i] += small[j][i];
}

/* Weights are left operands where they are, columns 2 t and 2 t + 1 as t and t + 4: the rows of the right operand change places alike. */
template <typename T, int TILES, int PARTS, int LINE>
static __device__ inline void gy_mma_add_rows(float (&result)[PARTS][4], const float (&w)[TILES][4], const float (*tile)[LINE])
{
    enum { TOGETHER = 2 };
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    gy_mma_split<4> a[TILES];
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[j].set(i, w[j][i % 2 * 2 + i / 2]);
#pragma unroll
    for (int part = 0; part < PARTS; part += TOGETHER) {
        float big[TOGETHER][4] = { { 0 } }, small[TOGETHER][4] = { { 0 } };
#pragma unroll
        for (int j = 0; j < TILES; j++)
#pragma unroll
            for (int p = 0; p < TOGETHER; p++) {
                gy_mma_split<2> b;
                b.set(0, tile[8 * j + 2 * t][8 * (part + p) + g]);
                b.set(1, tile[8 * j + 2 * t + 1][8 * (part + p) + g]);
                gy_mma_add_split(big[p], small[p], a[j], b);
            }
#pragma unroll
        for (int p = 0; p < TOGETHER; p++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                result[part + p][i] += big[p][i] + small[p][i];
    }
}

struct alignas(8) gy_mma_two {
    float first, second;
};

template <typename T, int PARTS, typename Lines>
static __device__ inline void gy_mma_store(const float (&result)[PARTS][4], const float (&by)[2], float *to, const Lines &lines, int64_t row,
                                           int64_t rows, int d, bool whole)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int64_t r = row + lane / 4 + 8 * i;
        float *const line = to + (r < rows ? lines.at(r) : 0);
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            const int c = 8 * p + lane % 4 * 2;
            const gy_mma_two two = { result[p][2 * i] * by[i], result[p][2 * i + 1] * by[i] };
            if (r >= rows || c >= d)
                continue;
            if (whole) {
                *reinterpret_cast<gy_mma_two *>(line + c) = two;
            } else {
                line[c] = two.first;
                if (c + 1 < d)
                    line[c + 1] = two.second;
            }
        }
    }
}

template <typename T>
static __device__ inline float gy_mma_add_pair(float so_far, const float *x, const float *y, int c, int d, bool)
{
    so_far += x[c] * y[c];
    return c + 1 < d ? so_far + x[c + 1] * y[c + 1] : so_far;
}
#endif
#endif
