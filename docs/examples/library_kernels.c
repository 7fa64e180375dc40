/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the library, data of the program: y = 2 x + y in four parts on two virtual devices, and the sum of y. */
#include <gantry/gantry.h>
#include <stdio.h>

enum { N = 1000, PARTS = 4 };

static gantry_graph *build(gantry_buffer *x, gantry_buffer *y, gantry_buffer *total)
{
    gantry_graph *g = gantry_graph_new("saxpy");
    *x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, ((int64_t[]){ N }));
    *y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, ((int64_t[]){ N }));
    *total = gantry_graph_buffer(g, "total", GANTRY_F32, 1, ((int64_t[]){ 1 }));
    gantry_buffer_set_class(g, *x, GANTRY_INPUT);
    gantry_buffer_set_class(g, *y, GANTRY_INPUT);
    gantry_buffer_init_value(g, *total, 0);
    gantry_buffer_split(g, *x, PARTS);
    gantry_buffer_split(g, *y, PARTS);
    gantry_buffer_output(g, *y);
    gantry_buffer_output(g, *total);
    for (int i = 0; i < PARTS; i++) {
        gantry_node t = gantry_graph_kernel(g, "saxpy", "saxpy");
        gantry_node_scalar(g, t, "a", 2);
        gantry_node_arg(g, t, "x", gantry_part(*x, i));
        gantry_node_arg(g, t, "y", gantry_part(*y, i));
        t = gantry_graph_kernel(g, "sum", "reduce_sum");
        gantry_node_arg(g, t, "x", gantry_part(*y, i));
        gantry_node_arg(g, t, "out", gantry_all(*total));
    }
    return g;
}

int main(void)
{
    gantry_error err;
    gantry_machine *machine = NULL;
    gantry_schedule *schedule = NULL;
    gantry_run *run = NULL;
    gantry_buffer x, y, total;
    uint64_t ticket, bytes;
    const void *sum = NULL;
    float host_x[N], host_y[N], result[N];
    int code = 1;

    for (int i = 0; i < N; i++) {
        host_x[i] = (float)i;
        host_y[i] = 1;
    }
    gantry_graph *g = build(&x, &y, &total);
    if (gantry_machine_virtual(&machine, 2, &err) || gantry_schedule_new(&schedule, g, machine, NULL, &err) ||
        gantry_run_new(&run, schedule, NULL, &err) || gantry_run_bind(run, x, host_x, sizeof host_x, &err) ||
        gantry_run_bind(run, y, host_y, sizeof host_y, &err) ||
        gantry_run_bind_output(run, y, result, sizeof result, &err) || gantry_run_start(run, &ticket, &err) ||
        gantry_run_wait(run, ticket, &err) || gantry_run_output(run, total, &sum, &bytes, &err)) {
        char line[1024];
        gantry_error_format(&err, line, sizeof line);
        fprintf(stderr, "%s\n", line);
        goto out;
    }
    /* 2 * (0 + ... + 999) + 1000 */
    printf("y[10] = %g, sum = %g\n", (double)result[10], (double)*(const float *)sum);
    code = result[10] == 21 && *(const float *)sum == 1000000 ? 0 : 1;
out:
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    gantry_graph_free(g);
    return code;
}
