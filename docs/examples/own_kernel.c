/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of the program with a manifest: named arguments, dtypes, cost. Then it is used, checked and costed like
 * those of the library, and a wrong call is told apart before anything runs. */
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

static gantry_status clip(const gantry_launch *l)
{
    float limit = (float)gantry_launch_arg(l, 0)->number, *y = gantry_launch_arg(l, 2)->data;
    const float *x = gantry_launch_arg(l, 1)->data;
    for (int64_t i = 0; i < gantry_launch_arg(l, 2)->rows; i++)
        y[i] = x[i] < limit ? x[i] : limit;
    return GANTRY_OK;
}

static const gantry_kernel_arg clip_args[] = {
    { .name = "limit", .scalar = 1 },
    { .name = "x", .access = GANTRY_READ, .dtypes = GANTRY_DTYPE_BIT(GANTRY_F32), .same = 'T' },
    { .name = "y", .access = GANTRY_WRITE, .dtypes = GANTRY_DTYPE_BIT(GANTRY_F32), .same = 'T' },
};
static const gantry_kernel clip_kernel = { .struct_size = sizeof(gantry_kernel),
                                           .name = "clip",
                                           .summary = "y = min(x, limit)",
                                           GANTRY_KERNEL_ARGS(clip_args),
                                           .flops = "x.size",
                                           .bytes = "x.bytes + y.bytes",
                                           .host = clip };

static gantry_graph *build(const char *argument)
{
    gantry_graph *g = gantry_graph_new("clip");
    gantry_graph_add_kernel(g, &clip_kernel);
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, ((int64_t[]){ 8 }));
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, ((int64_t[]){ 8 }));
    gantry_buffer_init_iota(g, x);
    gantry_buffer_output(g, y);
    gantry_node t = gantry_graph_kernel(g, "clip", "clip");
    gantry_node_scalar(g, t, argument, 5);
    gantry_node_arg(g, t, "x", gantry_all(x));
    gantry_node_arg(g, t, "y", gantry_all(y));
    return g;
}

/* A misspelt argument: the error names this file, the line, and the argument that was meant. */
static int mistake_is_told(void)
{
    gantry_error err;
    gantry_graph *g = build("limt");
    gantry_status status = gantry_graph_check(g, &err);
    gantry_graph_free(g);
    if (!status)
        return 0;
    char line[1024];
    gantry_error_format(&err, line, sizeof line);
    printf("%s\n", line);
    return strstr(err.file, "own_kernel.c") && strstr(err.text, "did you mean \"limit\"");
}

int main(void)
{
    gantry_error err;
    gantry_machine *machine = NULL;
    gantry_schedule *schedule = NULL;
    gantry_run *run = NULL;
    uint64_t ticket, bytes;
    const void *y = NULL;
    int code = 1;

    gantry_graph *g = build("limit");
    if (gantry_machine_virtual(&machine, 1, &err) || gantry_schedule_new(&schedule, g, machine, NULL, &err) ||
        gantry_run_new(&run, schedule, NULL, &err) || gantry_run_start(run, &ticket, &err) ||
        gantry_run_wait(run, ticket, &err) ||
        gantry_run_output(run, gantry_graph_find_buffer(g, "y"), &y, &bytes, &err)) {
        fprintf(stderr, "%s\n", err.text);
    } else {
        const float *v = y;
        printf("%g %g %g\n", (double)v[4], (double)v[5], (double)v[6]);
        code = v[4] == 4 && v[5] == 5 && v[6] == 5 && v[7] == 5 && mistake_is_told() ? 0 : 1;
    }
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    gantry_graph_free(g);
    return code;
}
