/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that are carried out on several devices give, bit for bit, what one device gives: random graphs of kernels that
 * may run twice and of functions that may not, with inputs, states, temporaries, contributions and outputs, on 2 to 5
 * devices. Replicas are asked for even where they are slower. Every schedule passes the checker, no function is called
 * more often than the graph says, and what persists in several memories is the same in all. Numbers are whole and wrap
 * round, so that sums are the same in any order.
 *
 * More with REPLICAS_CASES=n; one alone with REPLICAS_SEED=n.
 */
#include "../../unit/scheduler/suite.h"

#include "scheduler/options.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/policies/policy.h"
#include <gantry/run.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 300, BUFFERS = 6, MOST_NODES = 16, MOST_ROWS = 20, STARTS = 3 };

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

/* ---- a function with an effect: it counts its calls ---- */

static atomic_uint calls;

static gantry_status mix(const gantry_launch *l)
{
    uint64_t from = 1;
    atomic_fetch_add(&calls, 1);
    for (int32_t i = 0; i < l->args; i++) {
        const uint64_t *x = l->arg[i].data;
        for (int64_t k = 0; l->arg[i].access == GANTRY_READ && k < l->arg[i].rows; k++)
            from += x[k] * (uint64_t)(k % 5 + 1);
    }
    for (int32_t i = 0; i < l->args; i++) {
        uint64_t *x = l->arg[i].data;
        for (int64_t k = 0; l->arg[i].access != GANTRY_READ && k < l->arg[i].rows; k++)
            x[k] = (l->arg[i].access == GANTRY_SUM ? x[k] : 0) + from + (uint64_t)k * 7;
    }
    return GANTRY_OK;
}

/* ---- a random graph ---- */

typedef struct world {
    gantry_graph *g;
    gantry_buffer buffer[BUFFERS];
    gantry_buffer_class cls[BUFFERS];
    bool output[BUFFERS];
    int64_t rows, parts, first[BUFFERS][MOST_ROWS];
    uint32_t functions;
    int64_t expect[STARTS][BUFFERS][MOST_ROWS], got[STARTS][BUFFERS][MOST_ROWS];
} world;

static void add_buffers(world *w)
{
    for (int b = 0; b < BUFFERS; b++) {
        char name[16];
        snprintf(name, sizeof name, "b%d", b);
        int64_t dice = b == 0 ? 0 : b < 3 ? 3 : draw(6);
        w->cls[b] = dice < 2 ? GANTRY_INPUT : dice < 4 ? GANTRY_STATE : GANTRY_TEMP;
        w->output[b] = b == 1 || draw(3) == 0;
        w->buffer[b] = gantry_graph_buffer(w->g, name, GANTRY_I64, 1, &w->rows);
        gantry_buffer_set_class(w->g, w->buffer[b], w->cls[b]);
        gantry_buffer_split(w->g, w->buffer[b], w->parts);
        if (w->output[b])
            gantry_buffer_output(w->g, w->buffer[b]);
        if (w->cls[b] == GANTRY_TEMP)
            gantry_graph_fill(w->g, "begin", gantry_all(w->buffer[b]), (double)b);
        for (int64_t i = 0; i < w->rows; i++)
            w->first[b][i] = draw(100);
    }
}

static gantry_region region(const world *w, int b, int64_t part)
{
    return part == w->parts ? gantry_all(w->buffer[b]) : gantry_part(w->buffer[b], part);
}

static gantry_region some_rows(const world *w, int b)
{
    if (draw(4) == 0) {
        int64_t first = draw(w->rows);
        return gantry_rows(w->buffer[b], first, first + 1 + draw(w->rows - first));
    }
    return region(w, b, draw(w->parts + 1));
}

static int a_target(const world *w)
{
    int to = (int)draw(BUFFERS);
    while (w->cls[to] == GANTRY_INPUT)
        to = (int)draw(BUFFERS);
    return to;
}

static void add_function(world *w)
{
    int to = a_target(w), reads = 1 + (int)draw(3);
    gantry_node n = gantry_graph_launch(w->g, "mix", mix, NULL);
    gantry_node_time(w->g, n, NULL, (double)(5 + draw(40)));
    for (int i = 0; i < reads; i++) {
        int from = (int)draw(BUFFERS);
        if (from != to)
            gantry_node_read(w->g, n, some_rows(w, from));
    }
    if (draw(3) == 0)
        gantry_node_write(w->g, n, some_rows(w, to));
    else
        gantry_node_reduce(w->g, n, some_rows(w, to), GANTRY_SUM);
    w->functions++;
}

/* scale and copy write what they read elsewhere; saxpy changes its target. */
static void add_kernel(world *w)
{
    static const char *const kernels[] = { "scale", "saxpy", "saxpy", "copy" };
    const char *kernel = kernels[draw(4)];
    int to = a_target(w), from = (to + 1 + (int)draw(BUFFERS - 1)) % BUFFERS;
    int64_t part = draw(2) ? w->parts : draw(w->parts);
    gantry_node n = gantry_graph_kernel(w->g, NULL, kernel);
    if (strcmp(kernel, "copy") != 0)
        gantry_node_scalar(w->g, n, "a", (double)(1 + draw(3)));
    gantry_node_arg(w->g, n, "x", region(w, from, part));
    gantry_node_arg(w->g, n, "y", region(w, to, part));
}

static void make_world(world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    w->g = gantry_graph_new("replicas");
    w->parts = 1 + draw(4);
    w->rows = w->parts * (1 + draw(4));
    add_buffers(w);
    for (int64_t n = 4 + draw(MOST_NODES - 4); n > 0; n--)
        if (draw(2))
            add_function(w);
        else
            add_kernel(w);
    if (draw(4) == 0)
        gantry_graph_fill(w->g, "end", some_rows(w, a_target(w)), 3);
}

/* ---- schedules ---- */

typedef struct tally {
    uint32_t repeats, states, alone;
} tally;

static gantry_schedule *on_one(const world *w, uint64_t seed)
{
    gantry_machine *m = virtual_machine(1);
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.policy = "single";
    must(gantry_schedule_new(&s, w->g, m, &o, &err), &err, seed);
    gantry_machine_free(m);
    return s;
}

static gantry_schedule *with_replicas(const world *w, uint64_t seed)
{
    static const char *const policies[] = { "round-robin", "heft", "owner" };
    gantry_machine *m = virtual_machine((int)(2 + seed % 4));
    gy_attempt attempt = GY_ATTEMPT_INIT;
    gy_options o;
    gy_plan p;
    const gy_policy *policy;
    gantry_error err = { 0 };
    attempt.replicate = true;
    attempt.keep_copies = seed % 2;
    must(gy_options_read(&o, NULL, &err), &err, seed);
    must(gy_policy_find(&policy, policies[seed % 3], &err), &err, seed);
    must(gy_plan_init(&p, w->g, m, policy, &attempt, &err), &err, seed);
    must(gy_plan_run(&p, &o, &err), &err, seed);
    gantry_schedule *s = p.schedule;
    p.schedule = NULL;
    gy_plan_free(&p);
    must(gy_plan_verify(s, w->g, &err), &err, seed);
    gantry_machine_free(m);
    return s;
}

/* Do two memories keep a row of one state? */
static bool has_replicated_state(const gantry_schedule *s, const world *w)
{
    for (size_t i = 0; i < s->instances.count; i++)
        for (size_t k = 0; k < i; k++) {
            const gy_instance *a = &s->instances.at[i], *b = &s->instances.at[k];
            if (a->role == GY_ROLE_PERSIST && b->role == GY_ROLE_PERSIST && a->value == b->value &&
                w->cls[a->value] == GANTRY_STATE && a->first < b->last && b->first < a->last)
                return true;
        }
    return false;
}

static void count(const gantry_schedule *s, const world *w, tally *t)
{
    uint32_t repeats = 0;
    for (size_t i = 0; i < s->ops.count; i++)
        repeats += s->ops.at[i].repeat;
    t->repeats += repeats > 0;
    t->states += has_replicated_state(s, w);
    t->alone += !repeats;
}

/* ---- running ---- */

static void collect(const world *w, gantry_run *run, int64_t to[][MOST_ROWS], uint64_t seed)
{
    gantry_error err = { 0 };
    for (int b = 0; b < BUFFERS; b++) {
        const void *host;
        uint64_t bytes;
        if (!w->output[b])
            continue;
        must(gantry_run_output(run, w->buffer[b], &host, &bytes, &err), &err, seed);
        memcpy(to[b], host, bytes);
    }
}

static void carry_out(const world *w, gantry_schedule *s, int64_t to[][BUFFERS][MOST_ROWS], uint64_t seed)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket;
    o.backend = "host";
    o.check = seed % 5 == 0;
    must(gantry_run_new(&run, s, &o, &err), &err, seed);
    for (int b = 0; b < BUFFERS; b++)
        if (w->cls[b] != GANTRY_TEMP)
            must(gantry_run_bind(run, w->buffer[b], w->first[b], (uint64_t)w->rows * 8, &err), &err, seed);
    atomic_store(&calls, 0);
    for (int start = 0; start < STARTS; start++) {
        must(gantry_run_start(run, &ticket, &err), &err, seed);
        must(gantry_run_wait(run, ticket, &err), &err, seed);
        collect(w, run, to[start], seed);
    }
    uint32_t called = atomic_load(&calls);
    if (!o.check) /* which calls functions again, to see that they do the same */
        ck_assert_uint_eq(called, STARTS * w->functions);
    gantry_run_free(run);
}

static void try_case(uint64_t seed, tally *t)
{
    static world w;
    gantry_error err = { 0 };
    make_world(&w, seed);
    if (gantry_graph_check(w.g, &err) == GANTRY_OK) {
        gantry_schedule *one = on_one(&w, seed), *many = with_replicas(&w, seed);
        carry_out(&w, one, w.expect, seed);
        carry_out(&w, many, w.got, seed);
        ck_assert_msg(memcmp(w.expect, w.got, sizeof w.got) == 0, "seed %llu: results differ",
                      (unsigned long long)seed);
        count(many, &w, t);
        gantry_schedule_free(one);
        gantry_schedule_free(many);
    }
    gantry_graph_free(w.g);
}

START_TEST(same_as_one_device)
{
    const char *cases = getenv("REPLICAS_CASES"), *one = getenv("REPLICAS_SEED");
    uint64_t count_of = cases ? strtoull(cases, NULL, 10) : CASES;
    tally t = { 0 };
    if (one)
        try_case(strtoull(one, NULL, 10), &t);
    for (uint64_t seed = 1; !one && seed <= count_of; seed++)
        try_case(seed, &t);
    printf("%u schedules with replicas, %u with states in several memories, %u with none\n", t.repeats, t.states,
           t.alone);
    if (!one) {
        ck_assert_uint_gt(t.repeats, count_of / 4);
        ck_assert_uint_gt(t.states, count_of / 10);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replicas");
    TCase *c = tcase_create("replicas");
    tcase_set_timeout(c, 240);
    tcase_add_test(c, same_as_one_device);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
