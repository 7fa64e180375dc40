/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are right, and kernels that are wrong in one way each. */
#include "kernels/element.cuh"

/* One block: the sum of x, by shuffles within warps and shared memory between them. */
template <typename T> static __device__ T warp_sum(T value)
{
    for (int by = 16; by > 0; by /= 2) {
        value += __shfl_down_sync(0xFFFFFFFFu, value, by);
    }
    return value;
}

extern "C" __global__ void __launch_bounds__(1024) block_sum(const double *__restrict__ x, double *sum, int64_t n)
{
    __shared__ double part[32];
    double own = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        own += x[i];
    }
    own = warp_sum(own);
    if (threadIdx.x % warpSize == 0) {
        part[threadIdx.x / warpSize] = own;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        own = warp_sum(threadIdx.x < (blockDim.x + 31) / 32 ? part[threadIdx.x] : 0.0);
        if (threadIdx.x == 0) {
            *sum = own;
        }
    }
}

/* Each block turns its elements round. */
#define REVERSE(name, BARRIER)                                                                                         \
    extern "C" __global__ void name(int *x)                                                                            \
    {                                                                                                                  \
        __shared__ int tile[256];                                                                                      \
        int t = threadIdx.x, last = blockDim.x - 1;                                                                    \
        tile[t] = x[blockIdx.x * blockDim.x + t];                                                                      \
        BARRIER;                                                                                                       \
        x[blockIdx.x * blockDim.x + t] = tile[last - t];                                                               \
    }
REVERSE(reverse, __syncthreads())
REVERSE(reverse_without_barrier, )
REVERSE(reverse_by_warps, __syncwarp())

/* Block i adds one to what block i - 1 left, which nothing orders. */
extern "C" __global__ void chain(int *x)
{
    x[blockIdx.x + 1] = x[blockIdx.x] + 1;
}

extern "C" __global__ void some_pass_by(int *x)
{
    if (threadIdx.x < 40) {
        __syncthreads();
    }
    x[threadIdx.x] = 1;
}

extern "C" __global__ void two_places(int *x)
{
    if (threadIdx.x < 40) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    x[threadIdx.x] = 1;
}

extern "C" __global__ void lanes_missing(int *x)
{
    if (threadIdx.x % 2) {
        x[threadIdx.x] = __shfl_sync(0xFFFFFFFFu, 1, 0);
    }
}

extern "C" __global__ void not_in_mask(int *x)
{
    x[threadIdx.x] = __shfl_sync(0xFFFFu, 1, 0);
}

extern "C" __global__ void __launch_bounds__(2 * (16 + 16), 1) bounded(int *x)
{
    x[threadIdx.x] = 1;
}

/* Counts in shared memory that nobody has set to 0. */
extern "C" __global__ void not_cleared(int *x)
{
    __shared__ int count;
    atomicAdd(&count, 1);
    __syncthreads();
    x[blockIdx.x] = count;
}

extern "C" __global__ void by_fours(int *x)
{
    ((int4 *)x)[threadIdx.x] = make_int4(1, 2, 3, 4);
}

extern "C" __global__ void trap(int *x)
{
    if (x[threadIdx.x] == 0) {
        __trap();
    }
}

/* Bins 0..7 count, 8 holds the largest, 9 the smallest, 10 all bits, 11 an unlikely maximum by compare and swap. */
extern "C" __global__ void atomics(const int *x, int *bin, int64_t n)
{
    GY_FOR_EACH (i, n) {
        atomicAdd(&bin[x[i] & 7], 1);
        atomicMax(&bin[8], x[i]);
        atomicMin(&bin[9], x[i]);
        atomicOr(&bin[10], x[i]);
        int seen = bin[11], expected;
        do {
            expected = seen;
            seen = atomicCAS(&bin[11], expected, max(expected, x[i]));
        } while (seen != expected);
    }
}

/* y: 8 results of each lane. */
extern "C" __global__ void lanes(const int *x, int *y)
{
    int lane = threadIdx.x % 32, v = x[threadIdx.x], *to = y + 8 * threadIdx.x;
    to[0] = __shfl_sync(~0u, v, 3, 8);
    to[1] = __shfl_up_sync(~0u, v, 2, 16);
    to[2] = __shfl_down_sync(~0u, v, 5);
    to[3] = __shfl_xor_sync(~0u, v, 9);
    to[4] = (int)__ballot_sync(~0u, v & 1);
    to[5] = __any_sync(~0u, v == 1000);
    to[6] = __all_sync(~0u, v < 1000);
    to[7] = lane < 16 ? __reduce_add_sync(0xFFFFu, v) : __reduce_max_sync(0xFFFF0000u, v);
}

/* z = the transpose of the h by w matrix x, by tiles of 16 by 16. */
extern "C" __global__ void turn(const float *x, float *z, int h, int w)
{
    __shared__ float tile[16][17];
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row < h && column < w) {
        tile[threadIdx.y][threadIdx.x] = x[row * w + column];
    }
    __syncthreads();
    row = blockIdx.x * 16 + threadIdx.y;
    column = blockIdx.y * 16 + threadIdx.x;
    if (row < w && column < h) {
        z[row * h + column] = tile[threadIdx.x][threadIdx.y];
    }
}

/* Parameters of several types, a struct among them, and a count over the block. */
struct mixed {
    char c;
    double d;
    short s;
};
extern "C" __global__ void types(__half h, float4 f, mixed m, uchar4 u, double *to)
{
    int ones = __syncthreads_count(threadIdx.x % 3 == 0);
    if (threadIdx.x == 0) {
        to[0] = __half2float(h);
        to[1] = f.x + 10.0 * f.y + 100.0 * f.z + 1000.0 * f.w;
        to[2] = m.c + m.d + m.s;
        to[3] = u.x + u.y + u.z + u.w;
        to[4] = ones;
        to[5] = (double)fmaxf(__fadd_rn(1.5f, 2), rsqrtf(4)) + __popc(7) + __float_as_int(1.0f) + max(1, 2.5);
    }
}
