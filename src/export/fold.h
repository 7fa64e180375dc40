/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boxes of a picture of a graph. A box is a node or, where there are more nodes than the picture may have, a family
 * of nodes: those whose ids differ in what is in brackets only, in the same loop and cluster.
 */
#ifndef GY_EXPORT_FOLD_H
#define GY_EXPORT_FOLD_H

#include "export/export.h"

typedef struct gy_fold_box {
    uint32_t first, nodes; /* its first node; how many there are */
    uint32_t cluster;      /* index into fold->clusters; GY_NONE */
    const char *name;      /* the node's id, "gemm[*]" of a family */
} gy_fold_box;

typedef struct gy_fold {
    const gantry_graph *graph;
    GY_VEC(gy_fold_box) box;     /* in the order of their first nodes */
    uint32_t *of;                /* per node: its box; GY_NONE: it is not in the picture */
    uint32_t wanted;             /* nodes that were asked for, */
    uint32_t drawn;              /* of which so many are in a box */
    const gy_fold_box *centre;   /* that of the node whose neighbourhood it is; NULL */
    bool folded, whole;          /* whole: each node of the graph is in a box */
    bool by_device, by_family;   /* clusters; else loops are the clusters */
    gy_names families, clusters; /* keys of families; names of clusters */
} gy_fold;

/* E_INVALID: options that make no sense; E_NOMEM. The fold must be freed either way. */
gantry_status gy_fold_make(gy_fold *fold, const gantry_graph *graph, const gantry_drawing_options *options,
                           gantry_error *err);
void gy_fold_free(gy_fold *fold);

#endif
