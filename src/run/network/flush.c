/* SPDX-License-Identifier: Apache-2.0 */
/* A word that ends all processes follows the text before it from the pipe on, so it is enough that the launcher has
 * read that from the pipe first. */
#include "run/network/network.h"

#include "base/clock.h"
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS INT64_C(5000000000)
enum { NAP_NS = 1000000 };

static bool is_unread(int fd)
{
    struct stat what;
    int bytes = 0;
    return fstat(fd, &what) == 0 && S_ISFIFO(what.st_mode) && ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

void gantry_network_flush(void)
{
    const struct timespec nap = { .tv_nsec = NAP_NS };
    gy_waited waited = gy_waited_begin();
    while ((is_unread(STDOUT_FILENO) || is_unread(STDERR_FILENO)) && gy_waited_look(&waited) < PATIENCE_NS)
        nanosleep(&nap, NULL);
}
