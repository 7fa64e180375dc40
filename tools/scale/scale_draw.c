/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of `gantry scale`: speed-up over the number of devices, beside the ideal. */
#include "scale.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 440, LEFT = 60, RIGHT = 24, TOP = 56, BOTTOM = 76 };

static double x_of(const scale *s, double devices)
{
    double first = s->row[0].count, last = s->row[s->count - 1].count;
    double part = last > first ? (devices - first) / (last - first) : 0.5;
    return LEFT + part * (WIDTH - LEFT - RIGHT);
}

/* From 0 to what the last would be ideally. */
static double y_of(const scale *s, double speedup)
{
    double most = (double)s->row[s->count - 1].count / s->row[0].count;
    for (size_t i = 0; i < s->count; i++)
        most = s->row[i].speedup > most ? s->row[i].speedup : most;
    return HEIGHT - BOTTOM - speedup / most * (HEIGHT - TOP - BOTTOM);
}

static void print_escaped(FILE *to, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : NULL;
        entity ? fputs(entity, to) : fputc(*text, to);
    }
}

static void print_text(FILE *to, double x, double y, const char *anchor, const char *text)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    print_escaped(to, text);
    fputs("</text>\n", to);
}

static void print_frame(FILE *to, const scale *s)
{
    char text[400];
    const scale_row *first = &s->row[0], *last = &s->row[s->count - 1];
    double floor = HEIGHT - BOTTOM;
    snprintf(text, sizeof text, "%.150s on %.150s", s->graph, s->machine);
    fputs("<g font-size=\"15\">", to);
    print_text(to, LEFT, 24, "start", text);
    fputs("</g>\n", to);
    print_text(to, LEFT, 44, "start",
               *s->weak ? "speed-up, work for work (dashed: ideal)" : "speed-up (dashed: ideal)");
    print_text(to, (double)(LEFT + WIDTH - RIGHT) / 2, floor + 38, "middle", s->ranks ? "ranks" : "devices");
    fprintf(to, "<path d=\"M%d %dV%.1fH%d\" fill=\"none\" stroke=\"#555\"/>\n", LEFT, TOP, floor, WIDTH - RIGHT);
    fprintf(to, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#888\" stroke-dasharray=\"5 4\"/>\n", x_of(s, first->count),
            y_of(s, 1), x_of(s, last->count), y_of(s, (double)last->count / first->count));
}

static void print_points(FILE *to, const scale *s)
{
    char text[80], time[UNIT_TEXT];
    fputs("<polyline fill=\"none\" stroke=\"#0b62a4\" stroke-width=\"2\" points=\"", to);
    for (size_t i = 0; i < s->count; i++)
        fprintf(to, "%.1f,%.1f ", x_of(s, s->row[i].count), y_of(s, s->row[i].speedup));
    fputs("\"/>\n", to);
    for (size_t i = 0; i < s->count; i++) {
        const scale_row *r = &s->row[i];
        double x = x_of(s, r->count), y = y_of(s, r->speedup);
        fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#0b62a4\"><title>", x, y);
        fprintf(to, "%d of %d devices do something, %s; what limits is ", r->used, r->devices, time_text(time, r->us));
        print_escaped(to, r->limit);
        fputs("</title></circle>\n", to);
        snprintf(text, sizeof text, "%.2f", r->speedup);
        print_text(to, x, y - 9, "middle", text);
        snprintf(text, sizeof text, "%d", r->count);
        print_text(to, x, HEIGHT - BOTTOM + 18, "middle", text);
    }
}

int scale_draw(const scale *s, const char *path)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (!to) {
        complain("%s\n", gantry_status_text(GANTRY_E_NOMEM));
        return EXIT_CAPACITY;
    }
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    print_frame(to, s);
    print_points(to, s);
    fputs("<g font-size=\"11\">", to);
    print_text(to, LEFT, HEIGHT - 14, "start", s->advice);
    fputs("</g>\n</svg>\n", to);
    int code = fclose(to) ? EXIT_CAPACITY : write_text(path, text, length);
    free(text);
    return code;
}
