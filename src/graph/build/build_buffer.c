/* SPDX-License-Identifier: Apache-2.0 */
/* Building: buffers, how they are cut and what they hold at first. */
#include "graph/build/build_state.h"
#include "graph/halo.h"

#include "kernel/dtype.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- making ---- */

/* References are written x[i], x{a:b}, clamp(x[i]), x~1: a name must end where they begin. */
static bool is_name(const char *name)
{
    size_t length = gy_name_length(name);
    return length > 0 && name[length] == '\0';
}

/* Rows, bytes a row and bytes in all; false if they do not fit into 63 bits. */
static bool measure(gy_buffer *b)
{
    int64_t row = (int64_t)gantry_dtype_size(b->dtype), bytes;
    for (int i = 1; i < b->rank; i++)
        if (__builtin_mul_overflow(row, b->shape[i], &row))
            return false;
    if (__builtin_mul_overflow(row, b->shape[0], &bytes))
        return false;
    b->rows = b->shape[0];
    b->row_bytes = row;
    b->bytes = (uint64_t)bytes;
    return true;
}

static bool check_shape(gantry_graph *g, const char *name, gantry_dtype dtype, int rank, const int64_t *shape)
{
    if (!name || !is_name(name)) {
        gy_graph_mistake(g, GANTRY_E_GRAPH,
                         "buffer name \"%s\"; a name is not empty, is UTF-8, and has no blanks, control characters, "
                         "quotes or any of "
                         "[]{}()~*:,\\",
                         name ? name : "");
        return false;
    }
    if (!gantry_dtype_name(dtype)) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "buffer \"%s\" has dtype %d; use GANTRY_F16 to GANTRY_F8E5M2", name,
                         (int)dtype);
        return false;
    }
    if (rank < 1 || !shape) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "buffer \"%s\" has rank %d; at least 1 dimension and its shape are needed",
                         name, rank);
        return false;
    }
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0) {
            gy_graph_mistake(g, GANTRY_E_GRAPH, "buffer \"%s\" has shape[%d] = %lld; it must be at least 0", name, i,
                             (long long)shape[i]);
            return false;
        }
    }
    return true;
}

/* Index of a name not used before, or GY_NO_NAME with the mistake noted. */
static uint32_t add_name(gantry_graph *g, const char *name)
{
    bool is_new;
    uint32_t index = gy_names_add(&g->buffer_names, name, &is_new);
    if (index == GY_NO_NAME) {
        gy_build_nomem(g);
    } else if (!is_new) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "there already is a buffer \"%s\"; names are unique", name);
        index = GY_NO_NAME;
    }
    return index;
}

gantry_buffer gantry_graph_buffer(gantry_graph *graph, const char *name, gantry_dtype dtype, int rank,
                                  const int64_t *shape)
{
    gantry_buffer none = { GANTRY_NONE, 0 };
    if (!gy_building(graph) || !check_shape(graph, name, dtype, rank, shape))
        return none;
    int64_t *copy = gy_arena_calloc(&graph->arena, (size_t)rank, sizeof *copy);
    uint32_t origin = copy ? gy_build_origin(graph) : GY_NONE;
    if (origin == GY_NONE) {
        gy_build_nomem(graph);
        return none;
    }
    memcpy(copy, shape, (size_t)rank * sizeof *copy);
    gy_buffer b = {
        .dtype = dtype, .cls = GANTRY_TEMP, .rank = rank, .shape = copy, .rtol = -1, .atol = -1, .origin = origin
    };
    if (!measure(&b)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "buffer \"%s\" has more than 2^63 - 1 bytes; make its shape smaller",
                         name);
        return none;
    }
    uint32_t index = add_name(graph, name);
    if (index == GY_NO_NAME)
        return none;
    b.name = gy_names_at(&graph->buffer_names, index);
    if (!gy_vec_push(&graph->buffers, b)) {
        gy_build_nomem(graph);
        return none;
    }
    return (gantry_buffer){ index, graph->number };
}

gy_buffer *gy_build_buffer(gantry_graph *graph, gantry_buffer buffer)
{
    if (!gy_graph_gave(graph, buffer.graph)) {
        gy_graph_mistake(graph, GANTRY_E_INVALID, GY_OTHER_GRAPH, "buffer", buffer.id, buffer.graph, graph->name,
                         graph->number);
        return NULL;
    }
    if (buffer.id >= graph->buffers.count) {
        gy_graph_mistake(graph, GANTRY_E_INVALID, "there is no buffer %u; the graph has %zu buffers", buffer.id,
                         graph->buffers.count);
        return NULL;
    }
    return &graph->buffers.at[buffer.id];
}

static gy_buffer *open_buffer(gantry_graph *g, gantry_buffer buffer)
{
    return gy_building(g) ? gy_build_buffer(g, buffer) : NULL;
}

void gantry_buffer_set_class(gantry_graph *graph, gantry_buffer buffer, gantry_buffer_class cls)
{
    gy_buffer *b = open_buffer(graph, buffer);
    if (!b)
        return;
    if (cls < GANTRY_INPUT || cls > GANTRY_TEMP) {
        gy_graph_mistake(graph, GANTRY_E_INVALID, "buffer \"%s\" gets class %d; use GANTRY_INPUT to GANTRY_TEMP",
                         b->name, (int)cls);
        return;
    }
    b->cls = cls;
    b->class_given = true;
}

void gantry_buffer_output(gantry_graph *graph, gantry_buffer buffer)
{
    gy_buffer *b = open_buffer(graph, buffer);
    if (b)
        b->output = true;
}

void gantry_buffer_external(gantry_graph *graph, gantry_buffer buffer, const char *memory)
{
    gy_buffer *b = open_buffer(graph, buffer);
    if (!b)
        return;
    if (!memory || !*memory) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH,
                         "buffer \"%s\" is external and no memory is named; give the id of a memory or a device",
                         b->name);
        return;
    }
    if (!gy_build_is_plain(graph, "the memory of an external buffer,", memory))
        return;
    b->external = gy_build_string(graph, memory);
}

void gantry_buffer_tolerance(gantry_graph *graph, gantry_buffer buffer, double rtol, double atol)
{
    gy_buffer *b = open_buffer(graph, buffer);
    if (!b)
        return;
    if (!(rtol >= 0) || !(atol >= 0) || isinf(rtol) || isinf(atol)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH,
                         "the tolerances of \"%s\" are %g and %g; they must be finite and at least 0", b->name, rtol,
                         atol);
        return;
    }
    b->rtol = rtol;
    b->atol = atol;
}

void gantry_buffer_equal_nan(gantry_graph *graph, gantry_buffer buffer)
{
    gy_buffer *b = open_buffer(graph, buffer);
    if (b)
        b->equal_nan = true;
}

/* ---- cutting ---- */

static gy_buffer *buffer_to_cut(gantry_graph *g, gantry_buffer buffer)
{
    gy_buffer *b = open_buffer(g, buffer);
    if (b && (b->parts || b->tiles[0])) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "buffer \"%s\" is cut twice; split it or cut it into tiles, once", b->name);
        return NULL;
    }
    if (b && b->used_) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "buffer \"%s\" is cut after it was used; cut it before its first use",
                         b->name);
        return NULL;
    }
    return b;
}

/* Pieces take memory before there is a node. */
static int64_t most_pieces(const gantry_graph *g)
{
    return gy_graph_limit(g) < INT32_MAX - 1 ? gy_graph_limit(g) : INT32_MAX - 1;
}

static const char *how_to_raise(const gantry_graph *g, int64_t pieces)
{
    return pieces > 0 && most_pieces(g) < INT32_MAX - 1
               ? "; use fewer, or raise the limit (--limits, gantry_graph_limit)"
               : "";
}

static void split(gantry_graph *g, gantry_buffer buffer, int64_t parts, bool automatic)
{
    gy_buffer *b = buffer_to_cut(g, buffer);
    if (!b)
        return;
    if (parts < 1 || parts > most_pieces(g)) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "buffer \"%s\" is split into %lld parts; 1 to %lld are allowed%s", b->name,
                         (long long)parts, (long long)most_pieces(g), how_to_raise(g, parts));
        return;
    }
    int64_t *first = gy_arena_calloc(&g->arena, (size_t)parts + 1, sizeof *first);
    if (!first) {
        gy_build_nomem(g);
        return;
    }
    for (int64_t i = 0; i <= parts; i++)
        first[i] = gy_part_bound(b->rows, parts, i);
    b->parts = parts;
    b->part_first = first;
    b->split_auto = automatic;
}

void gantry_buffer_split(gantry_graph *graph, gantry_buffer buffer, int64_t parts)
{
    split(graph, buffer, parts, false);
}

void gantry_buffer_split_auto(gantry_graph *graph, gantry_buffer buffer, int64_t parts)
{
    split(graph, buffer, parts, true);
}

/* Tiles differ by at most one along each axis, and in whether they have a halo before and after; the order is that of
 * gy_tile_shape. */
static void set_tile_shapes(int64_t *shape, const gy_buffer *b)
{
    int bits = b->halo ? 3 : 1;
    for (int64_t s = 0; s < (int64_t)1 << bits * b->rank; s++)
        for (int k = 0; k < b->rank; k++) {
            int64_t kind = s >> bits * (b->rank - 1 - k);
            *shape = b->shape[k] / b->tiles[k] + (kind >> (bits - 1) & 1);
            if (b->halo)
                *shape += (kind & 2 ? b->halo->before[k] : 0) + (kind & 1 ? b->halo->after[k] : 0);
            shape++;
        }
}

static void set_tile_offsets(int64_t *offset, const gy_buffer *b)
{
    offset[0] = 0;
    for (int64_t t = 0; t < b->rows; t++) {
        const int64_t *shape = gy_tile_shape(b, t);
        int64_t bytes = (int64_t)gantry_dtype_size(b->dtype);
        for (int k = 0; k < b->rank; k++)
            bytes *= shape[k];
        offset[t + 1] = offset[t] + bytes;
    }
}

static bool are_tiles_few(gantry_graph *g, const gy_buffer *b, int axes, const int64_t *tiles)
{
    int64_t all = 1, least = tiles[0];
    bool few = true;
    for (int k = 0; k < axes; k++) {
        least = tiles[k] < least ? tiles[k] : least;
        few = few && tiles[k] >= 1 && all <= most_pieces(g) / tiles[k];
        all = few ? all * tiles[k] : all;
    }
    gy_text text = { 0 };
    for (int k = 0; k < axes && !few; k++)
        gy_text_printf(&text, "%s%lld", k ? " x " : "", (long long)tiles[k]);
    if (!few)
        gy_graph_mistake(g, GANTRY_E_GRAPH, "buffer \"%s\" is cut into %s tiles; 1 to %lld in all are allowed%s",
                         b->name, text.failed ? "too many" : text.at, (long long)most_pieces(g),
                         how_to_raise(g, least));
    gy_text_free(&text);
    return few;
}

static bool has_axes(gantry_graph *g, const gy_buffer *b, int axes)
{
    if (b->rank <= GANTRY_TILE_AXES && axes >= 1 && axes <= b->rank)
        return true;
    gy_graph_mistake(
        g, GANTRY_E_GRAPH,
        "buffer \"%s\" has rank %d and is cut into tiles along %d axes; arrays of rank 1 to %d are, along 1 to "
        "all of their axes",
        b->name, (int)b->rank, axes, GANTRY_TILE_AXES);
    return false;
}

static void set_tiles(gantry_graph *g, gy_buffer *b, int axes, const int64_t *tiles)
{
    int64_t all = 1;
    for (int k = 0; k < axes; k++)
        all *= tiles[k];
    for (int k = 0; k < GANTRY_TILE_AXES; k++)
        b->tiles[k] = k < axes ? tiles[k] : 1;
    b->rows = all;
    b->row_bytes = 0;
    gy_build_measure_tiles(g, b);
}

bool gy_build_measure_tiles(gantry_graph *graph, gy_buffer *buffer)
{
    int bits = buffer->halo ? 3 : 1;
    size_t shapes = (size_t)1 << bits * buffer->rank;
    int64_t *offset = gy_arena_calloc(&graph->arena, (size_t)buffer->rows + 1, sizeof *offset);
    int64_t *shape = gy_arena_calloc(&graph->arena, (size_t)buffer->rank * shapes, sizeof *shape);
    if (!offset || !shape) {
        gy_build_nomem(graph);
        return false;
    }
    buffer->tile_shape = shape;
    set_tile_shapes(shape, buffer);
    set_tile_offsets(offset, buffer);
    buffer->tile_offset = offset;
    buffer->bytes = (uint64_t)offset[buffer->rows];
    return true;
}

void gantry_buffer_tiles_by_axis(gantry_graph *graph, gantry_buffer buffer, int axes, const int64_t *tiles)
{
    gy_buffer *b = buffer_to_cut(graph, buffer);
    if (b && !tiles)
        gy_graph_mistake(graph, GANTRY_E_INVALID, "buffer \"%s\" is cut into tiles and no counts are given", b->name);
    else if (b && has_axes(graph, b, axes) && are_tiles_few(graph, b, axes, tiles))
        set_tiles(graph, b, axes, tiles);
}

void gantry_buffer_tiles(gantry_graph *graph, gantry_buffer buffer, int64_t rows, int64_t columns)
{
    (gantry_buffer_tiles_by_axis)(graph, buffer, 2, (int64_t[]){ rows, columns });
}

/* ---- init ---- */

static bool refuse_value(gantry_graph *g, const char *what, gy_constant value, const char *type)
{
    char seen[GY_CONSTANT_TEXT];
    gy_graph_mistake(g, GANTRY_E_GRAPH, "%s is %s, which no %s can be; use a whole number in its range", what,
                     gy_constant_text(seen, value), type);
    return false;
}

/* Random integers are drawn in doubles: whole bounds, none beyond 2^53, and every number from the lower one to the one
 * before the upper is in the dtype. */
static bool is_uniform_valid(gantry_graph *g, const gy_init *init, gantry_dtype dtype, const char *what)
{
    double low = init->a.real, high = init->b.real;
    char seen[2][GY_CONSTANT_TEXT], allowed[GY_CONSTANT_TEXT];
    if (!isfinite(low) || !isfinite(high) || low > high) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "%s is random from %g to %g; both must be finite, the lower one first",
                         what, low, high);
        return false;
    }
    gy_constant last = { .real = high > low ? high - 1 : high };
    bool exact = fabs(low) <= 0x1p53 && fabs(high) <= 0x1p53;
    if (gy_dtype_is_float(dtype) ||
        (exact && gy_constant_fits(init->a, dtype, false) && gy_constant_fits(last, dtype, false)))
        return true;
    gy_graph_mistake(g, GANTRY_E_GRAPH,
                     "%s is random from %s to %s in %s; both must be whole and not beyond 2^53, and what is drawn "
                     "%s",
                     what, gy_constant_text(seen[0], init->a), gy_constant_text(seen[1], init->b),
                     gantry_dtype_name(dtype), gy_constant_range(allowed, dtype, false));
    return false;
}

static bool is_iota_valid(gantry_graph *g, const gy_init *init, gantry_dtype dtype, const char *what)
{
    char seen[2][GY_CONSTANT_TEXT], allowed[GY_CONSTANT_TEXT];
    if (!isfinite(init->a.real) || !isfinite(init->b.real)) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "%s counts from %g in steps of %g; both must be finite", what, init->a.real,
                         init->b.real);
        return false;
    }
    if (gy_dtype_is_float(dtype) || (gy_constant_fits(init->a, dtype, false) && gy_constant_is_whole(init->b)))
        return true;
    gy_graph_mistake(g, GANTRY_E_GRAPH,
                     "%s counts from %s in steps of %s in %s; begin with %s, and step by a whole number of 64 bits",
                     what, gy_constant_text(seen[0], init->a), gy_constant_text(seen[1], init->b),
                     gantry_dtype_name(dtype), gy_constant_range(allowed, dtype, false));
    return false;
}

bool gy_init_is_valid(gantry_graph *graph, const gy_init *init, gantry_dtype dtype, const char *what)
{
    const char *type = gantry_dtype_name(dtype);
    switch (init->kind) {
    case GY_INIT_VALUE:
        return gy_constant_fits(init->a, dtype, false) || refuse_value(graph, what, init->a, type);
    case GY_INIT_UNIFORM:
        return is_uniform_valid(graph, init, dtype, what);
    case GY_INIT_NORMAL:
        if (!gy_dtype_is_float(dtype) || !isfinite(init->a.real) || !(init->b.real >= 0) || isinf(init->b.real)) {
            gy_graph_mistake(graph, GANTRY_E_GRAPH,
                             "%s is normal with mean %g and deviation %g in %s; a floating dtype, a finite mean and a "
                             "deviation of at least 0 are needed",
                             what, init->a.real, init->b.real, type);
            return false;
        }
        return true;
    case GY_INIT_IOTA:
        return is_iota_valid(graph, init, dtype, what);
    case GY_INIT_NONE:
    case GY_INIT_SPD:
    case GY_INIT_NPY:
    case GY_INIT_RAW:
        break;
    }
    gy_graph_mistake(graph, GANTRY_E_GRAPH, "%s can be a value, random, normal or iota only", what);
    return false;
}

static bool is_buffer_init_valid(gantry_graph *g, const gy_init *init, const gy_buffer *b)
{
    char what[96];
    switch (init->kind) {
    case GY_INIT_SPD:
        if (b->rank != 2 || b->shape[0] != b->shape[1] || !gy_dtype_is_float(b->dtype)) {
            gy_graph_mistake(
                g, GANTRY_E_GRAPH,
                "buffer \"%s\" cannot be symmetric positive definite; that takes a square array of rank 2 and a "
                "floating dtype",
                b->name);
            return false;
        }
        return true;
    case GY_INIT_NPY:
    case GY_INIT_RAW:
        if (!init->path || !*init->path) {
            gy_graph_mistake(g, GANTRY_E_GRAPH, "the init of \"%s\" names no file", b->name);
            return false;
        }
        return true;
    default:
        snprintf(what, sizeof what, "the init of \"%.70s\"", b->name);
        return gy_init_is_valid(g, init, b->dtype, what);
    }
}

void gy_buffer_set_init(gantry_graph *graph, gantry_buffer buffer, const gy_init *init)
{
    gy_buffer *b = open_buffer(graph, buffer);
    if (!b || !is_buffer_init_valid(graph, init, b))
        return;
    if (b->init.kind != GY_INIT_NONE) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "buffer \"%s\" has two inits; one is allowed", b->name);
        return;
    }
    b->init = *init;
    b->init.path = init->path ? gy_build_string(graph, init->path) : NULL;
    b->init.folder = init->folder ? gy_build_string(graph, init->folder) : NULL;
    if (!b->class_given)
        b->cls = GANTRY_INPUT;
}

void gantry_buffer_init_value(gantry_graph *graph, gantry_buffer buffer, double value)
{
    gy_buffer_set_init(graph, buffer, &(gy_init){ .kind = GY_INIT_VALUE, .a = { .real = value } });
}

void gantry_buffer_init_uniform(gantry_graph *graph, gantry_buffer buffer, uint64_t seed, double low, double high)
{
    gy_init init = { .kind = GY_INIT_UNIFORM, .seed = seed, .a = { .real = low }, .b = { .real = high } };
    gy_buffer_set_init(graph, buffer, &init);
}

void gantry_buffer_init_normal(gantry_graph *graph, gantry_buffer buffer, uint64_t seed, double mean, double deviation)
{
    gy_init init = { .kind = GY_INIT_NORMAL, .seed = seed, .a = { .real = mean }, .b = { .real = deviation } };
    gy_buffer_set_init(graph, buffer, &init);
}

void gantry_buffer_init_iota(gantry_graph *graph, gantry_buffer buffer)
{
    gy_buffer_set_init(graph, buffer, &(gy_init){ .kind = GY_INIT_IOTA, .b = { .real = 1 } });
}

void gantry_buffer_init_spd(gantry_graph *graph, gantry_buffer buffer, uint64_t seed)
{
    gy_buffer_set_init(graph, buffer, &(gy_init){ .kind = GY_INIT_SPD, .seed = seed });
}

void gantry_buffer_init_npy(gantry_graph *graph, gantry_buffer buffer, const char *path)
{
    gy_buffer_set_init(graph, buffer, &(gy_init){ .kind = GY_INIT_NPY, .path = path });
}

void gantry_buffer_init_raw(gantry_graph *graph, gantry_buffer buffer, const char *path)
{
    gy_buffer_set_init(graph, buffer, &(gy_init){ .kind = GY_INIT_RAW, .path = path });
}

gantry_buffer gy_build_beside(gantry_graph *graph, uint32_t of, const char *suffix, gantry_dtype dtype, int rank,
                              const int64_t *shape)
{
    gy_text name = { 0 };
    gy_text_printf(&name, "%s.%s", graph->buffers.at[of].name, suffix);
    while (!name.failed && gy_names_find(&graph->buffer_names, name.at) != GY_NO_NAME)
        gy_text_add(&name, "_");
    if (name.failed)
        gy_build_nomem(graph);
    gantry_buffer made = (gantry_graph_buffer)(graph, name.failed ? "" : name.at, dtype, rank, shape);
    gy_text_free(&name);
    return made;
}
