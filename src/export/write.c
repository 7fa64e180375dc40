/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and names as pictures and reports write them. */
#include "export/export.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* value / unit with `digits` significant digits, in whole numbers. */
static void print_scaled(char *to, uint64_t value, uint64_t unit, int digits, const char *name)
{
    int decimals = digits - 1;
    for (uint64_t whole = value / unit; whole >= 10 && decimals > 0; whole /= 10)
        decimals--;
    uint64_t scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    __extension__ typedef unsigned __int128 wide;
    uint64_t rounded = (uint64_t)(((wide)value * scale + unit / 2) / unit);
    for (; scale > 1 && rounded % 10 == 0; scale /= 10, decimals--)
        rounded /= 10;
    char fraction[24] = "";
    for (int i = decimals; i > 0; i--, rounded /= 10)
        fraction[i] = (char)('0' + rounded % 10);
    if (decimals > 0)
        fraction[0] = '.';
    snprintf(to, GY_EXPORT_SHORT, "%" PRIu64 "%s %s", rounded, fraction, name);
}

const char *gy_export_time(char *to, gy_ticks t, int digits, const char *micro)
{
    const char *const names[] = { "ps", "ns", micro, "ms", "s" };
    if (t <= 0)
        return strcpy(to, "0 s");
    uint64_t value = (uint64_t)t, unit = 1;
    int i = 0;
    for (; i < 4 && value >= unit * 1000; i++)
        unit *= 1000;
    print_scaled(to, value, unit, digits, names[i]);
    return to;
}

const char *gy_export_count(char *to, uint64_t n)
{
    char plain[24];
    int length = snprintf(plain, sizeof plain, "%" PRIu64, n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            to[at++] = ',';
        to[at++] = plain[i];
    }
    to[at] = '\0';
    return to;
}

const char *gy_export_rate(char *to, uint64_t bytes, gy_ticks t)
{
    if (t <= 0)
        return strcpy(to, "-");
    /* bytes per tick is TB/s. */
    print_scaled(to, (uint64_t)((double)bytes / (double)t * 1e6 + 0.5), 1000, 3, "GB/s");
    return to;
}

void gy_export_fixed(gy_text *to, double value, int decimals)
{
    int64_t scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    int64_t n = llround(fabs(value) * (double)scale);
    gy_text_printf(to, "%s%" PRId64, value < 0 && n > 0 ? "-" : "", n / scale);
    for (n %= scale; n > 0 && n % 10 == 0; n /= 10)
        decimals--;
    if (n > 0)
        gy_text_printf(to, ".%0*" PRId64, decimals, n);
}

const char *gy_export_percent(char *to, uint64_t part, uint64_t whole)
{
    if (whole == 0)
        return strcpy(to, "-");
    double tenths = (double)part / (double)whole * 1000;
    if (tenths > 0 && tenths < 1)
        return strcpy(to, "under 0.1 %");
    int64_t n = llround(tenths);
    if (n < 100 && n % 10 != 0)
        snprintf(to, GY_EXPORT_SHORT, "%" PRId64 ".%" PRId64 " %%", n / 10, n % 10);
    else
        snprintf(to, GY_EXPORT_SHORT, "%" PRId64 " %%", (int64_t)llround(tenths / 10));
    return to;
}

size_t gy_export_length(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

void gy_export_name(gy_text *to, const char *name, size_t most)
{
    size_t total = 0, at = 0;
    for (const char *s = name; *s; total++) {
        size_t length = gy_utf8_length(s);
        s += length ? length : 1;
    }
    /* Ends say more than middles: "forward_layer[12…99]". */
    bool cut = most > 0 && total > most;
    size_t tail = cut ? (most - 1) / 2 : 0, head = cut ? most - 1 - tail : total;
    for (const char *s = name; *s; at++) {
        size_t length = gy_utf8_length(s);
        if (at < head || at >= total - tail) {
            if (length == 0)
                gy_text_add(to, "\xEF\xBF\xBD");
            else if (!gy_plain_length(s))
                gy_text_add(to, " ");
            else
                gy_text_add_n(to, s, length);
        } else if (at == head) {
            gy_text_add(to, "…");
        }
        s += length ? length : 1;
    }
}

/* DOT understands \N and the like and HTML entities inside quoted strings. */
void gy_export_dot_name(gy_text *to, const char *name, size_t most)
{
    gy_text clean = { 0 };
    gy_export_name(&clean, name, most);
    to->failed = to->failed || clean.failed;
    for (const char *s = clean.at; s && *s; s++) {
        if (*s == '"' || *s == '\\')
            gy_text_add(to, "\\");
        if (*s == '&')
            gy_text_add(to, "&amp;");
        else
            gy_text_add_n(to, s, 1);
    }
    gy_text_free(&clean);
}

void gy_export_xml_name(gy_text *to, const char *name, size_t most)
{
    gy_text clean = { 0 };
    gy_export_name(&clean, name, most);
    to->failed = to->failed || clean.failed;
    if (clean.at)
        gy_text_xml(to, clean.at);
    gy_text_free(&clean);
}
