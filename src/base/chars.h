/* SPDX-License-Identifier: Apache-2.0 */
/* Characters as expressions, formulas and sizes have them, whatever the locale. */
#ifndef GY_BASE_CHARS_H
#define GY_BASE_CHARS_H

#include <stdbool.h>

static inline bool gy_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool gy_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

#endif
