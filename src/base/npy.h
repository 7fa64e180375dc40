/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Headers of NumPy's .npy files (format versions 1.0 to 3.0), little endian and in C order. The data follow the header
 * as plain bytes. bf16, f8e4m3 and f8e5m2, which NumPy has no types for, are "|V2", "|V1" and
 * "<f1", as the ml_dtypes package writes them.
 */
#ifndef GY_BASE_NPY_H
#define GY_BASE_NPY_H

#include "base/file.h"
#include "base/text.h"
#include <gantry/kernel.h>

typedef struct gy_npy {
    gantry_dtype dtype;
    int rank;             /* 0: a single number */
    int64_t *shape;       /* `rank` entries >= 0; gy_npy_free */
    uint64_t data_offset; /* of the first byte of the data in the file */
    uint64_t data_bytes;  /* by dtype and shape; the file may be shorter */
} gy_npy;

/* Reads only the header of the file. GANTRY_E_IO for anything that is wrong with it. */
gantry_status gy_npy_header_read(gy_npy *out, const char *path, gantry_error *err);
/* The same from a file that is open; the data are what is read from it next. */
gantry_status gy_npy_header_get(gy_npy *out, const gy_file *file, gantry_error *err);
/* The same from the beginning of a file in memory; `name` stands for the file in messages. */
gantry_status gy_npy_header_parse(gy_npy *out, const void *data, size_t length, const char *name, gantry_error *err);
/* Appends a header whose length is a multiple of 64, so that mapped data are aligned. */
void gy_npy_header_write(gy_text *to, gantry_dtype dtype, int rank, const int64_t *shape);
void gy_npy_free(gy_npy *npy);

#endif
