/* SPDX-License-Identifier: Apache-2.0 */
/* A row that is dropped from the sync table shows: for some order of the fake driver results are wrong. This is what
 * the fake is for, and it says that the back end adds no order that would hide a schedule's mistake. */
#include "control.h"
#include "schedule/schedule.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

enum { SEEDS = 2000 };

/* The number of the first seed that shows it; 0: none does. */
static int first_wrong(gantry_schedule *s, const gantry_graph *g, const results *want)
{
    for (int seed = 1; seed <= SEEDS; seed++) {
        fakeCudaSeed((uint64_t)seed);
        gantry_run *run = open_run(s, "cuda");
        results got = run_results(run, g);
        gantry_run_free(run);
        if (!same(&got, want))
            return seed;
    }
    return 0;
}

typedef struct tally {
    int rows, seen, worst;
} tally;

static void drop_each(gantry_schedule *s, const gantry_graph *g, const results *want, tally *t)
{
    for (size_t i = 0; i < s->sync.count; i++) {
        gy_sync *row = &s->sync.at[i];
        uint8_t carrier = row->carrier;
        if (carrier == GY_CARRIER_LANE || row->reason != GY_WHY_DATA)
            continue;
        row->carrier = GY_CARRIER_LANE;
        int seed = first_wrong(s, g, want);
        row->carrier = carrier;
        t->rows++;
        t->seen += seed > 0;
        t->worst = seed > t->worst ? seed : t->worst;
        if (!seed) {
            fprintf(stderr, "%s, replay %s: nothing shows that op %u does not wait for op %u\n", s->graph_name,
                    s->replay == GY_REPLAY_GRAPH ? "graph" : "stream", row->to, row->from);
        }
    }
}

static void drop_rows(const char *replay)
{
    static const char *const files[] = { "saxpy", "reduce_sum", "jacobi" };
    tally t = { 0 };
    fakeCudaDevices(2, "all", 0);
    for (const graph_case *c = graph_cases; c->file; c++) {
        if (strcmp(c->file, files[0]) != 0 && strcmp(c->file, files[1]) != 0 && strcmp(c->file, files[2]) != 0)
            continue;
        graph_case small = *c;
        if (c->file[0] == 'j')
            small.params[1] = "steps=3";
        gantry_graph *g = load_graph(&small);
        gantry_machine *m = gpu_machine(2, false);
        gantry_schedule *s = make_schedule(g, m, replay, "round-robin");
        gantry_run *host = open_run(s, "host");
        results want = run_results(host, g);
        gantry_run_free(host);
        ck_assert_int_eq(first_wrong(s, g, &want), 0);
        drop_each(s, g, &want, &t);
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    fprintf(stderr, "replay %s: %d rows dropped, %d seen, at most %d seeds\n", replay, t.rows, t.seen, t.worst);
    ck_assert_int_gt(t.rows, 10);
    ck_assert_int_eq(t.seen, t.rows);
}

START_TEST(events)
{
    drop_rows("stream");
}
END_TEST

START_TEST(edges)
{
    drop_rows("graph");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda mutants");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, events);
    tcase_add_test(tests, edges);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
