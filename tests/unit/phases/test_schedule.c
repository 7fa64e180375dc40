/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules that are made of phases: what they add up to, as files, and what the checker says of wrong ones. */
#include "build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double two = 2;

/* before, 40 times two nodes on two devices, after. */
static gantry_graph *make(const char *name)
{
    gantry_graph *g = gantry_graph_new(name);
    gantry_buffer c = vector(g, "c", 8), u = vector(g, "u", 8), v = vector(g, "v", 8), y = vector(g, "y", 8);
    gantry_buffer_split(g, u, 2);
    gantry_buffer_split(g, v, 2);
    gantry_buffer_init_value(g, c, 1);
    gantry_buffer_output(g, y);
    scale(g, "before", gantry_all(c), gantry_all(u), &two);
    gantry_graph_repeat(g, 40);
    gantry_graph_carry(g, u, v);
    gantry_node_on(g, scale(g, "left", gantry_part(u, 0), gantry_part(v, 0), &two), "dev0");
    gantry_node_on(g, scale(g, "right", gantry_part(u, 1), gantry_part(v, 1), &two), "dev1");
    gantry_graph_repeat_end(g);
    scale(g, "after", gantry_all(u), gantry_all(y), &two);
    return g;
}

/* Not inlined: gcc 12 takes the text for a pointer to the variable here, and warns where callers search it. */
__attribute__((noinline)) static char *text_of(const gantry_schedule *s)
{
    char *text = NULL;
    size_t length;
    gantry_error err = { 0 };
    ck_assert_msg(!gantry_schedule_json(s, &text, &length, &err), "%s", err.text);
    return text;
}

static gantry_status read(gantry_schedule **s, const char *text, gantry_error *err)
{
    *s = NULL;
    return gantry_schedule_parse(s, text, strlen(text), "s.json", err);
}

/* 40 iterations, 10 in a start: what the phases have, times their starts. */
START_TEST(sums_are_over_all_starts)
{
    gantry_graph *g = make("sums");
    gantry_schedule *s = plan(g, 2, 20);
    ck_assert_uint_eq(gantry_schedule_phase_count(s), 3);
    static const int64_t starts[] = { 1, 4, 1 };
    gantry_schedule_summary whole = GANTRY_SCHEDULE_SUMMARY_INIT;
    ck_assert_int_eq(gantry_schedule_summarize(s, &whole, NULL), GANTRY_OK);
    double makespan = 0;
    uint64_t ops = 0, copies = 0, peak[3] = { 0 };
    for (size_t i = 0; i < 3; i++) {
        gantry_phase_info info = GANTRY_PHASE_INFO_INIT;
        gantry_schedule_summary one = GANTRY_SCHEDULE_SUMMARY_INIT;
        const gantry_schedule *part = gantry_schedule_phase(s, i, &info);
        ck_assert_int_eq(gantry_schedule_summarize(part, &one, NULL), GANTRY_OK);
        ck_assert_int_eq(info.starts, starts[i]);
        ck_assert_int_eq(info.iterations, i == 1 ? 10 : 1);
        ck_assert_int_eq(info.first_iteration, i == 1 ? 0 : -1);
        makespan += one.makespan_us * (double)starts[i] + info.hand_over_us;
        ops += one.ops * (uint64_t)starts[i];
        copies += one.copies * (uint64_t)starts[i];
        for (size_t m = 0; m < 3; m++) {
            uint64_t bytes = gantry_schedule_peak_bytes(part, m);
            peak[m] = bytes > peak[m] ? bytes : peak[m];
        }
    }
    ck_assert_ptr_null(gantry_schedule_phase(s, 3, NULL));
    ck_assert_double_eq_tol(whole.makespan_us, makespan, 1e-6);
    ck_assert_uint_eq(whole.ops, ops);
    ck_assert_uint_eq(whole.copies, copies);
    ck_assert_uint_eq(whole.nodes, 4);
    for (size_t m = 0; m < 3; m++)
        ck_assert_uint_eq(gantry_schedule_peak_bytes(s, m), peak[m]);
    ck_assert_int_eq(gantry_schedule_device_of(s, gantry_graph_find_node(g, "left")), 0);
    ck_assert_int_eq(gantry_schedule_device_of(s, gantry_graph_find_node(g, "right")), 1);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(a_file_is_written_the_same_again)
{
    gantry_graph *g = make("again");
    gantry_schedule *s = plan(g, 2, 20), *copy;
    gantry_error err = { 0 };
    char *text = text_of(s);
    ck_assert_msg(!read(&copy, text, &err), "%s", err.text);
    char *again = text_of(copy);
    ck_assert_str_eq(text, again);
    /* looked at without its graph, run with it */
    char *report = NULL;
    ck_assert_msg(!gantry_schedule_export(copy, GANTRY_REPORT, &report, NULL, &err), "%s", err.text);
    ck_assert_ptr_nonnull(strstr(report, "\"phases\""));
    ck_assert_msg(!gantry_schedule_attach(copy, g, &err), "%s", err.text);
    gantry_run *run = open_run(copy, "host", false);
    start(run);
    ck_assert_double_eq(result(run, gantry_graph_find_buffer(g, "y"))[7], 4398046511104.0); /* 2^42 */
    gantry_run_free(run);
    gantry_free(report);
    gantry_free(again);
    gantry_free(text);
    gantry_schedule_free(copy);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* The text with the first `from` behind `behind` replaced; yours. */
static char *edit(const char *text, const char *behind, const char *from, const char *to)
{
    const char *at = strstr(text, behind);
    ck_assert_ptr_nonnull(at);
    at = strstr(at, from);
    ck_assert_ptr_nonnull(at);
    char *made = malloc(strlen(text) + strlen(to) + 1);
    ck_assert_ptr_nonnull(made);
    size_t head = (size_t)(at - text);
    memcpy(made, text, head);
    strcpy(made + head, to);
    strcat(made, at + strlen(from));
    return made;
}

/* `want` from reading, or from checking against the graph. */
static void expect_wrong(gantry_graph *g, const char *text, const char *behind, const char *from, const char *to,
                         const char *want)
{
    gantry_schedule *s;
    gantry_error err = { 0 };
    char *bad = edit(text, behind, from, to);
    gantry_status status = read(&s, bad, &err);
    status = status ? status : gantry_schedule_check(s, g, &err);
    ck_assert_msg(status == GANTRY_E_SCHEDULE, "%s -> %s: %s", from, to, status ? err.text : "taken");
    ck_assert_msg(strstr(err.text, want) != NULL, "wanted: %s\ngot: %s", want, err.text);
    gantry_schedule_free(s);
    free(bad);
}

START_TEST(wrong_files_are_refused)
{
    gantry_graph *g = make("wrong");
    gantry_schedule *s = plan(g, 2, 20);
    char *text = text_of(s);
#define WRONG(...) expect_wrong(g, text, __VA_ARGS__)
    WRONG("\"phases\"", "\"starts\": 4", "\"starts\": 3", "phase 2 does not begin where the one before it ends");
    WRONG("\"phases\"", "\"iterations\": 10", "\"iterations\": 0", "0");
    WRONG("\"phases\"", "\"iterations\": 10", "\"iterations\": 8", "phase 2 does not begin");
    WRONG("\"phases\"", "\"nodes\": [0, 1]", "\"nodes\": [0, 9]", "nodes 0 to 9 of 4");
    WRONG("\"phases\"", "\"loop\": 0", "\"loop\": 1", "phase 0 has a loop inside");
    WRONG("\"phases\"", "\"loop\": 0", "\"lop\": 0", "lop");
    WRONG("\"phases\"", "\"starts\": 4", "\"starts\": 4, \"every\": 2", "phase 1 does not look at `until`");
    WRONG("\"loop\": 0", "\"hand_over_ps\": ", "\"hand_over_ps\": -", "-");
    WRONG("\"phases\"", "\"in_flight\": 1", "\"in_flight\": 2", "phase 0 has starts that overlap");
    /* the whole has lanes only in its phases, and the nodes of the graph */
    WRONG("\"values\"", "\"lanes\": [", "\"lanes\": [{\"device\": \"dev0\", \"kind\": \"compute\"}",
          "lanes, instances");
    WRONG("\"staging\"", "\"nodes\": [\n    \"", "\"nodes\": [\n    \"un", "rule form: node 0 is");
    /* a mistake inside of a phase is found by the rules for all schedules, against the graph of the phase */
    WRONG("\"loop\": 0", "\"role\": \"persist\"", "\"role\": \"data\"", "phase 1: rule ");
    WRONG("\"loop\": 0", "\"iteration\": 3", "\"iteration\": 2", "phase 1: rule node");
#undef WRONG
    gantry_free(text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* Each of two phases works on both parts of one split. */
static gantry_graph *make_split(void)
{
    gantry_graph *g = gantry_graph_new("split");
    gantry_buffer x = vector(g, "x", 100), y = vector(g, "y", 100), z = vector(g, "z", 100);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, z);
    gantry_buffer_split_auto(g, x, 2);
    gantry_buffer_split_auto(g, y, 2);
    gantry_buffer_split_auto(g, z, 2);
    scale(g, "before 0", gantry_part(x, 0), gantry_part(y, 0), &two);
    scale(g, "before 1", gantry_part(x, 1), gantry_part(y, 1), &two);
    gantry_graph_repeat(g, 40);
    scale(g, "in 0", gantry_part(y, 0), gantry_part(z, 0), &two);
    scale(g, "in 1", gantry_part(y, 1), gantry_part(z, 1), &two);
    gantry_graph_repeat_end(g);
    return g;
}

START_TEST(a_split_has_one_set_of_bounds)
{
    gantry_graph *g = make_split();
    gantry_schedule *s = plan(g, 2, 20);
    ck_assert_uint_eq(gantry_schedule_phase_count(s), 2);
    char *text = text_of(s);
    static const char was[] = "\"y\": [0, 50, 100]";
    expect_wrong(
        g, text, "\"phases\"", was, "\"y\": [0, 20, 100]",
        "rule phases: phase 0 ends part 0 of \"y\" at row 20, and the schedule as a whole at row 50; all phases "
        "have the bounds of the whole");
    expect_wrong(g, text, "\"loop\": 0", was, "\"y\": [0, 20, 100]",
                 "rule phases: phase 1 ends part 0 of \"y\" at row 20");
    expect_wrong(g, text, "\"bounds\"", was, "\"y\": [0, 20, 100]",
                 "rule phases: phase 0 ends part 0 of \"y\" at row 50, and the schedule as a whole at row 20");
    expect_wrong(g, text, "\"bounds\"", was, "\"y\": [0, 50, 99]",
                 "rule form: the parts of \"y\" are cut at other rows");
    expect_wrong(g, text, "\"bounds\"", was, "\"y\": [0, 100]",
                 "rule form: \"y\" has bounds for 1 parts; the graph has 2");
    gantry_free(text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* z is written in every start of the loop, never read in it, and wanted after it. */
START_TEST(what_a_phase_leaves_persists)
{
    gantry_graph *g = make_split();
    gantry_schedule *s = plan(g, 2, 20);
    char *text = text_of(s);
    static const char persists[] = "\"role\": \"persist\"", z[] = "{\"value\": 2,";
    const char *loop = strstr(text, "\"loop\": 0"), *instances = strstr(loop, "\"instances\"");
    const char *at = instances ? strstr(instances, z) : NULL;
    while (at && strncmp(strstr(at, "\"role\""), persists, sizeof persists - 1) != 0)
        at = strstr(at + 1, z);
    ck_assert_ptr_nonnull(at);
    char instance[200], want[200];
    snprintf(instance, sizeof instance, "%.*s", (int)(strchr(at, '}') - at), at);
    int part = strstr(instance, "[0, 50]") ? 0 : 1;
    snprintf(want, sizeof want,
             "rule phases: phase 1 changes z[%d], which is wanted after it, and no instance keeps these rows", part);
    expect_wrong(g, text, instance, persists, "\"role\": \"data\"", want);
    gantry_free(text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

static char *without_phases(const char *text)
{
    static const char mark[] = "],\n  \"phases\": [", end[] = "]\n}\n";
    char *made = malloc(strlen(text) + sizeof end);
    ck_assert_ptr_nonnull(made);
    strcpy(made, text);
    for (char *at = made; *at; at++)
        if (!strncmp(at, mark, sizeof mark - 1)) {
            strcpy(at, end);
            break;
        }
    return made;
}

/* A schedule whose phases were cut off is not one of the iterations that the flow shows: of 30 three, of 2 all. */
START_TEST(a_graph_that_is_not_unrolled_needs_phases)
{
    static int64_t at = 7;
    gantry_graph *g = gantry_graph_new("folded");
    gantry_buffer f = vector(g, "f", 1);
    gantry_graph_repeat(g, _i);
    gantry_graph_until(g, f, 1);
    flag_at(g, "n", gantry_all(f), &at);
    gantry_graph_repeat_end(g);
    gantry_schedule *s = plan(g, 1, 0), *bare;
    gantry_error err = { 0 };
    char *text = text_of(s);
    char *cut = without_phases(text);
    ck_assert_msg(!read(&bare, cut, &err), "%s", err.text);
    ck_assert_int_eq(gantry_schedule_check(bare, g, &err), GANTRY_E_SCHEDULE);
    ck_assert_str_eq(err.text,
                     "rule phases: graph \"folded\" has a repeat that is not unrolled, and the schedule has no "
                     "phases");
    free(cut);
    gantry_free(text);
    gantry_schedule_free(bare);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(a_graph_that_can_be_unrolled_needs_none)
{
    gantry_graph *g = make("small");
    gantry_schedule *s = plan(g, 2, 0); /* 80 nodes */
    ck_assert_uint_eq(gantry_schedule_phase_count(s), 0);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(pictures_are_of_phases)
{
    gantry_graph *g = make("pictures");
    gantry_schedule *s = plan(g, 2, 20);
    gantry_error err = { 0 };
    char *text = NULL;
    for (gantry_format f = GANTRY_DOT; f <= GANTRY_CHROME; f++) {
        ck_assert_int_eq(gantry_schedule_export(s, f, &text, NULL, &err), GANTRY_E_UNSUPPORTED);
        ck_assert_str_eq(err.text, "a schedule whose loops are not unrolled has a picture of each phase; name one of 0 "
                                   "to 2 (--phase, gantry_schedule_phase)");
        ck_assert_int_eq(gantry_schedule_export(gantry_schedule_phase(s, 1, NULL), f, &text, NULL, &err), GANTRY_OK);
        gantry_free(text);
    }
    ck_assert_int_eq(gantry_schedule_export(s, GANTRY_TEXT, &text, NULL, &err), GANTRY_OK);
    ck_assert_ptr_nonnull(strstr(text, "left .. right"));
    gantry_free(text);
    ck_assert_int_eq(gantry_schedule_explain(s, gantry_graph_find_node(g, "right"), &text, NULL, &err), GANTRY_OK);
    ck_assert_ptr_nonnull(strstr(text, "node \"right\" (iteration 0) on dev1"));
    gantry_free(text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(unroll_is_checked)
{
    gantry_graph *g = make("options");
    gantry_machine *m = NULL;
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    ck_assert_int_eq(gantry_machine_virtual(&m, 2, &err), GANTRY_OK);
    o.unroll = 200001;
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "unroll is 200001 nodes; it must be 1 to 200000, or 0: 200000");
    o.unroll = 20;
    o.objective = "period";
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "the repeat of node \"left\" is not unrolled wholly"));
    gantry_graph *ends = gantry_graph_new("ends");
    gantry_buffer flag = vector(ends, "flag", 1);
    static int64_t at = 3;
    gantry_graph_repeat(ends, 9);
    gantry_graph_until(ends, flag, 1);
    flag_at(ends, "test", gantry_all(flag), &at);
    gantry_graph_repeat_end(ends);
    ck_assert_int_eq(gantry_schedule_new(&s, ends, m, &o, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_str_eq(err.text, "objective \"period\": the repeat of node \"test\" ends by `until`, which is looked at "
                               "between iterations, so starts cannot overlap; use objective \"makespan\", or a repeat "
                               "without `until`");
    gantry_graph_free(ends);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("phases: schedules");
    TCase *c = tcase_create("schedule");
    tcase_add_test(c, sums_are_over_all_starts);
    tcase_add_test(c, a_file_is_written_the_same_again);
    tcase_add_test(c, wrong_files_are_refused);
    tcase_add_test(c, a_split_has_one_set_of_bounds);
    tcase_add_test(c, what_a_phase_leaves_persists);
    for (int count = 2; count <= 30; count += 28)
        tcase_add_loop_test(c, a_graph_that_is_not_unrolled_needs_phases, count, count + 1);
    tcase_add_test(c, a_graph_that_can_be_unrolled_needs_none);
    tcase_add_test(c, pictures_are_of_phases);
    tcase_add_test(c, unroll_is_checked);
    suite_add_tcase(s, c);
    return run_suite(s);
}
