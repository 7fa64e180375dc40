/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule for a machine that is not here: how long would it take, what would move, how much memory, and a picture.
 */
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

static int show(const gantry_schedule *s, const char *policy, gantry_error *err)
{
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    if (gantry_schedule_summarize(s, &sum, err))
        return -1;
    printf("%-12s %10.1f us, at least %.1f us, %6.1f MB over links, %.1f MB at most on gpu0\n", policy, sum.makespan_us,
           sum.bound_us, (double)sum.bytes_moved / 1e6, (double)gantry_schedule_peak_bytes(s, 1) / 1e6);
    return sum.makespan_us >= sum.bound_us ? 0 : -1;
}

int main(void)
{
    gantry_error err = { GANTRY_OK, 0, 0, 0, 0, { 0 }, "", "", "" };
    gantry_graph *g = NULL;
    gantry_machine *machine = NULL;
    gantry_schedule *schedule = NULL;
    char *picture = NULL;
    size_t length = 0;
    int code = 1;

    if (gantry_graph_load(&g, "graphs/cholesky.json", NULL, &err) ||
        gantry_machine_load(&machine, "graphs/machines/hgx-h200-8.json", &err))
        goto out;
    for (size_t i = 0; gantry_policy_name(i); i++) {
        gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
        options.policy = gantry_policy_name(i);
        gantry_schedule_free(schedule);
        schedule = NULL;
        if (gantry_schedule_new(&schedule, g, machine, &options, &err) || show(schedule, options.policy, &err))
            goto out;
    }
    if (gantry_schedule_export(schedule, GANTRY_SVG, &picture, &length, &err))
        goto out;
    code = strncmp(picture, "<svg", 4) == 0 || strncmp(picture, "<?xml", 5) == 0 ? 0 : 1;
out:
    if (err.status)
        fprintf(stderr, "%s\n", err.text);
    gantry_free(picture);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    gantry_graph_free(g);
    return code;
}
