/* SPDX-License-Identifier: Apache-2.0 */
/* Values of an output in the report: all of a few, of many what they are like. */
#include "results.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>

enum { FEW = 16, BLOCK = 4096 }; /* elements that are shown one by one; that are added up before the next are */

/* Doubles do not tell neighbouring integers of 64 bits apart. */
static bool is_below(const array *a, uint64_t i, double x, uint64_t than, double y)
{
    if (x != y || i == than)
        return x < y;
    if (a->dtype == GANTRY_I64)
        return ((const int64_t *)a->data)[i] < ((const int64_t *)a->data)[than];
    return a->dtype == GANTRY_U64 && ((const uint64_t *)a->data)[i] < ((const uint64_t *)a->data)[than];
}

/* Elements `first` on, whose least or highest may be those of the array. */
static void find_ends(summary *s, const array *a, uint64_t first, const double *x, int count)
{
    for (int k = 0; k < count; k++) {
        uint64_t i = first + (uint64_t)k;
        if (!isfinite(x[k]))
            continue;
        if (!isfinite(s->low) || is_below(a, i, x[k], s->low_at, s->low)) {
            s->low = x[k];
            s->low_at = i;
        }
        if (!isfinite(s->high) || is_below(a, s->high_at, s->high, i, x[k])) {
            s->high = x[k];
            s->high_at = i;
        }
    }
}

/* Adds a block of elements; its mean's share of the array's is returned. Each is scaled by `scale` before it is added,
 * so that no sum of finite ones is infinite. */
static double add_block(summary *s, const array *a, uint64_t first, const double *x, int count, double scale)
{
    double sum = 0, low = INFINITY, high = -INFINITY;
    uint64_t nans = 0, finite = 0;
    for (int k = 0; k < count; k++) {
        bool fine = fabs(x[k]) <= DBL_MAX;
        nans += isnan(x[k]) != 0;
        finite += fine;
        sum += fine ? x[k] * scale : 0;
        low = fine && x[k] < low ? x[k] : low;
        high = fine && x[k] > high ? x[k] : high;
    }
    s->nans += nans;
    s->finite += finite;
    s->infinities += (uint64_t)count - nans - finite;
    if (low <= s->low || high >= s->high)
        find_ends(s, a, first, x, count);
    return sum;
}

/* Sums of blocks are added: the error grows with the length of a block and the number of blocks, not with the product
 * of both. */
summary summarize_array(const array *a)
{
    double mean = 0, block[BLOCK];
    summary s = { .low = INFINITY, .high = -INFINITY };
    for (uint64_t first = 0; first < a->count; first += BLOCK) {
        int count = a->count - first < BLOCK ? (int)(a->count - first) : BLOCK;
        for (int k = 0; k < count; k++)
            block[k] = element_real(a->data, a->dtype, first + (uint64_t)k);
        mean += add_block(&s, a, first, block, count, 1 / (double)a->count);
    }
    s.mean = s.finite ? mean * ((double)a->count / (double)s.finite) : 0;
    return s;
}

static void print_summary(FILE *to, const array *a)
{
    char low[ELEMENT_TEXT], high[ELEMENT_TEXT];
    summary s = summarize_array(a);
    if (s.finite)
        fprintf(to, "  min %s, mean %.6g, max %s", element_text(low, a, s.low_at), s.mean,
                element_text(high, a, s.high_at));
    else
        fprintf(to, "  no finite value");
    if (s.nans)
        fprintf(to, ", %" PRIu64 " NaN", s.nans);
    if (s.infinities)
        fprintf(to, ", %" PRIu64 " infinite", s.infinities);
    fprintf(to, "\n");
}

/* One line, or one for each row of a matrix, its columns below each other. */
static void print_few(FILE *to, const array *a)
{
    char text[ELEMENT_TEXT];
    uint64_t columns = a->rank == 2 ? (uint64_t)a->shape[1] : a->count;
    int width = 0;
    for (uint64_t i = 0; i < a->count; i++) {
        int length = snprintf(NULL, 0, "%s", element_text(text, a, i));
        width = length > width ? length : width;
    }
    for (uint64_t i = 0; i < a->count; i++) {
        bool row = columns < a->count && i % columns == 0;
        fputs(row ? "\n       " : i ? " " : "  ", to);
        fprintf(to, "%*s", columns < a->count ? width + row : 0, element_text(text, a, i));
    }
    fprintf(to, "\n");
}

void print_values(FILE *to, const array *a)
{
    fprintf(to, "      ");
    print_shape(to, a);
    if (a->count <= FEW)
        print_few(to, a);
    else
        print_summary(to, a);
}
