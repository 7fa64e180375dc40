/* SPDX-License-Identifier: Apache-2.0 */
/* The offset packer against a published example, hand-made edges, and exhaustive search on small instances. */
#include "scheduler/pack/offsets.h"

#include "base/map.h"
#include "support/run_suite.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

#define MOST  64
#define STEPS UINT64_C(2000000) /* of the search: seconds */

static bool meet(const gy_offset_item *a, const gy_offset_item *b)
{
    return a->first < b->last && b->first < a->last && a->first < a->last && b->first < b->last;
}

/* No two that meet overlap, everything is aligned, and the peak is what is said. */
static void check_offsets(const gy_offset_item *item, size_t count, const uint64_t *offset, const gy_offset_answer *a)
{
    uint64_t peak = 0;
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(item[i].align ? offset[i] % item[i].align : 0, 0);
        uint64_t top = offset[i] + item[i].size;
        peak = top > peak ? top : peak;
        for (size_t k = 0; k < i; k++)
            ck_assert_msg(!meet(&item[i], &item[k]) || top <= offset[k] || offset[k] + item[k].size <= offset[i],
                          "items %zu and %zu overlap", k, i);
    }
    ck_assert_uint_eq(peak, a->peak);
    ck_assert(a->load <= a->peak);
}

static gy_offset_answer find(const gy_offset_item *item, size_t count, uint64_t capacity, uint64_t budget)
{
    uint64_t offset[MOST], again[MOST];
    gy_offset_answer a, b;
    gantry_error err;
    ck_assert_int_eq(gy_offsets_find(item, count, capacity, budget, offset, &a, &err), GANTRY_OK);
    ck_assert_int_eq(gy_offsets_find(item, count, capacity, budget, again, &b, &err), GANTRY_OK);
    ck_assert_mem_eq(offset, again, count * sizeof *offset);
    ck_assert_uint_eq(a.steps, b.steps);
    check_offsets(item, count, offset, &a);
    ck_assert(a.fits == (a.peak <= capacity));
    ck_assert(!(a.fits && a.proved));
    return a;
}

/* The example of the MiniMalloc paper: five buffers that fit 12, which is what is there at one time. */
START_TEST(the_published_example_fits_its_load)
{
    static const gy_offset_item item[] = {
        { 0, 3, 4, 1 }, { 3, 9, 4, 1 }, { 0, 9, 4, 1 }, { 9, 21, 4, 1 }, { 0, 21, 4, 1 }
    };
    gy_offset_answer a = find(item, 5, 12, STEPS);
    ck_assert(a.fits);
    ck_assert_uint_eq(a.peak, 12);
    ck_assert_uint_eq(a.load, 12);
    ck_assert(find(item, 5, 11, STEPS).proved);
}
END_TEST

START_TEST(edges)
{
    static const gy_offset_item empty[] = { { 5, 5, 7, 1 }, { 9, 2, 3, 1 } }, nothing[] = { { 0, 9, 0, 1 } },
                                one[] = { { INT64_MIN, INT64_MAX, 10, 0 } },
                                touch[] = { { -4, 0, 10, 1 }, { 0, 3, 10, 1 }, { 3, 4, 10, 1 } };
    ck_assert_uint_eq(find(NULL, 0, 0, 9).peak, 0);
    ck_assert_uint_eq(find(empty, 2, 7, 9).peak, 7); /* never there, but they must fit by themselves */
    ck_assert(!find(empty, 2, 6, 9).fits);
    ck_assert(find(nothing, 1, 0, 9).fits);
    ck_assert(find(one, 1, 10, 9).fits);
    ck_assert(find(one, 1, 9, 9).proved);
    ck_assert_uint_eq(find(touch, 3, 10, 9).peak, 10); /* half open: they share the bytes */
    ck_assert(find(touch, 3, 0, 9).proved);
}
END_TEST

/* Two of 3 bytes at multiples of 4, and one of 1: 4 + 3 bytes, the byte goes into the gap. */
START_TEST(alignment_leaves_gaps_that_are_used)
{
    static const gy_offset_item item[] = { { 0, 2, 3, 4 }, { 0, 2, 3, 4 }, { 0, 2, 1, 1 } };
    gy_offset_answer a = find(item, 3, 7, 1000);
    ck_assert_uint_eq(a.peak, 7);
    ck_assert_uint_eq(a.load, 7);
}
END_TEST

START_TEST(sizes_beyond_all_measure_are_refused)
{
    static const gy_offset_item item[] = { { 0, 1, UINT64_C(1) << 61, 1 }, { 0, 1, UINT64_C(1) << 61, 1 } };
    uint64_t offset[2];
    gy_offset_answer a;
    gantry_error err;
    ck_assert_int_eq(gy_offsets_find(item, 2, UINT64_MAX, 1, offset, &a, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "sizes up to item 1 add up to 2^62 bytes or more; at most 2^62 - 1 can be placed");
    ck_assert_int_eq(gy_offsets_find(item, 1, UINT64_MAX, 1, offset, &a, &err), GANTRY_OK);
}
END_TEST

/* ---- against exhaustive search: every offset of every item ---- */

static bool exhaust(const gy_offset_item *item, size_t count, uint64_t capacity, uint64_t *offset, size_t n)
{
    if (n == count)
        return true;
    for (offset[n] = 0; offset[n] + item[n].size <= capacity; offset[n] += item[n].align) {
        size_t k = 0;
        while (k < n && (!meet(&item[n], &item[k]) || offset[n] + item[n].size <= offset[k] ||
                         offset[k] + item[k].size <= offset[n]))
            k++;
        if (k == n && exhaust(item, count, capacity, offset, n + 1))
            return true;
    }
    return false;
}

/* No capacity is enough that is less than what is there at one time, which is the most when an item begins. */
static uint64_t most_at_once(const gy_offset_item *item, size_t count)
{
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t there = 0;
        for (size_t k = 0; k < count; k++)
            there += item[k].first <= item[i].first && item[i].first < item[k].last ? item[k].size : 0;
        most = there > most ? there : most;
    }
    return most;
}

static uint64_t least_peak(const gy_offset_item *item, size_t count)
{
    uint64_t capacity = most_at_once(item, count), offset[MOST];
    while (!exhaust(item, count, capacity, offset, 0))
        capacity++;
    return capacity;
}

static size_t random_items(uint64_t seed, gy_offset_item *item)
{
    uint64_t state = gy_hash64(seed + 1);
#define PICK(n) ((int64_t)((state = gy_hash64(state + 0x1234567)) % (uint64_t)(n)))
    size_t count = (size_t)(2 + PICK(6));
    int64_t times = 2 + PICK(9), sizes = 1 + PICK(6), aligns = PICK(3) ? 1 : 4;
    for (size_t i = 0; i < count; i++) {
        int64_t first = PICK(times), last = first + 1 + PICK(times - first);
        uint64_t size = (uint64_t)(1 + PICK(sizes));
        item[i] = (gy_offset_item){ first, last, size, (uint64_t)(1 + PICK(aligns)) };
    }
#undef PICK
    return count;
}

START_TEST(small_ones_are_solved_exactly)
{
    enum { INSTANCES = 3000 };
    int above_load = 0, searched = 0;
    for (uint64_t seed = 0; seed < INSTANCES; seed++) {
        gy_offset_item item[MOST];
        size_t count = random_items(seed, item);
        uint64_t least = least_peak(item, count);
        gy_offset_answer a = find(item, count, least, STEPS);
        ck_assert_msg(a.fits, "seed %llu: %llu bytes are enough, found %llu", (unsigned long long)seed,
                      (unsigned long long)least, (unsigned long long)a.peak);
        ck_assert_uint_eq(a.peak, least);
        searched += a.steps > 0;
        above_load += least > a.load;
        a = find(item, count, least - 1, STEPS);
        ck_assert_msg(a.proved, "seed %llu: not proved", (unsigned long long)seed);
        ck_assert(a.peak >= least);
    }
    printf("%d instances, %d above their load, greedy was not enough for %d\n", INSTANCES, above_load, searched);
    ck_assert(above_load > 20 && searched > 20);
}
END_TEST

/* Budget 0 is greedy alone, and a budget that is too small gives the best of greedy. */
START_TEST(greedy_gives_something_valid)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        gy_offset_item item[MOST];
        uint64_t state = gy_hash64(seed);
        for (size_t i = 0; i < MOST; i++) {
            state = gy_hash64(state + 1);
            int64_t first = (int64_t)(state % 40);
            item[i] = (gy_offset_item){ first, first + 1 + (int64_t)(state >> 8 & 15), state >> 16 & 1023, 1 };
        }
        gy_offset_answer greedy = find(item, MOST, 0, 0), little = find(item, MOST, greedy.load, 3);
        ck_assert_uint_eq(greedy.steps, 0);
        ck_assert(little.steps <= 3);
        ck_assert_uint_eq(little.peak, little.fits ? greedy.load : greedy.peak);
    }
}
END_TEST

/* Stretches of time that nothing reaches out of are solved one by one: a thousand copies of a puzzle cost a thousand
 * times one. */
START_TEST(independent_stretches_do_not_multiply)
{
    enum { PIECES = 500 };
    static gy_offset_item item[PIECES * 7];
    static uint64_t offset[PIECES * 7];
    gy_offset_item one[MOST];
    size_t count = 0;
    uint64_t seed = 0, least = 0;
    for (; seed < 3000; seed++) { /* a puzzle that greedy does not solve */
        count = random_items(seed, one);
        least = least_peak(one, count);
        if (find(one, count, least, 0).peak > least)
            break;
    }
    ck_assert(seed < 3000);
    for (size_t p = 0; p < PIECES; p++)
        for (size_t i = 0; i < count; i++) {
            item[p * count + i] = one[i];
            item[p * count + i].first += (int64_t)p * 1000;
            item[p * count + i].last += (int64_t)p * 1000;
        }
    gy_offset_answer a;
    gantry_error err;
    ck_assert_int_eq(gy_offsets_find(item, PIECES * count, least, STEPS, offset, &a, &err), GANTRY_OK);
    ck_assert(a.fits);
    ck_assert_uint_eq(a.peak, least);
}
END_TEST

/* Times that are far apart, or near, in the same order. */
static int64_t stretched(int64_t time)
{
    return time * time * time * 7 + time;
}

START_TEST(the_unit_of_time_does_not_matter)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        gy_offset_item item[MOST], other[MOST];
        uint64_t offset[MOST], offset2[MOST];
        gy_offset_answer a, b;
        size_t count = random_items(seed, item);
        for (size_t i = 0; i < count; i++) {
            other[i] = item[i];
            other[i].first = stretched(item[i].first);
            other[i].last = stretched(item[i].last);
        }
        uint64_t least = least_peak(item, count);
        ck_assert_int_eq(gy_offsets_find(item, count, least, STEPS, offset, &a, NULL), GANTRY_OK);
        ck_assert_int_eq(gy_offsets_find(other, count, least, STEPS, offset2, &b, NULL), GANTRY_OK);
        ck_assert_mem_eq(offset, offset2, count * sizeof *offset);
        ck_assert_uint_eq(a.steps, b.steps);
    }
}
END_TEST

/* Layers of a network: most tensors live for a few layers, some until the way back. */
START_TEST(many_are_tried_in_all_orders)
{
    enum { MANY = 9000 };
    static gy_offset_item item[MANY];
    static uint64_t offset[MANY];
    gy_offset_answer a;
    for (int i = 0; i < MANY; i++) {
        uint64_t random = gy_hash64((uint64_t)i + 1);
        int64_t life = random % 8 ? 1 + (int64_t)(random >> 8) % 40 : 1 + (int64_t)(random >> 8) % 3000;
        item[i] = (gy_offset_item){ i, i + life, 1 + (random >> 32) % (random % 5 ? 64 : 4096), 1 };
    }
    ck_assert_int_eq(gy_offsets_find(item, MANY, 0, 0, offset, &a, NULL), GANTRY_OK);
    size_t overlaps = 0; /* an assertion for each of 40 million pairs would take a minute */
    for (size_t i = 0; i < MANY; i++)
        for (size_t k = 0; k < i; k++)
            overlaps += meet(&item[i], &item[k]) && offset[i] < offset[k] + item[k].size &&
                        offset[k] < offset[i] + item[i].size;
    ck_assert_uint_eq(overlaps, 0);
    printf("%d items: %.4f of the load\n", MANY, (double)a.peak / (double)a.load);
    ck_assert_uint_le(a.peak * 100, a.load * 107); /* in the order of beginnings alone: 117 */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("offsets");
    TCase *c = tcase_create("offsets");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, the_published_example_fits_its_load);
    tcase_add_test(c, edges);
    tcase_add_test(c, alignment_leaves_gaps_that_are_used);
    tcase_add_test(c, sizes_beyond_all_measure_are_refused);
    tcase_add_test(c, small_ones_are_solved_exactly);
    tcase_add_test(c, greedy_gives_something_valid);
    tcase_add_test(c, independent_stretches_do_not_multiply);
    tcase_add_test(c, the_unit_of_time_does_not_matter);
    tcase_add_test(c, many_are_tried_in_all_orders);
    suite_add_tcase(s, c);
    return run_suite(s);
}
