/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs by hand on the CPU: what they call of the CUDA runtime, of cuBLAS and of NCCL, and launches of their
 * kernels, which the emulator carries out. Included ahead of such a program, whose launches are rewritten
 * (launches.py).
 *
 * Streams are queues, and nothing runs before somebody waits. Then the next work of any stream that waits for no event
 * runs, drawn by lot (EMULATED_SEED), and one stream lags behind all others; so work that counts on another stream
 * without an event shows as a wrong result for some seed. Memory begins with large numbers. A graph is what was given
 * while it was captured.
 */
#ifndef HAND_EMULATED_RUNTIME_H
#define HAND_EMULATED_RUNTIME_H

#include "device.h"

#include <cuda_runtime.h>

#include <functional>

void give_work(cudaStream_t stream, std::function<void()> work);
void give_record(cudaStream_t stream, cudaEvent_t event);
void give_wait(cudaStream_t stream, cudaEvent_t event);
void run_kernel(void (*call)(void **), void **params, unsigned blocks, unsigned threads);

template <typename... P> struct launch_of_kernel {
    void (*kernel)(P...);
    unsigned blocks, threads;
    cudaStream_t stream;

    /* The first of params is the kernel. */
    template <size_t... i> static void call_with(void **params, std::index_sequence<i...>)
    {
        (*static_cast<void (**)(P...)>(params[0]))(*static_cast<typename std::remove_cv<P>::type *>(params[i + 1])...);
    }
    static void call(void **params) { call_with(params, std::index_sequence_for<P...>()); }

    void operator()(typename emulator_same<P>::type... args) const
    {
        launch_of_kernel self = *this;
        auto kept = std::make_tuple(args...);
        give_work(stream, [self, kept]() mutable {
            std::apply(
                [&](auto &...arg) {
                    void *params[] = { (void *)&self.kernel, (void *)&arg... };
                    run_kernel(call, params, self.blocks, self.threads);
                },
                kept);
        });
    }
};

template <typename... P>
launch_of_kernel<P...> launch_of(void (*kernel)(P...), unsigned blocks, unsigned threads, size_t = 0,
                                 cudaStream_t stream = nullptr)
{
    return { kernel, blocks, threads, stream };
}

#endif
