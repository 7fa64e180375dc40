/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime as programs by hand use it: runtime.h says how it runs their work. */
#include "runtime.h"

#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <vector>

enum { GPUS = 4 };

/* Work, or else the moment of an event: the stream is past it, or waits for it. */
struct queued {
    std::function<void()> work;
    bool waits;
    long moment;
};

static std::map<cudaStream_t, std::deque<queued>> queues;
static std::map<cudaEvent_t, long> recorded; /* the last moment of each event */
static std::vector<bool> passed(1, true);    /* by moment; 0 is that of an event that was never recorded */
static std::vector<std::function<void()>> *captured_calls;

static std::mt19937 &lots()
{
    static std::mt19937 all(getenv("EMULATED_SEED") ? (unsigned)atoi(getenv("EMULATED_SEED")) : 1);
    return all;
}

static void call_or_capture(std::function<void()> call)
{
    if (captured_calls)
        captured_calls->push_back(call);
    else
        call();
}

void give_work(cudaStream_t stream, std::function<void()> work)
{
    call_or_capture([=] { queues[stream].push_back({ work, false, 0 }); });
}

void give_record(cudaStream_t stream, cudaEvent_t event)
{
    call_or_capture([=] {
        recorded[event] = (long)passed.size();
        passed.push_back(false);
        queues[stream].push_back({ nullptr, false, recorded[event] });
    });
}

void give_wait(cudaStream_t stream, cudaEvent_t event)
{
    call_or_capture([=] { queues[stream].push_back({ nullptr, true, recorded[event] }); });
}

static void run_next(std::deque<queued> &queue)
{
    queued next = queue.front();
    queue.pop_front();
    if (next.work)
        next.work();
    else if (!next.waits)
        passed[(size_t)next.moment] = true;
}

/* One stream, drawn by lot, goes on only while no other can. */
static cudaError_t run_all()
{
    for (size_t slow = queues.empty() ? 0 : lots()() % queues.size();;) {
        std::vector<std::deque<queued> *> ready, last;
        bool done = true;
        size_t number = 0;
        for (auto &[stream, queue] : queues) {
            done = done && queue.empty();
            if (!queue.empty() && (!queue.front().waits || passed[(size_t)queue.front().moment]))
                (number == slow ? last : ready).push_back(&queue);
            number++;
        }
        if (done)
            return cudaSuccess;
        ready = ready.empty() ? last : ready;
        if (ready.empty())
            return cudaErrorLaunchTimeout; /* streams wait for each other */
        run_next(*ready[lots()() % ready.size()]);
    }
}

void run_kernel(void (*call)(void **), void **params, unsigned blocks, unsigned threads)
{
    static const size_t sizes[] = { 0 };
    static char no_memory[1]; /* shared memory keeps what it held: it lies among what else the program has */
    emulator_kernel kernel = { "of this program", call, sizes, 0, 0, no_memory, no_memory, no_memory };
    emulator_extents extents = { { blocks, 1, 1 }, { threads, 1, 1 }, 0 };
    char error[240];
    if (emulator_run(&kernel, &extents, params, lots()(), error, sizeof error)) {
        fprintf(stderr, "%s\n", error);
        abort();
    }
}

/* ---- the API ---- */

template <typename Handle> static cudaError_t make_handle(Handle *handle)
{
    *handle = (Handle)calloc(1, 8);
    return *handle ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = GPUS;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device)
{
    return device < GPUS ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorLaunchTimeout ? "streams wait for each other" : "an error";
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned)
{
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int, int)
{
    *can = 1;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = *greatest = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize()
{
    return run_all();
}
cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return run_all();
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int)
{
    return make_handle(stream);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    return make_handle(event);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    give_record(stream, event);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    give_wait(stream, event);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*memory)
        return cudaErrorMemoryAllocation;
    memset(*memory, 0x7e, bytes);
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    return cudaMalloc(memory, bytes);
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
    give_work(stream, [=] { memcpy(to, from, bytes); });
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    cudaError_t error = run_all();
    memcpy(to, from, bytes);
    return error;
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t stream)
{
    give_work(stream, [=] {
        for (size_t row = 0; row < height; row++)
            memcpy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    });
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    give_work(stream, [=] { memset(to, value, bytes); });
    return cudaSuccess;
}
cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    cudaError_t error = run_all();
    memset(to, value, bytes);
    return error;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode)
{
    captured_calls = new std::vector<std::function<void()>>;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph)
{
    *graph = (cudaGraph_t)captured_calls;
    captured_calls = nullptr;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ready, cudaGraph_t graph, unsigned long long)
{
    *ready = (cudaGraphExec_t)graph;
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t)
{
    return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t)
{
    for (const auto &call : *(std::vector<std::function<void()>> *)graph)
        call();
    return cudaSuccess;
}
