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

/* ---- every rank from every rank ---- */

/* Reader i, on device i, reads row i of each part, each by an access of its own; but not of part `without`, if i is 0.
 */
static void read_rows_of_parts(int without)
{
    for (int i = 0; i < 4; i++) {
        gantry_node n = work_on("r", i, 10);
        for (int k = 0; k < 4; k++)
            if (i != 0 || k != without)
                gantry_node_read(g, n, gantry_rows(x, 4 * k + i, 4 * k + i + 1));
    }
}

START_TEST(a_row_of_every_part_for_everyone_is_an_all_to_all)
{
    begin(virtual_machine(4));
    write_parts(10);
    read_rows_of_parts(-1);
    const gy_op *op = only_collective(GANTRY_ALL_TO_ALL);
    ck_assert_uint_eq(op->ins, 12); /* own rows stay where they are */
    ck_assert_uint_eq(op->uses, 24);
    ck_assert_uint_eq(op->lanes, 4);
    end();
}
END_TEST

START_TEST(with_a_hole_it_is_none)
{
    begin(virtual_machine(4));
    write_parts(10);
    read_rows_of_parts(2);
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COLLECTIVE), 0);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 11);
    end();
}
END_TEST

/* Neighbours exchange rows, others do not: no kind of collective is that. */
START_TEST(halos_are_copies)
{
    begin(virtual_machine(4));
    write_parts(10);
    for (int i = 0; i < 4; i++)
        gantry_node_read(g, work_on("r", i, 10), gantry_halo(gantry_part(x, i), 1, 1));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COLLECTIVE), 0);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 6);
    end();
}
END_TEST

START_TEST(parts_read_one_by_one_by_all_are_an_all_gather)
{
    begin(virtual_machine(4));
    write_parts(10);
    for (int i = 0; i < 4; i++) {
        gantry_node n = work_on("r", i, 10);
        for (int k = 0; k < 4; k++)
            gantry_node_read(g, n, gantry_part(x, k));
    }
    const gy_op *op = only_collective(GANTRY_ALL_GATHER);
    ck_assert_uint_eq(op->ins, 4);
    end();
}
END_TEST

/* Two parts that one node needs of one value do not hide that each of them goes to everyone. */
START_TEST(two_broadcasts_side_by_side)
{
    begin(virtual_machine(8));
    gantry_buffer z = buffer(g, "z", 1 << 20), y = buffer(g, "y", 1 << 20);
    gantry_node_write(g, work_on("w", 0, 10), gantry_all(z));
    gantry_node_write(g, work_on("v", 1, 10), gantry_all(y));
    for (int i = 0; i < 8; i++) {
        gantry_node n = work_on("r", i, 10);
        gantry_node_read(g, n, gantry_all(z));
        gantry_node_read(g, n, gantry_all(y));
    }
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_collectives(s, GANTRY_BROADCAST), 2);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 0);
    end();
}
END_TEST

/* ---- which algorithm ---- */

/* Where each device has its port the root's copies share its way out. In a chain the others help, and that takes more
 * signals: it pays for many bytes only. */
START_TEST(the_size_decides)
{
    static const char ports[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"a\",\"capacity\":"
        "\"1GiB\"},"
        "{\"id\":\"b\",\"capacity\":\"1GiB\"},{\"id\":\"c\",\"capacity\":\"1GiB\"},{\"id\":\"d\",\"capacity\":\"1GiB\"}"
        "],"
        "\"devices\":[{\"id\":\"a\",\"memory\":\"a\",\"copy_engines\":4},{\"id\":\"b\",\"memory\":\"b\"},{\"id\":\"c\","
        "\"memory\":\"c\"},{\"id\":\"d\",\"memory\":\"d\"}],\"resources\":{\"a.out\":1,\"b.out\":1,\"c.out\":1,\"d."
        "out\":1,"
        "\"host.out\":1},\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":1,\"bandwidth_gbs\":1,\"via\":[\"{"
        "from}.out\"]}]}";
    for (int large = 0; large < 2; large++) {
        begin(parse_machine(ports));
        gantry_buffer z = buffer(g, "z", large ? 1 << 20 : 256);
        gantry_node_write(g, work_on("w", 0, 10), gantry_all(z));
        for (int i = 0; i < 4; i++)
            gantry_node_read(g, work_on("r", i, 10), gantry_all(z));
        const gy_op *op = only_collective(GANTRY_BROADCAST);
        ck_assert_int_eq(op->algorithm, large ? GY_ALGORITHM_RING : GY_ALGORITHM_COPY);
        /* 3 x 1 KiB out of the root; 4 MiB in 16 pieces of 256 KiB: 2 + 16 steps of signal, latency and piece */
        ck_assert_int_eq(op->duration, gy_ticks_from_us(large ? 18 * (2 + 262.144) : 1 + 3 * 1.024));
        end();
    }
}
END_TEST

START_TEST(algorithms_are_in_the_file)
{
    begin(virtual_machine(4));
    write_parts(10);
    read_rows_of_parts(-1);
    const gy_op *op = only_collective(GANTRY_ALL_TO_ALL);
    char *text = schedule_text(s), word[64];
    snprintf(word, sizeof word, "\"algorithm\": \"%s\"", gy_algorithm_name((gy_algorithm)op->algorithm));
    ck_assert_ptr_nonnull(strstr(text, word));
    gantry_schedule *again = NULL;
    gantry_error err;
    ck_assert_int_eq(gantry_schedule_parse(&again, text, strlen(text), "again", &err), GANTRY_OK);
    ck_assert_int_eq(again->ops.at[op - s->ops.at].algorithm, op->algorithm);
    gantry_schedule_free(again);
    gantry_free(text);
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
    tcase_add_test(c, a_row_of_every_part_for_everyone_is_an_all_to_all);
    tcase_add_test(c, with_a_hole_it_is_none);
    tcase_add_test(c, halos_are_copies);
    tcase_add_test(c, parts_read_one_by_one_by_all_are_an_all_gather);
    tcase_add_test(c, two_broadcasts_side_by_side);
    tcase_add_test(c, the_size_decides);
    tcase_add_test(c, algorithms_are_in_the_file);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
