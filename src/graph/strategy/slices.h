/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Tensor parallelism: weights, and what is computed from them, in *slices*. A product with a weight can be cut into
 * columns of the weight; what comes of it is in columns, and so is what is computed from it element by element or head
 * by head, until a product with rows of another weight takes it: each slice gives a summand of all of its result
 * (Shoeybi et al., Megatron-LM, 2019), or until a reduction along what is cut does. Where that does not come, nothing
 * is cut. Between such pairs rows go with the batch, a piece for each slice (Korthikanti et al., Reducing Activation
 * Recomputation in Large Transformer Models, 2022). Buffers in slices are cut into tiles, or along axis 0 into parts,
 * so that files see them whole.
 */
#ifndef GY_GRAPH_STRATEGY_SLICES_H
#define GY_GRAPH_STRATEGY_SLICES_H

#include "graph/strategy/strategy.h"

/* In place of an axis: each slice reads all of it; each slice gives a summand of all of it. */
enum { GY_SLICE_WHOLE = -1, GY_SLICE_SUMMED = -2 };

/* Finds along which axes the accesses of a node are cut, from those that are known: `axis`, by access, GY_SLICE_WHOLE
 * where nothing is known. False: the node cannot be cut so. */
bool gy_slice_rule(const gantry_graph *graph, uint32_t node, int8_t *axis);
/* Notes the axis of the weight that can be the first of a pair, and returns its access; GY_NONE: the node has none. */
uint32_t gy_slice_opens(const gantry_graph *graph, uint32_t node, int8_t *axis);
/* May what the node alone, at the end of a pair, would have cut stay whole, where it cannot be divided? So do columns
 * and rows of products not: there a tp that divides them is asked for. */
bool gy_slice_may_stay_whole(const gantry_graph *graph, uint32_t node);
/* Is it a softmax_xent, which cannot be in slices as it is? */
bool gy_slice_is_xent(const gantry_graph *graph, uint32_t node);
/* Do slices hold whole heads where the kernel wants that? */
bool gy_slice_divides(const gantry_graph *graph, uint32_t node, int8_t *axis, int32_t slices);

/* How what slices give to all of an argument is put together. */
gantry_access gy_slice_mode(const gantry_graph *graph, const gy_node *node, const gy_access *x);
/* A number that a slice says otherwise than the whole: so much more of a number of the node, and so much more again for
 * each slice before it. */
typedef struct gy_slice_number {
    const char *name;
    int64_t all, each;
} gy_slice_number;
enum { GY_SLICE_NUMBERS = 3 };
/* How many there are; `axis` as a rule found it, while accesses are those of whole buffers. */
uint32_t gy_slice_numbers(const gantry_graph *graph, uint32_t node, int8_t *axis, int32_t slices,
                          gy_slice_number out[GY_SLICE_NUMBERS]);

#endif
