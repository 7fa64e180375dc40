/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel with several ways to launch it: which is taken, and what it is given. */
#include "backends/cuda/kernels/choice.h"
#include "support/run_suite.h"

#include <check.h>
#include <string.h>

static int made, launched, closed;
static const void *seen;

static gantry_status missing(const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    (void)driver;
    if (err)
        strcpy(err->text, kernel->name);
    return GANTRY_E_UNSUPPORTED;
}

/* The handle is a mark that the kernel's `data` points to. */
static gantry_status make(void **handle, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    (void)driver;
    (void)err;
    made++;
    *handle = (void *)(uintptr_t)kernel->data;
    return GANTRY_OK;
}

static gantry_status refuse(void **handle, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    (void)handle;
    (void)kernel;
    (void)driver;
    (void)err;
    return GANTRY_E_DEVICE;
}

static gantry_status launch(const gantry_launch *l)
{
    launched++;
    seen = l->handle;
    return GANTRY_OK;
}

static gantry_status prepare(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    (void)err;
    seen = l->handle;
    *scratch = 100;
    return GANTRY_OK;
}

static void shut(void *handle)
{
    closed++;
    seen = handle;
}

static const char *why(const void *handle)
{
    return handle;
}

static const char mark[] = "the second";
static const gy_cuda_kernel absent = { .name = "absent", .usable = missing, .open = make };
static const gy_cuda_kernel gone = { .name = "gone", .usable = missing, .open = make };
static const gy_cuda_kernel full = {
    .name = "full", .launch = launch, .open = make, .close = shut, .data = mark, .prepare = prepare, .why = why
};
static const gy_cuda_kernel bare = { .name = "bare", .launch = launch };
static const gy_cuda_kernel broken = { .name = "broken", .open = refuse };

START_TEST(the_first_that_can)
{
    static const gy_cuda_choice choice = { { &absent, &full, &bare } };
    static const gy_cuda_kernel kernel = GY_CHOICE_KERNEL("k", choice);
    gantry_launch l = { .struct_size = sizeof l };
    uint64_t scratch = 0;
    ck_assert_int_eq(kernel.usable(&kernel, NULL, NULL), GANTRY_OK);
    ck_assert_int_eq(kernel.open(&l.handle, &kernel, NULL, NULL), GANTRY_OK);
    ck_assert_int_eq(made, 1);
    ck_assert_int_eq(kernel.prepare(&l, &scratch, NULL), GANTRY_OK);
    ck_assert_uint_eq(scratch, 100);
    ck_assert_ptr_eq(seen, mark);
    seen = NULL;
    ck_assert_int_eq(kernel.launch(&l), GANTRY_OK);
    ck_assert_int_eq(launched, 1);
    ck_assert_ptr_eq(seen, mark);
    ck_assert_str_eq(kernel.why(l.handle), mark);
    kernel.close(l.handle);
    ck_assert_int_eq(closed, 1);
}
END_TEST

/* Functions that a kernel does not have are not called. */
START_TEST(nothing_but_a_launch)
{
    static const gy_cuda_choice choice = { { &bare } };
    static const gy_cuda_kernel kernel = GY_CHOICE_KERNEL("k", choice);
    gantry_launch l = { .struct_size = sizeof l };
    uint64_t scratch = 7;
    ck_assert_int_eq(kernel.open(&l.handle, &kernel, NULL, NULL), GANTRY_OK);
    ck_assert_int_eq(kernel.prepare(&l, &scratch, NULL), GANTRY_OK);
    ck_assert_uint_eq(scratch, 7);
    ck_assert_int_eq(kernel.launch(&l), GANTRY_OK);
    ck_assert_ptr_null(kernel.why(l.handle));
    kernel.close(l.handle);
}
END_TEST

/* The reason of the first is told: it is the one to bring here. */
START_TEST(none)
{
    static const gy_cuda_choice choice = { { &absent, &gone } }, other = { { &broken } };
    static const gy_cuda_kernel kernel = GY_CHOICE_KERNEL("k", choice), fails = GY_CHOICE_KERNEL("k", other);
    gantry_error err = { 0 };
    void *handle = NULL;
    ck_assert_int_eq(kernel.usable(&kernel, NULL, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_str_eq(err.text, "absent");
    ck_assert_int_eq(kernel.open(&handle, &kernel, NULL, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_int_eq(fails.open(&handle, &fails, NULL, &err), GANTRY_E_DEVICE);
    ck_assert_ptr_null(handle);
    ck_assert_int_eq(made, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda choice");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, the_first_that_can);
    tcase_add_test(tests, nothing_but_a_launch);
    tcase_add_test(tests, none);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
