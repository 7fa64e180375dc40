/* SPDX-License-Identifier: Apache-2.0 */
/* Curves and pictures by characters: dots of Braille, eight in each; upper halves of blocks, two pixels in each. */
#include "results.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_COLUMNS = 400 };
enum { CURVE_LINES = 12, DOTS_ASIDE = 2, DOTS_HIGH = 4 }; /* of a curve; dots of a character */
enum { PICTURE_LINES = 48, SMALL = 32, LARGEST_PIXEL = 8 };

/* ---- the terminal ---- */

bool terminal_colours(FILE *to)
{
    const char *none = getenv("NO_COLOR"), *kind = getenv("TERM");
    return isatty(fileno(to)) == 1 && !(none && *none) && !(kind && strcmp(kind, "dumb") == 0);
}

/* ---- curves ---- */

bool is_curve(const array *a)
{
    int axes = 0;
    for (int i = 0; i < a->rank; i++)
        axes += a->shape[i] > 1;
    return axes <= 1;
}

static void widen(span *s, double y)
{
    if (!isfinite(y))
        return;
    s->low = isnan(s->low) || y < s->low ? y : s->low;
    s->high = isnan(s->high) || y > s->high ? y : s->high;
}

/* On the line between elements i and i + 1; NAN beside one that is not finite. */
static double between(const array *a, uint64_t i, double part)
{
    double from = element_real(a->data, a->dtype, i);
    if (part == 0 || i + 1 >= a->count)
        return from;
    double to = element_real(a->data, a->dtype, i + 1);
    return isfinite(from) && isfinite(to) ? from * (1 - part) + to * part : (double)NAN;
}

/* Column x goes from the curve's value at its left edge to that at its right, over all elements between: no peak is
 * lost where there are more elements than columns, and neighbours touch. */
void curve_spans(const array *a, span *column, int columns)
{
    double step = a->count > 1 ? (double)(a->count - 1) / columns : 0;
    for (int x = 0; x < columns; x++) {
        double left = step * x, right = x + 1 < columns ? step * (x + 1) : (double)(a->count ? a->count - 1 : 0);
        column[x] = (span){ (double)NAN, (double)NAN };
        if (a->count == 0)
            continue;
        widen(&column[x], between(a, (uint64_t)left, left - floor(left)));
        for (uint64_t i = (uint64_t)ceil(left); (double)i <= right && i < a->count; i++)
            widen(&column[x], element_real(a->data, a->dtype, i));
        widen(&column[x], between(a, (uint64_t)right, right - floor(right)));
    }
}

static int dot_row(double y, const summary *s)
{
    double part = s->high > s->low ? (y / 2 - s->low / 2) / (s->high / 2 - s->low / 2) : 0.5;
    return (int)lround((1 - part) * (CURVE_LINES * DOTS_HIGH - 1));
}

/* Character U+2800 and a bit for each dot: 1, 2, 4, 64 down the left column, 8, 16, 32, 128 down the right. */
static void put_braille(FILE *to, unsigned dots)
{
    fprintf(to, "%c%c%c", 0xE2, (int)(0xA0 | dots >> 6), (int)(0x80 | (dots & 63)));
}

static unsigned dots_of(const span *column, const summary *s, int line)
{
    static const unsigned char bit[DOTS_ASIDE][DOTS_HIGH] = { { 1, 2, 4, 64 }, { 8, 16, 32, 128 } };
    unsigned dots = 0;
    for (int x = 0; x < DOTS_ASIDE; x++) {
        if (isnan(column[x].low))
            continue;
        int top = dot_row(column[x].high, s) - line * DOTS_HIGH, bottom = dot_row(column[x].low, s) - line * DOTS_HIGH;
        for (int y = top < 0 ? 0 : top; y < DOTS_HIGH && y <= bottom; y++)
            dots |= bit[x][y];
    }
    return dots;
}

/* The highest value beside the first line, the least beside the last; the first and last index below. */
static bool draw_curve(FILE *to, const array *a, int columns)
{
    char low[ELEMENT_TEXT] = "", high[ELEMENT_TEXT] = "";
    summary s = summarize_array(a);
    if (s.finite) {
        element_text(low, a, s.low_at);
        element_text(high, a, s.high_at);
    }
    int label = (int)(strlen(low) > strlen(high) ? strlen(low) : strlen(high)), width = columns - label - 2;
    span *column = malloc((size_t)width * DOTS_ASIDE * sizeof *column);
    if (!column)
        return false;
    curve_spans(a, column, width * DOTS_ASIDE);
    for (int line = 0; line < CURVE_LINES; line++) {
        fprintf(to, "%*s |", label, line == 0 ? high : line == CURVE_LINES - 1 ? low : "");
        for (int x = 0; x < width; x++)
            put_braille(to, dots_of(column + x * DOTS_ASIDE, &s, line));
        fprintf(to, "\n");
    }
    fprintf(to, "%*s  0%*" PRIu64 "\n", label, "", width - 1, a->count ? a->count - 1 : 0);
    free(column);
    return true;
}

/* ---- pictures ---- */

/* Of a pixel of the terminal: the mean of the pixels below it. */
typedef struct colour {
    int red, green, blue;
} colour;

typedef struct screen {
    picture from;
    int width, height;
} screen;

static colour mean_colour(const screen *s, int x, int y)
{
    const picture *p = &s->from;
    int64_t x0 = x * p->width / s->width, x1 = (x + 1) * p->width / s->width;
    int64_t y0 = y * p->height / s->height, y1 = (y + 1) * p->height / s->height;
    int64_t sum[3] = { 0 }, count = 0;
    x1 = x1 > x0 ? x1 : x0 + 1;
    y1 = y1 > y0 ? y1 : y0 + 1;
    for (int64_t j = y0; j < y1; j++)
        for (int64_t i = x0; i < x1; i++, count++)
            for (int c = 0; c < 3; c++)
                sum[c] += p->pixel[(j * p->width + i) * p->channels + (p->channels == 3 ? c : 0)];
    return (colour){ (int)(sum[0] / count), (int)(sum[1] / count), (int)(sum[2] / count) };
}

/* Small pictures are enlarged, large ones made to fit; sides keep their proportion, since half a character is about as
 * high as wide. */
static void fit(screen *s, int columns)
{
    const picture *p = &s->from;
    int64_t larger = p->width > p->height ? p->width : p->height;
    double scale = larger < SMALL ? (double)(SMALL / larger > LARGEST_PIXEL ? LARGEST_PIXEL : SMALL / larger) : 1;
    scale = (double)p->width * scale > columns ? (double)columns / (double)p->width : scale;
    scale = (double)p->height * scale > 2.0 * PICTURE_LINES ? 2.0 * PICTURE_LINES / (double)p->height : scale;
    s->width = (int)fmax(1, floor((double)p->width * scale));
    s->height = (int)fmax(1, floor((double)p->height * scale));
}

static int brightness(colour c)
{
    return (299 * c.red + 587 * c.green + 114 * c.blue) / 1000; /* ITU-R BT.601 */
}

/* Without colours a character is as dark as the two pixels are together. */
static void put_pixels(FILE *to, colour top, colour bottom, bool colours)
{
    static const char *const shades[] = { " ", "░", "▒", "▓", "█" };
    if (colours)
        fprintf(to, "\033[38;2;%d;%d;%d;48;2;%d;%d;%dm▀", top.red, top.green, top.blue, bottom.red, bottom.green,
                bottom.blue);
    else
        fputs(shades[(brightness(top) + brightness(bottom)) * 5 / 512], to);
}

static bool draw_picture(FILE *to, const array *a, int columns, bool colours)
{
    char note[NOTE_TEXT];
    screen s = { 0 };
    if (!make_picture(&s.from, a, note))
        return false;
    fit(&s, columns);
    for (int y = 0; y < s.height; y += 2) {
        for (int x = 0; x < s.width; x++) {
            colour top = mean_colour(&s, x, y), bottom = y + 1 < s.height ? mean_colour(&s, x, y + 1) : (colour){ 0 };
            put_pixels(to, top, bottom, colours);
        }
        fprintf(to, colours ? "\033[0m\n" : "\n");
    }
    fprintf(to, "%" PRId64 " x %" PRId64 " pixels: %s\n", s.from.width, s.from.height, note);
    free(s.from.pixel);
    return true;
}

bool draw_array(FILE *to, const array *a, int columns, bool colours)
{
    picture sides;
    columns = columns > MOST_COLUMNS ? MOST_COLUMNS : columns;
    fprintf(to, "%s  ", a->name);
    print_shape(to, a);
    fprintf(to, "\n");
    return is_curve(a) || !picture_sides(&sides, a) ? draw_curve(to, a, columns)
                                                    : draw_picture(to, a, columns, colours);
}
