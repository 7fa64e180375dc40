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

/* Launch bounds: a multiprocessor is to have so many blocks that loads of others are under way while one adds up. */
#define GY_ROW_BOUNDS(LONG, type) GY_LANES *GY_ROW_WARPS, (LONG) ? 1 : sizeof(type) == 4 ? 5 : 4

/* DO(name, LONG, type, wide): for each floating type a kernel for rows that are read again from a cache, and NAME_long
 * for those that lanes keep (gy_row_is_kept of rows_launch.h). */
#define GY_ROW_KERNELS(name, DO)                                                                                       \
    DO(name##_f16, false, __half, float)                                                                               \
    DO(name##_bf16, false, __nv_bfloat16, float)                                                                       \
    DO(name##_f32, false, float, float)                                                                                \
    DO(name##_f64, false, double, double)                                                                              \
    DO(name##_long_f16, true, __half, float)                                                                           \
    DO(name##_long_bf16, true, __nv_bfloat16, float)                                                                   \
    DO(name##_long_f32, true, float, float)                                                                            \
    DO(name##_long_f64, true, double, double)

/* DO(name, PACKS, type, wide): the same for rows of at most so many packs a lane, which stay in registers
 * (gy_row_form of rows_launch.h). */
#define GY_HELD_ROW_KERNELS_OF(name, PACKS, DO)                                                                        \
    DO(name##_held##PACKS##_f16, PACKS, __half, float)                                                                 \
    DO(name##_held##PACKS##_bf16, PACKS, __nv_bfloat16, float)                                                         \
    DO(name##_held##PACKS##_f32, PACKS, float, float)                                                                  \
    DO(name##_held##PACKS##_f64, PACKS, double, double)
#define GY_HELD_ROW_KERNELS(name, DO)                                                                                  \
    GY_HELD_ROW_KERNELS_OF(name, 2, DO)                                                                                \
    GY_HELD_ROW_KERNELS_OF(name, 4, DO)                                                                                \
    GY_HELD_ROW_KERNELS_OF(name, 8, DO)
#define GY_HELD_ROW_BOUNDS(PACKS) GY_LANES *GY_ROW_WARPS, (PACKS) <= 2 ? 5 : (PACKS) <= 4 ? 4 : 3

/* The part of its row that a lane has when the kernel reads it again: none, as short rows are still in a cache. */
template <bool LONG> struct gy_row_kept {
    enum { LAST_AHEAD = true }; /* the last packs are loaded together */
    template <bool PACKED, bool AGAIN, typename T> __device__ gy_pack<T> read(const T *x, int count, int) const
    {
        return gy_load_pack<PACKED>(x, count);
    }
};

/* Long rows of all blocks do not stay in the caches between two readings. So a lane keeps the packs that it reads first,
 * for itself, in shared memory: nobody waits for anybody. */
template <> struct gy_row_kept<true> {
    enum { PACKS = 10, STEP = GY_LANES * GY_ROW_WARPS, LAST_AHEAD = false };
    uint4 *mine; /* of this lane: pack i is mine[i * STEP] */

    __device__ gy_row_kept()
    {
        __shared__ uint4 pack[PACKS * STEP];
        mine = pack + threadIdx.x;
    }

    template <bool PACKED, bool AGAIN, typename T> __device__ gy_pack<T> read(const T *x, int count, int i) const
    {
        gy_pack<T> v;
        if (AGAIN && i < PACKS) {
            v.bits = mine[i * STEP];
            return v;
        }
        v = gy_load_pack<PACKED>(x, count);
        if (!AGAIN && i < PACKS)
            mine[i * STEP] = v.bits;
        return v;
    }
};

/* Calls f(c, pack, count) for the packs of this lane, in their order: columns c to c + count of x, which is read for the
 * first time or AGAIN. Some are loaded ahead, of short rows the last ones too: sums in a stated order wait for each other,
 * and loads need not. */
template <bool PACKED, bool AGAIN = false, typename T, typename F, typename Kept = gy_row_kept<false>>
static __device__ inline void gy_each_pack(const T *__restrict__ x, int64_t width, const F &f, const Kept &kept = Kept())
{
    const int most = gy_pack<T>::COUNT, ahead = 4;
    const int64_t step = (int64_t)most * blockDim.x;
    int64_t c = threadIdx.x * most;
    int i = 0;
    gy_pack<T> v[ahead];
    for (; PACKED && c + (ahead - 1) * step < width; c += ahead * step, i += ahead) {
#pragma unroll
        for (int k = 0; k < ahead; k++)
            v[k] = kept.template read<PACKED, AGAIN>(x + c + k * step, most, i + k);
#pragma unroll
        for (int k = 0; k < ahead; k++)
            f(c + k * step, v[k], most);
    }
    const bool last_ahead = PACKED && Kept::LAST_AHEAD;
#pragma unroll
    for (int k = 0; k < ahead - 1; k++)
        if (last_ahead && c + k * step < width)
            v[k] = kept.template read<PACKED, AGAIN>(x + c + k * step, most, i + k);
#pragma unroll
    for (int k = 0; k < ahead - 1; k++)
        if (last_ahead && c + k * step < width)
            f(c + k * step, v[k], most);
    for (; !last_ahead && c < width; c += step, i++) {
        const int count = PACKED || c + most <= width ? most : (int)(width - c);
        f(c, kept.template read<PACKED, AGAIN>(x + c, count, i), count);
    }
}

/* All packs that a lane has of a short row, loaded together. */
template <int PACKS, typename T> struct gy_row_held {
    mutable gy_pack<T> pack[PACKS];
};

/* A way for rows that are not in packs. */
template <bool LONG> static __device__ inline const gy_row_kept<LONG> &gy_row_unpacked(const gy_row_kept<LONG> &kept)
{
    return kept;
}
template <int PACKS, typename T> static __device__ inline gy_row_kept<false> gy_row_unpacked(const gy_row_held<PACKS, T> &)
{
    return gy_row_kept<false>();
}

template <bool PACKED, bool AGAIN = false, int PACKS, typename T, typename F>
static __device__ inline void gy_each_pack(const T *__restrict__ x, int64_t width, const F &f,
                                           const gy_row_held<PACKS, T> &held)
{
    const int most = gy_pack<T>::COUNT, step = most * GY_LANES;
    const int first = threadIdx.x * most, end = (int)width;
#pragma unroll
    for (int i = 0; i < PACKS && !AGAIN; i++)
        held.pack[i].bits = first + i * step < end ? *(const uint4 *)(x + first + i * step) : uint4{ 0, 0, 0, 0 };
#pragma unroll
    for (int i = 0; i < PACKS; i++)
        if (first + i * step < end)
            f(first + i * step, held.pack[i], most);
}

/* That of all lanes, to each of them, where join() of two is the same either way round. All threads of a block that has
 * one row come here. */
template <typename V, typename F> static __device__ inline V gy_lanes_join(V x, const F &join)
{
    __shared__ V room[GY_ROW_WARPS][GY_LANES];
    const unsigned lane = threadIdx.x % GY_LANES, warp = threadIdx.x / GY_LANES;
    if (blockDim.x > GY_LANES) {
        V of[GY_ROW_WARPS]; /* in each warp the same, in halves, so that nobody waits for half of the block at a time */
        __syncthreads(); /* others have read what was there */
        room[warp][lane] = x;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < GY_ROW_WARPS; i++)
            of[i] = room[i][lane];
#pragma unroll
        for (int half = GY_ROW_WARPS / 2; half > 0; half /= 2)
#pragma unroll
            for (int i = 0; i < half; i++)
                of[i] = join(of[i], of[i + half]);
        x = of[0];
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
