/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays as text, with as many digits as read back to the same numbers. */
#include "results.h"
#include <inttypes.h>
#include <string.h>

/* Elements of a line: the last axis of a matrix; of an array with one axis each element has a line of its own. */
static uint64_t line_length(const array *a)
{
    return a->rank > 1 ? (uint64_t)a->shape[a->rank - 1] : 1;
}

/* As numpy.savetxt and numpy.loadtxt have it. Of arrays with more axes than two, matrix follows matrix. */
void write_lines(FILE *to, const array *a, const char *between)
{
    char text[ELEMENT_TEXT];
    uint64_t columns = line_length(a);
    for (uint64_t i = 0; i < a->count; i++)
        fprintf(to, "%s%s", element_exact(text, a, i), (i + 1) % columns == 0 ? "\n" : between);
}

/* JSON has no NaN and no infinity: these are the texts "nan", "inf" and "-inf", which Python's float() takes. What
 * looks like an integer is read as one, which has no negative zero. */
static void write_number(FILE *to, const array *a, uint64_t i)
{
    char text[ELEMENT_TEXT];
    element_exact(text, a, i);
    const char *quote = strpbrk(text, "n") ? "\"" : "";
    fprintf(to, "%s%s%s%s", quote, text, quote, strcmp(text, "-0") == 0 ? ".0" : "");
}

void write_json(FILE *to, const array *a)
{
    fprintf(to, "{\"shape\": [");
    for (int i = 0; i < a->rank; i++)
        fprintf(to, "%s%" PRId64, i ? ", " : "", a->shape[i]);
    fprintf(to, "], \"dtype\": \"%s\", \"data\": [", gantry_dtype_name(a->dtype));
    for (uint64_t i = 0; i < a->count; i++) {
        fputs(i ? ", " : "", to);
        write_number(to, a, i);
    }
    fprintf(to, "]}\n");
}
