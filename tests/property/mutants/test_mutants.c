/* SPDX-License-Identifier: Apache-2.0 */
/* Checker against oracle on damaged schedules: equal verdicts, and the checker names a rule that the oracle saw broken.
 */
#include "property/mutants/mutants.h"
#include "schedule/check/verify.h"
#include "support/run_suite.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEDULES = 600 };

typedef struct tally {
    uint32_t harmful, harmless, capped;
} tally;

static uint32_t named_rule(const char *text)
{
    for (uint32_t i = 0; i < RULES; i++) {
        size_t n = strlen(rule_text[i]);
        if (strncmp(text, "rule ", 5) == 0 && strncmp(text + 5, rule_text[i], n) == 0 && text[5 + n] == ':')
            return 1u << i;
    }
    return 0;
}

static void print_rules(uint32_t broken)
{
    for (uint32_t i = 0; i < RULES; i++)
        if (broken >> i & 1)
            fprintf(stderr, " %s", rule_text[i]);
}

/* True if both agree; prints what they say where they do not. */
static bool judge(const gantry_schedule *s, const gantry_graph *g, uint64_t seed, const char *what, tally *t,
                  tally *rules)
{
    gantry_error err = { 0 };
    bool capped, refused = gy_schedule_verify(s, g, &err) != GANTRY_OK;
    uint32_t broken = oracle(s, g, &capped), named = refused ? named_rule(err.text) : 0;
    if (capped && !broken) {
        t->capped++;
        return true;
    }
    t->harmful += broken != 0;
    t->harmless += broken == 0;
    for (uint32_t i = 0; i < RULES; i++)
        rules[i].harmful += named >> i & 1;
    if (getenv("MUTANTS_TALK"))
        fprintf(stderr, "%s: %s\n", what, refused ? err.text : "fine");
    if (refused == (broken != 0) && (!refused || (named & broken)))
        return true;
    fprintf(stderr, "seed %llu, %s:\n  checker: %s\n  oracle: broken", (unsigned long long)seed, what,
            refused ? err.text : "nothing to object to");
    print_rules(broken);
    fprintf(stderr, "\n");
    char *text;
    size_t length;
    if (getenv("MUTANTS_SHOW") && !gantry_schedule_json(s, &text, &length, NULL)) {
        fprintf(stderr, "%s", text);
        gantry_free(text);
        if (!gantry_graph_json(g, &text, &length, NULL)) {
            fprintf(stderr, "%s", text);
            gantry_free(text);
        }
    }
    return false;
}

typedef struct made {
    gantry_graph *graph;
    gantry_machine *machine;
    gantry_schedule *schedule;
} made;

static made make(uint64_t seed)
{
    rng r = { seed };
    uint32_t devices = 1 + rng_below(&r, 3);
    made m = { make_graph(&r, devices), NULL, NULL };
    if (m.graph) {
        m.machine = make_machine(&r, devices);
        m.schedule = make_schedule(&r, m.graph, m.machine);
    }
    return m;
}

static void unmake(made *m)
{
    gantry_schedule_free(m->schedule);
    gantry_machine_free(m->machine);
    gantry_graph_free(m->graph);
}

static void print_tally(const tally *kinds, const tally *rules, const tally *whole, uint32_t mutants,
                        uint32_t overlapping)
{
    printf("%u schedules (%u with two starts in flight), %u mutants\n", whole->harmless, overlapping, mutants);
    printf("%-44s %8s %8s %8s\n", "damage", "harmful", "harmless", "skipped");
    for (int i = 0; i < MUTATIONS; i++)
        printf("%-44s %8u %8u %8u\n", mutation_text[i], kinds[i].harmful, kinds[i].harmless, kinds[i].capped);
    printf("rule named by the checker:");
    for (int i = 0; i < RULES; i++)
        printf(" %s %u", rule_text[i], rules[i].harmful);
    printf("\n");
    fflush(stdout);
}

/* More with MUTANTS_SCHEDULES=n; from another seed with MUTANTS_FIRST=n. */
static uint32_t schedules(void)
{
    const char *more = getenv("MUTANTS_SCHEDULES");
    return more ? (uint32_t)strtoul(more, NULL, 10) : SCHEDULES;
}

START_TEST(test_verdicts_are_equal)
{
    tally kinds[MUTATIONS] = { 0 }, rules[RULES] = { 0 }, whole = { 0 }, whole_rules[RULES] = { 0 };
    uint32_t mutants = 0, overlapping = 0, wrong = 0;
    const char *only = getenv("MUTANTS_SEED");
    const char *from = only ? only : getenv("MUTANTS_FIRST");
    uint64_t first = from ? strtoull(from, NULL, 10) : 1;
    for (uint64_t seed = first; whole.harmless < schedules() && wrong < 5 && (!only || seed == first); seed++) {
        made m = make(seed);
        if (!m.schedule) {
            unmake(&m);
            continue;
        }
        wrong += !judge(m.schedule, m.graph, seed, "undamaged", &whole, whole_rules);
        ck_assert_msg(whole.harmful == 0, "seed %llu: the schedule is broken before it is damaged",
                      (unsigned long long)seed);
        overlapping += m.schedule->in_flight > 1;
        for (int kind = 0; kind < MUTATIONS; kind++) {
            rng r = { seed * 1000 + (uint64_t)kind };
            gantry_schedule *damaged = clone_schedule(m.schedule);
            ck_assert_ptr_nonnull(damaged);
            if (mutate(&r, damaged, (mutation)kind)) {
                wrong += !judge(damaged, m.graph, seed, mutation_text[kind], &kinds[kind], rules);
                mutants++;
            }
            gantry_schedule_free(damaged);
        }
        unmake(&m);
    }
    print_tally(kinds, rules, &whole, mutants, overlapping);
    ck_assert_uint_eq(wrong, 0);
    if (only)
        return;
    ck_assert_uint_ge(mutants, 10000);
    ck_assert_uint_ge(overlapping, 30);
    /* Every kind of damage can do harm; every rule is the one that is named somewhere. */
    for (int i = 0; i < MUTATIONS; i++)
        ck_assert_msg(kinds[i].harmful > 0, "no harm by: %s", mutation_text[i]);
    for (int i = 0; i < RULES; i++)
        ck_assert_msg(rules[i].harmful > 0, "never named: %s", rule_text[i]);
    ck_assert_uint_gt(kinds[MUTATE_DROP_SYNC].harmless, 0);
    ck_assert_uint_gt(kinds[MUTATE_ADDRESS].harmless, 0);
    ck_assert_uint_gt(kinds[MUTATE_SWAP].harmless, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mutants");
    TCase *tc = tcase_create("mutants");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_verdicts_are_equal);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
