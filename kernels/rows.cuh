/* SPDX-License-Identifier: Apache-2.0 */
/* A warp for each row, in blocks of 32 x GY_ROW_WARPS threads; a block of 256 x 1 for each long one. A lane has packs of
 * neighbouring columns, as rows.h says, and additions come in the order that is written there. */
#ifndef GY_KERNELS_ROWS_CUH
#define GY_KERNELS_ROWS_CUH

#include "kernels/element.cuh"

enum { GY_LANES = 32, GY_ROW_WARPS = 8 };

#define GY_FOR_EACH_ROW(r, rows)                                                                                       \
    for (int64_t r = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; r < (rows); r += (int64_t)gridDim.x * blockDim.y)

/* Packs of all rows can be loaded and stored at once. */
template <typename T> static __device__ inline bool gy_row_is_packed(int64_t width, const T *x)
{
    return width % gy_pack<T>::COUNT == 0 && (uintptr_t)x % sizeof(uint4) == 0;
}

/* `count` elements from x on; PACKED: all of a pack, at once. */
template <bool PACKED, typename T> static __device__ inline gy_pack<T> gy_load_pack(const T *x, int count)
{
    gy_pack<T> v;
    if (PACKED) {
        v.bits = *(const uint4 *)x;
    } else {
#pragma unroll
        for (int j = 0; j < gy_pack<T>::COUNT; j++)
            v.at[j] = x[j < count ? j : 0];
    }
    return v;
}

template <bool PACKED, typename T> static __device__ inline void gy_store_pack(T *y, const gy_pack<T> &v, int count)
{
    if (PACKED) {
        *(uint4 *)y = v.bits;
    } else {
#pragma unroll
        for (int j = 0; j < gy_pack<T>::COUNT; j++)
            if (j < count)
                y[j] = v.at[j];
    }
}

/* The rows of all blocks do not stay in the caches between two readings where they are long. So a lane keeps the packs that
 * it reads first, for itself, in shared memory: nobody waits for anybody. */
enum { GY_KEPT_PACKS = 10, GY_KEPT_STEP = GY_LANES * GY_ROW_WARPS };
struct gy_kept {
    uint4 pack[GY_KEPT_PACKS * GY_KEPT_STEP];
};
enum gy_reading { GY_READS, GY_READS_AND_KEEPS, GY_READS_KEPT };

/* Pack i of this lane, which begins at x. `kept`: those of this lane. */
template <bool PACKED, gy_reading HOW, typename T>
static __device__ inline gy_pack<T> gy_read_pack(const T *x, int count, int i, uint4 *kept)
{
    gy_pack<T> v;
    if (HOW == GY_READS_KEPT && i < GY_KEPT_PACKS) {
        v.bits = kept[i * GY_KEPT_STEP];
        return v;
    }
    v = gy_load_pack<PACKED>(x, count);
    if (HOW == GY_READS_AND_KEEPS && i < GY_KEPT_PACKS)
        kept[i * GY_KEPT_STEP] = v.bits;
    return v;
}

/* Calls f(c, pack, count) for the packs of this lane, in their order: columns c to c + count of x. Some are loaded ahead:
 * sums in a stated order wait for each other, and loads need not. */
template <bool PACKED, gy_reading HOW = GY_READS, typename T, typename F>
static __device__ inline void gy_each_pack(const T *__restrict__ x, int64_t width, const F &f, uint4 *kept = nullptr)
{
    const int most = gy_pack<T>::COUNT, ahead = 4;
    const int64_t step = (int64_t)most * blockDim.x;
    int64_t c = threadIdx.x * most;
    int i = 0;
    for (; PACKED && c + (ahead - 1) * step < width; c += ahead * step, i += ahead) {
        gy_pack<T> v[ahead];
#pragma unroll
        for (int k = 0; k < ahead; k++)
            v[k] = gy_read_pack<PACKED, HOW>(x + c + k * step, most, i + k, kept);
#pragma unroll
        for (int k = 0; k < ahead; k++)
            f(c + k * step, v[k], most);
    }
    for (; c < width; c += step, i++) {
        const int count = PACKED || c + most <= width ? most : (int)(width - c);
        f(c, gy_read_pack<PACKED, HOW>(x + c, count, i, kept), count);
    }
}

/* That of all lanes, to each of them, where join() of two is the same either way round. All threads of a block that has
 * one row come here. */
template <typename V, typename F> static __device__ inline V gy_lanes_join(V x, const F &join)
{
    __shared__ V room[GY_ROW_WARPS][GY_LANES];
    const unsigned lane = threadIdx.x % GY_LANES, warp = threadIdx.x / GY_LANES;
    if (blockDim.x > GY_LANES) {
        __syncthreads(); /* others have read what was there */
        room[warp][lane] = x;
        for (unsigned half = GY_ROW_WARPS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (warp < half)
                room[warp][lane] = join(room[warp][lane], room[warp + half][lane]);
        }
        __syncthreads();
        x = room[0][lane];
    }
    for (int by = GY_LANES / 2; by > 0; by /= 2)
        x = join(x, __shfl_xor_sync(~0u, x, by));
    return x;
}

template <typename V> static __device__ inline V gy_lanes_sum(V x)
{
    return gy_lanes_join(x, [](V a, V b) { return a + b; });
}

#endif
