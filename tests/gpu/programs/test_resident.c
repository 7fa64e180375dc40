/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay by the device on real GPUs: exit code 77 without one. The same program runs on emulated GPUs. Results are the
 * host's, bit for bit; what a start takes is printed beside that of streams and of a graph. GANTRY_GPU_SMALL=1   few
 * steps and starts, for emulated GPUs and compute-sanitizer
 */
#include "unit/cuda_resident/rings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int gpus;
static bool small;

typedef struct problem {
    int lists, steps, length, lanes; /* lists and lanes of a GPU */
} problem;

/* One list a GPU; as many as lanes; more than lanes; lists that all workers of a lane share. */
static const problem problems[] = {
    { 1, 20, 1024, 1 }, { 8, 20, 1024, 8 }, { 16, 20, 1024, 4 }, { 24, 20, 1024, 24 }, { 1, 6, 1 << 20, 1 }
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
} world;

static world make(const problem *p, int used, const char *replay, bool fetched)
{
    world w = { .g = ring_of(used, used * (small && p->lists > 4 ? 4 : p->lists), small ? 3 : p->steps,
                             small && p->length > 1 << 16 ? 1 << 16 : p->length, fetched),
                .m = ring_machine(used, small && p->lanes > 2 ? 2 : p->lanes) };
    w.s = make_schedule(w.g, w.m, replay, NULL);
    return w;
}

static void drop(world *w)
{
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
}

START_TEST(rings)
{
    for (int used = 1; used <= gpus; used++) {
        char replay[720];
        world w = make(&problems[_i], used, "device", true);
        compare_with_host(w.g, w.s, small ? 2 : 50, replay, sizeof replay);
        printf("held: ring %d on %d: %s\n", _i, used, replay);
        ck_assert_msg(strncmp(replay, "device", 6) == 0, "%s", replay);
        drop(&w);
    }
}
END_TEST

static double least_us(const problem *p, int used, const char *replay)
{
    double least = 0;
    world w = make(p, used, replay, false);
    gantry_run *run = open_run(w.s, "cuda");
    for (int i = 0; i < (small ? 2 : 30); i++) {
        uint64_t ticket = 0;
        gantry_run_info info = GANTRY_RUN_INFO_INIT;
        MUST(gantry_run_start(run, &ticket, MUST_ERR));
        MUST(gantry_run_wait(run, ticket, MUST_ERR));
        MUST(gantry_run_get_info(run, &info, MUST_ERR));
        least = i == 0 || info.last_us < least ? info.last_us : least;
    }
    gantry_run_free(run);
    drop(&w);
    return least;
}

START_TEST(times)
{
    for (int used = 1; used <= gpus; used++) {
        const problem *p = &problems[_i];
        double device = least_us(p, used, "device"), stream = least_us(p, used, "stream"),
               graph = least_us(p, used, "graph");
        printf("ring of %d x %d lists of %d, %d steps, %d lanes: device %.1f us, stream %.1f, graph %.1f\n", used,
               p->lists, p->length, p->steps, p->lanes, device, stream, graph);
    }
}
END_TEST

/* A start that does not end is ended, the error names the op, and the GPUs are free for another run. */
START_TEST(hung)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket = 0;
    char replay[720], named[32];
    world w = make(&problems[1], gpus, "device", true);
    spoiled_wait spoiled = spoil_wait(w.s, named, sizeof named);
    options.backend = "cuda";
    options.deadline_us = 3e6;
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strstr(err.text, small ? "; op " : named), "%s, not %s", err.text, named);
    gantry_run_free(run);
    mend_wait(spoiled);
    compare_with_host(w.g, w.s, 3, replay, sizeof replay);
    drop(&w);
}
END_TEST

int main(void)
{
    small = getenv("GANTRY_GPU_SMALL") != NULL;
    gpus = count_gpus() < 2 ? count_gpus() : 2;
    if (gpus == 0) {
        printf("skipped: no GPU, see \"gantry machine\"\n");
        return 77;
    }
    Suite *suite = suite_create("replay by the device");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, rings, 0, PROBLEMS);
    tcase_add_loop_test(tests, times, 0, small ? 1 : PROBLEMS);
    tcase_add_test(tests, hung);
    suite_add_tcase(suite, tests);
    setenv("CK_FORK", "no", 0); /* CUDA does not survive a fork */
    return run_suite(suite);
}
