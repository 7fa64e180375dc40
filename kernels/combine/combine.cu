/* SPDX-License-Identifier: Apache-2.0 */
/* The step of every collective: several parts at once (blockIdx.y), each with sources and targets of its own. All
 * targets of a part get ((source 0 (+) source 1) (+) source 2) ..., with the order and arithmetic of src/run/reduce.c; of
 * one source that is a copy. An element is read, then written, by one thread, so a target may be a source. Sources and
 * targets may be memory of peers. Kernels of several GPUs may meet when they begin: then what their streams did before is
 * done on all of them; when they end: then what they stored is seen behind each of them. */
#include "kernels/begin.cuh"
#include "kernels/combine/combine.cuh"
#include "kernels/combine/meeting.h"
#include "kernels/element.cuh"
#include "kernels/resident/counters.cuh"

enum { MOST_ENDS = 128, MOST_PARTS = 64, AT_ONCE = 8 }; /* launch_combine.c has the same structs */
struct part {
    int64_t n;                              /* elements */
    uint16_t first, sources, targets, head; /* ends from `first` on; NEVER, or aligned to 16 bytes from `head` on */
};
struct batch {
    void *end[MOST_ENDS];
    part at[MOST_PARTS];
};
enum { NEVER = 0xFFFF };

/* As a pack, of one element. */
template <typename T> union gy_single {
    enum { COUNT = 1 };
    T at[1];
};

template <typename T> static __device__ void put(gy_pack<T> *to, const gy_pack<T> &x)
{
    to->bits = x.bits;
}
template <typename T> static __device__ void put(gy_single<T> *to, const gy_single<T> &x)
{
    to->at[0] = x.at[0];
}

/* One pack, or one element. Loads of AT_ONCE sources are in flight: over a link each takes more than a microsecond. */
template <typename Pack, typename T, typename Own, typename F>
static __device__ void combine_one(const batch &b, const part &p, int64_t at, const F &f)
{
    Own so_far[Pack::COUNT] = {};
#pragma unroll 1
    for (int s = 0; s < p.sources; s += AT_ONCE) {
        Pack next[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            if (s + j < p.sources)
                next[j] = gy_load((const Pack *)((const T *)b.end[p.first + s + j] + at));
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            if (s + j < p.sources) {
#pragma unroll
                for (int k = 0; k < Pack::COUNT; k++) {
                    const Own x = gy_element<Own>::load(next[j].at[k]);
                    so_far[k] = s + j ? f(so_far[k], x) : x;
                }
            }
    }
    Pack result;
#pragma unroll
    for (int k = 0; k < Pack::COUNT; k++)
        result.at[k] = gy_element<Own>::template store<T>(so_far[k]);
#pragma unroll 1
    for (int t = 0; t < p.targets; t++)
        put((Pack *)((T *)b.end[p.first + p.sources + t] + at), result);
}

/* As gy_stream: in packs from `head` on, one by one before and behind them. */
template <typename T, typename Own, typename F>
static __device__ void combine(const batch &b, const part p, const F &f)
{
    const int count = gy_pack<T>::COUNT;
    const int64_t head = p.head < p.n && p.head != NEVER ? p.head : p.n, packs = (p.n - head) / count;
    GY_FOR_EACH (i, packs) {
        combine_one<gy_pack<T>, T, Own>(b, p, head + i * count, f);
    }
    GY_FOR_EACH (k, p.n - packs * count) {
        combine_one<gy_single<T>, T, Own>(b, p, k < head ? k : k + packs * count, f);
    }
}

/* A thread for each peer. What came before on its GPU, and what its block has stored before a barrier, is seen by who
 * hears of that block. False: the start has failed. */
static __device__ bool meet(const gy_combine_meeting &with)
{
    bool well = true;
    if (threadIdx.x < with.peers) {
        const gy_combine_peer &peer = with.peer[threadIdx.x];
        const uint32_t block = blockIdx.y * gridDim.x + blockIdx.x;
        uint64_t *met = (uint64_t *)peer.met + block;
        const uint64_t number = *met + 1;
        *met = number;
        release((uint64_t *)(peer.tell + block * GY_MEETING_STEP), number);
        well = await((const uint64_t *)(peer.hear + block * GY_MEETING_STEP), number, false);
    }
    return !__syncthreads_or(!well);
}

#define KERNEL(name, suffix, type, own, wide)                                                                          \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        combine_##name##_##suffix(const __grid_constant__ batch b, const __grid_constant__ gy_combine_meeting with)            \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        if (with.begins && !meet(with))                                                                                \
            return;                                                                                                    \
        combine<type, own>(b, b.at[blockIdx.y], with_##name<own, wide>());                                             \
        if (with.ends) {                                                                                               \
            __syncthreads();                                                                                           \
            meet(with);                                                                                                \
        }                                                                                                              \
    }
GY_COMBINED(KERNEL)
