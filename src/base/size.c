/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes in bytes as people write them. */
#include "base/text.h"

#include "base/chars.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *gy_bytes_text(char *to, size_t size, uint64_t bytes)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    if (bytes < 1024) {
        snprintf(to, size, "%" PRIu64 " B", bytes);
        return to;
    }
    /* In tenths of a unit, rounded; 1023.96 KiB is written 1.0 MiB. */
    size_t unit = 0;
    uint64_t tenths = 0;
    for (;; unit++) {
        int shift = 10 * (int)(unit + 1);
        uint64_t whole = bytes >> shift, rest = bytes & ((UINT64_C(1) << shift) - 1);
        /* rest < 2^60, so ten times that still fits. */
        uint64_t part = (rest * 10 + (UINT64_C(1) << (shift - 1))) >> shift;
        tenths = whole * 10 + part;
        if (tenths < 10240 || unit == 5)
            break;
    }
    snprintf(to, size, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, units[unit]);
    return to;
}

const char *gy_bytes_apart(char *to, size_t size, uint64_t bytes, uint64_t other)
{
    char beside[32];
    gy_bytes_text(to, size, bytes);
    if (bytes != other && strcmp(to, gy_bytes_text(beside, sizeof beside, other)) == 0)
        snprintf(to, size, "%" PRIu64 " B", bytes);
    return to;
}

static bool parse_unit(const char *text, uint64_t *unit)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        { "", 1 },
        { "B", 1 },
        { "KB", 1000 },
        { "KiB", UINT64_C(1) << 10 },
        { "MB", 1000000 },
        { "MiB", UINT64_C(1) << 20 },
        { "GB", 1000000000 },
        { "GiB", UINT64_C(1) << 30 },
        { "TB", UINT64_C(1000000000000) },
        { "TiB", UINT64_C(1) << 40 },
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(text, units[i].name) == 0) {
            *unit = units[i].bytes;
            return true;
        }
    }
    return false;
}

bool gy_parse_bytes(const char *text, uint64_t *bytes)
{
    uint64_t whole = 0, part = 0, scale = 1, unit, total;
    if (!gy_is_digit(*text))
        return false;
    for (; gy_is_digit(*text); text++)
        if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, *text - '0', &whole))
            return false;
    if (*text == '.' && gy_is_digit(text[1])) {
        /* Six digits are below a byte of a megabyte and keep part * unit inside 64 bits (10^6 * 2^40 < 2^60). */
        for (text++; gy_is_digit(*text); text++) {
            if (scale < 1000000) {
                part = part * 10 + (uint64_t)(*text - '0');
                scale *= 10;
            }
        }
    }
    text += *text == ' ';
    if (!parse_unit(text, &unit) || __builtin_mul_overflow(whole, unit, &total) ||
        __builtin_add_overflow(total, part * unit / scale, &total))
        return false;
    *bytes = total;
    return true;
}
