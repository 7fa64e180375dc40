/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the offset packer fails once: "out of memory", nothing leaks, and the next try works. */
#include "scheduler/pack/offsets.h"

#include "support/faults.h"
#include <stdio.h>

/* Fits its load of 5 bytes only if the long ones lie at 2 and 3: greedy needs 6, so the search runs. */
static const gy_offset_item item[] = { { 4, 5, 2, 3 }, { 5, 6, 2, 2 }, { 2, 6, 2, 3 }, { 0, 6, 1, 1 } };
#define COUNT (sizeof item / sizeof *item)

int main(void)
{
    int n = 0, wrong = 0;
    for (int failed = 1; failed && !wrong; n++) {
        uint64_t offset[COUNT];
        gy_offset_answer answer = { 0 };
        gantry_error err;
        faults_after(n);
        gantry_status status = gy_offsets_find(item, COUNT, 5, 1000, offset, &answer, &err);
        failed = faults_off();
        wrong = status != (failed ? GANTRY_E_NOMEM : GANTRY_OK) || (!status && (!answer.fits || !answer.steps));
    }
    printf("%d allocations\n", n - 1);
    return wrong || n < 20;
}
