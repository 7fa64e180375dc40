// SPDX-License-Identifier: Apache-2.0
// A pipeline of linear layers (y = x w) over the GPUs, micro-batches one forward and one backward in turn, then
// w -= rate dw. The loss is |y|^2 / 2, so that its gradient is y.
//   pipe [--gpus 1] [--dtype bf16|f32] [--stages 4] [--batches 16] [--batch 4096] [--d 4096] [--starts 7] [--seconds
//   100]
#include "blas.h"

template <typename T> __global__ void descend(T *w, const T *g, float rate, size_t n)
{
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride)
        w[i] = (T)((float)w[i] - rate * (float)g[i]);
}

template <typename T> class Pipe
{
  public:
    const int gpus, stages, batches;
    const long batch, d;
    const float rate;
    std::vector<T *> w, g; // by stage

    Pipe(int gpus_, int stages_, int batches_, long batch_, long d_, float rate_)
        : gpus(gpus_), stages(stages_), batches(batches_), batch(batch_), d(d_), rate(rate_), w((size_t)stages_),
          g((size_t)stages_), cell_((size_t)(stages_ * batches_)), gpu_((size_t)gpus_)
    {
        for (int k = 0; k < gpus; k++) {
            CUDA(cudaSetDevice(k));
            gpu_[(size_t)k] = { new_stream(), new_stream(), new_stream(), nullptr };
            gpu_[(size_t)k].blas = new_blas(gpu_[(size_t)k].run);
        }
        for (int s = 0; s < stages; s++)
            open(s);
        wait_for_all(gpus);
    }

    // One forward and one backward in turn on each GPU, given out in an order in which an event is recorded before it
    // is waited for.
    void start()
    {
        std::vector<std::vector<int>> turns; // b + 1: forward of micro-batch b; -b - 1: backward
        std::vector<size_t> at((size_t)gpus, 0);
        std::vector<int> forwards((size_t)gpus, 0), backwards((size_t)gpus, 0);
        for (int k = 0; k < gpus; k++)
            turns.push_back(turns_of(k));
        for (bool more = true; more;) {
            more = false;
            for (int k = 0; k < gpus; k++)
                for (size_t &i = at[(size_t)k]; i < turns[(size_t)k].size(); i++, more = true) {
                    int turn = turns[(size_t)k][i];
                    if (turn > 0 ? k > 0 && forwards[(size_t)k - 1] < turn
                                 : k + 1 < gpus && backwards[(size_t)k + 1] < -turn)
                        break;
                    turn > 0 ? forward(k, turn - 1) : backward(k, -turn - 1);
                    (turn > 0 ? forwards : backwards)[(size_t)k]++;
                }
        }
        for (int s = 0; s < stages; s++) {
            CUDA(cudaSetDevice(gpu_of(s)));
            descend<<<1024, 256, 0, gpu_[(size_t)gpu_of(s)].run>>>(w[(size_t)s], g[(size_t)s], rate, (size_t)(d * d));
            CUDA(cudaGetLastError());
        }
        wait_for_all(gpus);
    }

    const T *input(int b) const { return cell_[(size_t)b].in; }

  private:
    struct Cell { // a stage with a micro-batch
        T *in, *out, *dy, *dx;
        cudaEvent_t made, sent, back_made, back_sent; // its output and its dx: made, and copied to the neighbour
    };
    struct Gpu {
        cudaStream_t run, send, back;
        cublasHandle_t blas;
    };
    std::vector<Cell> cell_;
    std::vector<Gpu> gpu_;

    int gpu_of(int s) const { return s * gpus / stages; }
    Cell &cell(int s, int b) { return cell_[(size_t)(s * batches + b)]; }
    bool leaves(int s, int to) const { return to >= 0 && to < stages && gpu_of(s) != gpu_of(to); }

    void open(int s)
    {
        size_t activation = (size_t)(batch * d);
        CUDA(cudaSetDevice(gpu_of(s)));
        w[(size_t)s] = new_array<T>((size_t)(d * d));
        g[(size_t)s] = new_array<T>((size_t)(d * d));
        double wide = std::sqrt(3.0 / (double)d);
        fill_noise<<<1024, 256>>>(w[(size_t)s], (size_t)(d * d), 0, 100 + (unsigned long long)s, -wide, wide);
        for (int b = 0; b < batches; b++) {
            Cell &c = cell(s, b);
            c = { nullptr,     new_array<T>(activation),
                  nullptr,     s ? new_array<T>(activation) : nullptr,
                  new_event(), new_event(),
                  new_event(), new_event() };
            if (s == 0 || leaves(s, s - 1))
                c.in = new_array<T>(activation);
            else
                c.in = cell(s - 1, b).out;
            if (s == stages - 1)
                c.dy = c.out;
            else if (leaves(s, s + 1))
                c.dy = new_array<T>(activation);
            if (s > 0 && !leaves(s, s - 1))
                cell(s - 1, b).dy = c.dx;
            if (s == 0)
                fill_noise<<<1024, 256>>>(c.in, activation, (size_t)b * activation, 7, -std::sqrt(3.0), std::sqrt(3.0));
        }
    }

    std::vector<int> turns_of(int k) const
    {
        std::vector<int> all;
        int forwards = 0, backwards = 0;
        while (forwards < std::min(batches, gpus - 1 - k))
            all.push_back(++forwards);
        while (backwards < batches) {
            if (forwards < batches)
                all.push_back(++forwards);
            all.push_back(-++backwards);
        }
        return all;
    }

    void pass_on(cudaStream_t run, cudaStream_t by, cudaEvent_t made, cudaEvent_t sent, T *to, const T *from)
    {
        CUDA(cudaEventRecord(made, run));
        CUDA(cudaStreamWaitEvent(by, made, 0));
        CUDA(cudaMemcpyAsync(to, from, (size_t)(batch * d) * sizeof(T), cudaMemcpyDeviceToDevice, by));
        CUDA(cudaEventRecord(sent, by));
    }

    void forward(int k, int b)
    {
        Gpu &gpu = gpu_[(size_t)k];
        CUDA(cudaSetDevice(k));
        for (int s = 0; s < stages; s++) {
            if (gpu_of(s) != k)
                continue;
            Cell &c = cell(s, b);
            if (leaves(s, s - 1))
                CUDA(cudaStreamWaitEvent(gpu.run, cell(s - 1, b).sent, 0));
            gemm_rows(gpu.blas, false, false, batch, d, d, 1, c.in, w[(size_t)s], 0, c.out);
            if (leaves(s, s + 1))
                pass_on(gpu.run, gpu.send, c.made, c.sent, cell(s + 1, b).in, c.out);
        }
    }

    void backward(int k, int b)
    {
        Gpu &gpu = gpu_[(size_t)k];
        CUDA(cudaSetDevice(k));
        for (int s = stages - 1; s >= 0; s--) {
            if (gpu_of(s) != k)
                continue;
            Cell &c = cell(s, b);
            if (leaves(s, s + 1))
                CUDA(cudaStreamWaitEvent(gpu.run, cell(s + 1, b).back_sent, 0));
            if (s > 0)
                gemm_rows(gpu.blas, false, true, batch, d, d, 1, c.dy, w[(size_t)s], 0, c.dx);
            if (leaves(s, s - 1))
                pass_on(gpu.run, gpu.back, c.back_made, c.back_sent, cell(s - 1, b).dy, c.dx);
            gemm_rows(gpu.blas, true, false, d, d, batch, 1, c.in, c.dy, b ? 1 : 0, g[(size_t)s]);
        }
    }
};

typedef std::vector<double> matrix;

template <typename T> static matrix fetched(const T *from, long n)
{
    std::vector<T> all((size_t)n);
    matrix wide;
    CUDA(cudaMemcpy(all.data(), from, all.size() * sizeof(T), cudaMemcpyDefault));
    for (T v : all)
        wide.push_back((double)(float)v);
    return wide;
}

// z += op(x) op(y), by the textbook; z is [m, n].
static void multiply(matrix &z, const matrix &x, bool tx, const matrix &y, bool ty, long m, long n, long k)
{
    for (long i = 0; i < m; i++)
        for (long l = 0; l < k; l++)
            for (long j = 0; j < n; j++)
                z[(size_t)(i * n + j)] +=
                    x[(size_t)(tx ? l * m + i : i * k + l)] * y[(size_t)(ty ? j * k + l : l * n + j)];
}

// All gradients of a small pipeline against loops in doubles, in the norm.
template <typename T> static double error_of_small(int gpus, int stages)
{
    enum { BATCHES = 4, BATCH = 32, D = 64 };
    Pipe<T> pipe(gpus, stages, BATCHES, BATCH, D, 1e-3f);
    std::vector<matrix> w, g((size_t)stages, matrix(D * D, 0));
    for (int s = 0; s < stages; s++)
        w.push_back(fetched(pipe.w[(size_t)s], D * D));
    for (int b = 0; b < BATCHES; b++) {
        std::vector<matrix> y = { fetched(pipe.input(b), BATCH * D) };
        for (int s = 0; s < stages; s++) {
            y.push_back(matrix(BATCH * D, 0));
            multiply(y.back(), y[(size_t)s], false, w[(size_t)s], false, BATCH, D, D);
        }
        matrix dy = y.back();
        for (int s = stages - 1; s >= 0; s--) {
            matrix dx(BATCH * D, 0);
            multiply(g[(size_t)s], y[(size_t)s], true, dy, false, D, D, BATCH);
            multiply(dx, dy, false, w[(size_t)s], true, BATCH, D, D);
            dy = dx;
        }
    }
    pipe.start();
    double off = 0, all = 0;
    for (int s = 0; s < stages; s++) {
        matrix got = fetched(pipe.g[(size_t)s], D * D);
        for (size_t i = 0; i < got.size(); i++) {
            off += (got[i] - g[(size_t)s][i]) * (got[i] - g[(size_t)s][i]);
            all += g[(size_t)s][i] * g[(size_t)s][i];
        }
    }
    return std::sqrt(off / all);
}

template <typename T> static void run(Work &work, double most)
{
    int stages = (int)work.size("stages", 4), batches = (int)work.size("batches", 16);
    long batch = work.size("batch", 4096), d = work.size("d", 4096);
    if (stages < work.gpus)
        throw std::runtime_error("--stages is less than --gpus");
    work.check(error_of_small<T>(work.gpus, stages), most);
    Pipe<T> pipe(work.gpus, stages, batches, batch, d, 1e-6f);
    work.time("1F1B", [&] { pipe.start(); });
}

int main(int argc, char **argv)
{
    Work work("pipe", argc, argv);
    if (work.dtype({ "bf16", "f32" }) == "bf16")
        run<__nv_bfloat16>(work, 2e-2);
    else
        run<float>(work, 1e-5);
    return work.end();
}
