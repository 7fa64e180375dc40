/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of kernels of the library that GPUs carry out in another way than most, so that the times of these say nothing
 * of them: a machine has a table for each form.
 */
#include "kernel/registry.h"
#include <string.h>

static const gy_kernel_form forms[] = {
    { "attention_grad", "attention_grad:whole", "lse.size == 0" }, /* the forward pass is carried out again */
    { "fft", "fft:long", "(axis == 0) * x.rows + (axis == -2) * x.last1 >= 4096" }, /* no block can hold a line */
    { "qr", "qr:tall", "(r.rows <= 64) * (a.rows >= 4 * r.rows)" }, /* by blocks of rows: gy_plain_qr_is_tall */
};

const gy_kernel_form *gy_kernel_form_of(const char *kernel)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].kernel, kernel) == 0)
            return &forms[i];
    return NULL;
}
