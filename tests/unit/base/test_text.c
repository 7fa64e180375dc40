/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/memory.h"
#include "suite.h"
#include "support/comma.h"
#include <float.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_text(gy_text *text, const char *expected)
{
    size_t length = 99;
    char *got = gy_text_take(text, &length);
    ck_assert_ptr_nonnull(got);
    ck_assert_str_eq(got, expected);
    ck_assert_uint_eq(length, strlen(expected));
    gy_free(got);
}

START_TEST(texts_are_built)
{
    gy_text text = { 0 };
    gy_text_add(&text, "ab");
    gy_text_add_n(&text, "cdef", 1);
    gy_text_printf(&text, "%d-%s", 42, "x");
    ck_assert_str_eq(text.at, "abc42-x");
    assert_text(&text, "abc42-x");
    ck_assert_ptr_null(text.at);
    assert_text(&text, ""); /* nothing added is a text, too */
    char long_word[1000];
    memset(long_word, 'w', sizeof long_word);
    long_word[999] = '\0';
    gy_text_printf(&text, "%s%s", long_word, long_word);
    ck_assert_uint_eq(text.length, 1998);
    ck_assert_uint_eq(strlen(text.at), 1998);
    gy_text_free(&text);
}
END_TEST

START_TEST(json_strings_read_back)
{
    gy_text text = { 0 };
    gy_text_json(&text, "a\"b\\c\b\f\n\r\t\x01\x1f/\x7f \xC3\xA9 \xF0\x9F\x98\x80");
    ck_assert_str_eq(text.at, "\"a\\\"b\\\\c\\b\\f\\n\\r\\t\\u0001\\u001f/\\u007f \xC3\xA9 \xF0\x9F\x98\x80\"");
    json_t *back = json_loads(text.at, JSON_DECODE_ANY, NULL);
    ck_assert_str_eq(json_string_value(back), "a\"b\\c\b\f\n\r\t\x01\x1f/\x7f \xC3\xA9 \xF0\x9F\x98\x80");
    json_decref(back);
    gy_text_free(&text);
}
END_TEST

/* U+0085, U+202E and U+FFFF are characters, and no plain ones. */
START_TEST(json_escapes_what_is_not_plain)
{
    gy_text text = { 0 };
    gy_text_json(&text, "x\xC2\x85y\xE2\x80\xAEz\xEF\xBF\xBF");
    assert_text(&text, "\"x\\u0085y\\u202ez\\uffff\"");
}
END_TEST

/* Overlong, lone continuation, surrogate, beyond U+10FFFF, cut off: each bad byte is replaced, the rest stays. */
START_TEST(bad_utf8_never_leaves)
{
    static const char *const bad[] = {
        "\xC0\x80",     "\x80", "\xED\xA0\x80",         "\xF4\x90\x80\x80", "\xE2\x82",
        "\xF0\x9F\x98", "\xFF", "\xF8\x88\x80\x80\x80", "\xE0\x80\x80",     "\xF0\x80\x80\x80"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gy_text text = { 0 };
        char word[16], plain[64] = "";
        snprintf(word, sizeof word, "a%s.", bad[i]);
        gy_text_json(&text, word);
        json_t *back = json_loads(text.at, JSON_DECODE_ANY, NULL);
        ck_assert_ptr_nonnull(back);
        strcat(plain, "a");
        for (size_t k = 0; k < strlen(bad[i]); k++)
            strcat(plain, "\xEF\xBF\xBD");
        strcat(plain, ".");
        ck_assert_str_eq(json_string_value(back), plain);
        json_decref(back);
        gy_text_free(&text);
        gy_text_xml(&text, word);
        assert_text(&text, plain);
    }
}
END_TEST

START_TEST(xml_is_escaped)
{
    gy_text text = { 0 };
    gy_text_xml(&text, "<a href=\"x\">'&'\n\x02\xC3\xA9</a>");
    assert_text(&text, "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;\n\xEF\xBF\xBD\xC3\xA9&lt;/a&gt;");
}
END_TEST

static const char *number(double value)
{
    static char text[GY_DOUBLE_TEXT];
    return gy_double_text(text, sizeof text, value);
}

START_TEST(doubles_are_short)
{
    ck_assert_str_eq(number(0), "0.0");
    ck_assert_str_eq(number(-0.0), "-0.0");
    ck_assert_str_eq(number(3), "3.0");
    ck_assert_str_eq(number(-12), "-12.0");
    ck_assert_str_eq(number(0.1), "0.1");
    ck_assert_str_eq(number(0.1 + 0.2), "0.30000000000000004");
    ck_assert_str_eq(number(1e300), "1e+300");
    ck_assert_str_eq(number(1e22), "1e+22");
    ck_assert_str_eq(number(1e15), "1e+15");
    ck_assert_str_eq(number(123456789012345.0), "123456789012345.0");
    ck_assert_str_eq(number(9007199254740993.0), "9007199254740992.0");
    ck_assert_str_eq(number(5e-324), "5e-324");
    ck_assert_str_eq(number(1.5e-310), "1.5e-310");
    ck_assert_str_eq(number(DBL_MAX), "1.7976931348623157e+308");
    ck_assert_str_eq(number((double)INFINITY), "inf");
    ck_assert_str_eq(number(-(double)INFINITY), "-inf");
    ck_assert_str_eq(number((double)NAN), "nan");
    gy_text text = { 0 };
    gy_text_double(&text, 2.5);
    assert_text(&text, "2.5");
}
END_TEST

static size_t digits_of(const char *text)
{
    /* Significant digits: leading and trailing zeros are none. */
    char digits[64];
    size_t count = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (count || *text != '0'))
            digits[count++] = *text;
    while (count && digits[count - 1] == '0')
        count--;
    return count;
}

/* Random bit patterns: the text reads back to the same bits, and with one digit less it does not. */
START_TEST(doubles_read_back_and_are_shortest)
{
    uint64_t state = 5;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = next_random(&state);
        double value, back;
        if (i % 4 == 0) {
            value = (double)(int64_t)(bits % 2000000) / 1000; /* what people write */
        } else {
            bits = i % 4 == 1 ? bits & UINT64_C(0x800FFFFFFFFFFFFF) : bits; /* subnormal ones too */
            memcpy(&value, &bits, sizeof value);
        }
        if (!isfinite(value))
            continue;
        const char *text = number(value);
        ck_assert_msg(gy_parse_double(text, strlen(text), &back) && memcmp(&value, &back, sizeof back) == 0,
                      "%a became %s", value, text);
        size_t digits = digits_of(text);
        char shorter[40];
        snprintf(shorter, sizeof shorter, "%.*e", digits > 1 ? (int)digits - 2 : 0, value);
        ck_assert_msg(digits <= 1 || strtod(shorter, NULL) != value, "%s could be %s", text, shorter);
    }
}
END_TEST

START_TEST(numbers_are_read)
{
    static const struct {
        const char *text;
        double value;
    } good[] = { { "0", 0 },      { "12", 12 },     { "-1.5", -1.5 },  { "+2", 2 },
                 { "1e3", 1000 }, { "1E-3", 1e-3 }, { "2.50e+2", 250 } };
    static const char *const bad[] = { "",    "-",   ".5", "1.", "1e",    "1e+", "0x10",
                                       "inf", "nan", "1 ", " 1", "1e999", "1,5", "--1" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double value = 77;
        ck_assert_msg(gy_parse_double(good[i].text, strlen(good[i].text), &value), "%s", good[i].text);
        ck_assert_double_eq(value, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double value = 77;
        ck_assert_msg(!gy_parse_double(bad[i], strlen(bad[i]), &value), "%s", bad[i]);
        ck_assert_double_eq(value, 77);
    }
    char many[600];
    memset(many, '1', sizeof many);
    double value;
    ck_assert(!gy_parse_double(many, sizeof many, &value));
    bool is_real;
    ck_assert_uint_eq(gy_number_length("12.rows", 7, &is_real), 2);
    ck_assert(!is_real);
    ck_assert_uint_eq(gy_number_length("1.5e+x", 6, &is_real), 3);
    ck_assert(is_real);
}
END_TEST

/* A program may have set a locale that writes 0,1: files do not change with it. */
START_TEST(the_locale_does_not_matter)
{
    if (!set_decimal_comma())
        return;
    double value = 0;
    ck_assert_str_eq(number(-1234.5), "-1234.5");
    ck_assert_str_eq(number(1.5e-7), "1.5e-07");
    ck_assert(gy_parse_double("1.25e2", 6, &value) && value == 125);
    ck_assert(!gy_parse_double("1,25", 4, &value));
    setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(names_are_numbered)
{
    gy_names names = { 0 };
    bool isnew;
    ck_assert_uint_eq(gy_names_find(&names, "x"), GY_NO_NAME);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 5000; i++) {
            char name[20];
            snprintf(name, sizeof name, "n%" PRIu32, i * 7);
            ck_assert_uint_eq(gy_names_add(&names, name, &isnew), i);
            ck_assert(isnew == (round == 0));
            ck_assert_str_eq(gy_names_at(&names, i), name);
        }
    }
    ck_assert_uint_eq(names.count, 5000);
    ck_assert_uint_eq(gy_names_find(&names, "n7"), 1);
    ck_assert_uint_eq(gy_names_find(&names, "n8"), GY_NO_NAME);
    ck_assert_uint_eq(gy_names_add(&names, "", NULL), 5000);
    gy_names_free(&names);
    ck_assert_uint_eq(gy_names_find(&names, "n7"), GY_NO_NAME);
}
END_TEST

static const char *near(const char *word, const char *candidate)
{
    return gy_nearest(word, &candidate, 1);
}

START_TEST(near_misses)
{
    static const char *const keys[] = { "dtype", "shape", "split", "output" };
    ck_assert_str_eq(gy_nearest("shpae", keys, 4), "shape");  /* two letters swapped: 1 */
    ck_assert_str_eq(gy_nearest("outpt", keys, 4), "output"); /* one missing */
    ck_assert_str_eq(gy_nearest("splitt", keys, 4), "split"); /* one too many; 6 / 3 = 2 */
    ck_assert_str_eq(gy_nearest("SHAPE", keys, 4), "shape");
    ck_assert_ptr_null(gy_nearest("colour", keys, 4));
    ck_assert_ptr_null(gy_nearest("shape", keys, 0));
    ck_assert_str_eq(near("imgae", "image"), "image");
    ck_assert_ptr_null(near("imgaes", "camera"));
    ck_assert_ptr_null(near("kitten", "sitting"));                   /* distance 3 > 6 / 3 */
    ck_assert_str_eq(near("kittenish", "sittingish"), "sittingish"); /* 3 <= 9 / 3 */
    ck_assert_ptr_null(near("x", "y"));                              /* nothing in common */
    ck_assert_str_eq(near("x", "xs"), "xs");
    ck_assert_ptr_null(near("", ""));
    /* A candidate that begins with the word, if none is nearer, and of several the shortest. */
    static const char *const kernels[] = { "spmm_csr", "spmv_csr_wide", "spmv_csr", "spnv" };
    ck_assert_str_eq(gy_nearest("spmv", kernels, 3), "spmv_csr");
    ck_assert_str_eq(gy_nearest("spmv", kernels, 4), "spnv");
    ck_assert_str_eq(near("SPM", "spmm_csr"), "spmm_csr");
    ck_assert_ptr_null(near("sp", "spmv_csr"));
    ck_assert_ptr_null(near("csr", "spmv_csr"));
    /* Of equally near ones the first, of all the nearest. */
    static const char *const abc[] = { "abcdeX", "Xbcdef", "abcdef" };
    ck_assert_str_eq(gy_nearest("abcdeY", abc, 2), "abcdeX");
    ck_assert_str_eq(gy_nearest("abcdeff", abc, 3), "abcdef");
    char longest[200];
    memset(longest, 'a', sizeof longest);
    longest[199] = '\0';
    ck_assert_ptr_null(near(longest, longest));
    longest[127] = '\0';
    ck_assert_ptr_nonnull(near(longest, longest + 1));
}
END_TEST

static const char *size_text(uint64_t bytes)
{
    static char text[32];
    return gy_bytes_text(text, sizeof text, bytes);
}

START_TEST(sizes_are_written)
{
    ck_assert_str_eq(size_text(0), "0 B");
    ck_assert_str_eq(size_text(1023), "1023 B");
    ck_assert_str_eq(size_text(1024), "1.0 KiB");
    ck_assert_str_eq(size_text(UINT64_C(3) << 29), "1.5 GiB");
    ck_assert_str_eq(size_text(UINT64_C(12) << 30), "12.0 GiB");
    ck_assert_str_eq(size_text(1048575), "1.0 MiB"); /* not 1024.0 KiB */
    ck_assert_str_eq(size_text(1048064), "1023.5 KiB");
    ck_assert_str_eq(size_text(UINT64_MAX), "16.0 EiB");
    ck_assert_str_eq(size_text(UINT64_C(0x1800000000000000)), "1.5 EiB");
}
END_TEST

START_TEST(sizes_are_read)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = { { "100", 100 },
                 { "0", 0 },
                 { "512B", 512 },
                 { "4GiB", UINT64_C(4) << 30 },
                 { "4 gib", UINT64_C(4) << 30 },
                 { "512MB", 512000000 },
                 { "1.5KiB", 1536 },
                 { "0.3KiB", 307 },
                 { "2.000001MB", 2000001 },
                 { "1.25 TiB", UINT64_C(5) << 38 },
                 { "1.9999999999999TB", UINT64_C(1999999000000) },
                 { "18446744073709551615", UINT64_MAX } };
    static const char *const bad[] = { "",
                                       "GiB",
                                       "-1",
                                       "1.GiB",
                                       ".5GiB",
                                       "4G",
                                       "4 G B",
                                       "1e9",
                                       "4GiBs",
                                       "0x10",
                                       "18446744073709551616",
                                       "16777216TiB",
                                       "1  B" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t bytes = 77;
        ck_assert_msg(gy_parse_bytes(good[i].text, &bytes), "%s", good[i].text);
        ck_assert_uint_eq(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t bytes = 77;
        ck_assert_msg(!gy_parse_bytes(bad[i], &bytes), "%s", bad[i]);
        ck_assert_uint_eq(bytes, 77);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, texts_are_built);
    tcase_add_test(tests, json_strings_read_back);
    tcase_add_test(tests, json_escapes_what_is_not_plain);
    tcase_add_test(tests, bad_utf8_never_leaves);
    tcase_add_test(tests, xml_is_escaped);
    tcase_add_test(tests, doubles_are_short);
    tcase_add_test(tests, doubles_read_back_and_are_shortest);
    tcase_add_test(tests, numbers_are_read);
    tcase_add_test(tests, the_locale_does_not_matter);
    tcase_add_test(tests, names_are_numbered);
    tcase_add_test(tests, near_misses);
    tcase_add_test(tests, sizes_are_written);
    tcase_add_test(tests, sizes_are_read);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
