/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that embedding and its gradient share. */
#ifndef GY_KERNELS_EMBEDDING_H
#define GY_KERNELS_EMBEDDING_H

#include "kernels/manifest.h"

#define GY_ID_DTYPES (GANTRY_DTYPE_BIT(GANTRY_I32) | GANTRY_DTYPE_BIT(GANTRY_I64))

static inline int64_t gy_id(const gantry_arg *ids, int64_t i)
{
    return ids->dtype == GANTRY_I32 ? ((const int32_t *)ids->data)[i] : ((const int64_t *)ids->data)[i];
}

/* check(): `rows` has a row for each id, as wide as those of `table`. */
static inline gantry_status gy_check_embedding(const gantry_launch *l, int table, int ids, int rows, char *text,
                                               size_t size)
{
    const gantry_arg *t = &l->arg[table], *r = &l->arg[rows];
    if (gy_arg_size(r) == gy_arg_size(&l->arg[ids]) * gy_arg_width(t))
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"%s\" has %lld elements; there must be %lld, a row of \"%s\" for each of \"%s\"",
                         r->name, (long long)gy_arg_size(r), (long long)(gy_arg_size(&l->arg[ids]) * gy_arg_width(t)),
                         t->name, l->arg[ids].name);
}

#endif
