/* SPDX-License-Identifier: Apache-2.0 */
/* A graph from a file, memory of the program: what `gantry run` does, as a program of your own would. Run it from the
 * top folder. */
#include <gantry/gantry.h>
#include <stdio.h>

enum { N = 4096 };

int main(void)
{
    gantry_error err;
    gantry_graph *g = NULL;
    gantry_machine *machine = NULL;
    gantry_schedule *schedule = NULL;
    gantry_run *run = NULL;
    uint64_t ticket, bytes;
    const void *total = NULL;
    static float x[N], y[N];
    int code = 1;

    const char *params[] = { "n=4096", "parts=3" };
    gantry_load_options load = GANTRY_LOAD_OPTIONS_INIT;
    load.params = params;
    load.param_count = 2;
    for (int i = 0; i < N; i++)
        x[i] = y[i] = 1;
    if (gantry_graph_load(&g, "graphs/saxpy.json", &load, &err) || gantry_machine_virtual(&machine, 2, &err) ||
        gantry_schedule_new(&schedule, g, machine, NULL, &err) || gantry_run_new(&run, schedule, NULL, &err) ||
        gantry_run_bind(run, gantry_graph_find_buffer(g, "x"), x, sizeof x, &err) ||
        gantry_run_bind(run, gantry_graph_find_buffer(g, "y"), y, sizeof y, &err) ||
        gantry_run_start(run, &ticket, &err) || gantry_run_wait(run, ticket, &err) ||
        gantry_run_output(run, gantry_graph_find_buffer(g, "total"), &total, &bytes, &err)) {
        char line[1024];
        gantry_error_format(&err, line, sizeof line);
        fprintf(stderr, "%s\n", line);
    } else {
        printf("sum of 2 x + y: %g\n", (double)*(const float *)total);
        code = *(const float *)total == 3 * N ? 0 : 1;
    }
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    gantry_graph_free(g);
    return code;
}
