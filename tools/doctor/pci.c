/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs on the PCI bus, the bridges above them, and the links between: Documentation/ABI/testing/sysfs-bus-pci of Linux.
 */
#include "doctor.h"
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES "/sys/bus/pci/devices"
enum { NVIDIA = 0x10de, AMD = 0x1002, DISPLAY = 0x03, ACCELERATOR = 0x12 }; /* vendors; base classes */

static bool is_gpu(const doctor *d, const char *address)
{
    long vendor = read_number(d, 0, DEVICES "/%s/vendor", address);
    long class = read_number(d, 0, DEVICES "/%s/class", address) >> 16;
    return (vendor == NVIDIA || vendor == AMD) && (class == DISPLAY || class == ACCELERATOR);
}

static bool is_address(const char *word, size_t length)
{
    return length == ADDRESS - 1 && word[4] == ':' && word[7] == ':' && word[10] == '.' &&
           isxdigit((unsigned char)*word);
}

/* The real path of a device has a folder for each bridge above it. */
static void find_bridges(const doctor *d, pci_gpu *gpu)
{
    char link[PATH_ROOM], path[PATH_MAX];
    snprintf(link, sizeof link, "%s" DEVICES "/%s", d->root, gpu->address);
    if (!realpath(link, path))
        return;
    for (const char *at = path; (at = strchr(at, '/'));) {
        at++;
        size_t length = strcspn(at, "/");
        if (is_address(at, length) && at[length] == '/' && gpu->bridges < MOST_ABOVE)
            snprintf(gpu->above[gpu->bridges++], ADDRESS, "%.*s", (int)length, at);
    }
}

bool find_gpus(doctor *d)
{
    char **names;
    size_t count = list_names(d, &names, DEVICES, "");
    d->gpu = calloc(count + 1, sizeof *d->gpu);
    for (size_t i = 0; d->gpu && i < count; i++) {
        if (!is_address(names[i], strlen(names[i])) || !is_gpu(d, names[i]))
            continue;
        pci_gpu *gpu = &d->gpu[d->gpus++];
        snprintf(gpu->address, ADDRESS, "%s", names[i]);
        gpu->node = (int)read_number(d, -1, DEVICES "/%s/numa_node", names[i]);
        find_bridges(d, gpu);
    }
    free_names(names, count);
    return d->gpu != NULL;
}

/* ---- links ---- */

/* "16.0 GT/s PCIe" */
static double speed_of(const doctor *d, const char *address, const char *file)
{
    char line[LINE];
    return read_line(d, line, DEVICES "/%s/%s", address, file) ? strtod(line, NULL) : 0;
}

static char *seen_in(const char *address, const char *file, double is, const char *other, double may)
{
    return text_of(DEVICES "/%s/%s is %g, %s is %g", address, file, is, other, may);
}

/* A link is as wide as it came up, also where it rests. */
static bool check_width(doctor *d, const char *address)
{
    long width = read_number(d, 0, DEVICES "/%s/current_link_width", address);
    long most = read_number(d, 0, DEVICES "/%s/max_link_width", address);
    if (width <= 0 || most <= 0 || width >= most)
        return true;
    add_finding(
        d, (finding){ STATE_FOUND, "PCIe link",
                      text_of("%s has %ld of its %ld lanes, so copies take %.2g times as long", address, width, most,
                              (double)most / (double)width),
                      seen_in(address, "current_link_width", (double)width, "max_link_width", (double)most),
                      text_of("put the card into a slot with %ld lanes, seat it and its riser anew, or look in the "
                              "firmware how lanes are shared out (bifurcation)",
                              most) });
    return false;
}

/* The speed of a link that rests is lowered, so only what both ends could do is held against each other. */
static bool check_speed(doctor *d, const pci_gpu *gpu)
{
    const char *slot = gpu->bridges ? gpu->above[gpu->bridges - 1] : NULL;
    double most = speed_of(d, gpu->address, "max_link_speed"), may = slot ? speed_of(d, slot, "max_link_speed") : 0;
    if (may <= 0 || may >= most)
        return true;
    add_finding(d, (finding){ STATE_FOUND, "PCIe link",
                              text_of("%s could do %g GT/s, its slot %s does %g", gpu->address, most, slot, may),
                              seen_in(slot, "max_link_speed", may, "that of the card", most),
                              text_of("use a slot of a later generation, or raise the generation of the slot in the "
                                      "firmware") });
    return false;
}

void check_links(doctor *d)
{
    bool fine = true, told = false;
    for (size_t i = 0; i < d->gpus; i++) {
        const char *address = d->gpu[i].address;
        told = told || read_number(d, 0, DEVICES "/%s/current_link_width", address) > 0;
        fine = check_width(d, address) && fine;
        fine = check_speed(d, &d->gpu[i]) && fine;
    }
    if (d->gpus && !told)
        add_finding(d,
                    (finding){ STATE_UNKNOWN, "PCIe link", text_of("the system does not tell of the links of GPUs"),
                               text_of(DEVICES "/*/current_link_width is not there"),
                               text_of("sudo lspci -vv shows LnkCap and LnkSta; in a virtual machine ask its host") });
    else if (d->gpus && fine)
        add_finding(d, (finding){ STATE_FINE, "PCIe link", text_of("all links are as wide as they can be"),
                                  text_of(DEVICES "/*/current_link_width, max_link_speed"), NULL });
}
