/* SPDX-License-Identifier: Apache-2.0 */
/* The Standard Task Graph Set: the three forms, times found by hand, every complaint. */
#include "suite.h"

/* T1 (4) and T2 (3) before T3 (2), between two dummies. Alone 9; on two processors max(4, 3) + 2. */
static const char plain[] =
    "          3\n          0          0          0\n          1          4          1          0\n"
    "          2          3          1          0\n          3          2          2          1 2\n"
    "          4          0          1          3\n# Standard Task Graph Set Project\n#   Tasks : 3\n";

START_TEST(without_costs)
{
    ck_assert_double_eq(time_of("stg", plain, 1, "heft"), 9);
    ck_assert_double_eq(time_of("stg", plain, 2, "heft"), 6);
    ck_assert_double_eq(time_of("stg", plain, 2, "single"), 9);
    gantry_graph *g = import_text("stg", plain, NULL);
    ck_assert_str_eq(gantry_graph_name(g), "t");
    ck_assert_uint_eq(gantry_graph_node_count(g), 5);
    ck_assert_uint_eq(gantry_graph_buffer_count(g), 0);
    check_has(g, "{ \"id\": \"T3\", \"work\": {}, \"after\": [\"T1\", \"T2\"], \"cost\": { \"time_us\": 2 } }");
    check_has_not(g, "\"machine\"");
    gantry_graph_free(g);
}
END_TEST

/* The same with 5 for each transfer to T3. HEFT: rank T1 11, T2 10. T1 on P1 [0, 4], T2 on P2 [0, 3]; T3 on P1 from
 * max(4, 3 + 5) to 10, on P2 from max(4 + 5, 3) to 11. */
START_TEST(with_costs)
{
    static const char in_one_line[] = "3\n0 0 0\n1 4 1 0 0\n2 3 1 0 0\n3 2 2 1 5 2 5\n4 0 1 3 0\n";
    static const char halves[] = "3\n0 0 0\n1 4 1 0 0\n2 3 1 0 0\n3 2 2 1 5.25 2 5.5\n4 0 1 3 0\n";
    ck_assert_double_eq(time_of("stg", sample_stg, 2, "heft"), 10);
    ck_assert_double_eq(time_of("stg", sample_stg, 2, "single"), 9);
    ck_assert_double_eq(time_of("stg", in_one_line, 2, "heft"), 10);
    ck_assert_double_eq(time_of("stg", halves, 2, "heft"), 10.5);
    gantry_graph *g = import_text("stg", sample_stg, NULL);
    check_has(g, "\"T1->T3\": { \"dtype\": \"u8\", \"shape\": [5], \"class\": \"temp\" }");
    check_has(g, "{ \"id\": \"T3\", \"work\": {}, \"reads\": [\"T1->T3\", \"T2->T3\"], \"cost\"");
    gantry_graph_free(g);
}
END_TEST

/* Tasks from 1, no first dummy, and the number of processors. */
START_TEST(older_form)
{
    static const char text[] = "3 2\n1 4 0\n2 3 0\n3 2 2 1 2\n4 0 1 3\n";
    ck_assert_double_eq(time_of("stg", text, 0, "heft"), 6);
    ck_assert_double_eq(time_of("stg", text, 1, "heft"), 9);
    gantry_graph *g = import_text("stg", text, NULL);
    check_has(g, "\"id\": \"P2\"");
    check_has_not(g, "\"id\": \"P3\"");
    gantry_graph_free(g);
}
END_TEST

/* Tasks may depend on later ones of the file; without dummies; other blanks. */
START_TEST(any_order)
{
    static const char text[] = "3\r\n0 2 2 1 2\r\n1 4 0\r\n\r\n2\t3 0 # the last";
    ck_assert_double_eq(time_of("stg", text, 2, "heft"), 6);
}
END_TEST

START_TEST(time_unit)
{
    gantry_import_options o = GANTRY_IMPORT_OPTIONS_INIT;
    o.devices = 2;
    o.time_unit_us = 1000;
    gantry_graph *g = import_text("stg", sample_stg, &o);
    ck_assert_double_eq(makespan(g, "heft"), 10000);
    gantry_graph_free(g);
    o.time_unit_us = 0.003; /* no whole number of bytes a second */
    g = import_text("stg", sample_stg, &o);
    ck_assert_double_eq_tol(makespan(g, "heft"), 0.030, 1e-12);
    gantry_graph_free(g);
}
END_TEST

START_TEST(complaints)
{
    static const refused samples[] = {
        { "", ":1:1: the file ends where the number of tasks should be" },
        { "# nothing\n", ":2:1: the file ends where the number of tasks should be" },
        { "abc\n", ":1:1: no number where the number of tasks should be; give one that is at least 0, if this is a "
                   "file of the format stg" },
        { "-3\n", ":1:1: no number where the number of tasks should be; give one that is at least 0, if this is a file "
                  "of the format stg" },
        { "1.5\n", ":1:1: the number of tasks is 1.5; a whole number from 0 to 100000000 is allowed" },
        { "1e99\n", ":1:1: the number of tasks is 1e+99; a whole number from 0 to 100000000 is allowed" },
        { "0\n", ": there is no task in the file; give at least one" },
        { "3 0\n", ":1: the first line has the number of tasks, and perhaps that of processors, which is at least 1; "
                   "nothing else" },
        { "3 2 1\n", ":1: the first line has the number of tasks, and perhaps that of processors, which is at least 1; "
                     "nothing else" },
        { "3 5000\n", ":1:3: the number of processors is 5000; a whole number from 0 to 4096 is allowed" },
        { "1\n0 nan 0\n", ":2:3: \"nan\" where the time of a task should be; give a number that is at least 0" },
        { "1\n0 1\n", ":3:1: the file ends where the number of predecessors should be" },
        { "2\n0 1 0\n2 1 0\n", ":3: task 2 where task 1 should be; number the tasks one after the other" },
        { "2\n0 1 0\n1 1 2 0\n",
          ":3: task 1 has 2 predecessors, but 1 numbers follow; give 2, or with costs of communication 4 or a line for "
          "each" },
        { "2\n0 1 0\n1 1 1 0 7 8\n",
          ":3: task 1 has 1 predecessors, but 3 numbers follow; give 1, or with costs of communication 2 or a line for "
          "each" },
        { "3\n0 1 0\n1 1 1 0\n2 1 1 0 1\n",
          ":4:9: task 2 has 1 predecessors, but 1 more numbers follow; correct the count or begin a new line" },
        { "2\n0 1 0\n1 1 1 1\n", ":3: task 1 has predecessor 1; give another task, from 0 on" },
        { "1 1\n1 1 1 0\n", ":2: task 1 has predecessor 0; give another task, from 1 on" },
        { "2\n0 1 0\n1 1 1 9\n", ":3: task 1 has predecessor 9, but the last task is 1" },
        { "3\n0 1 0\n1 1 0\n",
          ":4: the first line says 3 tasks, so 5 with the dummies should follow, or 3 without; there "
          "are 2" },
        { "2\n0 1 1 1\n1 1 1 0\n", ":2: tasks depend on each other in a circle of 2: T0 -> T1 -> T0; take one of these "
                                   "dependencies away" },
        { "2\n0 9e11 0\n1 9e11 0\n",
          ": times add up to 1.8e+12 us, and at most 1e+12 are allowed; choose a smaller unit of time (--time-unit)" },
    };
    CHECK_REFUSALS("stg", samples);
}
END_TEST

int main(void)
{
    const TTest *cases[] = { without_costs, with_costs, older_form, any_order, time_unit, complaints };
    return RUN_CASES("import_stg", cases);
}
