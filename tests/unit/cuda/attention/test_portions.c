/* SPDX-License-Identifier: Apache-2.0 */
/* How scores of an attention are cut, against what each query sees, asked one by one; what a mask saves, as counted by
 * hand. */
#include "backends/cuda/kernels/attention_portions.h"
#include "support/run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)

static gy_attention shape_of(int64_t heads, int64_t shared, int64_t n, int64_t m, int64_t causal)
{
    return (gy_attention){ .n = n,
                           .m = m,
                           .d = 64,
                           .heads = heads,
                           .rows = shared * n,
                           .causal = causal,
                           .scale = 1,
                           .beside = 1,
                           .line = 64,
                           .key_line = 64 };
}

static int64_t portions_of(const gy_attention *a, int64_t size, int64_t *scores)
{
    gy_portions p = gy_portions_of(a, size);
    int64_t count = 0;
    *scores = 0;
    for (gy_portion x = { 0 }; gy_portions_next(&p, &x); count++)
        *scores += x.heads * x.rows * x.keys;
    return count;
}

/* Keys that row r of a head of keys sees, as attention.h has it. */
static int64_t seen(const gy_attention *a, int64_t r)
{
    return a->causal ? a->m - a->n + r % a->n + 1 : a->m;
}

/* The rows are within their head and their keys within what there is; each sees as many as the mask says. */
static void expect_rows(const gy_attention *a, const gy_portion *x)
{
    ck_assert(x->heads > 0 && x->head >= 0 && x->head + x->heads <= a->heads);
    ck_assert(x->rows > 0 && x->row >= 0 && x->row + x->rows <= a->rows && x->keys > 0 && x->keys <= a->m);
    int64_t wrong = 0;
    for (int64_t h = 0; h < 2 && h < x->heads; h++)
        for (int64_t i = 0; i < x->rows; i++) {
            int64_t masked = x->before + (h * x->rows + i) % x->period + 1, sees = seen(a, x->row + i);
            wrong += sees > x->keys || (a->causal && masked != sees);
        }
    ck_assert_int_eq(wrong, 0);
}

static void expect_all(const gy_attention *a, int64_t size)
{
    gy_portions p = gy_portions_of(a, size);
    unsigned char *done = calloc((size_t)(a->heads * a->rows), 1), *begun = calloc((size_t)a->heads, 1);
    int64_t most = 0, twice = 0;
    for (gy_portion x = { 0 }; gy_portions_next(&p, &x);) {
        int64_t bytes = x.heads * x.rows * x.keys * size;
        most = bytes > most ? bytes : most;
        ck_assert_int_le(bytes, x.heads > 1 ? 256 * MIB : 512 * MIB + 128 * x.keys * size);
        expect_rows(a, &x);
        for (int64_t h = x.head; h < x.head + x.heads; h++) {
            ck_assert(begun[h] == x.more && (begun[h] || x.keys == a->m));
            begun[h] = 1;
            for (int64_t r = x.row; r < x.row + x.rows; r++)
                twice += done[h * a->rows + r]++ > 0;
        }
    }
    ck_assert(twice == 0 && !memchr(done, 0, (size_t)(a->heads * a->rows)));
    ck_assert_int_eq(gy_portions_bytes(&p), most);
    free(done);
    free(begun);
}

static int64_t upto(int64_t most)
{
    return 1 + rand() % most;
}

/* Every row once, with the keys that it sees; the first portion of a head has all keys, and only it begins gradients.
 */
START_TEST(every_row_once)
{
    srand(16);
    for (int i = 0; i < 600; i++) {
        int64_t causal = i % 3 > 0, n = upto(i % 2 ? 700 : 6000), m = i % 4 ? n : n + upto(3000), size = i % 5 ? 4 : 8;
        gy_attention a = shape_of(upto(i % 7 ? 40 : 400), i % 6 ? 1 : upto(4), n, m, causal);
        if (!causal && i % 2)
            a.m = upto(n); /* fewer keys than queries */
        ck_assert(gy_portions_fit(&a, size));
        if (a.heads * a.rows <= 1 << 18)
            expect_all(&a, size);
    }
}
END_TEST

/* Scores that would take too much memory are cut with and without a mask; the last has nine heads that share keys. */
START_TEST(large_heads)
{
    static const int64_t shapes[][5] = {
        { 1, 1, 20000, 20000, 0 }, { 3, 1, 30000, 30000, 1 }, { 2, 1, 100, 1000000, 1 },
        { 1, 4, 16384, 16384, 0 }, { 1, 1, 12345, 54321, 1 }, { 1, 9, 4000, 4000, 1 },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t *s = shapes[i];
        gy_attention a = shape_of(s[0], s[1], s[2], s[3], s[4]);
        ck_assert(gy_portions_fit(&a, 4));
        expect_all(&a, 4);
    }
    gy_attention blind = shape_of(1, 1, 9, 8, 1), long_keys = shape_of(1, 1, 1, 1 << 20, 0);
    ck_assert(!gy_portions_fit(&blind, 4));
    ck_assert(gy_portions_fit(&long_keys, 4));
    ck_assert(!gy_portions_fit(&long_keys, 8)); /* 128 rows of them would be 1 GiB */
}
END_TEST

/* Four bands have 1, 2, 3 and 4 of 16 squares, 5/8 of all; two have 3/4. No mask, few or short rows: one band. */
START_TEST(what_a_mask_saves)
{
    static const struct {
        int64_t heads, shared, n, m, causal, of_16;
    } cases[] = { { 16, 1, 4096, 4096, 1, 10 }, { 128, 1, 1024, 1024, 1, 10 }, { 16, 1, 1024, 1024, 1, 12 },
                  { 4, 4, 4096, 4096, 1, 12 },  { 16, 1, 1000, 1000, 1, 16 },  { 16, 1, 4096, 4096, 0, 16 },
                  { 1, 1, 4096, 4096, 1, 16 },  { 1000, 1, 256, 256, 1, 16 },  { 2000, 1, 512, 512, 1, 12 },
                  { 16, 1, 4096, 12288, 1, 0 }, { 64, 8, 300, 300, 1, 16 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gy_attention a = shape_of(cases[i].heads, cases[i].shared, cases[i].n, cases[i].m, cases[i].causal);
        int64_t scores, all = a.heads * a.rows * a.m, many = portions_of(&a, 4, &scores);
        /* behind 8192 keys that all see, 5/8 of the last third is computed: 42 of 48 */
        ck_assert_msg(cases[i].of_16 ? scores * 16 == all * cases[i].of_16 : scores * 48 == all * 42, "case %d: %g",
                      (int)i, (double)scores / (double)all);
        ck_assert_int_le(many, 2 * (all * 4 / (256 * MIB) + 8)); /* not many small ones */
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("portions of attention");
    TCase *tests = tcase_create("portions");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, every_row_once);
    tcase_add_test(tests, large_heads);
    tcase_add_test(tests, what_a_mask_saves);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
