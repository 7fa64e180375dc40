/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A layer above jansson, for what jansson leaves to its users: strict loading, the source location of a value (jansson
 * forgets line and column after parsing: the text is scanned again for a JSON pointer, on errors only), and a reader
 * that turns "this object's keys" into messages with pointer, value seen, value allowed and near miss.
 */
#ifndef GY_BASE_JSON_H
#define GY_BASE_JSON_H

#include "base/error.h"
#include "base/text.h"
#include <gantry/status.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* json_loadb, but that jansson's buffer of a token never has to grow in the middle of one. NULL: the text is wrong, or
 * there was no memory, see gy_json_no_memory. On success the whole text has been read. */
json_t *gy_json_load(const char *text, size_t length, size_t flags, json_error_t *error);
/* Right after gy_json_load returned NULL: it got no memory. */
bool gy_json_no_memory(const json_error_t *error);
/* Reports that, or the mistake in the text; parameters as of gy_json_parse. */
gantry_status gy_json_fail_syntax(const json_error_t *error, const char *text, size_t length, const char *name,
                                  const char *mark, gantry_error *err);
/* Parses with duplicate keys refused; errors carry file, line and column. `name` stands for the file, and `mark` is a
 * key that every file of the kind has: a message quotes the text only where that key is in it, since what has not is
 * not ours to show. */
gantry_status gy_json_parse(json_t **root, const char *text, size_t length, const char *name, const char *mark,
                            gantry_error *err);
/* The same for files that people write for Gantry: keys and strings are one line of plain text (gy_is_plain), so that
 * whatever shows them shows nothing else. Else `status`, with the value's place. A file without the key `mark` is not
 * looked at: whoever reads it refuses it. */
gantry_status gy_json_parse_plain(json_t **root, const char *text, size_t length, const char *name, const char *mark,
                                  gantry_status status, gantry_error *err);
/* Line and column (from 1, column in bytes) of the value at `pointer`; of the deepest existing ancestor if it is
 * absent; 0, 0 if the text is no JSON as far as it had to be read, or the pointer was cut at the left. For a duplicate
 * key: of the first. */
void gy_json_locate(const char *text, size_t length, const char *pointer, int *line, int *column);

/* Where the reader is: a chain on the C stack, turned into a pointer only for messages. */
typedef struct gy_json_at {
    const struct gy_json_at *up; /* NULL at the root */
    const char *key;             /* NULL: an array index */
    size_t index;
    const json_t *value;
} gy_json_at;
gy_json_at gy_json_key(const gy_json_at *up, const char *key); /* value NULL if the object has no such key */
gy_json_at gy_json_item(const gy_json_at *up, size_t index);
/* "/nodes/3/args/x", keys escaped as RFC 6901 says. Cut at the left with "..." when too long. Returns `to`. */
char *gy_json_pointer(const gy_json_at *at, char *to, size_t size);
/* gy_fail with the pointer of `at`. */
gantry_status gy_json_fail(gantry_error *err, gantry_status status, const gy_json_at *at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define gy_json_fail(err, status, at, ...) gy_status_is_((status), gy_json_fail((err), (status), (at), __VA_ARGS__))
/* "a string", "an integer", ... for messages. */
const char *gy_json_kind(const json_t *value);
/* Refuses a file of another kind of Gantry's, by the key that says its version: `wanted` is "gantry",
 * "gantry_machine" or "gantry_schedule". OK of all else. */
gantry_status gy_json_refuse_other(const gy_json_at *root, const char *wanted, gantry_status status, gantry_error *err);
/* Refuses keys of the object that are not in `allowed`: 'unknown key "shpae" (did you mean "shape"?)'. */
gantry_status gy_json_keys(const gy_json_at *at, const char *const *allowed, size_t count, gantry_status status,
                           gantry_error *err);
/* Typed members of the object `at`. Absent gives `fallback` and OK unless `required`; a number that is out of range
 * is refused. Bounds INT64_MIN, INT64_MAX and +-INFINITY mean none. */
gantry_status gy_json_int(const gy_json_at *at, const char *key, bool required, int64_t fallback, int64_t low,
                          int64_t high, int64_t *out, gantry_status status, gantry_error *err);
gantry_status gy_json_number(const gy_json_at *at, const char *key, bool required, double fallback, double low,
                             double high, double *out, gantry_status status, gantry_error *err);
gantry_status gy_json_string(const gy_json_at *at, const char *key, bool required, const char *fallback,
                             const char **out, gantry_status status, gantry_error *err);
gantry_status gy_json_bool(const gy_json_at *at, const char *key, bool fallback, bool *out, gantry_status status,
                           gantry_error *err);

#endif
