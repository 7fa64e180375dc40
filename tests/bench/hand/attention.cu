// SPDX-License-Identifier: Apache-2.0
// softmax(q k^T / sqrt(d)) v for some heads of one length, heads shared out among the GPUs: three launches for all
// heads of a GPU (batched), or three for each head over S streams. The softmax is the one that the graph attention.json
// has.
//   attention [--gpus 1] [--dtype f32|bf16] [--heads 32] [--length 1024] [--d 128] [--starts 7] [--seconds 100]
#include "attention_kernels.cu"
#include "blas.h"

template <typename T> static void softmax(T *x, long rows, long columns, cudaStream_t on);
template <> void softmax<float>(float *x, long rows, long columns, cudaStream_t on)
{
    softmax_f32<<<(unsigned)rows, SOFTMAX_THREADS, 0, on>>>(x, columns);
}
template <> void softmax<__nv_bfloat16>(__nv_bfloat16 *x, long rows, long columns, cudaStream_t on)
{
    softmax_bf16<<<(unsigned)rows, SOFTMAX_THREADS, 0, on>>>((unsigned short *)x, columns);
}

template <typename T> struct Attention {
    enum { LANES = 8 };
    struct Gpu {
        T *q, *k, *v, *s, *o;
        long first, count;
        std::vector<cudaStream_t> lane;
        std::vector<cublasHandle_t> blas;
    };
    long length, d;
    std::vector<Gpu> gpu;

    Attention(int gpus, long heads, long length_, long d_) : length(length_), d(d_), gpu((size_t)gpus)
    {
        for (int g = 0; g < gpus; g++) {
            gpu[g].first = g * heads / gpus;
            gpu[g].count = (g + 1) * heads / gpus - gpu[g].first;
            open(g, gpu[g]);
        }
        wait_for_all(gpus);
    }

    void open(int g, Gpu &p)
    {
        size_t elements = (size_t)(p.count * length * d), first = (size_t)(p.first * length * d);
        CUDA(cudaSetDevice(g));
        T **inputs[3] = { &p.q, &p.k, &p.v };
        for (int i = 0; i < 3; i++) {
            *inputs[i] = new_array<T>(elements);
            fill_noise<<<1024, 256>>>(*inputs[i], elements, first, (unsigned long long)i + 1, -1.0, 1.0);
        }
        p.s = new_array<T>((size_t)(p.count * length * length));
        p.o = new_array<T>(elements);
        for (int lane = 0; lane < LANES; lane++) {
            p.lane.push_back(new_stream());
            p.blas.push_back(new_blas(p.lane[lane]));
        }
    }

    double scale() const { return 1 / std::sqrt((double)d); }

    void each(int lanes)
    {
        long square = length * length, part = length * d;
        for (size_t g = 0; g < gpu.size(); g++) {
            Gpu &p = gpu[g];
            CUDA(cudaSetDevice((int)g));
            for (long h = 0; h < p.count; h++) {
                size_t lane = (size_t)(h % lanes);
                gemm_rows(p.blas[lane], false, true, length, length, d, scale(), p.q + h * part, p.k + h * part, 0,
                          p.s + h * square);
                softmax<T>(p.s + h * square, length, length, p.lane[lane]);
                gemm_rows(p.blas[lane], false, false, length, d, length, 1, p.s + h * square, p.v + h * part, 0,
                          p.o + h * part);
            }
            CUDA(cudaGetLastError());
        }
    }

    // Column by column as in gemm_rows, for all heads of a GPU.
    void strided(Gpu &p, bool ta, long m, long n, long k, double alpha, const T *a, const T *b, T *c)
    {
        typename Blas<T>::scalar factor = (typename Blas<T>::scalar)alpha, zero = 0;
        LIBRARY(cublasGemmStridedBatchedEx(p.blas[0], ta ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, (int)m, (int)n,
                                           (int)k, &factor, a, Blas<T>::type, ta ? (int)k : (int)m, m * k, b,
                                           Blas<T>::type, (int)k, k * n, &zero, c, Blas<T>::type, (int)m, m * n,
                                           (int)p.count, Blas<T>::compute, CUBLAS_GEMM_DEFAULT));
    }

    void batched()
    {
        for (size_t g = 0; g < gpu.size(); g++) {
            Gpu &p = gpu[g];
            CUDA(cudaSetDevice((int)g));
            strided(p, true, length, length, d, scale(), p.k, p.q, p.s);
            softmax<T>(p.s, p.count * length, length, p.lane[0]);
            strided(p, false, d, length, length, 1, p.v, p.s, p.o);
            CUDA(cudaGetLastError());
        }
    }

    Streams streams(int lanes) const
    {
        return streams_of((int)gpu.size(), [&](int g) {
            auto first = gpu[(size_t)g].lane.begin();
            return std::vector<cudaStream_t>(first, first + lanes);
        });
    }

    void clear()
    {
        for (size_t g = 0; g < gpu.size(); g++) {
            CUDA(cudaSetDevice((int)g));
            CUDA(cudaMemset(gpu[g].o, 0xff, (size_t)(gpu[g].count * length * d) * sizeof(T)));
        }
        wait_for_all((int)gpu.size());
    }

    double error() const
    {
        double worst = 0;
        for (const Gpu &p : gpu)
            for (long h : { 0l, p.count - 1 })
                for (long row : { 0l, length / 2, length - 1 })
                    worst = std::max(worst, row_error(p, h, row));
        return worst;
    }

    static double value(size_t place, unsigned long long seed)
    {
        return (double)(float)(T)(float)(-1.0 + 2.0 * noise(place, seed));
    }

    double row_error(const Gpu &p, long h, long row) const
    {
        size_t at = (size_t)((p.first + h) * length * d);
        std::vector<double> weight((size_t)length);
        double most = -INFINITY, sum = 0, worst = 0;
        for (long j = 0; j < length; j++) {
            double dot = 0;
            for (long e = 0; e < d; e++)
                dot += value(at + (size_t)(row * d + e), 1) * value(at + (size_t)(j * d + e), 2);
            weight[(size_t)j] = dot * scale();
            most = std::max(most, weight[(size_t)j]);
        }
        for (double &w : weight)
            sum += w = std::exp(w - most);
        std::vector<T> got((size_t)d);
        CUDA(cudaMemcpy(got.data(), p.o + (h * length + row) * d, (size_t)d * sizeof(T), cudaMemcpyDefault));
        for (long e = 0; e < d; e++) {
            double want = 0;
            for (long j = 0; j < length; j++)
                want += weight[(size_t)j] / sum * value(at + (size_t)(j * d + e), 3);
            double off = std::fabs(want - (double)(float)got[(size_t)e]);
            worst = off <= worst ? worst : off; // a NaN is kept
        }
        return worst;
    }
};

template <typename T> static void run(Work &work, double most)
{
    long heads = work.size("heads", 32), length = work.size("length", 1024), d = work.size("d", 128);
    if (heads < work.gpus)
        throw std::runtime_error("--heads is less than --gpus");
    Attention<T> attention(work.gpus, heads, length, d);
    auto variant = [&](const std::string &name, int lanes, const std::function<void()> &queue) {
        attention.clear();
        work.time(
            name,
            [&] {
                queue();
                wait_for_all(work.gpus);
            });
        work.check(attention.error(), most);
        work.attempt(
            name + ", graph",
            [&] {
                auto streams = attention.streams(lanes);
                cudaGraphExec_t graph = captured(streams, queue);
                attention.clear();
                work.time(
                    name + ", graph", [&] { launch(graph, streams[0], work.gpus); });
                work.check(attention.error(), most);
            });
    };
    variant("batched", 1, [&] { attention.batched(); });
    for (int lanes : { 1, 2, 4, 8 })
        variant("S=" + std::to_string(lanes), lanes, [&] { attention.each(lanes); });
}

int main(int argc, char **argv)
{
    Work work("attention", argc, argv);
    if (work.dtype({ "f32", "bf16" }) == "f32")
        run<float>(work, 1e-5);
    else
        run<__nv_bfloat16>(work, 1e-3);
    return work.end();
}
