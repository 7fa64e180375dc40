/* SPDX-License-Identifier: Apache-2.0 */
/* Where memory is short, what frees it goes first, and what has no room waits. 64 rows are 256 bytes. */
#include "suite.h"

#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

#define UNIT 256

/* forward[s][b] makes a unit, and keeps it until backward[s][b] has used it: `batches` through `stages`, stage s on
 * device s. Transfers in between have a unit each. */
static gantry_graph *training(int stages, int batches)
{
    gantry_graph *g = gantry_graph_new("training");
    for (int b = 0; b < batches; b++) {
        gantry_buffer kept[8], sent = { .id = GANTRY_NONE };
        char name[32], device[16];
        for (int step = 0; step < 2 * stages; step++) {
            bool back = step >= stages;
            int s = back ? 2 * stages - 1 - step : step;
            snprintf(name, sizeof name, "%s%d.%d", back ? "b" : "f", s, b);
            snprintf(device, sizeof device, "%d", s);
            gantry_node n = work(g, name, back ? 20 : 10);
            gantry_node_on(g, n, device);
            if (sent.id != GANTRY_NONE)
                gantry_node_read(g, n, gantry_all(sent));
            if (back) {
                gantry_node_read(g, n, gantry_all(kept[s]));
            } else {
                snprintf(name, sizeof name, "kept%d.%d", s, b);
                kept[s] = buffer(g, name, 64);
                gantry_node_write(g, n, gantry_all(kept[s]));
            }
            snprintf(name, sizeof name, "sent%d.%d", step, b);
            sent = buffer(g, name, 64);
            gantry_node_write(g, n, gantry_all(sent));
        }
    }
    return g;
}

static gantry_status make(gantry_schedule **s, gantry_graph *g, const gantry_machine *m, const char *policy,
                          gantry_error *err)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.policy = policy;
    o.effort = 1;
    o.spill = "off";
    return gantry_schedule_new(s, g, m, &o, err);
}

/* One device: ranks put all forwards first, which takes a unit each; one batch after the other takes three in all. */
START_TEST(what_frees_memory_goes_first)
{
    gantry_machine *m = small_machine(1, 3 * UNIT);
    gantry_graph *g = training(1, 6);
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(make(&s, g, m, "heft", &err), GANTRY_E_CAPACITY);
    ck_assert_msg(make(&s, g, m, NULL, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_uint_le(gantry_schedule_peak_bytes(s, 1), 3 * UNIT);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 0);
    ck_assert_int_eq(s->makespan, 6 * 30 * GY_TICKS_PER_US);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Two stages and five batches: (5 + 2 - 1) x 30 us and the transfers, with two batches under way. The first device has
 * room for what both keep, and for what is sent and what comes back. */
START_TEST(no_more_is_under_way_than_fits)
{
    gantry_machine *m = small_machine(2, 5 * UNIT);
    gantry_graph *g = training(2, 5);
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(make(&s, g, m, "heft", &err), GANTRY_E_CAPACITY);
    ck_assert_msg(make(&s, g, m, NULL, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_uint_le(gantry_schedule_peak_bytes(s, 1), 5 * UNIT);
    ck_assert_int_ge(s->makespan, 6 * 30 * GY_TICKS_PER_US);
    ck_assert_int_lt(s->makespan, 7 * 30 * GY_TICKS_PER_US);
    int under_way = 0;
    for (size_t i = 0; i < s->ops.count; i++) { /* in the order of the first device's lane */
        const char *id = s->ops.at[i].node == GY_NONE ? "" : s->node_ids.at[s->ops.at[i].node];
        under_way += strncmp(id, "f0", 2) == 0 ? 1 : strncmp(id, "b0", 2) == 0 ? -1 : 0;
        ck_assert_int_le(under_way, 3);
    }
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* A graph that does not fit at all is refused as ever; and one that fits anyway, and leaves devices to choose, is left
 * to the others. */
START_TEST(it_is_for_memory_that_is_short)
{
    gantry_machine *small = small_machine(1, 2 * UNIT), *large = small_machine(1, 100 * UNIT);
    gantry_graph *g = training(1, 6);
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(make(&s, g, small, NULL, &err), GANTRY_E_CAPACITY);
    ck_assert_ptr_null(s);
    gantry_graph_free(g);
    g = gantry_graph_new("anywhere");
    for (int i = 0; i < 6; i++)
        work(g, (const char *[]){ "a", "b", "c", "d", "e", "f" }[i], 10);
    ck_assert_msg(make(&s, g, large, NULL, &err) == GANTRY_OK, "%s", err.text);
    for (size_t i = 0; i < s->tried.count; i++)
        ck_assert_str_ne(s->tried.at[i].policy, "frugal");
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(small);
    gantry_machine_free(large);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("frugal");
    TCase *tc = tcase_create("frugal");
    tcase_add_test(tc, what_frees_memory_goes_first);
    tcase_add_test(tc, no_more_is_under_way_than_fits);
    tcase_add_test(tc, it_is_for_memory_that_is_short);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
