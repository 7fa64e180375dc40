/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C of a program's steps, one loop with a line for each: those of cuda_text.c, whose functions mean here what they mean
 * on a GPU. Nothing of a formula's text is in it: names are made of numbers, numbers are written by their bits.
 */
#include "maths/cuda_text.h"

static const char prelude[] =
    "#define __device__\n"
    "float sqrtf(float), fabsf(float), floorf(float), ceilf(float), expf(float), logf(float);\n"
    "float sinf(float), cosf(float), tanhf(float), erff(float), powf(float, float);\n"
    "double sqrt(double), fabs(double), floor(double), ceil(double), exp(double), log(double);\n"
    "double sin(double), cos(double), tanh(double), erf(double), pow(double, double);\n"
    "static float __uint_as_float(unsigned bits)\n"
    "{\n"
    "    union { unsigned bits; float value; } u = { bits };\n"
    "    return u.value;\n"
    "}\n"
    "static unsigned __float_as_uint(float value)\n"
    "{\n"
    "    union { float value; unsigned bits; } u = { value };\n"
    "    return u.bits;\n"
    "}\n"
    "static double __longlong_as_double(long long bits)\n"
    "{\n"
    "    union { long long bits; double value; } u = { bits };\n"
    "    return u.value;\n"
    "}\n"
    "#define __fadd_rn(a, b) ((a) + (b))\n"
    "#define __fsub_rn(a, b) ((a) - (b))\n"
    "#define __fmul_rn(a, b) ((a) * (b))\n"
    "#define __fdiv_rn(a, b) ((a) / (b))\n"
    "#define __fsqrt_rn(a) sqrtf(a)\n"
    "#define __dadd_rn(a, b) ((a) + (b))\n"
    "#define __dsub_rn(a, b) ((a) - (b))\n"
    "#define __dmul_rn(a, b) ((a) * (b))\n"
    "#define __ddiv_rn(a, b) ((a) / (b))\n"
    "#define __dsqrt_rn(a) sqrt(a)\n"
    "#define __double2float_rn(a) ((float)(a))\n"
    "#define __ll2float_rn(a) ((float)(a))\n"
    "#define __ll2double_rn(a) ((double)(a))\n";

/* Numbers and values that are the same for all elements, then where the others lie. */
static void add_operands(gy_text *to, const gy_maths_program *p)
{
    const gy_maths *m = p->maths;
    for (uint32_t k = 0; k < m->args; k++) {
        const char *type = gy_maths_cuda_type(p->arg_type[k]);
        if (p->kind[k].is_number)
            gy_text_printf(to, "    const double a%u = *(const double *)value[%u];\n", k, k);
        else if (m->is_read[k])
            gy_text_printf(to, "    const %s *x%u = (const %s *)value[%u];\n", type, k, type, k);
    }
    for (uint32_t k = 0; k < p->steps; k++) {
        const char *type = gy_maths_cuda_type(p->step[k].to);
        if (p->step[k].is_fixed)
            gy_text_printf(to, "    const %s v%u = *(const %s *)value[%u];\n", type, k, type, m->args + k);
    }
    for (uint32_t k = 0; k < m->results; k++) {
        const char *type = gy_maths_cuda_type(p->value_type[k]);
        gy_text_printf(to, "    %s *restrict r%u = (%s *)result[%u];\n", type, k, type, k);
    }
}

void gy_maths_print_c(gy_text *to, const gy_maths_program *p)
{
    const gy_maths *m = p->maths;
    gy_text_add(to, prelude);
    gy_text_add(to, gy_maths_conversions);
    gy_text_add(to, "void " GY_MATHS_ENTRY "(const void *const *value, void *const *result, u64 n)\n{\n");
    add_operands(to, p);
    gy_text_add(to, "    for (u64 i = 0; i < n; i++) {\n");
    for (uint32_t k = 0; k < m->args; k++)
        if (gy_maths_cuda_loads(p, k))
            gy_text_printf(to, "    const %s a%u = x%u[i];\n", gy_maths_cuda_type(p->arg_type[k]), k, k);
    for (uint32_t k = 0; k < p->steps; k++)
        if (!p->step[k].is_fixed)
            gy_maths_cuda_add_step(to, p, k);
    for (uint32_t k = 0; k < m->results; k++) {
        gy_text_printf(to, "    r%u[i] = ", k);
        gy_maths_cuda_add_value(to, p, k);
        gy_text_add(to, ";\n");
    }
    gy_text_add(to, "    }\n}\n");
}
