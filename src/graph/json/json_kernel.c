/* SPDX-License-Identifier: Apache-2.0 */
/* `kernels`: manifests of the user's own kernels. Code is only named here, and only if the person running it allows. */
#include "graph/json/json_read.h"

#include "base/error.h"
#include "base/file.h"
#include "maths/maths.h"

#include <string.h>

enum { CUDA, HOST, ENTRY, COMPILE, ARGS, VARIADIC, PURE, RESIDENT, LAUNCH, COST, SCRATCH, MAP, REDUCE, KEYS };
static const char *const keys[KEYS] = { "cuda",     "host",   "entry", "compile", "args", "variadic", "pure",
                                        "resident", "launch", "cost",  "scratch", "map",  "reduce" };

enum { NAME, ACCESS, DTYPE, SAME, LIST, OPTIONAL, TYPE, DEFAULT, ARG_KEYS };
static const char *const arg_keys[ARG_KEYS] = {
    "name", "access", "dtype", "same", "list", "optional", "type", "default"
};

/* The manifest and code that are being read, in the graph's arena. */
typedef struct making {
    gantry_kernel *manifest;
    gy_kernel_code *code;
    gantry_kernel_arg *arg;
    gantry_dtype *types;
    const gy_expr **fallback;
} making;

/* ---- arguments ---- */

/* One word or an array of words, as bits; *first is the first one. */
typedef gantry_status (*word_reader)(gy_reader *r, const gy_json_at *at, unsigned *out);

static gantry_status read_access_word(gy_reader *r, const gy_json_at *at, unsigned *out)
{
    gantry_access access = GANTRY_READ;
    gantry_status status = gy_read_access(r, at, &access);
    *out = access;
    return status;
}

static gantry_status read_dtype_word(gy_reader *r, const gy_json_at *at, unsigned *out)
{
    gantry_dtype dtype = GANTRY_F32;
    gantry_status status = gy_read_dtype(r, at, &dtype);
    *out = dtype;
    return status;
}

static gantry_status read_words(gy_reader *r, const gy_json_at *at, word_reader read, unsigned *first, uint32_t *bits)
{
    size_t count = json_is_array(at->value) ? json_array_size(at->value) : 1;
    *bits = 0;
    if (count == 0)
        return gy_read_fail(r, at, "is empty: give at least one, or leave the key out");
    for (size_t i = 0; i < count; i++) {
        unsigned word = 0;
        gy_json_at item = json_is_array(at->value) ? gy_read_item(at, i) : *at;
        gantry_status status = read(r, &item, &word);
        if (status)
            return status;
        *first = i == 0 ? word : *first;
        *bits |= 1u << word;
    }
    return GANTRY_OK;
}

static gantry_status refuse(gy_reader *r, const gy_json_at *up, const json_t *const *value, const unsigned *which,
                            size_t count, const char *why)
{
    for (size_t i = 0; i < count; i++) {
        if (value[which[i]]) {
            gy_json_at at = gy_read_at(up, arg_keys[which[i]], value[which[i]]);
            return gy_read_fail(r, &at, "%s", why);
        }
    }
    return GANTRY_OK;
}

static gantry_status read_scalar_arg(gy_reader *r, const gy_json_at *up, const json_t *const *value,
                                     gantry_kernel_arg *arg, gantry_dtype *type)
{
    static const unsigned buffers_only[] = { ACCESS, DTYPE, SAME, LIST, OPTIONAL };
    gy_json_at at = gy_read_at(up, "type", value[TYPE]);
    gantry_status status =
        refuse(r, up, value, buffers_only, COUNT(buffers_only),
               "an argument with a \"type\" is a number: give \"dtype\" and \"access\" for a buffer");
    if (!status)
        status = gy_read_dtype(r, &at, type);
    arg->scalar = 1;
    arg->optional = value[DEFAULT] != NULL; /* which number it is follows when all arguments are known */
    return status;
}

static gantry_status read_flag(gy_reader *r, const gy_json_at *at, int32_t *out)
{
    if (at->value && !json_is_boolean(at->value))
        return gy_read_kind(r, at, "true or false");
    *out = json_is_true(at->value);
    return GANTRY_OK;
}

static gantry_status read_same(gy_reader *r, const gy_json_at *at, char *out)
{
    const char *letter = NULL;
    gantry_status status = gy_read_string(r, at, "a letter", &letter);
    if (!status && (letter[1] != '\0' || letter[0] < '!' || letter[0] > '~'))
        return gy_read_fail(r, at, "must be one letter, not \"%s\"", letter);
    *out = status ? '\0' : letter[0];
    return status;
}

static gantry_status read_buffer_arg(gy_reader *r, const gy_json_at *up, const json_t *const *value,
                                     gantry_kernel_arg *arg)
{
    static const unsigned scalars_only[] = { DEFAULT };
    unsigned first = GANTRY_READ, ignored;
    gy_json_at access = gy_read_at(up, "access", value[ACCESS]), dtype = gy_read_at(up, "dtype", value[DTYPE]),
               same = gy_read_at(up, "same", value[SAME]), list = gy_read_at(up, "list", value[LIST]),
               optional = gy_read_at(up, "optional", value[OPTIONAL]);
    gantry_status status = refuse(r, up, value, scalars_only, 1, "only numbers have a default: give \"type\"");
    if (!status)
        status = read_words(r, &access, read_access_word, &first, &arg->accesses);
    arg->access = (gantry_access)first;
    if (!status && value[DTYPE])
        status = read_words(r, &dtype, read_dtype_word, &ignored, &arg->dtypes);
    if (!status && value[SAME])
        status = read_same(r, &same, &arg->same);
    if (!status)
        status = read_flag(r, &list, &arg->list);
    return status ? status : read_flag(r, &optional, &arg->optional);
}

static gantry_status read_kernel_arg(gy_reader *r, const gy_json_at *at, gantry_kernel_arg *arg, gantry_dtype *type)
{
    const json_t *value[ARG_KEYS];
    GY_TRY(gy_read_members(r, at, arg_keys, ARG_KEYS, value));
    gy_json_at name = gy_read_at(at, "name", value[NAME]);
    GY_TRY(gy_read_string(r, &name, "the name of the argument", &arg->name));
    arg->name = gy_arena_strdup(&r->graph->arena, arg->name);
    arg->summary = "";
    if (!arg->name)
        return gy_read_nomem(r);
    return value[TYPE] ? read_scalar_arg(r, at, value, arg, type) : read_buffer_arg(r, at, value, arg);
}

static gantry_status read_kernel_args(gy_reader *r, const gy_json_at *at, making *m)
{
    if (!json_is_array(at->value))
        return gy_read_kind(r, at, "an array of arguments");
    size_t count = json_array_size(at->value);
    m->arg = gy_arena_calloc(&r->graph->arena, count + 1, sizeof *m->arg);
    m->types = gy_arena_calloc(&r->graph->arena, count + 1, sizeof *m->types);
    m->fallback = gy_arena_calloc(&r->graph->arena, count + 1, sizeof *m->fallback);
    if (!m->arg || !m->types || !m->fallback)
        return gy_read_nomem(r);
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < count && !status; i++) {
        gy_json_at item = gy_read_item(at, i);
        status = read_kernel_arg(r, &item, &m->arg[i], &m->types[i]);
    }
    m->manifest->arg = m->arg;
    m->manifest->args = (int32_t)count;
    m->code->types = m->types;
    m->code->fallback = m->fallback;
    return status;
}

/* ---- expressions over the arguments ---- */

typedef struct lookup {
    gy_reader *reader;
    const gantry_kernel *manifest;
    const char *unknown;
} lookup;

static bool is_known(void *context, const char *name)
{
    lookup *l = context;
    bool known = gy_kernel_knows(l->manifest, name) || gy_names_find(&l->reader->params, name) != GY_NO_NAME;
    l->unknown = known ? l->unknown : name;
    return known;
}

/* Params become numbers; a name of the kernel hides a param of the same name. */
static bool find_param(void *context, const char *name, int64_t *integer, double *real, bool *is_real)
{
    lookup *l = context;
    return !gy_kernel_knows(l->manifest, name) && gy_read_lookup(l->reader, name, integer, real, is_real);
}

static gantry_status read_expr(gy_reader *r, const gy_json_at *at, const gantry_kernel *manifest, const gy_expr **out)
{
    lookup l = { r, manifest, NULL };
    gy_text number = { 0 };
    gy_arena *arena = &r->graph->arena;
    if (json_is_integer(at->value))
        gy_text_printf(&number, "%lld", (long long)json_integer_value(at->value));
    else if (json_is_real(at->value))
        gy_text_double(&number, json_real_value(at->value));
    else if (json_is_string(at->value))
        gy_text_add(&number, json_string_value(at->value));
    else
        return gy_read_kind(r, at, "a number or an expression over the arguments");
    gantry_status status = number.failed ? gy_read_nomem(r)
                                         : gy_expr_parse(out, arena, number.length ? number.at : "", number.length,
                                                         GANTRY_E_GRAPH, NULL, &r->error);
    gy_text_free(&number);
    if (status)
        return status == GANTRY_E_NOMEM ? status : gy_read_locate(r, at);
    if (!gy_expr_names(*out, is_known, &l)) {
        return gy_read_fail(r, at,
                            "uses \"%s\": known are params, numbers among the args, and ARG.rows, .size, .bytes, "
                            ".count, .shape0 of its buffers",
                            l.unknown);
    }
    *out = gy_expr_bind(*out, arena, find_param, &l);
    return *out ? GANTRY_OK : gy_read_nomem(r);
}

/* True once a name is a region's: "x.size". */
static bool is_no_region(void *context, const char *name)
{
    (void)context;
    return strchr(name, '.') == NULL;
}

static bool is_region(void *context, const char *name)
{
    return !is_no_region(context, name);
}

static bool uses_regions(gy_reader *r, const char *text)
{
    const gy_expr *e;
    return gy_expr_parse(&e, &r->graph->arena, text, strlen(text), GANTRY_E_GRAPH, NULL, NULL) == GANTRY_OK &&
           !gy_expr_names(e, is_no_region, NULL);
}

/* A manifest has doubles: an integer that none can hold is kept as an expression. */
static gantry_status read_number(gy_reader *r, const gy_json_at *at, const making *m, int32_t i)
{
    gy_constant value;
    char seen[GY_CONSTANT_TEXT], allowed[GY_CONSTANT_TEXT];
    gantry_status status = gy_read_constant(r, at, &value);
    if (status)
        return status;
    if (!gy_constant_fits(value, m->types[i], false)) {
        return gy_read_fail(r, at, "is %s, and the type %s holds %s; correct the number or the type",
                            gy_constant_text(seen, value), gantry_dtype_name(m->types[i]),
                            gy_constant_range(allowed, m->types[i], false));
    }
    m->arg[i].fallback = value.real;
    if (value.rest == 0)
        return GANTRY_OK;
    gy_constant_text(seen, value);
    status = gy_expr_parse(&m->fallback[i], &r->graph->arena, seen, strlen(seen), GANTRY_E_GRAPH, NULL, &r->error);
    return status ? gy_read_locate(r, at) : GANTRY_OK;
}

/* A number, or what follows from the regions: "x.size". */
static gantry_status read_default(gy_reader *r, const gy_json_at *at, const making *m, int32_t i)
{
    if (!json_is_string(at->value) || !uses_regions(r, json_string_value(at->value)))
        return read_number(r, at, m, i);
    gantry_status status = read_expr(r, at, m->manifest, &m->fallback[i]);
    if (!status && !gy_expr_names(m->fallback[i], is_region, NULL)) {
        return gy_read_fail(r, at,
                            "may use params and regions of the kernel, as in \"x.size\", and none of its numbers");
    }
    return status;
}

static gantry_status read_defaults(gy_reader *r, const gy_json_at *at, const making *m)
{
    gantry_status status = GANTRY_OK;
    for (int32_t i = 0; i < m->manifest->args && !status; i++) {
        gy_json_at item = gy_read_item(at, (size_t)i), one = gy_json_key(&item, "default");
        status = m->arg[i].scalar && m->arg[i].optional ? read_default(r, &one, m, i) : GANTRY_OK;
    }
    return status;
}

/* The same as text, which is what manifests hold. */
static gantry_status read_formula(gy_reader *r, const gy_json_at *at, const gantry_kernel *manifest, const char **out)
{
    const gy_expr *e;
    gy_text text = { 0 };
    gantry_status status = at->value ? read_expr(r, at, manifest, &e) : GANTRY_OK;
    if (status || !at->value)
        return status;
    gy_expr_print(&text, e);
    *out = text.failed ? NULL : gy_arena_strdup(&r->graph->arena, text.at);
    gy_text_free(&text);
    return *out ? GANTRY_OK : gy_read_nomem(r);
}

static gantry_status read_kernel_cost(gy_reader *r, const gy_json_at *at, gantry_kernel *manifest)
{
    static const char *const names[] = { "flops", "bytes" };
    const json_t *value[2];
    gantry_status status = gy_read_members(r, at, names, 2, value);
    gy_json_at flops = gy_read_at(at, "flops", value[0]), bytes = gy_read_at(at, "bytes", value[1]);
    if (!status)
        status = read_formula(r, &flops, manifest, &manifest->flops);
    return status ? status : read_formula(r, &bytes, manifest, &manifest->bytes);
}

/* One to three extents. */
static gantry_status read_extents(gy_reader *r, const gy_json_at *at, const gantry_kernel *manifest,
                                  const gy_expr **out)
{
    size_t count = json_is_array(at->value) ? json_array_size(at->value) : 0;
    gantry_status status = GANTRY_OK;
    if (count < 1 || count > 3)
        return gy_read_fail(r, at, "must be an array of one to three numbers or expressions");
    for (size_t i = 0; i < count && !status; i++) {
        gy_json_at item = gy_read_item(at, i);
        status = read_expr(r, &item, manifest, &out[i]);
    }
    return status;
}

static gantry_status read_launch(gy_reader *r, const gy_json_at *at, const making *m)
{
    static const char *const names[] = { "grid", "block" };
    const json_t *value[2];
    gantry_status status = gy_read_members(r, at, names, 2, value);
    gy_json_at grid = gy_read_at(at, "grid", value[0]), block = gy_read_at(at, "block", value[1]);
    if (!status && value[0])
        status = read_extents(r, &grid, m->manifest, m->code->grid);
    if (!status && value[1])
        status = read_extents(r, &block, m->manifest, m->code->block);
    return status;
}

/* ---- code ---- */

bool gy_read_ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

static gantry_status check_code(gy_reader *r, const gy_json_at *at, const char *path)
{
    gantry_error why;
    gantry_status status = gy_file_look(path, r->folder, &why);
    if (status && why.native)
        return gy_read_fail(r, at, "cannot read \"%s\" in the graph's folder", json_string_value(at->value));
    return status ? gy_read_fail(r, at, "%s", why.text) : GANTRY_OK;
}

static gantry_status read_code(gy_reader *r, const gy_json_at *at, const char *const *endings, size_t count,
                               const char *allowed, const char **out)
{
    bool fits = false;
    if (!at->value)
        return GANTRY_OK;
    GY_TRY(gy_read_path(r, at, out));
    for (size_t i = 0; i < count; i++)
        fits = fits || gy_read_ends_in(*out, endings[i]);
    if (!fits)
        return gy_read_fail(r, at, "\"%s\" must end in %s", json_string_value(at->value), allowed);
    return r->options->allow_code ? check_code(r, at, *out) : GANTRY_OK; /* else the file is not touched */
}

static gantry_status read_codes(gy_reader *r, const gy_json_at *at, const json_t *const *value, const making *m)
{
    static const char *const cuda[] = { ".cu", ".ptx", ".cubin" }, *const host[] = { ".c", ".so" };
    gy_json_at cuda_at = gy_read_at(at, "cuda", value[CUDA]), host_at = gy_read_at(at, "host", value[HOST]),
               entry = gy_read_at(at, "entry", value[ENTRY]);
    const char *symbol = at->key;
    GY_TRY(read_code(r, &cuda_at, cuda, 3, ".cu, .ptx or .cubin", &m->code->cuda));
    GY_TRY(read_code(r, &host_at, host, 2, ".c or .so", &m->code->host));
    if (value[ENTRY])
        GY_TRY(gy_read_string(r, &entry, "the name of the function to call", &symbol));
    if (value[ENTRY] && !value[CUDA] && !value[HOST])
        return gy_read_fail(r, &entry, "names a function, but neither \"cuda\" nor \"host\" says where it is");
    gy_json_at compile = gy_read_at(at, keys[COMPILE], value[COMPILE]);
    GY_TRY(gy_read_build(r, &compile, m->code));
    /* Without any code the kernel can still be scheduled anywhere, and run nowhere. That goes for code that may not run
     * as well, where what it costs is given. */
    bool bound = r->options->allow_code || !value[COST];
    m->manifest->flags |= bound && value[CUDA] && !value[HOST] ? GANTRY_KERNEL_NO_CPU : 0u;
    m->manifest->flags |= bound && value[HOST] && !value[CUDA] ? GANTRY_KERNEL_NO_GPU : 0u;
    m->code->entry = gy_arena_strdup(&r->graph->arena, symbol);
    m->code->folder = r->graph->folder;
    return m->code->entry ? GANTRY_OK : gy_read_nomem(r);
}

/* ---- one kernel ---- */

static gantry_status read_formulas(gy_reader *r, const gy_json_at *at, const json_t *const *value, const making *m)
{
    gy_json_at launch = gy_read_at(at, "launch", value[LAUNCH]), cost = gy_read_at(at, "cost", value[COST]),
               scratch = gy_read_at(at, "scratch", value[SCRATCH]);
    gantry_status status = value[LAUNCH] ? read_launch(r, &launch, m) : GANTRY_OK;
    if (!status && value[COST])
        status = read_kernel_cost(r, &cost, m->manifest);
    return status ? status : read_formula(r, &scratch, m->manifest, &m->manifest->scratch);
}

/* {"y": "a * x"} becomes "y = a * x", which is what manifests hold. */
static gantry_status join_formulas(gy_reader *r, const gy_json_at *at, gantry_kernel *manifest)
{
    gy_text text = { 0 };
    gantry_status status = GANTRY_OK;
    json_t *object = gy_read_open(at->value);
    for (void *i = json_object_iter(object); i && !status; i = json_object_iter_next(object, i)) {
        gy_json_at member = gy_read_at(at, json_object_iter_key(i), json_object_iter_value(i));
        const char *formula;
        status = gy_read_string(r, &member, "a formula such as \"sqrt(x) + 1\"", &formula);
        if (!status)
            gy_text_printf(&text, "%s%s = %s", text.length ? "; " : "", member.key, formula);
    }
    if (!status && !text.length && !text.failed)
        status = gy_read_fail(r, at,
                              "must be an object with a formula for each argument that is written, such as "
                              "{\"y\": \"sqrt(x) + 1\"}");
    manifest->formula = text.failed || status ? NULL : gy_arena_strdup(&r->graph->arena, text.at);
    gy_text_free(&text);
    return status || manifest->formula ? status : gy_read_nomem(r);
}

/* A map or a reduce node of these formulas computes the same. */
static gantry_status read_meaning(gy_reader *r, const gy_json_at *at, const json_t *const *value, const making *m)
{
    gy_json_at map = gy_read_at(at, "map", value[MAP]), reduce = gy_read_at(at, "reduce", value[REDUCE]);
    if (map.value && reduce.value)
        return gy_read_fail(r, &reduce, "cannot be beside \"map\": the kernel computes one or the other");
    if (!map.value && !reduce.value)
        return GANTRY_OK;
    return join_formulas(r, map.value ? &map : &reduce, m->manifest);
}

/* Of the kernel that was just added. */
static gantry_status check_meaning(gy_reader *r, const gy_json_at *at, const json_t *const *value)
{
    const gy_maths *formula = r->graph->kernels.at[r->graph->kernels.count - 1].formula;
    gy_json_at map = gy_read_at(at, "map", value[MAP]), reduce = gy_read_at(at, "reduce", value[REDUCE]);
    if (formula && map.value && formula->reduces)
        return gy_read_fail(r, &map, "has a reduction; write \"reduce\" in place of \"map\"");
    if (formula && reduce.value && !formula->reduces)
        return gy_read_fail(r, &reduce, "reduces nothing; write \"map\" in place of \"reduce\"");
    return GANTRY_OK;
}

static gantry_status read_kernel(gy_reader *r, const gy_json_at *at)
{
    const json_t *value[KEYS];
    gy_arena *arena = &r->graph->arena;
    int32_t variadic = 0, pure = 0, resident = 0;
    GY_TRY(gy_read_members(r, at, keys, KEYS, value));
    GY_TRY(gy_read_name(r, at, "a kernel", at->key));
    making m = { .manifest = gy_arena_calloc(arena, 1, sizeof *m.manifest),
                 .code = gy_arena_calloc(arena, 1, sizeof *m.code) };
    const char *name = gy_arena_strdup(arena, at->key);
    if (!m.manifest || !m.code || !name)
        return gy_read_nomem(r);
    *m.manifest = (gantry_kernel){ .struct_size = sizeof *m.manifest,
                                   .name = name,
                                   .summary = "a kernel of the graph",
                                   .arg_size = sizeof(gantry_kernel_arg) };
    gy_json_at args = gy_read_at(at, "args", value[ARGS]), flag = gy_read_at(at, "variadic", value[VARIADIC]),
               again = gy_read_at(at, "pure", value[PURE]), worker = gy_read_at(at, "resident", value[RESIDENT]);
    GY_TRY(read_flag(r, &flag, &variadic));
    GY_TRY(read_flag(r, &again, &pure));
    GY_TRY(read_flag(r, &worker, &resident));
    m.manifest->flags = (variadic ? GANTRY_KERNEL_VARIADIC : 0u) | (pure ? GANTRY_KERNEL_PURE : 0u) |
                        (resident ? GANTRY_KERNEL_RESIDENT : 0u);
    GY_TRY(read_kernel_args(r, &args, &m));
    GY_TRY(read_defaults(r, &args, &m));
    GY_TRY(read_formulas(r, at, value, &m));
    GY_TRY(read_codes(r, at, value, &m));
    GY_TRY(read_meaning(r, at, value, &m));
    gy_graph_add_kernel_code(r->graph, m.manifest, m.code);
    GY_TRY(gy_read_built(r, at));
    return check_meaning(r, at, value);
}

gantry_status gy_read_kernels(gy_reader *r, const gy_json_at *root)
{
    gy_json_at kernels = gy_json_key(root, "kernels");
    gantry_status status = GANTRY_OK;
    if (kernels.value && !json_is_object(kernels.value))
        return gy_read_kind(r, &kernels, "an object of kernels");
    json_t *object = gy_read_open(kernels.value);
    for (void *i = json_object_iter(object); i && !status; i = json_object_iter_next(object, i)) {
        gy_json_at at = gy_read_at(&kernels, json_object_iter_key(i), json_object_iter_value(i));
        status = read_kernel(r, &at);
    }
    return status;
}
