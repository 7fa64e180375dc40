/* SPDX-License-Identifier: Apache-2.0 */
/* `params`: values of the file, overridden by --param, or by the sizes of --input files where a shape names them. */
#include "graph/json/json_read.h"

#include "base/error.h"
#include "base/npy.h"
#include "base/paths.h"
#include "images/images.h"
#include <inttypes.h>
#include <string.h>

/* A value that the caller gives to a param. */
typedef struct given {
    const char *text;  /* of --param; NULL: none */
    const char *input; /* the file whose size it takes; NULL: none */
    int64_t size;
} given;

typedef GY_VEC(given) givens;

/* The part of "name=value" behind the '=', and the length of the name; NULL if there is none. */
static const char *split_assignment(const char *text, size_t *name)
{
    const char *equals = strchr(text, '=');
    *name = equals ? (size_t)(equals - text) : 0;
    return equals && equals > text ? equals + 1 : NULL;
}

/* The member of an object whose key is the first `length` characters of `name`. */
static gy_json_at member_named(gy_reader *r, const gy_json_at *object, const char *name, size_t length)
{
    char *key = gy_arena_strndup(&r->graph->arena, name, length);
    gy_json_at at = { object, key, 0, key && object->value ? json_object_get(object->value, key) : NULL };
    return at;
}

static const char *nearest_member(const gy_json_at *object, const char *name)
{
    gy_near near = { 0 };
    json_t *members = object->value ? gy_read_open(object->value) : NULL;
    for (void *i = json_object_iter(members); i; i = json_object_iter_next(members, i))
        gy_near_offer(&near, name, json_object_iter_key(i));
    return near.best;
}

/* The member that was perhaps meant, else the first of those that there are. */
static const char *offer_members(char *to, size_t size, const gy_json_at *object, const char *name)
{
    enum { SHOWN = 8 };
    const char *near = nearest_member(object, name), *key;
    size_t used = (size_t)snprintf(to, size, near ? " (did you mean \"%s\"?)" : "; it has%s", near ? near : "");
    json_t *members = object->value ? gy_read_open(object->value) : NULL, *value;
    int count = 0;
    json_object_foreach(members, key, value)
    {
        if (!near && count < SHOWN && used < size)
            used += (size_t)snprintf(to + used, size - used, "%s \"%s\"", count ? "," : "", key);
        count++;
    }
    if (!near && used < size && count == 0)
        snprintf(to + used, size - used, " none");
    else if (!near && used < size && count > SHOWN)
        snprintf(to + used, size - used, " and %d more", count - SHOWN);
    return to;
}

static gantry_status fail_member(gy_reader *r, const gy_json_at *member, const char *option, const char *what)
{
    if (!member->key)
        return gy_read_nomem(r);
    /* Without the section the place is the graph itself. */
    const gy_json_at *place = member->up->value ? member->up : member->up->up;
    char remedy[256];
    gy_read_fail(r, place, "%s %s: the graph has no %s of that name%s", option, member->key, what,
                 offer_members(remedy, sizeof remedy, member->up, member->key));
    r->error.status = GANTRY_E_INVALID; /* the graph is fine, the caller's words are not */
    return GANTRY_E_INVALID;
}

/* ---- what was said outside the file ---- */

static gantry_status take_param(gy_reader *r, const gy_json_at *params, const char *option, givens *all)
{
    size_t length;
    const char *value = split_assignment(option, &length);
    if (!value)
        return gy_fail(&r->error, GANTRY_E_INVALID, NULL, "--param %s: write name=value", option);
    gy_json_at member = member_named(r, params, option, length);
    if (!member.value)
        return fail_member(r, &member, "--param", "param");
    all->at[gy_names_find(&r->params, member.key)].text = value;
    return GANTRY_OK;
}

static gantry_status take_size(gy_reader *r, const gy_json_at *entry, const char *file, int64_t size, givens *all)
{
    uint32_t p = json_is_string(entry->value) ? gy_names_find(&r->params, json_string_value(entry->value)) : GY_NO_NAME;
    if (p == GY_NO_NAME)
        return GANTRY_OK; /* a number or an expression: binding the file will compare */
    given *g = &all->at[p];
    if (g->input && !g->text && g->size != size) {
        return gy_read_fail(r, entry, "--input files disagree about \"%s\": %s has %" PRId64 ", %s has %" PRId64,
                            gy_names_at(&r->params, p), g->input, g->size, file, size);
    }
    g->input = file;
    g->size = size;
    return GANTRY_OK;
}

/* The bare params of a shape are the sizes that a file has; `rank` of them. */
static gantry_status take_sizes(gy_reader *r, const gy_json_at *shape, const char *file, const int64_t *size,
                                size_t rank, givens *all)
{
    gantry_status status = GANTRY_OK;
    size_t axes = json_array_size(shape->value);
    if (rank != axes)
        return gy_read_fail(r, shape, "has %zu %s, but the file %s has %zu; reshape the array, or change the shape",
                            axes, axes == 1 ? "axis" : "axes", file, rank);
    for (size_t i = 0; i < rank && !status; i++) {
        gy_json_at entry = gy_read_item(shape, i);
        status = take_size(r, &entry, file, size[i], all);
    }
    return status;
}

/* The header of the first file that a pattern means, or of the one that it names. */
static gantry_status first_header(gy_npy *npy, const char *pattern, gantry_error *err)
{
    gy_paths paths;
    GY_TRY(gy_paths_find(&paths, pattern, "name a .npy file or a pattern of some (*)", err));
    gantry_status status = gy_npy_header_read(npy, paths.at[0], err);
    gy_paths_free(&paths);
    return status;
}

/* With one more axis in front it is a stack of such arrays, one for each start. */
static gantry_status take_npy(gy_reader *r, const gy_json_at *shape, const char *file, givens *all)
{
    gy_npy npy;
    gantry_status status = first_header(&npy, file, &r->error);
    if (status == GANTRY_E_IO)
        gy_error_of_buffer(&r->error, shape->up->key);
    if (status)
        return status;
    size_t stacked = (size_t)npy.rank == json_array_size(shape->value) + 1;
    status = take_sizes(r, shape, file, npy.shape + stacked, (size_t)npy.rank - stacked, all);
    gy_npy_free(&npy);
    return status;
}

/* [image, height, width, channel] of the first file, with which the others are compared when they are bound. */
static gantry_status take_images(gy_reader *r, const gy_json_at *shape, const char *pattern, givens *all)
{
    gy_images images;
    gy_image_size first;
    GY_TRY(gy_images_open(&images, pattern, &r->error));
    gantry_status status = gy_images_look(&images, 0, &first, &r->error);
    int64_t size[] = { (int64_t)images.count, first.height, first.width, first.channels };
    bool alone = images.count == 1 && json_array_size(shape->value) == 3;
    status = status ? status : take_sizes(r, shape, pattern, size + alone, 4 - (size_t)alone, all);
    gy_images_close(&images);
    return status;
}

static bool is_npy(const char *file)
{
    size_t length = strlen(file);
    return length > 4 && strcmp(file + length - 4, ".npy") == 0;
}

/* Where the name ends in "buffer=file": at the last sign with a buffer before it, since names may have signs in them;
 * at the first sign if there is no such buffer. */
static const char *split_input(gy_reader *r, const gy_json_at *buffers, const char *option, size_t *name)
{
    const char *file = split_assignment(option, name);
    for (const char *sign = file ? strchr(file, '=') : NULL; sign; sign = strchr(sign + 1, '=')) {
        if (member_named(r, buffers, option, (size_t)(sign - option)).value) {
            *name = (size_t)(sign - option);
            file = sign + 1;
        }
    }
    return file;
}

/* The buffer of input `i` has no file yet. */
static gantry_status check_once(gy_reader *r, const gy_json_at *buffers, size_t i)
{
    size_t length, other;
    const char *const *inputs = r->options->inputs, *file = split_input(r, buffers, inputs[i], &length);
    for (size_t k = 0; k < i; k++) {
        const char *first = split_input(r, buffers, inputs[k], &other);
        if (other == length && strncmp(inputs[k], inputs[i], length) == 0) {
            return gy_fail(&r->error, GANTRY_E_INVALID, NULL,
                           "--input %.*s is given twice, as %s and as %s; a buffer takes one file", (int)length,
                           inputs[i], first, file);
        }
    }
    return GANTRY_OK;
}

static gantry_status take_input(gy_reader *r, const gy_json_at *buffers, size_t i, givens *all)
{
    size_t length;
    const char *option = r->options->inputs[i], *file = split_input(r, buffers, option, &length);
    if (!file || !*file)
        return gy_fail(&r->error, GANTRY_E_INVALID, NULL, "--input %s: write buffer=file", option);
    gy_json_at buffer = member_named(r, buffers, option, length);
    if (!buffer.value) /* one that a use or the training makes is not there yet: gy_read_check_inputs */
        return memchr(option, '.', length) ? GANTRY_OK : fail_member(r, &buffer, "--input", "buffer");
    gy_json_at shape = gy_json_key(&buffer, "shape");
    bool names_sizes = false; /* mistakes of the shape are found when the buffer is read */
    for (size_t k = 0; k < json_array_size(shape.value); k++)
        names_sizes = names_sizes || json_is_string(json_array_get(shape.value, k));
    if (names_sizes && gy_images_named(file))
        return take_images(r, &shape, file, all);
    return names_sizes && is_npy(file) ? take_npy(r, &shape, file, all) : GANTRY_OK;
}

/* Does the name before one of the signs belong to a buffer? */
static gantry_status has_buffer(gy_reader *r, const char *option, bool *found)
{
    *found = false;
    for (const char *sign = strchr(option, '='); sign && !*found; sign = strchr(sign + 1, '=')) {
        const char *name = gy_arena_strndup(&r->graph->arena, option, (size_t)(sign - option));
        if (!name)
            return gy_read_nomem(r);
        *found = gy_names_find(&r->graph->buffer_names, name) != GY_NO_NAME;
    }
    return GANTRY_OK;
}

static gantry_status fail_input(gy_reader *r, const char *option)
{
    const gantry_graph *g = r->graph;
    gy_near near = { 0 };
    const char *name = gy_arena_strndup(&r->graph->arena, option, strcspn(option, "="));
    if (!name)
        return gy_read_nomem(r);
    for (size_t i = 0; i < g->buffers.count; i++)
        gy_near_offer(&near, name, g->buffers.at[i].name);
    return gy_fail(&r->error, GANTRY_E_INVALID, NULL,
                   "--input %.80s: graph \"%.80s\" has no buffer of that name%s%.80s%s", name, g->name,
                   near.best ? " (did you mean \"" : "", near.best ? near.best : "", near.best ? "\"?)" : "");
}

gantry_status gy_read_check_inputs(gy_reader *r)
{
    for (size_t i = 0; i < r->options->input_count; i++) {
        bool found;
        GY_TRY(has_buffer(r, r->options->inputs[i], &found));
        if (!found)
            return fail_input(r, r->options->inputs[i]);
    }
    return GANTRY_OK;
}

bool gy_read_is_fed(gy_reader *r, const gy_json_at *buffer)
{
    const char *const *inputs = r->options->inputs;
    gy_json_at shape = gy_json_key(buffer, "shape");
    for (size_t i = 0; !r->scope && i < r->options->input_count; i++) {
        size_t length;
        gy_npy npy;
        const char *file = split_input(r, buffer->up, inputs[i], &length);
        if (!file || strlen(buffer->key) != length || strncmp(buffer->key, inputs[i], length) != 0 || !is_npy(file))
            continue;
        if (gy_is_pattern(file))
            return true;
        if (!gy_file_is_regular(file) || gy_npy_header_read(&npy, file, NULL))
            return false; /* the file is refused when it is bound */
        size_t rank = (size_t)npy.rank;
        gy_npy_free(&npy);
        return rank == json_array_size(shape.value) + 1;
    }
    return false;
}

static gantry_status take_options(gy_reader *r, const gy_json_at *root, givens *all)
{
    gy_json_at params = gy_json_key(root, "params"), buffers = gy_json_key(root, "buffers");
    for (size_t i = 0; i < r->options->param_count; i++)
        GY_TRY(take_param(r, &params, r->options->params[i], all));
    for (size_t i = 1; i < r->options->input_count; i++)
        GY_TRY(check_once(r, &buffers, i));
    for (size_t i = 0; i < r->options->input_count; i++)
        GY_TRY(take_input(r, &buffers, i, all));
    return GANTRY_OK;
}

/* ---- values ---- */

/* Whole if it can be, else real: a param says by its value what it is. */
static gantry_status evaluate(gy_reader *r, const gy_json_at *at, const char *text, gy_param *param)
{
    const gy_expr *e;
    gantry_error real_error;
    GY_TRY(gy_read_compile(r, at, text, strlen(text), NULL, &e));
    if (!gy_expr_integer(e, gy_read_lookup, r, &param->integer, GANTRY_E_GRAPH, NULL, &r->error))
        return GANTRY_OK;
    param->is_real = true;
    return gy_expr_real(e, gy_read_lookup, r, &param->real, GANTRY_E_GRAPH, NULL, &real_error) ? gy_read_locate(r, at)
                                                                                               : GANTRY_OK;
}

gantry_status gy_read_param_value(gy_reader *r, const gy_json_at *at, gy_param *out)
{
    if (json_is_integer(at->value)) {
        out->integer = json_integer_value(at->value);
    } else if (json_is_real(at->value)) {
        out->is_real = true;
        out->real = json_real_value(at->value);
    } else if (json_is_string(at->value)) {
        return evaluate(r, at, json_string_value(at->value), out);
    } else {
        return gy_read_kind(r, at, "a number or an expression");
    }
    return GANTRY_OK;
}

/* The params of the graph's own file are those of the graph. */
static gantry_status keep_param(gy_reader *r, const gy_json_at *at, gy_param param)
{
    if (!gy_vec_push(&r->param, param))
        return gy_read_nomem(r);
    if (!r->scope)
        gy_graph_add_param(r->graph, param.name, param.integer, param.real, param.is_real);
    return gy_read_built(r, at);
}

static gantry_status read_param(gy_reader *r, const gy_json_at *at, const given *g)
{
    gy_param param = { .name = at->key };
    const gy_meaning *bound = gy_read_meaning(r, at->key, strlen(at->key));
    gantry_status status = GANTRY_OK;
    if (bound) {
        param.integer = bound->number.integer;
        param.real = bound->number.real;
        param.is_real = bound->number.is_real;
    } else if (g->text) {
        status = evaluate(r, at, g->text, &param);
        if (status) {
            gantry_error why = r->error;
            gy_read_fail(r, at, "--param %s=%s: %s", at->key, g->text, why.text);
            r->error.status =
                status == GANTRY_E_UNSUPPORTED ? status : r->error.status; /* `devices`: the caller may give it */
            return r->error.status;
        }
    } else if (g->input) {
        param.integer = g->size;
    } else {
        status = gy_read_param_value(r, at, &param);
    }
    if (status)
        return status;
    return keep_param(r, at, param);
}

static gantry_status add_names(gy_reader *r, const gy_json_at *params, givens *all)
{
    json_t *object = gy_read_open(params->value);
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        gy_json_at at = gy_read_at(params, json_object_iter_key(i), json_object_iter_value(i));
        gantry_status status = gy_read_name(r, &at, "a param", at.key);
        if (status)
            return status;
        given none = { 0 };
        if (gy_names_add(&r->params, at.key, NULL) == GY_NO_NAME || !gy_vec_push(all, none))
            return gy_read_nomem(r);
    }
    return GANTRY_OK;
}

static gantry_status read_values(gy_reader *r, const gy_json_at *params, const givens *all)
{
    json_t *object = gy_read_open(params->value);
    gantry_status status = GANTRY_OK;
    gy_names_free(&r->params); /* a param may use those above it only: they come back one by one */
    for (void *i = json_object_iter(object); i && !status; i = json_object_iter_next(object, i)) {
        gy_json_at at = gy_read_at(params, json_object_iter_key(i), json_object_iter_value(i));
        status = read_param(r, &at, &all->at[r->params.count]);
        if (!status && gy_names_add(&r->params, at.key, NULL) == GY_NO_NAME)
            status = gy_read_nomem(r);
    }
    return status;
}

gantry_status gy_read_params(gy_reader *r, const gy_json_at *root)
{
    givens all = { 0 };
    gy_json_at params = gy_json_key(root, "params");
    r->all_params = params.value;
    gantry_status status = GANTRY_OK;
    if (params.value && !json_is_object(params.value))
        return gy_read_kind(r, &params, "an object of numbers");
    if (params.value)
        status = add_names(r, &params, &all);
    if (!status)
        status = take_options(r, root, &all);
    if (!status && params.value)
        status = read_values(r, &params, &all);
    gy_vec_free(&all);
    return status;
}
