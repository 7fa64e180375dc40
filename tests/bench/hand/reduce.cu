// SPDX-License-Identifier: Apache-2.0
// The sum of an array that lies on several GPUs: each adds up its part, then a tree over the GPUs adds the sums.
//   reduce [--gpus 1] [--dtype f32|f64] [--n 268435456] [--starts 7] [--seconds 100]
#include "work.h"

enum { BLOCK = 512 };

template <typename T> __global__ void partial_sums(const T *__restrict__ x, size_t n, double *partial)
{
    enum { TOGETHER = 16 / sizeof(T) };
    struct alignas(16) Pack {
        T v[TOGETHER];
    };
    const Pack *packs = (const Pack *)x;
    double sum = 0;
    size_t at = blockIdx.x * (size_t)blockDim.x + threadIdx.x, stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = at; i < n / TOGETHER; i += stride) {
        Pack p = packs[i];
        for (int k = 0; k < TOGETHER; k++)
            sum += (double)p.v[k];
    }
    for (size_t i = n / TOGETHER * TOGETHER + at; i < n; i += stride)
        sum += (double)x[i];
    sum = block_sum<BLOCK>(sum);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

// By one block.
__global__ void last_sum(const double *partial, int count, double *sum)
{
    double all = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        all += partial[i];
    all = block_sum<BLOCK>(all);
    if (threadIdx.x == 0)
        *sum = all;
}

__global__ void add_other(double *sum, const double *other)
{
    *sum += *other;
}

template <typename T> struct Reduce {
    enum { MOST_BLOCKS = 132 * 16 };
    int gpus;
    size_t each;
    double *result;
    std::vector<T *> x;
    std::vector<double *> partial, sum, other;
    std::vector<cudaStream_t> stream;
    std::vector<cudaEvent_t> done;

    Reduce(int gpus_, size_t n) : gpus(gpus_), each(n / (size_t)gpus_), result(new_host_array<double>(1))
    {
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            x.push_back(new_array<T>(each));
            partial.push_back(new_array<double>(MOST_BLOCKS));
            sum.push_back(new_array<double>(1));
            other.push_back(new_array<double>(1));
            stream.push_back(new_stream());
            done.push_back(new_event());
            fill_noise<<<1024, 256>>>(x[g], each, (size_t)g * each, 1, 0.0, 1.0);
        }
        wait_for_all(gpus);
    }

    void queue(int blocks)
    {
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            partial_sums<<<blocks, BLOCK, 0, stream[g]>>>(x[g], each, partial[g]);
            last_sum<<<1, BLOCK, 0, stream[g]>>>(partial[g], blocks, sum[g]);
            CUDA(cudaGetLastError());
        }
        for (int far = 1; far < gpus; far *= 2)
            for (int g = 0; g + far < gpus; g += 2 * far)
                join(g, g + far);
        CUDA(cudaSetDevice(0));
        CUDA(cudaMemcpyAsync(result, sum[0], sizeof(double), cudaMemcpyDeviceToHost, stream[0]));
    }

    void join(int to, int from)
    {
        CUDA(cudaSetDevice(from));
        CUDA(cudaMemcpyAsync(other[to], sum[from], sizeof(double), cudaMemcpyDefault, stream[from]));
        CUDA(cudaEventRecord(done[from], stream[from]));
        CUDA(cudaSetDevice(to));
        CUDA(cudaStreamWaitEvent(stream[to], done[from], 0));
        add_other<<<1, 1, 0, stream[to]>>>(sum[to], other[to]);
        CUDA(cudaGetLastError());
    }

    Streams streams() const
    {
        return streams_of(gpus, [&](int g) { return std::vector<cudaStream_t>{ stream[g] }; });
    }
};

template <typename T> static double sum_on_cpu(size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)(T)(float)noise(i, 1);
    return sum;
}

template <typename T> static void run(Work &work)
{
    size_t n = (size_t)work.size("n", 268435456), each = n / (size_t)work.gpus / 16 * 16;
    Reduce<T> reduce(work.gpus, each * (size_t)work.gpus);
    double want = sum_on_cpu<T>(each * (size_t)work.gpus);
    auto error = [&] { return std::fabs(*reduce.result / want - 1); };
    for (int per : { 1, 2, 4 }) {
        int blocks = 132 * per;
        std::string name = std::to_string(per) + " blocks an SM";
        work.time(name, [&] {
            reduce.queue(blocks);
            wait_for_all(work.gpus);
        });
        work.check(error(), 1e-9);
        work.attempt(name + ", graph", [&] {
            cudaGraphExec_t graph = captured(reduce.streams(), [&] { reduce.queue(blocks); });
            *reduce.result = 0;
            work.time(name + ", graph", [&] { launch(graph, { 0, reduce.stream[0] }, work.gpus); });
            work.check(error(), 1e-9);
        });
    }
}

int main(int argc, char **argv)
{
    Work work("reduce", argc, argv);
    if (work.dtype({ "f32", "f64" }) == "f32")
        run<float>(work);
    else
        run<double>(work);
    return work.end();
}
