/* SPDX-License-Identifier: Apache-2.0 */
/* `buffers`: type, size, cut, class and first contents. */
#include "graph/json/json_read.h"

#include "base/error.h"

#include <string.h>

enum { DTYPE, SHAPE, SPLIT, TILES, HALO, CLASS, INIT, OUTPUT, EXTERNAL, CHECK, KEYS };
static const char *const keys[KEYS] = { "dtype", "shape", "split",  "tiles",    "halo",
                                        "class", "init",  "output", "external", "check" };

/* The names that NumPy, PyTorch and C have for element types. */
static gantry_status refuse_foreign(gy_reader *r, const gy_json_at *at)
{
    static const char *const names[][2] = {
        { "float16", "f16" },
        { "half", "f16" },
        { "bfloat16", "bf16" },
        { "float32", "f32" },
        { "float", "f32" },
        { "single", "f32" },
        { "float64", "f64" },
        { "double", "f64" },
        { "int8", "i8" },
        { "uint8", "u8" },
        { "bool", "u8" },
        { "byte", "u8" },
        { "int32", "i32" },
        { "int", "i32" },
        { "uint32", "u32" },
        { "int64", "i64" },
        { "long", "i64" },
        { "uint64", "u64" },
        { "float8_e4m3fn", "f8e4m3" },
        { "float8_e4m3", "f8e4m3" },
        { "fp8_e4m3", "f8e4m3" },
        { "e4m3", "f8e4m3" },
        { "float8_e5m2", "f8e5m2" },
        { "fp8_e5m2", "f8e5m2" },
        { "e5m2", "f8e5m2" },
    };
    const char *word = json_is_string(at->value) ? json_string_value(at->value) : "";
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(word, names[i][0]) == 0)
            return gy_read_fail(r, at, "no dtype \"%s\" (did you mean \"%s\"?)", word, names[i][1]);
    if (strcmp(word, "c64") == 0 || strcmp(word, "c128") == 0 || strncmp(word, "complex", 7) == 0)
        return gy_read_fail(r, at, "no dtype \"%.40s\": complex numbers are f32 or f64 with a last axis of 2", word);
    return GANTRY_OK;
}

gantry_status gy_read_dtype(gy_reader *r, const gy_json_at *at, gantry_dtype *out)
{
    static const char *const words[] = {
#define GANTRY_X(name, text, bytes) #text,
        GANTRY_DTYPE_MAP(GANTRY_X)
#undef GANTRY_X
    };
    size_t i = 0;
    GY_TRY(refuse_foreign(r, at));
    gantry_status status = gy_read_word(r, at, "dtype", words, COUNT(words), &i);
    *out = (gantry_dtype)i;
    return status;
}

/* ---- first contents ---- */

static gantry_status read_optional_constant(gy_reader *r, const gy_json_at *up, const char *key, const json_t *value,
                                            double fallback, gy_constant *out)
{
    gy_json_at at = gy_read_at(up, key, value);
    *out = (gy_constant){ .real = fallback };
    return value ? gy_read_constant(r, &at, out) : GANTRY_OK;
}

static gantry_status read_optional_real(gy_reader *r, const gy_json_at *up, const char *key, const json_t *value,
                                        double fallback, double *out)
{
    gy_json_at at = gy_read_at(up, key, value);
    *out = fallback;
    return value ? gy_read_real(r, &at, out) : GANTRY_OK;
}

/* {"seed": s, FIRST: a, SECOND: b}, all optional. Without seeds: two keys only. */
static gantry_status read_three(gy_reader *r, const gy_json_at *at, const char *const names[3], double a, double b,
                                gy_init *out)
{
    const json_t *value[3];
    size_t count = names[1] ? 3 : 1;
    gantry_status status = gy_read_members(r, at, names, count, value);
    if (status)
        return status;
    if (value[0]) {
        int64_t seed = 0;
        gy_json_at member = gy_read_at(at, names[0], value[0]);
        status = gy_read_integer(r, &member, &seed);
        out->seed = (uint64_t)seed;
    }
    if (!status && count == 3)
        status = read_optional_constant(r, at, names[1], value[1], a, &out->a);
    if (!status && count == 3)
        status = read_optional_constant(r, at, names[2], value[2], b, &out->b);
    return status;
}

static gantry_status read_iota(gy_reader *r, const gy_json_at *at, gy_init *out)
{
    static const char *const names[] = { "start", "step" };
    const json_t *value[2];
    GY_TRY(gy_read_members(r, at, names, 2, value));
    GY_TRY(read_optional_constant(r, at, "start", value[0], 0, &out->a));
    return read_optional_constant(r, at, "step", value[1], 1, &out->b);
}

gantry_status gy_read_generator(gy_reader *r, const gy_json_at *at, gy_init *out)
{
    static const char *const uniform[] = { "seed", "low", "high" }, *const normal[] = { "seed", "mean", "deviation" },
                             *const spd[] = { "seed", NULL, NULL };
    memset(out, 0, sizeof *out);
    switch (at->key[0]) {
    case 'r':
        out->kind = GY_INIT_UNIFORM;
        return read_three(r, at, uniform, 0, 1, out);
    case 'n':
        out->kind = GY_INIT_NORMAL;
        return read_three(r, at, normal, 0, 1, out);
    case 's':
        out->kind = GY_INIT_SPD;
        return read_three(r, at, spd, 0, 0, out);
    default:
        out->kind = GY_INIT_IOTA;
        return read_iota(r, at, out);
    }
}

static gantry_status read_init_object(gy_reader *r, const gy_json_at *at, gy_init *out)
{
    static const char *const names[] = { "random", "normal", "iota", "spd", "npy", "raw" };
    const json_t *value[COUNT(names)];
    GY_TRY(gy_read_members(r, at, names, COUNT(names), value));
    if (json_object_size(at->value) != 1) {
        return gy_read_fail(r, at, "must have exactly one of random, normal, iota, spd, npy, raw, not %zu keys",
                            json_object_size(at->value));
    }
    size_t i = 0;
    while (!value[i])
        i++;
    gy_json_at member = gy_read_at(at, names[i], value[i]);
    if (i < 4)
        return gy_read_generator(r, &member, out);
    out->kind = i == 4 ? GY_INIT_NPY : GY_INIT_RAW;
    out->folder = r->folder;
    return gy_read_path(r, &member, &out->path);
}

/* A single word that is no param: more likely a kind of init that does not exist than an expression. */
static bool is_unknown_word(const gy_reader *r, const char *text)
{
    size_t letters = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    return letters > 0 && text[letters] == '\0' && gy_names_find(&r->params, text) == GY_NO_NAME;
}

static gantry_status read_init(gy_reader *r, const gy_json_at *at, gy_init *out)
{
    memset(out, 0, sizeof *out);
    if (json_is_number(at->value)) {
        out->kind = GY_INIT_VALUE;
        return gy_read_constant(r, at, &out->a);
    }
    if (json_is_string(at->value) && strcmp(json_string_value(at->value), "iota") == 0) {
        *out = (gy_init){ .kind = GY_INIT_IOTA, .b = { .real = 1 } };
        return GANTRY_OK;
    }
    if (json_is_string(at->value) && is_unknown_word(r, json_string_value(at->value))) {
        return gy_read_fail(r, at,
                            "no init \"%s\": allowed are a number, \"iota\" and an object such as {\"random\": {}}, "
                            "of random, normal, iota, spd, npy and raw",
                            json_string_value(at->value));
    }
    const char *ending = json_is_string(at->value) ? strrchr(json_string_value(at->value), '.') : NULL;
    if (ending && strcmp(ending, ".npy") == 0)
        return gy_read_fail(r, at, "\"%s\" is no number: a file is {\"npy\": FILE}", json_string_value(at->value));
    if (json_is_string(at->value)) {
        out->kind = GY_INIT_VALUE;
        return gy_read_constant(r, at, &out->a);
    }
    if (json_is_array(at->value))
        return gy_read_fail(
            r, at,
            "\"init\" is an array: it is one number for all elements, \"iota\" or an object; numbers one by "
            "one are in a file, {\"npy\": FILE}");
    if (!json_is_object(at->value))
        return gy_read_kind(r, at, "a number, \"iota\" or an object");
    return read_init_object(r, at, out);
}

/* ---- size and cut ---- */

static gantry_status read_shape(gy_reader *r, const gy_json_at *at, int64_t **shape, int *rank)
{
    if (!json_is_array(at->value))
        return gy_read_kind(r, at, "an array of sizes");
    size_t count = json_array_size(at->value);
    if (count == 0)
        return gy_read_fail(r, at, "is empty: a single number has the shape [1]");
    *shape = gy_arena_alloc(&r->graph->arena, count * sizeof **shape);
    if (!*shape)
        return gy_read_nomem(r);
    for (size_t i = 0; i < count; i++) {
        gy_json_at entry = gy_read_item(at, i);
        gantry_status status = gy_read_bounded(r, &entry, "a size", 0, INT64_MAX, &(*shape)[i]);
        if (status)
            return status;
    }
    *rank = (int)count;
    return GANTRY_OK;
}

static gantry_status read_parts(gy_reader *r, const gy_json_at *at, int64_t *parts, bool *is_auto)
{
    static const char *const names[] = { "auto" };
    const json_t *value[1];
    *is_auto = json_is_object(at->value);
    if (!*is_auto && !json_is_string(at->value) && !json_is_number(at->value))
        return gy_read_kind(r, at, "a count of parts, an expression, or {\"auto\": parts}");
    if (!*is_auto)
        return gy_read_bounded(r, at, "the count of parts", 1, INT32_MAX, parts);
    GY_TRY(gy_read_members(r, at, names, 1, value));
    gy_json_at member = gy_read_at(at, "auto", value[0]);
    return member.value ? gy_read_bounded(r, &member, "the count of parts", 1, INT32_MAX, parts)
                        : gy_read_kind(r, &member, "the count of parts");
}

static gantry_status read_split(gy_reader *r, const gy_json_at *at, gantry_buffer b)
{
    int64_t parts = 0;
    bool is_auto;
    GY_TRY(read_parts(r, at, &parts, &is_auto));
    if (is_auto)
        gantry_buffer_split_auto(r->graph, b, parts);
    else
        gantry_buffer_split(r->graph, b, parts);
    gy_json_at member = is_auto ? gy_json_key(at, "auto") : *at;
    return gy_read_built(r, &member);
}

/* One for each axis; *axes: how many of them are given, and the others are 1. */
static gantry_status read_tile_counts(gy_reader *r, const gy_json_at *at, int64_t tiles[GANTRY_TILE_AXES], int *axes)
{
    size_t count = json_array_size(at->value);
    *axes = (int)count;
    if (count < 1 || count > GANTRY_TILE_AXES)
        return gy_read_fail(r, at, "must be an array of 1 to %d numbers: how many tiles there are along each axis",
                            GANTRY_TILE_AXES);
    for (size_t i = 0; i < GANTRY_TILE_AXES; i++)
        tiles[i] = 1;
    for (size_t i = 0; i < count; i++) {
        gy_json_at entry = gy_read_item(at, i);
        GY_TRY(gy_read_bounded(r, &entry, "a count of tiles", 1, INT32_MAX, &tiles[i]));
    }
    return GANTRY_OK;
}

static gantry_status read_tiles(gy_reader *r, const gy_json_at *at, gantry_buffer b)
{
    int64_t tiles[GANTRY_TILE_AXES];
    int axes;
    GY_TRY(read_tile_counts(r, at, tiles, &axes));
    gantry_buffer_tiles_by_axis(r->graph, b, axes, tiles);
    return gy_read_built(r, at);
}

/* [before, after] of each axis. */
static gantry_status read_tile_halo(gy_reader *r, const gy_json_at *at, gantry_buffer b)
{
    int64_t width[2][GANTRY_TILE_AXES] = { { 0 } };
    size_t axes = (size_t)r->graph->buffers.at[b.id].rank;
    if (!json_is_array(at->value) || json_array_size(at->value) != axes || axes > GANTRY_TILE_AXES)
        return gy_read_fail(r, at, "must be an array with [before, after] for each of at most %d axes",
                            GANTRY_TILE_AXES);
    for (size_t k = 0; k < axes; k++) {
        gy_json_at pair = gy_read_item(at, k);
        if (json_array_size(pair.value) != 2)
            return gy_read_fail(r, &pair, "must be [before, after]: elements around a tile along axis %zu", k);
        for (size_t side = 0; side < 2; side++) {
            gy_json_at one = gy_read_item(&pair, side);
            GY_TRY(gy_read_bounded(r, &one, "a halo", 0, UINT16_MAX - 1, &width[side][k]));
        }
    }
    gy_buffer_halo(r->graph, b, width[0], width[1]);
    return gy_read_built(r, at);
}

/* ---- one buffer ---- */

/* True or false; `value` NULL: false. */
static gantry_status read_optional_bool(gy_reader *r, const gy_json_at *up, const char *key, const json_t *value,
                                        bool *out)
{
    gy_json_at at = gy_read_at(up, key, value);
    *out = json_is_true(value);
    return !value || json_is_boolean(value) ? GANTRY_OK : gy_read_kind(r, &at, "true or false");
}

/* With neither of the tolerances, those of the dtype stay. */
static gantry_status read_check(gy_reader *r, const gy_json_at *at, gantry_buffer b)
{
    static const char *const names[] = { "rtol", "atol", "equal_nan" };
    const json_t *value[3];
    double tolerance[2];
    bool equal_nan = false;
    gantry_status status = gy_read_members(r, at, names, 3, value);
    for (size_t i = 0; i < 2 && !status; i++)
        status = read_optional_real(r, at, names[i], value[i], 0, &tolerance[i]);
    status = status ? status : read_optional_bool(r, at, names[2], value[2], &equal_nan);
    if (status)
        return status;
    if (value[0] || value[1] || !value[2])
        gantry_buffer_tolerance(r->graph, b, tolerance[0], tolerance[1]);
    if (equal_nan)
        gantry_buffer_equal_nan(r->graph, b);
    return gy_read_built(r, at);
}

static gantry_status read_class(gy_reader *r, const gy_json_at *at, gantry_buffer b)
{
    static const char *const words[] = { "input", "state", "const", "temp" };
    size_t i = 0;
    GY_TRY(gy_read_word(r, at, "class", words, COUNT(words), &i));
    bool fed = (GANTRY_INPUT + i == GANTRY_CONST || GANTRY_INPUT + i == GANTRY_INPUT) && gy_read_is_fed(r, at->up);
    if (fed)
        i = 0; /* a model's data are constants until somebody has several batches of them */
    if (fed && b.id < r->graph->buffers.count)
        r->graph->buffers.at[b.id].fed = true;
    gantry_buffer_set_class(r->graph, b, (gantry_buffer_class)(GANTRY_INPUT + i));
    return gy_read_built(r, at);
}

static gantry_status read_output(gy_reader *r, const gy_json_at *at, gantry_buffer b)
{
    if (!json_is_boolean(at->value))
        return gy_read_kind(r, at, "true or false");
    if (json_is_true(at->value))
        gantry_buffer_output(r->graph, b);
    return gy_read_built(r, at);
}

static gantry_status read_external(gy_reader *r, const gy_json_at *at, gantry_buffer b)
{
    if (!json_is_string(at->value))
        return gy_read_kind(r, at, "the id of a memory or a device");
    gantry_buffer_external(r->graph, b, json_string_value(at->value));
    return gy_read_built(r, at);
}

static gantry_status read_set_init(gy_reader *r, const gy_json_at *at, gantry_buffer b)
{
    gy_init init;
    GY_TRY(read_init(r, at, &init));
    gy_buffer_set_init(r->graph, b, &init);
    return gy_read_built(r, at);
}

static gantry_status read_options(gy_reader *r, const gy_json_at *at, const json_t *const *value, gantry_buffer b)
{
    static gantry_status (*const readers[KEYS])(gy_reader *, const gy_json_at *, gantry_buffer) = {
        [SPLIT] = read_split,   [TILES] = read_tiles,   [HALO] = read_tile_halo,    [CLASS] = read_class,
        [INIT] = read_set_init, [OUTPUT] = read_output, [EXTERNAL] = read_external, [CHECK] = read_check,
    };
    gantry_status status = GANTRY_OK;
    for (int k = SPLIT; k < KEYS && !status; k++) {
        gy_json_at member = gy_read_at(at, keys[k], value[k]);
        status = value[k] ? readers[k](r, &member, b) : GANTRY_OK;
    }
    return status;
}

/* References cut a name at these. */
static gantry_status read_buffer_key(gy_reader *r, const gy_json_at *at)
{
    if (at->key[0] == '\0' || at->key[gy_name_length(at->key)] != '\0') {
        return gy_read_fail(r, at,
                            at->key[0] ? "\"%s\" cannot be the name of a buffer: brackets, commas, blanks, ':', '~' "
                                         "and '*' have a meaning in references, and quotes, '\\' and control "
                                         "characters are not allowed"
                                       : "a buffer cannot be named \"%s\": give it a name",
                            at->key);
    }
    return GANTRY_OK;
}

static gantry_status add_buffer(gy_reader *r, const gy_json_at *at, const json_t *const *value, gantry_dtype dtype,
                                int rank, const int64_t *shape)
{
    const char *name = r->scope ? gy_arena_printf(&r->graph->arena, "%s%s", r->scope->buffer_prefix, at->key) : at->key;
    if (!name)
        return gy_read_nomem(r);
    gy_read_origin(r, at);
    gantry_buffer b = gantry_graph_buffer(r->graph, name, dtype, rank, shape);
    gantry_status status = gy_read_built(r, at);
    return status ? status : read_options(r, at, value, b);
}

/* The buffer exists; its class, its first contents and the like are said where it is. */
static gantry_status check_bound(gy_reader *r, const gy_json_at *at, const json_t *const *value, const gy_meaning *b,
                                 gantry_dtype dtype, int rank, const int64_t *shape)
{
    gy_json_at split = gy_read_at(at, "split", value[SPLIT]), tiles = gy_read_at(at, "tiles", value[TILES]);
    GY_TRY(gy_read_bound(r, at, b, dtype, rank, shape));
    if (value[HALO]) {
        gy_json_at halo = gy_read_at(at, "halo", value[HALO]);
        return gy_read_fail(
            r, &halo, "a buffer of tiles with a halo stands for none of the graph around: leave it out of \"with\"");
    }
    if (split.value) {
        int64_t parts;
        bool is_auto;
        GY_TRY(read_parts(r, &split, &parts, &is_auto));
        GY_TRY(gy_read_bound_cut(r, &split, b, parts, is_auto));
    }
    if (tiles.value) {
        int64_t count[GANTRY_TILE_AXES];
        int axes;
        GY_TRY(read_tile_counts(r, &tiles, count, &axes));
        GY_TRY(gy_read_bound_tiles(r, &tiles, b, count));
    }
    return GANTRY_OK;
}

static gantry_status read_buffer(gy_reader *r, const gy_json_at *at)
{
    const json_t *value[KEYS];
    int64_t *shape = NULL;
    int rank = 0;
    gantry_dtype dtype = GANTRY_F32;
    gantry_status status = read_buffer_key(r, at);
    if (!status)
        status = gy_read_members(r, at, keys, KEYS, value);
    if (!status) {
        gy_json_at member = gy_read_at(at, "dtype", value[DTYPE]);
        status = gy_read_dtype(r, &member, &dtype);
    }
    if (!status) {
        gy_json_at member = gy_read_at(at, "shape", value[SHAPE]);
        status = read_shape(r, &member, &shape, &rank);
    }
    if (status)
        return status;
    const gy_meaning *bound = gy_read_meaning(r, at->key, strlen(at->key));
    return bound ? check_bound(r, at, value, bound, dtype, rank, shape) : add_buffer(r, at, value, dtype, rank, shape);
}

gantry_status gy_read_buffers(gy_reader *r, const gy_json_at *root)
{
    gy_json_at buffers = gy_json_key(root, "buffers");
    gantry_status status = GANTRY_OK;
    if (!json_is_object(buffers.value))
        return gy_read_kind(r, &buffers, "an object of buffers");
    r->all_buffers = buffers.value;
    json_t *object = gy_read_open(buffers.value);
    for (void *i = json_object_iter(object); i && !status; i = json_object_iter_next(object, i)) {
        gy_json_at at = gy_read_at(&buffers, json_object_iter_key(i), json_object_iter_value(i));
        status = read_buffer(r, &at);
    }
    return status;
}
