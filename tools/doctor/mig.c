/* SPDX-License-Identifier: Apache-2.0 */
/* Multi-Instance GPU: parts of GPUs have neither peer access nor NVLink. */
#include "doctor.h"
#include <stdlib.h>

#define CAPABILITIES "/proc/driver/nvidia/capabilities"

void check_mig(doctor *d)
{
    char **names, **parts, path[LINE];
    size_t count = list_names(d, &names, CAPABILITIES, "gpu"), instances = 0;
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, CAPABILITIES "/%s/mig", names[i]);
        size_t here = list_names(d, &parts, path, "gi");
        free_names(parts, here);
        instances += here;
    }
    if (instances)
        add_finding(
            d, (finding){ STATE_FOUND, "MIG",
                          text_of("%zu instance%s of GPUs: they copy by way of the host, and NCCL does not join them",
                                  instances, instances == 1 ? "" : "s"),
                          text_of(CAPABILITIES "/gpu*/mig/gi*"),
                          text_of("whoever administers the computer can switch it off: sudo nvidia-smi -mig 0") });
    else if (count)
        add_finding(
            d, (finding){ STATE_FINE, "MIG", text_of("no GPU is cut into instances"), text_of(CAPABILITIES), NULL });
    free_names(names, count);
}
