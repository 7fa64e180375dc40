/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_nodes [NODES]: builds and checks a graph of that many nodes with three accesses each through the public API and
 * prints what it took. With a second argument, the most bytes a node that are allowed, it fails if it took more. With a
 * third, "maps" or "fused", nodes are maps with two accesses: of parts, or of one buffer, which become longer maps.
 */
#include <gantry/graph.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* In place of the library's table: it is visible, so calls within gantry_internal reach it. */
GANTRY_API const gantry_kernel *const *gy_builtin_kernels(size_t *count);
const gantry_kernel *const *gy_builtin_kernels(size_t *count)
{
    *count = 0;
    return NULL;
}

static gantry_status nothing(const gantry_launch *launch)
{
    (void)launch;
    return GANTRY_OK;
}

/* Peak resident memory in bytes, or 0 where the system does not say. */
static double peak_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return (double)kib * 1024;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A stencil: each step reads a part with its halo and a whole, and writes the part in the other buffer. */
static gantry_graph *build(long nodes)
{
    enum { PARTS = 1000 };
    gantry_graph *g = gantry_graph_new("bench");
    gantry_buffer x[2] = { gantry_graph_buffer(g, "x0", GANTRY_F32, 2, (int64_t[]){ 64 * PARTS, 16 }),
                           gantry_graph_buffer(g, "x1", GANTRY_F32, 2, (int64_t[]){ 64 * PARTS, 16 }) };
    gantry_buffer w = gantry_graph_buffer(g, "w", GANTRY_F32, 1, (int64_t[]){ 9 });
    gantry_buffer_split(g, x[0], PARTS);
    gantry_buffer_split(g, x[1], PARTS);
    gantry_buffer_init_value(g, x[0], 0);
    gantry_buffer_init_value(g, w, 1);
    gantry_buffer_output(g, x[0]);
    for (long i = 0; i < nodes; i++) {
        long part = i % PARTS, from = i / PARTS % 2;
        gantry_node t = gantry_graph_launch(g, "step", nothing, NULL);
        gantry_node_read(g, t, gantry_halo(gantry_part(x[from], part), 1, 1));
        gantry_node_read(g, t, gantry_all(w));
        gantry_node_write(g, t, gantry_part(x[!from], part));
        gantry_node_cost(g, t, 1e6, 1e4);
    }
    return g;
}

/* All have the same formula, which is kept once. */
static gantry_graph *build_maps(long nodes, bool fused)
{
    enum { PARTS = 1000 };
    gantry_graph *g = gantry_graph_new("bench");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, (int64_t[]){ 64 * PARTS });
    gantry_buffer w = gantry_graph_buffer(g, "w", GANTRY_F32, 1, (int64_t[]){ 1 });
    gantry_buffer_split(g, x, PARTS);
    gantry_buffer_init_value(g, x, 0);
    gantry_buffer_init_value(g, w, 1);
    gantry_buffer_output(g, x);
    if (fused)
        gantry_graph_fuse(g);
    for (long i = 0; i < nodes; i++) {
        gantry_node n = gantry_graph_map(g, "m", "x = x + w");
        gantry_node_arg(g, n, "x", gantry_part(x, fused ? 0 : i % PARTS));
        gantry_node_arg(g, n, "w", gantry_all(w));
    }
    return g;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 3 ? argv[3] : "";
    long nodes = argc > 1 ? atol(argv[1]) : 1000000;
    double before = peak_bytes(), start = now();
    bool fused = strcmp(kind, "fused") == 0;
    gantry_graph *g = *kind ? build_maps(nodes, fused) : build(nodes);
    double built = now();
    gantry_error err;
    if (gantry_graph_check(g, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double checked = now(), each = (peak_bytes() - before) / (double)nodes;
    printf("%ld nodes: built in %.2f s, checked in %.2f s, %.0f bytes a node at most\n", nodes, built - start,
           checked - built, each);
    double allowed = argc > 2 ? atof(argv[2]) : 1e9;
    if (each > allowed) {
        fprintf(stderr, "%.0f bytes a node; %.0f are allowed\n", each, allowed);
        return 1;
    }
    gantry_graph_free(g);
    return before > 0 ? 0 : 77;
}
