/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <string.h>

void fuzz_check_error(gantry_status status, const gantry_error *err)
{
    if (status == GANTRY_OK || status == GANTRY_E_NOMEM)
        return;
    MUST_HOLD(err->status == status, err);
    MUST_HOLD(err->text[0] != '\0', err);
    MUST_HOLD(strncmp(err->text, "internal error:", 15) != 0, err);
}
