/* SPDX-License-Identifier: Apache-2.0 */
/* Source locations: an error record gets the file, line and column of the thing that is wrong. */
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Reads the file again: parsing forgot where things were, and errors are rare. */
static void locate(const char *path, const char *pointer, int *line, int *column)
{
    char *text;
    size_t length;
    if (path && gy_file_is_regular(path) && gy_file_read(&text, &length, path, NULL) == GANTRY_OK) {
        gy_json_locate(text, length, pointer, line, column);
        gy_free(text);
    }
}

/* The graph's own file, as messages have it. */
static const char *source_of(const gantry_graph *graph)
{
    return graph->source ? graph->source : graph->path;
}

void gy_used_place(char *to, size_t size, const char *id, const char *file, int line)
{
    if (!file) {
        snprintf(to, size, " (used as \"%.60s\")", id);
        return;
    }
    size_t length = strlen(file), most = 80; /* what a compiler was given may be long: its end says more */
    snprintf(to, size, " (used as \"%.60s\" at %s%s:%d)", id, length > most ? "..." : "",
             length > most ? file + length - (most - 3) : file, line);
}

/* The places of all uses around. */
static void add_uses(const gantry_graph *graph, const gy_used_at *use, gantry_error *err)
{
    for (const gy_used_at *u = use; u; u = u->outer) {
        int line = 0, column = 0;
        size_t length = strlen(err->text);
        const char *name = u->outer ? u->outer->name : source_of(graph);
        if (u->pointer)
            locate(u->outer ? u->outer->path : graph->path, u->pointer, &line, &column);
        gy_used_place(err->text + length, sizeof err->text - length, u->id, u->pointer ? name ? name : "" : u->file,
                      u->pointer ? line : u->line);
    }
}

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same_use(const gy_used_at *a, const gy_used_at *b)
{
    for (; a && b; a = a->outer, b = b->outer)
        if (strcmp(a->path, b->path) != 0 || !is_same_text(a->pointer, b->pointer) || !is_same_text(a->file, b->file) ||
            a->line != b->line)
            return false;
    return !a && !b;
}

bool gy_origin_is_same(const gy_origin *a, const gy_origin *b)
{
    if (a->pointer && b->pointer)
        return strcmp(a->pointer, b->pointer) == 0 && is_same_use(a->use, b->use);
    return a->file && b->file && a->line == b->line && strcmp(a->file, b->file) == 0;
}

void gy_graph_locate(const gantry_graph *graph, const gy_origin *origin, const char *inside, gantry_error *err)
{
    if (!err || (!origin->pointer && !origin->file))
        return;
    if (origin->file) {
        gy_error_locate(err, origin->file, origin->line, 0);
        return;
    }
    gy_text pointer = { 0 };
    gy_text_add(&pointer, origin->pointer);
    gy_text_add(&pointer, inside ? inside : "");
    const char *whole = pointer.failed ? origin->pointer : pointer.at;
    gantry_error placed;
    gy_fail(&placed, err->status, whole, "%s", err->text);
    placed.device = err->device;
    placed.native = err->native;
    int line = 0, column = 0;
    const gy_used_at *use = origin->use;
    locate(use ? use->path : graph->path, whole, &line, &column);
    gy_error_locate(&placed, use ? use->name : source_of(graph), line, column);
    add_uses(graph, use, &placed);
    *err = placed;
    gy_text_free(&pointer);
}

gantry_status gy_graph_fail(const gantry_graph *graph, uint32_t origin, gantry_error *err, gantry_status status,
                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gy_vfail(err, status, NULL, format, args);
    va_end(args);
    gy_graph_locate(graph, &graph->origins.at[origin], NULL, err);
    return status;
}

gantry_status gy_graph_fail_in(const gantry_graph *graph, uint32_t origin, const char *inside, gantry_error *err,
                               gantry_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gy_vfail(err, status, NULL, format, args);
    va_end(args);
    gy_graph_locate(graph, &graph->origins.at[origin], inside, err);
    return status;
}
