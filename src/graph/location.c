/* SPDX-License-Identifier: Apache-2.0 */
/* Source locations: an error record gets the file, line and column of the thing that is wrong. */
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "graph/graph.h"

#include <stdarg.h>

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
    locate(graph->path, whole, &line, &column);
    gy_error_locate(&placed, graph->source ? graph->source : graph->path, line, column);
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
