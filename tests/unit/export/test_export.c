/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, names, the critical path, memory over time, and the formats that are data: report, Chrome trace, summary. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "export/export.h"
#include "sim/sim.h"
#include "support/run_suite.h"
#include "unit/export/example.h"

#define US(x) ((gy_ticks)(x)*GY_TICKS_PER_US)

/* ---- numbers and names ---- */

START_TEST(times)
{
    static const struct {
        gy_ticks t;
        int digits;
        const char *text;
    } cases[] = {
        { 0, 3, "0 s" },
        { -5, 3, "0 s" },
        { 7, 3, "7 ps" },
        { 1500, 3, "1.5 ns" },
        { 999999, 3, "1000 ns" },
        { 12345678, 3, "12.3 us" },
        { 12355678, 3, "12.4 us" },
        { US(80), 3, "80 us" },
        { US(1234), 4, "1.234 ms" },
        { US(1234), 2, "1.2 ms" },
        { US(20513), 5, "20.513 ms" },
        { US(3600000000), 3, "3600 s" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[GY_EXPORT_SHORT];
        ck_assert_str_eq(gy_export_time(text, cases[i].t, cases[i].digits, "us"), cases[i].text);
    }
}
END_TEST

START_TEST(counts_rates_and_shares)
{
    char text[GY_EXPORT_SHORT];
    ck_assert_str_eq(gy_export_count(text, 0), "0");
    ck_assert_str_eq(gy_export_count(text, 999), "999");
    ck_assert_str_eq(gy_export_count(text, 1000), "1,000");
    ck_assert_str_eq(gy_export_count(text, 1234567), "1,234,567");
    ck_assert_str_eq(gy_export_rate(text, 396000, US(1)), "396 GB/s"); /* 396,000 bytes a microsecond */
    ck_assert_str_eq(gy_export_rate(text, 55300, US(1)), "55.3 GB/s");
    ck_assert_str_eq(gy_export_rate(text, 1, 0), "-");
    ck_assert_str_eq(gy_export_percent(text, 1, 0), "-");
    ck_assert_str_eq(gy_export_percent(text, 0, 9), "0 %");
    ck_assert_str_eq(gy_export_percent(text, 1, 3), "33 %");
    ck_assert_str_eq(gy_export_percent(text, 1, 40), "2.5 %");
    ck_assert_str_eq(gy_export_percent(text, 1, 40000), "under 0.1 %");
    gy_text t = { 0 };
    gy_export_fixed(&t, -0.5, 2);
    gy_text_add(&t, " ");
    gy_export_fixed(&t, 12.25, 2);
    gy_text_add(&t, " ");
    gy_export_fixed(&t, 1.005, 1);
    gy_text_add(&t, " ");
    gy_export_fixed(&t, -0.001, 2);
    gy_text_add(&t, " ");
    gy_export_fixed(&t, 3.04, 2);
    ck_assert_str_eq(t.at, "-0.5 12.25 1 0 3.04");
    gy_text_free(&t);
}
END_TEST

START_TEST(clean_names)
{
    static const struct {
        const char *name;
        size_t most;
        const char *clean, *dot, *xml;
    } cases[] = {
        { "plain", 0, "plain", "plain", "plain" },
        { "a\"b\\n", 0, "a\"b\\n", "a\\\"b\\\\n", "a&quot;b\\n" },
        { "<&lt;>", 0, "<&lt;>", "<&amp;lt;>", "&lt;&amp;lt;&gt;" },
        { "a\nb\tc\x1f", 0, "a b c ", "a b c ", "a b c " },
        { "\xff\xc3(", 0, "\xEF\xBF\xBD\xEF\xBF\xBD(", "\xEF\xBF\xBD\xEF\xBF\xBD(", "\xEF\xBF\xBD\xEF\xBF\xBD(" },
        { "\xed\xa0\x80", 0, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", NULL, NULL }, /* a surrogate */
        { "\xef\xbf\xbf", 0, " ", NULL, NULL },                                    /* U+FFFF, no character of XML */
        { "abcdefgh", 8, "abcdefgh", NULL, NULL },
        { "abcdefghi", 8, "abcd…ghi", NULL, NULL },
        { "äöüßäöüß", 5, "äö…üß", NULL, NULL },
        { "abc", 1, "…", NULL, NULL },
        { "", 3, "", NULL, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gy_text clean = { 0 }, dot = { 0 }, xml = { 0 };
        gy_export_name(&clean, cases[i].name, cases[i].most);
        gy_export_dot_name(&dot, cases[i].name, cases[i].most);
        gy_export_xml_name(&xml, cases[i].name, cases[i].most);
        ck_assert_str_eq(clean.at ? clean.at : "", cases[i].clean);
        if (cases[i].dot)
            ck_assert_str_eq(dot.at, cases[i].dot);
        if (cases[i].xml)
            ck_assert_str_eq(xml.at, cases[i].xml);
        gy_text_free(&clean);
        gy_text_free(&dot);
        gy_text_free(&xml);
    }
    ck_assert_uint_eq(gy_export_length("äöü…"), 4);
}
END_TEST

/* ---- groups ---- */

START_TEST(groups)
{
    static const char *const names[] = { "gemm[1,2]", "gemm[3]", "gemm12", "fc1[0]", "fc2", "7", "step_w", "x#1", "" };
    gy_groups g = { 0 };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        gy_groups_add(&g, names[i], i < 3 ? 100 : 1);
    gy_groups_rank(&g);
    uint32_t gemm = gy_groups_of(&g, "gemm[9]");
    ck_assert_uint_ge(gemm, GY_GROUP_FIRST_NAME); /* the most weight: it has a colour in any company */
    ck_assert_str_eq(gy_group_label(&g, gemm), "gemm");
    ck_assert_uint_eq(gy_groups_of(&g, "fc1[0]"), gy_groups_of(&g, "fc2[8]"));
    ck_assert_str_eq(gy_group_label(&g, gy_groups_of(&g, "7")), "7");
    for (int i = 0; i < 20; i++) {
        char name[] = { (char)('a' + i), (char)('A' + i), 0 };
        gy_groups_add(&g, name, 50);
    }
    gy_groups_rank(&g);
    ck_assert_uint_eq(gy_groups_of(&g, "step_w"), GY_GROUP_OTHER); /* too light for a colour of its own */
    gy_groups_free(&g);
}
END_TEST

/* The heaviest name has the colour that it has alone; no two that have one share it. */
START_TEST(colours_are_by_name)
{
    for (int pick = 0; pick < 26; pick++) {
        gy_groups alone = { 0 }, many = { 0 };
        char name[] = { (char)('a' + pick), '[', '1', ']', 0 };
        uint32_t seen = 0;
        gy_groups_add(&alone, name, 1);
        gy_groups_rank(&alone);
        for (int i = 0; i < 26; i++) {
            char other[] = { (char)('z' - i), 0 };
            gy_groups_add(&many, other, other[0] == name[0] ? 1000 : (uint64_t)(1 + (i * 7 + pick) % 26));
        }
        gy_groups_rank(&many);
        ck_assert_uint_eq(gy_groups_of(&many, name), gy_groups_of(&alone, name));
        for (uint32_t k = 0; k < GY_GROUP_NAMES; k++) {
            uint32_t group = gy_groups_of(&many, gy_names_at(&many.names, many.top[k]));
            ck_assert_uint_eq(seen & 1u << group, 0);
            seen |= 1u << group;
        }
        gy_groups_free(&alone);
        gy_groups_free(&many);
    }
}
END_TEST

/* ---- the critical path ---- */

/*
 * Lane 0: a (0-10), d (22-25). Lane 1: b (0-4), c (10-22, waits for a). e waits for b (4-9). So d waits for c, c for a:
 * a, c and d are critical; b and e are not. f ends at 25 too: of two last ops the first in position is followed.
 */
START_TEST(critical_path)
{
    gantry_schedule *s =
        hand_new("{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": 1000}], "
                 "\"devices\": [{\"id\": \"A\", \"memory\": \"host\"}, {\"id\": \"B\", \"memory\": \"host\"}]}");
    uint32_t l0 = hand_lane(s, 0, GY_LANE_COMPUTE), l1 = hand_lane(s, 1, GY_LANE_COMPUTE),
             l2 = hand_lane(s, 1, GY_LANE_COMPUTE);
    uint32_t a = hand_launch(s, "a", l0, 10), b = hand_launch(s, "b", l1, 4), c = hand_launch(s, "c", l1, 12);
    uint32_t d = hand_launch(s, "d", l0, 3), e = hand_launch(s, "e", l2, 5), f = hand_launch(s, "f", l2, 16);
    hand_wait(s, a, c);
    hand_wait(s, c, d);
    hand_wait(s, b, e);
    ck_assert_int_eq(gy_sim_run(s, NULL), GANTRY_OK);
    ck_assert_int_eq(s->ops.at[f].end, US(25));
    gy_view view;
    ck_assert_int_eq(gy_view_make(&view, s, NULL), GANTRY_OK);
    ck_assert(view.critical[a] && view.critical[c] && view.critical[d]);
    ck_assert(!view.critical[b] && !view.critical[e] && !view.critical[f]);
    ck_assert_uint_eq(view.cause[d], c);
    ck_assert_uint_eq(view.cause[c], a);
    ck_assert_uint_eq(view.cause[a], GY_NONE);
    /* Device B computes from 0 to 25 in two lanes (4-9 and 10-22 overlap 4-9 and 9-25): 25. Device A: 10 + 3. */
    ck_assert_int_eq(view.busy[0], US(13));
    ck_assert_int_eq(view.busy[1], US(25));
    gy_view_free(&view);
    gantry_schedule_free(s);
}
END_TEST

/* One engine, two copies of 1000 bytes at 1 GB/s: the second waits for the first, which no row says. */
START_TEST(critical_path_through_an_engine)
{
    gantry_schedule *s =
        hand_new("{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": 100000}, {\"id\": \"a\", "
                 "\"capacity\": 100000}], \"devices\": [{\"id\": \"A\", \"memory\": \"a\", \"copy_engines\": 1}], "
                 "\"routes\": [{\"from\": \"host\", \"to\": \"a\", \"bandwidth_gbs\": 1, \"both\": true}]}");
    uint32_t x = hand_move(s, hand_lane(s, 0, GY_LANE_COPY), 0, 1, 1000),
             y = hand_move(s, hand_lane(s, 0, GY_LANE_COPY), 0, 1, 1000);
    ck_assert_int_eq(gy_sim_run(s, NULL), GANTRY_OK);
    ck_assert_int_eq(s->ops.at[y].start, US(1));
    gy_view view;
    ck_assert_int_eq(gy_view_make(&view, s, NULL), GANTRY_OK);
    ck_assert(view.critical[x] && view.critical[y]);
    ck_assert_uint_eq(view.cause[y], x);
    gy_view_free(&view);
    gantry_schedule_free(s);
}
END_TEST

/* ---- memory over time ---- */

/*
 * Memory 1: p (persistent, 300 bytes), x (1000) from the beginning of the copy (0) to the end of its reader (1 + 5 =
 * 6), y (500) written by that reader (1) and read until 9. At 6 x ends and z (1000) begins: the same bytes may be used
 * again.
 */
START_TEST(memory_over_time)
{
    gantry_schedule *s =
        hand_new("{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": 100000}, {\"id\": \"a\", "
                 "\"capacity\": 100000}], \"devices\": [{\"id\": \"A\", \"memory\": \"a\"}], "
                 "\"routes\": [{\"from\": \"host\", \"to\": \"a\", \"bandwidth_gbs\": 1, \"both\": true}]}");
    uint32_t v = hand_value(s, "v", 1000, 1), w = hand_value(s, "w", 500, 1), q = hand_value(s, "q", 300, 1);
    uint32_t h = hand_instance(s, v, 0, 0, 1000), x = hand_instance(s, v, 1, 0, 1000),
             y = hand_instance(s, w, 1, 0, 500);
    uint32_t z = hand_instance(s, v, 1, 0, 1000), p = hand_instance(s, q, 1, 0, 300);
    hand_instance(s, q, 1, 0, 300); /* used by nobody: not counted */
    s->instances.at[p].role = GY_ROLE_PERSIST;
    uint32_t lane = hand_lane(s, 0, GY_LANE_COMPUTE), copy = hand_copy(s, hand_lane(s, 0, GY_LANE_COPY), h, x);
    uint32_t r = hand_launch(s, "r", lane, 5);
    hand_use(s, x, GANTRY_READ);
    hand_use(s, y, GANTRY_WRITE);
    hand_wait(s, copy, r);
    hand_launch(s, "t", lane, 3);
    hand_use(s, y, GANTRY_READ);
    hand_use(s, z, GANTRY_WRITE);
    ck_assert_int_eq(gy_sim_run(s, NULL), GANTRY_OK);
    static const gy_memory_step expected[] = { { 0, 1300 }, { US(1), 1800 }, { US(9), 0 } };
    gy_memory_profile usage = { 0 };
    ck_assert(gy_memory_profile_make(&usage, s, 1, NULL));
    ck_assert_uint_eq(usage.count, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(usage.at[i].time, expected[i].time);
        ck_assert_uint_eq(usage.at[i].bytes, expected[i].bytes);
    }
    gy_vec_free(&usage);
    gantry_schedule_free(s);
}
END_TEST

/* ---- report ---- */

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    return root;
}

START_TEST(report)
{
    gantry_schedule *s = example_new(2, "");
    char *text = example_export(s, GANTRY_REPORT, NULL);
    json_t *root = parse(text);
    ck_assert_str_eq(json_string_value(json_object_get(root, "graph")), "example");
    ck_assert_str_eq(json_string_value(json_object_get(root, "machine")), "two <gpus>");
    ck_assert_str_eq(json_string_value(json_object_get(root, "policy")), "by hand");
    ck_assert_double_eq(json_real_value(json_object_get(root, "makespan_us")), gy_ticks_to_us(s->makespan));
    ck_assert_double_eq_tol(json_real_value(json_object_get(root, "gap")), 1, 1e-6); /* the bound is half */
    ck_assert_double_gt(json_real_value(json_object_get(root, "bound_us")), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "nodes")), 2 * 2 * 2 + 3);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "ops")), 8 * 2 + 5);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "copies")), 2 * 2 * 2 + 1);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "collectives")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "events")), 2 * 2 * 2 + 6);
    /* 8 copies of 100 x 60,000 bytes, 1 of 500 x 4,000, a reduction of 1000 x 4,000 there and back. */
    ck_assert_int_eq(json_integer_value(json_object_get(root, "bytes_moved")), 48000000 + 2000000 + 8000000);
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(root, "peak_bytes"), "gpu0")),
                     (json_int_t)gantry_schedule_peak_bytes(s, 1));
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(root, "placement"), "blur[1]")), "gpu1");
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(root, "placement"), "train[2]")), "gpu0");
    ck_assert_uint_eq(json_object_size(json_object_get(root, "placement")), 11);
    json_t *route = json_array_get(json_object_get(root, "routes"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(route, "from")), "host");
    ck_assert_int_eq(json_integer_value(json_object_get(route, "bytes")), 12000000);
    json_decref(root);
    gantry_free(text);
    gantry_schedule_free(s);
}
END_TEST

START_TEST(summary)
{
    gantry_schedule *s = example_new(2, "");
    char *text = example_export(s, GANTRY_TEXT, NULL);
    static const char *const parts[] = { "example on two <gpus>\n",
                                         "makespan ",
                                         " predicted\n",
                                         "lower bound",
                                         "gap 100 %",
                                         "policy       by hand",
                                         "11 in 21 ops: 9 copies, 1 collectives, 14 events",
                                         "gpu0 ",
                                         "H200",
                                         "host -> gpu0 ",
                                         "11.4 MiB",
                                         "gpu0 -> gpu1 ",
                                         "GB/s",
                                         "2.0 GiB",
                                         "critical path: " };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "no \"%s\"", parts[i]);
    gantry_free(text);
    gantry_schedule_free(s);
}
END_TEST

/* ---- Chrome ---- */

typedef struct track {
    double end;
    bool named;
} track;

/* Every slice lies behind the one before it on its thread, which has a name; arrows come in pairs that lie in slices.
 */
static void check_trace(const json_t *root, size_t ops)
{
    const json_t *events = json_object_get(root, "traceEvents"), *event;
    track tracks[64] = { 0 };
    size_t i, slices = 0, begins = 0, ends = 0, counters = 0;
    json_array_foreach(events, i, event)
    {
        const char *phase = json_string_value(json_object_get(event, "ph"));
        size_t thread = (size_t)json_integer_value(json_object_get(event, "tid"));
        double at = json_number_value(json_object_get(event, "ts"));
        ck_assert_uint_lt(thread, 64);
        if (*phase == 'M' && !strcmp(json_string_value(json_object_get(event, "name")), "thread_name"))
            tracks[thread].named = true;
        if (*phase == 'X') {
            ck_assert(tracks[thread].named);
            ck_assert_double_ge(at, tracks[thread].end - 1e-9);
            tracks[thread].end = at + json_number_value(json_object_get(event, "dur"));
            slices++;
        }
        begins += *phase == 's';
        ends += *phase == 'f';
        counters += *phase == 'C';
    }
    ck_assert_uint_eq(slices, ops + 1); /* the collective is on two threads */
    ck_assert_uint_gt(begins, 0);
    ck_assert_uint_eq(begins, ends);
    ck_assert_uint_gt(counters, 4);
}

START_TEST(chrome)
{
    gantry_schedule *s = example_new(3, "");
    char *text = example_export(s, GANTRY_CHROME, NULL);
    json_t *root = parse(text);
    check_trace(root, s->ops.count);
    json_decref(root);
    gantry_free(text);
    gantry_schedule_free(s);
}
END_TEST

/* ---- all formats ---- */

START_TEST(hostile_names_stay_data)
{
    for (int i = 0; i < example_hostile_count; i++) {
        gantry_schedule *s = example_new(1, example_hostile[i]);
        char *report_text = example_export(s, GANTRY_REPORT, NULL), *trace = example_export(s, GANTRY_CHROME, NULL);
        json_t *root = parse(report_text);
        ck_assert_uint_eq(json_object_size(json_object_get(root, "placement")), 7);
        json_decref(root);
        root = parse(trace);
        check_trace(root, s->ops.count);
        json_decref(root);
        gantry_free(report_text);
        gantry_free(trace);
        gantry_free(example_export(s, GANTRY_TEXT, NULL));
        gantry_schedule_free(s);
    }
}
END_TEST

/* Nothing in it: every format is still made. */
START_TEST(an_empty_schedule)
{
    gantry_schedule *s = hand_new("{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": 1000}], "
                                  "\"devices\": [{\"id\": \"A\", \"memory\": \"host\"}]}");
    for (int f = GANTRY_DOT; f <= GANTRY_REPORT; f++)
        gantry_free(example_export(s, (gantry_format)f, NULL));
    gantry_schedule_free(s);
}
END_TEST

/* The same schedule gives the same bytes. */
START_TEST(repeatable)
{
    gantry_schedule *a = example_new(4, "x"), *b = example_new(4, "x");
    for (int f = GANTRY_DOT; f <= GANTRY_REPORT; f++) {
        char *x = example_export(a, (gantry_format)f, NULL), *y = example_export(b, (gantry_format)f, NULL);
        ck_assert_str_eq(x, y);
        gantry_free(x);
        gantry_free(y);
    }
    gantry_schedule_free(a);
    gantry_schedule_free(b);
}
END_TEST

START_TEST(wrong_calls)
{
    gantry_schedule *s = example_new(1, "");
    gantry_error err = { 0 };
    char *text = (char *)(uintptr_t)1;
    size_t length = 7;
    ck_assert_int_eq(gantry_schedule_export(s, (gantry_format)0, &text, &length, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_schedule_export(s, (gantry_format)99, &text, &length, &err), GANTRY_E_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "99 is not a format"));
    ck_assert_int_eq(gantry_schedule_export(NULL, GANTRY_SVG, &text, &length, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_schedule_export(s, GANTRY_SVG, NULL, &length, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_export(NULL, GANTRY_DOT, &text, &length, &err), GANTRY_E_INVALID);
    gantry_graph *g = gantry_graph_new("g");
    ck_assert_int_eq(gantry_graph_export(g, GANTRY_SVG, &text, &length, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_export(g, GANTRY_DOT, &text, &length, &err), GANTRY_E_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "not checked yet"));
    ck_assert(text == (char *)(uintptr_t)1 && length == 7);
    gantry_graph_free(g);
    gantry_schedule_free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("export");
    TCase *t = tcase_create("data");
    TTest const *const tests[] = {
        times,         counts_rates_and_shares,         clean_names,       groups,     colours_are_by_name,
        critical_path, critical_path_through_an_engine, memory_over_time,  report,     summary,
        chrome,        hostile_names_stay_data,         an_empty_schedule, repeatable, wrong_calls
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
