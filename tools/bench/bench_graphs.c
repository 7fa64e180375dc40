/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs for measuring, made through the C API as a program would. */
#include "bench.h"
#include <stdio.h>
#include <string.h>

static gantry_status nothing(const gantry_launch *launch)
{
    (void)launch;
    return GANTRY_OK;
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
            int64_t row = layer * WIDTH + (int64_t)(bench_next(&seed) % WIDTH);
            gantry_node_read(g, t, gantry_rows(data, row, row + 1));
        }
        int64_t own = WIDTH + i;
        gantry_node_write(g, t, gantry_rows(data, own, own + 1));
        gantry_node_time(g, t, NULL, 5.0 + (double)(bench_next(&seed) % 100));
    }
    return g;
}

static void place(gantry_graph *g, gantry_node t, int64_t device)
{
    char where[24];
    snprintf(where, sizeof where, "%lld", (long long)device);
    gantry_node_on(g, t, where);
}

/* ---- trees, and layers at random ---- */

static void add_reads(gantry_graph *g, gantry_node n, const bench_task *t, gantry_region own, gantry_buffer made,
                      bool empty)
{
    static const char *const args[] = { "x", "y" };
    for (int k = 0; k < (t->froms ? t->froms : 1); k++) {
        gantry_region from = t->froms ? gantry_part(made, t->from[k]) : own;
        if (empty)
            gantry_node_read(g, n, from);
        else
            gantry_node_arg(g, n, args[k], from);
    }
}

/* Each task makes a row of its own, so that nothing waits but for what it reads. */
static gantry_graph *make_dag(const char *shape, int64_t nodes, int devices, int64_t lanes, bool empty)
{
    bench_dag d = bench_dag_of(shape, nodes, devices, lanes);
    gantry_graph *g = gantry_graph_new(shape);
    gantry_buffer b[2]; /* the input, and what tasks make */
    for (int k = 0; k < 2; k++) {
        int64_t count = k ? d.tasks : d.width, size[] = { count, ROW_BYTES / 4 };
        b[k] = gantry_graph_buffer(g, k ? "made" : "in", GANTRY_F32, 2, size);
        gantry_buffer_set_class(g, b[k], GANTRY_STATE);
        gantry_buffer_init_value(g, b[k], 0);
        gantry_buffer_split(g, b[k], count);
    }
    for (int64_t i = 0; i < d.tasks; i++) {
        bench_task t = bench_dag_task(&d, i);
        gantry_node n = empty ? gantry_graph_launch(g, "n", nothing, NULL)
                              : gantry_graph_kernel(g, "n", t.froms == 2 ? "add" : "copy");
        add_reads(g, n, &t, gantry_part(b[0], i % d.width), b[1], empty);
        if (empty)
            gantry_node_write(g, n, gantry_part(b[1], i));
        else
            gantry_node_arg(g, n, t.froms == 2 ? "z" : "y", gantry_part(b[1], i));
        if (empty)
            gantry_node_time(g, n, NULL, 0.1);
        place(g, n, t.device);
    }
    return g;
}

/* ---- of empty functions ---- */

/* chain: one node after another on one device; wide: `devices` independent chains; stencil: those, each step reading
 * its neighbours' rows too; tree, random: see above. Every kernel is empty: what is measured is the runtime's own cost.
 */
gantry_graph *bench_empty(const char *shape, int64_t nodes, int devices)
{
    if (bench_is_dag(shape))
        return make_dag(shape, nodes, devices, 1, true);
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
            place(g, t, i);
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

/* ---- for GPUs ---- */

/* Two arrays, a row for each list: a step makes rows of one from those of the other. */
static void add_rows(gantry_graph *g, gantry_buffer b[2], int64_t lists, bool numbers)
{
    int64_t size[] = { lists, numbers ? ROW_BYTES / 4 : ROW_BYTES };
    for (int k = 0; k < 2; k++) {
        b[k] = gantry_graph_buffer(g, k ? "b" : "a", numbers ? GANTRY_F32 : GANTRY_U8, 2, size);
        gantry_buffer_set_class(g, b[k], GANTRY_STATE);
        gantry_buffer_init_value(g, b[k], 0);
        gantry_buffer_split(g, b[k], lists);
    }
}

/* Chains copy rows to and fro; a stencil takes the mean of its neighbours, and so a row from either side. */
gantry_graph *bench_tiny(const char *shape, int64_t nodes, int devices, int64_t lanes)
{
    if (bench_is_dag(shape))
        return make_dag(shape, nodes, devices, lanes, false);
    bool stencil = strcmp(shape, "stencil") == 0;
    int64_t lists = strcmp(shape, "chain") == 0 ? lanes : devices * lanes, steps = nodes / lists;
    gantry_graph *g = gantry_graph_new(shape);
    gantry_buffer b[2];
    add_rows(g, b, lists, stencil);
    for (int64_t step = 0; step < steps; step++)
        for (int64_t i = 0; i < lists; i++) {
            gantry_region from = gantry_part(b[step % 2], i);
            gantry_node t = gantry_graph_kernel(g, "n", stencil ? "jacobi2d" : "copy");
            gantry_node_arg(g, t, "x", stencil ? gantry_halo(from, 1, 1) : from);
            gantry_node_arg(g, t, "y", gantry_part(b[(step + 1) % 2], i));
            place(g, t, i / lanes);
        }
    return g;
}

/* A row is few blocks, and a GPU has room for hundreds. Of a task of which nothing is said it is taken that it fills
 * the GPU, and workers of a resident kernel carry out one such behind the other. */
#define BUSY_SHARE 0.01

gantry_graph *bench_busy(int64_t lists, int64_t steps, int devices, double us)
{
    gantry_graph *g = gantry_graph_new("metg");
    gantry_buffer b[2];
    add_rows(g, b, lists, true);
    for (int64_t step = 0; step < steps; step++)
        for (int64_t i = 0; i < lists; i++) {
            gantry_node t = gantry_graph_kernel(g, "n", "busy");
            gantry_node_scalar(g, t, "us", us);
            gantry_node_arg(g, t, "x", gantry_part(b[step % 2], i));
            gantry_node_arg(g, t, "y", gantry_part(b[(step + 1) % 2], i));
            for (int64_t other = i - 1; other <= i + 1; other += 2)
                if (other >= 0 && other < lists)
                    gantry_node_read(g, t, gantry_part(b[step % 2], other));
            gantry_node_time(g, t, NULL, us); /* or the policy takes it for a copy */
            gantry_node_share(g, t, BUSY_SHARE);
            place(g, t, i * devices / lists);
        }
    return g;
}

gantry_graph *bench_hops(int64_t hops, int devices)
{
    gantry_graph *g = gantry_graph_new("hop");
    gantry_buffer b[2];
    add_rows(g, b, devices, false);
    for (int64_t hop = 0; hop < hops; hop++) {
        gantry_node t = gantry_graph_kernel(g, "n", "copy");
        gantry_node_arg(g, t, "x", gantry_part(b[hop % 2], hop % devices));
        gantry_node_arg(g, t, "y", gantry_part(b[(hop + 1) % 2], (hop + 1) % devices));
        place(g, t, (hop + 1) % devices);
    }
    return g;
}

static gantry_buffer array(gantry_graph *g, const char *name, int64_t i, uint64_t bytes, gantry_buffer_class cls)
{
    char id[32];
    snprintf(id, sizeof id, "%s%lld", name, (long long)i);
    gantry_buffer b = gantry_graph_buffer(g, id, GANTRY_U8, 1, ((int64_t[]){ (int64_t)bytes }));
    gantry_buffer_set_class(g, b, cls);
    return b;
}

static gantry_node touch(gantry_graph *g, const char *id, int64_t device)
{
    gantry_node t = gantry_graph_launch(g, id, nothing, NULL);
    place(g, t, device);
    gantry_node_time(g, t, NULL, 0.1);
    return t;
}

/* The second device reads the buffers that the first writes anew: functions that queue nothing on either side. */
gantry_graph *bench_peer_copies(int64_t copies, uint64_t bytes)
{
    gantry_graph *g = gantry_graph_new("peer");
    for (int64_t i = 0; i < copies; i++) {
        gantry_buffer x = array(g, "x", i, bytes, GANTRY_TEMP);
        gantry_node_write(g, touch(g, "give", 0), gantry_all(x));
        gantry_node_read(g, touch(g, "take", 1), gantry_all(x));
    }
    return g;
}

gantry_graph *bench_host_copies(int devices, uint64_t bytes, bool to, bool from)
{
    gantry_graph *g = gantry_graph_new("host");
    for (int i = 0; i < devices; i++) {
        if (to)
            gantry_node_read(g, touch(g, "take", i), gantry_all(array(g, "in", i, bytes, GANTRY_INPUT)));
        if (from) {
            gantry_buffer out = array(g, "out", i, bytes, GANTRY_TEMP);
            gantry_buffer_output(g, out);
            gantry_node_write(g, touch(g, "give", i), gantry_all(out));
        }
    }
    return g;
}

/* As graphs/image_blur.json: frames in, blurred frames out, in 20 parts. */
gantry_graph *bench_blur(int64_t frames, int64_t height, int64_t width)
{
    gantry_graph *g = gantry_graph_new("frames");
    int64_t shape[] = { frames, height, width, 3 }, parts = frames < 20 ? frames : 20;
    gantry_buffer in = gantry_graph_buffer(g, "in0", GANTRY_U8, 4, shape);
    gantry_buffer out = gantry_graph_buffer(g, "out0", GANTRY_U8, 4, shape);
    gantry_buffer_set_class(g, in, GANTRY_INPUT);
    gantry_buffer_split(g, in, parts);
    gantry_buffer_split(g, out, parts);
    gantry_buffer_output(g, out);
    for (int64_t i = 0; i < parts; i++) {
        gantry_node t = gantry_graph_kernel(g, "blur", "gaussian_blur");
        gantry_node_scalar(g, t, "sigma", 2);
        gantry_node_arg(g, t, "image", gantry_part(in, i));
        gantry_node_arg(g, t, "out", gantry_part(out, i));
    }
    return g;
}
