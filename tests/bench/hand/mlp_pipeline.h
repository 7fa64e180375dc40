// SPDX-License-Identifier: Apache-2.0
// mlp.cu's net as a pipeline of two stages. The first GPU has the product of the first layer and its weights; the
// second has all that follows, with bias and ReLU of the hidden layer, as `--strategy pp=2` cuts it: where there are
// fewer classes than inputs, the first has more to do. Micro-batches go one forward and one backward in turn (1F1B, as
// PipeDream, Narayanan et al., SOSP 2019), and products add gradients up. Activations and their gradients are copied
// beside products, or the second GPU's kernels load what comes from the first and store what goes there.
#pragma once
#include "blas.h"
#include "mlp_model.h"

// The gradient ahead of a ReLU, here and at the other GPU.
__global__ void relu_grad_to(const float *h, float *dh, float *there, size_t n)
{
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride)
        there[i] = dh[i] = h[i] > 0 ? dh[i] : 0;
}

struct Pipeline : Model {
    struct Stage {
        size_t first, count;         // its weights among all; they lie one behind the other
        float *w, *g, *m, *v, *step; // m, v, step: of AdamW
        cudaStream_t stream, second; // second: copies, and the optimiser beside the last product
        cublasHandle_t blas;
        cudaEvent_t event;
    };
    // The arrays that go from one GPU to the other. A slot is used again by the next micro-batch but one, whose first
    // product comes behind the backward pass of this one: no event has to say that it is free.
    struct Slot {
        float *z, *z_there;   // the first product, and its copy
        float *dz, *dz_there; // its gradient at the second GPU, and at the first
        cudaEvent_t forward, backward;
    };
    enum { STAGES = 2, CHUNKS = 4 };

    int micro, rows; // micro-batches, and the examples of one
    bool reach;      // kernels of a GPU may use memory of the other
    Stage stage[STAGES];
    Slot slot[STAGES];
    float *x, *h, *z2, *ones; // x: on the first GPU; z2: logits, then their gradient
    int *label;

    Pipeline(int gpus_, const Sizes &of, int micro_)
        : Model(gpus_, of, 1), micro(micro_), rows(batch / std::max(micro, 1)), reach(true)
    {
        held(gpus == STAGES, "--way pp", __FILE__, __LINE__,
             "the net has two layers, so it is cut into two stages: use --gpus 2");
        held(micro > 0 && batch % micro == 0, "--micro", __FILE__, __LINE__,
             "micro-batches have as many examples as each other: use a divisor of --batch");
        for (int s = 0; s < STAGES; s++) {
            int can = 0;
            CUDA(cudaDeviceCanAccessPeer(&can, s, 1 - s));
            reach = reach && can;
            open(s);
        }
        for (Slot &of_two : slot)
            open(of_two);
        open_arrays();
        wait_for_all(gpus);
    }

    // ---- memory ----

    void open(int s)
    {
        CUDA(cudaSetDevice(s));
        Stage &p = stage[s];
        p.first = s ? whole.b1 : 0;
        p.count = (s ? whole.loss : whole.b1) - p.first;
        p.stream = new_stream();
        p.second = new_stream(true);
        p.event = new_event();
        p.blas = new_blas(p.stream);
        p.step = new_array<float>(1);
        CUDA(cudaMemset(p.step, 0, sizeof(float)));
        for (float **array : { &p.w, &p.g })
            *array = new_array<float>(p.count + 1); // behind the last gradient, the loss
        for (float **array : { &p.m, &p.v }) {
            *array = new_array<float>(by_adamw ? p.count : 0);
            CUDA(cudaMemset(*array, 0, (by_adamw ? p.count : 0) * sizeof(float)));
        }
        CUDA(cudaMemcpyAsync(p.w, host_w + p.first, p.count * sizeof(float), cudaMemcpyHostToDevice, p.stream));
    }

    void open(Slot &s)
    {
        size_t n = (size_t)rows * hidden;
        CUDA(cudaSetDevice(0));
        s = {};
        s.z = new_array<float>(n);
        s.dz_there = new_array<float>(n);
        s.forward = new_event();
        CUDA(cudaSetDevice(1));
        s.z_there = new_array<float>(n);
        s.dz = new_array<float>(n);
        s.backward = new_event();
    }

    void open_arrays()
    {
        CUDA(cudaSetDevice(0));
        x = new_array<float>((size_t)batch * inputs);
        CUDA(cudaMemcpy(x, host_x, (size_t)batch * inputs * sizeof(float), cudaMemcpyHostToDevice));
        CUDA(cudaSetDevice(1));
        h = new_array<float>((size_t)rows * hidden);
        z2 = new_array<float>((size_t)rows * classes);
        label = new_array<int>((size_t)batch);
        CUDA(cudaMemcpy(label, host_label, (size_t)batch * sizeof(int), cudaMemcpyHostToDevice));
        std::vector<float> all((size_t)rows, 1);
        ones = new_array<float>((size_t)rows);
        CUDA(cudaMemcpy(ones, all.data(), all.size() * sizeof(float), cudaMemcpyHostToDevice));
    }

    void fetch()
    {
        for (int s = 0; s < STAGES; s++) {
            CUDA(cudaSetDevice(s));
            CUDA(cudaMemcpyAsync(host_w + stage[s].first, stage[s].w, stage[s].count * sizeof(float),
                                 cudaMemcpyDeviceToHost, stage[s].stream));
        }
        CUDA(cudaMemcpyAsync(host_w + whole.loss, stage[1].g + stage[1].count, sizeof(float), cudaMemcpyDeviceToHost,
                             stage[1].stream));
    }

    // ---- a step ----

    // beside: copies run in streams of their own, and the first GPU's weights step behind pieces of its last product.
    void start(bool beside)
    {
        held(beside || reach, "loads and stores", __FILE__, __LINE__, "these GPUs do not reach each other's memory");
        begin();
        forward(0, beside);
        for (int m = 0; m < micro; m++) {
            if (m + 1 < micro)
                forward(m + 1, beside);
            turn(m, beside);
            backward(m, beside);
        }
    }

    void begin()
    {
        for (int s = 0; s < STAGES && by_adamw; s++) {
            CUDA(cudaSetDevice(s));
            count_step<<<1, 1, 0, stage[s].stream>>>(stage[s].step);
        }
        CUDA(cudaSetDevice(1));
        CUDA(cudaMemsetAsync(stage[1].g + stage[1].count, 0, sizeof(float), stage[1].stream));
        CUDA(cudaGetLastError());
    }

    const float *examples(int m) const { return x + (size_t)m * rows * inputs; }

    void forward(int m, bool beside)
    {
        Stage &p = stage[0];
        Slot &s = slot[m % STAGES];
        CUDA(cudaSetDevice(0));
        gemm_rows(p.blas, false, false, rows, hidden, inputs, 1, examples(m), p.w, 0, s.z);
        pass_on(p, s.forward, s.z, s.z_there, beside);
    }

    // Forward, and at once backward, of a micro-batch at the second GPU: gradients of weights come behind what the
    // first GPU waits for.
    void turn(int m, bool beside)
    {
        Stage &p = stage[1];
        Slot &s = slot[m % STAGES];
        size_t n = (size_t)rows * hidden, w2 = whole.w2 - p.first, b2 = whole.b2 - p.first;
        int old = m > 0;
        CUDA(cudaSetDevice(1));
        CUDA(cudaStreamWaitEvent(p.stream, s.forward, 0));
        bias_relu<<<BLOCKS, BLOCK, 0, p.stream>>>(h, beside ? s.z_there : s.z, p.w, n, hidden);
        gemm_rows(p.blas, false, false, rows, classes, hidden, 1, h, p.w + w2, 0, z2);
        softmax_loss<<<(unsigned)rows, BLOCK, 0, p.stream>>>(z2, p.w + b2, label + (size_t)m * rows, p.g + p.count,
                                                             classes, 1.f / (float)batch);
        gemm_rows(p.blas, false, true, rows, hidden, classes, 1, z2, p.w + w2, 0, s.dz);
        if (beside)
            relu_grad<<<BLOCKS, BLOCK, 0, p.stream>>>(h, s.dz, n);
        else
            relu_grad_to<<<BLOCKS, BLOCK, 0, p.stream>>>(h, s.dz, s.dz_there, n);
        pass_on(p, s.backward, s.dz, s.dz_there, beside);
        gemm_rows(p.blas, true, false, hidden, classes, rows, 1, h, z2, old, p.g + w2);
        gemm_rows(p.blas, true, false, 1, classes, rows, 1, ones, z2, old, p.g + b2);
        gemm_rows(p.blas, true, false, 1, hidden, rows, 1, ones, s.dz, old, p.g);
        if (m + 1 == micro)
            optimise(p, 0, p.count, p.stream);
        CUDA(cudaGetLastError());
    }

    // Of the last micro-batch, some rows of the gradient at a time where the optimiser is beside.
    void backward(int m, bool beside)
    {
        Stage &p = stage[0];
        Slot &s = slot[m % STAGES];
        bool last = m + 1 == micro;
        int pieces = last && beside && inputs % CHUNKS == 0 ? CHUNKS : 1;
        size_t some = (size_t)(inputs / pieces);
        cudaStream_t optimiser = beside ? p.second : p.stream;
        CUDA(cudaSetDevice(0));
        CUDA(cudaStreamWaitEvent(p.stream, s.backward, 0));
        for (size_t row = 0; row < (size_t)inputs; row += some) {
            gemm(p.blas, false, true, hidden, (long)some, rows, 1, s.dz_there, hidden, examples(m) + row, inputs, m > 0,
                 p.g + row * hidden, hidden);
            if (!last)
                continue;
            follow(optimiser, p.stream, p.event);
            optimise(p, row * hidden, some * hidden, optimiser);
        }
        if (last)
            follow(p.stream, optimiser, p.event);
        CUDA(cudaGetLastError());
    }

    // `passed` says when the other GPU may have what was made: behind a copy, or at once.
    void pass_on(Stage &from, cudaEvent_t passed, const float *made, float *there, bool by_copy)
    {
        if (by_copy) {
            follow(from.second, from.stream, from.event);
            CUDA(cudaMemcpyAsync(there, made, (size_t)rows * hidden * sizeof(float), cudaMemcpyDeviceToDevice,
                                 from.second));
        }
        CUDA(cudaEventRecord(passed, by_copy ? from.second : from.stream));
    }

    void optimise(Stage &p, size_t from, size_t count, cudaStream_t stream)
    {
        float *w = p.w + from, *g = p.g + from;
        if (by_adamw)
            adamw<<<BLOCKS, BLOCK, 0, stream>>>(w, g, p.m + from, p.v + from, p.step, rate, count);
        else
            descend<<<BLOCKS, BLOCK, 0, stream>>>(w, g, rate, count);
    }

    Streams streams() const
    {
        return streams_of(
            gpus,
            [&](int s) {
                return std::vector<cudaStream_t>{ stage[s].stream, stage[s].second };
            });
    }
};
