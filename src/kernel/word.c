/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of a manifest says behind a mark what the status word means: that is told, with the launch's numbers. */
#include "kernel/word.h"

#include "kernel/registry.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The number of the launch that "{keys.last1}" at `from` names, in *value. Its length in the text; 0: it names none. */
static size_t read_number(const char *from, const gantry_launch *launch, double *value)
{
    char name[64];
    int64_t integer;
    bool is_real;
    const char *end = *from == '{' ? strchr(from, '}') : NULL;
    size_t length = end ? (size_t)(end - from) - 1 : sizeof name;
    if (length >= sizeof name)
        return 0;
    memcpy(name, from + 1, length);
    name[length] = '\0';
    /* The lookup only reads; the type of its context is what all lookups share. */
    return gy_launch_lookup((void *)(uintptr_t)launch, name, &integer, value, &is_real) ? length + 2 : 0;
}

/* Writes `from`, with numbers of the launch for their names in braces, as far as there is room. */
static void put_told(const char *from, const gantry_launch *launch, char *text, size_t size)
{
    size_t at = 0;
    while (*from && at + 1 < size) {
        double value;
        size_t length = read_number(from, launch, &value);
        if (length)
            at += (size_t)snprintf(text + at, size - at, "%.15g", value);
        else
            text[at++] = *from;
        from += length ? length : 1;
    }
    text[at < size ? at : size - 1] = '\0';
}

void gy_launch_word(const gantry_kernel *manifest, const gantry_launch *launch, int32_t word, char *text, size_t size)
{
    static const char mark[] = "; status: ";
    const char *told = manifest && manifest->summary ? strstr(manifest->summary, mark) : NULL;
    int length = snprintf(text, size, "its kernel left %" PRId32 " in the status word%s", word, told ? ": " : "");
    if (told && length > 0 && (size_t)length < size)
        put_told(told + sizeof mark - 1, launch, text + length, size - (size_t)length);
}
