/* SPDX-License-Identifier: Apache-2.0 */
#include "as_launch.h"

#include "base/map.h"
#include <stdbool.h>
#include <string.h>

static uint64_t bytes_of(const gantry_arg *a)
{
    uint64_t bytes = (uint64_t)(a->rows * a->row_bytes);
    return bytes;
}

static bool reads(gantry_access access)
{
    return access == GANTRY_READ || access == GANTRY_READWRITE;
}

/* Small whole numbers: sums of them are exact, products are powers of two or infinite. */
static double value_of(uint64_t seed, uint64_t i, gantry_access access)
{
    uint64_t v = gy_hash64(seed + i) % 3;
    return access == GANTRY_PROD ? (double)(1 + v % 2) : (double)v;
}

static double combine(gantry_access access, double old, double more)
{
    switch (access) {
    case GANTRY_SUM:
        return old + more;
    case GANTRY_MIN:
        return more < old ? more : old;
    case GANTRY_MAX:
        return more > old ? more : old;
    case GANTRY_PROD:
        return old * more;
    default:
        return more;
    }
}

static void write_arg(const gantry_arg *a, uint64_t seed)
{
    uint64_t count = bytes_of(a) / gantry_dtype_size(a->dtype);
    for (uint64_t i = 0; i < count; i++) {
        if (a->dtype == GANTRY_F64)
            ((double *)a->data)[i] = combine(a->access, ((double *)a->data)[i], value_of(seed, i, a->access));
        else
            ((float *)a->data)[i] =
                (float)combine(a->access, (double)((float *)a->data)[i], value_of(seed, i, a->access));
    }
}

static gantry_status mix(const gantry_launch *l)
{
    uint64_t seed = gy_hash_bytes(l->node, strlen(l->node), (uint64_t)l->iteration);
    for (int k = 0; k < l->args; k++)
        if (reads(l->arg[k].access))
            seed = gy_hash_bytes(l->arg[k].data, bytes_of(&l->arg[k]), seed);
    for (int k = 0; k < l->args; k++)
        if (l->arg[k].access != GANTRY_READ)
            write_arg(&l->arg[k], gy_hash64(seed + (uint64_t)k));
    return GANTRY_OK;
}

gantry_node mixing_launch(gantry_graph *graph, const char *id)
{
    return gantry_graph_launch(graph, id, mix, NULL);
}
