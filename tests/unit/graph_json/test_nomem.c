/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing with the n-th allocation failing, for every n: out of memory is said, nothing leaks or breaks. */
#include "../../support/faults.h"
#include "suite.h"
#include <stdio.h>
#include <string.h>

/* %*s: padding, so that every allocation in the graph's arena is once the one that needs a new block. */
static const char pattern[] =
    "{\"gantry\": 1, \"name\": \"g%*s\", \"params\": {\"p\": 2, \"q\": \"p+1\"}, \"machine\": {\"a\": [1, 2.5]},"
    "\"kernels\": {\"mine\": {\"args\": [{\"name\": \"x\", \"access\": [\"read\"]}, {\"name\": \"k\", \"type\": "
    "\"f32\"}], "
    "\"launch\": {\"grid\": [\"x.size\"]}, \"cost\": {\"flops\": \"x.size*p\"}, \"scratch\": 8}},"
    "\"buffers\": {\"x\": {\"dtype\": \"f32\", \"shape\": [8], \"split\": \"p\", \"init\": {\"npy\": \"x.npy\"}},"
    "\"y\": {\"dtype\": \"f32\", \"shape\": [8], \"split\": \"p\", \"init\": 0}},"
    "\"nodes\": [{\"repeat\": 2, \"carry\": {\"x\": \"y\"}, \"nodes\": ["
    "{\"id\": \"a[i]\", \"for\": {\"i\": \"0:p\"}, \"kernel\": \"mine\", \"args\": {\"x\": \"x[i]\", \"k\": \"it+i\"}, "
    "\"on\": \"i %% devices\"},"
    "{\"id\": \"b\", \"work\": {}, \"reads\": [{\"for\": {\"i\": \"p\"}, \"ref\": \"x[i]\"}], \"writes\": [\"y\"], "
    "\"after\": \"a[i]\", "
    "\"cost\": {\"time_us\": {\"P1\": 1}}}]},"
    "{\"id\": \"c\", \"collective\": \"all_reduce\", \"op\": \"sum\", \"in\": [\"x[0]\", \"x[1]\"], \"out\": "
    "[\"x[0]\", \"x[1]\"]}]}";

enum { FIRST_BLOCK = 4096, STEP = 48 };

/* How many allocations there were before all of them succeeded. */
static int read_without(const char *text)
{
    gantry_status status = GANTRY_E_NOMEM;
    int n = 0;
    for (; status != GANTRY_OK && n < 100000; n++) {
        gantry_graph *g = NULL;
        gantry_error err;
        faults_after(n);
        status = gantry_graph_parse(&g, text, strlen(text), "t", ".", NULL, &err);
        faults_off();
        ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_NOMEM, "allocation %d: %s", n, err.text);
        ck_assert_int_eq(g == NULL, status != GANTRY_OK);
        gantry_graph_free(g);
    }
    ck_assert_int_eq(status, GANTRY_OK);
    return n;
}

START_TEST(reading)
{
    static char text[sizeof pattern + FIRST_BLOCK];
    for (int pad = 0; pad < FIRST_BLOCK; pad += STEP) {
        snprintf(text, sizeof text, pattern, pad, "");
        ck_assert_int_gt(read_without(text), 50);
    }
}
END_TEST

/* A file whose kernel, params and ids are all read for it. */
static void use_without(const char *path)
{
    gantry_status status = GANTRY_E_NOMEM;
    int n = 0;
    for (; status != GANTRY_OK && n < 100000; n++) {
        gantry_error err;
        gantry_use_options options = GANTRY_USE_OPTIONS_INIT;
        options.params = (const char *const[]){ "n=4" };
        options.param_count = 1;
        gantry_graph *g = gantry_graph_new("g");
        gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, (const int64_t[]){ 4 });
        gantry_buffer_init_value(g, x, 1);
        options.buffers = &(gantry_use_buffer){ "v", gantry_all(x) };
        options.buffer_count = 1;
        faults_after(n);
        gantry_graph_use(g, "layer", path, &options);
        gantry_graph_use(g, NULL, path, &options);
        status = gantry_graph_check(g, &err);
        faults_off();
        ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_NOMEM, "allocation %d: %s", n, err.text);
        gantry_graph_free(g);
    }
    ck_assert_int_eq(status, GANTRY_OK);
    ck_assert_int_gt(n, 50);
}

START_TEST(using)
{
    static const char text[] =
        "{\"gantry\": 1, \"params\": {\"n\": 1}, \"buffers\": {\"v\": {\"dtype\": \"f32\", "
        "\"shape\": [\"n\"]}}, \"kernels\": {\"mine\": {\"args\": [{\"name\": \"v\", \"access\": "
        "[\"readwrite\"]}]}}, \"nodes\": [{\"id\": \"k\", \"kernel\": \"mine\", \"args\": {\"v\": "
        "\"v\"}}]}";
    char path[] = "/tmp/gantry_nomem_XXXXXX";
    FILE *to = fdopen(mkstemp(path), "w");
    ck_assert(to && fputs(text, to) >= 0 && fclose(to) == 0);
    use_without(path);
    remove(path);
}
END_TEST

static void load_without(const char *path)
{
    gantry_status status = GANTRY_E_NOMEM;
    int n = 0;
    for (; status != GANTRY_OK && n < 100000; n++) {
        gantry_graph *g = NULL;
        faults_after(n);
        status = gantry_graph_load(&g, path, NULL, NULL);
        faults_off();
        ck_assert(status == GANTRY_OK || status == GANTRY_E_NOMEM);
        gantry_graph_free(g);
    }
    ck_assert_int_eq(status, GANTRY_OK);
}

/* A file that cannot be read for want of memory, and one that uses others. */
START_TEST(loading)
{
    load_without(GANTRY_SOURCE_DIR "/graphs/reference/daoud.json");
    load_without(GANTRY_SOURCE_DIR "/graphs/residual_stack.json");
}
END_TEST

START_TEST(writing)
{
    static char text[sizeof pattern];
    snprintf(text, sizeof text, pattern, 0, "");
    gantry_graph *g = graph_of(text);
    gantry_status status = GANTRY_E_NOMEM;
    int n = 0;
    for (; status != GANTRY_OK && n < 100000; n++) {
        char *json = NULL;
        size_t length;
        faults_after(n);
        status = gantry_graph_json(g, &json, &length, NULL);
        faults_off();
        ck_assert(status == GANTRY_OK || status == GANTRY_E_NOMEM);
        gantry_free(json);
    }
    ck_assert_int_gt(n, 5);
    ck_assert_int_eq(status, GANTRY_OK);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    const TTest *const cases[] = { reading, loading, using, writing };
    return RUN_CASES("graph files without memory", cases);
}
