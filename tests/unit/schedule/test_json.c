/* SPDX-License-Identifier: Apache-2.0 */
/* Schedule files: out and in again, and what is said about those that are no schedules. */
#include "base/memory.h"
#include "support/run_suite.h"
#include "unit/schedule/hand.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* right.json is typed by hand in the normal form, so that writing it is held against something that we did not print.
 */
START_TEST(test_round_trip)
{
    gantry_error err = { 0 };
    char *text = hand_text(NULL, NULL), *again;
    size_t length;
    gantry_schedule *s = hand_schedule(NULL, NULL, &err);
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(gantry_schedule_json(s, &again, &length, &err), GANTRY_OK);
    ck_assert_uint_eq(length, strlen(again));
    ck_assert_str_eq(again, text);
    gantry_free(again);
    gy_free(text);
    gantry_schedule_free(s);
}
END_TEST

START_TEST(test_what_is_read)
{
    gantry_error err = { 0 };
    gantry_schedule *s = hand_schedule(NULL, NULL, &err);
    ck_assert_ptr_nonnull(s);
    ck_assert_uint_eq(s->seed, UINT64_MAX);
    ck_assert_uint_eq(s->params.count, 2);
    ck_assert(s->params.at[1].is_real && s->params.at[1].real == 0.5 && s->params.at[0].integer == 4);
    ck_assert_uint_eq(s->bounds.count, 1);
    ck_assert_uint_eq(s->bounds.at[0].parts, 2);
    ck_assert_int_eq(s->bounds.at[0].first[1], 2);
    ck_assert_uint_eq(s->instances.count, 10);
    ck_assert_uint_eq(s->instances.at[7].op, GANTRY_SUM);
    ck_assert_uint_eq(s->ops.count, 12);
    const gy_op *reduce = &s->ops.at[10];
    ck_assert_uint_eq(reduce->lanes, 3);
    ck_assert_uint_eq(reduce->ins, 2);
    ck_assert_uint_eq(reduce->uses, 3);
    ck_assert_uint_eq(s->use.at[reduce->use + 2].rank, 2);
    ck_assert_uint_eq(s->op_lane.at[reduce->lane + 1], 7);
    ck_assert_uint_eq(s->ops.at[0].node, GY_NONE);
    ck_assert_uint_eq(s->ops.at[9].node, 4);
    ck_assert_int_eq(s->ops.at[9].end, 6000000);
    ck_assert_uint_eq(s->sync.at[4].carrier, GY_CARRIER_FLAG);
    ck_assert_uint_eq(s->sync.at[3].reason, GY_WHY_REUSE);
    gantry_schedule_free(s);
}
END_TEST

/* Values with tiles for rows, and later generations of a carried buffer. */
START_TEST(test_values)
{
    static const char *const changes[][2] = {
        { "{\"name\": \"y\", \"rows\": 4, \"row_bytes\": 2}",
          "{\"name\": \"y\", \"rows\": 4, \"tiles\": [2, 2], \"offsets\": [0, 1, 3, 3, 8]}" },
        { "{\"name\": \"t\", \"rows\": 1, \"row_bytes\": 1}",
          "{\"name\": \"t\", \"rows\": 1, \"row_bytes\": 1},\n    {\"buffer\": 2, \"generation\": 1},\n    "
          "{\"buffer\": 2, \"generation\": 2}" },
    };
    for (size_t i = 0; i < 2; i++) {
        gantry_error err = { 0 };
        char *text = hand_text(changes[i][0], changes[i][1]), *again;
        gantry_schedule *s = hand_schedule(changes[i][0], changes[i][1], &err);
        ck_assert_msg(s != NULL, "%s", err.text);
        ck_assert_int_eq(gantry_schedule_json(s, &again, NULL, &err), GANTRY_OK);
        ck_assert(strcmp(again, text) == 0);
        const gy_schedule_value *y = &s->values.at[2];
        if (i == 0) {
            ck_assert(y->offset[2] == 3 && y->row_bytes == 0);
            ck_assert_uint_eq(gy_instance_offset(s, &s->instances.at[2], 2), 3);
            ck_assert(y->axes == 2 && y->tiles[0] == 2 && y->tiles[1] == 2 && y->tiles[2] == 1);
        } else {
            ck_assert_uint_eq(s->values.count, 6);
            ck_assert(s->values.at[5].generation == 2 && s->values.at[5].rows == 4 &&
                      !strcmp(s->values.at[5].name, "y"));
        }
        gantry_free(again);
        gy_free(text);
        gantry_schedule_free(s);
    }
}
END_TEST

/* Defaults may be written out, positions left out: both mean the same. */
START_TEST(test_optional_keys)
{
    static const char *const changes[][2] = {
        { "{\"position\": 0, ", "{" },
        { "\"kind\": \"copy\", \"lane\": 3", "\"kind\": \"copy\", \"iteration\": 0, \"lane\": 3" },
        { "\"by\": \"edge\"", "\"distance\": 0, \"slot\": 0, \"by\": \"edge\"" },
        { "  \"graph\": \"hand\",\n  \"graph_hash\": \"0000000000000000\",\n",
          "\"graph_hash\": \"0\", \"graph\": \"hand\"," },
    };
    char *text = hand_text(NULL, NULL), *again;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        gantry_error err = { 0 };
        gantry_schedule *s = hand_schedule(changes[i][0], changes[i][1], &err);
        ck_assert_msg(s != NULL, "%s", err.text);
        ck_assert_int_eq(gantry_schedule_json(s, &again, NULL, &err), GANTRY_OK);
        ck_assert_str_eq(again, text);
        gantry_free(again);
        gantry_schedule_free(s);
    }
    gy_free(text);
}
END_TEST

static const struct mistake {
    const char *from, *to;
    gantry_status status;
    int line, column;
    const char *where, *says;
} mistakes[] = {
    { "\"graph\": \"hand\",", "\"graph\": \"hand\"", GANTRY_E_SYNTAX, 4, 3, "", "not well-formed JSON" },
    { "\"effort\": 0,", "\"effort\": 0, \"effort\": 1,", GANTRY_E_SYNTAX, 6, 16, "", "duplicate key" },
    { "\"gantry_schedule\": 1,", "", GANTRY_E_SCHEDULE, 1, 1, "", "no \"gantry_schedule\": 1 in it" },
    { "\"gantry_schedule\": 1,", "\"gantry_schedule\": 2,", GANTRY_E_SCHEDULE, 2, 22, "/gantry_schedule",
      "format version 2" },
    { "\"policy\": \"hand\",", "\"polcy\": \"hand\",", GANTRY_E_SCHEDULE, 5, 12, "/polcy", "did you mean \"policy\"?" },
    { "\"policy\": \"hand\",", "\"policy\": 7,", GANTRY_E_SCHEDULE, 5, 13, "/policy", "string" },
    { "\"graph_hash\": \"0000000000000000\"", "\"graph_hash\": \"xyz\"", GANTRY_E_SCHEDULE, 4, 17, "/graph_hash",
      "hexadecimal" },
    { "\"seed\": \"18446744073709551615\"", "\"seed\": \"18446744073709551616\"", GANTRY_E_SCHEDULE, 7, 11, "/seed",
      "64 bits" },
    { "\"graph_hash\": \"0000000000000000\"", "\"graph_hash\": \"0x00000000000000\"", GANTRY_E_SCHEDULE, 4, 17,
      "/graph_hash", "hexadecimal" },
    { "\"seed\": \"18446744073709551615\"", "\"seed\": \"-1\"", GANTRY_E_SCHEDULE, 7, 11, "/seed", "64 bits" },
    { "\"objective\": \"makespan\"", "\"objective\": \"speed\"", GANTRY_E_SCHEDULE, 8, 16, "/objective",
      "\"speed\" is no objective" },
    { "\"in_flight\": 1", "\"in_flight\": -1", GANTRY_E_SCHEDULE, 11, 16, "/in_flight", "-1" },
    { "\"makespan_ps\": 9000000", "\"makespan_ps\": -1", GANTRY_E_SCHEDULE, 12, 18, "/makespan_ps", "-1" },
    { "\"a\": 0.5", "\"a\": \"0.5\"", GANTRY_E_SCHEDULE, 14, 28, "/params/a", "it is a number" },
    { "\"y\": [0, 2, 4]", "\"y\": [0]", GANTRY_E_SCHEDULE, 16, 10, "/bounds/y", "two numbers or more" },
    { "\"y\": [0, 2, 4]", "\"y\": [0, 2.5, 4]", GANTRY_E_SCHEDULE, 16, 14, "/bounds/y/1", "where an integer belongs" },
    { "\"capacity\": 4096,", "\"capacity\": 0,", GANTRY_E_MACHINE, 22, 35, "/machine/memories/0/capacity", "" },
    { "\"slabs\": [256, 768, 768]", "\"slabs\": 256", GANTRY_E_SCHEDULE, 39, 12, "/slabs", "it is an array" },
    { "\"staging\": 256,", "", GANTRY_E_SCHEDULE, 1, 1, "", "staging" },
    { "    \"s0\",", "    \"s1\",", GANTRY_E_SCHEDULE, 46, 5, "/nodes/4", "\"s1\" is listed twice" },
    { "    \"s0\",", "    7,", GANTRY_E_SCHEDULE, 45, 5, "/nodes/3", "where the id of a node belongs" },
    { "\"name\": \"y\", \"rows\": 4", "\"name\": \"y\", \"rows\": -4", GANTRY_E_SCHEDULE, 51, 27, "/values/2/rows",
      "-4" },
    { "{\"name\": \"y\", \"rows\": 4, \"row_bytes\": 2}",
      "{\"name\": \"y\", \"rows\": 4, \"tiles\": [4], \"offsets\": [0, 1]}", GANTRY_E_SCHEDULE, 51, 55,
      "/values/2/offsets", "2 offsets for 4 tiles" },
    { "{\"name\": \"y\", \"rows\": 4, \"row_bytes\": 2}",
      "{\"name\": \"y\", \"rows\": 2, \"tiles\": [2], \"offsets\": [0, 3, 2]}", GANTRY_E_SCHEDULE, 51, 5, "/values/2",
      "offset 2 of \"y\" is 2" },
    { "{\"name\": \"y\", \"rows\": 4, \"row_bytes\": 2}",
      "{\"name\": \"y\", \"rows\": 4, \"tiles\": [2, 3], \"offsets\": [0, 1, 3, 3, 8]}", GANTRY_E_SCHEDULE, 51, 5,
      "/values/2", "not 4 together" },
    { "{\"name\": \"y\", \"rows\": 4, \"row_bytes\": 2}",
      "{\"name\": \"y\", \"rows\": 4, \"tiles\": [4, 0], \"offsets\": [0, 1, 3, 3, 8]}", GANTRY_E_SCHEDULE, 51, 5,
      "/values/2", "not 4 together" },
    { "{\"name\": \"y\", \"rows\": 4, \"row_bytes\": 2}",
      "{\"name\": \"y\", \"rows\": 4, \"tiles\": [1, 1, 2, 2, 1], \"offsets\": [0, 1, 3, 3, 8]}", GANTRY_E_SCHEDULE, 51,
      39, "/values/2/tiles", "there are 1 to 4" },
    { "{\"name\": \"y\", \"rows\": 4, \"row_bytes\": 2}",
      "{\"name\": \"y\", \"rows\": 4, \"tiles\": [3037000500, 3037000500], \"offsets\": [0, 1, 3, 3, 8]}",
      GANTRY_E_SCHEDULE, 51, 5, "/values/2", "not 4 together" },
    { "{\"name\": \"y\", \"rows\": 4, \"row_bytes\": 2}",
      "{\"name\": \"y\", \"rows\": 4, \"offsets\": [0, 1, 3, 3, 8]}", GANTRY_E_SCHEDULE, 51, 5, "/values/2",
      "no \"tiles\"" },
    { "{\"name\": \"y\", \"rows\": 4, \"row_bytes\": 2}", "{\"buffer\": 3, \"generation\": 1}", GANTRY_E_SCHEDULE, 51,
      5, "/values/2", "buffer 3 is not before" },
    { "{\"name\": \"y\", \"rows\": 4, \"row_bytes\": 2}", "{\"buffer\": 1, \"generation\": 0}", GANTRY_E_SCHEDULE, 51,
      5, "/values/2", "generation 0" },
    { "\"device\": \"d2\", \"kind\": \"copy\"", "\"device\": \"d3\", \"kind\": \"copy\"", GANTRY_E_SCHEDULE, 61, 16,
      "/lanes/6/device", "no device \"d3\"" },
    { "\"device\": \"d2\", \"kind\": \"copy\"", "\"device\": \"d2\", \"kind\": \"coppy\"", GANTRY_E_SCHEDULE, 61, 30,
      "/lanes/6/kind", "(did you mean \"copy\"?)" },
    { "\"role\": \"accumulator\", \"op\": \"sum\"", "\"role\": \"accumulator\"", GANTRY_E_SCHEDULE, 71, 5,
      "/instances/6", "no \"op\"" },
    { "\"role\": \"accumulator\", \"op\": \"sum\"", "\"role\": \"accumulator\", \"op\": \"min\"", GANTRY_E_SCHEDULE, 83,
      5, "/ops/6", "rule form" },
    { "\"memory\": \"m2\", \"space\"", "\"memory\": \"m3\", \"space\"", GANTRY_E_SCHEDULE, 69, 28,
      "/instances/4/memory", "no memory \"m3\"" },
    { "{\"position\": 3,", "{\"position\": 4,", GANTRY_E_SCHEDULE, 80, 5, "/ops/3", "this is 3" },
    { "\"kind\": \"launch\", \"node\": \"make\"", "\"kind\": \"lunch\", \"node\": \"make\"", GANTRY_E_SCHEDULE, 78, 29,
      "/ops/1/kind", "(did you mean \"launch\"?)" },
    { "\"node\": \"make\"", "\"node\": \"mke\"", GANTRY_E_SCHEDULE, 78, 47, "/ops/1/node", "no node \"mke\"" },
    { "\"lane\": 0,", "\"lanes\": [0],", GANTRY_E_SCHEDULE, 79, 5, "/ops/2", "a collective has \"lanes\"" },
    { "[\"read\", 7, 0, 1, 1]", "[\"read\", 7, 0, 1]", GANTRY_E_SCHEDULE, 87, 136, "/ops/10/uses/1", "rank]" },
    { "[\"read\", 1, 0, 4]", "[\"read\", 1, 0, 4, 0]", GANTRY_E_SCHEDULE, 78, 75, "/ops/1/uses/0",
      "[mode, instance, first row, last row]" },
    { "[\"read\", 1, 0, 4]", "[\"red\", 1, 0, 4]", GANTRY_E_SCHEDULE, 78, 76, "/ops/1/uses/0/0",
      "(did you mean \"read\"?)" },
    { "[\"read\", 1, 0, 4]", "[\"read\", -1, 0, 4]", GANTRY_E_SCHEDULE, 78, 84, "/ops/1/uses/0/1",
      "-1 is out of range" },
    { "[1000000, 1000000, 2000000]", "[1000000, 1000000]", GANTRY_E_SCHEDULE, 78, 121, "/ops/1/ps",
      "2 numbers, where 3 belong" },
    { "\"cost\": \"given\"", "\"cost\": \"guess\"", GANTRY_E_SCHEDULE, 78, 158, "/ops/1/cost", "provenance" },
    { "\"by\": \"flag\", \"slot\": 0", "\"by\": \"flag\"", GANTRY_E_SCHEDULE, 95, 5, "/sync/4", "slot" },
    { "\"from\": 9, \"to\": 10", "\"from\": 9, \"to\": 4294967296", GANTRY_E_SCHEDULE, 98, 23, "/sync/7/to",
      "4294967296" },
    { "\"from\": 9, \"to\": 10", "\"from\": 9, \"to\": 12", GANTRY_E_SCHEDULE, 98, 5, "/sync/7", "ops 9 and 12 of 12" },
    { "\"by\": \"edge\"", "\"by\": \"edge\", \"slot\": 300", GANTRY_E_SCHEDULE, 96, 48, "/sync/5/slot",
      "leave it out" },
    { "\"kind\": \"copy\", \"lane\": 3", "\"kind\": \"copy\", \"collective\": \"gather\", \"lane\": 3",
      GANTRY_E_SCHEDULE, 77, 51, "/ops/0/collective", "leave it out" },
    { "\"spare\": 250", "\"spare\": 1000", GANTRY_E_SCHEDULE, 79, 87, "/ops/2/spare", "between 0 and 999" },
    { "\"spare\": 250", "\"spare\": -1", GANTRY_E_SCHEDULE, 79, 87, "/ops/2/spare", "not -1" },
    { "\"kind\": \"copy\", \"lane\": 3", "\"kind\": \"copy\", \"spare\": 1, \"lane\": 3", GANTRY_E_SCHEDULE, 77, 46,
      "/ops/0/spare", "leave it out" },
    { "\"role\": \"data\"", "\"role\": \"data\", \"op\": \"sum\"", GANTRY_E_SCHEDULE, 66, 73, "/instances/1/op",
      "leave it out" },
    { "\"replay\": ", "\"balance\": \"fair\", \"replay\": ", GANTRY_E_SCHEDULE, 9, 14, "/balance",
      "\"fair\" is no balance" },
    { "\"why\": \"reuse\"", "\"why\": \"use\"", GANTRY_E_SCHEDULE, 94, 47, "/sync/3/why", "reason" },
};

START_TEST(test_mistake)
{
    const struct mistake *m = &mistakes[_i];
    gantry_error err = { 0 };
    gantry_schedule *s = hand_schedule(m->from, m->to, &err);
    ck_assert_msg(s == NULL, "%s -> %s was accepted", m->from, m->to);
    ck_assert_msg(err.status == m->status && err.line == m->line && err.column == m->column &&
                      !strcmp(err.where, m->where) && strstr(err.text, m->says),
                  "%s -> %s: status %d, %d:%d, %s: %s", m->from, m->to, (int)err.status, (int)err.line, (int)err.column,
                  err.where, err.text);
    ck_assert_str_eq(err.file, "right.json");
}
END_TEST

START_TEST(test_out_parameters)
{
    gantry_schedule *untouched = (gantry_schedule *)&untouched, *s = untouched;
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_schedule_parse(&s, "[]", 2, NULL, &err), GANTRY_E_SCHEDULE);
    ck_assert_ptr_eq(s, untouched);
    ck_assert_int_eq(gantry_schedule_parse(&s, "", 0, NULL, NULL), GANTRY_E_SYNTAX);
    ck_assert_int_eq(gantry_schedule_parse(&s, NULL, 0, NULL, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_schedule_load(&s, "/nowhere/s.json", &err), GANTRY_E_IO);
    ck_assert_int_eq(gantry_schedule_load(NULL, "x", &err), GANTRY_E_INVALID);
    ck_assert_ptr_eq(s, untouched);
    gantry_schedule_free(NULL);
}
END_TEST

START_TEST(test_save_and_load)
{
    gantry_error err = { 0 };
    char path[] = "/tmp/gantry-schedule-XXXXXX", *text = hand_text(NULL, NULL), *again;
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    gantry_schedule *s = hand_schedule(NULL, NULL, &err), *t = NULL;
    ck_assert_int_eq(gantry_schedule_save(s, path, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_schedule_load(&t, path, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_schedule_json(t, &again, NULL, &err), GANTRY_OK);
    ck_assert_str_eq(again, text);
    ck_assert_int_eq(gantry_schedule_save(s, "/nowhere/at/all.json", &err), GANTRY_E_IO);
    remove(path);
    gantry_free(again);
    gy_free(text);
    gantry_schedule_free(s);
    gantry_schedule_free(t);
}
END_TEST

/* A schedule that is not well formed cannot be written, since it could not be read. */
START_TEST(test_no_writing_of_nonsense)
{
    gantry_error err = { 0 };
    gantry_schedule *s = hand_schedule(NULL, NULL, &err);
    char *text = NULL;
    s->sync.at[0].to = 99;
    ck_assert_int_eq(gantry_schedule_json(s, &text, NULL, &err), GANTRY_E_SCHEDULE);
    ck_assert_ptr_null(text);
    gantry_schedule_free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule json");
    TCase *tc = tcase_create("json");
    tcase_add_test(tc, test_round_trip);
    tcase_add_test(tc, test_what_is_read);
    tcase_add_test(tc, test_values);
    tcase_add_test(tc, test_optional_keys);
    tcase_add_loop_test(tc, test_mistake, 0, (int)(sizeof mistakes / sizeof mistakes[0]));
    tcase_add_test(tc, test_out_parameters);
    tcase_add_test(tc, test_save_and_load);
    tcase_add_test(tc, test_no_writing_of_nonsense);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
