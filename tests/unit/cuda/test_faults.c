/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of the driver fails once, at every place where it is made: the right status, native code and text, no
 * crash, nothing left behind, and the application's context current as before. */
#include "control.h"
#include "suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
    results want;
} world;

static world make_world(const char *file, int gpus, const char *replay)
{
    world w = { 0 };
    for (const graph_case *c = graph_cases; c->file; c++)
        w.g = strcmp(c->file, file) == 0 ? load_graph(c) : w.g;
    w.m = gpu_machine(gpus, false);
    w.s = make_schedule(w.g, w.m, replay, "round-robin");
    gantry_run *host = open_run(w.s, "host");
    w.want = run_results(host, w.g);
    gantry_run_free(host);
    return w;
}

static void free_world(world *w)
{
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
}

static void check_alive(const char *what)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "%s: left behind: %s", what, text);
}

/* Open, start, wait; the first status that is no success. */
static gantry_status attempt(world *w, gantry_run **run, gantry_error *err)
{
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    uint64_t ticket = 0;
    gantry_status status = gantry_run_new(run, w->s, &options, err);
    status = status ? status : gantry_run_start(*run, &ticket, err);
    return status ? status : gantry_run_wait(*run, ticket, err);
}

/* The status that the caller may see when this function fails. */
static gantry_status meaning_of(const char *name, int code)
{
    return code == CUDA_ERROR_OUT_OF_MEMORY && strcmp(name, "cuMemAlloc") == 0 ? GANTRY_E_CAPACITY
           : strcmp(name, "cuMemHostAlloc") == 0                               ? GANTRY_E_NOMEM
                                                                               : GANTRY_E_DEVICE;
}

/* Fails the n-th call for n = 1, 2, ... until there is no n-th call. Returns how often that was an error. */
static int sweep(world *w, const char *name, int code, bool tolerated)
{
    int errors = 0;
    for (int n = 1;; n++) {
        char spec[80], what[120];
        gantry_run *run = NULL;
        gantry_error err = { 0 };
        int before = fakeCudaCalls(name);
        snprintf(spec, sizeof spec, "%s:%d:%d", name, n, code);
        snprintf(what, sizeof what, "%s, replay %s", spec, gantry_schedule_policy(w->s));
        fakeCudaFail(spec);
        gantry_status status = attempt(w, &run, &err);
        bool reached = fakeCudaCalls(name) - before >= n;
        fakeCudaFail(NULL);
        if (status == GANTRY_OK) {
            results got = outputs_of(run, w->g);
            ck_assert_msg(same(&got, &w->want), "%s: other results", what);
        } else {
            errors++;
            ck_assert_msg(!tolerated, "%s: %s", what, err.text);
            ck_assert_msg(status == meaning_of(name, code), "%s: %s: %s", what, gantry_status_name(status), err.text);
            ck_assert_msg(err.native == code, "%s: native %d: %s", what, err.native, err.text);
            ck_assert_msg(strlen(err.text) > 10 && !strchr(err.text, '\n'), "%s: \"%s\"", what, err.text);
        }
        gantry_run_free(run);
        check_alive(what);
        if (!reached)
            return errors;
        ck_assert_msg(n < 5000, "%s never ends", what);
    }
}

static void sweep_all(const char *replay)
{
    static const char *const fatal[] = { "cuMemAlloc",        "cuMemHostAlloc",
                                         "cuStreamCreate",    "cuEventCreate",
                                         "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",
                                         "cuMemcpyDtoDAsync", "cuDevicePrimaryCtxRetain",
                                         "cuLaunchHostFunc",  "cuDevicePrimaryCtxGetState" };
    fakeCudaDevices(2, "all", 0);
    world w = make_world("saxpy", 2, replay);
    bool graph = replay[0] == 'g';
    int errors = 0;
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        /* Work that cannot be captured is queued on streams instead, where it succeeds. */
        bool captured = graph && (strncmp(fatal[i], "cuMemcpy", 8) == 0 || strcmp(fatal[i], "cuLaunchHostFunc") == 0);
        errors += sweep(&w, fatal[i], CUDA_ERROR_OUT_OF_MEMORY, captured);
    }
    ck_assert_int_gt(errors, graph ? 30 : 50);
    sweep(&w, "cuCtxEnablePeerAccess", CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, true);
    sweep(&w, "cuMemHostRegister", CUDA_ERROR_INVALID_VALUE, true);
    sweep(&w, "cuPointerGetAttributes", CUDA_ERROR_INVALID_VALUE, true);
    sweep(&w, "cuGetErrorName", CUDA_ERROR_INVALID_VALUE, true);
    free_world(&w);
}

START_TEST(every_call_streams)
{
    sweep_all("stream");
}
END_TEST

START_TEST(every_call_graphs)
{
    sweep_all("graph");
}
END_TEST

START_TEST(waits_and_records)
{
    fakeCudaDevices(2, "none", 0);
    world w = make_world("saxpy", 2, "stream");
    ck_assert_int_gt(sweep(&w, "cuEventRecord", CUDA_ERROR_INVALID_HANDLE, false), 10);
    ck_assert_int_gt(sweep(&w, "cuStreamWaitEvent", CUDA_ERROR_INVALID_HANDLE, false), 10);
    /* Where the driver does not know what is wrong the context may be lost, or go on with what is queued. */
    ck_assert_int_gt(sweep(&w, "cuEventRecord", CUDA_ERROR_UNKNOWN, false), 10);
    ck_assert_int_gt(sweep(&w, "cuStreamWaitEvent", CUDA_ERROR_UNKNOWN, false), 10);
    ck_assert_int_gt(sweep(&w, "cuEventQuery", CUDA_ERROR_UNKNOWN, false), 1);
    free_world(&w);
}
END_TEST

START_TEST(capture_is_refused)
{
    static const char *const calls[] = { "cuStreamBeginCapture:1:900", "cuStreamEndCapture:1:901",
                                         "cuGraphInstantiateWithFlags:1:801", "cuStreamWaitEvent:4:905" };
    fakeCudaDevices(2, "all", 0);
    world w = make_world("saxpy", 2, "graph");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        gantry_run *run = open_run(w.s, "cuda");
        fakeCudaFail(calls[i]);
        ck_assert_str_eq(replay_of(run), "graph");
        for (int start = 0; start < 2; start++) {
            results got = run_results(run, w.g);
            ck_assert_msg(same(&got, &w.want), "%s", calls[i]);
            ck_assert_str_eq(replay_of(run), "stream (capture refused)");
        }
        fakeCudaFail(NULL);
        gantry_run_free(run);
        check_alive(calls[i]);
    }
    free_world(&w);
}
END_TEST

/* A kernel that faults takes the context with it: the run ends, and says so again. */
START_TEST(lost_context)
{
    const char *replay = _i % 2 ? "graph" : "stream";
    char spec[40];
    fakeCudaDevices(2, "all", 0);
    world w = make_world("saxpy", 2, replay);
    snprintf(spec, sizeof spec, "kernel:%d:%d", 1 + _i / 2, CUDA_ERROR_ILLEGAL_ADDRESS);
    gantry_run *run = open_run(w.s, "cuda");
    gantry_error err = { 0 };
    uint64_t ticket = 0;
    fakeCudaFail(spec);
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_DEVICE);
    ck_assert_int_eq(err.native, CUDA_ERROR_ILLEGAL_ADDRESS);
    ck_assert_msg(strstr(err.text, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"), "%s", err.text);
    ck_assert_msg(strstr(err.text, _i % 2 ? "a graph of" : "is the first not known to have ended"), "%s", err.text);
    ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_DEVICE);
    ck_assert_msg(strncmp(err.text, "the run is over since an earlier failure", 40) == 0, "%s", err.text);
    gantry_run_free(run);
    check_alive(spec);
    free_world(&w);
}
END_TEST

START_TEST(too_little_memory)
{
    fakeCudaDevices(2, "all", 1000);
    world w = make_world("saxpy", 2, "stream");
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(attempt(&w, &run, &err), GANTRY_E_CAPACITY);
    ck_assert_msg(strstr(err.text, "device \"gpu0\" needs ") && strstr(err.text, " for its slab and has 1000 B free"),
                  "%s", err.text);
    ck_assert_int_eq(err.device, 0);
    check_alive("too little memory");
    free_world(&w);
}
END_TEST

START_TEST(fewer_devices)
{
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    fakeCudaDevices(1, "all", 0);
    world w = make_world("saxpy", 2, "stream");
    ck_assert_int_eq(attempt(&w, &run, &err), GANTRY_E_DEVICE);
    ck_assert_str_eq(err.text,
                     "back end \"cuda\" cannot be used: device \"gpu1\" of machine \"test\" is GPU 1, and this "
                     "computer has 1; take fewer with --devices, or a machine file of this computer");
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR)); /* auto: the host */
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    ck_assert_str_eq(info.backend, "host");
    gantry_run_free(run);
    fakeCudaDevices(2, "all", 0);
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    ck_assert_str_eq(info.backend, "cuda");
    gantry_run_free(run);
    check_alive("auto");
    free_world(&w);
}
END_TEST

/* Work that does not end: the deadline names an op; afterwards the run goes on. */
START_TEST(nothing_moves)
{
    const char *replay = _i ? "graph" : "stream";
    fakeCudaDevices(2, "all", 0);
    world w = make_world("saxpy", 2, replay);
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    uint64_t ticket = 0;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    options.deadline_us = 30000;
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    fakeCudaStall(1);
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strncmp(err.text, "the deadline of 30.000 ms passed; ", 34) == 0, "%s", err.text);
    ck_assert_msg(strstr(err.text, _i ? "a graph of" : "op "), "%s", err.text);
    ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_TIMEOUT);
    fakeCudaStall(0);
    results got = run_results(run, w.g);
    ck_assert(same(&got, &w.want));
    gantry_run_free(run);
    check_alive("after a deadline");
    free_world(&w);
}
END_TEST

/* The same by a time that nothing may move. */
START_TEST(nothing_moves_for_too_long)
{
    fakeCudaDevices(2, "all", 0);
    world w = make_world("saxpy", 2, "stream");
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    uint64_t ticket = 0;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    options.timeout_us = 200000;
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    fakeCudaStall(1);
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strstr(err.text, " s, where 0.2 s are allowed; op ") && strstr(err.text, ", on device \"") &&
                      strstr(err.text, "is the first not known to have ended; allow more with timeout_us"),
                  "%s", err.text);
    fakeCudaStall(0);
    results got = run_results(run, w.g);
    ck_assert(same(&got, &w.want));
    gantry_run_free(run);
    check_alive("after a timeout");
    free_world(&w);
}
END_TEST

/* ---- arrays that land ---- */

enum { ROWS = 64, FED = 4 };

/* Array n has 100 n + i at i. */
static gantry_status fill(void *user, uint64_t number, void *to, uint64_t bytes, gantry_error *err)
{
    (void)user, (void)err;
    for (uint64_t i = 0; i < bytes / sizeof(float); i++)
        ((float *)to)[i] = (float)(100 * number + i);
    return GANTRY_OK;
}

/* A constant x in two parts, each of which a GPU copies to y. */
static world make_fed(const char *replay, gantry_buffer *x, gantry_buffer *y)
{
    world w = { .g = gantry_graph_new("fed"), .m = gpu_machine(2, false) };
    *x = gantry_graph_buffer(w.g, "x", GANTRY_F32, 1, (int64_t[]){ ROWS });
    *y = gantry_graph_buffer(w.g, "y", GANTRY_F32, 1, (int64_t[]){ ROWS });
    gantry_buffer_set_class(w.g, *x, GANTRY_CONST);
    gantry_buffer_output(w.g, *y);
    gantry_buffer_split(w.g, *x, 2);
    gantry_buffer_split(w.g, *y, 2);
    for (int i = 0; i < 2; i++)
        gantry_graph_copy(w.g, i ? "copy1" : "copy0", gantry_part(*x, i), gantry_part(*y, i));
    MUST(gantry_graph_check(w.g, MUST_ERR));
    w.s = make_schedule(w.g, w.m, replay, "round-robin");
    return w;
}

/* Starts, of which each has the next array: all that were made have had theirs, also those that failed. Returns how
 * many failed; *landed: bytes of landings in the end. */
static int start_fed(world *w, gantry_run *run, gantry_buffer y, const char *what, uint64_t *landed)
{
    int failed = 0;
    uint64_t next = 0, ticket;
    for (int start = 0; start < FED; start++) {
        gantry_error err = { 0 };
        const void *host = NULL;
        gantry_status status = gantry_run_start(run, &ticket, &err);
        bool begun = !status;
        status = status ? status : gantry_run_wait(run, ticket, &err);
        ck_assert_msg(!status || strlen(err.text) > 10, "%s: \"%s\"", what, err.text);
        failed += status != GANTRY_OK;
        next += begun;
        if (status)
            continue;
        MUST(gantry_run_output(run, y, &host, NULL, MUST_ERR));
        for (int i = 0; i < ROWS; i++)
            ck_assert_msg(((const float *)host)[i] == (float)(100 * (next - 1) + (uint64_t)i),
                          "%s: start %d has %g at %d", what, start, (double)((const float *)host)[i], i);
    }
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    ck_assert_msg(info.landing_bytes ? !info.landing_why : info.landing_why && *info.landing_why, "%s", what);
    *landed = info.landing_bytes;
    (void)w;
    return failed;
}

/* One call of the driver fails: starts have their arrays all the same, which are put where they cannot land, or say
 * what failed. */
START_TEST(landing_fails)
{
    static const char *const calls[] = { "cuMemAlloc",        "cuMemHostAlloc",    "cuStreamCreate",
                                         "cuEventCreate",     "cuMemcpyHtoDAsync", "cuMemcpyDtoDAsync",
                                         "cuStreamWaitEvent", "cuEventRecord",     "cuCtxSetCurrent" };
    gantry_buffer x, y;
    int put = 0, failed = 0;
    fakeCudaDevices(2, "all", 0);
    world w = make_fed(_i ? "graph" : "stream", &x, &y);
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        bool reached = true;
        for (int n = 1; reached; n++) {
            char spec[80];
            uint64_t landed;
            gantry_run *run = open_run(w.s, "cuda");
            int before = fakeCudaCalls(calls[c]);
            snprintf(spec, sizeof spec, "%s:%d:%d", calls[c], n, CUDA_ERROR_INVALID_VALUE);
            fakeCudaFail(spec);
            gantry_status status = gantry_run_feed(run, x, fill, NULL, NULL);
            if (!status) {
                failed += start_fed(&w, run, y, spec, &landed);
                put += landed == 0;
                reached = fakeCudaCalls(calls[c]) - before >= n;
            }
            ck_assert_msg(reached || landed == ROWS * sizeof(float), "%s", spec);
            fakeCudaFail(NULL);
            gantry_run_free(run);
            check_alive(spec);
        }
    }
    ck_assert_int_gt(put, 5);
    ck_assert_int_gt(failed, 5);
    free_world(&w);
}
END_TEST

static void *go_on(void *data)
{
    (void)data;
    nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
    fakeCudaStall(0);
    return NULL;
}

/* A process that was stopped, and a computer that slept: work that goes on is not taken for work that hangs. */
START_TEST(clocks_leap)
{
    const char *replay = _i ? "graph" : "stream";
    fakeCudaDevices(2, "all", 0);
    world w = make_world("saxpy", 2, replay);
    gantry_run *run = NULL;
    uint64_t ticket = 0;
    pthread_t other;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    fakeCudaStall(1);
    ck_assert_int_eq(pthread_create(&other, NULL, go_on, NULL), 0);
    setenv("SURROUNDINGS_CLOCK", "forwards", 1);
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
    unsetenv("SURROUNDINGS_CLOCK");
    pthread_join(other, NULL);
    results got = run_results(run, w.g);
    ck_assert(same(&got, &w.want));
    gantry_run_free(run);
    check_alive("after leaps of the clock");
    free_world(&w);
}
END_TEST

/* The application's own use of CUDA: its context stays current, its peer access stays, ours is no error. */
START_TEST(application_uses_cuda)
{
    CUcontext own[2], now;
    CUdevice device;
    fakeCudaDevices(2, "all", 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(cuDeviceGet(&device, i), CUDA_SUCCESS);
        ck_assert_int_eq(cuDevicePrimaryCtxRetain(&own[i], device), CUDA_SUCCESS);
    }
    cuCtxSetCurrent(own[1]);
    ck_assert_int_eq(cuCtxEnablePeerAccess(own[0], 0), CUDA_SUCCESS);
    world w = make_world("reduce_sum", 2, _i ? "graph" : "stream");
    gantry_run *run = open_run(w.s, "cuda");
    for (int start = 0; start < 2; start++) {
        results got = run_results(run, w.g);
        ck_assert(same(&got, &w.want));
        cuCtxGetCurrent(&now);
        ck_assert_ptr_eq(now, own[1]);
    }
    gantry_run_free(run);
    cuCtxGetCurrent(&now);
    ck_assert_ptr_eq(now, own[1]);
    cuCtxSetCurrent(NULL);
    cuDevicePrimaryCtxRelease(0);
    cuDevicePrimaryCtxRelease(1);
    check_alive("application");
    free_world(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda faults");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, every_call_streams);
    tcase_add_test(tests, every_call_graphs);
    tcase_add_test(tests, waits_and_records);
    tcase_add_test(tests, capture_is_refused);
    tcase_add_loop_test(tests, lost_context, 0, 8);
    tcase_add_test(tests, too_little_memory);
    tcase_add_test(tests, fewer_devices);
    tcase_add_loop_test(tests, nothing_moves, 0, 2);
    tcase_add_test(tests, nothing_moves_for_too_long);
    tcase_add_loop_test(tests, clocks_leap, 0, 2);
    tcase_add_loop_test(tests, landing_fails, 0, 2);
    tcase_add_loop_test(tests, application_uses_cuda, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
