/* SPDX-License-Identifier: Apache-2.0 */
/* Free time of a device, against a plain array of ticks. */
#include "suite.h"

#include "base/map.h"
#include "scheduler/place/gaps.h"

enum { SPAN = 400, DEEP = 40 };

typedef struct taken {
    gy_ticks begin, length;
} taken;

static gy_ticks find_slowly(const bool *busy, gy_ticks ready, gy_ticks length)
{
    for (gy_ticks begin = ready;; begin++) {
        gy_ticks t = 0;
        while (t < length && (begin + t >= SPAN || !busy[begin + t]))
            t++;
        if (t == length)
            return begin;
    }
}

static void mark(bool *busy, const taken *t, bool value)
{
    for (gy_ticks i = 0; i < t->length; i++)
        busy[t->begin + i] = value;
}

START_TEST(gaps_agree_with_an_array)
{
    bool busy[SPAN] = { false };
    gy_gaps g;
    uint64_t state = (uint64_t)_i;
    ck_assert(gy_gaps_init(&g));
    for (int i = 0; i < 200; i++) {
        gy_ticks ready = (gy_ticks)(gy_hash64(++state) % (SPAN - 60)), length = 1 + (gy_ticks)(gy_hash64(++state) % 9);
        gy_ticks begin = gy_gaps_find(&g, ready, length);
        ck_assert_int_eq(begin, find_slowly(busy, ready, length));
        if (begin + length > SPAN)
            continue;
        ck_assert(gy_gaps_take(&g, begin, length));
        mark(busy, &(taken){ begin, length }, true);
    }
    gy_gaps_free(&g);
}
END_TEST

/* Taking and giving back in turn. */
START_TEST(giving_back_undoes_taking)
{
    bool busy[SPAN] = { false };
    taken stack[DEEP];
    int depth = 0, given = 0;
    uint64_t state = (uint64_t)_i;
    gy_gaps g;
    ck_assert(gy_gaps_init(&g));
    for (int i = 0; i < 2000; i++) {
        gy_ticks ready = (gy_ticks)(gy_hash64(++state) % (SPAN - 60)), length = (gy_ticks)(gy_hash64(++state) % 12);
        taken t = { gy_gaps_find(&g, ready, length), length };
        if (length)
            ck_assert_int_eq(t.begin, find_slowly(busy, ready, length));
        if (depth < DEEP && t.begin + length <= SPAN && gy_hash64(++state) % 5 < 3) {
            ck_assert(gy_gaps_take(&g, t.begin, t.length));
            mark(busy, &t, true);
            stack[depth++] = t;
        } else if (depth) {
            t = stack[--depth];
            gy_gaps_give(&g, t.begin, t.length);
            mark(busy, &t, false);
            given++;
        }
    }
    while (depth) {
        depth--;
        gy_gaps_give(&g, stack[depth].begin, stack[depth].length);
    }
    ck_assert_int_eq(gy_gaps_find(&g, 0, GY_TICKS_MAX), 0); /* one gap again */
    ck_assert_int_gt(given, 500);
    gy_gaps_free(&g);
}
END_TEST

START_TEST(an_op_without_a_length_takes_nothing)
{
    gy_gaps g;
    ck_assert(gy_gaps_init(&g));
    ck_assert(gy_gaps_take(&g, 10, 5));
    ck_assert_int_eq(gy_gaps_find(&g, 10, 0), 10); /* at the edge of what is taken */
    ck_assert_int_eq(gy_gaps_find(&g, 12, 0), 15);
    ck_assert(gy_gaps_take(&g, 15, 0));
    ck_assert_int_eq(gy_gaps_find(&g, 12, 4), 15);
    gy_gaps_free(&g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gaps");
    TCase *c = tcase_create("gaps");
    tcase_add_loop_test(c, gaps_agree_with_an_array, 0, 50);
    tcase_add_loop_test(c, giving_back_undoes_taking, 0, 40);
    tcase_add_test(c, an_op_without_a_length_takes_nothing);
    suite_add_tcase(s, c);
    return run_suite(s);
}
