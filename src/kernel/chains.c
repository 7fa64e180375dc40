/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the library whose steps wait for each other on a GPU, however little each has to do: rows of triangles,
 * and columns of a factor, each of which goes through all rows below it. In waits for memory of 0.6 us; measured on an
 * H200 with cuBLAS and cuSOLVER, in f64 and f32: a row of getrs 0.65 to 0.8 us for 2 to 256 right sides and 0.14 to 0.2
 * us for one, a column of qr 4 us and 0.28 us for each 1,000 rows. Tall matrices go by blocks of rows (forms.c).
 */
#include "kernel/registry.h"
#include <string.h>

static const struct {
    const char *kernel, *waits;
} chains[] = { { "getrs", "(1 + 3 * (b.size > a.rows)) * a.rows // 4" },
               { "qr", "(1 - (r.rows <= 64) * (a.rows >= 4 * r.rows)) * r.rows * (7 + a.rows // 2150)" },
               { "trsm", "a.rows // 2" } };

const char *gy_kernel_chain(const char *kernel)
{
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
        if (strcmp(chains[i].kernel, kernel) == 0)
            return chains[i].waits;
    return NULL;
}
