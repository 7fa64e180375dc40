// SPDX-License-Identifier: Apache-2.0
// y = a x + y, then the sum of y, of arrays that stay on the GPUs, by two kernels.
//   saxpy [--gpus 1] [--dtype f32|f64] [--n 1000000000] [--fused 0] [--starts 7] [--seconds 100]
// --fused 1: by one kernel too, which reads y once; the graph says two, so that this is another work.
#include "work.h"

enum { BLOCK = 256, BLOCKS = 132 * 8 };

template <typename T> struct alignas(16) Pack {
    T v[16 / sizeof(T)];
};

template <typename T, bool UPDATE, bool SUM>
__global__ void pass(T a, const Pack<T> *__restrict__ x, Pack<T> *__restrict__ y, size_t packs, double *total)
{
    double sum = 0;
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < packs; i += stride) {
        Pack<T> v = y[i];
        if (UPDATE) {
            Pack<T> u = x[i];
            for (size_t k = 0; k < 16 / sizeof(T); k++)
                v.v[k] += a * u.v[k];
            y[i] = v;
        }
        if (SUM) {
            T part = 0;
            for (size_t k = 0; k < 16 / sizeof(T); k++)
                part += v.v[k];
            sum += (double)part;
        }
    }
    if (SUM) {
        sum = block_sum<BLOCK>(sum);
        if (threadIdx.x == 0)
            atomicAdd(total, sum);
    }
}

template <typename T> __global__ void fill(T *x, size_t n, size_t first, int period, T scale, T plus)
{
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride)
        x[i] = (T)((first + i) % (size_t)period) * scale + plus;
}

template <typename T> struct Saxpy {
    int gpus;
    size_t each;
    double *sums; // of each GPU, on the host
    std::vector<Pack<T> *> x, y;
    std::vector<double *> total;
    std::vector<cudaStream_t> stream;

    Saxpy(int gpus_, size_t n) : gpus(gpus_), each(n / (size_t)gpus_), sums(new_host_array<double>((size_t)gpus_))
    {
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            x.push_back(new_array<Pack<T>>(each * sizeof(T) / 16));
            y.push_back(new_array<Pack<T>>(each * sizeof(T) / 16));
            total.push_back(new_array<double>(1));
            stream.push_back(new_stream());
        }
    }

    void prepare()
    {
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            fill<<<BLOCKS, BLOCK>>>((T *)x[g], each, (size_t)g * each, 1000, (T)1e-3, (T)0);
            fill<<<BLOCKS, BLOCK>>>((T *)y[g], each, (size_t)g * each, 3, (T)0, (T)1);
        }
        wait_for_all(gpus);
    }

    void start(bool fused)
    {
        size_t packs = each * sizeof(T) / 16;
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            CUDA(cudaMemsetAsync(total[g], 0, sizeof(double), stream[g]));
            if (fused) {
                pass<T, true, true><<<BLOCKS, BLOCK, 0, stream[g]>>>((T)2, x[g], y[g], packs, total[g]);
            } else {
                pass<T, true, false><<<BLOCKS, BLOCK, 0, stream[g]>>>((T)2, x[g], y[g], packs, total[g]);
                pass<T, false, true><<<BLOCKS, BLOCK, 0, stream[g]>>>((T)2, x[g], y[g], packs, total[g]);
            }
            CUDA(cudaGetLastError());
            CUDA(cudaMemcpyAsync(&sums[g], total[g], sizeof(double), cudaMemcpyDeviceToHost, stream[g]));
        }
        for (int g = 0; g < gpus; g++)
            CUDA(cudaStreamSynchronize(stream[g]));
    }

    double error() const
    {
        double want = 0, got = 0, n = (double)each * gpus;
        size_t count = each * (size_t)gpus;
        for (size_t r = 0; r < 1000; r++)
            want += (double)(count / 1000 + (count % 1000 > r)) * (1 + 2 * (double)((T)r * (T)1e-3));
        for (int g = 0; g < gpus; g++)
            got += sums[g];
        return std::fabs(got - want) / n;
    }
};

template <typename T> static void run(Work &work)
{
    size_t n = (size_t)work.size("n", 1000000000), unit = (size_t)(16 * work.gpus);
    Saxpy<T> saxpy(work.gpus, n / unit * unit);
    for (bool fused : { false, true }) {
        if (fused && work.option("fused", 0) == 0)
            continue;
        work.time(
            fused ? "one kernel" : "two kernels", [&] { saxpy.start(fused); }, [&] { saxpy.prepare(); });
        work.check(saxpy.error(), 1e-5);
    }
}

int main(int argc, char **argv)
{
    Work work("saxpy", argc, argv);
    if (work.dtype({ "f32", "f64" }) == "f32")
        run<float>(work);
    else
        run<double>(work);
    return work.end();
}
