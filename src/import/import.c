/* SPDX-License-Identifier: Apache-2.0 */
/* The table of formats, and the way from a file to a graph. */
#include "import/import.h"

#include "base/error.h"
#include "base/file.h"
#include "base/versioned.h"
#include "graph/graph.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct format {
    const char *name, *summary;
    gantry_status (*read)(gy_import *in, gantry_error *err);
} format;

static const format formats[] = {
    { "stg", "Standard Task Graph Set, with or without costs of communication; 1 unit = 1 us", gy_import_stg },
    { "dnn", "placement of neural networks on accelerators (Tarnawski et al. 2020); 1 unit = 1 us", gy_import_dnn },
    { "dot", "digraph of Graphviz, with times and costs as attributes; 1 unit = 1 us", gy_import_dot },
    { "wfcommons", "WfCommons instance (WfFormat 1.0 to 1.6), times in seconds", gy_import_wfcommons },
};
enum { FORMATS = sizeof formats / sizeof *formats, MOST_DEVICES = 4096 };

const char *gantry_import_format(size_t i)
{
    return i < FORMATS ? formats[i].name : NULL;
}

const char *gantry_import_summary(size_t i)
{
    return i < FORMATS ? formats[i].summary : NULL;
}

static gantry_status find_format(const char *name, const format **found, gantry_error *err)
{
    const char *names[FORMATS];
    char list[160] = "", meant[GY_MEANT_TEXT];
    for (size_t i = 0, length = 0; i < FORMATS; i++) {
        if (strcmp(formats[i].name, name) == 0) {
            *found = &formats[i];
            return GANTRY_OK;
        }
        names[i] = formats[i].name;
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", names[i]);
    }
    return gy_fail(err, GANTRY_E_INVALID, NULL, "no format \"%.60s\"%s; there are %s", name,
                   gy_meant_text(meant, gy_nearest(name, names, FORMATS)), list);
}

static gantry_status take_options(gantry_import_options *all, const gantry_import_options *given, gantry_error *err)
{
    gantry_status status = gy_struct_read(all, sizeof *all, given, "gantry_import_options", err);
    status = status ? status : gy_struct_reserved(all->reserved, "gantry_import_options", err);
    if (status)
        return status;
    if (all->devices < 0 || all->devices > MOST_DEVICES)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "cannot make a machine of %d devices; give 1 to %d, or 0 for what "
                       "the file says",
                       (int)all->devices, MOST_DEVICES);
    if (!(all->time_unit_us >= 0) || all->time_unit_us > 1e12 || (all->time_unit_us > 0 && all->time_unit_us < 1e-6))
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "a unit of time of %g us; give 1e-06 to 1e+12, or 0 for what is usual for the format",
                       all->time_unit_us);
    if (!(all->bandwidth_gbs >= 0) || all->bandwidth_gbs > 1e6 || (all->bandwidth_gbs > 0 && all->bandwidth_gbs < 1e-9))
        return gy_fail(err, GANTRY_E_INVALID, NULL, "a bandwidth of %g GB/s; give 1e-09 to 1e+06, or 0 for 1 GB/s",
                       all->bandwidth_gbs);
    return GANTRY_OK;
}

/* "graphs/rand0001.stg" -> "rand0001" */
static const char *name_of(gy_import *in)
{
    const char *slash = strrchr(in->source, '/'), *base = slash ? slash + 1 : in->source, *dot = strrchr(base, '.');
    size_t length = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    return gy_arena_strndup(&in->arena, length ? base : "imported", length ? length : 8);
}

/* Readers give a pointer, and the line of the text is found for it. */
static void place_error(const gy_import *in, gantry_error *err)
{
    int line = err->line, column = 0;
    if (err->file[0] || err->status == GANTRY_E_NOMEM)
        return;
    if (in->has_pointers)
        gy_json_locate(in->text, in->length, err->where, &line, &column);
    gy_error_locate(err, in->source, line, column);
}

static gantry_status build(gy_import *in, gantry_graph **graph, gantry_machine **machine, gantry_error *err)
{
    const char *json = NULL;
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    if (in->tasks.count == 0)
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "there is no task in the file; give at least one");
    uint32_t *sorted = gy_calloc(in->tasks.count, sizeof *sorted);
    gantry_status status = sorted ? gy_import_sort(in, sorted, err) : gy_fail_nomem(err);
    if (!status)
        status = gy_import_measure(in, err);
    if (!status)
        status = gy_import_machine(in, &json, err);
    if (!status && json)
        status = gantry_machine_parse(&m, json, strlen(json), "machine of the import", err);
    if (!status && !(g = gy_import_build(in, sorted, json)))
        status = gy_fail_nomem(err);
    if (!status)
        status = gantry_graph_check(g, err);
    gy_free(sorted);
    if (status || !machine) {
        gantry_machine_free(m);
        m = NULL;
    }
    if (status) {
        gantry_graph_free(g);
        return status;
    }
    *graph = g;
    if (machine)
        *machine = m;
    return GANTRY_OK;
}

static gantry_status import(gy_import *in, const format *how, gantry_graph **graph, gantry_machine **machine,
                            gantry_error *err)
{
    in->name = name_of(in);
    gantry_status status = in->name ? how->read(in, err) : gy_fail_nomem(err);
    if (!status && in->options.time_unit_us > 0)
        in->unit_us = in->options.time_unit_us;
    if (!status && in->options.devices > 0 && !in->by_kind)
        in->processors = (uint32_t)in->options.devices;
    if (!status)
        status = build(in, graph, machine, err);
    if (status)
        place_error(in, err);
    gy_vec_free(&in->tasks);
    gy_vec_free(&in->items);
    gy_vec_free(&in->reads);
    gy_vec_free(&in->orders);
    gy_arena_free(&in->arena);
    return status;
}

gantry_status gantry_graph_import(gantry_graph **graph, gantry_machine **machine, const char *format_name,
                                  const char *path, const gantry_import_options *options, gantry_error *err)
{
    const format *how = NULL;
    gy_import in = { 0 };
    gantry_error own = { 0 };
    char *text = NULL;
    GY_NEED(graph, err);
    GY_TRY(gy_need(format_name, "format", __func__, err));
    GY_NEED(path, err);
    gantry_status status = find_format(format_name, &how, &own);
    if (!status)
        status = take_options(&in.options, options, &own);
    if (!status)
        status = gy_file_read(&text, &in.length, path, &own);
    if (!status) {
        bool standard_input = strcmp(path, "-") == 0;
        in.text = text;
        in.source = standard_input ? "standard input" : path;
        in.path = standard_input ? NULL : path;
        status = import(&in, how, graph, machine, &own);
    }
    gy_free(text);
    if (status && err)
        *err = own;
    return status;
}
