/* SPDX-License-Identifier: Apache-2.0 */
/* A thread has the elements of a block of four numbers, of one row: `run` elements whose numbers follow each other. */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"
#include "kernels/philox4.h"

template <typename Wide, typename T>
static __device__ void drop(uint64_t seed, uint64_t first, uint64_t least, double factor, const T *__restrict__ x,
                            T *__restrict__ y, int64_t rows, int64_t run, int64_t pitch)
{
    typedef gy_element<Wide> e;
    const int64_t blocks = (run + 6) / 4; /* that a row may begin and end in */
    GY_FOR_EACH (b, rows * blocks) {
        const int64_t row = rows == 1 ? 0 : b / blocks, at = b - row * blocks;
        const uint64_t begin = first + (uint64_t)(row * pitch);
        const int64_t before = (int64_t)(begin % 4); /* elements of the row's first block that are not here */
        gy_philox4 block = gy_philox4_at(seed, begin / 4 + (uint64_t)at);
        for (int k = 0; k < 4; k++) {
            const int64_t c = 4 * at + k - before, i = row * run + c;
            if (c >= 0 && c < run)
                y[i] = e::template store<T>(block.word[k] >= least ? e::load(x[i]) * (Wide)factor : (Wide)0);
        }
    }
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void dropout_##suffix(uint64_t seed, uint64_t first, uint64_t least, double factor,          \
                                                const type *x, type *y, int64_t rows, int64_t run, int64_t pitch)      \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        drop<wide>(seed, first, least, factor, x, y, rows, run, pitch);                                                \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
