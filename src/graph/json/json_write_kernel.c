/* SPDX-License-Identifier: Apache-2.0 */
/* Writing `kernels`: those of the graph and of the program, which the library does not have. */
#include "graph/json/json_write.h"

static void write_words(gy_text *to, const char *key, const char *const *word, size_t count)
{
    gy_write_key(to, key);
    gy_text_add(to, count == 1 ? "" : "[");
    for (size_t i = 0; i < count; i++) {
        gy_text_add(to, i ? ", " : "");
        gy_text_json(to, word[i]);
    }
    gy_text_add(to, count == 1 ? "" : "]");
}

/* The default first. */
static void write_access(gy_text *to, const gantry_kernel_arg *arg)
{
    const char *word[GANTRY_PROD + 1];
    size_t count = 0;
    word[count++] = gantry_access_name(arg->access);
    for (int i = GANTRY_READ; i <= GANTRY_PROD; i++)
        if (i != (int)arg->access && (arg->accesses & GANTRY_ACCESS_BIT(i)))
            word[count++] = gantry_access_name((gantry_access)i);
    write_words(to, "access", word, count);
}

static void write_dtypes(gy_text *to, uint32_t dtypes)
{
    const char *word[GANTRY_DTYPE_COUNT];
    size_t count = 0;
    for (int i = 0; i < GANTRY_DTYPE_COUNT; i++)
        if (dtypes & GANTRY_DTYPE_BIT(i))
            word[count++] = gantry_dtype_name((gantry_dtype)i);
    if (count > 0)
        write_words(to, "dtype", word, count);
}

static void write_arg(gy_text *to, const gantry_kernel_arg *arg, gantry_dtype type, const gy_expr *fallback)
{
    gy_text_add(to, "{");
    gy_write_key(to, "name");
    gy_text_json(to, arg->name);
    if (arg->scalar) {
        gy_write_key(to, "type");
        gy_text_json(to, gantry_dtype_name(type));
        if (arg->optional) {
            gy_write_key(to, "default");
            if (fallback)
                gy_write_expr(to, fallback);
            else
                gy_write_number(to, arg->fallback);
        }
    } else {
        char same[2] = { arg->same, '\0' };
        write_access(to, arg);
        write_dtypes(to, arg->dtypes);
        if (arg->same) {
            gy_write_key(to, "same");
            gy_text_json(to, same);
        }
        if (arg->list) {
            gy_write_key(to, "list");
            gy_text_add(to, "true");
        }
        if (arg->optional) {
            gy_write_key(to, "optional");
            gy_text_add(to, "true");
        }
    }
    gy_text_add(to, " }");
}

static void write_list(gy_text *to, const gantry_graph *g, const char *key, const char *const *word, bool paths)
{
    if (!*word)
        return;
    gy_write_key(to, key);
    for (size_t i = 0; word[i]; i++) {
        gy_text_add(to, i ? ", " : "[");
        if (paths)
            gy_write_path(to, g, word[i]);
        else
            gy_text_json(to, word[i]);
    }
    gy_text_add(to, "]");
}

static void write_build(gy_text *to, const gantry_graph *g, const gy_code_build *build)
{
    gy_write_key(to, "compile");
    gy_text_add(to, "{");
    write_list(to, g, "flags", build->flag, false);
    write_list(to, g, "include", build->include, true);
    write_list(to, g, "libraries", build->library, false);
    gy_text_add(to, " }");
}

static void write_code(gy_text *to, const gantry_graph *g, const gy_kernel_code *code)
{
    if (code->cuda) {
        gy_write_key(to, "cuda");
        gy_write_path(to, g, code->cuda);
    }
    if (code->host) {
        gy_write_key(to, "host");
        gy_write_path(to, g, code->host);
    }
    if (code->cuda || code->host) {
        gy_write_key(to, "entry");
        gy_text_json(to, code->entry);
    }
    if (code->build)
        write_build(to, g, code->build);
}

static void write_extents(gy_text *to, const char *key, const gy_expr *const extent[3])
{
    if (!extent[0])
        return;
    gy_write_key(to, key);
    for (int i = 0; i < 3 && extent[i]; i++) {
        gy_text_add(to, i ? ", " : "[");
        gy_write_expr(to, extent[i]);
    }
    gy_text_add(to, "]");
}

static void write_cost(gy_text *to, const gy_kernel *k)
{
    if (k->flops || k->bytes) {
        gy_write_key(to, "cost");
        gy_text_add(to, "{");
        if (k->flops) {
            gy_write_key(to, "flops");
            gy_write_expr(to, k->flops);
        }
        if (k->bytes) {
            gy_write_key(to, "bytes");
            gy_write_expr(to, k->bytes);
        }
        gy_text_add(to, " }");
    }
    if (k->scratch) {
        gy_write_key(to, "scratch");
        gy_write_expr(to, k->scratch);
    }
}

static void write_flag(gy_text *to, const gantry_kernel *m, uint32_t flag, const char *key)
{
    if (m->flags & flag) {
        gy_write_key(to, key);
        gy_text_add(to, "true");
    }
}

static void write_kernel(gy_text *to, const gantry_graph *g, const gy_kernel *k)
{
    const gantry_kernel *m = k->manifest;
    const gy_kernel_code none = { 0 }, *code = k->code ? k->code : &none;
    gy_text_json(to, m->name);
    gy_text_add(to, ": {");
    write_code(to, g, code);
    gy_write_key(to, "args");
    gy_text_add(to, "[");
    for (int32_t i = 0; i < m->args; i++) {
        gy_text_add(to, i ? ", " : "");
        write_arg(to, &m->arg[i], code->types ? code->types[i] : GANTRY_F64, code->fallback ? code->fallback[i] : NULL);
    }
    gy_text_add(to, "]");
    write_flag(to, m, GANTRY_KERNEL_VARIADIC, "variadic");
    write_flag(to, m, GANTRY_KERNEL_PURE, "pure");
    write_flag(to, m, GANTRY_KERNEL_RESIDENT, "resident");
    if (code->grid[0] || code->block[0]) {
        gy_write_key(to, "launch");
        gy_text_add(to, "{");
        write_extents(to, "grid", code->grid);
        write_extents(to, "block", code->block);
        gy_text_add(to, " }");
    }
    write_cost(to, k);
    if (k->formula)
        gy_write_formulas(to, k->formula);
    gy_text_add(to, " }");
}

void gy_write_kernels(gy_text *to, const gantry_graph *graph)
{
    bool any = false;
    for (size_t i = 0; i < graph->kernels.count; i++) {
        const gy_kernel *k = &graph->kernels.at[i];
        if (k->maths || gantry_kernel_find(k->manifest->name) == k->manifest)
            continue;
        gy_text_add(to, any ? ",\n    " : ",\n  \"kernels\": {\n    ");
        any = true;
        write_kernel(to, graph, k);
    }
    gy_text_add(to, any ? "\n  }" : "");
}
