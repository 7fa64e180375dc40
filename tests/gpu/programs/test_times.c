/* SPDX-License-Identifier: Apache-2.0 */
/* Times of ops by CUPTI on real GPUs, in streams and in graphs: exit code 77 without a GPU or without CUPTI. The same
 * program runs on the fake driver with a fake CUPTI. */
#include "../../unit/cuda/suite.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* How far begin and end of ops that wait for each other may overlap: on one GPU what its timer resolves, between two
 * what remains when CUPTI brings their clocks together; and those of a start with our own clock. */
enum { STEPS = 8, N = 1 << 22, SAME_GPU_US = 2, OTHER_GPU_US = 50, OUR_CLOCK_US = 100 };
/* No memory has more, caches included, so nothing takes less time. */
#define MOST_GBS 40000.0

static int gpus;

typedef struct span {
    double begin_us, end_us;
} span;

/* b1 = b0, b2 = b1, ...: two on each GPU in turn. */
static gantry_graph *chain(void)
{
    gantry_graph *g = gantry_graph_new("chain");
    const int64_t n = N;
    gantry_buffer from = gantry_graph_buffer(g, "b0", GANTRY_F32, 1, &n);
    gantry_buffer_init_value(g, from, 1);
    for (int i = 0; i < STEPS; i++) {
        char name[16], where[16];
        snprintf(name, sizeof name, "b%d", i + 1);
        snprintf(where, sizeof where, "gpu%d", i / 2 % gpus);
        gantry_buffer to = gantry_graph_buffer(g, name, GANTRY_F32, 1, &n);
        name[0] = 's';
        gantry_node node = gantry_graph_kernel(g, name, "scale");
        gantry_node_scalar(g, node, "a", 1);
        gantry_node_arg(g, node, "x", gantry_all(from));
        gantry_node_arg(g, node, "y", gantry_all(to));
        gantry_node_on(g, node, where);
        from = to;
    }
    gantry_buffer_output(g, from);
    return g;
}

/* Of the kernels; all other ops are looked at as well. */
static void read_trace(const gantry_run *run, span step[STEPS])
{
    char *text = NULL;
    size_t length = 0, i;
    json_t *event;
    MUST(gantry_run_trace(run, &text, &length, MUST_ERR));
    json_t *trace = json_loadb(text, length, 0, NULL);
    ck_assert_ptr_nonnull(trace);
    gantry_free(text);
    memset(step, 0, STEPS * sizeof *step);
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        const char *name = json_string_value(json_object_get(event, "name"));
        double ts = json_number_value(json_object_get(event, "ts")), dur = 0;
        if (json_integer_value(json_object_get(event, "pid")) != 0 || !json_object_get(event, "dur"))
            continue;
        dur = json_number_value(json_object_get(event, "dur"));
        ck_assert_msg(dur > 0, "%s has no time", name);
        if (name[0] == 's' && name[1] > '0' && name[1] <= '0' + STEPS && !name[2])
            step[name[1] - '1'] = (span){ ts, ts + dur };
    }
    json_decref(trace);
}

static void expect_order(const gantry_run *run, const span *step, const char *replay)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    for (int i = 0; i < STEPS; i++) {
        double least = 2.0 * N * sizeof(float) / (MOST_GBS * 1e3), took = step[i].end_us - step[i].begin_us;
        double slack = i > 0 && (i / 2) % gpus != ((i - 1) / 2) % gpus ? OTHER_GPU_US : SAME_GPU_US;
        ck_assert_msg(took >= least, "%s: s%d took %.3f us", replay, i + 1, took);
        ck_assert_msg(i == 0 || step[i].begin_us >= step[i - 1].end_us - slack,
                      "%s: s%d begins at %.3f us, and s%d ends at %.3f us", replay, i + 1, step[i].begin_us, i,
                      step[i - 1].end_us);
    }
    ck_assert_msg(step[0].begin_us > -OUR_CLOCK_US && step[STEPS - 1].end_us < info.last_us + OUR_CLOCK_US,
                  "%s: ops from %.3f to %.3f us of a start of %.3f us", replay, step[0].begin_us,
                  step[STEPS - 1].end_us, info.last_us);
}

static gantry_run *open_recording(gantry_schedule *s)
{
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    options.record_trace = 1;
    MUST(gantry_run_new(&run, s, &options, MUST_ERR));
    return run;
}

static void run_chain(const char *replay, span step[STEPS])
{
    gantry_graph *g = chain();
    gantry_machine *m = gpu_machine(gpus, false);
    gantry_schedule *s = make_schedule(g, m, replay, "round-robin");
    gantry_run *run = open_recording(s);
    char want[40];
    snprintf(want, sizeof want, "%s; times by CUPTI", replay);
    for (int start = 0; start < 3; start++) {
        run_results(run, g);
        ck_assert_str_eq(replay_of(run), want);
        read_trace(run, step);
        expect_order(run, step, replay);
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}

START_TEST(times)
{
    span stream[STEPS], graph[STEPS];
    gpus = count_gpus() > 1 ? 2 : 1;
    run_chain("stream", stream);
    run_chain("graph", graph);
    for (int i = 0; i < STEPS; i++) {
        printf("held: s%d on gpu%d: %.3f us in a stream, %.3f us in a graph\n", i + 1, i / 2 % gpus,
               stream[i].end_us - stream[i].begin_us, graph[i].end_us - graph[i].begin_us);
    }
}
END_TEST

/* True if the back end says that CUPTI is there; a child asks: CUDA does not survive a fork. */
static bool has_cupti(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        char *text = NULL;
        size_t i = 0;
        while (gantry_backend_name(i) && strcmp(gantry_backend_name(i), "cuda") != 0)
            i++;
        bool there = gantry_backend_describe(i, &text, NULL) == GANTRY_OK && strstr(text, "CUPTI: ") &&
                     strstr(strstr(text, "CUPTI: "), "times of ops, in graphs too");
        _exit(there ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void)
{
    if (!has_gpu() || !has_cupti()) {
        printf("skipped: no GPU or no CUPTI, see \"gantry machine\"\n");
        return 77;
    }
    Suite *suite = suite_create("times");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, times);
    suite_add_tcase(suite, tests);
    setenv("CK_FORK", "yes", 1);
    return run_suite(suite);
}
