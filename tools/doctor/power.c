/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks and power that are capped. Drivers with files in hwmon tell of GPUs; NVIDIA's own has none. */
#include "doctor.h"
#include <stdlib.h>
#include <string.h>

#define HWMON "/sys/bus/pci/devices/%s/hwmon"

/* Microwatts, Documentation/hwmon/sysfs-interface of Linux. True if the GPU tells of a cap. */
static bool check_cap(doctor *d, const char *address, bool *fine)
{
    char path[LINE], **names;
    bool told = false;
    snprintf(path, sizeof path, HWMON, address);
    size_t count = list_names(d, &names, path, "hwmon");
    for (size_t i = 0; i < count; i++) {
        long cap = read_number(d, 0, HWMON "/%s/power1_cap", address, names[i]);
        long most = read_number(d, 0, HWMON "/%s/power1_cap_max", address, names[i]);
        told = told || (cap > 0 && most > 0);
        if (cap <= 0 || cap >= most)
            continue;
        *fine = false;
        add_finding(d, (finding){ STATE_FOUND, "power",
                                  text_of("%s may take %ld W of %ld", address, cap / 1000000, most / 1000000),
                                  text_of(HWMON "/%s/power1_cap, power1_cap_max", address, names[i]),
                                  text_of("write %ld to power1_cap as root, where power and cooling allow it", most) });
    }
    free_names(names, count);
    return told;
}

void check_power(doctor *d)
{
    bool fine = true;
    size_t told = 0;
    for (size_t i = 0; i < d->gpus; i++)
        told += check_cap(d, d->gpu[i].address, &fine);
    if (d->gpus > told)
        add_finding(
            d, (finding){
                   STATE_UNKNOWN, "power",
                   text_of("%zu of %zu GPUs do not tell of caps of power and clocks in files", d->gpus - told, d->gpus),
                   text_of("/sys/bus/pci/devices/*/hwmon has no power1_cap"),
                   text_of("nvidia-smi -q -d PERFORMANCE,POWER,CLOCK: \"Clocks Throttle Reasons\" beside Idle "
                           "are what to look for, and a power limit below the default") });
    else if (told && fine)
        add_finding(d, (finding){ STATE_FINE, "power", text_of("no GPU's power is capped"),
                                  text_of("power1_cap, power1_cap_max in /sys/bus/pci/devices/*/hwmon"), NULL });
}

/* The CPU gives GPUs their work: at half its clock that takes twice as long. */
void check_governors(doctor *d)
{
    long now = read_number(d, 0, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq");
    long most = read_number(d, 0, "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    if (now <= 0 || most <= 0)
        return;
    if (now < most)
        add_finding(
            d, (finding){ STATE_FOUND, "CPU clock", text_of("may rise to %ld MHz of %ld", now / 1000, most / 1000),
                          text_of("scaling_max_freq, cpuinfo_max_freq in /sys/devices/system/cpu/cpu0/cpufreq"),
                          text_of("sudo cpupower frequency-set --max %ldMHz --governor performance", most / 1000) });
    else
        add_finding(d, (finding){ STATE_FINE, "CPU clock", text_of("may rise to %ld MHz, its highest", most / 1000),
                                  text_of("scaling_max_freq in /sys/devices/system/cpu/cpu0/cpufreq"), NULL });
}
