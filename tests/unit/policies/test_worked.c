/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The worked examples of the papers, from graphs/reference: makespans, and schedules where they are printed. Every
 * policy of the table also must not beat the optimum, and what it expected must be what the simulator finds after
 * lowering.
 *
 * Published: HEFT, CPOP (topcuoglu2002), PEFT, HEFT (peft2014), HEFT and lookahead (bittencourt2010), HEFT (daoud).
 * Recomputed by programs of others: lookahead, DLS, PEFT on the other examples; ETF, min-min, max-min. Of one other
 * implementation only (rules for ties differ): CPOP 167, DLS 134, ETF 125, min-min 122, max-min 124 on peft2014. All
 * of them come out. DLS on bittencourt2010 is left out: implementations differ (96, 100; 95 here).
 */
#include "../scheduler/suite.h"

#include "scheduler/cost/cost.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/policies/policy.h"
#include <gantry/graph.h>
#include <stdio.h>
#include <string.h>

typedef struct slot {
    int processor;
    double start, end; /* us */
} slot;

typedef struct expected {
    const char *graph, *policy;
    double makespan;
    const slot *slots; /* of T1, T2, ...; NULL: not printed */
} expected;

static const slot cpop_slots[] = { { 2, 0, 16 },  { 2, 16, 35 }, { 1, 28, 39 }, { 3, 25, 42 }, { 2, 35, 48 },
                                   { 3, 42, 51 }, { 1, 39, 46 }, { 3, 54, 68 }, { 2, 65, 77 }, { 2, 79, 86 } };
static const slot peft_slots[] = { { 1, 0, 22 },  { 1, 29, 51 }, { 1, 51, 83 }, { 1, 22, 29 }, { 3, 35, 70 },
                                   { 2, 29, 46 }, { 1, 83, 97 }, { 2, 54, 77 }, { 3, 81, 89 }, { 2, 106, 122 } };

static const expected table[] = {
    { "topcuoglu2002", "heft", 80, NULL },    { "topcuoglu2002", "cpop", 86, cpop_slots },
    { "topcuoglu2002", "peft", 85, NULL },    { "topcuoglu2002", "lookahead", 76, NULL },
    { "topcuoglu2002", "dls", 91, NULL },     { "topcuoglu2002", "etf", 93, NULL },
    { "topcuoglu2002", "min-min", 76, NULL }, { "topcuoglu2002", "max-min", 97, NULL },
    { "peft2014", "heft", 133, NULL },        { "peft2014", "peft", 122, peft_slots },
    { "peft2014", "lookahead", 127, NULL },   { "peft2014", "cpop", 167, NULL },
    { "peft2014", "dls", 134, NULL },         { "peft2014", "etf", 125, NULL },
    { "peft2014", "min-min", 122, NULL },     { "peft2014", "max-min", 124, NULL },
    { "bittencourt2010", "heft", 98, NULL },  { "bittencourt2010", "lookahead", 94, NULL },
    { "bittencourt2010", "peft", 95, NULL },  { "daoud", "heft", 65.5, NULL },
};
#define CASES ((int)(sizeof table / sizeof *table))

static gantry_graph *g;
static gantry_machine *m;

static void begin(const char *name)
{
    char path[512];
    const char *json, *file;
    gantry_error err;
    snprintf(path, sizeof path, "%s/graphs/reference/%s.json", GANTRY_SOURCE_DIR, name);
    if (gantry_graph_load(&g, path, NULL, &err))
        ck_abort_msg("%s", err.text);
    gantry_graph_machine_hint(g, &json, &file);
    ck_assert_ptr_nonnull(json);
    m = parse_machine(json);
}

static void end(void)
{
    gantry_graph_free(g);
    gantry_machine_free(m);
}

static void check_slots(const gantry_schedule *s, const slot *slots)
{
    for (int t = 0; t < 10; t++) {
        char id[16], processor[16];
        snprintf(id, sizeof id, "T%d", t + 1);
        snprintf(processor, sizeof processor, "P%d", slots[t].processor);
        ck_assert_str_eq(device_of(s, id), processor);
        ck_assert_int_eq(op_of(s, id)->start, gy_ticks_from_us(slots[t].start));
        ck_assert_int_eq(op_of(s, id)->end, gy_ticks_from_us(slots[t].end));
    }
}

START_TEST(published_schedules_come_out)
{
    const expected *x = &table[_i];
    begin(x->graph);
    gantry_schedule *s = schedule(g, m, x->policy);
    ck_assert_str_eq(gantry_schedule_policy(s), x->policy);
    ck_assert_msg(s->makespan == gy_ticks_from_us(x->makespan), "%s, %s: %g us, not %g", x->graph, x->policy,
                  gy_ticks_to_us(s->makespan), x->makespan);
    if (x->slots)
        check_slots(s, x->slots);
    gantry_schedule_free(s);
    end();
}
END_TEST

static const struct {
    const char *graph;
    double us; /* proved by branch and bound */
} optimum[] = { { "topcuoglu2002", 73 }, { "peft2014", 113 }, { "bittencourt2010", 87 }, { "daoud", 56 } };

/* On these machines transfers do not disturb each other and each edge is a buffer of its own: placing knows all there
 * is to know. */
START_TEST(what_is_placed_is_what_happens)
{
    gantry_error err;
    begin(optimum[_i].graph);
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    for (size_t i = 0; gantry_policy_name(i); i++) {
        const gy_policy *policy;
        gy_plan p;
        gantry_schedule *s = schedule(g, m, gantry_policy_name(i));
        ck_assert_int_eq(gy_policy_find(&policy, gantry_policy_name(i), &err), GANTRY_OK);
        ck_assert_int_eq(gy_plan_init(&p, g, m, policy, NULL, &err), GANTRY_OK);
        ck_assert_int_eq(gy_plan_capacity(&p, NULL, &err), GANTRY_OK);
        ck_assert_int_eq(gy_plan_to_place(&p, &err), GANTRY_OK);
        for (uint32_t t = 0; t < p.flow->tasks; t++) {
            const gy_op *op = op_of(s, gy_plan_node(&p, t)->id);
            ck_assert_msg(op->start == p.placed.start[t] && op->end == p.placed.finish[t], "%s, %s: %s",
                          optimum[_i].graph, policy->name, gy_plan_node(&p, t)->id);
        }
        ck_assert_msg(s->makespan >= gy_ticks_from_us(optimum[_i].us), "%s, %s", optimum[_i].graph, policy->name);
        gy_plan_free(&p);
        gantry_schedule_free(s);
    }
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("worked");
    TCase *c = tcase_create("worked");
    tcase_add_loop_test(c, published_schedules_come_out, 0, CASES);
    tcase_add_loop_test(c, what_is_placed_is_what_happens, 0, 4);
    suite_add_tcase(s, c);
    return run_suite(s);
}
