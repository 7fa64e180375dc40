// SPDX-License-Identifier: Apache-2.0
// Many small products of matrices that have nothing to do with each other: one batched call a GPU, and a call each over
// S streams.
//   batch [--gpus 1] [--dtype f32|f64|bf16] [--m 128] [--count 512] [--starts 7] [--seconds 100]
#include "blas.h"

template <typename T> struct Batch {
    enum { LANES = 16 };
    struct Gpu {
        T *a, *b, *c;
        const T **pa, **pb;
        T **pc;
        long first, count;
        std::vector<cudaStream_t> lane;
        std::vector<cublasHandle_t> blas;
    };
    long m;
    std::vector<Gpu> gpu;

    Batch(int gpus, long m_, long count) : m(m_), gpu((size_t)gpus)
    {
        for (int g = 0; g < gpus; g++) {
            gpu[g].first = g * count / gpus;
            gpu[g].count = (g + 1) * count / gpus - gpu[g].first;
            open(g, gpu[g]);
        }
        wait_for_all(gpus);
    }

    void open(int g, Gpu &p)
    {
        size_t elements = (size_t)(p.count * m * m), first = (size_t)(p.first * m * m);
        CUDA(cudaSetDevice(g));
        for (T **array : { &p.a, &p.b, &p.c })
            *array = new_array<T>(elements);
        fill_noise<<<1024, 256>>>(p.a, elements, first, 1, -1.0, 1.0);
        fill_noise<<<1024, 256>>>(p.b, elements, first, 2, -1.0, 1.0);
        p.pa = (const T **)pointers(p.a, p.count);
        p.pb = (const T **)pointers(p.b, p.count);
        p.pc = pointers(p.c, p.count);
        for (int lane = 0; lane < LANES; lane++) {
            p.lane.push_back(new_stream());
            p.blas.push_back(new_blas(p.lane[lane]));
        }
    }

    T **pointers(T *array, long count) const
    {
        std::vector<T *> all;
        for (long i = 0; i < count; i++)
            all.push_back(array + i * m * m);
        T **there = new_array<T *>((size_t)count);
        CUDA(cudaMemcpy(there, all.data(), all.size() * sizeof(T *), cudaMemcpyHostToDevice));
        return there;
    }

    // Row by row: C = A B is, for cuBLAS, C^T = B^T A^T.
    void batched()
    {
        typename Blas<T>::scalar one = 1, zero = 0;
        int size = (int)m;
        for (size_t g = 0; g < gpu.size(); g++) {
            Gpu &p = gpu[g];
            CUDA(cudaSetDevice((int)g));
            LIBRARY(cublasGemmBatchedEx(p.blas[0], CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, &one,
                                        (const void **)p.pb, Blas<T>::type, size, (const void **)p.pa, Blas<T>::type,
                                        size, &zero, (void **)p.pc, Blas<T>::type, size, (int)p.count, Blas<T>::compute,
                                        CUBLAS_GEMM_DEFAULT));
        }
    }

    void strided()
    {
        typename Blas<T>::scalar one = 1, zero = 0;
        int size = (int)m;
        for (size_t g = 0; g < gpu.size(); g++) {
            Gpu &p = gpu[g];
            CUDA(cudaSetDevice((int)g));
            LIBRARY(cublasGemmStridedBatchedEx(p.blas[0], CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, &one, p.b,
                                               Blas<T>::type, size, m * m, p.a, Blas<T>::type, size, m * m, &zero, p.c,
                                               Blas<T>::type, size, m * m, (int)p.count, Blas<T>::compute,
                                               CUBLAS_GEMM_DEFAULT));
        }
    }

    void each(int lanes)
    {
        for (size_t g = 0; g < gpu.size(); g++) {
            Gpu &p = gpu[g];
            CUDA(cudaSetDevice((int)g));
            for (long i = 0; i < p.count; i++)
                gemm_rows(p.blas[(size_t)(i % lanes)], false, false, m, m, m, 1, p.a + i * m * m, p.b + i * m * m, 0,
                          p.c + i * m * m);
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
            CUDA(cudaMemset(gpu[g].c, 0xff, (size_t)(gpu[g].count * m * m) * sizeof(T)));
        }
        wait_for_all((int)gpu.size());
    }

    // Some rows of the first, a middle and the last product, in doubles.
    double error() const
    {
        double worst = 0;
        for (const Gpu &p : gpu)
            for (long i : { 0l, p.count / 2, p.count - 1 })
                for (long row : { 0l, m / 2, m - 1 })
                    worst = std::max(worst, row_error(p, i, row));
        return worst / std::sqrt((double)m);
    }

    double row_error(const Gpu &p, long i, long row) const
    {
        double worst = 0;
        std::vector<T> got((size_t)m);
        size_t at = (size_t)((p.first + i) * m * m);
        CUDA(cudaMemcpy(got.data(), p.c + (i * m + row) * m, (size_t)m * sizeof(T), cudaMemcpyDefault));
        for (long j = 0; j < m; j++) {
            double sum = 0;
            for (long k = 0; k < m; k++)
                sum += value(at + (size_t)(row * m + k), 1) * value(at + (size_t)(k * m + j), 2);
            double off = std::fabs(sum - (double)(float)got[(size_t)j]);
            worst = off <= worst ? worst : off; // a NaN is kept
        }
        return worst;
    }

    static double value(size_t place, unsigned long long seed)
    {
        return (double)(float)(T)(float)(-1.0 + 2.0 * noise(place, seed));
    }
};

template <typename T> static void run(Work &work, double most)
{
    long m = work.size("m", 128), count = work.size("count", 512);
    Batch<T> batch(work.gpus, m, count);
    auto variant = [&](const std::string &name, int lanes, const std::function<void()> &queue) {
        batch.clear();
        work.time(
            name,
            [&] {
                queue();
                wait_for_all(work.gpus);
            });
        work.check(batch.error(), most);
        work.attempt(
            name + ", graph",
            [&] {
                auto streams = batch.streams(lanes);
                cudaGraphExec_t graph = captured(streams, queue);
                batch.clear();
                work.time(
                    name + ", graph", [&] { launch(graph, streams[0], work.gpus); });
                work.check(batch.error(), most);
            });
    };
    variant(
        "batched", 1, [&] { batch.batched(); });
    variant("strided", 1, [&] { batch.strided(); });
    for (int lanes : { 1, 4, 16 })
        variant("S=" + std::to_string(lanes), lanes, [&] { batch.each(lanes); });
}

int main(int argc, char **argv)
{
    Work work("batch", argc, argv);
    std::string dtype = work.dtype({ "f32", "f64", "bf16" });
    if (dtype == "f32")
        run<float>(work, 1e-5);
    else if (dtype == "f64")
        run<double>(work, 1e-5); // fetched values are compared as floats
    else
        run<__nv_bfloat16>(work, 2e-2);
    return work.end();
}
