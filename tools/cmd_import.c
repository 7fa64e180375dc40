/* SPDX-License-Identifier: Apache-2.0 */
/* gantry import: task graphs in formats of others, as a graph file. */
#include "command.h"
#include <stdio.h>
#include <stdlib.h>

static bool read_devices(const char *text, int32_t *devices)
{
    char *end;
    if (!text)
        return true;
    long count = strtol(text, &end, 10);
    if (end != text && !*end && count >= 1 && count <= 4096) {
        *devices = (int32_t)count;
        return true;
    }
    complain("gantry import: --devices is \"%s\"; it takes a number from 1 to 4096 here\n", text);
    return false;
}

static bool take_options(gantry_import_options *to, const options *o)
{
    to->time_unit_us = o->time_unit;
    to->bandwidth_gbs = o->bandwidth;
    to->node_time = o->node_time;
    to->edge_cost = o->edge_cost;
    return read_devices(o->devices, &to->devices);
}

static int add_json(gantry_files *files, const char *path, char *text, size_t length)
{
    int code = add_text(files, path, text, length);
    gantry_free(text);
    return code;
}

static int add_machine(gantry_files *files, const gantry_machine *machine, const char *path)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    if (!machine) {
        complain("--machine-out: the file says nothing of a machine; give --devices N\n");
        return EXIT_USAGE;
    }
    return gantry_machine_json(machine, &text, &length, &err) ? fail(&err) : add_json(files, path, text, length);
}

static int add_graph(gantry_files *files, const gantry_graph *graph, const char *path)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    return gantry_graph_json(graph, &text, &length, &err) ? fail(&err) : add_json(files, path, text, length);
}

static int run(const options *o)
{
    gantry_import_options io = GANTRY_IMPORT_OPTIONS_INIT;
    gantry_error err;
    gantry_graph *graph = NULL;
    gantry_machine *machine = NULL;
    if (!take_options(&io, o))
        return EXIT_USAGE;
    if (gantry_graph_import(&graph, &machine, o->positional.at[0], o->positional.at[1], &io, &err))
        return fail_reading(&err);
    gantry_files *files = NULL;
    int code = begin_files(&files);
    if (!code && o->machine_out)
        code = add_machine(files, machine, o->machine_out);
    if (!code)
        code = add_graph(files, graph, o->out ? o->out : "-");
    code = end_files(files, code);
    gantry_machine_free(machine);
    gantry_graph_free(graph);
    return code;
}

const command command_import = {
    "import",
    "FORMAT FILE",
    "reads a task graph in a format of others and writes it as a graph",
    2,
    2,
    "devices time-unit bandwidth node-time edge-cost out machine-out",
    "  gantry import stg rand0000.stg --devices 16 -o rand0000.json && gantry schedule rand0000.json --devices 4\n"
    "  gantry import dnn bert24_inference.json | gantry schedule -\n"
    "  gantry import dot tasks.dot --node-time weight --edge-cost weight --devices 3 -o tasks.json\n"
    "  gantry import wfcommons montage.json --devices 8 --bandwidth 1.25 -o montage.json\n",
    run
};
