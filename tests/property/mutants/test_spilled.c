/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules that the library spilled, with repeats in many of them: the oracle runs them as they are, and the checker
 * agrees with it on what is left of them when they are damaged. */
#include "property/mutants/mutants.h"
#include "schedule/check/verify.h"
#include "support/run_suite.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

enum { GRAPHS = 3000, TEMPS = 4 };

typedef struct tally {
    uint32_t judged, repeats, evictions, refused, harmful, harmless;
} tally;

static gantry_buffer add_buffer(gantry_graph *g, const char *name, gantry_buffer_class cls)
{
    gantry_buffer b = gantry_graph_buffer(g, name, GANTRY_U8, 2, ((int64_t[]){ 2, 1 }));
    gantry_buffer_set_class(g, b, cls);
    if (cls != GANTRY_TEMP)
        gantry_buffer_init_value(g, b, 7);
    return b;
}

static gantry_node add_work(rng *r, gantry_graph *g, const char *id, uint32_t devices)
{
    static const double times[] = { 0, 0, 1, 2, 10 }; /* a copy takes 1 us */
    char where[16];
    gantry_node n = gantry_graph_work(g, id);
    gantry_node_time(g, n, NULL, times[rng_below(r, 5)]);
    snprintf(where, sizeof where, "d%u", rng_chance(r, 80) ? 0 : rng_below(r, devices));
    gantry_node_on(g, n, where);
    return n;
}

/* Temps are written one after the other, some from others, then read in any order: with room for two or three, some
 * have to leave. */
static gantry_graph *make_temps(rng *r, uint32_t devices)
{
    char id[16];
    gantry_graph *g = gantry_graph_new("temps");
    bool fixed = rng_chance(r, 50);
    gantry_buffer b[TEMPS + 1] = { add_buffer(g, "x", fixed ? GANTRY_CONST : GANTRY_STATE) };
    uint32_t temps = 2 + rng_below(r, TEMPS - 1), reads = 1 + rng_below(r, 3);
    for (uint32_t i = 1; i <= temps; i++) {
        snprintf(id, sizeof id, "t%u", i);
        b[i] = add_buffer(g, id, GANTRY_TEMP);
        snprintf(id, sizeof id, "w%u", i);
        gantry_node n = add_work(r, g, id, devices);
        if (i > 2 && rng_chance(r, 5))
            gantry_node_readwrite(g, n, gantry_rows(b[i - 1], 0, 1));
        else if (rng_chance(r, 60))
            gantry_node_read(g, n, gantry_all(b[rng_below(r, i)]));
        gantry_node_write(g, n, gantry_all(b[i]));
    }
    for (uint32_t i = 0; i < reads; i++) {
        snprintf(id, sizeof id, "r%u", i);
        gantry_node n = add_work(r, g, id, devices);
        gantry_node_read(g, n, gantry_all(b[1 + rng_below(r, temps)]));
        if (!fixed && rng_chance(r, 20))
            gantry_node_readwrite(g, n, gantry_all(b[0]));
    }
    return g;
}

/* Two devices with room for two or three buffers each, and the host. */
static gantry_machine *make_small(rng *r)
{
    char text[1024];
    gantry_machine *m = NULL;
    int room = 256 * (2 + (int)rng_below(r, 2));
    snprintf(text, sizeof text,
             "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": 8192}, {\"id\": \"m0\", "
             "\"capacity\": %d}, {\"id\": \"m1\", \"capacity\": %d}], \"devices\": [{\"id\": \"d0\", \"memory\": "
             "\"m0\"}, {\"id\": \"d1\", \"memory\": \"m1\"}], \"routes\": [{\"from\": \"*\", \"to\": \"*\", "
             "\"latency_us\": 1, \"bandwidth_gbs\": 1}]}",
             room, room);
    ck_assert_int_eq(gantry_machine_parse(&m, text, strlen(text), "small", NULL), GANTRY_OK);
    return m;
}

static void damage(const gantry_schedule *s, const gantry_graph *g, uint64_t seed, tally *t)
{
    for (int kind = 0; kind < MUTATIONS; kind++) {
        rng r = { seed * 1000 + (uint64_t)kind };
        gantry_schedule *damaged = clone_schedule(s);
        gantry_error err = { 0 };
        bool capped;
        ck_assert_ptr_nonnull(damaged);
        if (mutate(&r, damaged, (mutation)kind)) {
            bool refused = gy_schedule_verify(damaged, g, &err) != GANTRY_OK;
            uint32_t broken = oracle(damaged, g, &capped);
            ck_assert_msg((capped && !broken) || refused == (broken != 0), "seed %llu, %s: oracle %x, checker %s",
                          (unsigned long long)seed, mutation_text[kind], broken, refused ? err.text : "content");
            *(broken ? &t->harmful : &t->harmless) += 1;
        }
        gantry_schedule_free(damaged);
    }
}

static void judge(const gantry_schedule *s, const gantry_graph *g, uint64_t seed, tally *t)
{
    bool capped;
    uint32_t repeats = 0, evictions = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        repeats += s->ops.at[i].repeat;
        evictions += s->ops.at[i].kind == GY_OP_EVICT;
    }
    if ((!repeats && !evictions) || s->ops.count > OPS_MAX)
        return;
    uint32_t broken = oracle(s, g, &capped);
    ck_assert_msg(!broken && !capped, "seed %llu: rules %x", (unsigned long long)seed, broken);
    t->judged++;
    t->repeats += repeats > 0;
    t->evictions += evictions > 0;
    if (repeats)
        damage(s, g, seed, t);
}

START_TEST(test_spilled_schedules)
{
    tally t = { 0 };
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        rng r = { seed * 77 };
        gantry_graph *g = make_temps(&r, 2);
        gantry_machine *m = make_small(&r);
        gantry_schedule *s = NULL;
        gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
        gantry_error err = { 0 };
        options.policy = "heft";
        gantry_status status = gantry_schedule_new(&s, g, m, &options, &err);
        ck_assert_msg(!status || status == GANTRY_E_CAPACITY, "seed %llu: %s", (unsigned long long)seed, err.text);
        t.refused += status != GANTRY_OK;
        if (!status)
            judge(s, g, seed, &t);
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    printf("%u spilled schedules, %u with evictions, %u with repeats; %u refused; mutants: %u harmful, %u harmless\n",
           t.judged, t.evictions, t.repeats, t.refused, t.harmful, t.harmless);
    ck_assert_uint_gt(t.evictions, 100);
    ck_assert_uint_gt(t.repeats, 100);
    ck_assert_uint_lt(t.refused, GRAPHS / 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spilled");
    TCase *tc = tcase_create("spilled");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_spilled_schedules);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
