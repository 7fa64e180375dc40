/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA C that maps and reductions share: the steps of a program, a line each. Sums, products, quotients, roots and
 * conversions are functions that round to nearest and that no compiler contracts, so they have the host's bits; so have
 * the types of 16 and 8 bits, whose conversions are those of base/half.h and base/f8.h. Whole numbers wrap as on the
 * host.
 */
#include "maths/cuda_text.h"

#include "maths/ops.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* NVRTC knows no headers, and needs none for this. */
const char gy_maths_conversions[] =
    "typedef long long i64;\n"
    "typedef unsigned long long u64;\n"
    "typedef unsigned short half;\n"
    "typedef unsigned char f8bits;\n"
    "static __device__ float from_bf16(half h)\n"
    "{\n"
    "    return __uint_as_float((unsigned)h << 16);\n"
    "}\n"
    "static __device__ half to_bf16(float x)\n"
    "{\n"
    "    unsigned bits = __float_as_uint(x);\n"
    "    if ((bits & 0x7fffffffu) > 0x7f800000u)\n"
    "        return (half)((bits >> 16) | 0x40u);\n"
    "    return (half)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);\n"
    "}\n"
    "static __device__ float from_f16(half h)\n"
    "{\n"
    "    unsigned sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 0x1fu, fraction = h & 0x3ffu;\n"
    "    if (exponent == 0x1fu)\n"
    "        return __uint_as_float(sign | 0x7f800000u | (fraction << 13));\n"
    "    if (exponent == 0) {\n"
    "        float magnitude = __fmul_rn((float)fraction, 5.9604644775390625e-8f);\n"
    "        return sign ? -magnitude : magnitude;\n"
    "    }\n"
    "    return __uint_as_float(sign | ((exponent + 112u) << 23) | (fraction << 13));\n"
    "}\n"
    "static __device__ half to_f16(float x)\n"
    "{\n"
    "    unsigned bits = __float_as_uint(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;\n"
    "    if (magnitude > 0x7f800000u)\n"
    "        return (half)(sign | 0x7e00u);\n"
    "    if (magnitude >= 0x477ff000u)\n"
    "        return (half)(sign | 0x7c00u);\n"
    "    if (magnitude < 0x38800000u)\n"
    "        return (half)(sign | (__float_as_uint(__fadd_rn(__uint_as_float(magnitude), 0.5f)) - 0x3f000000u));\n"
    "    return (half)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));\n"
    "}\n"
    "static __device__ float from_f8e4m3(f8bits b)\n"
    "{\n"
    "    unsigned magnitude = b & 0x7fu, sign = (b & 0x80u) << 24;\n"
    "    float value = __fmul_rn(__uint_as_float(magnitude << 20), 1.329227995784916e36f);\n"
    "    return __uint_as_float(sign | (magnitude == 0x7fu ? 0x7fc00000u : __float_as_uint(value)));\n"
    "}\n"
    "static __device__ float from_f8e5m2(f8bits b)\n"
    "{\n"
    "    unsigned magnitude = b & 0x7fu, sign = (b & 0x80u) << 24, top = 0x7f800000u | (magnitude & 3u) << 21;\n"
    "    float value = __fmul_rn(__uint_as_float(magnitude << 21), 5.192296858534828e33f);\n"
    "    return __uint_as_float(sign | (magnitude >= 0x7cu ? top : __float_as_uint(value)));\n"
    "}\n"
    "static __device__ f8bits to_f8(float x, int shift, unsigned zero, float grid, unsigned most, unsigned nan)\n"
    "{\n"
    "    unsigned bits = __float_as_uint(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;\n"
    "    if (magnitude > 0x7f800000u)\n"
    "        return (f8bits)(sign | nan);\n"
    "    if (magnitude < (zero + 1) << 23)\n"
    "        return (f8bits)(sign | (__float_as_uint(__fadd_rn(__uint_as_float(magnitude), grid)) - "
    "__float_as_uint(grid)));\n"
    "    magnitude = (magnitude - (zero << 23) + (1u << (shift - 1)) - 1 + ((magnitude >> shift) & 1u)) >> shift;\n"
    "    return (f8bits)(sign | (magnitude < most ? magnitude : most));\n"
    "}\n"
    "static __device__ f8bits to_f8e4m3(float x)\n"
    "{\n"
    "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890\n"
    "    if (x == x) {\n"
    "        unsigned short pair;\n"
    "        asm(\"cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\" : \"=h\"(pair) : \"f\"(0.0f), \"f\"(x));\n"
    "        return (f8bits)pair;\n"
    "    }\n"
    "#endif\n"
    "    return to_f8(x, 20, 120, 16384.0f, 0x7eu, 0x7fu);\n"
    "}\n"
    "static __device__ f8bits to_f8e5m2(float x)\n"
    "{\n"
    "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890\n"
    "    if (x == x) {\n"
    "        unsigned short pair;\n"
    "        asm(\"cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;\" : \"=h\"(pair) : \"f\"(0.0f), \"f\"(x));\n"
    "        return (f8bits)pair;\n"
    "    }\n"
    "#endif\n"
    "    return to_f8(x, 21, 112, 128.0f, 0x7bu, 0x7eu);\n"
    "}\n"
    "static __device__ i64 to_whole(double x, double least, double limit, i64 lowest, i64 most)\n"
    "{\n"
    "    if (!(x > least))\n"
    "        return x <= least ? lowest : 0;\n"
    "    return x >= limit ? most : (i64)x;\n"
    "}\n";

/* Text that is printed for other shared memory defines SHARED ahead of this, and where a kernel is no launch of its
 * own, BEGIN: how every kernel begins, for the reasons that kernels/begin.cuh states. */
const char gy_maths_cuda_prelude[] =
    "#ifndef BEGIN\n"
    "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n"
    "#define BEGIN asm volatile(\"griddepcontrol.launch_dependents;\"); "
    "asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"
    "#else\n"
    "#define BEGIN\n"
    "#endif\n"
    "#endif\n"
    "#ifndef SHARED\n"
    "#define SHARED(type, name, count) __shared__ type name[count]\n"
    "#endif\n"
    "static __device__ __forceinline__ unsigned quotient(unsigned i, i64 d, i64 by)\n"
    "{\n"
    "    const unsigned x = i << 2;\n"
    "    (void)d;\n"
    "    return (unsigned)(((u64)(unsigned)((u64)by >> 32) * x + ((u64)(unsigned)by * x >> 32)) >> 32);\n"
    "}\n"
    "static __device__ __forceinline__ i64 quotient(i64 i, i64 d, i64 by)\n"
    "{\n"
    "    if ((((u64)i | (u64)d) >> 30) == 0)\n"
    "        return (i64)quotient((unsigned)i, d, by);\n"
    "    return (((u64)i >> 40) | ((u64)d >> 22)) == 0 ? (i64)__umul64hi((u64)by, (u64)i << 2) : i / d;\n"
    "}\n"
    "template <class I> static __device__ __forceinline__ I rest(I i, i64 d, i64 by)\n"
    "{\n"
    "    return i - quotient(i, d, by) * (I)d;\n"
    "}\n"
    "template <class I> static __device__ __forceinline__ I without(I i, i64 d, i64 by_d, i64 q, i64 by_q)\n"
    "{\n"
    "    return quotient(i, d, by_d) * (I)q + rest(i, q, by_q);\n"
    "}\n"
    "static __device__ __forceinline__ i64 insert(i64 i, i64 behind, i64 by, i64 with)\n"
    "{\n"
    "    return i + quotient(i, behind, by) * (with - behind);\n"
    "}\n";

/* ---- names ---- */

const char *gy_maths_cuda_type(gy_maths_type type)
{
    return type == GY_MATHS_F32 ? "float" : type == GY_MATHS_F64 ? "double" : "i64";
}

const char *gy_maths_cuda_element(gantry_dtype dtype)
{
    static const char *const names[GANTRY_DTYPE_COUNT] = {
        [GANTRY_F16] = "half",   [GANTRY_BF16] = "half",      [GANTRY_F32] = "float",
        [GANTRY_F64] = "double", [GANTRY_I8] = "signed char", [GANTRY_U8] = "unsigned char",
        [GANTRY_I32] = "int",    [GANTRY_U32] = "unsigned",   [GANTRY_I64] = "i64",
        [GANTRY_U64] = "u64",    [GANTRY_F8E4M3] = "f8bits",  [GANTRY_F8E5M2] = "f8bits",
    };
    return names[dtype];
}

/* Of an argument "a2", of a step "v7". */
static void add_value(gy_text *to, const gy_maths_program *p, uint32_t value)
{
    uint32_t args = p->maths->args;
    gy_text_printf(to, value < args ? "a%u" : "v%u", value < args ? value : value - args);
}

/* ---- conversions ---- */

/* Types of 16 and 8 bits, which functions "from_" and "to_" with their names convert. */
static bool is_narrow(gantry_dtype dtype)
{
    return gy_dtype_is_float(dtype) && gantry_dtype_size(dtype) < sizeof(float);
}

/* A value of `type` becomes the element of a region; `text` is the value. */
void gy_maths_cuda_add_stored(gy_text *to, const char *text, gy_maths_type type, gantry_dtype dtype)
{
    const char *single = type == GY_MATHS_F64 ? "__double2float_rn" : type == GY_MATHS_I64 ? "__ll2float_rn" : "";
    if (is_narrow(dtype))
        gy_text_printf(to, "to_%s(%s(%s))", gantry_dtype_name(dtype), single, text);
    else if (dtype == GANTRY_F32)
        gy_text_printf(to, "%s(%s)", single, text);
    else if (dtype == GANTRY_F64)
        gy_text_printf(to, "%s(%s)", type == GY_MATHS_I64 ? "__ll2double_rn" : "(double)", text);
    else
        gy_text_printf(to, "(%s)(u64)%s", gy_maths_cuda_element(dtype), text);
}

void gy_maths_cuda_add_loaded(gy_text *to, const char *text, gantry_dtype dtype)
{
    if (is_narrow(dtype))
        gy_text_printf(to, "from_%s(%s)", gantry_dtype_name(dtype), text);
    else
        gy_text_add(to, text);
}

static void add_truncated(gy_text *to, const char *text, gantry_dtype dtype)
{
    bool is_signed = dtype == GANTRY_I8 || dtype == GANTRY_I32 || dtype == GANTRY_I64;
    int bits = 8 * (int)gantry_dtype_size(dtype) - is_signed;
    uint64_t most = (UINT64_C(1) << bits) - 1, lowest = is_signed ? ~most : 0;
    gy_text_printf(to, "to_whole((double)%s, %s%.1f, %.1f, (i64)0x%" PRIx64 "ull, (i64)0x%" PRIx64 "ull)", text,
                   is_signed ? "-" : "", is_signed ? (double)(UINT64_C(1) << bits) : 0.0, (double)(UINT64_C(1) << bits),
                   lowest, most);
}

/* Also a move, which is a cast to the type that the step has. */
void gy_maths_cuda_add_cast(gy_text *to, const char *text, gy_maths_type type, gantry_dtype dtype)
{
    gy_text stored = { 0 };
    if (!gy_dtype_is_float(dtype) && type != GY_MATHS_I64) {
        add_truncated(to, text, dtype);
        return;
    }
    gy_maths_cuda_add_stored(&stored, text, type, dtype);
    to->failed = to->failed || stored.failed;
    gy_maths_cuda_add_loaded(to, stored.at ? stored.at : "", dtype);
    gy_text_free(&stored);
}

/* ---- steps ---- */

static void add_number(gy_text *to, const gy_maths_step *s)
{
    float single = (float)s->real;
    uint32_t narrow;
    uint64_t wide;
    memcpy(&narrow, &single, sizeof narrow);
    memcpy(&wide, &s->real, sizeof wide);
    if (s->to == GY_MATHS_F32)
        gy_text_printf(to, "__uint_as_float(0x%" PRIx32 "u)", narrow);
    else if (s->to == GY_MATHS_F64)
        gy_text_printf(to, "__longlong_as_double((i64)0x%" PRIx64 "ull)", wide);
    else
        gy_text_printf(to, "(i64)0x%" PRIx64 "ull", (uint64_t)s->whole);
}

/* "A" and "B" stand for the operands. */
static const char *real_form(gy_maths_op op, bool is_float)
{
    static const char *const forms[GY_MATHS_OPS][2] = {
        [GY_MATHS_ADD] = { "__dadd_rn(A, B)", "__fadd_rn(A, B)" },
        [GY_MATHS_SUB] = { "__dsub_rn(A, B)", "__fsub_rn(A, B)" },
        [GY_MATHS_MUL] = { "__dmul_rn(A, B)", "__fmul_rn(A, B)" },
        [GY_MATHS_DIV] = { "__ddiv_rn(A, B)", "__fdiv_rn(A, B)" },
        [GY_MATHS_SQUARE] = { "__dmul_rn(A, A)", "__fmul_rn(A, A)" },
        [GY_MATHS_SQRT] = { "__dsqrt_rn(A)", "__fsqrt_rn(A)" },
        [GY_MATHS_RSQRT] = { "__ddiv_rn(1.0, __dsqrt_rn(A))", "__fdiv_rn(1.0f, __fsqrt_rn(A))" },
        [GY_MATHS_NEGATE] = { "-A", "-A" },
        [GY_MATHS_MIN] = { "A < B || A != A ? A : B", "A < B || A != A ? A : B" },
        [GY_MATHS_MAX] = { "A > B || A != A ? A : B", "A > B || A != A ? A : B" },
        [GY_MATHS_ABS] = { "fabs(A)", "fabsf(A)" },
        [GY_MATHS_FLOOR] = { "floor(A)", "floorf(A)" },
        [GY_MATHS_CEIL] = { "ceil(A)", "ceilf(A)" },
        [GY_MATHS_EXP] = { "exp(A)", "expf(A)" },
        [GY_MATHS_LOG] = { "log(A)", "logf(A)" },
        [GY_MATHS_SIN] = { "sin(A)", "sinf(A)" },
        [GY_MATHS_COS] = { "cos(A)", "cosf(A)" },
        [GY_MATHS_TANH] = { "tanh(A)", "tanhf(A)" },
        [GY_MATHS_ERF] = { "erf(A)", "erff(A)" },
        [GY_MATHS_POW] = { "pow(A, B)", "powf(A, B)" },
    };
    return forms[op][is_float];
}

static const char *whole_form(gy_maths_op op)
{
    switch (op) {
    case GY_MATHS_ADD:
        return "(i64)((u64)A + (u64)B)";
    case GY_MATHS_SUB:
        return "(i64)((u64)A - (u64)B)";
    case GY_MATHS_MUL:
        return "(i64)((u64)A * (u64)B)";
    case GY_MATHS_SQUARE:
        return "(i64)((u64)A * (u64)A)";
    case GY_MATHS_NEGATE:
        return "(i64)(0 - (u64)A)";
    case GY_MATHS_ABS:
        return "A < 0 ? (i64)(0 - (u64)A) : A";
    case GY_MATHS_MIN:
        return "A < B ? A : B";
    case GY_MATHS_MAX:
        return "A > B ? A : B";
    default: /* floor and ceil */
        return "A";
    }
}

static void add_operation(gy_text *to, const gy_maths_program *p, const gy_maths_step *s)
{
    const gy_maths_op_info *info = &gy_maths_ops[s->op];
    if (info->precedence == GY_MATHS_COMPARE) {
        add_value(to, p, s->operand[0]);
        gy_text_printf(to, " %s ", info->name);
        add_value(to, p, s->operand[1]);
        return;
    }
    const char *form = s->type == GY_MATHS_I64 ? whole_form(s->op) : real_form(s->op, s->type == GY_MATHS_F32);
    for (; *form; form++)
        if (*form == 'A' || *form == 'B')
            add_value(to, p, s->operand[*form == 'B']);
        else
            gy_text_add_n(to, form, 1);
}

static void add_select(gy_text *to, const gy_maths_program *p, const gy_maths_step *s)
{
    add_value(to, p, s->operand[0]);
    gy_text_add(to, " != 0 ? ");
    add_value(to, p, s->operand[1]);
    gy_text_add(to, " : ");
    add_value(to, p, s->operand[2]);
}

static void add_converted(gy_text *to, const gy_maths_program *p, const gy_maths_step *s)
{
    gantry_dtype moved = s->to == GY_MATHS_F32 ? GANTRY_F32 : s->to == GY_MATHS_F64 ? GANTRY_F64 : GANTRY_I64;
    gy_text operand = { 0 };
    add_value(&operand, p, s->operand[0]);
    to->failed = to->failed || operand.failed;
    gy_maths_cuda_add_cast(to, operand.at ? operand.at : "", s->type, s->op == GY_MATHS_CAST ? s->cast : moved);
    gy_text_free(&operand);
}

void gy_maths_cuda_add_step(gy_text *to, const gy_maths_program *p, uint32_t step)
{
    const gy_maths_step *s = &p->step[step];
    gy_text_printf(to, "    const %s v%u = ", gy_maths_cuda_type(s->to), step);
    if (s->op == GY_MATHS_NUMBER)
        add_number(to, s);
    else if (s->op == GY_MATHS_CAST || s->op == GY_MATHS_MOVE)
        add_converted(to, p, s);
    else if (s->op == GY_MATHS_SELECT)
        add_select(to, p, s);
    else
        add_operation(to, p, s);
    gy_text_add(to, ";\n");
}

/* ---- arguments ---- */

bool gy_maths_cuda_loads(const gy_maths_program *p, uint32_t arg)
{
    return !p->kind[arg].is_number && p->maths->is_read[arg];
}

bool gy_maths_has_step(const gy_maths_program *p, uint32_t arg)
{
    bool is_read_only = !p->maths->is_written[arg];
    bool is_reduced_again = p->maths->reduces && p->maths->is_read[arg] && !p->kind[arg].is_beside;
    return !p->kind[arg].is_number && (is_read_only || is_reduced_again);
}

void gy_maths_cuda_add_parameters(gy_text *to, const gy_maths_program *p)
{
    const gy_maths *m = p->maths;
    for (uint32_t k = 0; k < m->args; k++) {
        gy_text_add(to, k ? ", " : "");
        if (p->kind[k].is_number)
            gy_text_printf(to, "double a%u", k);
        else
            gy_text_printf(to, "%s%s *__restrict__ p%u", m->is_written[k] ? "" : "const ",
                           gy_maths_cuda_element(p->kind[k].dtype), k);
    }
}

void gy_maths_cuda_divisor(char to[GY_MATHS_DIVISOR], char kind, uint32_t arg, uint32_t run)
{
    snprintf(to, GY_MATHS_DIVISOR, run ? "%c%u_%u" : "%c%u", kind, arg, run);
}

static void add_divisor(gy_text *to, const char *type, char kind, uint32_t arg, uint32_t run)
{
    char name[GY_MATHS_DIVISOR];
    gy_maths_cuda_divisor(name, kind, arg, run);
    gy_text_printf(to, ", %s%s, %sby_%s", type, name, type, name);
}

static void add_steps(gy_text *to, const gy_maths_program *p, const char *type)
{
    for (uint32_t k = 0; k < p->maths->args; k++) {
        for (uint32_t run = 0; run < p->kind[k].runs; run++) {
            if (gy_maths_has_period(p, k, run))
                add_divisor(to, type, 'd', k, run);
            if (gy_maths_has_inner(p, k, run))
                add_divisor(to, type, 'q', k, run);
        }
        if (!p->kind[k].is_spread && gy_maths_has_step(p, k))
            gy_text_printf(to, ", %sd%u", type, k);
    }
}

void gy_maths_cuda_add_steps(gy_text *to, const gy_maths_program *p)
{
    add_steps(to, p, "i64 ");
}

void gy_maths_cuda_add_step_names(gy_text *to, const gy_maths_program *p)
{
    add_steps(to, p, "");
}

uint32_t gy_maths_cuda_first_alike(const gy_maths_program *p, uint32_t arg)
{
    const gy_maths_kind *kind = &p->kind[arg];
    for (uint32_t k = 0; k < arg; k++)
        if (p->kind[k].runs && p->kind[k].runs == kind->runs &&
            memcmp(p->kind[k].run, kind->run, kind->runs * sizeof *kind->run) == 0)
            return k;
    return arg;
}

void gy_maths_cuda_add_load(gy_text *to, const gy_maths_program *p, uint32_t arg, const char *i)
{
    gy_text_printf(to, "p%u[", arg);
    if (p->kind[arg].is_spread)
        gy_maths_cuda_add_number(to, p, arg, i);
    else if (gy_maths_has_step(p, arg))
        gy_text_printf(to, "%s * d%u", i, arg);
    else
        gy_text_add(to, i);
    gy_text_add(to, "]");
}

/* ---- values ---- */

void gy_maths_cuda_add_values(gy_text *to, const gy_maths_program *p)
{
    const gy_maths *m = p->maths;
    for (uint32_t k = 0; k < m->args; k++) {
        char name[16];
        if (!gy_maths_cuda_loads(p, k))
            continue;
        snprintf(name, sizeof name, "e%u", k);
        gy_text_printf(to, "    const %s a%u = ", gy_maths_cuda_type(p->arg_type[k]), k);
        gy_maths_cuda_add_loaded(to, name, p->kind[k].dtype);
        gy_text_add(to, ";\n");
    }
    for (uint32_t k = 0; k < p->steps; k++)
        gy_maths_cuda_add_step(to, p, k);
}

void gy_maths_cuda_add_value(gy_text *to, const gy_maths_program *p, uint32_t result)
{
    add_value(to, p, p->value[result]);
}
