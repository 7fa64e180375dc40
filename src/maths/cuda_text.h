/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of CUDA C that maps and reductions share. Argument k is parameter `pk`, a pointer, or `ak`, a number; `ek` is
 * an element as it was loaded, `ak` its value, and `vk` the value of step k.
 */
#ifndef GY_MATHS_CUDA_TEXT_H
#define GY_MATHS_CUDA_TEXT_H

#include "maths/maths.h"

/* Types and functions that steps use; the host's C has them, too (host.c). */
extern const char gy_maths_conversions[];
/* Functions that loads use, behind those. */
extern const char gy_maths_cuda_prelude[];

const char *gy_maths_cuda_type(gy_maths_type type);
const char *gy_maths_cuda_element(gantry_dtype dtype);

/* Is it a region that formulas read? */
bool gy_maths_cuda_loads(const gy_maths_program *program, uint32_t arg);

/* "double a0, const float *__restrict__ p1": the arguments. */
void gy_maths_cuda_add_parameters(gy_text *to, const gy_maths_program *program);
/* ", i64 d1": behind them, for regions that are only read; ", i64 d1, i64 by_d1, i64 q1, i64 by_q1", period and inner,
 * or one of both, for spread ones, and ", i64 d1_1" and so on for their further runs. Then the same without types. */
void gy_maths_cuda_add_steps(gy_text *to, const gy_maths_program *program);
void gy_maths_cuda_add_step_names(gy_text *to, const gy_maths_program *program);
/* "d1", or "q1_2": the period, or the inner, of a run of axes. */
enum { GY_MATHS_DIVISOR = 24 };
void gy_maths_cuda_divisor(char to[GY_MATHS_DIVISOR], char kind, uint32_t arg, uint32_t run);
/* cuda_place.c: the number of the element of a spread region for element `i` of the model, whose axes are one group. */
void gy_maths_cuda_add_number(gy_text *to, const gy_maths_program *program, uint32_t arg, const char *i);
/* "p1[i * d1]": the element of the region for element `i` of the model. */
void gy_maths_cuda_add_load(gy_text *to, const gy_maths_program *program, uint32_t arg, const char *i);
/* The first region that is spread alike: the compiler sees that quotients by the same parameters are the same. */
uint32_t gy_maths_cuda_first_alike(const gy_maths_program *program, uint32_t arg);
/* cuda_place.c: what PLACE(m) is: the number of element (o, m, column) in the model. */
void gy_maths_cuda_add_model(gy_text *to, const gy_maths_program *program);
/* ", i64 z0, i64 z1, i64 by_z1": where axes that are reduced lie apart, what gy_maths_places has. */
void gy_maths_cuda_add_cuts(gy_text *to, const gy_maths_program *program);
/* "PLACES(is_one)": what a thread finds once, in a scope where `o`, `first` and, of columns, `column`
 * are; nothing is loaded where not is_one. */
void gy_maths_cuda_add_places(gy_text *to, const gy_maths_program *program);
/* The element for element (o, m, column), behind PLACES. */
void gy_maths_cuda_add_place(gy_text *to, const gy_maths_program *program, uint32_t arg);
/* Is one element of the region for all m, so that PLACES loads it? */
bool gy_maths_is_kept(const gy_maths_program *program, uint32_t arg);
/* Quotients that are computed to find the elements of all regions for one element of the model. */
uint32_t gy_maths_quotients(const gy_maths_program *program);
/* Lines that make values of loaded elements, and then of all steps. */
void gy_maths_cuda_add_values(gy_text *to, const gy_maths_program *program);
/* One of the latter. */
void gy_maths_cuda_add_step(gy_text *to, const gy_maths_program *program, uint32_t step);
/* The value of a result. */
void gy_maths_cuda_add_value(gy_text *to, const gy_maths_program *program, uint32_t result);

/* A value of `type`, written as `text`, as the element of a region; and an element as a value of its own type. */
void gy_maths_cuda_add_stored(gy_text *to, const char *text, gy_maths_type type, gantry_dtype dtype);
void gy_maths_cuda_add_loaded(gy_text *to, const char *text, gantry_dtype dtype);
/* A value as a cast to `dtype` makes it. */
void gy_maths_cuda_add_cast(gy_text *to, const char *text, gy_maths_type type, gantry_dtype dtype);

/* cuda_totals.c: the struct, none() and join(); down(), the totals of the lane so many further on; value() and store();
 * and the macros by which kernels load, compute and store. */
void gy_maths_cuda_add_totals(gy_text *to, const gy_maths_program *program);
void gy_maths_cuda_add_down(gy_text *to, const gy_maths_program *program);
void gy_maths_cuda_add_total_functions(gy_text *to, const gy_maths_program *program);
void gy_maths_cuda_add_total_macros(gy_text *to, const gy_maths_program *program);
/* Those of one element of each region that is read. */
size_t gy_maths_cuda_loaded_bytes(const gy_maths_program *program);

/* cuda_reduce.c: everything behind the prelude. */
void gy_maths_print_cuda_reduction(gy_text *to, const gy_maths_program *program, const char *name,
                                   gy_maths_printed printed);

#endif
