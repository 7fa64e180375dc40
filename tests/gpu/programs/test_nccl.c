/* SPDX-License-Identifier: Apache-2.0 */
/* All collectives by NCCL on as many GPUs as there are, 8 at most, against the host back end: exit code 77 with fewer
 * than two, or without NCCL. The same program runs on the fake driver with a fake NCCL. */
#include "../../unit/cuda/nccl/nccl_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int gpus;

/* Prints what the back end says of NCCL; 1: it is there. */
static int print_nccl(void)
{
    char *text = NULL;
    size_t i = 0;
    while (gantry_backend_name(i) && strcmp(gantry_backend_name(i), "cuda") != 0)
        i++;
    if (gantry_backend_describe(i, &text, NULL))
        return 0;
    const char *line = strstr(text, "NCCL: ");
    int there = line && strncmp(line, "NCCL: libnccl.so.2, version ", 28) == 0;
    printf("%.*s\n", line ? (int)strcspn(line, "\n") : 0, line ? line : "");
    fflush(stdout);
    gantry_free(text);
    return there;
}

/* Exact in any order of additions: elements are 1 or 2, or any bytes. */
static void try_case(const nccl_case *c, const char *replay)
{
    gantry_graph *g = nccl_graph(c);
    gantry_machine *m = nccl_machine(c->ranks);
    gantry_schedule *s = make_schedule(g, m, replay, "round-robin");
    gantry_run *host = nccl_open(s, g, c, "host");
    results want = run_results(host, g);
    gantry_run_free(host);
    gantry_run *run = nccl_open(s, g, c, "cuda");
    for (int start = 0; start < 3; start++) {
        results got = run_results(run, g);
        ck_assert_msg(same(&got, &want), "%s, replay %s, start %d: other results (%s)", nccl_name(c), replay, start,
                      replay_of(run));
    }
    ck_assert_msg(strncmp(replay_of(run), replay, strlen(replay)) == 0 && strstr(replay_of(run), " does 1 collective"),
                  "%s: %s", nccl_name(c), replay_of(run));
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}

/* A run makes communicators of its own, which takes NCCL seconds: each size with one type only, and with
 * GANTRY_GPU_SMALL one size. */
START_TEST(collectives)
{
    static const gantry_dtype types[] = { GANTRY_F32, GANTRY_I64, GANTRY_U8 };
    static const int64_t rows[] = { 70001, 333, 1 };
    held_gpus held = hold_gpus(gpus);
    for (int k = 0; k < (getenv("GANTRY_GPU_SMALL") ? 1 : 3); k++) {
        nccl_case c = { nccl_kinds[_i / 2], types[(k + _i) % 3], GANTRY_SUM, gpus, rows[k], false, false };
        c.rows *= c.kind == GANTRY_ALL_TO_ALL ? gpus : 1;
        try_case(&c, _i % 2 ? "graph" : "stream");
    }
    let_go(&held);
}
END_TEST

START_TEST(types_and_operators)
{
    static const gantry_access ops[] = { GANTRY_SUM, GANTRY_PROD, GANTRY_MIN, GANTRY_MAX };
    held_gpus held = hold_gpus(gpus);
    for (int d = 0; d <= GANTRY_U64; d += getenv("GANTRY_GPU_SMALL") ? 4 : 1) {
        for (int o = d % 2; o < 4; o += 2) {
            bool real = d == GANTRY_F16 || d == GANTRY_BF16 || d == GANTRY_F32 || d == GANTRY_F64;
            nccl_case c = { GANTRY_ALL_REDUCE, (gantry_dtype)d, ops[o], gpus, 1023, o > 1, false };
            if (!real || o < 2)
                try_case(&c, d % 4 > 1 ? "graph" : "stream");
        }
    }
    let_go(&held);
}
END_TEST

int main(void)
{
    gpus = in_child(most_gpus);
    if (!in_child(print_nccl) || gpus < 2) {
        printf("skipped: NCCL and two GPUs are needed; here are %d\n", gpus);
        return 77;
    }
    Suite *suite = suite_create("gpu nccl");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, collectives, 0, 16);
    tcase_add_test(tests, types_and_operators);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
