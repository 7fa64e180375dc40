/* SPDX-License-Identifier: Apache-2.0 */
/* Linear algebra without libraries of NVIDIA: sums are taken in the order of their terms, so the textbook's loops give
 * the same bits. The real gantry-cuda.so on the emulator of tests/support/cuda_emulator. */
#include "control.h"
#include "suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 75, M = 41, MOST = N * N }; /* no multiples of a tile's side */

static uint32_t state = 3;

static void draw(float *to, int count)
{
    for (int i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = (float)(state >> 8) / (1 << 23) - 1;
    }
}

/* A lower triangle, or with both a symmetric matrix, that is far from singular. */
static void draw_triangle(float *a, bool both)
{
    draw(a, N * N);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < i && both; j++)
            a[j * N + i] = a[i * N + j];
        a[i * N + i] = N + a[i * N + i];
    }
}

/* The environment of this test has no libraries of use; the back end says what it takes instead. */
static void expect_no_library(void)
{
    char *text = NULL;
    size_t i = 0;
    while (strcmp(gantry_backend_name(i), "cuda") != 0)
        i++;
    MUST(gantry_backend_describe(i, &text, MUST_ERR));
    ck_assert_msg(strstr(text, " trsm run as plain kernels"), "%s", text);
    ck_assert_msg(strstr(text, "getrf, potrf and qr run as plain kernels") || strstr(text, "getrs, potrf, "), "%s",
                  text);
    gantry_free(text);
}

/* KERNEL(scalars, x, y), both f32; y is changed. */
static gantry_status carry_out(const char *kernel, const char *scalars, const char *x, const float *px, int x_rows,
                               int x_columns, const char *y, float *py, int y_rows, int y_columns, gantry_error *err)
{
    char text[1024], operand[64] = "";
    gantry_graph *g = NULL;
    uint64_t ticket = 0;
    fakeCudaDevices(1, "all", 0);
    expect_no_library();
    if (x)
        snprintf(operand, sizeof operand, "\"%s\":\"x\",", x);
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[%d,%d],\"class\":\"input\"},\"y\":{"
             "\"dtype\":\"f32\",\"shape\":[%d,%d],\"class\":\"state\",\"output\":true},\"sink\":{\"dtype\":\"f32\","
             "\"shape\":[%d,%d]}},\"nodes\":[{\"id\":\"c\",\"kernel\":\"copy\",\"args\":{\"x\":\"x\",\"y\":\"sink\"}},{"
             "\"id\":\"k\",\"kernel\":\"%s\",\"args\":{%s%s\"%s\":\"y\"}}]}",
             x_rows, x_columns, y_rows, y_columns, x_rows, x_columns, kernel, scalars, operand, y);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    gantry_run *run = open_run(s, "cuda");
    gantry_buffer to = gantry_graph_find_buffer(g, "y");
    MUST(gantry_run_bind(run, gantry_graph_find_buffer(g, "x"), px, 4 * (uint64_t)(x_rows * x_columns), MUST_ERR));
    MUST(gantry_run_bind(run, to, py, 4 * (uint64_t)(y_rows * y_columns), MUST_ERR));
    gantry_status status = gantry_run_start(run, &ticket, err);
    status = status ? status : gantry_run_wait(run, ticket, err);
    if (!status) {
        const void *got = NULL;
        uint64_t bytes = 0;
        MUST(gantry_run_output(run, to, &got, &bytes, MUST_ERR));
        memcpy(py, got, bytes);
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return status;
}

START_TEST(rank_update)
{
    static float a[MOST], c[MOST], want[MOST];
    draw(a, N * M);
    draw(c, N * N);
    memcpy(want, c, sizeof c);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j <= i; j++) {
            float sum = 0;
            for (int k = 0; k < M; k++)
                sum += a[i * M + k] * a[j * M + k];
            want[i * N + j] = 0.7f * sum + 1.3f * c[i * N + j];
        }
    }
    MUST(carry_out("syrk", "\"alpha\":0.7,\"beta\":1.3,", "a", a, N, M, "c", c, N, N, MUST_ERR));
    ck_assert(memcmp(c, want, sizeof c) == 0);
}
END_TEST

START_TEST(solve)
{
    static float a[MOST], b[MOST], want[MOST];
    draw_triangle(a, false);
    draw(b, M * N);
    memcpy(want, b, sizeof b);
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            for (int k = 0; k < j; k++)
                want[i * N + j] -= want[i * N + k] * a[j * N + k];
            want[i * N + j] /= a[j * N + j];
        }
    }
    MUST(carry_out("trsm", "", "a", a, N, N, "b", b, M, N, MUST_ERR));
    ck_assert(memcmp(b, want, sizeof b) == 0);
}
END_TEST

START_TEST(factor)
{
    static float a[MOST], want[MOST], unused[1];
    draw_triangle(a, true);
    memcpy(want, a, sizeof a);
    for (int j = 0; j < N; j++) {
        for (int i = j; i < N; i++) {
            for (int k = 0; k < j; k++)
                want[i * N + j] -= want[i * N + k] * want[j * N + k];
            want[i * N + j] = i == j ? sqrtf(want[i * N + j]) : want[i * N + j] / want[j * N + j];
        }
    }
    MUST(carry_out("potrf", "", NULL, unused, 1, 1, "a", a, N, N, MUST_ERR));
    ck_assert(memcmp(a, want, sizeof a) == 0);
}
END_TEST

/* The first minor that is not positive is named, whichever square it is in. */
START_TEST(not_positive)
{
    static const int rows[] = { 0, 5, 31, 32, 64, 74 };
    static float a[MOST], unused[1];
    char what[64];
    gantry_error err = { 0 };
    draw_triangle(a, true);
    a[rows[_i] * (N + 1)] = _i % 2 ? -1 : NAN;
    a[(N - 1) * (N + 1)] = -1;
    snprintf(what, sizeof what, "left %d in the status word", rows[_i] + 1);
    ck_assert_int_eq(carry_out("potrf", "", NULL, unused, 1, 1, "a", a, N, N, &err), GANTRY_E_KERNEL);
    ck_assert_msg(strstr(err.text, what) != NULL, "%s", err.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda plain");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, rank_update);
    tcase_add_test(tests, solve);
    tcase_add_test(tests, factor);
    tcase_add_loop_test(tests, not_positive, 0, 6);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
