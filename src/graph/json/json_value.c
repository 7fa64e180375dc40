/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of graph files: written plainly, or as expressions over params and indices. */
#include "graph/json/json_read.h"

#include "base/error.h"
#include <inttypes.h>
#include <string.h>

static const gy_index *find_index(const gy_reader *r, const char *name)
{
    for (size_t i = r->index.count; i-- > 0;)
        if (strcmp(r->index.at[i].name, name) == 0)
            return &r->index.at[i];
    return NULL;
}

bool gy_read_is_index(const gy_reader *r, const char *name)
{
    return find_index(r, name) != NULL;
}

/* The number of devices is known to who loads the graph, if at all. */
static bool is_devices(const gy_reader *r, const char *name)
{
    return r->options->devices > 0 && strcmp(name, "devices") == 0;
}

bool gy_read_lookup(void *reader, const char *name, int64_t *integer, double *real, bool *is_real)
{
    const gy_reader *r = reader;
    *integer = r->options->devices;
    *real = r->options->devices;
    *is_real = false;
    return is_devices(r, name) || gy_read_lookup_own(reader, name, integer, real, is_real);
}

bool gy_read_lookup_own(void *reader, const char *name, int64_t *integer, double *real, bool *is_real)
{
    const gy_reader *r = reader;
    const gy_index *index = find_index(r, name);
    if (index) {
        *integer = index->value;
        *real = (double)index->value;
        *is_real = false;
        return true;
    }
    uint32_t p = gy_names_find(&r->params, name);
    if (p == GY_NO_NAME)
        return false;
    const gy_param *param = &r->param.at[p];
    *integer = param->integer;
    *real = param->is_real ? param->real : (double)param->integer;
    *is_real = param->is_real;
    return true;
}

gantry_status gy_read_name(gy_reader *r, const gy_json_at *at, const char *what, const char *name)
{
    if (!gy_is_expr_name(name)) {
        return gy_read_fail(r, at, "\"%s\" cannot be the name of %s: use letters, digits and _, not a digit first",
                            name, what);
    }
    if (!gy_is_expr_word(name))
        return GANTRY_OK;
    return gy_read_fail(r, at,
                        "\"%s\" cannot be the name of %s: it has a meaning in expressions; take another, such as "
                        "\"%s_\"",
                        name, what, name);
}

/* ---- names that an expression may use ---- */

typedef struct known {
    const gy_reader *reader;
    const char *also, *unknown; /* `also` "it": the indices of repeats */
} known;

bool gy_read_is_loop_index(const gy_reader *r, const char *name)
{
    for (size_t i = 0; i < r->loop.count; i++)
        if (strcmp(r->loop.at[i], name) == 0)
            return true;
    return false;
}

static bool is_also(const known *k, const char *name)
{
    if (!k->also)
        return false;
    return strcmp(k->also, "it") == 0 ? gy_read_is_loop_index(k->reader, name) : strcmp(name, k->also) == 0;
}

static bool is_known(void *context, const char *name)
{
    known *k = context;
    const gy_reader *r = k->reader;
    if (is_also(k, name) || is_devices(r, name) || find_index(r, name) || gy_names_find(&r->params, name) != GY_NO_NAME)
        return true;
    k->unknown = name;
    return false;
}

static gantry_status fail_devices(gy_reader *r, const gy_json_at *at)
{
    gy_read_fail(r, at,
                 "\"devices\" is used as a number, and how many there are is not known: give `devices` where the "
                 "graph is loaded (the command counts those of its machine, but for a graph on standard input)");
    r->error.status = GANTRY_E_UNSUPPORTED;
    return GANTRY_E_UNSUPPORTED;
}

static gantry_status fail_unknown(gy_reader *r, const gy_json_at *at, const char *name, const char *also)
{
    if (strcmp(name, "it") == 0 && r->loop.count > 0 && also)
        return gy_read_fail(r, at, "the repeat calls its index \"%s\", not \"it\"", r->loop.at[r->loop.count - 1]);
    if (gy_read_is_loop_index(r, name) && strcmp(name, "it") != 0)
        return gy_read_fail(r, at, "\"%s\" is the index of a repeat: only scalar arguments may use it", name);
    if (strcmp(name, "it") == 0)
        return gy_read_fail(r, at, "\"it\" has a meaning only in scalar arguments of nodes inside a repeat");
    if (strcmp(name, "devices") == 0)
        return fail_devices(r, at);
    if (json_object_get(r->all_params, name))
        return gy_read_fail(r, at, "param \"%s\" is given further down: a param may use those above it only", name);
    gy_near near = { 0 };
    for (size_t i = r->index.count; i-- > 0;)
        gy_near_offer(&near, name, r->index.at[i].name);
    for (uint32_t i = 0; i < r->params.count; i++)
        gy_near_offer(&near, name, gy_names_at(&r->params, i));
    if (also && strcmp(also, "it") != 0)
        gy_near_offer(&near, name, also);
    for (size_t i = 0; also && strcmp(also, "it") == 0 && i < r->loop.count; i++)
        gy_near_offer(&near, name, r->loop.at[i]);
    return near.best ? gy_read_fail(r, at, "no param or index \"%s\" (did you mean \"%s\"?)", name, near.best)
                     : gy_read_fail(r, at, "no param or index \"%s\" here: add it to \"params\"", name);
}

gantry_status gy_read_compile(gy_reader *r, const gy_json_at *at, const char *text, size_t length, const char *also,
                              const gy_expr **out)
{
    known k = { r, also, NULL };
    gantry_status status = gy_expr_parse(out, &r->graph->arena, text, length, GANTRY_E_GRAPH, NULL, &r->error);
    if (status)
        return status == GANTRY_E_NOMEM ? status : gy_read_locate(r, at);
    return gy_expr_names(*out, is_known, &k) ? GANTRY_OK : fail_unknown(r, at, k.unknown, also);
}

void *gy_read_known(const gy_reader *r, const json_t *value)
{
    uint64_t made;
    if (r->index.count == 0 || !gy_map_get(&r->compiled, (uint64_t)(uintptr_t)value, &made))
        return NULL;
    return (void *)(uintptr_t)made;
}

gantry_status gy_read_remember(gy_reader *r, const json_t *value, void *made)
{
    if (r->index.count == 0 || gy_map_put(&r->compiled, (uint64_t)(uintptr_t)value, (uint64_t)(uintptr_t)made))
        return GANTRY_OK;
    return gy_read_nomem(r);
}

/* The expression in the string at `at`. */
static gantry_status compile_value(gy_reader *r, const gy_json_at *at, const char *also, const gy_expr **out)
{
    *out = gy_read_known(r, at->value);
    if (*out)
        return GANTRY_OK;
    gantry_status status =
        gy_read_compile(r, at, json_string_value(at->value), json_string_length(at->value), also, out);
    return status ? status : gy_read_remember(r, at->value, (void *)(uintptr_t)*out);
}

/* ---- values ---- */

gantry_status gy_read_evaluate(gy_reader *r, const gy_json_at *at, const gy_expr *e, int64_t *out)
{
    gantry_status status = gy_expr_integer(e, gy_read_lookup, r, out, GANTRY_E_GRAPH, NULL, &r->error);
    return status ? gy_read_locate(r, at) : GANTRY_OK;
}

gantry_status gy_read_integer(gy_reader *r, const gy_json_at *at, int64_t *out)
{
    const gy_expr *e;
    if (json_is_integer(at->value)) {
        *out = json_integer_value(at->value);
        return GANTRY_OK;
    }
    if (json_is_real(at->value))
        return gy_read_fail(r, at, "must be a whole number, not %g", json_real_value(at->value));
    if (!json_is_string(at->value))
        return gy_read_kind(r, at, "a whole number or an expression");
    GY_TRY(compile_value(r, at, NULL, &e));
    return gy_read_evaluate(r, at, e, out);
}

gantry_status gy_read_bounded(gy_reader *r, const gy_json_at *at, const char *what, int64_t low, int64_t high,
                              int64_t *out)
{
    int64_t value = 0;
    GY_TRY(gy_read_integer(r, at, &value));
    if (value < low)
        return gy_read_fail(r, at, "%s must be at least %" PRId64 ", not %" PRId64, what, low, value);
    if (value > high)
        return gy_read_fail(r, at, "%s must be at most %" PRId64 ", not %" PRId64, what, high, value);
    *out = value;
    return GANTRY_OK;
}

static gantry_status evaluate_real(gy_reader *r, const gy_json_at *at, const gy_expr *e, double *out)
{
    gantry_status status = gy_expr_real(e, gy_read_lookup, r, out, GANTRY_E_GRAPH, NULL, &r->error);
    return status ? gy_read_locate(r, at) : GANTRY_OK;
}

static gantry_status evaluate_constant(gy_reader *r, const gy_json_at *at, const gy_expr *e, gy_constant *out)
{
    gantry_status status = gy_constant_evaluate(out, e, gy_read_lookup, r, GANTRY_E_GRAPH, &r->error);
    return status ? gy_read_locate(r, at) : GANTRY_OK;
}

gantry_status gy_read_real(gy_reader *r, const gy_json_at *at, double *out)
{
    const gy_expr *e;
    if (json_is_number(at->value)) {
        *out = json_number_value(at->value);
        return GANTRY_OK;
    }
    if (!json_is_string(at->value))
        return gy_read_kind(r, at, "a number or an expression");
    GY_TRY(compile_value(r, at, NULL, &e));
    return evaluate_real(r, at, e, out);
}

gantry_status gy_read_constant(gy_reader *r, const gy_json_at *at, gy_constant *out)
{
    const gy_expr *e;
    if (json_is_integer(at->value)) {
        *out = gy_constant_whole(json_integer_value(at->value));
        return GANTRY_OK;
    }
    if (json_is_real(at->value)) {
        *out = (gy_constant){ .real = json_real_value(at->value) };
        return GANTRY_OK;
    }
    if (!json_is_string(at->value))
        return gy_read_kind(r, at, "a number or an expression");
    GY_TRY(compile_value(r, at, NULL, &e));
    return evaluate_constant(r, at, e, out);
}

static bool is_no_index(void *context, const char *name)
{
    return !gy_read_is_loop_index(context, name);
}

gantry_status gy_read_scalar(gy_reader *r, const gy_json_at *at, gy_constant *number, const gy_expr **expr)
{
    const gy_expr *e;
    *expr = NULL;
    if (!json_is_string(at->value) || r->loop.count == 0)
        return gy_read_constant(r, at, number);
    gantry_status status = compile_value(r, at, "it", &e);
    if (status || gy_expr_names(e, is_no_index, r))
        return status ? status : evaluate_constant(r, at, e, number);
    *expr = gy_expr_bind(e, &r->graph->arena, gy_read_lookup, r);
    return *expr ? GANTRY_OK : gy_read_nomem(r);
}
