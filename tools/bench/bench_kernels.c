/* SPDX-License-Identifier: Apache-2.0 */
/* bench kernels: kernels that stream through memory, as nodes of a graph, against a copy within memory by hand. */
#include "bench.h"
#include <stdio.h>
#include <string.h>

enum { SAMPLES = 11, MIB = 1 << 20, LAUNCHES = 16, WIDTH = 256 };

typedef enum layout {
    ARRAYS, /* all arguments are arrays of as many elements */
    SQUARE, /* so are they, with two dimensions */
    BIAS,   /* rows of WIDTH elements, and one more row */
    NUMBER  /* arrays, and a single element as the result */
} layout;

/* Kernels that are bound by memory traffic on any GPU. `moved`: arrays that are read or written. */
typedef struct streaming {
    const char *kernel;
    int moved;
    layout layout;
} streaming;

static const streaming list[] = {
    { "add", 3, ARRAYS },        { "axpby", 3, ARRAYS },      { "bias_add", 2, BIAS },   { "copy", 2, ARRAYS },
    { "dot", 2, NUMBER },        { "jacobi2d", 2, SQUARE },   { "mul", 3, ARRAYS },      { "relu", 2, ARRAYS },
    { "relu_grad", 3, ARRAYS },  { "saxpy", 3, ARRAYS },      { "scale", 2, ARRAYS },    { "sgd_update", 3, ARRAYS },
    { "reduce_max", 1, NUMBER }, { "reduce_sum", 1, NUMBER }, { "transpose", 2, SQUARE }
};

static int64_t side_of(int64_t elements)
{
    int64_t side = 1;
    while ((side + 1) * (side + 1) <= elements)
        side++;
    return side;
}

/* Numbers as a user has them, not zeros, which are faster than others. */
static gantry_buffer add_buffer(gantry_graph *g, const gantry_kernel_arg *a, layout l, int64_t elements)
{
    int64_t shape[2] = { elements, 1 };
    bool output = a->access != GANTRY_READ, row = l == BIAS && strcmp(a->name, "b") == 0;
    if (l == SQUARE)
        shape[0] = shape[1] = side_of(elements);
    if (l == BIAS) {
        shape[0] = row ? WIDTH : elements / WIDTH;
        shape[1] = WIDTH;
    }
    if (l == NUMBER && output)
        shape[0] = 1;
    gantry_buffer b = gantry_graph_buffer(g, a->name, GANTRY_F32, l == SQUARE || (l == BIAS && !row) ? 2 : 1, shape);
    gantry_buffer_set_class(g, b, GANTRY_STATE);
    gantry_buffer_init_uniform(g, b, 1, 0, 1);
    return b;
}

/* The same launch again and again on one GPU, each behind the one before it. */
static gantry_graph *kernel_graph(const streaming *s, int64_t elements)
{
    const gantry_kernel *k = gantry_kernel_find(s->kernel);
    gantry_graph *g = gantry_graph_new(s->kernel);
    gantry_buffer buffer[8];
    for (int i = 0; i < k->args; i++)
        if (!k->arg[i].scalar)
            buffer[i] = add_buffer(g, &k->arg[i], s->layout, elements);
    for (int n = 0; n < LAUNCHES; n++) {
        gantry_node node = gantry_graph_kernel(g, s->kernel, s->kernel);
        gantry_node_on(g, node, "0");
        for (int i = 0; i < k->args; i++)
            if (!k->arg[i].scalar)
                gantry_node_arg(g, node, k->arg[i].name, gantry_all(buffer[i]));
            else if (!k->arg[i].optional)
                gantry_node_scalar(g, node, k->arg[i].name, 1);
    }
    return g;
}

static int race_run(rows *to, const streaming *s, const options *o, const gantry_machine *machine, gantry_graph *graph,
                    baseline *copy, uint64_t bytes)
{
    bench_row r = { .want = 0.9, .bytes = (double)bytes * s->moved };
    options with = *o;
    gantry_error err;
    gantry_run *run = NULL;
    gantry_schedule *schedule = NULL;
    snprintf(r.what, sizeof r.what, "%s", s->kernel);
    with.replay = o->replay ? o->replay : "graph";
    int code = bench_open(&run, &schedule, &with, graph, machine);
    if (!code)
        code = bench_race(&r, bench_start, run, copy, SAMPLES, &err);
    r.gantry_us /= LAUNCHES;
    r.raw_us *= s->moved / 2.0; /* the copy moves as many bytes twice: read and written */
    if (!code)
        rows_add(to, r);
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    return code;
}

int bench_kernels(const options *o)
{
    gantry_machine *machine = NULL;
    baseline *copy = NULL;
    gantry_error err;
    rows r = { .bench = "kernels" };
    baseline_options bo = BASELINE_OPTIONS_INIT;
    int gpus = 0, code = bench_gpus(&machine, o, &gpus);
    bo.bytes = o->bytes ? (uint64_t)o->bytes : (uint64_t)256 * MIB;
    if (!code && baseline_open(&copy, "within", machine, &bo, &err))
        code = fail(&err);
    for (size_t i = 0; i < sizeof list / sizeof *list && !code; i++) {
        gantry_graph *graph = kernel_graph(&list[i], (int64_t)(bo.bytes / sizeof(float)));
        code = race_run(&r, &list[i], o, machine, graph, copy, bo.bytes);
        gantry_graph_free(graph);
    }
    if (!code)
        code = rows_print(o, &r);
    baseline_close(copy);
    gantry_machine_free(machine);
    return code;
}
