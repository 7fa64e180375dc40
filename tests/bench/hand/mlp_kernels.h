// SPDX-License-Identifier: Apache-2.0
// Kernels of mlp.cu, fused as one would by hand: a bias with its ReLU; bias, softmax, loss and its gradient; AdamW.
#pragma once
#include "work.h"

enum { BLOCKS = 132 * 8, BLOCK = 256 };

__global__ void bias_relu(float *h, const float *z, const float *bias, size_t n, int columns)
{
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride)
        h[i] = fmaxf(z[i] + bias[i % columns], 0);
}

__device__ static float of_block(float value, bool add)
{
    __shared__ float warp[BLOCK / 32];
    for (int o = 16; o; o >>= 1) {
        float other = __shfl_xor_sync(~0u, value, o);
        value = add ? value + other : fmaxf(value, other);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = warp[0];
    for (int w = 1; w < BLOCK / 32; w++)
        value = add ? value + warp[w] : fmaxf(value, warp[w]);
    return value;
}

// Bias, softmax, loss and gradient of a row, by a block: the gradient takes the place of z.
__global__ void softmax_loss(float *z, const float *bias, const int *label, float *loss, int columns, float scale)
{
    float *row = z + (size_t)blockIdx.x * columns, most = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < columns; c += BLOCK)
        most = fmaxf(most, row[c] + bias[c]);
    most = of_block(most, false);
    for (int c = threadIdx.x; c < columns; c += BLOCK)
        sum += expf(row[c] + bias[c] - most);
    sum = of_block(sum, true);
    int right = label[blockIdx.x];
    float entropy = logf(sum) + most - row[right] - bias[right];
    __syncthreads();
    for (int c = threadIdx.x; c < columns; c += BLOCK)
        row[c] = scale * (expf(row[c] + bias[c] - most) / sum - (c == right));
    if (threadIdx.x == 0)
        atomicAdd(loss, scale * entropy);
}

__global__ void relu_grad(const float *h, float *dh, size_t n)
{
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride)
        if (!(h[i] > 0))
            dh[i] = 0;
}

__global__ void descend(float *w, const float *g, float rate, size_t n)
{
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride)
        w[i] -= rate * g[i];
}

static constexpr float DECAY1 = 0.9f, DECAY2 = 0.999f, EPSILON = 1e-8f, WEIGHT_DECAY = 0.01f;

// The count of steps is in memory, so that a graph can be replayed.
__global__ void count_step(float *step)
{
    *step += 1;
}

// The rate rises over ten steps.
__global__ void adamw(float *w, const float *g, float *m, float *v, const float *step, float rate, size_t n)
{
    size_t stride = gridDim.x * (size_t)blockDim.x;
    float unbias1 = 1 / (1 - powf(DECAY1, *step)), unbias2 = 1 / (1 - powf(DECAY2, *step));
    rate *= fminf(1, *step / 10);
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride) {
        float first = m[i] = DECAY1 * m[i] + (1 - DECAY1) * g[i];
        float second = v[i] = DECAY2 * v[i] + (1 - DECAY2) * g[i] * g[i];
        w[i] -= rate * (first * unbias1 / (sqrtf(second * unbias2) + EPSILON) + WEIGHT_DECAY * w[i]);
    }
}
