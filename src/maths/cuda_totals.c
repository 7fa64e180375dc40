/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA C of what a reduction reduces: a struct `totals`, a value for each result. Five functions know what is in it:
 * none(), join(), value(), store() and, around value(), the loads.
 */
#include "maths/cuda_text.h"

#include <stdio.h>
#include <string.h>

static bool finds(const gy_maths_program *p, uint32_t result)
{
    return gy_maths_finds(p->maths->result[result].reduction);
}

/* The first result of a reduction from number k on, or how many results there are. */
static uint32_t next_reduced(const gy_maths *m, uint32_t k)
{
    while (k < m->results && !gy_maths_is_reduced(m, k))
        k++;
    return k;
}

size_t gy_maths_total_bytes(const gy_maths *maths)
{
    size_t numbers = 0;
    for (uint32_t k = next_reduced(maths, 0); k < maths->results; k = next_reduced(maths, k + 1))
        numbers += 1 + gy_maths_finds(maths->result[k].reduction);
    return 8 * numbers;
}

/* ---- totals ---- */

static void add_totals(gy_text *to, const gy_maths_program *p)
{
    gy_text_add(to, "struct totals {\n");
    for (uint32_t k = next_reduced(p->maths, 0); k < p->maths->results; k = next_reduced(p->maths, k + 1))
        gy_text_printf(to, "    %s r%u;\n", gy_maths_cuda_type(p->value_type[k]), k);
    for (uint32_t k = next_reduced(p->maths, 0); k < p->maths->results; k = next_reduced(p->maths, k + 1))
        if (finds(p, k))
            gy_text_printf(to, "    i64 at%u;\n", k);
    gy_text_add(to, "};\n");
}

static const char *nothing_of(gy_maths_reduction reduction, gy_maths_type type)
{
    bool is_whole = type == GY_MATHS_I64;
    switch (reduction) {
    case GY_MATHS_LEAST:
        return is_whole ? "0x7fffffffffffffffll" : "__longlong_as_double(0x7ff0000000000000ll)";
    case GY_MATHS_MOST:
        return is_whole ? "(i64)0x8000000000000000ull" : "__longlong_as_double((i64)0xfff0000000000000ull)";
    case GY_MATHS_ALL:
        return "1";
    default:
        return "0";
    }
}

static void add_none(gy_text *to, const gy_maths_program *p)
{
    gy_text_add(to, "static __device__ __forceinline__ totals none()\n{\n    totals t;\n");
    for (uint32_t k = next_reduced(p->maths, 0); k < p->maths->results; k = next_reduced(p->maths, k + 1)) {
        gy_text_printf(to, "    t.r%u = %s;\n", k, nothing_of(p->maths->result[k].reduction, p->value_type[k]));
        if (finds(p, k))
            gy_text_printf(to, "    t.at%u = -1;\n", k);
    }
    gy_text_add(to, "    return t;\n}\n");
}

/* "A" and "B" stand for two values, "P" and "Q" for where they were. */
static const char *join_of(gy_maths_reduction reduction, gy_maths_type type)
{
    bool is_whole = type == GY_MATHS_I64;
    switch (reduction) {
    case GY_MATHS_LEAST:
        return is_whole ? "A < B ? A : B" : "A < B || A != A ? A : B";
    case GY_MATHS_MOST:
        return is_whole ? "A > B ? A : B" : "A > B || A != A ? A : B";
    case GY_MATHS_ANY:
        return "A > B ? A : B";
    case GY_MATHS_ALL:
        return "A < B ? A : B";
    case GY_MATHS_WHERE_LEAST:
        return "P < 0 || Q < 0 ? P >= 0 : A != A || B != B ? A != A && (B == B || P < Q) : A == B ? P < Q : A < B";
    case GY_MATHS_WHERE_MOST:
        return "P < 0 || Q < 0 ? P >= 0 : A != A || B != B ? A != A && (B == B || P < Q) : A == B ? P < Q : A > B";
    default:
        return is_whole ? "(i64)((u64)A + (u64)B)" : "__dadd_rn(A, B)";
    }
}

/* The same where every element of B comes behind all of A, which says which of equals is first. */
static const char *append_of(gy_maths_reduction reduction, gy_maths_type type)
{
    bool is_whole = type == GY_MATHS_I64;
    switch (reduction) {
    case GY_MATHS_WHERE_LEAST:
        return is_whole ? "P >= 0 && B >= A" : "P >= 0 && (B >= A || A != A)";
    case GY_MATHS_WHERE_MOST:
        return is_whole ? "P >= 0 && B <= A" : "P >= 0 && (B <= A || A != A)";
    default:
        return join_of(reduction, type);
    }
}

static void add_form(gy_text *to, const char *form, const char *const names[4], uint32_t result)
{
    static const char letters[] = "ABPQ";
    for (; *form; form++) {
        const char *letter = strchr(letters, *form);
        if (letter)
            gy_text_printf(to, "%s%u", names[letter - letters], result);
        else
            gy_text_add_n(to, form, 1);
    }
}

static void add_join(gy_text *to, const gy_maths_program *p, const char *name,
                     const char *(*form_of)(gy_maths_reduction, gy_maths_type))
{
    gy_text_printf(
        to, "static __device__ __forceinline__ totals %s(const totals a, const totals b)\n{\n    totals t;\n", name);
    for (uint32_t k = next_reduced(p->maths, 0); k < p->maths->results; k = next_reduced(p->maths, k + 1)) {
        static const char *const names[] = { "a.r", "b.r", "a.at", "b.at" };
        const char *form = form_of(p->maths->result[k].reduction, p->value_type[k]);
        gy_text_printf(to, finds(p, k) ? "    const bool is_first%u = " : "    t.r%u = ", k);
        add_form(to, form, names, k);
        gy_text_add(to, ";\n");
        if (finds(p, k))
            gy_text_printf(to, "    t.r%u = is_first%u ? a.r%u : b.r%u;\n    t.at%u = is_first%u ? a.at%u : b.at%u;\n",
                           k, k, k, k, k, k, k, k);
    }
    gy_text_add(to, "    return t;\n}\n");
}

/* Those of the thread that is `by` lanes further in the warp. */
void gy_maths_cuda_add_down(gy_text *to, const gy_maths_program *p)
{
    gy_text_add(to, "static __device__ __forceinline__ totals down(const totals a, int by)\n{\n    totals t;\n");
    for (uint32_t k = next_reduced(p->maths, 0); k < p->maths->results; k = next_reduced(p->maths, k + 1)) {
        gy_text_printf(to, "    t.r%u = __shfl_down_sync(0xffffffffu, a.r%u, by);\n", k, k);
        if (finds(p, k))
            gy_text_printf(to, "    t.at%u = __shfl_down_sync(0xffffffffu, a.at%u, by);\n", k, k);
    }
    gy_text_add(to, "    return t;\n}\n");
}

/* ---- elements ---- */

/* Results that are not reduced are stored where their values are. */
static void add_beside(gy_text *to, const gy_maths_program *p)
{
    const gy_maths *m = p->maths;
    for (uint32_t k = 0; k < m->results; k++) {
        char name[16];
        if (gy_maths_is_reduced(m, k))
            continue;
        snprintf(name, sizeof name, "v%u", p->value[k] - m->args);
        gy_text_printf(to, "    p%u[i] = ", m->result[k].arg);
        gy_maths_cuda_add_stored(to, name, p->value_type[k], p->kind[m->result[k].arg].dtype);
        gy_text_add(to, ";\n");
    }
}

/* The values of element `i` of the model, number `m` of its result. */
static void add_value_of(gy_text *to, const gy_maths_program *p)
{
    const gy_maths *m = p->maths;
    gy_text_add(to, "static __device__ __forceinline__ totals value(i64 m, i64 i");
    for (uint32_t k = 0; k < m->args; k++) {
        if (p->kind[k].is_number)
            gy_text_printf(to, ", const double a%u", k);
        if (p->kind[k].is_beside)
            gy_text_printf(to, ", %s *__restrict__ p%u", gy_maths_cuda_element(p->kind[k].dtype), k);
        if (gy_maths_cuda_loads(p, k))
            gy_text_printf(to, ", const %s e%u", gy_maths_cuda_element(p->kind[k].dtype), k);
    }
    gy_text_add(to, ")\n{\n    totals t;\n");
    gy_maths_cuda_add_values(to, p);
    for (uint32_t k = next_reduced(m, 0); k < m->results; k = next_reduced(m, k + 1)) {
        gy_text_printf(to, "    t.r%u = ", k);
        gy_maths_cuda_add_value(to, p, k);
        gy_text_add(to, ";\n");
        if (finds(p, k))
            gy_text_printf(to, "    t.at%u = m;\n", k);
    }
    add_beside(to, p);
    gy_text_add(to, "    (void)m;\n    (void)i;\n    return t;\n}\n");
}

/* Does it have an element of its own for each m? */
static bool is_streamed(const gy_maths_program *p, uint32_t arg)
{
    return gy_maths_cuda_loads(p, arg) && !gy_maths_is_kept(p, arg);
}

/* Which elements were loaded before, as number k of several. */
typedef enum loaded { OF_NONE, OF_STREAMED, OF_ALL } loaded;

/* A call of value(); elements that were not loaded before are loaded here. */
static void add_value_call(gy_text *to, const gy_maths_program *p, loaded before)
{
    gy_text_add(to, "value((m), (i)");
    for (uint32_t k = 0; k < p->maths->args; k++) {
        if (p->kind[k].is_number)
            gy_text_printf(to, ", a%u", k);
        if (p->kind[k].is_beside)
            gy_text_printf(to, ", p%u", k);
        if (!gy_maths_cuda_loads(p, k))
            continue;
        gy_text_add(to, ", ");
        if (before == OF_ALL || (before == OF_STREAMED && is_streamed(p, k)))
            gy_text_printf(to, "e%u[k]", k);
        else
            gy_maths_cuda_add_place(to, p, k);
    }
    gy_text_add(to, ")\n");
}

/* Elements of each region that are loaded ahead: those of all regions take no more than 64 bytes, twice. */
uint32_t gy_maths_ahead(const gy_maths_program *p)
{
    uint32_t bytes = 0;
    for (uint32_t k = 0; k < p->maths->args; k++)
        bytes += is_streamed(p, k) ? (uint32_t)gantry_dtype_size(p->kind[k].dtype) : 0;
    return bytes <= 4 ? 16 : bytes <= 8 ? 8 : bytes <= 16 ? 4 : 2;
}

static void add_load_macro(gy_text *to, const gy_maths_program *p)
{
    gy_text_add(to, "\n#define LOAD(k, m)");
    for (uint32_t k = 0; k < p->maths->args; k++) {
        if (!is_streamed(p, k))
            continue;
        gy_text_printf(to, " f%u[k] = ", k);
        gy_maths_cuda_add_place(to, p, k);
        gy_text_add(to, ";");
    }
}

static void add_room_macro(gy_text *to, const gy_maths_program *p, const char *name, const char *of)
{
    gy_text_printf(to, "\n#define %s(count)", name);
    for (uint32_t k = 0; k < p->maths->args; k++)
        if (is_streamed(p, k))
            gy_text_printf(to, " %s %s%u[count];", gy_maths_cuda_element(p->kind[k].dtype), of, k);
}

size_t gy_maths_cuda_loaded_bytes(const gy_maths_program *p)
{
    size_t bytes = 0;
    for (uint32_t k = 0; k < p->maths->args; k++)
        bytes += gy_maths_cuda_loads(p, k) ? gantry_dtype_size(p->kind[k].dtype) : 0;
    return bytes;
}

/* Room for elements of all regions, and what loads number k of them. */
static void add_space_macros(gy_text *to, const gy_maths_program *p, const char *space, const char *load, char letter)
{
    gy_text_printf(to, "\n#define %s(count)", space);
    for (uint32_t k = 0; k < p->maths->args; k++)
        if (gy_maths_cuda_loads(p, k))
            gy_text_printf(to, " %s %c%u[count];", gy_maths_cuda_element(p->kind[k].dtype), letter, k);
    gy_text_printf(to, "\n#define %s(k, m)", load);
    for (uint32_t k = 0; k < p->maths->args; k++) {
        if (!gy_maths_cuda_loads(p, k))
            continue;
        gy_text_printf(to, " %c%u[k] = ", letter, k);
        gy_maths_cuda_add_place(to, p, k);
        gy_text_add(to, ";");
    }
}

/* BYTES are those of one element. SPACE is room for several, of all regions; BRING(k, m) loads number k of them, and
 * BROUGHT(k, m, i) is its values. COMING is room for those behind them; SEND(k, m) loads number k of these, and
 * ARRIVE(k) makes it number k of those before. */
static void add_brought_macros(gy_text *to, const gy_maths_program *p)
{
    gy_text_printf(to, "#define BYTES %zu", gy_maths_cuda_loaded_bytes(p));
    add_space_macros(to, p, "SPACE", "BRING", 'e');
    gy_text_add(to, "\n#define BROUGHT(k, m, i) ");
    add_value_call(to, p, OF_ALL);
    add_space_macros(to, p, "COMING", "SEND", 'f');
    gy_text_add(to, "\n#define ARRIVE(k)");
    for (uint32_t k = 0; k < p->maths->args; k++)
        if (gy_maths_cuda_loads(p, k))
            gy_text_printf(to, " e%u[k] = f%u[k];", k, k);
    gy_text_add(to, "\n");
}

/*
 * VALUE(m, i): the values of element i of the model, which is element m of what becomes one. AHEAD elements are loaded
 * while as many before them are computed, so that memory always has something to bring: a division has a branch, which
 * the compiler moves no load over. ROOM is room for elements that are computed, NEXT for those behind them, LOAD(k, m)
 * loads number k of the latter, TAKE(k) makes it number k of those that are computed, and LOADED(k, m, i) is its
 * values.
 */
static void add_value_macros(gy_text *to, const gy_maths_program *p)
{
    gy_text_add(to, "#define VALUE(m, i) ");
    add_value_call(to, p, OF_NONE);
    gy_text_add(to, "#define LOADED(k, m, i) ");
    add_value_call(to, p, OF_STREAMED);
    gy_text_printf(to, "#define AHEAD %u", gy_maths_ahead(p));
    add_room_macro(to, p, "ROOM", "e");
    add_room_macro(to, p, "NEXT", "f");
    add_load_macro(to, p);
    gy_text_add(to, "\n#define TAKE(k)");
    for (uint32_t k = 0; k < p->maths->args; k++)
        if (is_streamed(p, k))
            gy_text_printf(to, " e%u[k] = f%u[k];", k, k);
    gy_text_add(to, "\n");
}

/* ---- results ---- */

/* The type that a contribution is added in: reals where what is there is real, though what is added be whole. */
static gy_maths_type added_in(const gy_maths_program *p, uint32_t result)
{
    return gy_dtype_is_float(p->kind[p->maths->result[result].arg].dtype) ? GY_MATHS_F64 : p->value_type[result];
}

/* A contribution is added to what is there. */
static void add_sum(gy_text *to, const gy_maths_program *p, uint32_t result)
{
    static const char *const names[] = { "before", "found", "", "" };
    gantry_dtype dtype = p->kind[p->maths->result[result].arg].dtype;
    gy_maths_type from = dtype == GANTRY_F64 ? GY_MATHS_F64 : gy_dtype_is_float(dtype) ? GY_MATHS_F32 : GY_MATHS_I64;
    gy_maths_type type = added_in(p, result);
    gantry_dtype wide = type == GY_MATHS_I64 ? GANTRY_I64 : GANTRY_F64;
    char name[32];
    snprintf(name, sizeof name, "p%u[e]", p->maths->result[result].arg);
    gy_text_printf(to, "    const %s x%u = ", gy_maths_cuda_type(from), result);
    gy_maths_cuda_add_loaded(to, name, dtype);
    snprintf(name, sizeof name, "x%u", result);
    gy_text_printf(to, ";\n    const %s before%u = ", gy_maths_cuda_type(type), result);
    gy_maths_cuda_add_cast(to, name, from, wide);
    snprintf(name, sizeof name, "t.r%u", result);
    gy_text_printf(to, ", found%u = ", result);
    gy_maths_cuda_add_cast(to, name, p->value_type[result], wide);
    gy_text_printf(to, ";\n    const %s sum%u = ", gy_maths_cuda_type(type), result);
    add_form(to, join_of(gy_maths_added_by(p->maths->result[result].reduction), type), names, result);
    gy_text_add(to, ";\n");
}

static void add_store(gy_text *to, const gy_maths_program *p)
{
    const gy_maths *m = p->maths;
    gy_text_add(to, "static __device__ __forceinline__ void store(i64 e, totals t, i64 mid");
    for (uint32_t k = next_reduced(m, 0); k < m->results; k = next_reduced(m, k + 1))
        gy_text_printf(to, ", %s *__restrict__ p%u", gy_maths_cuda_element(p->kind[m->result[k].arg].dtype),
                       m->result[k].arg);
    gy_text_add(to, ")\n{\n");
    for (uint32_t k = next_reduced(m, 0); k < m->results; k = next_reduced(m, k + 1)) {
        if (m->result[k].reduction == GY_MATHS_MEAN)
            gy_text_printf(to, "    t.r%u = __ddiv_rn(t.r%u, (double)mid);\n", k, k);
        if (p->kind[m->result[k].arg].is_added)
            add_sum(to, p, k);
    }
    for (uint32_t k = next_reduced(m, 0); k < m->results; k = next_reduced(m, k + 1)) {
        char name[16];
        gantry_dtype dtype = p->kind[m->result[k].arg].dtype;
        bool sums = p->kind[m->result[k].arg].is_added;
        snprintf(name, sizeof name, finds(p, k) ? "t.at%u" : sums ? "sum%u" : "t.r%u", k);
        gy_text_printf(to, "    p%u[e] = ", m->result[k].arg);
        gy_maths_cuda_add_stored(to, name,
                                 finds(p, k) ? GY_MATHS_I64
                                 : sums      ? added_in(p, k)
                                             : p->value_type[k],
                                 dtype);
        gy_text_add(to, ";\n");
    }
    gy_text_add(to, "    (void)mid;\n}\n");
}

static void add_store_macro(gy_text *to, const gy_maths_program *p)
{
    gy_text_add(to, "#define STORE(e, t) store((e), (t), mid");
    for (uint32_t k = next_reduced(p->maths, 0); k < p->maths->results; k = next_reduced(p->maths, k + 1))
        gy_text_printf(to, ", p%u", p->maths->result[k].arg);
    gy_text_add(to, ")\n");
}

/* ---- all of it ---- */

void gy_maths_cuda_add_totals(gy_text *to, const gy_maths_program *p)
{
    add_totals(to, p);
    add_none(to, p);
    add_join(to, p, "join", join_of);
    add_join(to, p, "append", append_of);
}

void gy_maths_cuda_add_total_functions(gy_text *to, const gy_maths_program *p)
{
    add_value_of(to, p);
    add_store(to, p);
}

void gy_maths_cuda_add_total_macros(gy_text *to, const gy_maths_program *p)
{
    add_value_macros(to, p);
    add_brought_macros(to, p);
    add_store_macro(to, p);
}
