/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Second instances for versions that take turns never cost a graph its place in memory: random graphs that change
 * arrays in place, on 2 to 4 devices, with less and less memory. Wherever a plan with one instance fits, one that may
 * have two fits as well, by the same policy.
 *
 * More with VERSIONS_CASES=n.
 */
#include "../../unit/scheduler/suite.h"

#include "scheduler/options.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/policies/policy.h"
#include <stdlib.h>

enum { CASES = 150, ARRAYS = 4, PARTS = 3, ROW = 4096, STEPS = 12 };

static uint64_t state;
static int64_t draw(int64_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (int64_t)((state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % (uint64_t)below);
}

/* Each part has its writer, so that other memories only read it. */
static gantry_graph *random_graph(uint64_t seed)
{
    int64_t shape[] = { PARTS, ROW };
    gantry_buffer x[ARRAYS];
    state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    gantry_graph *g = gantry_graph_new("versions");
    for (int a = 0; a < ARRAYS; a++) {
        char name[] = { 'x', (char)('0' + a), 0 };
        x[a] = gantry_graph_buffer(g, name, GANTRY_U8, 2, shape);
        gantry_buffer_split(g, x[a], PARTS);
        gantry_graph_fill(g, "begin", gantry_all(x[a]), 0);
    }
    for (int64_t n = 20 + draw(40); n > 0; n--) {
        gantry_node task = gantry_graph_work(g, "task");
        int to = (int)draw(ARRAYS), from = (to + 1 + (int)draw(ARRAYS - 1)) % ARRAYS;
        gantry_node_time(g, task, NULL, (double)(5 + draw(100)));
        gantry_node_read(g, task, gantry_part(x[from], draw(PARTS)));
        gantry_node_readwrite(g, task, gantry_part(x[to], draw(PARTS)));
    }
    gantry_error err;
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    return g;
}

/* Does it fit? *turns: it has second instances. */
static bool fits(gantry_graph *g, const gantry_machine *m, uint64_t seed, int64_t bytes, bool one_instance, bool *turns)
{
    static const char *const policies[] = { "heft", "round-robin", "etf" };
    gy_attempt attempt = GY_ATTEMPT_INIT;
    gy_options o;
    gy_plan p;
    const gy_policy *policy;
    gantry_error err = { 0 };
    char limit[200] = "";
    size_t at = 0;
    for (uint32_t i = 1; i < m->memories; i++)
        at += (size_t)snprintf(limit + at, sizeof limit - at, "%s%s=%lld", at ? "," : "", m->memory[i].id,
                               (long long)bytes);
    attempt.one_instance = one_instance;
    attempt.make_room = seed % 2;
    ck_assert_int_eq(gy_options_read(&o, NULL, &err), GANTRY_OK);
    o.max_memory = limit;
    ck_assert_int_eq(gy_policy_find(&policy, policies[seed % 3], &err), GANTRY_OK);
    ck_assert_int_eq(gy_plan_init(&p, g, m, policy, &attempt, &err), GANTRY_OK);
    gantry_status status = gy_plan_run(&p, &o, &err);
    ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_CAPACITY, "seed %llu: %s", (unsigned long long)seed,
                  err.text);
    *turns = p.turns;
    if (status == GANTRY_OK)
        ck_assert_msg(gy_plan_verify(p.schedule, g, &err) == GANTRY_OK, "%s", err.text);
    gy_plan_free(&p);
    return status == GANTRY_OK;
}

START_TEST(two_instances_fit_wherever_one_does)
{
    const char *given = getenv("VERSIONS_CASES");
    uint64_t cases = given ? strtoull(given, NULL, 10) : CASES;
    uint32_t taken = 0, given_up = 0, refused = 0;
    for (uint64_t seed = 1; seed <= cases; seed++) {
        gantry_graph *g = random_graph(seed);
        gantry_machine *m = virtual_machine((int)(2 + seed % 3));
        bool first = false, turns;
        for (int step = 0; step < STEPS; step++) {
            int64_t bytes = (int64_t)ROW * (4 * STEPS - 4 * step) / 2;
            bool one = fits(g, m, seed, bytes, true, &turns);
            ck_assert(!turns);
            bool two = fits(g, m, seed, bytes, false, &turns);
            ck_assert_msg(two || !one, "seed %llu: with %lld bytes only one instance fits", (unsigned long long)seed,
                          (long long)bytes);
            first = first || turns;
            given_up += two && first && !turns;
            refused += !two;
        }
        taken += first;
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    ck_assert_uint_gt(taken, cases / 10);
    ck_assert_uint_gt(given_up, cases / 20);
    ck_assert_uint_gt(refused, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("versions");
    TCase *c = tcase_create("versions");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, two_instances_fit_wherever_one_does);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
