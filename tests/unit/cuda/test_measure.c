/* SPDX-License-Identifier: Apache-2.0 */
/* Calibrating on GPUs of the fake driver. What it measures means nothing there; which figures there are, that the
 * machine can be used, that nothing is left behind, hangs or crashes does. */
#include "control.h"
#include "suite.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KIB = 1024, SMALL = 300 * KIB };

static void check_alive(const char *what)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "%s: left behind: %s", what, text);
}

typedef struct watched {
    size_t calls, done, of;
    bool falls;
    char last[64];
} watched;

static void watch(void *user, const char *what, size_t done, size_t of)
{
    watched *w = user;
    w->calls++;
    w->falls = w->falls || done < w->done || (of && w->of && of != w->of) || (of && done > of);
    w->done = done;
    w->of = of;
    snprintf(w->last, sizeof w->last, "%s", what);
}

static gantry_calibrate_options quick(watched *w)
{
    gantry_calibrate_options o = GANTRY_CALIBRATE_OPTIONS_INIT;
    o.seconds = 0.05;
    o.progress = w ? watch : NULL;
    o.user = w;
    return o;
}

static json_t *document_of(const gantry_machine *m)
{
    char *text = NULL;
    size_t length = 0;
    gantry_machine *again = NULL;
    char *twice = NULL;
    MUST(gantry_machine_json(m, &text, &length, MUST_ERR));
    MUST(gantry_machine_parse(&again, text, length, "calibrated", MUST_ERR));
    MUST(gantry_machine_json(again, &twice, &length, MUST_ERR));
    ck_assert_str_eq(text, twice);
    json_t *document = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(document);
    gantry_machine_free(again);
    gantry_free(text);
    gantry_free(twice);
    return document;
}

/* Routes from one memory to another that are given by measured points. */
static int measured_routes(json_t *document)
{
    int found = 0;
    size_t i;
    json_t *route;
    json_array_foreach(json_object_get(document, "routes"), i, route)
    {
        bool within = strcmp(json_string_value(json_object_get(route, "from")),
                             json_string_value(json_object_get(route, "to"))) == 0;
        found += !within && json_object_get(route, "points") != NULL;
    }
    return found;
}

static bool has_note(json_t *document, const char *part)
{
    size_t i;
    json_t *note;
    json_array_foreach(json_object_get(document, "notes"), i, note)
    {
        if (strstr(json_string_value(note), part))
            return true;
    }
    return false;
}

/* Kernels of the library with a table, on devices of the first kind. */
static int kernels_of(json_t *document, const char *name)
{
    int found = 0;
    size_t i;
    json_t *kernel;
    json_array_foreach(json_object_get(document, "kernels"), i, kernel)
    {
        const char *is = json_string_value(json_object_get(kernel, "kernel"));
        found += is && (!name || strcmp(is, name) == 0);
    }
    return found;
}

START_TEST(counts)
{
    static const struct {
        int gpus;
        const char *peer;
        int routes;
    } cases[] = { { 1, "all", 2 },  { 2, "all", 4 + 2 }, { 4, "all", 8 + 12 },
                  { 2, "none", 4 }, { 2, "01", 4 },      { 3, "01,10,12", 6 + 2 } };
    gantry_machine *m = NULL;
    watched w = { .calls = 0 };
    CUcontext now = NULL;
    fakeCudaDevices(cases[_i].gpus, cases[_i].peer, SMALL);
    gantry_calibrate_options o = quick(&w);
    MUST(gantry_machine_calibrate(&m, NULL, &o, MUST_ERR));
    check_alive("calibrated");
    cuCtxGetCurrent(&now);
    ck_assert_ptr_null(now);
    json_t *document = document_of(m);
    ck_assert_int_eq(measured_routes(document), cases[_i].routes);
    ck_assert_msg(!w.falls && w.done == w.of && w.of > 0, "%zu of %zu", w.done, w.of);
    ck_assert_str_eq(w.last, "done");
    for (int i = 0; i < cases[_i].gpus; i++) {
        char note[40];
        gantry_device_info d = GANTRY_DEVICE_INFO_INIT;
        snprintf(note, sizeof note, "measured gpu%d: launch ", i);
        ck_assert_msg(has_note(document, note), "no \"%s\"", note);
        MUST(gantry_machine_device(m, (size_t)i, &d, MUST_ERR));
        ck_assert(d.gpu && d.launch_us > 0);
    }
    ck_assert(has_note(document, "measured copies: ") && has_note(document, "measured traffic: "));
    ck_assert_int_gt(kernels_of(document, "saxpy"), 0);
    ck_assert_int_gt(kernels_of(document, "reduce_sum"), 0);
    ck_assert_int_eq(kernels_of(document, "busy") + kernels_of(document, "fail"), 0);
    json_decref(document);
    gantry_machine_free(m);
}
END_TEST

/* Tables of the kernel that say what pieces take, and how many pairs they have. */
static int tables_of_pieces(json_t *document, const char *name, size_t *pairs)
{
    int found = 0;
    size_t i;
    json_t *kernel;
    json_array_foreach(json_object_get(document, "kernels"), i, kernel)
    {
        json_t *strided = json_object_get(kernel, "strided");
        if (strcmp(json_string_value(json_object_get(kernel, "kernel")), name) || !strided)
            continue;
        found++;
        *pairs += json_array_size(strided);
    }
    return found;
}

/* All kernels of the library can be called with what is thought up for them, but those that say nothing of a device. */
START_TEST(every_kernel)
{
    static const char *const without[] = { "attention_append", "attention_cached", "busy",
                                           "cache_append",     "embedding_grad",   "fail",
                                           "spmm_csr",         "spmv_csr" };
    gantry_machine *m = NULL;
    gantry_calibrate_options o = quick(NULL);
    fakeCudaDevices(1, "all", 2 * KIB * KIB);
    MUST(gantry_machine_calibrate(&m, NULL, &o, MUST_ERR));
    json_t *document = document_of(m);
    for (size_t i = 0; i < gantry_kernel_count(); i++) {
        const char *name = gantry_kernel_at(i)->name;
        bool passed_over = false;
        for (size_t k = 0; k < sizeof without / sizeof *without; k++)
            passed_over = passed_over || strcmp(name, without[k]) == 0;
        bool slow = (SLOW && strcmp(name, "gaussian_blur") == 0) || strncmp(name, "conv2d", 6) == 0 ||
                    strncmp(name, "attention", 9) == 0;
        if (slow && kernels_of(document, name) == 0)
            continue; /* emulated beside other load, one size may be all there is time for, and that makes no table */
        ck_assert_msg(passed_over == (kernels_of(document, name) == 0), "%s: %d tables", name,
                      kernels_of(document, name));
    }
    ck_assert_int_eq(kernels_of(document, "qr:tall"), 2); /* of f32 and f64 */
    size_t pairs = 0; /* of both kernels and six element types; of f64: 8, 32, 128, 512 and 2,048 bytes together */
    int found = tables_of_pieces(document, "halo_pack", &pairs) + tables_of_pieces(document, "halo_unpack", &pairs);
    ck_assert_msg(found == 12 && pairs > 4 * 12, "%d tables, %zu pairs", found, pairs);
    ck_assert_int_eq(tables_of_pieces(document, "copy", &pairs), 0);
    json_decref(document);
    gantry_machine_free(m);
    check_alive("every kernel");
}
END_TEST

/* Nodes with a flag, on one GPU and beside another: a chain of them is run as a graph, and without. */
START_TEST(flags)
{
    gantry_machine *m = NULL;
    gantry_calibrate_options o = quick(NULL);
    setenv("FAKE_CUDA_ONLY", "axpby", 1);
    fakeCudaDevices(1 + _i, "all", 0);
    gantry_machine *from = gpu_machine(1 + _i, false);
    fakeCudaDevices(1 + _i, "all", 2 * KIB * KIB);
    MUST(gantry_machine_calibrate(&m, from, &o, MUST_ERR));
    json_t *document = document_of(m), *model = json_object_get(document, "model");
    ck_assert_msg(json_number_value(json_object_get(model, "when_us")) > 0 &&
                      json_number_value(json_object_get(model, "left_out_us")) > 0,
                  "%s", json_dumps(json_object_get(document, "notes"), 0));
    /* Formulas get as far as code for the GPU, which nothing compiles here. */
    ck_assert(has_note(document, "not measured: formulas of f32: kernel \""));
    ck_assert(has_note(document, "not measured: formulas of f64: kernel \""));
    json_decref(document);
    gantry_machine_free(m);
    gantry_machine_free(from);
    unsetenv("FAKE_CUDA_ONLY");
    check_alive("flags");
}
END_TEST

/* A selection: the other GPU is not touched. */
START_TEST(some_devices)
{
    gantry_machine *whole = NULL, *one = NULL, *m = NULL;
    gantry_calibrate_options o = quick(NULL);
    fakeCudaDevices(2, "all", SMALL);
    MUST(gantry_machine_detect(&whole, NULL, MUST_ERR));
    MUST(gantry_machine_select(&one, whole, "id:gpu1", MUST_ERR));
    int before = fakeCudaCalls("cuDevicePrimaryCtxRetain");
    MUST(gantry_machine_calibrate(&m, one, &o, MUST_ERR));
    ck_assert_int_eq(fakeCudaCalls("cuDevicePrimaryCtxRetain") - before, 1);
    json_t *document = document_of(m);
    ck_assert_int_eq(measured_routes(document), 2);
    ck_assert(has_note(document, "measured gpu1: launch ") && !has_note(document, "measured gpu0: launch "));
    json_decref(document);
    gantry_machine_free(m);
    gantry_machine_free(one);
    gantry_machine_free(whole);
    check_alive("some devices");
}
END_TEST

/* A schedule made for it runs, and gives what the host gives. */
START_TEST(machine_is_good)
{
    gantry_machine *m = NULL;
    gantry_calibrate_options o = quick(NULL);
    fakeCudaDevices(2, "all", 0);
    gantry_machine *virtual = gpu_machine(2, false);
    fakeCudaDevices(2, "all", SMALL); /* quick */
    MUST(gantry_machine_calibrate(&m, virtual, &o, MUST_ERR));
    fakeCudaDevices(2, "all", 0);
    gantry_graph *g = load_graph(&graph_cases[0]);
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    gantry_run *host = open_run(s, "host"), *cuda = open_run(s, "cuda");
    results want = run_results(host, g), got = run_results(cuda, g);
    ck_assert(same(&want, &got));
    gantry_run_free(host);
    gantry_run_free(cuda);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
    gantry_machine_free(virtual);
    check_alive("machine is good");
}
END_TEST

/* ---- what goes wrong ---- */

/* Of each sort one: what fails does not depend on how many there are, and a calibration of all takes seconds. */
static void few_kernels(void)
{
    setenv("FAKE_CUDA_ONLY", "saxpy,reduce_sum,softmax,transpose,histogram", 1);
}

static void all_kernels(void)
{
    unsetenv("FAKE_CUDA_ONLY");
}

/* The n-th call fails, for n = 1, 2, 4, ... until there is no n-th call: the failure is told, or it does not matter
 * (`tolerated`: peer access, names), and nothing is left behind. */
static int sweep(const char *name, int code, bool tolerated)
{
    int errors = 0;
    for (int n = 1;; n += n) {
        char spec[80];
        gantry_machine *m = NULL;
        gantry_error err = { 0 };
        gantry_calibrate_options o = quick(NULL);
        o.seconds = 0.001;
        int before = fakeCudaCalls(name);
        snprintf(spec, sizeof spec, "%s:%d:%d", name, n, code);
        fakeCudaFail(spec);
        gantry_status status = gantry_machine_calibrate(&m, NULL, &o, &err);
        bool reached = fakeCudaCalls(name) - before >= n;
        fakeCudaFail(NULL);
        if (status) {
            errors++;
            ck_assert_msg(!tolerated, "%s: %s", spec, err.text);
            ck_assert_msg(status == GANTRY_E_DEVICE, "%s: %s: %s", spec, gantry_status_name(status), err.text);
            bool in_kernel = strstr(err.text, "cannot be launched"); /* kernels tell a status, no code */
            ck_assert_msg((err.native == code || in_kernel) && strlen(err.text) > 10, "%s: native %d: %s", spec,
                          err.native, err.text);
            ck_assert_ptr_null(m);
        }
        gantry_machine_free(m);
        check_alive(spec);
        if (!reached) {
            ck_assert_msg(n > 1, "%s is never called", name);
            return errors;
        }
    }
}

START_TEST(every_call)
{
    static const struct {
        const char *name;
        int least;
    } fatal[] = { { "cuDevicePrimaryCtxRetain", 2 },
                  { "cuStreamCreate", 3 },
                  { "cuEventCreate", 4 },
                  { "cuEventRecord", 8 },
                  { "cuEventQuery", 5 },
                  { "cuStreamWaitEvent", 4 },
                  { "cuMemcpyHtoDAsync", 5 },
                  { "cuMemcpyDtoHAsync", 4 },
                  { "cuMemcpyDtoDAsync", 9 },
                  { "cuLaunchKernel", 6 },
                  { "cuStreamBeginCapture", 3 },
                  { "cuStreamEndCapture", 3 },
                  { "cuGraphInstantiateWithFlags", 3 },
                  { "cuGraphLaunch", 5 },
                  { "cuEventElapsedTime", 5 } };
    fakeCudaDevices(2, "all", SMALL / 2);
    int errors = sweep(fatal[_i].name, CUDA_ERROR_INVALID_VALUE, false);
    ck_assert_msg(errors >= fatal[_i].least, "%s: %d errors", fatal[_i].name, errors);
}
END_TEST

/* Copying tells no code of the driver, but the message says which kernel it is, and where. */
START_TEST(refused_kernel)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    gantry_calibrate_options o = quick(NULL);
    static const char want[] = "kernel \"(combine)\" cannot be launched on device \"gpu";
    fakeCudaDevices(2, "all", SMALL);
    setenv("FAKE_CUDA_REFUSED", "1", 1);
    gantry_status status = gantry_machine_calibrate(&m, NULL, &o, &err);
    unsetenv("FAKE_CUDA_REFUSED");
    ck_assert_int_eq(status, GANTRY_E_DEVICE);
    ck_assert_msg(!strncmp(err.text, want, strlen(want)), "%s", err.text);
    check_alive("a refused kernel");
}
END_TEST

START_TEST(tolerated_calls)
{
    fakeCudaDevices(2, "all", SMALL);
    sweep("cuCtxEnablePeerAccess", CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, true);
    sweep("cuDeviceCanAccessPeer", CUDA_ERROR_INVALID_VALUE, true);
    sweep("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, true); /* less is allocated */
    sweep("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY, true);
}
END_TEST

/* A kernel that faults takes the context with it. */
START_TEST(lost_context)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    gantry_calibrate_options o = quick(NULL);
    char spec[40];
    fakeCudaDevices(2, "all", SMALL);
    snprintf(spec, sizeof spec, "kernel:%d:%d", 1 << (2 * _i), CUDA_ERROR_ILLEGAL_ADDRESS);
    fakeCudaFail(spec);
    ck_assert_int_eq(gantry_machine_calibrate(&m, NULL, &o, &err), GANTRY_E_DEVICE);
    ck_assert_int_eq(err.native, CUDA_ERROR_ILLEGAL_ADDRESS);
    ck_assert_msg(strstr(err.text, "device \"gpu") && strstr(err.text, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"), "%s",
                  err.text);
    fakeCudaFail(NULL);
    check_alive(spec);
}
END_TEST

START_TEST(no_memory)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    fakeCudaDevices(1, "all", 1000);
    ck_assert_int_eq(gantry_machine_calibrate(&m, NULL, NULL, &err), GANTRY_E_DEVICE);
    ck_assert_msg(
        strncmp(err.text, "allocating memory to measure with on device \"gpu0\": CUDA_ERROR_OUT_OF_MEMORY", 70) == 0,
        "%s", err.text);
    check_alive("no memory");
}
END_TEST

START_TEST(nothing_to_measure)
{
    gantry_machine *m = NULL, *cpu = NULL, *more = NULL;
    gantry_error err = { 0 };
    fakeCudaDevices(1, "all", SMALL);
    MUST(gantry_machine_virtual(&cpu, 2, MUST_ERR));
    ck_assert_int_eq(gantry_machine_calibrate(&m, cpu, NULL, &err), GANTRY_E_DEVICE);
    ck_assert_msg(strstr(err.text, " has no GPU to measure; "), "%s", err.text);
    more = gpu_machine(2, false);
    ck_assert_int_eq(gantry_machine_calibrate(&m, more, NULL, &err), GANTRY_E_DEVICE);
    ck_assert_str_eq(err.text, "device \"gpu1\" is GPU 1, and this computer has 1");
    gantry_machine_free(cpu);
    gantry_machine_free(more);
}
END_TEST

START_TEST(bad_options)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    gantry_calibrate_options o = GANTRY_CALIBRATE_OPTIONS_INIT;
    o.struct_size = 3;
    ck_assert_int_eq(gantry_machine_calibrate(&m, NULL, &o, &err), GANTRY_E_INVALID);
    o = quick(NULL);
    o.seconds = -1;
    ck_assert_int_eq(gantry_machine_calibrate(&m, NULL, &o, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "seconds of the calibrate options is -1; it is from 0 to 86400");
    o.seconds = 1;
    o.patience = 1e9;
    ck_assert_int_eq(gantry_machine_calibrate(&m, NULL, &o, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_machine_calibrate(NULL, NULL, NULL, &err), GANTRY_E_INVALID);
}
END_TEST

/* ---- devices that hang ---- */

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stall_after(void *user, const char *what, size_t done, size_t of)
{
    (void)what;
    (void)of;
    if (done == *(const size_t *)user)
        fakeCudaStall(1);
}

/* Work that hangs for good is left alone: memory that it may use cannot be freed, and the fake looks for that when it
 * is unloaded. */
START_TEST(hangs)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    gantry_calibrate_options o = GANTRY_CALIBRATE_OPTIONS_INIT;
    size_t at[] = { 1, 7, 9, 14, 40 };
    fakeCudaDevices(2, "all", SMALL);
    o.seconds = 0.05;
    o.patience = 0.2;
    o.progress = stall_after;
    o.user = &at[_i];
    double start = seconds_now();
    gantry_status status = gantry_machine_calibrate(&m, NULL, &o, &err);
    bool soon = seconds_now() - start < 8;
    bool good = status == GANTRY_E_TIMEOUT && soon && !m &&
                strstr(err.text, "\" did not end what it was given to measure within 0.2 s");
    if (!good)
        fprintf(stderr, "%s: %s, %.1f s\n", gantry_status_name(status), err.text, seconds_now() - start);
    _exit(good ? 7 : 1);
}
END_TEST

/* Half a second after whoever waits has lost his patience, which he began with when he asked for the first time. */
static void *release(void *before)
{
    while (fakeCudaCalls("cuEventQuery") == *(const int *)before)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 500000000 }, NULL);
    fakeCudaStall(0);
    return NULL;
}

/* One that goes on while the bed is closed: all is freed. */
START_TEST(hangs_for_a_while)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    gantry_calibrate_options o = GANTRY_CALIBRATE_OPTIONS_INIT;
    pthread_t thread;
    fakeCudaDevices(2, "all", SMALL / 2);
    o.seconds = 0.001;
    o.patience = 1;
    int before = fakeCudaCalls("cuEventQuery");
    fakeCudaStall(1);
    ck_assert_int_eq(pthread_create(&thread, NULL, release, &before), 0);
    ck_assert_int_eq(gantry_machine_calibrate(&m, NULL, &o, &err), GANTRY_E_TIMEOUT);
    pthread_join(thread, NULL);
    check_alive("hangs for a while");
}
END_TEST

/* ---- NVML ---- */

static gantry_machine *detect(const char *nvml)
{
    gantry_machine *m = NULL;
    setenv("FAKE_NVML", nvml, 1);
    MUST(gantry_machine_detect(&m, NULL, MUST_ERR));
    return m;
}

/* GB/s of a large copy; memories of a detected machine: host, gpu0, gpu1, ... */
static double gbs(const gantry_machine *m, size_t from, size_t to)
{
    double bytes = 1e9;
    return bytes / (gantry_machine_copy_us(m, from, to, 2000000000) - gantry_machine_copy_us(m, from, to, 1000000000)) /
           1e3;
}

/* PCI 5 x16: 63 GB/s; an H200's 18 NVLinks: 450 GB/s; at 85 %, as the notes say. */
START_TEST(links)
{
    fakeCudaDevices(4, "all", 0);
    gantry_machine *m = detect("switch");
    ck_assert_double_eq_tol(gbs(m, 0, 1), 63.0 * 0.85, 0.1);
    ck_assert_double_eq_tol(gbs(m, 1, 2), 450 * 0.85, 0.1);
    ck_assert_double_eq_tol(gbs(m, 4, 1), 450 * 0.85, 0.1);
    json_t *document = document_of(m);
    ck_assert(has_note(document, "PCI link 63.0 GB/s a direction, 18 NVLinks"));
    json_decref(document);
    gantry_machine_free(m);
    m = detect("pairs");
    ck_assert_double_eq_tol(gbs(m, 1, 2), 100 * 0.85, 0.1);
    ck_assert_double_eq_tol(gbs(m, 3, 4), 100 * 0.85, 0.1);
    ck_assert_double_eq_tol(gbs(m, 2, 3), 63.0 * 0.85, 0.1);
    gantry_machine_free(m);
    fakeCudaDevices(3, "all", 0); /* the partner of GPU 2 is another's: its links lead nowhere */
    m = detect("pairs");
    ck_assert_double_eq_tol(gbs(m, 1, 2), 100 * 0.85, 0.1);
    ck_assert_double_eq_tol(gbs(m, 3, 1), 63.0 * 0.85, 0.1);
    gantry_machine_free(m);
    m = detect("plain");
    ck_assert_double_eq_tol(gbs(m, 1, 2), 63.0 * 0.85, 0.1);
    gantry_machine_free(m);
    unsetenv("FAKE_NVML");
    MUST(gantry_machine_detect(&m, NULL, MUST_ERR));
    ck_assert_double_eq_tol(gbs(m, 0, 1), 12, 0.1);
    gantry_machine_free(m);
}
END_TEST

/* Figures hold where driver and devices are what they were. */
START_TEST(fingerprint)
{
    gantry_machine *m = NULL, *here = NULL;
    char *text = NULL;
    gantry_calibrate_options o = quick(NULL);
    fakeCudaDevices(2, "all", SMALL);
    setenv("FAKE_NVML", "switch", 1);
    MUST(gantry_machine_calibrate(&m, NULL, &o, MUST_ERR));
    MUST(gantry_machine_detect(&here, NULL, MUST_ERR));
    MUST(gantry_machine_stale(m, here, &text, MUST_ERR));
    ck_assert_msg(!text, "%s", text);
    gantry_machine_free(here);
    fakeCudaDevices(1, "all", SMALL);
    MUST(gantry_machine_detect(&here, NULL, MUST_ERR));
    MUST(gantry_machine_stale(m, here, &text, MUST_ERR));
    ck_assert_ptr_nonnull(text);
    ck_assert_msg(strstr(text, "GPUs"), "%s", text);
    gantry_free(text);
    gantry_machine_free(here);
    json_t *document = document_of(m);
    char *all = json_dumps(document, JSON_COMPACT);
    ck_assert_msg(strstr(all, "580.65.06") && strstr(all, "1980 MHz at most"), "%s", all);
    free(all);
    json_decref(document);
    gantry_machine_free(m);
}
END_TEST

START_TEST(described)
{
    char *text = NULL;
    fakeCudaDevices(1, "all", 0);
    MUST(gantry_backend_describe(0, &text, MUST_ERR));
    ck_assert_msg(strstr(text, "NVML: libnvidia-ml.so.1 cannot be initialised (9)"), "%s", text);
    gantry_free(text);
    setenv("FAKE_NVML", "switch", 1);
    MUST(gantry_backend_describe(0, &text, MUST_ERR));
    ck_assert_msg(strstr(text, "NVML: libnvidia-ml.so.1 of driver 580.65.06\n"), "%s", text);
    ck_assert_msg(strstr(text, ", PCI link of 63.0 GB/s, 18 NVLinks of together 450 GB/s\n"), "%s", text);
    gantry_free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("measuring");
    TCase *tests = tcase_create("all"), *few = tcase_create("few kernels");
    tcase_set_timeout(tests, 60);
    tcase_set_timeout(few, 60);
    tcase_add_test(tests, every_kernel);
    tcase_add_test(tests, no_memory);
    tcase_add_test(tests, nothing_to_measure);
    tcase_add_test(tests, bad_options);
    tcase_add_test(tests, links);
    tcase_add_test(tests, described);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(few, few_kernels, all_kernels);
    tcase_add_loop_test(few, counts, 0, 6);
    tcase_add_test(few, some_devices);
    tcase_add_test(few, machine_is_good);
    tcase_add_test(few, fingerprint);
    tcase_add_test(few, refused_kernel);
    tcase_add_loop_test(few, every_call, 0, 15);
    tcase_add_test(few, tolerated_calls);
    tcase_add_loop_test(few, lost_context, 0, 6);
    tcase_add_loop_exit_test(few, hangs, 7, 0, 5);
    tcase_add_test(few, hangs_for_a_while);
    suite_add_tcase(suite, few);
    TCase *flagged = tcase_create("flags");
    tcase_set_timeout(flagged, 60);
    tcase_add_loop_test(flagged, flags, 0, 2);
    suite_add_tcase(suite, flagged);
    return run_suite(suite);
}
