/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that embedding and its gradient share: the table may be some of the rows of a larger one, whose others
 * are elsewhere. */
#ifndef GY_KERNELS_EMBEDDING_H
#define GY_KERNELS_EMBEDDING_H

#include "kernels/manifest.h"

#define GY_ID_DTYPES (GANTRY_DTYPE_BIT(GANTRY_I32) | GANTRY_DTYPE_BIT(GANTRY_I64))

enum { GY_TABLE_FIRST, GY_TABLE_OF, GY_TABLE_NUMBERS }; /* the first arguments of both kernels */
#define GY_TABLE_SCALARS                                                                                               \
    GY_SCALE_OR("first", 0, "number of the table's first row, where it is a part of a table"),                         \
        GY_SCALE_OR("of", 0,                                                                                           \
                    "rows of the whole table, where it is a part: ids of other parts are passed over; 0: it is none")

static inline int64_t gy_id(const gantry_arg *ids, int64_t i)
{
    return ids->dtype == GANTRY_I32 ? ((const int32_t *)ids->data)[i] : ((const int64_t *)ids->data)[i];
}

/* Rows of the whole table, of which `rows` are here. */
static inline int64_t gy_table_rows(const gantry_launch *l, int64_t rows)
{
    return l->arg[GY_TABLE_OF].integer ? l->arg[GY_TABLE_OF].integer : rows;
}

/* check(): `rows` has a row for each id, as wide as those of `table`, and this is a part of what it is said to be. */
static inline gantry_status gy_check_embedding(const gantry_launch *l, int table, int ids, int rows, char *text,
                                               size_t size)
{
    const gantry_arg *t = &l->arg[table], *r = &l->arg[rows];
    int64_t first = l->arg[GY_TABLE_FIRST].integer, of = gy_table_rows(l, t->rows);
    for (int i = GY_TABLE_FIRST; i <= GY_TABLE_OF; i++)
        if (l->arg[i].number < 0 || l->arg[i].number != (double)l->arg[i].integer)
            return gy_check_fail(text, size, "\"%s\" is %g; it must be a whole number from 0 on", l->arg[i].name,
                                 l->arg[i].number);
    if (t->rows > of || first > of - t->rows)
        return gy_check_fail(
            text, size,
            "\"%s\" has %lld rows, from row %lld of %lld on; give \"of\", the rows of the whole table, "
            "and a \"first\" from 0 to \"of\" less the rows that are here",
            t->name, (long long)t->rows, (long long)first, (long long)of);
    if (gy_arg_size(r) == gy_arg_size(&l->arg[ids]) * gy_arg_width(t))
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"%s\" has %lld elements; there must be %lld, a row of \"%s\" for each of \"%s\"",
                         r->name, (long long)gy_arg_size(r), (long long)(gy_arg_size(&l->arg[ids]) * gy_arg_width(t)),
                         t->name, l->arg[ids].name);
}

#endif
