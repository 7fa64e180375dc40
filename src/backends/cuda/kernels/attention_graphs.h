/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Attention and its gradients as graphs of cuDNN, in the form that its fused engines know (cuDNN's documentation,
 * "Fused Attention fprop" and "bprop"): scores never lie in memory forward, backward they do in the form of their
 * gradients, since engines that add up dq while others do give other bits in each run.
 */
#ifndef GY_CUDA_KERNELS_ATTENTION_GRAPHS_H
#define GY_CUDA_KERNELS_ATTENTION_GRAPHS_H

#include "backends/cuda/nvidia/cudnn_graph.h"
#include "kernels/attention/attention.h"

/* Tensors that graphs are given. Numbers are read by cuDNN from memory of the host when a plan is run. */
enum {
    GY_FUSED_Q,
    GY_FUSED_K,
    GY_FUSED_V,
    GY_FUSED_Y,
    GY_FUSED_STATISTICS, /* of each query the logarithm of its sum of exponentials, f32 */
    GY_FUSED_DY,
    GY_FUSED_DQ,
    GY_FUSED_DK,
    GY_FUSED_DV,
    GY_FUSED_SUMS, /* of each query that of y dy, f32 */
    GY_FUSED_SCALE,
    GY_FUSED_SHIFT, /* keys beyond queries, where not all are seen */
    GY_FUSED_LOWEST,
    GY_FUSED_ONE,
    GY_FUSED_COUNT
};

typedef struct gy_fused {
    gy_cudnn_plan plan;
    int64_t id[GY_FUSED_COUNT]; /* of the graph's tensors; 0: it has none */
} gy_fused;

/* Bytes that cuDNN keeps beside the gradients of scores, or more. */
enum { GY_FUSED_OTHERS = 1 << 20 };

/* The graph for `heads` heads of keys at a time. With statistics they are written, too. */
void gy_fused_forward(gy_fused *to, const gy_attention *a, int64_t heads, int type, bool statistics);
void gy_fused_backward(gy_fused *to, const gy_attention *a, int64_t heads, int type);
/* The workspace of the gradients for so many heads of keys, or a little more: gradients of scores, and of keys before
 * those of heads that share them are added up. */
size_t gy_fused_backward_bytes(const gy_attention *a, int64_t heads);

#endif
