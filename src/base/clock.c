/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

#define MOST_UNSEEN_NS INT64_C(50000000)

int64_t gy_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

gy_waited gy_waited_begin(void)
{
    return (gy_waited){ .looked_ns = gy_now_ns() };
}

int64_t gy_waited_look(gy_waited *w)
{
    int64_t now = gy_now_ns(), passed = now - w->looked_ns;
    w->looked_ns = now;
    if (passed > 0)
        w->ns += passed < MOST_UNSEEN_NS ? passed : MOST_UNSEEN_NS;
    return w->ns;
}
