/* SPDX-License-Identifier: Apache-2.0 */
/* Times and sizes as all reports have them: the unit that fits, decimal for times, binary for bytes. */
#include "command.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

char *time_text(char to[UNIT_TEXT], double us)
{
    static const char *const units[] = { "ns", "us", "ms", "s" };
    enum { UNITS = sizeof units / sizeof *units };
    double value = us * 1000;
    int unit = 0;
    if (us == 0)
        return strcpy(to, "0 s");
    /* As it is rounded to five digits: 999.996 us are 1 ms. */
    for (; unit + 1 < UNITS && fabs(value) >= 999.995; unit++)
        value /= 1000;
    snprintf(to, UNIT_TEXT, "%.5g %s", value, units[unit]);
    return to;
}

char *bytes_text(char to[UNIT_TEXT], double bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    enum { UNITS = sizeof units / sizeof *units };
    int unit = 0;
    for (; unit + 1 < UNITS && bytes >= (unit ? 1023.95 : 1024); unit++)
        bytes /= 1024;
    snprintf(to, UNIT_TEXT, "%.*f %s", unit > 0, bytes, units[unit]);
    return to;
}
