/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses CUDA itself: its memory on GPUs as inputs and outputs, starts in the order of its stream; what
 * need not wait for each other runs in random orders of the fake driver. tests/gpu/programs/test_caller.c is for real
 * GPUs. */
#include "control.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000, PARTS = 4, GPUS = 2, ROUNDS = 3 };
#define BYTES (N * sizeof(float))

static const char text[] =
    "{\"gantry\":1,\"buffers\":{"
    "\"x\":{\"dtype\":\"f32\",\"shape\":[1000],\"split\":4,\"class\":\"input\",\"external\":\"gpu0\"},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[1000],\"split\":4,\"class\":\"input\",\"output\":true,\"external\":\"gpu1\"},"
    "\"h\":{\"dtype\":\"f32\",\"shape\":[1000],\"split\":4,\"output\":true}},"
    "\"nodes\":["
    "{\"id\":\"s[i]\",\"for\":{\"i\":4},\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x[i]\",\"y\":\"y[i]\"},\"on\":"
    "\"i % 2\"},"
    "{\"id\":\"c[i]\",\"for\":{\"i\":4},\"kernel\":\"scale\",\"args\":{\"a\":3,\"x\":\"y[i]\",\"y\":\"h[i]\"}}]}";

typedef struct program {
    CUcontext context[GPUS];
    CUstream stream;
    CUdeviceptr x, y, result;
    float *host; /* pinned: x, y, result */
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
} program;

static void cu(CUresult code)
{
    ck_assert_int_eq(code, CUDA_SUCCESS);
}

static gantry_buffer buffer(const program *p, const char *name)
{
    return gantry_graph_find_buffer(p->g, name);
}

static void load(program *p, const char *replay)
{
    MUST(gantry_graph_parse(&p->g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    p->m = gpu_machine(GPUS, false);
    p->s = make_schedule(p->g, p->m, replay, NULL);
}

static void begin(program *p, const char *replay)
{
    fakeCudaDevices(GPUS, "all", 0);
    cu(cuInit(0));
    for (int i = 0; i < GPUS; i++) {
        CUdevice device;
        cu(cuDeviceGet(&device, i));
        cu(cuDevicePrimaryCtxRetain(&p->context[i], device));
    }
    cu(cuCtxSetCurrent(p->context[1]));
    cu(cuMemAlloc(&p->y, BYTES));
    cu(cuMemAlloc(&p->result, BYTES));
    cu(cuCtxSetCurrent(p->context[0]));
    cu(cuMemAlloc(&p->x, BYTES));
    cu(cuMemHostAlloc((void **)&p->host, 3 * BYTES, CU_MEMHOSTALLOC_PORTABLE));
    cu(cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING));
    load(p, replay);
}

static void end(program *p)
{
    gantry_schedule_free(p->s);
    gantry_machine_free(p->m);
    gantry_graph_free(p->g);
    cu(cuCtxSetCurrent(p->context[0]));
    cu(cuStreamDestroy(p->stream));
    cu(cuMemFree(p->x));
    cu(cuMemFreeHost(p->host));
    cu(cuCtxSetCurrent(p->context[1]));
    cu(cuMemFree(p->y));
    cu(cuMemFree(p->result));
    cu(cuCtxSetCurrent(NULL));
    for (int i = 0; i < GPUS; i++)
        cu(cuDevicePrimaryCtxRelease(i));
    char alive[160];
    ck_assert_msg(fakeCudaAlive(alive, sizeof alive) == 0, "left behind: %s", alive);
}

static gantry_run *open_bound(program *p)
{
    gantry_run *run = open_run(p->s, "cuda");
    MUST(gantry_run_bind(run, buffer(p, "x"), (void *)(uintptr_t)p->x, BYTES, MUST_ERR));
    MUST(gantry_run_bind(run, buffer(p, "y"), (void *)(uintptr_t)p->y, BYTES, MUST_ERR));
    MUST(gantry_run_bind_output(run, buffer(p, "y"), (void *)(uintptr_t)p->result, BYTES, MUST_ERR));
    return run;
}

static void wait_for(CUevent event)
{
    CUresult code = CUDA_ERROR_NOT_READY;
    while (code == CUDA_ERROR_NOT_READY)
        code = cuEventQuery(event);
    cu(code);
}

/* Upload, start and fetch in one stream, nobody waiting between them: small whole numbers, so sums are exact. */
static void one_round(program *p, gantry_run *run, int round)
{
    uint64_t ticket;
    CUevent done;
    for (int i = 0; i < N; i++) {
        p->host[i] = (float)(i % 17 + round);
        p->host[N + i] = (float)(i % 5 - round);
    }
    cu(cuCtxSetCurrent(p->context[0]));
    cu(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
    cu(cuMemcpyHtoDAsync(p->x, p->host, BYTES, p->stream));
    cu(cuMemcpyPeerAsync(p->y, p->context[1], p->x, p->context[0], BYTES, p->stream));
    MUST(gantry_run_start_on(run, p->stream, &ticket, MUST_ERR));
    CUcontext current;
    cu(cuCtxGetCurrent(&current));
    ck_assert_ptr_eq(current, p->context[0]);
    cu(cuMemcpyPeerAsync(p->x, p->context[0], p->result, p->context[1], BYTES, p->stream));
    cu(cuMemcpyDtoHAsync(p->host + 2 * (size_t)N, p->x, BYTES, p->stream));
    cu(cuEventRecord(done, p->stream));
    wait_for(done);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(p->host[2 * N + i], 3 * (float)(i % 17 + round)); /* y = x, then 2 x + y */
    cu(cuEventDestroy(done));
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
    const void *h;
    uint64_t bytes;
    MUST(gantry_run_output(run, buffer(p, "h"), &h, &bytes, MUST_ERR));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(((const float *)h)[i], 9 * (float)(i % 17 + round));
}

START_TEST(memory_and_stream_of_the_program)
{
    program p = { 0 };
    begin(&p, _i % 2 ? "graph" : "stream");
    fakeCudaSeed((uint64_t)_i * 7919);
    gantry_run *run = open_bound(&p);
    for (int round = 0; round < ROUNDS; round++)
        one_round(&p, run, round);
    gantry_run_free(run);
    end(&p);
}
END_TEST

static const char scaled[] =
    "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[1000],\"class\":\"input\"},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[1000],\"output\":true}},"
    "\"nodes\":[{\"id\":\"s\",\"kernel\":\"scale\",\"args\":{\"a\":3,\"x\":\"x\",\"y\":\"y\"}}]}";

typedef struct arrays {
    float x[N], y[N], seen[N];
    float value;
} arrays;

static void set_x(void *data)
{
    arrays *a = data;
    for (int i = 0; i < N; i++)
        a->x[i] = a->value + (float)i;
}

static void look_at_y(void *data)
{
    arrays *a = data;
    memcpy(a->seen, a->y, sizeof a->y);
}

/* Small arrays in plain memory. In a start on a stream of the program they are what the stream makes of them; in any
 * other they are what they are when it is made, and no stream waits for the CPU. */
START_TEST(small_arrays)
{
    program p = { 0 };
    uint64_t ticket;
    CUevent done;
    arrays *a = calloc(1, sizeof *a);
    begin(&p, _i % 2 ? "graph" : "stream");
    fakeCudaSeed((uint64_t)_i * 104729);
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, scaled, strlen(scaled), "text", NULL, NULL, MUST_ERR));
    gantry_schedule *s = make_schedule(g, p.m, _i % 2 ? "graph" : "stream", NULL);
    gantry_run *run = open_run(s, "cuda");
    MUST(gantry_run_bind(run, gantry_graph_find_buffer(g, "x"), a->x, sizeof a->x, MUST_ERR));
    MUST(gantry_run_bind_output(run, gantry_graph_find_buffer(g, "y"), a->y, sizeof a->y, MUST_ERR));
    cu(cuCtxSetCurrent(p.context[0]));
    cu(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
    for (int round = 1; round <= ROUNDS; round++) {
        a->value = (float)round;
        cu(cuLaunchHostFunc(p.stream, set_x, a));
        MUST(gantry_run_start_on(run, p.stream, &ticket, MUST_ERR));
        cu(cuLaunchHostFunc(p.stream, look_at_y, a));
        cu(cuEventRecord(done, p.stream));
        wait_for(done);
        MUST(gantry_run_wait(run, ticket, MUST_ERR));
        for (int i = 0; i < N; i++)
            ck_assert_float_eq(a->seen[i], 3 * (float)(round + i));
        int before = fakeCudaCalls("cuLaunchHostFunc");
        a->value = (float)(10 * round);
        set_x(a);
        MUST(gantry_run_start(run, &ticket, MUST_ERR));
        MUST(gantry_run_wait(run, ticket, MUST_ERR));
        for (int i = 0; i < N; i++)
            ck_assert_float_eq(a->y[i], 3 * (float)(10 * round + i));
        ck_assert_int_eq(fakeCudaCalls("cuLaunchHostFunc"), before);
    }
    cu(cuEventDestroy(done));
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    end(&p);
    free(a);
}
END_TEST

/* An input is read where it is: its own parts on GPU 0 need no copy. */
START_TEST(read_in_place)
{
    gantry_schedule_summary stats = GANTRY_SCHEDULE_SUMMARY_INIT;
    gantry_graph *g = NULL;
    const char *only =
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[64],\"class\":\"input\",\"external\":\"gpu0\"},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[64],\"output\":true,\"external\":\"gpu0\"}},"
        "\"nodes\":[{\"id\":\"c\",\"kernel\":\"copy\",\"args\":{\"x\":\"x\",\"y\":\"y\"}}]}";
    MUST(gantry_graph_parse(&g, only, strlen(only), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(2, false);
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    MUST(gantry_schedule_summarize(s, &stats, MUST_ERR));
    ck_assert_int_eq((int)stats.copies, 1); /* the result, to where it is bound */
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

static void expect(gantry_status status, const gantry_error *err, gantry_status wanted, const char *part)
{
    ck_assert_int_eq(status, wanted);
    ck_assert_msg(strstr(err->text, part), "\"%s\" has no \"%s\"", err->text, part);
}

START_TEST(wrong_memory)
{
    program p = { 0 };
    gantry_error err = { 0 };
    uint64_t ticket;
    begin(&p, "stream");
    gantry_run *run = open_run(p.s, "cuda");
    gantry_buffer x = buffer(&p, "x"), y = buffer(&p, "y");
    expect(gantry_run_start(run, &ticket, &err), &err, GANTRY_E_INVALID, "external buffer \"x\" is not bound");
    expect(gantry_run_bind(run, x, p.host, BYTES, &err), &err, GANTRY_E_INVALID, "no memory of a GPU");
    expect(gantry_run_bind(run, x, &p, BYTES, &err), &err, GANTRY_E_INVALID, "no memory of a GPU");
    expect(gantry_run_bind(run, x, (void *)(uintptr_t)p.y, BYTES, &err), &err, GANTRY_E_INVALID,
           "memory of GPU 1, and \"gpu0\" is GPU 0");
    expect(gantry_run_bind(run, x, (void *)(uintptr_t)(p.x + 8), BYTES, &err), &err, GANTRY_E_INVALID,
           "4000 bytes are wanted, and 3992 are left");
    expect(gantry_run_bind_file(run, x, "x.npy", &err), &err, GANTRY_E_INVALID, "is external, kept in \"gpu0\"");
    MUST(gantry_run_bind(run, x, (void *)(uintptr_t)p.x, BYTES, MUST_ERR));
    MUST(gantry_run_bind(run, y, (void *)(uintptr_t)p.y, BYTES, MUST_ERR));
    expect(gantry_run_start(run, &ticket, &err), &err, GANTRY_E_INVALID, "external output \"y\" is not bound");
    MUST(gantry_run_bind_output(run, y, (void *)(uintptr_t)p.result, BYTES, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    expect(gantry_run_bind(run, x, (void *)(uintptr_t)p.x, BYTES, &err), &err, GANTRY_E_INVALID, "is in flight");
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
    uint64_t hash;
    expect(gantry_run_hash(run, y, &hash, &err), &err, GANTRY_E_INVALID, "output \"y\" is external");
    gantry_run_free(run);
    end(&p);
}
END_TEST

START_TEST(wrong_stream)
{
    program p = { 0 };
    gantry_error err = { 0 };
    uint64_t ticket;
    begin(&p, "stream");
    gantry_run *run = open_bound(&p);
    fakeCudaFail("cuStreamGetCtx:1:400");
    expect(gantry_run_start_on(run, p.stream, &ticket, &err), &err, GANTRY_E_INVALID, "of none of the GPUs");
    fakeCudaFail(NULL);
    cu(cuCtxSetCurrent(NULL));
    expect(gantry_run_start_on(run, NULL, &ticket, &err), &err, GANTRY_E_INVALID, "of none of the GPUs");
    MUST(gantry_run_start_on(run, p.stream, &ticket, MUST_ERR));
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
    gantry_run_free(run);
    run = open_run(p.s, "host");
    expect(gantry_run_start_on(run, p.stream, &ticket, &err), &err, GANTRY_E_UNSUPPORTED, "\"host\" has no streams");
    gantry_run_free(run);
    end(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("caller");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, memory_and_stream_of_the_program, 0, 12);
    tcase_add_loop_test(tests, small_arrays, 0, 12);
    tcase_add_test(tests, read_in_place);
    tcase_add_test(tests, wrong_memory);
    tcase_add_test(tests, wrong_stream);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
