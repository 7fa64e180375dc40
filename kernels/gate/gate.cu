// SPDX-License-Identifier: Apache-2.0
// Graphs of several GPUs that wait for each other by words in memory (docs/design/gpu-graphs.md): a node that sets a word of another
// GPU, and a gate, which waits until words of its own are set and sets them back.

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
// no GPU begins before all of this one has ended; not if the start has failed, as others may still wait.
extern "C" __global__ void gate_wait(char *words)
{
    gy_begin();
    uint64_t *word = reinterpret_cast<uint64_t *>(words + threadIdx.x * GY_GATE_STEP);
    if (await(word, 1, false))
        store(word, 0);
}
