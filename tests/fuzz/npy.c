/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a .npy file. */
#include "base/npy.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gy_npy npy = { 0 };
    gantry_error err = { 0 };
    gantry_status status = gy_npy_header_parse(&npy, data, size, "fuzz.npy", &err);
    fuzz_check_error(status, &err);
    if (status)
        return 0;
    MUST_HOLD(npy.data_offset <= size, &err);
    gy_text text = { 0 };
    gy_npy again = { 0 };
    gy_npy_header_write(&text, npy.dtype, npy.rank, npy.shape);
    MUST_HOLD(gy_npy_header_parse(&again, text.at, text.length, "again.npy", &err) == GANTRY_OK, &err);
    MUST_HOLD(again.dtype == npy.dtype && again.rank == npy.rank && again.data_bytes == npy.data_bytes, &err);
    for (int i = 0; i < npy.rank; i++)
        MUST_HOLD(again.shape[i] == npy.shape[i], &err);
    gy_text_free(&text);
    gy_npy_free(&again);
    gy_npy_free(&npy);
    return 0;
}
