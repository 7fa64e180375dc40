/* SPDX-License-Identifier: Apache-2.0 */
/* Which contents that a graph states can be made where. */
#ifndef GY_GRAPH_CONTENTS_H
#define GY_GRAPH_CONTENTS_H

#include "graph/graph.h"

/* GPUs make these in their own memory, with the host's bits. Of the rest, files are read by the host, and normal
 * numbers have the bits of its libm: these are uploaded. */
static inline bool gy_init_is_for_gpus(const gy_init *init)
{
    return init->kind == GY_INIT_VALUE || init->kind == GY_INIT_UNIFORM || init->kind == GY_INIT_IOTA ||
           init->kind == GY_INIT_SPD;
}

#endif
