/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs for measuring, made through the C API as a program would. */
#include "command.h"
#include <stdio.h>
#include <string.h>

static gantry_status nothing(const gantry_launch *launch)
{
    (void)launch;
    return GANTRY_OK;
}

/* A fixed sequence (splitmix64), so that every machine measures the same graph. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

enum { WIDTH = 100, ROW_BYTES = 4096 };

/* Layers of WIDTH nodes; each reads two random parts of the layer before and writes its own: 3 accesses a node. */
gantry_graph *bench_layered(int64_t nodes)
{
    gantry_graph *g = gantry_graph_new("layered");
    int64_t layers = (nodes + WIDTH - 1) / WIDTH;
    uint64_t seed = 1;
    gantry_buffer data = gantry_graph_buffer(g, "data", GANTRY_U8, 2, ((int64_t[]){ (layers + 1) * WIDTH, ROW_BYTES }));
    gantry_buffer_set_class(g, data, GANTRY_INPUT);
    gantry_buffer_init_value(g, data, 0);
    for (int64_t i = 0; i < nodes; i++) {
        int64_t layer = i / WIDTH;
        gantry_node t = gantry_graph_work(g, "n");
        for (int k = 0; k < 2; k++) {
            int64_t row = layer * WIDTH + (int64_t)(next(&seed) % WIDTH);
            gantry_node_read(g, t, gantry_rows(data, row, row + 1));
        }
        int64_t own = WIDTH + i;
        gantry_node_write(g, t, gantry_rows(data, own, own + 1));
        gantry_node_time(g, t, NULL, 5.0 + (double)(next(&seed) % 100));
    }
    return g;
}

/* chain: one node after another on one device; wide: `devices` independent chains; stencil: those, each step reading
 * its neighbours' rows too. Every kernel is empty: what is measured is the runtime's own cost. */
gantry_graph *bench_empty(const char *shape, int64_t nodes, int devices)
{
    bool stencil = strcmp(shape, "stencil") == 0;
    int64_t lanes = strcmp(shape, "chain") == 0 ? 1 : devices, steps = nodes / lanes;
    gantry_graph *g = gantry_graph_new(shape);
    gantry_buffer b[2];
    for (int k = 0; k < 2; k++) {
        b[k] = gantry_graph_buffer(g, k ? "b" : "a", GANTRY_U8, 2, ((int64_t[]){ lanes, ROW_BYTES }));
        gantry_buffer_set_class(g, b[k], GANTRY_STATE);
        gantry_buffer_init_value(g, b[k], 0);
        gantry_buffer_split(g, b[k], lanes);
    }
    for (int64_t step = 0; step < steps; step++)
        for (int64_t i = 0; i < lanes; i++) {
            gantry_node t = gantry_graph_launch(g, "n", nothing, NULL);
            char where[24];
            snprintf(where, sizeof where, "%lld", (long long)i);
            gantry_node_on(g, t, where);
            if (stencil) {
                gantry_node_read(g, t, gantry_halo(gantry_part(b[step % 2], i), 1, 1));
                gantry_node_write(g, t, gantry_part(b[(step + 1) % 2], i));
            } else {
                gantry_node_readwrite(g, t, gantry_part(b[0], i));
            }
            gantry_node_time(g, t, NULL, 0.1);
        }
    return g;
}
