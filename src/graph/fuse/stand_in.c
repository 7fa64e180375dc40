/* SPDX-License-Identifier: Apache-2.0 */
/* Maps in place of nodes whose kernels compute formulas: "saxpy" is y = a * x + y. */
#include "base/memory.h"
#include "graph/build/build_state.h"
#include "graph/fuse/fuse.h"

#include <string.h>

/* ---- who has a map beside it ---- */

static bool note_regions(const gantry_graph *g, const gy_node *n, gy_map *to)
{
    bool ok = true;
    for (uint32_t i = n->access; i < n->access + n->accesses; i++)
        ok = gy_map_put(to, gy_fuse_key(&g->access.at[i]), 1) && ok;
    return ok;
}

static bool has_noted_region(const gantry_graph *g, const gy_node *n, const gy_map *noted)
{
    uint64_t ignored;
    for (uint32_t i = n->access; i < n->access + n->accesses; i++)
        if (gy_map_get(noted, gy_fuse_key(&g->access.at[i]), &ignored))
            return true;
    return false;
}

/* Whole numbers of kernels wrap as their elements do, those of formulas as 64 bits. */
static bool is_real(const gantry_graph *g, const gy_node *n)
{
    bool real = true;
    for (uint32_t i = n->access; i < n->access + n->accesses; i++)
        real = real && gy_dtype_is_float(g->buffers.at[g->access.at[i].buffer].dtype);
    return real;
}

/* The kernel's formulas, if the node can stand as a map of them: code of users may round in other ways. */
static const gy_maths *formulas_of(const gantry_graph *g, uint32_t node)
{
    const gy_node *n = &g->nodes.at[node];
    const gy_kernel *k = n->kind == GY_NODE_KERNEL && n->kernel != GY_NONE ? &g->kernels.at[n->kernel] : NULL;
    if (!k || k->maths || !k->formula || k->formula->reduces || gantry_kernel_find(k->manifest->name) != k->manifest)
        return NULL;
    return is_real(g, n) && gy_fuse_is_plain(g, node) ? k->formula : NULL;
}

/* ---- the map ---- */

/* Regions and numbers of `from` in the order in which the map's formulas name them. False: out of memory. */
static bool append_arguments(gantry_graph *g, const gy_node *from, const gy_maths *manifest, const gy_maths *map,
                             gy_node *to)
{
    bool ok = true;
    to->access = (uint32_t)g->access.count;
    to->scalar = (uint32_t)g->scalar.count;
    for (uint32_t arg = 0; arg < map->args; arg++) {
        for (uint32_t i = from->access; i < from->access + from->accesses; i++) {
            gy_access a = g->access.at[i];
            if (strcmp(manifest->arg[a.arg], map->arg[arg]) != 0)
                continue;
            a.arg = arg;
            ok = gy_vec_push(&g->access, a) && ok;
        }
        for (uint32_t i = from->scalar; i < from->scalar + from->scalars; i++) {
            gy_scalar s = g->scalar.at[i];
            if (strcmp(manifest->arg[s.arg], map->arg[arg]) != 0)
                continue;
            s.arg = arg;
            ok = gy_vec_push(&g->scalar, s) && ok;
        }
    }
    return ok;
}

/* Shapes that kernels take and formulas do not leave the node as it is. */
static bool put_map(gy_fuser *f, uint32_t node, const gy_maths *formulas)
{
    gantry_graph *g = f->graph;
    gy_node made = f->original[node] = g->nodes.at[node];
    gantry_error refused;
    size_t accesses = g->access.count, scalars = g->scalar.count;
    gy_maths *map = gy_calloc(1, sizeof *map); /* with arguments in the order of a map node */
    const char *text = g->kernels.at[made.kernel].manifest->formula;
    bool read = map && gy_maths_add_all(map, &g->arena, text, GANTRY_E_GRAPH, NULL, &refused) == GANTRY_OK;
    made.kernel = read ? gy_build_formulas(g, map) : GY_NONE;
    bool done = made.kernel != GY_NONE && append_arguments(g, &f->original[node], formulas, map, &made);
    gy_free(map);
    if (!done)
        return false;
    g->nodes.at[node] = made;
    gantry_status status = gy_build_map(g, node, &refused);
    f->stands_in[node] = !status;
    if (status) {
        g->nodes.at[node] = f->original[node];
        g->access.count = accesses;
        g->scalar.count = scalars;
    }
    return status != GANTRY_E_NOMEM;
}

static bool look_at(gy_fuser *f, uint32_t node, gy_map *noted)
{
    const gy_maths *formulas = f->stands_in[node] ? NULL : formulas_of(f->graph, node);
    if (!formulas || !has_noted_region(f->graph, &f->graph->nodes.at[node], noted))
        return true;
    return put_map(f, node, formulas) && note_regions(f->graph, &f->graph->nodes.at[node], noted);
}

/* Those behind a map first, then those before it, so that rows of several nodes are found. */
bool gy_fuse_stand_in(gy_fuser *f)
{
    const gantry_graph *g = f->graph;
    gy_map noted = { 0 };
    bool ok = true;
    for (uint32_t i = 0; i < g->nodes.count && ok; i++)
        ok = !gy_fuse_is_map(g, &g->nodes.at[i]) || note_regions(g, &g->nodes.at[i], &noted);
    for (uint32_t i = 0; i < g->nodes.count && ok && noted.count; i++)
        ok = look_at(f, i, &noted);
    for (uint32_t i = (uint32_t)g->nodes.count; i-- > 0 && ok && noted.count;)
        ok = look_at(f, i, &noted);
    gy_map_free(&noted);
    return ok;
}

void gy_fuse_step_back(gy_fuser *f)
{
    for (uint32_t i = 0; i < f->graph->nodes.count; i++)
        if (f->stands_in[i])
            f->graph->nodes.at[i] = f->original[i];
}
