/* SPDX-License-Identifier: Apache-2.0 */
/* Building: where calls come from, the first mistake, names. */
#include "base/error.h"
#include "graph/build/build_state.h"

#include <stdarg.h>
#include <string.h>

bool gy_building(gantry_graph *graph)
{
    if (!graph || graph->error.status)
        return false;
    if (graph->sealed) {
        gy_graph_mistake(graph, GANTRY_E_INVALID,
                         "the graph was checked and is sealed: build it completely before gantry_graph_check");
        return false;
    }
    return true;
}

/* The place that was set last. */
static gy_origin place_of(const gy_build *b)
{
    if (b->has_pointer)
        return (gy_origin){ .pointer = b->pointer.at, .use = b->use };
    if (b->file == GY_NO_NAME)
        return (gy_origin){ 0 };
    return (gy_origin){ .file = gy_names_at(&b->files, b->file), .line = b->line };
}

void gy_graph_mistake(gantry_graph *graph, gantry_status status, const char *format, ...)
{
    if (!graph || graph->error.status)
        return;
    gy_origin place = place_of(graph->build_);
    va_list args;
    va_start(args, format);
    gy_vfail(&graph->error, status, NULL, format, args);
    va_end(args);
    graph->build_->said = strlen(graph->error.text);
    gy_graph_locate(graph, &place, NULL, &graph->error);
}

void gy_build_nomem(gantry_graph *graph)
{
    gy_graph_mistake(graph, GANTRY_E_NOMEM, "%s", gantry_status_text(GANTRY_E_NOMEM));
}

const char *gy_build_string(gantry_graph *graph, const char *text)
{
    const char *copy = gy_arena_strdup(&graph->arena, text);
    if (!copy)
        gy_build_nomem(graph);
    return copy;
}

bool gy_build_is_plain(gantry_graph *graph, const char *what, const char *name)
{
    if (gy_is_plain(name))
        return true;
    gy_graph_mistake(graph, GANTRY_E_GRAPH,
                     "%s \"%s\" has control characters, or is not UTF-8 (they show as '?'); take them out", what, name);
    return false;
}

/* ---- places ---- */

gantry_graph *gantry_graph_at(gantry_graph *graph, const char *file, int line)
{
    if (!graph)
        return graph;
    gy_build *b = graph->build_;
    bool same_file = file && b->file != GY_NO_NAME && strcmp(gy_names_at(&b->files, b->file), file) == 0;
    if (same_file && line == b->line && !b->has_pointer)
        return graph;
    /* Out of memory here only loses the place of a message. */
    b->file = same_file ? b->file : file ? gy_names_add(&b->files, file, NULL) : GY_NO_NAME;
    b->line = line;
    b->has_pointer = false;
    b->origin = GY_NONE;
    return graph;
}

void gy_graph_set_origin(gantry_graph *graph, const char *pointer)
{
    if (!graph || graph->sealed)
        return;
    gy_build *b = graph->build_;
    if (pointer && b->has_pointer && strcmp(b->pointer.at, pointer) == 0)
        return;
    b->pointer.length = 0;
    gy_text_add(&b->pointer, pointer ? pointer : "");
    b->has_pointer = pointer && !b->pointer.failed;
    b->file = GY_NO_NAME;
    b->origin = GY_NONE;
    if (b->pointer.failed)
        gy_build_nomem(graph);
}

void gy_graph_set_use(gantry_graph *graph, const gy_used_at *use)
{
    if (!graph || graph->sealed || graph->build_->use == use)
        return;
    graph->build_->use = use;
    graph->build_->origin = GY_NONE;
}

static uint32_t add_origin(gantry_graph *g, gy_origin origin)
{
    if (!gy_vec_push(&g->origins, origin)) {
        gy_build_nomem(g);
        return GY_NONE;
    }
    return (uint32_t)g->origins.count - 1;
}

static uint32_t add_line_origin(gantry_graph *g, gy_build *b)
{
    uint64_t key = (uint64_t)b->file << 32 | (uint32_t)b->line, known;
    if (gy_map_get(&b->places, key, &known))
        return (uint32_t)known;
    const char *file = gy_build_string(g, gy_names_at(&b->files, b->file));
    uint32_t origin = file ? add_origin(g, (gy_origin){ .file = file, .line = b->line }) : GY_NONE;
    if (origin != GY_NONE && !gy_map_put(&b->places, key, origin)) {
        gy_build_nomem(g);
        return GY_NONE;
    }
    return origin;
}

uint32_t gy_build_origin(gantry_graph *graph)
{
    gy_build *b = graph->build_;
    if (b->origin != GY_NONE)
        return b->origin;
    if (b->has_pointer) {
        const char *pointer = gy_build_string(graph, b->pointer.at);
        b->origin = pointer ? add_origin(graph, (gy_origin){ .pointer = pointer, .use = b->use }) : GY_NONE;
    } else {
        b->origin = b->file == GY_NO_NAME ? 0 : add_line_origin(graph, b);
    }
    return b->origin;
}

void gantry_graph_limit(gantry_graph *graph, int64_t most)
{
    if (gy_building(graph))
        graph->limit = most < 0 ? INT64_MAX : most;
}

void gantry_graph_fuse(gantry_graph *graph)
{
    if (gy_building(graph))
        graph->fuses = true;
}

/* ---- what readers of files set ---- */

void gy_graph_set_source(gantry_graph *graph, const char *source, const char *path, const char *folder)
{
    if (!gy_building(graph))
        return;
    graph->source = source ? gy_build_string(graph, source) : NULL;
    graph->path = path ? gy_build_string(graph, path) : NULL;
    graph->folder = folder ? gy_build_string(graph, folder) : NULL;
}

void gy_graph_unique_ids(gantry_graph *graph)
{
    if (gy_building(graph))
        graph->build_->unique_ids = true;
}

void gy_graph_add_param(gantry_graph *graph, const char *name, int64_t integer, double real, bool is_real)
{
    if (!gy_building(graph))
        return;
    const char *copy = gy_build_string(graph, name);
    gy_param param = { copy, integer, real, is_real };
    if (copy && !gy_vec_push(&graph->params, param))
        gy_build_nomem(graph);
}

void gy_graph_set_machine(gantry_graph *graph, const char *json, const char *path)
{
    if (gy_building(graph)) {
        graph->machine_json = json ? gy_build_string(graph, json) : NULL;
        graph->machine_path = path ? gy_build_string(graph, path) : NULL;
    }
}

bool gy_graph_note_use(gantry_graph *graph, uint32_t first, uint32_t depth)
{
    gy_used_nodes made = { first, (uint32_t)graph->nodes.count, depth };
    return gy_vec_push(&graph->build_->uses, made);
}

void gy_build_free_files(gy_build *build)
{
    for (size_t i = 0; i < build->used_files.count; i++) {
        gy_free(build->used_files.at[i]->text);
        json_decref(build->used_files.at[i]->root);
    }
    gy_vec_free(&build->used_files);
}

void gy_build_trim(gy_build *build)
{
    gy_build_free_files(build);
    gy_names_free(&build->use_ids);
    gy_map_free(&build->places);
    gy_map_free(&build->suffix);
    gy_map_free(&build->late_args);
    gy_vec_free(&build->late_access);
    gy_vec_free(&build->late_scalar);
    gy_vec_free(&build->late_after);
    gy_vec_free(&build->uses);
    gy_vec_free(&build->more_flag);
    gy_vec_free(&build->handed);
    gy_vec_free(&build->going);
}

void gy_build_free(gy_build *build)
{
    if (!build)
        return;
    gy_build_trim(build);
    gy_text_free(&build->pointer);
    gy_names_free(&build->files);
    gy_names_free(&build->kernel_names);
    gy_free(build);
}
