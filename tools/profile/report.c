/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run --profile: the profile for people and as JSON. */
#include "profile/profile.h"
#include <string.h>

int profile_json(const session *s, json_t **json)
{
    profile p = { 0 };
    char sentence[LIMIT_TEXT];
    int code = measure_profile(&p, s);
    json_t *devices = json_object(), *links = json_array();
    for (size_t i = 0; i < p.devices; i++)
        json_object_set_new(devices, p.device[i].id,
                            json_pack("{s:f, s:f, s:f, s:f}", "computing_us", p.device[i].computing, "copying_us",
                                      p.device[i].copying, "waiting_us", p.device[i].waiting, "idle_us",
                                      p.device[i].idle));
    for (size_t i = 0; i < p.links; i++)
        json_array_append_new(links, json_pack("{s:s, s:s, s:I, s:f, s:f}", "from", p.link[i].from, "to", p.link[i].to,
                                               "copies", (json_int_t)p.link[i].copies, "bytes", p.link[i].bytes,
                                               "busy_us", p.link[i].busy));
    const char *limit = find_limit(&p, sentence);
    *json = json_pack("{s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:s, s:s}", "start_us", p.start, "span_us", p.span,
                      "active_us", p.active, "predicted_us", p.predicted_us, "single_device_predicted_us", p.single_us,
                      "devices", devices, "links", links, "limited_by", limit, "advice", sentence);
    if (p.phase >= 0)
        json_object_set_new(*json, "phase", json_integer(p.phase));
    free_profile(&p);
    return code;
}

static void print_share(FILE *to, double us, double whole)
{
    char text[UNIT_TEXT];
    fprintf(to, " %10s %3.0f %%", time_text(text, us), whole > 0 ? 100 * us / whole : 0);
}

/* Devices without ops are left out. */
static void print_device_times(FILE *to, json_t *times)
{
    static const char *const keys[] = { "computing_us", "copying_us", "waiting_us", "idle_us" };
    double span = json_number_value(json_object_get(times, "span_us"));
    const char *id;
    json_t *device;
    fprintf(to, "  %-12s %16s %16s %16s %16s\n", "device", "computing", "copying", "waiting", "idle");
    json_object_foreach(json_object_get(times, "devices"), id, device)
    {
        if (json_number_value(json_object_get(device, "idle_us")) >= span)
            continue;
        fprintf(to, "  %-12s", id);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            print_share(to, json_number_value(json_object_get(device, keys[i])), span);
        fprintf(to, "\n");
    }
}

static void print_link_times(FILE *to, json_t *times)
{
    enum { LINKS_SHOWN = 8 }; /* the busiest */
    json_t *links = json_object_get(times, "links"), *link;
    double span = json_number_value(json_object_get(times, "span_us"));
    size_t i;
    json_array_foreach(links, i, link)
    {
        char name[64], text[UNIT_TEXT];
        double busy = json_number_value(json_object_get(link, "busy_us"));
        double bytes = json_number_value(json_object_get(link, "bytes"));
        if (i == 0)
            fprintf(to, "  %-28s %16s %10s %12s %10s\n", "link", "busy", "copies", "moved", "GB/s");
        if (i == LINKS_SHOWN)
            break;
        snprintf(name, sizeof name, "%s -> %s", json_string_value(json_object_get(link, "from")),
                 json_string_value(json_object_get(link, "to")));
        fprintf(to, "  %-28s", name);
        print_share(to, busy, span);
        fprintf(to, " %10lld %12s %10.4g\n", (long long)json_integer_value(json_object_get(link, "copies")),
                bytes_text(text, bytes), busy > 0 ? bytes / busy / 1e3 : 0);
    }
    if (json_array_size(links) > LINKS_SHOWN)
        fprintf(to, "  %zu links more\n", json_array_size(links) - LINKS_SHOWN);
}

void print_profile(FILE *to, json_t *times)
{
    char start[UNIT_TEXT], span[UNIT_TEXT], single[UNIT_TEXT], together[UNIT_TEXT];
    json_t *phase = json_object_get(times, "phase");
    double us = json_number_value(json_object_get(times, "start_us"));
    double alone = json_number_value(json_object_get(times, "single_device_predicted_us"));
    double predicted = json_number_value(json_object_get(times, "predicted_us"));
    time_text(span, json_number_value(json_object_get(times, "span_us")));
    if (phase)
        fprintf(to, "\n  the last start of phase %lld, which takes longest: %s\n", (long long)json_integer_value(phase),
                span);
    else
        fprintf(to, "\n  the last start, %s: its ops take %s, from the beginning of the first to the end of the last\n",
                time_text(start, us), span);
    print_device_times(to, times);
    print_link_times(to, times);
    if (alone > 0 && predicted > 0)
        fprintf(to, "  predicted to be %.2f times as fast as one device: %s, where that takes %s\n", alone / predicted,
                time_text(together, predicted), time_text(single, alone));
    fprintf(to, "  what limits it: %s\n\n", json_string_value(json_object_get(times, "advice")));
}
