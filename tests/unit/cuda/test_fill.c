/* SPDX-License-Identifier: Apache-2.0 */
/* Fills and first contents that a kernel makes in memory of GPUs: the real gantry-cuda.so on the emulator of
 * tests/support/cuda_emulator has the bits of the host back end, whatever the type, the size, the cut. */
#include "control.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

enum { DTYPES = 10, TEXT = 1536 };
static const char *const dtypes[DTYPES] = { "i8", "u8", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64" };

static bool is_float(const char *dtype)
{
    return dtype[0] == 'f' || dtype[0] == 'b';
}

/* Kernels that ran, and bytes that came from the host other than by them. */
typedef struct traffic {
    int kernels, uploads;
} traffic;

static traffic traffic_so_far(void)
{
    return (traffic){ fakeCudaCalls("kernel"), fakeCudaCalls("cuMemcpyHtoDAsync") };
}

/* Two starts of the graph on both back ends. Returns what the GPUs were given for the first. */
static traffic on_both(const char *text, const char *replay)
{
    gantry_graph *g = NULL;
    fakeCudaDevices(2, "all", 0);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(2, false);
    gantry_schedule *s = make_schedule(g, m, replay, "round-robin");
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    traffic before = traffic_so_far();
    results want = run_results(host, g), got = run_results(run, g);
    traffic after = traffic_so_far();
    ck_assert_msg(same(&got, &want), "%s", text);
    want = run_results(host, g);
    got = run_results(run, g);
    ck_assert_msg(same(&got, &want), "in the second start: %s", text);
    gantry_run_free(host);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return (traffic){ after.kernels - before.kernels, after.uploads - before.uploads };
}

/* Contents of floating types, and of whole ones. */
typedef struct content {
    const char *of_floats, *of_whole;
} content;
static const content contents[] = {
    { "\"random\":{\"seed\":5}", "\"random\":{\"seed\":5,\"low\":0,\"high\":100}" },
    { "\"random\":{\"seed\":-3,\"low\":-7.3,\"high\":11}", "\"random\":{\"seed\":81,\"low\":3,\"high\":3}" },
    { "\"random\":{\"seed\":9,\"low\":-1e-6,\"high\":2e-5}", "\"random\":{\"seed\":9,\"low\":9,\"high\":128}" },
    { "\"random\":{\"seed\":7,\"low\":0,\"high\":1e5}", "\"random\":{\"seed\":7,\"low\":0,\"high\":2}" },
    { "\"iota\":{}", "\"iota\":{}" },
    { "\"iota\":{\"start\":-2.3,\"step\":0.37}", "\"iota\":{\"start\":100,\"step\":-7}" },
};
enum { CONTENTS = sizeof contents / sizeof *contents };

/* Parts that begin anywhere in a block of random numbers, and anywhere in a word of 16 bytes. */
static void try_fills(const char *dtype, const char *what)
{
    static const int sizes[] = { 1, 2, 7, 64, 1001, 9000 };
    for (int k = 0; k < 6; k++) {
        char text[TEXT];
        int parts = sizes[k] < 3 ? sizes[k] : 3;
        snprintf(text, sizeof text,
                 "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":[%d],\"split\":%d},\"b\":{\"dtype\":"
                 "\"%s\",\"shape\":[%d],\"split\":%d,\"output\":true}},\"nodes\":[{\"id\":\"f[i]\",\"for\":{\"i\":%d},"
                 "\"fill\":{\"to\":\"a[i]\",%s},\"on\":\"gpu1\"},{\"id\":\"c[i]\",\"for\":{\"i\":%d},\"kernel\":"
                 "\"copy\",\"args\":{\"x\":\"a[i]\",\"y\":\"b[i]\"},\"on\":\"gpu1\"}]}",
                 dtype, sizes[k], parts, dtype, sizes[k], parts, parts, what, parts);
        traffic t = on_both(text, k % 2 ? "graph" : "stream");
        ck_assert_msg(t.kernels >= 2 * parts, "%d kernels: %s", t.kernels, text);
        ck_assert_msg(t.uploads == 0, "%d uploads: %s", t.uploads, text);
    }
}

START_TEST(fills)
{
    const content *c = &contents[_i % CONTENTS];
    const char *dtype = dtypes[_i / CONTENTS];
    try_fills(dtype, is_float(dtype) ? c->of_floats : c->of_whole);
}
END_TEST

/* One value again and again, of few bytes: a kernel takes less than one memset, or two. */
START_TEST(values)
{
    const char *dtype = dtypes[_i];
    try_fills(dtype, is_float(dtype) ? "\"value\":-1e-5" : "\"value\":113");
    try_fills(dtype, "\"value\":-0.0");
}
END_TEST

/* Rows in the middle, and rows that are no parts. */
START_TEST(regions)
{
    char text[TEXT];
    const char *dtype = dtypes[_i];
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":[50,7],\"init\":0,\"class\":\"state\","
             "\"output\":true}},\"nodes\":[{\"id\":\"f\",\"fill\":{\"to\":\"a{3:20}\",\"random\":{\"seed\":2,\"low\":0,"
             "\"high\":90}}},{\"id\":\"g\",\"fill\":{\"to\":\"a{21:44}\",\"iota\":{}}}]}",
             dtype);
    ck_assert_int_eq(on_both(text, "stream").uploads, 0);
}
END_TEST

static const char *const tiled[] = { "[19],\"tiles\":[3]", "[9,11],\"tiles\":[3,2]", "[6,7,9],\"tiles\":[2,3,2]",
                                     "[5,4,5,7],\"tiles\":[2,2,2,3]", "[64,5],\"tiles\":[2,1]" };

/* Tiles, whose lines lie apart in the whole array: by fills, and at first. */
START_TEST(tiles)
{
    const char *dtype = dtypes[_i / 5];
    for (int k = 0; k < CONTENTS; k++) {
        char text[TEXT];
        const char *what = is_float(dtype) ? contents[k].of_floats : contents[k].of_whole;
        snprintf(
            text, sizeof text,
            "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":%s},\"b\":{\"dtype\":\"%s\",\"shape\":%s,"
            "\"output\":true},\"c\":{\"dtype\":\"%s\",\"shape\":%s,\"class\":\"state\",\"init\":{%s},\"output\":"
            "true}},\"nodes\":[{\"id\":\"f\",\"fill\":{\"to\":\"a\",%s}},{\"id\":\"g\",\"copy\":{\"from\":\"a\","
            "\"to\":\"b\"}},{\"id\":\"s\",\"copy\":{\"from\":\"c\",\"to\":\"a\"}}]}",
            dtype, tiled[_i % 5], dtype, tiled[_i % 5], dtype, tiled[_i % 5], what, what);
        traffic t = on_both(text, k % 2 ? "graph" : "stream");
        ck_assert_msg(t.uploads == 0, "%d uploads: %s", t.uploads, text);
    }
}
END_TEST

/* First contents of states and constants, cut in parts on two GPUs. Normal numbers are the host's. */
static const struct {
    const char *dtype, *shape, *init;
    bool uploaded;
} firsts[] = {
    { "f32", "[1000]", "{\"random\":{\"seed\":1}}", false },
    { "f64", "[333,3]", "{\"random\":{\"seed\":1,\"low\":-1,\"high\":1}}", false },
    { "u8", "[77,9]", "{\"random\":{\"seed\":4,\"low\":0,\"high\":256}}", false },
    { "i64", "[501]", "{\"iota\":{\"start\":-9000000000,\"step\":3000000007}}", false },
    { "bf16", "[1001]", "\"iota\"", false },
    { "f64", "[61,61]", "{\"spd\":{\"seed\":3}}", false },
    { "f32", "[40,40]", "{\"spd\":{\"seed\":8}}", false },
    { "f16", "[33,33]", "{\"spd\":{\"seed\":8}}", false },
    { "f64", "[61,61],\"tiles\":[2,3]", "{\"spd\":{\"seed\":3}}", false },
    { "i32", "[100]", "7", false },
    { "f64", "[9,9]", "2.5", false },
    { "f32", "[1000]", "{\"normal\":{\"seed\":1}}", true },
    { "f64", "[12,12],\"tiles\":[2,2]", "{\"normal\":{\"seed\":1}}", true },
};

START_TEST(first_contents)
{
    char text[TEXT];
    bool is_tiled = strstr(firsts[_i].shape, "tiles");
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":%s%s,\"class\":\"%s\",\"init\":%s%s},"
             "\"b\":{\"dtype\":\"%s\",\"shape\":%s%s,\"output\":true}},\"nodes\":[{\"id\":\"c[i]\",\"for\":{\"i\":2},"
             "\"copy\":{\"from\":\"%s\",\"to\":\"%s\"},\"on\":\"i\"}]}",
             firsts[_i].dtype, firsts[_i].shape, is_tiled ? "" : ",\"split\":2", _i % 2 ? "state" : "const",
             firsts[_i].init, _i % 2 ? ",\"output\":true" : "", firsts[_i].dtype, firsts[_i].shape,
             is_tiled ? "" : ",\"split\":2", is_tiled ? "a[i][*]" : "a[i]", is_tiled ? "b[i][*]" : "b[i]");
    traffic t = on_both(text, _i % 4 < 2 ? "graph" : "stream");
    ck_assert_msg((t.uploads > 0) == firsts[_i].uploaded, "%d uploads: %s", t.uploads, text);
}
END_TEST

/* Normal numbers that a fill writes are made once by the host, and uploaded at each start. */
START_TEST(normal)
{
    char text[TEXT];
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":[1001],\"output\":true}},\"nodes\":[{\"id\":"
             "\"f\",\"fill\":{\"to\":\"a\",\"normal\":{\"seed\":3,\"mean\":1,\"deviation\":2}}}]}",
             dtypes[6 + _i]);
    traffic t = on_both(text, "stream");
    ck_assert_int_gt(t.uploads, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda fill");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, fills, 0, DTYPES * CONTENTS);
    tcase_add_loop_test(tests, values, 0, DTYPES);
    tcase_add_loop_test(tests, regions, 0, DTYPES);
    tcase_add_loop_test(tests, tiles, 0, DTYPES * 5);
    tcase_add_loop_test(tests, first_contents, 0, (int)(sizeof firsts / sizeof *firsts));
    tcase_add_loop_test(tests, normal, 0, 4);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
