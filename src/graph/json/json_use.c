/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `use`: the nodes of another graph file, with ids and buffers of their own. A used file is read by the same reader as
 * the graph itself, into the same graph, with a scope: what its names stand for. It sees nothing of the file around it
 * but what `with` gives.
 */
#include "graph/json/json_read.h"

#include "base/error.h"
#include "base/file.h"
#include "graph/build/build_state.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DEPTH = 16, MOST_BYTES = 1 << 26 };

/* ---- files ---- */

static gantry_status fail_use(gy_reader *r, const gy_json_at *at, const gantry_error *why)
{
    gantry_error inner = *why;
    const char *remedy = inner.native == ENOENT ? "; name a graph that is there, or write this one first" : "";
    return inner.status == GANTRY_E_NOMEM ? gy_read_nomem(r) : gy_read_fail(r, at, "%s%s", inner.text, remedy);
}

static gantry_status read_file(gy_reader *r, const gy_json_at *at, const char *path, gy_used_file *file)
{
    gantry_error why;
    char *folder = gy_path_folder(path);
    *file = (gy_used_file){ .path = path,
                            .name = path + (strncmp(path, "./", 2) == 0 ? 2 : 0),
                            .folder = folder ? gy_arena_strdup(&r->graph->arena, folder) : NULL };
    gy_free(folder);
    if (!file->folder)
        return gy_read_nomem(r);
    if (gy_file_read_in(&file->text, &file->length, path, r->folder, MOST_BYTES, &why))
        return fail_use(r, at, &why);
    gantry_status status =
        gy_json_parse_plain(&file->root, file->text, file->length, file->name, "gantry", GANTRY_E_GRAPH, &r->error);
    if (!status && !json_object_get(file->root, "gantry"))
        status = gy_read_fail(r, at, "names %s, which is no graph: it has no \"gantry\"", file->name);
    return status;
}

gantry_status gy_read_used_file(gy_reader *r, const gy_json_at *at, const char *path, gy_used_file **out)
{
    gy_build *build = r->graph->build_;
    for (size_t i = 0; i < build->used_files.count; i++) {
        *out = build->used_files.at[i];
        if (strcmp((*out)->path, path) == 0)
            return GANTRY_OK;
    }
    gy_used_file *made = gy_arena_calloc(&r->graph->arena, 1, sizeof *made);
    if (!made || !gy_vec_push(&build->used_files, made))
        return gy_read_nomem(r);
    *out = made;
    return read_file(r, at, path, made);
}

/* How many uses are around what the reader reads. */
static uint32_t depth_of(const gy_reader *r)
{
    uint32_t depth = 0;
    for (const gy_scope *s = r->scope; s; s = s->outer->scope)
        depth++;
    return depth;
}

/* A file that uses itself would never end. */
static gantry_status check_circle(gy_reader *r, const gy_json_at *at, const gy_used_file *file)
{
    int depth = (int)depth_of(r);
    for (const gy_scope *s = r->scope; s; s = s->outer->scope)
        if (strcmp(s->file->path, file->path) == 0)
            return gy_read_fail(r, at, "\"%s\" uses itself: nodes cannot be made without end",
                                json_string_value(at->value));
    if (r->graph->source && strcmp(r->graph->source, file->name) == 0)
        return gy_read_fail(r, at, "\"%s\" is this graph itself: nodes cannot be made without end",
                            json_string_value(at->value));
    if (depth >= MOST_DEPTH)
        return gy_read_fail(r, at, "is the %dth graph within another; %d are allowed", depth + 1, MOST_DEPTH);
    return GANTRY_OK;
}

/* ---- with ---- */

const gy_meaning *gy_read_meaning(const gy_reader *r, const char *name, size_t length)
{
    for (size_t i = 0; r->scope && i < r->scope->meaning.count; i++) {
        const gy_meaning *b = &r->scope->meaning.at[i];
        if (strlen(b->name) == length && memcmp(b->name, name, length) == 0)
            return b;
    }
    return NULL;
}

gantry_status gy_read_stands_for(gy_reader *r, const gy_json_at *at, gy_meaning *out)
{
    gy_access resolved;
    bool tiles = out->region.kind == GANTRY_TILES || out->region.kind == GANTRY_TILES_BY_AXIS;
    if (tiles || out->region.before || out->region.after) {
        return gy_read_fail(r, at, "gives %s for buffer \"%s\": give a whole buffer, parts or rows",
                            tiles ? "tiles" : "a halo", at->key);
    }
    bool built = gy_region_resolve(r->graph, &out->region, &resolved);
    out->rows = built ? resolved.last - resolved.first : 0;
    return gy_read_built(r, at);
}

static gantry_status bind_region(gy_reader *r, const gy_json_at *at, gy_meaning *out)
{
    if (!json_is_string(at->value))
        return gy_read_kind(r, at, "the name of a buffer, or parts or rows such as \"x[i]\"");
    GY_TRY(gy_read_region(r, at, &out->region));
    return gy_read_stands_for(r, at, out);
}

static gantry_status bind(gy_reader *r, const gy_json_at *at, const gy_used_file *file, gy_meaning *out)
{
    const json_t *params = json_object_get(file->root, "params"), *buffers = json_object_get(file->root, "buffers");
    bool is_param = json_object_get(params, at->key), is_buffer = json_object_get(buffers, at->key);
    *out = (gy_meaning){ .name = at->key, .is_number = is_param };
    if (is_param && is_buffer)
        return gy_read_fail(r, at, "\"%s\" is a param and a buffer of %s: rename one there", at->key, file->name);
    if (is_param)
        return gy_read_param_value(r, at, &out->number);
    if (is_buffer)
        return bind_region(r, at, out);
    gy_near near = { 0 };
    for (void *i = json_object_iter(gy_read_open(params)); i; i = json_object_iter_next(gy_read_open(params), i))
        gy_near_offer(&near, at->key, json_object_iter_key(i));
    for (void *i = json_object_iter(gy_read_open(buffers)); i; i = json_object_iter_next(gy_read_open(buffers), i))
        gy_near_offer(&near, at->key, json_object_iter_key(i));
    return near.best ? gy_read_fail(r, at, "%s has no param or buffer \"%s\" (did you mean \"%s\"?)", file->name,
                                    at->key, near.best)
                     : gy_read_fail(r, at, "%s has no param or buffer \"%s\"", file->name, at->key);
}

static gantry_status read_with(gy_reader *r, const gy_json_at *at, const gy_used_file *file, gy_scope *scope)
{
    if (!at->value)
        return GANTRY_OK;
    if (!json_is_object(at->value))
        return gy_read_kind(r, at, "an object such as {\"x\": \"h[i]\", \"width\": 64}");
    json_t *object = gy_read_open(at->value);
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        gy_meaning made;
        gy_json_at member = gy_read_at(at, json_object_iter_key(i), json_object_iter_value(i));
        GY_TRY(bind(r, &member, file, &made));
        if (!gy_vec_push(&scope->meaning, made))
            return gy_read_nomem(r);
    }
    return GANTRY_OK;
}

/* ---- names ---- */

/* "layer[3,0]" becomes "layer.3.0.": brackets have a meaning in references. */
static char *buffer_prefix(gy_reader *r, const char *id)
{
    char *prefix = gy_arena_alloc(&r->graph->arena, strlen(id) + 2), *to = prefix;
    if (!prefix)
        return NULL;
    for (const char *c = id; *c; c++)
        if (*c != ']')
            *to++ = *c == '[' || *c == ',' ? '.' : *c;
    *to++ = '.';
    *to = '\0';
    return prefix;
}

static gantry_status add_span(gy_reader *r, const char *id, uint32_t first)
{
    gy_used_span span = { first, (uint32_t)r->graph->nodes.count, GY_NONE };
    bool isnew = false;
    uint32_t name = gy_names_add(&r->used, id, &isnew), index = (uint32_t)r->use_span.count;
    gy_id_family alone = { index, index };
    if (name == GY_NO_NAME || (isnew && !gy_vec_push(&r->use_of, alone)) || !gy_vec_push(&r->use_span, span))
        return gy_read_nomem(r);
    if (!isnew) {
        r->use_span.at[r->use_of.at[name].last].next = index;
        r->use_of.at[name].last = index;
    }
    return GANTRY_OK;
}

/* ---- the nodes ---- */

/* Both places: that in the used file, which the error has, and where it is used. */
static gantry_status fail_inside(gy_reader *r, const gy_json_at *at)
{
    gantry_error inside = r->error;
    if (inside.status == GANTRY_E_NOMEM)
        return inside.status;
    gy_read_fail(r, at, "x");
    size_t length = strlen(inside.text);
    gy_used_place(inside.text + length, sizeof inside.text - length, r->id.at, r->name, r->error.line);
    r->error = inside;
    return inside.status;
}

static gantry_status read_inside(gy_reader *r, gy_used_file *file, const gy_scope *scope,
                                 const gantry_load_options *options)
{
    gy_reader inner = { .graph = r->graph,
                        .text = file->text,
                        .name = file->name,
                        .folder = file->folder,
                        .length = file->length,
                        .options = options,
                        .scope = scope,
                        .when = r->when,
                        .turns = r->turns,
                        .references = r->references,
                        .ties = r->ties };
    gy_json_at root = { NULL, NULL, 0, file->root };
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < r->loop.count && !status; i++)
        status = gy_vec_push(&inner.loop, r->loop.at[i]) ? GANTRY_OK : gy_read_nomem(&inner);
    status = status ? status : gy_read_used(&inner, &root, !file->has_kernels);
    file->has_kernels = true;
    r->turns = inner.turns;
    r->references = inner.references;
    r->ties = inner.ties;
    if (status)
        r->error = inner.error;
    gy_read_free(&inner);
    return status;
}

gantry_status gy_read_use_of(gy_reader *r, gy_used_file *file, gy_scope *scope, const gantry_load_options *options)
{
    uint32_t first = (uint32_t)r->graph->nodes.count;
    scope->outer = r;
    scope->file = file;
    scope->prefix = gy_arena_printf(&r->graph->arena, "%s.", scope->use->id);
    scope->buffer_prefix = buffer_prefix(r, scope->use->id);
    if (!scope->prefix || !scope->buffer_prefix)
        return gy_read_nomem(r);
    GY_TRY(read_inside(r, file, scope, options));
    return gy_graph_note_use(r->graph, first, depth_of(r)) ? GANTRY_OK : gy_read_nomem(r);
}

/* The place at which the file is used, for what is found when all is read; NULL: out of memory. */
static const gy_used_at *note_use(gy_reader *r, const gy_json_at *at, const gy_used_file *file, const char *id)
{
    gy_used_at *use = gy_arena_calloc(&r->graph->arena, 1, sizeof *use);
    gy_read_origin(r, at);
    if (use) {
        *use = (gy_used_at){ .name = file->name,
                             .path = file->path,
                             .id = id,
                             .pointer = gy_arena_strdup(&r->graph->arena, r->origin),
                             .outer = r->scope ? r->scope->use : NULL };
    }
    return use && use->pointer ? use : NULL;
}

/* `r->id` is the id of the use. */
static gantry_status use_file(gy_reader *r, const gy_json_at *at, const json_t *const *value)
{
    gy_used_file *file = NULL;
    gy_scope scope = { .outer = r };
    const char *path = NULL;
    gantry_load_options none = GANTRY_LOAD_OPTIONS_INIT;
    none.devices = r->options->devices;
    uint32_t first = (uint32_t)r->graph->nodes.count;
    gy_json_at name = gy_read_at(at, "use", value[GY_KEY_USE]), with = gy_read_at(at, "with", value[GY_KEY_WITH]);
    const char *id = gy_arena_strdup(&r->graph->arena, r->id.at), *written = json_string_value(value[GY_KEY_ID]);
    GY_TRY(gy_read_path(r, &name, &path));
    GY_TRY(gy_read_used_file(r, &name, path, &file));
    GY_TRY(check_circle(r, &name, file));
    scope.use = id ? note_use(r, at, file, id) : NULL;
    if (!scope.use)
        return gy_read_nomem(r);
    gantry_status status = read_with(r, &with, file, &scope);
    if (!status && gy_read_use_of(r, file, &scope, &none))
        status = fail_inside(r, at);
    gy_vec_free(&scope.meaning);
    status = status ? status : add_span(r, id, first);
    return status || strcmp(id, written) == 0 ? status : add_span(r, written, first);
}

gantry_status gy_read_use(gy_reader *r, const gy_json_at *at, const json_t *const *value)
{
    static const char *const allowed[] = { "use", "id", "with", "for", "if", "when" };
    bool varied = false;
    gy_json_at id = gy_read_at(at, "id", value[GY_KEY_ID]);
    GY_TRY(gy_read_keys(r, at, allowed, COUNT(allowed)));
    GY_TRY(gy_read_id(r, &id, &varied));
    if (gy_names_find(&r->used, r->id.at) != GY_NO_NAME) {
        return gy_read_fail(r, &id, "the id \"%s\" is that of an earlier use: ids are unique%s", r->id.at,
                            r->index.count > 0 ? ", so write the index into it: \"name[i]\"" : "");
    }
    return use_file(r, at, value);
}

/* ---- buffers that are bound ---- */

static gantry_status fail_bound(gy_reader *r, const gy_json_at *at, const gy_meaning *b, const char *what)
{
    return gy_read_fail(r, at, "\"%s\" stands for %s\"%s\", %s", b->name,
                        b->region.kind == GANTRY_ALL ? "" : "rows of ", r->graph->buffers.at[b->region.buffer.id].name,
                        what);
}

static void add_shape(char *to, size_t size, int64_t rows, int rank, const int64_t *shape)
{
    size_t used = (size_t)snprintf(to, size, "%" PRId64, rows);
    for (int i = 1; i < rank && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, " x %" PRId64, shape[i]);
}

gantry_status gy_read_bound(gy_reader *r, const gy_json_at *at, const gy_meaning *b, gantry_dtype dtype, int rank,
                            const int64_t *shape)
{
    const gy_buffer *buffer = &r->graph->buffers.at[b->region.buffer.id];
    char what[300], is[100], declared[100];
    if (buffer->dtype != dtype) {
        snprintf(what, sizeof what, "which has elements of %s, not of %s", gantry_dtype_name(buffer->dtype),
                 gantry_dtype_name(dtype));
        return fail_bound(r, at, b, what);
    }
    int64_t rows = buffer->tiles[0] ? buffer->shape[0] : b->rows;
    bool is_alike = buffer->rank == rank && shape[0] == rows;
    for (int i = 1; i < rank && is_alike; i++)
        is_alike = shape[i] == buffer->shape[i];
    if (is_alike)
        return GANTRY_OK;
    add_shape(is, sizeof is, rows, buffer->rank, buffer->shape);
    add_shape(declared, sizeof declared, shape[0], rank, shape);
    snprintf(what, sizeof what, "which is %s, not %s: give params so that the shapes are the same", is, declared);
    return fail_bound(r, at, b, what);
}

/* The cut is that of the buffer outside: where the file says one, it is the same. */
gantry_status gy_read_bound_cut(gy_reader *r, const gy_json_at *at, const gy_meaning *b, int64_t parts, bool is_auto)
{
    const gy_buffer *buffer = &r->graph->buffers.at[b->region.buffer.id];
    char what[200];
    if (b->region.kind != GANTRY_ALL || (buffer->parts == parts && buffer->split_auto == is_auto))
        return GANTRY_OK;
    snprintf(what, sizeof what, "which is cut into %" PRId64 " parts%s, not into %" PRId64 "%s: cut both alike",
             buffer->parts, buffer->split_auto ? " by the scheduler" : "", parts, is_auto ? " by the scheduler" : "");
    return fail_bound(r, at, b, what);
}

gantry_status gy_read_bound_tiles(gy_reader *r, const gy_json_at *at, const gy_meaning *b,
                                  const int64_t tiles[GANTRY_TILE_AXES])
{
    const gy_buffer *buffer = &r->graph->buffers.at[b->region.buffer.id];
    if (memcmp(buffer->tiles, tiles, sizeof buffer->tiles) == 0)
        return GANTRY_OK;
    return fail_bound(r, at, b, "which is cut into other tiles");
}
