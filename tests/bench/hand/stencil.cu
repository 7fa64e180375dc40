// SPDX-License-Identifier: Apache-2.0
// Many short rows, each of which takes the mean of its neighbours at every step: row i of the next array is made of rows i - 1, i and
// i + 1 of this one. A kernel on each GPU stays for all steps; a block has one row, pushes it to both neighbours, in memory of other
// GPUs, too, and tells them by a counter that lies in their memory. With --graphs 1 each GPU has a graph instead, with a kernel for each
// row and step: rows of a GPU wait for each other by edges, those of two GPUs by the counters.
//   stencil [--gpus 1] [--lists 128] [--steps 100] [--graphs 0] [--starts 21] [--seconds 100]        lists: rows in all
#include "work.h"

enum { WIDTH = 1024, THREADS = 256, UP = 0, DOWN = 1, FAR = 32 }; // FAR: counters between which there are 128 bytes

struct Row {
    float *own[2];                           // of even and odd steps
    float *halo[2][2], *to[2][2];            // what neighbours pushed, by side and step; where theirs is
    unsigned long long *told[2], *tell[2];   // steps that the neighbour has made; the counter that it reads
    int far[2];                              // the neighbour is on another GPU
    int border;                              // the first and the last row stay as they are
};

static __device__ unsigned long long acquire(const unsigned long long *at)
{
    unsigned long long value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

static __device__ void release(unsigned long long *at, unsigned long long value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

// For memory that others write while the kernel runs: such a load goes past the cache of the multiprocessor.
static __device__ float4 load(const float *at)
{
    float4 v;
    asm volatile("ld.relaxed.sys.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(at)
                 : "memory");
    return v;
}

static __device__ float mean(float up, float down, float left, float right)
{
    return 0.25f * ((up + down) + (left + right));
}

static __device__ float4 step_row(const Row &row, int parity)
{
    const int at = threadIdx.x * 4;
    const float *own = row.own[parity];
    const float4 here = *(const float4 *)(own + at);
    if (row.border)
        return here;
    const float4 up = load(row.halo[UP][parity] + at), down = load(row.halo[DOWN][parity] + at);
    const float left = at ? own[at - 1] : 0, right = at + 4 < WIDTH ? own[at + 4] : 0;
    float4 next = { mean(up.x, down.x, left, here.y), mean(up.y, down.y, here.x, here.z),
                    mean(up.z, down.z, here.y, here.w), mean(up.w, down.w, here.z, right) };
    if (at == 0)
        next.x = here.x;
    if (at + 4 == WIDTH)
        next.w = here.w;
    return next;
}

// Makes a step, and pushes the row to the neighbours.
static __device__ void push_step(const Row &row, int parity)
{
    const float4 next = step_row(row, parity);
    *(float4 *)(row.own[1 - parity] + threadIdx.x * 4) = next;
    for (int s = 0; s < 2; s++)
        if (row.to[s][1 - parity])
            *(float4 *)(row.to[s][1 - parity] + threadIdx.x * 4) = next;
}

// `made`: steps of all starts before.
__global__ void __launch_bounds__(THREADS) resident(const Row *rows, int steps, unsigned long long made)
{
    const Row row = rows[blockIdx.x];
    for (int step = 0; step < steps; step++) {
        const int side = threadIdx.x, parity = step % 2;
        if (side < 2 && row.told[side])
            while (acquire(row.told[side]) < made + step) {
            }
        __syncthreads();
        push_step(row, parity);
        __syncthreads();
        if (side < 2 && row.tell[side])
            release(row.tell[side], made + step + 1);
    }
}

// A step of one row, as a node of a graph: only neighbours on other GPUs are waited for, and told. `made` lies in memory of the GPU.
__global__ void __launch_bounds__(THREADS) one_step(const Row *rows, int list, int step, const unsigned long long *made)
{
    const Row row = rows[list];
    const int side = threadIdx.x;
    const unsigned long long before = *made + (unsigned long long)step;
    if (side < 2 && row.far[side])
        while (acquire(row.told[side]) < before) {
        }
    __syncthreads();
    push_step(row, step % 2);
    __syncthreads();
    if (side < 2 && row.far[side])
        release(row.tell[side], before + 1);
}

// The last node of a graph.
__global__ void count_steps(unsigned long long *made, int steps)
{
    *made += (unsigned long long)steps;
}

struct Stencil {
    int gpus, lists, steps;
    unsigned long long made = 0;
    std::vector<float *> data;                  // per GPU: 6 rows for each list: its own, then what is pushed
    std::vector<unsigned long long *> counters; // per GPU: 2 for each list
    std::vector<Row *> rows;
    std::vector<cudaStream_t> stream;

    Stencil(int gpus_, int lists_, int steps_) : gpus(gpus_), lists(lists_), steps(steps_)
    {
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            data.push_back(new_array<float>(count(g) * 6 * WIDTH));
            counters.push_back(new_array<unsigned long long>(count(g) * 2 * FAR));
            rows.push_back(new_array<Row>(count(g)));
            stream.push_back(new_stream());
        }
        for (int g = 0; g < gpus; g++) {
            std::vector<Row> here;
            for (int i = first(g); i < first(g + 1); i++)
                here.push_back(row_of(i));
            CUDA(cudaMemcpy(rows[g], here.data(), here.size() * sizeof(Row), cudaMemcpyDefault));
        }
        held(fits(), "resident", __FILE__, __LINE__, "more rows than blocks that run at once");
    }

    int first(int g) const { return (g * lists + gpus - 1) / gpus; }
    size_t count(int g) const { return (size_t)(first(g + 1) - first(g)); }
    int gpu_of(int i) const { return i * gpus / lists; }
    float *piece(int i, int k) const { return data[gpu_of(i)] + ((size_t)(i - first(gpu_of(i))) * 6 + k) * WIDTH; }
    float *own(int i, int parity) const { return piece(i, parity); }
    float *halo(int i, int side, int parity) const { return piece(i, 2 + 2 * side + parity); }
    unsigned long long *counter(int i, int side) const
    {
        return counters[gpu_of(i)] + ((size_t)(i - first(gpu_of(i))) * 2 + side) * FAR;
    }

    Row row_of(int i) const
    {
        Row row = {};
        row.border = i == 0 || i == lists - 1;
        for (int side : { UP, DOWN }) {
            int other = side == UP ? i - 1 : i + 1;
            bool is = other >= 0 && other < lists;
            row.told[side] = is ? counter(i, side) : nullptr;
            row.tell[side] = is ? counter(other, 1 - side) : nullptr;
            row.far[side] = is && gpu_of(other) != gpu_of(i);
            for (int parity : { 0, 1 }) {
                row.own[parity] = own(i, parity);
                row.halo[side][parity] = halo(i, side, parity);
                row.to[side][parity] = is ? halo(other, 1 - side, parity) : nullptr;
            }
        }
        return row;
    }

    bool fits() const
    {
        int blocks = 0, processors = 0;
        CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, resident, THREADS, 0));
        CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
        return (size_t)(blocks * processors) >= count(0);
    }

    // As if the neighbours had pushed their rows.
    void fill(const std::vector<float> &grid)
    {
        for (int i = 0; i < lists; i++) {
            const float *row = &grid[(size_t)i * WIDTH];
            CUDA(cudaMemcpy(own(i, 0), row, WIDTH * sizeof(float), cudaMemcpyDefault));
            if (i > 0)
                CUDA(cudaMemcpy(halo(i - 1, DOWN, 0), row, WIDTH * sizeof(float), cudaMemcpyDefault));
            if (i + 1 < lists)
                CUDA(cudaMemcpy(halo(i + 1, UP, 0), row, WIDTH * sizeof(float), cudaMemcpyDefault));
        }
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            CUDA(cudaMemset(counters[g], 0, count(g) * 2 * FAR * sizeof(unsigned long long)));
        }
        wait_for_all(gpus);
        made = 0;
    }

    void start()
    {
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            resident<<<(unsigned)count(g), THREADS, 0, stream[g]>>>(rows[g], steps, made);
        }
        CUDA(cudaGetLastError());
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            CUDA(cudaStreamSynchronize(stream[g]));
        }
        made += (unsigned long long)steps;
    }

    std::vector<float> result() const
    {
        std::vector<float> all((size_t)lists * WIDTH);
        for (int i = 0; i < lists; i++)
            CUDA(cudaMemcpy(&all[(size_t)i * WIDTH], own(i, steps % 2), WIDTH * sizeof(float), cudaMemcpyDefault));
        return all;
    }
};

struct Graphs {
    Stencil &stencil;
    std::vector<unsigned long long *> made;
    std::vector<cudaGraphExec_t> exec;

    explicit Graphs(Stencil &stencil_) : stencil(stencil_)
    {
        for (int g = 0; g < stencil.gpus; g++) {
            CUDA(cudaSetDevice(g));
            made.push_back(new_array<unsigned long long>(1));
            exec.push_back(of(g));
        }
    }

    static cudaGraphNode_t add(cudaGraph_t graph, const std::vector<cudaGraphNode_t> &behind, void *kernel, int threads, void **given)
    {
        cudaGraphNode_t node;
        cudaKernelNodeParams params = {};
        params.func = kernel;
        params.gridDim = dim3(1);
        params.blockDim = dim3((unsigned)threads);
        params.kernelParams = given;
        CUDA(cudaGraphAddKernelNode(&node, graph, behind.data(), behind.size(), &params));
        return node;
    }

    // A row comes behind the step before of itself and of its neighbours on this GPU.
    cudaGraphExec_t of(int g)
    {
        cudaGraph_t graph;
        cudaGraphExec_t made_of_it;
        int count = (int)stencil.count(g);
        std::vector<cudaGraphNode_t> last, now((size_t)count);
        CUDA(cudaGraphCreate(&graph, 0));
        for (int step = 0; step < stencil.steps; step++, last = now) {
            for (int i = 0; i < count; i++) {
                std::vector<cudaGraphNode_t> behind;
                for (int k = std::max(0, i - 1); k < std::min(count, i + 2) && step > 0; k++)
                    behind.push_back(last[(size_t)k]);
                void *given[] = { &stencil.rows[(size_t)g], &i, &step, &made[(size_t)g] };
                now[(size_t)i] = add(graph, behind, (void *)one_step, THREADS, given);
            }
        }
        void *given[] = { &made[(size_t)g], &stencil.steps };
        add(graph, last, (void *)count_steps, 1, given);
        CUDA(cudaGraphInstantiateWithFlags(&made_of_it, graph, 0));
        CUDA(cudaGraphDestroy(graph));
        CUDA(cudaGraphUpload(made_of_it, stencil.stream[(size_t)g]));
        CUDA(cudaStreamSynchronize(stencil.stream[(size_t)g]));
        return made_of_it;
    }

    void fill(const std::vector<float> &grid)
    {
        stencil.fill(grid);
        for (int g = 0; g < stencil.gpus; g++) {
            CUDA(cudaSetDevice(g));
            CUDA(cudaMemset(made[(size_t)g], 0, sizeof(unsigned long long)));
        }
        wait_for_all(stencil.gpus);
    }

    void start()
    {
        for (int g = 0; g < stencil.gpus; g++) {
            CUDA(cudaSetDevice(g));
            CUDA(cudaGraphLaunch(exec[(size_t)g], stencil.stream[(size_t)g]));
        }
        for (int g = 0; g < stencil.gpus; g++) {
            CUDA(cudaSetDevice(g));
            CUDA(cudaStreamSynchronize(stencil.stream[(size_t)g]));
        }
    }
};

static std::vector<float> on_cpu(std::vector<float> now, int lists, int steps)
{
    std::vector<float> next = now;
    for (int step = 0; step < steps; step++, std::swap(now, next))
        for (int i = 1; i + 1 < lists; i++)
            for (int c = 1; c + 1 < WIDTH; c++) {
                size_t at = (size_t)i * WIDTH + (size_t)c;
                next[at] = 0.25f * ((now[at - WIDTH] + now[at + WIDTH]) + (now[at - 1] + now[at + 1]));
            }
    return now;
}

int main(int argc, char **argv)
{
    Work work("stencil", argc, argv);
    work.dtype({ "f32" });
    int lists = (int)work.size("lists", 128), steps = (int)work.size("steps", 100);
    held(lists >= work.gpus && steps % 2 == 0, "stencil", __FILE__, __LINE__, "a row for each GPU, and an even number of steps");
    Stencil stencil(work.gpus, lists, steps);
    std::vector<float> grid((size_t)lists * WIDTH);
    for (size_t i = 0; i < grid.size(); i++)
        grid[i] = (float)noise(i, 1);
    if (work.option("graphs", 0)) {
        Graphs graphs(stencil);
        graphs.fill(grid);
        work.time("graphs", [&] { graphs.start(); });
        graphs.fill(grid);
        graphs.start();
    } else {
        stencil.fill(grid);
        work.time("resident", [&] { stencil.start(); });
        stencil.fill(grid);
        stencil.start();
    }
    std::vector<float> want = on_cpu(grid, lists, steps), got = stencil.result();
    double error = 0;
    for (size_t i = 0; i < want.size(); i++)
        error = std::max(error, (double)std::fabs(want[i] - got[i]));
    work.check(error, 0);
    return work.end();
}
