/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damaged schedule files: the reader refuses them with a place, or what it makes of them can be written, read again to
 * the same bytes, described, counted and checked without harm. Meant for AddressSanitizer.
 */
#include "property/mutants/mutants.h"
#include "schedule/check/verify.h"
#include "support/run_suite.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 120, DAMAGES = 150 };

typedef struct tally {
    uint32_t syntax, refused, accepted, right;
} tally;

/* Everything that looks at a schedule from a file before it has a graph, and the checker. */
static void use(const gantry_schedule *s, const gantry_graph *g, tally *t)
{
    gantry_error err = { 0 };
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    gy_text text = { 0 };
    char *first, *second;
    size_t n, m;
    ck_assert_int_eq(gantry_schedule_summarize(s, &sum, &err), GANTRY_OK);
    for (uint32_t i = 0; i < s->ops.count; i++)
        gy_op_text(&text, s, i);
    gy_text_free(&text);
    for (uint32_t i = 0; i < s->node_ids.count; i++)
        ck_assert_int_lt(gantry_schedule_device_of(s, (gantry_node){ .id = i }), (int)s->machine->devices);
    ck_assert_int_eq(gantry_schedule_json(s, &first, &n, &err), GANTRY_OK);
    gantry_schedule *again = NULL;
    ck_assert_msg(gantry_schedule_parse(&again, first, n, "again", &err) == GANTRY_OK, "%s", err.text);
    ck_assert_int_eq(gantry_schedule_json(again, &second, &m, &err), GANTRY_OK);
    ck_assert(n == m && memcmp(first, second, n) == 0);
    gantry_schedule_free(again);
    gantry_free(first);
    gantry_free(second);
    t->right += gy_schedule_verify(s, g, &err) == GANTRY_OK;
}

static void read(const char *text, size_t length, const gantry_graph *g, tally *t)
{
    gantry_error err = { 0 };
    gantry_schedule *s = NULL;
    gantry_status status = gantry_schedule_parse(&s, text, length, "fuzz.json", &err);
    if (status == GANTRY_OK) {
        t->accepted++;
        use(s, g, t);
        gantry_schedule_free(s);
        return;
    }
    t->syntax += status == GANTRY_E_SYNTAX;
    t->refused += status != GANTRY_E_SYNTAX;
    ck_assert_msg(status == GANTRY_E_SYNTAX || status == GANTRY_E_SCHEDULE || status == GANTRY_E_MACHINE, "%s",
                  err.text);
    ck_assert_msg(err.line > 0 && err.column > 0 && err.file[0], "no place: %s: %s", err.where, err.text);
}

static size_t find_from(const char *text, size_t length, size_t at, const char *set)
{
    for (size_t i = 0; i < length; i++) {
        size_t k = (at + i) % length;
        if (strchr(set, text[k]))
            return k;
    }
    return 0;
}

/* Replaces a number by another, often one that sits on an edge. `text` has room for 24 bytes more. */
static size_t change_number(rng *r, char *text, size_t length)
{
    static const char *const numbers[] = { "0",
                                           "1",
                                           "2",
                                           "3",
                                           "-1",
                                           "255",
                                           "256",
                                           "65536",
                                           "4294967295",
                                           "4294967296",
                                           "4611686018427387904",
                                           "9223372036854775807",
                                           "-9223372036854775808",
                                           "1.5",
                                           "1e9" };
    const char *to = numbers[rng_below(r, 15)];
    size_t from = find_from(text, length, rng_below(r, (uint32_t)length), "0123456789"), end = from, n = strlen(to);
    while (end < length && strchr("0123456789", text[end]))
        end++;
    memmove(text + from + n, text + end, length - end);
    memcpy(text + from, to, n);
    return length - (end - from) + n;
}

/* Copies a short piece over another place, or cuts one out. */
static size_t splice(rng *r, char *text, size_t length)
{
    size_t n = 1 + rng_below(r, 40), from = rng_below(r, (uint32_t)(length - n)),
           to = rng_below(r, (uint32_t)(length - n));
    if (rng_chance(r, 50)) {
        memmove(text + to, text + from, n);
        return length;
    }
    memmove(text + from, text + from + n, length - from - n);
    return length - n;
}

/* Two words that are keys or names change places. */
static size_t change_word(rng *r, char *text, size_t length)
{
    static const char *const words[] = { "\"read\"",       "\"write\"",       "\"sum\"",   "\"slab\"",
                                         "\"output\"",     "\"persist\"",     "\"copy\"",  "\"data\"",
                                         "\"collective\"", "\"accumulator\"", "\"event\"", "\"input\"" };
    const char *from = words[rng_below(r, 12)], *to = words[rng_below(r, 12)];
    text[length] = 0;
    char *at = strstr(text + rng_below(r, (uint32_t)length), from);
    if (!at)
        return length;
    size_t n = strlen(from), m = strlen(to);
    memmove(at + m, at + n, length - (size_t)(at + n - text));
    memcpy(at, to, m);
    return length - n + m;
}

static size_t damage(rng *r, char *text, size_t length)
{
    switch (rng_below(r, 12)) {
    case 0:
        return rng_below(r, (uint32_t)length);
    case 1:
        text[rng_below(r, (uint32_t)length)] = (char)rng_below(r, 256);
        return length;
    case 2:
        text[find_from(text, length, rng_below(r, (uint32_t)length), "{}[],:\"")] = "{}[],:\""[rng_below(r, 7)];
        return length;
    case 3:
        return splice(r, text, length);
    case 4:
    case 5:
    case 6:
        return change_word(r, text, length);
    default:
        return change_number(r, text, length);
    }
}

START_TEST(test_damaged_files)
{
    tally t = { 0 };
    uint32_t files = 0;
    for (uint64_t seed = 1; files < FILES; seed++) {
        rng r = { seed };
        uint32_t devices = 1 + rng_below(&r, 3);
        gantry_graph *g = make_graph(&r, devices);
        gantry_machine *m = g ? make_machine(&r, devices) : NULL;
        gantry_schedule *s = g ? make_schedule(&r, g, m) : NULL;
        char *text = NULL;
        size_t length = 0;
        if (s) {
            ck_assert_int_eq(gantry_schedule_json(s, &text, &length, NULL), GANTRY_OK);
            files++;
        }
        for (int i = 0; s && i < DAMAGES; i++) {
            char *mutant = malloc(length + 64);
            memcpy(mutant, text, length);
            size_t n = damage(&r, mutant, length);
            char *exact = malloc(n ? n : 1); /* so that reading behind the end is seen */
            memcpy(exact, mutant, n);
            read(exact, n, g, &t);
            free(exact);
            free(mutant);
        }
        gantry_free(text);
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    printf("%u files, %u damages: %u no JSON, %u refused, %u accepted, of which %u right\n", files, files * DAMAGES,
           t.syntax, t.refused, t.accepted, t.right);
    ck_assert_uint_gt(t.syntax, 1000);
    ck_assert_uint_gt(t.refused, 1000);
    ck_assert_uint_gt(t.accepted, 1000);
    ck_assert_uint_gt(t.accepted, t.right);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule files");
    TCase *tc = tcase_create("fuzz");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_damaged_files);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
