/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses CUDA itself, on real GPUs: its device memory as inputs and outputs, starts in the order of its
 * stream, nobody waiting between an upload, a start and a fetch. tests/unit/cuda/test_caller_orders.c is the same
 * against the fake driver, in random orders. */
#include "../../unit/cuda/suite.h"
#include "backends/cuda/nvidia/driver.h"

#include <stdio.h>
#include <string.h>

enum { N = 1 << 22, ROUNDS = 20, DEVICES = 2 };
#define BYTES (N * sizeof(float))

static const char text[] =
    "{\"gantry\":1,\"params\":{\"n\":4194304},\"buffers\":{"
    "\"x\":{\"dtype\":\"f32\",\"shape\":[\"n\"],\"split\":8,\"class\":\"input\",\"external\":\"gpu0\"},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[\"n\"],\"split\":8,\"class\":\"input\",\"output\":true,\"external\":\"gpu1\"},"
    "\"h\":{\"dtype\":\"f32\",\"shape\":[\"n\"],\"split\":8,\"output\":true}},"
    "\"nodes\":["
    "{\"id\":\"s[i]\",\"for\":{\"i\":8},\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x[i]\",\"y\":\"y[i]\"},\"on\":"
    "\"i % 2\"},"
    "{\"id\":\"c[i]\",\"for\":{\"i\":8},\"kernel\":\"scale\",\"args\":{\"a\":3,\"x\":\"y[i]\",\"y\":\"h[i]\"}}]}";

static gy_driver d;

typedef struct program {
    int gpus;
    CUcontext context[DEVICES];
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

static CUcontext context_of(const program *p, int device)
{
    return p->context[device % p->gpus];
}

static void begin(program *p, const char *replay)
{
    MUST(gy_driver_start(&d, &p->gpus, MUST_ERR));
    p->gpus = p->gpus < DEVICES ? p->gpus : DEVICES;
    for (int i = 0; i < p->gpus; i++)
        cu(d.cuDevicePrimaryCtxRetain(&p->context[i], i));
    cu(d.cuCtxSetCurrent(context_of(p, 1)));
    cu(d.cuMemAlloc(&p->y, BYTES));
    cu(d.cuMemAlloc(&p->result, BYTES));
    cu(d.cuCtxSetCurrent(context_of(p, 0)));
    cu(d.cuMemAlloc(&p->x, BYTES));
    cu(d.cuMemHostAlloc((void **)&p->host, 3 * BYTES, CU_MEMHOSTALLOC_PORTABLE));
    cu(d.cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING));
    MUST(gantry_graph_parse(&p->g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    p->m = shared_machine(DEVICES, p->gpus);
    p->s = make_schedule(p->g, p->m, replay, NULL);
}

static void end(program *p)
{
    gantry_schedule_free(p->s);
    gantry_machine_free(p->m);
    gantry_graph_free(p->g);
    cu(d.cuCtxSetCurrent(context_of(p, 0)));
    cu(d.cuStreamDestroy(p->stream));
    cu(d.cuMemFree(p->x));
    cu(d.cuMemFreeHost(p->host));
    cu(d.cuCtxSetCurrent(context_of(p, 1)));
    cu(d.cuMemFree(p->y));
    cu(d.cuMemFree(p->result));
    cu(d.cuCtxSetCurrent(NULL));
    for (int i = 0; i < p->gpus; i++)
        cu(d.cuDevicePrimaryCtxRelease(i));
    gy_driver_close(&d);
}

static gantry_buffer buffer(const program *p, const char *name)
{
    return gantry_graph_find_buffer(p->g, name);
}

static float value(int i, int round)
{
    return (float)(i % 1023 + round);
}

/* Small whole numbers: sums are exact. */
static void one_round(program *p, gantry_run *run, int round)
{
    uint64_t ticket, bytes;
    const void *h;
    CUevent done;
    for (int i = 0; i < N; i++)
        p->host[i] = value(i, round);
    cu(d.cuCtxSetCurrent(context_of(p, 0)));
    cu(d.cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
    cu(d.cuMemcpyHtoDAsync(p->x, p->host, BYTES, p->stream));
    cu(d.cuMemcpyPeerAsync(p->y, context_of(p, 1), p->x, context_of(p, 0), BYTES, p->stream));
    MUST(gantry_run_start_on(run, p->stream, &ticket, MUST_ERR));
    cu(d.cuMemcpyPeerAsync(p->x, context_of(p, 0), p->result, context_of(p, 1), BYTES, p->stream));
    cu(d.cuMemcpyDtoHAsync(p->host + 2 * (size_t)N, p->x, BYTES, p->stream));
    cu(d.cuEventRecord(done, p->stream));
    while (d.cuEventQuery(done) == CUDA_ERROR_NOT_READY) {
    }
    cu(d.cuEventDestroy(done));
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
    MUST(gantry_run_output(run, buffer(p, "h"), &h, &bytes, MUST_ERR));
    int wrong = 0;
    for (int i = 0; i < N; i++) { /* y = x, then 2 x + y */
        wrong += p->host[2 * (size_t)N + (size_t)i] != 3 * value(i, round);
        wrong += ((const float *)h)[i] != 9 * value(i, round);
    }
    ck_assert_msg(wrong == 0, "round %d: %d elements of %d are wrong", round, wrong, 2 * N);
}

START_TEST(memory_and_stream_of_the_program)
{
    program p = { 0 };
    begin(&p, _i == 0 ? "stream" : _i == 1 ? "graph" : "auto");
    gantry_run *run = open_run(p.s, "cuda");
    MUST(gantry_run_bind(run, buffer(&p, "x"), (void *)(uintptr_t)p.x, BYTES, MUST_ERR));
    MUST(gantry_run_bind(run, buffer(&p, "y"), (void *)(uintptr_t)p.y, BYTES, MUST_ERR));
    MUST(gantry_run_bind_output(run, buffer(&p, "y"), (void *)(uintptr_t)p.result, BYTES, MUST_ERR));
    for (int round = 0; round < ROUNDS; round++)
        one_round(&p, run, round);
    gantry_run_free(run);
    end(&p);
}
END_TEST

/* Memory that the driver does not know as a GPU's, or that is too small, is refused. */
START_TEST(wrong_memory)
{
    program p = { 0 };
    gantry_error err = { 0 };
    begin(&p, "stream");
    gantry_run *run = open_run(p.s, "cuda");
    ck_assert_int_eq(gantry_run_bind(run, buffer(&p, "x"), p.host, BYTES, &err), GANTRY_E_INVALID);
    ck_assert_msg(strstr(err.text, "no memory of a GPU"), "%s", err.text);
    ck_assert_int_eq(gantry_run_bind(run, buffer(&p, "x"), &p, BYTES, &err), GANTRY_E_INVALID);
    ck_assert_msg(strstr(err.text, "no memory of a GPU"), "%s", err.text);
    ck_assert_int_eq(gantry_run_bind(run, buffer(&p, "x"), (void *)(uintptr_t)(p.x + 64), BYTES, &err),
                     GANTRY_E_INVALID);
    ck_assert_msg(strstr(err.text, "16777216 bytes are wanted"), "%s", err.text);
    gantry_run_free(run);
    end(&p);
}
END_TEST

int main(void)
{
    if (!has_gpu()) {
        printf("skipped: no GPU\n");
        return 77;
    }
    Suite *suite = suite_create("caller on GPUs");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, memory_and_stream_of_the_program, 0, 3);
    tcase_add_test(tests, wrong_memory);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
