/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Running out of memory at every single place: the first allocation fails, then the second, and so on until the work
 * gets through. Each failure must be reported as such, leave nothing behind, and not spoil what was there before.
 */
#include "base/arena.h"
#include "base/expr.h"
#include "base/file.h"
#include "base/imap.h"
#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/text.h"
#include "base/vec.h"
#include "suite.h"
#include "support/survive.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool fill_vec(void)
{
    GY_VEC(int) v = { 0 };
    int i = 0;
    while (i < 100 && gy_vec_push(&v, i))
        i++;
    ck_assert_uint_eq(v.count, (size_t)i);
    for (int k = 0; k < i; k++)
        ck_assert_int_eq(v.at[k], k);
    gy_vec_free(&v);
    return i == 100;
}

/* So many that they are not put in order in place. */
static bool sort_many(void)
{
    uint32_t item[1000];
    int64_t key[1000];
    for (uint32_t i = 0; i < 1000; i++) {
        item[i] = i;
        key[i] = 1000 - i;
    }
    bool fine = gy_sort_by_key(item, key, 1000);
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(item[i], fine ? 999 - i : i);
    return fine;
}

static bool fill_map(void)
{
    gy_map map = { 0 };
    uint64_t i = 0, value;
    while (i < 200 && gy_map_put(&map, i, i * 3))
        i++;
    ck_assert_uint_eq(map.count, i);
    for (uint64_t k = 0; k < 200; k++) {
        ck_assert(gy_map_get(&map, k, &value) == (k < i));
        ck_assert(k >= i || value == k * 3);
    }
    gy_map_free(&map);
    return i == 200;
}

static bool fill_imap(void)
{
    gy_imap map;
    if (!gy_imap_init(&map, 0, 1000, 1))
        return false;
    bool fine = true;
    for (int64_t i = 0; fine && i < 100; i++) {
        uint32_t before = map.count;
        fine = gy_imap_cut(&map, i * 10 + 3, i * 10 + 7) != GY_IMAP_NONE;
        ck_assert_uint_eq(map.count, fine ? before + 2 : before);
    }
    int64_t at = 0;
    for (uint32_t i = gy_imap_find(&map, 0); i != GY_IMAP_NONE; i = gy_imap_next(&map, i)) {
        ck_assert_int_eq(map.at[i].first, at);
        at = map.at[i].last;
    }
    ck_assert_int_eq(at, 1000);
    gy_imap_free(&map);
    return fine;
}

static bool fill_arena(void)
{
    gy_arena arena = { 0 };
    bool fine = true;
    for (int i = 0; fine && i < 100; i++) {
        fine = gy_arena_alloc(&arena, 1000) && gy_arena_strdup(&arena, "text") && gy_arena_calloc(&arena, 10, 3000) &&
               gy_arena_printf(&arena, "%d", i);
    }
    gy_arena_free(&arena);
    return fine;
}

static bool fill_names(void)
{
    gy_names names = { 0 };
    uint32_t i = 0;
    char name[20];
    for (; i < 100; i++) {
        snprintf(name, sizeof name, "name%" PRIu32, i);
        bool isnew = false;
        uint32_t index = gy_names_add(&names, name, &isnew);
        if (index == GY_NO_NAME) {
            ck_assert_uint_eq(gy_names_find(&names, name), GY_NO_NAME);
            break;
        }
        ck_assert(index == i && isnew);
    }
    ck_assert_uint_eq(names.count, i);
    for (uint32_t k = 0; k < i; k++) {
        snprintf(name, sizeof name, "name%" PRIu32, k);
        ck_assert_uint_eq(gy_names_find(&names, name), k);
    }
    gy_names_free(&names);
    return i == 100;
}

static bool build_text(void)
{
    gy_text text = { 0 };
    for (int i = 0; i < 20; i++) {
        gy_text_add(&text, "some words");
        gy_text_printf(&text, "%*d", 100, i);
        gy_text_json(&text, "a\n\"b\"");
        gy_text_xml(&text, "<&>");
        gy_text_double(&text, 0.1);
    }
    bool was_failed = text.failed;
    char *all = gy_text_take(&text, NULL);
    ck_assert(was_failed == !all);
    ck_assert(!text.at && !text.failed); /* ready again */
    gy_free(all);
    return all != NULL;
}

static bool copy_strings(void)
{
    char *a = gy_strdup("a"), *b = gy_strndup("bcd", 2), *c = gy_path_join("folder", "name");
    char *d = gy_path_folder("folder/name"), *e = gy_path_join(NULL, "name"), *f = gy_path_folder("name");
    bool fine = a && b && c && d && e && f;
    gy_free(a);
    gy_free(b);
    gy_free(c);
    gy_free(d);
    gy_free(e);
    gy_free(f);
    return fine;
}

static bool look_up(void *context, const char *name, int64_t *integer, double *real, bool *is_real)
{
    (void)context;
    *integer = name[0];
    *real = name[0];
    *is_real = false;
    return true;
}

/* A fresh arena whose only block is full at every other step, so that each allocation in it can be the one that fails.
 */
static bool use_expr(size_t waste)
{
    static const char text[] =
        "min(a, -b, 3.5) + (c // 2 - -1) * clamp(d, 0, not (e and 12 or -x.y)) - 1 == ceil_div(a, b)";
    gantry_error err;
    gy_arena arena = { 0 };
    gy_text printed = { 0 };
    const gy_expr *e;
    if (!gy_arena_alloc(&arena, waste))
        return false;
    gantry_status status = gy_expr_parse(&e, &arena, text, sizeof text - 1, GANTRY_E_GRAPH, "/x", &err);
    ck_assert(status == GANTRY_OK || (status == GANTRY_E_NOMEM && err.status == GANTRY_E_NOMEM));
    bool fine = status == GANTRY_OK;
    if (fine) {
        const gy_expr *bound = gy_expr_bind(e, &arena, look_up, NULL);
        fine = bound != NULL;
        gy_expr_print(&printed, bound ? bound : e);
        char *all = gy_text_take(&printed, NULL);
        fine = fine && all;
        gy_free(all);
    }
    gy_arena_free(&arena);
    return fine;
}

static size_t expr_waste;

static bool use_expr_in_a_full_arena(void)
{
    return use_expr(expr_waste);
}

static bool use_files(void)
{
    char path[64], *text = NULL;
    size_t length;
    snprintf(path, sizeof path, "/tmp/gantry-nomem-%ld", (long)getpid());
    gantry_error err;
    gantry_status status = gy_file_write(path, "hello", 5, &err);
    ck_assert(status == GANTRY_OK || (status == GANTRY_E_NOMEM && err.status == GANTRY_E_NOMEM));
    if (status)
        return false;
    status = gy_file_read(&text, &length, path, &err);
    unlink(path);
    ck_assert(status == GANTRY_OK || (status == GANTRY_E_NOMEM && err.status == GANTRY_E_NOMEM));
    gy_free(text);
    return status == GANTRY_OK;
}

static bool parse_json(void)
{
    static const char text[] = "{\"a\": [1, 2.5, \"three\", null, {\"b\": true}], \"c\": \"\\u00e9\"}";
    gantry_error err;
    json_t *root = NULL;
    gantry_status status = gy_json_parse(&root, text, sizeof text - 1, "g.json", "a", &err);
    ck_assert(status == GANTRY_OK || root == NULL);
    /* jansson itself takes a key or a word that it had no memory for to be bad syntax. */
    ck_assert(status == GANTRY_OK || status == GANTRY_E_NOMEM || status == GANTRY_E_SYNTAX);
    json_decref(root);
    return status == GANTRY_OK;
}

START_TEST(arrays)
{
    assert_survives(fill_vec, 3);
}
END_TEST
START_TEST(maps)
{
    assert_survives(fill_map, 4);
}
END_TEST
START_TEST(interval_maps)
{
    assert_survives(fill_imap, 6);
}
END_TEST
START_TEST(arenas)
{
    assert_survives(fill_arena, 30);
}
END_TEST
START_TEST(names)
{
    assert_survives(fill_names, 8);
}
END_TEST
START_TEST(sorting)
{
    assert_survives(sort_many, 1);
}
END_TEST
START_TEST(texts)
{
    assert_survives(build_text, 5);
}
END_TEST
START_TEST(strings)
{
    assert_survives(copy_strings, 6);
}
END_TEST
START_TEST(files)
{
    assert_survives(use_files, 2);
}
END_TEST

START_TEST(expressions)
{
    for (expr_waste = 1; expr_waste < 4097; expr_waste += 15)
        assert_survives(use_expr_in_a_full_arena, 2);
}
END_TEST

/* The JSON library allocates by itself, and has a hook of its own. */
START_TEST(json)
{
    json_set_alloc_funcs(faults_malloc, faults_free);
    assert_survives(parse_json, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("out of memory");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, arrays);
    tcase_add_test(tests, maps);
    tcase_add_test(tests, interval_maps);
    tcase_add_test(tests, arenas);
    tcase_add_test(tests, names);
    tcase_add_test(tests, sorting);
    tcase_add_test(tests, texts);
    tcase_add_test(tests, strings);
    tcase_add_test(tests, files);
    tcase_add_test(tests, expressions);
    tcase_add_test(tests, json);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
