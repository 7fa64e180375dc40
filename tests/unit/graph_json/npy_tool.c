/* SPDX-License-Identifier: Apache-2.0 */
/* npy_tool show FILE: dtype, shape and where the data begin. npy_tool make DTYPE N...: a header, to standard output. */
#include "base/npy.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int show(const char *path)
{
    gy_npy npy;
    gantry_error err;
    if (gy_npy_header_read(&npy, path, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("%s", gantry_dtype_name(npy.dtype));
    for (int i = 0; i < npy.rank; i++)
        printf(" %" PRId64, npy.shape[i]);
    printf(" @%" PRIu64 "+%" PRIu64 "\n", npy.data_offset, npy.data_bytes);
    gy_npy_free(&npy);
    return 0;
}

static int make(int count, char **word)
{
    int64_t shape[16];
    gy_text text = { 0 };
    gantry_dtype dtype = GANTRY_F16;
    while (dtype < GANTRY_DTYPE_COUNT && strcmp(gantry_dtype_name(dtype), word[0]) != 0)
        dtype++;
    for (int i = 1; i < count; i++)
        shape[i - 1] = atoll(word[i]);
    gy_npy_header_write(&text, dtype, count - 1, shape);
    size_t written = fwrite(text.at, 1, text.length, stdout);
    int rc = written == text.length ? 0 : 1;
    gy_text_free(&text);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "show") == 0)
        return show(argv[2]);
    return argc > 2 && argc < 18 && strcmp(argv[1], "make") == 0 ? make(argc - 2, argv + 2) : 2;
}
