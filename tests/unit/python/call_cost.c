/* SPDX-License-Identifier: Apache-2.0 */
/* The processor time of the thread that starts a graph with one input and one output and takes the output: ns a start,
 * the least of several rounds. What the threads of the back end do is not in it. */
#include <gantry/gantry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 8, STARTS = 500 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static gantry_status open_run(gantry_run **run, const char *backend, gantry_buffer *y, const float *input,
                              gantry_error *err)
{
    gantry_graph *g = gantry_graph_new("scaled");
    gantry_machine *machine = NULL;
    gantry_schedule *schedule = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    int64_t shape[] = { N };
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, shape);
    *y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, shape);
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    gantry_buffer_output(g, *y);
    gantry_node node = gantry_graph_map(g, NULL, "y = 2 * x + 1");
    gantry_node_arg(g, node, "x", gantry_all(x));
    gantry_node_arg(g, node, "y", gantry_all(*y));
    options.backend = backend;
    gantry_status status = gantry_machine_virtual(&machine, 1, err);
    status = status ? status : gantry_schedule_new(&schedule, g, machine, NULL, err);
    status = status ? status : gantry_run_new(run, schedule, &options, err);
    status = status ? status : gantry_run_bind(*run, x, input, N * sizeof *input, err);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    gantry_graph_free(g);
    return status;
}

static gantry_status start_once(gantry_run *run, gantry_buffer y, int simulates, float *result, gantry_error *err)
{
    uint64_t ticket, bytes;
    const void *host;
    gantry_status status = gantry_run_start(run, &ticket, err);
    status = status ? status : gantry_run_wait(run, ticket, err);
    if (status || simulates)
        return status;
    status = gantry_run_output(run, y, &host, &bytes, err);
    if (!status)
        memcpy(result, host, bytes);
    return status;
}

int main(int argc, char **argv)
{
    static float input[N], result[N];
    gantry_run *run = NULL;
    gantry_buffer y;
    gantry_error err;
    double least = 1e18;
    if (argc != 3 || open_run(&run, argv[1], &y, input, &err))
        return 1;
    for (long round = strtol(argv[2], NULL, 10); round > 0; round--) {
        double begin = now_ns();
        for (int i = 0; i < STARTS; i++)
            if (start_once(run, y, strcmp(argv[1], "sim") == 0, result, &err))
                return 1;
        double each = (now_ns() - begin) / STARTS;
        least = each < least ? each : least;
    }
    printf("%.1f\n", least);
    gantry_run_free(run);
    return 0;
}
