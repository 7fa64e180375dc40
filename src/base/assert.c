/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include <stdio.h>
#include <unistd.h>

_Noreturn void gy_assert_fail(const char *claim, const char *file, int line)
{
    char text[512];
    int length = snprintf(text, sizeof text, "%s:%d: assertion failed: %s\n", file, line, claim);
    if (length > 0 && write(2, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1) < 0)
        length = 0; /* there is nobody left to tell */
    __builtin_trap();
}
