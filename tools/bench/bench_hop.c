/* SPDX-License-Identifier: Apache-2.0 */
/* bench hop, and graphs of tiny kernels in all ways to replay them: as streams, as a graph, by the device. */
#include "bench.h"
#include <stdio.h>
#include <string.h>

enum { SAMPLES = 21, HOPS = 200 };

typedef struct found {
    char replay[128]; /* what came of it */
    double us;        /* for a task */
} found;

static int measure(found *f, const options *o, const char *replay, const bench_replays *all)
{
    gantry_error err;
    options with = *o;
    gantry_run *run = NULL;
    gantry_schedule *schedule = NULL;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    double us[SAMPLES + 1];
    with.replay = replay;
    int code = bench_open(&run, &schedule, &with, all->graph, all->machine);
    for (int i = 0; i <= SAMPLES && !code; i++) /* the first does not count */
        code = bench_starts(run, o->series, &us[i]);
    if (!code && gantry_run_get_info(run, &info, &err))
        code = fail(&err);
    if (!code) {
        f->us = median(us + 1, SAMPLES) / (double)all->tasks;
        snprintf(f->replay, sizeof f->replay, "%s", info.replay);
    }
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    return code;
}

enum { WAYS = 3 };

static int report(const options *o, const bench_replays *all, const found *f, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        if (o->json)
            json_array_append_new(list, json_pack("{s:s, s:f}", "replay", f[i].replay, "us_per_task", f[i].us));
        else
            printf("%s on %d GPU%s, %lld on each, %s: %.4f us a %s\n", all->shape, all->gpus, all->gpus == 1 ? "" : "s",
                   (long long)all->lanes, f[i].replay, f[i].us, all->what);
    }
    if (!o->json) {
        json_decref(list);
        return EXIT_FINE;
    }
    return print_json(json_pack("{s:s, s:s, s:I, s:i, s:I, s:o}", "backend", "cuda", "shape", all->shape, "tasks",
                                (json_int_t)all->tasks, "devices", all->gpus, "lanes", (json_int_t)all->lanes, "rows",
                                list));
}

int bench_all_replays(const options *o, const bench_replays *all)
{
    static const char *const ways[WAYS] = { "stream", "graph", "device" };
    found each[WAYS];
    size_t count = 0;
    int code = EXIT_FINE;
    for (size_t i = 0; i < WAYS && !code; i++)
        if (!o->replay || strcmp(o->replay, ways[i]) == 0)
            code = measure(&each[count++], o, ways[i], all);
    return code ? code : report(o, all, each, count);
}

int bench_hop(const options *o)
{
    gantry_machine *machine = NULL;
    bench_replays all = { .shape = "hop", .what = "hop", .lanes = 1 };
    int code = bench_gpus(&machine, o, &all.gpus);
    if (code)
        return code;
    all.gpus = all.gpus > 2 ? 2 : all.gpus;
    all.machine = machine;
    all.graph = bench_hops(o->nodes ? o->nodes : HOPS, all.gpus);
    all.tasks = (int64_t)gantry_graph_node_count(all.graph);
    code = bench_all_replays(o, &all);
    gantry_graph_free(all.graph);
    gantry_machine_free(machine);
    return code;
}
