/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread reads a little square, N x N elements as N chunks, turns it in its registers, and leaves it in shared memory
 * as chunks of the other matrix. So both matrices, and shared memory too, are read and written in words of 128 bits
 * (of 32 and 64 for bytes and halves). Chunks that one access of a warp touches lie in different banks: rows of the
 * tile are one chunk longer than they need to be.
 *
 * Only the size of an element matters; of a matrix whose elements are rows of further axes, `_pairs` moves two together and
 * `_cells` any number. `_wide` wants rows of both matrices to begin at multiples of a chunk.
 */
#include "kernels/begin.cuh"
#include "kernels/chunk.cuh"
#include "kernels/element.cuh"
#include "kernels/shared.cuh"

enum { THREADS = 256 };

/* Several arrays, one behind the other, take `each` blocks each. A block turns a tile of SIDE x SIDE little squares; tiles
 * are counted along the rows of x, `across` in a row. */
template <int N, int SIDE, typename T>
static __device__ void transpose(const T *__restrict__ x, T *__restrict__ y, int64_t rows, int64_t columns,
                                 uint32_t across, uint32_t each)
{
    typedef gy_chunk<T, N> squares[N][SIDE][SIDE + 1];
    GY_SHARED(squares, tile);
    const int64_t array = blockIdx.x / each, before = array * rows * columns;
    const uint32_t block = blockIdx.x % each;
    int64_t row = (int64_t)(block / across) * SIDE, column = (int64_t)(block % across) * SIDE; /* of squares */
    x += before;
    y += before;
    int i = threadIdx.x % SIDE;
#pragma unroll
    for (int j = threadIdx.x / SIDE; j < SIDE; j += THREADS / SIDE) {
        int64_t r = row + j, c = column + i;
        if (r * N < rows && c * N < columns) {
            gy_chunk<T, N> from[N];
#pragma unroll
            for (int k = 0; k < N; k++)
                from[k] = gy_load_chunk<N>(x + (r * N + k) * columns, c);
#pragma unroll
            for (int k = 0; k < N; k++) {
                gy_chunk<T, N> turned;
#pragma unroll
                for (int l = 0; l < N; l++)
                    turned.at[l] = from[l].at[k];
                tile[k][i][j] = turned;
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (int j = threadIdx.x / SIDE; j < SIDE; j += THREADS / SIDE) {
        int64_t r = row + i, c = column + j;
        if (r * N < rows && c * N < columns) {
#pragma unroll
            for (int k = 0; k < N; k++)
                gy_store_chunk(y + (c * N + k) * rows, r, tile[k][j][i]);
        }
    }
}

/* The launcher knows SIDE * N as well. */
#define KERNEL(name, type, n, side)                                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        transpose##name(const type *x, type *y, int64_t rows, int64_t columns, uint32_t across, uint32_t each)         \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        transpose<n, side>(x, y, rows, columns, across, each);                                                         \
    }
/* Two elements that move together. */
template <typename T> struct alignas(2 * sizeof(T)) gy_pair {
    T at[2];
};

/* `units` elements of the type move together; y is written in order. */
template <typename T>
static __device__ void transpose_cells(const T *__restrict__ x, T *__restrict__ y, int64_t arrays, int64_t rows,
                                       int64_t columns, int64_t units)
{
    GY_FOR_EACH (i, arrays * rows * columns * units) {
        const int64_t cell = i / units, r = cell % rows, c = cell / rows % columns, first = cell / rows / columns * rows;
        y[i] = x[((first + r) * columns + c) * units + i % units];
    }
}

#define CELLS(suffix, type)                                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        transpose_cells_##suffix(const type *x, type *y, int64_t arrays, int64_t rows, int64_t columns, int64_t units) \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        transpose_cells(x, y, arrays, rows, columns, units);                                                           \
    }
CELLS(u8, uint8_t)
CELLS(f16, uint16_t)
CELLS(f32, uint32_t)
CELLS(f64, uint64_t)
KERNEL(_u8, uint8_t, 1, 32)
KERNEL(_f16, uint16_t, 1, 32)
KERNEL(_f32, uint32_t, 1, 32)
KERNEL(_f64, uint64_t, 1, 32)
KERNEL(_pairs_u8, gy_pair<uint8_t>, 1, 32)
KERNEL(_pairs_f16, gy_pair<uint16_t>, 1, 32)
KERNEL(_pairs_f32, gy_pair<uint32_t>, 1, 32)
KERNEL(_pairs_f64, gy_pair<uint64_t>, 1, 32)
KERNEL(_wide_u8, uint8_t, 4, 32)
KERNEL(_wide_f16, uint16_t, 4, 16)
KERNEL(_wide_f32, uint32_t, 4, 16)
KERNEL(_wide_f64, uint64_t, 2, 16)
