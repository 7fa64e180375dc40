// SPDX-License-Identifier: Apache-2.0
// Graphs of several GPUs that wait for each other by words in memory (docs/design/gpu-graphs.md): a node that sets a word of another
// GPU, a copy that sets some when it is done, and a gate, which waits until words of its own are set and sets them back.

#include "kernels/begin.cuh"
#include "kernels/resident/counters.cuh"

#include "kernels/gate/gate.h"

#ifdef CUDA_EMULATOR_H
static inline void store(uint64_t *at, uint64_t value) { emulator_relaxed_store(at, value); }
#else
static __device__ inline void store(uint64_t *at, uint64_t value)
{
    *static_cast<volatile uint64_t *>(at) = value;
}
#endif

// One thread: what the kernels ahead of this one have stored can be seen by whoever sees the word.
extern "C" __global__ void gate_set(uint64_t *word)
{
    gy_begin();
    release(word, 1);
}

// A thread for each word. Kernels behind this one see what was stored ahead of the words. They are set back for the next start, which
// no GPU begins before all of this one has ended; not if the start has failed, as others may still wait. That it waits a thread says
// beside its word, for the host alone, which wants to know who waits where a start does not come to its end.
static __device__ inline void wait_for(uint64_t words, uint32_t number)
{
    uint64_t *word = reinterpret_cast<uint64_t *>(words + uint64_t(number) * GY_GATE_STEP);
    store(word + 1, 1);
    if (await(word, 1, false)) {
        store(word + 1, 0);
        store(word, 0);
    }
}

extern "C" __global__ void gate_wait(const __grid_constant__ gy_gate_few list)
{
    gy_begin();
    wait_for(list.words, list.number[threadIdx.x]);
}

extern "C" __global__ void gate_wait_long(const __grid_constant__ gy_gate_list list)
{
    gy_begin();
    wait_for(list.words, list.number[threadIdx.x]);
}

template <typename T> static __device__ inline void move(const gy_gate_part &p)
{
    const T *from = reinterpret_cast<const T *>(p.from);
    T *to = reinterpret_cast<T *>(p.to);
    for (uint64_t i = threadIdx.x; i < p.bytes / sizeof(T); i += blockDim.x)
        to[i] = from[i];
}

// One block. Its threads store; the barrier has all of that ahead of what each of them does next; and the release, by a thread for
// each word, has it seen by whoever sees the word. All words are set before one is waited for.
extern "C" __global__ void __launch_bounds__(GY_GATE_THREADS) gate_copy(const __grid_constant__ gy_gate_copy c)
{
    gy_begin();
    for (uint32_t i = 0; i < c.parts; i++) {
        const gy_gate_part &p = c.part[i];
        const uint64_t bits = p.from | p.to | p.bytes;
        if (bits % sizeof(uint4) == 0)
            move<uint4>(p);
        else if (bits % sizeof(uint32_t) == 0)
            move<uint32_t>(p);
        else
            move<uint8_t>(p);
    }
    __syncthreads();
    if (threadIdx.x < c.tells)
        release(reinterpret_cast<uint64_t *>(c.tell[threadIdx.x]), 1);
    __syncthreads();
    if (threadIdx.x < c.waits)
        wait_for(c.list.words, c.list.number[threadIdx.x]);
}
