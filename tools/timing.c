/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

uint64_t peak_memory(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long long kib = 0;
    if (!status)
        return 0;
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %llu", &kib) == 1)
            break;
    fclose(status);
    return kib * 1024;
}
