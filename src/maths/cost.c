/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overhead of formulas on GPUs, counted as flops as their operations are (ops.c): places of instructions of f32, of
 * which a multiprocessor of sm_90 makes 256 a clock, two an instruction. In a clock it also makes 64 instructions of
 * f64, 16 conversions from or to types of 64 bits (CUDA C++ Programming Guide, "Throughput of Native Arithmetic
 * Instructions") and 32 loads of 4 bytes; conversions, loads and all else go on beside each other, so the most counts.
 */
#include "maths/cuda_text.h"
#include "maths/ops.h"

/* Flops of f32 for one of each, on a GPU. */
enum { WIDE = 2, CONVERSION = 16, LOAD = 8, QUOTIENT = 12, THREAD = 80 };

static bool is_conversion(const gy_maths_step *s)
{
    return (s->op == GY_MATHS_MOVE || s->op == GY_MATHS_CAST) && s->type != s->to && !s->is_fixed;
}

static double step_flops(const gy_maths_step *s)
{
    const gy_maths_op_info *info = &gy_maths_ops[s->op];
    bool converts = s->op == GY_MATHS_MOVE || s->op == GY_MATHS_CAST;
    if (s->is_fixed || is_conversion(s))
        return 0;
    if (converts)
        return info->flops[0];
    return s->type == GY_MATHS_F32 ? info->flops[0] : WIDE * info->flops[s->type == GY_MATHS_F64];
}

/* Of one more value to those before, as join() of cuda_reduce.c has it. */
static double join_flops(gy_maths_reduction reduction, gy_maths_type type)
{
    switch (reduction) {
    case GY_MATHS_TOTAL:
    case GY_MATHS_MEAN:
        return 4;
    case GY_MATHS_LEAST:
    case GY_MATHS_MOST:
        return type == GY_MATHS_F64 ? 12 : 8;
    case GY_MATHS_WHERE_LEAST:
    case GY_MATHS_WHERE_MOST:
        return 30;
    default:
        return 8;
    }
}

/* Maps have threads enough that loads and stores go on beside the rest. Reductions have few, as totals take registers;
 * they load elements once for each of the model, but for those that stand for all that become one. */
static double loads_flops(const gy_maths_program *p)
{
    double flops = 0;
    for (uint32_t k = 0; k < p->maths->args && p->maths->reduces; k++)
        if (gy_maths_cuda_loads(p, k) && !gy_maths_is_kept(p, k))
            flops += LOAD * (gantry_dtype_size(p->kind[k].dtype) > 4 ? 2 : 1);
    return flops;
}

/* As gy_node_dtype has it: then operations count as f64, whose speed machines have as half of that of f32. */
static bool is_by_f64(const gy_maths_program *p)
{
    for (uint32_t k = 0; k < p->maths->args; k++)
        if (!p->kind[k].is_number && p->kind[k].dtype == GANTRY_F64)
            return true;
    return false;
}

void gy_maths_count(gy_maths_program *p, const gy_maths_step *step)
{
    double flops = QUOTIENT * (double)gy_maths_quotients(p), converted = 0, loaded = loads_flops(p),
           counted = p->flops * (is_by_f64(p) ? WIDE : 1);
    for (uint32_t i = 0; i < p->steps; i++)
        if (is_conversion(&step[i]))
            converted += CONVERSION;
        else
            flops += step_flops(&step[i]);
    for (uint32_t k = 0; k < p->maths->results; k++)
        if (gy_maths_is_reduced(p->maths, k))
            flops += join_flops(p->maths->result[k].reduction, p->value_type[k]);
    flops = converted > flops ? converted : flops;
    flops = loaded > flops ? loaded : flops;
    p->overhead = flops > counted ? flops - counted : 0;
    p->thread_overhead = p->maths->reduces ? THREAD : 0;
}
