/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the graph own.json; own.c has the same for the CPU. */
#include "own.h"

extern "C" __global__ void mix(float weight, const float *x, float *y, long long n, bias_type bias)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = weight * x[i] + y[i] + bias;
}

/* y = the transpose of x, h x w, in blocks of TILE x TILE. */
extern "C" __global__ void turn(const int *x, int *y, int h, int w)
{
    __shared__ int tile[TILE][TILE + 1];
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    if (row < h && column < w)
        tile[threadIdx.y][threadIdx.x] = x[row * w + column];
    __syncthreads();
    column = blockIdx.y * TILE + threadIdx.x;
    row = blockIdx.x * TILE + threadIdx.y;
    if (row < w && column < h)
        y[row * h + column] = tile[threadIdx.x][threadIdx.y];
}

/* In place, by one block, through the scratch memory. */
extern "C" __global__ void reverse(double *x, long long n, double *scratch)
{
    for (long long i = threadIdx.x; i < n; i += blockDim.x)
        scratch[i] = x[i];
    __syncthreads();
    for (long long i = threadIdx.x; i < n; i += blockDim.x)
        x[i] = scratch[n - 1 - i];
}

/* The sum of each element and its neighbours; `before` rows of the halo come first, at the ends there are none. */
extern "C" __global__ void smooth(const float *x, float *y, long long n, long long rows, int before)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x, at = i + before;
    if (i < n)
        y[i] = (at > 0 ? x[at - 1] : 0) + x[at] + (at + 1 < rows ? x[at + 1] : 0);
}
