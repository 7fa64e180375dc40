/* SPDX-License-Identifier: Apache-2.0 */
/* gemm, potrf, trsm and syrk of the real gantry-cuda.so, by a cuBLAS and a cuSOLVER of the tests (column order, written
 * from the definitions) on the fake driver: numbers as on the host, failures with their names, what is said where the
 * libraries are missing. */
#include "control.h"
#include "linalg_cases.h"
#include "schedule/schedule.h"

#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const replays[] = { "stream", "graph" };

static void check_alive(void)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

/* ---- numbers ---- */

static void try_schedule(gantry_graph *g, gantry_schedule *s, const char *replay, const char *what)
{
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    for (int start = 0; start < 2; start++) {
        start_and_wait(host);
        start_and_wait(run);
        expect_near(run, host, g, what);
    }
    ck_assert_str_eq(replay_of(run), replay);
    gantry_run_free(host);
    gantry_run_free(run);
    check_alive();
}

static void try_case(gantry_graph *g, const gantry_machine *m, const char *replay, const char *what)
{
    gantry_schedule *s = make_schedule(g, m, replay, "round-robin");
    try_schedule(g, s, replay, what);
    gantry_schedule_free(s);
}

START_TEST(numbers)
{
    char what[120];
    gantry_graph *g;
    for (int i = 0; (g = linalg_case(i, what, sizeof what)); i++) {
        static const int counts[] = { 1, 2, 4 };
        fakeCudaDevices(counts[i % 3], i % 2 ? "all" : "none", 0);
        fakeCudaSeed((uint64_t)i + 1);
        gantry_machine *m = gpu_machine(counts[i % 3], false);
        try_case(g, m, replays[_i], what);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
}
END_TEST

START_TEST(cholesky)
{
    for (int gpus = 1; gpus <= 4; gpus *= 2) {
        gantry_graph *g = load_graph(&(graph_case){ "cholesky", { "n=50", "nt=5" }, 0 });
        fakeCudaDevices(gpus, "all", 0);
        gantry_machine *m = gpu_machine(gpus, false);
        for (uint64_t seed = 1; seed <= 5; seed++) {
            fakeCudaSeed(seed);
            try_case(g, m, replays[_i], "cholesky");
        }
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
}
END_TEST

/* Batches by one call each: where all products are in one, a call for a single product fails the test. */
START_TEST(batches)
{
    char what[120];
    gantry_graph *g;
    uint32_t launches, whole = 0;
    for (int i = 0; (g = batch_case(i, what, sizeof what)); i += 5) {
        int gpus = 1 + i % 2;
        fakeCudaDevices(gpus, "all", 0);
        fakeCudaSeed((uint64_t)i + 1);
        gantry_machine *m = batching_machine(gpu_machine(gpus, false));
        gantry_schedule *s = make_schedule(g, m, replays[_i], NULL);
        ck_assert_msg(count_batched(s, &launches) >= launches / 2, "%s", what);
        bool all = count_batched(s, &launches) == launches;
        if (all)
            setenv("FAKE_LINALG_FAIL", "cublasGemmEx:13", 1);
        try_schedule(g, s, replays[_i], what);
        unsetenv("FAKE_LINALG_FAIL");
        whole += all;
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    ck_assert_uint_gt(whole, 4);
}
END_TEST

/* A call for a batch that fails names the library's function and the first node. */
START_TEST(a_batch_fails)
{
    static const char *const calls[] = { "cublasGemmStridedBatchedEx", "cublasGemmBatchedEx" };
    char what[120], spec[60];
    for (int i = 0; i < 2; i++) {
        gantry_error err = { 0 };
        gantry_graph *g = batch_case(2 * i, what, sizeof what);
        fakeCudaDevices(1, "all", 0);
        gantry_machine *m = batching_machine(gpu_machine(1, false));
        gantry_schedule *s = make_schedule(g, m, replays[_i], NULL);
        gantry_run *run = open_run(s, "cuda");
        uint64_t ticket;
        snprintf(spec, sizeof spec, "%s:13", calls[i]);
        setenv("FAKE_LINALG_FAIL", spec, 1);
        gantry_status status = gantry_run_start(run, &ticket, &err);
        status = status ? status : gantry_run_wait(run, ticket, &err);
        unsetenv("FAKE_LINALG_FAIL");
        ck_assert_int_eq(status, GANTRY_E_KERNEL);
        ck_assert_msg(strstr(err.text, calls[i]) && strstr(err.text, "node \"g0\" failed"), "%s", err.text);
        gantry_run_free(run);
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    check_alive();
}
END_TEST

/* The same bits in every start, whatever order the lanes take. */
START_TEST(same_bits)
{
    gantry_graph *g = load_graph(&(graph_case){ "cholesky", { "n=40", "nt=4" }, 0 });
    results first = { .count = 0 };
    fakeCudaDevices(2, "all", 0);
    gantry_machine *m = gpu_machine(2, false);
    gantry_schedule *s = make_schedule(g, m, replays[_i], NULL);
    gantry_run *run = open_run(s, "cuda");
    for (int start = 0; start < 5; start++) {
        results got = run_results(run, g);
        first = start ? first : got;
        ck_assert(same(&got, &first));
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* Devices of the machine that are one GPU have lanes of their own, so work of the libraries overlaps there. */
START_TEST(one_gpu_as_several)
{
    gantry_graph *g = load_graph(&(graph_case){ "cholesky", { "n=50", "nt=5" }, 0 });
    fakeCudaDevices(1, "all", 0);
    gantry_machine *m = shared_machine(3, 1);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        fakeCudaSeed(seed);
        try_case(g, m, replays[_i], "cholesky");
    }
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

static const char pairs[] =
    "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f64\",\"shape\":[20,20],\"init\":{\"spd\":{\"seed\":1}},\"output\":"
    "true},"
    "\"y\":{\"dtype\":\"f64\",\"shape\":[20,20],\"init\":{\"spd\":{\"seed\":2}},\"output\":true},"
    "\"z\":{\"dtype\":\"f64\",\"shape\":[20,20],\"init\":1},\"v\":{\"dtype\":\"f64\",\"shape\":[20,20],\"output\":true}"
    ","
    "\"w\":{\"dtype\":\"f64\",\"shape\":[20,20],\"output\":true}},\"nodes\":["
    "{\"id\":\"p\",\"kernel\":\"potrf\",\"args\":{\"a\":\"x\"}},{\"id\":\"q\",\"kernel\":\"potrf\",\"args\":{\"a\":"
    "\"y\"}},"
    "{\"id\":\"g\",\"kernel\":\"gemm\",\"args\":{\"a\":\"z\",\"b\":\"z\",\"c\":\"v\"}},"
    "{\"id\":\"h\",\"kernel\":\"gemm\",\"args\":{\"a\":\"z\",\"b\":\"z\",\"c\":\"w\"}}]}";

/* A schedule that computes in two lanes of a device: every second launch goes to a lane that had copies only. */
START_TEST(two_lanes)
{
    gantry_graph *g = NULL;
    fakeCudaDevices(1, "all", 0);
    MUST(gantry_graph_parse(&g, pairs, strlen(pairs), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, replays[_i], NULL);
    int launches = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (op->kind == GY_OP_LAUNCH && launches++ % 2)
            s->op_lane.at[op->lane] = (uint32_t)s->lanes.count - 1;
    }
    ck_assert_int_eq(launches, 4);
    ck_assert_uint_gt(s->lanes.count, 1);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        fakeCudaSeed(seed);
        try_schedule(g, s, replays[_i], "two lanes");
    }
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- the first calls ---- */

static void begin_loads(const char *generation)
{
    setenv("FAKE_LINALG_LOADS", generation, 1);
}

/* Calls that load code until the run is open, and until its second start has ended. */
static void count_loads(gantry_schedule *s, int *opened, int *ended)
{
    int before = fakeCudaCalls("load by a library"), kernels = fakeCudaCalls("kernel");
    gantry_run *run = open_run(s, "cuda");
    *opened = fakeCudaCalls("load by a library") - before;
    ck_assert_int_eq(fakeCudaCalls("kernel"), kernels); /* nothing ran: memory may hold what another run put there */
    start_and_wait(run);
    start_and_wait(run);
    *ended = fakeCudaCalls("load by a library") - before;
    gantry_run_free(run);
}

/* The code of libraries is loaded when a run is opened; where that is switched off, by its starts. As many loads. */
START_TEST(code_is_loaded_at_open)
{
    for (int gpus = 1; gpus <= 2; gpus++) {
        int opened, ended, late, all;
        gantry_graph *g = load_graph(&(graph_case){ "cholesky", { "n=50", "nt=5" }, 0 });
        fakeCudaDevices(gpus, "all", 0);
        gantry_machine *m = gpu_machine(gpus, false);
        gantry_schedule *s = make_schedule(g, m, replays[_i], "round-robin");
        begin_loads(gpus == 1 ? "1" : "3");
        count_loads(s, &opened, &ended);
        begin_loads(gpus == 1 ? "2" : "4");
        setenv("GANTRY_CUDA_WARM", "off", 1);
        count_loads(s, &late, &all);
        unsetenv("GANTRY_CUDA_WARM");
        ck_assert_int_eq(late, 0);
        ck_assert_int_ge(all, 4 * gpus); /* gemm, potrf, trsm, syrk */
        ck_assert_int_eq(ended, all);
        ck_assert_int_eq(opened, ended);
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    unsetenv("FAKE_LINALG_LOADS");
    check_alive();
}
END_TEST

/* Calls for batches load code of their own. */
START_TEST(code_of_batches_is_loaded_at_open)
{
    for (int i = 0; i < 2; i++) { /* in equal steps, and by lists */
        char what[120];
        int opened, ended;
        gantry_graph *g = batch_case(2 * i, what, sizeof what);
        fakeCudaDevices(1, "all", 0);
        gantry_machine *m = batching_machine(gpu_machine(1, false));
        gantry_schedule *s = make_schedule(g, m, replays[_i], NULL);
        begin_loads(i ? "6" : "5");
        count_loads(s, &opened, &ended);
        ck_assert_int_gt(ended, 0);
        ck_assert_int_eq(opened, ended);
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    unsetenv("FAKE_LINALG_LOADS");
    check_alive();
}
END_TEST

/* ---- not positive definite ---- */

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
} world;

static world make_world(const char *text, int gpus, const char *replay)
{
    world w = { 0 };
    MUST(gantry_graph_parse(&w.g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    w.m = gpu_machine(gpus, false);
    w.s = make_schedule(w.g, w.m, replay, "round-robin");
    return w;
}

static void free_world(world *w)
{
    check_alive();
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
}

/* The node and the order of the minor, as on the host; then the run goes on. */
START_TEST(not_positive_definite)
{
    fakeCudaDevices(1, "all", 0);
    world w = make_world(one_root, 1, replays[_i]);
    gantry_run *host = open_run(w.s, "host"), *run = open_run(w.s, "cuda");
    expect_pivots(run, host);
    gantry_run_free(host);
    gantry_run_free(run);
    free_world(&w);
}
END_TEST

/* A start that fails is not made good by the next one, which is in flight and writes that all is well. */
START_TEST(not_positive_definite_in_flight)
{
    enum { FLIGHT = 3 };
    static double a[FLIGHT][ROOT_N * ROOT_N], root[FLIGHT][ROOT_N * ROOT_N];
    fakeCudaDevices(1, "all", 0);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world w = make_world(one_root, 1, "stream");
        gantry_schedule_free(w.s);
        gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
        options.objective = "period";
        options.in_flight = FLIGHT;
        MUST(gantry_schedule_new(&w.s, w.g, w.m, &options, MUST_ERR));
        gantry_run *run = open_run(w.s, "cuda");
        fakeCudaSeed(seed);
        for (int bad = 0; bad < FLIGHT; bad++) {
            uint64_t ticket[FLIGHT];
            gantry_error err = { 0 };
            for (int i = 0; i < FLIGHT; i++) {
                fill_root(a[i], i == bad ? 4 : 0);
                MUST(gantry_run_bind(run, (gantry_buffer){ 0 }, a[i], sizeof a[i], MUST_ERR));
                MUST(gantry_run_bind_output(run, (gantry_buffer){ 0 }, root[i], sizeof root[i], MUST_ERR));
                MUST(gantry_run_start(run, &ticket[i], MUST_ERR));
            }
            for (int i = 0; i < FLIGHT; i++) { /* those behind a failure fail with it */
                gantry_status status = gantry_run_wait(run, ticket[i], &err);
                ck_assert_msg(status == (i < bad ? GANTRY_OK : GANTRY_E_KERNEL), "seed %d, start %d, bad %d: %d",
                              (int)seed, i, bad, (int)status);
                ck_assert_int_eq(err.native, i < bad ? 0 : 4);
            }
        }
        gantry_run_free(run);
        free_world(&w);
    }
}
END_TEST

/* ---- failures ---- */

/* Open, start, wait; the first status that is no success. Nothing may be left behind. */
static gantry_status attempt(const world *w, gantry_error *err)
{
    gantry_run *run = NULL;
    uint64_t ticket = 0;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    gantry_status status = gantry_run_new(&run, w->s, &options, err);
    status = status ? status : gantry_run_start(run, &ticket, err);
    status = status ? status : gantry_run_wait(run, ticket, err);
    gantry_run_free(run);
    check_alive();
    return status;
}

static const char one_of_each[] =
    "{\"gantry\":1,\"buffers\":{\"s\":{\"dtype\":\"%s\",\"shape\":[6,6],\"init\":{\"spd\":{\"seed\":1}},\"output\":"
    "true},"
    "\"b\":{\"dtype\":\"%s\",\"shape\":[4,6],\"init\":1,\"output\":true},\"c\":{\"dtype\":\"%s\",\"shape\":[6,6],"
    "\"output\":"
    "true},\"d\":{\"dtype\":\"%s\",\"shape\":[6,6],\"init\":1,\"output\":true}},\"nodes\":["
    "{\"id\":\"p\",\"kernel\":\"potrf\",\"args\":{\"a\":\"s\"}},"
    "{\"id\":\"t\",\"kernel\":\"trsm\",\"args\":{\"a\":\"s\",\"b\":\"b\"}},"
    "{\"id\":\"g\",\"kernel\":\"gemm\",\"args\":{\"ta\":1,\"a\":\"b\",\"b\":\"b\",\"c\":\"c\"}},"
    "{\"id\":\"k\",\"kernel\":\"syrk\",\"args\":{\"a\":\"s\",\"c\":\"d\"}}]}";

static world make_each(const char *dtype, const char *replay)
{
    char text[sizeof one_of_each + 40];
    snprintf(text, sizeof text, one_of_each, dtype, dtype, dtype, dtype);
    return make_world(text, 1, replay);
}

static const struct call {
    const char *dtype, *spec, *told, *where;
} bad_calls[] = {
    { "f32", "cublasCreate:3",
      "cublasCreate of libcublas.so.13 returned CUBLAS_STATUS_ALLOC_FAILED (3); the driver is for CUDA 13.0, and",
      " could not be opened on device \"gpu0\": " },
    { "f32", "cublasSetMathMode:1", "cublasSetMathMode of libcublas.so.13 returned CUBLAS_STATUS_NOT_INITIALIZED (1)",
      " could not be opened on device \"gpu0\": " },
    { "f64", "cublasSetStream:8", "cublasSetStream of libcublas.so.13 returned CUBLAS_STATUS_ARCH_MISMATCH (8)",
      "node \"" },
    { "f64", "cublasSetWorkspace:7", "cublasSetWorkspace of libcublas.so.13 returned CUBLAS_STATUS_INVALID_VALUE (7)",
      "node \"" },
    { "f64", "cublasGemmEx:15", "cublasGemmEx of libcublas.so.13 returned CUBLAS_STATUS_NOT_SUPPORTED (15)",
      "node \"g\" failed on device \"gpu0\": " },
    { "f32", "cublasStrsm:14", "cublasStrsm of libcublas.so.13 returned CUBLAS_STATUS_INTERNAL_ERROR (14)",
      "node \"t\" failed" },
    { "f64", "cublasDtrsm:13", "cublasDtrsm of libcublas.so.13 returned CUBLAS_STATUS_EXECUTION_FAILED (13)",
      "node \"t\" failed" },
    { "f32", "cublasSsyrk:77", "cublasSsyrk of libcublas.so.13 returned a status without a name (77)",
      "node \"k\" failed" },
    { "f64", "cublasDsyrk:11", "cublasDsyrk of libcublas.so.13 returned CUBLAS_STATUS_MAPPING_ERROR (11)",
      "node \"k\" failed" },
    { "f64", "cusolverDnCreate:2",
      "cusolverDnCreate of libcusolver.so.12 returned CUSOLVER_STATUS_ALLOC_FAILED (2); the driver is for CUDA "
      "13.0, and",
      "node \"p\" cannot run on device \"gpu0\": " },
    { "f64", "cusolverDnSetStream:1",
      "cusolverDnSetStream of libcusolver.so.12 returned CUSOLVER_STATUS_NOT_INITIALIZED (1)", "node \"p\"" },
    { "f32", "cusolverDnSpotrf_bufferSize:3",
      "cusolverDnSpotrf_bufferSize of libcusolver.so.12 returned CUSOLVER_STATUS_INVALID_VALUE (3)", "node \"p\"" },
    { "f64", "cusolverDnDpotrf_bufferSize:7",
      "cusolverDnDpotrf_bufferSize of libcusolver.so.12 returned CUSOLVER_STATUS_INTERNAL_ERROR (7)", "node \"p\"" },
    { "f32", "cusolverDnSpotrf:6",
      "cusolverDnSpotrf of libcusolver.so.12 returned CUSOLVER_STATUS_EXECUTION_FAILED (6)", "node \"p\" failed" },
    { "f64", "cusolverDnDpotrf:9", "cusolverDnDpotrf of libcusolver.so.12 returned CUSOLVER_STATUS_NOT_SUPPORTED (9)",
      "node \"p\" failed" },
};

/* Every function of the libraries that is called fails; its name and that of the status are told, with the node or the
 * kernel. Then it works again. */
START_TEST(calls_fail)
{
    setenv("FAKE_CUDA_VERSION", "13000", 1);
    fakeCudaDevices(1, "all", 0);
    for (size_t i = 0; i < sizeof bad_calls / sizeof *bad_calls; i++) {
        gantry_error err = { 0 };
        world w = make_each(bad_calls[i].dtype, replays[_i]);
        setenv("FAKE_LINALG_FAIL", bad_calls[i].spec, 1);
        gantry_status status = attempt(&w, &err);
        ck_assert_msg(status == GANTRY_E_DEVICE || status == GANTRY_E_KERNEL, "%s: %d", bad_calls[i].spec, (int)status);
        ck_assert_msg(strstr(err.text, bad_calls[i].told) && strstr(err.text, bad_calls[i].where), "%s", err.text);
        ck_assert_int_eq(err.device, 0);
        unsetenv("FAKE_LINALG_FAIL");
        MUST(attempt(&w, MUST_ERR));
        free_world(&w);
    }
}
END_TEST

/* The same of systems and transforms. */
static const char systems[] =
    "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":[6,6],\"init\":{\"spd\":{\"seed\":1}},\"output\":"
    "true},\"p\":{\"dtype\":\"i32\",\"shape\":[6],\"output\":true},\"b\":{\"dtype\":\"%s\",\"shape\":[6,5],"
    "\"init\":\"iota\",\"output\":true},\"x\":{\"dtype\":\"%s\",\"shape\":[3,10,2],\"init\":{\"random\":{\"seed\":1}}},"
    "\"m\":{\"dtype\":\"%s\",\"shape\":[7,4],\"init\":{\"random\":{\"seed\":1}}},\"q\":{\"dtype\":\"%s\","
    "\"shape\":[7,4],\"output\":true},\"r\":{\"dtype\":\"%s\",\"shape\":[4,4],\"output\":true},"
    "\"y\":{\"dtype\":\"%s\",\"shape\":[3,10,2],\"output\":true},\"w\":{\"dtype\":\"%s\",\"shape\":[4],\"init\":1},"
    "\"h\":{\"dtype\":\"%s\",\"shape\":[7,4],\"output\":true}},\"nodes\":["
    "{\"id\":\"w\",\"kernel\":\"gemm_bias\",\"args\":{\"tb\":1,\"activation\":2,\"a\":\"m\",\"b\":\"m{0:4}\",\"bias\":"
    "\"w\",\"c\":\"h\"}},"
    "{\"id\":\"l\",\"kernel\":\"getrf\",\"args\":{\"a\":\"a\",\"pivots\":\"p\"}},"
    "{\"id\":\"v\",\"kernel\":\"getrs\",\"args\":{\"a\":\"a\",\"pivots\":\"p\",\"b\":\"b\"}},"
    "{\"id\":\"q\",\"kernel\":\"qr\",\"args\":{\"a\":\"m\",\"q\":\"q\",\"r\":\"r\"}},"
    "{\"id\":\"f\",\"kernel\":\"fft\",\"args\":{\"inverse\":1,\"x\":\"x\",\"y\":\"y\"}}]}";

#define LT(name, status, text)                                                                                         \
    {                                                                                                                  \
        "f32", #name ":" #status, #name " of libcublasLt.so.13 returned CUBLAS_STATUS_" text " (" #status ")",         \
            "node \"w\" failed"                                                                                        \
    }
static const struct call bad_systems[] = {
    { "f32", "cublasLtCreate:3",
      "cublasLtCreate of libcublasLt.so.13 returned CUBLAS_STATUS_ALLOC_FAILED (3); the driver is for CUDA 13.0, and",
      " could not be opened on device \"gpu0\": " },
    LT(cublasLtMatmulDescCreate, 3, "ALLOC_FAILED"),
    LT(cublasLtMatmulDescSetAttribute, 7, "INVALID_VALUE"),
    LT(cublasLtMatrixLayoutCreate, 3, "ALLOC_FAILED"),
    LT(cublasLtMatmulPreferenceCreate, 3, "ALLOC_FAILED"),
    LT(cublasLtMatmulPreferenceSetAttribute, 7, "INVALID_VALUE"),
    LT(cublasLtMatmulAlgoGetHeuristic, 14, "INTERNAL_ERROR"),
    LT(cublasLtMatmul, 13, "EXECUTION_FAILED"),
    { "f64", "cublasGemmEx:13", "cublasGemmEx of libcublas.so.13 returned CUBLAS_STATUS_EXECUTION_FAILED (13)",
      "node \"w\" failed" },
    { "f32", "cusolverDnSgetrf_bufferSize:3",
      "cusolverDnSgetrf_bufferSize of libcusolver.so.12 returned CUSOLVER_STATUS_INVALID_VALUE (3)", "node \"l\"" },
    { "f64", "cusolverDnDgetrf_bufferSize:7",
      "cusolverDnDgetrf_bufferSize of libcusolver.so.12 returned CUSOLVER_STATUS_INTERNAL_ERROR (7)", "node \"l\"" },
    { "f32", "cusolverDnSgetrf:6",
      "cusolverDnSgetrf of libcusolver.so.12 returned CUSOLVER_STATUS_EXECUTION_FAILED (6)", "node \"l\" failed" },
    { "f64", "cusolverDnDgetrf:9", "cusolverDnDgetrf of libcusolver.so.12 returned CUSOLVER_STATUS_NOT_SUPPORTED (9)",
      "node \"l\" failed" },
    { "f32", "cusolverDnSgeqrf_bufferSize:3",
      "cusolverDnSgeqrf_bufferSize of libcusolver.so.12 returned CUSOLVER_STATUS_INVALID_VALUE (3)", "node \"q\"" },
    { "f64", "cusolverDnDgeqrf_bufferSize:3", "cusolverDnDgeqrf_bufferSize of libcusolver.so.12 returned ",
      "node \"q\"" },
    { "f32", "cusolverDnSorgqr_bufferSize:7", "cusolverDnSorgqr_bufferSize of libcusolver.so.12 returned ",
      "node \"q\"" },
    { "f64", "cusolverDnDorgqr_bufferSize:7", "cusolverDnDorgqr_bufferSize of libcusolver.so.12 returned ",
      "node \"q\"" },
    { "f32", "cusolverDnSgeqrf:6",
      "cusolverDnSgeqrf of libcusolver.so.12 returned CUSOLVER_STATUS_EXECUTION_FAILED (6)", "node \"q\" failed" },
    { "f64", "cusolverDnDgeqrf:6", "cusolverDnDgeqrf of libcusolver.so.12 returned ", "node \"q\" failed" },
    { "f32", "cusolverDnSorgqr:6", "cusolverDnSorgqr of libcusolver.so.12 returned ", "node \"q\" failed" },
    { "f64", "cusolverDnDorgqr:6", "cusolverDnDorgqr of libcusolver.so.12 returned ", "node \"q\" failed" },
    { "f32", "cublasStrsm:14", "cublasStrsm of libcublas.so.13 returned CUBLAS_STATUS_INTERNAL_ERROR (14)",
      "node \"v\" failed" },
    { "f64", "cublasDtrsm:13", "cublasDtrsm of libcublas.so.13 returned CUBLAS_STATUS_EXECUTION_FAILED (13)",
      "node \"v\" failed" },
    { "f32", "cufftCreate:2",
      "cufftCreate of libcufft.so.12 returned CUFFT_ALLOC_FAILED (2); the driver is for CUDA 13.0",
      "node \"f\" cannot run on device \"gpu0\": " },
    { "f32", "cufftSetAutoAllocation:1", "cufftSetAutoAllocation of libcufft.so.12 returned CUFFT_INVALID_PLAN (1)",
      "node \"f\"" },
    { "f64", "cufftMakePlanMany64:8",
      "cufftMakePlanMany64 of libcufft.so.12 returned CUFFT_INVALID_SIZE (8) for 3 transforms of 10 numbers",
      "node \"f\"" },
    { "f64", "cufftSetStream:5", "cufftSetStream of libcufft.so.12 returned CUFFT_INTERNAL_ERROR (5)",
      "node \"f\" failed" },
    { "f64", "cufftSetWorkArea:4", "cufftSetWorkArea of libcufft.so.12 returned CUFFT_INVALID_VALUE (4)",
      "node \"f\" failed" },
    { "f32", "cufftExecC2C:6", "cufftExecC2C of libcufft.so.12 returned CUFFT_EXEC_FAILED (6)", "node \"f\" failed" },
    { "f64", "cufftExecZ2Z:77", "cufftExecZ2Z of libcufft.so.12 returned a status without a name (77)",
      "node \"f\" failed" },
};

START_TEST(calls_for_systems_fail)
{
    setenv("FAKE_CUDA_VERSION", "13000", 1);
    fakeCudaDevices(1, "all", 0);
    for (size_t i = 0; i < sizeof bad_systems / sizeof *bad_systems; i++) {
        const struct call *c = &bad_systems[i];
        gantry_error err = { 0 };
        char text[sizeof systems + 40];
        snprintf(text, sizeof text, systems, c->dtype, c->dtype, c->dtype, c->dtype, c->dtype, c->dtype, c->dtype,
                 c->dtype, c->dtype);
        world w = make_world(text, 1, replays[_i]);
        setenv("FAKE_LINALG_FAIL", c->spec, 1);
        gantry_status status = attempt(&w, &err);
        ck_assert_msg(status == GANTRY_E_DEVICE || status == GANTRY_E_KERNEL, "%s: %d", c->spec, (int)status);
        ck_assert_msg(strstr(err.text, c->told) && strstr(err.text, c->where), "%s: %s", c->spec, err.text);
        unsetenv("FAKE_LINALG_FAIL");
        MUST(attempt(&w, MUST_ERR));
        free_world(&w);
    }
}
END_TEST

/* A minor that is singular, and a pivot that is no row. */
START_TEST(systems_without_solution)
{
    static const char *const texts[] = {
        "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f64\",\"shape\":[40,40],\"init\":1},\"p\":{\"dtype\":\"i32\","
        "\"shape\":"
        "[40],\"output\":true}},\"nodes\":[{\"id\":\"l\",\"kernel\":\"getrf\",\"args\":{\"a\":\"a\",\"pivots\":\"p\"}}]"
        "}",
        "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f64\",\"shape\":[4,4],\"init\":1},\"p\":{\"dtype\":\"i32\","
        "\"shape\":"
        "[4],\"init\":{\"iota\":{\"start\":3}}},\"b\":{\"dtype\":\"f64\",\"shape\":[4],\"init\":1,\"output\":true}},"
        "\"nodes\":[{\"id\":\"l\",\"kernel\":\"getrs\",\"args\":{\"a\":\"a\",\"pivots\":\"p\",\"b\":\"b\"}}]}"
    };
    static const char *const told[] = { "left 2 in the status word", "left 3 in the status word" };
    fakeCudaDevices(1, "all", 0);
    world w = make_world(texts[_i / 2], 1, replays[_i % 2]);
    for (int libraries = 1; libraries >= 0; libraries--) {
        gantry_error err = { 0 };
        if (!libraries)
            setenv("GANTRY_CUDA_LIBRARIES", GANTRY_ABSENT, 1);
        ck_assert_int_eq(attempt(&w, &err), GANTRY_E_KERNEL);
        ck_assert_msg(strstr(err.text, told[_i / 2]) && strstr(err.text, "node \"l\" failed"), "%s", err.text);
    }
    free_world(&w);
}
END_TEST

/* Any call of the driver that fails meanwhile is none of the run's business. */
START_TEST(loading_fails)
{
    static const char *const calls[] = { "cuStreamBeginCapture:1:900", "cuStreamEndCapture:1:901",
                                         "cuGraphInstantiateWithFlags:1:2", "cuGraphExecDestroy:1:999",
                                         "cuGraphDestroy:1:999" };
    fakeCudaDevices(1, "all", 0);
    world w = make_each("f64", "stream");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char name[40];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(calls[i], ":"), calls[i]);
        int before = fakeCudaCalls(name);
        fakeCudaFail(calls[i]);
        MUST(attempt(&w, MUST_ERR));
        ck_assert_int_gt(fakeCudaCalls(name), before);
        fakeCudaFail(NULL);
    }
    free_world(&w);
}
END_TEST

/* No memory for the n-th thing, until there are no more; then no launch. */
START_TEST(driver_fails)
{
    static const struct {
        const char *name;
        int code;
    } calls[] = { { "cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY }, { "cuLaunchKernel", CUDA_ERROR_LAUNCH_FAILED } };
    fakeCudaDevices(1, "all", 0);
    world w = make_each("f64", replays[_i]);
    for (size_t c = 0; c < 2; c++) {
        int errors = 0;
        for (int n = 1;; n++) {
            char spec[60];
            gantry_error err = { 0 };
            int before = fakeCudaCalls(calls[c].name);
            snprintf(spec, sizeof spec, "%s:%d:%d", calls[c].name, n, calls[c].code);
            fakeCudaFail(spec);
            gantry_status status = attempt(&w, &err);
            bool reached = fakeCudaCalls(calls[c].name) - before >= n;
            fakeCudaFail(NULL);
            if (!reached) {
                ck_assert_int_eq(status, GANTRY_OK);
                break;
            }
            errors += status != GANTRY_OK;
            ck_assert_msg(status == GANTRY_OK || err.text[0], "%s: no text", spec);
        }
        ck_assert_int_ge(errors, c == 0 ? 6 : _i == 0 ? 4 : 0); /* a capture that fails is not the end */
    }
    free_world(&w);
}
END_TEST

/* Workspaces are memory of the GPU like any other. */
START_TEST(no_room_for_workspaces)
{
    gantry_error err = { 0 };
    setenv("FAKE_CUDA_CAPABILITY", "90", 1);
    fakeCudaDevices(1, "all", UINT64_C(16) << 20);
    world w = make_each("f64", "stream");
    ck_assert_int_eq(attempt(&w, &err), GANTRY_E_CAPACITY);
    ck_assert_msg(strstr(err.text, "device \"gpu0\" needs 32.0 MiB for scratch of kernels and has "), "%s", err.text);
    free_world(&w);
}
END_TEST

/* Rows that an int cannot count; said before any memory is asked for. */
START_TEST(too_many_rows)
{
    static const char rows[] = "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f16\",\"shape\":[3000000000,1]},\"b\":{"
                               "\"dtype\":\"f16\",\"shape\":[1,1]},"
                               "\"c\":{\"dtype\":\"f16\",\"shape\":[3000000000,1]}},\"nodes\":[{\"id\":\"f\",\"fill\":{"
                               "\"to\":\"a\",\"value\":1}},"
                               "{\"id\":\"h\",\"fill\":{\"to\":\"b\",\"value\":1}},"
                               "{\"id\":\"g\",\"kernel\":\"gemm\",\"args\":{\"a\":\"a\",\"b\":\"b\",\"c\":\"c\"}}]}";
    static const char large[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"9TiB\"},{\"id\":"
        "\"gpu0\",\"capacity\":\"9TiB\"}],\"devices\":[{\"id\":\"gpu0\",\"type\":\"gpu\","
        "\"memory\":\"gpu0\"}],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"bandwidth_gbs\":10}]}";
    gantry_error err = { 0 };
    world w = { 0 };
    fakeCudaDevices(1, "all", 0);
    MUST(gantry_graph_parse(&w.g, rows, strlen(rows), "text", NULL, NULL, MUST_ERR));
    MUST(gantry_machine_parse(&w.m, large, strlen(large), "text", MUST_ERR));
    w.s = make_schedule(w.g, w.m, "stream", NULL);
    ck_assert_int_eq(attempt(&w, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "node \"g\" cannot run on device \"gpu0\": \"a\" is 3000000000 x 1, and cuBLAS and "
                                   "cuSOLVER go to 2147483647; split it"),
                  "%s", err.text);
    free_world(&w);
}
END_TEST

/* ---- measured ---- */

static size_t points_of(json_t *document, const char *kernel)
{
    size_t i;
    json_t *table;
    json_array_foreach(json_object_get(document, "kernels"), i, table)
    {
        if (strcmp(json_string_value(json_object_get(table, "kernel")), kernel) == 0)
            return json_array_size(json_object_get(table, "points"));
    }
    return 0;
}

/* But of f8, whose products cuBLASLt makes one after the other, in a batch, too. */
static void check_none_is_batched(json_t *document)
{
    size_t i;
    json_t *table;
    json_array_foreach(json_object_get(document, "kernels"), i, table)
    {
        char *text = json_dumps(table, JSON_COMPACT);
        bool is_f8 = strcmp(json_string_value(json_object_get(table, "dtype")), "f8e4m3") == 0;
        ck_assert_msg(is_f8 || !json_object_get(table, "batched"), "%s", text);
        free(text);
    }
}

/* Kernels are called by other code to be measured, and want their scratch there, too. The library refuses batches:
 * products are measured alone. */
START_TEST(calibrates_without_batches)
{
    static const char *const kernels[] = { "gemm", "potrf", "syrk", "trsm" };
    gantry_machine *m = NULL;
    char *text = NULL;
    size_t length = 0;
    gantry_calibrate_options options = GANTRY_CALIBRATE_OPTIONS_INIT;
    options.seconds = 0.001;
    fakeCudaDevices(1, "all", UINT64_C(10) << 20); /* 8 MiB to measure with, and room for the libraries */
    setenv("FAKE_LINALG_FAIL", "cublasGemmStridedBatchedEx:15", 1);
    MUST(gantry_machine_calibrate(&m, NULL, &options, MUST_ERR));
    unsetenv("FAKE_LINALG_FAIL");
    MUST(gantry_machine_json(m, &text, &length, MUST_ERR));
    json_t *document = json_loadb(text, length, 0, NULL);
    check_none_is_batched(document);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        ck_assert_msg(SLOW || points_of(document, kernels[i]) > 0, "%s was not measured", kernels[i]);
    json_decref(document);
    gantry_free(text);
    gantry_machine_free(m);
    check_alive();
}
END_TEST

enum { WITHOUT = 3 }; /* each is a calibration, which takes half a minute and more here */
/* Each failure costs the kernels it concerns, and nothing else. */
START_TEST(calibrates_without)
{
    static const struct {
        const char *spec, *without, *with, *told;
    } cases[] = {
        { "cublasCreate:3", "gemm", "potrf", "cublasCreate of libcublas.so.13 returned CUBLAS_STATUS_ALLOC_FAILED" },
        { "cusolverDnCreate:2", "potrf", "gemm", "cusolverDnCreate of libcusolver.so.12 returned " },
        { "cublasGemmEx:15", "gemm", "trsm", "kernel \"gemm\" cannot be launched on device \"gpu0\": cublasGemmEx of" },
    };
    gantry_machine *m = NULL;
    char *text = NULL;
    size_t length = 0;
    gantry_calibrate_options options = GANTRY_CALIBRATE_OPTIONS_INIT;
    options.seconds = 0.001;
    setenv("FAKE_CUDA_VERSION", "13000", 1);
    fakeCudaDevices(1, "all", UINT64_C(10) << 20);
    setenv("FAKE_LINALG_FAIL", cases[_i].spec, 1);
    MUST(gantry_machine_calibrate(&m, NULL, &options, MUST_ERR));
    unsetenv("FAKE_LINALG_FAIL");
    MUST(gantry_machine_json(m, &text, &length, MUST_ERR));
    json_t *document = json_loadb(text, length, 0, NULL), *note;
    bool told = false;
    size_t k;
    json_array_foreach(json_object_get(document, "notes"), k, note)
    {
        const char *is = json_string_value(note);
        told = told || (strncmp(is, "not measured: kernel \"", 22) == 0 && strstr(is, cases[_i].told) != NULL);
    }
    ck_assert_msg(told, "%s: %s", cases[_i].spec, text);
    ck_assert_uint_eq(points_of(document, cases[_i].without), 0);
    ck_assert_msg(SLOW || points_of(document, cases[_i].with) > 0, "%s: no %s", cases[_i].spec, cases[_i].with);
    ck_assert(SLOW || points_of(document, "copy") > 0);
    json_decref(document);
    gantry_free(text);
    gantry_machine_free(m);
    check_alive();
}
END_TEST

/* ---- libraries that are not there ---- */

static char *description(void)
{
    char *text = NULL;
    size_t i = 0;
    while (strcmp(gantry_backend_name(i), "cuda") != 0)
        i++;
    MUST(gantry_backend_describe(i, &text, MUST_ERR));
    return text;
}

static void expect_line(const char *line)
{
    char *text = description();
    ck_assert_msg(strstr(text, line), "no \"%s\" in:\n%s", line, text);
    gantry_free(text);
}

START_TEST(versions_are_told)
{
    expect_line("\ncuBLAS: libcublas.so.13, version 13.97.5\n");
    expect_line("\ncuSOLVER: libcusolver.so.12, version 12.96.4\n");
    expect_line("\ncuFFT: libcufft.so.12, version 12.0.0\n");
}
END_TEST

/* Without libraries the kernels of this project do it; they need the emulator here. */
static void expect_plain(const char *dtype)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    if (!getenv("FAKE_CUDA_KERNELS"))
        return;
    fakeCudaDevices(1, "all", 0);
    world w = make_each(dtype, "stream");
    gantry_run *run = open_run(w.s, "auto");
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    ck_assert_str_eq(info.backend, "cuda");
    gantry_run_free(run);
    try_schedule(w.g, w.s, "stream", "plain");
    free_world(&w);
}

/* A driver for CUDA 11 cannot run what the folder has. */
START_TEST(no_library)
{
    void *blas = dlopen("libcublas.so.11", RTLD_NOW), *solver = dlopen("libcusolver.so.11", RTLD_NOW);
    if (blas || solver) {
        printf("skipped: this computer has libraries of CUDA 11\n");
        return;
    }
    setenv("FAKE_CUDA_VERSION", "11040", 1);
    expect_line("\ncuBLAS: libcublas.so.11 was not found (libcublas.so.11: cannot open shared object file");
    expect_line("); name its folder in GANTRY_CUDA_LIBRARIES if it is somewhere else; gemm, gemm_batched, gemm_bias, "
                "getrs, syrk "
                "and trsm run as plain "
                "kernels, which are slower\n");
    expect_line("\ncuSOLVER: libcusolver.so.11 was not found ");
    expect_line("; getrf, potrf and qr run as plain kernels, which are slower\n");
    expect_plain("f32");
    expect_plain("f64");
}
END_TEST

/* Libraries of these names without functions. */
START_TEST(no_functions)
{
    setenv("GANTRY_CUDA_LIBRARIES", GANTRY_ABSENT, 1);
    expect_line("\ncuBLAS: libcublas.so.13 has no function cublasCreate_v2: it is too old; ");
    expect_line("\ncuSOLVER: libcusolver.so.12 has no function cusolverGetProperty: it is too old; ");
    expect_plain("f32");
    expect_plain("f64");
}
END_TEST

/* Those of a toolkit have all functions; no driver is needed to see that. */
START_TEST(real_libraries)
{
    setenv("GANTRY_CUDA_LIBRARIES", GANTRY_TOOLKIT, 1);
    char *text = description();
    if (!strstr(text, "\ncuBLAS: libcublas.so.") || strstr(text, "cuBLAS: libcublas.so.13 was not found")) {
        printf("skipped: no cuBLAS in %s\n", GANTRY_TOOLKIT);
    } else {
        ck_assert_msg(!strstr(text, " has no function "), "%s", text);
        ck_assert_msg(!strstr(text, "version 13.97.5"), "%s", text);
        ck_assert_msg(strstr(text, ", version 1") && strstr(text, "\ncuSOLVER: libcusolver.so.1"), "%s", text);
        printf("%s", strstr(text, "cuBLAS: "));
    }
    gantry_free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda linalg");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    setenv("FAKE_CUDA_CAPABILITY", "80", 1); /* where workspaces are small */
    tcase_add_loop_test(tests, numbers, 0, 2);
    tcase_add_loop_test(tests, cholesky, 0, 2);
    tcase_add_loop_test(tests, one_gpu_as_several, 0, 2);
    tcase_add_loop_test(tests, two_lanes, 0, 2);
    tcase_add_loop_test(tests, same_bits, 0, 2);
    tcase_add_loop_test(tests, not_positive_definite, 0, 2);
    tcase_add_test(tests, not_positive_definite_in_flight);
    if (getenv("FAKE_CUDA_KERNELS"))
        tcase_add_loop_test(tests, systems_without_solution, 0, 4);
    tcase_add_loop_test(tests, driver_fails, 0, 2);
    tcase_add_loop_test(tests, code_is_loaded_at_open, 0, 2);
    tcase_add_test(tests, loading_fails);
    tcase_add_test(tests, no_room_for_workspaces);
    tcase_add_test(tests, too_many_rows);
    tcase_add_test(tests, versions_are_told);
    tcase_add_test(tests, no_library);
    tcase_add_test(tests, no_functions);
    tcase_add_test(tests, real_libraries);
    suite_add_tcase(suite, tests);
    TCase *measured = tcase_create("measured");
    tcase_set_timeout(measured, 60);
    if (getenv("FAKE_CUDA_KERNELS"))
        tcase_add_test(measured, calibrates_without_batches);
    suite_add_tcase(suite, measured);
    TCase *without = tcase_create("measured without");
    tcase_set_timeout(without, 60);
    tcase_set_tags(without, "long");
    if (getenv("FAKE_CUDA_KERNELS"))
        tcase_add_loop_test(without, calibrates_without, 0, WITHOUT);
    suite_add_tcase(suite, without);
    TCase *calls = tcase_create("calls");
    tcase_set_timeout(calls, 60);
    tcase_add_loop_test(calls, calls_fail, 0, 2);
    tcase_add_loop_test(calls, calls_for_systems_fail, 0, 2);
    suite_add_tcase(suite, calls);
    TCase *batched = tcase_create("batches");
    tcase_set_timeout(batched, 60);
    tcase_add_loop_test(batched, batches, 0, 2);
    tcase_add_loop_test(batched, a_batch_fails, 0, 2);
    tcase_add_loop_test(batched, code_of_batches_is_loaded_at_open, 0, 2);
    suite_add_tcase(suite, batched);
    return run_suite(suite);
}
