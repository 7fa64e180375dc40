/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the process that NCCL and network cards run into: locked memory, shared memory. */
#include "doctor.h"
#include <stdlib.h>
#include <string.h>

#define MIB INT64_C(1048576)
enum { ENOUGH_LOCKED_MIB = 1024, ENOUGH_SHARED_MIB = 1024 }; /* NVIDIA's containers ask for no limit, and for 1 GiB */

void check_memlock(doctor *d)
{
    char line[LINE];
    if (!read_entry(d, line, "/proc/self/limits", "Max locked memory"))
        return;
    int64_t bytes = strtoll(line, NULL, 10);
    bool unlimited = strncmp(line, "unlimited", 9) == 0;
    if (unlimited || bytes >= ENOUGH_LOCKED_MIB * MIB)
        add_finding(d, (finding){ STATE_FINE, "locked memory",
                                  unlimited ? text_of("no limit") : text_of("%lld MiB", (long long)(bytes / MIB)),
                                  text_of("/proc/self/limits, Max locked memory"), NULL });
    else
        add_finding(d,
                    (finding){ STATE_FOUND, "locked memory",
                               text_of("a process may lock %lld KiB: network cards cannot register buffers, and copies "
                                       "between computers go through pageable memory",
                                       (long long)(bytes / 1024)),
                               text_of("/proc/self/limits, Max locked memory is %lld", (long long)bytes),
                               text_of("ulimit -l unlimited; memlock in /etc/security/limits.conf; docker run --ulimit "
                                       "memlock=-1") });
}

/* Bytes of "rw,nosuid,size=65536k,mode=1777"; 0 where no size is said. */
static int64_t mount_size(const char *words)
{
    char *unit;
    const char *at = words;
    while ((at = strstr(at, "size=")) && at > words && at[-1] != ',')
        at++;
    if (!at)
        return 0;
    int64_t size = strtoll(at + strlen("size="), &unit, 10);
    int shift = *unit == 'k' ? 10 : *unit == 'm' ? 20 : *unit == 'g' ? 30 : 0;
    return size > INT64_MAX >> shift ? INT64_MAX : size << shift;
}

/* The memory file system; without a size it has half of the memory. */
static bool shared_size(const doctor *d, int64_t *bytes)
{
    char line[LINE], memory[LINE];
    const char *const kinds[] = { "tmpfs /dev/shm tmpfs ", "shm /dev/shm tmpfs ", "none /dev/shm tmpfs " };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!read_entry(d, line, "/proc/self/mounts", kinds[i]))
            continue;
        *bytes = mount_size(line);
        if (*bytes == 0 && read_entry(d, memory, "/proc/meminfo", "MemTotal:"))
            *bytes = strtoll(memory, NULL, 10) * 1024 / 2;
        return true;
    }
    return false;
}

void check_shared_memory(doctor *d)
{
    int64_t bytes = 0;
    if (!shared_size(d, &bytes))
        add_finding(d, (finding){ STATE_FOUND, "shared memory",
                                  text_of("there is no /dev/shm, by which processes of NCCL exchange data"),
                                  text_of("/proc/self/mounts"), text_of("mount -t tmpfs tmpfs /dev/shm, as root") });
    else if (bytes < ENOUGH_SHARED_MIB * MIB)
        add_finding(
            d, (finding){
                   STATE_FOUND, "shared memory",
                   text_of("/dev/shm has %lld MiB; NCCL between processes needs more where GPUs have no peer access",
                           (long long)(bytes / MIB)),
                   text_of("the size of /dev/shm in /proc/self/mounts"),
                   text_of("docker run --shm-size=1g (or --ipc=host); else sudo mount -o remount,size=1g "
                           "/dev/shm") });
    else
        add_finding(d,
                    (finding){ STATE_FINE, "shared memory", text_of("/dev/shm has %lld MiB", (long long)(bytes / MIB)),
                               text_of("/proc/self/mounts"), NULL });
}
