/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of .npy files. The bytes of the first case are what NumPy 1.24 writes for numpy.zeros((3, 4), 'f4'). */
#include "base/npy.h"
#include "suite.h"
#include <stdio.h>
#include <string.h>

static const char numpy_header[] = "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"
                                   "                                                          \n";

static gantry_status parse(gy_npy *npy, const char *dictionary, gantry_error *err)
{
    char text[1024];
    size_t length = strlen(dictionary);
    memcpy(text, "\x93NUMPY\x01\x00\x00\x00", 10);
    text[8] = (char)(length & 0xff);
    text[9] = (char)(length >> 8);
    memcpy(text + 10, dictionary, length);
    return gy_npy_header_parse(npy, text, length + 10, "a.npy", err);
}

START_TEST(written_by_numpy)
{
    gy_npy npy;
    gantry_error err;
    ck_assert_uint_eq(sizeof numpy_header - 1, 128);
    ck_assert_int_eq(gy_npy_header_parse(&npy, numpy_header, sizeof numpy_header - 1, "a.npy", &err), GANTRY_OK);
    ck_assert(npy.dtype == GANTRY_F32 && npy.rank == 2 && npy.shape[0] == 3 && npy.shape[1] == 4);
    ck_assert(npy.data_offset == 128 && npy.data_bytes == 48);
    gy_npy_free(&npy);
    gy_text text = { 0 };
    gy_npy_header_write(&text, GANTRY_F32, 2, (int64_t[]){ 3, 4 });
    ck_assert_uint_eq(text.length, 128);
    ck_assert_mem_eq(text.at, numpy_header, 128);
    gy_text_free(&text);
}
END_TEST

START_TEST(forms)
{
    gy_npy npy;
    gantry_error err;
    ck_assert_int_eq(parse(&npy, "{\"shape\":(7L,),'fortran_order':True,'descr':'|u1'}", &err), GANTRY_OK);
    ck_assert(npy.dtype == GANTRY_U8 && npy.rank == 1 && npy.shape[0] == 7);
    gy_npy_free(&npy);
    ck_assert_int_eq(parse(&npy, "{'shape': (), 'fortran_order': False, 'descr': '<V2', }\n", &err), GANTRY_OK);
    ck_assert(npy.dtype == GANTRY_BF16 && npy.rank == 0 && npy.data_bytes == 2);
    gy_npy_free(&npy);
    ck_assert_int_eq(parse(&npy, "{'shape': (0, 5), 'fortran_order': False, 'descr': '<i8'}", &err), GANTRY_OK);
    ck_assert(npy.data_bytes == 0);
    gy_npy_free(&npy);
    ck_assert_int_eq(parse(&npy, "{'shape': (3,), 'fortran_order': False, 'descr': '<V1'}", &err), GANTRY_OK);
    ck_assert(npy.dtype == GANTRY_F8E4M3 && npy.data_bytes == 3);
    gy_npy_free(&npy);
    ck_assert_int_eq(parse(&npy, "{'shape': (3,), 'fortran_order': False, 'descr': '<f1'}", &err), GANTRY_OK);
    ck_assert(npy.dtype == GANTRY_F8E5M2 && npy.data_bytes == 3);
    gy_npy_free(&npy);
}
END_TEST

static void check_error(const char *dictionary, const char *expected)
{
    gy_npy npy;
    gantry_error err;
    ck_assert_int_eq(parse(&npy, dictionary, &err), GANTRY_E_IO);
    ck_assert_str_eq(err.text, expected);
}

START_TEST(mistakes)
{
    check_error("{'shape': (2, 3), 'fortran_order': True, 'descr': '<f4'}",
                "a.npy: is in Fortran order; save numpy.ascontiguousarray(a), which is in C order");
    check_error("{'shape': (2,), 'fortran_order': False, 'descr': '>f4'}",
                "a.npy: has big-endian elements '>f4'; save a.astype(a.dtype.newbyteorder('<'))");
    check_error("{'shape': (2,), 'fortran_order': False, 'descr': '|b1'}",
                "a.npy: has elements of type '|b1'; allowed are f2 f4 f8 i1 u1 i4 u4 i8 u8, V2, the bits of bf16, V1, "
                "those of f8e4m3, and f1, those of f8e5m2: save a.astype(...), or of uint16 and uint8 with such bits "
                "a.view('V2') and a.view('V1')");
    check_error("{'shape': (2,), 'fortran_order': False, 'descr': [('a', '<f4')]}",
                "a.npy: has records of several fields; save one plain array a file");
    check_error("{'shape': 2, 'fortran_order': False, 'descr': '<f4'}",
                "a.npy: damaged .npy header: the shape is not a list");
    check_error("{'shape': (-2,), 'fortran_order': False, 'descr': '<f4'}",
                "a.npy: damaged .npy header: the shape holds something that is not a size");
    check_error("{'shape': (99999999999999999999,), 'fortran_order': False, 'descr': '<f4'}",
                "a.npy: damaged .npy header: the shape holds something that is not a size");
    check_error("{'shape': (4294967296, 4294967296), 'fortran_order': False, 'descr': '<f4'}",
                "a.npy: damaged .npy header: the array is larger than 2^63 bytes");
    check_error("{'shape': (2", "a.npy: damaged .npy header: the shape does not end");
    check_error("{'shape': (2,), 'fortran_order': 0, 'descr': '<f4'}",
                "a.npy: damaged .npy header: fortran_order is neither True nor False");
    check_error("{'shape': (2,), 'colour': 'red'}", "a.npy: damaged .npy header: an unknown or repeated key");
    check_error("{'shape': (2,), 'shape': (2,)}", "a.npy: damaged .npy header: an unknown or repeated key");
    check_error("{'shape': (2,) 'fortran_order'", "a.npy: damaged .npy header: the dictionary does not end");
    check_error("{'shape': (2,), 'descr': '<f4'}",
                "a.npy: damaged .npy header: descr, fortran_order or shape is missing");
    check_error("{shape: 3}", "a.npy: damaged .npy header: no dictionary of descr, fortran_order and shape");
    check_error("[]", "a.npy: damaged .npy header: no dictionary");
}
END_TEST

START_TEST(damaged_files)
{
    gy_npy npy;
    gantry_error err;
    char text[sizeof numpy_header];
    for (size_t length = 0; length < sizeof numpy_header - 1; length++) {
        ck_assert_int_eq(gy_npy_header_parse(&npy, numpy_header, length, "a.npy", &err), GANTRY_E_IO);
        ck_assert_str_eq(err.text, length < 6 ? "a.npy: is not a .npy file: it does not begin with \\x93NUMPY"
                                              : "a.npy: damaged .npy header: the file ends inside it");
    }
    ck_assert_int_eq(gy_npy_header_parse(&npy, "\x93NUMPY\x02\x00\x01\x00\x00", 11, "a.npy", &err), GANTRY_E_IO);
    ck_assert_str_eq(err.text, "a.npy: damaged .npy header: the file ends inside it");
    memcpy(text, numpy_header, sizeof text);
    text[6] = 4;
    ck_assert_int_eq(gy_npy_header_parse(&npy, text, sizeof text - 1, "a.npy", &err), GANTRY_E_IO);
    ck_assert_str_eq(err.text, "a.npy: is .npy version 4.0; versions 1.0 to 3.0 can be read");
    ck_assert_int_eq(gy_npy_header_parse(&npy, "PNG and more", 12, "a.npy", &err), GANTRY_E_IO);
    ck_assert_str_eq(err.text, "a.npy: is not a .npy file: it does not begin with \\x93NUMPY");
    ck_assert_int_eq(gy_npy_header_parse(&npy, "\x93NUMPY\x02\x00\xff\xff\xff\xff", 12, "a.npy", &err), GANTRY_E_IO);
    ck_assert_int_eq(gy_npy_header_read(&npy, "/nowhere.npy", &err), GANTRY_E_IO);
    ck_assert_int_eq(gy_npy_header_read(&npy, "/", &err), GANTRY_E_IO);
}
END_TEST

/* Longer than version 1.0 can say: 4-byte lengths, version 2.0. */
START_TEST(many_axes)
{
    static int64_t shape[1000];
    gy_npy npy;
    gantry_error err;
    gy_text text = { 0 };
    for (int i = 0; i < 1000; i++)
        shape[i] = i == 999 ? 0 : INT64_MAX / 2;
    shape[0] = 0;
    gy_npy_header_write(&text, GANTRY_U8, 1000, shape);
    ck_assert_int_eq(text.at[6], 1);
    ck_assert_uint_eq(text.length % 64, 0);
    ck_assert_int_eq(gy_npy_header_parse(&npy, text.at, text.length, "a.npy", &err), GANTRY_OK);
    ck_assert_int_eq(npy.rank, 1000);
    ck_assert_int_eq(npy.shape[998], INT64_MAX / 2);
    gy_npy_free(&npy);
    gy_text_free(&text);
}
END_TEST

int main(void)
{
    const TTest *const cases[] = { written_by_numpy, forms, mistakes, damaged_files, many_axes };
    return RUN_CASES("npy headers", cases);
}
