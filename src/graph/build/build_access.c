/* SPDX-License-Identifier: Apache-2.0 */
/* Building: what nodes do to which rows. */
#include "graph/build/build_state.h"

void gy_build_push_access(gantry_graph *g, gy_node *node, gy_access access)
{
    gy_build *b = g->build_;
    bool ok;
    if (node->accesses == 0 || node->access + node->accesses == g->access.count) {
        if (node->accesses == 0)
            node->access = (uint32_t)g->access.count;
        ok = g->access.count < UINT32_MAX - 1 && gy_vec_push(&g->access, access);
        node->accesses += ok;
    } else {
        gy_late_access late = { (uint32_t)(node - g->nodes.at), access };
        ok = gy_vec_push(&b->late_access, late);
    }
    if (!ok)
        gy_build_nomem(g);
}

/* A program's own accesses are not counted, but a call that stands for many is. */
static bool check_count(gantry_graph *g, const gy_node *node, int64_t more)
{
    int64_t most = gy_graph_most_uses(g, g->nodes.count);
    if (more == 1 || (int64_t)(g->access.count + g->build_->late_access.count) <= most - more)
        return true;
    gy_graph_mistake(
        g, GANTRY_E_GRAPH,
        "with the %lld tiles that node \"%s\" names, the nodes have more than %lld accesses; name fewer, or "
        "raise the limit (--limits, gantry_graph_limit)",
        (long long)more, node->id, (long long)most);
    return false;
}

/* A box of tiles: how many there are, and how many of them lie together, one behind the other. */
typedef struct tile_box {
    gy_tile_spans at;
    int64_t tiles, together;
} tile_box;

static tile_box box_of(const gy_buffer *b, const gantry_region *r)
{
    tile_box box = { .tiles = 1, .together = 1 };
    gy_region_spans(&box.at, b, r);
    bool whole = true;
    for (int k = GANTRY_TILE_AXES - 1; k >= 0; k--) {
        int64_t count = box.at.last[k] - box.at.first[k];
        box.tiles *= count;
        box.together *= whole ? count : 1;
        whole = whole && count == b->tiles[k];
    }
    return box;
}

/* Number `at` of the box, in row-major order, as a tile of the buffer. */
static int64_t tile_in_box(const gy_buffer *b, const tile_box *box, int64_t at)
{
    int64_t index[GANTRY_TILE_AXES];
    for (int k = GANTRY_TILE_AXES - 1; k >= 0; k--) {
        int64_t count = box->at.last[k] - box->at.first[k];
        index[k] = box->at.first[k] + at % count;
        at /= count;
    }
    return gy_tile_number(b, index);
}

static void push_tiles(gantry_graph *g, gy_node *node, const gantry_region *r, gy_access base, bool each)
{
    const gy_buffer *b = &g->buffers.at[base.buffer];
    tile_box box = box_of(b, r);
    base.is_list = each;
    base.part = base.part_last = 0;
    base.first = base.last = 0;
    if (box.tiles == 0) {
        gy_build_push_access(g, node, base);
        return;
    }
    int64_t run = each ? 1 : box.together;
    if (!check_count(g, node, box.tiles / run))
        return;
    for (int64_t k = 0; k < box.tiles && !g->error.status; k += run) {
        base.first = tile_in_box(b, &box, k);
        base.last = base.first + run;
        base.part = (int32_t)base.first;
        base.part_last = (int32_t)base.last;
        gy_build_push_access(g, node, base);
    }
}

/* Only lists, and nodes that are never run, take tiles that do not lie together. */
static bool check_together(gantry_graph *g, const gy_node *node, const gantry_region *r, const gy_buffer *b)
{
    tile_box box = box_of(b, r);
    bool runs = node->kind == GY_NODE_KERNEL || node->kind == GY_NODE_LAUNCH || node->kind == GY_NODE_HOST;
    if (node->kind == GY_NODE_WORK || box.tiles == 1 || (!runs && box.tiles == box.together))
        return true;
    gy_text text = { 0 };
    for (int k = 0; k < b->rank; k++)
        gy_text_printf(&text, "%s%lld", k ? " x " : "", (long long)(box.at.last[k] - box.at.first[k]));
    gy_graph_mistake(g, GANTRY_E_GRAPH, "node \"%s\" gets %s tiles of \"%s\" where %s", node->id,
                     text.failed ? "many" : text.at, b->name,
                     runs ? "one region is expected; name one tile"
                          : "they must lie together; name one row of tiles or whole rows");
    gy_text_free(&text);
    return false;
}

void gy_build_access(gantry_graph *graph, gy_node *node, gantry_region region, gantry_access mode, uint32_t arg,
                     bool as_list)
{
    gy_access access;
    if (graph->error.status || !gy_region_resolve(graph, &region, &access))
        return;
    const gy_buffer *b = &graph->buffers.at[access.buffer];
    if (mode >= GANTRY_SUM && gy_dtype_is_f8(b->dtype)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH,
                         "node \"%s\" has access %s to \"%s\", which is %s; nothing is reduced in 8 bits: reduce to "
                         "f32, and convert the result",
                         node->id, gantry_access_name(mode), b->name, gantry_dtype_name(b->dtype));
        return;
    }
    if (access.buffer != region.buffer.id && mode != GANTRY_READ) {
        gy_graph_mistake(
            graph, GANTRY_E_GRAPH,
            "node \"%s\" has access %s to a tile of \"%s\" with a halo; such tiles are only read: leave the halo out",
            node->id, gantry_access_name(mode), graph->buffers.at[region.buffer.id].name);
        return;
    }
    access.mode = (uint8_t)mode;
    access.arg = arg;
    if (b->tiles[0] == 0) {
        gy_build_push_access(graph, node, access);
        return;
    }
    if (as_list || check_together(graph, node, &region, b))
        push_tiles(graph, node, &region, access, as_list);
}

/* ---- regions by the order of adding ---- */

/* Launch and host functions get a list of tiles unless it is one tile. */
static bool wants_list(const gantry_graph *g, const gy_node *node, const gantry_region *r)
{
    const gy_buffer *b = r->buffer.id < g->buffers.count ? &g->buffers.at[r->buffer.id] : NULL;
    if (!b || b->tiles[0] == 0 || node->kind == GY_NODE_WORK)
        return false;
    return gy_region_tiles(b, r) != 1;
}

static bool takes_regions(gantry_graph *g, const gy_node *node)
{
    const gantry_kernel *k = node->kernel == GY_NONE ? NULL : g->kernels.at[node->kernel].manifest;
    if (k && !(k->flags & GANTRY_KERNEL_VARIADIC)) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "kernel \"%s\" of node \"%s\" takes no further regions; name its arguments",
                         k->name, node->id);
        return false;
    }
    if (node->kind == GY_NODE_COPY || node->kind == GY_NODE_FILL || node->kind == GY_NODE_COLLECTIVE) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "node \"%s\" is a copy, fill or collective: its regions are given at once",
                         node->id);
        return false;
    }
    return true;
}

static void add_region(gantry_graph *g, gantry_node handle, gantry_region region, gantry_access mode)
{
    gy_node *node = gy_building(g) ? gy_build_node(g, handle) : NULL;
    if (!node || !takes_regions(g, node))
        return;
    /* A number of its own, behind the manifest's; gantry_graph_check counts them through. */
    uint32_t arg = g->build_->next_arg++;
    if (node->kernel != GY_NONE)
        arg += (uint32_t)g->kernels.at[node->kernel].manifest->args;
    gy_build_access(g, node, region, mode, arg, wants_list(g, node, &region));
}

void gantry_node_read(gantry_graph *graph, gantry_node node, gantry_region region)
{
    add_region(graph, node, region, GANTRY_READ);
}

void gantry_node_write(gantry_graph *graph, gantry_node node, gantry_region region)
{
    add_region(graph, node, region, GANTRY_WRITE);
}

void gantry_node_readwrite(gantry_graph *graph, gantry_node node, gantry_region region)
{
    add_region(graph, node, region, GANTRY_READWRITE);
}

void gantry_node_reduce(gantry_graph *graph, gantry_node node, gantry_region region, gantry_access op)
{
    if (gy_building(graph) && (op < GANTRY_SUM || op > GANTRY_PROD)) {
        gy_graph_mistake(graph, GANTRY_E_INVALID, "access %d is no reduction; use GANTRY_SUM, MIN, MAX or PROD",
                         (int)op);
    }
    add_region(graph, node, region, op);
}
