/* SPDX-License-Identifier: Apache-2.0 */
/* A collective in one meeting (push.h): several parts at once (blockIdx.y), which get what kernels/combine would give
 * them, by the same arithmetic in the same order. A thread has the same lines of its own source, of the slots and of the
 * target, so the target may be the source.
 *
 * Without flags a block stores its lines, meets, and combines. With flags it tells first that it has begun, and a line is
 * there when both its flags say so: eight bytes, four of data and four of the number, are stored as one, and seen as one.
 * It ends when all peers have begun, so that in both ways who has ended knows that of all. */
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
template <typename T, typename Bits> union gy_line {
    enum { COUNT = sizeof(Bits) / sizeof(T) };
    Bits bits;
    T at[COUNT];
};
template <typename T> using flagged = gy_line<T, uint2>;
template <typename T> using whole = gy_line<T, uint4>;

/* Line i of the source. Elements behind the last are zeros. */
template <typename Line, typename T> static __device__ Line load_line(const T *from, int64_t n, int64_t i)
{
    const T *at = from + i * Line::COUNT;
    Line line = {};
    if ((i + 1) * Line::COUNT <= n && (uintptr_t)at % sizeof line == 0) {
        line.bits = ((const Line *)at)->bits;
        return line;
    }
#pragma unroll
    for (int k = 0; k < Line::COUNT; k++)
        if (i * Line::COUNT + k < n)
            line.at[k] = at[k];
    return line;
}

template <typename Line, typename T> static __device__ void store_line(T *to, int64_t n, int64_t i, const Line &line)
{
    T *at = to + i * Line::COUNT;
    if ((i + 1) * Line::COUNT <= n && (uintptr_t)at % sizeof line == 0) {
        ((Line *)at)->bits = line.bits;
        return;
    }
#pragma unroll
    for (int k = 0; k < Line::COUNT; k++)
        if (i * Line::COUNT + k < n)
            at[k] = line.at[k];
}

/* ---- lines in slots ---- */

template <typename T> static __device__ void send(char *to, const whole<T> &line, uint32_t)
{
    ((whole<T> *)to)->bits = line.bits;
}
template <typename T> static __device__ void send(char *to, const flagged<T> &line, uint32_t flag)
{
    const uint64_t high = (uint64_t)flag << 32;
    store_pair((uint64_t *)to, high | line.bits.x, high | line.bits.y);
}

template <typename T> static __device__ bool receive(const char *from, whole<T> *line, uint32_t)
{
    line->bits = ((const whole<T> *)from)->bits;
    return true;
}
template <typename T> static __device__ bool receive(const char *from, flagged<T> *line, uint32_t flag)
{
    uint64_t a, b;
    load_pair((const uint64_t *)from, &a, &b);
    line->bits = make_uint2((uint32_t)a, (uint32_t)b);
    return (uint32_t)(a >> 32) == flag && (uint32_t)(b >> 32) == flag;
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

template <typename Line, typename T> static __device__ void send_all(const block &b)
{
    const gy_push_part &p = *b.part;
    for (int64_t i = threadIdx.x; i < b.count && p.source && p.takers; i += blockDim.x) {
        const Line line = load_line<Line>((const T *)p.source, p.n, b.first + i);
        for (uint32_t k = 0; k < b.with->peers; k++)
            if (p.takers >> k & 1)
                send((char *)(b.with->peer[k].to + slot(b, k)) + i * GY_PUSH_LINE, line, (uint32_t)b.number[k]);
    }
}

/* A line of a source; false: it is not there yet. */
template <typename Line, typename T> static __device__ bool look(const block &b, uint32_t k, int64_t i, Line *line)
{
    const uint32_t from = b.part->order[k];
    if (from != GY_PUSH_SELF)
        return receive((const char *)(b.with->peer[from].from + slot(b, from)) + i * GY_PUSH_LINE, line,
                       (uint32_t)b.number[from]);
    *line = load_line<Line>((const T *)b.part->source, b.part->n, b.first + i);
    return true;
}

/* The same, once it is there. False: the start has failed. */
template <typename Line, typename T> static __device__ bool take(const block &b, uint32_t k, int64_t i, Line *line)
{
    for (uint32_t polls = 1; !look<Line, T>(b, k, i, line); polls++) {
        const uint64_t hear = b.with->peer[b.part->order[k]].counters.hear + b.index * GY_MEETING_STEP;
        if (polls % 32 == 0 && acquire((const uint64_t *)hear) >= GY_COUNTER_STOP)
            return false;
        pause();
    }
    return true;
}

/* Line i of the target. Loads of AT_ONCE sources are in flight. */
template <typename Line, typename T, typename Own, typename F>
static __device__ bool combine_line(const block &b, int64_t i, const F &f)
{
    const gy_push_part &p = *b.part;
    Own so_far[Line::COUNT] = {};
#pragma unroll 1
    for (int s = 0; s < p.sources; s += AT_ONCE) {
        Line next[AT_ONCE];
        bool there[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            there[j] = s + j >= p.sources || look<Line, T>(b, s + j, i, &next[j]);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (s + j >= p.sources)
                break;
            if (!there[j] && !take<Line, T>(b, s + j, i, &next[j]))
                return false;
#pragma unroll
            for (int k = 0; k < Line::COUNT; k++) {
                const Own x = gy_element<Own>::load(next[j].at[k]);
                so_far[k] = s + j ? f(so_far[k], x) : x;
            }
        }
    }
    Line result;
#pragma unroll
    for (int k = 0; k < Line::COUNT; k++)
        result.at[k] = gy_element<Own>::template store<T>(so_far[k]);
    store_line((T *)p.target, p.n, b.first + i, result);
    return true;
}

template <typename Line, typename T, typename Own, typename F> static __device__ void combine_all(const block &b, const F &f)
{
    bool well = true;
    for (int64_t i = threadIdx.x; i < b.count && b.part->target && well; i += blockDim.x)
        well = combine_line<Line, T, Own>(b, i, f);
}

template <typename Line, typename T> static __device__ void find_lines(block *b)
{
    const int64_t lines = ((int64_t)b->part->n + Line::COUNT - 1) / Line::COUNT;
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
    if (with.flags) {
        find_lines<flagged<T>, T>(&b);
        tell(b);
        send_all<flagged<T>, T>(b);
        combine_all<flagged<T>, T, Own>(b, f);
        hear(b);
        return;
    }
    find_lines<whole<T>, T>(&b);
    send_all<whole<T>, T>(b);
    __syncthreads();
    tell(b);
    if (!__syncthreads_or(!hear(b)))
        combine_all<whole<T>, T, Own>(b, f);
}

#define KERNEL(name, suffix, type, own, wide)                                                                          \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        push_##name##_##suffix(const __grid_constant__ batch b, const __grid_constant__ gy_push with)                  \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        push<type, own>(b, with, with_##name<own, wide>());                                                            \
    }
GY_COMBINED(KERNEL)
