/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series: several starts by one launch of the emulated resident kernel, whose blocks run in an order that a seed
 * decides, and see each other's stores late. Results, and the iterations that loops take, are those of the host, which
 * makes start after start.
 */
#include "control.h"
#include "rings.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 16384, SEEDS = 10 };

static unsigned draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33);
}

static gantry_graph *parse(const char *text)
{
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

/* ---- loops ---- */

/* Lists in a ring, list i on GPU i * gpus / lists: in an iteration a list takes in what its neighbours had. `n` counts
 * iterations, and the loop ends when a look, after each `every`, finds that there were `last` of them or more; GPU
 * `where` has that. */
typedef struct loop {
    int gpus, lists, rows, limit, every, last, where;
    const char *dtype;         /* of what ends the loop */
    const char *factor, *less; /* of a list; in place of 1 - last */
    bool until, apart;         /* apart: a list takes in itself, so no GPU waits for another */
} loop;

static int add_lists(char *text, const loop *l)
{
    int at = 0;
    for (int i = 0; i < l->lists; i++) {
        int device = 1 + i * l->gpus / l->lists, before = l->apart ? 0 : l->lists - 1, behind = !l->apart;
        int left = (i + before) % l->lists, right = (i + behind) % l->lists;
        at += snprintf(
            text + at, TEXT / 2 - (size_t)at,
            "{\"id\":\"a%d\",\"on\":%d,\"kernel\":\"scale\",\"args\":{\"a\":%s,\"x\":\"x[%d]\",\"y\":\"y[%d]\"}},"
            "{\"id\":\"b%d\",\"on\":%d,\"kernel\":\"axpby\",\"args\":{\"a\":0.25,\"b\":0.5,\"x\":\"x[%d]\",\"y\":"
            "\"y[%d]\"}},",
            i, device, l->factor ? l->factor : "0.5", left, i, i, device, right, i);
    }
    return at;
}

static gantry_graph *graph_of(const loop *l)
{
    char text[TEXT], lists[TEXT / 2], until[80] = "", less[16];
    int device = 1 + l->where, rows = l->lists * l->rows;
    bool whole = l->dtype[0] == 'i' || l->dtype[0] == 'u'; /* no kernel makes 0 of what is less than 0 */
    add_lists(lists, l);
    snprintf(less, sizeof less, "%d", 1 - l->last);
    if (l->until)
        snprintf(until, sizeof until, "\"until\":{\"buffer\":\"done\",\"every\":%d},", l->every);
    int length = snprintf(
        text, sizeof text,
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[%d],\"split\":%d,\"init\":\"iota\",\"class\":"
        "\"state\","
        "\"output\":true},\"y\":{\"dtype\":\"f32\",\"shape\":[%d],\"split\":%d},"
        "\"one\":{\"dtype\":\"%s\",\"shape\":[1],\"init\":1},\"less\":{\"dtype\":\"%s\",\"shape\":[1],\"init\":%s},"
        "\"n\":{\"dtype\":\"%s\",\"shape\":[1],\"init\":0,\"class\":\"state\",\"output\":true},"
        "\"room\":{\"dtype\":\"%s\",\"shape\":[1]},\"done\":{\"dtype\":\"%s\",\"shape\":[1],\"output\":true}},"
        "\"nodes\":[{\"repeat\":%d,\"carry\":{\"x\":\"y\"},%s\"nodes\":[%s"
        "{\"id\":\"count\",\"on\":%d,\"kernel\":\"saxpy\",\"args\":{\"a\":1,\"x\":\"one\",\"y\":\"n\"}},"
        "{\"id\":\"room\",\"on\":%d,\"kernel\":\"add\",\"args\":{\"x\":\"n\",\"y\":\"less\",\"z\":\"room\"}},"
        "{\"id\":\"done\",\"on\":%d,\"kernel\":\"%s\",\"args\":{\"x\":\"room\",\"y\":\"done\"}}]}]}",
        rows, l->lists, rows, l->lists, l->dtype, l->dtype, l->less ? l->less : less, l->dtype, l->dtype, l->dtype,
        l->limit, until, lists, device, device, device, whole ? "copy" : "relu");
    ck_assert_int_lt(length, TEXT);
    return parse(text);
}

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
} world;

/* Loops are never unrolled. */
static world make(gantry_graph *g, gantry_machine *m)
{
    world w = { .g = g, .m = m };
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    options.replay = "device";
    options.unroll = 1;
    options.effort = 0;
    MUST(gantry_schedule_new(&w.s, w.g, w.m, &options, MUST_ERR));
    return w;
}

static world loop_world(const loop *l, int lanes, uint64_t seed)
{
    fakeCudaDevices(l->gpus, "all", 0);
    fakeCudaSeed(seed);
    return make(graph_of(l), ring_machine(l->gpus, lanes));
}

static void drop(world *w)
{
    char text[160];
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

static uint64_t iterations_of(gantry_run *run)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    return info.iterations;
}

static int launches(void)
{
    return fakeCudaCalls("cuLaunchCooperativeKernel");
}

static const char series[] = "; series of starts by one launch";

/* Starts of the whole graph; in each, a phase of several starts takes a launch for each GPU if `together`. */
static void compare(const world *w, int starts, bool together, const char *words)
{
    gantry_run *host = open_run(w->s, "host"), *run = open_run(w->s, "cuda");
    for (int i = 0; i < starts; i++) {
        int before = launches();
        results wanted = run_results(host, w->g), got = run_results(run, w->g);
        ck_assert_uint_eq(iterations_of(run), iterations_of(host));
        ck_assert_msg(same(&wanted, &got), "start %d", i);
        size_t most = gantry_schedule_phase_count(w->s) * (size_t)w->m->devices;
        ck_assert_msg(!together || launches() - before <= (int)most, "%d launches", launches() - before);
    }
    ck_assert_msg(strstr(replay_of(run), words), "%s", replay_of(run));
    gantry_run_free(host);
    gantry_run_free(run);
}

static loop random_loop(uint64_t seed, int gpus)
{
    loop l = { .gpus = gpus, .dtype = "f32", .until = true };
    l.lists = gpus * (1 + (int)(draw(&seed) % 2));
    l.rows = 16 << draw(&seed) % 3;
    l.every = 1 + (int)(draw(&seed) % 3);
    l.limit = l.every * (8 + (int)(draw(&seed) % 8));
    l.where = (int)(draw(&seed) % (unsigned)gpus);
    return l;
}

/* At once, which the first two iterations may do by themselves, in the middle, at the limit of the loop. */
START_TEST(until)
{
    int gpus = 1 + _i % 3, end = _i / 3 % 3;
    loop l = random_loop((uint64_t)_i + 1, gpus);
    l.last = end == 0 ? 1 + (int)_i / 9 % 3 : end == 1 ? l.limit / 2 : 2 * l.limit;
    world w = loop_world(&l, 1 + _i % 2, (uint64_t)_i + 1);
    compare(&w, 2, true, series);
    drop(&w);
}
END_TEST

START_TEST(repeat)
{
    loop l = random_loop((uint64_t)_i + 1, 1 + _i % 3);
    l.until = false;
    l.last = 1;
    world w = loop_world(&l, 1 + _i % 2, (uint64_t)_i + 1);
    compare(&w, 2, true, series);
    drop(&w);
}
END_TEST

/* Of GPUs that do not reach each other, events of streams carry waits, and the host looks at the condition. */
START_TEST(unreached)
{
    int gpus = 2 + _i % 2;
    loop l = random_loop((uint64_t)_i + 1, gpus);
    l.lists = 3 * gpus;
    l.until = _i / 2 % 2 == 0;
    l.last = l.until ? l.limit / 2 : 1;
    fakeCudaDevices(gpus, gpus == 3 && _i > 3 ? "01,10,12,21" : "none", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    world w = make(graph_of(&l), ring_machine(gpus, 1 + _i % 2));
    compare(&w, 2, false, "; one start a launch: GPUs that do not reach each other's memory wait for each other");
    drop(&w);
}
END_TEST

/* A number that ends a loop may be of any type. Whole numbers end this one as soon as they are not 0, also below 0;
 * those without a sign begin with the largest of their type. */
static const struct {
    const char *dtype, *less;
    uint64_t iterations;
} types[] = { { "f16", "-6", 7 }, { "bf16", "-6", 7 },        { "f32", "-6", 7 }, { "f64", "-6", 7 },
              { "i8", "-1", 2 },  { "u8", "255", 2 },         { "i32", "-1", 2 }, { "u32", "4294967295", 2 },
              { "i64", "-1", 2 }, { "i32", "-2147483648", 1 } };

START_TEST(dtypes)
{
    loop l = { .gpus = 2, .lists = 2, .rows = 16, .limit = 12, .every = 1, .where = 1, .until = true };
    l.dtype = types[_i].dtype;
    l.less = types[_i].less;
    world w = loop_world(&l, 1, (uint64_t)_i + 1);
    gantry_run *run = open_run(w.s, "cuda");
    run_results(run, w.g);
    ck_assert_uint_eq(iterations_of(run), types[_i].iterations);
    gantry_run_free(run);
    compare(&w, 1, true, series);
    drop(&w);
}
END_TEST

/* ---- starts of the whole ---- */

static void check_repeats(const world *w, const char *words, int most)
{
    static const uint64_t starts[] = { 1, 9, 0, 2, 23 };
    gantry_run *host = open_run(w->s, "host"), *run = open_run(w->s, "cuda");
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        gantry_run_info info = GANTRY_RUN_INFO_INIT;
        int before = launches();
        if (starts[i] == 0) { /* between series, a start alone */
            run_results(host, w->g);
            run_results(run, w->g);
            continue;
        }
        MUST(gantry_run_repeat(host, starts[i], MUST_ERR));
        MUST(gantry_run_repeat(run, starts[i], MUST_ERR));
        ck_assert_msg(!most || launches() - before == most, "%d launches", launches() - before);
        results wanted = outputs_of(host, w->g), got = outputs_of(run, w->g);
        ck_assert_msg(same(&wanted, &got), "series %zu", i);
        MUST(gantry_run_get_info(run, &info, MUST_ERR));
        ck_assert_uint_eq(info.starts, i == 0 ? 1u : i == 1 ? 10u : i == 3 ? 13u : 36u);
    }
    ck_assert_msg(strstr(replay_of(run), words), "%s", replay_of(run));
    gantry_run_free(host);
    gantry_run_free(run);
}

START_TEST(starts)
{
    int gpus = 1 + _i % 3;
    fakeCudaDevices(gpus, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    world w = make(ring_of(gpus, gpus * (1 + _i % 2), 2, 16 << _i % 3, true), ring_machine(gpus, 1 + _i % 2));
    check_repeats(&w, series, gpus);
    drop(&w);
}
END_TEST

/* Calls that all workers of a lane share. */
START_TEST(wide)
{
    fakeCudaDevices(2, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    world w = make(ring_of(2, 2, 1, 1 << 13, true), ring_machine(2, 1));
    check_repeats(&w, series, 2);
    drop(&w);
}
END_TEST

/* ---- what is one start a launch ---- */

START_TEST(iterations_differ)
{
    loop l = { .gpus = 2, .lists = 2, .rows = 16, .limit = 6, .every = 2, .last = 4, .dtype = "f32", .until = true };
    l.factor = "\"0.5 + it\"";
    world w = loop_world(&l, 1, 1);
    compare(&w, 2, false, "; one start a launch: arguments depend on the iteration");
    drop(&w);
}
END_TEST

/* Nothing but the end of the loop goes from GPU to GPU, which have no access to each other yet when its arguments keep
 * starts apart, or never. */
START_TEST(nothing_between)
{
    static const struct {
        const char *peers, *factor, *words;
    } cases[] = {
        { "all", NULL, series },
        { "all", "\"0.5 + it\"", "; one start a launch: arguments depend on the iteration" },
        { "none", "\"0.5 + it\"", "; one start a launch: arguments depend on the iteration" },
        { "none", NULL,
          "; one start a launch: the GPU that has what ends the loop does not reach another one's memory" },
    };
    loop l = { .gpus = 2, .lists = 2, .rows = 16, .limit = 6, .every = 2, .last = 4, .dtype = "f32", .until = true };
    l.apart = true;
    l.factor = cases[_i].factor;
    fakeCudaDevices(2, cases[_i].peers, 0);
    world w = make(graph_of(&l), ring_machine(2, 1));
    compare(&w, 2, false, cases[_i].words);
    drop(&w);
}
END_TEST

/* Outputs of more than workers copy to the host. */
START_TEST(streams_copy)
{
    fakeCudaDevices(2, "all", 0);
    world w = make(ring_of(2, 2, 2, 17 << 10, true), ring_machine(2, 1));
    check_repeats(&w, "; one start a launch: streams carry out a part of it", 0);
    drop(&w);
}
END_TEST

/* ---- series that do not come to their end ---- */

/* A wait of the loop is for more than is ever signalled, from the fifth start on. */
static gy_counter_wait *spoil(const world *w)
{
    for (size_t i = 0; i < w->s->phases.count; i++) {
        gantry_schedule *s = w->s->phases.at[i].schedule;
        if (w->s->phases.at[i].phase.starts < 10)
            continue;
        gy_counter_wait *wait = s->counters.wait.at;
        while (s->ops.at[wait->op].kind != GY_OP_LAUNCH)
            wait++;
        wait->value = 100000;
        wait->distance = 4;
        return wait;
    }
    ck_abort_msg("no phase is a loop");
}

/* The first start hangs in the middle of the loop: the error names the op and the start of the series; workers that
 * wait for it, or for its verdict, are released. */
START_TEST(hung)
{
    loop l = {
        .gpus = 2, .lists = 4, .rows = 16, .limit = 40, .every = 1, .last = 30, .dtype = "f32", .until = _i % 2
    };
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket = 0;
    fakeCudaPatience(-1);
    l.where = _i / 2 % 2;
    world w = loop_world(&l, 2, (uint64_t)_i + 1);
    gy_counter_wait *wait = spoil(&w), before = *wait;
    options.backend = "cuda";
    options.deadline_us = 2e6;
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strstr(err.text, SLOW ? "; op " : "in start 5 of a series of "), "%s", err.text);
    gantry_run_free(run);
    *wait = before;
    drop(&w);
}
END_TEST

/* A series that is ended by the host although no worker waits for another. */
START_TEST(endless)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket = 0;
    loop l = { .gpus = 1, .lists = 1, .rows = 16, .limit = 1000000000, .every = 1, .last = 1, .dtype = "f32" };
    fakeCudaPatience(-1);
    world w = loop_world(&l, 1, 1);
    options.backend = "cuda";
    options.deadline_us = 1e6;
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_TIMEOUT);
    gantry_run_free(run);
    drop(&w);
}
END_TEST

/* A launch that fails on the second GPU: workers of the first are released, and what follows is right. */
START_TEST(launch_fails)
{
    gantry_error err = { 0 };
    fakeCudaDevices(2, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    world w = make(ring_of(2, 4, 2, 64, true), ring_machine(2, 2));
    gantry_run *host = open_run(w.s, "host"), *run = open_run(w.s, "cuda");
    MUST(gantry_run_repeat(run, 3, MUST_ERR));
    fakeCudaFail("cuLaunchCooperativeKernel:2:2");
    ck_assert_int_ne(gantry_run_repeat(run, 9, &err), GANTRY_OK);
    fakeCudaFail(NULL);
    ck_assert_msg(strstr(err.text, "CUDA_ERROR_OUT_OF_MEMORY"), "%s", err.text);
    MUST(gantry_run_repeat(host, 7, MUST_ERR)); /* states begin anew after a failure */
    MUST(gantry_run_repeat(run, 7, MUST_ERR));
    results wanted = outputs_of(host, w.g), got = outputs_of(run, w.g);
    ck_assert(same(&wanted, &got));
    gantry_run_free(host);
    gantry_run_free(run);
    drop(&w);
}
END_TEST

static TCase *new_case(Suite *s, const char *name)
{
    TCase *c = tcase_create(name);
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    return c;
}

int main(void)
{
    Suite *s = suite_create("series");
    TCase *c = new_case(s, "loops");
    tcase_add_loop_test(c, until, 0, 3 * SEEDS);
    tcase_add_loop_test(c, repeat, 0, SEEDS);
    tcase_add_loop_test(c, unreached, 0, 8);
    tcase_add_loop_test(c, dtypes, 0, (int)(sizeof types / sizeof *types));
    c = new_case(s, "starts");
    tcase_add_loop_test(c, starts, 0, SEEDS);
    tcase_add_loop_test(c, wide, 0, 2);
    c = new_case(s, "one start a launch");
    tcase_add_test(c, iterations_differ);
    tcase_add_loop_test(c, nothing_between, 0, 4);
    tcase_add_test(c, streams_copy);
    c = new_case(s, "no end");
    tcase_add_loop_test(c, hung, 0, 4);
    tcase_add_test(c, endless);
    tcase_add_loop_test(c, launch_fails, 0, 4);
    return run_suite(s);
}
