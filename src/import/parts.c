/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with which readers fill an import and report what is wrong with a file. */
#include "import/import.h"

#include "base/error.h"
#include <stdio.h>
#include <string.h>

gy_import_task *gy_import_add_task(gy_import *in, const char *id)
{
    char *copy = gy_arena_strdup(&in->arena, id);
    if (copy)
        gy_make_plain(copy);
    gy_import_task task = { .id = copy, .cpu = -1, .with = GY_IMPORT_NONE };
    if (!copy || in->tasks.count >= INT32_MAX || !gy_vec_push(&in->tasks, task))
        return NULL;
    return gy_vec_last(&in->tasks);
}

bool gy_import_add_item(gy_import *in, const char *name, uint32_t from, double amount)
{
    gy_import_item item = { gy_arena_strdup(&in->arena, name), from, amount };
    return item.name && in->items.count < INT32_MAX && gy_vec_push(&in->items, item);
}

bool gy_import_add_read(gy_import *in, uint32_t task, uint32_t item)
{
    gy_import_read read = { task, item };
    return gy_vec_push(&in->reads, read);
}

bool gy_import_add_order(gy_import *in, uint32_t before, uint32_t after)
{
    gy_import_order order = { before, after };
    return gy_vec_push(&in->orders, order);
}

bool gy_import_add_edge(gy_import *in, uint32_t from, uint32_t to, double amount)
{
    if (amount == 0)
        return gy_import_add_order(in, from, to);
    const char *name = gy_arena_printf(&in->arena, "%s->%s", in->tasks.at[from].id, in->tasks.at[to].id);
    return name && gy_import_add_item(in, name, from, amount) &&
           gy_import_add_read(in, to, (uint32_t)in->items.count - 1);
}

gantry_status gy_import_fail(const gy_import *in, uint32_t task, gantry_error *err, const char *format, ...)
{
    va_list args;
    const gy_import_task *t = &in->tasks.at[task];
    va_start(args, format);
    gy_vfail(err, GANTRY_E_GRAPH, t->pointer, format, args);
    va_end(args);
    if (t->line)
        gy_error_locate(err, in->source, t->line, 0);
    return GANTRY_E_GRAPH;
}

const char *gy_import_pointer(gy_import *in, const gy_json_at *at)
{
    char pointer[sizeof((gantry_error *)0)->where];
    return gy_arena_strdup(&in->arena, gy_json_pointer(at, pointer, sizeof pointer));
}

gantry_status gy_import_array(const gy_json_at *at, const char *key, gy_json_at *array, gantry_error *err)
{
    *array = gy_json_key(at, key);
    if (!array->value)
        return gy_json_fail(err, GANTRY_E_GRAPH, at, "missing key \"%s\": give an array", key);
    if (!json_is_array(array->value))
        return gy_json_fail(err, GANTRY_E_GRAPH, array, "\"%s\" must be an array, not %s", key,
                            gy_json_kind(array->value));
    return GANTRY_OK;
}

gantry_status gy_import_object(const gy_json_at *at, const char *what, gantry_error *err)
{
    if (json_is_object(at->value))
        return GANTRY_OK;
    return gy_json_fail(err, GANTRY_E_GRAPH, at, "%s must be an object, not %s", what, gy_json_kind(at->value));
}
