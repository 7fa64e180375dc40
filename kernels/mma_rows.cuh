/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of attention and its gradient on tensor cores (mma.cuh): each warp has 16 rows of a left operand in registers, and
 * tiles of rows of WIDTH elements, which all warps of a block share, are right operands, turned or as they are. A lane has rows g and
 * g + 8 of all that it computes.
 */
#ifndef GY_KERNELS_MMA_ROWS_CUH
#define GY_KERNELS_MMA_ROWS_CUH

#include "kernels/mma.cuh"

#ifdef GY_MMA
/* How elements lie in memory, how many columns of a left operand a product takes, and by how much rows in shared memory are longer than
 * they have to be, so that what a warp loads at once has no bank in common. */
template <typename T> struct gy_mma_type {
    typedef uint16_t word;
    typedef uint32_t operand; /* what a lane has of a left operand, four of them */
    enum { DEPTH = 16, APART = 8 };
};
template <> struct gy_mma_type<float> {
    typedef float word, operand;
    enum { DEPTH = 8, APART = 4 };
};

/* Rows [first, first + ROWS) of x, which has `rows` of d elements; zeros where there are none. In whole: all rows begin at multiples of
 * 16 bytes. `lines.at(r)` is where row r begins. */
template <int ROWS, int WIDTH, int THREADS, typename Word, int LINE, typename Lines>
static __device__ inline void gy_mma_load(Word (*to)[LINE], const Word *x, const Lines &lines, int64_t first, int64_t rows, int d, bool whole)
{
    if (whole) {
        enum { PIECE = 16 / sizeof(Word), PIECES = WIDTH / PIECE };
        for (int i = threadIdx.x; i < ROWS * PIECES; i += THREADS) {
            const int r = i / PIECES, c = i % PIECES * PIECE;
            const bool there = first + r < rows && c < d;
            gy_copy_16(&to[r][c], there ? x + lines.at(first + r) + c : x, there);
        }
    } else {
        for (int i = threadIdx.x; i < ROWS * WIDTH; i += THREADS) {
            const int r = i / WIDTH, c = i % WIDTH;
            to[r][c] = first + r < rows && c < d ? x[lines.at(first + r) + c] : (Word)0;
        }
    }
    gy_copies_end_group();
}

/* Elements c and c + 1 of a row; zeros beyond its end. */
static __device__ inline uint32_t gy_mma_pair_at(const uint16_t *row, int c, int d, bool whole)
{
    if (whole)
        return c < d ? *reinterpret_cast<const uint32_t *>(row + c) : 0;
    const uint32_t low = c < d ? row[c] : 0, high = c + 1 < d ? row[c + 1] : 0;
    return low | high << 16;
}

/* so_far + the products of elements c and c + 1 of two rows. */
template <typename T>
static __device__ inline float gy_mma_add_pair(float so_far, const uint16_t *x, const uint16_t *y, int c, int d, bool whole)
{
    const uint32_t of_x = gy_mma_pair_at(x, c, d, whole), of_y = gy_mma_pair_at(y, c, d, whole);
    so_far += gy_float_of<T>(of_x) * gy_float_of<T>(of_y);
    return so_far + gy_float_of<T>(of_x >> 16) * gy_float_of<T>(of_y >> 16);
}

/* The row that a lane gives the address of when two matrices of columns next to each other, of 16 rows, are loaded, and its first
 * column: as right operands whose rows are columns of the matrices, or, turned, rows. */
static __device__ inline int gy_mma_row(int lane) { return lane / 16 * 8 + lane % 8; }
static __device__ inline int gy_mma_column(int lane) { return lane / 8 % 2 * 8; }
static __device__ inline int gy_mma_row_turned(int lane) { return lane / 8 % 2 * 8 + lane % 8; }
static __device__ inline int gy_mma_column_turned(int lane) { return lane / 16 * 8; }

/* Rows row + g and row + g + 8 of a warp's left operands; with `flip` their signs are changed. */
template <int STEPS, typename Lines>
static __device__ inline void gy_mma_load_left(uint32_t (&to)[STEPS][4], const uint16_t *x, const Lines &lines, int64_t row, int64_t rows,
                                               int d, bool whole, bool flip)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int64_t r = row + lane / 4 + 8 * i;
        const uint16_t *const from = x + (r < rows ? lines.at(r) : 0);
#pragma unroll
        for (int s = 0; s < STEPS; s++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int c = 16 * s + 8 * half + lane % 4 * 2;
                const uint32_t pair = r < rows ? gy_mma_pair_at(from, c, d, whole) : 0;
                to[s][i + 2 * half] = flip ? pair ^ 0x80008000u : pair;
            }
    }
}

/* score = left times the rows of a tile, turned: 8 TILES of them. */
template <typename T, int STEPS, int TILES, int LINE>
static __device__ inline void gy_mma_scores(float (&score)[TILES][4], const uint32_t (&left)[STEPS][4], const uint16_t (*tile)[LINE])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            score[j][i] = 0;
#pragma unroll
    for (int s = 0; s < STEPS; s++)
#pragma unroll
        for (int j = 0; j < TILES; j += 2) {
            uint32_t b[4];
            gy_load_matrices(b, &tile[8 * j + gy_mma_row(lane)][16 * s + gy_mma_column(lane)]);
            gy_mma_add<T>(score[j], left[s], b[0], b[1]);
            gy_mma_add<T>(score[j + 1], left[s], b[2], b[3]);
        }
}

/* result += weights, rounded to T, times the rows of a tile. */
template <typename T, int TILES, int PARTS, int LINE>
static __device__ inline void gy_mma_add_rows(float (&result)[PARTS][4], const float (&w)[TILES][4], const uint16_t (*tile)[LINE])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < TILES; j += 2) {
        const uint32_t left[4] = { gy_pair<T>(w[j][0], w[j][1]), gy_pair<T>(w[j][2], w[j][3]), gy_pair<T>(w[j + 1][0], w[j + 1][1]),
                                   gy_pair<T>(w[j + 1][2], w[j + 1][3]) };
#pragma unroll
        for (int part = 0; part < PARTS; part += 2) {
            uint32_t b[4];
            gy_load_matrices_turned(b, &tile[8 * j + gy_mma_row_turned(lane)][8 * part + gy_mma_column_turned(lane)]);
            gy_mma_add<T>(result[part], left, b[0], b[1]);
            gy_mma_add<T>(result[part + 1], left, b[2], b[3]);
        }
    }
}

/* Rows row + g and row + g + 8 of the results, each times its factor. */
template <typename T, int PARTS, typename Lines>
static __device__ inline void gy_mma_store(const float (&result)[PARTS][4], const float (&by)[2], uint16_t *to, const Lines &lines,
                                           int64_t row, int64_t rows, int d, bool whole)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int64_t r = row + lane / 4 + 8 * i;
        uint16_t *const line = to + (r < rows ? lines.at(r) : 0);
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            const int c = 8 * p + lane % 4 * 2;
            const uint32_t pair = gy_pair<T>(result[p][2 * i] * by[i], result[p][2 * i + 1] * by[i]);
            if (r >= rows || c >= d)
                continue;
            if (whole) {
                *reinterpret_cast<uint32_t *>(line + c) = pair;
            } else {
                line[c] = (uint16_t)pair;
                if (c + 1 < d)
                    line[c + 1] = (uint16_t)(pair >> 16);
            }
        }
    }
}

/* Of the four lanes that have a row. */
static __device__ inline float gy_mma_row_sum(float x)
{
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}
static __device__ inline float gy_mma_row_largest(float x)
{
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

/* The factor of scores that makes exponentials powers of 2. Signs are those of the left operand. */
static __device__ inline float gy_mma_factor(double scale)
{
    return fmaxf(fabsf((float)(scale * 1.4426950408889634)), 1.2e-38f); /* infinity times 0 is none */
}

/* By how much exponentials shrink when `base` takes the place of the factor times the largest score so far: not at all where both are
 * the same, which a fused product, unrounded, would not say. */
static __device__ inline float gy_mma_shrink(float largest, float factor, float base) { return gy_exp2(__fmul_rn(largest, factor) - base); }
#endif
#endif
