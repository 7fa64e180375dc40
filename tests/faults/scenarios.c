/* SPDX-License-Identifier: Apache-2.0 */
#include "scenarios.h"

#include <stdio.h>
#include <string.h>

/* A chain of calls: the first that fails ends it, and what is freed below is NULL from there on. */
#define THEN(status, call) ((status) ? (status) : (call))

/* ---- tools ---- */

void digest_bytes(attempt *a, const void *data, size_t length)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < length; i++)
        a->digest = (a->digest ^ at[i]) * UINT64_C(0x100000001b3);
}

void digest_text(attempt *a, char *text, size_t length)
{
    digest_bytes(a, text, length);
    gantry_free(text);
}

const char *path_in(const char *folder, const char *name)
{
    static char path[4][SCENARIO_PATH];
    static int next;
    char *to = path[next++ % 4];
    snprintf(to, SCENARIO_PATH, "%.300s/%.250s", folder, name);
    return to;
}

gantry_status load_graph(gantry_graph **g, attempt *a, const char *name, const char *const *params)
{
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    char graphs[SCENARIO_PATH];
    options.allow_code = 1;
    options.params = params;
    while (params && params[options.param_count])
        options.param_count++;
    snprintf(graphs, sizeof graphs, "%s/graphs", a->tree);
    return gantry_graph_load(g, path_in(params ? graphs : a->material, name), &options, &a->err);
}

static gantry_status digest_outputs(attempt *a, gantry_graph *g, gantry_run *run)
{
    gantry_status s = GANTRY_OK;
    for (uint32_t b = 0; !s && b < gantry_graph_buffer_count(g); b++) {
        gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
        gantry_buffer buffer = { .id = b };
        uint64_t hash = 0;
        s = gantry_graph_buffer_info(g, buffer, &info, &a->err);
        if (s || !info.output)
            continue;
        s = gantry_run_hash(run, buffer, &hash, &a->err);
        digest_bytes(a, &hash, sizeof hash);
    }
    return s;
}

/* Starts overlap as far as they may. */
static gantry_status start_all(attempt *a, gantry_graph *g, gantry_run *run, const course *how)
{
    uint64_t ticket[16] = { 0 };
    int behind = how->in_flight > 1 ? how->in_flight - 1 : 0;
    gantry_status s = GANTRY_OK;
    for (int i = 0; !s && i < how->starts + behind; i++) {
        s = i < how->starts ? gantry_run_start(run, &ticket[i], &a->err) : s;
        if (s || i < behind)
            continue;
        s = gantry_run_wait(run, ticket[i - behind], &a->err);
        s = THEN(s, digest_outputs(a, g, run));
    }
    return s;
}

static gantry_status look_at_times(attempt *a, gantry_run *run)
{
    gantry_machine *m = NULL;
    char *text = NULL;
    size_t length = 0;
    gantry_status s = gantry_run_trace(run, &text, &length, &a->err);
    gantry_free(text);
    s = THEN(s, gantry_run_sample(run, &a->err));
    s = THEN(s, gantry_run_calibrated(&m, run, &a->err));
    gantry_machine_free(m);
    return s;
}

static gantry_status run_schedule(attempt *a, gantry_graph *g, gantry_schedule *made, const course *how)
{
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = how->backend;
    options.check = how->check;
    options.record_trace = how->trace;
    options.allow_code = 1;
    gantry_status s = gantry_run_new(&run, made, &options, &a->err);
    s = THEN(s, start_all(a, g, run, how));
    s = s || !how->trace ? s : look_at_times(a, run);
    gantry_run_free(run);
    return s;
}

gantry_status run_graph(attempt *a, gantry_graph *g, const gantry_machine *m, const course *how)
{
    gantry_schedule *made = NULL;
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    char *text = NULL;
    size_t length = 0;
    options.policy = how->policy;
    options.replay = how->replay;
    options.objective = how->objective;
    options.in_flight = how->in_flight;
    options.max_memory = how->max_memory;
    options.effort = how->effort ? how->effort : options.effort;
    gantry_status s = gantry_schedule_new(&made, g, m, &options, &a->err);
    s = THEN(s, gantry_schedule_json(made, &text, &length, &a->err));
    digest_text(a, s ? NULL : text, s ? 0 : length);
    s = s || !how->starts ? s : run_schedule(a, g, made, how);
    gantry_schedule_free(made);
    return s;
}

/* ---- on the host ---- */

static const char *const small_saxpy[] = { "n=1003", NULL }, *const least_saxpy[] = { "n=16", "parts=1", NULL },
                         *const small_step[] = { "batch=8", "inputs=5", "hidden=4", "classes=3", NULL },
                         *const small_pipeline[] = { "batches=3", "batch=16", "stage_us=1", NULL },
                         *const small_until[] = { "n=8", "steps=40", "every=10", "parts=2", NULL };

static gantry_status run_named(attempt *a, const char *name, const char *const *params, int devices, const course *how)
{
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    gantry_status s = load_graph(&g, a, name, params);
    s = THEN(s, gantry_machine_virtual(&m, devices, &a->err));
    s = THEN(s, run_graph(a, g, m, how));
    gantry_machine_free(m);
    gantry_graph_free(g);
    return s;
}

/* Graph and machine from files, and back. */
static gantry_status load(attempt *a)
{
    gantry_graph *g = NULL;
    gantry_machine *m = NULL, *some = NULL;
    char *text = NULL;
    size_t length = 0;
    gantry_status s = load_graph(&g, a, "mlp_step.json", small_step);
    s = THEN(s, gantry_graph_json(g, &text, &length, &a->err));
    digest_text(a, text, length);
    s = THEN(s, gantry_graph_save(g, path_in(a->out, "graph.json"), &a->err));
    s = THEN(s, gantry_machine_load(&m, path_in(a->tree, "graphs/machines/h200-8.json"), &a->err));
    s = THEN(s, gantry_machine_select(&some, m, "id:0,2", &a->err));
    s = THEN(s, gantry_machine_save(some, path_in(a->out, "machine.json"), &a->err));
    gantry_machine_free(some);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return s;
}

/* By the default: all policies and the search. */
static gantry_status schedule(attempt *a)
{
    return run_named(a, "saxpy.json", least_saxpy, 2, &(course){ 0 });
}

static gantry_status spill(attempt *a)
{
    return run_named(a, "saxpy.json", small_saxpy, 2, &(course){ .effort = 1, .max_memory = "dev0=3KiB,dev1=3KiB" });
}

static gantry_status save_and_check(attempt *a)
{
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    gantry_schedule *made = NULL, *read = NULL;
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    char *text = NULL;
    size_t length = 0;
    options.policy = "heft";
    gantry_status s = load_graph(&g, a, "mlp_step.json", small_step);
    s = THEN(s, gantry_machine_virtual(&m, 2, &a->err));
    s = THEN(s, gantry_schedule_new(&made, g, m, &options, &a->err));
    s = THEN(s, gantry_schedule_save(made, path_in(a->out, "schedule.json"), &a->err));
    s = THEN(s, gantry_schedule_load(&read, path_in(a->out, "schedule.json"), &a->err));
    s = THEN(s, gantry_schedule_check(read, g, &a->err));
    s = THEN(s, gantry_schedule_explain(made, (gantry_node){ .id = 1 }, &text, &length, &a->err));
    digest_text(a, text, length);
    gantry_schedule_free(read);
    gantry_schedule_free(made);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return s;
}

static gantry_status period(attempt *a)
{
    return run_named(a, "pipeline3.json", small_pipeline, 3,
                     &(course){ .backend = "host", .objective = "period", .starts = 4, .in_flight = 2 });
}

static gantry_status phases(attempt *a)
{
    return run_named(a, "jacobi_until.json", small_until, 2,
                     &(course){ .backend = "host", .policy = "heft", .starts = 2 });
}

static gantry_status collective(attempt *a)
{
    return run_named(a, "collective.json", NULL, 2,
                     &(course){ .backend = "host", .policy = "round-robin", .starts = 2 });
}

static gantry_status checked(attempt *a)
{
    return run_named(a, "saxpy.json", small_saxpy, 2,
                     &(course){ .backend = "host", .policy = "heft", .starts = 1, .check = 1 });
}

/* Compiled, then found in the cache. */
static gantry_status user_code(attempt *a)
{
    const course how = { .backend = "host", .policy = "heft", .starts = 1 };
    gantry_status s = run_named(a, "code.json", NULL, 2, &how);
    return THEN(s, run_named(a, "code.json", NULL, 2, &how));
}

static gantry_status detect(attempt *a)
{
    gantry_machine *m = NULL;
    char *text = NULL;
    size_t length = 0;
    gantry_status s = gantry_machine_detect(&m, NULL, &a->err);
    s = THEN(s, gantry_machine_json(m, &text, &length, &a->err));
    digest_text(a, text, length);
    gantry_machine_free(m);
    return s;
}

/* ---- files in and out ---- */

static gantry_status put_outputs(attempt *a, gantry_graph *g, gantry_run *run)
{
    gantry_files *files = NULL;
    gantry_buffer y = gantry_graph_find_buffer(g, "y"), total = gantry_graph_find_buffer(g, "total");
    gantry_status s = gantry_files_new(&files, &a->err);
    s = THEN(s, gantry_run_save_with(run, y, files, path_in(a->out, "y.npy"), &a->err));
    s = THEN(s, gantry_run_save_with(run, total, files, path_in(a->out, "total.npy"), &a->err));
    s = THEN(s, gantry_files_commit(files, &a->err));
    s = THEN(s, gantry_run_save(run, y, path_in(a->out, "y.raw"), &a->err));
    gantry_files_free(files);
    return s;
}

/* Inputs and outputs are files. */
static gantry_status files(attempt *a)
{
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    gantry_schedule *made = NULL;
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_schedule_options by = GANTRY_SCHEDULE_OPTIONS_INIT;
    by.policy = "heft";
    options.backend = "host";
    gantry_status s = load_graph(&g, a, "files.json", NULL);
    s = THEN(s, gantry_machine_virtual(&m, 2, &a->err));
    s = THEN(s, gantry_schedule_new(&made, g, m, &by, &a->err));
    s = THEN(s, gantry_run_new(&run, made, &options, &a->err));
    s = THEN(s, gantry_run_bind_file(run, gantry_graph_find_buffer(g, "x"), path_in(a->material, "x.npy"), &a->err));
    s = THEN(s, start_all(a, g, run, &(course){ .starts = 1 }));
    s = THEN(s, put_outputs(a, g, run));
    gantry_run_free(run);
    gantry_schedule_free(made);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return s;
}

/* ---- pictures, and formats of others ---- */

static gantry_status draw(attempt *a, const gantry_schedule *made, gantry_files *files)
{
    static const char *const names[] = { "", "a.dot", "a.svg", "a.html", "a.json", "a.txt", "report.json" };
    gantry_status s = GANTRY_OK;
    for (int format = GANTRY_DOT; !s && format <= GANTRY_REPORT; format++) {
        char *text = NULL;
        size_t length = 0;
        s = gantry_schedule_export(made, (gantry_format)format, &text, &length, &a->err);
        s = THEN(s, gantry_files_add(files, path_in(a->out, names[format]), text, length, &a->err));
        digest_text(a, text, length);
    }
    return s;
}

static gantry_status export(attempt *a)
{
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    gantry_schedule *made = NULL;
    gantry_files *files = NULL;
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    char *text = NULL;
    size_t length = 0;
    options.policy = "heft";
    gantry_status s = load_graph(&g, a, "mlp_step.json", small_step);
    s = THEN(s, gantry_graph_export(g, GANTRY_DOT, &text, &length, &a->err));
    digest_text(a, text, length);
    s = THEN(s, gantry_machine_virtual(&m, 2, &a->err));
    s = THEN(s, gantry_schedule_new(&made, g, m, &options, &a->err));
    s = THEN(s, gantry_files_new(&files, &a->err));
    s = THEN(s, draw(a, made, files));
    s = THEN(s, gantry_files_commit(files, &a->err));
    gantry_files_free(files);
    gantry_schedule_free(made);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return s;
}

static gantry_status import_one(attempt *a, const char *format, const char *file)
{
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    gantry_import_options options = GANTRY_IMPORT_OPTIONS_INIT;
    char *text = NULL;
    size_t length = 0;
    options.devices = 2;
    gantry_status s = gantry_graph_import(&g, &m, format, path_in(a->material, file), &options, &a->err);
    s = THEN(s, gantry_graph_json(g, &text, &length, &a->err));
    digest_text(a, text, length);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return s;
}

static gantry_status import(attempt *a)
{
    gantry_status s = import_one(a, "stg", "a.stg");
    s = THEN(s, import_one(a, "wfcommons", "wfcommons.json"));
    s = THEN(s, import_one(a, "dnn", "dnn.json"));
    return THEN(s, import_one(a, "dot", "dot.json"));
}

/* ---- all ---- */

const scenario scenarios[] = {
    { "load", load, false, false },
    { "schedule", schedule, false, false },
    { "spill", spill, false, false },
    { "save", save_and_check, false, false },
    { "period", period, false, false },
    { "phases", phases, false, false },
    { "collective", collective, false, false },
    { "check", checked, false, false },
    { "files", files, false, false },
    { "export", export, false, false },
    { "import", import, false, false },
    { "detect", detect, false, true },
    { "code", user_code, false, false },
    { "gpu-detect", on_gpus_detecting, true, true },
    { "gpu", on_gpus, true, false },
    { "gpu-graph", on_gpus_by_graphs, true, false },
    { "gpu-period", on_gpus_overlapping, true, false },
    { "gpu-phases", on_gpus_in_phases, true, false },
    { "gpu-collective", on_gpus_collective, true, false },
    { "gpu-nccl", on_gpus_nccl, true, false },
    { "gpu-linalg", on_gpus_linear_algebra, true, false },
    { "gpu-times", on_gpus_traced, true, false },
    { "gpu-calibrate", on_gpus_calibrating, true, true },
    { "gpu-code", on_gpus_user_code, true, false },
    { NULL, NULL, false, false },
};
