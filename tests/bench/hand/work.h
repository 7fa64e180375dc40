// SPDX-License-Identifier: Apache-2.0
// Programs by hand share this: options, the clock, medians, a watchdog, and one line of JSON that says how long the
// work took.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

inline void held(bool ok, const char *call, const char *file, int line, const char *why)
{
    if (!ok)
        throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + call + ": " + why);
}

// An error that nobody caught ends the program without a core file.
inline void end_of_program()
{
    try {
        std::rethrow_exception(std::current_exception());
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
    } catch (...) {
    }
    _exit(1);
}

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t e_ = (call);                                                                                       \
        held(e_ == cudaSuccess, #call, __FILE__, __LINE__, cudaGetErrorString(e_));                                    \
    } while (0)

// For cuBLAS, cuSOLVER and NCCL: each says 0 where all is well.
#define LIBRARY(call)                                                                                                  \
    do {                                                                                                               \
        int e_ = (int)(call);                                                                                          \
        held(e_ == 0, #call, __FILE__, __LINE__, ("status " + std::to_string(e_)).c_str());                            \
    } while (0)

inline void too_long(int)
{
    static const char text[] = "not done within --seconds: the program ends itself\n";
    ssize_t unused = write(2, text, sizeof text - 1);
    (void)unused;
    _exit(124);
}

// A program makes one of these first. Every size that it asks for is an option, --NAME VALUE, and is in its line.
class Work
{
  public:
    int gpus, starts;

    Work(const char *name, int argc, char **argv) : name_(name), argc_(argc), argv_(argv)
    {
        starts = (int)number("starts", 7);
        std::set_terminate(end_of_program);
        signal(SIGALRM, too_long);
        alarm((unsigned)number("seconds", 100));
        int have = 0;
        if (cudaGetDeviceCount(&have) != cudaSuccess || have == 0)
            skip("there is no GPU");
        gpus = (int)number("gpus", 1);
        if (gpus < 1 || gpus > have)
            skip("--gpus " + std::to_string(gpus) + ", and there are " + std::to_string(have));
        reach_each_other();
    }

    long size(const char *name, long other)
    {
        long value = number(name, other);
        held(value > 0, name, __FILE__, __LINE__, "a size is at least 1");
        sizes_ += ", \"" + std::string(name) + "\": " + std::to_string(value);
        return value;
    }

    // How the work is done, which is no part of its size.
    long option(const char *name, long other) const { return number(name, other); }

    double real(const char *name, double other) const
    {
        const char *word = text(name, nullptr);
        return word ? atof(word) : other;
    }

    // One of those that the program knows, the first where nothing is said.
    std::string word(const char *name, const std::vector<std::string> &known) const
    {
        std::string word = text(name, known[0].c_str());
        if (std::find(known.begin(), known.end(), word) == known.end())
            skip("no version for --" + std::string(name) + " " + word);
        return word;
    }

    std::string dtype(const std::vector<std::string> &known) { return dtype_ = word("dtype", known); }

    // `start` returns when the work is done; `prepare` is not timed.
    void time(
        const std::string &variant, const std::function<void()> &start, const std::function<void()> &prepare = [] {})
    {
        std::vector<double> ms;
        for (int i = -WARM_UP; i < starts; i++) {
            prepare();
            auto begin = std::chrono::steady_clock::now();
            start();
            double took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
            if (i >= 0)
                ms.push_back(took);
        }
        std::sort(ms.begin(), ms.end());
        keep(variant, ms[ms.size() / 2]);
    }

    // A variant that a driver or a library may refuse, such as a capture: it is left out then, and standard error says
    // why.
    void attempt(const std::string &variant, const std::function<void()> &act)
    {
        try {
            act();
        } catch (const std::runtime_error &error) {
            fprintf(stderr, "%s: %s is left out: %s\n", name_, variant.c_str(), error.what());
            cudaGetLastError();
        }
    }

    // How far the result is from the right one; every variant is checked, and the worst is told.
    void check(double error, double most)
    {
        if (!(error <= most)) {
            fprintf(stderr, "%s: wrong: off by %g, allowed %g\n", name_, error, most);
            wrong_ = true;
        }
        error_ = std::isnan(error) ? INFINITY : std::max(error_, error);
    }

    int end() const
    {
        if (wrong_ || variants_.empty())
            return 1;
        printf("{\"work\": \"%s\", \"dtype\": \"%s\", \"gpus\": %d%s, \"ms\": %.6f, \"best\": \"%s\", \"error\": %.3g, "
               "\"variants\": {%s}}\n",
               name_, dtype_.c_str(), gpus, sizes_.c_str(), best_ms_, best_.c_str(), error_, variants_.c_str());
        return 0;
    }

  private:
    enum { WARM_UP = 2 };
    const char *name_;
    int argc_;
    char **argv_;
    std::string dtype_, sizes_, variants_, best_;
    double best_ms_ = INFINITY, error_ = 0;
    bool wrong_ = false;

    [[noreturn]] void skip(const std::string &why) const
    {
        fprintf(stderr, "skipped: %s: %s\n", name_, why.c_str());
        exit(77);
    }

    const char *text(const char *name, const char *other) const
    {
        for (int i = 1; i + 1 < argc_; i += 2)
            if (!strncmp(argv_[i], "--", 2) && !strcmp(argv_[i] + 2, name))
                return argv_[i + 1];
        return other;
    }

    long number(const char *name, long other) const
    {
        const char *word = text(name, nullptr);
        return word ? atol(word) : other;
    }

    void keep(const std::string &variant, double ms)
    {
        char row[96];
        snprintf(row, sizeof row, "%s\"%s\": %.6f", variants_.empty() ? "" : ", ", variant.c_str(), ms);
        variants_ += row;
        if (ms < best_ms_) {
            best_ms_ = ms;
            best_ = variant;
        }
    }

    void reach_each_other() const
    {
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            for (int h = 0; h < gpus; h++)
                if (h != g)
                    cudaDeviceEnablePeerAccess(h, 0); // without it copies go through the host
        }
        cudaGetLastError();
    }
};

inline void wait_for_all(int gpus)
{
    for (int g = 0; g < gpus; g++) {
        CUDA(cudaSetDevice(g));
        CUDA(cudaDeviceSynchronize());
    }
}

inline cudaEvent_t new_event()
{
    cudaEvent_t event;
    CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

// Blocks of a stream that goes first are given to the GPU before those of others.
inline cudaStream_t new_stream(bool goes_first = false)
{
    cudaStream_t stream;
    int least, greatest;
    CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, goes_first ? greatest : least));
    return stream;
}

// Work that `next` is given from now on waits for the work that `before` has so far.
inline void follow(cudaStream_t next, cudaStream_t before, cudaEvent_t event)
{
    if (next == before)
        return;
    CUDA(cudaEventRecord(event, before));
    CUDA(cudaStreamWaitEvent(next, event, 0));
}

template <typename T> T *new_array(size_t n)
{
    T *array;
    CUDA(cudaMalloc(&array, std::max<size_t>(n, 1) * sizeof(T)));
    return array;
}

template <typename T> T *new_host_array(size_t n)
{
    T *array;
    CUDA(cudaHostAlloc(&array, n * sizeof(T), cudaHostAllocPortable));
    return array;
}

// Streams with the GPUs that they are on.
using Streams = std::vector<std::pair<int, cudaStream_t>>;

// Those that `of` names for each GPU, in turn.
inline Streams streams_of(int gpus, const std::function<std::vector<cudaStream_t>(int)> &of)
{
    Streams all;
    for (int g = 0; g < gpus; g++)
        for (cudaStream_t stream : of(g))
            all.push_back({ g, stream });
    return all;
}

// Work that `queue` gives to streams of several GPUs, as one CUDA graph: every stream forks from the first and joins
// it.
inline cudaGraphExec_t captured(const Streams &streams, const std::function<void()> &queue)
{
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CUDA(cudaSetDevice(streams[0].first));
    cudaEvent_t fork = new_event();
    CUDA(cudaStreamBeginCapture(streams[0].second, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaEventRecord(fork, streams[0].second));
    for (size_t i = 1; i < streams.size(); i++)
        CUDA(cudaStreamWaitEvent(streams[i].second, fork, 0));
    try {
        queue();
    } catch (...) {
        cudaStreamEndCapture(streams[0].second, &graph);
        throw;
    }
    for (size_t i = 1; i < streams.size(); i++) {
        CUDA(cudaSetDevice(streams[i].first));
        cudaEvent_t join = new_event();
        CUDA(cudaEventRecord(join, streams[i].second));
        CUDA(cudaStreamWaitEvent(streams[0].second, join, 0));
    }
    CUDA(cudaSetDevice(streams[0].first));
    CUDA(cudaStreamEndCapture(streams[0].second, &graph));
    CUDA(cudaGraphInstantiate(&ready, graph, cudaGraphInstantiateFlagUseNodePriority));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaGraphUpload(ready, streams[0].second));
    CUDA(cudaStreamSynchronize(streams[0].second));
    return ready;
}

inline void launch(cudaGraphExec_t graph, const std::pair<int, cudaStream_t> &first, int gpus)
{
    CUDA(cudaSetDevice(first.first));
    CUDA(cudaGraphLaunch(graph, first.second));
    wait_for_all(gpus);
}

// The sum over all threads of a block, in the first of them: of each warp, then of warps in turn.
template <int THREADS> static __device__ inline double block_sum(double sum)
{
    __shared__ double warp[THREADS / 32];
    for (int o = 16; o; o >>= 1)
        sum += __shfl_down_sync(~0u, sum, o);
    if (threadIdx.x % 32 == 0)
        warp[threadIdx.x / 32] = sum;
    __syncthreads();
    for (int w = 1; w < THREADS / 32 && threadIdx.x == 0; w++)
        sum += warp[w];
    return sum;
}

// Uniform in [0, 1): the same number for the same place on the CPU and on GPUs.
static __host__ __device__ inline double noise(unsigned long long place, unsigned long long seed)
{
    unsigned long long z = (place + 1) * 0x9e3779b97f4a7c15ull + seed * 0xd1b54a32d192ed03ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (double)((z ^ z >> 31) >> 40) / 16777216.0;
}

template <typename T>
__global__ void fill_noise(T *x, size_t n, size_t first, unsigned long long seed, double low, double high)
{
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride)
        x[i] = (T)(float)(low + (high - low) * noise(first + i, seed));
}
