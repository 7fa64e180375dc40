/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that are loaded and stored as one word of up to 128 bits. */
#ifndef GY_KERNELS_CHUNK_CUH
#define GY_KERNELS_CHUNK_CUH

#include "kernels/store.cuh"

#include <stdint.h>

template <typename T, int N> struct alignas(sizeof(T) * N) gy_chunk {
    T at[N];
};

/* Chunk `i` from `at` on, which lies at a multiple of a chunk. Counted in chunks, since nvcc takes a store apart where it
 * cannot see that elements follow each other, as where 4 times some index of threads is added. */
template <int N, typename T>
static __device__ __forceinline__ gy_chunk<T, N> gy_load_chunk(const T *__restrict__ at, int64_t i)
{
    return reinterpret_cast<const gy_chunk<T, N> *>(at)[i];
}
template <typename T, int N>
static __device__ __forceinline__ void gy_store_chunk(T *at, int64_t i, const gy_chunk<T, N> &chunk)
{
    gy_chunk<T, N> *to = reinterpret_cast<gy_chunk<T, N> *>(at);
    GY_STORE(&to[i], chunk);
}

#endif
