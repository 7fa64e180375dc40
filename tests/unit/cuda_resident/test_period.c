/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series of starts that overlap, by one launch of the emulated resident kernel: a pipeline over GPUs whose stages work
 * at starts that are several apart, each in a window of its own. Every start has another number in its data, and the
 * last stage adds up what comes, so a start that finds bytes of another one shows in the results, which are those of
 * the host.
 */
#include "control.h"
#include "rings.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 12, ROWS = 96 };

static const char series[] = "; series of starts by one launch";

typedef struct pipeline {
    int gpus, stages, lanes, in_flight;
    const char *replay; /* NULL: by the device */
} pipeline;

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
    gantry_run *host, *run;
    float x[3][ROWS], sums[2][ROWS];
} world;

static pipeline draw(int seed)
{
    return (pipeline){
        .gpus = 1 + seed % 3, .stages = 2 + seed % 3 + seed % 2, .lanes = 1 + seed / 3 % 2, .in_flight = 2 + seed % 3
    };
}

static void open_world(world *w, const pipeline *p, int seed)
{
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    fakeCudaDevices(p->gpus, "all", 0);
    fakeCudaSeed((uint64_t)seed + 1);
    *w = (world){ .g = pipeline_of(p->gpus, p->stages, ROWS), .m = ring_machine(p->gpus, p->lanes) };
    options.replay = p->replay ? p->replay : "device";
    options.objective = "period";
    options.in_flight = p->in_flight;
    MUST(gantry_schedule_new(&w->s, w->g, w->m, &options, MUST_ERR));
    ck_assert_int_eq((int)w->s->in_flight, p->in_flight);
    w->host = open_run(w->s, "host");
    w->run = open_run(w->s, "cuda");
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < ROWS; i++)
            w->x[k][i] = (float)(i + 1000 * k);
}

static void close_world(world *w)
{
    char text[160];
    gantry_run_free(w->host);
    gantry_run_free(w->run);
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

static gantry_buffer buffer_of(const world *w, const char *name)
{
    return gantry_graph_find_buffer(w->g, name);
}

static void bind(world *w, int k)
{
    MUST(gantry_run_bind(w->host, buffer_of(w, "x"), w->x[k], sizeof w->x[k], MUST_ERR));
    MUST(gantry_run_bind(w->run, buffer_of(w, "x"), w->x[k], sizeof w->x[k], MUST_ERR));
}

static int launches(void)
{
    return fakeCudaCalls("cuLaunchCooperativeKernel");
}

/* So many starts of both runs; returns the launches that they took. */
static int repeat(world *w, uint64_t starts)
{
    int before = launches();
    MUST(gantry_run_repeat(w->host, starts, MUST_ERR));
    MUST(gantry_run_repeat(w->run, starts, MUST_ERR));
    results wanted = outputs_of(w->host, w->g), got = outputs_of(w->run, w->g);
    ck_assert_msg(same(&wanted, &got), "%d starts", (int)starts);
    return launches() - before;
}

static uint64_t starts_of(gantry_run *run)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    return info.starts;
}

/* ---- as one ---- */

/* Series begin at every turn, with other inputs now and then, which all turns have to get; in between, starts that are
 * made one by one and overlap. */
START_TEST(overlap)
{
    static const uint64_t starts[] = { 1, 9, 2, 23, 4, 17 };
    pipeline p = draw(_i);
    world w;
    uint64_t all = 0, tickets[3];
    open_world(&w, &p, _i);
    for (int k = 0; k < 6; k++) {
        bind(&w, k % 3);
        int made = repeat(&w, starts[k]);
        ck_assert_msg(made == p.gpus || starts[k] == 1, "%d launches of %d starts", made, (int)starts[k]);
        for (int i = 0; i < k % 3; i++) {
            MUST(gantry_run_start(w.host, &tickets[i], MUST_ERR));
            MUST(gantry_run_start(w.run, &tickets[i], MUST_ERR));
        }
        all += starts[k] + (uint64_t)(k % 3);
    }
    repeat(&w, 3);
    ck_assert_uint_eq(starts_of(w.run), all + 3);
    ck_assert_msg(strstr(replay_of(w.run), series), "%s", replay_of(w.run));
    close_world(&w);
}
END_TEST

/* ---- start by start ---- */

/* Results that go to arrays of the caller, as all starts write into the same ones. */
START_TEST(arrays_of_the_caller)
{
    pipeline p = draw(_i);
    world w;
    open_world(&w, &p, _i);
    bind(&w, 0);
    gantry_buffer sum = buffer_of(&w, "sum");
    MUST(gantry_run_bind_output(w.host, sum, w.sums[0], sizeof w.sums[0], MUST_ERR));
    MUST(gantry_run_bind_output(w.run, sum, w.sums[1], sizeof w.sums[1], MUST_ERR));
    int made = repeat(&w, 7);
    ck_assert_msg(made == 7 * p.gpus, "%d launches", made);
    made = repeat(&w, 4);
    ck_assert_msg(made == 4 * p.gpus, "%d launches", made);
    ck_assert_mem_eq(w.sums[0], w.sums[1], sizeof w.sums[0]);
    close_world(&w);
}
END_TEST

/* Streams replay nothing by one launch: their starts overlap as ever. */
START_TEST(by_streams)
{
    pipeline p = draw(_i);
    world w;
    p.replay = "stream";
    open_world(&w, &p, _i);
    for (int k = 0; k < 3; k++) {
        bind(&w, k);
        ck_assert_int_eq(repeat(&w, 8), 0);
    }
    close_world(&w);
}
END_TEST

/* A launch on one of the GPUs fails: others are let go, and what follows is right. */
START_TEST(launch_fails)
{
    pipeline p = { .gpus = 2, .stages = 4, .lanes = 1 + _i % 2, .in_flight = 2 + _i % 3 };
    gantry_error err = { 0 };
    world w;
    open_world(&w, &p, _i);
    bind(&w, 1);
    MUST(gantry_run_repeat(w.run, 3, MUST_ERR));
    fakeCudaFail("cuLaunchCooperativeKernel:2:2");
    ck_assert_int_ne(gantry_run_repeat(w.run, 9, &err), GANTRY_OK);
    fakeCudaFail(NULL);
    ck_assert_msg(strstr(err.text, "CUDA_ERROR_OUT_OF_MEMORY"), "%s", err.text);
    MUST(gantry_run_repeat(w.host, 7, MUST_ERR)); /* states begin anew after a failure */
    MUST(gantry_run_repeat(w.run, 7, MUST_ERR));
    results wanted = outputs_of(w.host, w.g), got = outputs_of(w.run, w.g);
    ck_assert(same(&wanted, &got));
    close_world(&w);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("period");
    TCase *c = tcase_create("series");
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    tcase_add_loop_test(c, overlap, 0, SEEDS);
    tcase_add_loop_test(c, arrays_of_the_caller, 0, 3);
    tcase_add_loop_test(c, by_streams, 0, 3);
    tcase_add_loop_test(c, launch_fails, 0, 4);
    return run_suite(s);
}
