/* SPDX-License-Identifier: Apache-2.0 */
/* Rule phases, row by row: phases that were derived from one graph cut at two places do not fit together, and the
 * checker says which rows they do not agree on. */
#include "build.h"
#include "graph/derive/phase.h"
#include "graph/derive/specialise.h"
#include "schedule/check/check.h"

#include <string.h>

enum { ROWS = 100, PHASES = 6 };

static double two = 2;
static int64_t never = 1000;

/* The graph with all automatic splits, which have two parts, cut at `row`. */
static gantry_graph *cut_at(const gantry_graph *g, int64_t row)
{
    int64_t first[] = { 0, row, ROWS };
    gy_cut cut[8];
    size_t cuts = 0;
    gantry_graph *made = NULL;
    gantry_error err = { 0 };
    for (uint32_t b = 0; b < g->buffers.count; b++)
        if (g->buffers.at[b].split_auto)
            cut[cuts++] = (gy_cut){ b, first };
    ck_assert_msg(!gy_graph_specialise(&made, g, cut, cuts, &err), "%s", err.text);
    return made;
}

static void derive(gantry_graph **graphs, const gantry_schedule *s, const gantry_graph *g)
{
    gy_phase list[PHASES];
    gantry_error err = { 0 };
    ck_assert_uint_le(s->phases.count, PHASES);
    for (size_t i = 0; i < s->phases.count; i++)
        list[i] = s->phases.at[i].phase;
    ck_assert_msg(!gy_phases_derive(graphs, g, list, s->phases.count, &err), "%s", err.text);
}

/* Phase `other` is of the graph cut at row `other_row`, all others of the one cut at `here_row`. NULL: fine. Takes the
 * graph. */
static void expect_rows(gantry_graph *g, size_t phases, int64_t here_row, size_t other, int64_t other_row,
                        const char *want)
{
    gantry_schedule *s = plan(g, 1, 0);
    gantry_graph *here = cut_at(g, here_row), *there = cut_at(g, other_row), *mine[PHASES], *theirs[PHASES],
                 *mixed[PHASES];
    gantry_error err = { 0 };
    ck_assert_uint_eq(s->phases.count, phases);
    derive(mine, s, here);
    derive(theirs, s, there);
    for (size_t i = 0; i < phases; i++)
        mixed[i] = i == other ? theirs[i] : mine[i];
    gantry_status status = gy_check_hand_over(s, here, mixed, &err);
    ck_assert_str_eq(status ? err.text : "right", want ? want : "right");
    ck_assert_int_eq(gy_check_hand_over(s, here, mine, &err), GANTRY_OK);
    ck_assert_int_eq(gy_check_hand_over(s, there, theirs, &err), GANTRY_OK);
    for (size_t i = 0; i < phases; i++) {
        gantry_graph_free(mine[i]);
        gantry_graph_free(theirs[i]);
    }
    gantry_graph_free(here);
    gantry_graph_free(there);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}

static void expect(gantry_graph *g, size_t phases, size_t other, const char *want)
{
    expect_rows(g, phases, 10, other, 50, want);
}

static gantry_buffer halves(gantry_graph *g, const char *name)
{
    gantry_buffer b = vector(g, name, ROWS);
    gantry_buffer_split_auto(g, b, 2);
    return b;
}

static void begin_loop(gantry_graph *g)
{
    gantry_buffer flag = vector(g, "flag", 1);
    gantry_graph_repeat(g, 8);
    gantry_graph_until(g, flag, 1);
    flag_at(g, "test", gantry_all(flag), &never);
}

START_TEST(rows_that_nobody_has_written_are_not_read)
{
    gantry_graph *g = gantry_graph_new("reads");
    gantry_buffer y = halves(g, "y"), z = halves(g, "z");
    gantry_graph_fill(g, "five", gantry_part(y, 0), 5);
    begin_loop(g);
    scale(g, "double", gantry_part(y, 0), gantry_part(z, 0), &two);
    gantry_graph_repeat_end(g);
    expect(g, 2, 1,
           "rule phases: node \"double\" of phase 1 reads y{10:50}, where neither it nor a phase before has left "
           "anything, nor an init or a binding");
}
END_TEST

/* More rows than are read do no harm. */
START_TEST(rows_that_nobody_reads_may_be_left)
{
    gantry_graph *g = gantry_graph_new("more");
    gantry_buffer y = halves(g, "y"), z = halves(g, "z");
    gantry_graph_fill(g, "five", gantry_part(y, 0), 5);
    begin_loop(g);
    scale(g, "double", gantry_part(y, 0), gantry_part(z, 0), &two);
    gantry_graph_repeat_end(g);
    expect(g, 2, 0, NULL);
}
END_TEST

static gantry_graph *make_sum(void)
{
    gantry_graph *g = gantry_graph_new("sum");
    gantry_buffer x = vector(g, "x", ROWS), y = halves(g, "y");
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, y);
    gantry_graph_fill(g, "five", gantry_part(y, 0), 5);
    begin_loop(g);
    gantry_graph_repeat_end(g);
    add_to(g, "add", gantry_all(x), gantry_all(y));
    return g;
}

/* Rows that hold nothing at first are added to from the identity: only where that is so. */
START_TEST(contributions_begin_with_what_was_left)
{
    expect(make_sum(), 3, 2,
           "rule phases: node \"add\" of phase 2 adds to y{10:50}, which the phase takes for rows that hold something; "
           "no phase before it has left them so");
    expect(
        make_sum(), 3, 0,
        "rule phases: node \"add\" of phase 2 adds to y{10:50}, which the phase takes for rows that hold nothing; no "
        "phase before it has left them so");
}
END_TEST

START_TEST(outputs_are_complete_at_the_end)
{
    gantry_graph *g = gantry_graph_new("outputs");
    gantry_buffer x = halves(g, "x"), z = halves(g, "z");
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, z);
    scale(g, "first", gantry_part(x, 0), gantry_part(z, 0), &two);
    begin_loop(g);
    gantry_graph_repeat_end(g);
    scale(g, "second", gantry_part(x, 1), gantry_part(z, 1), &two);
    expect(g, 3, 2, "rule phases: z{10:50} is wanted at the end of a start, and no phase has left anything there");
}
END_TEST

/* The first iteration is a phase of its own, since `sum` begins with nothing; the loop may end after it. What comes
 * behind the loop then finds what that phase has left. */
static gantry_graph *make_ends(void)
{
    gantry_graph *g = gantry_graph_new("ends");
    gantry_buffer x = halves(g, "x"), z = halves(g, "z"), y = halves(g, "y"), sum = vector(g, "sum", 1);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, sum);
    begin_loop(g);
    scale(g, "double", gantry_part(x, 0), gantry_part(z, 0), &two);
    add_to(g, "count", gantry_all(x), gantry_all(sum));
    gantry_graph_repeat_end(g);
    scale(g, "after", gantry_part(z, 0), gantry_part(y, 0), &two);
    return g;
}

START_TEST(a_loop_may_end_in_an_earlier_phase)
{
    expect(make_ends(), 3, 0, NULL); /* more rows than later iterations */
    expect_rows(make_ends(), 3, 50, 0, 10,
                "rule phases: node \"after\" of phase 2 reads z{10:50}, where neither it nor a phase before has left "
                "anything, nor an init or a binding");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("phases: hand-over");
    TCase *c = tcase_create("rows");
    tcase_add_test(c, rows_that_nobody_has_written_are_not_read);
    tcase_add_test(c, rows_that_nobody_reads_may_be_left);
    tcase_add_test(c, contributions_begin_with_what_was_left);
    tcase_add_test(c, outputs_are_complete_at_the_end);
    tcase_add_test(c, a_loop_may_end_in_an_earlier_phase);
    suite_add_tcase(s, c);
    return run_suite(s);
}
