/* SPDX-License-Identifier: Apache-2.0 */
/* The softmax of each row, in place, by a block a row: kernels of attention.json, and of attention.cu by hand. Elements
 * of bf16 are halves of a float, which needs no header; attention_kernels.c has the same for the CPU. */
enum { SOFTMAX_THREADS = 256, SOFTMAX_WARPS = SOFTMAX_THREADS / 32 };

static __device__ inline float load(const float *x)
{
    return *x;
}
static __device__ inline void store(float *x, float value)
{
    *x = value;
}
static __device__ inline float load(const unsigned short *x)
{
    return __uint_as_float((unsigned)*x << 16);
}
static __device__ inline void store(unsigned short *x, float value)
{
    unsigned bits = __float_as_uint(value);
    *x = (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The largest, or the sum, of what the threads of a block have. */
static __device__ inline float of_block(float value, bool add)
{
    __shared__ float warp[SOFTMAX_WARPS];
    for (int o = 16; o; o >>= 1) {
        float other = __shfl_xor_sync(~0u, value, o);
        value = add ? value + other : fmaxf(value, other);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = warp[0];
    for (int w = 1; w < SOFTMAX_WARPS; w++)
        value = add ? value + warp[w] : fmaxf(value, warp[w]);
    return value;
}

template <typename T> static __device__ inline void softmax_row(T *row, long long columns)
{
    float most = load(row), sum = 0;
    for (long long j = threadIdx.x; j < columns; j += SOFTMAX_THREADS)
        most = fmaxf(most, load(row + j));
    most = of_block(most, false);
    for (long long j = threadIdx.x; j < columns; j += SOFTMAX_THREADS)
        sum += expf(load(row + j) - most);
    sum = of_block(sum, true);
    for (long long j = threadIdx.x; j < columns; j += SOFTMAX_THREADS)
        store(row + j, expf(load(row + j) - most) / sum);
}

extern "C" __global__ void softmax_f32(float *x, long long columns)
{
    softmax_row(x + blockIdx.x * columns, columns);
}
extern "C" __global__ void softmax_bf16(unsigned short *x, long long columns)
{
    softmax_row(x + blockIdx.x * columns, columns);
}
