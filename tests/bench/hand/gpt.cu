// SPDX-License-Identifier: Apache-2.0
// A data-parallel training step of graphs/models/gpt.json by hand, from the same first numbers: cuBLAS, kernels fused
// as one would by hand (gpt_kernels.h), gradients all-reduced by NCCL in buckets while others are computed, AdamW. In
// streams, as one CUDA graph over all GPUs, and as one whose gradients of weights are computed beside the way back.
//   gpt [--gpus 1] [--batch 2] [--layers 2] [--tokens 32] [--heads 4] [--dim 16] [--words 64] [--lr 0.003] [--steps 10]
//   [--starts 7] [--seconds 100]
// A line of its own has the losses of the first --steps steps; variants have to agree about them.
// q, k and v of a head lie behind each other in one product, and tokens of all sequences of a place in a row (as in
// Megatron-LM, Shoeybi et al. 2019), so the products of all heads and sequences are one strided call and nothing is
// transposed. Under the causal mask these go over bands of rows that end where the last row sees no more. Sequences so
// short that a head fits in shared memory have one kernel for all of attention instead.
#include "gpt_kernels.h"

#include "blas.h"

#include <nccl.h>

struct Shape {
    long batch, layers, tokens, heads, dim, words; // batch: sequences of one GPU
    long width() const { return heads * dim; }
    long hidden() const { return 4 * width(); }
    long rows() const { return batch * tokens; }
    long all_heads() const { return batch * heads; }
    size_t scores() const { return (size_t)(all_heads() * tokens * tokens); }
};

// Where weights lie, their gradients and both moments. What is added to comes first, so that one call makes it zero:
// the loss (of gradients), then the table, then gains. The way back ends with these and begins with the head.
struct Layout {
    size_t table = 4, gains, layers, each, wo, up, down, head, all;

    explicit Layout(const Shape &s)
    {
        size_t w = (size_t)s.width(), words = (size_t)s.words;
        gains = table + words * w;
        layers = gains + (size_t)(2 * s.layers + 1) * w;
        wo = 3 * w * w; // within a layer, behind wq, wk and wv
        up = wo + w * w;
        down = up + 4 * w * w;
        each = down + 4 * w * w;
        head = layers + (size_t)s.layers * each;
        all = head + w * words;
    }
    size_t layer(long l) const { return layers + (size_t)l * each; }
};

// A matrix for each head of each sequence: its rows lie `pitch` apart, heads `step`.
struct Rows {
    float *at;
    long pitch, step;
    Rows from(long row, long column = 0) const { return { at + row * pitch + column, pitch, step }; }
};

class Gpt
{
  public:
    const int gpus;

    Gpt(int gpus_, const Shape &whole, double rate)
        : gpus(gpus_), shape_(whole), layout_(whole), rate_((float)rate), gpu_((size_t)gpus_), comm_((size_t)gpus_)
    {
        held(whole.batch % gpus == 0, "--batch", __FILE__, __LINE__, "a GPU has as many sequences as others");
        held(whole.dim % 4 == 0 && whole.width() <= 4 * BLOCK * MOST_PACKS, "--dim", __FILE__, __LINE__,
             "heads are multiples of 4 wide, and 4096 together");
        shape_.batch /= gpus;
        band_ = std::max(shape_.tokens / 8, 128l);
        told_ = new_host_array<float>(1);
        each([&](int g, Gpu &p) { open(g, p); });
        if (gpus > 1)
            LIBRARY(ncclCommInitAll(comm_.data(), gpus, nullptr));
        wait_for_all(gpus);
    }

    // The first weights again.
    void reset()
    {
        each([&](int, Gpu &p) {
            for (float *array : { p.m, p.v, p.step })
                CUDA(cudaMemsetAsync(array, 0, (array == p.step ? 1 : layout_.all) * sizeof(float), p.run));
            fill(p);
        });
        wait_for_all(gpus);
    }

    // beside: gradients of weights are computed in a stream of their own.
    void start(bool beside)
    {
        each([&](int, Gpu &p) {
            p.side = beside ? p.second : p.run;
            forward(p);
            loss(p);
        });
        reduced_ = layout_.all;
        reduce_from(layout_.head);
        for (long l = shape_.layers - 1; l >= 0; l--) {
            each([&](int, Gpu &p) { backward(p, l); });
            reduce_from(l > 0 ? layout_.layer(l) : 0);
        }
        each([&](int, Gpu &p) { optimise(p); });
    }

    Streams streams() const
    {
        return streams_of(
            gpus,
            [&](int g) {
                const Gpu &p = gpu_[(size_t)g];
                return std::vector<cudaStream_t>{ p.run, p.second, p.reduce };
            });
    }

    double loss_of_step() const { return *told_; }

  private:
    struct Layer { // what the way back reads
        float *x, *n1, *qkv, *weights, *a, *x2, *n2, *inner, *act, *inverse1, *inverse2;
    };
    struct Back { // gradients of a layer, which the second stream reads
        float *d, *inner, *mid, *qkv;
        cudaEvent_t done;
    };
    struct Gpu {
        float *w, *g, *m, *v, *step, *turns, *x, *last, *inverse, *t, *scores, *logits;
        double *sums;
        int *ids, *next;
        std::vector<Layer> layer;
        Back back[2];
        cudaStream_t run, second, reduce, side;
        cublasHandle_t blas, second_blas;
        cudaEvent_t event;
    };
    Shape shape_;
    Layout layout_;
    float rate_, *told_;
    long band_;
    size_t reduced_; // gradients from here on are given to NCCL
    std::vector<Gpu> gpu_;
    std::vector<ncclComm_t> comm_;

    template <typename Act> void each(Act act)
    {
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            act(g, gpu_[(size_t)g]);
            CUDA(cudaGetLastError());
        }
    }

    // ---- memory and first numbers ----

    void open(int g, Gpu &p)
    {
        p.run = new_stream();
        p.second = new_stream();
        p.reduce = new_stream(true);
        p.blas = new_blas(p.run);
        p.second_blas = new_blas(p.second);
        p.event = new_event();
        for (float **array : { &p.w, &p.g, &p.m, &p.v })
            *array = new_array<float>(layout_.all);
        p.step = new_array<float>(1);
        p.sums = new_array<double>(BLOCKS);
        open_activations(p);
        fill_words<<<blocks_for((size_t)shape_.rows()), BLOCK, 0, p.run>>>(p.ids, shape_.batch, shape_.tokens,
                                                                           g * shape_.batch, 1, shape_.words);
        fill_words<<<blocks_for((size_t)shape_.rows()), BLOCK, 0, p.run>>>(p.next, shape_.batch, shape_.tokens,
                                                                           g * shape_.batch, 2, shape_.words);
    }

    void open_activations(Gpu &p)
    {
        size_t rows = (size_t)shape_.rows(), w = (size_t)shape_.width();
        for (int **array : { &p.ids, &p.next })
            *array = new_array<int>(rows);
        for (float **array : { &p.x, &p.last, &p.t })
            *array = new_array<float>(rows * w);
        p.inverse = new_array<float>(rows);
        p.scores = new_array<float>(shape_.scores());
        p.logits = new_array<float>(rows * (size_t)shape_.words);
        p.turns = new_turns();
        p.layer.resize((size_t)shape_.layers);
        for (Layer &l : p.layer) {
            for (float **array : { &l.x, &l.n1, &l.a, &l.x2, &l.n2 })
                *array = new_array<float>(rows * w);
            for (float **array : { &l.inner, &l.act })
                *array = new_array<float>(rows * 4 * w);
            for (float **array : { &l.inverse1, &l.inverse2 })
                *array = new_array<float>(rows);
            l.qkv = new_array<float>(rows * 3 * w);
            l.weights = new_array<float>(shape_.scores());
        }
        for (Back &b : p.back)
            b = { new_array<float>(rows * w), new_array<float>(rows * 4 * w), new_array<float>(rows * w),
                  new_array<float>(rows * 3 * w), new_event() };
    }

    // Of each place: cosines, then sines, of the angles of a head's pairs.
    float *new_turns() const
    {
        size_t dim = (size_t)shape_.dim, half = dim / 2;
        std::vector<float> turns((size_t)shape_.tokens * dim);
        for (size_t t = 0; t < (size_t)shape_.tokens; t++)
            for (size_t i = 0; i < half; i++) {
                double angle = (double)t * std::pow(10000.0, -2.0 * (double)i / (double)dim);
                turns[t * dim + i] = (float)std::cos(angle);
                turns[t * dim + half + i] = (float)std::sin(angle);
            }
        float *there = new_array<float>(turns.size());
        CUDA(cudaMemcpy(there, turns.data(), turns.size() * sizeof(float), cudaMemcpyHostToDevice));
        return there;
    }

    // `layer`: which of the matrices of a buffer that has one a layer.
    void fill(Gpu &p, float *to, long rows, Place place, long layer, unsigned seed, double deviation)
    {
        size_t n = (size_t)(rows * place.columns);
        fill_normal<<<BLOCKS, BLOCK, 0, p.run>>>(to, n, (size_t)layer * n, place, seed, deviation);
    }

    void fill(Gpu &p)
    {
        long w = shape_.width(), hidden = shape_.hidden(), words = shape_.words, dim = shape_.dim;
        Place square = { w, w, w, w, 0 }, wide = { hidden, hidden, hidden, hidden, 0 };
        fill(p, p.w + layout_.table, words, square, 0, 3, 0.3);
        fill(p, p.w + layout_.head, w, { words, words, words, words, 0 }, 0, 10, 0.05);
        size_t gains = layout_.layers - layout_.gains;
        fill_value<<<blocks_for(gains), BLOCK, 0, p.run>>>(p.w + layout_.gains, gains, 1);
        for (long l = 0; l < shape_.layers; l++) {
            float *at = p.w + layout_.layer(l);
            for (int i = 0; i < 3; i++)
                fill(p, at, w, { w, 3 * w, dim, 3 * dim, i * dim }, l, (unsigned)(4 + i), 0.05);
            fill(p, at + layout_.wo, w, square, l, 7, 0.05);
            fill(p, at + layout_.up, w, wide, l, 8, 0.05);
            fill(p, at + layout_.down, hidden, square, l, 9, 0.05);
        }
    }

    // ---- forward ----

    int packs() const { return (int)(shape_.width() / 4); }
    unsigned row_threads() const { return threads_for(shape_.width()); }
    const float4 *gain(const Gpu &p, long which) const
    {
        return (const float4 *)(p.w + layout_.gains + (size_t)(which * shape_.width()));
    }

    void forward(Gpu &p)
    {
        CUDA(cudaMemsetAsync(p.g, 0, layout_.layers * sizeof(float), p.run));
        Layer &first = p.layer[0];
        embed_norm<<<(unsigned)shape_.rows(), row_threads(), 0, p.run>>>((const float4 *)(p.w + layout_.table), p.ids,
                                                                         (float4 *)first.x, gain(p, 0),
                                                                         (float4 *)first.n1, first.inverse1, packs());
        for (long l = 0; l < shape_.layers; l++)
            forward(p, l);
    }

    // x = a + p.t, and the norm of that.
    void sum_and_norm(Gpu &p, const float *a, float *x, long which, float *y, float *inverse)
    {
        add_norm<<<(unsigned)shape_.rows(), row_threads(), 0, p.run>>>(
            (const float4 *)a, (const float4 *)p.t, (float4 *)x, gain(p, which), (float4 *)y, inverse, packs());
    }

    void forward(Gpu &p, long number)
    {
        Layer &l = p.layer[(size_t)number];
        const float *w = p.w + layout_.layer(number);
        long rows = shape_.rows(), width = shape_.width(), hidden = shape_.hidden();
        size_t wide = (size_t)(rows * hidden / 4);
        gemm_rows(p.blas, false, false, rows, 3 * width, width, 1, l.n1, w, 0, l.qkv);
        attend(p, l);
        gemm_rows(p.blas, false, false, rows, width, width, 1, l.a, w + layout_.wo, 0, p.t);
        sum_and_norm(p, l.x, l.x2, 2 * number + 1, l.n2, l.inverse2);
        gemm_rows(p.blas, false, false, rows, hidden, width, 1, l.n2, w + layout_.up, 0, l.inner);
        gelu<<<blocks_for(wide), BLOCK, 0, p.run>>>((const float4 *)l.inner, (float4 *)l.act, wide);
        gemm_rows(p.blas, false, false, rows, width, hidden, 1, l.act, w + layout_.down, 0, p.t);
        if (number + 1 < shape_.layers) {
            Layer &n = p.layer[(size_t)number + 1];
            sum_and_norm(p, l.x2, n.x, 2 * number + 2, n.n1, n.inverse1);
        } else {
            sum_and_norm(p, l.x2, p.x, 2 * number + 2, p.last, p.inverse);
        }
    }

    // The loss, and its gradient by what the last layer gives.
    void loss(Gpu &p)
    {
        long rows = shape_.rows(), width = shape_.width(), words = shape_.words;
        float *head = p.w + layout_.head;
        gemm_rows(p.blas, false, false, rows, words, width, 1, p.last, head, 0, p.logits);
        cross_entropy<<<(unsigned)std::min<long>(rows, BLOCKS), BLOCK, 0, p.run>>>(
            p.logits, p.next, p.g, (int)rows, (int)words, 1 / (float)(rows * gpus));
        gradient_of_weight(p, width, words, p.last, p.logits, p.g + layout_.head);
        gemm_rows(p.blas, false, true, rows, width, words, 1, p.logits, head, 0, p.t);
        norm_back(p, p.x, p.inverse, 2 * shape_.layers, nullptr, p.back[(shape_.layers - 1) % 2].d);
    }

    // ---- attention ----

    Head one_head(const Gpu &p) const
    {
        return { p.turns, (int)shape_.batch, (int)shape_.heads, (int)shape_.tokens, (int)shape_.dim, scale() };
    }

    float scale() const { return 1 / std::sqrt((float)shape_.dim); }

    // 0: q, 1: k, 2: v.
    Rows part(float *qkv, int which) const
    {
        return { qkv + which * shape_.dim, shape_.batch * 3 * shape_.width(), 3 * shape_.dim };
    }
    Rows of_heads(float *a) const { return { a, shape_.batch * shape_.width(), shape_.dim }; }
    Rows of_scores(float *s) const { return { s, shape_.tokens, shape_.tokens * shape_.tokens }; }

    template <typename Act> void bands(Act act) const
    {
        for (long first = 0; first < shape_.tokens; first += band_)
            act(first, std::min(first + band_, shape_.tokens));
    }

    // Row by row, of all heads: C [m, n] = alpha op(A) op(B).
    void products(Gpu &p, bool ta, bool tb, long m, long n, long k, float alpha, Rows a, Rows b, Rows c)
    {
        float zero = 0;
        LIBRARY(cublasGemmStridedBatchedEx(p.blas, tb ? CUBLAS_OP_T : CUBLAS_OP_N, ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                                           (int)n, (int)m, (int)k, &alpha, b.at, CUDA_R_32F, (int)b.pitch, b.step, a.at,
                                           CUDA_R_32F, (int)a.pitch, a.step, &zero, c.at, CUDA_R_32F, (int)c.pitch,
                                           c.step, (int)shape_.all_heads(), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    }

    unsigned blocks_of_scores() const { return (unsigned)((shape_.all_heads() * shape_.tokens + WARPS - 1) / WARPS); }

    void turn_all(Gpu &p, float *qkv, float sign)
    {
        turn<<<(unsigned)shape_.rows(), BLOCK, 0, p.run>>>(qkv, p.turns, (int)shape_.batch, (int)shape_.heads,
                                                           (int)shape_.dim, sign);
    }

    void attend(Gpu &p, Layer &l)
    {
        long tokens = shape_.tokens, dim = shape_.dim;
        if (is_short(tokens, dim)) {
            short_attention<<<(unsigned)shape_.all_heads(), BLOCK, 0, p.run>>>(one_head(p), l.qkv, l.weights, l.a);
            return;
        }
        Rows q = part(l.qkv, 0), k = part(l.qkv, 1), v = part(l.qkv, 2), s = of_scores(l.weights), a = of_heads(l.a);
        turn_all(p, l.qkv, 1);
        bands([&](long first, long end) {
            products(p, false, true, end - first, end, dim, scale(), q.from(first), k, s.from(first));
        });
        causal_softmax<<<blocks_of_scores(), BLOCK, 0, p.run>>>(l.weights, (size_t)(shape_.all_heads() * tokens),
                                                                (int)tokens, (int)band_);
        bands([&](long first, long end) {
            products(p, false, false, end - first, dim, end, 1, s.from(first), v, a.from(first));
        });
    }

    // From the gradient of what attention gives, in p.t.
    void attend_back(Gpu &p, Layer &l, float *dqkv)
    {
        long tokens = shape_.tokens, dim = shape_.dim;
        if (is_short(tokens, dim)) {
            short_attention_grad<<<(unsigned)shape_.all_heads(), BLOCK, 0, p.run>>>(one_head(p), l.qkv, l.weights, p.t,
                                                                                    dqkv);
            return;
        }
        Rows q = part(l.qkv, 0), k = part(l.qkv, 1), v = part(l.qkv, 2), s = of_scores(l.weights);
        Rows da = of_heads(p.t), ds = of_scores(p.scores);
        bands([&](long first, long end) {
            products(p, false, true, end - first, end, dim, 1, da.from(first), v, ds.from(first));
            products(p, true, false, end - first, dim, tokens - first, 1, s.from(first, first), da.from(first),
                     part(dqkv, 2).from(first));
        });
        softmax_grad<<<blocks_of_scores(), BLOCK, 0, p.run>>>(
            l.weights, p.scores, (size_t)(shape_.all_heads() * tokens), (int)tokens, (int)band_, scale());
        bands([&](long first, long end) {
            products(p, false, false, end - first, dim, end, 1, ds.from(first), k, part(dqkv, 0).from(first));
            products(p, true, false, end - first, dim, tokens - first, 1, ds.from(first, first), q.from(first),
                     part(dqkv, 1).from(first));
        });
        turn_all(p, dqkv, -1);
    }

    // ---- backward ----

    // g [m, n] = x^T dy, from what is queued so far.
    void gradient_of_weight(Gpu &p, long m, long n, const float *x, const float *dy, float *g)
    {
        follow(p.side, p.run, p.event);
        gemm_rows(p.side == p.run ? p.blas : p.second_blas, true, false, m, n, shape_.rows(), 1, x, dy, 0, g);
    }

    // dx comes from p.t by the norm, and `add` is added to it; without dx it goes to the table.
    void norm_back(Gpu &p, const float *x, const float *inverse, long which, const float *add, float *dx)
    {
        unsigned blocks = (unsigned)std::min<long>(shape_.rows(), BLOCKS / 2);
        float *dgain = p.g + layout_.gains + (size_t)(which * shape_.width());
        (dx ? norm_grad<false> : norm_grad<true>)<<<blocks, row_threads(), 0, p.run>>>(
            (const float4 *)x, inverse, gain(p, which), (const float4 *)p.t, (const float4 *)add,
            (float4 *)(dx ? dx : p.g + layout_.table), dgain, p.ids, (int)shape_.rows(), packs());
    }

    void backward(Gpu &p, long number)
    {
        Layer &l = p.layer[(size_t)number];
        Back &b = p.back[number % 2], &next = p.back[(number + 1) % 2];
        const float *w = p.w + layout_.layer(number);
        float *g = p.g + layout_.layer(number);
        long rows = shape_.rows(), width = shape_.width(), hidden = shape_.hidden();
        size_t wide = (size_t)(rows * hidden / 4);
        gradient_of_weight(p, hidden, width, l.act, b.d, g + layout_.down);
        gemm_rows(p.blas, false, true, rows, hidden, width, 1, b.d, w + layout_.down, 0, b.inner);
        gelu_grad<<<blocks_for(wide), BLOCK, 0, p.run>>>((const float4 *)l.inner, (float4 *)b.inner, wide);
        gradient_of_weight(p, width, hidden, l.n2, b.inner, g + layout_.up);
        gemm_rows(p.blas, false, true, rows, width, hidden, 1, b.inner, w + layout_.up, 0, p.t);
        norm_back(p, l.x2, l.inverse2, 2 * number + 1, b.d, b.mid);
        gradient_of_weight(p, width, width, l.a, b.mid, g + layout_.wo);
        gemm_rows(p.blas, false, true, rows, width, width, 1, b.mid, w + layout_.wo, 0, p.t);
        attend_back(p, l, b.qkv);
        gradient_of_weight(p, width, 3 * width, l.n1, b.qkv, g);
        gemm_rows(p.blas, false, true, rows, width, 3 * width, 1, b.qkv, w, 0, p.t);
        CUDA(cudaEventRecord(b.done, p.side));
        if (number + 1 < shape_.layers) // the second stream has read what the layer behind this one left there
            CUDA(cudaStreamWaitEvent(p.run, next.done, 0));
        norm_back(p, l.x, l.inverse1, 2 * number, b.mid, number > 0 ? next.d : nullptr);
    }

    // ---- gradients of all GPUs, and the optimiser ----

    // All gradients from `first` on are queued. They are added up as soon as they are worth a call, or the last.
    void reduce_from(size_t first)
    {
        enum { BUCKET = 25 << 20 }; // bytes, as DistributedDataParallel of PyTorch has it (Li et al., VLDB 2020)
        if (gpus == 1 || (first > 0 && (reduced_ - first) * sizeof(float) < BUCKET))
            return;
        each([&](int, Gpu &p) {
            follow(p.reduce, p.run, p.event);
            follow(p.reduce, p.side, p.event);
        });
        LIBRARY(ncclGroupStart());
        for (int g = 0; g < gpus; g++) {
            Gpu &p = gpu_[(size_t)g];
            LIBRARY(ncclAllReduce(p.g + first, p.g + first, reduced_ - first, ncclFloat, ncclSum, comm_[(size_t)g],
                                  p.reduce));
        }
        LIBRARY(ncclGroupEnd());
        reduced_ = first;
    }

    void optimise(Gpu &p)
    {
        size_t first = layout_.table, count = (layout_.all - first) / 4;
        auto at = [&](float *array) { return (float4 *)(array + first); };
        follow(p.run, p.side, p.event);
        if (gpus > 1)
            follow(p.run, p.reduce, p.event);
        square_sums<<<blocks_for(count), BLOCK, 0, p.run>>>(at(p.g), count, p.sums, p.step);
        adamw<<<blocks_for(count), BLOCK, 0, p.run>>>(at(p.w), at(p.g), at(p.m), at(p.v), count, p.sums,
                                                      (int)blocks_for(count), p.step, rate_, p.g,
                                                      &p == &gpu_[0] ? told_ : nullptr);
    }
};

// Losses of the first steps, from the first weights on.
static std::vector<double> losses_of(Gpt &gpt, long steps, const std::function<void()> &start)
{
    std::vector<double> losses;
    gpt.reset();
    for (long i = 0; i < steps; i++) {
        start();
        losses.push_back(gpt.loss_of_step());
    }
    return losses;
}

// Infinite where some loss is no number.
static double difference(const std::vector<double> &a, const std::vector<double> &b)
{
    double worst = 0;
    for (size_t i = 0; i < a.size(); i++) {
        double apart = std::fabs(a[i] - b[i]) / std::fabs(b[i]);
        worst = std::isfinite(apart) ? std::max(worst, apart) : INFINITY;
    }
    return worst;
}

static void print(const std::vector<double> &losses)
{
    printf("{\"losses\": [");
    for (size_t i = 0; i < losses.size(); i++)
        printf("%s%.7g", i ? ", " : "", losses[i]);
    printf("]}\n");
}

int main(int argc, char **argv)
{
    Work work("gpt", argc, argv);
    work.dtype({ "f32" });
    Shape shape = { work.size("batch", 2), work.size("layers", 2), work.size("tokens", 32),
                    work.size("heads", 4), work.size("dim", 16),   work.size("words", 64) };
    long steps = work.option("steps", 10);
    Gpt gpt(work.gpus, shape, work.real("lr", 0.003));
    auto in_streams = [&] {
        gpt.start(true);
        wait_for_all(gpt.gpus);
    };
    std::vector<double> losses = losses_of(gpt, steps, in_streams);
    work.check(difference(losses, losses), 0);
    print(losses);
    work.time("streams", in_streams);
    for (bool beside : { false, true })
        work.attempt(beside ? "graph, two streams" : "graph", [&] {
            cudaGraphExec_t graph = captured(gpt.streams(), [&] { gpt.start(beside); });
            auto start = [&] { launch(graph, gpt.streams()[0], gpt.gpus); };
            work.check(difference(losses_of(gpt, steps, start), losses), 1e-4);
            work.time(beside ? "graph, two streams" : "graph", start);
        });
    return work.end();
}
