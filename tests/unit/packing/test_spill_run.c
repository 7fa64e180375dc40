/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Random graphs in memories that are too small for them: what is scheduled fits, passes the checker, and gives the same
 * bytes as one device with memory enough, on the host back end as it is and in checking mode, start after start. What
 * is refused holds an op whose own instances are too much.
 */
#include "unit/scheduler/random_graph.h"
#include "unit/scheduler/suite.h"

#include <gantry/gantry.h>
#include <stdio.h>
#include <stdlib.h>

#define GRAPHS 120
#define STARTS 2
#define MOST   16 /* outputs */

typedef struct hashes {
    uint64_t at[STARTS][MOST];
} hashes;

static void run(gantry_graph *g, gantry_schedule *s, int check, hashes *h, const char *what)
{
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    gantry_run *r = NULL;
    gantry_error err = { 0 };
    uint64_t ticket;
    o.backend = "host";
    o.check = check;
    if (gantry_run_new(&r, s, &o, &err))
        ck_abort_msg("%s: %s", what, err.text);
    for (int i = 0; i < STARTS; i++) {
        if (gantry_run_start(r, &ticket, &err) || gantry_run_wait(r, ticket, &err))
            ck_abort_msg("%s: start %d: %s", what, i, err.text);
        for (uint32_t b = 0; b < g->buffers.count && b < MOST; b++)
            if (g->buffers.at[b].output && gantry_run_hash(r, (gantry_buffer){ .id = b }, &h->at[i][b], &err))
                ck_abort_msg("%s: %s", what, err.text);
    }
    gantry_run_free(r);
}

/* Bytes of the instances of one op in one memory, the most there are. */
static uint64_t working_set(const gantry_schedule *s)
{
    uint64_t most = 0;
    for (size_t i = 0; i < s->ops.count; i++)
        for (uint32_t m = 1; m < s->machine->memories; m++) {
            const gy_use *u = &s->use.at[s->ops.at[i].use];
            uint64_t sum = 0;
            for (uint32_t k = 0; k < s->ops.at[i].uses; k++) {
                const gy_instance *in = &s->instances.at[u[k].instance];
                bool again = false;
                for (uint32_t n = 0; n < k; n++)
                    again = again || u[n].instance == u[k].instance;
                sum += again || in->memory != m || in->space != GY_SPACE_SLAB ? 0 : (in->bytes + 255) / 256 * 256;
            }
            most = sum > most ? sum : most;
        }
    return most;
}

typedef struct counts {
    int tried, refused, spilled;
    uint32_t evicts, fetches;
} counts;

static void try_one(gantry_graph *g, const gantry_machine *small, const gantry_machine *wide, uint64_t capacity,
                    const char *policy, const char *what, counts *c)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL, *free_of_limits = NULL;
    gantry_error err = { 0 };
    hashes expected = { 0 }, seen = { 0 }, checked = { 0 };
    o.policy = policy;
    o.effort = 0;
    c->tried++;
    gantry_status status = gantry_schedule_new(&s, g, small, &o, &err);
    if (gantry_schedule_new(&free_of_limits, g, wide, &o, &err))
        ck_abort_msg("%s: %s", what, err.text);
    if (status) {
        c->refused++;
        ck_assert_msg(status == GANTRY_E_CAPACITY, "%s: %s", what, err.text);
        ck_assert_msg(working_set(free_of_limits) > capacity, "%s: refused, but no op needs more than %llu bytes", what,
                      (unsigned long long)working_set(free_of_limits));
        gantry_schedule_free(free_of_limits);
        return;
    }
    uint32_t evicts = count_kind(s, GY_OP_EVICT), fetches = count_kind(s, GY_OP_FETCH);
    c->evicts += evicts;
    c->fetches += fetches;
    c->spilled += evicts + fetches > 0;
    for (uint32_t m = 1; m < small->memories; m++)
        ck_assert(gantry_schedule_peak_bytes(s, m) <= capacity);
    gantry_machine *one = virtual_machine(1);
    gantry_schedule *reference = schedule(g, one, "single");
    run(g, reference, 0, &expected, what);
    run(g, s, 0, &seen, what);
    run(g, s, 1, &checked, what);
    for (int i = 0; i < STARTS; i++)
        for (uint32_t b = 0; b < MOST; b++) {
            ck_assert_msg(seen.at[i][b] == expected.at[i][b], "%s: start %d, buffer %u differs", what, i, b);
            ck_assert_msg(checked.at[i][b] == expected.at[i][b], "%s: start %d, buffer %u differs in checking mode",
                          what, i, b);
        }
    gantry_schedule_free(reference);
    gantry_schedule_free(s);
    gantry_schedule_free(free_of_limits);
    gantry_machine_free(one);
}

START_TEST(what_fits_is_right)
{
    static const struct {
        int devices;
        uint64_t capacity;
    } machines[] = { { 1, 6144 }, { 2, 6144 }, { 3, 4096 }, { 2, 3072 }, { 4, 2048 }, { 2, 1536 } };
    static const char *const policies[] = { "heft", "round-robin", NULL, "single" };
    uint64_t capacity = machines[_i].capacity;
    gantry_machine *small = small_machine(machines[_i].devices, (long long)capacity),
                   *wide = small_machine(machines[_i].devices, 1 << 26);
    const char *graphs = getenv("GANTRY_TEST_GRAPHS");
    counts c = { 0 };
    for (int i = 0; i < (graphs ? atoi(graphs) : GRAPHS); i++) {
        uint64_t seed = (uint64_t)i * 6 + (uint64_t)_i;
        gantry_graph *g = random_graph(seed + 100000, 6 + i % 35);
        gantry_error err;
        char what[96];
        snprintf(what, sizeof what, "graph %llu on %d x %llu bytes by %s", (unsigned long long)seed,
                 machines[_i].devices, (unsigned long long)capacity, policies[i % 4] ? policies[i % 4] : "default");
        if (gantry_graph_check(g, &err) == GANTRY_OK)
            try_one(g, small, wide, capacity, policies[i % 4], what, &c);
        gantry_graph_free(g);
    }
    printf("%d x %llu bytes: %d graphs, %d refused, %d spill: %u evictions, %u fetches\n", machines[_i].devices,
           (unsigned long long)capacity, c.tried, c.refused, c.spilled, c.evicts, c.fetches);
    ck_assert(c.spilled > 0);
    gantry_machine_free(small);
    gantry_machine_free(wide);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("spill-run");
    TCase *c = tcase_create("spill-run");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, what_fits_is_right, 0, 6);
    suite_add_tcase(s, c);
    return run_suite(s);
}
