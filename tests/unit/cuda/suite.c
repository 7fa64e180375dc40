/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const graph_case graph_cases[] = {
    { "saxpy", { "n=1003" }, 1e-6 },
    { "reduce_sum", { "n=10007" }, 0 },
    { "image_blur", { "n=7", "height=30", "width=50" }, 0.004 },
    { "pipeline3", { "batches=5", "batch=64", "stage_us=1" }, 0 },
    { "jacobi", { "n=37", "steps=9" }, 0 },
    { "jacobi_until", { "n=16", "steps=100", "every=10" }, 1e-5 },
    { "mlp_step", { "batch=24", "inputs=13", "hidden=9", "classes=5" }, 1e-5 },
    { "train_pipeline", { "n=64", "forward_us=1" }, 0 },
    { "cholesky", { "n=48", "nt=4" }, 1e-12 },
    { "jacobi_blocks", { "n=41", "a=2", "b=3", "steps=4" }, 0 },
    { "tsqr", { "parts=4", "rows=101", "n=7" }, 1e-12 },
    { "fft3d", { "n0=7", "n1=6", "n2=5", "p=3", "q=1" }, 1e-12 },
    { NULL, { NULL }, 0 },
};

gantry_graph *load_graph(const graph_case *c)
{
    char path[512];
    gantry_graph *g = NULL;
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.params = c->params;
    while (options.param_count < 6 && c->params[options.param_count])
        options.param_count++;
    const char *source = getenv("GANTRY_SOURCE"); /* of a tree that was moved after it was built */
    snprintf(path, sizeof path, "%s/graphs/%s.json", source ? source : GANTRY_SOURCE_DIR, c->file);
    MUST(gantry_graph_load(&g, path, &options, MUST_ERR));
    return g;
}

static gantry_machine *machine_of(int count, int gpus, bool mixed)
{
    char text[32768], memories[4096] = "", devices[16384] = "";
    size_t m_length = 0, d_length = 0;
    gantry_machine *m = NULL;
    for (int i = 0; i < count; i++) {
        m_length += (size_t)snprintf(memories + m_length, sizeof memories - m_length,
                                     ",{\"id\":\"gpu%d\",\"capacity\":\"256MiB\"}", i);
        d_length +=
            (size_t)snprintf(devices + d_length, sizeof devices - d_length,
                             "{\"id\":\"gpu%d\",\"type\":\"gpu\",\"memory\":\"gpu%d\",\"lanes\":3,\"copy_engines\":2,"
                             "\"gflops\":{\"f32\":10},\"bandwidth_gbs\":20,\"launch_us\":0.1,\"ordinal\":%d},",
                             i, i, i % gpus);
    }
    int length =
        snprintf(text, sizeof text,
                 "{\"gantry_machine\":1,\"name\":\"test\",\"memories\":[{\"id\":\"host\",\"capacity\":\"2GiB\"}%s],"
                 "\"devices\":[%s{\"id\":\"cpu\",\"type\":\"cpu\"%s,\"memory\":\"host\",\"gflops\":{\"f32\":9},"
                 "\"bandwidth_gbs\":19,\"launch_us\":0.1}],"
                 "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":0.2,\"bandwidth_gbs\":10}]}",
                 memories, devices, mixed ? "" : ",\"use\":\"host\"");
    ck_assert_int_lt(length, (int)sizeof text);
    MUST(gantry_machine_parse(&m, text, (size_t)length, "machine of the test", MUST_ERR));
    return m;
}

gantry_machine *gpu_machine(int gpus, bool mixed)
{
    return machine_of(gpus, gpus, mixed);
}

gantry_machine *shared_machine(int devices, int gpus)
{
    return machine_of(devices, gpus, false);
}

gantry_schedule *make_schedule(gantry_graph *g, const gantry_machine *m, const char *replay, const char *policy)
{
    gantry_schedule *s = NULL;
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    options.replay = replay;
    options.policy = policy;
    MUST(gantry_schedule_new(&s, g, m, &options, MUST_ERR));
    return s;
}

gantry_run *open_run(gantry_schedule *s, const char *backend)
{
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = backend;
    MUST(gantry_run_new(&run, s, &options, MUST_ERR));
    return run;
}

results outputs_of(gantry_run *run, const gantry_graph *g)
{
    results r = { .count = 0 };
    for (uint32_t b = 0; b < gantry_graph_buffer_count(g); b++) {
        gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
        MUST(gantry_graph_buffer_info(g, (gantry_buffer){ .id = b }, &info, MUST_ERR));
        if (info.output) {
            ck_assert_int_lt(r.count, MOST_OUTPUTS);
            MUST(gantry_run_hash(run, (gantry_buffer){ .id = b }, &r.hash[r.count], MUST_ERR));
            r.count++;
        }
    }
    return r;
}

results run_results(gantry_run *run, const gantry_graph *g)
{
    uint64_t ticket = 0;
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
    return outputs_of(run, g);
}

bool same(const results *a, const results *b)
{
    return a->count == b->count && memcmp(a->hash, b->hash, sizeof a->hash[0] * (size_t)a->count) == 0;
}

const char *replay_of(gantry_run *run)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    return info.replay;
}

bool open_cuda(gantry_run **run, gantry_schedule *s, gantry_error *why)
{
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    gantry_status status = gantry_run_new(run, s, &options, why);
    ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_UNSUPPORTED, "%s", why->text);
    return status == GANTRY_OK;
}

held_gpus hold_gpus(int gpus)
{
    char text[300];
    held_gpus h = { .machine = gpu_machine(gpus, false) };
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[%d],\"split\":%d}},\"nodes\":[{\"id\":"
             "\"f[i]\",\"for\":{\"i\":%d},\"fill\":{\"to\":\"x[i]\",\"value\":1},\"on\":\"i\"}]}",
             64 * gpus, gpus, gpus);
    MUST(gantry_graph_parse(&h.graph, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    h.schedule = make_schedule(h.graph, h.machine, "stream", "round-robin");
    h.run = open_run(h.schedule, "cuda");
    return h;
}

void let_go(held_gpus *held)
{
    gantry_run_free(held->run);
    gantry_schedule_free(held->schedule);
    gantry_machine_free(held->machine);
    gantry_graph_free(held->graph);
}

int count_gpus(void)
{
    gantry_machine *m = NULL;
    int gpus = 0;
    if (gantry_machine_detect(&m, NULL, NULL))
        return 0;
    for (size_t i = 0; i < gantry_machine_device_count(m); i++) {
        gantry_device_info info = GANTRY_DEVICE_INFO_INIT;
        gpus += gantry_machine_device(m, i, &info, NULL) == GANTRY_OK && info.gpu;
    }
    gantry_machine_free(m);
    return gpus;
}

int in_child(int (*function)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(function());
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

bool has_gpu(void)
{
    return in_child(most_gpus) > 0;
}

int most_gpus(void)
{
    int found = count_gpus();
    return found < 8 ? found : 8;
}

const char *replay_at(int k)
{
    const char *only = getenv("GANTRY_GPU_REPLAY");
    return only ? only : k ? "graph" : "stream";
}
