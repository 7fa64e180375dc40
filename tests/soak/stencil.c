/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stencil in a ring of lists over the devices, started again and again. It is the wave equation in steps of one:
 *
 *     u(t + 1, i) = u(t, i - 1) + u(t, i + 1) - u(t - 1, i)
 *
 * Whatever f and g are, f(i - t) + g(i + t) solves it (d'Alembert), which is what words are compared with: no step is
 * computed here. f and g are whole numbers below 2^20, so that floats hold all of them exactly, in any order. Nothing
 * is ever damped: a word that was wrong once leaves wrong words for good. The number of lists is odd and that of steps
 * a power of two, so no start ends as one of the `lists` before it did.
 */
#include "soak.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 16, WIDTH = 256, LISTS = 8, LARGEST = 1 << 20 };
#define DEADLINE_US 20e6

typedef struct ring {
    gantry_machine *machine;
    gantry_schedule *schedule;
    gantry_run *run;
    gantry_buffer u[2]; /* at an even time, and at an odd one */
    int lists;
    float *at; /* at each time from 0 to lists - 1: all words */
    uint64_t starts, wrong;
} ring;

/* Any numbers will do that differ from list to list and from word to word. */
static uint32_t number(uint32_t which, uint32_t list, uint32_t word)
{
    uint32_t x = (which * 4099 + list) * WIDTH + word + 1;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return (x ^ (x >> 16)) % LARGEST;
}

/* All words at a time, which may be as late as it likes: in a ring, they come again after `lists` steps. */
static const float *words_at(const ring *r, uint64_t time)
{
    return &r->at[(size_t)(time % (uint64_t)r->lists) * (size_t)r->lists * WIDTH];
}

static bool solve(ring *r)
{
    uint32_t lists = (uint32_t)r->lists;
    float *to = r->at = malloc((size_t)lists * lists * WIDTH * sizeof *r->at);
    for (uint32_t t = 0; to && t < lists; t++)
        for (uint32_t i = 0; i < lists; i++)
            for (uint32_t k = 0; k < WIDTH; k++)
                *to++ = (float)(number(0, (i + lists - t) % lists, k) + number(1, (i + t) % lists, k));
    return to != NULL;
}

/* y = x + b y of two lists, as kernel axpby has it. */
static void add_node(gantry_graph *g, const char *where, gantry_region x, double b, gantry_region y)
{
    gantry_node n = gantry_graph_kernel(g, NULL, "axpby");
    gantry_node_on(g, n, where);
    gantry_node_scalar(g, n, "a", 1);
    gantry_node_scalar(g, n, "b", b);
    gantry_node_arg(g, n, "x", x);
    gantry_node_arg(g, n, "y", y);
}

static gantry_graph *make_graph(ring *r, const settings *s)
{
    gantry_graph *g = gantry_graph_new("stencil");
    for (int k = 0; k < 2; k++) {
        r->u[k] = gantry_graph_buffer(g, k ? "odd" : "even", GANTRY_F32, 2, ((int64_t[]){ r->lists, WIDTH }));
        gantry_buffer_split(g, r->u[k], r->lists);
        gantry_buffer_set_class(g, r->u[k], GANTRY_STATE);
    }
    gantry_buffer_output(g, r->u[0]);
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < r->lists; i++) {
            const char *where = device_id(r->machine, s, i * s->devices / r->lists);
            gantry_buffer now = r->u[step % 2], then = r->u[(step + 1) % 2];
            add_node(g, where, gantry_part(now, (i + r->lists - 1) % r->lists), -1, gantry_part(then, i));
            add_node(g, where, gantry_part(now, (i + 1) % r->lists), 1, gantry_part(then, i));
        }
    return g;
}

static uint64_t bytes_of(const ring *r)
{
    return (uint64_t)r->lists * WIDTH * sizeof(float);
}

static bool open_all(ring *r, const settings *s, gantry_graph *g)
{
    gantry_error err = { 0 };
    return open_run(&r->schedule, &r->run, g, r->machine, s, DEADLINE_US) &&
           !told(gantry_run_bind(r->run, r->u[0], words_at(r, 0), bytes_of(r), &err), &err) &&
           !told(gantry_run_bind(r->run, r->u[1], words_at(r, (uint64_t)r->lists - 1), bytes_of(r), &err), &err);
}

static bool make(ring *r, const settings *s)
{
    *r = (ring){ .machine = make_machine(s, s->devices), .lists = LISTS * s->devices - 1 };
    if (!r->machine || !solve(r))
        return false;
    gantry_graph *g = make_graph(r, s);
    bool fine = open_all(r, s, g);
    gantry_graph_free(g);
    return fine;
}

static void drop(ring *r)
{
    gantry_run_free(r->run);
    gantry_schedule_free(r->schedule);
    gantry_machine_free(r->machine);
    free(r->at);
}

static uint64_t wrong_words(const ring *r, const float *got, const float *wanted)
{
    uint64_t wrong = 0;
    if (memcmp(got, wanted, bytes_of(r)) == 0)
        return 0;
    for (int i = 0; i < r->lists * WIDTH; i++)
        wrong += memcmp(&got[i], &wanted[i], sizeof *got) != 0;
    return wrong;
}

/* Of the words at an even time; what is wrong at an odd one makes these wrong in the next start. False after a message.
 */
static bool start(ring *r)
{
    gantry_error err = { 0 };
    uint64_t ticket, wrong;
    if (told(gantry_run_start(r->run, &ticket, &err), &err) || told(gantry_run_wait(r->run, ticket, &err), &err))
        return false;
    const void *got = NULL;
    if (told(gantry_run_output(r->run, r->u[0], &got, NULL, &err), &err))
        return false;
    wrong = wrong_words(r, got, words_at(r, ++r->starts * STEPS));
    if (wrong && !r->wrong)
        fprintf(stderr, "start %" PRIu64 ": %" PRIu64 " words are wrong\n", r->starts, wrong);
    r->wrong += wrong;
    return true;
}

/* Where GPUs were to replay by themselves, that they did. */
static bool is_replayed(const ring *r, const settings *s, const char **replay)
{
    gantry_error err = { 0 };
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    *replay = "?";
    if (!r->run || told(gantry_run_get_info(r->run, &info, &err), &err))
        return false;
    *replay = info.replay;
    bool wanted = s->replay && strcmp(s->replay, "device") == 0 && strcmp(s->backend, "cuda") == 0;
    return !wanted || strncmp(info.replay, "device", strlen("device")) == 0;
}

int soak_stencil(const settings *s)
{
    ring r;
    trend t = { 0 };
    const char *replay;
    double begin = seconds_now(), part;
    bool fine = make(&r, s);
    while (fine && !r.wrong && (part = part_done(r.starts, begin, s)) < 1) {
        still_moving("stencil");
        fine = start(&r);
        look_at(&t, part, s);
    }
    fine = fine && start(&r); /* what the last one left at an odd time is seen in this one */
    double took = seconds_now() - begin;
    fine = is_replayed(&r, s, &replay) && fine;
    printf("stencil: %" PRIu64
           " starts of %d steps of %d lists on %d devices (%s, replay %s), %.1f s, %.2f us each, %" PRIu64
           " words each, %" PRIu64 " wrong\n",
           r.starts, STEPS, r.lists, s->devices, s->backend, replay, took, r.starts ? took * 1e6 / (double)r.starts : 0,
           bytes_of(&r) / sizeof(float), r.wrong);
    bool flat = is_flat(&t, s);
    drop(&r);
    return fine && !r.wrong && flat ? EXIT_SUCCESS : EXIT_WRONG;
}
