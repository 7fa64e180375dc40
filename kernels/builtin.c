/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the library's kernels, and what their checks share. */
#include "kernel/registry.h"
#include "kernels/manifest.h"
#include <stdarg.h>
#include <stdio.h>

static const gantry_kernel *const table[] = {
#define KERNEL(name) &gy_kernel_##name,
#define DEVICE(name)
#include "kernels/kernels.def"
};
enum { KERNELS = sizeof table / sizeof *table };

const gantry_kernel *const *gy_builtin_kernels(size_t *count)
{
    *count = KERNELS;
    return table;
}

gantry_status gy_check_fail(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(text, size, format, args);
    va_end(args);
    return GANTRY_E_GRAPH;
}

gantry_status gy_check_same_size(const gantry_launch *l, int a, int b, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[a], *y = &l->arg[b];
    if (gy_arg_size(x) == gy_arg_size(y))
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"%s\" has %lld elements and \"%s\" has %lld; they must agree", x->name,
                         (long long)gy_arg_size(x), y->name, (long long)gy_arg_size(y));
}

gantry_status gy_check_regions_alike(const gantry_launch *l, char *text, size_t size)
{
    int first = 0;
    gantry_status status = GANTRY_OK;
    while (first < l->args && !l->arg[first].access)
        first++;
    for (int i = first + 1; i < l->args && !status; i++)
        status = l->arg[i].access ? gy_check_same_size(l, first, i, text, size) : GANTRY_OK;
    return status;
}

gantry_status gy_check_one_element(const gantry_launch *l, int a, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[a];
    if (gy_arg_size(x) == 1)
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"%s\" has %lld elements; it must have one", x->name, (long long)gy_arg_size(x));
}
