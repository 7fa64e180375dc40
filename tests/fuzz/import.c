/* SPDX-License-Identifier: Apache-2.0 */
/* A file of a foreign format, which the first byte chooses. Text of format "dot" would start another program for each
 * input, so that only the JSON that this program writes is tried. */
#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *format_of(uint8_t byte)
{
    size_t count = 0;
    while (gantry_import_format(count))
        count++;
    return gantry_import_format(byte % count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    char path[64];
    if (size < 2)
        return 0;
    const char *format = format_of(data[0]);
    if (strcmp(format, "dot") == 0 && data[1] != '{')
        return 0;
    fd = fd < 0 ? memfd_create("fuzz", MFD_CLOEXEC) : fd;
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data + 1, size - 1, 0) != (ssize_t)size - 1)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    gantry_status status = gantry_graph_import(&g, &m, format, path, NULL, &err);
    fuzz_check_error(status, &err);
    if (g) {
        char *text;
        size_t length;
        gantry_graph *again = NULL;
        MUST_HOLD(gantry_graph_json(g, &text, &length, &err) == GANTRY_OK, &err);
        MUST_HOLD(gantry_graph_parse(&again, text, length, "again", NULL, NULL, &err) == GANTRY_OK, &err);
        gantry_free(text);
        gantry_graph_free(again);
    }
    gantry_graph_free(g);
    gantry_machine_free(m);
    return 0;
}
