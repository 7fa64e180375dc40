/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "suite.h"
#include <errno.h>
#include <gantry/graph.h>
#include <stdio.h>
#include <string.h>

START_TEST(codes_names_and_texts_are_one_list)
{
    /* Written out again on purpose: values and names are a promise. */
    static const char *const names[] = { "OK",       "E_NOMEM",       "E_INVALID",  "E_IO",       "E_SYNTAX",
                                         "E_GRAPH",  "E_MACHINE",     "E_SCHEDULE", "E_CAPACITY", "E_KERNEL",
                                         "E_DEVICE", "E_UNSUPPORTED", "E_TIMEOUT",  "E_CANCELED", "E_CHECK" };
    for (int i = 0; i < 15; i++) {
        char name[40];
        snprintf(name, sizeof name, "GANTRY_%s", names[i]);
        ck_assert_str_eq(gantry_status_name((gantry_status)-i), name);
        ck_assert_int_gt((int)strlen(gantry_status_text((gantry_status)-i)), 3);
    }
    ck_assert_str_eq(gantry_status_text(GANTRY_E_SYNTAX), "not well-formed JSON");
    ck_assert_str_eq(gantry_status_name((gantry_status)-99), "unknown status");
    ck_assert_str_eq(gantry_status_text((gantry_status)7), "unknown status");
    ck_assert_str_eq(gantry_version(), "0.1.0");
}
END_TEST

static const char *line_of(const gantry_error *err)
{
    static char line[900];
    size_t length = gantry_error_format(err, line, sizeof line);
    ck_assert_uint_eq(length, strlen(line));
    return line;
}

START_TEST(a_line_leaves_out_what_is_not_known)
{
    gantry_error err;
    memset(&err, 0xAA, sizeof err);
    ck_assert_int_eq(gy_fail(&err, GANTRY_E_GRAPH, NULL, "no buffer \"%s\"", "x"), GANTRY_E_GRAPH);
    ck_assert_int_eq(err.status, GANTRY_E_GRAPH);
    ck_assert_int_eq(err.device, -1);
    ck_assert_int_eq(err.native, 0);
    ck_assert_str_eq(line_of(&err), "no buffer \"x\"");
    gy_fail(&err, GANTRY_E_GRAPH, "/nodes/3", "text");
    ck_assert_str_eq(line_of(&err), "/nodes/3: text");
    gy_error_locate(&err, "a.json", 0, 0);
    ck_assert_str_eq(line_of(&err), "a.json: /nodes/3: text");
    gy_error_locate(&err, "a.json", 14, 0);
    ck_assert_str_eq(line_of(&err), "a.json:14: /nodes/3: text");
    gy_error_locate(&err, "a.json", 14, 9);
    ck_assert_str_eq(line_of(&err), "a.json:14:9: /nodes/3: text");
    gy_error_locate(&err, NULL, 14, 9);
    ck_assert_str_eq(line_of(&err), "14:9: /nodes/3: text");
    err.where[0] = err.text[0] = '\0';
    err.line = err.column = 0;
    ck_assert_str_eq(line_of(&err), "the graph is not valid");
}
END_TEST

START_TEST(format_counts_like_snprintf)
{
    gantry_error err;
    char small[8] = "zzzzzzz";
    gy_fail(&err, GANTRY_E_IO, NULL, "0123456789");
    ck_assert_uint_eq(gantry_error_format(&err, small, sizeof small), 10);
    ck_assert_str_eq(small, "0123456");
    ck_assert_uint_eq(gantry_error_format(&err, NULL, 0), 10);
}
END_TEST

START_TEST(long_parts_are_cut_where_they_say_least)
{
    gantry_error err;
    char name[400];
    memset(name, 'd', sizeof name);
    memcpy(name + 380, "/end.json", 10);
    char text[700];
    memset(text, 't', sizeof text);
    text[699] = '\0';
    gy_fail(&err, GANTRY_E_GRAPH, name, "%s", text);
    gy_error_locate(&err, name, 1, 1);
    ck_assert_uint_eq(strlen(err.file), sizeof err.file - 1);
    ck_assert(memcmp(err.file, "...ddd", 6) == 0);
    ck_assert_str_eq(err.file + strlen(err.file) - 9, "/end.json");
    ck_assert_str_eq(err.where + strlen(err.where) - 9, "/end.json");
    ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
    ck_assert_str_eq(err.text + strlen(err.text) - 4, "t...");
}
END_TEST

/* Characters of two bytes, with an odd byte before or behind them: some cut would fall into the middle of one. */
START_TEST(cuts_do_not_split_characters)
{
    gantry_error err;
    static const char *const odd[][2] = { { "", "" }, { "x", "" }, { "", "x" } };
    for (size_t k = 0; k < 3; k++) {
        char text[700];
        strcpy(text, odd[k][0]);
        for (int i = 0; i < 340; i++)
            strcat(text, "\xC3\xA9");
        strcat(text, odd[k][1]);
        gy_fail(&err, GANTRY_E_GRAPH, text, "%s", text);
        size_t end = strlen(err.text) - 3;
        ck_assert_str_eq(err.text + end, "...");
        ck_assert_uint_eq((unsigned char)err.text[end - 1], 0xA9);
        ck_assert_uint_eq((unsigned char)err.where[3], 0xC3);
    }
}
END_TEST

START_TEST(messages_are_one_line_and_may_quote_themselves)
{
    gantry_error err;
    gy_fail(&err, GANTRY_E_GRAPH, "/a\nb", "x\ny\x1b[31m");
    ck_assert_str_eq(err.text, "x?y?[31m");
    ck_assert_str_eq(err.where, "/a?b");
    gy_fail(&err, GANTRY_E_MACHINE, err.where, "again: %s", err.text);
    ck_assert_str_eq(line_of(&err), "/a?b: again: x?y?[31m");
    gy_error_locate(&err, "f", 2, 3);
    gy_error_locate(&err, err.file, 4, 5);
    ck_assert_str_eq(err.file, "f");
}
END_TEST

START_TEST(errno_is_named_and_kept)
{
    gantry_error err;
    errno = ENOENT;
    ck_assert_int_eq(gy_fail_errno(&err, "open", "x.json"), GANTRY_E_IO);
    ck_assert_str_eq(err.text, "cannot open x.json: No such file or directory");
    ck_assert_int_eq(err.native, ENOENT);
    ck_assert_int_eq(gy_fail_nomem(&err), GANTRY_E_NOMEM);
    ck_assert_str_eq(err.text, "out of host memory");
}
END_TEST

START_TEST(a_missing_record_is_fine)
{
    ck_assert_int_eq(gy_fail(NULL, GANTRY_E_GRAPH, "/x", "text"), GANTRY_E_GRAPH);
    ck_assert_int_eq(gy_fail_errno(NULL, "open", "x"), GANTRY_E_IO);
    ck_assert_int_eq(gy_fail_nomem(NULL), GANTRY_E_NOMEM);
    gy_error_locate(NULL, "a", 1, 1);
    gantry_free(NULL);
}
END_TEST

START_TEST(small_enumerations_have_names)
{
    ck_assert_str_eq(gantry_dtype_name(GANTRY_F16), "f16");
    ck_assert_str_eq(gantry_dtype_name(GANTRY_BF16), "bf16");
    ck_assert_str_eq(gantry_dtype_name(GANTRY_U64), "u64");
    ck_assert_str_eq(gantry_dtype_name(GANTRY_F8E4M3), "f8e4m3");
    ck_assert_str_eq(gantry_dtype_name(GANTRY_F8E5M2), "f8e5m2");
    ck_assert_uint_eq(gantry_dtype_size(GANTRY_F8E5M2), 1);
    ck_assert_ptr_null(gantry_dtype_name(GANTRY_DTYPE_COUNT));
    ck_assert_ptr_null(gantry_dtype_name((gantry_dtype)-1));
    ck_assert_uint_eq(gantry_dtype_size(GANTRY_BF16), 2);
    ck_assert_uint_eq(gantry_dtype_size(GANTRY_I8), 1);
    ck_assert_uint_eq(gantry_dtype_size(GANTRY_F64), 8);
    ck_assert_uint_eq(gantry_dtype_size(GANTRY_DTYPE_COUNT), 0);
    ck_assert_str_eq(gantry_access_name(GANTRY_READWRITE), "readwrite");
    ck_assert_str_eq(gantry_access_name(GANTRY_PROD), "prod");
    ck_assert_ptr_null(gantry_access_name((gantry_access)0));
    ck_assert_ptr_null(gantry_access_name((gantry_access)8));
    ck_assert_str_eq(gantry_collective_name(GANTRY_ALL_REDUCE), "all_reduce");
    ck_assert_str_eq(gantry_collective_name(GANTRY_ALL_TO_ALL), "all_to_all");
    ck_assert_ptr_null(gantry_collective_name((gantry_collective)0));
    ck_assert_ptr_null(gantry_collective_name((gantry_collective)9));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("errors and names");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, codes_names_and_texts_are_one_list);
    tcase_add_test(tests, a_line_leaves_out_what_is_not_known);
    tcase_add_test(tests, format_counts_like_snprintf);
    tcase_add_test(tests, long_parts_are_cut_where_they_say_least);
    tcase_add_test(tests, cuts_do_not_split_characters);
    tcase_add_test(tests, messages_are_one_line_and_may_quote_themselves);
    tcase_add_test(tests, errno_is_named_and_kept);
    tcase_add_test(tests, a_missing_record_is_fine);
    tcase_add_test(tests, small_enumerations_have_names);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
