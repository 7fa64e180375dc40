/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "suite.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define MARK         "a"

static gantry_error err;

/* ---- parsing ---- */

static void assert_parse_fails(const char *text, int line, int column, const char *message)
{
    json_t *untouched = (json_t *)&err, *root = untouched;
    ck_assert_int_eq(gy_json_parse(&root, text, strlen(text), "g.json", MARK, &err), GANTRY_E_SYNTAX);
    ck_assert_ptr_eq(root, untouched);
    ck_assert_str_eq(err.text, message);
    ck_assert_msg(err.line == line && err.column == column, "%s: at %d:%d", text, err.line, err.column);
    ck_assert_str_eq(err.file, "g.json");
}

START_TEST(syntax_errors_have_a_place)
{
    assert_parse_fails("{\"a\": 1,}", 1, 9,
                       "not well-formed JSON: string or '}' expected near '}'; take the comma before it out");
    assert_parse_fails("{\"a\": 1\n \"bc\": 2}", 2, 2,
                       "not well-formed JSON: '}' expected near '\"bc\"'; a comma is missing before it");
    assert_parse_fails("{\n  \"a\": tru\n}", 2, 8, "not well-formed JSON: invalid token near 'tru'");
    assert_parse_fails("{\"\xC3\xA9\": x, \"a\": 1}", 1, 8, "not well-formed JSON: invalid token near 'x'");
    assert_parse_fails("[1, 2", 1, 5, "not well-formed JSON: ']' expected near end of file");
    assert_parse_fails("", 1, 1, "not well-formed JSON: '[' or '{' expected near end of file");
    assert_parse_fails("[\"a\",\n 18446744073709551615]", 2, 2,
                       "not well-formed JSON: too big integer near '18446744073709551615'; whole numbers are from "
                       "-9223372036854775808 to 9223372036854775807, larger ones of u64 are written in quotes");
    assert_parse_fails("{\"a\": \"b\\u0000\"}", 1, 7,
                       "a text has the character \\u0000, and texts are one line of plain characters: take it out");
    assert_parse_fails("{\"a\": 1, \"b\\u0000\": 2}", 1, 10,
                       "a text has the character \\u0000, and texts are one line of plain characters: take it out");
    assert_parse_fails("[\"a\"] 2", 1, 7, "not well-formed JSON: end of file expected near '2'");
    assert_parse_fails("{\"a\": {\"k\": 1,\n \"k\": 2}}", 2, 2, "duplicate key \"k\": remove or rename one of them");
}
END_TEST

/* Each slip is told with what to write. */
START_TEST(syntax_errors_have_a_remedy)
{
    static const struct {
        const char *text, *remedy;
    } cases[] = {
        { "{\"a\": True}", "; write true" },
        { "{\"a\": False}", "; write false" },
        { "{\"a\": None}", "; write null, or leave the key out" },
        { "{'a': 1}", "; texts are in double quotes" },
        { "{\"a\": 1, // one\n \"b\": 2}", "; JSON has no comments, take it out" },
        { "{\"a\": 1 # one\n}", "; JSON has no comments, take it out" },
        { "{\"a\": /* one */ 1}", "; JSON has no comments, take it out" },
        { "{\"a\": NaN}", "; JSON has only finite numbers" },
        { "{\"a\": Infinity}", "; JSON has only finite numbers" },
        { "{\"a\": -Infinity}", "; JSON has only finite numbers" },
        { "\xef\xbb\xbf{\"a\": 1}", "; a byte order mark is here: save the text as UTF-8 without one" },
        { "{\"a\": .5}", "; a number begins with a digit, as in 0.5" },
        { "{\"a\": +1}", "; a number has no plus in front" },
        { "{\"a\" = 1}", "; a colon is between key and value" },
        { "{\"a\": [1, 2,]}", "; take the comma before it out" },
        { "{\"a\": true \"b\": 2}", "; a comma is missing before it" },
        { "{\"a\": [{} {}]}", "; a comma is missing before it" },
        { "{\"a\": [1 2]}", "'2'" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *root = NULL;
        ck_assert_int_eq(gy_json_parse(&root, cases[i].text, strlen(cases[i].text), "g.json", MARK, &err),
                         GANTRY_E_SYNTAX);
        size_t length = strlen(err.text), ends = strlen(cases[i].remedy);
        ck_assert_msg(length > ends && strcmp(err.text + length - ends, cases[i].remedy) == 0, "%s", err.text);
    }
}
END_TEST

/* Brackets in strings are text. */
START_TEST(deep_texts_are_refused)
{
    enum { MOST = 256 };
    char text[4 * MOST + 40];
    json_t *root = NULL;
    int length = snprintf(text, sizeof text, "[\"\\\"[[{{\",\n");
    memset(text + length, '[', MOST);
    memset(text + length + MOST, ']', MOST + 1);
    ck_assert_int_eq(gy_json_parse(&root, text, (size_t)length + 2 * MOST + 1, "g.json", MARK, &err), GANTRY_E_SYNTAX);
    ck_assert_str_eq(err.text, "arrays and objects are nested more than 256 deep: have fewer in each other");
    ck_assert_int_eq(err.line, 2);
    ck_assert_int_eq(err.column, MOST);
    memmove(text + length, text + length + 1, 2 * MOST); /* one less */
    ck_assert_int_eq(gy_json_parse(&root, text, (size_t)length + 2 * MOST - 1, "g.json", MARK, &err), GANTRY_OK);
    json_decref(root);
}
END_TEST

/* A text without the key "a" is another kind of file. */
START_TEST(texts_of_others_are_not_quoted)
{
    static const char *const texts[] = {
        "root:x:0:0",
        "{\"password\": hunter2}",
        "{\"b\": 1, \"b\": 2}",
        "[\"\\ud800\"]",
        "[\"\x01\"]",
        "[\"\xff\"]",
        "{\"b\" a",
        "[\"a\\q\"]",
        "a",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        json_t *root;
        ck_assert_int_eq(gy_json_parse(&root, texts[i], strlen(texts[i]), "g.json", MARK, &err), GANTRY_E_SYNTAX);
        ck_assert_str_eq(err.text, "not well-formed JSON, and \"a\" is nowhere in it: it may be another file than you "
                                   "meant");
    }
}
END_TEST

START_TEST(good_texts_are_parsed)
{
    json_t *root = NULL;
    ck_assert_int_eq(gy_json_parse(&root, "{\"b\": 1, \"a\": 2}garbage", 16, "g.json", MARK, &err), GANTRY_OK);
    ck_assert_str_eq(json_object_iter_key(json_object_iter(root)), "b");
    json_decref(root);
}
END_TEST

/* ---- places ---- */

static void assert_place(const char *text, const char *pointer, int line, int column)
{
    int got_line = 77, got_column = 77;
    char *exact = strdup(text);
    gy_json_locate(exact, strlen(text), pointer, &got_line, &got_column);
    free(exact);
    ck_assert_msg(got_line == line && got_column == column, "%s is at %d:%d, not %d:%d in\n%s", pointer, line, column,
                  got_line, got_column, text);
}

static const char sample[] = "{\n"                                                        /* 1 */
                             "  \"name\": \"a \\\"}] \\\\\",\n"                           /* 2 */
                             "  \"nodes\": [ {\"id\" : [1, [2, 3], {}, []]},\n"           /* 3 */
                             "\t{\"args\":{\"x\":-1.5e3,\"y\":null}} ],\n"                /* 4 */
                             "  \"\xC3\xA9\": \"\xC3\xA9\xC3\xA9\", \"after\": true,\n"   /* 5 */
                             "  \"a/b~c\": 7, \"\\u00fc\\n\": 8, \"\\ud83d\\ude00\":9,\n" /* 6 */
                             "  \"\": {\"\": 10}, \"e\\/\": {}\n"                         /* 7 */
                             "}\n";

START_TEST(values_are_found)
{
    assert_place(sample, "", 1, 1);
    assert_place(sample, "/name", 2, 11);
    assert_place(sample, "/nodes", 3, 12);
    assert_place(sample, "/nodes/0", 3, 14);
    assert_place(sample, "/nodes/0/id", 3, 22);
    assert_place(sample, "/nodes/0/id/0", 3, 23);
    assert_place(sample, "/nodes/0/id/1", 3, 26);
    assert_place(sample, "/nodes/0/id/1/1", 3, 30);
    assert_place(sample, "/nodes/0/id/2", 3, 34);
    assert_place(sample, "/nodes/0/id/3", 3, 38);
    assert_place(sample, "/nodes/1", 4, 2);
    assert_place(sample, "/nodes/1/args/x", 4, 15);
    assert_place(sample, "/nodes/1/args/y", 4, 26);
    assert_place(sample, "/\xC3\xA9", 5, 9);
    assert_place(sample, "/after", 5, 26); /* a column is a byte, as in compilers and editors' jump commands */
    assert_place(sample, "/a~1b~0c", 6, 12);
    assert_place(sample, "/\xC3\xBC\n", 6, 27);
    assert_place(sample, "/\xF0\x9F\x98\x80", 6, 45);
    assert_place(sample, "/", 7, 7);
    assert_place(sample, "//", 7, 12);
    assert_place(sample, "/e~1", 7, 24);
}
END_TEST

START_TEST(an_absent_value_is_where_its_nearest_ancestor_is)
{
    assert_place(sample, "/nope", 1, 1);
    assert_place(sample, "/nodes/2", 3, 12);
    assert_place(sample, "/nodes/x", 3, 12);
    assert_place(sample, "/nodes/-1", 3, 12);
    assert_place(sample, "/nodes/", 3, 12);
    assert_place(sample, "/nodes/99999999999999999999999", 3, 12);
    assert_place(sample, "/nodes/1/args/z/deeper", 4, 10);
    assert_place(sample, "/nodes/0/id/3/0", 3, 38);
    assert_place(sample, "/nodes/0/id/2/k", 3, 34);
    assert_place(sample, "/name/x", 2, 11);
    assert_place(sample, "/nam", 1, 1);
    assert_place(sample, "/names", 1, 1);
    assert_place("{\"k\": 1,\n\"k\": 2}", "/k", 1, 7); /* the first of two */
    assert_place(" [ ]", "/0", 1, 2);
    assert_place(sample, "...odes/1", 0, 0); /* cut at the left: leads nowhere */
}
END_TEST

START_TEST(what_is_no_json_has_no_place)
{
    static const char *const broken[] = { "",
                                          " ",
                                          "x",
                                          "7",
                                          "{\"a\" 1, \"k\": 2}",
                                          "{a: 1}",
                                          "{\"a\": ",
                                          "{\"a\"",
                                          "{\"a\": [1, ",
                                          "{\"a\": \"b",
                                          "{\"a\\",
                                          "{\"a\":\"\\",
                                          "{\"a\": }",
                                          "{\"a\": 1 \"k\": 2}",
                                          "{\"\\u12" };
    for (size_t i = 0; i < COUNT(broken); i++)
        assert_place(broken[i], "/k", 0, 0);
    assert_place("[1, ", "/1", 0, 0);
    assert_place("[1 2]", "/1", 0, 0);
    assert_place("[}", "/1", 0, 0);
}
END_TEST

/* Any damaged text and any depth are survived; the place stays inside the text. */
START_TEST(damaged_texts_are_survived)
{
    uint64_t state = 11;
    for (int i = 0; i < 100000; i++) {
        char text[sizeof sample];
        memcpy(text, sample, sizeof sample);
        size_t length = next_random(&state) % sizeof sample;
        for (int k = 0; k < 3; k++)
            text[next_random(&state) % sizeof sample] = "{}[]\",:\\u1 "[next_random(&state) % 11];
        char *exact = malloc(length + 1);
        memcpy(exact + 1, text, length); /* ends where the memory ends */
        int line, column;
        gy_json_locate(exact + 1, length, "/nodes/1/args/y", &line, &column);
        ck_assert(line >= 0 && line <= 200 && column >= 0);
        free(exact);
    }
    size_t depth = 1000000;
    char *deep = malloc(depth);
    memset(deep, '[', depth);
    int line, column;
    gy_json_locate(deep, depth, "/0/0/1", &line, &column);
    ck_assert_int_eq(line, 0);
    free(deep);
}
END_TEST

/* ---- the reader's place ---- */

START_TEST(pointers_are_written)
{
    json_t *root = json_loads("{\"nodes\": [0, {\"a/b~\": 5}]}", 0, NULL);
    gy_json_at top = { .value = root };
    gy_json_at nodes = gy_json_key(&top, "nodes"), node = gy_json_item(&nodes, 1), leaf = gy_json_key(&node, "a/b~");
    gy_json_at absent = gy_json_key(&leaf, "x"), far = gy_json_item(&absent, 12);
    char to[64];
    ck_assert_str_eq(gy_json_pointer(&top, to, sizeof to), "");
    ck_assert_str_eq(gy_json_pointer(&leaf, to, sizeof to), "/nodes/1/a~1b~0");
    ck_assert_str_eq(gy_json_pointer(&far, to, sizeof to), "/nodes/1/a~1b~0/x/12");
    ck_assert_int_eq(json_integer_value(leaf.value), 5);
    ck_assert_ptr_null(absent.value);
    ck_assert_ptr_null(far.value);
    ck_assert_ptr_null(gy_json_item(&nodes, 2).value);
    ck_assert_str_eq(gy_json_pointer(&far, to, 12), "...b~0/x/12");
    ck_assert_uint_le(strlen(to), 11);
    ck_assert_str_eq(gy_json_pointer(&far, to, 2), "");
    gy_json_at accent = gy_json_key(&top, "\xC3\xA9\xC3\xA9");
    ck_assert_str_eq(gy_json_pointer(&accent, to, 7), "...\xC3\xA9"); /* not half of the first */
    json_decref(root);
}
END_TEST

START_TEST(a_long_pointer_keeps_its_end)
{
    char key[300];
    memset(key, 'k', sizeof key);
    key[299] = '\0';
    gy_json_at top = { 0 }, middle = gy_json_key(&top, key), leaf = gy_json_key(&middle, "end");
    ck_assert_int_eq(gy_json_fail(&err, GANTRY_E_MACHINE, &leaf, "n = %d", 3), GANTRY_E_MACHINE);
    ck_assert_uint_eq(strlen(err.where), sizeof err.where - 1);
    ck_assert(memcmp(err.where, "...k", 4) == 0);
    ck_assert_str_eq(err.where + strlen(err.where) - 5, "k/end");
    ck_assert_str_eq(err.text, "n = 3");
}
END_TEST

/* ---- typed members ---- */

static json_t *object;
static gy_json_at at;

static void set_up(void)
{
    object = json_loads("{\"o\": {\"s\": \"text\", \"i\": 5, \"r\": 2.5, \"whole\": 1e6, \"huge\": 1e300, \"t\": true,"
                        " \"n\": null, \"a\": []}}",
                        0, NULL);
    static gy_json_at top;
    top = (gy_json_at){ .value = object };
    at = gy_json_key(&top, "o");
    memset(&err, 0, sizeof err);
}

static void tear_down(void)
{
    json_decref(object);
}

static void assert_error(gantry_status status, const char *where, const char *text)
{
    ck_assert_int_eq(status, GANTRY_E_GRAPH);
    ck_assert_str_eq(err.where, where);
    ck_assert_str_eq(err.text, text);
}

static gantry_status get_int(const char *key, bool required, int64_t low, int64_t high, int64_t *out)
{
    return gy_json_int(&at, key, required, 42, low, high, out, GANTRY_E_GRAPH, &err);
}

START_TEST(integers)
{
    int64_t out = 77;
    ck_assert_int_eq(get_int("i", true, 1, 8, &out), GANTRY_OK);
    ck_assert_int_eq(out, 5);
    ck_assert_int_eq(get_int("absent", false, 1, 8, &out), GANTRY_OK);
    ck_assert_int_eq(out, 42); /* the fallback need not be in the range */
    out = 77;
    assert_error(get_int("absent", true, 1, 8, &out), "/o", "missing key \"absent\": give an integer");
    assert_error(get_int("s", true, 1, 8, &out), "/o/s", "\"s\" must be an integer, not a string");
    assert_error(get_int("r", true, 1, 8, &out), "/o/r", "\"r\" must be an integer, not a real number");
    assert_error(get_int("huge", true, 1, 8, &out), "/o/huge", "\"huge\" must be an integer, not a real number");
    assert_error(get_int("whole", true, 1, 8, &out), "/o/whole",
                 "\"whole\" must be an integer, not a real number: write 1000000");
    assert_error(get_int("n", false, 1, 8, &out), "/o/n", "\"n\" must be an integer, not null");
    assert_error(get_int("t", false, 1, 8, &out), "/o/t", "\"t\" must be an integer, not a boolean");
    assert_error(get_int("a", false, 1, 8, &out), "/o/a", "\"a\" must be an integer, not an array");
    assert_error(get_int("i", true, 6, 8, &out), "/o/i", "\"i\" must be between 6 and 8, not 5");
    assert_error(get_int("i", true, 6, INT64_MAX, &out), "/o/i", "\"i\" must be at least 6, not 5");
    assert_error(get_int("i", true, INT64_MIN, 4, &out), "/o/i", "\"i\" must be at most 4, not 5");
    ck_assert_int_eq(out, 77);
}
END_TEST

static gantry_status get_number(const char *key, bool required, double low, double high, double *out)
{
    return gy_json_number(&at, key, required, 0.5, low, high, out, GANTRY_E_GRAPH, &err);
}

START_TEST(numbers)
{
    const double none = (double)INFINITY;
    double out = 77;
    ck_assert_int_eq(get_number("r", true, -none, none, &out), GANTRY_OK);
    ck_assert_double_eq(out, 2.5);
    ck_assert_int_eq(get_number("i", true, 5, 5, &out), GANTRY_OK);
    ck_assert_double_eq(out, 5);
    ck_assert_int_eq(get_number("absent", false, 1, 2, &out), GANTRY_OK);
    ck_assert_double_eq(out, 0.5);
    out = 77;
    assert_error(get_number("absent", true, 0, 1, &out), "/o", "missing key \"absent\": give a number");
    assert_error(get_number("s", false, 0, 1, &out), "/o/s", "\"s\" must be a number, not a string");
    assert_error(get_number("r", true, 0, 1, &out), "/o/r", "\"r\" must be between 0 and 1, not 2.5");
    assert_error(get_number("r", true, 3.25, none, &out), "/o/r", "\"r\" must be at least 3.25, not 2.5");
    assert_error(get_number("r", true, -none, 1, &out), "/o/r", "\"r\" must be at most 1, not 2.5");
    ck_assert_double_eq(out, 77);
}
END_TEST

START_TEST(strings_and_booleans)
{
    const char *string = "unset";
    bool flag = false;
    ck_assert_int_eq(gy_json_string(&at, "s", true, NULL, &string, GANTRY_E_GRAPH, &err), GANTRY_OK);
    ck_assert_str_eq(string, "text");
    ck_assert_int_eq(gy_json_string(&at, "absent", false, "other", &string, GANTRY_E_GRAPH, &err), GANTRY_OK);
    ck_assert_str_eq(string, "other");
    assert_error(gy_json_string(&at, "absent", true, NULL, &string, GANTRY_E_GRAPH, &err), "/o",
                 "missing key \"absent\": give a string");
    assert_error(gy_json_string(&at, "i", true, NULL, &string, GANTRY_E_GRAPH, &err), "/o/i",
                 "\"i\" must be a string, not an integer");
    ck_assert_str_eq(string, "other");
    ck_assert_int_eq(gy_json_bool(&at, "t", false, &flag, GANTRY_E_GRAPH, &err), GANTRY_OK);
    ck_assert(flag);
    assert_error(gy_json_bool(&at, "i", false, &flag, GANTRY_E_GRAPH, &err), "/o/i",
                 "\"i\" must be true or false, not an integer");
    ck_assert(flag);
    ck_assert_int_eq(gy_json_bool(&at, "absent", false, &flag, GANTRY_E_GRAPH, &err), GANTRY_OK);
    ck_assert(!flag);
}
END_TEST

START_TEST(unknown_keys)
{
    static const char *const all[] = { "s", "i", "r", "whole", "huge", "t", "n", "a" };
    static const char *const typo[] = { "s", "i", "r", "wohle", "huge", "t", "n", "a" };
    static const char *const few[] = { "s", "i" };
    ck_assert_int_eq(gy_json_keys(&at, all, COUNT(all), GANTRY_E_GRAPH, &err), GANTRY_OK);
    assert_error(gy_json_keys(&at, typo, COUNT(typo), GANTRY_E_GRAPH, &err), "/o/whole",
                 "unknown key \"whole\" (did you mean \"wohle\"?)");
    assert_error(gy_json_keys(&at, few, COUNT(few), GANTRY_E_GRAPH, &err), "/o/r",
                 "unknown key \"r\": allowed here: s, i");
    assert_error(gy_json_keys(&at, NULL, 0, GANTRY_E_GRAPH, &err), "/o/s",
                 "unknown key \"s\": allowed here: no keys at all");
    gy_json_at list = gy_json_key(&at, "a");
    assert_error(gy_json_keys(&list, all, COUNT(all), GANTRY_E_GRAPH, &err), "/o/a",
                 "expected an object, not an array");
    static const char *many[200];
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = "some_long_key_name";
    ck_assert_int_eq(gy_json_keys(&at, many, COUNT(many), GANTRY_E_GRAPH, &err), GANTRY_E_GRAPH);
    ck_assert_str_eq(err.text + strlen(err.text) - 3, "...");
    ck_assert_uint_lt(strlen(err.text), sizeof err.text - 1);
}
END_TEST

START_TEST(kinds_have_names)
{
    static const char *const texts[][2] = { { "{}", "an object" },      { "[]", "an array" },
                                            { "\"\"", "a string" },     { "1", "an integer" },
                                            { "1.0", "a real number" }, { "true", "a boolean" },
                                            { "false", "a boolean" },   { "null", "null" } };
    for (size_t i = 0; i < COUNT(texts); i++) {
        json_t *value = json_loads(texts[i][0], JSON_DECODE_ANY, NULL);
        ck_assert_str_eq(gy_json_kind(value), texts[i][1]);
        json_decref(value);
    }
    ck_assert_str_eq(gy_json_kind(NULL), "nothing");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, syntax_errors_have_a_place);
    tcase_add_test(tests, syntax_errors_have_a_remedy);
    tcase_add_test(tests, deep_texts_are_refused);
    tcase_add_test(tests, texts_of_others_are_not_quoted);
    tcase_add_test(tests, good_texts_are_parsed);
    tcase_add_test(tests, values_are_found);
    tcase_add_test(tests, an_absent_value_is_where_its_nearest_ancestor_is);
    tcase_add_test(tests, what_is_no_json_has_no_place);
    tcase_add_test(tests, damaged_texts_are_survived);
    tcase_add_test(tests, pointers_are_written);
    tcase_add_test(tests, a_long_pointer_keeps_its_end);
    tcase_add_test(tests, integers);
    tcase_add_test(tests, numbers);
    tcase_add_test(tests, strings_and_booleans);
    tcase_add_test(tests, unknown_keys);
    tcase_add_test(tests, kinds_have_names);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
