/* SPDX-License-Identifier: Apache-2.0 */
/* gantry_graph_use: what the key `use` does, said by a program. Its reader has no text of its own. */
#include "graph/json/json_read.h"

#include "base/error.h"
#include "base/versioned.h"
#include "graph/nest.h"
#include <string.h>

/* The end of the file's name without ".json": "blocks/residual.json" is used as "residual". */
static void add_file_name(gy_text *to, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    gy_text_add_n(to, name, length > 5 && strcmp(name + length - 5, ".json") == 0 ? length - 5 : length);
}

/* The id, or the first of "id#1", "id#2", ... that no other use has; in the graph's arena. NULL: out of memory. */
static const char *free_id(gantry_graph *g, const char *id, const char *path)
{
    gy_text text = { 0 };
    bool is_new = false;
    if (id)
        gy_text_add(&text, id);
    else
        add_file_name(&text, path);
    size_t length = text.length;
    for (unsigned long k = 1; !is_new && !text.failed; k++) {
        if (gy_names_add(&g->build_->use_ids, text.at, &is_new) == GY_NO_NAME)
            text.failed = true;
        if (is_new || text.failed)
            break;
        text.length = length;
        gy_text_printf(&text, "#%lu", k);
    }
    const char *made = text.failed ? NULL : gy_arena_strdup(&g->arena, text.at);
    gy_text_free(&text);
    return made;
}

/* The line of the program that uses the file; NULL: out of memory. */
static gy_used_at *note_line(gantry_graph *g, const char *id, const char *path)
{
    const gy_build *b = g->build_;
    const char *source = b->file == GY_NO_NAME ? NULL : gy_names_at(&b->files, b->file);
    gy_used_at *use = gy_arena_alloc(&g->arena, sizeof *use);
    const char *own = free_id(g, id, path);
    char *copy = source ? gy_arena_strdup(&g->arena, source) : NULL, *named = gy_arena_strdup(&g->arena, path);
    if (!use || !own || !named || (source && !copy))
        return NULL;
    *use = (gy_used_at){ .name = named, .path = named, .id = own, .file = copy, .line = b->line };
    return use;
}

/* ---- what names of the file stand for ---- */

static gantry_status fail_no_buffer(gy_reader *r, const gy_json_at *at, const gy_used_file *file)
{
    gy_near near = { 0 };
    json_t *buffers = gy_read_open(json_object_get(file->root, "buffers"));
    for (void *i = json_object_iter(buffers); i; i = json_object_iter_next(buffers, i))
        gy_near_offer(&near, at->key, json_object_iter_key(i));
    return near.best
               ? gy_read_fail(r, at, "%s has no buffer \"%s\" (did you mean \"%s\"?)", file->name, at->key, near.best)
               : gy_read_fail(r, at, "%s has no buffer \"%s\"", file->name, at->key);
}

static gantry_status bind(gy_reader *r, const gy_used_file *file, const gantry_use_buffer *given, gy_scope *scope)
{
    gy_json_at at = { NULL, given->name, 0, NULL };
    gy_meaning made = { .name = given->name, .region = given->region };
    if (!json_object_get(json_object_get(file->root, "buffers"), given->name))
        return fail_no_buffer(r, &at, file);
    for (size_t i = 0; i < scope->meaning.count; i++)
        if (strcmp(scope->meaning.at[i].name, given->name) == 0)
            return gy_read_fail(r, &at, "gives something for buffer \"%s\" twice; give it once", given->name);
    GY_TRY(gy_read_stands_for(r, &at, &made));
    return gy_vec_push(&scope->meaning, made) ? GANTRY_OK : gy_read_nomem(r);
}

/* Names that scalar arguments of the file have for iterations of the loops around, the outermost first. */
static gantry_status add_loops(gy_reader *r)
{
    const gantry_graph *g = r->graph;
    const char *index[GY_LOOPS_DEEP];
    size_t count = 0;
    for (uint32_t i = g->build_->open_inner; i != GY_NONE; i = g->inner.at[i].parent)
        index[count++] = g->inner.at[i].index;
    if (g->build_->open_loop != GY_NONE)
        index[count++] = g->loops.at[g->build_->open_loop].index;
    while (count > 0)
        if (!gy_vec_push(&r->loop, index[--count]))
            return gy_read_nomem(r);
    return GANTRY_OK;
}

/* ---- the call ---- */

/* The mistake becomes that of the graph: at its place in the file with that of the use behind it, or at the line of the
 * program. */
static void take_mistake(gy_reader *r, const gy_used_at *use)
{
    gantry_graph *g = r->graph;
    if (r->error.status == GANTRY_E_NOMEM) {
        gy_build_nomem(g);
    } else if (r->error.file[0] == '\0') {
        gy_graph_mistake(g, r->error.status, "use of \"%.100s\": %s", use->path, r->error.text);
    } else {
        size_t length = strlen(r->error.text);
        gy_used_place(r->error.text + length, sizeof r->error.text - length, use->id, use->file, use->line);
        g->error = r->error;
    }
}

static gantry_status use_file(gy_reader *r, gy_used_at *use, const gantry_use_options *o)
{
    gy_used_file *file = NULL;
    gy_scope scope = { .use = use };
    gy_json_at at = { 0 };
    if (!use)
        return gy_read_nomem(r);
    GY_TRY(gy_read_used_file(r, &at, use->path, &file));
    GY_TRY(add_loops(r));
    use->name = file->name;
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < o->buffer_count && !status; i++)
        status = bind(r, file, &o->buffers[i], &scope);
    status = status ? status : gy_read_use_of(r, file, &scope, r->options);
    gy_vec_free(&scope.meaning);
    return status;
}

static gantry_status take_options(gantry_use_options *all, const gantry_use_options *given, gantry_error *err)
{
    *all = (gantry_use_options)GANTRY_USE_OPTIONS_INIT;
    GY_TRY(gy_struct_read(all, sizeof *all, given, "gantry_use_options", err));
    GY_TRY(gy_struct_reserved(all->reserved, "gantry_use_options", err));
    for (size_t i = 0; i < all->param_count; i++)
        if (!all->params || !all->params[i])
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "param %zu of %zu of gantry_use_options is NULL; give as many as you say", i,
                           all->param_count);
    for (size_t i = 0; i < all->buffer_count; i++)
        if (!all->buffers || !all->buffers[i].name)
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "buffer %zu of %zu of gantry_use_options has no name; give as many as you say", i,
                           all->buffer_count);
    if (all->devices < 0)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "`devices` of gantry_use_options is %d; give how many devices there are, or 0 if that is not "
                       "known",
                       (int)all->devices);
    return GANTRY_OK;
}

void gantry_graph_use(gantry_graph *graph, const char *id, const char *path, const gantry_use_options *options)
{
    gantry_use_options all;
    gantry_error err;
    if (!gy_building(graph))
        return;
    if (!path || !*path || (id && !*id)) {
        gy_graph_mistake(graph, GANTRY_E_INVALID,
                         "a use of another graph has %s; give the name of its file, and an id or NULL",
                         path && *path ? "an empty id" : "no file");
        return;
    }
    if (take_options(&all, options, &err)) {
        gy_graph_mistake(graph, err.status, "%s", err.text);
        return;
    }
    gy_build *b = graph->build_;
    uint32_t source = b->file; /* what is read sets other places, and its ids are unique */
    int line = b->line;
    bool unique_ids = b->unique_ids;
    gantry_load_options load = GANTRY_LOAD_OPTIONS_INIT;
    load.params = all.params;
    load.param_count = all.param_count;
    load.devices = all.devices;
    gy_used_at *use = note_line(graph, id, path);
    gy_reader r = { .graph = graph, .text = "", .name = "", .options = &load, .when = all.when };
    b->unique_ids = true;
    if (use_file(&r, use, &all))
        take_mistake(&r, use);
    gy_read_free(&r);
    b->unique_ids = unique_ids;
    gy_graph_set_use(graph, NULL);
    b->has_pointer = false;
    b->file = source;
    b->line = line;
    b->origin = GY_NONE;
}
