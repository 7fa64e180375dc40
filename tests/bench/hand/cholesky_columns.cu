// SPDX-License-Identifier: Apache-2.0
// Cholesky by whole block columns: each is updated by one gemm. Columns are dealt to the GPUs in turn, panels go to the
// others by peer copies, and the next column is updated first, on a stream with priority.
//   cholesky_columns [--gpus 1] [--dtype f64|f32] [--n 16384] [--nb 0] [--starts 7] [--seconds 100]
// --nb is the width of a column; 0 tries some.
#include "factor.h"

template <typename T> __global__ void fill_column(T *a, long rows, long nb, long at, long n)
{
    for (long e = blockIdx.x * (long)blockDim.x + threadIdx.x; e < rows * nb; e += (long)gridDim.x * blockDim.x) {
        long i = at + e % rows, j = at + e / rows, high = i > j ? i : j, low = i > j ? j : i;
        a[e] = (T)(noise((unsigned long long)(high * n + low), 1) + (i == j ? (double)n : 0.0));
    }
}

template <typename T> class Columns
{
  public:
    Columns(int gpus, long n, long nb) : gpus_(gpus), n_(n), nb_(nb), nt_(n / nb), column_(nt_), gpu_(gpus)
    {
        for (int g = 0; g < gpus; g++)
            open(g);
        for (long j = 0; j < nt_; j++) {
            CUDA(cudaSetDevice(owner(j)));
            column_[j] = new_array<T>((size_t)(rows(j) * nb));
        }
    }

    ~Columns()
    {
        for (T *column : column_)
            cudaFree(column);
        for (Gpu &gpu : gpu_)
            for (T *panel : gpu.panel)
                cudaFree(panel);
    }

    void fill()
    {
        for (long j = 0; j < nt_; j++) {
            CUDA(cudaSetDevice(owner(j)));
            fill_column<<<2048, 256>>>(column_[j], rows(j), nb_, j * nb_, n_);
        }
        wait_for_all(gpus_);
    }

    void start()
    {
        for (long k = 0; k < nt_; k++) {
            factor(k);
            for (int g = 0; g < gpus_ && k + 1 < nt_; g++)
                if (g != owner(k))
                    send(k, g);
            for (int g = 0; g < gpus_ && k + 1 < nt_; g++)
                update(k, g);
        }
        wait_for_all(gpus_);
    }

    double error() const
    {
        double worst = 0;
        std::vector<long> places = { 0, 1, nb_ - 1, nb_ % n_, n_ / 2, n_ - 2, n_ - 1 };
        std::sort(places.begin(), places.end());
        std::vector<std::vector<double>> row;
        for (long i : places)
            row.push_back(row_of(i));
        for (size_t a = 0; a < places.size(); a++)
            for (size_t b = 0; b <= a; b++) {
                double sum = 0, want = noise((unsigned long long)(places[a] * n_ + places[b]), 1) +
                                       (places[a] == places[b] ? (double)n_ : 0.0);
                for (long k = 0; k <= places[b]; k++)
                    sum += row[a][k] * row[b][k];
                worst = std::max(worst, std::fabs(sum - want) / (double)n_);
            }
        return worst;
    }

  private:
    enum { PANELS = 3 }; // of others that a GPU holds at once
    struct Gpu {
        cudaStream_t path, bulk, out; // the critical path, the other updates, panels to others
        cublasHandle_t path_blas, bulk_blas;
        std::unique_ptr<Factor<T>> factor;
        std::vector<T *> panel;
        // By step: its panel is made, was sent; the next column has its update, the others theirs, column k + 2 has its
        // own.
        std::vector<cudaEvent_t> made, sent, ahead, used, second;
    };
    const int gpus_;
    const long n_, nb_, nt_;
    std::vector<T *> column_;
    std::vector<Gpu> gpu_;

    int owner(long j) const { return (int)(j % gpus_); }
    long rows(long j) const { return n_ - j * nb_; }
    T *panel_at(long k, int g) { return owner(k) == g ? column_[k] : gpu_[g].panel[k % PANELS]; }

    void open(int g)
    {
        Gpu &gpu = gpu_[g];
        int least, most;
        CUDA(cudaSetDevice(g));
        CUDA(cudaDeviceGetStreamPriorityRange(&least, &most));
        CUDA(cudaStreamCreateWithPriority(&gpu.path, cudaStreamNonBlocking, most));
        gpu.bulk = new_stream();
        gpu.out = new_stream();
        gpu.path_blas = new_blas(gpu.path);
        gpu.bulk_blas = new_blas(gpu.bulk);
        gpu.factor.reset(new Factor<T>(gpu.path, nb_, n_));
        for (int p = 0; p < PANELS && gpus_ > 1; p++)
            gpu.panel.push_back(new_array<T>((size_t)(n_ * nb_)));
        for (auto *events : { &gpu.made, &gpu.sent, &gpu.ahead, &gpu.used, &gpu.second })
            for (long k = 0; k < nt_; k++)
                events->push_back(new_event());
    }

    void factor(long k)
    {
        Gpu &gpu = gpu_[owner(k)];
        T *a = column_[k];
        long m = rows(k);
        CUDA(cudaSetDevice(owner(k)));
        gpu.factor->potrf(a, m);
        if (m > nb_)
            trsm(gpu.path_blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, m - nb_,
                 nb_, a, m, a + nb_, m);
        CUDA(cudaEventRecord(gpu.made[k], gpu.path));
    }

    // The place of the panel is free once the updates by the panel that was there are done.
    void send(long k, int g)
    {
        Gpu &from = gpu_[owner(k)];
        CUDA(cudaSetDevice(owner(k)));
        CUDA(cudaStreamWaitEvent(from.out, from.made[k], 0));
        if (k >= PANELS) {
            CUDA(cudaStreamWaitEvent(from.out, gpu_[g].used[k - PANELS], 0));
            CUDA(cudaStreamWaitEvent(from.out, gpu_[g].ahead[k - PANELS], 0));
        }
        CUDA(cudaMemcpyAsync(gpu_[g].panel[k % PANELS], column_[k], (size_t)(rows(k) * nb_) * sizeof(T),
                             cudaMemcpyDeviceToDevice, from.out));
        CUDA(cudaEventRecord(from.sent[k], from.out));
    }

    void update(long k, int g)
    {
        Gpu &gpu = gpu_[g], &from = gpu_[owner(k)];
        cudaEvent_t there = g == owner(k) ? from.made[k] : from.sent[k];
        CUDA(cudaSetDevice(g));
        CUDA(cudaStreamWaitEvent(gpu.bulk, there, 0));
        if (owner(k + 1) == g) {
            CUDA(cudaStreamWaitEvent(gpu.path, there, 0));
            if (k > 0)
                CUDA(cudaStreamWaitEvent(gpu.path, gpu.second[k - 1], 0));
            apply(gpu.path_blas, g, k + 1, k);
        }
        CUDA(cudaEventRecord(gpu.ahead[k], gpu.path));
        for (long j = k + 2; j < nt_; j++) {
            if (owner(j) != g)
                continue;
            apply(gpu.bulk_blas, g, j, k);
            if (j == k + 2)
                CUDA(cudaEventRecord(gpu.second[k], gpu.bulk));
        }
        CUDA(cudaEventRecord(gpu.used[k], gpu.bulk));
    }

    void apply(cublasHandle_t blas, int g, long j, long k)
    {
        const T *panel = panel_at(k, g) + (j - k) * nb_;
        gemm(blas, false, true, rows(j), nb_, nb_, -1, panel, rows(k), panel, rows(k), 1, column_[j], rows(j));
    }

    std::vector<double> row_of(long i) const
    {
        std::vector<double> all;
        for (long j = 0; j * nb_ <= i; j++) {
            std::vector<T> part((size_t)std::min(nb_, i + 1 - j * nb_));
            CUDA(cudaMemcpy2D(part.data(), sizeof(T), column_[j] + (i - j * nb_), (size_t)rows(j) * sizeof(T),
                              sizeof(T), part.size(), cudaMemcpyDefault));
            all.insert(all.end(), part.begin(), part.end());
        }
        return all;
    }
};

template <typename T> static void run(Work &work, double most)
{
    long n = work.size("n", 16384), wanted = work.option("nb", 0);
    for (long nb : wanted ? std::vector<long>{ wanted } : std::vector<long>{ 512, 1024, 2048 }) {
        if (n % nb || n < 2 * nb)
            continue;
        Columns<T> columns(work.gpus, n, nb);
        work.time(
            "nb=" + std::to_string(nb), [&] { columns.start(); }, [&] { columns.fill(); });
        work.check(columns.error(), most);
    }
}

int main(int argc, char **argv)
{
    Work work("cholesky_columns", argc, argv);
    if (work.dtype({ "f64", "f32" }) == "f64")
        run<double>(work, 1e-13);
    else
        run<float>(work, 1e-5);
    return work.end();
}
