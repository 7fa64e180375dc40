/* SPDX-License-Identifier: Apache-2.0 */
/* The values of names in a manifest's expressions, and the evaluation of expressions for a launch. */
#include "base/error.h"
#include "kernel/registry.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Numbers that an argument has as they are. */
static const struct field {
    const char *name;
    size_t offset;
} FIELDS[] = { { "rows", offsetof(gantry_arg, rows) },
               { "count", offsetof(gantry_arg, count) },
               { "first_row", offsetof(gantry_arg, first_row) },
               { "own_first", offsetof(gantry_arg, own_first) },
               { "own_rows", offsetof(gantry_arg, own_rows) } };

static const struct field *find_field(const char *name)
{
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (strcmp(name, FIELDS[i].name) == 0)
            return &FIELDS[i];
    return NULL;
}

/* "shape2", or "last0", which is counted from the end. */
static bool is_extent(const char *field, const char *word, long *axis)
{
    size_t length = strlen(word);
    const char *digits = field + length;
    if (strncmp(field, word, length) != 0 || *digits < '0' || *digits > '9' || (*digits == '0' && digits[1]))
        return false;
    char *end;
    *axis = strtol(digits, &end, 10);
    return *end == '\0' && end - digits < 5;
}

static bool is_field(const char *field)
{
    long axis;
    return find_field(field) || strcmp(field, "size") == 0 || strcmp(field, "bytes") == 0 ||
           is_extent(field, "shape", &axis) || is_extent(field, "last", &axis);
}

static bool same_name(const char *name, const char *whole, size_t length)
{
    return strncmp(name, whole, length) == 0 && name[length] == '\0';
}

bool gy_kernel_knows(const gantry_kernel *manifest, const char *name)
{
    const char *dot = strchr(name, '.');
    size_t length = dot ? (size_t)(dot - name) : strlen(name);
    for (int i = 0; i < manifest->args; i++)
        if (same_name(manifest->arg[i].name, name, length))
            return manifest->arg[i].scalar ? !dot : dot && is_field(dot + 1);
    return false;
}

int64_t gy_arg_bytes(const gantry_arg *arg)
{
    if (!arg->items)
        return arg->rows * arg->row_bytes;
    int64_t sum = 0;
    for (int64_t i = 0; i < arg->count; i++)
        sum += arg->items[i].rows * arg->items[i].row_bytes;
    return sum;
}

static bool region_field(const gantry_arg *a, const char *name, int64_t *integer)
{
    long axis;
    const struct field *field = find_field(name);
    if (field)
        memcpy(integer, (const char *)a + field->offset, sizeof *integer);
    else if (strcmp(name, "bytes") == 0)
        *integer = gy_arg_bytes(a);
    else if (strcmp(name, "size") == 0)
        *integer = gy_arg_bytes(a) / (int64_t)gantry_dtype_size(a->dtype);
    else if (is_extent(name, "shape", &axis) && axis < a->rank)
        *integer = a->shape[axis];
    else if (is_extent(name, "last", &axis) && axis < a->rank)
        *integer = a->shape[a->rank - 1 - axis];
    else
        return false;
    return true;
}

bool gy_launch_lookup(void *context, const char *name, int64_t *integer, double *real, bool *is_real)
{
    const gantry_launch *launch = context;
    const char *dot = strchr(name, '.');
    size_t length = dot ? (size_t)(dot - name) : strlen(name);
    for (int i = 0; i < launch->args; i++) {
        const gantry_arg *a = &launch->arg[i];
        if (!same_name(a->name, name, length))
            continue;
        if (a->access == 0) { /* a number, or a region that the node does not give: all of it is 0 */
            *integer = dot ? 0 : a->integer;
            *real = dot ? 0 : a->number;
            *is_real = (double)*integer != *real;
            return true;
        }
        bool known = dot && region_field(a, dot + 1, integer);
        *real = known ? (double)*integer : 0;
        *is_real = false;
        return known;
    }
    return false;
}

/* `manifest` names the expression in messages. A NULL expression leaves *out alone. */
static gantry_status evaluate(double *out, const gy_kernel *kernel, const gy_expr *e, const char *what,
                              const gantry_launch *launch, gantry_error *err)
{
    if (!e)
        return GANTRY_OK;
    gantry_error inner;
    /* The lookup only reads; the type of its context is what all lookups share. */
    void *context = (void *)(uintptr_t)launch;
    double value;
    gantry_status status = gy_expr_real(e, gy_launch_lookup, context, &value, GANTRY_E_GRAPH, NULL, &inner);
    if (status)
        return gy_fail(err, status, NULL, "%s of kernel \"%s\": %s", what, kernel->manifest->name, inner.text);
    if (!(value >= 0) || isinf(value)) {
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "%s of kernel \"%s\" is %g; it must be finite and at least 0", what,
                       kernel->manifest->name, value);
    }
    *out = value;
    return GANTRY_OK;
}

static gantry_status evaluate_scratch(int64_t *out, const gy_kernel *kernel, const gantry_launch *launch,
                                      gantry_error *err)
{
    if (!kernel->scratch)
        return GANTRY_OK;
    gantry_error inner;
    int64_t value;
    gantry_status status = gy_expr_integer(kernel->scratch, gy_launch_lookup, (void *)(uintptr_t)launch, &value,
                                           GANTRY_E_GRAPH, NULL, &inner);
    if (status)
        return gy_fail(err, status, NULL, "scratch of kernel \"%s\": %s", kernel->manifest->name, inner.text);
    if (value < 0) {
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "scratch of kernel \"%s\" is %lld bytes; it must be at least 0",
                       kernel->manifest->name, (long long)value);
    }
    *out = value;
    return GANTRY_OK;
}

/* How often memory carries the bytes of a region: once to read them, once to write them. */
static int passes_of(const gantry_arg *a)
{
    return a->access == GANTRY_READWRITE ? 2 : a->access ? 1 : 0;
}

gantry_status gy_kernel_cost(const gy_kernel *kernel, const gantry_launch *launch, double *flops, double *bytes,
                             int64_t *scratch, gantry_error *err)
{
    double f = 0, b = 0;
    int64_t s = 0;
    for (int i = 0; i < launch->args; i++)
        b += passes_of(&launch->arg[i]) * (double)gy_arg_bytes(&launch->arg[i]);
    gantry_status status = evaluate(&f, kernel, kernel->flops, "flops", launch, err);
    if (!status)
        status = evaluate(&b, kernel, kernel->bytes, "bytes", launch, err);
    if (!status)
        status = evaluate_scratch(&s, kernel, launch, err);
    if (!status) {
        *flops = f;
        *bytes = b;
        *scratch = s;
    }
    return status;
}

static int64_t extent_of(const gy_expr *e, const gantry_launch *launch)
{
    int64_t extent;
    if (gy_expr_integer(e, gy_launch_lookup, (void *)(uintptr_t)launch, &extent, GANTRY_E_GRAPH, NULL, NULL))
        return -1;
    return extent < 0 ? 0 : extent < UINT32_MAX ? extent : UINT32_MAX;
}

uint32_t gy_kernel_blocks(const gy_kernel *kernel, const gantry_launch *launch)
{
    uint64_t blocks = 1;
    if (!kernel->code || !kernel->code->grid[0])
        return 0;
    for (int i = 0; i < 3 && kernel->code->grid[i]; i++) {
        int64_t extent = extent_of(kernel->code->grid[i], launch);
        if (extent < 0)
            return 0;
        blocks = blocks * (uint64_t)extent < UINT32_MAX ? blocks * (uint64_t)extent : UINT32_MAX;
    }
    return (uint32_t)blocks;
}

uint32_t gy_kernel_waits(const gy_kernel *kernel, const gantry_launch *launch)
{
    const gy_expr *e = kernel->code ? kernel->code->waits : kernel->waits;
    int64_t waits = e ? extent_of(e, launch) : 0;
    return waits < 0 ? 0 : (uint32_t)waits;
}

const char *gy_kernel_form_name(const gy_kernel *kernel, const gantry_launch *launch)
{
    bool has = kernel->form && extent_of(kernel->form, launch) > 0;
    return has ? gy_kernel_form_of(kernel->manifest->name)->name : NULL;
}

double gy_kernel_overhead(const gy_kernel *kernel, const gantry_launch *launch)
{
    double flops = 0;
    const gy_expr *e = kernel->code ? kernel->code->overhead : NULL;
    return evaluate(&flops, kernel, e, "flops", launch, NULL) ? 0 : flops;
}
