/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a schedule file. Files come from anywhere: nothing is believed before gy_schedule_form has seen the whole. */
#include "schedule/json/json_read.h"

#include "base/error.h"
#include "base/file.h"
#include <string.h>

gantry_status gy_file_list(const gy_schedule_reader *r, const gy_json_at *at, const char *key, gy_json_at *list)
{
    *list = gy_json_key(at, key);
    if (json_is_array(list->value))
        return GANTRY_OK;
    if (!list->value)
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, at, "no \"%s\"; it is an array, and may be empty", key);
    return gy_json_fail(r->err, GANTRY_E_SCHEDULE, list, "\"%s\" is %s; it is an array", key,
                        gy_json_kind(list->value));
}

gantry_status gy_file_each(gy_schedule_reader *r, const gy_json_at *at, const char *key,
                           gantry_status (*read)(gy_schedule_reader *, const gy_json_at *))
{
    gy_json_at list;
    GY_TRY(gy_file_list(r, at, key, &list));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        gy_json_at item = gy_json_item(&list, i);
        GY_TRY(read(r, &item));
    }
    return GANTRY_OK;
}

gantry_status gy_file_item(const gy_schedule_reader *r, const gy_json_at *list, size_t i, int64_t low, int64_t high,
                           int64_t *out)
{
    gy_json_at item = gy_json_item(list, i);
    if (!json_is_integer(item.value))
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, &item, "%s, where an integer belongs", gy_json_kind(item.value));
    int64_t value = json_integer_value(item.value);
    if (value < low || value > high) {
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, &item, "%lld is out of range; allowed is %lld to %lld",
                            (long long)value, (long long)low, (long long)high);
    }
    *out = value;
    return GANTRY_OK;
}

gantry_status gy_file_integers(const gy_schedule_reader *r, const gy_json_at *list, size_t count, int64_t *out)
{
    if (json_array_size(list->value) != count) {
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, list, "%zu numbers, where %zu belong",
                            json_array_size(list->value), count);
    }
    for (size_t i = 0; i < count; i++)
        GY_TRY(gy_file_item(r, list, i, INT64_MIN, INT64_MAX, &out[i]));
    return GANTRY_OK;
}

gantry_status gy_file_u32(const gy_schedule_reader *r, const gy_json_at *at, const char *key, bool required,
                          uint32_t absent, uint32_t *out)
{
    int64_t value = absent;
    gantry_status status = gy_json_int(at, key, required, absent, 0, UINT32_MAX, &value, GANTRY_E_SCHEDULE, r->err);
    *out = (uint32_t)value;
    return status;
}

gantry_status gy_file_word_of(const gy_schedule_reader *r, const gy_json_at *at, const gy_words *words, uint8_t *out)
{
    if (!json_is_string(at->value)) {
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, at, "%s, where the %s belongs as a string",
                            gy_json_kind(at->value), words->what);
    }
    const char *word = json_string_value(at->value);
    size_t number = gy_word_find(words, word);
    if (number == SIZE_MAX) {
        char meant[GY_MEANT_TEXT];
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, at, "\"%s\" is no %s%s", word, words->what,
                            gy_meant_text(meant, gy_nearest(word, words->word, words->count)));
    }
    *out = (uint8_t)number;
    return GANTRY_OK;
}

gantry_status gy_file_word(const gy_schedule_reader *r, const gy_json_at *at, const char *key, bool required,
                           const gy_words *words, uint8_t *out)
{
    gy_json_at place = gy_json_key(at, key);
    if (!place.value) {
        *out = 0;
        return required ? gy_json_fail(r->err, GANTRY_E_SCHEDULE, at, "no \"%s\", the %s", key, words->what)
                        : GANTRY_OK;
    }
    return gy_file_word_of(r, &place, words, out);
}

gantry_status gy_file_absent(const gy_schedule_reader *r, const gy_json_at *at, const char *key, const char *whose)
{
    gy_json_at place = gy_json_key(at, key);
    if (!place.value)
        return GANTRY_OK;
    return gy_json_fail(r->err, GANTRY_E_SCHEDULE, &place, "\"%s\" is for %s only; leave it out", key, whose);
}

gantry_status gy_file_object(const gy_schedule_reader *r, const gy_json_at *at, const char *what,
                             const char *const *keys, size_t count)
{
    if (!json_is_object(at->value))
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, at, "%s is %s; it is an object", what, gy_json_kind(at->value));
    return gy_json_keys(at, keys, count, GANTRY_E_SCHEDULE, r->err);
}

static gantry_status check_version(const gy_schedule_reader *r, const gy_json_at *root)
{
    static const char *const keys[] = { "gantry_schedule", "graph",     "graph_hash",     "policy",
                                        "effort",          "seed",      "objective",      "replay",
                                        "unroll",          "in_flight", "makespan_ps",    "bound_ps",
                                        "params",          "bounds",    "machine",        "slabs",
                                        "staging",         "nodes",     "values",         "lanes",
                                        "instances",       "ops",       "sync",           "counters",
                                        "balance",         "windows",   "staging_window", "period_ps",
                                        "period_bound_ps", "phases" };
    gy_json_at version = gy_json_key(root, "gantry_schedule");
    GY_TRY(gy_json_refuse_other(root, "gantry_schedule", GANTRY_E_SCHEDULE, r->err));
    if (!json_is_integer(version.value))
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, root, "no \"gantry_schedule\": 1 in it, so this is no schedule");
    if (json_integer_value(version.value) != 1) {
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, &version,
                            "format version %lld; this library reads version 1, make the "
                            "schedule again",
                            (long long)json_integer_value(version.value));
    }
    return gy_file_object(r, root, "a schedule", keys, GY_COUNT_OF(keys));
}

static gantry_status read_schedule(gy_schedule_reader *r, const gy_json_at *root)
{
    static gantry_status (*const parts[])(gy_schedule_reader *,
                                          const gy_json_at *) = { gy_file_head, gy_file_lists,    gy_file_ops,
                                                                  gy_file_sync, gy_file_counters, gy_file_phases };
    GY_TRY(check_version(r, root));
    for (size_t i = 0; i < GY_COUNT_OF(parts); i++)
        GY_TRY(parts[i](r, root));
    GY_TRY(gy_schedule_form(r->s, r->err));
    return gy_schedule_index(r->s, r->err);
}

gantry_status gy_file_schedule(gantry_schedule **schedule, const gy_json_at *root, gantry_error *err)
{
    gy_schedule_reader r = { .s = gy_schedule_alloc(), .err = err };
    gantry_status status = r.s ? read_schedule(&r, root) : gy_fail_nomem(err);
    gy_names_free(&r.nodes);
    if (status) {
        gantry_schedule_free(r.s);
        return status;
    }
    *schedule = r.s;
    return GANTRY_OK;
}

/* Messages carry a pointer; the text says where that is. */
static void place_error(gantry_error *err, const char *text, size_t length, const char *name)
{
    int line = 0, column = 0;
    if (err && !err->file[0]) {
        gy_json_locate(text, length, err->where, &line, &column);
        gy_error_locate(err, name, line, column);
    }
}

gantry_status gantry_schedule_parse(gantry_schedule **schedule, const char *text, size_t length, const char *name,
                                    gantry_error *err)
{
    GY_NEED(schedule, err);
    GY_NEED(text, err);
    json_t *json;
    gantry_status status =
        gy_json_parse_plain(&json, text, length, name ? name : "schedule", "gantry_schedule", GANTRY_E_SCHEDULE, err);
    if (status)
        return status;
    gy_json_at root = { NULL, NULL, 0, json };
    status = gy_file_schedule(schedule, &root, err);
    json_decref(json);
    if (status && status != GANTRY_E_NOMEM)
        place_error(err, text, length, name ? name : "schedule");
    return status;
}

gantry_status gantry_schedule_load(gantry_schedule **schedule, const char *path, gantry_error *err)
{
    char *text;
    size_t length;
    GY_NEED(schedule, err);
    GY_NEED(path, err);
    gantry_status status = gy_file_read(&text, &length, path, err);
    if (!status) {
        status = gantry_schedule_parse(schedule, text, length, strcmp(path, "-") == 0 ? "standard input" : path, err);
        gy_free(text);
    }
    return status;
}
