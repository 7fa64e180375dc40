// SPDX-License-Identifier: Apache-2.0
// A training step of a perceptron with one hidden layer on several GPUs: cuBLAS, kernels fused as one would by hand,
// and collectives of NCCL. In streams, as one CUDA graph over all GPUs, and as one whose collectives run beside
// products.
//   mlp [--gpus 1] [--way dp|tp|zero3|pp] [--micro 4] [--batch 16384] [--inputs 4096] [--hidden 4096] [--classes 1024]
//   [--host 0] [--adamw 0] [--starts 7] [--seconds 100]
// --way dp: a GPU has some of the examples and all weights; gradients are all-reduced. tp: it has all examples, columns
// of the first matrix and rows of the second; what the second product gives is all-reduced, and nothing on the way
// back, as nobody wants the gradient of the inputs. zero3: it has some of the examples and keeps a share of the
// weights, which are gathered ahead of their products, and of what the optimiser keeps; gradients are reduced and
// scattered. pp: two GPUs are a pipeline of --micro micro-batches (mlp_pipeline.h).
// --host 1: inputs and labels come from host memory in each step, and weights go there (dp). --adamw 1: the optimiser
// is AdamW (Loshchilov and Hutter, ICLR 2019), as of graphs/models/mlp.json, and not plain descent.
#include "blas.h"
#include "mlp_model.h"
#include "mlp_pipeline.h"

#include <nccl.h>

enum Way { DP, TP, ZERO3 };

struct Mlp : Model {
    struct Gpu {
        float *x, *h, *z2, *dh, *ones, *w, *g; // z2: logits, then their gradient
        float *kept, *reduced, *m, *v, *step;  // of zero3, weights that it keeps and their gradients; of AdamW
        int *label;
        cudaStream_t stream, second, share; // share: what collectives run in, one of the others
        cublasHandle_t blas;
        cudaEvent_t event;
    };
    enum { CHUNKS = 4 }; // what collectives run beside is cut into so many

    Way way;
    bool from_host;
    int rows, columns, pieces; // of the examples and of hidden elements, those of a GPU
    Layout own;                // of the weights that a GPU computes with
    size_t keeps;              // weights
    std::vector<Gpu> gpu;
    std::vector<ncclComm_t> comm;

    Mlp(int gpus_, const Sizes &of, Way way_, bool from_host_)
        : Model(gpus_, of, gpus_), way(gpus > 1 ? way_ : DP), from_host(from_host_),
          rows(way == TP ? batch : batch / gpus), columns(way == TP ? hidden / gpus : hidden),
          pieces(inputs % CHUNKS || inputs / CHUNKS * columns % gpus ? 1 : CHUNKS), own(inputs, columns, classes, gpus),
          keeps(way == ZERO3 ? own.loss / (size_t)gpus : own.loss), gpu((size_t)gpus), comm((size_t)gpus)
    {
        held(batch % gpus == 0 && (way != TP || hidden % gpus == 0), "--gpus", __FILE__, __LINE__,
             "examples, and with tp columns, are as many on each GPU");
        each([&](int g, Gpu &p) { open(g, p); });
        if (gpus > 1)
            LIBRARY(ncclCommInitAll(comm.data(), gpus, nullptr));
        upload();
        wait_for_all(gpus);
    }

    template <typename Act> void each(Act act)
    {
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            act(g, gpu[(size_t)g]);
            CUDA(cudaGetLastError());
        }
    }

    // ---- memory ----

    void open(int g, Gpu &p)
    {
        p.stream = new_stream();
        p.second = new_stream(true);
        p.event = new_event();
        p.blas = new_blas(p.stream);
        p.x = new_array<float>((size_t)rows * inputs);
        for (float **array : { &p.h, &p.dh })
            *array = new_array<float>((size_t)rows * columns);
        p.z2 = new_array<float>((size_t)rows * classes);
        p.ones = new_array<float>((size_t)rows);
        p.label = new_array<int>((size_t)rows);
        for (float **array : { &p.w, &p.g })
            *array = new_array<float>(own.all);
        for (float **array : { &p.m, &p.v })
            *array = new_array<float>(by_adamw ? keeps : 0);
        p.kept = way == ZERO3 ? new_array<float>(keeps) : p.w;
        p.reduced = way == ZERO3 ? new_array<float>(keeps) : p.g;
        p.step = new_array<float>(1);
        for (float *array : { p.m, p.v })
            CUDA(cudaMemset(array, 0, (by_adamw ? keeps : 0) * sizeof(float)));
        CUDA(cudaMemset(p.step, 0, sizeof(float)));
        CUDA(cudaMemset(p.g, 0, own.all * sizeof(float))); // what lies between layers stays 0
        std::vector<float> ones((size_t)rows, 1);
        CUDA(cudaMemcpy(p.ones, ones.data(), ones.size() * sizeof(float), cudaMemcpyHostToDevice));
        copy_weights(g, p, cudaMemcpyHostToDevice);
    }

    // Weights that a GPU keeps, as they lie among all of the host: rows of `width`, in matrices of `pitch` there.
    struct Kept {
        size_t host, pitch, at, width, height;
    };

    std::vector<Kept> kept_by(int g) const
    {
        size_t share = (size_t)columns, first = (size_t)g * share, narrow = (size_t)classes;
        std::vector<Kept> all;
        if (way == DP)
            return { { 0, whole.loss, 0, whole.loss, 1 } };
        if (way == TP)
            return { { first, (size_t)hidden, 0, share, (size_t)inputs },
                     { whole.b1 + first, share, own.b1, share, 1 },
                     { whole.w2 + first * narrow, share * narrow, own.w2, share * narrow, 1 },
                     { whole.b2, narrow, own.b2, narrow, 1 } };
        each_piece(0, own.loss, [&](size_t from, size_t count) {
            size_t some = count / gpus;
            all.push_back({ from + (size_t)g * some, some, from / gpus, some, 1 });
        });
        return all;
    }

    void copy_weights(int g, Gpu &p, cudaMemcpyKind kind)
    {
        for (const Kept &k : kept_by(g)) {
            float *there = p.kept + k.at, *here = host_w + k.host;
            size_t wide = k.pitch * sizeof(float), narrow = k.width * sizeof(float);
            bool up = kind == cudaMemcpyHostToDevice;
            if (k.height == 1)
                CUDA(cudaMemcpyAsync(up ? there : here, up ? here : there, narrow, kind, p.stream));
            else
                CUDA(cudaMemcpy2DAsync(up ? there : here, up ? narrow : wide, up ? here : there, up ? wide : narrow,
                                       narrow, k.height, kind, p.stream));
        }
    }

    void upload()
    {
        each([&](int g, Gpu &p) {
            long first = way == TP ? 0 : (long)g * rows;
            CUDA(cudaMemcpyAsync(p.x, host_x + first * inputs, (size_t)rows * inputs * sizeof(float),
                                 cudaMemcpyHostToDevice, p.stream));
            CUDA(cudaMemcpyAsync(p.label, host_label + first, (size_t)rows * sizeof(int), cudaMemcpyHostToDevice,
                                 p.stream));
        });
    }

    void fetch()
    {
        each([&](int g, Gpu &p) {
            if (way != DP || g == 0)
                copy_weights(g, p, cudaMemcpyDeviceToHost);
        });
        CUDA(cudaSetDevice(0));
        CUDA(cudaMemcpyAsync(host_w + whole.loss, gpu[0].g + own.loss, sizeof(float), cudaMemcpyDeviceToHost,
                             gpu[0].stream));
    }

    // ---- a step ----

    // beside: collectives run in a stream of their own, and what they wait for is computed in chunks.
    void step(bool beside)
    {
        each([&](int, Gpu &p) {
            p.share = beside ? p.second : p.stream;
            if (by_adamw)
                count_step<<<1, 1, 0, p.stream>>>(p.step);
            CUDA(cudaMemsetAsync(p.g + own.loss, 0, sizeof(float), p.stream));
        });
        if (way == ZERO3)
            gather();
        each([&](int, Gpu &p) { first_layer(p); });
        second_layer(beside && rows % CHUNKS == 0 ? CHUNKS : 1);
        each([&](int, Gpu &p) { second_back(p); });
        share(own.w2, own.all, beside);
        each([&](int, Gpu &p) { hidden_back(p); });
        for (int c = 0, n = beside ? pieces : 1; c < n; c++) {
            each([&](int, Gpu &p) { first_back(p, c, n); });
            share(end_of_piece(c - 1, n), end_of_piece(c, n), beside);
        }
        if (way == DP && gpus > 1 && !beside)
            all_reduce([&](Gpu &p) { return p.g; }, own.all);
        each([&](int, Gpu &p) { follow(p.stream, p.share, p.event); });
        if (way != ZERO3)
            each([&](int, Gpu &p) { optimise(p, 0, own.loss, p.stream); });
    }

    void first_layer(Gpu &p)
    {
        gemm_rows(p.blas, false, false, rows, columns, inputs, 1, p.x, p.w, 0, p.h);
        bias_relu<<<BLOCKS, BLOCK, 0, p.stream>>>(p.h, p.h, p.w + own.b1, (size_t)rows * columns, columns);
    }

    // With tp each GPU has summands of all logits, which are added up some rows at a time.
    void second_layer(int chunks)
    {
        long some = way == TP ? rows / chunks : rows;
        if (way == ZERO3)
            each([&](int, Gpu &p) { follow(p.stream, p.share, p.event); });
        for (long row = 0; row < rows; row += some) {
            each([&](int, Gpu &p) {
                gemm_rows(p.blas, false, false, some, classes, columns, 1, p.h + row * columns, p.w + own.w2, 0,
                          p.z2 + row * classes);
            });
            if (way == TP)
                all_reduce([&](Gpu &p) { return p.z2 + row * classes; }, (size_t)(some * classes));
        }
        each([&](int, Gpu &p) {
            if (way == TP)
                follow(p.stream, p.share, p.event);
            softmax_loss<<<(unsigned)rows, BLOCK, 0, p.stream>>>(p.z2, p.w + own.b2, p.label, p.g + own.loss, classes,
                                                                 1.f / (float)batch);
        });
    }

    void second_back(Gpu &p)
    {
        gemm_rows(p.blas, true, false, columns, classes, rows, 1, p.h, p.z2, 0, p.g + own.w2);
        gemm_rows(p.blas, true, false, 1, classes, rows, 1, p.ones, p.z2, 0, p.g + own.b2);
    }

    void hidden_back(Gpu &p)
    {
        gemm_rows(p.blas, false, true, rows, columns, classes, 1, p.z2, p.w + own.w2, 0, p.dh);
        relu_grad<<<BLOCKS, BLOCK, 0, p.stream>>>(p.h, p.dh, (size_t)rows * columns);
        gemm_rows(p.blas, true, false, 1, columns, rows, 1, p.ones, p.dh, 0, p.g + own.b1);
    }

    // Some rows of the gradient of the first matrix.
    void first_back(Gpu &p, int piece, int of)
    {
        long some = inputs / of, first = piece * some;
        gemm(p.blas, false, true, columns, some, rows, 1, p.dh, columns, p.x + first, inputs, 0, p.g + first * columns,
             columns);
    }

    void optimise(Gpu &p, size_t first, size_t count, cudaStream_t stream)
    {
        float *w = p.kept + first, *g = p.reduced + first;
        if (by_adamw)
            adamw<<<BLOCKS, BLOCK, 0, stream>>>(w, g, p.m + first, p.v + first, p.step, rate, count);
        else
            descend<<<BLOCKS, BLOCK, 0, stream>>>(w, g, rate, count);
    }

    // ---- collectives ----

    // The first layer's weights are cut into pieces by rows of the matrix, and the bias belongs to the last of them.
    size_t end_of_piece(int piece, int of) const
    {
        return piece + 1 < of ? (size_t)(piece + 1) * (size_t)(inputs / of) * (size_t)columns : own.w2;
    }

    // Of zero3, what is gathered and scattered as one: a GPU keeps a part of each.
    template <typename Act> void each_piece(size_t from, size_t to, Act act) const
    {
        for (int c = 0; c < pieces; c++) {
            size_t first = end_of_piece(c - 1, pieces), end = end_of_piece(c, pieces);
            if (first >= from && end <= to)
                act(first, end - first);
        }
        if (own.w2 >= from && own.loss <= to)
            act(own.w2, own.loss - own.w2);
    }

    template <typename At> void all_reduce(At at, size_t count)
    {
        each([&](int, Gpu &p) { follow(p.share, p.stream, p.event); });
        LIBRARY(ncclGroupStart());
        for (int g = 0; g < gpus; g++) {
            Gpu &p = gpu[(size_t)g];
            LIBRARY(ncclAllReduce(at(p), at(p), count, ncclFloat, ncclSum, comm[(size_t)g], p.share));
        }
        LIBRARY(ncclGroupEnd());
    }

    // Weights of the second layer arrive while the first computes.
    void gather()
    {
        for (size_t from : { (size_t)0, own.w2 }) {
            LIBRARY(ncclGroupStart());
            for (int g = 0; g < gpus; g++)
                each_piece(from, from ? own.loss : own.w2, [&](size_t first, size_t count) {
                    Gpu &p = gpu[(size_t)g];
                    LIBRARY(ncclAllGather(p.kept + first / gpus, p.w + first, count / gpus, ncclFloat, comm[(size_t)g],
                                          p.share));
                });
            LIBRARY(ncclGroupEnd());
            if (from == 0)
                each([&](int, Gpu &p) { follow(p.stream, p.share, p.event); });
        }
    }

    // Gradients from one place to another are queued: they are added up. With dp that waits for all where it is not
    // beside; with zero3 the weights step in the same stream.
    void share(size_t from, size_t to, bool beside)
    {
        if (way == DP && gpus > 1 && beside)
            all_reduce([&](Gpu &p) { return p.g + from; }, to - from);
        if (way != ZERO3)
            return;
        each([&](int, Gpu &p) { follow(p.share, p.stream, p.event); });
        LIBRARY(ncclGroupStart());
        for (int g = 0; g < gpus; g++)
            scatter(gpu[(size_t)g], comm[(size_t)g], from, to);
        LIBRARY(ncclGroupEnd());
        size_t first = from / gpus, end = std::min(to, own.loss) / gpus;
        each([&](int, Gpu &p) { optimise(p, first, end - first, p.share); });
    }

    void scatter(Gpu &p, ncclComm_t with, size_t from, size_t to)
    {
        each_piece(from, to, [&](size_t first, size_t count) {
            LIBRARY(ncclReduceScatter(p.g + first, p.reduced + first / gpus, count / gpus, ncclFloat, ncclSum, with,
                                      p.share));
        });
        if (to > own.loss)
            LIBRARY(ncclAllReduce(p.g + own.loss, p.g + own.loss, 1, ncclFloat, ncclSum, with, p.share));
    }

    void start(bool beside)
    {
        if (from_host)
            upload();
        step(beside);
        if (from_host)
            fetch();
    }

    Streams streams() const
    {
        return streams_of(
            gpus,
            [&](int g) {
                return std::vector<cudaStream_t>{ gpu[(size_t)g].stream, gpu[(size_t)g].second };
            });
    }
};

struct Variant {
    const char *name;
    bool graph, beside;
};

// Each variant of `make`'s net takes steps of a small one, as it is timed, beside the CPU.
template <typename Make>
static void race(Work &work, const Sizes &sizes, const Sizes &small, const std::vector<Variant> &variants, Make make)
{
    auto net = make(sizes);
    for (const Variant &variant : variants) {
        auto step_of = [&](auto &of) -> std::function<void()> {
            if (!variant.graph)
                return [&] {
                    of.start(variant.beside);
                    wait_for_all(of.gpus);
                };
            Streams streams = of.streams();
            cudaGraphExec_t graph = captured(streams, [&] { of.start(variant.beside); });
            return [=, &of] { launch(graph, streams[0], of.gpus); };
        };
        auto act = [&] {
            auto checked = make(small);
            work.check(error_of_steps(checked, step_of(checked)), 1e-5);
            work.time(variant.name, step_of(net));
        };
        if (variant.graph)
            work.attempt(variant.name, act);
        else
            act();
    }
}

static void race_ways(Work &work, const Sizes &sizes, Way way, bool host)
{
    std::vector<Variant> variants = { { "streams", false, false }, { "graph", true, false } };
    if (work.gpus > 1)
        variants.push_back({ "graph, collectives beside", true, true });
    Sizes small = { 32 * work.gpus, 32, 16 * work.gpus, 10, sizes.by_adamw };
    race(work, sizes, small, variants, [&](const Sizes &of) { return Mlp(work.gpus, of, way, host); });
}

static void race_pipeline(Work &work, const Sizes &sizes)
{
    int micro = (int)work.size("micro", 4);
    Sizes small = { 16 * micro, 32, 24, 10, sizes.by_adamw };
    std::vector<Variant> variants = { { "streams", false, true },
                                      { "graph, copies beside", true, true },
                                      { "graph, loads and stores", true, false } };
    race(work, sizes, small, variants, [&](const Sizes &of) { return Pipeline(work.gpus, of, micro); });
}

int main(int argc, char **argv)
{
    Work work("mlp", argc, argv);
    work.dtype({ "f32" });
    Sizes sizes;
    sizes.batch = (int)work.size("batch", 16384);
    sizes.inputs = (int)work.size("inputs", 4096);
    sizes.hidden = (int)work.size("hidden", 4096);
    sizes.classes = (int)work.size("classes", 1024);
    sizes.by_adamw = work.option("adamw", 0) != 0;
    std::string word = work.word("way", { "dp", "tp", "zero3", "pp" });
    bool host = work.option("host", 0) != 0;
    held(!host || word == "dp", "--host 1", __FILE__, __LINE__, "is for --way dp");
    if (word == "pp")
        race_pipeline(work, sizes);
    else
        race_ways(work, sizes, word == "dp" ? DP : word == "tp" ? TP : ZERO3, host);
    return work.end();
}
