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

#include "kernels/resident/places.cuh"

template <typename T> static __device__ inline T &gy_shared_as(void *bytes)
{
    static_assert(sizeof(T) <= sizeof gy_shared_bytes, "shared memory is as large as the largest piece");
    return *(T *)bytes;
}
#define GY_SHARED(type, name) type &name = gy_shared_as<type>(gy_shared_bytes)
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

#define blockIdx gy_block
#define gridDim  gy_blocks
#include "kernels/chunk.cuh"
#include "kernels/element.cuh"
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
#define threadIdx gy_thread_of(threadIdx)
#define blockDim  gy_threads
namespace of_bias_add {
#include "kernels/bias_add/bias_add.cu"
#undef KERNEL
}
namespace of_jacobi2d {
#include "kernels/jacobi2d/jacobi2d.cu"
#undef KERNEL
}
#undef threadIdx
#undef blockDim

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

#undef blockIdx
#undef gridDim
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
    T value;
    memcpy(&value, word, sizeof value);
#ifdef __CUDA_ARCH__
    if constexpr (std::is_pointer<T>::value)
        __builtin_assume(__isGlobal(value)); /* or each load asks which memory it is */
#endif
    return value;
}

template <typename F> struct caller;
template <typename... A> struct caller<void (*)(A...)> {
    template <void (*F)(A...), int... I>
    static __device__ inline void call(const uint64_t *word, std::integer_sequence<int, I...>)
    {
        F(param<A>(word + I)...);
    }
    template <void (*F)(A...)> static __device__ inline void call(const uint64_t *word)
    {
        call<F>(word, std::make_integer_sequence<int, (int)sizeof...(A)>());
    }
};

static __device__ void call(uint32_t function, const uint64_t *word)
{
    switch (function) {
#define FUNCTION(name)                                                                                                 \
    case GY_RESIDENT_##name:                                                                                           \
        return caller<decltype(&name)>::template call<name>(word);
#include "kernels/resident/functions.def"
    default:
        return;
    }
}

/* ---- counters ---- */

#ifdef CUDA_EMULATOR_H
static inline uint64_t acquire(const uint64_t *at) { return emulator_acquire(at); }
static inline void release(uint64_t *at, uint64_t value) { emulator_release(at, value); }
static inline uint64_t acquire_near(const uint64_t *at) { return emulator_acquire(at); }
static inline void release_near(uint64_t *at, uint64_t value) { emulator_release(at, value); }
static inline void add_near(uint64_t *at) { emulator_release(at, emulator_relaxed_load(at) + 1); }
static inline void set_near(uint64_t *at, uint64_t value) { emulator_relaxed_store(at, value); }
static inline void tell(uint32_t *at, uint32_t value) { *at = value; }
static inline void pause(void) { emulator_pause(); }
#else
static __device__ inline uint64_t acquire(const uint64_t *at)
{
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
static __device__ inline void release(uint64_t *at, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
/* Among the workers of a GPU. */
static __device__ inline uint64_t acquire_near(const uint64_t *at)
{
    uint64_t value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
static __device__ inline void release_near(uint64_t *at, uint64_t value)
{
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
static __device__ inline void add_near(uint64_t *at)
{
    asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(at) : "memory");
}
static __device__ inline void set_near(uint64_t *at, uint64_t value)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
static __device__ inline void tell(uint32_t *at, uint32_t value)
{
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
static __device__ inline void pause(void) {}
#endif

/* False: the start has failed. */
static __device__ bool await(const uint64_t *counter, uint64_t value)
{
    uint64_t now;
    while ((now = acquire(counter)) < value)
        pause();
    return now < GY_RESIDENT_STOP;
}
static __device__ bool await_near(const uint64_t *counter, uint64_t value)
{
    uint64_t now;
    while ((now = acquire_near(counter)) < value)
        pause();
    return now < GY_RESIDENT_STOP;
}

/* ---- workers ---- */

struct state {
    gy_resident_worker me;
    uint64_t epoch;
    uint64_t met; /* shared packets of this start so far */
};

/* By thread 0. */
static __device__ void place_block(const gy_resident_packet &p, uint32_t block)
{
    gy_block = { block % p.blocks_x, block / p.blocks_x, 0 };
    gy_blocks = { p.blocks_x, p.blocks_y, 1 };
    gy_threads = { p.threads_x, p.threads_y, 1 };
}

/* Waits of a packet, a thread of the first warp each. */
static __device__ void await_all(const gy_resident_packet &p, const state &s, volatile int *stopped)
{
    for (uint32_t i = threadIdx.x; i < p.waits; i += 32) {
        const gy_resident_wait &w = ((const gy_resident_wait *)p.word)[i];
        if (s.epoch >= w.distance &&
            !await((const uint64_t *)w.counter, (s.epoch - w.distance) * w.signals + w.value))
            *stopped = 1;
    }
}

/* Signals [first, last), a thread of the first warp each. */
static __device__ void signal_some(const gy_resident_packet &p, const state &s, bool stopped, uint32_t first,
                                   uint32_t last)
{
    for (uint32_t i = first + threadIdx.x; i < last; i += 32) {
        const gy_resident_signal &g = ((const gy_resident_signal *)(p.word + GY_RESIDENT_WAIT_WORDS * p.waits))[i];
        release((uint64_t *)g.counter, stopped ? GY_RESIDENT_STOP : s.epoch * g.signals + g.value);
    }
}

/* A stream that goes on in the lane may signal a counter that this packet signals, too: so it is told last. */
static __device__ void signal_all(const gy_resident_packet &p, const state &s, bool stopped)
{
    signal_some(p, s, stopped, 0, p.signals - p.last);
    __syncwarp();
    signal_some(p, s, stopped, p.signals - p.last, p.signals);
}

/* The leader lets the helpers begin, as the first thread; a helper waits for that. */
static __device__ void begin_shared(const state &s, volatile int *stopped)
{
    uint64_t number = s.epoch * GY_RESIDENT_SHARED + s.met + 1;
    if (s.me.index > 0 && !await_near(&s.me.meet->go, number))
        *stopped = 1;
    if (s.me.index == 0)
        release_near(&s.me.meet->go, *stopped ? GY_RESIDENT_STOP : number);
}

/* All helpers have added to `done` when the leader sets it back, and none adds again before it lets them begin. */
static __device__ void end_shared(const state &s, bool stopped)
{
    if (s.me.index > 0)
        return add_near(&s.me.meet->done);
    if (stopped)
        return;
    await_near(&s.me.meet->done, s.me.workers - 1);
    set_near(&s.me.meet->done, 0);
}

static __device__ uint32_t first_block(const gy_resident_packet &p, const state &s)
{
    return p.shared ? s.me.index : 0;
}

/* The first block has been placed. */
static __device__ void carry_out(const gy_resident_packet &p, const state &s)
{
    uint32_t blocks = p.blocks_x * p.blocks_y, step = p.shared ? s.me.workers : 1, first = first_block(p, s);
    for (uint32_t b = first; b < blocks; b += step) {
        if (b != first) {
            __syncthreads(); /* the block before has read its place */
            if (threadIdx.x == 0)
                place_block(p, b);
            __syncthreads();
        }
        call(p.function, p.word + GY_RESIDENT_WAIT_WORDS * p.waits + GY_RESIDENT_SIGNAL_WORDS * p.signals);
    }
}

/* A part of a packet for each of these threads. */
enum { QUADS = sizeof(gy_resident_packet) / sizeof(uint4), FETCHER = 64, STAGES = 3 };
static_assert(sizeof(gy_resident_packet) % sizeof(uint4) == 0, "packets are fetched in words of 16 bytes");

static __device__ void fetch(gy_resident_packet *to, const gy_resident_packet *from)
{
    uint32_t i = threadIdx.x - FETCHER;
    if (i < QUADS)
        ((uint4 *)to)[i] = ((const uint4 *)from)[i];
}

/* By the first warp, ahead of a packet: the others meet it at the barrier that follows. */
static __device__ void begin(const gy_resident_packet &p, const state &s, volatile int *stopped)
{
    if (threadIdx.x == 0) {
        tell(s.me.progress, p.op + 1);
        if (p.function)
            place_block(p, first_block(p, s));
    }
    await_all(p, s, stopped);
    __syncwarp();
    if (threadIdx.x == 0 && p.shared)
        begin_shared(s, stopped);
}

/* By the first warp, when all threads have done their part. */
static __device__ void end(const gy_resident_packet &p, const state &s, bool stop)
{
    if (threadIdx.x == 0 && p.shared)
        end_shared(s, stop);
    __syncwarp();
    signal_all(p, s, stop);
}

/* Two barriers a packet. While the first warp is still busy with the end of one, others fetch the next but one, to a place of its
 * own: so there are three. */
static __device__ void work(state &s, gy_resident_packet *staged, volatile int *stopped)
{
    for (uint32_t i = 0; i < s.me.packets; i++) {
        const gy_resident_packet &p = staged[i % STAGES];
        if (i + 1 < s.me.packets)
            fetch(&staged[(i + 1) % STAGES], s.me.packet + i + 1);
        if (threadIdx.x < 32)
            begin(p, s, stopped);
        __syncthreads();
        bool stop = *stopped;
        if (!stop && p.function)
            carry_out(p, s);
        __syncthreads();
        if (threadIdx.x < 32)
            end(p, s, stop);
        s.met += p.shared;
    }
    if (threadIdx.x == 0)
        tell(s.me.progress, GY_RESIDENT_ENDED);
}

/* Two blocks have room on a multiprocessor. `epoch`: starts since the counters were 0. */
extern "C" __global__ void __launch_bounds__(GY_RESIDENT_THREADS, 2)
    gy_resident(const gy_resident_worker *worker, uint64_t epoch)
{
    __shared__ gy_resident_packet staged[STAGES];
    __shared__ int stopped;
    state s = { worker[blockIdx.x], epoch, 0 };
    if (threadIdx.x == 0)
        stopped = 0;
    if (s.me.packets)
        fetch(&staged[0], s.me.packet);
    __syncthreads();
    work(s, staged, &stopped);
}
