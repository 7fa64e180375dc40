/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of memories against arrays of flags, at random, below and above the number of bits in a word. */
#include "scheduler/place/memory_sets.h"
#include "suite.h"

#include <string.h>

enum { MOST = 300, KEPT = 24, STEPS = 400 };

typedef struct flags {
    uint64_t set;
    bool has[MOST], marked;
} flags;

static const uint32_t sizes[] = { 1, 5, 61, 62, 63, 64, 65, 127, 128, 129, MOST };

static uint32_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(*state >> 33);
}

static void compare(const gy_memory_sets *s, const flags *f)
{
    uint32_t count = 0;
    for (uint32_t m = 0; m < s->memories; m++) {
        ck_assert_int_eq(gy_set_has(s, f->set, m), f->has[m]);
        count += f->has[m];
    }
    ck_assert_int_eq(gy_set_several(s, f->set), count > 1);
    ck_assert_int_eq((f->set & ~GY_MEMORY_SET_MARK) == 0, count == 0);
    ck_assert_int_eq((f->set & GY_MEMORY_SET_MARK) != 0, f->marked);
}

static flags change(gy_memory_sets *s, const flags *kept, uint64_t *state)
{
    flags made = kept[draw(state) % KEPT];
    const flags *other = &kept[draw(state) % KEPT];
    uint32_t memory = draw(state) % s->memories;
    switch (draw(state) % 6) {
    case 0:
        made.set = gy_set_without(s, made.set, memory);
        made.has[memory] = false;
        break;
    case 1:
        made.set |= GY_MEMORY_SET_MARK;
        made.marked = true;
        break;
    case 2:
        made = (flags){ .set = gy_set_one(s, memory) };
        made.has[memory] = true;
        break;
    case 3:
        made.set = gy_set_common(s, made.set, other->set);
        made.marked = made.marked && other->marked;
        for (uint32_t m = 0; m < s->memories; m++)
            made.has[m] = made.has[m] && other->has[m];
        break;
    default:
        made.set = gy_set_union(s, made.set, other->set);
        made.marked = made.marked || other->marked;
        for (uint32_t m = 0; m < s->memories; m++)
            made.has[m] = made.has[m] || other->has[m];
    }
    return made;
}

/* Equal sets are one number. */
START_TEST(as_flags_say)
{
    static flags kept[KEPT];
    gy_memory_sets s;
    uint64_t state = (uint64_t)_i + 1;
    memset(kept, 0, sizeof kept);
    gy_memory_sets_make(&s, sizes[_i]);
    for (int i = 0; i < STEPS; i++) {
        uint32_t at = draw(&state) % KEPT, other = draw(&state) % KEPT;
        kept[at] = change(&s, kept, &state);
        compare(&s, &kept[at]);
        bool same =
            memcmp(kept[at].has, kept[other].has, sizeof kept[at].has) == 0 && kept[at].marked == kept[other].marked;
        ck_assert_int_eq(same, kept[at].set == kept[other].set);
    }
    flags all = { .set = gy_set_all(&s) };
    memset(all.has, true, sizeof all.has);
    compare(&s, &all);
    ck_assert(!s.failed);
    gy_memory_sets_free(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory_sets");
    TCase *c = tcase_create("memory_sets");
    tcase_add_loop_test(c, as_flags_say, 0, sizeof sizes / sizeof *sizes);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
