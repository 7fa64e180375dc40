/* SPDX-License-Identifier: Apache-2.0 */
/* Each operation of a formula: how it is written, and its cost. */
#ifndef GY_MATHS_OPS_H
#define GY_MATHS_OPS_H

#include "maths/maths.h"

enum { GY_MATHS_COMPARE = 1, GY_MATHS_SUM, GY_MATHS_PRODUCT, GY_MATHS_SIGN };

typedef struct gy_maths_op_info {
    const char *name;  /* as it is written: "+", "sqrt" */
    int precedence;    /* of what is written between two operands; 0 for others */
    uint32_t operands; /* how many there are */
    bool is_function;
    bool is_float;   /* whole numbers are made real first */
    double flops[2]; /* what costs count it as: of whole numbers and f32, of f64 */
    const char *usage;
} gy_maths_op_info;

extern const gy_maths_op_info gy_maths_ops[GY_MATHS_OPS];

#endif
