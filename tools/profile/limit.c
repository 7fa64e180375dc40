/* SPDX-License-Identifier: Apache-2.0 */
/* The one thing that bounds a start most, by shares of its time, and what would help against it. */
#include "profile/profile.h"
#include <string.h>

/* Shares from which on each is called the bound. */
static const double host_share = 0.4, device_share = 0.8, link_share = 0.6;

typedef struct shares {
    const device_time *busiest;
    double most, mean; /* computing: of the busiest device, of all on average */
    double link;       /* of the busiest link */
    double host;       /* no op runs */
} shares;

static shares share_out(const profile *p)
{
    shares s = { 0 };
    double whole = p->start > 0 ? p->start : 1;
    size_t used = 0;
    for (size_t i = 0; i < p->devices; i++) {
        const device_time *d = &p->device[i];
        if (d->computing + d->copying <= 0)
            continue;
        used++;
        s.mean += d->computing / whole;
        if (!s.busiest || d->computing > s.busiest->computing)
            s.busiest = d;
    }
    s.mean /= used ? (double)used : 1;
    s.most = s.busiest ? s.busiest->computing / whole : 0;
    s.link = p->links ? p->link[0].busy / whole : 0;
    s.host = 1 - p->active / whole;
    return s;
}

static double kernel_time(const profile *p, const char *kernel)
{
    double total = 0;
    for (size_t i = 0; i < p->slices; i++)
        if (p->slice[i].kernel && strcmp(p->slice[i].kernel, kernel) == 0)
            total += p->slice[i].end - p->slice[i].start;
    return total;
}

/* The kernel that takes most time; NULL if none is called. */
static const char *longest_kernel(const profile *p)
{
    const char *longest = NULL;
    double most = 0;
    for (size_t i = 0; i < p->slices; i++) {
        const char *kernel = p->slice[i].kernel;
        if (!kernel || (longest && strcmp(kernel, longest) == 0))
            continue;
        double total = kernel_time(p, kernel);
        if (!longest || total > most) {
            longest = kernel;
            most = total;
        }
    }
    return longest;
}

const char *find_limit(const profile *p, char to[LIMIT_TEXT])
{
    shares s = share_out(p);
    const char *kernel = longest_kernel(p);
    if (p->slices == 0) {
        snprintf(to, LIMIT_TEXT, "nothing was carried out");
        return "nothing";
    }
    if (s.host >= host_share) {
        snprintf(
            to, LIMIT_TEXT,
            "the host: for %.0f %% of the start no op runs anywhere; larger parts, fewer nodes, or --replay graph or "
            "device on GPUs would help",
            100 * s.host);
        return "host";
    }
    if (s.mean >= device_share) {
        snprintf(
            to, LIMIT_TEXT,
            "the devices: they compute for %.0f %% of the start on average; more devices would help, or less work%s%s",
            100 * s.mean, kernel ? ", most of which is kernel " : "", kernel ? kernel : "");
        return "devices";
    }
    if (s.link >= link_share && s.link > s.most) {
        snprintf(to, LIMIT_TEXT,
                 "the link %s -> %s: it is busy for %.0f %% of the start; parts that need less of each other, a faster "
                 "link, or "
                 "starts that overlap (--objective period) would help",
                 p->link[0].from, p->link[0].to, 100 * s.link);
        return "link";
    }
    if (s.most >= device_share) {
        snprintf(
            to, LIMIT_TEXT,
            "device %s: it computes for %.0f %% of the start, devices on average for %.0f %%; more parts, or parts of "
            "equal work, would help",
            s.busiest->id, 100 * s.most, 100 * s.mean);
        return "balance";
    }
    snprintf(to, LIMIT_TEXT,
             "dependencies: no device computes for more than %.0f %% of the start and no link is busy for more than "
             "%.0f %%, so "
             "ops wait for each other; smaller parts, or starts that overlap (--objective period), would help",
             100 * s.most, 100 * s.link);
    return "dependencies";
}
