// SPDX-License-Identifier: Apache-2.0
// Jacobi's method on a grid, rows in blocks over the GPUs, the rows at the cuts copied to the neighbours after each
// step. With "edges first" the copies run while the rows between are computed.
//   jacobi [--gpus 1] [--dtype f64|f32] [--n 4096] [--steps 100] [--starts 7] [--seconds 100]
#include "work.h"

enum { ACROSS = 64, DOWN = 4, ROWS = 4 };

// Rows first to last of the part; row 0 of it and the last one are the neighbours' or the border.
template <typename T>
__global__ void step_rows(const T *__restrict__ x, T *__restrict__ y, long n, long first, long last)
{
    long column = blockIdx.x * (long)ACROSS + threadIdx.x + 1,
         row = first + (blockIdx.y * (long)DOWN + threadIdx.y) * ROWS;
    if (column >= n - 1)
        return;
    for (long r = row; r < row + ROWS && r <= last; r++) {
        long e = r * n + column;
        y[e] = (T)0.25 * ((x[e - n] + x[e + n]) + (x[e - 1] + x[e + 1]));
    }
}

template <typename T> struct Jacobi {
    int gpus;
    long n, steps;
    std::vector<long> cut;    // the first of each GPU's rows
    std::vector<T *> grid[2]; // with a row of the neighbours before and after
    std::vector<cudaStream_t> stream, edge;
    std::vector<cudaEvent_t> made[2], whole, sent[2]; // edge rows of a step, the rest, a copy up and down

    Jacobi(int gpus_, long n_, long steps_) : gpus(gpus_), n(n_), steps(steps_)
    {
        for (int g = 0; g <= gpus; g++)
            cut.push_back(1 + g * (n - 2) / gpus);
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            for (int side : { 0, 1 }) {
                grid[side].push_back(new_array<T>((size_t)((cut[g + 1] - cut[g] + 2) * n)));
                made[side].push_back(new_event());
                sent[side].push_back(new_event());
            }
            whole.push_back(new_event());
            stream.push_back(new_stream());
            edge.push_back(new_stream());
        }
    }

    long rows(int g) const { return cut[g + 1] - cut[g]; }

    void fill()
    {
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            for (int side : { 0, 1 })
                fill_noise<<<1024, 256>>>(grid[side][g], (size_t)((rows(g) + 2) * n), (size_t)((cut[g] - 1) * n), 1,
                                          0.0, 1.0);
        }
        wait_for_all(gpus);
    }

    void compute(int g, cudaStream_t on, int from, long first, long last)
    {
        if (last < first)
            return;
        dim3 blocks((unsigned)((n - 2 + ACROSS - 1) / ACROSS),
                    (unsigned)((last - first + DOWN * ROWS) / (DOWN * ROWS)));
        step_rows<<<blocks, dim3(ACROSS, DOWN), 0, on>>>(grid[from][g], grid[1 - from][g], n, first, last);
        CUDA(cudaGetLastError());
    }

    // The first row of GPU g to the end of the one before, and its last to the begin of the one after.
    void exchange(int g, cudaStream_t on, int side)
    {
        if (g > 0)
            CUDA(cudaMemcpyAsync(grid[side][g - 1] + (rows(g - 1) + 1) * n, grid[side][g] + n, (size_t)n * sizeof(T),
                                 cudaMemcpyDefault, on));
        if (g + 1 < gpus)
            CUDA(cudaMemcpyAsync(grid[side][g + 1], grid[side][g] + rows(g) * n, (size_t)n * sizeof(T),
                                 cudaMemcpyDefault, on));
    }

    // Waits until rows that the neighbours sent in the step before are there, and they have read those overwritten now.
    void meet(int g, cudaStream_t on, int side)
    {
        for (int h : { g - 1, g + 1 })
            if (h >= 0 && h < gpus)
                CUDA(cudaStreamWaitEvent(on, sent[side][h], 0));
    }

    void queue(bool edges_first)
    {
        for (long it = 0; it < steps; it++)
            for (int g = 0; g < gpus; g++) {
                CUDA(cudaSetDevice(g));
                if (edges_first && gpus > 1)
                    step_in_two(g, it);
                else
                    step_in_one(g, it);
            }
    }

    void step_in_one(int g, long it)
    {
        if (it > 0)
            meet(g, stream[g], (int)((it + 1) % 2));
        compute(g, stream[g], (int)(it % 2), 1, rows(g));
        exchange(g, stream[g], (int)((it + 1) % 2));
        CUDA(cudaEventRecord(sent[it % 2][g], stream[g]));
    }

    void step_in_two(int g, long it)
    {
        int from = (int)(it % 2);
        if (it > 0) {
            meet(g, edge[g], 1 - from);
            CUDA(cudaStreamWaitEvent(edge[g], whole[g], 0));
            CUDA(cudaStreamWaitEvent(stream[g], sent[1 - from][g], 0));
            meet(g, stream[g], 1 - from);
        }
        compute(g, edge[g], from, 1, 1);
        if (rows(g) > 1)
            compute(g, edge[g], from, rows(g), rows(g));
        exchange(g, edge[g], 1 - from);
        CUDA(cudaEventRecord(sent[from][g], edge[g]));
        compute(g, stream[g], from, 2, rows(g) - 1);
        CUDA(cudaEventRecord(whole[g], stream[g]));
    }

    Streams streams() const
    {
        return streams_of(gpus, [&](int g) { return std::vector<cudaStream_t>{ stream[g], edge[g] }; });
    }

    std::vector<T> result() const
    {
        std::vector<T> all((size_t)(n * n));
        for (long i = 0; i < n * n; i++)
            all[(size_t)i] = (T)(float)noise((unsigned long long)i, 1);
        for (int g = 0; g < gpus; g++)
            CUDA(cudaMemcpy(&all[(size_t)(cut[g] * n)], grid[steps % 2][g] + n, (size_t)(rows(g) * n) * sizeof(T),
                            cudaMemcpyDefault));
        return all;
    }
};

template <typename T> static std::vector<T> on_cpu(long n, long steps)
{
    std::vector<T> now((size_t)(n * n)), next;
    for (long i = 0; i < n * n; i++)
        now[(size_t)i] = (T)(float)noise((unsigned long long)i, 1);
    next = now;
    for (long it = 0; it < steps; it++) {
        for (long r = 1; r < n - 1; r++)
            for (long e = r * n + 1; e < (r + 1) * n - 1; e++)
                next[(size_t)e] = (T)0.25 * ((now[(size_t)(e - n)] + now[(size_t)(e + n)]) +
                                             (now[(size_t)(e - 1)] + now[(size_t)(e + 1)]));
        now.swap(next);
    }
    return now;
}

template <typename T> static double error_of(const Jacobi<T> &jacobi, const std::vector<T> &want)
{
    double worst = 0;
    std::vector<T> got = jacobi.result();
    for (size_t i = 0; i < got.size(); i++)
        worst = std::max(worst, std::fabs((double)got[i] - (double)want[i]));
    return worst;
}

template <typename T>
static void variant(Work &work, Jacobi<T> &jacobi, bool edges_first, const std::function<double()> &error, double most)
{
    std::string name = edges_first ? "edges first" : "whole steps";
    work.time(
        name,
        [&] {
            jacobi.queue(edges_first);
            wait_for_all(work.gpus);
        },
        [&] { jacobi.fill(); });
    work.check(error(), most);
    work.attempt(name + ", graph", [&] {
        auto streams = jacobi.streams();
        cudaGraphExec_t graph = captured(streams, [&] { jacobi.queue(edges_first); });
        work.time(
            name + ", graph", [&] { launch(graph, streams[0], work.gpus); }, [&] { jacobi.fill(); });
        work.check(error(), most);
    });
}

// A small grid is held against the CPU; the large one against the same code on another cut, at no cost worth naming.
template <typename T> static void run(Work &work, double most)
{
    long n = work.size("n", 4096), steps = work.size("steps", 100);
    long small = std::min(n, 259l), few = std::min(steps, 41l);
    std::vector<T> want = on_cpu<T>(small, few);
    for (bool edges_first : { false, true }) {
        Jacobi<T> tried(work.gpus, small, few);
        tried.fill();
        tried.queue(edges_first);
        wait_for_all(work.gpus);
        work.check(error_of(tried, want), most);
    }
    Jacobi<T> alone(1, n, steps), jacobi(work.gpus, n, steps);
    alone.fill();
    alone.queue(false);
    wait_for_all(1);
    want = alone.result();
    auto error = [&] { return error_of(jacobi, want); };
    variant<T>(work, jacobi, false, error, most);
    if (work.gpus > 1)
        variant<T>(work, jacobi, true, error, most);
}

int main(int argc, char **argv)
{
    Work work("jacobi", argc, argv);
    if (work.dtype({ "f64", "f32" }) == "f64")
        run<double>(work, 1e-12);
    else
        run<float>(work, 1e-5);
    return work.end();
}
