/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of a run as people and other programs read them: in the report, in files, in the terminal. Numbers are
 * written the same wherever they come from; nothing here knows of devices. */
#ifndef GANTRY_COMMAND_RESULTS_H
#define GANTRY_COMMAND_RESULTS_H

#include <gantry/kernel.h>
#include <stdbool.h>
#include <stdio.h>

/* An array in C order. */
typedef struct array {
    const char *name;
    gantry_dtype dtype;
    int rank;
    const int64_t *shape;
    uint64_t count; /* elements */
    const void *data;
} array;

/* ---- element.c ---- */

/* Element i as a double, which does not hold every 64-bit integer. */
/* True for numbers that may have fractions and be NaN. */
bool element_is_real(gantry_dtype dtype);
double element_real(const void *data, gantry_dtype dtype, uint64_t i);
enum { ELEMENT_TEXT = 32 }; /* room for the text of an element */
/* Element i: whole numbers in full; others with six digits, or with as many as read back to the same number; "nan",
 * "inf", "-inf". Returns `to`. */
char *element_text(char to[ELEMENT_TEXT], const array *a, uint64_t i);
char *element_exact(char to[ELEMENT_TEXT], const array *a, uint64_t i);
/* "f32 [3, 4]" */
void print_shape(FILE *to, const array *a);

/* ---- summary.c ---- */

typedef struct summary {
    uint64_t finite, nans, infinities; /* how many elements are so */
    double low, high, mean;            /* of the finite ones */
    uint64_t low_at, high_at;          /* the first elements with these values */
} summary;
summary summarize_array(const array *a);
/* Lines below the name of an output: all values of a small one, else the summary. */
void print_values(FILE *to, const array *a);

/* ---- format.c: the contents of a file follow from how its name ends ---- */

/* Before there are contents: whether the array can be written to such a file. What is wrong is printed. */
bool check_format(const array *a, const char *path);
/* The contents of the file, to be freed; NULL: out of memory. A raw or .npy file is none of these: it is not text or a
 * picture, and the library writes it. `*note` is what a reader has to know beside the file, or "". */
enum { NOTE_TEXT = 128 };
bool is_library_format(const char *path);
char *format_array(const array *a, const char *path, size_t *length, char note[NOTE_TEXT]);

/* ---- text.c ---- */

void write_lines(FILE *to, const array *a, const char *between); /* the last axis is a line */
void write_json(FILE *to, const array *a);

/* ---- picture.c ---- */

/* Pixels of 8 bits, row by row, 1 (grey) or 3 (red, green, blue) a pixel. */
typedef struct picture {
    int64_t width, height;
    int channels;
    unsigned char *pixel; /* free it */
} picture;
enum { MOST_PIXELS_ASIDE = 1000000 };

/* The sides of the picture that an array is: a matrix is grey; a last axis of 1 or 3 is the channels; axes before the
 * last two are a stack, from top to bottom. False: it has fewer than two axes, or is larger than PNG files may be. */
bool picture_sides(picture *p, const array *a);
/* Bytes are the pixels; other numbers go from black, the least finite one, to white. False: out of memory. */
bool make_picture(picture *p, const array *a, char note[NOTE_TEXT]);
/* The curve of an array of one axis. */
bool make_plot_picture(picture *p, const array *a, char note[NOTE_TEXT]);
/* A PNG file; to be freed. NULL: it cannot be made, and `why` says why. */
void *encode_png(const picture *p, size_t *length, char why[NOTE_TEXT]);
/* Why there are no PNG files in this build; NULL: there are. */
const char *png_missing(void);

/* ---- plot.c ---- */

/* True for arrays that are drawn as a curve: all axes but one are 1. */
bool is_curve(const array *a);
/* Where the curve goes in each of so many columns, as least and highest of its values there; NAN where it has none. */
typedef struct span {
    double low, high;
} span;
void curve_spans(const array *a, span *column, int columns);
/* Draws into `columns` columns of a terminal; colours where `colours` is set. False: out of memory. */
bool draw_array(FILE *to, const array *a, int columns, bool colours);
/* True if what is written to may have colours. */
bool terminal_colours(FILE *to);

#endif
