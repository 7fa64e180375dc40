/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg_cases.h"

#include "base/half.h"
#include "schedule/schedule.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- graphs as text ---- */

typedef struct list {
    char text[8192];
    size_t length;
} list;

typedef struct draft {
    list buffers, nodes;
} draft;

static void __attribute__((format(printf, 2, 3))) add(list *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (to->length)
        to->text[to->length++] = ',';
    to->length += (size_t)vsnprintf(to->text + to->length, sizeof to->text - to->length, format, args);
    va_end(args);
    ck_assert_uint_lt(to->length, sizeof to->text - 1);
}

/* `more`: ",\"split\":3" and the like. */
static void buffer(draft *d, const char *name, const char *dtype, int rows, int columns, const char *init,
                   const char *more)
{
    add(&d->buffers, "\"%s\":{\"dtype\":\"%s\",\"shape\":[%d,%d]%s%s%s}", name, dtype, rows, columns,
        *init ? ",\"init\":" : "", init, more);
}

static void input(draft *d, const char *name, const char *dtype, int rows, int columns, const char *more)
{
    char init[80];
    snprintf(init, sizeof init, "{\"random\":{\"seed\":%d,\"low\":-1,\"high\":1}}", (int)d->buffers.length);
    buffer(d, name, dtype, rows, columns, init, more);
}

static gantry_graph *graph_of(const draft *d)
{
    gantry_graph *g = NULL;
    char text[2 * sizeof d->buffers.text];
    int length =
        snprintf(text, sizeof text, "{\"gantry\":1,\"buffers\":{%s},\"nodes\":[%s]}", d->buffers.text, d->nodes.text);
    MUST(gantry_graph_parse(&g, text, (size_t)length, "case", NULL, NULL, MUST_ERR));
    return g;
}

/* ---- cases ---- */

typedef struct extent {
    int m, n, k;
} extent;
static const extent extents[] = { { 1, 1, 1 },   { 5, 3, 7 },    { 17, 33, 9 },    { 1, 40, 3 },
                                  { 40, 1, 70 }, { 64, 48, 32 }, { 129, 65, 257 }, { 16, 16, 16 } };
enum { EXTENTS = sizeof extents / sizeof *extents, TYPES = 4, GEMM_TYPES = TYPES + 2, OTHER_TYPES = 2 };
static const char *const dtypes[] = { "f64", "f32", "f16", "bf16", "f16", "bf16" };
/* Of products of these: the last two are not rounded to 16 bits. */
static const char *const product_dtypes[] = { "f64", "f32", "f16", "bf16", "f32", "f32" };

/* Both transpositions of both, and what becomes of the old c. */
static gantry_graph *products(int type, extent e)
{
    static const struct {
        const char *access, *factors;
    } ways[] = { { "write", "\"alpha\":1.5" },
                 { "readwrite", "\"alpha\":-1,\"beta\":1" },
                 { "readwrite", "\"alpha\":0.5,\"beta\":-2" },
                 { "sum", "\"alpha\":2" } };
    draft d = { 0 };
    const char *dtype = dtypes[type], *result = product_dtypes[type];
    input(&d, "a0", dtype, e.m, e.k, "");
    input(&d, "a1", dtype, e.k, e.m, "");
    input(&d, "b0", dtype, e.k, e.n, "");
    input(&d, "b1", dtype, e.n, e.k, "");
    for (int i = 0; i < 16; i++) {
        char name[16];
        int ta = i & 1, tb = i >> 1 & 1, way = i >> 2;
        snprintf(name, sizeof name, "c%d", i);
        if (way == 0)
            buffer(&d, name, result, e.m, e.n, "", ",\"output\":true");
        else
            input(&d, name, result, e.m, e.n, ",\"output\":true");
        add(&d.nodes,
            "{\"id\":\"p%d\",\"kernel\":\"gemm\",\"access\":{\"c\":\"%s\"},\"args\":{%s,\"ta\":%d,\"tb\":%d,\"a\":"
            "\"a%d\","
            "\"b\":\"b%d\",\"c\":\"c%d\"}}",
            i, ways[way].access, ways[way].factors, ta, tb, ta, tb, i);
    }
    return graph_of(&d);
}

/* n x n matrices, m x n and n x k ones beside them. What is above the diagonal must stay as it is. */
static gantry_graph *triangles(const char *dtype, extent e)
{
    static const char *const factors[] = { "", "\"alpha\":2,\"beta\":0,", "\"alpha\":0.5,\"beta\":-3," };
    draft d = { 0 };
    buffer(&d, "s", dtype, e.n, e.n, "{\"spd\":{\"seed\":4}}", ",\"output\":true");
    buffer(&d, "t", dtype, e.n, e.n, "{\"spd\":{\"seed\":5}}", "");
    input(&d, "b", dtype, e.m, e.n, ",\"output\":true");
    input(&d, "a", dtype, e.n, e.k, "");
    add(&d.nodes, "{\"id\":\"p\",\"kernel\":\"potrf\",\"args\":{\"a\":\"s\"}}");
    add(&d.nodes, "{\"id\":\"t\",\"kernel\":\"trsm\",\"args\":{\"a\":\"t\",\"b\":\"b\"}}");
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        input(&d, name, dtype, e.n, e.n, ",\"output\":true");
        add(&d.nodes, "{\"id\":\"s%d\",\"kernel\":\"syrk\",\"args\":{%s\"a\":\"a\",\"c\":\"c%d\"}}", i, factors[i], i);
    }
    return graph_of(&d);
}

/* Rows of larger buffers, some of them none, and sums that come from several nodes. */
static gantry_graph *parts(const char *dtype, int split)
{
    char more[40], both[60];
    draft d = { 0 };
    snprintf(more, sizeof more, ",\"split\":%d", split);
    snprintf(both, sizeof both, "%s,\"output\":true", more);
    input(&d, "a", dtype, 7, 5, more);
    input(&d, "b", dtype, 5, 6, "");
    input(&d, "e", dtype, 7, 4, more);
    input(&d, "c", dtype, 7, 6, both);
    input(&d, "sum", dtype, 5, 4, ",\"output\":true");
    add(&d.nodes,
        "{\"id\":\"p[i]\",\"for\":{\"i\":%d},\"kernel\":\"gemm\",\"args\":{\"a\":\"a[i]\",\"b\":\"b\",\"c\":\"c[i]\"}}",
        split);
    add(&d.nodes,
        "{\"id\":\"q[i]\",\"for\":{\"i\":%d},\"kernel\":\"gemm\",\"access\":{\"c\":\"sum\"},\"args\":{\"ta\":1,"
        "\"a\":\"a[i]\","
        "\"b\":\"e[i]\",\"c\":\"sum\"}}",
        split);
    if (strcmp(dtype, "f32") == 0 || strcmp(dtype, "f64") == 0) {
        buffer(&d, "t", dtype, 6, 6, "{\"spd\":{\"seed\":6}}", "");
        input(&d, "x", dtype, 7, 6, both);
        add(&d.nodes, "{\"id\":\"t[i]\",\"for\":{\"i\":%d},\"kernel\":\"trsm\",\"args\":{\"a\":\"t\",\"b\":\"x[i]\"}}",
            split);
    }
    return graph_of(&d);
}

/* Tiles of several sizes. */
static gantry_graph *tiles(int n, int tiles)
{
    char size[16], count[16];
    snprintf(size, sizeof size, "n=%d", n);
    snprintf(count, sizeof count, "nt=%d", tiles);
    return load_graph(&(graph_case){ "cholesky", { size, count }, 0 });
}

enum { BATCH = 12, BATCH_LAYOUTS = 3, BATCH_WAYS = 4 };

/* Each of BATCH products has rows of its own of c; a and b are in turn, shared, or in another order. */
gantry_graph *batch_case(int i, char *what, size_t size)
{
    static const char *const layouts[] = { "in equal steps", "with one b", "in another order" };
    static const struct {
        const char *args, *access;
    } ways[] = { { "\"alpha\":0.5", "write" },
                 { "\"ta\":1,\"alpha\":1,\"beta\":-2", "readwrite" },
                 { "\"tb\":1", "sum" },
                 { "\"ta\":1,\"tb\":1", "write" } };
    draft d = { 0 };
    int layout = i % BATCH_LAYOUTS, way = i / BATCH_LAYOUTS % BATCH_WAYS, n = way == 0 ? 24 : 16;
    if (i >= BATCH_LAYOUTS * BATCH_WAYS * GEMM_TYPES)
        return NULL;
    int type = i / (BATCH_LAYOUTS * BATCH_WAYS);
    const char *dtype = dtypes[type];
    char split[60];
    snprintf(split, sizeof split, ",\"split\":%d,\"class\":\"const\"", BATCH);
    input(&d, "a", dtype, BATCH * n, n, split);
    input(&d, "b", dtype, BATCH * n, n, split);
    snprintf(split, sizeof split, ",\"split\":%d,\"class\":\"state\",\"output\":true", BATCH);
    input(&d, "c", product_dtypes[type], BATCH * n, n, split);
    for (int k = 0; k < BATCH; k++)
        add(&d.nodes,
            "{\"id\":\"g%d\",\"kernel\":\"gemm\",\"access\":{\"c\":\"%s\"},\"args\":{%s,\"a\":\"a[%d]\",\"b\":\"b[%d]"
            "\",\"c\":\"c[%d]\"}}",
            k, ways[way].access, ways[way].args, layout == 2 ? k * 5 % BATCH : k,
            layout == 1   ? 3
            : layout == 2 ? k / 2
                          : k,
            k);
    snprintf(what, size, "%d products of %s to %s %d x %d, %s, %s c", BATCH, dtype, product_dtypes[type], n, n,
             layouts[layout], ways[way].access);
    return graph_of(&d);
}

gantry_machine *batching_machine(gantry_machine *m)
{
    static const char table[] = "%s{\"kernel\":\"gemm\",\"dtype\":\"%s\",\"kind\":\"%s\",\"by\":\"flops\","
                                "\"points\":[[1000,5],[1000000,6]],\"batched\":[[1000000,0.01]]}";
    gantry_machine *made = NULL;
    char *text = NULL, changed[65536];
    MUST(gantry_machine_json(m, &text, NULL, MUST_ERR));
    char *model = strstr(text, "\"model\"");
    ck_assert_ptr_nonnull(model);
    int at = snprintf(changed, sizeof changed, "%.*s\"kernels\": [", (int)(model - text), text);
    for (int i = 0; i < TYPES; i++)
        at += snprintf(changed + at, sizeof changed - (size_t)at, table, i ? "," : "", dtypes[i], m->device[0].kind);
    at += snprintf(changed + at, sizeof changed - (size_t)at, "], %s", model);
    MUST(gantry_machine_parse(&made, changed, (size_t)at, "machine with batches", MUST_ERR));
    gantry_free(text);
    gantry_machine_free(m);
    return made;
}

uint32_t count_batched(const gantry_schedule *s, uint32_t *launches)
{
    uint32_t count = 0;
    *launches = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        count += s->ops.at[i].batch || s->ops.at[i].joined;
        *launches += s->ops.at[i].kind == GY_OP_LAUNCH;
    }
    return count;
}

gantry_graph *linalg_case(int i, char *what, size_t size)
{
    static const int splits[] = { 1, 3, 9 };
    if (i < GEMM_TYPES * EXTENTS) {
        extent e = extents[i / GEMM_TYPES];
        snprintf(what, size, "gemm %s to %s, %d x %d with a sum of %d", dtypes[i % GEMM_TYPES],
                 product_dtypes[i % GEMM_TYPES], e.m, e.n, e.k);
        return products(i % GEMM_TYPES, e);
    }
    i -= GEMM_TYPES * EXTENTS;
    if (i < OTHER_TYPES * EXTENTS) {
        extent e = extents[i / OTHER_TYPES];
        snprintf(what, size, "potrf, trsm, syrk %s, %d x %d and %d", dtypes[i % OTHER_TYPES], e.m, e.n, e.k);
        return triangles(dtypes[i % OTHER_TYPES], e);
    }
    i -= OTHER_TYPES * EXTENTS;
    if (i < TYPES * 3) {
        snprintf(what, size, "%s in %d parts", dtypes[i % TYPES], splits[i / TYPES]);
        return parts(dtypes[i % TYPES], splits[i / TYPES]);
    }
    i -= TYPES * 3;
    snprintf(what, size, "cholesky %d", i);
    return i == 0 ? tiles(50, 4) : i == 1 ? tiles(96, 6) : NULL;
}

/* ---- results ---- */

void start_and_wait(gantry_run *run)
{
    uint64_t ticket = 0;
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
}

static double element(gantry_dtype dtype, const void *at, uint64_t i)
{
    switch (dtype) {
    case GANTRY_F16:
        return (double)gy_f16_to_float(((const uint16_t *)at)[i]);
    case GANTRY_BF16:
        return (double)gy_bf16_to_float(((const uint16_t *)at)[i]);
    case GANTRY_F32:
        return (double)((const float *)at)[i];
    default:
        return ((const double *)at)[i];
    }
}

/* Of the largest element; some units in the last place. */
static double tolerance_of(gantry_dtype dtype)
{
    return dtype == GANTRY_F64 ? 1e-12 : dtype == GANTRY_F32 ? 1e-5 : dtype == GANTRY_F16 ? 2e-3 : 1.6e-2;
}

static void expect_buffer(gantry_run *got, gantry_run *want, gantry_buffer b, gantry_dtype dtype, const char *what)
{
    const void *is = NULL, *should = NULL;
    uint64_t bytes = 0;
    double largest = 0;
    MUST(gantry_run_output(got, b, &is, &bytes, MUST_ERR));
    MUST(gantry_run_output(want, b, &should, &bytes, MUST_ERR));
    uint64_t count = bytes / gantry_dtype_size(dtype);
    for (uint64_t i = 0; i < count; i++)
        largest = isinf(element(dtype, should, i)) ? largest : fmax(largest, fabs(element(dtype, should, i)));
    for (uint64_t i = 0; i < count; i++) {
        double a = element(dtype, is, i), e = element(dtype, should, i);
        ck_assert_msg(a == e || fabs(a - e) <= tolerance_of(dtype) * largest,
                      "%s: buffer %u, element %llu is %g, not %g", what, b.id, (unsigned long long)i, a, e);
    }
}

void expect_near(gantry_run *got, gantry_run *want, const gantry_graph *g, const char *what)
{
    for (uint32_t b = 0; b < gantry_graph_buffer_count(g); b++) {
        gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
        MUST(gantry_graph_buffer_info(g, (gantry_buffer){ .id = b }, &info, MUST_ERR));
        if (info.output)
            expect_buffer(got, want, (gantry_buffer){ .id = b }, info.dtype, what);
    }
}

/* ---- not positive definite ---- */

const char one_root[] =
    "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f64\",\"shape\":[6,6],\"class\":\"input\",\"output\":true}},"
    "\"nodes\":[{\"id\":\"root\",\"kernel\":\"potrf\",\"args\":{\"a\":\"x\"}}]}";

void fill_root(double *a, int bad)
{
    memset(a, 0, ROOT_N * ROOT_N * sizeof *a);
    for (int i = 0; i < ROOT_N; i++)
        a[i * ROOT_N + i] = bad && i + 1 >= bad ? -2 : 2;
}

static gantry_status root_of(gantry_run *run, const double *a, gantry_error *err)
{
    uint64_t ticket = 0;
    *err = (gantry_error){ 0 };
    MUST(gantry_run_bind(run, (gantry_buffer){ 0 }, a, ROOT_N * ROOT_N * sizeof *a, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    return gantry_run_wait(run, ticket, err);
}

void expect_pivots(gantry_run *got, gantry_run *want)
{
    double a[ROOT_N * ROOT_N];
    gantry_error err = { 0 }, should = { 0 };
    for (int bad = 0; bad <= ROOT_N; bad++) {
        fill_root(a, bad);
        ck_assert_int_eq(root_of(want, a, &should), bad ? GANTRY_E_KERNEL : GANTRY_OK);
        ck_assert_int_eq(root_of(got, a, &err), bad ? GANTRY_E_KERNEL : GANTRY_OK);
        ck_assert_int_eq(err.native, bad);
        ck_assert_str_eq(err.text, should.text);
        fill_root(a, 0);
        MUST(root_of(got, a, MUST_ERR));
    }
}
