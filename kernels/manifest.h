/* SPDX-License-Identifier: Apache-2.0 */
/* Short forms for manifests: one kernel a file, ending in its gantry_kernel. */
#ifndef GY_KERNELS_MANIFEST_H
#define GY_KERNELS_MANIFEST_H

#include "kernels/element.h"

#define GY_ARGS(list) list, sizeof *(list), (int32_t)(sizeof(list) / sizeof *(list))
#define GY_REGION(name_, access_, dtypes_, same_, summary_)                                                            \
    {                                                                                                                  \
        .name = name_, .access = access_, .dtypes = dtypes_, .same = same_, .summary = summary_                        \
    }
#define GY_NUMBER(name_, summary_)                                                                                     \
    {                                                                                                                  \
        .name = name_, .scalar = 1, .summary = summary_                                                                \
    }
#define GY_NUMBER_OR(name_, value_, summary_)                                                                          \
    {                                                                                                                  \
        .name = name_, .scalar = 1, .optional = 1, .fallback = value_, .summary = summary_                             \
    }

/* Numbers that the kernel converts to the dtype of the regions with that letter. */
#define GY_FACTOR(name_, same_, summary_)                                                                              \
    {                                                                                                                  \
        .name = name_, .scalar = 1, .same = same_, .summary = summary_                                                 \
    }
#define GY_FACTOR_OR(name_, same_, value_, summary_)                                                                   \
    {                                                                                                                  \
        .name = name_, .scalar = 1, .optional = 1, .fallback = value_, .same = same_, .summary = summary_              \
    }

/* Every kernel of the library, in order of name: builtin.c makes the table and the declarations from it. */
#define GY_KERNELS(X)                                                                                                  \
    X(add)                                                                                                             \
    X(axpby)                                                                                                           \
    X(bias_add)                                                                                                        \
    X(busy)                                                                                                            \
    X(copy)                                                                                                            \
    X(dot)                                                                                                             \
    X(fail)                                                                                                            \
    X(gaussian_blur)                                                                                                   \
    X(gemm)                                                                                                            \
    X(histogram)                                                                                                       \
    X(jacobi2d)                                                                                                        \
    X(mul)                                                                                                             \
    X(potrf)                                                                                                           \
    X(reduce_max)                                                                                                      \
    X(reduce_sum)                                                                                                      \
    X(relu)                                                                                                            \
    X(relu_grad)                                                                                                       \
    X(saxpy)                                                                                                           \
    X(scale)                                                                                                           \
    X(sgd_update)                                                                                                      \
    X(sobel)                                                                                                           \
    X(softmax_xent)                                                                                                    \
    X(softmax_xent_grad)                                                                                               \
    X(spmv_csr)                                                                                                        \
    X(syrk)                                                                                                            \
    X(transpose)                                                                                                       \
    X(trsm)

#define GY_X(name) extern const gantry_kernel gy_kernel_##name;
GY_KERNELS(GY_X)
#undef GY_X

#endif
