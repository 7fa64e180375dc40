/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that several threads make ahead, in parts: each is whole when it is taken, they come in their order, and what
 * is told of those that cannot be made does not depend on which thread was first. */
#include "build.h"
#include "run/feed/ahead.h"
#include "support/faults.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CELLS = 60, SECOND = 1000000000 };

/* Parts take a time that follows from their number, so that they end in another order than they began. */
typedef struct world {
    uint32_t parts;
    long us;                  /* of the longest */
    int64_t bad;              /* parts of arrays from this one on fail, where they are no lower than */
    uint32_t bad_part;        /* this one of it; -1: none */
    bool late;                /* the part that is to be told of ends last */
    atomic_int working, most; /* calls at work, and the most that there were */
    atomic_int calls;
} world;

static void nap(long us)
{
    struct timespec t = { us / 1000000, us % 1000000 * 1000 };
    nanosleep(&t, NULL);
}

static long time_of(const world *w, uint64_t number, uint32_t part)
{
    bool told = w->late && (int64_t)number == w->bad && part == w->bad_part;
    return told ? 20000 : (long)((number * 7 + part * 13) % 11) * w->us / 10;
}

/* Cells of a part: array number * CELLS + cell. */
static gantry_status make(void *user, uint64_t number, uint32_t part, void *to, gantry_error *err)
{
    world *w = user;
    int working = atomic_fetch_add(&w->working, 1) + 1, most = atomic_load(&w->most);
    while (working > most && !atomic_compare_exchange_weak(&w->most, &most, working))
        ;
    nap(time_of(w, number, part));
    for (uint32_t i = part; i < CELLS; i += w->parts)
        ((uint64_t *)to)[i] = number * CELLS + i;
    atomic_fetch_add(&w->calls, 1);
    atomic_fetch_sub(&w->working, 1);
    bool bad = w->bad >= 0 && ((int64_t)number > w->bad || ((int64_t)number == w->bad && part >= w->bad_part));
    if (!bad)
        return GANTRY_OK;
    snprintf(err->text, sizeof err->text, "part %u of %u", (unsigned)part, (unsigned)number);
    return GANTRY_E_IO;
}

static gy_ahead *begin(world *w, uint32_t places, uint32_t threads, uint64_t first)
{
    gy_ahead *a = NULL;
    const gy_ahead_work work = { .make = make, .user = w, .parts = w->parts, .threads = threads };
    MUST(gy_ahead_start(&a, NULL, places, CELLS * sizeof(uint64_t), first, &work, MUST_ERR));
    return a;
}

static void end(gy_ahead *a, const world *w)
{
    gy_ahead_stop(a);
    ck_assert_int_eq(atomic_load(&w->working), 0);
    gy_ahead_free(a);
}

/* The next array; it is given back when `held` more have been taken. */
static void take(gy_ahead *a, uint64_t number, uint64_t first, uint64_t held)
{
    const void *array = NULL;
    ck_assert(gy_ahead_wait(a, 30 * (int64_t)SECOND));
    ck_assert_uint_eq(gy_ahead_taken(a), number);
    MUST(gy_ahead_next(a, &array, MUST_ERR));
    for (uint64_t i = 0; i < CELLS; i++)
        ck_assert_uint_eq(((const uint64_t *)array)[i], number * CELLS + i);
    gy_ahead_take(a);
    gy_ahead_give_back(a, number + 1 >= first + held ? number + 1 - held : first);
}

/* _i: how many parts, threads and places. */
START_TEST(arrays_are_whole_and_in_order)
{
    static const uint32_t parts[] = { 1, 2, 3, 7, 8 }, threads[] = { 1, 2, 5, 8 }, places[] = { 2, 3, 9 };
    world w = { .parts = parts[_i % 5], .us = 150, .bad = -1 };
    uint32_t many = places[_i / 20];
    uint64_t first = (uint64_t)_i * 3;
    gy_ahead *a = begin(&w, many, threads[_i / 5 % 4], first);
    for (uint64_t n = first; n < first + 40; n++)
        take(a, n, first, n % 2 && many > 2 ? 1 : 0);
    end(a, &w);
    ck_assert_int_le(atomic_load(&w.calls), (int)((40 + many) * w.parts)); /* no further than there is room */
}
END_TEST

/* _i 0: one array in eight parts at once; 1: eight arrays of one part. */
START_TEST(threads_work_at_once)
{
    world w = { .parts = _i ? 1 : 8, .us = 3000, .bad = -1 };
    gy_ahead *a = begin(&w, _i ? 8 : 1, 8, 0);
    for (uint64_t n = 0; n < 12; n++)
        take(a, n, 0, 0);
    end(a, &w);
    ck_assert_int_ge(atomic_load(&w.most), 4);
    ck_assert_int_le(atomic_load(&w.most), 8);
}
END_TEST

static void expect_failure(gy_ahead *a, const char *text)
{
    const void *array = NULL;
    gantry_error err = { 0 };
    ck_assert(gy_ahead_wait(a, 30 * (int64_t)SECOND));
    ck_assert_int_eq(gy_ahead_next(a, &array, &err), GANTRY_E_IO);
    ck_assert_str_eq(err.text, text);
}

/* Arrays before it are taken, and the first part that failed is what is told, though those behind it failed earlier. */
START_TEST(the_first_failure_is_told)
{
    world w = { .parts = 4, .us = 100, .bad = 9, .bad_part = (uint32_t)_i % 4, .late = _i >= 4 };
    char text[64];
    gy_ahead *a = begin(&w, 6, 8, 0);
    for (uint64_t n = 0; n < 9; n++)
        take(a, n, 0, 0);
    snprintf(text, sizeof text, "part %d of 9", _i % 4);
    for (int i = 0; i < 3; i++)
        expect_failure(a, text);
    int calls = atomic_load(&w.calls);
    gy_ahead_give_back(a, 9);
    nap(3000);
    ck_assert_int_eq(atomic_load(&w.calls), calls); /* nothing is made any more */
    end(a, &w);
}
END_TEST

START_TEST(ends_at_any_time)
{
    for (int n = 0; n < 30; n++) {
        world w = { .parts = 3, .us = 400, .bad = n % 3 ? -1 : n, .bad_part = 1 };
        gy_ahead *a = begin(&w, 3, 8, 0);
        for (uint64_t i = 0; i < (uint64_t)n && (w.bad < 0 || (int64_t)i < w.bad); i++)
            take(a, i, 0, 0);
        nap(n % 5 * 100);
        end(a, &w);
    }
}
END_TEST

static int begun; /* threads, of a process that may have three */

static int three_threads(void)
{
    return begun++ < 3 ? 0 : EAGAIN;
}

START_TEST(fewer_threads_do)
{
    world w = { .parts = 8, .us = 100, .bad = -1 };
    faults_before_thread(three_threads);
    gy_ahead *a = begin(&w, 2, 8, 0);
    faults_before_thread(NULL);
    for (uint64_t n = 0; n < 20; n++)
        take(a, n, 0, 0);
    end(a, &w);
    ck_assert_int_le(atomic_load(&w.most), 3);
}
END_TEST

START_TEST(a_user_waits_no_longer_than_it_says)
{
    world w = { .parts = 2, .us = 0, .bad = 0, .bad_part = 1, .late = true };
    gy_ahead *a = begin(&w, 2, 2, 0);
    ck_assert(!gy_ahead_wait(a, 1000000));
    expect_failure(a, "part 1 of 0");
    end(a, &w);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ahead");
    TCase *c = tcase_create("ahead");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, arrays_are_whole_and_in_order, 0, 60);
    tcase_add_loop_test(c, threads_work_at_once, 0, 2);
    tcase_add_loop_test(c, the_first_failure_is_told, 0, 8);
    tcase_add_test(c, ends_at_any_time);
    tcase_add_test(c, fewer_threads_do);
    tcase_add_test(c, a_user_waits_no_longer_than_it_says);
    suite_add_tcase(s, c);
    return run_suite(s);
}
