/* SPDX-License-Identifier: Apache-2.0 */
/* Names: what the API takes, files can have, and the other way round; and nothing else gets in. */
#include "support/run_suite.h"
#include <gantry/gantry.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of more than one byte: ones that are fine, then ones that do something to a terminal or a reader. */
static const char *const fine[] = { "\xC3\xA9", "\xE6\x97\xA5", "\xF0\x9F\x98\x80", "\xC2\xA0", "\xEF\xBB\xBF" };
static const char *const bad[] = {
    "\xC2\x85", "\xC2\x9B", "\xE2\x80\xA8", "\xE2\x80\xAE",     "\xE2\x81\xA6", "\xEF\xBF\xBE",
    "\xC3",     "\xE6\x97", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xC0\xAF",
};

static const int64_t shape[] = { 8 };

/* A graph that refers to the buffer in every way that a normal form can write. NULL: the name is refused. */
static gantry_graph *with_buffer(const char *name)
{
    gantry_graph *g = gantry_graph_new("names");
    gantry_buffer x = gantry_graph_buffer(g, name, GANTRY_F32, 1, shape);
    gantry_buffer_split(g, x, 4);
    gantry_buffer_init_value(g, x, 1);
    const gantry_region regions[] = { gantry_all(x), gantry_part(x, 1), gantry_parts(x, 1, 3), gantry_rows(x, 2, 5),
                                      gantry_halo(gantry_part(x, 1), 1, 2) };
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++)
        gantry_node_read(g, gantry_graph_work(g, "n"), regions[i]);
    if (gantry_graph_check(g, NULL) == GANTRY_OK)
        return g;
    gantry_graph_free(g);
    return NULL;
}

static gantry_graph *with_node(const char *id)
{
    gantry_graph *g = gantry_graph_new("names");
    gantry_node n = gantry_graph_work(g, id);
    gantry_node m = gantry_graph_work(g, "other node");
    gantry_node_after(g, m, n);
    if (gantry_graph_check(g, NULL) == GANTRY_OK)
        return g;
    gantry_graph_free(g);
    return NULL;
}

static void expect_same_again(const gantry_graph *g, const char *name)
{
    gantry_error err = { 0 };
    char *text = NULL, *again = NULL;
    size_t length, length2;
    gantry_graph *read = NULL;
    ck_assert_int_eq(gantry_graph_json(g, &text, &length, &err), GANTRY_OK);
    gantry_status status = gantry_graph_parse(&read, text, length, "normal form", NULL, NULL, &err);
    ck_assert_msg(status == GANTRY_OK, "name \"%s\": %s: %s", name, err.where, err.text);
    ck_assert_int_eq(gantry_graph_json(read, &again, &length2, &err), GANTRY_OK);
    ck_assert_str_eq(text, again);
    gantry_graph_free(read);
    gantry_free(text);
    gantry_free(again);
}

/* The same name in a file. `escaped` is how JSON writes it. */
static bool is_read(const char *format, const char *escaped)
{
    char text[400];
    gantry_graph *g = NULL;
    int length = snprintf(text, sizeof text, format, escaped, escaped);
    bool read = gantry_graph_parse(&g, text, (size_t)length, "file", NULL, NULL, NULL) == GANTRY_OK;
    gantry_graph_free(g);
    return read;
}

static const char buffers_file[] =
    "{\"gantry\": 1, \"buffers\": {\"%s\": {\"dtype\": \"f32\", \"shape\": [8], \"split\": 4, \"init\": 1}}, "
    "\"nodes\": [{\"id\": \"n\", \"work\": {}, \"reads\": [\"%s[1]\"]}]}";
static const char nodes_file[] = "{\"gantry\": 1, \"buffers\": {}, \"nodes\": [{\"id\": \"%s\", \"work\": {}}, "
                                 "{\"id\": \"other node\", \"work\": {}, \"after\": \"%s\"}]}";

static void expect_alike(gantry_graph *(*make)(const char *), const char *file, const char *name, const char *escaped)
{
    gantry_graph *g = make(name);
    bool read = is_read(file, escaped);
    ck_assert_msg(read == (g != NULL), "the API %s the name \"%s\" and a file %s", g ? "takes" : "refuses", escaped,
                  read ? "may have it" : "may not");
    if (g)
        expect_same_again(g, escaped);
    gantry_graph_free(g);
}

static void try_byte(gantry_graph *(*make)(const char *), const char *file, int c)
{
    static const char *const frames[] = { "%s", "a%s", "%sb", "a%sb", "a%s%sb", "clamp%s" };
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        char code[8], name[24], escaped[40];
        const char one[] = { (char)c, 0 };
        snprintf(name, sizeof name, frames[i], one, one);
        snprintf(code, sizeof code, c < 0x80 ? "\\u%04x" : "%c", c);
        snprintf(escaped, sizeof escaped, frames[i], code, code);
        expect_alike(make, file, name, escaped);
    }
}

START_TEST(files_have_the_names_that_the_api_takes)
{
    for (int c = 1; c < 256; c++) {
        try_byte(with_buffer, buffers_file, c);
        try_byte(with_node, nodes_file, c);
    }
}
END_TEST

START_TEST(so_they_have_letters_of_all_languages)
{
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        gantry_graph *b = with_buffer(fine[i]), *n = with_node(fine[i]);
        ck_assert(b && n);
        gantry_graph_free(b);
        gantry_graph_free(n);
        expect_alike(with_buffer, buffers_file, fine[i], fine[i]);
        expect_alike(with_node, nodes_file, fine[i], fine[i]);
    }
}
END_TEST

START_TEST(and_nothing_that_moves_a_cursor_or_is_no_text)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_ptr_null(with_buffer(bad[i]));
        ck_assert_ptr_null(with_node(bad[i]));
        expect_alike(with_buffer, buffers_file, bad[i], bad[i]);
        expect_alike(with_node, nodes_file, bad[i], bad[i]);
    }
    for (int c = 1; c < 256; c++) {
        const char name[] = { 'a', (char)c, 0 };
        gantry_graph *g = with_node(name);
        ck_assert_msg(!g == (c < 0x20 || c >= 0x7f), "byte %d", c);
        gantry_graph_free(g);
    }
}
END_TEST

/* ---- other texts ---- */

START_TEST(places_are_plain_text)
{
    static const char evil[] = "gpu0\x1b[2J";
    for (int i = 0; i < 3; i++) {
        gantry_error err = { 0 };
        gantry_graph *g = gantry_graph_new("places");
        gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, shape);
        gantry_node n = gantry_graph_work(g, "n");
        if (i == 0)
            gantry_buffer_external(g, x, evil);
        else if (i == 1)
            gantry_node_on(g, n, evil);
        else
            gantry_node_time(g, n, evil, 1);
        ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_E_GRAPH);
        ck_assert_msg(strstr(err.text, "\"gpu0?[2J\" has control characters"), "%s", err.text);
        gantry_graph_free(g);
    }
}
END_TEST

/* A graph's name is free text, and no error can be told where it is given. */
START_TEST(the_name_of_a_graph_is_made_plain)
{
    gantry_graph *g = gantry_graph_new("a\x1b[2J\nb\xC2\x9B\xFF\xC3\xA9");
    ck_assert_str_eq(gantry_graph_name(g), "a?[2J?b??\xC3\xA9");
    gantry_graph_free(g);
}
END_TEST

/* Every text of our own files: the error is at its place. */
START_TEST(texts_of_files_are_plain)
{
    static const char graph[] = "{\"gantry\": 1,\n \"name\": \"a\\u001b[2Jb\", \"buffers\": {}, \"nodes\": []}";
    static const char key[] = "{\"gantry\": 1,\n \"params\": {\"n\\u009b\": 1}, \"buffers\": {}, \"nodes\": []}";
    static const char long_key[] = "{\"gantry\": 1, \"buffers\": {}, \"nodes\": [],\n \"params\": "
                                   "{\"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
                                   "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
                                   "nnnnnnnnnnnnnnn\\u009b\": 1}}";
    static const char machine[] = "{\"gantry_machine\": 1,\n \"name\": \"a\\u007fb\"}";
    static const char schedule[] = "{\"gantry_schedule\": 1,\n \"policy\": \"a\\nb\"}";
    gantry_error err = { 0 };
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    gantry_schedule *s = NULL;
    ck_assert_int_eq(gantry_graph_parse(&g, graph, strlen(graph), "g.json", NULL, NULL, &err), GANTRY_E_GRAPH);
    ck_assert_str_eq(err.text, "\"a?[2Jb\" has control characters (they show as '?'): a text is one line of plain "
                               "characters; take them out");
    ck_assert_str_eq(err.where, "/name");
    ck_assert_int_eq(err.line, 2);
    ck_assert_int_eq(gantry_graph_parse(&g, key, strlen(key), "g.json", NULL, NULL, &err), GANTRY_E_GRAPH);
    ck_assert_str_eq(err.where, "/params/n?");
    ck_assert_int_eq(err.line, 2);
    ck_assert_int_eq(gantry_graph_parse(&g, long_key, strlen(long_key), "g.json", NULL, NULL, &err), GANTRY_E_GRAPH);
    ck_assert_int_eq(err.line, 2);
    ck_assert_int_eq(gantry_machine_parse(&m, machine, strlen(machine), "m.json", &err), GANTRY_E_MACHINE);
    ck_assert_str_eq(err.where, "/name");
    ck_assert_int_eq(gantry_schedule_parse(&s, schedule, strlen(schedule), "s.json", &err), GANTRY_E_SCHEDULE);
    ck_assert_str_eq(err.where, "/policy");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("names");
    TCase *t = tcase_create("names");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, files_have_the_names_that_the_api_takes);
    tcase_add_test(t, so_they_have_letters_of_all_languages);
    tcase_add_test(t, and_nothing_that_moves_a_cursor_or_is_no_text);
    tcase_add_test(t, places_are_plain_text);
    tcase_add_test(t, the_name_of_a_graph_is_made_plain);
    tcase_add_test(t, texts_of_files_are_plain);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
