/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damaged files: whatever a few random changes do to a valid graph, reading it gives a graph or an error with a place,
 * and a graph that is read writes a normal form that is stable. The numbers come from a fixed seed.
 */
#include "base/file.h"
#include "base/map.h"
#include "suite.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 600, MOST_CHANGES = 4, MOST_NODES = 2000 };

static uint64_t state;

static size_t below(size_t n)
{
    state = gy_hash64(state + 0x9e3779b97f4a7c15u);
    return n ? (size_t)(state % n) : 0;
}

/* Pieces that mean something to the reader. */
static const char *const pieces[] = {
    "\"",      "{",         "}",          "[",        "]",
    ":",       ",",         "0",          "-1",       "9223372036854775807",
    "1e308",   "2.5",       "null",       "true",     "\"x\"",
    "[]",      "{}",        "~",          "*",        "i",
    "it",      "p",         "(",          ")",        "//",
    "clamp(",  "devices",   "\\u0000",    "\xff",     "\"id\"",
    "\"for\"", "\"nodes\"", "\"repeat\"", "\"init\"", "\"iota\"",
    " ",       "\n",        "gemm",       "f32",      "1:2",
    "sum",     "3 4",       "[[[[",       "a[b[c]]",
};

static const char letters[] = "ijkpnx0123456789*:~[]{}()+-/%. ,";

static void change(char *text, size_t *length, size_t capacity)
{
    size_t at = below(*length + 1), count, room = capacity - 1 - *length;
    const char *piece;
    switch (below(10)) {
    case 0: /* cut off the rest */
        *length = at;
        break;
    case 1: /* one byte */
        if (at < *length)
            text[at] = (char)below(256);
        break;
    case 2: /* leave out some */
        count = below(20);
        count = count < *length - at ? count : *length - at;
        memmove(text + at, text + at + count, *length - at - count);
        *length -= count;
        break;
    case 3: /* put in a piece */
        piece = pieces[below(sizeof pieces / sizeof *pieces)];
        count = strlen(piece) < room ? strlen(piece) : 0;
        memmove(text + at + count, text + at, *length - at);
        memcpy(text + at, piece, count);
        *length += count;
        break;
    case 4: /* put a piece over what is there */
        piece = pieces[below(sizeof pieces / sizeof *pieces)];
        count = strlen(piece) < *length - at ? strlen(piece) : 0;
        memcpy(text + at, piece, count);
        break;
    case 5: /* copy some from elsewhere */
        count = below(40);
        count = count < room ? count : 0;
        size_t from = below(*length - (count < *length ? count : *length) + 1);
        if (count <= *length) {
            char kept[40];
            memcpy(kept, text + from, count);
            memmove(text + at + count, text + at, *length - at);
            memcpy(text + at, kept, count);
            *length += count;
        }
        break;
    default: /* a letter or digit, for one that has a meaning in references and expressions: most stay JSON */
        while (at < *length && !isalnum((unsigned char)text[at]))
            at++;
        if (at < *length)
            text[at] = letters[below(sizeof letters - 1)];
    }
    text[*length] = '\0';
}

static size_t read_well, refused;

static void check_text(const char *text, size_t length, const char *origin)
{
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    gantry_graph *g = NULL;
    gantry_error err;
    options.max_nodes = MOST_NODES;
    gantry_status status = gantry_graph_parse(&g, text, length, "damaged", "/nowhere", &options, &err);
    if (status == GANTRY_OK) {
        read_well++;
        check_stable(g);
        gantry_graph_free(g);
        return;
    }
    refused++;
    ck_assert(g == NULL);
    if (status != GANTRY_E_NOMEM) {
        ck_assert_msg(err.line > 0 && err.column > 0, "no place: %s: %s: %s\nfrom %s:\n%s", err.file, err.where,
                      err.text, origin, text);
        ck_assert_msg(err.text[0] != '\0', "no text");
    }
}

static void damage(const char *path)
{
    char *text;
    size_t length;
    ck_assert_int_eq(gy_file_read(&text, &length, path, NULL), GANTRY_OK);
    size_t capacity = length + 4096;
    char *changed = malloc(capacity);
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = length;
        memcpy(changed, text, length + 1);
        for (size_t n = 1 + below(MOST_CHANGES); n > 0; n--)
            change(changed, &size, capacity);
        check_text(changed, size, path);
    }
    free(changed);
    gy_free(text);
}

START_TEST(graphs)
{
    state = 1;
    read_well = refused = 0;
    each_json("graphs", damage);
    each_json("graphs/reference", damage);
    printf("%zu damaged files were graphs, %zu were refused\n", read_well, refused);
    ck_assert_uint_gt(read_well, 100);
    ck_assert_uint_gt(refused, 1000);
}
END_TEST

START_TEST(mistakes)
{
    state = 2;
    read_well = refused = 0;
    each_json("graphs/invalid", damage);
    ck_assert_uint_gt(refused, 1000);
}
END_TEST

static const char everything[] =
    "{\"gantry\": 1, \"name\": \"g\", \"params\": {\"p\": 4, \"q\": \"p+1\", \"r\": 0.5}, \"machine\": {\"a\": [1, "
    "2.5]},\n"
    "\"kernels\": {\"mine\": {\"args\": [{\"name\": \"x\", \"access\": [\"read\", \"sum\"], \"dtype\": [\"f32\", "
    "\"f64\"], \"same\": \"T\", \"list\": true}, "
    "{\"name\": \"k\", \"type\": \"f32\", \"default\": 3}],\n"
    "\"launch\": {\"grid\": [\"x.size\"], \"block\": [64, 2]}, \"cost\": {\"flops\": \"x.size*p\", \"bytes\": 8}, "
    "\"scratch\": 8, \"variadic\": true, \"pure\": false}},\n"
    "\"buffers\": {\"x\": {\"dtype\": \"f32\", \"shape\": [\"2*p\"], \"split\": \"p\", \"init\": {\"random\": "
    "{\"seed\": 3}}, \"output\": true},\n"
    "\"y\": {\"dtype\": \"f32\", \"shape\": [8], \"split\": \"p\", \"init\": \"iota\", \"check\": {\"rtol\": 0.1}}, "
    "\"f\": {\"dtype\": \"i32\", \"shape\": [1], \"class\": \"state\", \"init\": 0},\n"
    "\"A\": {\"dtype\": \"f64\", \"shape\": [6, 6], \"tiles\": [2, 3], \"init\": {\"spd\": {\"seed\": 1}}}, \"u\": "
    "{\"dtype\": \"u8\", \"shape\": [9], \"split\": {\"auto\": 3}}},\n"
    "\"nodes\": [{\"repeat\": 2, \"carry\": {\"x\": \"y\"}, \"until\": {\"buffer\": \"f\", \"every\": 2}, \"nodes\": "
    "[\n"
    "{\"id\": \"a[i]\", \"for\": {\"i\": \"0:p:1\"}, \"if\": \"i != 1\", \"kernel\": \"mine\", \"args\": {\"x\": "
    "\"x[i]\", \"k\": \"it+i\"}, \"on\": \"i % devices\", \"access\": {\"x\": \"sum\"}},\n"
    "{\"id\": \"b\", \"work\": {}, \"reads\": [{\"for\": {\"i\": \"p\"}, \"ref\": \"clamp(x[i-1:i+2])\"}], \"writes\": "
    "[\"y\", {\"sum\": \"f\"}], \"after\": [\"a[i]\"], \"with\": \"a[0]\", \"apart\": \"a[2]\", \"cost\": "
    "{\"time_us\": {\"P1\": 1}, \"flops\": 3}}]},\n"
    "{\"id\": \"t\", \"kernel\": \"mine\", \"args\": {\"x\": \"A[*][1]\", \"k\": {\"dynamic\": 1}}, \"priority\": 3, "
    "\"share\": 0.5, \"scratch\": 64},\n"
    "{\"id\": \"f\", \"fill\": {\"to\": \"u[1]~1\", \"value\": 3}}, {\"id\": \"cp\", \"copy\": {\"from\": \"x{0:2}\", "
    "\"to\": \"y[1]\"}},\n"
    "{\"id\": \"c\", \"collective\": \"all_reduce\", \"op\": \"sum\", \"in\": [\"x[0]\", \"x[1]\"], \"out\": "
    "[\"x[0]\", \"x[1]\"], \"algorithm\": \"auto\"}]}\n";

/* Every place a file can be cut off at. */
START_TEST(truncated)
{
    for (size_t length = 0; length < strlen(everything) - 2; length++) {
        refused = 0;
        check_text(everything, length, "everything");
        ck_assert_uint_eq(refused, 1);
    }
    gantry_graph_free(graph_of(everything));
}
END_TEST

START_TEST(everything_damaged)
{
    size_t capacity = sizeof everything + 4096;
    char *changed = malloc(capacity);
    state = 3;
    for (int round = 0; round < 10 * ROUNDS; round++) {
        size_t size = strlen(everything);
        memcpy(changed, everything, size + 1);
        for (size_t n = 1 + below(2); n > 0; n--)
            change(changed, &size, capacity);
        check_text(changed, size, "everything");
    }
    free(changed);
}
END_TEST

int main(void)
{
    const TTest *const cases[] = { graphs, mistakes, truncated, everything_damaged };
    return RUN_CASES("damaged graph files", cases);
}
