/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/train.h
 * @brief Training: a model that is described once, forward, gets its backward pass and its optimiser.
 *
 * A model is a graph with a loss, a buffer of one element, and weights, buffers that it reads. Reverse mode
 * differentiation (Griewank and Walther, Evaluating Derivatives, 2nd edition, SIAM 2008, chapter 3) adds to it: for
 * each node between weights and loss, last node first, those that give the adjoints of what it read, derivatives of the
 * loss, from the adjoints of what it wrote; sums where several nodes read the same rows; then the steps of the
 * optimiser. The result is a graph like others. docs/train.md says what can be differentiated.
 */
#ifndef GANTRY_TRAIN_H
#define GANTRY_TRAIN_H

#include <gantry/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Steps with the gradient g of a weight w, R being the learning rate, one in each start of the graph:
 *  none: it is an output, named "w.grad". sgd: w -= R g. momentum: v = momentum v + g, w -= R v. adam and adamw:
 *  Kingma and Ba, Adam, ICLR 2015; Loshchilov and Hutter, Decoupled Weight Decay Regularization, ICLR 2019. */
typedef enum gantry_optimizer {
    GANTRY_OPTIMIZER_NONE,
    GANTRY_OPTIMIZER_SGD,
    GANTRY_OPTIMIZER_MOMENTUM,
    GANTRY_OPTIMIZER_ADAM,
    GANTRY_OPTIMIZER_ADAMW
} gantry_optimizer;

GANTRY_API const char *gantry_optimizer_name(gantry_optimizer optimizer); /* "adamw"; NULL if there is none */

typedef struct gantry_train_options {
    size_t struct_size;
    const char *loss;           /* a buffer of one element, f32 or f64, that the graph writes */
    const char *const *weights; /* buffers of floating elements that no node writes; "layer.*.gain": all that fit */
    size_t weight_count;
    gantry_optimizer optimizer;
    int32_t reserved;
    double learning_rate;
    const char *schedule; /* a formula over `step` (1, 2, ...) and params of the graph, a factor of the learning rate:
                             "min(1, step / 100)"; NULL: 1 */
    double momentum;      /* of momentum */
    double beta1, beta2, epsilon; /* of adam and adamw */
    double weight_decay;          /* sgd, momentum, adam: decay w is added to g; adamw: R decay w is taken off w.
                                     Negative: 0.01 for adamw, else 0 */
    double clip_norm;             /* gradients are scaled so that the root of the sum of all their squares is at most
                                     this; 0: they are not */
    const char *const *batch;     /* buffers that no node writes, whose rows are examples: what a strategy cuts */
    size_t batch_count;           /* 0: those that are split, weights apart */
    double loss_scale;            /* adjoints are those of so many times the loss, so that small ones are not 0 in f16;
                                     the optimiser divides gradients by it. Outputs of GANTRY_OPTIMIZER_NONE have it.
                                     GANTRY_LOSS_SCALE_AUTO: it follows from what overflows, as docs/train.md says */
} gantry_train_options;
#define GANTRY_LOSS_SCALE_AUTO (-1.0)
#define GANTRY_TRAIN_OPTIONS_INIT                                                                                      \
    {                                                                                                                  \
        sizeof(gantry_train_options), NULL, NULL, 0, GANTRY_OPTIMIZER_SGD, 0, 0.01, NULL, 0.9, 0.9, 0.999, 1e-8, -1,   \
            0, NULL, 0, 1                                                                                              \
    }

/**
 * Adds the backward pass and the optimiser to a graph that is built and not checked yet. Weights become of class state,
 * the loss becomes an output. Buffers that come: "NAME.grad", the adjoint of a buffer, with its dtype, shape and cut;
 * "NAME.m" and "NAME.v", what the optimiser keeps of a weight, f32 or f64; "train.step" and others of one element.
 * Nodes that come for a node ID: "ID.grad.ARG". `options` NULL: what the key `train` of the graph's file says. Texts
 * are copied. E_GRAPH, with the node: something between weights and loss has no adjoint. E_INVALID: the graph was
 * checked, was differentiated before, or no options are known. After an error the graph is of no more use.
 */
GANTRY_MUST_USE gantry_status gantry_graph_differentiate(gantry_graph *graph, const gantry_train_options *options,
                                                         gantry_error *err);
/** How a training is spread over devices: dp x tp x pp of them, numbers from 0 on of those whose use is any. Slice t of
 *  stage s of replica r is on device (s x dp + r) x tp + t. docs/train.md has what becomes of a model. */
typedef struct gantry_strategy {
    size_t struct_size;
    int32_t dp;        /* replicas: the batch is cut into so many, each on a device of its own; 1: one */
    int32_t pp;        /* stages that a replica's nodes are cut into, by the operations they take; 1: one */
    int32_t micro;     /* micro-batches that each replica's batch is cut into, one after the other; 1: one */
    int32_t zero;      /* 1 to 3: weights, gradients and what the optimiser keeps are in shards, one on each device that
                          reads the same; 0: they are whole */
    int32_t tp;        /* slices that weights, and what is computed from them, are cut into, each on a device; 1: one */
    int32_t recompute; /* so many layers of each stage, the first ones, have their activations computed again in the
                          backward pass in place of kept; 0: none; GANTRY_RECOMPUTE_ALL, GANTRY_RECOMPUTE_AUTO */
    int32_t interleave; /* chunks of layers that each device of a pipeline has, pp x interleave stages in all: stage s
                           is where stage s mod pp is; 1: one */
    int32_t ordered;    /* 1: sums are added up in the order of the graph, so a training has the same bits on any number
                           of devices of a kind, and each place has a sum of its own; 0: in that of the schedule */
} gantry_strategy;
#define GANTRY_STRATEGY_INIT                                                                                           \
    {                                                                                                                  \
        sizeof(gantry_strategy), 1, 1, 1, 0, 1, 0, 1, 0                                                                \
    }
#define GANTRY_RECOMPUTE_ALL  INT32_MAX
#define GANTRY_RECOMPUTE_AUTO (-1) /* as many as memories want: who schedules has to try; graphs are not made of it */

/** Reads "dp=2,tp=2,pp=2,micro=4,zero=1,ordered=1,recompute=all", in any order, into *strategy, whose struct_size is
 * set; what is not named is as in GANTRY_STRATEGY_INIT. `recompute` is a number, "all", "none" or "auto". E_INVALID: a
 * name that is none, one that is there twice, a number out of range. */
GANTRY_MUST_USE gantry_status gantry_strategy_parse(gantry_strategy *strategy, const char *text, gantry_error *err);

/** Writes "dp=2,micro=4" of a strategy, what is as in GANTRY_STRATEGY_INIT left out ("dp=1" if all is), and a 0 behind
 *  it, as snprintf does: `size` bytes at most, and what it returns is how many it would be without the 0. */
GANTRY_API size_t gantry_strategy_text(const gantry_strategy *strategy, char *to, size_t size);
/** The i-th of the strategies that are worth a look on so many devices: every dp x tp x pp that divides their number,
 * with 1, 2, 4, 8 and 16 micro-batches, with shards where there are replicas. 1 if there is one, which *strategy
 * becomes (its struct_size is set); 0 past the last. Which is best is known when each was scheduled. */
GANTRY_API int gantry_strategy_candidate(size_t i, int32_t devices, gantry_strategy *strategy);

/**
 * Cuts a model into dp x micro x tp pieces of its batch, and says which device computes each. The graph is built, and
 * neither differentiated nor checked yet. Nodes that take rows of several pieces become one node a piece, "ID[3]", by a
 * rule for each kernel; reductions over the batch become contributions to one sum, so that losses and gradients are
 * those of the whole batch up to rounding. With tp, pairs of products with weights, and what lies between them, become
 * one node a slice of the weights; buffers in between and weights are cut into tiles or parts, and files hold them
 * whole. All nodes get `on`, and a `priority` by which micro-batches follow each other. With `recompute`,
 * gantry_graph_differentiate adds nodes "ID.again", which compute again, into buffers "NAME.again", what the backward
 * pass reads of a layer, to the bit. Layers are what the file has by `use`; where it has none, the nodes between two
 * places where little has to be kept (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016). `options` as
 * in gantry_graph_differentiate, which is called afterwards, with options NULL. E_GRAPH, with the node or the buffer:
 * rows or weights that cannot be cut so, or nothing says which buffers are the batch. E_INVALID: the graph was checked
 * or differentiated before, numbers that are out of range, GANTRY_RECOMPUTE_AUTO. After an error the graph is of no
 * more use.
 */
GANTRY_MUST_USE gantry_status gantry_graph_parallelize(gantry_graph *graph, const gantry_strategy *strategy,
                                                       const gantry_train_options *options, gantry_error *err);

/** The loss, of a graph that was differentiated or whose file has the key `train`; id GANTRY_NONE for others. */
GANTRY_API gantry_buffer gantry_graph_loss(const gantry_graph *graph);

#ifdef __cplusplus
}
#endif
#endif /* GANTRY_TRAIN_H */
