/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts that overlap give, bit for bit, what starts give that follow each other on one device: random graphs with
 * inputs, states, temporaries and outputs, on 1 to 4 devices, with 2 to 5 starts in flight. Inputs are bound anew for
 * each start while others are in flight; outputs too in every other case, else they are read after each wait. Numbers
 * are small whole ones, so that sums are the same in any order. Functions take their time, each call another, so that
 * starts meet in many ways. Some cases are run in checking mode. Every schedule has passed the checker.
 *
 * More with OVERLAP_CASES=n; one alone with OVERLAP_SEED=n.
 */
#include "support/run_suite.h"

#include <check.h>
#include <gantry/gantry.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CASES = 200, BUFFERS = 7, MOST_NODES = 14, MOST_ROWS = 20, MOST_ELEMENTS = 2 * MOST_ROWS, STARTS = 9 };

static uint64_t state;
static int64_t draw(int64_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (int64_t)((state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % (uint64_t)below);
}

static void must(gantry_status status, const gantry_error *err, uint64_t seed)
{
    ck_assert_msg(status == GANTRY_OK, "seed %llu: %s: %s", (unsigned long long)seed, gantry_status_name(status),
                  err->text);
}

/* ---- what nodes do ---- */

static atomic_uint calls;

/* 0 to 60 us. */
static void dawdle(void)
{
    unsigned n = atomic_fetch_add(&calls, 1) * 2654435761u;
    struct timespec t = { 0, (long)(n >> 16) % 4 * 20000 };
    if (t.tv_nsec > 0)
        nanosleep(&t, NULL);
}

static double modulo(double x)
{
    return (double)((int64_t)x % 1009);
}

static gantry_status mix(const gantry_launch *l)
{
    double from = 1;
    dawdle();
    for (int32_t i = 0; i < l->args; i++) {
        const double *x = l->arg[i].data;
        for (int64_t k = 0; l->arg[i].access == GANTRY_READ && k < l->arg[i].rows * l->arg[i].row_bytes / 8; k++)
            from += x[k] * (double)(k % 5 + 1);
    }
    for (int32_t i = 0; i < l->args; i++) {
        double *x = l->arg[i].data;
        for (int64_t k = 0; l->arg[i].access != GANTRY_READ && k < l->arg[i].rows * l->arg[i].row_bytes / 8; k++) {
            double mine = modulo(from + (double)k * 7);
            x[k] = l->arg[i].access == GANTRY_WRITE ? mine
                   : l->arg[i].access == GANTRY_SUM ? x[k] + mine
                                                    : modulo(3 * x[k] + mine);
        }
    }
    return GANTRY_OK;
}

/* ---- a random graph ---- */

typedef struct world {
    gantry_graph *g;
    gantry_buffer buffer[BUFFERS];
    gantry_buffer_class cls[BUFFERS];
    bool output[BUFFERS];
    int64_t rows, width, parts, bytes;
    double input[STARTS][BUFFERS][MOST_ELEMENTS], first[BUFFERS][MOST_ELEMENTS];
    double expect[STARTS][BUFFERS][MOST_ELEMENTS], got[STARTS][BUFFERS][MOST_ELEMENTS];
} world;

static void add_buffers(world *w)
{
    for (int b = 0; b < BUFFERS; b++) {
        char name[16];
        snprintf(name, sizeof name, "b%d", b);
        int64_t dice = b == 0 ? 0 : b == 1 ? 3 : draw(6);
        w->cls[b] = dice < 2 ? GANTRY_INPUT : dice < 4 ? GANTRY_STATE : GANTRY_TEMP;
        w->output[b] = b == 1 || draw(3) == 0;
        w->buffer[b] = gantry_graph_buffer(w->g, name, GANTRY_F64, 2, (int64_t[]){ w->rows, w->width });
        gantry_buffer_set_class(w->g, w->buffer[b], w->cls[b]);
        gantry_buffer_split(w->g, w->buffer[b], w->parts);
        if (w->output[b])
            gantry_buffer_output(w->g, w->buffer[b]);
    }
}

static gantry_region some_rows(const world *w, int b)
{
    if (draw(4) == 0)
        return gantry_all(w->buffer[b]);
    if (draw(4) == 0) {
        int64_t first = draw(w->rows);
        return gantry_rows(w->buffer[b], first, first + 1 + draw(w->rows - first));
    }
    return gantry_part(w->buffer[b], draw(w->parts));
}

static void add_node(const world *w)
{
    int to = (int)draw(BUFFERS), reads = 1 + (int)draw(3);
    while (w->cls[to] == GANTRY_INPUT)
        to = (int)draw(BUFFERS);
    gantry_node n = gantry_graph_launch(w->g, "mix", mix, NULL);
    gantry_node_time(w->g, n, NULL, (double)(5 + draw(40)));
    for (int i = 0; i < reads; i++) {
        int from = (int)draw(BUFFERS);
        if (from != to)
            gantry_node_read(w->g, n, some_rows(w, from));
    }
    int64_t dice = draw(3);
    if (dice == 0)
        gantry_node_write(w->g, n, some_rows(w, to));
    else if (dice == 1)
        gantry_node_readwrite(w->g, n, some_rows(w, to));
    else
        gantry_node_reduce(w->g, n, some_rows(w, to), GANTRY_SUM);
}

static void make_world(world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    w->g = gantry_graph_new("overlap");
    w->parts = 1 + draw(4);
    w->rows = w->parts * (1 + draw(4)) + draw(3);
    w->width = 1 + draw(2);
    w->bytes = w->rows * w->width * 8;
    add_buffers(w);
    for (int b = 0; b < BUFFERS; b++) {
        if (w->cls[b] == GANTRY_TEMP)
            gantry_graph_fill(w->g, "begin", gantry_all(w->buffer[b]), (double)b);
        for (int i = 0; i < w->rows * w->width; i++) {
            w->first[b][i] = (double)draw(100);
            for (int s = 0; s < STARTS; s++)
                w->input[s][b][i] = (double)draw(100);
        }
    }
    for (int64_t n = 3 + draw(MOST_NODES - 3); n > 0; n--)
        add_node(w);
}

/* ---- running ---- */

typedef struct way {
    uint64_t seed;
    int devices, in_flight;
    bool bound, checked;
} way;

static gantry_schedule *schedule(const world *w, const way *how)
{
    gantry_machine *m;
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.policy = "single";
    if (how->in_flight > 1) {
        static const char *const policies[] = { "round-robin", "heft", NULL }; /* the first makes most copies */
        o.policy = policies[how->seed % 3];
        o.effort = 1;
        o.objective = "period";
        o.in_flight = how->in_flight;
    }
    must(gantry_machine_virtual(&m, how->devices, &err), &err, how->seed);
    must(gantry_schedule_new(&s, w->g, m, &o, &err), &err, how->seed);
    gantry_machine_free(m);
    if (how->in_flight > 1) {
        gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
        must(gantry_schedule_summarize(s, &sum, &err), &err, how->seed);
        ck_assert_int_eq((int)sum.in_flight, how->in_flight);
        ck_assert_msg(sum.period_us >= sum.period_bound_us * 0.999999, "seed %llu: period %g us, bound %g us",
                      (unsigned long long)how->seed, sum.period_us, sum.period_bound_us);
    }
    return s;
}

static void collect(const world *w, gantry_run *run, double to[][MOST_ELEMENTS], const way *how)
{
    gantry_error err = { 0 };
    for (int b = 0; b < BUFFERS && !how->bound; b++) {
        const void *host;
        uint64_t bytes;
        if (w->output[b]) {
            must(gantry_run_output(run, w->buffer[b], &host, &bytes, &err), &err, how->seed);
            memcpy(to[b], host, bytes);
        }
    }
}

static void begin(world *w, gantry_run *run, int s, double to[][MOST_ELEMENTS], uint64_t *ticket, const way *how)
{
    gantry_error err = { 0 };
    for (int b = 0; b < BUFFERS; b++) {
        if (w->cls[b] == GANTRY_INPUT)
            must(gantry_run_bind(run, w->buffer[b], w->input[s][b], (uint64_t)w->bytes, &err), &err, how->seed);
        if (w->output[b] && how->bound)
            must(gantry_run_bind_output(run, w->buffer[b], to[b], (uint64_t)w->bytes, &err), &err, how->seed);
    }
    must(gantry_run_start(run, ticket, &err), &err, how->seed);
}

static void carry_out(world *w, double to[][BUFFERS][MOST_ELEMENTS], const way *how)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    gantry_schedule *made = schedule(w, how);
    uint64_t ticket[STARTS];
    o.backend = "host";
    o.check = how->checked;
    o.seed = how->seed;
    must(gantry_run_new(&run, made, &o, &err), &err, how->seed);
    for (int b = 0; b < BUFFERS; b++)
        if (w->cls[b] == GANTRY_STATE)
            must(gantry_run_bind(run, w->buffer[b], w->first[b], (uint64_t)w->bytes, &err), &err, how->seed);
    for (int s = 0; s < STARTS + how->in_flight - 1; s++) { /* as many ahead as may be */
        if (s < STARTS)
            begin(w, run, s, to[s], &ticket[s], how);
        int done = s - how->in_flight + 1;
        if (done >= 0) {
            must(gantry_run_wait(run, ticket[done], &err), &err, how->seed);
            collect(w, run, to[done], how);
        }
    }
    gantry_run_free(run);
    gantry_schedule_free(made);
}

static void try_case(world *w, uint64_t seed, uint32_t *rows)
{
    gantry_error err = { 0 };
    make_world(w, seed);
    gantry_status status = gantry_graph_check(w->g, &err);
    if (status == GANTRY_E_GRAPH) { /* contributions of two kinds meet */
        gantry_graph_free(w->g);
        return;
    }
    must(status, &err, seed);
    way alone = { .seed = seed, .devices = 1, .in_flight = 1 };
    way many = { .seed = seed, .devices = 1 + (int)draw(4), .in_flight = 2 + (int)draw(4) };
    many.bound = draw(2) == 0;
    many.checked = draw(8) == 0;
    carry_out(w, w->expect, &alone);
    carry_out(w, w->got, &many);
    for (int s = 0; s < STARTS; s++) {
        for (int b = 0; b < BUFFERS; b++) {
            ck_assert_msg(!w->output[b] || memcmp(w->expect[s][b], w->got[s][b], (size_t)w->bytes) == 0,
                          "seed %llu: output b%d of start %d differs (%d devices, %d in flight%s%s)",
                          (unsigned long long)seed, b, s, many.devices, many.in_flight, many.bound ? ", bound" : "",
                          many.checked ? ", checked" : "");
        }
    }
    gantry_graph_free(w->g);
    ++*rows;
}

START_TEST(overlapping_starts_give_what_sequential_ones_do)
{
    static world w;
    const char *only = getenv("OVERLAP_SEED"), *more = getenv("OVERLAP_CASES");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1, cases = more ? strtoull(more, NULL, 10) : CASES;
    uint32_t ran = 0;
    for (uint64_t seed = first; seed < first + (only ? 1 : cases); seed++)
        try_case(&w, seed, &ran);
    printf("%u graphs, %d starts each\n", ran, STARTS);
    ck_assert_uint_gt(ran, only ? 0 : (unsigned)(cases / 2));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("overlap");
    TCase *tc = tcase_create("overlap");
    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, overlapping_starts_give_what_sequential_ones_do);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
