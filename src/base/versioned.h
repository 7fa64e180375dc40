/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Versioned structs: the public structs that begin with `size_t struct_size`, so that fields can be added at their end.
 * A program and the library may have been compiled with different versions of such a struct. These functions are the
 * only place that knows what follows from that; docs/abi.md promises it.
 */
#ifndef GY_BASE_VERSIONED_H
#define GY_BASE_VERSIONED_H

#include <gantry/status.h>

/* No struct of the API is larger, in any version: a larger size is memory that was not set. */
#define GY_STRUCT_MOST 4096

/**
 * Reads a struct that the program filled. `full`, of `size` bytes, holds the defaults. NULL `given`: only these. A
 * smaller one leaves the defaults of the fields it does not have. A larger one has fields of which this library knows
 * nothing; they must be 0, which asks for nothing. `type` is the name of the struct. full->struct_size becomes `size`.
 * E_INVALID: struct_size was not set. E_UNSUPPORTED: fields of a later version are in use.
 */
gantry_status gy_struct_read(void *full, size_t size, const void *given, const char *type, gantry_error *err);

/**
 * The same for an array of `count` structs that lie `stride` bytes apart and have no size of their own. `to` has
 * `count` elements of `size` bytes; what is not given becomes 0. `field` names what gives the stride.
 */
gantry_status gy_struct_read_array(void *to, size_t size, const void *given, size_t stride, size_t count,
                                   const char *field, const char *type, gantry_error *err);

/* A field of the kind `int32_t reserved`, which later versions may give a meaning: E_UNSUPPORTED if it is not 0. */
gantry_status gy_struct_reserved(int32_t reserved, const char *type, gantry_error *err);

/* Checks the struct that a program gives for an answer: E_INVALID if it is NULL or its struct_size was not set. */
gantry_status gy_struct_check(const void *given, size_t size, const char *type, gantry_error *err);
/* Fills it (NULL: there is nothing to fill) with as much of `full` as it has room for; fields of a later version become
 * 0. Its struct_size stays. It must have passed gy_struct_check. */
void gy_struct_write(void *given, const void *full, size_t size);

#endif
