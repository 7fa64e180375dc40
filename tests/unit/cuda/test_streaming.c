/* SPDX-License-Identifier: Apache-2.0 */
/* Launchers and kernels of what streams through memory, without a graph: every element type, every alignment of every
 * region, sizes around those of packs, tiles and grids. The source of the kernels runs on the CPU
 * (tests/support/cuda_emulator); what is around the regions must stay, too. */
#include "backends/cuda/kernels/image.h"
#include "control.h"
#include "kernel/chunks.h"
#include "run/reduce.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The fake driver looks at the first bytes only. */
#define KERNEL(name) const unsigned char gy_fatbin_##name[] = { 0x50, 0xED, 0x55, 0xBA };
#define LIBRARY(name)
#define DEVICE(name) KERNEL(name)
#include "kernels/kernels.def"

enum { MOST_ARGS = 32, MARGIN = 64 };

static gy_driver driver;
static CUcontext context;
static CUstream stream;
static int processors = 132;

/* ---- the device ---- */

static CUresult attribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    ck_assert(which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ||
              which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ||
              which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    *value = which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT       ? processors
             : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
                                                                     : 0;
    return CUDA_SUCCESS;
}

static CUresult one_block(int *blocks, CUfunction function, int threads, size_t shared)
{
    (void)function, (void)threads, (void)shared;
    *blocks = 1;
    return CUDA_SUCCESS;
}

static void open_device(void)
{
    int devices;
    MUST(gy_driver_start(&driver, &devices, MUST_ERR));
    driver.cuDeviceGetAttribute = attribute;
    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor = one_block;
    ck_assert_int_eq(driver.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ck_assert_int_eq(driver.cuCtxSetCurrent(context), CUDA_SUCCESS);
    ck_assert_int_eq(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
}

static void close_device(void)
{
    driver.cuStreamDestroy(stream);
    driver.cuCtxSetCurrent(NULL);
    driver.cuDevicePrimaryCtxRelease(0);
    gy_driver_close(&driver);
}

/* ---- numbers ---- */

static uint64_t state;

static uint64_t draw(void)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static bool is_float(gantry_dtype d)
{
    return d == GANTRY_F16 || d == GANTRY_BF16 || d == GANTRY_F32 || d == GANTRY_F64;
}

static bool tame;

/* Any bits for integers. Floats are moderate, and unless `tame` sometimes anything: infinite, none, subnormal, zero. */
static void draw_element(char *at, gantry_dtype d)
{
    uint64_t bits = draw();
    size_t size = gantry_dtype_size(d);
    double value = (double)(int64_t)draw() / 0x1p60;
    float narrow = (float)value;
    uint32_t word;
    memcpy(&word, &narrow, sizeof word);
    if (is_float(d) && (tame || draw() % 16)) {
        memcpy(&bits, &value, sizeof bits);
        bits = d == GANTRY_F64 ? bits : d == GANTRY_F32 ? word : word >> 16;
        bits = d == GANTRY_F16 ? (draw() & 0x87ff) | 0x3800 : bits;
    }
    memcpy(at, &bits, size);
}

static bool is_none(const char *at, gantry_dtype d)
{
    uint16_t half;
    float single;
    double twice;
    memcpy(&half, at, sizeof half);
    memcpy(&single, at, d == GANTRY_F32 ? sizeof single : 2);
    memcpy(&twice, at, d == GANTRY_F64 ? sizeof twice : 2);
    return d == GANTRY_F16    ? (half & 0x7fff) > 0x7c00
           : d == GANTRY_BF16 ? (half & 0x7fff) > 0x7f80
           : d == GANTRY_F32  ? isnan(single)
                              : d == GANTRY_F64 && isnan(twice);
}

/* ---- a launch ---- */

/* A region in both memories, with a margin on both sides. */
typedef struct region {
    gantry_dtype dtype;
    char *host, *pinned;
    CUdeviceptr device;
    size_t bytes, offset; /* of all; where the region begins */
} region;

typedef struct launch {
    const gantry_kernel *manifest;
    const gy_cuda_kernel *kernel;
    region at[MOST_ARGS];
    gantry_arg arg[MOST_ARGS];
    int64_t shape[MOST_ARGS][2];
    void *handle;
    CUdeviceptr scratch;
    uint64_t scratch_bytes;
    int in_place; /* this argument is the first one; 0: none is */
} launch;

static void add_region(launch *l, int i, gantry_dtype d, int64_t rows, int64_t width, int beyond)
{
    region *r = &l->at[i];
    size_t size = gantry_dtype_size(d), bytes = (size_t)(rows * width) * size;
    r->dtype = d;
    r->offset = MARGIN + (size_t)beyond * size;
    r->bytes = (r->offset + bytes + 2 * MARGIN) / 16 * 16;
    r->host = malloc(r->bytes);
    ck_assert_int_eq(driver.cuMemHostAlloc((void **)&r->pinned, r->bytes, 0), CUDA_SUCCESS);
    ck_assert_int_eq(driver.cuMemAlloc(&r->device, r->bytes), CUDA_SUCCESS);
    for (size_t k = 0; k < r->bytes; k += size)
        draw_element(r->host + k, d);
    memcpy(r->pinned, r->host, r->bytes);
    ck_assert_int_eq(driver.cuMemcpyHtoDAsync(r->device, r->pinned, r->bytes, stream), CUDA_SUCCESS);
    l->shape[i][0] = rows;
    l->shape[i][1] = width;
    l->arg[i] = (gantry_arg){ .name = l->manifest->arg[i].name,
                              .dtype = d,
                              .access = l->manifest->arg[i].access,
                              .rank = 2,
                              .shape = l->shape[i],
                              .rows = rows,
                              .own_rows = rows,
                              .row_bytes = width * (int64_t)size,
                              .tile = { -1, -1 },
                              .count = 1 };
}

static gantry_launch view(launch *l, bool device)
{
    for (int32_t i = 0; i < l->manifest->args; i++) {
        const region *r = &l->at[i];
        l->arg[i].data = !r->host ? NULL : device ? (char *)(uintptr_t)r->device + r->offset : r->host + r->offset;
    }
    l->arg[l->in_place].data = l->arg[0].data;
    return (gantry_launch){ .struct_size = sizeof(gantry_launch),
                            .device_ordinal = device ? 0 : -1,
                            .stream = device ? stream : NULL,
                            .args = l->manifest->args,
                            .arg = l->arg,
                            .scratch = device ? (void *)(uintptr_t)l->scratch : NULL,
                            .scratch_bytes = l->scratch_bytes,
                            .handle = device ? l->handle : NULL };
}

static void check_region(const launch *l, int i)
{
    const region *r = &l->at[i];
    size_t size = gantry_dtype_size(r->dtype);
    ck_assert_int_eq(driver.cuMemcpyDtoHAsync(r->pinned, r->device, r->bytes, stream), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamSynchronize(stream), CUDA_SUCCESS);
    for (size_t k = 0; k < r->bytes; k += size) {
        bool same = memcmp(r->host + k, r->pinned + k, size) == 0;
        if (!same && !(is_none(r->host + k, r->dtype) && is_none(r->pinned + k, r->dtype))) {
            ck_abort_msg("%s of %s, %s: byte %zu of a region of %zu that begins at %zu", l->manifest->arg[i].name,
                         l->manifest->name, gantry_dtype_name(r->dtype), k, r->bytes, r->offset);
        }
    }
}

static void close_launch(launch *l)
{
    l->kernel->close(l->handle);
    for (int32_t i = 0; i < l->manifest->args; i++) {
        if (l->at[i].host) {
            driver.cuMemFree(l->at[i].device);
            driver.cuMemFreeHost(l->at[i].pinned);
            free(l->at[i].host);
        }
    }
}

static void run_both(launch *l)
{
    gantry_launch device = view(l, true);
    MUST(l->kernel->open(&l->handle, l->kernel, &driver, MUST_ERR));
    device.handle = l->handle;
    MUST(l->kernel->launch(&device));
    gantry_launch host = view(l, false);
    MUST(l->manifest->host(&host));
    for (int32_t i = 0; i < l->manifest->args; i++)
        if (l->at[i].host)
            check_region(l, i);
    close_launch(l);
}
static launch new_launch(const gy_cuda_kernel *kernel)
{
    launch l = { .manifest = gantry_kernel_find(kernel->name), .kernel = kernel };
    for (int32_t i = 0; i < l.manifest->args; i++) {
        l.arg[i] = (gantry_arg){ .name = l.manifest->arg[i].name,
                                 .number = i ? -2 : 3,
                                 .integer = i ? -2 : 9007199254740995 }; /* integers must take the second */
    }
    return l;
}

/* ---- element by element ---- */

#define DECLARE(name) extern const gy_cuda_kernel gy_cuda_kernel_##name;
DECLARE(add)
DECLARE(axpby)
DECLARE(copy)
DECLARE(mul)
DECLARE(relu)
DECLARE(relu_grad)
DECLARE(saxpy)
DECLARE(scale)
DECLARE(sgd_update)
DECLARE(bias_add)

static const gy_cuda_kernel *const each[] = {
    &gy_cuda_kernel_add,   &gy_cuda_kernel_axpby, &gy_cuda_kernel_copy,
    &gy_cuda_kernel_mul,   &gy_cuda_kernel_relu,  &gy_cuda_kernel_relu_grad,
    &gy_cuda_kernel_saxpy, &gy_cuda_kernel_scale, &gy_cuda_kernel_sgd_update
};
enum { EACH = sizeof each / sizeof *each };

/* `beyond`: elements by which each region is beyond a multiple of 16 bytes. */
static void try_each(const gy_cuda_kernel *kernel, gantry_dtype d, int64_t n, const int *beyond)
{
    launch l = new_launch(kernel);
    for (int32_t i = 0, k = 0; i < l.manifest->args; i++)
        if (l.manifest->arg[i].access)
            add_region(&l, i, d, n, 1, beyond[k++]);
    run_both(&l);
}

static bool takes(const gy_cuda_kernel *kernel, gantry_dtype d)
{
    const gantry_kernel *manifest = gantry_kernel_find(kernel->name);
    uint32_t dtypes = manifest->arg[manifest->args - 1].dtypes;
    return !dtypes || dtypes >> d & 1;
}

START_TEST(elements)
{
    static const int64_t sizes[] = { 0, 1, 3, 4, 17, 255, 1000, 5003 };
    const gy_cuda_kernel *kernel = each[_i];
    open_device();
    for (int d = 0; d <= GANTRY_U64; d++) {
        int per = 16 / (int)gantry_dtype_size((gantry_dtype)d);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes && takes(kernel, (gantry_dtype)d); s++) {
            int shift = (int)(draw() % (uint64_t)per), other = (int)(draw() % (uint64_t)per);
            const int beyond[][3] = { { 0, 0, 0 }, { shift, shift, shift }, { shift, other, 0 } };
            try_each(kernel, (gantry_dtype)d, sizes[s], beyond[(s + (size_t)d) % 3]);
        }
    }
    close_device();
}
END_TEST

/* More than the grid takes at once, in tiles and in what is left of them; also where nothing is aligned. */
START_TEST(many_elements)
{
    open_device();
    processors = 1;
    for (int k = 0; k < EACH; k++) {
        try_each(each[k], GANTRY_F32, 70003, (int[]){ 1, 1, 1 });
        try_each(each[k], GANTRY_F16, 50001, (int[]){ 0, 1, 2 });
    }
    close_device();
}
END_TEST

START_TEST(rows)
{
    static const int64_t widths[] = { 1, 5, 64, 1001, 2048 };
    open_device();
    processors = _i ? 1 : 132;
    for (int d = GANTRY_F16; d <= GANTRY_F64; d++) {
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            for (int64_t n = 0; n < 100; n = n ? 5 * n + 2 : 1) {
                for (int beyond = 0; beyond < 2; beyond++) {
                    launch l = new_launch(&gy_cuda_kernel_bias_add);
                    add_region(&l, 0, (gantry_dtype)d, n, widths[w], beyond);
                    add_region(&l, 1, (gantry_dtype)d, widths[w], 1, beyond * (int)(n % 2));
                    add_region(&l, 2, (gantry_dtype)d, n, widths[w], 0);
                    run_both(&l);
                }
            }
        }
    }
    close_device();
}
END_TEST

/* ---- one number of all ---- */

DECLARE(reduce_sum)
DECLARE(reduce_max)
DECLARE(dot)

static void try_reduce(const gy_cuda_kernel *kernel, gantry_dtype from, gantry_dtype to, int64_t n, int beyond)
{
    launch l = new_launch(kernel);
    int32_t regions = l.manifest->args;
    for (int32_t i = 0; i < regions - 1; i++)
        add_region(&l, i, from, n, 1, i ? 0 : beyond);
    add_region(&l, regions - 1, to, 1, 1, beyond);
    l.scratch_bytes = 8 * 2048;
    ck_assert_int_eq(driver.cuMemAlloc(&l.scratch, l.scratch_bytes), CUDA_SUCCESS);
    run_both(&l);
    driver.cuMemFree(l.scratch);
}

/* Rows, chunks, and what is left of them; where something is added to an accumulator of a wider type, too. */
START_TEST(reductions)
{
    static const gy_cuda_kernel *const kernels[] = { &gy_cuda_kernel_reduce_sum, &gy_cuda_kernel_reduce_max,
                                                     &gy_cuda_kernel_dot };
    static const int64_t bytes[] = { 0, 8, 40, 4096, 65536, 70000, 200024 };
    const gy_cuda_kernel *kernel = kernels[_i];
    open_device();
    for (int d = 0; d <= GANTRY_U64; d++) {
        gantry_dtype own = (gantry_dtype)d, wide = is_float(own) ? GANTRY_F64 : GANTRY_I64;
        for (size_t s = 0; s < sizeof bytes / sizeof *bytes && takes(kernel, own); s++) {
            int64_t n = bytes[s] / (int64_t)gantry_dtype_size(own);
            tame = s % 3;
            try_reduce(kernel, own, own, n, s % 2);
            try_reduce(kernel, own, kernel == &gy_cuda_kernel_reduce_max ? own : wide, n + (n > 9), (s + 1) % 2);
        }
    }
    close_device();
}
END_TEST

/* As many partial results as there can be: the sum of those i % 256 apart, then of halves of halves. */
static double sum_apart(const double *x, int64_t count, int64_t from, int64_t sums)
{
    double total = 0;
    if (sums > 1)
        return sum_apart(x, count, from, sums / 2) + sum_apart(x, count, from + sums / 2, sums / 2);
    for (int64_t i = from; i < count; i += 256)
        total += x[i];
    return total;
}

START_TEST(partial_results)
{
    int64_t count = _i ? 2048 - _i * 300 : 2048;
    tame = true;
    open_device();
    launch l = new_launch(&gy_cuda_kernel_reduce_sum);
    add_region(&l, 0, GANTRY_F64, count, 1, 0);
    add_region(&l, 1, GANTRY_F64, 1, 1, 0);
    double *x = (double *)(void *)(l.at[0].host + l.at[0].offset), *out = (double *)(void *)(l.at[1].host + MARGIN);
    *out += sum_apart(x, count, 0, 256);
    MUST(l.kernel->open(&l.handle, l.kernel, &driver, MUST_ERR));
    gantry_launch device = view(&l, true);
    gy_grid one = { 1, 1, 1, GY_IMAGE_THREADS, 1, 1 };
    MUST(gy_cuda_image_launch(&device, 1, GANTRY_F64, one, (void *[]){ &l.arg[0].data, &count, &l.arg[1].data }));
    check_region(&l, 1);
    close_launch(&l);
    close_device();
}
END_TEST

START_TEST(chunks)
{
    for (int64_t size = 1; size <= 8; size *= 2) {
        for (int64_t n = 1; n < INT64_MAX / 256; n = 3 * n + 1) {
            int64_t chunk = gy_chunk_size(n, size), count = (n - 1) / chunk + 1;
            ck_assert(count <= GY_CHUNKS && chunk * size % GY_CHUNK_ROW == 0 && chunk * size >= 16 * GY_CHUNK_ROW);
            ck_assert(8 * count <= 8 * (n * size - 1) / 65536 + 8); /* GY_CHUNK_SCRATCH */
        }
    }
}
END_TEST

START_TEST(little_scratch)
{
    open_device();
    launch l = new_launch(&gy_cuda_kernel_reduce_sum);
    gantry_launch device = view(&l, true);
    l.arg[0] = (gantry_arg){ .dtype = GANTRY_F32, .access = GANTRY_READ, .rows = 20000, .row_bytes = 4 };
    device.scratch_bytes = 8;
    ck_assert_int_eq(l.kernel->launch(&device), GANTRY_E_CAPACITY);
    close_device();
}
END_TEST

/* ---- contributions ---- */

DECLARE(combine)

/* One part after the other, each sources, then targets. */
static gantry_status combine_host(const gantry_launch *l)
{
    const void *from[MOST_ARGS];
    size_t sources = 0;
    for (int32_t i = 0; i < l->args; i++) {
        const gantry_arg *a = &l->arg[i];
        bool last = i + 1 == l->args || l->arg[i + 1].access == GANTRY_READ;
        if (a->access == GANTRY_READ) {
            from[sources++] = a->data;
        } else if (a->access == GANTRY_WRITE) {
            memmove(a->data, from[0], (size_t)(a->rows * a->row_bytes));
        } else {
            gy_reduce(a->dtype, a->access, l->arg[i].data, from, sources, (uint64_t)a->rows);
            sources = 1; /* further targets get what this one did */
            from[0] = a->data;
        }
        sources = a->access != GANTRY_READ && last ? 0 : sources;
    }
    return GANTRY_OK;
}

static void add_part(launch *l, gantry_kernel_arg *arg, int32_t *args, gantry_dtype d, gantry_access op, int sources,
                     int targets, int64_t n)
{
    int shift = (int)(draw() % (16 / gantry_dtype_size(d))), apart = draw() % 4 == 0;
    for (int i = 0; i < sources + targets; i++, ++*args) {
        arg[*args].name = i < sources ? "source" : "target";
        arg[*args].access = i < sources ? GANTRY_READ : op;
        add_region(l, *args, d, n, 1, shift + (i == 1 ? apart : 0));
    }
}

/* `op`: a reduction, or `write`: one source each. A target of the first part may be its first source. */
static void try_parts(gantry_dtype d, gantry_access op, int sources, int targets, int parts, int64_t n)
{
    gantry_kernel_arg arg[MOST_ARGS] = { 0 };
    gantry_kernel manifest = { .name = gantry_access_name(op), .arg = arg, .host = combine_host };
    launch l = { .manifest = &manifest, .kernel = &gy_cuda_kernel_combine };
    bool moves = op == GANTRY_WRITE;
    for (int k = 0; k < parts; k++)
        add_part(&l, arg, &manifest.args, d, op, moves ? 1 : sources + k, targets + k, n + 300 * k * k);
    sources = moves ? 1 : sources;
    l.in_place = draw() % 2 ? sources + (int)(draw() % (uint64_t)targets) : 0;
    run_both(&l);
}

START_TEST(contributions)
{
    static const int64_t sizes[] = { 1, 15, 33, 1000, 4099 };
    open_device();
    state = (uint64_t)_i;
    processors = _i ? 1 : 132;
    for (int d = 0; d <= GANTRY_U64; d++) {
        for (int op = GANTRY_SUM; op <= GANTRY_PROD; op++) {
            for (int k = 0; k < 5; k++) {
                tame = k % 2;
                try_parts((gantry_dtype)d, (gantry_access)op, 2 + (k + d) % 3, 1 + (k + op) % 3, 1 + k % 3,
                          sizes[(op + k) % 5]);
            }
        }
    }
    for (int sources = 7; sources < 19; sources += 2) /* more than are loaded at once */
        try_parts(GANTRY_F32, GANTRY_SUM, sources, 2, 1, 777);
    try_parts(GANTRY_F32, GANTRY_SUM, 4, 4, 1, 50003);
    try_parts(GANTRY_U8, GANTRY_MAX, 2, 2, 1, 70001);
    close_device();
}
END_TEST

/* Elements with one source keep all their bits, whatever the type. */
START_TEST(moves)
{
    static const int64_t sizes[] = { 1, 2, 15, 64, 1001, 4100, 70001 };
    open_device();
    processors = _i ? 1 : 132;
    for (int d = 0; d <= GANTRY_U64; d++) {
        for (int k = 0; k < 7; k++) {
            state = (uint64_t)(100 * d + k);
            tame = false;
            try_parts((gantry_dtype)d, GANTRY_WRITE, 1, 1 + (k + d) % 4, 1 + (k + d) % 3, sizes[k]);
        }
    }
    close_device();
}
END_TEST

/* More ends, or more parts, than a launch takes. */
START_TEST(too_much)
{
    gantry_arg arg[GY_CUDA_ENDS + 2];
    open_device();
    launch l = { .kernel = &gy_cuda_kernel_combine };
    MUST(l.kernel->open(&l.handle, l.kernel, &driver, MUST_ERR));
    for (int i = 0; i < GY_CUDA_ENDS + 2; i++) {
        arg[i] = (gantry_arg){ .dtype = GANTRY_U8, .access = GANTRY_READ, .rows = 0, .row_bytes = 1 };
        arg[i].access = i % (_i + 2) == 0 ? GANTRY_READ : GANTRY_WRITE;
    }
    gantry_launch device = { .stream = stream, .arg = arg, .handle = l.handle };
    device.args = GY_CUDA_ENDS;
    MUST(l.kernel->launch(&device));
    device.args += 2;
    ck_assert_int_eq(l.kernel->launch(&device), GANTRY_E_UNSUPPORTED);
    int before = fakeCudaCalls("cuLaunchKernel");
    device.args = 0; /* one that does nothing */
    MUST(l.kernel->launch(&device));
    ck_assert_int_eq(fakeCudaCalls("cuLaunchKernel"), before + 1);
    ck_assert_int_eq(cuStreamSynchronize(stream), CUDA_SUCCESS);
    l.kernel->close(l.handle);
    close_device();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda streaming");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, elements, 0, EACH);
    tcase_add_test(tests, many_elements);
    tcase_add_loop_test(tests, rows, 0, 2);
    tcase_add_loop_test(tests, reductions, 0, 3);
    tcase_add_loop_test(tests, partial_results, 0, 7);
    tcase_add_test(tests, chunks);
    tcase_add_test(tests, little_scratch);
    tcase_add_loop_test(tests, contributions, 0, 2);
    tcase_add_loop_test(tests, moves, 0, 2);
    tcase_add_loop_test(tests, too_much, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
