/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long runs, with results checked at every start and memory watched. Ends after a count or a time, whichever is first,
 * with one line of figures; exit code 1: something was wrong or grew; 3: nothing moved for a minute; 77: no such GPUs.
 *
 *   endure starts N     one graph started N times (--threads T: as many runs at once)
 *   endure remake N     a graph, machine, schedule and run made, started twice and freed, N times
 *   endure together N   two processes with two runs each at once on the same devices
 *   endure random N     N random graphs, on 1 to D devices against one device of the CPU
 *   endure stencil N    a stencil over the devices, started N times, every word of every start against a closed form
 *   options: --backend host|cuda --devices D --replay stream|graph|device --seconds S --seed K --shared (others use the
 * GPUs) --starts T (how often a random graph is started one behind the other at its end)
 */
#include "soak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct mode {
    const char *name;
    int (*run)(const settings *s);
} mode;

static const mode modes[] = { { "starts", soak_starts },
                              { "remake", soak_remake },
                              { "together", soak_together },
                              { "random", soak_random },
                              { "stencil", soak_stencil } };

static bool take_option(settings *s, const char *name, const char *value)
{
    if (strcmp(name, "--backend") == 0)
        s->backend = value;
    else if (strcmp(name, "--replay") == 0)
        s->replay = value;
    else if (strcmp(name, "--devices") == 0)
        s->devices = atoi(value);
    else if (strcmp(name, "--threads") == 0)
        s->threads = atoi(value);
    else if (strcmp(name, "--seconds") == 0)
        s->seconds = strtod(value, NULL);
    else if (strcmp(name, "--seed") == 0)
        s->seed = strtoull(value, NULL, 10);
    else if (strcmp(name, "--starts") == 0)
        s->starts = strtoull(value, NULL, 10);
    else
        return false;
    return true;
}

static bool take_options(settings *s, int argc, char **argv)
{
    for (int i = 3; i < argc; i++)
        if (strcmp(argv[i], "--shared") == 0)
            s->shared = true;
        else if (i + 1 == argc || !take_option(s, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    return s->count > 0 && s->devices > 0 && s->devices <= MOST_GPUS && s->threads > 0 && s->seconds > 0;
}

int main(int argc, char **argv)
{
    settings s = {
        .program = "/proc/self/exe", .backend = "host", .seed = 1, .seconds = 3600, .devices = 1, .threads = 1
    };
    s.count = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    if (!take_options(&s, argc, argv)) {
        fprintf(stderr,
                "usage: endure starts|remake|together|random|stencil N [--backend B] [--devices D] [--replay R] "
                "[--threads T] [--seconds S] [--seed K] [--shared] [--starts T]\n");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(argv[1], modes[i].name) != 0)
            continue;
        if (strcmp(s.backend, "cuda") == 0 && modes[i].run != soak_together && !count_gpus(&s)) {
            printf("skipped: there are fewer than %d GPUs here\n", s.devices);
            return EXIT_SKIPPED;
        }
        return modes[i].run(&s);
    }
    fprintf(stderr, "endure: no mode \"%s\"\n", argv[1]);
    return EXIT_USAGE;
}
