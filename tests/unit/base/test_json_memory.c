/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that jansson asks for: where any of it is refused, the text is not called wrong. */
#include "base/json.h"
#include "suite.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static long left, held;
static bool once; /* a single piece is refused, else that and all after it */

/* Full of zeros, so that what is read too far is the same each time. */
static void *give(size_t size)
{
    void *memory = left > 0 || (once && left < 0) ? calloc(1, size) : NULL;
    errno = memory ? errno : ENOMEM; /* as POSIX has it of malloc */
    left--;
    held += memory != NULL;
    return memory;
}

static void take(void *memory)
{
    held -= memory != NULL;
    free(memory);
}

/* Long strings make the lexer's buffer grow, many keys the tables of objects. */
static char *long_text(void)
{
    gy_text to = { 0 };
    gy_text_add(&to, "{\"text\": \"");
    for (int i = 0; i < 300; i++)
        gy_text_add(&to, "word \\u00e9 \\n ");
    gy_text_add(&to, "\", \"keys\": {");
    for (int i = 0; i < 100; i++)
        gy_text_printf(&to, "%s\"key %d\": [%d, %d.5, true]", i ? ", " : "", i, i, i);
    gy_text_add(&to, "}}");
    return gy_text_take(&to, NULL);
}

/* How many allocations reading takes; each of them was refused once, and said to be that. */
static long refuse_each(const char *text, gantry_status outcome)
{
    for (long n = 0; n < 100000; n++) {
        gantry_error err = { 0 };
        json_t *root = NULL;
        left = n;
        held = 0;
        gantry_status status = gy_json_parse(&root, text, strlen(text), "x.json", "a", &err);
        bool refused = left < 0;
        json_decref(root);
        ck_assert_int_eq(held, 0);
        if (!refused) {
            ck_assert_int_eq(status, outcome);
            return n;
        }
        ck_assert_msg(status == GANTRY_E_NOMEM, "allocation %ld of \"%.30s\": %s: %s", n, text,
                      gantry_status_name(status), err.text);
    }
    return -1;
}

START_TEST(refused_memory_is_out_of_memory)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "[1, 2.5, -3e10, true, false, null, \"x\"]",
        "{\"a\": {\"b\": [{\"c\": \"d\"}]}}",
        "{\"1234567890123456789012345678901234567890\": 1.2345678901234567890123456789012345678901234567890}",
    };
    char *text = long_text();
    once = _i;
    json_set_alloc_funcs(give, take);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_int_gt(refuse_each(texts[i], GANTRY_OK), 1);
    ck_assert_int_gt(refuse_each(text, GANTRY_OK), 500);
    json_set_alloc_funcs(malloc, free);
    free(text);
}
END_TEST

/* The last byte of a token may be the one for which jansson's buffer has to grow: tokens of all lengths, the longest
 * somewhere in between. */
START_TEST(tokens_of_all_lengths)
{
    once = _i;
    json_set_alloc_funcs(give, take);
    for (int length = 1; length < 140; length++) {
        gy_text to = { 0 };
        gy_text_printf(&to, "{\"%0*d\": [\"%0*d\", 1%0*d]}", length, 7, length, 7, length % 18 + 1, 7);
        refuse_each(to.at, GANTRY_OK);
        gy_text_free(&to);
    }
    json_set_alloc_funcs(malloc, free);
}
END_TEST

/* A wrong text is still called wrong once there is memory for finding that out. */
START_TEST(refused_memory_hides_no_mistake)
{
    static const char *const texts[] = {
        "{\"a\": }", "{\"a\": 1, \"a\": 2}", "[1, 2", "\"\\u12\"", "[1e999]", "{\"a\" 1}", ""
    };
    json_set_alloc_funcs(give, take);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        refuse_each(texts[i], GANTRY_E_SYNTAX);
    json_set_alloc_funcs(malloc, free);
}
END_TEST

static long given;

/* As malloc does where the program's break cannot grow, under valgrind for one: it finds another way, and leaves errno.
 */
static void *give_in_spite(size_t size)
{
    if (++given > 50) /* the lexer's buffer, which has grown by then, has nothing else to tell by (json_load.c) */
        errno = ENOMEM;
    return calloc(1, size);
}

START_TEST(what_malloc_leaves_in_errno_is_no_refusal)
{
    char *text = long_text();
    gantry_error err = { 0 };
    json_t *root = NULL;
    given = 0;
    json_set_alloc_funcs(give_in_spite, free);
    ck_assert_msg(gy_json_parse(&root, text, strlen(text), "x.json", "a", &err) == GANTRY_OK, "%s", err.text);
    ck_assert_uint_eq(json_array_size(json_object_get(json_object_get(root, "keys"), "key 99")), 3);
    ck_assert_int_gt(given, 500);
    json_decref(root);
    json_set_alloc_funcs(malloc, free);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json_memory");
    TCase *t = tcase_create("json_memory");
    tcase_add_loop_test(t, refused_memory_is_out_of_memory, 0, 2);
    tcase_add_loop_test(t, tokens_of_all_lengths, 0, 2);
    tcase_add_test(t, refused_memory_hides_no_mistake);
    tcase_add_test(t, what_malloc_leaves_in_errno_is_no_refusal);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
