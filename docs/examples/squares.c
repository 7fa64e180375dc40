/* SPDX-License-Identifier: Apache-2.0 */
/* The graph that README.md shows as JSON and in Python, in C: y = 2 x + 1 in parts, one for each device, and the sum of
 * its squares. */
#include <gantry/gantry.h>
#include <stdio.h>

enum { N = 1000, PARTS = 2 };

static gantry_graph *build(gantry_buffer *x, gantry_buffer *total)
{
    gantry_graph *g = gantry_graph_new("squares");
    *x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, ((int64_t[]){ N }));
    *total = gantry_graph_buffer(g, "total", GANTRY_F64, 1, ((int64_t[]){ 1 }));
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, ((int64_t[]){ N }));
    gantry_buffer_set_class(g, *x, GANTRY_INPUT);
    gantry_buffer_split(g, *x, PARTS);
    gantry_buffer_split(g, y, PARTS);
    gantry_buffer_init_value(g, *total, 0);
    gantry_buffer_output(g, *total);
    for (int i = 0; i < PARTS; i++) {
        gantry_node line = gantry_graph_map(g, "line", "y = 2 * x + 1");
        gantry_node_arg(g, line, "x", gantry_part(*x, i));
        gantry_node_arg(g, line, "y", gantry_part(y, i));
        gantry_node sum = gantry_graph_reduce(g, "sum", "total = sum(f64(square(y)))");
        gantry_node_arg(g, sum, "y", gantry_part(y, i));
        gantry_node_arg_as(g, sum, "total", gantry_all(*total), GANTRY_SUM);
    }
    return g;
}

int main(void)
{
    gantry_error err;
    gantry_machine *machine = NULL;
    gantry_schedule *schedule = NULL;
    gantry_run *run = NULL;
    gantry_buffer x, total;
    uint64_t ticket, bytes;
    const void *sum = NULL;
    float given[N];
    int code = 1;

    for (int i = 0; i < N; i++)
        given[i] = 1;
    gantry_graph *g = build(&x, &total);
    if (gantry_machine_virtual(&machine, PARTS, &err) || gantry_schedule_new(&schedule, g, machine, NULL, &err) ||
        gantry_run_new(&run, schedule, NULL, &err) || gantry_run_bind(run, x, given, sizeof given, &err) ||
        gantry_run_start(run, &ticket, &err) || gantry_run_wait(run, ticket, &err) ||
        gantry_run_output(run, total, &sum, &bytes, &err)) {
        char line[1024];
        gantry_error_format(&err, line, sizeof line);
        fprintf(stderr, "%s\n", line);
    } else {
        printf("sum of squares of 2 x + 1: %g\n", *(const double *)sum);
        code = *(const double *)sum == 9.0 * N ? 0 : 1;
    }
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    gantry_graph_free(g);
    return code;
}
