/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of an op: a chain of launches of an empty function on one device, against a plain loop that calls it.
 * bench_run_chain [ops [starts]] prints one line. */
#include "build.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static gantry_status nothing(const gantry_launch *l)
{
    (void)l;
    return GANTRY_OK;
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare);
    return x[n / 2];
}

static gantry_schedule *make_chain(gantry_graph *g, int ops)
{
    int64_t n = 1;
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, &n);
    gantry_buffer_set_class(g, y, GANTRY_STATE);
    gantry_buffer_init_value(g, y, 0);
    for (int i = 0; i < ops; i++) {
        gantry_node node = gantry_graph_launch(g, "n", nothing, NULL);
        gantry_node_readwrite(g, node, gantry_all(y));
    }
    gantry_schedule *s = build_schedule(g, 1);
    uint32_t home = build_persist(s, y.id, 1);
    for (int i = 0; i < ops; i++) {
        build_op(s, GY_OP_LAUNCH, (uint32_t)i, 0);
        build_use_all(s, home, GANTRY_READWRITE);
    }
    return s;
}

int main(int argc, char **argv)
{
    int ops = argc > 1 ? atoi(argv[1]) : 10000, starts = argc > 2 ? atoi(argv[2]) : 51;
    gantry_graph *g = gantry_graph_new("chain");
    gantry_schedule *s = make_chain(g, ops);
    gantry_run *run = NULL;
    gantry_launch launch = { .struct_size = sizeof launch };
    gantry_kernel_fn volatile call = nothing;
    double *loop = calloc((size_t)starts, sizeof *loop), *chain = calloc((size_t)starts, sizeof *chain);
    if (!loop || !chain || starts < 1)
        return 1;
    MUST(gantry_run_new(&run, s, NULL, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    for (int k = 0; k < starts; k++) {
        double begin = now_us();
        for (int i = 0; i < ops; i++)
            call(&launch);
        double middle = now_us();
        MUST(run_once(run, MUST_ERR));
        chain[k] = (now_us() - middle) / ops;
        loop[k] = (middle - begin) / ops;
    }
    printf("%d ops, median of %d starts: %.4f us an op, a loop of calls %.4f us\n", ops, starts, median(chain, starts),
           median(loop, starts));
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    free(loop);
    free(chain);
    return 0;
}
