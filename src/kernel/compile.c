/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests come from programs and from graph files: everything the rest of the library relies on is checked here. */
#include "base/error.h"
#include "base/versioned.h"
#include "kernel/registry.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ALL_DTYPES   (GANTRY_DTYPE_BIT(GANTRY_DTYPE_COUNT) - 1)
#define ALL_ACCESSES (2 * GANTRY_ACCESS_BIT(GANTRY_PROD) - GANTRY_ACCESS_BIT(GANTRY_READ))
enum {
    ALL_FLAGS = GANTRY_KERNEL_VARIADIC | GANTRY_KERNEL_ORDER_VARIES | GANTRY_KERNEL_NO_GPU | GANTRY_KERNEL_NO_CPU |
                GANTRY_KERNEL_PURE | GANTRY_KERNEL_RESIDENT
};

/* Names are used in expressions: a letter or '_', then letters, digits and '_'. */
static bool is_name(const char *name)
{
    if (!name || !(isalpha((unsigned char)*name) || *name == '_'))
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

static bool has_letter(const gantry_kernel *k, char letter)
{
    for (int32_t i = 0; i < k->args; i++)
        if (!k->arg[i].scalar && k->arg[i].same == letter)
            return true;
    return false;
}

static gantry_status check_scalar(const gantry_kernel *k, const gantry_kernel_arg *a, gantry_error *err)
{
    if (a->access || a->accesses || a->dtypes || a->list) {
        return gy_fail(err, GANTRY_E_GRAPH, NULL,
                       "kernel \"%s\": argument \"%s\" is a scalar and has an access, dtypes or a list; leave them 0",
                       k->name, a->name);
    }
    if (a->same && !has_letter(k, a->same)) {
        return gy_fail(
            err, GANTRY_E_GRAPH, NULL,
            "kernel \"%s\": scalar \"%s\" is converted to the dtype of '%c', which no region of it has; give "
            "a region that letter, or leave it 0",
            k->name, a->name, a->same);
    }
    if (a->optional && !isfinite(a->fallback)) {
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "kernel \"%s\": the fallback of \"%s\" is not finite", k->name,
                       a->name);
    }
    return GANTRY_OK;
}

static gantry_status check_region(const gantry_kernel *k, const gantry_kernel_arg *a, gantry_error *err)
{
    if (!gantry_access_name(a->access)) {
        return gy_fail(err, GANTRY_E_GRAPH, NULL,
                       "kernel \"%s\": argument \"%s\" has access %d; 1 (read) to 7 (prod) are allowed", k->name,
                       a->name, (int)a->access);
    }
    if ((a->accesses & ~ALL_ACCESSES) || (a->accesses && !(a->accesses & GANTRY_ACCESS_BIT(a->access)))) {
        return gy_fail(
            err, GANTRY_E_GRAPH, NULL,
            "kernel \"%s\": the allowed accesses 0x%x of \"%s\" have bits of no access or lack the default, %s",
            k->name, (unsigned)a->accesses, a->name, gantry_access_name(a->access));
    }
    if (a->dtypes & ~ALL_DTYPES) {
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "kernel \"%s\": the dtypes 0x%x of \"%s\" have bits of no dtype",
                       k->name, (unsigned)a->dtypes, a->name);
    }
    return GANTRY_OK;
}

static gantry_status check_args(const gantry_kernel *k, gantry_error *err)
{
    if (k->args < 0 || (k->args > 0 && !k->arg)) {
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "kernel \"%s\": %d arguments without a table of arguments", k->name,
                       (int)k->args);
    }
    for (int i = 0; i < k->args; i++) {
        const gantry_kernel_arg *a = &k->arg[i];
        if (!is_name(a->name)) {
            return gy_fail(err, GANTRY_E_GRAPH, NULL,
                           "kernel \"%s\": argument %d is named \"%s\"; use letters, digits and '_'", k->name, i,
                           a->name ? a->name : "");
        }
        if (gy_kernel_find_arg(k, a->name) != i)
            return gy_fail(err, GANTRY_E_GRAPH, NULL, "kernel \"%s\" has two arguments named \"%s\"", k->name, a->name);
        gantry_status status = a->scalar ? check_scalar(k, a, err) : check_region(k, a, err);
        if (status)
            return status;
    }
    return GANTRY_OK;
}

static gantry_status copy_args(gantry_kernel *k, gy_arena *arena, gantry_error *err)
{
    gantry_kernel_arg *args = gy_arena_calloc(arena, (size_t)k->args, sizeof *args);
    if (!args)
        return gy_fail_nomem(err);
    gantry_status status = gy_struct_read_array(args, sizeof *args, k->arg, k->arg_size, (size_t)k->args,
                                                "arg_size of a gantry_kernel", "gantry_kernel_arg", err);
    k->arg = args;
    k->arg_size = sizeof *args;
    return status;
}

gantry_status gy_kernel_read(const gantry_kernel **manifest, gy_arena *arena, const gantry_kernel *given,
                             gantry_error *err)
{
    gantry_kernel read = { 0 };
    if (!given)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no kernel is given: the gantry_kernel is NULL");
    gantry_status status = gy_struct_read(&read, sizeof read, given, "gantry_kernel", err);
    bool has_args = read.args > 0 && read.arg;
    if (!status && given->struct_size == sizeof read && (!has_args || read.arg_size == sizeof *read.arg)) {
        *manifest = given;
        return GANTRY_OK;
    }
    if (!status && has_args)
        status = copy_args(&read, arena, err);
    gantry_kernel *copy = status ? NULL : gy_arena_calloc(arena, 1, sizeof *copy);
    if (!copy)
        return status ? status : gy_fail_nomem(err);
    *copy = read;
    *manifest = copy;
    return GANTRY_OK;
}

static gantry_status check_head(const gantry_kernel *k, gantry_error *err)
{
    if (!is_name(k->name)) {
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "a kernel is named \"%s\"; use letters, digits and '_'",
                       k->name ? k->name : "");
    }
    if (k->flags & ~(uint32_t)ALL_FLAGS)
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "kernel \"%s\" has unknown flags 0x%x", k->name, (unsigned)k->flags);
    if (k->open && !k->close)
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "kernel \"%s\" has open() without close()", k->name);
    return check_args(k, err);
}

typedef struct name_check {
    const gantry_kernel *manifest;
    const char *unknown;
} name_check;

static bool check_name(void *context, const char *name)
{
    name_check *check = context;
    check->unknown = gy_kernel_knows(check->manifest, name) ? NULL : name;
    return !check->unknown;
}

gantry_status gy_kernel_formula(const gy_expr **out, gy_arena *arena, const gantry_kernel *k, const char *what,
                                const char *text, gantry_error *err)
{
    *out = NULL;
    if (!text)
        return GANTRY_OK;
    gantry_error inner;
    gantry_status status = gy_expr_parse(out, arena, text, strlen(text), GANTRY_E_GRAPH, NULL, &inner);
    if (status) {
        return status == GANTRY_E_NOMEM
                   ? gy_fail_nomem(err)
                   : gy_fail(err, status, NULL, "kernel \"%s\": %s \"%s\": %s", k->name, what, text, inner.text);
    }
    name_check check = { k, NULL };
    if (!gy_expr_names(*out, check_name, &check)) {
        return gy_fail(
            err, GANTRY_E_GRAPH, NULL,
            "kernel \"%s\": %s \"%s\" uses \"%s\"; scalars of the kernel and ARG.rows, .size, .bytes, .count, "
            ".shape0 of its regions are known",
            k->name, what, text, check.unknown);
    }
    return GANTRY_OK;
}

gantry_status gy_kernel_compile(gy_kernel *out, gy_arena *arena, const gantry_kernel *manifest, gantry_error *err)
{
    gy_kernel made = { .manifest = manifest };
    gantry_status status = check_head(manifest, err);
    if (!status)
        status = gy_kernel_formula(&made.flops, arena, manifest, "flops", manifest->flops, err);
    if (!status)
        status = gy_kernel_formula(&made.bytes, arena, manifest, "bytes", manifest->bytes, err);
    if (!status)
        status = gy_kernel_formula(&made.scratch, arena, manifest, "scratch", manifest->scratch, err);
    if (!status && manifest == gantry_kernel_find(manifest->name)) {
        const gy_kernel_form *form = gy_kernel_form_of(manifest->name);
        status = gy_kernel_formula(&made.waits, arena, manifest, "waits", gy_kernel_chain(manifest->name), err);
        if (!status)
            status = gy_kernel_formula(&made.form, arena, manifest, "form", form ? form->when : NULL, err);
    }
    if (!status)
        *out = made;
    return status;
}
