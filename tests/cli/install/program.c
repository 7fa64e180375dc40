/* SPDX-License-Identifier: Apache-2.0 */
/* A program of somebody else, built against the installed library: 8 twos, doubled on two devices. */
#include <gantry/gantry.h>
#include <stdio.h>

static gantry_status twice(const gantry_launch *l)
{
    const float *x = l->arg[0].data;
    float *y = l->arg[1].data;
    for (int64_t i = 0; i < l->arg[1].rows; i++)
        y[i] = 2 * x[i];
    return GANTRY_OK;
}

int main(void)
{
    gantry_error err;
    gantry_machine *machine = NULL;
    gantry_schedule *schedule = NULL;
    gantry_run *run = NULL;
    uint64_t ticket;
    float in[8], out[8] = { 0 };
    int64_t shape[] = { 8 };
    gantry_graph *g = gantry_graph_new("twice");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, shape);
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, shape);
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    gantry_buffer_split(g, x, 2);
    gantry_buffer_split(g, y, 2);
    gantry_buffer_output(g, y);
    for (int i = 0; i < 2; i++) {
        gantry_node t = gantry_graph_launch(g, "twice", twice, NULL);
        gantry_node_read(g, t, gantry_part(x, i));
        gantry_node_write(g, t, gantry_part(y, i));
    }
    for (int i = 0; i < 8; i++)
        in[i] = 2;
    if (gantry_machine_virtual(&machine, 2, &err) || gantry_schedule_new(&schedule, g, machine, NULL, &err) ||
        gantry_run_new(&run, schedule, NULL, &err) || gantry_run_bind(run, x, in, sizeof in, &err) ||
        gantry_run_bind_output(run, y, out, sizeof out, &err) || gantry_run_start(run, &ticket, &err) ||
        gantry_run_wait(run, ticket, &err)) {
        char line[1024];
        gantry_error_format(&err, line, sizeof line);
        fprintf(stderr, "%s\n", line);
    }
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    gantry_graph_free(g);
    printf("gantry %s: %g %g\n", gantry_version(), (double)out[0], (double)out[7]);
    return out[0] == 4 && out[7] == 4 ? 0 : 1;
}
