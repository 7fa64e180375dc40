/* SPDX-License-Identifier: Apache-2.0 */
#include "base/imap.h"

#include "suite.h"

enum { DOMAIN = 3000 };

/* The same map as a plain array: a payload and "a boundary is before this point" for every point of the domain. */
typedef struct model {
    uint64_t payload[DOMAIN];
    bool starts[DOMAIN + 1];
} model;

static uint64_t halve(void *context, uint64_t payload)
{
    ++*(int *)context;
    return payload + 1000;
}

/* Every key is the lowest below its child, and everything is there once. Returns how many intervals are below. */
static uint32_t check_page(const gy_imap *map, uint32_t page, uint32_t depth)
{
    const gy_imap_page *p = &map->page_[page];
    uint32_t count = 0;
    assert_quietly(p->count >= 1 && p->count <= GY_IMAP_FAN);
    for (uint32_t k = 0; k < p->count; k++) {
        assert_quietly(k == 0 || p->key[k - 1] < p->key[k]);
        uint32_t low = p->child[k];
        assert_quietly((depth ? map->page_[low].key[0] : map->at[low].first) == p->key[k]);
        count += depth ? check_page(map, low, depth - 1) : 1;
    }
    return count;
}

static void check_tree(const gy_imap *map)
{
    if (map->pages_)
        ck_assert_uint_eq(check_page(map, map->root_, map->depth_), map->count);
}

/* The whole map against the model, walking and finding; its tree against its rules. */
static void assert_equal(const gy_imap *map, const model *m)
{
    uint32_t count = 0, i = gy_imap_find(map, 0);
    int64_t at = 0;
    while (i != GY_IMAP_NONE) {
        assert_quietly(map->at[i].first == at && at < map->at[i].last && m->starts[at]);
        for (; at < map->at[i].last; at++) {
            assert_quietly(m->payload[at] == map->at[i].payload);
            assert_quietly(m->starts[at] == (at == map->at[i].first));
            assert_quietly(gy_imap_find(map, at) == i);
        }
        count++;
        i = gy_imap_next(map, i);
    }
    ck_assert_int_eq(at, DOMAIN);
    ck_assert_uint_eq(count, map->count);
    check_tree(map);
    ck_assert_uint_eq(gy_imap_find(map, -1), GY_IMAP_NONE);
    ck_assert_uint_eq(gy_imap_find(map, DOMAIN), GY_IMAP_NONE);
}

static void model_cut(model *m, int64_t point, int *cuts)
{
    if (point == DOMAIN || m->starts[point])
        return;
    m->starts[point] = true;
    ++*cuts;
    uint64_t payload = m->payload[point] + 1000;
    do {
        m->payload[point++] = payload;
    } while (point < DOMAIN && !m->starts[point]);
}

static void model_join(model *m, int64_t first, int64_t last)
{
    for (int64_t i = first > 1 ? first : 1; i <= last && i < DOMAIN; i++)
        if (m->starts[i] && m->payload[i] == m->payload[i - 1])
            m->starts[i] = false;
}

static void random_step(gy_imap *map, model *m, uint64_t *state, int *cuts)
{
    int64_t a = (int64_t)(next_random(state) % DOMAIN), b = (int64_t)(next_random(state) % DOMAIN);
    int64_t first = a < b ? a : b, last = (a < b ? b : a) + 1;
    if (next_random(state) % 16) /* short ones make many */
        last = last < first + 1 + b % 40 ? last : first + 1 + b % 40;
    if (next_random(state) % 4 == 0) {
        gy_imap_join(map, first, last);
        model_join(m, first, last);
        return;
    }
    uint32_t i = gy_imap_cut(map, first, last);
    model_cut(m, first, cuts);
    model_cut(m, last, cuts);
    assert_quietly(i != GY_IMAP_NONE && map->at[i].first == first);
    uint64_t payload = next_random(state) % 5;
    int64_t end = first;
    for (; i != GY_IMAP_NONE && map->at[i].first < last; i = gy_imap_next(map, i)) {
        map->at[i].payload = payload;
        end = map->at[i].last;
    }
    ck_assert_int_eq(end, last);
    for (int64_t p = first; p < last; p++)
        m->payload[p] = payload;
}

START_TEST(random_cuts_and_joins_equal_an_array)
{
    uint64_t state = 88172645463325252u + (uint64_t)_i;
    model m = { .starts[0] = true };
    gy_imap map;
    int cuts = 0, seen = 0;
    uint32_t most = 0;
    ck_assert(gy_imap_init(&map, 0, DOMAIN, 0));
    map.on_cut = halve;
    map.context = &seen;
    for (int step = 0; step < 3000; step++) {
        random_step(&map, &m, &state, &cuts);
        most = map.count > most ? map.count : most;
        if (step % 37 == 0)
            assert_equal(&map, &m);
    }
    assert_equal(&map, &m);
    ck_assert_uint_gt(most, 300); /* a tree of some depth */
    ck_assert_int_eq(seen, cuts);
    gy_imap_join(&map, 0, DOMAIN);
    model_join(&m, 0, DOMAIN);
    assert_equal(&map, &m);
    gy_imap_free(&map);
}
END_TEST

START_TEST(cutting_keeps_the_index_of_the_lower_half)
{
    gy_imap map;
    ck_assert(gy_imap_init(&map, 10, 20, 7));
    uint32_t whole = gy_imap_find(&map, 10);
    uint32_t middle = gy_imap_cut(&map, 13, 17);
    ck_assert_uint_eq(gy_imap_find(&map, 10), whole);
    ck_assert_int_eq(map.at[whole].last, 13);
    ck_assert_int_eq(map.at[middle].first, 13);
    ck_assert_int_eq(map.at[middle].last, 17);
    ck_assert_uint_eq(map.at[gy_imap_next(&map, middle)].payload, 7);
    ck_assert_uint_eq(gy_imap_cut(&map, 13, 17), middle);
    ck_assert_uint_eq(map.count, 3);
    gy_imap_free(&map);
}
END_TEST

START_TEST(joining_takes_in_both_ends)
{
    gy_imap map;
    ck_assert(gy_imap_init(&map, 0, 10, 1));
    ck_assert_uint_ne(gy_imap_cut(&map, 4, 6), GY_IMAP_NONE);
    gy_imap_join(&map, 5, 5); /* no boundary at 5 */
    ck_assert_uint_eq(map.count, 3);
    gy_imap_join(&map, 4, 6);
    ck_assert_uint_eq(map.count, 1);
    ck_assert_int_eq(map.at[gy_imap_find(&map, 9)].first, 0);
    gy_imap_free(&map);
}
END_TEST

START_TEST(wide_and_empty_domains)
{
    gy_imap map;
    ck_assert(gy_imap_init(&map, INT64_MIN, INT64_MAX, 5));
    ck_assert_uint_ne(gy_imap_cut(&map, -1, 1), GY_IMAP_NONE);
    ck_assert_uint_eq(map.count, 3);
    gy_imap_join(&map, INT64_MIN, INT64_MAX);
    ck_assert_uint_eq(map.count, 1);
    gy_imap_free(&map);
    ck_assert(gy_imap_init(&map, 3, 3, 5));
    ck_assert_uint_eq(gy_imap_find(&map, 3), GY_IMAP_NONE);
    gy_imap_join(&map, 3, 3);
    gy_imap_free(&map);
}
END_TEST

/* In order from either side, and all over. */
START_TEST(a_hundred_thousand_cuts_stay_shallow)
{
    gy_imap map;
    const int64_t n = 100000;
    ck_assert(gy_imap_init(&map, 0, n, 0));
    for (int64_t i = 0; i < n; i++) {
        int64_t at = _i == 0 ? i : _i == 1 ? n - 1 - i : (i * 7919) % n;
        assert_quietly(gy_imap_cut(&map, at, at + 1) != GY_IMAP_NONE);
    }
    ck_assert_uint_eq(map.count, (uint32_t)n);
    check_tree(&map);
    ck_assert_uint_le(map.depth_ + 1, 5); /* pages at least half full: log16(n / 2) = 3.9, and one for a root of few */
    gy_imap_join(&map, 0, n);
    ck_assert_uint_eq(map.count, 1);
    gy_imap_free(&map);
}
END_TEST

START_TEST(the_same_steps_give_the_same_indices)
{
    gy_imap maps[2];
    for (int k = 0; k < 2; k++) {
        uint64_t state = 42;
        ck_assert(gy_imap_init(&maps[k], 0, 1000, 0));
        for (int step = 0; step < 500; step++) {
            int64_t first = (int64_t)(next_random(&state) % 999);
            uint32_t cut = gy_imap_cut(&maps[k], first, first + 1);
            maps[k].at[cut].payload = next_random(&state) % 2;
            gy_imap_join(&maps[k], first / 2, first);
        }
    }
    ck_assert_uint_eq(maps[0].used_, maps[1].used_);
    for (int64_t p = 0; p < 1000; p++)
        ck_assert_uint_eq(gy_imap_find(&maps[0], p), gy_imap_find(&maps[1], p));
    gy_imap_free(&maps[0]);
    gy_imap_free(&maps[1]);
}
END_TEST

/* Payloads are those of a plain array; intervals are as long as they can be. */
START_TEST(setting_and_filling_equal_an_array)
{
    uint64_t state = 42, plain[DOMAIN] = { 0 };
    gy_imap map;
    ck_assert(gy_imap_init(&map, 0, DOMAIN, 0));
    ck_assert(gy_imap_set(&map, 7, 7, 9));
    ck_assert_uint_eq(map.count, 1);
    for (int step = 0; step < 400; step++) {
        int64_t first = (int64_t)(next_random(&state) % DOMAIN), last = first + 1 + (int64_t)(next_random(&state) % 90);
        uint64_t payload = next_random(&state) % 4;
        bool fill = next_random(&state) % 2;
        last = last < DOMAIN ? last : DOMAIN;
        ck_assert((fill ? gy_imap_fill : gy_imap_set)(&map, first, last, payload));
        for (int64_t p = first; p < last; p++)
            plain[p] = fill && plain[p] ? plain[p] : payload;
    }
    uint32_t runs = 1;
    for (int64_t p = 0; p < DOMAIN; p++) {
        ck_assert_uint_eq(map.at[gy_imap_find(&map, p)].payload, plain[p]);
        runs += p > 0 && plain[p] != plain[p - 1];
    }
    ck_assert_uint_eq(map.count, runs);
    gy_imap_free(&map);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interval map");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, random_cuts_and_joins_equal_an_array, 0, 8);
    tcase_add_test(tests, cutting_keeps_the_index_of_the_lower_half);
    tcase_add_test(tests, joining_takes_in_both_ends);
    tcase_add_test(tests, wide_and_empty_domains);
    tcase_add_loop_test(tests, a_hundred_thousand_cuts_stay_shallow, 0, 3);
    tcase_add_test(tests, the_same_steps_give_the_same_indices);
    tcase_add_test(tests, setting_and_filling_equal_an_array);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
