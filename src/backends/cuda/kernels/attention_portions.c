/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Under a causal mask a band has the keys that its last row sees, and no others: with b bands (b + 1) / 2b of all
 * scores are computed. There are as many as save much of them while y and dq, whose rows are the band's, keep a GPU
 * busy. Then as many heads are taken together as have 256 MiB of scores: portions of 64, of which more would stay in
 * the GPU's cache, take 1.1 to 1.3 times as long on an H200, probably since their products have few tiles.
 */
#include "backends/cuda/kernels/attention_portions.h"
#include "backends/cuda/kernels/image.h"

#include <limits.h>

enum {
    AT_A_TIME = 256 << 20,  /* bytes of scores, if heads have fewer */
    MOST_BYTES = 512 << 20, /* of scores of a band of one head, about */
    EDGE = 128,             /* bands begin at multiples of it: a tile of cuBLAS */
    MOST_BANDS = 4,         /* for a mask; twice as many would save a 10th of the scores, and are slower */
    LEAST_ROWS = 2 * EDGE,  /* of a band for a mask, in a head, */
    ROWS_IN_ALL = 8192      /* and in all heads of keys */
};

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool gy_portions_fit(const gy_attention *a, int64_t size)
{
    return a->rows <= INT_MAX && a->m <= MOST_BYTES / EDGE / size && (!a->causal || a->n <= a->m);
}

/* Without a mask, and where one band is enough, heads of queries that share keys are one matrix. */
gy_portions gy_portions_of(const gy_attention *a, int64_t size)
{
    gy_portions p = { .of = *a, .size = size };
    int64_t bands = least_of(MOST_BANDS, least_of(a->n / LEAST_ROWS, a->heads * a->n / ROWS_IN_ALL));
    bands = a->causal && bands > 1 ? bands : 1;
    bool by_head = a->causal && (bands > 1 || a->rows * a->m * size > MOST_BYTES);
    p.lines = by_head ? a->n : a->rows;
    int64_t least = gy_tiles(p.lines * a->m * size, MOST_BYTES);
    bands = least > bands ? least : bands;
    p.high = gy_tiles(gy_tiles(p.lines, bands), EDGE) * EDGE;
    return p;
}

/* Portions of a band have about as many heads each. */
static int64_t heads_at_a_time(const gy_portions *p, const gy_portion *x)
{
    int64_t fit = AT_A_TIME / (x->rows * x->keys * p->size);
    return gy_tiles(p->of.heads, gy_tiles(p->of.heads, fit > 1 ? fit : 1));
}

/* Of the band that begins at row `first` of the lines that begin at row `line`, from a head on. */
static gy_portion portion_of(const gy_portions *p, int64_t first, int64_t line, int64_t head)
{
    const gy_attention *a = &p->of;
    gy_portion x = { .head = head, .row = line + first, .rows = least_of(p->lines - first, p->high) };
    x.before = x.row % a->n + a->m - a->n;
    x.period = least_of(x.rows, a->n);
    x.keys = a->causal && x.rows <= a->n ? x.before + x.rows : a->m;
    x.heads = least_of(a->heads - head, heads_at_a_time(p, &x));
    x.more = first + p->high < p->lines || line > 0;
    return x;
}

/* The last band comes first, as its rows see all keys. */
bool gy_portions_next(const gy_portions *p, gy_portion *x)
{
    int64_t first = (p->lines - 1) / p->high * p->high, line = 0, head = 0;
    if (x->heads) {
        first = x->row % p->lines;
        line = x->row - first;
        head = x->head + x->heads;
    }
    if (head == p->of.heads) {
        head = 0;
        line += p->lines;
    }
    if (line == p->of.rows) {
        line = 0;
        first -= p->high;
    }
    if (first >= 0)
        *x = portion_of(p, first, line, head);
    return first >= 0;
}

int64_t gy_portions_bytes(const gy_portions *p)
{
    int64_t most = 0;
    for (gy_portion x = { 0 }; gy_portions_next(p, &x);) {
        int64_t bytes = x.heads * x.rows * x.keys * p->size;
        most = bytes > most ? bytes : most;
    }
    return most;
}
