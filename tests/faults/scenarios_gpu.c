/* SPDX-License-Identifier: Apache-2.0 */
/* On two GPUs, or twice on the only one. */
#include "scenarios.h"

#include <dlfcn.h>
#include <string.h>

#define THEN(status, call) ((status) ? (status) : (call))

static const char *const saxpy[] = { "n=1003", NULL },
                         *const step[] = { "batch=8", "inputs=5", "hidden=4", "classes=3", NULL },
                         *const pipeline[] = { "batches=3", "batch=16", "stage_us=1", NULL },
                         *const until[] = { "n=8", "steps=40", "every=10", "parts=2", NULL },
                         *const matrix[] = { "n=48", "nt=3", NULL };

static gantry_status run_named(attempt *a, const char *name, const char *const *params, course how)
{
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    how.backend = "cuda";
    how.policy = how.objective ? NULL : "round-robin";
    gantry_status s = load_graph(&g, a, name, params);
    s = THEN(s, gantry_machine_load(&m, path_in(a->material, how.machine ? how.machine : "gpus.json"), &a->err));
    s = THEN(s, run_graph(a, g, m, &how));
    gantry_machine_free(m);
    gantry_graph_free(g);
    return s;
}

/* A driver that fails leaves a machine without GPUs, or without some of their figures. */
gantry_status on_gpus_detecting(attempt *a)
{
    gantry_machine *m = NULL;
    gantry_status s = gantry_machine_detect(&m, NULL, &a->err);
    gantry_machine_free(m);
    return s;
}

gantry_status on_gpus(attempt *a)
{
    return run_named(a, "saxpy.json", saxpy, (course){ .replay = "stream", .starts = 2 });
}

gantry_status on_gpus_by_graphs(attempt *a)
{
    return run_named(a, "mlp_step.json", step, (course){ .replay = "graph", .starts = 2 });
}

gantry_status on_gpus_overlapping(attempt *a)
{
    return run_named(a, "pipeline3.json", pipeline, (course){ .objective = "period", .starts = 3, .in_flight = 2 });
}

gantry_status on_gpus_in_phases(attempt *a)
{
    return run_named(a, "jacobi_until.json", until, (course){ .starts = 1 });
}

gantry_status on_gpus_collective(attempt *a)
{
    return run_named(a, "own.json", NULL, (course){ .starts = 2 });
}

gantry_status on_gpus_nccl(attempt *a)
{
    return run_named(a, "nccl.json", NULL, (course){ .machine = "gpus-nccl.json", .starts = 2 });
}

gantry_status on_gpus_linear_algebra(attempt *a)
{
    return run_named(a, "cholesky.json", matrix, (course){ .starts = 1 });
}

gantry_status on_gpus_traced(attempt *a)
{
    return run_named(a, "saxpy.json", saxpy, (course){ .starts = 2, .trace = 1 });
}

/* Figures differ each time. */
gantry_status on_gpus_calibrating(attempt *a)
{
    gantry_machine *measured = NULL;
    gantry_calibrate_options options = GANTRY_CALIBRATE_OPTIONS_INIT;
    options.seconds = 0.01;
    gantry_status s = gantry_machine_calibrate(&measured, NULL, &options, &a->err);
    gantry_machine_free(measured);
    return s;
}

/* ---- code of users ---- */

/* A fake driver runs this in place of the kernel. */
static void mix(const void *launch, void **p)
{
    (void)launch;
    float weight = *(float *)p[0], *y = *(float **)p[2];
    const float *x = *(const float **)p[1];
    for (int64_t i = 0; i < *(int64_t *)p[3]; i++)
        y[i] = weight * x[i] + y[i];
}

static void tell_fake(void)
{
    static const size_t sizes[] = { 4, 8, 8, 8 };
    void *(*function)(const char *name, void (*body)(const void *launch, void **p), const size_t *sizes, int count);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *found = driver ? dlsym(driver, "fakeCudaFunction") : NULL;
    memcpy(&function, &found, sizeof function);
    if (found)
        function("mix", mix, sizes, 4);
}

gantry_status on_gpus_user_code(attempt *a)
{
    static bool told;
    if (!told)
        tell_fake();
    told = true;
    return run_named(a, "code.json", NULL, (course){ .starts = 1 });
}
