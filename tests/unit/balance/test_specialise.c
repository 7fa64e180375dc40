/* SPDX-License-Identifier: Apache-2.0 */
/* A graph cut elsewhere: regions, halos, costs, the flow; and what cannot be cut. */
#include "../scheduler/suite.h"
#include "graph/derive/specialise.h"

#include <string.h>

/* 12 rows in 4 parts of 3; a stencil with 4 rows of halo, so that those of the outer parts are cut at the ends. */
static gantry_graph *stencil(gantry_buffer *u, gantry_buffer *v)
{
    gantry_graph *g = gantry_graph_new("stencil");
    *u = buffer(g, "u", 12);
    *v = buffer(g, "v", 12);
    gantry_buffer_init_value(g, *u, 1);
    gantry_buffer_split_auto(g, *u, 4);
    gantry_buffer_split_auto(g, *v, 4);
    for (int i = 0; i < 4; i++) {
        gantry_node n = gantry_graph_work(g, "sweep");
        gantry_node_read(g, n, gantry_halo(gantry_part(*u, i), 4, 4));
        gantry_node_write(g, n, gantry_part(*v, i));
        gantry_node_cost(g, n, 30, 60);
        gantry_node_scratch(g, n, 90);
        gantry_node_time(g, n, "slow", 12);
    }
    gantry_error err;
    if (gantry_graph_check(g, &err))
        ck_abort_msg("%s", err.text);
    return g;
}

static gantry_graph *cut(gantry_graph *g, gantry_buffer u, gantry_buffer v, const int64_t *first)
{
    gantry_graph *made = NULL;
    gantry_error err;
    gy_cut cuts[] = { { u.id, first }, { v.id, first } };
    if (gy_graph_specialise(&made, g, cuts, 2, &err))
        ck_abort_msg("%s", err.text);
    return made;
}

static void expect_access(const gantry_graph *g, uint32_t node, uint32_t k, int64_t first, int64_t last, int before,
                          int after)
{
    const gy_access *a = &g->access.at[g->nodes.at[node].access + k];
    ck_assert_int_eq(a->first, first);
    ck_assert_int_eq(a->last, last);
    ck_assert_int_eq(a->before, before);
    ck_assert_int_eq(a->after, after);
}

START_TEST(halos_that_the_ends_cut_off_come_back)
{
    gantry_buffer u, v;
    gantry_graph *g = stencil(&u, &v);
    expect_access(g, 0, 0, 0, 7, 0, 4);
    expect_access(g, 1, 0, 0, 10, 3, 4); /* rows 3 to 5; one row of the halo is missing in front */
    gantry_graph *s = cut(g, u, v, (int64_t[]){ 0, 6, 7, 8, 12 });
    expect_access(s, 0, 0, 0, 10, 0, 4);
    expect_access(s, 1, 0, 2, 11, 4, 4);
    expect_access(s, 1, 1, 6, 7, 0, 0);
    expect_access(s, 3, 0, 4, 12, 4, 0);
    ck_assert_ptr_eq(s->base, g);
    ck_assert_uint_eq(s->hash, g->hash);
    expect_access(g, 1, 0, 0, 10, 3, 4); /* the graph itself is as it was */
    gantry_graph_free(g);
    gantry_graph_free(s); /* holds what it needs of the other */
}
END_TEST

START_TEST(given_costs_grow_with_the_parts)
{
    gantry_buffer u, v;
    gantry_graph *g = stencil(&u, &v);
    gantry_graph *s = cut(g, u, v, (int64_t[]){ 0, 6, 7, 8, 12 });
    const gy_node *n = s->nodes.at; /* 3 rows each became 6, 1, 1 and 4 */
    ck_assert_double_eq_tol(n[0].flops, 60, 1e-9);
    ck_assert_double_eq_tol(n[1].bytes, 20, 1e-9);
    ck_assert_double_eq_tol(s->extra.at[n[3].extra].time.at[0].us, 16, 1e-9);
    ck_assert_double_eq_tol(g->extra.at[n[3].extra].time.at[0].us, 12, 1e-9);
    ck_assert_int_eq(n[0].scratch, 180);
    ck_assert_int_eq(n[1].scratch, 90); /* might be a constant: it does not shrink */
    gantry_graph_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(dependencies_follow)
{
    gantry_buffer u, v;
    gantry_graph *g = gantry_graph_new("reach");
    gantry_error err;
    u = buffer(g, "u", 100);
    v = buffer(g, "v", 100);
    gantry_buffer_split_auto(g, u, 4);
    gantry_buffer_split_auto(g, v, 4);
    for (int i = 0; i < 4; i++) {
        gantry_node n = gantry_graph_work(g, "write");
        gantry_node_write(g, n, gantry_part(u, i));
    }
    gantry_node n = gantry_graph_work(g, "read");
    gantry_node_read(g, n, gantry_halo(gantry_part(u, 0), 0, 10));
    gantry_node_write(g, n, gantry_part(v, 0));
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    ck_assert_int_eq(gy_deps_end(g->flow, 4) - gy_deps_begin(g->flow, 4), 2); /* parts 0 and 1 */
    gantry_graph *s = cut(g, u, v, (int64_t[]){ 0, 25, 30, 34, 100 });
    ck_assert_int_eq(gy_deps_end(s->flow, 4) - gy_deps_begin(s->flow, 4), 4); /* 10 rows from 25 on reach into part 3 */
    gantry_graph_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(no_change_is_the_same_graph)
{
    gantry_buffer u, v;
    gantry_graph *g = stencil(&u, &v), *again;
    gantry_error err;
    gantry_graph *same = cut(g, u, v, (int64_t[]){ 0, 3, 6, 9, 12 });
    ck_assert_ptr_eq(same, g);
    gantry_graph_free(same);
    gantry_graph *s = cut(g, u, v, (int64_t[]){ 0, 6, 7, 8, 12 });
    gantry_graph *t = cut(s, u, v, (int64_t[]){ 0, 6, 7, 8, 12 });
    ck_assert_ptr_eq(t, s);
    gantry_graph_free(t);
    t = cut(s, u, v, (int64_t[]){ 0, 1, 7, 8, 12 });
    ck_assert_ptr_eq(t->base, g); /* of the first, not of the second */
    expect_access(t, 1, 0, 0, 11, 1, 4);
    gantry_graph_free(t);
    ck_assert_int_eq(gy_graph_specialise(&again, s, NULL, 0, &err), GANTRY_OK);
    ck_assert_ptr_eq(again, g); /* not named: equal parts */
    gantry_graph_free(again);
    gantry_graph_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(bounds_must_be_bounds)
{
    static const int64_t bad[][5] = { { 1, 6, 7, 8, 12 }, { 0, 6, 5, 8, 12 }, { 0, 6, 7, 8, 11 } };
    gantry_buffer u, v;
    gantry_graph *g = stencil(&u, &v), *made = NULL;
    gantry_error err;
    for (int i = 0; i < 3; i++) {
        gy_cut c = { u.id, bad[i] };
        ck_assert_int_eq(gy_graph_specialise(&made, g, &c, 1, &err), GANTRY_E_INVALID);
        ck_assert_str_eq(err.text, "the parts of \"u\" must begin at row 0, not fall, and end at its 12 rows");
    }
    ck_assert_ptr_null(made);
    gantry_graph_free(g);
}
END_TEST

START_TEST(a_kernel_that_wants_equal_shapes_says_so)
{
    gantry_graph *g = gantry_graph_new("mixed"), *made = NULL;
    gantry_buffer x = buffer(g, "x", 12), y = buffer(g, "y", 12);
    gantry_error err;
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_split_auto(g, x, 4);
    gantry_buffer_split(g, y, 4);
    for (int i = 0; i < 4; i++) {
        gantry_node n = gantry_graph_kernel(g, "relu", "relu");
        gantry_node_arg(g, n, "x", gantry_part(x, i));
        gantry_node_arg(g, n, "y", gantry_part(y, i));
    }
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    gy_cut c = { x.id, (int64_t[]){ 0, 6, 7, 8, 12 } };
    ck_assert_int_eq(gy_graph_specialise(&made, g, &c, 1, &err), GANTRY_E_GRAPH);
    ck_assert_ptr_nonnull(strstr(err.text, "node \"relu\""));
    gy_cut fixed = { y.id, (int64_t[]){ 0, 3, 6, 9, 12 } };
    ck_assert_int_eq(gy_graph_specialise(&made, g, &fixed, 1, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "buffer \"y\" has no automatic split, so its parts stay");
    gantry_graph_free(g);
}
END_TEST

START_TEST(a_halo_without_end_keeps_its_parts)
{
    gantry_graph *g = gantry_graph_new("wide"), *made = NULL;
    gantry_buffer x = buffer(g, "x", 12);
    gantry_error err;
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_split_auto(g, x, 2);
    gantry_node n = gantry_graph_work(g, "all");
    gantry_node_read(g, n, gantry_halo(gantry_part(x, 1), 1000000, 1000000));
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    gy_cut c = { x.id, (int64_t[]){ 0, 2, 12 } };
    ck_assert_int_eq(gy_graph_specialise(&made, g, &c, 1, &err), GANTRY_E_GRAPH);
    ck_assert_ptr_nonnull(strstr(err.text, "reaches 65535 rows or more beyond its ends"));
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("specialise");
    TCase *t = tcase_create("specialise");
    tcase_add_test(t, halos_that_the_ends_cut_off_come_back);
    tcase_add_test(t, given_costs_grow_with_the_parts);
    tcase_add_test(t, dependencies_follow);
    tcase_add_test(t, no_change_is_the_same_graph);
    tcase_add_test(t, bounds_must_be_bounds);
    tcase_add_test(t, a_kernel_that_wants_equal_shapes_says_so);
    tcase_add_test(t, a_halo_without_end_keeps_its_parts);
    suite_add_tcase(s, t);
    return run_suite(s);
}
