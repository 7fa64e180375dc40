/* SPDX-License-Identifier: Apache-2.0 */
/* Taking and giving back in turn, against a plain array of ticks. */
#include "../scheduler/suite.h"

#include "base/map.h"
#include "scheduler/place/gaps.h"

enum { SPAN = 300, DEEP = 40 };

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

int main(void)
{
    Suite *s = suite_create("give");
    TCase *c = tcase_create("give");
    tcase_add_loop_test(c, giving_back_undoes_taking, 0, 40);
    suite_add_tcase(s, c);
    return run_suite(s);
}
