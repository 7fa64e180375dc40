/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose blocks wait for each other, and for streams and the program. */
#include "kernels/element.cuh"

static constexpr int WORKERS = 16, TILE = 256;

static __device__ void wait_for(const uint64_t *at, uint64_t value, bool acquire)
{
    if (threadIdx.x == 0) {
        while ((acquire ? emulator_acquire(at) : emulator_relaxed_load(at)) < value) {
            emulator_pause();
        }
    }
    __syncthreads();
}

static __device__ void signal(uint64_t *at, uint64_t value, bool release)
{
    __syncthreads();
    if (threadIdx.x == 0 && release) {
        emulator_release(at, value);
    } else if (threadIdx.x == 0) {
        emulator_relaxed_store(at, value);
    }
}

/* A payload goes round the workers of all devices, each adds one and turns every tile by one. Of each worker what it
 * reads lies in the memory of its device, and the one before it writes there. */
struct ring {
    uint64_t *counter[WORKERS];
    int64_t *payload[WORKERS];
    int workers, first, rounds, n, acquire, release;
};
extern "C" __global__ void __launch_bounds__(TILE) pass_round(ring r)
{
    __shared__ int64_t tile[TILE];
    int self = r.first + blockIdx.x, next = (self + 1) % r.workers;
    for (int k = 1; k <= r.rounds; k++) {
        wait_for(r.counter[self], self == 0 ? k - 1 : k, r.acquire);
        for (int at = 0; at < r.n; at += TILE) {
            tile[threadIdx.x] = r.payload[self][at + threadIdx.x];
            __syncthreads();
            r.payload[next][at + threadIdx.x] = tile[(threadIdx.x + 1) % TILE] + 1;
            __syncthreads();
        }
        signal(r.counter[next], k, r.release);
    }
}

/* Each block waits for all others in the middle. */
extern "C" __global__ void keep_shared(uint64_t *arrived, int *to)
{
    __shared__ int tile[TILE];
    tile[threadIdx.x] = 1000 * blockIdx.x + threadIdx.x;
    signal(&arrived[blockIdx.x], 1, true);
    for (unsigned i = 0; i < gridDim.x; i++) {
        wait_for(&arrived[i], 1, true);
    }
    to[blockIdx.x * TILE + threadIdx.x] = tile[(threadIdx.x + 1) % TILE];
}

/* All threads of all blocks poll, and add to a sum that nothing but the atomic function guards. */
extern "C" __global__ void count_all(uint64_t *sum, const uint64_t *go)
{
    while (emulator_acquire(go) == 0) {
        emulator_pause();
    }
    unsigned long long *at = (unsigned long long *)sum;
    atomicAdd(at, threadIdx.x);
    while (emulator_acquire(sum) < gridDim.x * blockDim.x * (blockDim.x - 1) / 2) {
        emulator_pause();
    }
}

/* Stores by one block, fence, flag; the other looks at the flag and fences. */
extern "C" __global__ void by_fences(uint64_t *flag, int64_t *x, int64_t *to)
{
    int64_t before = x[threadIdx.x];
    if (blockIdx.x == 0) {
        x[threadIdx.x] = threadIdx.x + 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence_system();
            emulator_relaxed_store(flag, 1);
        }
    } else {
        if (threadIdx.x == 0) {
            while (emulator_relaxed_load(flag) == 0) {
                emulator_pause();
            }
            __threadfence_system();
        }
        __syncthreads();
        to[threadIdx.x] = x[threadIdx.x] + 0 * before;
    }
}

extern "C" __global__ void echo(const uint64_t *ask, uint64_t *answer, int64_t *x, int rounds)
{
    for (int k = 1; k <= rounds; k++) {
        wait_for(ask, k, true);
        x[blockIdx.x * blockDim.x + threadIdx.x] += k;
        signal(&answer[blockIdx.x], k, true);
    }
}

extern "C" __global__ void until_stopped(const uint64_t *stop)
{
    wait_for(stop, 1, true);
}

extern "C" __global__ void store_one(uint64_t *to)
{
    *to = 1;
}

extern "C" __device__ const uint64_t resident_layout[3] = { 7, 8, 9 };
EMULATED_GLOBAL(resident_layout)
