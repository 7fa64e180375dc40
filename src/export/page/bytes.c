/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and texts as bytes, and bytes as base64. */
#include "export/page/page.h"

#include <string.h>

static void put(gy_columns *b, uint8_t byte)
{
    if (!b->failed && !gy_vec_push(&b->to, byte))
        b->failed = true;
}

void gy_columns_number(gy_columns *b, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        put(b, (uint8_t)(number | 0x80));
    put(b, (uint8_t)number);
}

uint64_t gy_columns_zigzag(int64_t number)
{
    uint64_t twice = (uint64_t)number << 1;
    return number < 0 ? ~twice : twice;
}

void gy_columns_signed(gy_columns *b, int64_t number)
{
    gy_columns_number(b, gy_columns_zigzag(number));
}

static void put_text(gy_columns *b, const char *text, size_t length)
{
    gy_columns_number(b, length);
    for (size_t i = 0; i < length; i++)
        put(b, (uint8_t)text[i]);
}

void gy_columns_text(gy_columns *b, const char *text)
{
    gy_text clean = { 0 };
    gy_export_name(&clean, text ? text : "", 0);
    b->failed = b->failed || clean.failed;
    put_text(b, clean.at ? clean.at : "", clean.length);
    gy_text_free(&clean);
}

void gy_columns_name(gy_columns *b, gy_text *before, const char *name)
{
    gy_text clean = { 0 };
    size_t shared = 0;
    gy_export_name(&clean, name ? name : "", 0);
    while (shared < before->length && shared < clean.length && before->at[shared] == clean.at[shared])
        shared++;
    b->failed = b->failed || clean.failed;
    gy_columns_number(b, shared);
    put_text(b, clean.at ? clean.at + shared : "", clean.length - shared);
    gy_text_free(before);
    *before = clean;
}

void gy_columns_base64(gy_text *to, const gy_columns *b)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char four[5] = { 0 };
    to->failed = to->failed || b->failed;
    for (size_t i = 0; i < b->to.count; i += 3) {
        size_t left = b->to.count - i;
        uint32_t three = (uint32_t)b->to.at[i] << 16 | (left > 1 ? (uint32_t)b->to.at[i + 1] << 8 : 0) |
                         (left > 2 ? b->to.at[i + 2] : 0);
        for (int k = 0; k < 4; k++)
            four[k] = digit[three >> (18 - 6 * k) & 63];
        four[2] = left > 1 ? four[2] : '=';
        four[3] = left > 2 ? four[3] : '=';
        gy_text_add_n(to, four, 4);
    }
}

void gy_columns_free(gy_columns *b)
{
    gy_vec_free(&b->to);
}
