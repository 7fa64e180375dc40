/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file with 1,000,000 explicit nodes (80 MB) loads and validates in at most 6 times of what jansson takes to read and
 * free a text alone, by the byte: a ratio, since computers differ by more than a factor of two. It was about 2 when
 * this was written. Measured is the time that this process computes, so that a busy machine matters little. Sanitizers
 * and unoptimised builds: a tenth of the file, without a limit.
 */
#include "base/text.h"
#include "suite.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { NODES = 1000000, PARTS = 1000, MOST_RATIO = 6 };

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

static double seconds_since(clock_t start)
{
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* The time that jansson computes to read and free a byte of such a text; of a tenth of the nodes, as it is the
   yardstick and not the subject. */
static double seconds_of_a_byte(void)
{
    gy_text text = { 0 };
    write_big(&text, NODES / 10);
    ck_assert(!text.failed);
    clock_t start = clock();
    json_t *root = json_loadb(text.at, text.length, 0, NULL);
    ck_assert_ptr_nonnull(root);
    json_decref(root);
    double seconds = seconds_since(start) / (double)text.length;
    gy_text_free(&text);
    return seconds;
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
    double yardstick = seconds_of_a_byte() * (double)text.length;
    clock_t start = clock();
    gantry_status status = gantry_graph_parse(&g, text.at, text.length, "big", NULL, NULL, &err);
    double seconds = seconds_since(start);
    ck_assert_msg(status == GANTRY_OK, "%s", err.text);
    getrusage(RUSAGE_SELF, &usage);
    printf("%d nodes, %.1f MB: %.2f s, %.2f of jansson, at most %ld MiB\n", nodes, (double)text.length / 1e6, seconds,
           seconds / yardstick, usage.ru_maxrss / 1024);
    ck_assert_uint_eq(gantry_graph_node_count(g), (size_t)nodes);
    ck_assert_msg(SLOW || seconds <= MOST_RATIO * yardstick, "took %.2f s, jansson %.2f", seconds, yardstick);
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
