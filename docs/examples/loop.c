/* SPDX-License-Identifier: Apache-2.0 */
/* A loop inside one start, with halos: heat flows along a rod that is cut into four parts. Each step reads a row of its
 * neighbours; `carry` makes the new temperatures the old ones without copying. Compared with the same loop in plain C.
 */
#include <gantry/gantry.h>
#include <stdio.h>

enum { N = 64, PARTS = 4, STEPS = 50 };

static gantry_status step(const gantry_launch *l)
{
    const gantry_arg *old = gantry_launch_arg(l, 0), *new = gantry_launch_arg(l, 1);
    const double *from = old->data;
    double *to = new->data;
    for (int64_t row = new->first_row; row < new->first_row + new->rows; row++) {
        int64_t i = row - old->first_row;
        int inside = row > 0 && row < new->shape[0] - 1;
        to[row - new->first_row] = inside ? from[i] + 0.25 * (from[i - 1] - 2 * from[i] + from[i + 1]) : from[i];
    }
    return GANTRY_OK;
}

static gantry_graph *build(gantry_buffer *heat)
{
    gantry_graph *g = gantry_graph_new("rod");
    *heat = gantry_graph_buffer(g, "heat", GANTRY_F64, 1, ((int64_t[]){ N }));
    gantry_buffer next = gantry_graph_buffer(g, "next", GANTRY_F64, 1, ((int64_t[]){ N }));
    gantry_buffer_set_class(g, *heat, GANTRY_INPUT);
    gantry_buffer_output(g, *heat);
    gantry_buffer_split(g, *heat, PARTS);
    gantry_buffer_split(g, next, PARTS);
    gantry_graph_repeat(g, STEPS);
    gantry_graph_carry(g, *heat, next);
    for (int i = 0; i < PARTS; i++) {
        gantry_node t = gantry_graph_launch(g, "step", step, NULL);
        gantry_node_read(g, t, gantry_halo(gantry_part(*heat, i), 1, 1));
        gantry_node_write(g, t, gantry_part(next, i));
    }
    gantry_graph_repeat_end(g);
    return g;
}

static void plain_loop(double *heat)
{
    double next[N];
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < N; i++)
            next[i] = i > 0 && i < N - 1 ? heat[i] + 0.25 * (heat[i - 1] - 2 * heat[i] + heat[i + 1]) : heat[i];
        for (int i = 0; i < N; i++)
            heat[i] = next[i];
    }
}

int main(void)
{
    gantry_error err;
    gantry_machine *machine = NULL;
    gantry_schedule *schedule = NULL;
    gantry_run *run = NULL;
    gantry_buffer heat;
    uint64_t ticket;
    double start[N], result[N], expected[N];
    int code = 1;

    for (int i = 0; i < N; i++)
        start[i] = expected[i] = i == N / 3 ? 100 : 0;
    plain_loop(expected);
    gantry_graph *g = build(&heat);
    if (gantry_machine_virtual(&machine, 3, &err) || gantry_schedule_new(&schedule, g, machine, NULL, &err) ||
        gantry_run_new(&run, schedule, NULL, &err) || gantry_run_bind(run, heat, start, sizeof start, &err) ||
        gantry_run_bind_output(run, heat, result, sizeof result, &err) || gantry_run_start(run, &ticket, &err) ||
        gantry_run_wait(run, ticket, &err)) {
        char line[1024];
        gantry_error_format(&err, line, sizeof line);
        fprintf(stderr, "%s\n", line);
    } else {
        code = 0;
        for (int i = 0; i < N; i++)
            code |= result[i] != expected[i];
        printf("hottest after %d steps: %.4f\n", STEPS, result[N / 3]);
    }
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    gantry_graph_free(g);
    return code;
}
