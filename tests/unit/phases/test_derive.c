/* SPDX-License-Identifier: Apache-2.0 */
/* Where graphs are cut, and what the graphs of phases are. Expected values were found by hand, as the comments show. */
#include "build.h"
#include "graph/derive/phase.h"

#include <stdio.h>
#include <string.h>

static double two = 2;
static int64_t never = INT64_MAX;

/*
 * before: a = 2 c;  10 times {next = 2 prev; seen (+)= next[0]; used = a};  after: out = 2 prev.
 * `seen` begins with nothing unless it is given a value. Nodes: 0 before, 1 step, 2 see, 3 use, 4 after.
 */
typedef struct example {
    gantry_graph *g;
    gantry_buffer c, a, prev, next, seen, used, out, flag;
} example;

static example make(bool seen_has_value, int64_t count, int64_t every)
{
    gantry_graph *g = gantry_graph_new("example");
    example e = { .g = g };
    e.c = vector(g, "c", 4);
    gantry_buffer_init_iota(g, e.c);
    gantry_buffer_set_class(g, e.c, GANTRY_CONST);
    e.a = vector(g, "a", 4);
    e.prev = vector(g, "prev", 4);
    gantry_buffer_init_value(g, e.prev, 1);
    e.next = vector(g, "next", 4);
    e.seen = vector(g, "seen", 1);
    gantry_buffer_output(g, e.seen);
    if (seen_has_value)
        gantry_buffer_init_value(g, e.seen, 0);
    e.used = vector(g, "used", 4);
    e.out = vector(g, "out", 4);
    gantry_buffer_output(g, e.out);
    e.flag = vector(g, "flag", 1);
    scale(g, "before", gantry_all(e.c), gantry_all(e.a), &two);
    gantry_graph_repeat(g, count);
    gantry_graph_carry(g, e.prev, e.next);
    if (every) {
        gantry_graph_until(g, e.flag, every);
        flag_at(g, "test", gantry_all(e.flag), &never);
    }
    scale(g, "step", gantry_all(e.prev), gantry_all(e.next), &two);
    add_to(g, "see", gantry_rows(e.next, 0, 1), gantry_all(e.seen));
    scale(g, "use", gantry_all(e.a), gantry_all(e.used), &two);
    gantry_graph_repeat_end(g);
    scale(g, "after", gantry_all(e.prev), gantry_all(e.out), &two);
    gantry_error err = { 0 };
    ck_assert_msg(!gantry_graph_check(g, &err), "%s", err.text);
    return e;
}

/* "0-1, 1-4 from 0: 2 x 1, ..." */
static void describe(const gy_phases *list, char *to, size_t size)
{
    *to = 0;
    for (size_t i = 0; i < list->count; i++) {
        const gy_phase *p = &list->at[i];
        size_t used = strlen(to);
        used += (size_t)snprintf(to + used, size - used, "%s%u-%u", i ? ", " : "", p->first_node, p->last_node);
        if (p->loop != GY_NONE)
            snprintf(to + used, size - used, " from %d: %d x %d", (int)p->first, (int)p->iterations, (int)p->starts);
    }
}

static void expect_plan(gantry_graph *g, int64_t most, const char *want)
{
    gy_phases list = { 0 };
    gantry_error err = { 0 };
    char text[256];
    ck_assert_msg(!gy_phases_plan(&list, g, most, &err), "%s", err.text);
    describe(&list, text, sizeof text);
    ck_assert_str_eq(text, want);
    gy_vec_free(&list);
}

/* 3 nodes an iteration: `most` 6 is a body of 2 iterations, 10 is 5 times 2; 12 is 4, and 10 = 2 * 4 + 2. */
START_TEST(loops_are_cut_by_size)
{
    example e = make(true, 10, 0);
    expect_plan(e.g, 32, ""); /* 2 + 30 nodes */
    expect_plan(e.g, 31, "0-1, 1-4 from 0: 10 x 1, 4-5");
    expect_plan(e.g, 6, "0-1, 1-4 from 0: 2 x 5, 4-5");
    expect_plan(e.g, 12, "0-1, 1-4 from 0: 4 x 2, 1-4 from 8: 2 x 1, 4-5");
    expect_plan(e.g, 1, "0-1, 1-4 from 0: 1 x 10, 4-5");
    gantry_graph_free(e.g);
}
END_TEST

/* Without a value of its own, `seen` begins with the first contribution: the first start is not like the others. */
START_TEST(first_iterations_that_differ_are_apart)
{
    example e = make(false, 10, 0);
    expect_plan(e.g, 6, "0-1, 1-4 from 0: 2 x 1, 1-4 from 2: 2 x 4, 4-5");
    expect_plan(e.g, 1, "0-1, 1-4 from 0: 1 x 1, 1-4 from 1: 1 x 9, 4-5");
    gantry_graph_free(e.g);
}
END_TEST

/* 10 times {rows [from, 4) of next = 2 prev; next[0] += c[0]}, where next has a value of its own before the loop. */
static gantry_graph *make_adding(int64_t from)
{
    gantry_graph *g = gantry_graph_new("adding");
    gantry_buffer c = vector(g, "c", 1), prev = vector(g, "prev", 4), next = vector(g, "next", 4);
    gantry_buffer_init_value(g, c, 1);
    gantry_buffer_init_value(g, prev, 1);
    gantry_buffer_init_value(g, next, 5);
    gantry_buffer_output(g, prev);
    gantry_graph_repeat(g, 10);
    gantry_graph_carry(g, prev, next);
    scale(g, "step", gantry_rows(prev, from, 4), gantry_rows(next, from, 4), &two);
    add_to(g, "add", gantry_all(c), gantry_rows(next, 0, 1));
    gantry_graph_repeat_end(g);
    gantry_error err = { 0 };
    ck_assert_msg(!gantry_graph_check(g, &err), "%s", err.text);
    return g;
}

/* The first iteration adds to a row that it has written as all others do, or to what was there before the loop. */
START_TEST(what_next_was_matters_where_it_is_added_to)
{
    gantry_graph *g = make_adding(0);
    expect_plan(g, 2, "0-2 from 0: 1 x 10");
    gantry_graph_free(g);
    g = make_adding(1);
    expect_plan(g, 2, "0-2 from 0: 1 x 1, 0-2 from 1: 1 x 9");
    gantry_graph_free(g);
}
END_TEST

/* 4 nodes an iteration. `until` is looked at between starts, so a start has a divisor of `every`. */
START_TEST(until_decides_the_body)
{
    example e = make(true, 20, 6);
    expect_plan(e.g, 200000, "0-1, 1-5 from 0: 6 x 3, 1-5 from 18: 2 x 1, 5-6");
    expect_plan(e.g, 16, "0-1, 1-5 from 0: 3 x 6, 1-5 from 18: 2 x 1, 5-6"); /* 4 do not divide 6 */
    gantry_graph_free(e.g);
    e = make(true, 20, 21); /* nobody ever looks */
    expect_plan(e.g, 16, "0-1, 1-5 from 0: 4 x 5, 5-6");
    gantry_graph_free(e.g);
    e = make(true, 20, 20);
    expect_plan(e.g, 200000, "0-1, 1-5 from 0: 20 x 1, 5-6");
    gantry_graph_free(e.g);
    e = make(true, 0, 1); /* nothing to cut */
    expect_plan(e.g, 200000, "");
    gantry_graph_free(e.g);
}
END_TEST

static void derive(gantry_graph *g, int64_t most, gantry_graph **graphs, size_t count)
{
    gy_phases list = { 0 };
    gantry_error err = { 0 };
    ck_assert_int_eq(gy_phases_plan(&list, g, most, &err), GANTRY_OK);
    ck_assert_uint_eq(list.count, count);
    ck_assert_msg(!gy_phases_derive(graphs, g, list.at, list.count, &err), "%s", err.text);
    gy_vec_free(&list);
}

/* "c const, a temp out, ...": buffers that hold something before or after the phase. */
static void expect_classes(const gantry_graph *g, const char *want)
{
    static const char *const names[] = { "", "input", "state", "const", "temp" };
    char text[256] = "";
    for (uint32_t b = 0; b < g->buffers.count; b++) {
        const gy_buffer *x = &g->buffers.at[b];
        size_t used = strlen(text);
        if (x->cls != GANTRY_TEMP || x->output)
            snprintf(text + used, sizeof text - used, "%s%s %s%s%s", used ? ", " : "", x->name, names[x->cls],
                     x->output ? " out" : "", g->phase->kept[b] ? " kept" : "");
    }
    ck_assert_str_eq(text, want);
}

/* "a<a, next<prev": a phase made the name on the right, and that on the left means it from then on. */
static void expect_moves(const gantry_graph *g, const char *want)
{
    char text[256] = "";
    for (uint32_t i = 0; i < g->phase->moves; i++) {
        const gy_move *m = &g->phase->move[i];
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s%s%s", used ? ", " : "", g->buffers.at[m->name].name,
                 m->made ? "<" : "=", g->buffers.at[m->from].name);
    }
    ck_assert_str_eq(text, want);
}

/*
 * before  reads c (the user's constant) and makes a
 * first   2 iterations: prev comes in, a comes in; leaves next (as prev: both names mean it) and seen, which had
 * nothing others  prev and seen go from start to start, and are wanted after; a is only read after   prev comes in, out
 * goes out; seen is the caller's and is not touched
 */
START_TEST(classes_are_those_of_the_phase)
{
    example e = make(false, 10, 0);
    gantry_graph *p[4];
    derive(e.g, 6, p, 4);
    expect_classes(p[0], "c const, a temp out");
    expect_moves(p[0], "a<a");
    expect_classes(p[1], "a input, prev input out, seen temp out");
    expect_moves(p[1], "prev<prev, next<prev, seen<seen");
    expect_classes(p[2], "a const, prev state kept, seen state kept");
    expect_moves(p[2], "prev<prev, next<prev, seen<seen");
    expect_classes(p[3], "prev input, out temp out");
    expect_moves(p[3], "out<out");
    /* 1, 3 and 1 tasks an iteration; both names mean one value when the others begin */
    ck_assert_uint_eq(p[0]->flow->tasks, 1);
    ck_assert_uint_eq(p[1]->flow->tasks, 6);
    ck_assert_uint_eq(p[2]->flow->tasks, 6);
    ck_assert_uint_eq(p[2]->flow->entry[e.next.id], e.prev.id);
    ck_assert_uint_eq(p[1]->flow->entry[e.next.id], e.next.id);
    ck_assert_uint_eq(p[3]->flow->task[0].node, 4);
    ck_assert(p[2]->nodes.at == e.g->nodes.at && p[2]->hash == e.g->hash);
    for (int i = 0; i < 4; i++)
        gantry_graph_free(p[i]);
    gantry_graph_free(e.g);
}
END_TEST

/* A million iterations and more take no memory and no time to check, cut and derive. */
START_TEST(size_does_not_grow_with_iterations)
{
    example e = make(true, INT64_C(1) << 50, 0);
    gantry_graph *p[4];
    ck_assert(gy_graph_needs_phases(e.g));
    ck_assert_uint_eq(e.g->flow->tasks, 2 + 3 * GY_ITERATIONS_SHOWN);
    derive(e.g, 512 * 3, p, 4 - 1); /* 2^50 is a multiple of 256, the most below 1024 / 3 */
    ck_assert_int_eq(p[1]->phase->phase.iterations, 256);
    ck_assert_int_eq(p[1]->phase->phase.starts, INT64_C(1) << 42);
    for (int i = 0; i < 3; i++)
        gantry_graph_free(p[i]);
    gantry_graph_free(e.g);
}
END_TEST

/* Half of `part` is filled before the loop, half in it: only those rows hold something that were written. */
START_TEST(only_written_rows_hold_something)
{
    gantry_graph *g = gantry_graph_new("rows");
    gantry_buffer part = vector(g, "part", 8), all = vector(g, "all", 8);
    gantry_buffer_output(g, all);
    gantry_graph_fill(g, "low", gantry_rows(part, 0, 3), 1);
    gantry_graph_repeat(g, 6);
    gantry_graph_fill(g, "high", gantry_rows(part, 3, 8), 2);
    gantry_graph_repeat_end(g);
    scale(g, "all", gantry_all(part), gantry_all(all), &two);
    gantry_graph *p[3];
    gantry_error err = { 0 };
    ck_assert_msg(!gantry_graph_check(g, &err), "%s", err.text);
    derive(g, 2, p, 3);
    gy_rows rows;
    expect_classes(p[0], "part temp out");
    expect_classes(p[1], "part state kept");
    ck_assert(gy_graph_entry_rows(p[1], part.id, 0, &rows));
    ck_assert_int_eq(rows.first, 0);
    ck_assert_int_eq(rows.last, 3);
    ck_assert(!gy_graph_entry_rows(p[1], part.id, 1, &rows));
    expect_classes(p[2], "part input, all temp out");
    ck_assert(gy_graph_entry_rows(p[2], part.id, 0, &rows) && rows.first == 0 && rows.last == 8);
    for (int i = 0; i < 3; i++)
        gantry_graph_free(p[i]);
    gantry_graph_free(g);
}
END_TEST

/* ---- lists that come from anywhere ---- */

static void expect_breach(const gantry_graph *g, gy_phases *list, const char *want)
{
    gantry_graph *p[8];
    gantry_error err = { 0 };
    ck_assert_int_eq(gy_phases_derive(p, g, list->at, list->count, &err), GANTRY_E_SCHEDULE);
    ck_assert_msg(strstr(err.text, want), "%s", err.text);
}

START_TEST(wrong_lists_are_refused)
{
    example e = make(false, 10, 0);
    gy_phases good = { 0 }, bad = { 0 };
    gantry_error err = { 0 };
    ck_assert_int_eq(gy_phases_plan(&good, e.g, 6, &err), GANTRY_OK); /* 0-1, 2 x 1, 2 x 4, 4-5 */
    ck_assert(gy_vec_add(&bad, 4));
#define BAD(change, want)                                                                                              \
    do {                                                                                                               \
        memcpy(bad.at, good.at, 4 * sizeof *good.at);                                                                  \
        bad.count = 4;                                                                                                 \
        change;                                                                                                        \
        expect_breach(e.g, &bad, want);                                                                                \
    } while (0)
    BAD(bad.count = 3, "end before the graph does");
    BAD(bad.at[0].last_node = 0, "phase 1 does not begin where");
    BAD(bad.at[1].iterations = 3, "phase 2 does not begin where");
    BAD(bad.at[2].starts = 5, "phase 2 has no iterations, or more");
    BAD(bad.at[2].starts = 3, "phase 3 does not begin where");
    BAD(bad.at[2].starts = INT64_MAX, "phase 2 has no iterations, or more");
    BAD(bad.at[1].iterations = 0, "phase 1 has no iterations");
    BAD(bad.at[1].every = 3, "phase 1 does not look at `until`");
    BAD(bad.at[1].loop = 7, "phase 0 has a loop inside");
    BAD(bad.at[3].starts = 2, "phase 3 is started more than once without");
    BAD(bad.at[3].last_node = 99, "phase 3 does not begin where");
    /* all iterations alike, which the first is not */
    BAD((bad.at[1].starts = 5, bad.at[2] = bad.at[3], bad.count = 3),
        "phase 1 is started more than once, and its first");
#undef BAD
    gy_vec_free(&good);
    gy_vec_free(&bad);
    gantry_graph_free(e.g);
}
END_TEST

/* Looking every 6 iterations: a start may not go past one of them. */
START_TEST(lists_may_not_pass_by_until)
{
    example e = make(true, 24, 6);
    gy_phase one = { .first_node = 0, .last_node = 1, .loop = GY_NONE, .iterations = 1, .starts = 1 };
    gy_phase loop = { .first_node = 1, .last_node = 5, .iterations = 8, .starts = 3, .every = 6 };
    gy_phase last = { .first_node = 5, .last_node = 6, .loop = GY_NONE, .iterations = 1, .starts = 1 };
    gy_phases list = { 0 };
    ck_assert(gy_vec_push(&list, one) && gy_vec_push(&list, loop) && gy_vec_push(&list, last));
    expect_breach(e.g, &list, "phase 1 has starts in which the loop could end");
    list.at[1].iterations = 24;
    list.at[1].starts = 1;
    expect_breach(e.g, &list, "phase 1 has starts in which the loop could end");
    list.at[1].iterations = 3;
    list.at[1].starts = 8;
    gantry_graph *p[3];
    gantry_error err = { 0 };
    ck_assert_msg(!gy_phases_derive(p, e.g, list.at, 3, &err), "%s", err.text);
    ck_assert_uint_eq(p[1]->phase->until, e.flag.id);
    ck_assert(p[1]->buffers.at[e.flag.id].output && !p[0]->buffers.at[e.flag.id].output);
    for (int i = 0; i < 3; i++)
        gantry_graph_free(p[i]);
    gy_vec_free(&list);
    gantry_graph_free(e.g);
}
END_TEST

/* ---- loops that may end after their first iteration ---- */

enum { ADDED_LATER, WRITTEN_FIRST, BOTH_MAY_END };

/*
 * 10 times, or until the flag: rows [1, 4) of b = 2 a, carried. Row 0 of b holds something before, so that a has it
 * after one iteration and not after two. Then p goes on as b, and row 0 of p is added to in the second iteration; or
 * row 0 of a is written and then added to; or the second loop may end, too, and row 0 of p is added to behind it.
 */
static gantry_graph *make_early(int how)
{
    gantry_graph *g = gantry_graph_new("early");
    gantry_buffer a = vector(g, "a", 4), b = vector(g, "b", 4), p = vector(g, "p", 4), one = vector(g, "one", 1);
    gantry_buffer flag = vector(g, "flag", 1), given[] = { a, b, p, one };
    for (int i = 0; i < 4; i++)
        gantry_buffer_init_value(g, given[i], 1);
    gantry_graph_repeat(g, 10);
    gantry_graph_carry(g, a, b);
    gantry_graph_until(g, flag, 1);
    flag_at(g, "test", gantry_all(flag), &never);
    scale(g, "step", gantry_rows(a, 1, 4), gantry_rows(b, 1, 4), &two);
    gantry_graph_repeat_end(g);
    if (how != WRITTEN_FIRST) {
        gantry_graph_repeat(g, 5);
        gantry_graph_carry(g, p, b);
        if (how == BOTH_MAY_END) {
            gantry_graph_until(g, flag, 1);
            flag_at(g, "again", gantry_all(flag), &never);
        }
        scale(g, "more", gantry_rows(p, 1, 4), gantry_rows(b, 1, 4), &two);
        if (how == ADDED_LATER)
            add_to(g, "add", gantry_all(one), gantry_rows(p, 0, 1));
        gantry_graph_repeat_end(g);
    } else {
        gantry_graph_fill(g, "zero", gantry_rows(a, 0, 1), 0);
    }
    if (how != ADDED_LATER)
        add_to(g, "add", gantry_all(one), gantry_rows(how == BOTH_MAY_END ? p : a, 0, 1));
    gantry_error err = { 0 };
    ck_assert_msg(!gantry_graph_check(g, &err), "%s", err.text);
    return g;
}

START_TEST(an_early_end_leaves_what_later_ones_do)
{
    for (int how = ADDED_LATER; how <= BOTH_MAY_END; how++) {
        gantry_graph *g = make_early(how);
        gy_phases list = { 0 };
        gantry_error err = { 0 };
        ck_assert_int_eq(gy_phases_plan(&list, g, 2, &err), how == WRITTEN_FIRST ? GANTRY_OK : GANTRY_E_UNSUPPORTED);
        ck_assert_msg(how == WRITTEN_FIRST || strstr(err.text, "may end after its first iteration"), "%s", err.text);
        gy_vec_free(&list);
        gantry_graph_free(g);
    }
}
END_TEST

START_TEST(lists_may_not_end_early)
{
    gantry_graph *g = make_early(ADDED_LATER);
    gy_phase first = { .first_node = 0, .last_node = 2, .iterations = 1, .starts = 10, .every = 1 };
    gy_phase rest = { .first_node = 2, .last_node = 4, .loop = GY_NONE, .iterations = 1, .starts = 1 };
    gy_phases list = { 0 };
    ck_assert(gy_vec_push(&list, first) && gy_vec_push(&list, rest));
    expect_breach(g, &list, "phase 0 may end its loop after the first iteration");
    gy_vec_free(&list);
    gantry_graph_free(g);
}
END_TEST

/* ---- what phases cannot do ---- */

static gantry_graph *joined(int how)
{
    gantry_graph *g = gantry_graph_new("joined");
    gantry_buffer x = vector(g, "x", 4), y = vector(g, "y", 4);
    gantry_buffer_init_value(g, x, 1);
    gantry_node a = scale(g, "a", gantry_all(x), gantry_all(y), &two);
    gantry_graph_repeat(g, 100);
    gantry_node b = scale(g, "b", gantry_all(x), gantry_all(y), &two);
    gantry_graph_repeat_end(g);
    if (how == 0)
        gantry_node_with(g, b, a);
    else if (how == 1)
        gantry_node_apart(g, b, a);
    else
        gantry_node_after(g, how == 2 ? a : b, how == 2 ? b : a);
    return g;
}

START_TEST(what_joins_phases_is_refused)
{
    static const char *const want[] = { "node \"b\" is `with` \"a\"", "node \"b\" is `apart` \"a\"", NULL };
    for (int how = 0; how < 4; how++) {
        gantry_graph *g = joined(how);
        gantry_machine *m = NULL;
        gantry_schedule *s = NULL;
        gantry_error err = { 0 };
        gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
        o.unroll = 10;
        ck_assert_int_eq(gantry_machine_virtual(&m, 2, &err), GANTRY_OK);
        gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
        if (how == 2) /* a writes what b writes: after all of b there is no order */
            ck_assert_int_eq(status, GANTRY_E_GRAPH);
        else
            ck_assert_int_eq(status, how == 3 ? GANTRY_OK : GANTRY_E_UNSUPPORTED);
        if (how < 2)
            ck_assert_msg(strstr(err.text, want[how]), "%s", err.text);
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("phases: deriving");
    TCase *c = tcase_create("derive");
    tcase_add_test(c, loops_are_cut_by_size);
    tcase_add_test(c, first_iterations_that_differ_are_apart);
    tcase_add_test(c, what_next_was_matters_where_it_is_added_to);
    tcase_add_test(c, until_decides_the_body);
    tcase_add_test(c, classes_are_those_of_the_phase);
    tcase_add_test(c, size_does_not_grow_with_iterations);
    tcase_add_test(c, only_written_rows_hold_something);
    tcase_add_test(c, wrong_lists_are_refused);
    tcase_add_test(c, lists_may_not_pass_by_until);
    tcase_add_test(c, an_early_end_leaves_what_later_ones_do);
    tcase_add_test(c, lists_may_not_end_early);
    tcase_add_test(c, what_joins_phases_is_refused);
    suite_add_tcase(s, c);
    return run_suite(s);
}
