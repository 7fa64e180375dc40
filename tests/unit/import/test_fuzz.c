/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damaged files: whatever a few random changes do to a valid file, importing gives an error with a text or a graph
 * whose normal form can be read and is stable. The numbers come from a fixed seed. Graphviz itself is not started.
 */
#include "suite.h"

#include "base/map.h"
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 1500, MOST_CHANGES = 4, ROOM = 4096 };

static uint64_t state;

static size_t below(size_t n)
{
    state = gy_hash64(state + 0x9e3779b97f4a7c15u);
    return n ? (size_t)(state % n) : 0;
}

static const char *const pieces[] = { "\"",       "{",      "}",         "[",        "]",
                                      ":",        ",",      "0",         "-1",       "9223372036854775807",
                                      "1e308",    "4e18",   "2.5",       "1e-9",     "null",
                                      "true",     "\"A\"",  "[]",        "{}",       "\\u0000",
                                      "\xff",     "\"id\"", "\"tasks\"", "\"cost\"", "\"parents\"",
                                      "\"size\"", " ",      "\n",        "1 2 3",    "#",
                                      "99999999", "nan",    "\"f\"",     "\"1.3\"" };

static void insert(char *text, size_t *length, size_t at, const char *piece, size_t count)
{
    if (*length + count >= ROOM)
        return;
    memmove(text + at + count, text + at, *length - at);
    memcpy(text + at, piece, count);
    *length += count;
}

static void change(char *text, size_t *length)
{
    size_t at = below(*length + 1), count = below(20);
    const char *piece = pieces[below(sizeof pieces / sizeof *pieces)];
    char kept[20];
    count = count < *length - at ? count : *length - at;
    switch (below(5)) {
    case 0: /* leave out some */
        memmove(text + at, text + at + count, *length - at - count);
        *length -= count;
        break;
    case 1:
        insert(text, length, at, piece, strlen(piece));
        break;
    case 2: /* copy some to elsewhere */
        memcpy(kept, text + at, count);
        insert(text, length, below(*length + 1), kept, count);
        break;
    default: /* one character, mostly a digit or letter, so that the file stays well-formed */
        while (at < *length && !strchr("0123456789ABCDabcfghx", text[at]))
            at++;
        if (at < *length)
            text[at] = "0123456789ABCDabcfghx\"-. \n\xff"[below(27)];
    }
}

static bool check_graph(gantry_graph *graph, gantry_machine *machine)
{
    char *first = NULL, *second = NULL;
    size_t length = 0;
    gantry_graph *again = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_graph_json(graph, &first, &length, NULL), GANTRY_OK);
    ck_assert_msg(gantry_graph_parse(&again, first, length, "normal form", NULL, NULL, &err) == GANTRY_OK, "%s in %s",
                  err.text, first);
    ck_assert_int_eq(gantry_graph_json(again, &second, &length, NULL), GANTRY_OK);
    ck_assert_str_eq(first, second);
    gantry_free(first);
    gantry_free(second);
    gantry_graph_free(again);
    gantry_graph_free(graph);
    gantry_machine_free(machine);
    return true;
}

/* true if it is still a graph */
static bool try(const char *format, const char *path, const char *text, size_t length)
{
    gantry_graph *graph = NULL;
    gantry_machine *machine = NULL;
    gantry_error err = { 0 };
    FILE *to = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(text, 1, length, to), length);
    ck_assert_int_eq(fclose(to), 0);
    gantry_status status = gantry_graph_import(&graph, &machine, format, path, NULL, &err);
    if (!status)
        return check_graph(graph, machine);
    ck_assert_msg(status == GANTRY_E_GRAPH || status == GANTRY_E_SYNTAX, "%s: status %d: %s", format, (int)status,
                  err.text);
    ck_assert_str_ne(err.text, "");
    ck_assert_str_eq(err.file, path);
    return false;
}

static void damage(const char *format, const char *whole)
{
    static char text[ROOM];
    char path[] = "/tmp/gantry-import-XXXXXX";
    int graphs = 0;
    ck_assert_int_ge(mkstemp(path), 0);
    for (int i = 0; i < ROUNDS; i++) {
        size_t length = strlen(whole);
        memcpy(text, whole, length);
        for (size_t n = below(MOST_CHANGES) + 1; n > 0; n--)
            change(text, &length);
        if (strcmp(format, "dot") == 0 && text[0] != '{')
            continue;
        graphs += try(format, path, text, length);
    }
    remove(path);
    printf("%s: %d of %d still graphs\n", format, graphs, ROUNDS);
    ck_assert_int_gt(graphs, ROUNDS / 50);
    ck_assert_int_lt(graphs, ROUNDS * 9 / 10);
}

START_TEST(stg)
{
    damage("stg", sample_stg);
}
END_TEST
START_TEST(dnn)
{
    damage("dnn", sample_dnn);
}
END_TEST
START_TEST(dot)
{
    damage("dot", sample_dot);
}
END_TEST
START_TEST(wfcommons)
{
    damage("wfcommons", sample_wfcommons);
}
END_TEST
START_TEST(wfcommons_old)
{
    damage("wfcommons", sample_wfcommons_old);
}
END_TEST

int main(void)
{
    const TTest *cases[] = { stg, dnn, dot, wfcommons, wfcommons_old };
    return RUN_CASES("import_fuzz", cases);
}
