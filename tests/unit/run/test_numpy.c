/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NumPy as the judge: .npy files both ways for every dtype that it knows, conversions to f16, and random numbers by a
 * Philox written again in Python (numpy_cases.py). Skipped where /usr/bin/python3 has no NumPy.
 */
#include "base/files.h"
#include "base/half.h"
#include "build.h"
#include "run/array.h"
#include "run/fill.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64];

static int python(const char *what)
{
    char command[512];
    snprintf(command, sizeof command, "/usr/bin/python3 %s/tests/unit/run/numpy_cases.py %s %s", GANTRY_SOURCE_DIR,
             what, folder);
    return system(command);
}

static void in_folder(char *path, size_t size, const char *kind, gantry_dtype dtype)
{
    snprintf(path, size, "%s/%s_%s.npy", folder, kind, gantry_dtype_name(dtype));
}

static gantry_status write_array(const void *array, const gy_buffer *buffer, const char *path, gantry_error *err)
{
    gantry_files files = { 0 };
    return gy_files_finish(&files, gy_array_add(&files, array, buffer, path, err), err);
}

static gy_buffer buffer_of(gantry_dtype dtype, const int64_t *shape)
{
    int64_t row = shape[1] * (int64_t)gantry_dtype_size(dtype);
    return (gy_buffer){ .name = "x",
                        .dtype = dtype,
                        .rank = 2,
                        .shape = shape,
                        .rows = shape[0],
                        .row_bytes = row,
                        .bytes = (uint64_t)(shape[0] * row) };
}

static const int64_t shape[] = { 37, 11 };

static void *filled(const gy_buffer *b, const gy_init *what)
{
    void *array = malloc(b->bytes);
    ck_assert_ptr_nonnull(array);
    gy_fill_rows(array, b, what, 0, b->rows);
    return array;
}

/* Ours, read by NumPy; NumPy's, read by us. numpy_cases.py knows what should be in them. */
START_TEST(files_agree_with_numpy)
{
    for (gantry_dtype dtype = GANTRY_F16; dtype <= GANTRY_F8E5M2; dtype++) {
        char path[128];
        gy_buffer b = buffer_of(dtype, shape);
        static const gy_init kinds[] = {
            { .kind = GY_INIT_IOTA, .a = { .real = 0 }, .b = { .real = 1 } },
            { .kind = GY_INIT_UNIFORM, .seed = 0x123456789abcdef0, .a = { .real = -3 }, .b = { .real = 100 } },
            { .kind = GY_INIT_NORMAL, .seed = 77, .a = { .real = 50 }, .b = { .real = 10 } }
        };
        static const char *const names[] = { "iota", "uniform", "normal" };
        for (int k = 0; k < 3; k++) {
            void *array = filled(&b, &kinds[k]);
            in_folder(path, sizeof path, names[k], dtype);
            MUST(write_array(array, &b, path, MUST_ERR));
            free(array);
        }
    }
    ck_assert_int_eq(python("check"), 0);
    ck_assert_int_eq(python("make"), 0);
    for (gantry_dtype dtype = GANTRY_F16; dtype <= GANTRY_F8E5M2; dtype++) {
        char path[128];
        gy_buffer b = buffer_of(dtype, shape);
        if (dtype == GANTRY_BF16)
            continue; /* NumPy has none */
        for (int version = 1; version <= 3; version++) {
            char kind[16];
            void *array = NULL,
                 *expected = filled(&b, &(gy_init){ .kind = GY_INIT_IOTA, .a = { .real = 5 }, .b = { .real = 3 } });
            snprintf(kind, sizeof kind, "made%d", version);
            in_folder(path, sizeof path, kind, dtype);
            MUST(gy_array_read(&array, &b, path, NULL, true, MUST_ERR));
            ck_assert_mem_eq(array, expected, b.bytes);
            gy_free(array);
            free(expected);
        }
    }
}
END_TEST

START_TEST(files_of_another_kind_are_refused)
{
    char path[128];
    gantry_error err = { 0 };
    void *array = NULL;
    gy_buffer b = buffer_of(GANTRY_F32, shape);
    ck_assert_int_eq(python("make"), 0);
    in_folder(path, sizeof path, "made1", GANTRY_F64);
    ck_assert_int_eq(gy_array_read(&array, &b, path, NULL, true, &err), GANTRY_E_IO);
    ck_assert_msg(strstr(err.text,
                         " holds f64 [37, 11], but buffer \"x\" is f32 [37, 11]; convert the file, or change the "
                         "buffer") != NULL,
                  "%s", err.text);
    const int64_t other[] = { 11, 37 };
    gy_buffer turned = buffer_of(GANTRY_F64, other);
    ck_assert_int_eq(gy_array_read(&array, &turned, path, NULL, true, &err), GANTRY_E_IO);
    ck_assert_ptr_nonnull(strstr(err.text, " holds f64 [37, 11], but buffer \"x\" is f64 [11, 37]"));
    snprintf(path, sizeof path, "%s/short.npy", folder);
    gy_buffer f64 = buffer_of(GANTRY_F64, shape);
    ck_assert_int_eq(gy_array_read(&array, &f64, path, NULL, true, &err), GANTRY_E_IO);
    ck_assert_ptr_nonnull(strstr(err.text,
                                 " has 3248 bytes of data, but buffer \"x\" has 3256; it is cut off, or has more "
                                 "than its header says: write it anew"));
    ck_assert_ptr_null(array);
}
END_TEST

/* All patterns of f16 widened, and many floats narrowed. */
START_TEST(halves_agree_with_numpy)
{
    char path[128];
    static float wide[65536];
    for (uint32_t h = 0; h < 65536; h++)
        wide[h] = gy_f16_to_float((uint16_t)h);
    gy_buffer b = buffer_of(GANTRY_F32, (const int64_t[]){ 256, 256 });
    snprintf(path, sizeof path, "%s/widened.npy", folder);
    MUST(write_array(wide, &b, path, MUST_ERR));
    static uint32_t bits[65536];
    static uint16_t narrow[65536];
    gy_fill_elements(
        bits, GANTRY_U32,
        &(gy_init){ .kind = GY_INIT_UNIFORM, .seed = 3, .a = { .real = 0 }, .b = { .real = 4294967296.0 } }, 0, 65536);
    memcpy(wide, bits, sizeof wide);
    snprintf(path, sizeof path, "%s/floats.npy", folder);
    MUST(write_array(wide, &b, path, MUST_ERR));
    for (uint32_t i = 0; i < 65536; i++)
        narrow[i] = gy_float_to_f16(wide[i]);
    gy_buffer h = buffer_of(GANTRY_F16, (const int64_t[]){ 256, 256 });
    snprintf(path, sizeof path, "%s/narrowed.npy", folder);
    MUST(write_array(narrow, &h, path, MUST_ERR));
    ck_assert_int_eq(python("halves"), 0);
}
END_TEST

int main(void)
{
    if (system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) {
        puts("skipped: /usr/bin/python3 has no NumPy");
        return 77;
    }
    strcpy(folder, "/tmp/gantry-numpy-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    Suite *suite = suite_create("numpy");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, files_agree_with_numpy);
    tcase_add_test(all, files_of_another_kind_are_refused);
    tcase_add_test(all, halves_agree_with_numpy);
    suite_add_tcase(suite, all);
    int failed = run_suite(suite);
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) != 0 || failed;
}
