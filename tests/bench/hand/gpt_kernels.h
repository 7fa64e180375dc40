// SPDX-License-Identifier: Apache-2.0
// Kernels of gpt.cu, fused as one would by hand: a sum with the norm behind it, softmax with its mask, cross entropy
// with its gradient, the gradient of a norm with the sum it goes into. Rows of tokens are dense, and their widths
// multiples of four, so most go over them by four floats.
#pragma once
#include "kernels/philox4.h"
#include "work.h"

enum { BLOCKS = 132 * 8, BLOCK = 256, WARPS = BLOCK / 32 };

inline unsigned blocks_for(size_t n)
{
    return (unsigned)std::min<size_t>(BLOCKS, (n + BLOCK - 1) / BLOCK);
}

// Rows are read by so many threads as have a pack of four floats each.
inline unsigned threads_for(long width)
{
    return (unsigned)std::min<long>(BLOCK, (width / 4 + 31) / 32 * 32);
}

static __device__ inline size_t first_of_grid()
{
    return blockIdx.x * (size_t)blockDim.x + threadIdx.x;
}

static __device__ inline float of_warp(float value, bool add)
{
    for (int o = 16; o; o >>= 1) {
        float other = __shfl_xor_sync(~0u, value, o);
        value = add ? value + other : fmaxf(value, other);
    }
    return value;
}

// The sum, or the largest, of all threads of a block, in all of them.
static __device__ inline float of_block(float value, bool add)
{
    __shared__ float warp[WARPS];
    value = of_warp(value, add);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = warp[0];
    for (unsigned w = 1; w < blockDim.x / 32; w++)
        value = add ? value + warp[w] : fmaxf(value, warp[w]);
    return value;
}

static __device__ inline float4 operator+(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

static __device__ inline float4 operator*(float4 a, float4 b)
{
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

static __device__ inline float4 operator*(float4 a, float b)
{
    return make_float4(a.x * b, a.y * b, a.z * b, a.w * b);
}

static __device__ inline float sum_of(float4 a)
{
    return a.x + a.y + (a.z + a.w);
}

static __device__ inline void atomic_add(float *to, float4 value)
{
    atomicAdd(to, value.x);
    atomicAdd(to + 1, value.y);
    atomicAdd(to + 2, value.z);
    atomicAdd(to + 3, value.w);
}

// ---- first numbers, as those of a graph are made (docs/graph-format.md) ----

// Element (r, c) of a matrix goes to column c / group * step + at + c % group of a row of `pitch`.
struct Place {
    long columns, pitch, group, step, at;
};

__global__ void fill_normal(float *to, size_t n, size_t first, Place p, unsigned long long seed, double deviation)
{
    for (size_t i = first_of_grid(); i < n; i += gridDim.x * (size_t)blockDim.x) {
        gy_philox4 block = gy_philox4_at(seed, (first + i) / 2);
        unsigned low = 2 * (unsigned)((first + i) % 2);
        double u = ((double)block.word[low] + 1) / 4294967296.0, v = (double)block.word[low + 1] / 4294967296.0;
        long row = (long)i / p.columns, c = (long)i % p.columns;
        to[row * p.pitch + c / p.group * p.step + p.at + c % p.group] =
            (float)(deviation * sqrt(-2 * log(u)) * cos(6.283185307179586476925286766559 * v));
    }
}

__global__ void fill_value(float *to, size_t n, float value)
{
    for (size_t i = first_of_grid(); i < n; i += gridDim.x * (size_t)blockDim.x)
        to[i] = value;
}

// Words of `batch` sequences from `first` on; row t * batch + b is token t of sequence b.
__global__ void fill_words(int *to, long batch, long tokens, long first, unsigned long long seed, long words)
{
    for (size_t i = first_of_grid(); i < (size_t)(batch * tokens); i += gridDim.x * (size_t)blockDim.x) {
        size_t element = (size_t)((first + (long)i % batch) * tokens + (long)i / batch);
        unsigned word = gy_philox4_at(seed, element / 4).word[element % 4];
        to[i] = (int)((double)words * ((double)word / 4294967296.0));
    }
}

// ---- norms: y = x / sqrt(mean of x^2 + 1e-5) gain; a block a row ----

template <typename Load>
static __device__ inline void norm_of(Load load, float4 *x, const float4 *gain, float4 *y, float *inverse, int packs)
{
    float squares = 0;
    for (int i = (int)threadIdx.x; i < packs; i += (int)blockDim.x) {
        float4 v = load(i);
        x[i] = v;
        squares += sum_of(v * v);
    }
    float factor = rsqrtf(of_block(squares, true) / (float)(4 * packs) + 1e-5f);
    for (int i = (int)threadIdx.x; i < packs; i += (int)blockDim.x)
        y[i] = x[i] * factor * gain[i];
    if (threadIdx.x == 0)
        inverse[blockIdx.x] = factor;
}

__global__ void embed_norm(const float4 *table, const int *ids, float4 *x, const float4 *gain, float4 *y,
                           float *inverse, int packs)
{
    size_t at = blockIdx.x * (size_t)packs;
    const float4 *word = table + (size_t)ids[blockIdx.x] * packs;
    norm_of([&](int i) { return word[i]; }, x + at, gain, y + at, inverse, packs);
}

__global__ void add_norm(const float4 *a, const float4 *b, float4 *x, const float4 *gain, float4 *y, float *inverse,
                         int packs)
{
    size_t at = blockIdx.x * (size_t)packs;
    norm_of([&](int i) { return a[at + i] + b[at + i]; }, x + at, gain, y + at, inverse, packs);
}

// dx = what comes by the norm from dy, and `add` where there is one. Blocks take rows in turn, and add what they have
// of the gain's gradient once. With ids, dx goes to the gradient of the table.
enum { MOST_PACKS = 4 }; // of a thread: a row has 4096 elements at most

template <bool TO_TABLE>
__global__ void norm_grad(const float4 *x, const float *inverse, const float4 *gain, const float4 *dy,
                          const float4 *add, float4 *dx, float *dgain, const int *ids, int rows, int packs)
{
    float4 share[MOST_PACKS] = {};
    for (int row = (int)blockIdx.x; row < rows; row += (int)gridDim.x) {
        size_t at = row * (size_t)packs;
        float dot = 0, factor = inverse[row];
        for (int i = (int)threadIdx.x; i < packs; i += (int)blockDim.x)
            dot += sum_of(dy[at + i] * gain[i] * x[at + i]);
        float along = -factor * factor * factor * of_block(dot, true) / (float)(4 * packs);
        for (int k = 0, i = (int)threadIdx.x; k < MOST_PACKS; k++, i += (int)blockDim.x) {
            if (i >= packs)
                break;
            float4 d = dy[at + i], v = x[at + i], to = d * gain[i] * factor + v * along;
            share[k] = share[k] + d * v * factor;
            to = add ? to + add[at + i] : to;
            if (TO_TABLE)
                atomic_add((float *)dx + ((size_t)ids[row] * packs + i) * 4, to);
            else
                dx[at + i] = to;
        }
    }
    for (int k = 0, i = (int)threadIdx.x; k < MOST_PACKS; k++, i += (int)blockDim.x)
        if (i < packs)
            atomic_add(dgain + 4 * i, share[k]);
}

// ---- attention between products: rows of qkv have q, k and v of each head behind each other ----

// Pairs of q and k are turned by the angles of their token, in place; back where sign is -1. A block a row.
__global__ void turn(float *qkv, const float *turns, int batch, int heads, int dim, float sign)
{
    int half = dim / 2, token = (int)blockIdx.x / batch;
    for (int p = (int)threadIdx.x; p < heads * dim; p += (int)blockDim.x) {
        int i = p % half, part = p / half; // q of the first head, its k, q of the second, ...
        float *at = qkv + (blockIdx.x * (size_t)heads + part / 2) * 3 * dim + part % 2 * dim + i;
        float c = turns[token * dim + i], s = sign * turns[token * dim + half + i], u = at[0], v = at[half];
        at[0] = u * c - v * s;
        at[half] = v * c + u * s;
    }
}

// Row r of a head has columns up to the end of its band, and of these it sees the first r + 1. A warp a row.
__global__ void causal_softmax(float *scores, size_t rows, int length, int band)
{
    size_t row = blockIdx.x * (size_t)WARPS + threadIdx.x / 32;
    if (row >= rows)
        return;
    int lane = (int)threadIdx.x % 32, r = (int)(row % length), end = min(length, (r / band + 1) * band);
    float *s = scores + row * length, most = -INFINITY, sum = 0;
#pragma unroll 4
    for (int c = lane; c <= r; c += 32) {
        float v = s[c], higher = fmaxf(most, v);
        sum = sum * expf(most - higher) + expf(v - higher);
        most = higher;
    }
    float all = of_warp(most, false);
    sum = of_warp(most == -INFINITY ? 0 : sum * expf(most - all), true);
    for (int c = lane; c < end; c += 32)
        s[c] = c <= r ? expf(s[c] - all) / sum : 0;
}

// d, the gradient of weights p, becomes that of scores: p (d - sum of p d) scale.
__global__ void softmax_grad(const float *weights, float *gradient, size_t rows, int length, int band, float scale)
{
    size_t row = blockIdx.x * (size_t)WARPS + threadIdx.x / 32;
    if (row >= rows)
        return;
    int lane = (int)threadIdx.x % 32, r = (int)(row % length), end = min(length, (r / band + 1) * band);
    const float *p = weights + row * length;
    float *d = gradient + row * length, dot = 0;
#pragma unroll 4
    for (int c = lane; c <= r; c += 32)
        dot += p[c] * d[c];
    dot = of_warp(dot, true);
    for (int c = lane; c < end; c += 32)
        d[c] = p[c] * (d[c] - dot) * scale;
}

// ---- attention of short sequences: a block a head, all of it in shared memory, turns too ----

enum { HELD = 12 * 1024 }; // floats of shared memory that a kernel has without asking

inline bool is_short(long tokens, long dim)
{
    return 4 * tokens * (dim + 1) + 2 * tokens * tokens <= HELD;
}

struct Head {
    const float *turns;
    int batch, heads, tokens, dim;
    float scale;

    // Row t of head blockIdx.x, of arrays whose rows have `each` elements a head.
    __device__ size_t row(int t, int each) const { return ((size_t)t * batch * heads + blockIdx.x) * each; }

    // Rows get an element more than they have, so that those of one column lie in different banks.
    __device__ void load(const float *x, int each, float *to) const
    {
        for (int i = (int)threadIdx.x; i < tokens * dim; i += (int)blockDim.x)
            to[i / dim * (dim + 1) + i % dim] = x[row(i / dim, each) + i % dim];
    }

    __device__ void load_turned(const float *x, float *to) const
    {
        int half = dim / 2;
        for (int i = (int)threadIdx.x; i < tokens * half; i += (int)blockDim.x) {
            int t = i / half, e = i % half;
            float u = x[row(t, 3 * dim) + e], v = x[row(t, 3 * dim) + half + e];
            float c = turns[t * dim + e], s = turns[t * dim + half + e];
            to[t * (dim + 1) + e] = u * c - v * s;
            to[t * (dim + 1) + half + e] = v * c + u * s;
        }
    }

    // Products of rows of a and b, where b's row is not behind that of a.
    __device__ void products(const float *a, const float *b, float *to) const
    {
        for (int i = (int)threadIdx.x; i < tokens * tokens; i += (int)blockDim.x) {
            const float *u = a + i / tokens * (dim + 1), *v = b + i % tokens * (dim + 1);
            float dot = 0;
            for (int e = 0; e < dim && i % tokens <= i / tokens; e++)
                dot += u[e] * v[e];
            to[i] = dot;
        }
    }
};

__global__ void short_attention(Head h, const float *qkv, float *weights, float *a)
{
    __shared__ float held[HELD];
    int each = h.tokens * (h.dim + 1), lane = (int)threadIdx.x % 32;
    float *q = held, *k = q + each, *v = k + each, *s = v + each;
    h.load_turned(qkv, q);
    h.load_turned(qkv + h.dim, k);
    h.load(qkv + 2 * h.dim, 3 * h.dim, v);
    __syncthreads();
    h.products(q, k, s);
    __syncthreads();
    float *kept = weights + blockIdx.x * (size_t)(h.tokens * h.tokens);
    for (int r = (int)threadIdx.x / 32; r < h.tokens; r += WARPS) {
        float most = -INFINITY, sum = 0;
        for (int c = lane; c <= r; c += 32)
            most = fmaxf(most, s[r * h.tokens + c]);
        most = of_warp(most, false);
        for (int c = lane; c <= r; c += 32)
            sum += expf(h.scale * (s[r * h.tokens + c] - most));
        sum = of_warp(sum, true);
        for (int c = lane; c < h.tokens; c += 32)
            kept[r * h.tokens + c] = s[r * h.tokens + c] =
                c <= r ? expf(h.scale * (s[r * h.tokens + c] - most)) / sum : 0;
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < h.tokens * h.dim; i += BLOCK) {
        int t = i / h.dim, e = i % h.dim;
        float sum = 0;
        for (int c = 0; c <= t; c++)
            sum += s[t * h.tokens + c] * v[c * (h.dim + 1) + e];
        a[h.row(t, h.dim) + e] = sum;
    }
}

// Gradients of q and k, turned back.
static __device__ inline void store_turned_back(const Head &h, float *to, int t, int e, float u, float v)
{
    int half = h.dim / 2;
    float c = h.turns[t * h.dim + e], s = h.turns[t * h.dim + half + e];
    to[h.row(t, 3 * h.dim) + e] = u * c + v * s;
    to[h.row(t, 3 * h.dim) + half + e] = v * c - u * s;
}

__global__ void short_attention_grad(Head h, const float *qkv, const float *weights, const float *da, float *dqkv)
{
    __shared__ float held[HELD];
    int n = h.tokens, pitch = h.dim + 1, each = n * pitch, half = h.dim / 2, lane = (int)threadIdx.x % 32;
    float *q = held, *k = q + each, *v = k + each, *d = v + each, *p = d + each, *s = p + n * n;
    h.load_turned(qkv, q);
    h.load_turned(qkv + h.dim, k);
    h.load(qkv + 2 * h.dim, 3 * h.dim, v);
    h.load(da, h.dim, d);
    for (int i = (int)threadIdx.x; i < n * n; i += BLOCK)
        p[i] = weights[blockIdx.x * (size_t)(n * n) + i];
    __syncthreads();
    h.products(d, v, s);
    __syncthreads();
    for (int r = (int)threadIdx.x / 32; r < n; r += WARPS) {
        float dot = 0;
        for (int c = lane; c <= r; c += 32)
            dot += p[r * n + c] * s[r * n + c];
        dot = of_warp(dot, true);
        for (int c = lane; c <= r; c += 32)
            s[r * n + c] = p[r * n + c] * (s[r * n + c] - dot) * h.scale;
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n * half; i += BLOCK) {
        int t = i / half, e = i % half;
        float qu = 0, qv = 0, ku = 0, kv = 0, vu = 0, vv = 0;
        for (int c = 0; c <= t; c++) {
            qu += s[t * n + c] * k[c * pitch + e];
            qv += s[t * n + c] * k[c * pitch + half + e];
        }
        for (int r = t; r < n; r++) {
            ku += s[r * n + t] * q[r * pitch + e];
            kv += s[r * n + t] * q[r * pitch + half + e];
            vu += p[r * n + t] * d[r * pitch + e];
            vv += p[r * n + t] * d[r * pitch + half + e];
        }
        store_turned_back(h, dqkv, t, e, qu, qv);
        store_turned_back(h, dqkv + h.dim, t, e, ku, kv);
        float *dv = dqkv + h.row(t, 3 * h.dim) + 2 * h.dim + e;
        dv[0] = vu;
        dv[half] = vv;
    }
}

// ---- gelu, the loss, and the optimiser ----

static __device__ inline float gelu_of(float z)
{
    return z / 2 * (1 + erff(z * 0.70710678f));
}

static __device__ inline float gelu_slope(float z)
{
    return (1 + erff(z * 0.70710678f)) / 2 + z * 0.39894228f * expf(-z * z / 2);
}

__global__ void gelu(const float4 *x, float4 *y, size_t packs)
{
    for (size_t i = first_of_grid(); i < packs; i += gridDim.x * (size_t)blockDim.x) {
        float4 z = x[i];
        y[i] = make_float4(gelu_of(z.x), gelu_of(z.y), gelu_of(z.z), gelu_of(z.w));
    }
}

__global__ void gelu_grad(const float4 *x, float4 *dy, size_t packs)
{
    for (size_t i = first_of_grid(); i < packs; i += gridDim.x * (size_t)blockDim.x) {
        float4 z = x[i];
        dy[i] = dy[i] * make_float4(gelu_slope(z.x), gelu_slope(z.y), gelu_slope(z.z), gelu_slope(z.w));
    }
}

// Logits become the gradient of `scale` times the sum of all rows' cross entropies; a block takes rows in turn.
__global__ void cross_entropy(float *logits, const int *labels, float *loss, int rows, int words, float scale)
{
    float total = 0;
    for (int row = (int)blockIdx.x; row < rows; row += (int)gridDim.x) {
        float *z = logits + (size_t)row * words, most = -INFINITY, sum = 0;
#pragma unroll 4
        for (int c = (int)threadIdx.x; c < words; c += BLOCK) {
            float v = z[c], higher = fmaxf(most, v);
            sum = sum * expf(most - higher) + expf(v - higher);
            most = higher;
        }
        float all = of_block(most, false);
        sum = of_block(most == -INFINITY ? 0 : sum * expf(most - all), true);
        int label = labels[row];
        total += logf(sum) + all - z[label];
        __syncthreads();
        for (int c = (int)threadIdx.x; c < words; c += BLOCK)
            z[c] = scale * (expf(z[c] - all) / sum - (c == label));
    }
    if (threadIdx.x == 0)
        atomicAdd(loss, scale * total);
}

// The sum of a block's squares, and by the first block, the number of the step: it is in memory, so that a graph can be
// replayed.
__global__ void square_sums(const float4 *g, size_t packs, double *sums, float *step)
{
    double sum = 0;
    for (size_t i = first_of_grid(); i < packs; i += gridDim.x * (size_t)blockDim.x)
        sum += (double)sum_of(g[i] * g[i]);
    sum = block_sum<BLOCK>(sum);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
    if (threadIdx.x == 0 && blockIdx.x == 0)
        *step += 1;
}

static constexpr float DECAY1 = 0.9f, DECAY2 = 0.999f, EPSILON = 1e-8f, WEIGHT_DECAY = 0.01f;

// Numbers of a step that all weights share.
struct Step {
    float clip, rate, unbias1, unbias2;
};

static __device__ inline Step step_of(const double *sums, int count, float number, float rate)
{
    __shared__ float clip;
    double squares = 0;
    for (int i = (int)threadIdx.x; i < count; i += BLOCK)
        squares += sums[i];
    squares = block_sum<BLOCK>(squares);
    if (threadIdx.x == 0)
        clip = (float)fmin(1.0, 1 / sqrt(squares));
    __syncthreads();
    return { clip, rate * fminf(1, number / 5), 1 / (1 - powf(DECAY1, number)), 1 / (1 - powf(DECAY2, number)) };
}

static __device__ inline void adamw_of(float &w, float g, float &m, float &v, const Step &s)
{
    m = DECAY1 * m + (1 - DECAY1) * g;
    v = DECAY2 * v + (1 - DECAY2) * g * g;
    w -= s.rate * (m * s.unbias1 / (sqrtf(v * s.unbias2) + EPSILON) + WEIGHT_DECAY * w);
}

// The rate rises over five steps, and gradients are clipped to a norm of 1. The host is told the loss.
__global__ void adamw(float4 *w, const float4 *g, float4 *m, float4 *v, size_t packs, const double *sums, int count,
                      const float *number, float rate, const float *loss, float *told)
{
    Step s = step_of(sums, count, *number, rate);
    for (size_t i = first_of_grid(); i < packs; i += gridDim.x * (size_t)blockDim.x) {
        float4 a = w[i], b = g[i] * s.clip, c = m[i], d = v[i];
        adamw_of(a.x, b.x, c.x, d.x, s);
        adamw_of(a.y, b.y, c.y, d.y, s);
        adamw_of(a.z, b.z, c.z, d.z, s);
        adamw_of(a.w, b.w, c.w, d.w, s);
        w[i] = a;
        m[i] = c;
        v[i] = d;
    }
    if (first_of_grid() == 0 && told)
        *told = *loss;
}
