// SPDX-License-Identifier: Apache-2.0
// A matrix in square tiles over several GPUs and several streams (lanes) each, with an event for every tile: what a
// tiled factorisation by hand is made of. Block columns are dealt to the GPUs in turn. Lane 0 has priority: the
// critical path.
#pragma once
#include "factor.h"

template <typename T> struct Tile {
    std::vector<T *> at;              // by GPU: the tile where it is owned, else its copy
    cudaEvent_t written;              // on its owner
    std::vector<cudaEvent_t> arrived; // its copy on another GPU
    bool fresh = false;               // written in this start: an event of another start is no part of a capture
};

template <typename T> __global__ void fill_tile(T *a, long nb, long row, long column, long n)
{
    for (long e = blockIdx.x * (long)blockDim.x + threadIdx.x; e < nb * nb; e += (long)gridDim.x * blockDim.x) {
        long i = row * nb + e % nb, j = column * nb + e / nb, high = i > j ? i : j, low = i > j ? j : i;
        a[e] = (T)(noise((unsigned long long)(high * n + low), 1) + (i == j ? (double)n : 0.0));
    }
}

// The matrix that fill_tile makes: symmetric, its diagonal larger than the rest of the row.
static inline double entry_of(long i, long j, long n)
{
    long high = std::max(i, j), low = std::min(i, j);
    return noise((unsigned long long)(high * n + low), 1) + (i == j ? (double)n : 0.0);
}

template <typename T> class Tiles
{
  public:
    enum { LANES = 32 };
    const long n, nt, nb;
    const int gpus;
    int lanes = 1; // of LANES, which take part beside lane 0

    Tiles(int gpus_, long n_, long nt_, bool whole)
        : n(n_), nt(nt_), nb(n_ / nt_), gpus(gpus_), whole_(whole), tiles_(nt_ * nt_), gpu_(gpus_)
    {
        for (int g = 0; g < gpus; g++)
            open(g);
        for (long j = 0; j < nt; j++)
            for (long i = whole ? 0 : j; i < nt; i++)
                open(i, j);
    }

    int owner(long, long j) const { return (int)(j % gpus); }
    T *at(int g, long i, long j) const { return tiles_[i + j * nt].at[g]; }
    cublasHandle_t blas(int g, int lane) const { return gpu_[g].blas[lane]; }
    Factor<T> &factor(int g) { return *gpu_[g].factor; }

    void fill()
    {
        each([&](Tile<T> &tile, long i, long j) {
            int g = owner(i, j);
            CUDA(cudaSetDevice(g));
            fill_tile<<<512, 256>>>(tile.at[g], nb, i, j, n);
        });
        wait_for_all(gpus);
    }

    void begin()
    {
        each([](Tile<T> &tile, long, long) { tile.fresh = false; });
        next_ = 0;
    }

    int next_lane() { return 1 + next_++ % lanes; }

    // The next call on this lane reads the tile, or writes it again.
    void need(int g, int lane, long i, long j)
    {
        Tile<T> &tile = tiles_[i + j * nt];
        CUDA(cudaSetDevice(g));
        if (tile.fresh)
            CUDA(cudaStreamWaitEvent(gpu_[g].lane[lane], owner(i, j) == g ? tile.written : tile.arrived[g], 0));
    }

    void made(int lane, long i, long j)
    {
        int g = owner(i, j);
        Tile<T> &tile = tiles_[i + j * nt];
        CUDA(cudaEventRecord(tile.written, gpu_[g].lane[lane]));
        tile.fresh = true;
    }

    // The final tile to all other GPUs.
    void send(long i, long j)
    {
        int o = owner(i, j);
        Tile<T> &tile = tiles_[i + j * nt];
        CUDA(cudaSetDevice(o));
        for (int g = 0; g < gpus; g++) {
            if (g == o)
                continue;
            CUDA(cudaStreamWaitEvent(gpu_[o].out, tile.written, 0));
            CUDA(cudaMemcpyAsync(tile.at[g], tile.at[o], (size_t)(nb * nb) * sizeof(T), cudaMemcpyDeviceToDevice,
                                 gpu_[o].out));
            CUDA(cudaEventRecord(tile.arrived[g], gpu_[o].out));
        }
    }

    Streams streams() const
    {
        return streams_of(
            gpus,
            [&](int g) {
                auto first = gpu_[g].lane.begin();
                std::vector<cudaStream_t> all(first, first + lanes + 1);
                all.push_back(gpu_[g].out);
                return all;
            });
    }

    // Elements of row i from column 0 on, or of column j from row 0 on, before the place `end`.
    std::vector<double> row(long i, long end) const
    {
        std::vector<double> all;
        for (long j = 0; j * nb < end; j++)
            take(all, at(owner(i / nb, j), i / nb, j) + i % nb, nb, std::min(nb, end - j * nb));
        return all;
    }
    std::vector<double> column(long j, long end) const
    {
        std::vector<double> all;
        for (long i = 0; i * nb < end; i++)
            take(all, at(owner(i, j / nb), i, j / nb) + j % nb * nb, 1, std::min(nb, end - i * nb));
        return all;
    }

  private:
    struct Gpu {
        std::vector<cudaStream_t> lane;
        std::vector<cublasHandle_t> blas;
        cudaStream_t out;
        std::unique_ptr<Factor<T>> factor;
    };
    const bool whole_; // or the lower triangle only
    std::vector<Tile<T>> tiles_;
    std::vector<Gpu> gpu_;
    int next_ = 0;

    void open(int g)
    {
        int least, most;
        CUDA(cudaSetDevice(g));
        CUDA(cudaDeviceGetStreamPriorityRange(&least, &most));
        for (int lane = 0; lane <= LANES; lane++) {
            cudaStream_t stream;
            CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, lane ? least : most));
            gpu_[g].lane.push_back(stream);
            gpu_[g].blas.push_back(new_blas(stream));
        }
        gpu_[g].out = new_stream();
        gpu_[g].factor.reset(new Factor<T>(gpu_[g].lane[0], nb, nb));
    }

    void open(long i, long j)
    {
        Tile<T> &tile = tiles_[i + j * nt];
        tile.at.resize(gpus);
        tile.arrived.resize(gpus);
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            tile.at[g] = new_array<T>((size_t)(nb * nb));
        }
        CUDA(cudaSetDevice(owner(i, j)));
        tile.written = new_event();
        for (cudaEvent_t &event : tile.arrived)
            event = new_event();
    }

    void each(const std::function<void(Tile<T> &, long, long)> &act)
    {
        for (long j = 0; j < nt; j++)
            for (long i = whole_ ? 0 : j; i < nt; i++)
                act(tiles_[i + j * nt], i, j);
    }

    static void take(std::vector<double> &to, const T *from, long stride, long count)
    {
        std::vector<T> part((size_t)count);
        CUDA(cudaMemcpy2D(part.data(), sizeof(T), from, (size_t)stride * sizeof(T), sizeof(T), (size_t)count,
                          cudaMemcpyDefault));
        to.insert(to.end(), part.begin(), part.end());
    }
};

// Places that are looked at: the ends, both sides of the first cut, and between.
static inline std::vector<long> places_in(long n, long nb)
{
    std::vector<long> all = { 0, 1, nb - 1, nb % n, n / 2, n - nb, n - 2, n - 1 };
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

// The same calls in streams and as one graph, for several numbers of lanes.
template <typename T>
void race(Work &work, Tiles<T> &tiles, const std::function<void()> &queue, const std::function<double()> &error,
          double most)
{
    for (int lanes : { 1, 2, 4, 8, 16, 32 }) {
        tiles.lanes = lanes;
        work.time(
            "S=" + std::to_string(lanes),
            [&] {
                queue();
                wait_for_all(tiles.gpus);
            },
            [&] { tiles.fill(); });
        work.check(error(), most);
        std::string name = "S=" + std::to_string(lanes) + " graph";
        work.attempt(name, [&] {
            auto streams = tiles.streams();
            cudaGraphExec_t graph = captured(streams, queue);
            work.time(
                name, [&] { launch(graph, streams[0], tiles.gpus); }, [&] { tiles.fill(); });
            work.check(error(), most);
            CUDA(cudaGraphExecDestroy(graph));
        });
    }
}

// cuSOLVER's factor of the whole matrix, on one GPU.
template <typename T>
void whole_matrix(Work &work, long n, const std::function<void(Factor<T> &, T *)> &call,
                  const std::function<double(const T *)> &error, double most)
{
    CUDA(cudaSetDevice(0));
    cudaStream_t stream = new_stream();
    T *a = new_array<T>((size_t)(n * n));
    Factor<T> factor(stream, n, n);
    auto start = [&] {
        call(factor, a);
        CUDA(cudaStreamSynchronize(stream));
    };
    work.time("cuSOLVER whole", start, [&] {
        fill_tile<<<2048, 256>>>(a, n, 0, 0, n);
        CUDA(cudaDeviceSynchronize());
    });
    work.check(error(a), most);
    CUDA(cudaFree(a));
}
