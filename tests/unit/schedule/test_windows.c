/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts that overlap: a schedule made by hand (windows.json), broken in the smallest ways. d1 makes t of x and sends
 * it to d2, which keeps w up to date; d1 shows w. What the two starts share is w alone: `show` of one start has to have
 * its copy of w before `use` of the next changes it.
 */
#include "base/file.h"
#include "schedule/check/check.h"
#include "support/run_suite.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

static const struct damage {
    const char *rule, *from, *to, *says[2];
} damages[] = {
    /* no dependency between the starts; one between others; one that only starts further apart have */
    { "race",
      ",\n    {\"from\": 4, \"to\": 3, \"by\": \"event\", \"slot\": 4, \"why\": \"order\", \"distance\": 1}",
      "",
      { "op 3 \"use\" writes bytes 0 to 8 of memory m2 (w) that op 4 \"copy w m2 -> m1\" 1 start(s) before "
        "reads" } },
    { "race",
      "\"from\": 4, \"to\": 3, \"by\": \"event\", \"slot\": 4, \"why\": \"order\"",
      "\"from\": 4, \"to\": 4, \"by\": \"event\", \"slot\": 4, \"why\": \"order\"",
      { "op 3 \"use\" writes", "op 4" } },
    { "race", "\"distance\": 1", "\"distance\": 2", { "op 3 \"use\" writes", "op 4" } },
    { "order", ", \"distance\": 1", "", { "op 3 \"use\" wait for op 4" } },
    /* one address for all starts */
    { "race",
      "\"windows\": [0, 1024, 256]",
      "\"windows\": [0, 0, 256]",
      { "op 0 \"copy x host -> m1\" writes bytes 0 to 8 of memory m1", "op 1 \"make\" 1 start(s) before reads" } },
    { "race",
      "\"windows\": [0, 1024, 256]",
      "\"windows\": [0, 1024, 0]",
      { "op 2 \"copy t m1 -> m2\" writes", "op 3" } },
    /* a window too small: x and t come before it, and are shared */
    { "race", "\"windows\": [0, 1024, 256]", "\"windows\": [0, 768, 256]", { "op 0 \"copy x host -> m1\" writes" } },
    /* beyond the window, across its beginning, and what persists in one */
    { "capacity",
      "\"slabs\": [0, 2048, 768],\n  \"staging\": 0,\n  \"windows\": [0, 1024, 256]",
      "\"slabs\": [0, 1024, 768],\n  \"staging\": 0,\n  \"windows\": [0, 512, 256]",
      { "instance 5 (w) is at bytes 512 to 520 of memory m1", "the first of 2 starts is 0 to 512" } },
    { "capacity",
      "\"slabs\": [0, 2048, 768]",
      "\"slabs\": [0, 2048, 516]",
      { "instance 3 (t) is at bytes 256 to 264 of memory m2", "is 4 to 260" } },
    { "capacity",
      "\"slabs\": [0, 2048, 768]",
      "\"slabs\": [0, 2048, 512]",
      { "instance 3 (t) is at bytes 256 to 264 of memory m2", "is 0 to 256" } },
    { "capacity",
      "\"role\": \"persist\", \"rows\": [0, 4], \"offset\": 0",
      "\"role\": \"persist\", \"rows\": [0, 4], \"offset\": 256",
      { "instance 4 (w) persists at byte 256 of memory m2", "begin at 256" } },
    /* more starts than there are windows, or memory */
    { "form", "\"in_flight\": 2", "\"in_flight\": 3", { "window 1 has 1024 bytes", "3 of them fit the slab of 2048" } },
    { "capacity",
      "\"m1\", \"capacity\": 2048",
      "\"m1\", \"capacity\": 1024",
      { "memory m1 needs 2048 bytes and has 1024" } },
    { "form", "\"windows\": [0, 1024, 256]", "\"windows\": [0, 1024, 250]", { "250 bytes", "multiple of 256" } },
    { "form", "\"windows\": [0, 1024, 256]", "\"windows\": [0, 1024]", { "2 windows for 3 slabs" } },
    { "form",
      "\"windows\": [0,",
      "\"staging_window\": 256,\n  \"windows\": [0,",
      { "the staging window has 256 bytes" } },
    { "form", "\"period_ps\": 3000000", "\"period_ps\": -1", { "" } },
};

static gantry_graph *graph(void)
{
    gantry_graph *g = gantry_graph_new("windows");
    const int64_t shape[] = { 4, 2 };
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_U8, 2, shape),
                  t = gantry_graph_buffer(g, "t", GANTRY_U8, 2, shape);
    gantry_buffer w = gantry_graph_buffer(g, "w", GANTRY_U8, 2, shape),
                  y = gantry_graph_buffer(g, "y", GANTRY_U8, 2, shape);
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    gantry_buffer_set_class(g, w, GANTRY_STATE);
    gantry_buffer_init_value(g, w, 0);
    gantry_buffer_output(g, y);
    gantry_node make = gantry_graph_work(g, "make"), use = gantry_graph_work(g, "use"),
                show = gantry_graph_work(g, "show");
    gantry_node_read(g, make, gantry_all(x));
    gantry_node_write(g, make, gantry_all(t));
    gantry_node_read(g, use, gantry_all(t));
    gantry_node_readwrite(g, use, gantry_all(w));
    gantry_node_read(g, show, gantry_all(w));
    gantry_node_write(g, show, gantry_all(y));
    gantry_error err = { 0 };
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    return g;
}

/* The file with the first `from` replaced; yours, gy_free. */
static char *changed_text(const char *from, const char *to)
{
    char *text;
    size_t length;
    ck_assert_int_eq(gy_file_read(&text, &length, GANTRY_SOURCE_DIR "/tests/unit/schedule/windows.json", NULL),
                     GANTRY_OK);
    char *at = strstr(text, from), *changed = gy_alloc(length + strlen(to) + 1);
    ck_assert_msg(at != NULL, "windows.json has no %s", from);
    ck_assert_ptr_nonnull(changed);
    memcpy(changed, text, (size_t)(at - text));
    strcpy(changed + (at - text), to);
    strcat(changed, at + strlen(from));
    gy_free(text);
    return changed;
}

START_TEST(test_right)
{
    gantry_error err = { 0 };
    gantry_graph *g = graph();
    gantry_schedule *s = NULL;
    char *text = changed_text("{", "{"), *again;
    ck_assert_msg(!gantry_schedule_parse(&s, text, strlen(text), "windows.json", &err), "%s: %s", err.where, err.text);
    ck_assert_msg(!gy_schedule_verify(s, g, &err), "%s: %s", err.where, err.text);
    ck_assert_int_eq(gantry_schedule_json(s, &again, NULL, &err), GANTRY_OK);
    ck_assert_msg(strcmp(again, text) == 0, "it is written in another way");
    ck_assert_uint_eq(gy_instance_address(s, &s->instances.at[5], 3), 512 + 1024); /* start 3 has the second window */
    ck_assert_uint_eq(gy_instance_address(s, &s->instances.at[4], 3), 0);          /* what persists stays */
    ck_assert_uint_eq(gy_instance_address(s, &s->instances.at[7], 3), 0);
    gantry_free(again);
    gy_free(text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(test_damage)
{
    const struct damage *d = &damages[_i];
    gantry_error err = { 0 };
    gantry_graph *g = graph();
    gantry_schedule *s = NULL;
    char *text = changed_text(d->from, d->to), rule[32];
    gantry_status status = gantry_schedule_parse(&s, text, strlen(text), "windows.json", &err);
    status = status ? status : gy_schedule_verify(s, g, &err);
    ck_assert_msg(status != GANTRY_OK, "%s -> %s: accepted", d->from, d->to);
    snprintf(rule, sizeof rule, "rule %s: ", d->rule);
    bool range = strstr(d->to, "-1") != NULL; /* refused by the reader, before any rule */
    ck_assert_msg(range || strstr(err.text, rule) == err.text, "%s -> %s: %s", d->from, d->to, err.text);
    for (size_t i = 0; i < 2 && d->says[i]; i++)
        ck_assert_msg(strstr(err.text, d->says[i]) != NULL, "%s, which does not say: %s", err.text, d->says[i]);
    gy_free(text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("windows");
    TCase *tc = tcase_create("windows");
    tcase_add_test(tc, test_right);
    tcase_add_loop_test(tc, test_damage, 0, (int)(sizeof damages / sizeof damages[0]));
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
