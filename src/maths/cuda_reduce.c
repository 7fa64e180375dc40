/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA C of reductions. What a program reduces is a struct `totals`, a value for each reduction; five functions know
 * what is in it: none(), join(), value(), store() and, around value(), the loads. What adds them up is the same text
 * for all programs, in the order that maths.h states.
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

int gy_maths_most_run(const gy_maths *maths)
{
    enum { MOST = 8, MOST_BYTES = 32768 }; /* of shared memory */
    int run = MOST;
    while (run > 1 && (size_t)run * GY_MATHS_BLOCK * gy_maths_total_bytes(maths) > MOST_BYTES)
        run /= 2;
    return run;
}

/* Each count of elements has a body of its own, which a compiler takes time for. */
int gy_maths_tiny(const gy_maths_program *program)
{
    enum { MOST = 8, FEWER = 4, SHORT_STEPS = 12, STEPS = 30 };
    if (!program->maths->reduces || program->is_columns || program->along.count > 1 || program->steps > STEPS)
        return 0; /* elements that others lie between are not loaded at once */
    return program->steps > SHORT_STEPS ? FEWER : MOST;
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

static void add_join(gy_text *to, const gy_maths_program *p)
{
    gy_text_add(to,
                "static __device__ __forceinline__ totals join(const totals a, const totals b)\n{\n    totals t;\n");
    for (uint32_t k = next_reduced(p->maths, 0); k < p->maths->results; k = next_reduced(p->maths, k + 1)) {
        static const char *const names[] = { "a.r", "b.r", "a.at", "b.at" };
        const char *form = join_of(p->maths->result[k].reduction, p->value_type[k]);
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
static void add_down(gy_text *to, const gy_maths_program *p)
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
    return bytes <= 4 ? 8 : bytes <= 16 ? 4 : 2;
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

/* Bytes of an element of each region that a formula reads. */
static size_t loaded_bytes(const gy_maths_program *p)
{
    size_t bytes = 0;
    for (uint32_t k = 0; k < p->maths->args; k++)
        bytes += gy_maths_cuda_loads(p, k) ? gantry_dtype_size(p->kind[k].dtype) : 0;
    return bytes;
}

/* BYTES are those of one element. SPACE is room for several, of all regions; BRING(k, m) loads number k of them, and
 * BROUGHT(k, m, i) is its values. */
static void add_brought_macros(gy_text *to, const gy_maths_program *p)
{
    gy_text_printf(to, "#define BYTES %zu\n#define SPACE(count)", loaded_bytes(p));
    for (uint32_t k = 0; k < p->maths->args; k++)
        if (gy_maths_cuda_loads(p, k))
            gy_text_printf(to, " %s e%u[count];", gy_maths_cuda_element(p->kind[k].dtype), k);
    gy_text_add(to, "\n#define BRING(k, m)");
    for (uint32_t k = 0; k < p->maths->args; k++) {
        if (!gy_maths_cuda_loads(p, k))
            continue;
        gy_text_printf(to, " e%u[k] = ", k);
        gy_maths_cuda_add_place(to, p, k);
        gy_text_add(to, ";");
    }
    gy_text_add(to, "\n#define BROUGHT(k, m, i) ");
    add_value_call(to, p, OF_ALL);
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

/* ---- kernels ---- */

/* Quotients by `size` of numbers of elements of one segment, which begins with element `first`: before it are `before`
 * whole pieces and `rest` elements of one. A piece of 2^29 elements or more ends once in a segment at most, as one of
 * 2^29 does that has as many left. */
static const char cut_text[] =
    "struct cut {\n"
    "    i64 before, rest, size, by;\n"
    "    unsigned from;\n"
    "};\n"
    "static __device__ __forceinline__ cut cut_at(i64 first, i64 size, i64 by)\n"
    "{\n"
    "    const i64 before = quotient(first, size, by), rest = first - before * size;\n"
    "    const i64 left = size - rest, most = 1 << 29;\n"
    "    const bool is_long = size > most;\n"
    "    const i64 from = !is_long ? rest : left > most ? 0 : most - left;\n"
    "    const cut c = { before, rest, size, is_long ? (i64)1 << 33 : by, (unsigned)from };\n"
    "    return c;\n"
    "}\n"
    "static __device__ __forceinline__ i64 piece(const cut &c, unsigned m)\n"
    "{\n"
    "    return c.before + quotient(c.from + m, 0, c.by);\n"
    "}\n"
    "static __device__ __forceinline__ i64 in_piece(const cut &c, unsigned m)\n"
    "{\n"
    "    return c.rest + m - (i64)quotient(c.from + m, 0, c.by) * c.size;\n"
    "}\n";

/* Those of a thread in its segments, `count` of them from `first` on, of elements up to `end`: in each from lane `lane`
 * on, STEP apart. PLACE(m) is the number of one in the model. */
static const char segment_text[] = "    for (unsigned turn = 0; turn < count; turn++) {\n"
                                   "        totals t = none();\n"
                                   "        const i64 at = first + (i64)turn * SEGMENT;\n"
                                   "        const i64 last = end - at < SEGMENT ? end : at + SEGMENT;\n"
                                   "        i64 m = at + lane;\n"
                                   "        if (m + (AHEAD - 1) * STEP < last) {\n"
                                   "            ROOM(AHEAD) NEXT(AHEAD)\n"
                                   "#pragma unroll\n"
                                   "            for (int k = 0; k < AHEAD; k++) {\n"
                                   "                LOAD(k, m + STEP * k)\n"
                                   "            }\n"
                                   "            for (;;) {\n"
                                   "                const i64 next = m + AHEAD * STEP;\n"
                                   "                const bool goes_on = next + (AHEAD - 1) * STEP < last;\n"
                                   "#pragma unroll\n"
                                   "                for (int k = 0; k < AHEAD; k++) {\n"
                                   "                    TAKE(k)\n"
                                   "                }\n"
                                   "                if (goes_on) {\n"
                                   "#pragma unroll\n"
                                   "                    for (int k = 0; k < AHEAD; k++) {\n"
                                   "                        LOAD(k, next + STEP * k)\n"
                                   "                    }\n"
                                   "                }\n"
                                   "#pragma unroll\n"
                                   "                for (int k = 0; k < AHEAD; k++)\n"
                                   "                    t = join(t, LOADED(k, m + STEP * k, PLACE(m + STEP * k)));\n"
                                   "                m = next;\n"
                                   "                if (!goes_on)\n"
                                   "                    break;\n"
                                   "            }\n"
                                   "        }\n"
                                   "        for (; m < last; m += STEP)\n"
                                   "            t = join(t, VALUE(m, PLACE(m)));\n"
                                   "        room[turn * 256 + threadIdx.x] = t;\n"
                                   "    }\n";

/* A thread stands for eight lanes, `each` apart, of elements up to `end`: they meet in it. It takes LIVE of them at a
 * time, those that meet first, so that large totals leave room for threads. (To load all elements before the first is
 * computed was measured to be slower.) */
static const char eight_text[] = "        totals met[8 / LIVE];\n"
                                 "#pragma unroll\n"
                                 "        for (int turn = 0; turn < 8 / LIVE; turn++) {\n"
                                 "            const unsigned step = 8 / LIVE * each;\n"
                                 "            totals t[LIVE];\n"
                                 "#pragma unroll\n"
                                 "            for (int k = 0; k < LIVE; k++)\n"
                                 "                t[k] = none();\n"
                                 "            unsigned m = lane + turn * each;\n"
                                 "            for (; m + (LIVE - 1) * step < end; m += LIVE * step) {\n"
                                 "#pragma unroll\n"
                                 "                for (int k = 0; k < LIVE; k++)\n"
                                 "                    t[k] = join(t[k], VALUE(m + step * k, PLACE(m + step * k)));\n"
                                 "            }\n"
                                 "#pragma unroll\n"
                                 "            for (int k = 0; k < LIVE; k++)\n"
                                 "                if (m + step * k < end)\n"
                                 "                    t[k] = join(t[k], VALUE(m + step * k, PLACE(m + step * k)));\n"
                                 "#pragma unroll\n"
                                 "            for (int by = LIVE / 2; by > 0; by /= 2)\n"
                                 "#pragma unroll\n"
                                 "                for (int k = 0; k < by; k++)\n"
                                 "                    t[k] = join(t[k], t[k + by]);\n"
                                 "            met[turn] = t[0];\n"
                                 "        }\n"
                                 "#pragma unroll\n"
                                 "        for (int by = 4 / LIVE; by > 0; by /= 2)\n"
                                 "#pragma unroll\n"
                                 "            for (int k = 0; k < by; k++)\n"
                                 "                met[k] = join(met[k], met[k + by]);\n";

/*
 * Many results of few elements that lie side by side: a thread has four of them, 256 apart, and as many at a time as
 * leave room for other threads, all elements of which are loaded before the first is computed. How many elements there
 * are is known where this is compiled. Nothing is asked before loads: what is beyond the last result is that one, and
 * is not stored. Lanes that have no element change nothing, and are left out. All this is in the second kernel, which
 * has more threads at once, as it needs fewer registers.
 */
static const char tiny_text[] =
    "    const i64 mid = MID;\n"
    "    const unsigned first = 0, end = (unsigned)outer, begin = blockIdx.x * (TINY_EACH * 256) + threadIdx.x;\n"
    "    const int batch = MID * BYTES <= 24 ? 4 : MID * BYTES <= 48 ? 2 : 1;\n"
    "#pragma unroll 1\n"
    "    for (int turn = 0; turn < TINY_EACH; turn += batch) {\n"
    "        SPACE(batch * MID)\n"
    "#pragma unroll\n"
    "        for (int r = 0; r < batch; r++) {\n"
    "            const unsigned at = begin + 256 * (turn + r), o = at < end ? at : end - 1;\n"
    "            PLACES(true)\n"
    "#pragma unroll\n"
    "            for (int k = 0; k < MID; k++) {\n"
    "                BRING(r * MID + k, k)\n"
    "            }\n"
    "        }\n"
    "#pragma unroll\n"
    "        for (int r = 0; r < batch; r++) {\n"
    "            const unsigned o = begin + 256 * (turn + r);\n"
    "            if (o < end) {\n"
    "                totals t[MID];\n"
    "#pragma unroll\n"
    "                for (int k = 0; k < MID; k++)\n"
    "                    t[k] = join(none(), BROUGHT(r * MID + k, k, PLACE(k)));\n"
    "#pragma unroll\n"
    "                for (int by = 4; by > 0; by /= 2)\n"
    "#pragma unroll\n"
    "                    for (int k = 0; k < by && k + by < MID; k++)\n"
    "                        t[k] = join(t[k], t[k + by]);\n"
    "                STORE(o, t[0]);\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "    (void)first;\n";

static void add_tiny(gy_text *to, const gy_maths_program *p)
{
    gy_text_add(to, "template <int MID> static __device__ __forceinline__ void tiny(");
    gy_maths_cuda_add_parameters(to, p);
    gy_text_add(to, ", i64 outer");
    gy_maths_cuda_add_steps(to, p);
    gy_text_add(to, ")\n{\n");
    gy_text_add(to, tiny_text);
    gy_text_add(to, "}\n#define TINY_OF(MID) tiny<MID>(");
    for (uint32_t k = 0; k < p->maths->args; k++)
        gy_text_printf(to, p->kind[k].is_number ? "a%u, " : "p%u, ", k);
    gy_text_add(to, "outer");
    gy_maths_cuda_add_step_names(to, p);
    gy_text_add(to, ")\n");
}

static void add_tiny_calls(gy_text *to, const gy_maths_program *p)
{
    int most = gy_maths_tiny(p);
    gy_text_add(to, "    if (segments == 1) {\n        switch ((int)mid) {\n");
    for (int mid = 1; mid < most; mid++)
        gy_text_printf(to, "        case %d:\n            TINY_OF(%d);\n            return;\n", mid, mid);
    gy_text_printf(to, "        default:\n            TINY_OF(%d);\n            return;\n        }\n    }\n", most);
}

/* Elements of a result lie side by side. Short ones have a warp each, or less, unless they are so few that blocks wait
 * for memory less often. */
static const char short_text[] =
    "    if (mid <= SHORT && (mid <= 256 || outer > FEW)) {\n"
    "        const unsigned bits = mid > 128 ? 5 : mid > 64 ? 4 : mid > 32 ? 3 : mid > 16 ? 2 : mid > 8 ? 1 : 0;\n"
    "        const unsigned each = 1 << bits, lane = threadIdx.x & (each - 1);\n"
    "        const i64 o = (i64)blockIdx.x * (256 >> bits) + (threadIdx.x >> bits);\n"
    "        const unsigned first = 0, end = o < outer ? (unsigned)mid : 0;\n"
    "        PLACES(o < outer)\n";

static const char short_end_text[] = "        for (unsigned by = each / 2; by > 0; by /= 2)\n"
                                     "            met[0] = join(met[0], down(met[0], by));\n"
                                     "        if (lane == 0 && o < outer)\n"
                                     "            STORE(o, met[0]);\n"
                                     "        return;\n"
                                     "    }\n";

/* Else a block has a run of neighbouring segments, a total for each lane of each of which is in `room`. */
static const char lanes_text[] = "    SHARED(totals, room, RUN * 256);\n"
                                 "    const unsigned pieces = (unsigned)segments, lane = threadIdx.x;\n"
                                 "    const i64 o = blockIdx.x / pieces, end = mid;\n"
                                 "    const i64 first = (i64)(blockIdx.x % pieces) * run * SEGMENT;\n"
                                 "    const i64 left = (mid - first + SEGMENT - 1) / SEGMENT;\n"
                                 "    const unsigned count = (unsigned)(left > run ? run : left > 1 ? left : 1);\n"
                                 "    PLACES(true)\n";

static const char lanes_meet_text[] = "    for (unsigned by = 128; by > 0; by /= 2) {\n"
                                      "        __syncthreads();\n"
                                      "        for (unsigned k = threadIdx.x; k < by * count; k += 256) {\n"
                                      "            totals *const t = &room[k / by * 256 + k % by];\n"
                                      "            *t = join(*t, t[by]);\n"
                                      "        }\n"
                                      "    }\n"
                                      "    __syncthreads();\n"
                                      "    if (threadIdx.x == 0 && segments == 1)\n"
                                      "        STORE(o, neighbours(room, count));\n"
                                      "    else if (threadIdx.x == 0)\n"
                                      "        scratch[blockIdx.x] = neighbours(room, count);\n";

/* Totals of neighbouring segments meet, and of neighbouring pairs, and so on. */
static const char neighbours_text[] =
    "static __device__ __forceinline__ totals neighbours(totals *t, unsigned count)\n"
    "{\n"
    "    for (; count > 1; count = (count + 1) / 2)\n"
    "        for (unsigned k = 0; 2 * k < count; k++)\n"
    "            t[k * 256] = 2 * k + 1 < count ? join(t[2 * k * 256], t[(2 * k + 1) * 256]) : t[2 * k * 256];\n"
    "    return *t;\n"
    "}\n";

/* They do not, and there are many short ones: a thread for each result. */
static const char many_text[] =
    "    if (mid <= LOW && outer * inner > MANY) {\n"
    "        const i64 result = (i64)blockIdx.x * 256 + threadIdx.x;\n"
    "        const i64 o = result / inner, column = result % inner;\n"
    "        const bool is_one = result < outer * inner;\n"
    "        const unsigned each = 1, lane = 0, first = 0, end = is_one ? (unsigned)mid : 0;\n"
    "        PLACES(is_one)\n";

static const char many_end_text[] = "        if (result < outer * inner)\n"
                                    "            STORE(result, met[0]);\n"
                                    "        return;\n"
                                    "    }\n";

/* Else there is a thread for each column and lane of a run of segments, up to 32 columns a block. */
static const char columns_text[] =
    "    SHARED(totals, room, RUN * 256);\n"
    "    const unsigned width = inner > 16 ? 32 : inner > 8 ? 16 : inner > 4 ? 8 : inner > 2 ? 4 : 2;\n"
    "    const unsigned lane = threadIdx.x / width % STEP;\n"
    "    const unsigned across = (unsigned)((inner + 31) / 32);\n"
    "    const i64 job = (i64)(blockIdx.x / across) * (32 / width) + threadIdx.x / width / STEP;\n"
    "    const i64 column = (i64)(blockIdx.x % across) * 32 + threadIdx.x % width;\n"
    "    const i64 o = job < segments ? 0 : job / segments, first = (job - o * segments) * run * SEGMENT;\n"
    "    const bool is_one = job < outer * segments && column < inner;\n"
    "    const i64 end = is_one ? mid : 0, left = (end - first + SEGMENT - 1) / SEGMENT;\n"
    "    const unsigned count = (unsigned)(left > run ? run : left > 1 ? left : 1);\n"
    "    PLACES(is_one)\n";

static const char columns_end_text[] =
    "    for (unsigned by = STEP / 2; by > 0; by /= 2) {\n"
    "        __syncthreads();\n"
    "        for (unsigned k = 0; k < count && lane < by; k++) {\n"
    "            totals *const t = &room[k * 256 + threadIdx.x];\n"
    "            *t = join(*t, t[by * width]);\n"
    "        }\n"
    "    }\n"
    "    if (lane == 0 && is_one && segments == 1)\n"
    "        STORE(o * inner + column, neighbours(room + threadIdx.x, count));\n"
    "    else if (lane == 0 && is_one)\n"
    "        scratch[job * inner + column] = neighbours(room + threadIdx.x, count);\n";

/*
 * A block for each result. A thread takes eight neighbours, which are a subtree of what meets, as long as there are
 * more than threads have room for; their totals go to the other half of the scratch memory, so that none is read late.
 * The rest meet in shared memory.
 */
static const char finish_text[] =
    "    const i64 o = blockIdx.x / inner, column = blockIdx.x % inner;\n"
    "    const i64 other = outer * segments * inner, pairs = (segments + 1) / 2;\n"
    "    totals *from = scratch + o * segments * inner + column, *to = scratch + other + o * pairs * inner + column;\n"
    "    SHARED(totals, room, 256);\n"
    "    i64 count = segments;\n"
    "    while (count > 256) {\n"
    "        const i64 groups = (count + 7) / 8;\n"
    "        for (i64 group = threadIdx.x; group < groups; group += 256) {\n"
    "            totals v[8];\n"
    "#pragma unroll\n"
    "            for (int k = 0; k < 8; k++)\n"
    "                v[k] = from[(8 * group + k < count ? 8 * group + k : count - 1) * inner];\n"
    "#pragma unroll\n"
    "            for (int by = 1; by < 8; by *= 2)\n"
    "#pragma unroll\n"
    "                for (int k = 0; k < 8; k += 2 * by)\n"
    "                    if (8 * group + k + by < count)\n"
    "                        v[k] = join(v[k], v[k + by]);\n"
    "            to[group * inner] = v[0];\n"
    "        }\n"
    "        __syncthreads();\n"
    "        totals *const before = from;\n"
    "        from = to;\n"
    "        to = before;\n"
    "        count = groups;\n"
    "    }\n"
    "    if (threadIdx.x < count)\n"
    "        room[threadIdx.x] = from[threadIdx.x * inner];\n"
    "    for (; count > 1; count = (count + 1) / 2) {\n"
    "        totals t = none();\n"
    "        __syncthreads();\n"
    "        if (2 * threadIdx.x + 1 < count)\n"
    "            t = join(room[2 * threadIdx.x], room[2 * threadIdx.x + 1]);\n"
    "        else if (2 * threadIdx.x < count)\n"
    "            t = room[2 * threadIdx.x];\n"
    "        __syncthreads();\n"
    "        if (2 * threadIdx.x < count)\n"
    "            room[threadIdx.x] = t;\n"
    "    }\n"
    "    if (threadIdx.x == 0)\n"
    "        STORE((i64)blockIdx.x, room[0]);\n";

/* `part`: texts of the body, up to NULL; ends: it is the second kernel. */
static void add_kernel(gy_text *to, const gy_maths_program *p, const char *name, bool ends, const char *const *part)
{
    bool is_tiny = ends && gy_maths_tiny(p) > 0, is_small = gy_maths_total_bytes(p->maths) <= 8;
    gy_text_printf(to, "extern \"C\" __global__ void __launch_bounds__(%d, %d) %s(", GY_MATHS_BLOCK,
                   is_tiny && is_small ? GY_MATHS_TINY_BLOCKS : GY_MATHS_BLOCKS, name);
    gy_maths_cuda_add_parameters(to, p);
    gy_text_add(to, ", i64 outer, i64 mid, i64 inner, i64 run, i64 segments");
    gy_maths_cuda_add_cuts(to, p);
    gy_maths_cuda_add_steps(to, p);
    gy_text_add(to, ", totals *scratch)\n{\n    BEGIN\n");
    if (is_tiny)
        add_tiny_calls(to, p);
    for (; *part; part++)
        gy_text_add(to, *part);
    gy_text_add(to, "}\n");
}

static void add_macros(gy_text *to, const gy_maths_program *p)
{
    bool columns = p->is_columns;
    gy_text_printf(to, "#define SEGMENT %d\n", columns ? GY_MATHS_COLUMN : GY_MATHS_SEGMENT);
    size_t bytes = gy_maths_total_bytes(p->maths);
    gy_text_printf(to, "#define LIVE %d\n#define RUN %d\n",
                   bytes <= 8    ? 8
                   : bytes <= 16 ? 4
                                 : 2,
                   gy_maths_most_run(p->maths));
    gy_text_printf(to, "#define SHORT %d\n#define FEW %d\n#define LOW %d\n#define MANY %d\n", GY_MATHS_SHORT,
                   GY_MATHS_FEW, GY_MATHS_LOW, GY_MATHS_MANY);
    gy_text_printf(to, "#define TINY_EACH %d\n", GY_MATHS_TINY_EACH);
    gy_text_printf(to, "#define STEP %d\n#define PLACE(m) ", columns ? GY_MATHS_COLUMN_LANES : GY_MATHS_LANES);
    gy_maths_cuda_add_model(to, p);
    gy_text_add(to, "\n");
    gy_maths_cuda_add_places(to, p);
    add_value_macros(to, p);
    add_brought_macros(to, p);
    add_store_macro(to, p);
}

void gy_maths_print_cuda_reduction(gy_text *to, const gy_maths_program *p, const char *name)
{
    static const char *const lanes[] = { short_text,      eight_text, short_end_text, lanes_text, segment_text,
                                         lanes_meet_text, NULL };
    static const char *const columns[] = { many_text,    eight_text,       many_end_text, columns_text,
                                           segment_text, columns_end_text, NULL };
    static const char *const finish[] = { finish_text, NULL };
    gy_text finish_name = { 0 };
    gy_text_printf(&finish_name, "%s_finish", name);
    to->failed = to->failed || finish_name.failed;
    gy_text_add(to, cut_text);
    add_totals(to, p);
    add_none(to, p);
    add_join(to, p);
    gy_text_add(to, neighbours_text);
    if (!p->is_columns)
        add_down(to, p);
    add_value_of(to, p);
    add_store(to, p);
    add_macros(to, p);
    if (gy_maths_tiny(p))
        add_tiny(to, p);
    add_kernel(to, p, name, false, p->is_columns ? columns : lanes);
    add_kernel(to, p, finish_name.at ? finish_name.at : "", true, finish);
    gy_text_add(to,
                "#undef SEGMENT\n#undef LIVE\n#undef RUN\n#undef PLACES\n#undef SHORT\n#undef FEW\n#undef LOW\n#undef "
                "MANY\n#undef STEP\n#undef PLACE\n#undef VALUE\n"
                "#undef LOADED\n#undef AHEAD\n#undef ROOM\n#undef NEXT\n#undef LOAD\n#undef TAKE\n#undef STORE\n"
                "#undef TINY_EACH\n#undef TINY_OF\n#undef BYTES\n#undef SPACE\n#undef "
                "BRING\n#undef BROUGHT\n");
    gy_text_free(&finish_name);
}
