/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from and to host memory: what the bound says of them, their lanes, and taking turns at a shared link. Four
 * GPUs, each with a link of 10 bytes a ns to them and from them; 20 leave host memory at a time, 5 come back. A part is
 * 10^6 bytes: 100 us alone. Expected times follow from these figures. */
#include "suite.h"

#include <stdio.h>

static const char machine[] =
    "{\"gantry_machine\":1,\"name\":\"links\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},"
    "{\"id\":\"m0\",\"capacity\":\"1GiB\"},{\"id\":\"m1\",\"capacity\":\"1GiB\"},"
    "{\"id\":\"m2\",\"capacity\":\"1GiB\"},{\"id\":\"m3\",\"capacity\":\"1GiB\"}],\"devices\":["
    "{\"id\":\"d0\",\"type\":\"gpu\",\"memory\":\"m0\",\"copy_engines\":3},"
    "{\"id\":\"d1\",\"type\":\"gpu\",\"memory\":\"m1\",\"copy_engines\":3},"
    "{\"id\":\"d2\",\"type\":\"gpu\",\"memory\":\"m2\",\"copy_engines\":3},"
    "{\"id\":\"d3\",\"type\":\"gpu\",\"memory\":\"m3\",\"copy_engines\":3},"
    "{\"id\":\"cpu\",\"type\":\"cpu\",\"use\":\"host\",\"memory\":\"host\"}],"
    "\"resources\":{\"out\":20,\"in\":5,\"m0.in\":10,\"m1.in\":10,\"m2.in\":10,\"m3.in\":10},\"routes\":["
    "{\"from\":\"host\",\"to\":\"m*\",\"latency_us\":1,\"bandwidth_gbs\":10,\"via\":[\"out\",\"{to}.in\"]},"
    "{\"from\":\"m*\",\"to\":\"host\",\"latency_us\":1,\"bandwidth_gbs\":5,\"via\":[\"in\"]},"
    "{\"from\":\"host\",\"to\":\"host\",\"latency_us\":0,\"bandwidth_gbs\":5},"
    "{\"from\":\"m*\",\"to\":\"m*\",\"latency_us\":1,\"bandwidth_gbs\":10,\"via\":[\"{to}.in\"]}]}";

enum { ROWS = 250000 }; /* of 4 bytes, in a part */

static gantry_machine *m;
static gantry_graph *g;
static gantry_schedule *s;
static gantry_buffer x, y;

static void begin(int parts)
{
    m = parse_machine(machine);
    g = gantry_graph_new("uploads");
    x = buffer(g, "x", (int64_t)parts * ROWS);
    y = buffer(g, "y", (int64_t)parts * ROWS);
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    gantry_buffer_split(g, x, parts);
    gantry_buffer_split(g, y, parts);
    s = NULL;
}

static void end(void)
{
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

/* Node i reads part i of x and writes that of y. */
static void add_nodes(int parts, int devices, double us)
{
    for (int i = 0; i < parts; i++) {
        char id[16], on[16];
        snprintf(id, sizeof id, "n%d", i);
        snprintf(on, sizeof on, "%d", i % devices);
        gantry_node n = work(g, id, us);
        gantry_node_on(g, n, on);
        gantry_node_read(g, n, gantry_part(x, i));
        gantry_node_write(g, n, gantry_part(y, i));
    }
}

static void expect_bound(double us, const char *by)
{
    s = schedule(g, m, NULL);
    ck_assert_str_eq(s->bound_by, by);
    ck_assert_double_eq_tol(gy_ticks_to_us(s->bound), us, 1e-5);
    ck_assert(s->makespan >= s->bound);
}

START_TEST(inputs_must_leave_host_memory)
{
    begin(8);
    add_nodes(8, 4, 1);
    expect_bound(8e6 / 20e3, "links"); /* the chain is 1 + 100 + 1 us, each device computes for 2 */
    end();
}
END_TEST

/* Every other part is touched by no node: 800 us for the CPU, while the others are worked on for 2,000 us. */
START_TEST(rows_that_nobody_touches_visit_no_gpu)
{
    begin(8);
    gantry_buffer_output(g, x);
    for (int i = 0; i < 8; i += 2) {
        gantry_node n = work(g, "n", 500);
        gantry_node_on(g, n, "0");
        gantry_node_readwrite(g, n, gantry_part(x, i));
    }
    s = schedule(g, m, "heft");
    for (size_t i = 0; i < s->instances.count; i++) {
        const gy_instance *in = &s->instances.at[i];
        ck_assert(in->memory == 0 || in->value != x.id || in->first / ROWS % 2 == 0);
    }
    end();
}
END_TEST

START_TEST(a_row_that_all_read_leaves_once)
{
    begin(1);
    for (int i = 0; i < 4; i++) {
        char on[16];
        snprintf(on, sizeof on, "%d", i);
        gantry_node n = work(g, "r", 1);
        gantry_node_on(g, n, on);
        gantry_node_read(g, n, gantry_all(x));
    }
    expect_bound(1 + 100 + 1, "path"); /* 50 us to leave; latency, to come into one of the memories, and the node */
    end();
}
END_TEST

START_TEST(outputs_must_come_back)
{
    begin(8);
    add_nodes(8, 4, 1);
    gantry_buffer_output(g, y);
    expect_bound(8e6 / 5e3, "links");
    end();
}
END_TEST

START_TEST(the_longest_chain_begins_and_ends_with_a_transfer)
{
    begin(1);
    add_nodes(1, 1, 30);
    gantry_buffer_output(g, y);
    expect_bound(1 + 100 + 30 + 1 + 200, "path");
    ck_assert_int_eq(s->makespan, s->bound + 2); /* there is no other way to do it; two figures are rounded down */
    end();
}
END_TEST

START_TEST(what_is_written_before_it_is_read_does_not_come)
{
    begin(1);
    gantry_node n = work(g, "w", 5);
    gantry_node_write(g, n, gantry_all(x));
    n = work(g, "r", 7);
    gantry_node_read(g, n, gantry_all(x));
    expect_bound(12, "path");
    end();
}
END_TEST

START_TEST(nodes_that_one_device_must_run_follow_each_other)
{
    begin(1);
    for (int i = 0; i < 6; i++) {
        gantry_node n = work(g, "n", 10);
        if (i < 5)
            gantry_node_on(g, n, "1");
    }
    expect_bound(50, "area");
    end();
}
END_TEST

/* 8 parts of a constant, and room for 1.5 of them in each of four memories: two come up in every start, and do not
 * stay. */
START_TEST(constants_without_room_come_in_every_start)
{
    begin(8);
    gantry_buffer_set_class(g, x, GANTRY_CONST);
    for (int i = 0; i < 8; i++) {
        gantry_node n = work(g, "n", 1);
        gantry_node_read(g, n, gantry_part(x, i));
    }
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_error err;
    o.max_memory = "m0=1500000,m1=1500000,m2=1500000,m3=1500000";
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, &err), GANTRY_OK);
    ck_assert_str_eq(s->bound_by, "memory");
    ck_assert_double_eq_tol(gy_ticks_to_us(s->bound), 2e6 / 20e3, 1e-5);
    ck_assert_int_ge(s->makespan, s->bound);
    end();
}
END_TEST

/* ---- lanes ---- */

/* One after the other: up to 100, 200, 300, 400 us; the first goes back from 110 on, 200 us each: 110 + 4 x 200 and
 * latencies. At once, all would be there after 400 us and go back until 1200. */
START_TEST(uploads_of_a_device_follow_each_other)
{
    begin(4);
    add_nodes(4, 1, 10);
    gantry_buffer_output(g, y);
    s = schedule(g, m, "single");
    ck_assert_double_ge(gy_ticks_to_us(s->makespan), 110 + 800);
    ck_assert_double_le(gy_ticks_to_us(s->makespan), 110 + 800 + 10);
    end();
}
END_TEST

/* ---- turns ---- */

static bool is_upload(const gy_op *op)
{
    return op->kind == GY_OP_COPY && s->instances.at[s->use.at[op->use].instance].space == GY_SPACE_INPUT;
}

static uint32_t most_at_once(void)
{
    uint32_t most = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        uint32_t count = 0;
        for (size_t k = 0; k < s->ops.count && is_upload(&s->ops.at[i]); k++)
            count += is_upload(&s->ops.at[k]) && s->ops.at[k].start <= s->ops.at[i].start &&
                     s->ops.at[k].end > s->ops.at[i].start;
        most = count > most ? count : most;
    }
    return most;
}

static gy_ticks first_begin(void)
{
    gy_ticks first = GY_TICKS_MAX;
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].node != GY_NONE && s->ops.at[i].start < first)
            first = s->ops.at[i].start;
    return first;
}

START_TEST(two_uploads_fill_the_link)
{
    begin(8);
    add_nodes(8, 4, 1);
    s = schedule(g, m, "round-robin");
    ck_assert_uint_eq(most_at_once(), 2);
    ck_assert_double_eq_tol(gy_ticks_to_us(first_begin()), 101, 1e-3); /* all four at once: 201 */
    ck_assert_double_ge(gy_ticks_to_us(s->makespan), 400);
    ck_assert_double_le(gy_ticks_to_us(s->makespan), 400 + 4 + 1); /* nothing is lost but four latencies */
    end();
}
END_TEST

/* Three in turns of two: 200 us, in the second half of which the link is half empty; at once 150. */
START_TEST(turns_leave_no_link_half_empty)
{
    begin(3);
    add_nodes(3, 3, 1);
    s = schedule(g, m, "round-robin");
    ck_assert_uint_eq(most_at_once(), 3);
    end();
}
END_TEST

START_TEST(short_uploads_take_no_turns)
{
    begin(400); /* 10^6 bytes are now 100 parts: 1 us each and as much latency */
    for (int i = 0; i < 400; i++) {
        char on[16];
        snprintf(on, sizeof on, "%d", i % 4);
        gantry_node n = work(g, "n", 1);
        gantry_node_on(g, n, on);
        gantry_node_read(g, n, gantry_rows(x, (int64_t)i * 2500, (int64_t)(i + 1) * 2500));
    }
    s = schedule(g, m, "round-robin");
    ck_assert_uint_gt(most_at_once(), 2);
    end();
}
END_TEST

/* ---- rows that no node touches ---- */

/* 199 x 10^6 bytes in pieces of 2^26: the CPU takes 13.4 ms for one, a GPU 6.7 there and 13.4 back. So the first goes
 * by the CPU, the second by d0 (20.1, where the CPU would be done after 26.8), the third, a smaller one, by d1. */
START_TEST(untouched_rows_share_out_the_ways)
{
    begin(200);
    gantry_buffer_output(g, x);
    add_nodes(1, 1, 1);
    s = schedule(g, m, "single");
    uint32_t local = 0, up[5] = { 0 };
    for (size_t i = 0; i < s->ops.count; i++) {
        if (!is_upload(&s->ops.at[i]))
            continue;
        uint32_t to = s->instances.at[s->use.at[s->ops.at[i].use + 1].instance].memory;
        local += to == 0;
        up[to]++;
    }
    ck_assert_uint_eq(local, 1);
    ck_assert_uint_eq(up[1], 2); /* one for the node */
    ck_assert_uint_eq(up[2], 1);
    ck_assert_uint_eq(up[3] + up[4], 0);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("uploads");
    TCase *c = tcase_create("uploads");
    tcase_add_test(c, inputs_must_leave_host_memory);
    tcase_add_test(c, rows_that_nobody_touches_visit_no_gpu);
    tcase_add_test(c, a_row_that_all_read_leaves_once);
    tcase_add_test(c, outputs_must_come_back);
    tcase_add_test(c, the_longest_chain_begins_and_ends_with_a_transfer);
    tcase_add_test(c, what_is_written_before_it_is_read_does_not_come);
    tcase_add_test(c, nodes_that_one_device_must_run_follow_each_other);
    tcase_add_test(c, constants_without_room_come_in_every_start);
    tcase_add_test(c, uploads_of_a_device_follow_each_other);
    tcase_add_test(c, two_uploads_fill_the_link);
    tcase_add_test(c, turns_leave_no_link_half_empty);
    tcase_add_test(c, short_uploads_take_no_turns);
    tcase_add_test(c, untouched_rows_share_out_the_ways);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
