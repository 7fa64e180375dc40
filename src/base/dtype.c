/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the small enumerations of the public headers. */
#include <gantry/graph.h>
#include <gantry/kernel.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

const char *gantry_dtype_name(gantry_dtype dtype)
{
    static const char *const names[] = {
#define GANTRY_X(name, text, bytes) #text,
        GANTRY_DTYPE_MAP(GANTRY_X)
#undef GANTRY_X
    };
    return (size_t)dtype < COUNT(names) ? names[dtype] : NULL;
}

size_t gantry_dtype_size(gantry_dtype dtype)
{
    static const unsigned char sizes[] = {
#define GANTRY_X(name, text, bytes) bytes,
        GANTRY_DTYPE_MAP(GANTRY_X)
#undef GANTRY_X
    };
    return (size_t)dtype < COUNT(sizes) ? sizes[dtype] : 0;
}

const char *gantry_access_name(gantry_access access)
{
    static const char *const names[] = {
        [GANTRY_READ] = "read", [GANTRY_WRITE] = "write", [GANTRY_READWRITE] = "readwrite", [GANTRY_SUM] = "sum",
        [GANTRY_MIN] = "min",   [GANTRY_MAX] = "max",     [GANTRY_PROD] = "prod",
    };
    return (size_t)access < COUNT(names) ? names[access] : NULL;
}

const char *gantry_collective_name(gantry_collective kind)
{
    static const char *const names[] = {
        [GANTRY_ALL_REDUCE] = "all_reduce",
        [GANTRY_REDUCE] = "reduce",
        [GANTRY_BROADCAST] = "broadcast",
        [GANTRY_SCATTER] = "scatter",
        [GANTRY_GATHER] = "gather",
        [GANTRY_ALL_GATHER] = "all_gather",
        [GANTRY_REDUCE_SCATTER] = "reduce_scatter",
        [GANTRY_ALL_TO_ALL] = "all_to_all",
    };
    return (size_t)kind < COUNT(names) ? names[kind] : NULL;
}
