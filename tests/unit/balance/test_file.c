/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds are part of the schedule: saved, read, attached to the user's graph, and checked. */
#include "../scheduler/suite.h"

#include "base/text.h"
#include <string.h>

static const char graph_text[] =
    "{\"gantry\":1,\"name\":\"relax\",\"params\":{\"n\":160,\"parts\":2},\"buffers\":{"
    "\"u\":{\"dtype\":\"f32\",\"shape\":[\"n\",8],\"split\":{\"auto\":\"parts\"},\"init\":{\"random\":{\"seed\":1}}},"
    "\"v\":{\"dtype\":\"f32\",\"shape\":[\"n\",8],\"split\":{\"auto\":\"parts\"},\"output\":true}},\"nodes\":["
    "{\"repeat\":3,\"carry\":{\"u\":\"v\"},\"nodes\":[{\"id\":\"sweep[i]\",\"for\":{\"i\":\"parts\"},\"kernel\":"
    "\"jacobi2d\",\"args\":{\"x\":\"u[i]~1\",\"y\":\"v[i]\"}}]}]}";

static const char machine_text[] =
    "{\"gantry_machine\":1,\"name\":\"unequal\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},"
    "{\"id\":\"m0\",\"capacity\":\"1GiB\"},{\"id\":\"m1\",\"capacity\":\"1GiB\"}],\"devices\":["
    "{\"id\":\"slow\",\"memory\":\"m0\",\"gflops\":{\"f32\":0.1}},"
    "{\"id\":\"fast\",\"memory\":\"m1\",\"gflops\":{\"f32\":0.3}}],"
    "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":0.01,\"bandwidth_gbs\":1000}]}";

static gantry_graph *parse_graph(void)
{
    gantry_graph *g = NULL;
    gantry_error err;
    if (gantry_graph_parse(&g, graph_text, strlen(graph_text), NULL, NULL, NULL, &err) || gantry_graph_check(g, &err))
        ck_abort_msg("%s", err.text);
    return g;
}

static gantry_schedule *make(gantry_graph *g, const char *balance)
{
    gantry_machine *m = parse_machine(machine_text);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err;
    o.balance = balance;
    if (gantry_schedule_new(&s, g, m, &o, &err))
        ck_abort_msg("%s", err.text);
    gantry_machine_free(m);
    return s;
}

static gantry_schedule *read_back(const char *text)
{
    gantry_schedule *s = NULL;
    gantry_error err;
    if (gantry_schedule_parse(&s, text, strlen(text), "test", &err))
        ck_abort_msg("%s", err.text);
    return s;
}

START_TEST(bounds_come_back)
{
    gantry_graph *g = parse_graph(), *other = parse_graph();
    gantry_schedule *s = make(g, "dynamic");
    gantry_error err = { 0 };
    ck_assert_uint_eq(s->bounds.count, 2);
    int64_t middle = s->bounds.at[0].first[1];
    ck_assert_int_ge(middle, 39); /* a quarter of 160, and the halo */
    ck_assert_int_le(middle, 41);
    char *text = schedule_text(s);
    ck_assert_ptr_nonnull(strstr(text, "\"balance\": \"dynamic\""));
    gantry_schedule *back = read_back(text);
    ck_assert_int_eq(back->bounds.at[1].first[1], middle);
    ck_assert_str_eq(back->balance, "dynamic");
    ck_assert_uint_eq(back->graph_hash, other->hash); /* that of the graph as its author knows it */
    if (gantry_schedule_check(back, other, &err) || gantry_schedule_attach(back, other, &err))
        ck_abort_msg("%s", err.text);
    ck_assert_ptr_eq(back->graph->base, other);
    ck_assert_int_eq(back->graph->buffers.at[0].part_first[1], middle);
    ck_assert_int_eq(other->buffers.at[0].part_first[1], 80);
    char *again = schedule_text(back);
    ck_assert_str_eq(again, text);
    gantry_free(again);
    gantry_free(text);
    gantry_schedule_free(back);
    gantry_schedule_free(s);
    gantry_graph_free(other);
    gantry_graph_free(g);
}
END_TEST

START_TEST(same_input_same_bytes)
{
    gantry_graph *g = parse_graph(), *other = parse_graph();
    gantry_schedule *s = make(g, NULL), *t = make(other, NULL);
    char *one = schedule_text(s), *two = schedule_text(t);
    ck_assert_str_eq(one, two);
    gantry_free(one);
    gantry_free(two);
    gantry_schedule_free(s);
    gantry_schedule_free(t);
    gantry_graph_free(g);
    gantry_graph_free(other);
}
END_TEST

/* The ops of one cut under the bounds of another: the checker sees accesses that are not the tasks'. */
START_TEST(ops_must_fit_the_bounds)
{
    gantry_graph *g = parse_graph();
    gantry_schedule *s = make(g, "dynamic"), *even = make(g, "static");
    gantry_error err = { 0 };
    for (size_t i = 0; i < 2; i++)
        ((int64_t *)(uintptr_t)s->bounds.at[i].first)[1] = even->bounds.at[i].first[1];
    ck_assert_int_eq(gantry_schedule_check(s, g, &err), GANTRY_E_SCHEDULE);
    ck_assert_msg(strncmp(err.text, "rule node", 9) == 0, "%s", err.text);
    gantry_schedule_free(even);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(both_names_of_a_carry_are_cut_alike)
{
    gantry_graph *g = parse_graph();
    gantry_schedule *s = make(g, "dynamic");
    gantry_error err = { 0 };
    ((int64_t *)(uintptr_t)s->bounds.at[0].first)[1] += 1; /* u and v apart: jacobi2d wants as many rows */
    ck_assert_int_eq(gantry_schedule_attach(s, g, &err), GANTRY_E_SCHEDULE);
    ck_assert_msg(strncmp(err.text, "rule form: the graph cannot be cut at the bounds of the schedule: ", 66) == 0,
                  "%s", err.text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(bounds_past_the_end_are_refused)
{
    gantry_graph *g = parse_graph();
    gantry_schedule *s = make(g, "dynamic");
    gantry_error err = { 0 };
    ((int64_t *)(uintptr_t)s->bounds.at[0].first)[2] += 1;
    ck_assert_int_eq(gantry_schedule_check(s, g, &err), GANTRY_E_SCHEDULE);
    ck_assert_msg(strncmp(err.text, "rule form", 9) == 0, "%s", err.text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* The normal form keeps the halo that was asked for, since another cut may have room for it. */
START_TEST(the_normal_form_keeps_halos)
{
    gantry_graph *g = parse_graph();
    char *text = NULL;
    size_t length;
    gantry_error err;
    ck_assert_int_eq(gantry_graph_json(g, &text, &length, &err), GANTRY_OK);
    ck_assert_ptr_nonnull(strstr(text, "u[0]~1\""));
    gantry_graph *back = NULL;
    ck_assert_int_eq(gantry_graph_parse(&back, text, length, NULL, NULL, NULL, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_graph_check(back, &err), GANTRY_OK);
    ck_assert_uint_eq(back->hash, g->hash);
    gantry_free(text);
    gantry_graph_free(back);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("balance in files");
    TCase *t = tcase_create("file");
    tcase_add_test(t, bounds_come_back);
    tcase_add_test(t, same_input_same_bytes);
    tcase_add_test(t, ops_must_fit_the_bounds);
    tcase_add_test(t, both_names_of_a_carry_are_cut_alike);
    tcase_add_test(t, bounds_past_the_end_are_refused);
    tcase_add_test(t, the_normal_form_keeps_halos);
    suite_add_tcase(s, t);
    return run_suite(s);
}
