/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions and collectives. Every schedule also passes the checker, which knows what each row must be made of. */
#include "suite.h"

#include <stdio.h>
#include <string.h>

static gantry_machine *m;
static gantry_graph *g;
static gantry_schedule *s;

static void begin(int devices)
{
    m = virtual_machine(devices);
    g = gantry_graph_new("reduce");
    s = NULL;
}

static void end(void)
{
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

static gantry_node work_on(const char *id, int device)
{
    char on[16];
    snprintf(on, sizeof on, "dev%d", device);
    gantry_node n = work(g, id, 10);
    gantry_node_on(g, n, on);
    return n;
}

static const gy_op *find_collective(void)
{
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].kind == GY_OP_COLLECTIVE)
            return &s->ops.at[i];
    return NULL;
}

static uint32_t uses_of(const gy_op *op, bool reads)
{
    return reads ? op->ins : op->uses - op->ins;
}

/* A sum that `devices` contribute to and device 0 reads. */
static gantry_buffer contribute(int devices)
{
    gantry_buffer x = buffer(g, "x", 16);
    for (int i = 0; i < devices; i++)
        gantry_node_reduce(g, work_on("c", i), gantry_all(x), GANTRY_SUM);
    return x;
}

START_TEST(one_device_adds_in_place)
{
    begin(1);
    gantry_buffer x = contribute(1);
    gantry_node_reduce(g, work_on("c", 0), gantry_all(x), GANTRY_SUM);
    gantry_node_read(g, work_on("r", 0), gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COLLECTIVE), 0);
    ck_assert_uint_eq(count_role(s, GY_ROLE_ACCUMULATOR), 0);
    ck_assert_uint_eq(count_kind(s, GY_OP_FILL), 1); /* the identity: nothing had written x */
    ck_assert_uint_eq(s->ops.at[0].reduce, GANTRY_SUM);
    end();
}
END_TEST

START_TEST(several_devices_accumulate_and_reduce)
{
    begin(_i);
    gantry_buffer x = contribute(_i);
    gantry_node_read(g, work_on("r", 0), gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_collectives(s, GANTRY_REDUCE), 1);
    ck_assert_uint_eq(count_role(s, GY_ROLE_ACCUMULATOR), (uint32_t)_i);
    ck_assert_uint_eq(count_kind(s, GY_OP_FILL), (uint32_t)_i);
    const gy_op *op = find_collective();
    ck_assert_uint_eq(op->lanes, (uint32_t)_i);
    ck_assert_uint_eq(uses_of(op, true), (uint32_t)_i);
    ck_assert_uint_eq(uses_of(op, false), 1);
    for (uint32_t k = 0; k + 1 < op->ins; k++) /* in an order that the schedule fixes: by memory */
        ck_assert_uint_lt(s->instances.at[s->use.at[op->use + k].instance].memory,
                          s->instances.at[s->use.at[op->use + k + 1].instance].memory);
    end();
}
END_TEST

START_TEST(several_readers_make_an_all_reduce)
{
    begin(4);
    gantry_buffer x = contribute(4);
    for (int i = 0; i < 4; i++)
        gantry_node_read(g, work_on("r", i), gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_collectives(s, GANTRY_ALL_REDUCE), 1);
    ck_assert_uint_eq(uses_of(find_collective(), false), 4);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 0);
    end();
}
END_TEST

START_TEST(the_value_before_counts)
{
    begin(2);
    gantry_buffer x = buffer(g, "x", 16);
    gantry_buffer_init_value(g, x, 5);
    gantry_buffer_output(g, x);
    for (int i = 0; i < 2; i++)
        gantry_node_reduce(g, work_on("c", i), gantry_all(x), GANTRY_SUM);
    s = schedule(g, m, NULL);
    const gy_op *op = find_collective();
    ck_assert_uint_eq(uses_of(op, true), 3);
    ck_assert_uint_eq(s->instances.at[s->use.at[op->use].instance].role, GY_ROLE_DATA); /* and comes first */
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 2);
    end();
}
END_TEST

/* A fill with the identity before the contributions says that there is no value before: nothing is read, or brought, of
 * what it wrote. */
START_TEST(a_fill_with_the_identity_is_not_read)
{
    begin(3);
    gantry_buffer x = buffer(g, "x", 16);
    gantry_node_on(g, gantry_graph_fill(g, "zero", gantry_all(x), _i ? 1 : 0), "dev2");
    for (int i = 0; i < 2; i++)
        gantry_node_reduce(g, work_on("c", i), gantry_all(x), GANTRY_SUM);
    gantry_node_read(g, work_on("r", 0), gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(uses_of(find_collective(), true), _i ? 3 : 2);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), _i ? 1 : 0);
    end();
}
END_TEST

START_TEST(a_read_between_makes_two_reductions)
{
    begin(2);
    gantry_buffer x = contribute(2);
    gantry_node_read(g, work_on("r", 0), gantry_rows(x, 0, 1));
    for (int i = 0; i < 2; i++)
        gantry_node_reduce(g, work_on("d", i), gantry_all(x), GANTRY_SUM);
    gantry_node_read(g, work_on("r", 1), gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_collectives(s, GANTRY_REDUCE), 2);
    end();
}
END_TEST

START_TEST(overlapping_contributions_are_one_reduction)
{
    begin(3);
    gantry_buffer x = buffer(g, "x", 30);
    gantry_node_reduce(g, work_on("a", 0), gantry_rows(x, 0, 12), GANTRY_MAX);
    gantry_node_reduce(g, work_on("b", 1), gantry_rows(x, 10, 22), GANTRY_MAX);
    gantry_node_reduce(g, work_on("c", 2), gantry_rows(x, 20, 30), GANTRY_MAX);
    gantry_node_read(g, work_on("r", 1), gantry_all(x));
    s = schedule(g, m, NULL);
    const gy_op *op = find_collective();
    ck_assert_uint_eq(count_kind(s, GY_OP_COLLECTIVE), 1);
    ck_assert_uint_eq(op->reduce, GANTRY_MAX);
    ck_assert_int_eq(s->use.at[op->use + op->ins].last - s->use.at[op->use + op->ins].first, 30);
    ck_assert_int_eq(s->use.at[op->use + 1].last - s->use.at[op->use + 1].first,
                     12); /* accumulators are no larger than needed */
    end();
}
END_TEST

START_TEST(contributions_to_other_rows_stay_apart)
{
    begin(2);
    gantry_buffer x = buffer(g, "x", 30);
    gantry_node_reduce(g, work_on("a", 0), gantry_rows(x, 0, 15), GANTRY_SUM);
    gantry_node_reduce(g, work_on("b", 1), gantry_rows(x, 15, 30), GANTRY_SUM);
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COLLECTIVE), 0);
    end();
}
END_TEST

/* A node that contributes to a reduction reads other rows of it as the result without its own share. */
START_TEST(a_contributor_may_read_other_rows_of_the_sum)
{
    begin(2);
    gantry_buffer x = contribute(2);
    gantry_node n = work_on("n", 1);
    gantry_node_reduce(g, n, gantry_rows(x, 0, 8), GANTRY_SUM);
    gantry_node_readwrite(g, n, gantry_rows(x, 8, 12));
    gantry_node_read(g, work_on("r", 0), gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COLLECTIVE), 1);
    ck_assert_uint_eq(op_of(s, "n")->uses, 2);
    end();
}
END_TEST

START_TEST(accumulating_state_persists)
{
    begin(3);
    gantry_buffer x = buffer(g, "x", 16);
    gantry_buffer_set_class(g, x, GANTRY_STATE);
    gantry_buffer_init_value(g, x, 0);
    for (int i = 0; i < 3; i++)
        gantry_node_reduce(g, work_on("c", i), gantry_all(x), GANTRY_SUM);
    s = schedule(g, m, NULL);
    const gy_op *op = find_collective();
    ck_assert_uint_eq(s->instances.at[s->use.at[op->use].instance].role, GY_ROLE_PERSIST);
    ck_assert_uint_eq(s->use.at[op->use].instance, s->use.at[op->use + op->ins].instance); /* in place */
    end();
}
END_TEST

/* ---- each reads a part ---- */

static void read_part(int device, int64_t first, int64_t last, gantry_buffer x)
{
    gantry_node_read(g, work_on("r", device), gantry_rows(x, first, last));
}

START_TEST(a_part_for_each_reader_is_a_reduce_scatter)
{
    begin(4);
    gantry_buffer x = contribute(4);
    for (int i = 0; i < 4; i++)
        read_part(i, 4 * i, 4 * i + 4, x);
    s = schedule(g, m, NULL);
    const gy_op *op = find_collective();
    ck_assert_uint_eq(count_collectives(s, GANTRY_REDUCE_SCATTER), 1);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 0);
    ck_assert_uint_eq(uses_of(op, true), 4);
    ck_assert_uint_eq(uses_of(op, false), 4);
    for (uint32_t i = 0; i < 4; i++) {
        const gy_use *u = &s->use.at[op->use + op->ins + i];
        ck_assert(u->first == 4 * i && u->last == 4 * i + 4 && u->rank == i);
    }
    end();
}
END_TEST

/* Rows that nobody reads go with those before them (the first ones with those behind), and are fetched from there. */
START_TEST(rows_that_nobody_reads_are_not_lost)
{
    begin(3);
    gantry_buffer x = contribute(3);
    gantry_buffer_output(g, x);
    read_part(2, 10, 12, x);
    read_part(0, 3, 5, x);
    s = schedule(g, m, NULL);
    const gy_op *op = find_collective();
    ck_assert_uint_eq(count_collectives(s, GANTRY_REDUCE_SCATTER), 1);
    const gy_use *to = &s->use.at[op->use + op->ins];
    ck_assert(to[0].first == 0 && to[0].last == 10 && to[1].first == 10 && to[1].last == 16);
    ck_assert_uint_eq(op->lanes, 3); /* device 1 contributes only */
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 2);
    end();
}
END_TEST

START_TEST(readers_that_share_rows_get_all)
{
    begin(3);
    gantry_buffer x = contribute(3);
    read_part(0, 0, 9, x);
    read_part(1, 8, 16, x);
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_collectives(s, GANTRY_ALL_REDUCE), 1);
    end();
}
END_TEST

/* Each reader is given what its own rows held before. */
START_TEST(the_value_before_is_scattered_too)
{
    begin(2);
    gantry_buffer x = buffer(g, "x", 16);
    gantry_node_write(g, work_on("w", 1), gantry_all(x));
    for (int i = 0; i < 2; i++)
        gantry_node_reduce(g, work_on("c", i), gantry_all(x), GANTRY_MAX);
    read_part(0, 0, 8, x);
    read_part(1, 8, 16, x);
    s = schedule(g, m, NULL);
    const gy_op *op = find_collective();
    ck_assert_uint_eq(count_collectives(s, GANTRY_REDUCE_SCATTER), 1);
    ck_assert_uint_eq(uses_of(op, true), 4);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 1); /* rows 0 to 8 to device 0 */
    end();
}
END_TEST

/* State lives in one memory, which gets all of it. */
START_TEST(state_is_not_scattered)
{
    begin(3);
    gantry_buffer x = buffer(g, "x", 16);
    gantry_buffer_set_class(g, x, GANTRY_STATE);
    gantry_buffer_init_value(g, x, 0);
    for (int i = 0; i < 3; i++)
        gantry_node_reduce(g, work_on("c", i), gantry_all(x), GANTRY_SUM);
    read_part(1, 0, 8, x);
    read_part(2, 8, 16, x);
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_collectives(s, GANTRY_ALL_REDUCE), 1);
    end();
}
END_TEST

/* ---- collectives of the graph ---- */

START_TEST(ranks_follow_the_data)
{
    begin(4);
    gantry_buffer x = buffer(g, "x", 16);
    gantry_buffer_split(g, x, 4);
    gantry_region part[4];
    for (int i = 0; i < 4; i++) {
        part[i] = gantry_part(x, i);
        gantry_node_write(g, work_on("w", 3 - i), part[i]);
    }
    gantry_graph_collective(g, "all", GANTRY_ALL_REDUCE, GANTRY_SUM, 4, part, 4, part, 0);
    s = schedule(g, m, NULL);
    const gy_op *op = op_of(s, "all");
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 0);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(s->lanes.at[s->op_lane.at[op->lane + i]].device, 3 - i);
    end();
}
END_TEST

START_TEST(ranks_without_data_go_where_no_rank_is)
{
    begin(4);
    gantry_buffer x = buffer(g, "x", 4), y = buffer(g, "y", 16);
    gantry_buffer_split(g, y, 4);
    gantry_region part[4], all = gantry_all(x);
    for (int i = 0; i < 4; i++)
        part[i] = gantry_part(y, i);
    gantry_node_write(g, work_on("w", 1), all);
    gantry_graph_collective(g, "cast", GANTRY_BROADCAST, (gantry_access)0, 1, &all, 4, part, 0);
    s = schedule(g, m, "heft"); /* the default leaves devices idle */
    const gy_op *op = op_of(s, "cast");
    ck_assert_uint_eq(s->lanes.at[s->op_lane.at[op->lane]].device, 1); /* the root */
    ck_assert_uint_eq(s->lanes.at[s->op_lane.at[op->lane + 1]].device, 2);
    ck_assert_uint_eq(s->lanes.at[s->op_lane.at[op->lane + 2]].device, 3);
    ck_assert_uint_eq(s->lanes.at[s->op_lane.at[op->lane + 3]].device, 0);
    end();
}
END_TEST

START_TEST(two_ranks_on_one_device_take_two_lanes)
{
    begin(1);
    gantry_buffer x = buffer(g, "x", 8);
    gantry_buffer_split(g, x, 2);
    gantry_region part[2] = { gantry_part(x, 0), gantry_part(x, 1) };
    gantry_graph_fill(g, "f", gantry_all(x), 1);
    gantry_graph_collective(g, "all", GANTRY_ALL_REDUCE, GANTRY_SUM, 2, part, 2, part, 0);
    s = schedule(g, m, NULL);
    const gy_op *op = op_of(s, "all");
    ck_assert_uint_eq(op->lanes, 2);
    ck_assert_uint_ne(s->op_lane.at[op->lane], s->op_lane.at[op->lane + 1]);
    end();
}
END_TEST

/* ---- islands ---- */

/* Two islands of four: 300 GB/s from each device and to each, `link` from island to island. */
static gantry_machine *two_islands(double link)
{
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"64GiB\"}");
    for (int i = 0; i < 8; i++)
        gy_text_printf(&t, ",{\"id\":\"dev%d\",\"capacity\":\"16GiB\"}", i);
    gy_text_add(&t, "],\"devices\":[");
    for (int i = 0; i < 8; i++)
        gy_text_printf(&t, "%s{\"id\":\"dev%d\",\"type\":\"gpu\",\"memory\":\"dev%d\",\"launch_us\":4}", i ? "," : "",
                       i, i);
    gy_text_printf(&t, "],\"resources\":{\"link0\":%g,\"link1\":%g", link, link);
    for (int i = 0; i < 8; i++)
        gy_text_printf(&t, ",\"out%d\":300,\"in%d\":300", i, i);
    gy_text_add(&t, "},\"routes\":[{\"from\":\"host\",\"to\":\"dev*\",\"both\":true,\"bandwidth_gbs\":25}");
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++)
            if (i != k)
                gy_text_printf(
                    &t,
                    ",{\"from\":\"dev%d\",\"to\":\"dev%d\",\"latency_us\":3,\"bandwidth_gbs\":%g,\"via\":[\"out%d\","
                    "\"in%d\"%s%s%s]}",
                    i, k, i / 4 == k / 4 ? 300 : link, i, k, i / 4 == k / 4 ? "" : ",\"link",
                    i / 4 == k / 4 ? ""
                    : i < 4        ? "0"
                                   : "1",
                    i / 4 == k / 4 ? "" : "\"");
    gy_text_add(&t, "]}");
    ck_assert(!t.failed);
    gantry_machine *made = parse_machine(t.at);
    gy_text_free(&t);
    return made;
}

static int algorithm_of_sum(const gantry_schedule *schedule)
{
    for (size_t i = 0; i < schedule->ops.count; i++)
        if (schedule->ops.at[i].kind == GY_OP_COLLECTIVE && schedule->ops.at[i].collective == GANTRY_ALL_REDUCE)
            return schedule->ops.at[i].algorithm;
    return GY_ALGORITHM_NONE;
}

/* All bytes cross between the islands once each way, by kernels that take 5/4 of the time; of islands that are as
 * near as one there are none. */
START_TEST(islands_combine_level_by_level)
{
    m = two_islands(_i ? 300 : 25);
    g = gantry_graph_new("islands");
    gantry_buffer x = buffer(g, "x", 16 << 20);
    for (int i = 0; i < 8; i++)
        gantry_node_reduce(g, work_on("c", i), gantry_all(x), GANTRY_SUM);
    for (int i = 0; i < 8; i++)
        gantry_node_read(g, work_on("r", i), gantry_all(x));
    s = schedule(g, m, NULL);
    double least = (64 << 20) / 25e3, us = (double)s->makespan / GY_TICKS_PER_US;
    ck_assert_uint_eq(count_collectives(s, GANTRY_ALL_REDUCE), 1);
    ck_assert((algorithm_of_sum(s) == GY_ALGORITHM_ISLANDS) == !_i);
    ck_assert(_i || (us >= least && us <= 1.45 * least));
    end();
}
END_TEST

/* Three contribute that do not read, or what was there before counts: one reduction, as ever. */
START_TEST(islands_need_full_ranks)
{
    m = two_islands(25);
    g = gantry_graph_new("islands");
    gantry_buffer x = buffer(g, "x", 16 << 20);
    if (_i)
        gantry_buffer_init_value(g, x, 1);
    for (int i = 0; i < 8; i++)
        gantry_node_reduce(g, work_on("c", i), gantry_all(x), GANTRY_SUM);
    for (int i = 0; i < (_i ? 8 : 5); i++)
        gantry_node_read(g, work_on("r", i), gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_collectives(s, GANTRY_ALL_REDUCE), 1);
    ck_assert_int_ne(algorithm_of_sum(s), GY_ALGORITHM_ISLANDS);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reduce");
    TCase *c = tcase_create("reduce");
    tcase_add_test(c, one_device_adds_in_place);
    tcase_add_loop_test(c, several_devices_accumulate_and_reduce, 2, 6);
    tcase_add_test(c, several_readers_make_an_all_reduce);
    tcase_add_test(c, the_value_before_counts);
    tcase_add_loop_test(c, a_fill_with_the_identity_is_not_read, 0, 2);
    tcase_add_test(c, a_read_between_makes_two_reductions);
    tcase_add_test(c, overlapping_contributions_are_one_reduction);
    tcase_add_test(c, contributions_to_other_rows_stay_apart);
    tcase_add_test(c, a_contributor_may_read_other_rows_of_the_sum);
    tcase_add_test(c, accumulating_state_persists);
    tcase_add_test(c, a_part_for_each_reader_is_a_reduce_scatter);
    tcase_add_test(c, rows_that_nobody_reads_are_not_lost);
    tcase_add_test(c, readers_that_share_rows_get_all);
    tcase_add_test(c, the_value_before_is_scattered_too);
    tcase_add_test(c, state_is_not_scattered);
    tcase_add_test(c, ranks_follow_the_data);
    tcase_add_test(c, ranks_without_data_go_where_no_rank_is);
    tcase_add_test(c, two_ranks_on_one_device_take_two_lanes);
    tcase_add_loop_test(c, islands_combine_level_by_level, 0, 2);
    tcase_add_loop_test(c, islands_need_full_ranks, 0, 2);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
