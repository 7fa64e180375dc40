// SPDX-License-Identifier: Apache-2.0
// A token of graphs/decode/gpt.json by hand: a GPT at batch 1 with a cache of keys and values, one CUDA graph for each
// token, on one GPU. "plain": products by cuBLAS, and a kernel for each other step. "fused": own products of a row, with
// the norm, the sum or gelu in them, and attention by several blocks a head.
//   decode [--layers 12] [--heads 16] [--dim 64] [--context 1024] [--words 32768] [--starts 64] [--folder F] [--seconds
//   100]
// --folder: weights from raw files of f32, NAME.raw by their names in the graph; without it they are noise. The tokens of
// "fused" are a line of their own; both variants have to say the same, and to have the same logits.
#include "blas.h"

enum { THREADS = 256, SPLITS = 8, MOST_DIM = 256, COLUMNS = 16 };

struct Model {
    long layers, heads, dim, width, hidden, words, context;
    float *table, *gain1, *wq, *wk, *wv, *wo, *gain2, *up, *down, *gain_of_head, *head;
    float *turns; // context rows: cosines, then sines, of the angles of a head
    float *keys, *values, *x, *n, *q, *k, *v, *a, *inner, *logits, *part;
    int *token, *place;
};

static __device__ float sum_of_block(float value)
{
    __shared__ float warp[32];
    for (int o = 16; o; o >>= 1)
        value += __shfl_xor_sync(~0u, value, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (unsigned w = 0; w < (blockDim.x + 31) / 32; w++)
        value += warp[w];
    return value;
}

// y = x / sqrt(mean of x^2 + 1e-5) * gain, by one block.
static __device__ void norm_of(const float *x, const float *gain, float *y, long n)
{
    float sum = 0;
    for (long i = threadIdx.x; i < n; i += blockDim.x)
        sum += x[i] * x[i];
    float factor = rsqrtf(sum_of_block(sum) / (float)n + 1e-5f);
    for (long i = threadIdx.x; i < n; i += blockDim.x)
        y[i] = x[i] * factor * gain[i];
    __syncthreads();
}

static __device__ float gelu_of(float z)
{
    return z / 2 * (1 + erff(z * 0.70710678f));
}

__global__ void look_up(Model m)
{
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < m.width)
        m.x[i] = m.table[*m.token * m.width + i];
}

__global__ void find_token(Model m)
{
    __shared__ float best[32];
    __shared__ int at[32];
    float most = -INFINITY;
    int which = 0;
    for (int i = (int)threadIdx.x; i < m.words; i += (int)blockDim.x)
        if (m.logits[i] > most) {
            most = m.logits[i];
            which = i;
        }
    for (int o = 16; o; o >>= 1) {
        float other = __shfl_down_sync(~0u, most, o);
        int place = __shfl_down_sync(~0u, which, o);
        if (other > most || (other == most && place < which)) {
            most = other;
            which = place;
        }
    }
    if (threadIdx.x % 32 == 0) {
        best[threadIdx.x / 32] = most;
        at[threadIdx.x / 32] = which;
    }
    __syncthreads();
    if (threadIdx.x)
        return;
    for (unsigned w = 1; w < blockDim.x / 32; w++)
        if (best[w] > most || (best[w] == most && at[w] < which)) {
            most = best[w];
            which = at[w];
        }
    *m.token = which;
    *m.place += 1;
}

// ---- plain: a kernel for each step ----

__global__ void norm(const float *x, const float *gain, float *y, long n)
{
    norm_of(x, gain, y, n);
}

__global__ void add(float *x, const float *y, long n)
{
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += y[i];
}

__global__ void gelu(float *x, long n)
{
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = gelu_of(x[i]);
}

// Element i of a head, turned by the angle of the place.
static __device__ float turned(const float *x, const float *turns, long dim, long i)
{
    long half = dim / 2, pair = i % half;
    float c = turns[pair], s = turns[half + pair];
    return i < half ? x[i] * c - x[i + half] * s : x[i] * c + x[i - half] * s;
}

// Keys and values of the token go to their place in the cache: a block a head.
__global__ void keep(Model m, float *keys, float *values)
{
    long head = blockIdx.x, place = *m.place, at = (head * m.context + place) * m.dim;
    for (long i = threadIdx.x; i < m.dim; i += blockDim.x) {
        keys[at + i] = turned(m.k + head * m.dim, m.turns + place * m.dim, m.dim, i);
        values[at + i] = m.v[head * m.dim + i];
    }
}

// Attention of one head over some of the keys: a warp a key, then a thread an element. Largest score, sum and weighted
// values go to m.part.
static __device__ void attend(const Model &m, const float *keys, const float *values, long head, long first, long last,
                              float *part)
{
    __shared__ float q[MOST_DIM], score[THREADS], scale[1];
    long dim = m.dim;
    const float *turns = m.turns + *m.place * dim;
    for (long i = threadIdx.x; i < dim; i += blockDim.x)
        q[i] = turned(m.q + head * dim, turns, dim, i) * rsqrtf((float)dim);
    float most = -INFINITY, sum = 0, value = 0;
    for (long from = first; from < last; from += THREADS) {
        long count = last - from < THREADS ? last - from : THREADS;
        __syncthreads();
        for (long key = threadIdx.x / 32; key < count; key += blockDim.x / 32) {
            const float *row = keys + (head * m.context + from + key) * dim;
            float dot = 0;
            for (long i = threadIdx.x % 32; i < dim; i += 32)
                dot += q[i] * row[i];
            for (int o = 16; o; o >>= 1)
                dot += __shfl_xor_sync(~0u, dot, o);
            if (threadIdx.x % 32 == 0)
                score[key] = dot;
        }
        __syncthreads();
        float new_most = most;
        for (long key = 0; key < count; key++)
            new_most = fmaxf(new_most, score[key]);
        __syncthreads();
        for (long key = threadIdx.x; key < count; key += blockDim.x)
            score[key] = expf(score[key] - new_most);
        if (threadIdx.x == 0)
            scale[0] = most == -INFINITY ? 0 : expf(most - new_most);
        __syncthreads();
        sum *= scale[0];
        value *= scale[0];
        for (long key = 0; key < count; key++) {
            sum += score[key];
            if (threadIdx.x < dim)
                value += score[key] * values[(head * m.context + from + key) * dim + threadIdx.x];
        }
        most = new_most;
    }
    if (threadIdx.x < dim)
        part[2 + threadIdx.x] = value;
    if (threadIdx.x == 0) {
        part[0] = most;
        part[1] = sum;
    }
}

__global__ void attention(Model m, const float *keys, const float *values)
{
    __shared__ float part[2 + MOST_DIM];
    attend(m, keys, values, blockIdx.x, 0, *m.place + 1, part);
    __syncthreads();
    if (threadIdx.x < m.dim)
        m.a[blockIdx.x * m.dim + threadIdx.x] = part[2 + threadIdx.x] / part[1];
}

// ---- fused ----

// Block (h, s): the s-th part of the keys of head h. The first of a head keeps the token's own key and value, which only
// the last part reads: so that one writes them itself.
__global__ void attention_part(Model m, float *keys, float *values)
{
    long head = blockIdx.x, place = *m.place, count = place + 1, each = (count + SPLITS - 1) / SPLITS;
    long first = blockIdx.y * each, last = first + each < count ? first + each : count;
    float *part = m.part + (head * SPLITS + blockIdx.y) * (2 + m.dim);
    if (first <= place && place < last) {
        long at = (head * m.context + place) * m.dim;
        for (long i = threadIdx.x; i < m.dim; i += blockDim.x) {
            keys[at + i] = turned(m.k + head * m.dim, m.turns + place * m.dim, m.dim, i);
            values[at + i] = m.v[head * m.dim + i];
        }
        __syncthreads();
    }
    attend(m, keys, values, head, first, last, part);
}

// The parts of attention together, in shared memory.
static __device__ void join(const Model &m, float *a)
{
    for (long i = threadIdx.x; i < m.width; i += blockDim.x) {
        const float *part = m.part + i / m.dim * SPLITS * (2 + m.dim);
        float most = -INFINITY, sum = 0, value = 0;
        for (int s = 0; s < SPLITS; s++)
            most = fmaxf(most, part[s * (2 + m.dim)]);
        for (int s = 0; s < SPLITS; s++) {
            const float *one = part + s * (2 + m.dim);
            float factor = one[1] > 0 ? expf(one[0] - most) : 0;
            sum += factor * one[1];
            value += factor * one[2 + i % m.dim];
        }
        a[i] = value / sum;
    }
    __syncthreads();
}

enum Before { NORM, JOIN, NOTHING };
enum Behind { STORE, ADD, GELU };

// y = x W for up to three W, [rows, columns], of which a block has COLUMNS columns: 4 lanes have 16 bytes each of a row,
// and each thread has every 64th row.
template <Before BEFORE, Behind BEHIND>
__global__ void product(Model m, const float *from, const float *gain, long rows, long columns, const float *w0,
                        const float *w1, const float *w2, float *y0, float *y1, float *y2)
{
    extern __shared__ float x[];
    __shared__ float4 sums[THREADS];
    if (BEFORE == NORM)
        norm_of(from, gain, x, rows);
    if (BEFORE == JOIN)
        join(m, x);
    if (BEFORE == NOTHING)
        for (long i = threadIdx.x; i < rows; i += THREADS)
            x[i] = from[i];
    __syncthreads();
    const float *w = blockIdx.y == 0 ? w0 : blockIdx.y == 1 ? w1 : w2;
    float *y = blockIdx.y == 0 ? y0 : blockIdx.y == 1 ? y1 : y2;
    long column = blockIdx.x * (long)COLUMNS + threadIdx.x % 4 * 4;
    float4 sum = { 0, 0, 0, 0 };
#pragma unroll 8
    for (long row = threadIdx.x / 4; row < rows; row += THREADS / 4) {
        float4 value = *(const float4 *)(w + row * columns + column);
        sum.x += x[row] * value.x;
        sum.y += x[row] * value.y;
        sum.z += x[row] * value.z;
        sum.w += x[row] * value.w;
    }
    sums[threadIdx.x] = sum;
    for (unsigned half = THREADS / 2; half >= 4; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            float4 other = sums[threadIdx.x + half], own = sums[threadIdx.x];
            sums[threadIdx.x] = { own.x + other.x, own.y + other.y, own.z + other.z, own.w + other.w };
        }
    }
    if (threadIdx.x >= 4)
        return;
    const float *own = (const float *)&sums[threadIdx.x];
    for (int i = 0; i < 4; i++)
        if (BEHIND == ADD)
            y[column + i] += own[i];
        else
            y[column + i] = BEHIND == GELU ? gelu_of(own[i]) : own[i];
}

struct Decode {
    Model m = {};
    cudaStream_t stream;
    cublasHandle_t blas;
    int *host_token;
    std::string folder;

    float *weights(const char *name, size_t n, int seed, float low, float high)
    {
        float *array = new_array<float>(n);
        if (folder.empty()) {
            fill_noise<<<1024, 256>>>(array, n, 0, (unsigned long long)seed, low, high);
            CUDA(cudaGetLastError());
            return array;
        }
        std::vector<float> read(n);
        std::string path = folder + "/" + name + ".raw";
        FILE *file = fopen(path.c_str(), "rb");
        held(file && fread(read.data(), sizeof(float), n, file) == n, path.c_str(), __FILE__, __LINE__, "cannot be read");
        fclose(file);
        CUDA(cudaMemcpy(array, read.data(), n * sizeof(float), cudaMemcpyHostToDevice));
        return array;
    }

    Decode(Work &work, const std::string &where) : folder(where)
    {
        m.layers = work.size("layers", 12);
        m.heads = work.size("heads", 16);
        m.dim = work.size("dim", 64);
        m.context = work.size("context", 1024);
        m.words = work.size("words", 32768);
        m.width = m.heads * m.dim;
        m.hidden = 4 * m.width;
        held(m.dim <= MOST_DIM && m.dim % 2 == 0 && m.width % COLUMNS == 0 && m.words % COLUMNS == 0, "sizes", __FILE__,
             __LINE__, "--dim is even and at most 256, --heads x --dim and --words are multiples of 16");
        size_t square = (size_t)(m.layers * m.width * m.width), gains = (size_t)(m.layers * m.width);
        m.table = weights("table", (size_t)(m.words * m.width), 3, -0.5f, 0.5f);
        m.gain1 = weights("gain1", gains, 11, 0.9f, 1.1f);
        m.gain2 = weights("gain2", gains, 12, 0.9f, 1.1f);
        m.wq = weights("wq", square, 4, -0.08f, 0.08f);
        m.wk = weights("wk", square, 5, -0.08f, 0.08f);
        m.wv = weights("wv", square, 6, -0.08f, 0.08f);
        m.wo = weights("wo", square, 7, -0.08f, 0.08f);
        m.up = weights("up", 4 * square, 8, -0.08f, 0.08f);
        m.down = weights("down", 4 * square, 9, -0.08f, 0.08f);
        m.gain_of_head = weights("gain_of_head", (size_t)m.width, 13, 0.9f, 1.1f);
        m.head = weights("head", (size_t)(m.width * m.words), 10, -0.08f, 0.08f);
        for (float **array : { &m.keys, &m.values })
            *array = new_array<float>((size_t)(m.layers * m.context * m.width));
        for (float **array : { &m.x, &m.n, &m.q, &m.k, &m.v, &m.a })
            *array = new_array<float>((size_t)m.width);
        m.inner = new_array<float>((size_t)m.hidden);
        m.logits = new_array<float>((size_t)m.words);
        m.part = new_array<float>((size_t)(m.heads * SPLITS * (2 + m.dim)));
        m.token = new_array<int>(1);
        m.place = new_array<int>(1);
        fill_turns();
        stream = new_stream();
        blas = new_blas(stream);
        host_token = new_host_array<int>(1);
    }

    void fill_turns()
    {
        long half = m.dim / 2;
        std::vector<float> turns((size_t)(m.context * m.dim));
        for (long p = 0; p < m.context; p++)
            for (long i = 0; i < half; i++) {
                double angle = (double)p * pow(10000.0, -2.0 * (double)i / (double)m.dim);
                turns[(size_t)(p * m.dim + i)] = (float)cos(angle);
                turns[(size_t)(p * m.dim + half + i)] = (float)sin(angle);
            }
        m.turns = new_array<float>(turns.size());
        CUDA(cudaMemcpy(m.turns, turns.data(), turns.size() * sizeof(float), cudaMemcpyHostToDevice));
    }

    void reset()
    {
        int first = 1;
        CUDA(cudaMemcpy(m.token, &first, sizeof first, cudaMemcpyHostToDevice));
        CUDA(cudaMemset(m.place, 0, sizeof(int)));
    }

    static unsigned blocks(long n) { return (unsigned)((n + THREADS - 1) / THREADS); }

    void times(const float *x, const float *w, float *y, long rows, long columns)
    {
        gemm_rows(blas, false, false, 1, columns, rows, 1, x, w, 0, y);
    }

    void plain_layer(long l)
    {
        size_t square = (size_t)(l * m.width * m.width);
        float *keys = m.keys + l * m.context * m.width, *values = m.values + l * m.context * m.width;
        norm<<<1, 1024, 0, stream>>>(m.x, m.gain1 + l * m.width, m.n, m.width);
        times(m.n, m.wq + square, m.q, m.width, m.width);
        times(m.n, m.wk + square, m.k, m.width, m.width);
        times(m.n, m.wv + square, m.v, m.width, m.width);
        keep<<<(unsigned)m.heads, 64, 0, stream>>>(m, keys, values);
        attention<<<(unsigned)m.heads, THREADS, 0, stream>>>(m, keys, values);
        times(m.a, m.wo + square, m.n, m.width, m.width);
        add<<<blocks(m.width), THREADS, 0, stream>>>(m.x, m.n, m.width);
        norm<<<1, 1024, 0, stream>>>(m.x, m.gain2 + l * m.width, m.n, m.width);
        times(m.n, m.up + 4 * square, m.inner, m.width, m.hidden);
        gelu<<<blocks(m.hidden), THREADS, 0, stream>>>(m.inner, m.hidden);
        times(m.inner, m.down + 4 * square, m.n, m.hidden, m.width);
        add<<<blocks(m.width), THREADS, 0, stream>>>(m.x, m.n, m.width);
    }

    void fused_layer(long l)
    {
        size_t square = (size_t)(l * m.width * m.width), row = sizeof(float) * (size_t)m.width;
        float *keys = m.keys + l * m.context * m.width, *values = m.values + l * m.context * m.width;
        dim3 narrow((unsigned)(m.width / COLUMNS)), wide((unsigned)(m.hidden / COLUMNS));
        product<NORM, STORE><<<dim3(narrow.x, 3), THREADS, row, stream>>>(
            m, m.x, m.gain1 + l * m.width, m.width, m.width, m.wq + square, m.wk + square, m.wv + square, m.q, m.k, m.v);
        attention_part<<<dim3((unsigned)m.heads, SPLITS), THREADS, 0, stream>>>(m, keys, values);
        product<JOIN, ADD><<<narrow, THREADS, row, stream>>>(m, nullptr, nullptr, m.width, m.width, m.wo + square, nullptr,
                                                             nullptr, m.x, nullptr, nullptr);
        product<NORM, GELU><<<wide, THREADS, row, stream>>>(m, m.x, m.gain2 + l * m.width, m.width, m.hidden,
                                                            m.up + 4 * square, nullptr, nullptr, m.inner, nullptr,
                                                            nullptr);
        product<NOTHING, ADD><<<narrow, THREADS, 4 * row, stream>>>(
            m, m.inner, nullptr, m.hidden, m.width, m.down + 4 * square, nullptr, nullptr, m.x, nullptr, nullptr);
    }

    void token(bool fused)
    {
        look_up<<<blocks(m.width), THREADS, 0, stream>>>(m);
        for (long l = 0; l < m.layers; l++)
            fused ? fused_layer(l) : plain_layer(l);
        if (fused) {
            product<NORM, STORE><<<(unsigned)(m.words / COLUMNS), THREADS, sizeof(float) * (size_t)m.width, stream>>>(
                m, m.x, m.gain_of_head, m.width, m.words, m.head, nullptr, nullptr, m.logits, nullptr, nullptr);
        } else {
            norm<<<1, 1024, 0, stream>>>(m.x, m.gain_of_head, m.n, m.width);
            times(m.n, m.head, m.logits, m.width, m.words);
        }
        find_token<<<1, 1024, 0, stream>>>(m);
        CUDA(cudaGetLastError());
        CUDA(cudaMemcpyAsync(host_token, m.token, sizeof(int), cudaMemcpyDeviceToHost, stream));
    }
};

int main(int argc, char **argv)
{
    Work work("decode", argc, argv);
    std::string folder;
    for (int i = 1; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], "--folder"))
            folder = argv[i + 1];
    work.dtype({ "f32" });
    if (work.gpus != 1)
        held(false, "--gpus", __FILE__, __LINE__, "decode is for one GPU");
    Decode d(work, folder);
    held(d.m.context >= work.starts + 2, "--starts", __FILE__, __LINE__, "the cache has as many places as there are starts, and 2");
    std::vector<float> logits[2];
    std::vector<int> tokens[2];
    size_t largest = sizeof(float) * (size_t)d.m.hidden;
    CUDA(cudaFuncSetAttribute(product<NOTHING, ADD>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)largest));
    for (int fused = 0; fused < 2; fused++) {
        d.reset();
        CUDA(cudaDeviceSynchronize());
        cudaGraphExec_t graph = captured({ { 0, d.stream } }, [&] { d.token(fused); });
        work.time(fused ? "fused" : "plain", [&] {
            launch(graph, { 0, d.stream }, 1);
            tokens[fused].push_back(*d.host_token);
        });
        logits[fused].resize((size_t)d.m.words);
        CUDA(cudaMemcpy(logits[fused].data(), d.m.logits, sizeof(float) * (size_t)d.m.words, cudaMemcpyDeviceToHost));
    }
    double error = 0, most = 0;
    for (size_t i = 0; i < logits[0].size(); i++) {
        error = std::max(error, (double)fabsf(logits[0][i] - logits[1][i]));
        most = std::max(most, (double)fabsf(logits[0][i]));
    }
    bool same = tokens[0] == tokens[1];
    work.check(same ? error / most : INFINITY, 1e-3);
    printf("{\"tokens\": [");
    for (size_t i = 0; i < tokens[1].size(); i++)
        printf("%s%d", i ? ", " : "", tokens[1][i]);
    printf("]}\n");
    return work.end();
}
