// SPDX-License-Identifier: Apache-2.0
// A data-parallel training step of a perceptron with one hidden layer: cuBLAS, kernels fused as one would by hand, and
// one all-reduce of all gradients by NCCL. In streams, and as one CUDA graph over all GPUs.
//   mlp [--gpus 1] [--batch 16384] [--inputs 4096] [--hidden 4096] [--classes 1024] [--host 0] [--adamw 0] [--starts 7]
//   [--seconds 100]
// --host 1: inputs and labels come from host memory in each step, and weights go there. --adamw 1: the optimiser is
// AdamW (Loshchilov and Hutter, ICLR 2019), as of graphs/models/mlp.json, and not plain descent.
#include "blas.h"

#include <nccl.h>

enum { BLOCKS = 132 * 8, BLOCK = 256 };

__global__ void bias_relu(const float *z, const float *bias, float *a, float *h, size_t n, int columns)
{
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride) {
        float v = z[i] + bias[i % columns];
        a[i] = v;
        h[i] = v > 0 ? v : 0;
    }
}

__device__ static float of_block(float value, bool add)
{
    __shared__ float warp[BLOCK / 32];
    for (int o = 16; o; o >>= 1) {
        float other = __shfl_xor_sync(~0u, value, o);
        value = add ? value + other : fmaxf(value, other);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = warp[0];
    for (int w = 1; w < BLOCK / 32; w++)
        value = add ? value + warp[w] : fmaxf(value, warp[w]);
    return value;
}

// Bias, softmax, loss and gradient of a row, by a block.
__global__ void softmax_loss(const float *z, const float *bias, const int *label, float *grad, float *loss, int columns,
                             float scale)
{
    const float *row = z + (size_t)blockIdx.x * columns;
    float *g = grad + (size_t)blockIdx.x * columns, most = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < columns; c += BLOCK)
        most = fmaxf(most, row[c] + bias[c]);
    most = of_block(most, false);
    for (int c = threadIdx.x; c < columns; c += BLOCK)
        sum += expf(row[c] + bias[c] - most);
    sum = of_block(sum, true);
    int right = label[blockIdx.x];
    for (int c = threadIdx.x; c < columns; c += BLOCK)
        g[c] = scale * (expf(row[c] + bias[c] - most) / sum - (c == right));
    if (threadIdx.x == 0)
        atomicAdd(loss, scale * (logf(sum) + most - row[right] - bias[right]));
}

__global__ void relu_grad(const float *a, float *dh, size_t n)
{
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride)
        if (!(a[i] > 0))
            dh[i] = 0;
}

__global__ void descend(float *w, const float *g, float rate, size_t n)
{
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride)
        w[i] -= rate * g[i];
}

static constexpr float DECAY1 = 0.9f, DECAY2 = 0.999f, EPSILON = 1e-8f, WEIGHT_DECAY = 0.01f;

// moments: the first of all weights, then the second. The count of steps is in memory, so that a graph can be replayed.
__global__ void count_step(float *step)
{
    *step += 1;
}

__global__ void adamw(float *w, const float *g, float *moments, const float *step, float rate, size_t n)
{
    size_t stride = gridDim.x * (size_t)blockDim.x;
    float unbias1 = 1 / (1 - powf(DECAY1, *step)), unbias2 = 1 / (1 - powf(DECAY2, *step));
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride) {
        float m = moments[i] = DECAY1 * moments[i] + (1 - DECAY1) * g[i];
        float v = moments[n + i] = DECAY2 * moments[n + i] + (1 - DECAY2) * g[i] * g[i];
        w[i] -= rate * (m * unbias1 / (sqrtf(v * unbias2) + EPSILON) + WEIGHT_DECAY * w[i]);
    }
}

struct Mlp {
    struct Gpu {
        float *x, *z1, *a1, *h, *z2, *dlogits, *dh, *ones, *w, *g; // w and g: w1 b1 w2 b2, and in g the loss
        float *moments, *step;                                     // of AdamW
        int *label;
        cudaStream_t stream;
        cublasHandle_t blas;
    };
    int gpus, batch, inputs, hidden, classes, rows;
    bool by_adamw;
    size_t b1, w2, b2, loss, all;
    float *host_x, *host_w;
    int *host_label;
    std::vector<Gpu> gpu;
    std::vector<ncclComm_t> comm;
    float rate;

    Mlp(int gpus_, int batch_, int inputs_, int hidden_, int classes_, bool by_adamw_)
        : gpus(gpus_), batch(batch_), inputs(inputs_), hidden(hidden_), classes(classes_), rows(batch_ / gpus_),
          by_adamw(by_adamw_), gpu((size_t)gpus_), comm((size_t)gpus_), rate(by_adamw_ ? 0.01f : 0.1f)
    {
        b1 = (size_t)inputs * hidden;
        w2 = b1 + hidden;
        b2 = w2 + (size_t)hidden * classes;
        loss = b2 + classes;
        all = loss + 1;
        fill();
        for (int g = 0; g < gpus; g++)
            open(g, gpu[(size_t)g]);
        if (gpus > 1)
            LIBRARY(ncclCommInitAll(comm.data(), gpus, nullptr));
        upload();
        wait_for_all(gpus);
    }

    void fill()
    {
        host_x = new_host_array<float>((size_t)batch * inputs);
        host_label = new_host_array<int>((size_t)batch);
        host_w = new_host_array<float>(all);
        for (size_t i = 0; i < (size_t)batch * inputs; i++)
            host_x[i] = (float)noise(i, 1);
        for (int i = 0; i < batch; i++)
            host_label[i] = (int)((long)i * 7 % classes);
        for (size_t i = 0; i < all; i++)
            host_w[i] = i < b1 || (i >= w2 && i < b2) ? 0.17f * ((float)noise(i, 2) - 0.5f) : 0;
    }

    void open(int g, Gpu &p)
    {
        CUDA(cudaSetDevice(g));
        p.stream = new_stream();
        p.blas = new_blas(p.stream);
        p.x = new_array<float>((size_t)rows * inputs);
        for (float **array : { &p.z1, &p.a1, &p.h, &p.dh })
            *array = new_array<float>((size_t)rows * hidden);
        for (float **array : { &p.z2, &p.dlogits })
            *array = new_array<float>((size_t)rows * classes);
        p.ones = new_array<float>((size_t)rows);
        p.label = new_array<int>((size_t)rows);
        p.w = new_array<float>(all);
        p.g = new_array<float>(all);
        p.moments = new_array<float>(by_adamw ? 2 * loss : 0);
        p.step = new_array<float>(1);
        CUDA(cudaMemset(p.moments, 0, (by_adamw ? 2 * loss : 0) * sizeof(float)));
        CUDA(cudaMemset(p.step, 0, sizeof(float)));
        std::vector<float> ones((size_t)rows, 1);
        CUDA(cudaMemcpy(p.ones, ones.data(), ones.size() * sizeof(float), cudaMemcpyHostToDevice));
        CUDA(cudaMemcpy(p.w, host_w, all * sizeof(float), cudaMemcpyHostToDevice));
    }

    void upload()
    {
        for (int g = 0; g < gpus; g++) {
            Gpu &p = gpu[(size_t)g];
            CUDA(cudaSetDevice(g));
            CUDA(cudaMemcpyAsync(p.x, host_x + (size_t)g * rows * inputs, (size_t)rows * inputs * sizeof(float),
                                 cudaMemcpyHostToDevice, p.stream));
            CUDA(cudaMemcpyAsync(p.label, host_label + g * rows, (size_t)rows * sizeof(int), cudaMemcpyHostToDevice,
                                 p.stream));
        }
    }

    void fetch()
    {
        CUDA(cudaSetDevice(0));
        CUDA(cudaMemcpyAsync(host_w, gpu[0].w, loss * sizeof(float), cudaMemcpyDeviceToHost, gpu[0].stream));
        CUDA(cudaMemcpyAsync(host_w + loss, gpu[0].g + loss, sizeof(float), cudaMemcpyDeviceToHost, gpu[0].stream));
    }

    void step()
    {
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            forward(gpu[(size_t)g]);
            backward(gpu[(size_t)g]);
        }
        if (gpus > 1)
            reduce();
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            optimise(gpu[(size_t)g]);
        }
    }

    void optimise(Gpu &p)
    {
        if (by_adamw) {
            count_step<<<1, 1, 0, p.stream>>>(p.step);
            adamw<<<BLOCKS, BLOCK, 0, p.stream>>>(p.w, p.g, p.moments, p.step, rate, loss);
        } else {
            descend<<<BLOCKS, BLOCK, 0, p.stream>>>(p.w, p.g, rate, loss);
        }
        CUDA(cudaGetLastError());
    }

    void forward(Gpu &p)
    {
        CUDA(cudaMemsetAsync(p.g + loss, 0, sizeof(float), p.stream));
        gemm_rows(p.blas, false, false, rows, hidden, inputs, 1, p.x, p.w, 0, p.z1);
        bias_relu<<<BLOCKS, BLOCK, 0, p.stream>>>(p.z1, p.w + b1, p.a1, p.h, (size_t)rows * hidden, hidden);
        gemm_rows(p.blas, false, false, rows, classes, hidden, 1, p.h, p.w + w2, 0, p.z2);
        softmax_loss<<<(unsigned)rows, BLOCK, 0, p.stream>>>(p.z2, p.w + b2, p.label, p.dlogits, p.g + loss, classes,
                                                             1.f / (float)batch);
    }

    void backward(Gpu &p)
    {
        gemm_rows(p.blas, true, false, hidden, classes, rows, 1, p.h, p.dlogits, 0, p.g + w2);
        gemm_rows(p.blas, true, false, 1, classes, rows, 1, p.ones, p.dlogits, 0, p.g + b2);
        gemm_rows(p.blas, false, true, rows, hidden, classes, 1, p.dlogits, p.w + w2, 0, p.dh);
        relu_grad<<<BLOCKS, BLOCK, 0, p.stream>>>(p.a1, p.dh, (size_t)rows * hidden);
        gemm_rows(p.blas, true, false, inputs, hidden, rows, 1, p.x, p.dh, 0, p.g);
        gemm_rows(p.blas, true, false, 1, hidden, rows, 1, p.ones, p.dh, 0, p.g + b1);
        CUDA(cudaGetLastError());
    }

    void reduce()
    {
        LIBRARY(ncclGroupStart());
        for (int g = 0; g < gpus; g++)
            LIBRARY(ncclAllReduce(gpu[(size_t)g].g, gpu[(size_t)g].g, all, ncclFloat, ncclSum, comm[(size_t)g],
                                  gpu[(size_t)g].stream));
        LIBRARY(ncclGroupEnd());
    }

    void start(bool from_host)
    {
        if (from_host)
            upload();
        step();
        if (from_host)
            fetch();
    }

    Streams streams() const
    {
        return streams_of(
            gpus, [&](int g) { return std::vector<cudaStream_t>{ gpu[(size_t)g].stream }; });
    }
};

// The same step for one row, in doubles: its share of the gradients is added to g.
static void row_on_cpu(const Mlp &net, const std::vector<double> &w, int row, std::vector<double> &g)
{
    std::vector<double> a(w.begin() + (long)net.b1, w.begin() + (long)net.w2),
        p(w.begin() + (long)net.b2, w.begin() + (long)net.loss);
    const float *x = net.host_x + (size_t)row * net.inputs;
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < net.inputs; i++)
        for (int j = 0; j < net.hidden; j++)
            a[(size_t)j] += x[i] * w[(size_t)(i * net.hidden + j)];
    for (int j = 0; j < net.hidden; j++)
        for (int c = 0; c < net.classes; c++)
            p[(size_t)c] += std::max(a[(size_t)j], 0.0) * w[net.w2 + (size_t)(j * net.classes + c)];
    for (double v : p)
        most = std::max(most, v);
    for (double &v : p)
        sum += v = std::exp(v - most);
    for (int c = 0; c < net.classes; c++) {
        p[(size_t)c] = (p[(size_t)c] / sum - (c == net.host_label[row])) / net.batch;
        g[net.b2 + (size_t)c] += p[(size_t)c];
    }
    for (int j = 0; j < net.hidden; j++) {
        double dh = 0;
        for (int c = 0; c < net.classes; c++) {
            g[net.w2 + (size_t)(j * net.classes + c)] += std::max(a[(size_t)j], 0.0) * p[(size_t)c];
            dh += p[(size_t)c] * w[net.w2 + (size_t)(j * net.classes + c)];
        }
        if (a[(size_t)j] <= 0)
            continue;
        g[net.b1 + (size_t)j] += dh;
        for (int i = 0; i < net.inputs; i++)
            g[(size_t)(i * net.hidden + j)] += x[i] * dh;
    }
}

static void optimise_on_cpu(const Mlp &net, int step, std::vector<double> &w, const std::vector<double> &g,
                            std::vector<double> &moments)
{
    double unbias1 = 1 / (1 - std::pow((double)DECAY1, step)), unbias2 = 1 / (1 - std::pow((double)DECAY2, step));
    for (size_t i = 0; i < net.loss; i++) {
        double &m = moments[i], &v = moments[net.loss + i];
        m = (double)DECAY1 * m + (1 - (double)DECAY1) * g[i];
        v = (double)DECAY2 * v + (1 - (double)DECAY2) * g[i] * g[i];
        double by = m * unbias1 / (std::sqrt(v * unbias2) + (double)EPSILON) + (double)WEIGHT_DECAY * w[i];
        w[i] -= (double)net.rate * (net.by_adamw ? by : g[i]);
    }
}

// Two steps of a small net; they are taken in the way that is timed.
static double error_of_small(int gpus, bool by_adamw, const std::function<void(Mlp &)> &step)
{
    Mlp net(gpus, 32 * gpus, 32, 16, 10, by_adamw);
    std::vector<double> w(net.host_w, net.host_w + net.all), g(net.all), moments(2 * net.all);
    for (int k = 1; k <= 2; k++) {
        step(net);
        std::fill(g.begin(), g.end(), 0);
        for (int row = 0; row < net.batch; row++)
            row_on_cpu(net, w, row, g);
        optimise_on_cpu(net, k, w, g, moments);
    }
    net.fetch();
    wait_for_all(gpus);
    double worst = 0;
    for (size_t i = 0; i < net.loss; i++)
        worst = std::max(worst, std::fabs(w[i] - (double)net.host_w[i]));
    return worst;
}

int main(int argc, char **argv)
{
    Work work("mlp", argc, argv);
    work.dtype({ "f32" });
    int batch = (int)work.size("batch", 16384), inputs = (int)work.size("inputs", 4096),
        hidden = (int)work.size("hidden", 4096);
    int classes = (int)work.size("classes", 1024);
    bool host = work.option("host", 0) != 0, by_adamw = work.option("adamw", 0) != 0;
    auto in_streams = [&](Mlp &net) {
        net.start(host);
        wait_for_all(net.gpus);
    };
    auto as_graph = [&](Mlp &net) { return captured(net.streams(), [&] { net.start(host); }); };
    work.check(error_of_small(work.gpus, by_adamw, in_streams), 1e-5);
    Mlp net(work.gpus, batch, inputs, hidden, classes, by_adamw);
    work.time(
        "streams", [&] { in_streams(net); });
    work.attempt("graph", [&] {
        work.check(error_of_small(work.gpus, by_adamw,
                                  [&](Mlp &small) { launch(as_graph(small), small.streams()[0], small.gpus); }),
                   1e-5);
        cudaGraphExec_t graph = as_graph(net);
        work.time("graph", [&] { launch(graph, net.streams()[0], net.gpus); });
    });
    return work.end();
}
