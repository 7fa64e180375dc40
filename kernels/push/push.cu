/* SPDX-License-Identifier: Apache-2.0 */
/* A collective in one meeting (push.h): several parts at once (blockIdx.y), which get what kernels/combine would give
 * them, by the same arithmetic in the same order. A thread has the same lines of its own source, of the slots and of the
 * target, so the target may be the source. A block stores its lines, meets, and combines. */
#include "kernels/begin.cuh"
#include "kernels/combine/combine.cuh"
#include "kernels/element.cuh"
#include "kernels/push/push.h"
#include "kernels/resident/counters.cuh"

enum { AT_ONCE = 4 };
struct batch { /* push_launch.c has the same */
    gy_push_part at[GY_PUSH_PARTS];
};

/* The elements that a thread loads, sends and combines at once. */
template <typename T> union gy_line {
    enum { COUNT = GY_PUSH_LINE / sizeof(T) };
    uint4 bits;
    T at[COUNT];
};

/* Line i of the source. Elements behind the last are zeros. */
template <typename T> static __device__ gy_line<T> load_line(const T *from, int64_t n, int64_t i)
{
    const T *at = from + i * gy_line<T>::COUNT;
    gy_line<T> line = {};
    if ((i + 1) * line.COUNT <= n && (uintptr_t)at % sizeof line == 0) {
        line.bits = ((const gy_line<T> *)at)->bits;
        return line;
    }
#pragma unroll
    for (int k = 0; k < line.COUNT; k++)
        if (i * line.COUNT + k < n)
            line.at[k] = at[k];
    return line;
}

template <typename T> static __device__ void store_line(T *to, int64_t n, int64_t i, const gy_line<T> &line)
{
    T *at = to + i * line.COUNT;
    if ((i + 1) * line.COUNT <= n && (uintptr_t)at % sizeof line == 0) {
        ((gy_line<T> *)at)->bits = line.bits;
        return;
    }
#pragma unroll
    for (int k = 0; k < line.COUNT; k++)
        if (i * line.COUNT + k < n)
            at[k] = line.at[k];
}

/* ---- a block ---- */

struct block {
    const gy_push *with;
    const gy_push_part *part;
    const uint64_t *number; /* per peer: which meeting this is */
    uint64_t index;
    int64_t first, count; /* its lines */
};

static __device__ uint64_t slot(const block &b, uint32_t peer)
{
    return (2 * b.index + b.number[peer] % 2) * b.with->slot_bytes;
}

template <typename T> static __device__ void send_all(const block &b)
{
    const gy_push_part &p = *b.part;
    for (int64_t i = threadIdx.x; i < b.count && p.source && p.takers; i += blockDim.x) {
        const gy_line<T> line = load_line((const T *)p.source, p.n, b.first + i);
        for (uint32_t k = 0; k < b.with->peers; k++)
            if (p.takers >> k & 1)
                ((gy_line<T> *)(b.with->peer[k].to + slot(b, k)))[i].bits = line.bits;
    }
}

/* A line of source k. */
template <typename T> static __device__ gy_line<T> take(const block &b, uint32_t k, int64_t i)
{
    const uint32_t from = b.part->order[k];
    if (from == GY_PUSH_SELF)
        return load_line((const T *)b.part->source, b.part->n, b.first + i);
    gy_line<T> line;
    line.bits = ((const gy_line<T> *)(b.with->peer[from].from + slot(b, from)))[i].bits;
    return line;
}

/* Line i of the target. Loads of AT_ONCE sources are in flight. */
template <typename T, typename Own, typename F> static __device__ void combine_line(const block &b, int64_t i, const F &f)
{
    const gy_push_part &p = *b.part;
    Own so_far[gy_line<T>::COUNT] = {};
#pragma unroll 1
    for (int s = 0; s < p.sources; s += AT_ONCE) {
        gy_line<T> next[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            if (s + j < p.sources)
                next[j] = take<T>(b, s + j, i);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (s + j >= p.sources)
                break;
#pragma unroll
            for (int k = 0; k < gy_line<T>::COUNT; k++) {
                const Own x = gy_element<Own>::load(next[j].at[k]);
                so_far[k] = s + j ? f(so_far[k], x) : x;
            }
        }
    }
    gy_line<T> result;
#pragma unroll
    for (int k = 0; k < result.COUNT; k++)
        result.at[k] = gy_element<Own>::template store<T>(so_far[k]);
    store_line((T *)p.target, p.n, b.first + i, result);
}

template <typename T, typename Own, typename F> static __device__ void combine_all(const block &b, const F &f)
{
    for (int64_t i = threadIdx.x; i < b.count && b.part->target; i += blockDim.x)
        combine_line<T, Own>(b, i, f);
}

template <typename T> static __device__ void find_lines(block *b)
{
    const int64_t lines = ((int64_t)b->part->n + gy_line<T>::COUNT - 1) / gy_line<T>::COUNT;
    const int64_t each = (lines + gridDim.x - 1) / gridDim.x, left = lines - blockIdx.x * each;
    b->first = blockIdx.x * each;
    b->count = left < each ? left : each;
}

/* A thread for each peer. */
static __device__ void begin_meeting(const block &b, uint64_t *number)
{
    if (threadIdx.x < b.with->peers) {
        uint64_t *met = (uint64_t *)b.with->peer[threadIdx.x].counters.met + b.index;
        *met = number[threadIdx.x] = *met + 1;
    }
    __syncthreads();
}
static __device__ void tell(const block &b)
{
    if (threadIdx.x < b.with->peers)
        release((uint64_t *)(b.with->peer[threadIdx.x].counters.tell + b.index * GY_MEETING_STEP), b.number[threadIdx.x]);
}
/* False: the start has failed. */
static __device__ bool hear(const block &b)
{
    return threadIdx.x >= b.with->peers ||
           await((const uint64_t *)(b.with->peer[threadIdx.x].counters.hear + b.index * GY_MEETING_STEP),
                 b.number[threadIdx.x], false);
}

template <typename T, typename Own, typename F>
static __device__ void push(const batch &all, const gy_push &with, const F &f)
{
    __shared__ uint64_t number[GY_MEETING_PEERS];
    block b = { &with, &all.at[blockIdx.y], number, (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, 0, 0 };
    begin_meeting(b, number);
    find_lines<T>(&b);
    send_all<T>(b);
    __syncthreads();
    tell(b);
    if (!__syncthreads_or(!hear(b)))
        combine_all<T, Own>(b, f);
}

#define KERNEL(name, suffix, type, own, wide)                                                                          \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        push_##name##_##suffix(const __grid_constant__ batch b, const __grid_constant__ gy_push with)                  \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        push<type, own>(b, with, with_##name<own, wide>());                                                            \
    }
GY_COMBINED(KERNEL)
