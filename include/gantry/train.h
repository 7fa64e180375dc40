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
} gantry_train_options;
#define GANTRY_TRAIN_OPTIONS_INIT                                                                                      \
    {                                                                                                                  \
        sizeof(gantry_train_options), NULL, NULL, 0, GANTRY_OPTIMIZER_SGD, 0, 0.01, NULL, 0.9, 0.9, 0.999, 1e-8, -1, 0 \
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
/** The loss, of a graph that was differentiated or whose file has the key `train`; id GANTRY_NONE for others. */
GANTRY_API gantry_buffer gantry_graph_loss(const gantry_graph *graph);

#ifdef __cplusplus
}
#endif
#endif /* GANTRY_TRAIN_H */
