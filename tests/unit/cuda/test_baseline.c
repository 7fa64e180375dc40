/* SPDX-License-Identifier: Apache-2.0 */
/* Work by hand on GPUs of the fake driver: that it is done, that what cannot be done is said, that nothing is left. */
#include "control.h"
#include "suite.h"
#include "tools/bench/baseline.h"

#include <stdio.h>
#include <string.h>

typedef struct work_case {
    const char *what, *shape;
    int gpus;
    double bytes; /* for BYTES a copy and three copies: 0: none are counted; negative: some are */
    const char *call;
    int calls; /* of it each time */
} work_case;

enum { BYTES = 65536, COPIES = 3, NODES = 24, ALL_TO_ALL = BYTES / 144 * 144 /* 16 for each of 3 x 3 */ };

/* within is timed four at a time. */
static const work_case cases[] = {
    { "peer", "chain", 2, 1.0 * BYTES *COPIES, "cuMemcpyPeerAsync", COPIES },
    { "upload", "chain", 2, 2.0 * BYTES *COPIES, "cuMemcpyHtoDAsync", 2 * COPIES },
    { "fetch", "chain", 3, 3.0 * BYTES *COPIES, "cuMemcpyDtoHAsync", 3 * COPIES },
    { "both", "chain", 2, 4.0 * BYTES *COPIES, "cuMemcpyDtoHAsync", 2 * COPIES },
    { "within", "chain", 1, 2.0 * BYTES *COPIES, "cuMemcpyDtoDAsync", 4 * COPIES },
    { "replay", "chain", 2, 0, "kernel", NODES },
    { "replay", "wide", 3, 0, "kernel", NODES },
    { "replay", "stencil", 3, 0, "kernel", NODES },
    { "replay", "tree", 2, 0, "kernel", 15 }, /* of 8 leaves: the next would have 31 tasks */
    { "replay", "random", 3, 0, "kernel", NODES },
    { "build", "wide", 2, 0, "cuGraphInstantiateWithFlags", 1 },
    { "build", "stencil", 2, 0, "cuGraphInstantiateWithFlags", 1 },
    { "nccl", "all_reduce", 2, 1.0 * BYTES *COPIES, "cuGraphLaunch", 1 },
    { "nccl", "all_to_all", 3, 1.0 * ALL_TO_ALL *COPIES, "cuGraphLaunch", 1 },
    { "nccl", "scatter", 2, 1.0 * BYTES *COPIES, "cuGraphLaunch", 1 },
    { "nccl", "gather", 2, 1.0 * BYTES *COPIES, "cuGraphLaunch", 1 },
};
enum { CASES = sizeof cases / sizeof *cases };

int fakeNcclAlive(void);

static void check_alive(const char *what)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "%s: left behind: %s", what, text);
    ck_assert_msg(fakeNcclAlive() == 0, "%s: communicators are left behind", what);
}

static baseline_options options_of(const work_case *c)
{
    baseline_options o = BASELINE_OPTIONS_INIT;
    o.shape = c->shape;
    o.bytes = strcmp(c->shape, "all_to_all") == 0 && c->gpus == 3 ? ALL_TO_ALL : BYTES;
    o.copies = COPIES;
    o.nodes = NODES;
    o.devices = c->gpus;
    if (bench_is_dag(c->shape))
        o.dag = bench_dag_of(c->shape, NODES, c->gpus, 1);
    return o;
}

static gantry_status attempt(const work_case *c, const gantry_machine *m, double *us, double *bytes, gantry_error *err)
{
    baseline *hand = NULL;
    baseline_options o = options_of(c);
    gantry_status status = baseline_open(&hand, c->what, m, &o, err);
    for (int i = 0; i < 2 && !status; i++)
        status = baseline_time(hand, us, bytes, err);
    baseline_close(hand);
    return status;
}

START_TEST(does_it)
{
    const work_case *c = &cases[_i];
    baseline *hand = NULL;
    baseline_options o = options_of(c);
    CUcontext now = NULL;
    fakeCudaDevices(4, "all", 0);
    gantry_machine *m = gpu_machine(4, false);
    MUST(baseline_open(&hand, c->what, m, &o, MUST_ERR));
    gantry_machine_free(m);
    for (int i = 0; i < 3; i++) {
        double us = -1, bytes = -1;
        int before = fakeCudaCalls(c->call);
        MUST(baseline_time(hand, &us, &bytes, MUST_ERR));
        ck_assert_int_eq(fakeCudaCalls(c->call) - before, c->calls);
        ck_assert_double_ge(us, 0);
        ck_assert_double_eq(bytes, c->bytes);
        cuCtxGetCurrent(&now);
        ck_assert_ptr_null(now);
    }
    MUST(baseline_time(hand, NULL, NULL, MUST_ERR));
    baseline_close(hand);
    check_alive(c->what);
}
END_TEST

/* Arrays of the program: what comes back lies in its place, and nothing else is touched. */
START_TEST(arrays_of_the_program)
{
    enum { ROOM = 4 * BYTES, APART = 2 * BYTES, SAME = 77 };
    baseline *hand = NULL;
    baseline_options o = BASELINE_OPTIONS_INIT;
    CUcontext context;
    void *host[2] = { NULL };
    fakeCudaDevices(2, "all", 0);
    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(cuMemHostAlloc(&host[i], ROOM, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
        memset(host[i], SAME, ROOM);
    }
    o.bytes = BYTES;
    o.devices = 2;
    o.host = host;
    o.apart = APART;
    gantry_machine *m = gpu_machine(2, false);
    MUST(baseline_open(&hand, "both", m, &o, MUST_ERR));
    MUST(baseline_time(hand, NULL, NULL, MUST_ERR));
    baseline_close(hand);
    gantry_machine_free(m);
    for (int i = 0; i < 2; i++) {
        const unsigned char *at = host[i];
        uint64_t changed = 0;
        for (uint64_t k = 0; k < ROOM; k++) {
            bool inside = k >= APART && k < APART + BYTES;
            ck_assert_msg(inside || at[k] == SAME, "byte %d", (int)k);
            changed += at[k] != SAME;
        }
        ck_assert_int_gt((int)changed, BYTES / 2);
        ck_assert_int_eq(cuMemFreeHost(host[i]), CUDA_SUCCESS);
    }
    cuCtxSetCurrent(NULL);
    cuDevicePrimaryCtxRelease(0);
    check_alive("arrays of the program");
}
END_TEST

/* Neighbours exchange rows each step but the first: 2 (lanes - 1) copies. */
START_TEST(stencil_exchanges)
{
    fakeCudaDevices(3, "all", 0);
    gantry_machine *m = gpu_machine(3, false);
    baseline *hand = NULL;
    baseline_options o = options_of(&cases[7]);
    int before = fakeCudaCalls("cuMemcpyDtoDAsync");
    MUST(baseline_open(&hand, "replay", m, &o, MUST_ERR));
    ck_assert_int_eq(fakeCudaCalls("cuMemcpyDtoDAsync") - before, (NODES / 3 - 1) * 4); /* captured once */
    MUST(baseline_time(hand, NULL, NULL, MUST_ERR));
    ck_assert_int_eq(fakeCudaCalls("cuMemcpyDtoDAsync") - before, (NODES / 3 - 1) * 4);
    baseline_close(hand);
    gantry_machine_free(m);
    check_alive("stencil");
}
END_TEST

/* Half of a tree is on each GPU, so that one row goes over. Layers bring one for each edge between two GPUs. */
START_TEST(dag_exchanges)
{
    bench_dag random = bench_dag_of("random", NODES, 3, 1);
    int between = 0;
    for (int64_t i = 0; i < NODES; i++) {
        bench_task t = bench_dag_task(&random, i);
        ck_assert(t.froms == 0 ? i < random.width : i >= random.width && t.froms <= 2);
        for (int k = 0; k < t.froms; k++) {
            ck_assert(t.from[k] / random.width == i / random.width - 1);
            between += bench_dag_task(&random, t.from[k]).device != t.device;
        }
    }
    ck_assert_int_gt(between, 0);
    fakeCudaDevices(3, "all", 0);
    gantry_machine *m = gpu_machine(3, false);
    for (int k = 0; k < 2; k++) {
        baseline *hand = NULL;
        baseline_options o = options_of(&cases[8 + k]);
        int before = fakeCudaCalls("cuMemcpyDtoDAsync");
        MUST(baseline_open(&hand, "replay", m, &o, MUST_ERR));
        ck_assert_int_eq(fakeCudaCalls("cuMemcpyDtoDAsync") - before, k ? between : 1);
        baseline_close(hand);
    }
    gantry_machine_free(m);
    check_alive("dag");
}
END_TEST

START_TEST(cannot)
{
    baseline *hand = NULL;
    gantry_error err = { 0 };
    baseline_options o = BASELINE_OPTIONS_INIT;
    fakeCudaDevices(2, "none", 0);
    gantry_machine *m = gpu_machine(2, false);
    o.bytes = BYTES;
    ck_assert_int_eq(baseline_open(&hand, "peer", m, &o, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_str_eq(err.text, "the first two GPUs have no access to each other");
    o.shape = "stencil";
    o.nodes = 10;
    ck_assert_int_eq(baseline_open(&hand, "replay", m, &o, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_int_eq(baseline_open(&hand, "dance", m, &o, &err), GANTRY_E_INVALID);
    ck_assert_msg(strstr(err.text, "\"dance\"") && strstr(err.text, "replay and build"), "%s", err.text);
    o.devices = 3;
    ck_assert_int_eq(baseline_open(&hand, "upload", m, &o, &err), GANTRY_E_DEVICE);
    ck_assert_str_eq(err.text, "machine \"test\" has 2 GPUs with memories of their own, not 3");
    baseline_close(NULL);
    gantry_machine_free(m);
    check_alive("cannot");
}
END_TEST

START_TEST(no_room)
{
    baseline *hand = NULL;
    gantry_error err = { 0 };
    baseline_options o = BASELINE_OPTIONS_INIT;
    fakeCudaDevices(1, "all", 100000);
    gantry_machine *m = gpu_machine(1, false);
    o.bytes = BYTES;
    ck_assert_int_eq(baseline_open(&hand, "within", m, &o, &err), GANTRY_E_DEVICE);
    ck_assert_int_eq(err.native, CUDA_ERROR_OUT_OF_MEMORY);
    gantry_machine_free(m);
    check_alive("no room");
}
END_TEST

/* Each call fails once, at each place. */
START_TEST(every_call)
{
    static const char *const calls[] = { "cuMemAlloc",
                                         "cuMemHostAlloc",
                                         "cuStreamCreate",
                                         "cuEventCreate",
                                         "cuEventRecord",
                                         "cuStreamWaitEvent",
                                         "cuMemcpyPeerAsync",
                                         "cuMemcpyHtoDAsync",
                                         "cuMemcpyDtoHAsync",
                                         "cuMemcpyDtoDAsync",
                                         "cuLaunchKernel",
                                         "cuStreamBeginCapture",
                                         "cuStreamEndCapture",
                                         "cuGraphInstantiateWithFlags",
                                         "cuGraphUpload",
                                         "cuGraphLaunch",
                                         "cuMemsetD8Async",
                                         "cuEventQuery",
                                         "cuStreamGetCaptureInfo",
                                         "cuStreamUpdateCaptureDependencies" };
    const work_case *c = &cases[_i];
    fakeCudaDevices(3, "all", 0);
    gantry_machine *m = gpu_machine(3, false);
    int errors = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int n = 1, reached = 1; reached; n += 1 + n / 4) {
            char spec[80];
            gantry_error err = { 0 };
            double us, bytes;
            int before = fakeCudaCalls(calls[i]);
            snprintf(spec, sizeof spec, "%s:%d:%d", calls[i], n, CUDA_ERROR_INVALID_VALUE);
            fakeCudaFail(spec);
            gantry_status status = attempt(c, m, &us, &bytes, &err);
            reached = fakeCudaCalls(calls[i]) - before >= n;
            fakeCudaFail(NULL);
            errors += status != GANTRY_OK;
            ck_assert_msg(!status || (status == GANTRY_E_DEVICE && err.text[0]), "%s, %s: %s: %s", c->what, spec,
                          gantry_status_name(status), err.text);
            check_alive(spec);
        }
    }
    ck_assert_int_gt(errors, 10);
    gantry_machine_free(m);
}
END_TEST

/* Calls of each kind: as many as ranks (or pairs of ranks) for each collective, and once before. */
START_TEST(nccl_calls)
{
    static const struct {
        const char *kind, *call;
        int each; /* for one collective of 4 ranks */
    } kinds[] = { { "all_reduce", "ncclAllReduce", 4 }, { "broadcast", "ncclBroadcast", 4 },
                  { "all_gather", "ncclAllGather", 4 }, { "reduce_scatter", "ncclReduceScatter", 4 },
                  { "all_to_all", "ncclSend", 16 },     { "all_to_all", "ncclRecv", 16 },
                  { "reduce", "ncclReduce", 4 },        { "scatter", "ncclSend", 4 },
                  { "scatter", "ncclRecv", 4 },         { "gather", "ncclSend", 4 },
                  { "gather", "ncclRecv", 4 } };
    fakeCudaDevices(4, "all", 0);
    gantry_machine *m = gpu_machine(4, false);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        work_case c = { "nccl", kinds[i].kind, 4, 0, NULL, 0 };
        double us, bytes;
        int before = fakeCudaCalls(kinds[i].call);
        MUST(attempt(&c, m, &us, &bytes, MUST_ERR));
        ck_assert_int_eq(fakeCudaCalls(kinds[i].call) - before, (COPIES + 1) * kinds[i].each);
        ck_assert_double_eq(bytes, BYTES * COPIES);
    }
    gantry_machine_free(m);
    check_alive("calls of NCCL");
}
END_TEST

START_TEST(nccl_cannot)
{
    baseline *hand = NULL;
    gantry_error err = { 0 };
    baseline_options o = BASELINE_OPTIONS_INIT;
    fakeCudaDevices(4, "all", 0);
    gantry_machine *m = gpu_machine(4, false);
    o.bytes = BYTES;
    o.shape = "all_reduces";
    ck_assert_int_eq(baseline_open(&hand, "nccl", m, &o, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "there is no collective \"all_reduces\"");
    o.shape = "all_to_all";
    o.bytes = 255; /* 16 for each of 4 x 4 */
    ck_assert_int_eq(baseline_open(&hand, "nccl", m, &o, &err), GANTRY_E_UNSUPPORTED);
    o.bytes = BYTES;
    o.devices = 1;
    ck_assert_int_eq(baseline_open(&hand, "nccl", m, &o, &err), GANTRY_E_UNSUPPORTED);
    gantry_machine_free(m);
    fakeCudaDevices(1, "all", 0);
    m = shared_machine(2, 1);
    o.devices = 2;
    ck_assert_int_eq(baseline_open(&hand, "nccl", m, &o, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "none of them twice"), "%s", err.text);
    gantry_machine_free(m);
    check_alive("NCCL cannot");
}
END_TEST

/* Each call of NCCL fails once, at each place. */
START_TEST(nccl_fails)
{
    static const char *const calls[] = {
        "ncclGetUniqueId", "ncclCommInitRankConfig", "ncclInit",   "ncclGroupStart",
        "ncclGroupEnd",    "ncclAllReduce",          "ncclLaunch", "ncclCommFinalize"
    };
    work_case c = { "nccl", "all_reduce", 3, 0, NULL, 0 };
    fakeCudaDevices(3, "all", 0);
    gantry_machine *m = gpu_machine(3, false);
    for (int n = 1, reached = 1; reached; n++) {
        char spec[80];
        gantry_error err = { 0 };
        double us, bytes;
        int before = fakeCudaCalls(calls[_i]);
        snprintf(spec, sizeof spec, "%s:%d:3", calls[_i], n);
        fakeCudaFail(spec);
        gantry_status status = attempt(&c, m, &us, &bytes, &err);
        reached = fakeCudaCalls(calls[_i]) - before >= n;
        fakeCudaFail(NULL);
        bool matters = reached && _i != 7; /* the end of what was timed */
        ck_assert_msg(!status || (status == GANTRY_E_DEVICE && strstr(err.text, "NCCL: internal error (3)")), "%s: %s",
                      spec, err.text);
        ck_assert_msg((status != GANTRY_OK) == matters || strcmp(calls[_i], "ncclGroupStart") == 0, "%s: %s", spec,
                      gantry_status_name(status)); /* of which one is for an abort */
        check_alive(spec);
    }
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("by hand");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, does_it, 0, CASES);
    tcase_add_test(tests, stencil_exchanges);
    tcase_add_test(tests, dag_exchanges);
    tcase_add_test(tests, arrays_of_the_program);
    tcase_add_test(tests, cannot);
    tcase_add_test(tests, no_room);
    tcase_add_loop_test(tests, every_call, 0, CASES);
    tcase_add_test(tests, nccl_calls);
    tcase_add_test(tests, nccl_cannot);
    tcase_add_loop_test(tests, nccl_fails, 0, 8);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
