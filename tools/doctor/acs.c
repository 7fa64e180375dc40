/* SPDX-License-Identifier: Apache-2.0 */
/* Access Control Services of PCI bridges, and the IOMMU: both send what GPUs write to each other by way of the CPU. */
#include "doctor.h"
#include <stdlib.h>
#include <string.h>

/* PCI Express Base Specification: extended capabilities begin at 0x100, each with a header of id, version and the next
 * one's offset; Access Control Services is number 13, its control register 6 bytes behind its header. */
enum { CONFIG = 4096, EXTENDED = 0x100, HEADER = 4, ACS = 0x0d, ACS_CONTROL = 6 };
enum { REQUEST_REDIRECT = 0x4, COMPLETION_REDIRECT = 0x8 }; /* of peer-to-peer traffic */

static unsigned at16(const unsigned char *config, size_t offset)
{
    return config[offset] | (unsigned)config[offset + 1] << 8;
}

typedef enum acs_state { ACS_NONE, ACS_OFF, ACS_ON, ACS_HIDDEN } acs_state;

static acs_state read_acs(const doctor *d, const char *address)
{
    unsigned char config[CONFIG];
    char path[LINE];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/config", address);
    size_t length = read_bytes(d, config, sizeof config, path), at = EXTENDED;
    if (length < EXTENDED + HEADER)
        return ACS_HIDDEN;
    for (int turns = 0; turns < CONFIG / HEADER && at >= EXTENDED && at + ACS_CONTROL + 2 <= length; turns++) {
        if (at16(config, at) == ACS)
            return at16(config, at + ACS_CONTROL) & (REQUEST_REDIRECT | COMPLETION_REDIRECT) ? ACS_ON : ACS_OFF;
        at = at16(config, at + 2) >> 4;
    }
    return ACS_NONE;
}

/* A bridge is looked at once, however many GPUs are below. */
static bool is_first(const doctor *d, size_t gpu, int bridge)
{
    for (size_t i = 0; i <= gpu; i++)
        for (int k = 0; k < (i == gpu ? bridge : d->gpu[i].bridges); k++)
            if (strcmp(d->gpu[i].above[k], d->gpu[gpu].above[bridge]) == 0)
                return false;
    return true;
}

static char *join(char *list, const char *word)
{
    char *longer = text_of("%s%s%s", list ? list : "", list ? ", " : "", word);
    free(list);
    return longer;
}

void check_acs(doctor *d)
{
    char *on = NULL;
    size_t ons = 0, hidden = 0, bridges = 0;
    for (size_t i = 0; d->gpus > 1 && i < d->gpus; i++) {
        for (int k = 0; k < d->gpu[i].bridges; k++) {
            if (!is_first(d, i, k))
                continue;
            acs_state state = read_acs(d, d->gpu[i].above[k]);
            bridges++;
            hidden += state == ACS_HIDDEN;
            ons += state == ACS_ON;
            if (state == ACS_ON)
                on = join(on, d->gpu[i].above[k]);
        }
    }
    if (ons)
        add_finding(
            d, (finding){
                   STATE_FOUND, "ACS",
                   text_of("bridges above GPUs send what these write to each other up to the CPU: %s", on ? on : ""),
                   text_of("the control register of Access Control Services in /sys/bus/pci/devices/*/config"),
                   text_of("switch ACS off in the firmware, or for now: sudo setpci -s ADDRESS "
                           "ECAP_ACS+6.w=0 for each; not where virtual machines share the GPUs") });
    else if (hidden)
        add_finding(d,
                    (finding){ STATE_UNKNOWN, "ACS",
                               text_of("%zu of %zu bridges above GPUs do not show if they redirect", hidden, bridges),
                               text_of("/sys/bus/pci/devices/*/config ends before byte 256, as for all but root"),
                               text_of("sudo gantry doctor") });
    else if (bridges)
        add_finding(d, (finding){ STATE_FINE, "ACS",
                                  text_of("no bridge above GPUs redirects what they write to each other"),
                                  text_of("/sys/bus/pci/devices/*/config of %zu bridges", bridges), NULL });
    free(on);
}

/* "identity" lets addresses through; "DMA" and "DMA-FQ" translate them. */
void check_iommu(doctor *d)
{
    char type[LINE];
    bool told = false;
    for (size_t i = 0; d->gpus > 1 && i < d->gpus; i++) {
        const char *address = d->gpu[i].address;
        if (!read_line(d, type, "/sys/bus/pci/devices/%s/iommu_group/type", address))
            continue;
        told = true;
        if (strncmp(type, "DMA", 3) != 0)
            continue;
        add_finding(d,
                    (finding){ STATE_FOUND, "IOMMU",
                               text_of("addresses of %s are translated, so GPUs reach each other by way of the CPU, or "
                                       "not at all",
                                       address),
                               text_of("/sys/bus/pci/devices/%s/iommu_group/type is %s", address, type),
                               text_of("boot with iommu=pt (or amd_iommu=off, intel_iommu=off), or switch VT-d or "
                                       "AMD-Vi off in the firmware") });
        return;
    }
    if (d->gpus > 1)
        add_finding(d, (finding){ STATE_FINE, "IOMMU", text_of("addresses of GPUs are not translated"),
                                  told ? text_of("/sys/bus/pci/devices/*/iommu_group/type")
                                       : text_of("/sys/bus/pci/devices/*/iommu_group is not there"),
                                  NULL });
}
