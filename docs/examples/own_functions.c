/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the program as nodes, and state that lives from start to start: a running mean over many steps. */
#include <gantry/gantry.h>
#include <stdio.h>

enum { N = 256, PARTS = 4, STEPS = 100 };

/* Arguments are the node's accesses, in the order in which they were added. */
static gantry_status accumulate(const gantry_launch *l)
{
    const double *sample = gantry_launch_arg(l, 0)->data;
    double *total = gantry_launch_arg(l, 1)->data;
    for (int64_t i = 0; i < gantry_launch_arg(l, 1)->rows; i++)
        total[i] += sample[i];
    return GANTRY_OK;
}

static gantry_graph *build(gantry_buffer *sample, gantry_buffer *total)
{
    gantry_graph *g = gantry_graph_new("mean");
    *sample = gantry_graph_buffer(g, "sample", GANTRY_F64, 1, ((int64_t[]){ N }));
    *total = gantry_graph_buffer(g, "total", GANTRY_F64, 1, ((int64_t[]){ N }));
    gantry_buffer_set_class(g, *sample, GANTRY_INPUT);
    gantry_buffer_set_class(g, *total, GANTRY_STATE);
    gantry_buffer_init_value(g, *total, 0);
    gantry_buffer_output(g, *total);
    gantry_buffer_split(g, *sample, PARTS);
    gantry_buffer_split(g, *total, PARTS);
    for (int i = 0; i < PARTS; i++) {
        gantry_node t = gantry_graph_launch(g, "accumulate", accumulate, NULL);
        gantry_node_read(g, t, gantry_part(*sample, i));
        gantry_node_readwrite(g, t, gantry_part(*total, i));
        gantry_node_cost(g, t, N / PARTS, 3.0 * 8 * N / PARTS);
    }
    return g;
}

int main(void)
{
    gantry_error err;
    gantry_machine *machine = NULL;
    gantry_schedule *schedule = NULL;
    gantry_run *run = NULL;
    gantry_buffer sample, total;
    uint64_t ticket, bytes;
    const void *result = NULL;
    double host[N];
    int code = 1;

    gantry_graph *g = build(&sample, &total);
    if (gantry_machine_virtual(&machine, 2, &err) || gantry_schedule_new(&schedule, g, machine, NULL, &err) ||
        gantry_run_new(&run, schedule, NULL, &err) || gantry_run_bind(run, sample, host, sizeof host, &err))
        goto failed;
    for (int step = 1; step <= STEPS; step++) { /* scheduled once, started every step */
        for (int i = 0; i < N; i++)
            host[i] = step + i;
        if (gantry_run_start(run, &ticket, &err) || gantry_run_wait(run, ticket, &err))
            goto failed;
    }
    if (gantry_run_output(run, total, &result, &bytes, &err))
        goto failed;
    /* the mean of 1 .. 100 is 50.5 */
    printf("mean of element 7: %g\n", ((const double *)result)[7] / STEPS);
    code = ((const double *)result)[7] / STEPS == 57.5 ? 0 : 1;
    goto out;
failed : {
    char line[1024];
    gantry_error_format(&err, line, sizeof line);
    fprintf(stderr, "%s\n", line);
}
out:
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    gantry_graph_free(g);
    return code;
}
