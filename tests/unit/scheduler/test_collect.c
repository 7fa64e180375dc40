/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that are recognised as a collective, and those that are not. The checker knows what each row must hold. */
#include "suite.h"

#include <stdio.h>
#include <string.h>

static gantry_machine *m;
static gantry_graph *g;
static gantry_schedule *s;
static gantry_buffer x;

/* x has 16 rows in 4 parts. */
static void begin(gantry_machine *machine)
{
    m = machine;
    g = gantry_graph_new("collect");
    x = buffer(g, "x", 16);
    gantry_buffer_split(g, x, 4);
    s = NULL;
}

static void end(void)
{
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

static gantry_node work_on(const char *id, int device, double us)
{
    char on[16];
    snprintf(on, sizeof on, "%d", device);
    gantry_node n = work(g, id, us);
    gantry_node_on(g, n, on);
    return n;
}

static void write_parts(double us)
{
    for (int i = 0; i < 4; i++)
        gantry_node_write(g, work_on("w", i, us), gantry_part(x, i));
}

static const gy_op *only_collective(gantry_collective kind)
{
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COLLECTIVE), 1);
    ck_assert_uint_eq(count_collectives(s, kind), 1);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 0);
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].kind == GY_OP_COLLECTIVE)
            return &s->ops.at[i];
    return NULL;
}

START_TEST(one_to_many_is_a_broadcast)
{
    begin(virtual_machine(4));
    gantry_node_write(g, work_on("w", 1, 10), gantry_all(x));
    for (int i = 0; i < 4; i++)
        gantry_node_read(g, work_on("r", i, 10), gantry_all(x));
    const gy_op *op = only_collective(GANTRY_BROADCAST);
    ck_assert_uint_eq(op->ins, 1);
    ck_assert_uint_eq(op->uses, 4);
    ck_assert_uint_eq(op->lanes, 4);
    ck_assert_uint_eq(s->use.at[op->use].rank, 1);
    end();
}
END_TEST

START_TEST(two_readers_are_two_copies)
{
    begin(virtual_machine(4));
    gantry_node_write(g, work_on("w", 1, 10), gantry_all(x));
    for (int i = 1; i < 4; i++)
        gantry_node_read(g, work_on("r", i, 10), gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COLLECTIVE), 0);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 2);
    end();
}
END_TEST

START_TEST(a_whole_read_in_parts_is_a_scatter)
{
    begin(virtual_machine(4));
    gantry_node_write(g, work_on("w", 0, 10), gantry_all(x));
    for (int i = 0; i < 4; i++)
        gantry_node_read(g, work_on("r", i, 10), gantry_part(x, i));
    const gy_op *op = only_collective(GANTRY_SCATTER);
    ck_assert_int_eq(s->use.at[op->use].first, 4); /* part 0 stays where it is */
    ck_assert_int_eq(s->use.at[op->use].last, 16);
    ck_assert_uint_eq(op->uses, 4);
    end();
}
END_TEST

START_TEST(parts_read_whole_are_a_gather)
{
    begin(virtual_machine(4));
    write_parts(10);
    gantry_node_read(g, work_on("r", 0, 10), gantry_all(x));
    const gy_op *op = only_collective(GANTRY_GATHER);
    ck_assert_uint_eq(op->ins, 3);
    ck_assert_uint_eq(op->uses, 4);
    ck_assert_int_eq(s->use.at[op->use + 3].first, 4);
    end();
}
END_TEST

START_TEST(parts_read_whole_by_all_are_an_all_gather)
{
    begin(virtual_machine(4));
    write_parts(10);
    for (int i = 0; i < 4; i++)
        gantry_node_read(g, work_on("r", i, 10), gantry_all(x));
    const gy_op *op = only_collective(GANTRY_ALL_GATHER);
    ck_assert_uint_eq(op->ins, 4);
    ck_assert_uint_eq(op->uses, 4 + 6); /* what is before and behind the own part: one run at the ends, two within */
    end();
}
END_TEST

/* One part comes much later than the others: waiting for it would hold them up. */
START_TEST(copies_that_begin_at_different_times_stay_copies)
{
    begin(virtual_machine(4));
    gantry_buffer big = buffer(g, "big", 4 << 20);
    gantry_buffer_split(g, big, 4);
    for (int i = 0; i < 4; i++)
        gantry_node_write(g, work_on("w", i, i == 3 ? 5000 : 10), gantry_part(big, i));
    gantry_node_read(g, work_on("r", 0, 10), gantry_all(big));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COLLECTIVE), 0);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 3);
    end();
}
END_TEST

START_TEST(textbook_machines_copy)
{
    begin(parse_machine(
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"m1\",\"capacity\":"
        "\"1GiB\"},"
        "{\"id\":\"m2\",\"capacity\":\"1GiB\"},{\"id\":\"m3\",\"capacity\":\"1GiB\"},{\"id\":\"m4\",\"capacity\":"
        "\"1GiB\"}],"
        "\"devices\":[{\"id\":\"P1\",\"memory\":\"m1\"},{\"id\":\"P2\",\"memory\":\"m2\"},{\"id\":\"P3\",\"memory\":"
        "\"m3\"},"
        "{\"id\":\"P4\",\"memory\":\"m4\"}],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"bandwidth_gbs\":0.001}],"
        "\"model\":{\"contention\":\"off\"}}"));
    gantry_node_write(g, work_on("w", 1, 10), gantry_all(x));
    for (int i = 0; i < 4; i++)
        gantry_node_read(g, work_on("r", i, 10), gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COLLECTIVE), 0);
    ck_assert_int_eq(s->makespan, gy_ticks_from_us(10 + 64 + 10));
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("collect");
    TCase *c = tcase_create("collect");
    tcase_add_test(c, one_to_many_is_a_broadcast);
    tcase_add_test(c, two_readers_are_two_copies);
    tcase_add_test(c, a_whole_read_in_parts_is_a_scatter);
    tcase_add_test(c, parts_read_whole_are_a_gather);
    tcase_add_test(c, parts_read_whole_by_all_are_an_all_gather);
    tcase_add_test(c, copies_that_begin_at_different_times_stay_copies);
    tcase_add_test(c, textbook_machines_copy);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
