/* SPDX-License-Identifier: Apache-2.0 */
/* Maps that become one: which, with what formulas, and what keeps them apart. That no bit changes is shown on random
 * graphs by tests/conformance/maps/check_fuse.py. */
#include "graph/graph.h"
#include "maths/maths.h"

#include "support/run_suite.h"
#include "support/survive.h"
#include <check.h>
#include <string.h>

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

/* y = (x * 2) + 1 by two nodes, with t between; what a test adds stands between them or behind. */
typedef struct chain {
    gantry_graph *g;
    gantry_buffer x, t, y, other;
    gantry_node first, second;
} chain;

static gantry_node add_map(gantry_graph *g, const char *id, const char *formula, gantry_buffer from, gantry_buffer to)
{
    gantry_node node = gantry_graph_map(g, id, formula);
    gantry_node_arg(g, node, "b", gantry_all(to));
    gantry_node_arg(g, node, "a", gantry_all(from));
    return node;
}

static chain begin_chain(void)
{
    chain c = { .g = gantry_graph_new("chain") };
    gantry_graph_fuse(c.g);
    c.x = gantry_graph_buffer(c.g, "x", GANTRY_F32, 1, SHAPE(8));
    c.t = gantry_graph_buffer(c.g, "t", GANTRY_F32, 1, SHAPE(8));
    c.y = gantry_graph_buffer(c.g, "y", GANTRY_F64, 1, SHAPE(8));
    c.other = gantry_graph_buffer(c.g, "other", GANTRY_F32, 1, SHAPE(8));
    gantry_buffer_split(c.g, c.t, 2);
    gantry_buffer_init_value(c.g, c.x, 1);
    gantry_buffer_init_value(c.g, c.other, 1);
    gantry_buffer_output(c.g, c.y);
    c.first = add_map(c.g, "first", "b = a * 2", c.x, c.t);
    return c;
}

static void end_chain(chain *c)
{
    c->second = add_map(c->g, "second", "b = a + 1", c->t, c->y);
}

static void check_graph(gantry_graph *g)
{
    gantry_error err;
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
}

static const gy_maths *formulas_of(const gantry_graph *g, const char *id)
{
    gantry_node node = gantry_graph_find_node(g, id);
    ck_assert_msg(node.id != GANTRY_NONE, "no node %s", id);
    return g->kernels.at[g->nodes.at[node.id].kernel].maths;
}

START_TEST(two_maps_become_one_with_the_cast_of_what_lay_between)
{
    chain c = begin_chain();
    end_chain(&c);
    check_graph(c.g);
    ck_assert_uint_eq(gantry_graph_node_count(c.g), 1);
    const gy_maths *m = formulas_of(c.g, "first+second");
    ck_assert_uint_eq(m->results, 1);
    ck_assert_str_eq(m->result[0].text, "f32(a_2 * 2) + 1");
    ck_assert_uint_eq(c.g->nodes.at[0].accesses, 2); /* x and y: nobody writes t */
    gantry_graph_free(c.g);
}
END_TEST

START_TEST(nothing_becomes_one_unless_it_is_asked_for)
{
    chain c = begin_chain();
    end_chain(&c);
    c.g->fuses = false;
    check_graph(c.g);
    ck_assert_uint_eq(gantry_graph_node_count(c.g), 2);
    gantry_graph_free(c.g);
}
END_TEST

START_TEST(a_chain_that_ends_in_a_reduction_is_one_node)
{
    chain c = begin_chain();
    end_chain(&c);
    gantry_buffer s = gantry_graph_buffer(c.g, "s", GANTRY_F64, 1, SHAPE(1));
    gantry_buffer_output(c.g, s);
    gantry_node sum = gantry_graph_reduce(c.g, "sum", "s = sum(a * a)");
    gantry_node_arg(c.g, sum, "s", gantry_all(s));
    gantry_node_arg(c.g, sum, "a", gantry_all(c.y));
    check_graph(c.g);
    ck_assert_uint_eq(gantry_graph_node_count(c.g), 1);
    const gy_maths *m = formulas_of(c.g, "first+second+sum");
    ck_assert(m->reduces);
    ck_assert_uint_eq(m->results, 2); /* y is an output, so it is stored beside its sum */
    ck_assert(!gy_maths_is_reduced(m, 0));
    ck_assert(gy_maths_is_reduced(m, 1));
    gantry_graph_free(c.g);
}
END_TEST

/* ---- kernels that say what they compute ---- */

/* `second` by kernel "saxpy" in place of the map: other = 3 t + other, elements of `dtype`. */
static gantry_graph *saxpy_behind(const char *first, gantry_dtype dtype, int64_t columns)
{
    gantry_graph *g = gantry_graph_new("kernels");
    gantry_graph_fuse(g);
    gantry_buffer x = gantry_graph_buffer(g, "x", dtype, 1, SHAPE(8)),
                  t = gantry_graph_buffer(g, "t", dtype, 1, SHAPE(8));
    gantry_buffer y = gantry_graph_buffer(g, "y", dtype, columns < 8 ? 2 : 1, SHAPE(columns, 8 / columns));
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_init_value(g, y, 1);
    gantry_buffer_output(g, y);
    if (strcmp(first, "relu") == 0) {
        gantry_node relu = gantry_graph_kernel(g, "first", "relu");
        gantry_node_arg(g, relu, "x", gantry_all(x));
        gantry_node_arg(g, relu, "y", gantry_all(t));
    } else {
        add_map(g, "first", first, x, t);
    }
    gantry_node second = gantry_graph_kernel(g, "second", "saxpy");
    gantry_node_scalar(g, second, "a", 3);
    gantry_node_arg(g, second, "x", gantry_all(t));
    gantry_node_arg(g, second, "y", gantry_all(y));
    check_graph(g);
    return g;
}

START_TEST(a_kernel_beside_a_map_becomes_part_of_it)
{
    gantry_graph *g = saxpy_behind("b = a * 2", GANTRY_F32, 8);
    ck_assert_uint_eq(gantry_graph_node_count(g), 1);
    const gy_maths *m = formulas_of(g, "first+second");
    ck_assert_uint_eq(m->results, 1);
    ck_assert_str_eq(m->result[0].text, "a * f32(a_2 * 2) + y");
    ck_assert_uint_eq(g->nodes.at[0].scalars, 1);
    ck_assert_double_eq(g->scalar.at[g->nodes.at[0].scalar].number.real, 3);
    gantry_graph_free(g);
}
END_TEST

static void check_second(gantry_graph *g, const char *kernel)
{
    ck_assert_uint_eq(gantry_graph_node_count(g), 2);
    const gy_node *n = &g->nodes.at[gantry_graph_find_node(g, "second").id];
    ck_assert_str_eq(g->kernels.at[n->kernel].manifest->name, kernel);
    ck_assert_uint_eq(g->access.at[n->access].arg, 1); /* x of saxpy, behind its number */
    gantry_graph_free(g);
}

START_TEST(kernels_without_a_map_stay_as_they_are)
{
    check_second(saxpy_behind("relu", GANTRY_F32, 8), "saxpy");
}
END_TEST

START_TEST(kernels_of_whole_numbers_or_other_shapes_stay_as_they_are)
{
    check_second(saxpy_behind("b = a * 2", GANTRY_I32, 8), "saxpy");
    check_second(saxpy_behind("b = a * 2", GANTRY_F32, 4), "saxpy");
}
END_TEST

/* ---- what keeps nodes apart ---- */

enum { AFTER, ON, PRIORITY, WHEN, COST, TIME, SHARE, WITH, APART, ATTRIBUTES };

static void add_attribute(const chain *c, int attribute)
{
    switch (attribute) {
    case AFTER:
        gantry_node_after(c->g, c->second, c->first);
        break;
    case ON:
        gantry_node_on(c->g, c->first, "gpu0");
        break;
    case PRIORITY:
        gantry_node_priority(c->g, c->first, 3);
        break;
    case WHEN:
        gantry_node_when(c->g, c->second, gantry_rows(c->other, 0, 1));
        gantry_buffer_init_value(c->g, c->y, 0);
        break;
    case COST:
        gantry_node_cost(c->g, c->second, 100, 100);
        break;
    case TIME:
        gantry_node_time(c->g, c->first, "P1", 3);
        break;
    case SHARE:
        gantry_node_share(c->g, c->second, 0.5);
        break;
    case WITH:
        gantry_node_with(c->g, c->second, c->first);
        break;
    default:
        gantry_node_apart(c->g, c->second, c->first);
    }
}

START_TEST(an_attribute_keeps_a_node)
{
    for (int i = 0; i < ATTRIBUTES; i++) {
        chain c = begin_chain();
        end_chain(&c);
        add_attribute(&c, i);
        check_graph(c.g);
        ck_assert_msg(gantry_graph_node_count(c.g) == 2, "attribute %d", i);
        gantry_graph_free(c.g);
    }
}
END_TEST

START_TEST(equal_places_keep_nothing_apart)
{
    chain c = begin_chain();
    end_chain(&c);
    gantry_node_on(c.g, c.first, "devices - 1");
    gantry_node_on(c.g, c.second, "devices - 1");
    check_graph(c.g);
    ck_assert_uint_eq(gantry_graph_node_count(c.g), 1);
    gantry_graph_free(c.g);
}
END_TEST

/* x is overwritten from y's maker's point of view: the first may not sink, the second may rise. */
START_TEST(the_second_rises_where_the_first_cannot_sink)
{
    chain c = begin_chain();
    gantry_graph_fill(c.g, "fill", gantry_all(c.x), 5);
    end_chain(&c);
    check_graph(c.g);
    ck_assert_uint_eq(gantry_graph_node_count(c.g), 2);
    ck_assert_str_eq(gantry_graph_node_id(c.g, (gantry_node){ 0, 0 }), "first+second");
    gantry_graph_free(c.g);
}
END_TEST

START_TEST(the_first_sinks_where_the_second_cannot_rise)
{
    chain c = begin_chain();
    gantry_graph_fill(c.g, "fill", gantry_all(c.y), 5);
    end_chain(&c);
    check_graph(c.g);
    ck_assert_str_eq(gantry_graph_node_id(c.g, (gantry_node){ 1, 0 }), "first+second");
    gantry_graph_free(c.g);
}
END_TEST

START_TEST(a_write_between_and_one_behind_keep_both)
{
    chain c = begin_chain();
    gantry_node copy = gantry_graph_kernel(c.g, "copy", "copy");
    gantry_node_arg(c.g, copy, "x", gantry_all(c.other));
    gantry_node_arg(c.g, copy, "y", gantry_all(c.x));
    gantry_graph_fill(c.g, "fill", gantry_all(c.y), 5);
    end_chain(&c);
    check_graph(c.g);
    ck_assert_uint_eq(gantry_graph_node_count(c.g), 4);
    gantry_graph_free(c.g);
}
END_TEST

START_TEST(what_others_read_is_written_still)
{
    chain c = begin_chain();
    end_chain(&c);
    gantry_buffer_output(c.g, c.other);
    gantry_node copy = gantry_graph_kernel(c.g, "copy", "copy");
    gantry_node_arg(c.g, copy, "x", gantry_all(c.t));
    gantry_node_arg(c.g, copy, "y", gantry_all(c.other));
    gantry_node_priority(c.g, copy, 1);
    check_graph(c.g);
    const gy_maths *m = formulas_of(c.g, "first+second");
    ck_assert_uint_eq(m->results, 2);
    gantry_graph_free(c.g);
}
END_TEST

/* Another shape of rows is another element of each, so nothing can be put in its place. */
START_TEST(what_is_read_otherwise_than_element_by_element_keeps_both)
{
    chain c = begin_chain();
    gantry_buffer wide = gantry_graph_buffer(c.g, "wide", GANTRY_F32, 2, SHAPE(3, 8));
    gantry_buffer_output(c.g, wide);
    add_map(c.g, "spread", "b = a + 1", c.t, wide);
    gantry_buffer_split(c.g, c.y, 2);
    for (int k = 0; k < 2; k++) {
        gantry_node part = gantry_graph_map(c.g, k == 0 ? "low" : "high", "b = a + 1");
        gantry_node_arg(c.g, part, "b", gantry_part(c.y, k));
        gantry_node_arg(c.g, part, "a", gantry_part(c.t, k));
    }
    check_graph(c.g);
    ck_assert_uint_eq(gantry_graph_node_count(c.g), 4);
    gantry_graph_free(c.g);
}
END_TEST

START_TEST(a_reduction_keeps_what_alone_has_its_shape)
{
    gantry_graph *g = gantry_graph_new("spread");
    gantry_graph_fuse(g);
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, SHAPE(8));
    gantry_buffer table = gantry_graph_buffer(g, "table", GANTRY_F32, 2, SHAPE(3, 8));
    gantry_buffer total = gantry_graph_buffer(g, "total", GANTRY_F64, 1, SHAPE(1));
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, total);
    add_map(g, "spread", "b = a * 2", x, table);
    gantry_node node = gantry_graph_reduce(g, "total", "b = sum(a)");
    gantry_node_arg(g, node, "b", gantry_all(total));
    gantry_node_arg(g, node, "a", gantry_all(table));
    check_graph(g);
    ck_assert_uint_eq(gantry_graph_node_count(g), 2); /* sum(x * 2) would be of 8 elements, not of 24 */
    gantry_graph_free(g);
}
END_TEST

START_TEST(a_reduction_takes_in_a_table_that_its_sides_give)
{
    gantry_graph *g = gantry_graph_new("product");
    gantry_graph_fuse(g);
    gantry_buffer row = gantry_graph_buffer(g, "row", GANTRY_F32, 1, SHAPE(8));
    gantry_buffer column = gantry_graph_buffer(g, "column", GANTRY_F32, 2, SHAPE(3, 1));
    gantry_buffer table = gantry_graph_buffer(g, "table", GANTRY_F32, 2, SHAPE(3, 8));
    gantry_buffer total = gantry_graph_buffer(g, "total", GANTRY_F64, 1, SHAPE(1));
    gantry_buffer_init_value(g, row, 1);
    gantry_buffer_init_value(g, column, 1);
    gantry_buffer_output(g, total);
    gantry_node node = add_map(g, "product", "b = a * c", row, table);
    gantry_node_arg(g, node, "c", gantry_all(column));
    node = gantry_graph_reduce(g, "total", "b = sum(a)");
    gantry_node_arg(g, node, "b", gantry_all(total));
    gantry_node_arg(g, node, "a", gantry_all(table));
    check_graph(g);
    ck_assert_uint_eq(gantry_graph_node_count(g), 1);
    ck_assert_str_eq(formulas_of(g, "product+total")->result[0].text, "sum(f32(a_2 * c))");
    gantry_graph_free(g);
}
END_TEST

START_TEST(a_loop_is_a_border)
{
    chain c = begin_chain();
    gantry_graph_repeat(c.g, 3);
    end_chain(&c);
    add_map(c.g, "third", "b = a - 1", c.y, c.other);
    gantry_graph_repeat_end(c.g);
    gantry_buffer_output(c.g, c.other);
    check_graph(c.g);
    ck_assert_uint_eq(gantry_graph_node_count(c.g), 2);
    ck_assert_uint_eq(c.g->loops.at[0].first_node, 1);
    ck_assert_uint_eq(c.g->loops.at[0].last_node, 2);
    formulas_of(c.g, "second+third");
    gantry_graph_free(c.g);
}
END_TEST

static bool survive(void)
{
    chain c = begin_chain();
    gantry_graph_fill(c.g, "fill", gantry_all(c.x), 5);
    end_chain(&c);
    gantry_error err;
    gantry_status status = gantry_graph_check(c.g, &err);
    ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_NOMEM, "%s", err.text);
    if (status == GANTRY_OK)
        ck_assert_uint_eq(gantry_graph_node_count(c.g), 2);
    gantry_graph_free(c.g);
    return status == GANTRY_OK;
}

START_TEST(memory_that_runs_out_is_reported)
{
    assert_survives(survive, 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("maps that become one");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, two_maps_become_one_with_the_cast_of_what_lay_between);
    tcase_add_test(tests, nothing_becomes_one_unless_it_is_asked_for);
    tcase_add_test(tests, a_chain_that_ends_in_a_reduction_is_one_node);
    tcase_add_test(tests, a_kernel_beside_a_map_becomes_part_of_it);
    tcase_add_test(tests, kernels_without_a_map_stay_as_they_are);
    tcase_add_test(tests, kernels_of_whole_numbers_or_other_shapes_stay_as_they_are);
    tcase_add_test(tests, an_attribute_keeps_a_node);
    tcase_add_test(tests, equal_places_keep_nothing_apart);
    tcase_add_test(tests, the_second_rises_where_the_first_cannot_sink);
    tcase_add_test(tests, the_first_sinks_where_the_second_cannot_rise);
    tcase_add_test(tests, a_write_between_and_one_behind_keep_both);
    tcase_add_test(tests, what_others_read_is_written_still);
    tcase_add_test(tests, what_is_read_otherwise_than_element_by_element_keeps_both);
    tcase_add_test(tests, a_reduction_keeps_what_alone_has_its_shape);
    tcase_add_test(tests, a_reduction_takes_in_a_table_that_its_sides_give);
    tcase_add_test(tests, a_loop_is_a_border);
    tcase_add_test(tests, memory_that_runs_out_is_reported);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
