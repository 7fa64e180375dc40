/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: four products in one lane, marked as one batch by hand, and broken in the smallest ways. */
#include "schedule/schedule.h"
#include "support/run_suite.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

#define BUFFERS                                                                                                        \
    "\"a\":{\"dtype\":\"f32\",\"shape\":[16,4],\"split\":4,\"class\":\"const\",\"init\":{\"random\":{\"seed\":1}}},"   \
    "\"b\":{\"dtype\":\"f32\",\"shape\":[4,4],\"class\":\"const\",\"init\":{\"random\":{\"seed\":2}}},"                \
    "\"c\":{\"dtype\":\"f32\",\"shape\":[16,4],\"split\":4,\"class\":\"state\",\"init\":0}"
#define NODE(i, rest) "{\"id\":\"n" #i "\",\"kernel\":\"gemm\"," rest "}"
#define ARGS(a, c)    "\"args\":{\"a\":\"" a "\",\"b\":\"b\",\"c\":\"" c "\"}"
#define GRAPH(second)                                                                                                  \
    "{\"gantry\":1,\"buffers\":{" BUFFERS "},\"nodes\":[" NODE(0, ARGS("a[0]", "c[0]")) "," second "," NODE(           \
        2, ARGS("a[2]", "c[2]")) "," NODE(3, ARGS("a[3]", "c[3]")) "]}"

static const char alike[] = GRAPH(NODE(1, ARGS("a[1]", "c[1]")));
static const char scaled[] = GRAPH(NODE(1, "\"args\":{\"alpha\":2,\"a\":\"a[1]\",\"b\":\"b\",\"c\":\"c[1]\"}"));
static const char dynamic[] =
    GRAPH(NODE(1, "\"args\":{\"alpha\":{\"dynamic\":1},\"a\":\"a[1]\",\"b\":\"b\",\"c\":\"c[1]\"}"));
static const char reading[] = GRAPH(NODE(1, ARGS("c[0]", "c[1]")));
static const char overwriting[] = GRAPH(NODE(1, ARGS("a[1]", "c[0]")));
static const char after[] = GRAPH(NODE(1, "\"after\":[\"n0\"]," ARGS("a[1]", "c[1]")));

static gantry_graph *make_graph(const char *text)
{
    gantry_graph *g;
    gantry_error err = { 0 };
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    ck_assert_msg(gantry_graph_parse(&g, text, strlen(text), "batch", NULL, &options, &err) == GANTRY_OK, "%s",
                  err.text);
    return g;
}

/* On one device all four are in one lane, and there is nothing else. */
static gantry_schedule *make_schedule(gantry_graph *g, uint32_t batch)
{
    gantry_machine *m;
    gantry_schedule *s;
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_machine_virtual(&m, 1, &err), GANTRY_OK);
    ck_assert_msg(gantry_schedule_new(&s, g, m, NULL, &err) == GANTRY_OK, "%s", err.text);
    gantry_machine_free(m);
    ck_assert_uint_eq(s->ops.count, 4);
    ck_assert_uint_eq(s->lanes.count, 1);
    s->ops.at[0].batch = batch;
    for (uint32_t i = 1; i < 4; i++)
        s->ops.at[i].joined = i < batch;
    return s;
}

static void expect(gantry_schedule *s, gantry_graph *g, const char *rule, const char *says)
{
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_schedule_check(s, g, &err), rule ? GANTRY_E_SCHEDULE : GANTRY_OK);
    if (rule)
        ck_assert_msg(strstr(err.text, rule) && strstr(err.text, says), "wanted %s: %s; found %s", rule, says,
                      err.text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}

static void expect_graph(const char *text, uint32_t batch, const char *rule, const char *says)
{
    gantry_graph *g = make_graph(text);
    expect(make_schedule(g, batch), g, rule, says);
}

START_TEST(independent_launches_of_alike_nodes_are_a_batch)
{
    for (uint32_t batch = 2; batch <= 4; batch++)
        expect_graph(alike, batch, NULL, NULL);
}
END_TEST

START_TEST(a_batch_is_whole)
{
    expect_graph(alike, 5, "rule form", "batch of 5 ops; there are 4");
    expect_graph(alike, 1, "rule form", "2 or more");
    gantry_graph *g = make_graph(alike);
    gantry_schedule *s = make_schedule(g, 4);
    s->ops.at[2].batch = 2;
    expect(s, g, "rule form", "begins a batch in the batch of op 0");
}
END_TEST

START_TEST(an_op_joins_a_batch_that_there_is)
{
    gantry_graph *g = make_graph(alike);
    gantry_schedule *s = make_schedule(g, 0);
    s->ops.at[2].joined = true;
    expect(s, g, "rule form", "op 2 joins a batch that no op before it begins");
}
END_TEST

START_TEST(a_batch_is_in_one_lane)
{
    gantry_graph *g = make_graph(alike);
    gantry_schedule *s = make_schedule(g, 4);
    ck_assert(gy_vec_push(&s->lanes, ((gy_lane){ .kind = GY_LANE_COMPUTE })));
    s->op_lane.at[s->ops.at[3].lane] = 1;
    expect(s, g, "rule form",
           "op 3 is in 1 lanes, the first of them 1; the batch of op 0 is in 1, the first of them 0");
}
END_TEST

START_TEST(nodes_of_a_batch_are_alike)
{
    expect_graph(scaled, 4, "rule batch", "op 1 \"n1\" is in the batch of op 0 \"n0\"");
    expect_graph(dynamic, 4, "rule batch", "op 1 \"n1\" is in the batch of op 0 \"n0\"");
    gantry_graph *g = make_graph(dynamic);
    gantry_schedule *s = make_schedule(g, 0);
    s->ops.at[2].batch = 2;
    s->ops.at[3].joined = true;
    expect(s, g, NULL, NULL);
}
END_TEST

START_TEST(only_the_first_of_a_batch_waits)
{
    static const gy_sync inside = { .from = 0, .to = 2, .carrier = GY_CARRIER_EVENT };
    gantry_graph *g = make_graph(alike);
    gantry_schedule *s = make_schedule(g, 4);
    ck_assert(gy_vec_push(&s->sync, inside));
    expect(s, g, "rule batch", "row 0 lets op 2 \"n2\" wait");
    g = make_graph(alike);
    s = make_schedule(g, 0);
    s->ops.at[2].batch = 2;
    s->ops.at[3].joined = true;
    ck_assert(gy_vec_push(&s->sync, inside));
    expect(s, g, NULL, NULL);
}
END_TEST

START_TEST(lane_order_says_nothing_inside_of_a_batch)
{
    expect_graph(reading, 0, NULL, NULL);
    expect_graph(reading, 4, "rule race", "op 1 \"n1\" reads bytes");
    expect_graph(overwriting, 0, NULL, NULL);
    expect_graph(overwriting, 4, "rule race", "op 1 \"n1\" writes bytes");
    expect_graph(after, 0, NULL, NULL);
    expect_graph(after, 2, "rule after", "op 1 \"n1\" comes after op 0 \"n0\"");
}
END_TEST

START_TEST(what_comes_behind_a_batch_in_its_lane_is_ordered_behind_all_of_it)
{
    gantry_graph *g = make_graph(GRAPH(NODE(1, ARGS("a[1]", "c[1]"))));
    gantry_schedule *s = make_schedule(g, 2);
    s->ops.at[2].batch = 2;
    s->ops.at[3].joined = true;
    expect(s, g, NULL, NULL);
    expect_graph("{\"gantry\":1,\"buffers\":{" BUFFERS "},\"nodes\":[" NODE(0, ARGS("a[0]", "c[0]")) "," NODE(
                     1, ARGS("a[1]", "c[1]")) "," NODE(2, ARGS("c[0]", "c[2]")) "," NODE(3, ARGS("c[1]", "c[3]")) "]}",
                 2, NULL, NULL);
}
END_TEST

START_TEST(a_file_keeps_batches)
{
    gantry_graph *g = make_graph(alike);
    gantry_schedule *s = make_schedule(g, 3), *read;
    gantry_error err = { 0 };
    char *text, *again;
    size_t length;
    ck_assert_int_eq(gantry_schedule_json(s, &text, &length, &err), GANTRY_OK);
    ck_assert_ptr_nonnull(strstr(text, "\"batch\": 3"));
    ck_assert_msg(gantry_schedule_parse(&read, text, length, "batch", &err) == GANTRY_OK, "%s", err.text);
    ck_assert(read->ops.at[0].batch == 3 && !read->ops.at[0].joined && read->ops.at[1].joined &&
              read->ops.at[2].joined && !read->ops.at[3].joined);
    ck_assert_int_eq(gantry_schedule_json(read, &again, NULL, &err), GANTRY_OK);
    ck_assert_str_eq(text, again);
    gantry_free(text);
    gantry_free(again);
    gantry_schedule_free(s);
    expect(read, g, NULL, NULL);
}
END_TEST

static const char *const wrong[][2] = {
    { "\"kind\": \"launch\"", "\"kind\": \"launch\", \"batch\": -1" },
    { "\"kind\": \"launch\"", "\"kind\": \"launch\", \"batch\": \"2\"" },
    { "\"kind\": \"launch\"", "\"kind\": \"host\", \"batch\": 2" },
};

START_TEST(a_file_gives_batches_of_launches_alone)
{
    gantry_graph *g = make_graph(alike);
    gantry_schedule *s = make_schedule(g, 0), *read = NULL;
    char *text, changed[16384];
    ck_assert_int_eq(gantry_schedule_json(s, &text, NULL, NULL), GANTRY_OK);
    char *at = strstr(text, wrong[_i][0]);
    ck_assert_ptr_nonnull(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, wrong[_i][1], at + strlen(wrong[_i][0]));
    ck_assert_int_eq(gantry_schedule_parse(&read, changed, strlen(changed), "batch", NULL), GANTRY_E_SCHEDULE);
    gantry_free(text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* ---- copies ---- */

/* Three arrays go to a GPU, or to what `type` says. */
static gantry_schedule *make_copies(gantry_graph *g, const char *type)
{
    char text[512];
    gantry_machine *m;
    gantry_schedule *s;
    gantry_error err = { 0 };
    int length =
        snprintf(text, sizeof text,
                 "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\",\"pinned\":true},"
                 "{\"id\":\"m\",\"capacity\":\"1GiB\"}],\"devices\":[{\"id\":\"d\",\"type\":\"%s\",\"memory\":\"m\","
                 "\"copy_engines\":1}],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":1,"
                 "\"bandwidth_gbs\":1}]}",
                 type);
    ck_assert_msg(gantry_machine_parse(&m, text, (size_t)length, "machine", &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_schedule_new(&s, g, m, NULL, &err) == GANTRY_OK, "%s", err.text);
    gantry_machine_free(m);
    for (size_t i = 0; i < s->ops.count; i++) {
        s->ops.at[i].batch = 0;
        s->ops.at[i].joined = false;
    }
    return s;
}

static void join(gantry_schedule *s, uint32_t first, uint32_t count)
{
    s->ops.at[first].batch = count;
    for (uint32_t i = first + 1; i < first + count; i++)
        s->ops.at[i].joined = true;
}

static const char moved[] = "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f32\",\"shape\":[9],\"init\":1},\"b\":{"
                            "\"dtype\":\"f32\",\"shape\":[9],"
                            "\"init\":1},\"c\":{\"dtype\":\"f32\",\"shape\":[9],\"init\":1,\"output\":true}},\"nodes\":"
                            "[{\"id\":\"n\",\"kernel\":"
                            "\"mul\",\"args\":{\"x\":\"a\",\"y\":\"b\",\"z\":\"c\"}},{\"id\":\"m\",\"kernel\":"
                            "\"saxpy\",\"args\":{\"a\":1,\"x\":"
                            "\"a\",\"y\":\"c\"}}]}";

START_TEST(copies_between_two_memories_are_a_batch)
{
    gantry_graph *g = make_graph(moved);
    gantry_schedule *s = make_copies(g, "gpu");
    ck_assert(s->ops.at[0].kind == GY_OP_COPY && s->ops.at[1].kind == GY_OP_COPY);
    join(s, 0, 2);
    expect(s, g, NULL, NULL);
}
END_TEST

START_TEST(copies_and_launches_are_no_batch)
{
    gantry_graph *g = make_graph(moved);
    gantry_schedule *s = make_copies(g, "gpu");
    join(s, 0, (uint32_t)s->ops.count);
    expect(s, g, "rule form", "in the batch of op 0; a batch is made of launches, of copies or of collectives");
}
END_TEST

START_TEST(a_batch_of_copies_is_a_gpus)
{
    gantry_graph *g = make_graph(moved);
    gantry_schedule *s = make_copies(g, "cpu");
    join(s, 0, 2);
    expect(s, g, "rule batch", "in a lane of a GPU");
}
END_TEST

/* The first copy that goes back stands behind the last that comes. */
START_TEST(copies_of_a_batch_have_the_same_ends)
{
    gantry_graph *g = make_graph(moved);
    gantry_schedule *s = make_copies(g, "gpu");
    gy_use *use = &s->use.at[s->ops.at[1].use], first = use[0];
    use[0] = use[1];
    use[1] = first;
    use[0].mode = GANTRY_READ;
    use[1].mode = GANTRY_WRITE;
    join(s, 0, 2);
    expect(s, g, "rule batch", "between the same two memories");
}
END_TEST

/* ---- collectives ---- */

#define SUM(id, op, from, to)                                                                                          \
    "{\"id\":\"" id "\",\"collective\":\"all_reduce\",\"op\":\"" op "\",\"algorithm\":\"one_shot\",\"in\":[\"" from    \
    "[0]\",\"" from "[1]\"],\"out\":[\"" to "[0]\",\"" to "[1]\"],\"on\":[0,1]}"
#define ARRAY(name, type)                                                                                              \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":[8],\"split\":2,\"class\":\"state\",\"init\":1}"
#define SUMS(nodes)                                                                                                    \
    "{\"gantry\":1,\"buffers\":{" ARRAY("a", "f32") "," ARRAY("b", "f32") "," ARRAY("c", "f32") "," ARRAY(             \
        "d", "f32") "," ARRAY("e", "f64") "},\"nodes\":[" nodes "]}"

static const char sums[] = SUMS(SUM("s", "sum", "a", "b") "," SUM("t", "sum", "c", "d"));

/* All that is between the two is moved ahead of them; both are of two lanes, and there is no row between them. */
static gantry_schedule *make_sums(gantry_graph *g)
{
    gantry_machine *m;
    gantry_schedule *s;
    gantry_error err = { 0 };
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.effort = 0;
    ck_assert_int_eq(gantry_machine_virtual(&m, 2, &err), GANTRY_OK);
    ck_assert_msg(gantry_schedule_new(&s, g, m, &o, &err) == GANTRY_OK, "%s", err.text);
    gantry_machine_free(m);
    size_t n = s->ops.count;
    for (size_t i = 0; i < n; i++) {
        s->ops.at[i].batch = 0;
        s->ops.at[i].joined = false;
    }
    ck_assert(n >= 2 && s->ops.at[n - 2].kind == GY_OP_COLLECTIVE && s->ops.at[n - 1].kind == GY_OP_COLLECTIVE);
    ck_assert_uint_eq(s->ops.at[n - 1].lanes, 2);
    return s;
}

static void expect_sums(const char *text, const char *rule, const char *says)
{
    gantry_graph *g = make_graph(text);
    gantry_schedule *s = make_sums(g);
    join(s, (uint32_t)s->ops.count - 2, 2);
    expect(s, g, rule, says);
}

START_TEST(alike_collectives_are_a_batch)
{
    expect_sums(sums, NULL, NULL);
    expect_sums(SUMS(SUM("s", "sum", "a", "b") "," SUM("t", "max", "c", "d")), "rule batch", "\"t\" is in the batch");
    expect_sums(SUMS(SUM("s", "sum", "a", "b") "," SUM("t", "sum", "e", "e")), "rule batch", "element type");
}
END_TEST

START_TEST(collectives_of_a_batch_have_one_algorithm)
{
    gantry_graph *g = make_graph(sums);
    gantry_schedule *s = make_sums(g);
    join(s, (uint32_t)s->ops.count - 2, 2);
    gy_vec_last(&s->ops)->algorithm = GY_ALGORITHM_TWO_SHOT;
    expect(s, g, "rule batch", "algorithm");
}
END_TEST

/* Rank by rank: the same lanes the other way round are others. */
START_TEST(collectives_of_a_batch_are_in_the_same_lanes)
{
    gantry_graph *g = make_graph(sums);
    gantry_schedule *s = make_sums(g);
    join(s, (uint32_t)s->ops.count - 2, 2);
    uint32_t *lane = &s->op_lane.at[gy_vec_last(&s->ops)->lane], first = lane[0];
    lane[0] = lane[1];
    lane[1] = first;
    expect(s, g, "rule form", "ops of a batch are in the same lanes, rank by rank");
}
END_TEST

/* The second reads, or overwrites, rows of the first in one of its lanes alone: the last one. */
START_TEST(no_lane_orders_collectives_of_a_batch)
{
    static const char *const text[] = { SUMS(SUM("s", "sum", "a", "b") "," SUM("t", "sum", "b", "d")),
                                        SUMS(SUM("s", "sum", "a", "b") "," SUM("t", "sum", "c", "a")),
                                        SUMS(SUM("s", "sum", "a", "b") "," SUM("t", "sum", "c", "b")) };
    gantry_graph *g = make_graph(text[_i]);
    expect(make_sums(g), g, NULL, NULL);
    expect_sums(text[_i], "rule race", "");
}
END_TEST

/* In each of both lanes an op behind the batch reads what one of its ops wrote, and nothing but the lane says so. */
START_TEST(each_lane_orders_what_is_behind_a_batch_of_collectives)
{
    for (uint32_t lane = 0; lane < 2; lane++) {
        gantry_graph *g = make_graph(SUMS(SUM("s", "sum", "a", "b") "," SUM(
            "t", "sum", "c", "d") ",{\"id\":\"r\","
                                  "\"work\":{},\"reads\":[\"b[0]\"],\"on\":0},{\"id\":\"q\",\"work\":{},"
                                  "\"reads\":[\"d[1]\"],\"on\":1}"));
        gantry_machine *m;
        gantry_schedule *s;
        gantry_error err = { 0 };
        ck_assert_int_eq(gantry_machine_virtual(&m, 2, &err), GANTRY_OK);
        ck_assert_msg(gantry_schedule_new(&s, g, m, NULL, &err) == GANTRY_OK, "%s", err.text);
        gantry_machine_free(m);
        uint32_t first = 0;
        while (s->ops.at[first].kind != GY_OP_COLLECTIVE)
            first++;
        for (size_t i = 0; i < s->ops.count; i++)
            if (s->ops.at[i].kind == GY_OP_LAUNCH)
                s->op_lane.at[s->ops.at[i].lane] =
                    s->op_lane.at[s->ops.at[first].lane + (s->lanes.at[s->op_lane.at[s->ops.at[i].lane]].device == 1)];
        for (size_t i = 0; i < s->sync.count; i++)
            s->sync.at[i].carrier = GY_CARRIER_LANE;
        join(s, first, 2);
        if (lane) /* without the lane it is a race */
            s->op_lane.at[gy_vec_last(&s->ops)->lane] = s->op_lane.at[s->ops.at[first].lane];
        ck_assert_int_eq(gantry_schedule_check(s, g, &err), lane ? GANTRY_E_SCHEDULE : GANTRY_OK);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch");
    TCase *c = tcase_create("batch");
    tcase_add_test(c, independent_launches_of_alike_nodes_are_a_batch);
    tcase_add_test(c, a_batch_is_whole);
    tcase_add_test(c, an_op_joins_a_batch_that_there_is);
    tcase_add_test(c, a_batch_is_in_one_lane);
    tcase_add_test(c, nodes_of_a_batch_are_alike);
    tcase_add_test(c, only_the_first_of_a_batch_waits);
    tcase_add_test(c, lane_order_says_nothing_inside_of_a_batch);
    tcase_add_test(c, what_comes_behind_a_batch_in_its_lane_is_ordered_behind_all_of_it);
    tcase_add_test(c, a_file_keeps_batches);
    tcase_add_loop_test(c, a_file_gives_batches_of_launches_alone, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(c, copies_between_two_memories_are_a_batch);
    tcase_add_test(c, copies_and_launches_are_no_batch);
    tcase_add_test(c, a_batch_of_copies_is_a_gpus);
    tcase_add_test(c, copies_of_a_batch_have_the_same_ends);
    tcase_add_test(c, alike_collectives_are_a_batch);
    tcase_add_test(c, collectives_of_a_batch_have_one_algorithm);
    tcase_add_test(c, collectives_of_a_batch_are_in_the_same_lanes);
    tcase_add_loop_test(c, no_lane_orders_collectives_of_a_batch, 0, 3);
    tcase_add_test(c, each_lane_orders_what_is_behind_a_batch_of_collectives);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
