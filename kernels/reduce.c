/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce.h"

gy_number gy_number_load(const void *data, gantry_dtype dtype, int64_t i)
{
    gy_number n = { 0, 0 };
    switch (dtype) {
#define REAL(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        n.real = (double)LOAD(((const type *)data)[i]);                                                                \
        break;
        GY_FLOAT_TYPES(REAL)
#undef REAL
#define WHOLE(dtype, type, wide, LOAD, STORE)                                                                          \
    case dtype:                                                                                                        \
        n.integer = LOAD(((const type *)data)[i]);                                                                     \
        break;
        GY_INTEGER_TYPES(WHOLE)
#undef WHOLE
    default:
        break;
    }
    return n;
}

void gy_number_store(void *data, gantry_dtype dtype, int64_t i, gy_number value)
{
    switch (dtype) {
#define REAL(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        ((type *)data)[i] = STORE((wide)value.real);                                                                   \
        break;
        GY_FLOAT_TYPES(REAL)
#undef REAL
#define WHOLE(dtype, type, wide, LOAD, STORE)                                                                          \
    case dtype:                                                                                                        \
        ((type *)data)[i] = STORE(value.integer);                                                                      \
        break;
        GY_INTEGER_TYPES(WHOLE)
#undef WHOLE
    default:
        break;
    }
}

gantry_status gy_check_accumulator(const gantry_launch *l, int x, int out, char *text, size_t size)
{
    gantry_dtype from = l->arg[x].dtype, to = l->arg[out].dtype;
    gantry_status status = gy_check_one_element(l, out, text, size);
    if (status)
        return status;
    int wider = gy_is_float(from) ? gy_is_float(to) && gantry_dtype_size(to) > gantry_dtype_size(from)
                                  : !gy_is_float(to) && gantry_dtype_size(to) == 8;
    if (from == to || wider)
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"%s\" is %s and \"%s\" is %s; it must be %s or %s", l->arg[x].name,
                         gantry_dtype_name(from), l->arg[out].name, gantry_dtype_name(to), gantry_dtype_name(from),
                         gy_is_float(from) ? "a wider floating type" : "i64 or u64");
}
