/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own schedules of random graphs, run by the oracle: neither lowering nor checker is believed. */
#include "property/mutants/mutants.h"
#include "support/run_suite.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

enum { GRAPHS = 4000 };

typedef struct tally {
    uint32_t made, judged, refused, joints; /* rows between starts */
} tally;

/* `in_flight` above 1: with that many starts that overlap. */
static void try_policy(gantry_graph *g, const gantry_machine *m, const char *policy, int in_flight, uint64_t seed,
                       tally *t)
{
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    options.policy = policy;
    options.objective = in_flight > 1 ? "period" : NULL;
    options.in_flight = in_flight > 1 ? in_flight : 0;
    if (gantry_schedule_new(&s, g, m, &options, &err)) {
        /* Some nodes ask for places that the machine does not have; that is all that may go wrong. */
        ck_assert_msg(!strstr(err.text, "rule ") && !strstr(err.text, "internal"), "seed %llu, %s: %s",
                      (unsigned long long)seed, policy, err.text);
        t->refused++;
        return;
    }
    t->made++;
    ck_assert_int_eq((int)s->in_flight, in_flight);
    uint32_t most = in_flight > 1 ? WINDOW_MAX / (uint32_t)(in_flight + 1) : OPS_MAX;
    if (s->ops.count <= most && s->instances.count <= 60) {
        bool capped;
        uint32_t broken = oracle(s, g, &capped);
        ck_assert_msg(!broken && !capped, "seed %llu, %s: rules %x", (unsigned long long)seed, policy, broken);
        t->judged++;
        for (size_t i = 0; i < s->sync.count; i++)
            t->joints += s->sync.at[i].distance > 0;
    }
    gantry_schedule_free(s);
}

START_TEST(test_own_schedules)
{
    static const char *const policies[] = { "heft", "round-robin", "single" };
    tally t = { 0 }, overlapping = { 0 };
    uint32_t graphs = 0;
    for (uint64_t seed = 1; graphs < GRAPHS; seed++) {
        rng r = { seed * 77 };
        uint32_t devices = 1 + rng_below(&r, 3);
        gantry_graph *g = make_graph(&r, devices);
        if (!g)
            continue;
        gantry_machine *m = make_machine(&r, devices);
        for (int i = 0; i < 3; i++)
            try_policy(g, m, policies[i], 1, seed, &t);
        try_policy(g, m, policies[seed % 2], 2, seed, &overlapping);
        graphs++;
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    printf("%u graphs: %u schedules, %u of them small enough for the oracle; %u refused\n", graphs, t.made, t.judged,
           t.refused);
    printf("%u of %u with two starts in flight were small enough, with %u rows from one to the next\n",
           overlapping.judged, overlapping.made, overlapping.joints);
    ck_assert_uint_gt(overlapping.judged, GRAPHS / 4);
    ck_assert_uint_gt(overlapping.joints, 100);
    ck_assert_uint_gt(t.judged, 2 * GRAPHS);
    ck_assert_uint_lt(t.refused, GRAPHS / 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lowered");
    TCase *tc = tcase_create("lowered");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_own_schedules);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
