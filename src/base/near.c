/* SPDX-License-Identifier: Apache-2.0 */
/* Near misses: the optimal string alignment distance (Damerau-Levenshtein where no piece is edited twice). */
#include "base/text.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 127 }; /* a typing error changes no more, and the rows stay on the stack */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* One row of the table from the two before it; `i` letters of the word are taken. */
static void next_row(int *row, const int *above, const int *above2, const char *word, int i, const char *other, int n)
{
    row[0] = i;
    for (int j = 1; j <= n; j++) {
        int cost = word[i - 1] != other[j - 1];
        row[j] = least(least(above[j] + 1, row[j - 1] + 1), above[j - 1] + cost);
        if (i > 1 && j > 1 && word[i - 1] == other[j - 2] && word[i - 2] == other[j - 1])
            row[j] = least(row[j], above2[j - 2] + 1);
    }
}

static int distance_of(const char *word, int m, const char *other, int n)
{
    int rows[3][LONGEST + 1];
    for (int j = 0; j <= n; j++)
        rows[0][j] = j;
    for (int i = 1; i <= m; i++)
        next_row(rows[i % 3], rows[(i + 2) % 3], rows[(i + 1) % 3], word, i, other, n);
    return rows[m % 3][n];
}

/* A word that was begun and not ended: behind all slips, the shortest first. */
static void offer_longer(gy_near *near, const char *word, size_t m, const char *candidate, size_t n)
{
    int distance = LONGEST + (int)(n - m);
    if (m >= 3 && n <= LONGEST && strncasecmp(word, candidate, m) == 0 && (!near->best || distance < near->distance))
        *near = (gy_near){ candidate, distance };
}

void gy_near_offer(gy_near *near, const char *word, const char *candidate)
{
    size_t m = strlen(word), n = strlen(candidate);
    size_t limit = m / 3 ? m / 3 : 1;
    if (n > m + limit)
        offer_longer(near, word, m, candidate, n);
    if (m > LONGEST || n > LONGEST || m > n + limit || n > m + limit)
        return;
    int distance = distance_of(word, (int)m, candidate, (int)n);
    if (distance > 1 && strcasecmp(word, candidate) == 0)
        distance = 1;
    bool near_enough = distance <= (int)limit && (distance < (int)m || distance < (int)n);
    if (near_enough && (!near->best || distance < near->distance))
        *near = (gy_near){ candidate, distance };
}

const char *gy_nearest(const char *word, const char *const *candidates, size_t count)
{
    gy_near near = { 0 };
    for (size_t i = 0; word && candidates && i < count; i++)
        if (candidates[i])
            gy_near_offer(&near, word, candidates[i]);
    return near.best;
}

const char *gy_meant_text(char to[GY_MEANT_TEXT], const char *near)
{
    *to = '\0';
    if (near)
        snprintf(to, GY_MEANT_TEXT, " (did you mean \"%s\"?)", near);
    return to;
}
