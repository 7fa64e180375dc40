/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that are read off a schedule; belonging to a graph; owners. */
#include "schedule/check/verify.h"
#include "support/run_suite.h"
#include "unit/schedule/hand.h"
#include <check.h>
#include <gantry/gantry.h>
#include <string.h>

static gantry_schedule *right(void)
{
    gantry_error err = { 0 };
    gantry_schedule *s = hand_schedule(NULL, NULL, &err);
    ck_assert_msg(s != NULL, "%s", err.text);
    return s;
}

START_TEST(test_summary)
{
    gantry_schedule *s = right();
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_schedule_summarize(s, &sum, &err), GANTRY_OK);
    ck_assert(sum.makespan_us == 9 && sum.bound_us == 6 && sum.gap == 0.5);
    ck_assert_uint_eq(sum.nodes, 5);
    ck_assert_uint_eq(sum.ops, 12);
    ck_assert_uint_eq(sum.copies, 4);
    ck_assert_uint_eq(sum.collectives, 1);
    ck_assert_uint_eq(sum.events, 7); /* events 0 to 4, flag 0, one edge */
    /* x to d1, y to the host and on to d2: 8 bytes each; the host's copy into the output stays; the sum takes a byte
     * from each device to the host. */
    ck_assert_uint_eq(sum.bytes_moved, 3 * 8 + 2);
    gantry_schedule_free(s);
}
END_TEST

START_TEST(test_summary_of_older_program)
{
    gantry_schedule *s = right();
    gantry_schedule_summary sum = { 0 };
    sum.struct_size = offsetof(gantry_schedule_summary, bytes_moved);
    sum.bytes_moved = 77;
    ck_assert_int_eq(gantry_schedule_summarize(s, &sum, NULL), GANTRY_OK);
    ck_assert_uint_eq(sum.events, 7);
    ck_assert_uint_eq(sum.bytes_moved, 77);
    sum.struct_size = 0;
    ck_assert_int_eq(gantry_schedule_summarize(s, &sum, NULL), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_schedule_summarize(NULL, &sum, NULL), GANTRY_E_INVALID);
    gantry_schedule_free(s);
}
END_TEST

START_TEST(test_places)
{
    gantry_schedule *s = right();
    for (int indexed = 1; indexed >= 0; indexed--) { /* with the index of files, then by looking */
        ck_assert_int_eq(gantry_schedule_device_of(s, (gantry_node){ 0 }), 1);
        ck_assert_int_eq(gantry_schedule_device_of(s, (gantry_node){ .id = 1 }), 2);
        ck_assert_int_eq(gantry_schedule_device_of(s, (gantry_node){ .id = 2 }), 0);
        ck_assert_int_eq(gantry_schedule_device_of(s, (gantry_node){ .id = 5 }), -1);
        ck_assert_int_eq(gantry_schedule_device_of(s, (gantry_node){ .id = GANTRY_NONE }), -1);
        s->node_op.count = 0;
    }
    ck_assert_uint_eq(gantry_schedule_peak_bytes(s, 0), 512); /* slab and staging */
    ck_assert_uint_eq(gantry_schedule_peak_bytes(s, 1), 768);
    ck_assert_uint_eq(gantry_schedule_peak_bytes(s, 3), 0);
    ck_assert_uint_eq(gantry_machine_device_count(gantry_schedule_machine(s)), 3);
    ck_assert_str_eq(gantry_schedule_policy(s), "hand");
    gantry_schedule_free(s);
}
END_TEST

static void expect_text(const gantry_schedule *s, uint32_t op, const char *text)
{
    gy_text to = { 0 };
    gy_op_text(&to, s, op);
    ck_assert_str_eq(to.at, text);
    gy_text_free(&to);
}

START_TEST(test_texts)
{
    gantry_schedule *s = right();
    expect_text(s, 0, "copy x host -> m1");
    expect_text(s, 1, "make");
    expect_text(s, 6, "sum identity t m1");
    expect_text(s, 10, "reduce t");
    s->use.at[0].last = s->use.at[1].last = 3;
    expect_text(s, 0, "copy x{0:3} host -> m1");
    s->ops.at[0].kind = GY_OP_EVICT;
    s->values.at[0].generation = 2;
    expect_text(s, 0, "evict x@2{0:3} host -> m1");
    s->ops.at[1].iteration = 7;
    expect_text(s, 1, "make (iteration 7)");
    ck_assert_str_eq(gy_op_kind_name(GY_OP_FETCH), "fetch");
    ck_assert_str_eq(gy_carrier_name(GY_CARRIER_FLAG), "flag");
    ck_assert_str_eq(gy_reason_name(GY_WHY_REUSE), "reuse");
    ck_assert_str_eq(gy_provenance_name(GY_COST_MEASURED), "measured");
    gantry_schedule_free(s);
}
END_TEST

START_TEST(test_graph_must_be_the_one)
{
    gantry_schedule *s = right();
    gantry_graph *g = hand_graph();
    gantry_error err = { 0 };
    s->graph_hash = g->hash + 1;
    ck_assert_int_eq(gantry_schedule_check(s, g, &err), GANTRY_E_SCHEDULE);
    ck_assert_msg(strstr(err.text, "graph \"hand\"") && strstr(err.text, "schedule again"), "%s", err.text);
    ck_assert_int_eq(gantry_schedule_attach(s, g, &err), GANTRY_E_SCHEDULE);
    ck_assert_ptr_null(s->graph);
    s->graph_hash = g->hash;
    ck_assert_int_eq(gantry_schedule_check(s, g, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_schedule_check(s, NULL, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_schedule_attach(s, g, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_schedule_attach(s, g, &err), GANTRY_OK);
    ck_assert_ptr_eq(s->graph, g);
    gantry_graph_free(g); /* the schedule has it too */
    gantry_schedule *two = gy_schedule_ref(s);
    gantry_schedule_free(s);
    ck_assert_str_eq(two->graph->name, "hand");
    gantry_schedule_free(two);
}
END_TEST

START_TEST(test_graph_that_is_wrong)
{
    gantry_schedule *s = right();
    gantry_graph *g = gantry_graph_new("wrong");
    gantry_error err = { 0 };
    ck_assert_int_eq(gy_schedule_verify(s, g, &err), GANTRY_E_INVALID);
    gantry_node n = gantry_graph_work(g, "n");
    gantry_node_read(g, n, gantry_all(gantry_graph_buffer(g, "b", GANTRY_F32, 1, (int64_t[]){ 4 })));
    ck_assert_int_eq(gantry_schedule_check(s, g, &err), GANTRY_E_GRAPH); /* reads what nothing has written */
    gantry_graph_free(g);
    gantry_schedule_free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule use");
    TCase *tc = tcase_create("use");
    tcase_add_test(tc, test_summary);
    tcase_add_test(tc, test_summary_of_older_program);
    tcase_add_test(tc, test_places);
    tcase_add_test(tc, test_texts);
    tcase_add_test(tc, test_graph_must_be_the_one);
    tcase_add_test(tc, test_graph_that_is_wrong);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
