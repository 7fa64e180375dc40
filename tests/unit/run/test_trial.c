/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of two ways a trial keeps, and what it costs: a back end whose starts take what the test says, so that what
 * would have been the best is known. Its time is that of the test, and no clock's.
 */
#include "base/error.h"
#include "build.h"
#include "run/trial.h"

#include <string.h>

enum { TESTS = 4, SEEDS = 100 };

static unsigned draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33);
}

static double uniform(uint64_t *state, double least, double most)
{
    return least + (most - least) * (draw(state) % 100001) / 100000.0;
}

/* Starts one behind the other: the host's take as long each, the devices' an overhead a launch besides. */
typedef struct world {
    gantry_graph *graph;
    gantry_machine *machine;
    gantry_schedule *schedule;
    gy_job job;
    gy_backend backend;
    gy_lead_trial trial;

    double us[GY_LEADS], launch_us, noise, turn_us;
    const char *cannot; /* why the devices cannot */
    uint64_t random;
    gy_lead way;
    int turns;                 /* calls of turn_to */
    bool kept, counted;        /* turned to for good; with counters when it turned to devices */
    uint64_t starts[GY_LEADS]; /* that were made */
    double all_us;             /* of all starts */
} world;

static gantry_status turn_to(void *state, gy_lead way, bool for_good, gantry_error *err)
{
    world *w = state;
    w->turns++;
    ck_assert(!w->kept);
    if (way == GY_LEAD_DEVICE && w->cannot)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "%s", w->cannot);
    w->counted = w->counted || (way == GY_LEAD_DEVICE && w->job.counters && w->job.counters->at.count > 0);
    w->way = way;
    w->kept = for_good;
    return GANTRY_OK;
}

static int64_t turn_ns(void *state)
{
    return (int64_t)(((world *)state)->turn_us * 1e3);
}

static gantry_graph *two_devices(void)
{
    static const char text[] =
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[64],\"init\":1},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[64]},\"z\":{\"dtype\":\"f32\",\"shape\":[64],\"output\":true}},\"nodes\":["
        "{\"id\":\"a\",\"on\":0,\"kernel\":\"copy\",\"args\":{\"x\":\"x\",\"y\":\"y\"}},"
        "{\"id\":\"b\",\"on\":1,\"kernel\":\"copy\",\"args\":{\"x\":\"y\",\"y\":\"z\"}}]}";
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

static void open_world(world *w, const char *replay)
{
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    options.replay = replay;
    options.effort = 0;
    *w = (world){ .graph = two_devices(), .us = { 100, 50 }, .turn_us = 1000, .random = 1 };
    MUST(gantry_machine_virtual(&w->machine, 2, MUST_ERR));
    MUST(gantry_schedule_new(&w->schedule, w->graph, w->machine, &options, MUST_ERR));
    w->job = (gy_job){ .schedule = w->schedule, .graph = w->graph, .turns = 1 };
    w->backend = (gy_backend){ .name = "test", .turn_to = turn_to, .turn_ns = turn_ns };
}

static void make(world *w)
{
    gy_trial_make(&w->trial, &w->backend, w, &w->job);
}

static void close_world(world *w)
{
    gy_trial_free(&w->trial);
    gantry_schedule_free(w->schedule);
    gantry_machine_free(w->machine);
    gantry_graph_free(w->graph);
}

/* The next piece; returns how many starts it had. The host makes one at a time. */
static uint64_t piece(world *w, uint64_t left, bool known)
{
    uint64_t starts = gy_trial_next(&w->trial, left, known);
    if (starts < 1 || starts > left) /* a passing ck_assert is a call of the system */
        ck_abort_msg("a piece of %llu starts of %llu", (unsigned long long)starts, (unsigned long long)left);
    starts = w->way == GY_LEAD_HOST ? 1 : starts;
    double us = (double)starts * w->us[w->way] + (w->way == GY_LEAD_DEVICE ? w->launch_us : 0);
    us *= w->noise > 0 ? uniform(&w->random, 1, 1 + w->noise) : 1;
    w->all_us += us;
    w->starts[w->way] += starts;
    gy_trial_note(&w->trial, starts, (int64_t)(us * 1e3));
    return starts;
}

static void make_starts(world *w, uint64_t starts, bool known)
{
    for (uint64_t i = 0; i < starts;)
        i += piece(w, starts - i, known);
}

static gantry_run_info told(const world *w)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    gy_trial_tell(&w->trial, &info);
    return info;
}

/* ---- which is kept ---- */

/* Of random costs, the way that is faster for long, unless they are as good as equal; with figures that are near what
 * the starts took. */
static void check_faster(const world *base, uint64_t random)
{
    world w = *base;
    w.us[GY_LEAD_HOST] = uniform(&random, 5, 5000);
    w.us[GY_LEAD_DEVICE] =
        w.us[GY_LEAD_HOST] * (draw(&random) % 2 ? uniform(&random, 0.01, 0.9) : uniform(&random, 1.05, 50));
    w.noise = draw(&random) % 2 * 0.02;
    w.turn_us = w.us[GY_LEAD_HOST] * 5;
    w.random = random;
    make(&w);
    make_starts(&w, 2000 + draw(&random) % 20000, true);
    gy_lead best = w.us[GY_LEAD_DEVICE] < w.us[GY_LEAD_HOST] ? GY_LEAD_DEVICE : GY_LEAD_HOST;
    gantry_run_info info = told(&w);
    ck_assert_int_eq(w.way, best);
    ck_assert(w.kept && w.counted);
    ck_assert_msg(strstr(info.trial, "us a start led by the host, ") != NULL, "%s", info.trial);
    ck_assert_double_eq_tol(info.trial_host_us / w.us[GY_LEAD_HOST], 1, 0.03);
    ck_assert_double_eq_tol(info.trial_device_us / w.us[GY_LEAD_DEVICE], 1, 0.03);
    ck_assert((w.job.counters != NULL) == (best == GY_LEAD_DEVICE));
    gy_trial_free(&w.trial);
}

START_TEST(faster)
{
    world base;
    open_world(&base, "auto");
    for (int i = 0; i < SEEDS; i++)
        check_faster(&base, (uint64_t)(_i * SEEDS + i + 1));
    close_world(&base);
}
END_TEST

/* Whatever the costs, all starts together take little more than the host would have, or the better way if that is
 * longer: one part in 40 that the devices may lose, and a piece; two batches in 50. */
static void check_cost(const world *base, uint64_t random)
{
    world w = *base;
    w.us[GY_LEAD_HOST] = uniform(&random, 5, 500);
    w.us[GY_LEAD_DEVICE] = w.us[GY_LEAD_HOST] * uniform(&random, 0.1, draw(&random) % 2 ? 3 : 300);
    w.launch_us = draw(&random) % 2 * uniform(&random, 1, 100);
    w.turn_us = 1;
    uint64_t starts = 208 + draw(&random) % 50000;
    make(&w);
    make_starts(&w, starts, true);
    double host = (double)starts * w.us[GY_LEAD_HOST], devices = (double)starts * w.us[GY_LEAD_DEVICE] + w.launch_us;
    double most = w.us[GY_LEAD_DEVICE] < w.us[GY_LEAD_HOST]
                      ? devices + (host - devices) * (2 * (1 / 25.0) + 16.0 / (double)starts)
                      : host;
    /* A piece is what it cannot take back: as long as all before it together. */
    most += 2 * host / 40 + w.launch_us * 24 + w.us[GY_LEAD_DEVICE] * 2;
    ck_assert_uint_eq(w.starts[0] + w.starts[1], starts);
    ck_assert_msg(w.all_us <= most, "%g us, %g led by the host, %g by devices", w.all_us, host, devices);
    gy_trial_free(&w.trial);
}

START_TEST(cost)
{
    world base;
    open_world(&base, "auto");
    for (int i = 0; i < SEEDS; i++)
        check_cost(&base, (uint64_t)(_i * SEEDS + i + 1));
    close_world(&base);
}
END_TEST

/* Long launches that only few starts have to pay for. */
START_TEST(launches)
{
    world w;
    open_world(&w, "auto");
    w.us[GY_LEAD_DEVICE] = 90;
    w.launch_us = 200; /* a batch of the 20000 starts has 256 */
    make(&w);
    make_starts(&w, 20000, true);
    ck_assert_int_eq(w.way, GY_LEAD_DEVICE);
    close_world(&w);
}
END_TEST

/* ---- where nothing is tried ---- */

START_TEST(few)
{
    world w;
    open_world(&w, "auto");
    make(&w);
    make_starts(&w, 199, true);
    ck_assert_int_eq(w.turns, 0);
    ck_assert_str_eq(told(&w).trial, "none yet: too few starts in a row");
    for (int i = 0; i < 100; i++)
        make_starts(&w, 150, true);
    ck_assert_int_eq(w.turns, 0);
    close_world(&w);
}
END_TEST

/* To turn takes longer than a part of all starts. */
START_TEST(short_starts)
{
    world w;
    open_world(&w, "auto");
    w.turn_us = 1000 * 100 / 39.0;
    make(&w);
    make_starts(&w, 1000, true);
    ck_assert_int_eq(w.turns, 0);
    make_starts(&w, 1000, true); /* those that were before count, too */
    ck_assert_int_eq(w.way, GY_LEAD_DEVICE);
    close_world(&w);
}
END_TEST

static char somewhere;
static gantry_network *const some_network = (gantry_network *)(void *)&somewhere; /* nobody looks at it */

START_TEST(never)
{
    world w;
    open_world(&w, _i == 0 ? "stream" : _i == 1 ? "graph" : _i == 2 ? "device" : "auto");
    w.job.turns = _i == 3 ? 2 : 1;
    w.job.record = _i == 4;
    w.job.apart = _i == 5;
    w.job.network = _i == 6 ? some_network : NULL;
    w.job.deadline_ns = _i == 7;
    w.backend.turn_to = _i == 8 ? NULL : turn_to;
    make(&w);
    make_starts(&w, 10000, true);
    ck_assert_int_eq(w.turns, 0);
    ck_assert_ptr_null(told(&w).trial);
    close_world(&w);
}
END_TEST

/* ---- loops that a condition ends ---- */

/* Of a loop that may end at any time, what is known to follow is as much as there was. */
START_TEST(unknown)
{
    world w;
    open_world(&w, "auto");
    make(&w);
    for (int i = 0; i < 12; i++) { /* each ends long before its limit */
        for (int k = 0; k < 16; k++)
            piece(&w, 1000000, false);
        ck_assert_int_eq(w.turns, 0);
    }
    make_starts(&w, 5000, false);
    ck_assert_int_eq(w.way, GY_LEAD_DEVICE);
    close_world(&w);
}
END_TEST

/* It ends in the middle of each stage, again and again: batches go on where they were. */
START_TEST(ends_in_between)
{
    world w;
    uint64_t random = (uint64_t)_i + 1;
    open_world(&w, "auto");
    w.us[GY_LEAD_DEVICE] = _i % 2 ? 60 : 140;
    make(&w);
    for (int i = 0; i < 4000 && !w.kept; i++)
        make_starts(&w, i < 20 ? 300 : 1 + draw(&random) % 4, false);
    ck_assert(w.kept);
    ck_assert_int_eq(w.way, _i % 2 ? GY_LEAD_DEVICE : GY_LEAD_HOST);
    close_world(&w);
}
END_TEST

/* ---- what goes wrong ---- */

START_TEST(cannot)
{
    world w;
    open_world(&w, "auto");
    w.cannot = "GPUs do not reach each other";
    make(&w);
    make_starts(&w, 2000, true);
    ck_assert_uint_eq(w.starts[GY_LEAD_HOST], 2000);
    ck_assert_int_eq(w.turns, 2); /* the second says that it is for good */
    ck_assert(w.kept);
    ck_assert_str_eq(told(&w).trial, "not by the devices: GPUs do not reach each other");
    ck_assert_ptr_null(w.job.counters);
    close_world(&w);
}
END_TEST

static void fail_piece(world *w, gantry_status status)
{
    gantry_error error = { .status = status, .text = "cuLaunchCooperativeKernel failed" };
    gy_trial_next(&w->trial, 1000, true);
    gy_trial_fail(&w->trial, &error);
}

/* A start that fails in a stage, once that has begun. Where the host leads it, or it was cancelled, the trial goes on;
 * devices that fail are not kept, however fast they are. */
START_TEST(fails)
{
    world w;
    bool by_devices = _i / 2 % 2, canceled = _i % 2;
    open_world(&w, "auto");
    make(&w);
    do {
        piece(&w, 5000, true);
    } while (by_devices ? w.way == GY_LEAD_HOST : w.trial.stage == GY_TRIAL_WAITS);
    for (int i = 0; i < 3 * (_i / 4); i++)
        piece(&w, 5000, true);
    fail_piece(&w, canceled ? GANTRY_E_CANCELED : GANTRY_E_DEVICE);
    make_starts(&w, 5000, true);
    ck_assert(w.kept);
    bool refused = by_devices && !canceled;
    ck_assert_int_eq(w.way, refused ? GY_LEAD_HOST : GY_LEAD_DEVICE);
    ck_assert_int_eq(strcmp(told(&w).trial, "not by the devices: cuLaunchCooperativeKernel failed") == 0, refused);
    close_world(&w);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trial");
    TCase *c = tcase_create("trial");
    tcase_add_loop_test(c, faster, 0, TESTS);
    tcase_add_loop_test(c, cost, 0, TESTS);
    tcase_add_test(c, launches);
    tcase_add_test(c, few);
    tcase_add_test(c, short_starts);
    tcase_add_loop_test(c, never, 0, 9);
    tcase_add_test(c, unknown);
    tcase_add_loop_test(c, ends_in_between, 0, 6);
    tcase_add_test(c, cannot);
    tcase_add_loop_test(c, fails, 0, 12);
    suite_add_tcase(s, c);
    return run_suite(s);
}
