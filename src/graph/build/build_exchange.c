/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that bring tiles with a halo together. Before a node that reads A[i][j]~1 stand
 * - for each tile around, and this one where others want of it: "pack", which writes what of the tile others get into
 * the edges;
 * - "unpack", which writes the tile and the pieces for it into the buffer of tiles with a halo.
 * They are kernels like others, so all that knows kernels knows halos: what goes from device to device are the pieces.
 * What nothing has written since is packed or unpacked once: within an iteration of a loop, as far as the order of
 * adding shows it.
 */
#include "base/error.h"
#include "base/memory.h"
#include "graph/build/build_state.h"
#include "graph/halo.h"
#include "graph/nest.h"
#include <string.h>

/* Of a buffer of tiles with a halo. */
typedef struct state {
    uint8_t *packed, *unpacked; /* by tile; NULL where the buffer is none, or has no source */
} state;

typedef struct exchange {
    gantry_graph *g;
    uint32_t old, reader;   /* nodes before; the one that is looked at */
    gy_placed_nodes placed; /* new nodes, which are behind those */
    uint8_t *border;        /* by old number: a loop begins or ends just before the node */
    uint8_t *carried;       /* by buffer */
    state *state;           /* by buffer */
    uint32_t pack, unpack;  /* kernels */
    bool ok;
} exchange;

static void forget(exchange *x, uint32_t buffer)
{
    state *s = &x->state[buffer];
    size_t tiles = (size_t)x->g->buffers.at[buffer].rows;
    if (s->packed) {
        memset(s->packed, 0, tiles);
        memset(s->unpacked, 0, tiles);
    }
}

/* ---- what is written ---- */

/* A tile is written: what was packed of it is old, and what was unpacked with some of it. */
static void forget_tile(exchange *x, uint32_t buffer, int64_t tile)
{
    const gy_buffer *b = &x->g->buffers.at[buffer];
    state *s = &x->state[buffer];
    gy_halo_piece piece[GY_HALO_PIECES];
    s->packed[tile] = s->unpacked[tile] = 0;
    for (int64_t t = 0; t < b->rows; t++) {
        int count = s->unpacked[t] ? gy_halo_pieces(b, t, piece) : 0;
        for (int i = 0; i < count; i++)
            if (piece[i].tile == tile)
                s->unpacked[t] = 0;
    }
}

/* Both names are a pair of a loop around the node, so that they never mean one value there. */
static bool are_a_pair(const gantry_graph *g, uint32_t node, uint32_t a, uint32_t b)
{
    for (size_t i = 0; i < gy_loop_count(g); i++) {
        const gy_loop *loop = gy_loop_at(g, i);
        for (size_t k = 0; k < loop->carry.count && loop->first_node <= node && node < loop->last_node; k++) {
            const gy_carry *pair = &loop->carry.at[k];
            if ((pair->prev == a && pair->next == b) || (pair->prev == b && pair->next == a))
                return true;
        }
    }
    return false;
}

static void note_write(exchange *x, uint32_t node, const gy_access *a)
{
    const gantry_graph *g = x->g;
    for (uint32_t i = 0; i < g->buffers.count; i++) {
        const gy_halo *halo = x->state[i].packed ? g->buffers.at[i].halo : NULL;
        if (!halo)
            continue;
        if (halo->source == a->buffer)
            for (int64_t t = a->first; t < a->last; t++)
                forget_tile(x, i, t);
        else if (x->carried[halo->source] && x->carried[a->buffer] && !are_a_pair(g, node, halo->source, a->buffer))
            forget(x, i);
    }
}

/* ---- adding nodes ---- */

/* "WHAT.u.halo1[0,1]", numbered if there is such a node. */
static const char *add_id(exchange *x, const char *what, uint32_t buffer, int64_t tile)
{
    gantry_graph *g = x->g;
    const gy_buffer *b = &g->buffers.at[buffer];
    int64_t index[GANTRY_TILE_AXES];
    gy_text id = { 0 };
    uint32_t name = GY_NO_NAME;
    gy_tile_index(b, tile, index);
    for (uint64_t i = 0;; i++) {
        bool is_new = false;
        id.length = 0;
        gy_text_printf(&id, "%s.%s[", what, b->name);
        for (int k = 0; k < b->rank; k++)
            gy_text_printf(&id, "%s%lld", k ? "," : "", (long long)index[k]);
        gy_text_add(&id, "]");
        if (i)
            gy_text_printf(&id, "#%llu", (unsigned long long)i);
        name = id.failed ? GY_NO_NAME : gy_names_add(&g->node_names, id.at, &is_new);
        if (name == GY_NO_NAME || is_new)
            break;
    }
    gy_text_free(&id);
    x->ok = x->ok && name != GY_NO_NAME;
    return name == GY_NO_NAME ? "" : gy_names_at(&g->node_names, name);
}

/* The node stands right before the one that is looked at. */
static void add_new(exchange *x, const gy_node *n)
{
    gy_placed placed = { x->reader, GY_NONE, GY_AHEAD, (uint32_t)x->g->nodes.count };
    x->ok = x->ok && gy_vec_push(&x->g->nodes, *n) && gy_vec_push(&x->placed, placed);
}

/* A node in the loops of `reader`, without accesses yet. */
static gy_node new_node(exchange *x, const gy_node *reader, const char *what, uint32_t buffer, int64_t tile,
                        uint32_t kernel)
{
    return (gy_node){ .id = add_id(x, what, buffer, tile),
                      .kind = GY_NODE_KERNEL,
                      .kernel = kernel,
                      .function = GY_NONE,
                      .loop = reader->loop,
                      .inner = reader->inner,
                      .access = (uint32_t)x->g->access.count,
                      .scalar = (uint32_t)x->g->scalar.count,
                      .after = (uint32_t)x->g->after.count,
                      .extra = GY_NONE,
                      .origin = reader->origin };
}

static void add_access(exchange *x, gy_node *n, uint32_t buffer, uint32_t arg, int64_t first, int64_t last,
                       gantry_access mode)
{
    bool tiled = x->g->buffers.at[buffer].tiles[0] != 0;
    gy_access a = {
        .buffer = buffer, .arg = arg, .first = first, .last = last, .mode = (uint8_t)mode, .part = -1, .part_last = -1
    };
    if (tiled) {
        a.part = (int32_t)first;
        a.part_last = (int32_t)last;
    }
    x->ok = x->ok && x->g->access.count < UINT32_MAX - 1 && gy_vec_push(&x->g->access, a);
    n->accesses += x->ok;
}

/* The sides of the halo as arguments: a tile gives at its end what the next one has before itself. They are before0,
 * after0, before1, ...: those that are not 0. */
static void add_widths(exchange *x, gy_node *n, const gy_buffer *b)
{
    for (int k = 0; k < b->rank; k++)
        for (int side = 0; side < 2; side++) {
            int64_t width = side ? b->halo->after[k] : b->halo->before[k];
            gy_scalar s = { .arg = 1 + 2 * (uint32_t)k + (uint32_t)side, .number = { .real = (double)width } };
            if (width == 0)
                continue;
            x->ok = x->ok && gy_vec_push(&x->g->scalar, s);
            n->scalars += x->ok;
        }
}

/* The piece that the tile in direction `way` gets from this one; what it comes from is the opposite direction there. */
static bool piece_for(const gy_buffer *b, int64_t tile, int64_t other, gy_halo_piece *out)
{
    gy_halo_piece piece[GY_HALO_PIECES];
    int count = gy_halo_pieces(b, other, piece);
    for (int i = 0; i < count; i++)
        if (piece[i].tile == tile) {
            *out = piece[i];
            out->first += b->halo->edge[other];
            return true;
        }
    return false;
}

/* The tile in direction `way`, or -1. */
static int64_t tile_towards(const gy_buffer *b, const int64_t *index, int way)
{
    int64_t to[GANTRY_TILE_AXES] = { 0 };
    for (int k = b->rank - 1; k >= 0; k--, way /= 3) {
        to[k] = index[k] + way % 3 - 1;
        if (to[k] < 0 || to[k] >= b->tiles[k])
            return -1;
    }
    return gy_tile_number(b, to);
}

static void add_pack(exchange *x, const gy_node *reader, uint32_t buffer, int64_t tile)
{
    const gy_buffer *b = &x->g->buffers.at[buffer];
    int64_t index[GANTRY_TILE_AXES];
    int ways = 1;
    uint32_t arg = (uint32_t)x->g->kernels.at[x->pack].manifest->args;
    if (x->state[buffer].packed[tile])
        return;
    x->state[buffer].packed[tile] = 1;
    gy_node n = new_node(x, reader, "pack", buffer, tile, x->pack);
    gy_tile_index(b, tile, index);
    add_access(x, &n, b->halo->source, 0, tile, tile + 1, GANTRY_READ);
    add_widths(x, &n, b);
    for (int k = 0; k < b->rank; k++)
        ways *= 3;
    for (int way = 0; way < ways; way++) {
        gy_halo_piece piece;
        int64_t to = tile_towards(b, index, way);
        if (to >= 0 && to != tile && piece_for(b, tile, to, &piece))
            add_access(x, &n, b->halo->edges, arg++, piece.first, piece.first + piece.count, GANTRY_WRITE);
    }
    n.cost_given = true; /* what it moves, which is not all of the tile */
    for (uint32_t i = 1; i < n.accesses && x->ok; i++)
        n.bytes += 2 * (double)gy_access_bytes(x->g, &x->g->access.at[n.access + i]);
    add_new(x, &n);
}

/* It goes where the reader is wanted. */
static void place_like(exchange *x, gy_node *n, const gy_node *reader)
{
    const gy_node_extra *from = reader->extra == GY_NONE ? NULL : &x->g->extra.at[reader->extra];
    if (!from || (!from->on && !from->on_expr))
        return;
    gy_node_extra extra = { .share = 1, .on = from->on, .on_expr = from->on_expr };
    n->extra = (uint32_t)x->g->extra.count;
    x->ok = x->ok && gy_vec_push(&x->g->extra, extra);
}

static void add_unpack(exchange *x, const gy_node *reader, uint32_t buffer, int64_t tile)
{
    const gy_buffer *b = &x->g->buffers.at[buffer];
    gy_halo_piece piece[GY_HALO_PIECES];
    if (x->state[buffer].unpacked[tile])
        return;
    x->state[buffer].unpacked[tile] = 1;
    int count = gy_halo_pieces(b, tile, piece);
    for (int i = 0; i < count; i++)
        add_pack(x, reader, buffer, piece[i].tile);
    gy_node n = new_node(x, reader, "unpack", buffer, tile, x->unpack);
    add_access(x, &n, b->halo->source, 0, tile, tile + 1, GANTRY_READ);
    add_access(x, &n, b->halo->edges, 1, b->halo->edge[tile], b->halo->edge[tile + 1], GANTRY_READ);
    add_access(x, &n, buffer, 2, tile, tile + 1, GANTRY_WRITE);
    place_like(x, &n, reader);
    add_new(x, &n);
}

/* ---- the nodes of the graph ---- */

static void add_node(exchange *x, uint32_t old)
{
    gantry_graph *g = x->g;
    gy_node n = g->nodes.at[old];
    x->reader = old;
    for (uint32_t i = 0; i < g->buffers.count && x->border[old]; i++)
        forget(x, i);
    for (uint32_t i = 0; i < n.accesses && x->ok; i++) {
        gy_access a = g->access.at[n.access + i];
        for (int64_t t = a.first; t < a.last && a.mode == GANTRY_READ && x->state[a.buffer].packed; t++)
            add_unpack(x, &n, a.buffer, t);
    }
    for (uint32_t i = 0; i < n.accesses; i++)
        if (g->access.at[n.access + i].mode != GANTRY_READ)
            note_write(x, old, &g->access.at[n.access + i]);
}

static bool prepare(exchange *x)
{
    gantry_graph *g = x->g;
    x->old = (uint32_t)g->nodes.count;
    x->border = gy_calloc((size_t)x->old + 1, 1);
    x->carried = gy_calloc(g->buffers.count, 1);
    x->state = gy_calloc(g->buffers.count, sizeof *x->state);
    x->ok = x->border && x->carried && x->state;
    for (size_t i = 0; i < g->buffers.count && x->ok; i++) {
        const gy_buffer *b = &g->buffers.at[i];
        if (!b->halo || b->halo->source == GY_NONE)
            continue;
        x->state[i].packed = gy_arena_calloc(&g->arena, (size_t)b->rows, 1);
        x->state[i].unpacked = gy_arena_calloc(&g->arena, (size_t)b->rows, 1);
        x->ok = x->state[i].packed && x->state[i].unpacked;
    }
    for (size_t i = 0; i < gy_loop_count(g) && x->ok; i++) {
        const gy_loop *loop = gy_loop_at(g, i);
        x->border[loop->first_node] = x->border[loop->last_node] = 1;
        for (size_t k = 0; k < loop->carry.count; k++)
            x->carried[loop->carry.at[k].prev] = x->carried[loop->carry.at[k].next] = 1;
    }
    return x->ok;
}

/* A kernel of the library, which no kernel of the graph's own may hide. */
static uint32_t library_kernel(gantry_graph *g, const char *name)
{
    uint32_t kernel = gy_build_kernel(g, name);
    if (kernel == GY_NONE || g->kernels.at[kernel].manifest == gantry_kernel_find(name))
        return kernel;
    gy_graph_mistake(
        g, GANTRY_E_GRAPH,
        "the graph has a kernel of its own called \"%s\" and names tiles with a halo, which need the library's; give "
        "it another name",
        name);
    return GY_NONE;
}

static gantry_status check_limit(const exchange *x, gantry_error *err)
{
    long long limit = gy_graph_limit(x->g);
    if ((long long)x->g->nodes.count <= limit || x->g->nodes.count == x->old)
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_GRAPH, NULL,
                   "with the nodes that bring halos of tiles together the graph has more than %lld nodes; use fewer "
                   "tiles, or raise "
                   "the limit (--limits, gantry_graph_limit)",
                   limit);
}

static gantry_status exchange_all(exchange *x, gantry_error *err)
{
    gantry_graph *g = x->g;
    x->pack = library_kernel(g, "halo_pack");
    x->unpack = library_kernel(g, "halo_unpack");
    if (x->pack == GY_NONE || x->unpack == GY_NONE) {
        if (err)
            *err = g->error;
        return g->error.status;
    }
    for (uint32_t i = 0; i < x->old && x->ok && !check_limit(x, NULL); i++)
        add_node(x, i);
    GY_TRY(check_limit(x, err));
    return x->ok && gy_build_order(g, x->old, &x->placed) ? GANTRY_OK : gy_fail_nomem(err);
}

gantry_status gy_build_exchanges(gantry_graph *graph, gantry_error *err)
{
    exchange x = { .g = graph };
    gantry_status status = prepare(&x) ? exchange_all(&x, err) : gy_fail_nomem(err);
    gy_vec_free(&x.placed);
    gy_free(x.border);
    gy_free(x.carried);
    gy_free(x.state);
    return status;
}
