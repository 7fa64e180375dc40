/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs on machines of all kinds, their memories cut down: whatever is scheduled passes the checker and is the
 * same when it is scheduled again; whatever is not is refused for lack of memory. */
#include "schedule/check/verify.h"
#include "unit/scheduler/random_graph.h"
#include "unit/scheduler/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAPHS 100

static gantry_machine *machine_of(int i)
{
    switch (i) {
    case 0:
        return parse_machine(machine_shared_link);
    case 1:
        return parse_machine(machine_relay);
    case 2:
        return parse_machine(machine_host_cpu);
    case 3:
        return parse_machine(machine_twins);
    default:
        return virtual_machine(3);
    }
}

static void try_one(gantry_graph *g, const gantry_machine *m, const gantry_schedule_options *o, const char *what,
                    int *counts)
{
    gantry_schedule *s = NULL, *again = NULL;
    gantry_error err = { 0 };
    gantry_status status = gantry_schedule_new(&s, g, m, o, &err);
    counts[0]++;
    if (status) {
        ck_assert_msg(status == GANTRY_E_CAPACITY, "%s: %s", what, err.text);
        counts[1]++;
        return;
    }
    if (gy_schedule_verify(s, g, &err) || gantry_schedule_new(&again, g, m, o, &err))
        ck_abort_msg("%s: %s", what, err.text);
    counts[2] += count_kind(s, GY_OP_EVICT) + count_kind(s, GY_OP_FETCH) > 0;
    char *a = schedule_text(s), *b = schedule_text(again);
    ck_assert_msg(strcmp(a, b) == 0, "%s: not the same twice", what);
    gantry_free(a);
    gantry_free(b);
    gantry_schedule_free(s);
    gantry_schedule_free(again);
}

START_TEST(small_memories_of_all_kinds)
{
    static const char *const policies[] = { "heft", "round-robin", NULL, "single", "mem-heft" };
    gantry_machine *m = machine_of(_i);
    const char *graphs = getenv("GANTRY_TEST_GRAPHS");
    int counts[3] = { 0 };
    for (int i = 0; i < (graphs ? atoi(graphs) : GRAPHS); i++) {
        uint64_t seed = (uint64_t)i * 5 + (uint64_t)_i + 500000;
        gantry_graph *g = random_graph(seed, 6 + i % 35);
        gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
        gantry_error err;
        gy_text limits = { 0 };
        char what[96];
        o.policy = policies[i % 5];
        o.effort = 0;
        for (uint32_t k = 1; k < m->memories; k++)
            gy_text_printf(&limits, "%s=%d,", m->memory[k].id, 1024 << i % 4);
        if (i % 7 == 0)
            gy_text_printf(&limits, "%s=%d", m->memory[0].id, 16384);
        o.max_memory = limits.at;
        snprintf(what, sizeof what, "graph %llu on %s by %s", (unsigned long long)seed, m->name,
                 o.policy ? o.policy : "default");
        if (gantry_graph_check(g, &err) == GANTRY_OK)
            try_one(g, m, &o, what, counts);
        gy_text_free(&limits);
        gantry_graph_free(g);
    }
    printf("%s: %d graphs, %d refused, %d spill\n", m->name, counts[0], counts[1], counts[2]);
    ck_assert(counts[2] > 0 && counts[1] < counts[0]);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("spill-random");
    TCase *c = tcase_create("spill-random");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, small_memories_of_all_kinds, 0, 5);
    suite_add_tcase(s, c);
    return run_suite(s);
}
