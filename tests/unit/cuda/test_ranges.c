/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges for profilers: what one is told of two starts, by the real header and a profiler of ours. */
#include "control.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[100],\"init\":\"iota\"},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[100],\"output\":true}},"
    "\"nodes\":[{\"id\":\"double\",\"kernel\":\"scale\",\"args\":{\"a\":2,\"x\":\"x\",\"y\":\"y\"}}]}";

static void run_twice(void)
{
    gantry_graph *g = NULL;
    fakeCudaDevices(1, "all", 0);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    gantry_run *run = open_run(s, "cuda");
    run_results(run, g);
    run_results(run, g);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}

START_TEST(what_a_profiler_sees)
{
    static const char expected[] = "domain gantry\n"
                                   "start 1\n  copy x host -> gpu0 0\n  double 1\n  copy y gpu0 -> host 2\n"
                                   "start 2\n  copy x host -> gpu0 0\n  double 1\n  copy y gpu0 -> host 2\n"
                                   "destroy 1\n";
    char path[] = "/tmp/gantry-ranges-XXXXXX", seen[1000] = "";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *log = fdopen(fd, "r");
    setenv("PROFILER_LOG", path, 1);
    setenv("NVTX_INJECTION64_PATH", GANTRY_PROFILER, 1);
    run_twice();
    ck_assert_uint_gt(fread(seen, 1, sizeof seen - 1, log), 0);
    fclose(log);
    remove(path);
    ck_assert_str_eq(seen, expected);
}
END_TEST

/* A test is a process of its own: here nobody asks. */
START_TEST(nobody_looks)
{
    unsetenv("NVTX_INJECTION64_PATH");
    run_twice();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ranges");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, what_a_profiler_sees);
    tcase_add_test(tests, nobody_looks);
    suite_add_tcase(suite, tests);
    setenv("CK_FORK", "yes", 1); /* the header asks for a profiler once in a process */
    return run_suite(suite);
}
