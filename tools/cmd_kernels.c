/* SPDX-License-Identifier: Apache-2.0 */
/* gantry kernels: the manifests that come with the library. */
#include "command.h"
#include <stdio.h>
#include <string.h>

static json_t *names_of(uint32_t mask, int count, const char *(*name)(int))
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        if (mask & (1u << i) && name(i))
            json_array_append_new(list, json_string(name(i)));
    return list;
}

static const char *dtype_at(int i)
{
    return gantry_dtype_name((gantry_dtype)i);
}
static const char *access_at(int i)
{
    return gantry_access_name((gantry_access)i);
}

static uint32_t accesses_of(const gantry_kernel_arg *a)
{
    return a->accesses ? a->accesses : GANTRY_ACCESS_BIT(a->access);
}
static uint32_t dtypes_of(const gantry_kernel_arg *a)
{
    uint32_t f8 = GANTRY_DTYPE_BIT(GANTRY_F8E4M3) | GANTRY_DTYPE_BIT(GANTRY_F8E5M2);
    return a->dtypes ? a->dtypes : (GANTRY_DTYPE_BIT(GANTRY_DTYPE_COUNT) - 1) & ~f8;
}

static json_t *arg_json(const gantry_kernel_arg *a)
{
    json_t *arg = json_pack("{s:s}", "name", a->name);
    if (a->scalar && a->optional)
        json_object_set_new(arg, "default", json_real(a->fallback));
    if (!a->scalar) {
        json_object_set_new(arg, "access", names_of(accesses_of(a), 8, access_at));
        json_object_set_new(arg, "dtype", names_of(dtypes_of(a), GANTRY_DTYPE_COUNT, dtype_at));
    }
    json_object_set_new(arg, "kind",
                        json_string(a->scalar ? "scalar"
                                    : a->list ? "region or list of tiles"
                                              : "region"));
    if (!a->scalar && a->optional)
        json_object_set_new(arg, "optional", json_true());
    json_object_set_new(arg, "summary", a->summary ? json_string(a->summary) : json_null());
    return arg;
}

static json_t *kernel_json(const gantry_kernel *k)
{
    json_t *args = json_array();
    for (int32_t i = 0; i < k->args; i++)
        json_array_append_new(args, arg_json(&k->arg[i]));
    return json_pack("{s:s, s:s, s:o, s:s?, s:s?, s:s?, s:s?, s:b}", "name", k->name, "summary", k->summary, "args",
                     args, "formula", k->formula, "flops", k->flops, "bytes", k->bytes, "scratch", k->scratch,
                     "variadic", (k->flags & GANTRY_KERNEL_VARIADIC) != 0);
}

static void print_arg(const gantry_kernel_arg *a)
{
    printf("    %-8s ", a->name);
    if (a->scalar && a->optional)
        printf("number, default %g", a->fallback);
    else if (a->scalar)
        printf("number");
    for (int i = 0, first = 1; !a->scalar && i < 8; i++)
        if (accesses_of(a) & (1u << i) && access_at(i)) {
            printf("%s%s", first ? "" : "|", access_at(i));
            first = 0;
        }
    if (!a->scalar && !a->dtypes)
        printf(" of any dtype but f8");
    for (int i = 0; !a->scalar && a->dtypes && i < GANTRY_DTYPE_COUNT; i++)
        if (a->dtypes & (1u << i))
            printf(" %s", dtype_at(i));
    printf("%s%s%s\n", !a->scalar && a->optional ? ", optional" : "", a->summary ? ": " : "",
           a->summary ? a->summary : "");
}

/* "dtypes: row_ptr and col are one; val, x and y are one", of regions with a letter in common. */
static void print_same(const gantry_kernel *k)
{
    const char *begin = "    dtypes: ";
    for (int32_t i = 0; i < k->args; i++) {
        int32_t like[64], count = 0;
        bool is_first = !k->arg[i].scalar && k->arg[i].same;
        for (int32_t j = 0; is_first && j < k->args && count < 64; j++)
            if (!k->arg[j].scalar && k->arg[j].same == k->arg[i].same)
                like[count++] = j;
        if (count < 2 || like[0] != i)
            continue;
        for (int32_t j = 0; j < count; j++)
            printf("%s%s", j == 0 ? begin : j == count - 1 ? " and " : ", ", k->arg[like[j]].name);
        printf(" have the same");
        begin = "; ";
    }
    if (*begin == ';')
        printf("\n");
}

static void print_kernel(const gantry_kernel *k)
{
    printf("%s: %s\n", k->name, k->summary);
    for (int32_t i = 0; i < k->args; i++)
        print_arg(&k->arg[i]);
    if (k->flags & GANTRY_KERNEL_VARIADIC)
        printf("    and any regions given by reads and writes\n");
    print_same(k);
    if (k->formula)
        printf("    in formulas: %s\n", k->formula);
    printf("    cost: %s flops, %s bytes\n\n", k->flops ? k->flops : "0",
           k->bytes ? k->bytes : "those of the regions as");
}

static int unknown(const char *name)
{
    const char *names[256];
    char near[64];
    size_t count = gantry_kernel_count() < 256 ? gantry_kernel_count() : 256;
    for (size_t i = 0; i < count; i++)
        names[i] = gantry_kernel_at(i)->name;
    complain("no kernel \"%s\"%s; `gantry kernels` lists them\n", name,
             near_miss(near, sizeof near, name, names, count));
    return EXIT_USAGE;
}

static int run(const options *o)
{
    const char *only = o->positional.count ? o->positional.at[0] : NULL;
    if (only && !gantry_kernel_find(only))
        return unknown(only);
    json_t *list = json_array();
    for (size_t i = 0; i < gantry_kernel_count(); i++) {
        const gantry_kernel *k = gantry_kernel_at(i);
        if (only && strcmp(only, k->name) != 0)
            continue;
        if (o->json)
            json_array_append_new(list, kernel_json(k));
        else
            print_kernel(k);
    }
    if (o->json)
        return print_json(json_pack("{s:o}", "kernels", list));
    json_decref(list);
    return EXIT_FINE;
}

const command command_kernels = { "kernels", "[NAME]", "lists the kernels: arguments, accesses, dtypes and cost", 0,
                                  1,         "json",   "  gantry kernels\n  gantry kernels gemm --json\n",        run };
