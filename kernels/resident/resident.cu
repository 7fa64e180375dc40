/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that carries out the ops of a GPU for a whole start, from its program (resident.h). All its blocks run at once, as a
 * cooperative launch: each is a worker, which waits for others by counters in memory of GPUs. The functions that it calls
 * are those of the library, from the same source, where gy_begin does nothing: a counter has been awaited instead.
 *
 * Memory order. One thread awaits a counter by an acquire at system scope, then the block meets at a barrier: so all its
 * threads see what came before the signal. A block meets at a barrier before one of its threads signals by a release.
 * What a function reads is written by others while the kernel runs. So it must not be read as if it never changed:
 * __restrict__, from which the compiler would conclude just that, means nothing here.
 */
#include "kernels/resident/resident.h"

#include "kernels/resident/counters.cuh"
#include "kernels/resident/places.cuh"

template <typename T> static __device__ inline T &gy_shared_as(void *bytes)
{
    static_assert(sizeof(T) <= GY_RESIDENT_KEPT, "shared memory is as large as the largest piece");
    return *(T *)bytes;
}
#define GY_SHARED(type, name) type &name = gy_shared_as<type>(gy_shared_bytes())
#define GY_KERNELS_BEGIN_CUH
static __device__ inline void gy_begin(void) {}

#pragma push_macro("__global__")
#pragma push_macro("__launch_bounds__")
#pragma push_macro("__restrict__")
#undef __global__
#undef __launch_bounds__
#undef __restrict__
#define __global__ __device__
#define __launch_bounds__(...)
#define __restrict__

#define blockIdx gy_here().block
#define gridDim  gy_here().blocks
#define blockDim gy_row()
#include "kernels/chunk.cuh"
#include "kernels/combine/combine.cuh"
#include "kernels/element.cuh"
#include "kernels/philox4.h"
#include "kernels/reduce.cuh"
#include "kernels/status.cuh"

namespace of_add {
#include "kernels/add/add.cu"
#undef KERNEL
}
namespace of_axpby {
#include "kernels/axpby/axpby.cu"
#undef KERNEL
}
namespace of_busy {
#include "kernels/busy/busy.cu"
#undef KERNEL
}
namespace of_copy {
#include "kernels/copy/copy.cu"
#undef KERNEL
}
namespace of_dot {
#include "kernels/dot/dot.cu"
#undef KERNEL
}
namespace of_fill {
#include "kernels/fill/fill.cu"
#undef KERNEL
#undef BOX
#undef BOXED
}
namespace of_mul {
#include "kernels/mul/mul.cu"
#undef KERNEL
}
namespace of_reduce_max {
#include "kernels/reduce_max/reduce_max.cu"
#undef KERNEL
#undef TYPES
}
namespace of_reduce_sum {
#include "kernels/reduce_sum/reduce_sum.cu"
#undef KERNEL
}
namespace of_relu {
#include "kernels/relu/relu.cu"
#undef KERNEL
}
namespace of_relu_grad {
#include "kernels/relu_grad/relu_grad.cu"
#undef KERNEL
}
namespace of_saxpy {
#include "kernels/saxpy/saxpy.cu"
#undef KERNEL
}
namespace of_scale {
#include "kernels/scale/scale.cu"
#undef KERNEL
}
namespace of_sgd_update {
#include "kernels/sgd_update/sgd_update.cu"
#undef KERNEL
}
namespace of_spmv_csr {
#include "kernels/spmv_csr/spmv_csr.cu"
#undef KERNEL
}
namespace of_transpose {
#include "kernels/transpose/transpose.cu"
#undef KERNEL
}
/* Those with blocks of two dimensions. */
#define threadIdx gy_thread()
#undef blockDim
#define blockDim gy_here().threads
namespace of_bias_add {
#include "kernels/bias_add/bias_add.cu"
#undef KERNEL
}
namespace of_jacobi2d {
#include "kernels/jacobi2d/jacobi2d.cu"
#undef KERNEL
#undef THIN
}
#undef threadIdx

/* ---- copies and fills ---- */

template <typename T> static __device__ void copy_elements(const T *from, T *to, uint32_t count)
{
    enum { AT_ONCE = 4, STEP = AT_ONCE * GY_RESIDENT_THREADS };
    for (uint32_t first = threadIdx.x; first < count; first += STEP) {
        T x[AT_ONCE];
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++)
            if (first + k * GY_RESIDENT_THREADS < count)
                x[k] = from[first + k * GY_RESIDENT_THREADS];
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++)
            if (first + k * GY_RESIDENT_THREADS < count)
                to[first + k * GY_RESIDENT_THREADS] = x[k];
    }
}

/* A block has GY_RESIDENT_CHUNK bytes. */
static __device__ void resident_copy(const char *from, char *to, uint64_t bytes)
{
    uint64_t first = (uint64_t)blockIdx.x * GY_RESIDENT_CHUNK;
    uint32_t count = GY_RESIDENT_CHUNK;
    if (bytes - first < count)
        count = (uint32_t)(bytes - first);
    uintptr_t bits = (uintptr_t)(from + first) | (uintptr_t)(to + first) | count;
    if (bits % sizeof(uint4) == 0)
        copy_elements((const uint4 *)(const void *)(from + first), (uint4 *)(void *)(to + first), count / 16);
    else if (bits % sizeof(uint32_t) == 0)
        copy_elements((const uint32_t *)(const void *)(from + first), (uint32_t *)(void *)(to + first), count / 4);
    else
        copy_elements(from + first, to + first, count);
}

template <typename T> static __device__ void fill_elements(void *to, T value, uint64_t bytes)
{
    uint64_t first = (uint64_t)blockIdx.x * GY_RESIDENT_CHUNK;
    uint64_t last = bytes - first < GY_RESIDENT_CHUNK ? bytes : first + GY_RESIDENT_CHUNK;
    for (uint64_t i = first / sizeof(T) + threadIdx.x; i < last / sizeof(T); i += GY_RESIDENT_THREADS)
        ((T *)to)[i] = value;
}

/* Of at most a chunk in multiples of 16 bytes: fewer registers, which a call does not have to save. */
static __device__ void resident_copy_small(const uint4 *from, uint4 *to, uint32_t count)
{
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < count; i += GY_RESIDENT_THREADS)
        to[i] = from[i];
}

/* The lowest bytes of `bits`, an element of `size`, again and again. */
static __device__ void resident_fill(void *to, uint64_t bits, uint64_t size, uint64_t bytes)
{
    switch (size) {
    case 1:
        return fill_elements(to, (uint8_t)bits, bytes);
    case 2:
        return fill_elements(to, (uint16_t)bits, bytes);
    case 4:
        return fill_elements(to, (uint32_t)bits, bytes);
    default:
        return fill_elements(to, bits, bytes);
    }
}

/* ---- collectives ---- */

/* As kernels/combine does. An element is read, then written, by one thread, so a target may be a source. */
template <typename T, typename Own, typename F>
static __device__ void combine_all(uint64_t n, uint32_t sources, uint32_t ends, T *const (&end)[GY_RESIDENT_ENDS], const F &f)
{
    for (uint64_t i = (uint64_t)blockIdx.x * GY_RESIDENT_THREADS + threadIdx.x; i < n; i += (uint64_t)gridDim.x * GY_RESIDENT_THREADS) {
        T x[GY_RESIDENT_ENDS];
#pragma unroll
        for (uint32_t k = 0; k < GY_RESIDENT_ENDS; k++)
            if (k < sources)
                x[k] = end[k][i];
        Own so_far = gy_element<Own>::load(x[0]);
#pragma unroll
        for (uint32_t k = 1; k < GY_RESIDENT_ENDS; k++)
            if (k < sources)
                so_far = f(so_far, gy_element<Own>::load(x[k]));
        const T result = gy_element<Own>::template store<T>(so_far);
#pragma unroll
        for (uint32_t k = 1; k < GY_RESIDENT_ENDS; k++)
            if (k >= sources && k < ends)
                end[k][i] = result;
    }
}

#define COMBINE(op, suffix, type, own, wide)                                                                           \
    static __device__ void resident_##op##_##suffix(uint64_t n, uint32_t sources, uint32_t ends, type *a, type *b, type *c, \
                                                    type *d, type *e, type *f, type *g, type *h, type *i, type *j)     \
    {                                                                                                                  \
        type *const end[] = { a, b, c, d, e, f, g, h, i, j };                                                          \
        combine_all<type, own>(n, sources, ends, end, with_##op<own, wide>());                                         \
    }
GY_COMBINED(COMBINE)

#undef blockIdx
#undef gridDim
#undef blockDim
#pragma pop_macro("__global__")
#pragma pop_macro("__launch_bounds__")
#pragma pop_macro("__restrict__")

/* ---- calls ---- */

using namespace of_add;
using namespace of_axpby;
using namespace of_bias_add;
using namespace of_busy;
using namespace of_copy;
using namespace of_dot;
using namespace of_jacobi2d;
using namespace of_fill;
using namespace of_mul;
using namespace of_reduce_max;
using namespace of_reduce_sum;
using namespace of_relu;
using namespace of_relu_grad;
using namespace of_saxpy;
using namespace of_scale;
using namespace of_sgd_update;
using namespace of_spmv_csr;
using namespace of_transpose;

template <typename T> static __device__ inline T param(const uint64_t *word)
{
    static_assert(sizeof(T) <= sizeof *word, "a parameter is a word");
    const uint64_t bits = *word; /* in one load, where memcpy would load bytes */
    T value;
    memcpy(&value, &bits, sizeof value);
#ifdef __CUDA_ARCH__
    if constexpr (std::is_pointer<T>::value)
        __builtin_assume(__isGlobal(value)); /* or each load asks which memory it is */
#endif
    return value;
}

/* A function of the list as one of the parameters of a packet: from word `first` of `staged` on. */
template <typename F> struct caller;
template <typename... A> struct caller<void (*)(A...)> {
    template <void (*F)(A...), int... I>
    static __device__ inline void call(const uint64_t *word, std::integer_sequence<int, I...>)
    {
        F(param<A>(word + I)...);
    }
    template <void (*F)(A...)> static __device__ __forceinline__ void call_inline(uint32_t first)
    {
        const uint64_t *word = (const uint64_t *)staged + first;
        call<F>(word, std::make_integer_sequence<int, (int)sizeof...(A)>());
    }
    template <void (*F)(A...)> static __device__ void call(uint32_t first) { call_inline<F>(first); }
};

/* A table, since what the compiler makes of a switch takes longer to find one of so many. */
typedef void (*function)(uint32_t first);
static __constant__ const function functions[] = {
    nullptr,
#define FUNCTION(name) caller<decltype(&name)>::template call<name>,
#include "kernels/resident/functions.def"
};

#ifdef GY_RESIDENT_OPEN
/* Functions that are compiled while a run is made, and linked to this code: number 0 and so on of these, for block (x, y) of so many
 * along each axis (src/backends/cuda/resident/linked.c). */
extern "C" __device__ void gy_linked(uint32_t number, const uint64_t *word, uint32_t x, uint32_t y, uint32_t blocks_x, uint32_t blocks_y);
#endif

static __device__ __forceinline__ void call(uint32_t function, uint32_t first)
{
    switch (function) {
#define FUNCTION(name)
#define INLINE(name)                                                                                                   \
    case GY_RESIDENT_##name:                                                                                           \
        return caller<decltype(&name)>::template call_inline<name>(first);
#include "kernels/resident/functions.def"
    default:
#ifdef GY_RESIDENT_OPEN
        if (function >= GY_RESIDENT_FUNCTIONS) {
            const uint64_t *word = (const uint64_t *)staged + first;
            const uint32_t number = (function & ~(uint32_t)GY_RESIDENT_FAR) - GY_RESIDENT_FUNCTIONS;
            word = function & GY_RESIDENT_FAR ? (const uint64_t *)*word : word;
            return gy_linked(number, word, gy_here().block.x, gy_here().block.y, gy_here().blocks.x, gy_here().blocks.y);
        }
#endif
        return functions[function](first);
    }
}

/* ---- counters ---- */

#ifdef CUDA_EMULATOR_H
static inline void add_near(uint64_t *at) { emulator_release(at, emulator_relaxed_load(at) + 1); }
static inline void set_near(uint64_t *at, uint64_t value) { emulator_relaxed_store(at, value); }
static inline uint64_t look_at(const uint64_t *at) { return emulator_relaxed_load(at); }
static inline void tell(uint64_t *at, uint64_t value) { emulator_relaxed_store(at, value); }
static inline void copy_ahead(uint4 *to, const uint4 *from) { *to = *from; }
static inline void end_copies(void) {}
template <int UNENDED> static inline void await_copies(void) {}
#else
/* Among the workers of a GPU. */
static __device__ inline void add_near(uint64_t *at)
{
    asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(at) : "memory");
}
static __device__ inline void set_near(uint64_t *at, uint64_t value)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
static __device__ inline uint64_t look_at(const uint64_t *at)
{
    uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
static __device__ inline void tell(uint64_t *at, uint64_t value)
{
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
/* A copy to shared memory that goes on beside what follows; a group of them ends; all groups but the last few are there. */
static __device__ inline void copy_ahead(uint4 *to, const uint4 *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
static __device__ inline void end_copies(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int UNENDED> static __device__ inline void await_copies(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(UNENDED) : "memory");
}
#endif

/* ---- workers ---- */

struct worker {
    gy_resident_worker me;
    uint64_t epoch;
};

/* A packet without its words, in few loads. */
static __device__ gy_resident_packet head_of(uint32_t stage)
{
    enum { HEAD = offsetof(gy_resident_packet, word) / sizeof(uint4) };
    static_assert(offsetof(gy_resident_packet, word) % sizeof(uint4) == 0, "the head is loaded in words of 16 bytes");
    union {
        uint4 quad[HEAD];
        gy_resident_packet packet;
    } head;
    for (int i = 0; i < HEAD; i++)
        head.quad[i] = ((const uint4 *)&staged[stage])[i];
    return head.packet;
}

/* By a warp, for its threads. `word`: of `staged`, where the packet's sends begin. */
static __device__ void place_warp(const gy_resident_packet &p, uint32_t block, uint32_t word)
{
    gy_warp here = { { block, 0 }, { p.blocks_x, p.blocks_y }, { p.threads_x, p.threads_y }, p.sends, word };
    if (p.blocks_y > 1)
        here.block = { block % p.blocks_x, block / p.blocks_x };
    __syncwarp(); /* all have read the place before */
    if (threadIdx.x % 32 == 0)
        gy_here() = here;
    __syncwarp();
}

/* Waits of a packet, a thread of the first warp each. False: the start has failed. */
static __device__ bool await_all(const worker &self, const gy_resident_packet &p, uint32_t stage)
{
    const gy_resident_wait *waits = (const gy_resident_wait *)staged[stage].word;
    bool well = true;
    for (uint32_t i = threadIdx.x; i < p.waits; i += 32) {
        const gy_resident_wait &w = waits[i];
        if (self.epoch >= w.distance)
            well = await((const uint64_t *)w.counter, (self.epoch - w.distance) * w.signals + w.value, i < p.near_waits);
    }
    return well;
}

static __device__ bool is_set(const gy_resident_asked &ask)
{
    uint64_t bits = ask.bytes == 8   ? *(const uint64_t *)ask.number
                    : ask.bytes == 4 ? *(const uint32_t *)ask.number
                    : ask.bytes == 2 ? *(const uint16_t *)ask.number
                                     : *(const uint8_t *)ask.number;
    return bits & ask.mask;
}

/* By the first warp, when its worker may begin the packet: one whose flag is 0 has no call for this block any more. The packet is
 * fetched anew for each start. */
static __device__ void ask_flag(const gy_resident_packet &p, uint32_t stage)
{
    const uint64_t *word = staged[stage].word + GY_RESIDENT_WAIT_WORDS * p.waits + GY_RESIDENT_SIGNAL_WORDS * p.signals;
    __syncwarp(); /* each thread has had its waits */
    if (threadIdx.x == 0 && !is_set(*(const gy_resident_asked *)(word + GY_RESIDENT_SEND_WORDS * p.sends)))
        staged[stage].function = GY_RESIDENT_none;
}

/* Signals [first, last), a thread of a warp each. */
static __device__ void signal_some(const worker &self, const gy_resident_packet &p, uint32_t stage, bool stopped, uint32_t first, uint32_t last)
{
    const uint64_t *word = staged[stage].word + GY_RESIDENT_WAIT_WORDS * p.waits;
    const bool more = p.asks && is_set(*(const gy_resident_asked *)(word + GY_RESIDENT_SIGNAL_WORDS * p.signals));
    for (uint32_t i = first + threadIdx.x % 32; i < last; i += 32) {
        const gy_resident_signal &g = ((const gy_resident_signal *)word)[i];
        uint64_t value = stopped ? GY_COUNTER_STOP : self.epoch * g.signals + g.value + more;
        if (i < p.near_signals)
            release_near((uint64_t *)g.counter, value);
        else
            release((uint64_t *)g.counter, value);
    }
}

/* By the first two warps: workers of this GPU are told by one, others at the same time by the other, as each waits until what was stored
 * can be seen there. A stream that goes on in the lane may signal a counter that this packet signals, too: so it is told last, and
 * then one warp does it all. */
static __device__ void signal_all(const worker &self, const gy_resident_packet &p, uint32_t stage, bool stopped)
{
    if (!p.last)
        return threadIdx.x < 32 ? signal_some(self, p, stage, stopped, 0, p.near_signals)
                                : signal_some(self, p, stage, stopped, p.near_signals, p.signals);
    if (threadIdx.x >= 32)
        return;
    signal_some(self, p, stage, stopped, 0, p.signals - p.last);
    __syncwarp();
    signal_some(self, p, stage, stopped, p.signals - p.last, p.signals);
}

/* The leader lets the helpers begin, as the first thread; a helper waits for that. False: the start has failed. */
static __device__ bool begin_shared(const worker &self, const gy_resident_packet &p, bool well)
{
    uint64_t number = self.epoch * GY_RESIDENT_SHARED + p.shared;
    if (self.me.index > 0)
        return await(&self.me.meet->go, number, true);
    release_near(&self.me.meet->go, well ? number : GY_COUNTER_STOP);
    return well;
}

/* All helpers have added to `done` when the leader sets it back, and none adds again before it lets them begin. */
static __device__ void end_shared(const worker &self, bool stopped)
{
    if (self.me.index > 0)
        return add_near(&self.me.meet->done);
    if (stopped)
        return;
    await(&self.me.meet->done, self.me.workers - 1, true);
    set_near(&self.me.meet->done, 0);
}

/* Packets are fetched AHEAD of their turn, those of the next start too, a part each by some threads of another warp than the first, which
 * others meet at a barrier when it has seen them there. When it writes to a stage, the packet that was there has ended: it is two
 * turns old, and each turn has a barrier. */
enum { QUADS = sizeof(gy_resident_packet) / sizeof(uint4), FETCHER = 64, GUARD = 96 };
static_assert(sizeof(gy_resident_packet) % sizeof(uint4) == 0, "packets are fetched in words of 16 bytes");

/* The packet that is fetched next, which turn of the worker is its, and how many turns there are in all starts. */
struct feed {
    uint32_t packet;
    uint64_t turn, turns;
};

static __device__ bool fetches(void) { return threadIdx.x / 32 == FETCHER / 32; }

static __device__ void fetch(const worker &self, feed &next)
{
    if (fetches()) {
        const uint32_t part = threadIdx.x - FETCHER;
        if (part < QUADS && next.turn < next.turns)
            copy_ahead((uint4 *)&staged[next.turn % STAGES] + part, (const uint4 *)(self.me.packet + next.packet) + part);
        end_copies();
    }
    next.turn++;
    next.packet = next.packet + 1 < self.me.ring ? next.packet + 1 : 0;
}

/* By the first warp, ahead of a packet: the others meet it at the barrier that follows. False: the start has failed. */
static __device__ bool begin(const worker &self, uint32_t stage, bool stopped)
{
    const gy_resident_packet p = head_of(stage);
    if (threadIdx.x == 0)
        tell(self.me.progress, self.epoch << 32 | (p.op + 1));
    bool well = !stopped && (p.waits == 0 || await_all(self, p, stage));
    if (p.shared) {
        well = !__any_sync(~0u, !well);
        well = threadIdx.x == 0 ? begin_shared(self, p, well) : well;
    }
    if (p.guarded)
        ask_flag(p, stage);
    return well;
}

/* Threads that wait for each other end a block together before they begin the next one. */
static __device__ void carry_out(const worker &self, uint32_t stage)
{
    gy_resident_packet p = head_of(stage);
    for (uint32_t b = p.shared ? self.me.index : 0; b < p.blocks_x * p.blocks_y;) {
        const uint32_t word = (offsetof(gy_resident_packet, word) + stage * sizeof p) / sizeof *p.word +
                              GY_RESIDENT_WAIT_WORDS * p.waits + GY_RESIDENT_SIGNAL_WORDS * p.signals;
        place_warp(p, b, word);
        call(p.function, word + GY_RESIDENT_SEND_WORDS * p.sends + GY_RESIDENT_ASK_WORDS * p.guarded);
        p = head_of(stage);
        b += p.shared ? self.me.workers : 1;
        if (p.together && b < p.blocks_x * p.blocks_y)
            __syncthreads();
    }
}

/* When all threads have done their part, which others may wait for. */
static __device__ void end(const worker &self, uint32_t stage, bool stopped)
{
    const gy_resident_packet p = head_of(stage);
    if (!p.settled)
        return;
    __syncthreads();
    if (p.shared) {
        if (threadIdx.x == 0)
            end_shared(self, stopped);
        if (p.signals)
            __syncthreads();
    }
    if (threadIdx.x < 64)
        signal_all(self, p, stage, stopped);
}

/* A barrier at the begin of a packet, and another at its end where that matters to others. What a packet has stored, the next one
 * sees by the barrier at its begin; but a leader lets its helpers begin ahead of that. True: the start has failed. */
static __device__ bool carry_out_start(const worker &self, const gy_resident_series &series, feed &next)
{
    bool stopped = false;
    for (uint32_t i = 0; i < self.me.packets; i++) {
        const uint32_t stage = (uint32_t)(next.turn - AHEAD) % STAGES;
        fetch(self, next);
        if (fetches())
            await_copies<AHEAD - 1>(); /* the next packet is there */
        bool well = threadIdx.x < 32 ? begin(self, stage, stopped)
                                     : threadIdx.x != GUARD || i > 0 || look_at(series.halt) < GY_COUNTER_STOP;
        stopped = __syncthreads_or(!well);
        if (!stopped && staged[stage].function)
            carry_out(self, stage);
        end(self, stage, stopped);
    }
    if (threadIdx.x == 0)
        tell(self.me.progress, self.epoch << 32 | GY_RESIDENT_ENDED);
    return stopped;
}

/* Waits for the verdict of a start that has ended, or finds a later one, which there is if others went on. False: no other follows. */
static __device__ bool goes_on(const worker &self, const uint64_t *verdict)
{
    bool ends = false;
    if (threadIdx.x == 0) {
        uint64_t now;
        while ((now = acquire(verdict)) < 2 * self.epoch + 1)
            pause();
        ends = now == 2 * self.epoch + 2 || now >= GY_COUNTER_STOP;
    }
    return !__syncthreads_or(ends);
}

/* Nothing but counters keeps two starts apart, as it keeps the ops of one. */
static __device__ void work(worker &self, const gy_resident_series &series)
{
    feed next = { series.turn * self.me.packets, 0, series.starts * self.me.packets };
    uint64_t look = series.look;
    for (uint32_t i = 0; i < AHEAD; i++)
        fetch(self, next);
    await_copies<AHEAD - 1>(); /* the first packet is there */
    __syncthreads();
    for (uint64_t i = 1; i <= series.starts; i++, self.epoch++) {
        if (carry_out_start(self, series, next))
            break;
        if (i != look || i == series.starts)
            continue;
        if (!goes_on(self, series.verdict))
            break;
        look += series.every;
    }
    await_copies<0>(); /* also those that were fetched for starts that did not follow */
}

/* Two blocks have room on a multiprocessor. `epoch`: starts since the counters were 0. */
extern "C" __global__ void __launch_bounds__(GY_RESIDENT_THREADS, 2)
    gy_resident(const gy_resident_worker *all, uint64_t epoch, gy_resident_series series)
{
    worker self = { all[blockIdx.x], epoch };
    if (self.me.packets)
        work(self, series);
    else if (threadIdx.x == 0)
        tell(self.me.progress, self.epoch << 32 | GY_RESIDENT_ENDED);
}
