/* SPDX-License-Identifier: Apache-2.0 */
/* Strings: building, interning, near misses, numbers and sizes as people and JSON write them. */
#ifndef GY_BASE_TEXT_H
#define GY_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A string under construction. Zero-initialised is ready. After a failed append `failed` stays set and later appends
 * do nothing: check once at the end. `at` is 0-terminated whenever length > 0. */
typedef struct gy_text {
    char *at;
    size_t length, capacity;
    bool failed;
} gy_text;

void gy_text_add(gy_text *text, const char *string);
void gy_text_add_n(gy_text *text, const char *string, size_t length);
void gy_text_printf(gy_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gy_text_vprintf(gy_text *text, const char *format, va_list args);
/* Bytes of the UTF-8 character at `s`, 0 if it is not one (overlong, surrogate, too large, cut off). */
size_t gy_utf8_length(const char *s);
/* The same, but 0 for characters that do something to a terminal, a log or a reader: control characters, line and
 * paragraph separators, those that change the direction of what follows, and the two that XML does not have. */
size_t gy_plain_length(const char *s);
/* Bytes at the start of `text` that a name of a buffer may have: plain characters other than blanks, quotes and what
 * references are made of, []{}()~*:, and the backslash. A name has at least one and no others. */
size_t gy_name_length(const char *text);
/* True if all of it is plain characters, so that files can have it as it is, and people can be shown it. */
bool gy_is_plain(const char *text);
/* Makes it so: '?' for each other character, and each byte that is not UTF-8. It does not become longer. */
void gy_make_plain(char *text);
void gy_text_json(gy_text *text, const char *string); /* with quotes and escapes, as JSON writes a string */
/* The shortest decimal text that reads back to the same double ("0.1", "1e+300", "3.0" for whole numbers), whatever
 * the program's locale; "inf", "-inf", "nan", which are not JSON. */
void gy_text_double(gy_text *text, double value);
#define GY_DOUBLE_TEXT 48                                  /* enough for gy_double_text */
char *gy_double_text(char *to, size_t size, double value); /* the same without allocating; returns `to` */
void gy_text_xml(gy_text *text, const char *string);       /* escaped for XML and HTML */
char *gy_text_take(gy_text *text, size_t *length);         /* the string, now the caller's; NULL if an append failed */
void gy_text_free(gy_text *text);

/* Characters of the number at the start of `text`: digits, then perhaps fraction and exponent (is_real), no sign. */
size_t gy_number_length(const char *text, size_t length, bool *is_real);
/* The whole of `text` as a decimal number, whatever the program's locale; false if it is not one or not finite. */
bool gy_parse_double(const char *text, size_t length, double *value);

/* Bytes of a text that says which arguments a kernel has, at most: graph.h makes it, machines hold it. */
enum { GY_CASE_MOST = 1000 };

/* Names <-> small numbers, in order of first appearance. Strings live as long as the table. */
typedef struct gy_names {
    struct gy_names_entry {
        const char *name;
        uint64_t hash;
    } * at;
    uint32_t count, capacity, *slot, slots;
    struct gy_arena *arena_;
} gy_names; /* zero-initialised is ready */

#define GY_NO_NAME UINT32_MAX
uint32_t gy_names_find(const gy_names *names, const char *name); /* GY_NO_NAME if absent */
uint32_t gy_names_add(gy_names *names, const char *name,
                      bool *isnew); /* isnew may be NULL; GY_NO_NAME: out of memory */
const char *gy_names_at(const gy_names *names, uint32_t index);
void gy_names_free(gy_names *names);

/* The candidate nearest to a misspelt word (Damerau-Levenshtein at most a third of its length, at least 1; something
 * must be left in common; another case of letters counts as one), else the shortest that begins with the word, of three
 * letters at least, or NULL. Of equally near ones the first offered.
 * gy_near keeps the best of the words it is offered; start with {0}. */
typedef struct gy_near {
    const char *best;
    int distance;
} gy_near;
void gy_near_offer(gy_near *near, const char *word, const char *candidate);
const char *gy_nearest(const char *word, const char *const *candidates, size_t count);
/* " (did you mean "near"?)", for messages; "" where `near` is NULL. Returns `to`. */
enum { GY_MEANT_TEXT = 160 };
const char *gy_meant_text(char to[GY_MEANT_TEXT], const char *near);

/* The first lines of what a compiler said, joined by " | ", without those that only underline; as many characters as
 * fit, 0-terminated. */
void gy_lines_text(char *to, size_t size, const char *lines);

/* "1.5 GiB", "512 B": for messages. Writes at most size bytes, returns `to`. */
const char *gy_bytes_text(char *to, size_t size, uint64_t bytes);
/* The same, or "9000192 B" where `other` bytes, which are not as many, would have the same text. */
const char *gy_bytes_apart(char *to, size_t size, uint64_t bytes, uint64_t other);
/* "4GiB", "512MB", "1.5 KiB", "100" (units B, KB = 1000, KiB = 1024, ... TB, TiB): false if it is not a size or does
 * not fit. A fraction of a byte is dropped. */
bool gy_parse_bytes(const char *text, uint64_t *bytes);

#endif
