/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that a graph says it is meant for. */
#include "base/error.h"
#include "graph/graph.h"
#include "machine/machine.h"
#include <gantry/schedule.h>
#include <string.h>

gantry_status gantry_graph_machine(gantry_machine **machine, const gantry_graph *graph, gantry_error *err)
{
    GY_NEED(machine, err);
    GY_NEED(graph, err);
    const char *json = graph->machine_json;
    *machine = NULL;
    if (graph->machine_path)
        return gy_machine_load_in(machine, graph->machine_path, graph->folder, err);
    return json ? gantry_machine_parse(machine, json, strlen(json), "machine of the graph", err) : GANTRY_OK;
}
