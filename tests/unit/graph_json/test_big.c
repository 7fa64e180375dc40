/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file with 1,000,000 explicit nodes (80 MB) loads and validates within 10 s. Measured is the time that this process
 * computes, so that a busy machine does not matter. Sanitizers and unoptimised builds: a tenth of it, without a limit.
 */
#include "base/text.h"
#include "suite.h"
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { NODES = 1000000, PARTS = 1000, MOST_SECONDS = 10 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLOW 1
#endif
#endif
#ifndef SLOW
#define SLOW 0
#endif

static void write_big(gy_text *to, int nodes)
{
    gy_text_add(to, "{\"gantry\": 1, \"name\": \"big\",\n\"buffers\": {\n");
    gy_text_printf(to, "\"x\": {\"dtype\": \"f32\", \"shape\": [1000000], \"split\": %d, \"init\": 0},\n", PARTS);
    gy_text_printf(
        to, "\"y\": {\"dtype\": \"f32\", \"shape\": [1000000], \"split\": %d, \"init\": 1}\n},\n\"nodes\": [\n", PARTS);
    for (int i = 0; i < nodes; i++) {
        gy_text_printf(
            to,
            "%s{\"id\": \"s%06d\", \"kernel\": \"saxpy\", \"args\": {\"a\": 2, \"x\": \"x[%d]\", \"y\": \"y[%d]\"}}",
            i ? ",\n" : "", i, i % PARTS, i * 7 % PARTS);
    }
    gy_text_add(to, "\n]}\n");
}

START_TEST(million)
{
    gy_text text = { 0 };
    gantry_graph *g = NULL;
    gantry_error err;
    struct rusage usage;
    int nodes = SLOW ? NODES / 10 : NODES;
    write_big(&text, nodes);
    ck_assert(!text.failed);
    clock_t start = clock();
    gantry_status status = gantry_graph_parse(&g, text.at, text.length, "big", NULL, NULL, &err);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    ck_assert_msg(status == GANTRY_OK, "%s", err.text);
    getrusage(RUSAGE_SELF, &usage);
    printf("%d nodes, %.1f MB: %.2f s, at most %ld MiB\n", nodes, (double)text.length / 1e6, seconds,
           usage.ru_maxrss / 1024);
    ck_assert_uint_eq(gantry_graph_node_count(g), (size_t)nodes);
    ck_assert_msg(SLOW || seconds <= MOST_SECONDS, "took %.2f s", seconds);
    gantry_graph_free(g);
    gy_text_free(&text);
}
END_TEST

/* A mistake at the far end is found as fast, with its place. */
START_TEST(mistake_at_the_end)
{
    gy_text text = { 0 };
    gantry_graph *g = NULL;
    gantry_error err;
    int nodes = 20000;
    write_big(&text, nodes);
    char *last = strstr(text.at, "\"s019999\"");
    memcpy(strstr(last, "\"x[") + 1, "z", 1);
    ck_assert_int_eq(gantry_graph_parse(&g, text.at, text.length, "big", NULL, NULL, &err), GANTRY_E_GRAPH);
    ck_assert_str_eq(err.where, "/nodes/19999/args/x");
    ck_assert_int_eq(err.line, 20006);
    ck_assert_int_eq(err.column, 60);
    gy_text_free(&text);
}
END_TEST

int main(void)
{
    const TTest *const cases[] = { million, mistake_at_the_end };
    return RUN_CASES("big graph files", cases);
}
