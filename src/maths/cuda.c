/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA C of maps: four elements a thread, loaded before the first is computed. Regions that are spread are found by
 * quotients, which would keep loads from waiting for memory together if each had to ask how large its numbers are; so
 * there are two bodies, one for whole numbers of 32 bits, and the kernel asks once.
 */
#include "maths/cuda_text.h"

#include <stdio.h>

/* One element: its number, pointers to results, what was loaded, numbers. */
static void add_element(gy_text *to, const gy_maths_program *p)
{
    const gy_maths *m = p->maths;
    gy_text_add(to, "static __device__ __forceinline__ void element(i64 i");
    for (uint32_t k = 0; k < m->args; k++) {
        const char *type = gy_maths_cuda_element(p->kind[k].dtype);
        if (p->kind[k].is_number)
            gy_text_printf(to, ", const double a%u", k);
        if (m->is_written[k])
            gy_text_printf(to, ", %s *__restrict__ p%u", type, k);
        if (gy_maths_cuda_loads(p, k))
            gy_text_printf(to, ", const %s e%u", type, k);
    }
    gy_text_add(to, ")\n{\n");
    gy_maths_cuda_add_values(to, p);
    for (uint32_t k = 0; k < m->results; k++) {
        char name[16];
        snprintf(name, sizeof name, "v%u", p->value[k] - m->args);
        gy_text_printf(to, "    p%u[i] = ", m->result[k].arg);
        gy_maths_cuda_add_stored(to, name, p->value_type[k], p->kind[m->result[k].arg].dtype);
        gy_text_add(to, ";\n");
    }
    gy_text_add(to, "}\n");
}

static void add_kept(gy_text *to, const gy_maths_program *p, uint32_t arg)
{
    gy_text_printf(to, "            e%u[k] = ", arg);
    gy_maths_cuda_add_load(to, p, arg, "i");
    gy_text_add(to, ";\n");
}

/* A call of element(), for elements that were loaded before or are loaded here. */
static void add_call(gy_text *to, const gy_maths_program *p, bool is_loaded_before)
{
    const gy_maths *m = p->maths;
    gy_text_add(to, "element(i");
    for (uint32_t k = 0; k < m->args; k++) {
        if (p->kind[k].is_number)
            gy_text_printf(to, ", a%u", k);
        if (m->is_written[k])
            gy_text_printf(to, ", p%u", k);
        if (!gy_maths_cuda_loads(p, k))
            continue;
        gy_text_add(to, ", ");
        if (is_loaded_before)
            gy_text_printf(to, "e%u[k]", k);
        else
            gy_maths_cuda_add_load(to, p, k, "i");
    }
    gy_text_add(to, ");\n");
}

int64_t gy_maths_block_elements(const gy_maths_program *program)
{
    size_t widest = 1;
    for (uint32_t i = 0; i < program->maths->args; i++)
        if (!program->kind[i].is_number && gantry_dtype_size(program->kind[i].dtype) > widest)
            widest = gantry_dtype_size(program->kind[i].dtype);
    return GY_MATHS_BLOCK * (widest > 2 ? 4 : 8);
}

/* Full blocks load all of their elements before they compute, so that loads wait for memory together. */
static void add_full_block(gy_text *to, const gy_maths_program *p)
{
    const gy_maths *m = p->maths;
    int each = (int)(gy_maths_block_elements(p) / GY_MATHS_BLOCK);
    for (uint32_t k = 0; k < m->args; k++)
        if (gy_maths_cuda_loads(p, k))
            gy_text_printf(to, "        %s e%u[%d];\n", gy_maths_cuda_element(p->kind[k].dtype), k, each);
    gy_text_printf(to,
                   "#pragma unroll\n        for (int k = 0; k < %d; k++) {\n            const I i = first + %d * k;\n",
                   each, GY_MATHS_BLOCK);
    for (uint32_t k = 0; k < m->args; k++)
        if (gy_maths_cuda_loads(p, k))
            add_kept(to, p, k);
    gy_text_printf(to,
                   "            (void)i;\n        }\n#pragma unroll\n        for (int k = 0; k < %d; k++) {\n"
                   "            const I i = first + %d * k;\n            ",
                   each, GY_MATHS_BLOCK);
    add_call(to, p, true);
    gy_text_add(to, "        }\n        return;\n");
}

static bool has_spread(const gy_maths_program *p)
{
    for (uint32_t k = 0; k < p->maths->args; k++)
        if (p->kind[k].is_spread)
            return true;
    return false;
}

/* I: the type of numbers of elements. */
static void add_body(gy_text *to, const gy_maths_program *p)
{
    int block = (int)gy_maths_block_elements(p);
    gy_text_add(to, "template <class I> static __device__ __forceinline__ void body(");
    gy_maths_cuda_add_parameters(to, p);
    gy_text_add(to, ", I n");
    gy_maths_cuda_add_steps(to, p);
    gy_text_printf(to,
                   ")\n{\n    const I begin = (I)blockIdx.x * %d, first = begin + threadIdx.x;\n"
                   "    if (begin + %d <= n) {\n",
                   block, block);
    add_full_block(to, p);
    gy_text_printf(to, "    }\n    for (I i = first; i < n; i += %d)\n        ", GY_MATHS_BLOCK);
    add_call(to, p, false);
    gy_text_add(to, "}\n");
}

static void add_body_call(gy_text *to, const gy_maths_program *p, const char *type)
{
    gy_text_printf(to, "body<%s>(", type);
    for (uint32_t k = 0; k < p->maths->args; k++)
        gy_text_printf(to, p->kind[k].is_number ? "a%u, " : "p%u, ", k);
    gy_text_printf(to, "(%s)n", type);
    gy_maths_cuda_add_step_names(to, p);
    gy_text_add(to, ");\n");
}

void gy_maths_print_cuda(gy_text *to, const gy_maths_program *program, const char *name, gy_maths_printed printed)
{
    gy_text_add(to, gy_maths_conversions);
    gy_text_add(to, gy_maths_cuda_prelude);
    if (program->maths->reduces) {
        gy_maths_print_cuda_reduction(to, program, name, printed);
        return;
    }
    add_element(to, program);
    add_body(to, program);
    gy_text_printf(to, "extern \"C\" __global__ void __launch_bounds__(%d) %s(", GY_MATHS_BLOCK, name);
    gy_maths_cuda_add_parameters(to, program);
    gy_text_add(to, ", i64 n");
    gy_maths_cuda_add_steps(to, program);
    gy_text_add(to, ")\n{\n    BEGIN\n    ");
    if (has_spread(program)) {
        gy_text_add(to, "if (n <= 1 << 30)\n        ");
        add_body_call(to, program, "unsigned");
        gy_text_add(to, "    else\n        ");
    }
    add_body_call(to, program, "i64");
    gy_text_add(to, "}\n");
}
