/* SPDX-License-Identifier: Apache-2.0 */
/* The book of transfers, by hand. A GPU's tasks are pinned, so what is looked at is when data arrive. */
#include "../scheduler/suite.h"

#include "base/text.h"
#include "scheduler/cost/cost.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/policies/policy.h"
#include <string.h>

/* 12 GB/s up and down, each shared, 5 us latency: 12 000 bytes fill a link for 1 us and take 6 alone. GPU to GPU is
 * staged through host memory. */
static gantry_graph *g;
static gantry_machine *m;
static gy_plan p;
static bool placed;

static void begin(const char *json)
{
    m = parse_machine(json);
    g = gantry_graph_new("links");
    placed = false;
}

static void place(const char *policy_name)
{
    const gy_policy *policy;
    gantry_error err;
    ck_assert_int_eq(gy_policy_find(&policy, policy_name, &err), GANTRY_OK);
    if (gantry_graph_check(g, &err))
        ck_abort_msg("%s", err.text);
    ck_assert_int_eq(gy_plan_init(&p, g, m, policy, NULL, &err), GANTRY_OK);
    ck_assert_int_eq(gy_plan_capacity(&p, NULL, &err), GANTRY_OK);
    if (gy_plan_to_place(&p, &err))
        ck_abort_msg("%s", err.text);
    placed = true;
}

static void end(void)
{
    if (placed)
        gy_plan_free(&p);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

/* In us, in the order of adding. */
static double start_of(uint32_t task)
{
    return gy_ticks_to_us(p.placed.start[task]);
}

static gantry_buffer input(const char *name, int64_t bytes)
{
    gantry_buffer x = gantry_graph_buffer(g, name, GANTRY_U8, 1, &bytes);
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    gantry_buffer_init_value(g, x, 0);
    return x;
}

static gantry_node task(const char *id, double us, const char *on)
{
    gantry_node n = work(g, id, us);
    gantry_node_on(g, n, on);
    return n;
}

/* A given time of 1 us takes 3: launching costs 2 on this machine. */
START_TEST(uploads_take_turns_on_a_shared_link)
{
    begin(machine_shared_link);
    gantry_node_read(g, task("a", 1, "gpu0"), gantry_all(input("x", 12000)));
    gantry_node_read(g, task("b", 1, "gpu1"), gantry_all(input("y", 24000)));
    gantry_node_priority(g, (gantry_node){ 0 }, 1);
    place(_i ? "heft-links" : "heft");
    ck_assert_double_eq(start_of(0), 6);
    /* Alone 5 + 2. On the link a flows from 5 to 6, b after it until 8. */
    ck_assert_double_eq(start_of(1), _i ? 8 : 7);
    gantry_schedule *s = schedule(g, m, "heft-links");
    ck_assert_int_eq(op_of(s, "b")->start, gy_ticks_from_us(8)); /* and so it is: equal shares until 7, then b alone */
    gantry_schedule_free(s);
    end();
}
END_TEST

/* The link is free after 6; with one engine the second copy begins when the first is over, and takes 6 us. */
START_TEST(copies_take_turns_on_an_engine)
{
    gy_text json = { 0 };
    const char *rest = strstr(machine_shared_link, "\"kind\":\"big\"");
    gy_text_printf(&json, "%.*s\"copy_engines\":%d,%s", (int)(rest - machine_shared_link), machine_shared_link,
                   _i ? 1 : 2, rest);
    ck_assert(!json.failed);
    begin(json.at);
    gy_text_free(&json);
    gantry_node_read(g, task("a", 1, "gpu0"), gantry_all(input("x", 12000)));
    gantry_node_read(g, task("b", 1, "gpu0"), gantry_all(input("y", 12000)));
    gantry_node_priority(g, (gantry_node){ 0 }, 1);
    place("heft-links");
    ck_assert_double_eq(start_of(0), 6);
    ck_assert_double_eq(start_of(1), _i ? 12 : 9); /* 9: its data are there at 7, and a runs until 9 */
    end();
}
END_TEST

/* b reads what a read: it is there already. c reads it on the other GPU. */
START_TEST(rows_are_brought_once)
{
    begin(machine_shared_link);
    gantry_buffer x = input("x", 12000);
    gantry_node_read(g, task("a", 1, "gpu0"), gantry_all(x));
    gantry_node_read(g, task("b", 1, "gpu0"), gantry_all(x));
    gantry_node_read(g, task("c", 1, "gpu1"), gantry_all(x));
    gantry_node_priority(g, (gantry_node){ 0 }, 2);
    gantry_node_priority(g, (gantry_node){ .id = 1 }, 1);
    place("heft-links");
    ck_assert_double_eq(start_of(0), 6);
    ck_assert_double_eq(start_of(1), 9); /* after a: 1 us and 2 for launching */
    ck_assert_double_eq(start_of(2), 7); /* the link's second turn */
    end();
}
END_TEST

/* a on gpu0 ends at 3: down from 3 to 9, up from 9 to 15. In the way going up, if it is there: the upload of w, which
 * fills `up` from 13 to 15 (from 8 on it has no turn: v has it until 13). */
START_TEST(staged_routes_are_two_transfers)
{
    begin(machine_shared_link);
    int64_t bytes = 12000;
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_U8, 1, &bytes);
    gantry_node_write(g, task("a", 1, "gpu0"), gantry_all(x));
    if (_i)
        gantry_node_read(g, task("v", 1, "gpu0"), gantry_all(input("v", 96000))); /* up from 5 to 13, there at 13 */
    gantry_node_read(g, task("b", 1, "gpu1"), gantry_all(x));
    gantry_node_priority(g, (gantry_node){ 0 }, 2);
    gantry_node_priority(g, (gantry_node){ .id = 1 }, 1);
    place("heft-links");
    ck_assert_double_eq(start_of(0), 0);
    /* `up` is free from 14 on at the soonest that the copy wants it (9 + 5). */
    ck_assert_double_eq(start_of(_i ? 2 : 1), 15);
    if (_i)
        ck_assert_double_eq(start_of(1), 13);
    end();
}
END_TEST

/* Contributions of three tasks to one sum on gpu0 leave it as one: 6 us down from the last of them, not three turns. */
START_TEST(contributions_leave_a_memory_as_one)
{
    begin(machine_shared_link);
    int64_t bytes = 12000;
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_U8, 1, &bytes);
    gantry_node_write(g, task("zero", 1, "gpu0"), gantry_all(x));
    for (int i = 0; i < 3; i++)
        gantry_node_reduce(g, task(i == 0 ? "a" : i == 1 ? "b" : "c", 1, "gpu0"), gantry_all(x), GANTRY_SUM);
    gantry_node_read(g, task("read", 1, "cpu"), gantry_all(x));
    place("heft-links");
    /* gpu0 runs four tasks of 3 us. What zero wrote goes from 3 to 9; the engine is gpu0's. The sum from 12 to 18. */
    ck_assert_double_eq(start_of(4), 18);
    end();
}
END_TEST

START_TEST(without_contention_there_is_no_book)
{
    char json[2048];
    strcpy(json, machine_shared_link);
    char *model = strstr(json, "\"model\":{");
    strcpy(model, "\"model\":{\"contention\":\"off\"}}");
    begin(json);
    gantry_node_read(g, task("a", 1, "gpu0"), gantry_all(input("x", 12000)));
    gantry_node_read(g, task("b", 1, "gpu1"), gantry_all(input("y", 12000)));
    place("heft-links");
    ck_assert_ptr_null(p.placed.links);
    ck_assert_double_eq(start_of(0), 6);
    ck_assert_double_eq(start_of(1), 6);
    end();
}
END_TEST

/* Four equal tasks with inputs of their own on four GPUs behind one bus: their ends are equal wherever they go, and
 * each gets a device of its own. */
START_TEST(equal_ends_go_to_the_device_with_less_work)
{
    begin(
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"m0\",\"capacity\":"
        "\"1GiB\"},"
        "{\"id\":\"m1\",\"capacity\":\"1GiB\"},{\"id\":\"m2\",\"capacity\":\"1GiB\"},{\"id\":\"m3\",\"capacity\":"
        "\"1GiB\"}],"
        "\"devices\":[{\"id\":\"d0\",\"memory\":\"m0\",\"copy_engines\":4},{\"id\":\"d1\",\"memory\":\"m1\",\"copy_"
        "engines\":4},"
        "{\"id\":\"d2\",\"memory\":\"m2\",\"copy_engines\":4},{\"id\":\"d3\",\"memory\":\"m3\",\"copy_engines\":4}],"
        "\"resources\":{\"bus\":1},\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"bandwidth_gbs\":1,\"via\":[\"bus\"]}]}");
    static const char *const names[] = { "a", "b", "c", "d" };
    for (int i = 0; i < 4; i++)
        gantry_node_read(g, work(g, names[i], 1), gantry_all(input(names[i], 8000)));
    place("heft-links");
    for (uint32_t t = 0; t < 4; t++) {
        ck_assert_uint_eq(p.placed.device[t], t);
        ck_assert_double_eq(start_of(t), 8 * (t + 1));
    }
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("links");
    TCase *c = tcase_create("links");
    tcase_add_loop_test(c, uploads_take_turns_on_a_shared_link, 0, 2);
    tcase_add_loop_test(c, copies_take_turns_on_an_engine, 0, 2);
    tcase_add_test(c, rows_are_brought_once);
    tcase_add_loop_test(c, staged_routes_are_two_transfers, 0, 2);
    tcase_add_test(c, contributions_leave_a_memory_as_one);
    tcase_add_test(c, without_contention_there_is_no_book);
    tcase_add_test(c, equal_ends_go_to_the_device_with_less_work);
    suite_add_tcase(s, c);
    return run_suite(s);
}
