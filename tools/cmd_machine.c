/* SPDX-License-Identifier: Apache-2.0 */
/* gantry machine: this computer or a machine file, for people or as JSON. */
#include "runs/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int print_document(const gantry_machine *machine)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    if (gantry_machine_json(machine, &text, &length, &err))
        return fail(&err);
    int code = write_text("-", text, length);
    gantry_free(text);
    return code;
}

static int print_devices(const gantry_machine *machine)
{
    gantry_error err;
    for (size_t i = 0; i < gantry_machine_device_count(machine); i++) {
        gantry_device_info d = GANTRY_DEVICE_INFO_INIT;
        gantry_memory_info m = GANTRY_MEMORY_INFO_INIT;
        if (gantry_machine_device(machine, i, &d, &err) || gantry_machine_memory(machine, (size_t)d.memory, &m, &err))
            return fail(&err);
        char has[UNIT_TEXT], reserved[UNIT_TEXT], launch[UNIT_TEXT], rate[64] = "no bandwidth_gbs: memory is no limit";
        if (d.bandwidth_gbs > 0)
            snprintf(rate, sizeof rate, "%g GB/s", d.bandwidth_gbs);
        printf("  %-8s %-12s %s, works in %s (%s, %s reserved), %s, launch %s", d.id, d.kind, d.gpu ? "GPU" : "CPU",
               m.id, bytes_text(has, (double)m.capacity), bytes_text(reserved, (double)m.reserved), rate,
               time_text(launch, d.launch_us));
        if (d.signal_us > 0)
            printf(", signal %s", time_text(launch, d.signal_us));
        if (gantry_machine_rank_count(machine) > 1)
            printf(", rank %d", d.rank);
        putchar('\n');
    }
    return EXIT_FINE;
}

static int print_routes(const gantry_machine *machine)
{
    gantry_error err;
    size_t count = gantry_machine_memory_count(machine);
    printf("\n1 MiB from row to column, alone on the machine (- no route)\n%-10s", "");
    for (int pass = 0; pass < 2; pass++)
        for (size_t a = 0; a < count; a++) {
            gantry_memory_info m = GANTRY_MEMORY_INFO_INIT;
            if (gantry_machine_memory(machine, a, &m, &err))
                return fail(&err);
            printf(pass ? "%-10s" : "%12s", m.id);
            for (size_t b = 0; pass && b < count; b++) {
                double us = gantry_machine_copy_us(machine, a, b, 1 << 20);
                char text[UNIT_TEXT];
                printf("%12s", us < 0 ? "-" : time_text(text, us));
            }
            printf(pass || a + 1 == count ? "\n" : "");
        }
    return EXIT_FINE;
}

/* Prints what the back end looked for, indented below it. */
static void print_found(size_t backend)
{
    char *text = NULL;
    if (gantry_backend_describe(backend, &text, NULL))
        return;
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        printf("         %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    gantry_free(text);
}

static void print_backends(void)
{
    printf("\nback ends\n");
    for (size_t i = 0; gantry_backend_name(i); i++) {
        printf("  %-6s %s\n", gantry_backend_name(i), gantry_backend_summary(i));
        print_found(i);
    }
}

static int print_machine(const gantry_machine *machine, const known_computer *k)
{
    gantry_error err;
    gantry_memory_info host = GANTRY_MEMORY_INFO_INIT;
    if (gantry_machine_memory(machine, 0, &host, &err))
        return fail(&err);
    size_t devices = gantry_machine_device_count(machine), memories = gantry_machine_memory_count(machine);
    printf("%s: %zu device%s, %zu memor%s", gantry_machine_name(machine), devices, devices == 1 ? "" : "s", memories,
           memories == 1 ? "y" : "ies");
    if (gantry_machine_rank_count(machine) > 1)
        putchar('\n'); /* each rank has its own, by its name */
    else
        printf("; that of the host is %s\n", host.id);
    if (k->text)
        printf("  known: %s\n", k->text);
    int code = print_devices(machine);
    if (!code)
        code = print_routes(machine);
    if (!code)
        print_backends();
    return code;
}

static int report(const gantry_machine *machine, const options *o, const known_computer *k)
{
    gantry_error err;
    if (o->json || uses_stdout(o))
        return print_document(machine);
    if (o->out)
        return gantry_machine_save(machine, o->out, &err) ? fail(&err) : EXIT_FINE;
    return print_machine(machine, k);
}

/* "show", a file, or the name of a machine that comes with Gantry: a word that is none of them may be misspelt. */
static int find_file(const char *word, options *with, char **owned)
{
    const char *const words[] = { "show", "calibrate", "cluster", "join" };
    char near[64];
    if (strcmp(word, "show") == 0)
        return EXIT_FINE;
    if (strcmp(word, "-") != 0 && access(word, F_OK) != 0 && *near_miss(near, sizeof near, word, words, 4)) {
        complain("gantry machine: no file \"%s\"%s\n", word, near);
        return EXIT_USAGE;
    }
    with->machine = word;
    return find_data(&with->machine, owned, "machine", "machines");
}

/* Words and options that go with one kind of machine only. */
static int check_words(const options *o, const char *word)
{
    bool join = strcmp(word, "join") == 0, cluster = strcmp(word, "cluster") == 0;
    if (!cluster && (o->islands || o->rails || o->nic > 0)) {
        complain("gantry machine: --islands, --rails and --nic go with \"cluster\", not with \"%s\"\n", word);
        return EXIT_USAGE;
    }
    if (!join && o->link) {
        complain("gantry machine: --link goes with \"join\", not with \"%s\"\n", word);
        return EXIT_USAGE;
    }
    if (!join && o->positional.count > 1) {
        complain("gantry machine: \"%s\" is one word too many; only \"join\" takes several files\n",
                 o->positional.at[1]);
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

/* "join" without files: what the processes that mpirun started have. */
static int join_processes(const options *o)
{
    options mine = *o;
    ranks r = { 0 };
    mine.devices = NULL;
    int code = join_ranks(&r, &mine);
    if (!code && !r.network) {
        complain("gantry machine: no files to join; give some, gantry machine join FILE FILE ... --link LINK, or start "
                 "processes on the computers, such as mpirun -n 4 gantry machine join -o FILE\n");
        code = EXIT_USAGE;
    }
    code = code ? code : find_machine(&r, &mine, o->link);
    code = code ? code : report(r.found, &mine, &(known_computer){ 0 });
    return leave_ranks(&r, code);
}

static int run(const options *o)
{
    options with = *o;
    gantry_machine *machine = NULL;
    known_computer k = { 0 };
    char *owned = NULL;
    const char *word = o->positional.count ? o->positional.at[0] : "show";
    bool measure = strcmp(word, "calibrate") == 0, join = strcmp(word, "join") == 0;
    int code = check_words(o, word);
    if (code || strcmp(word, "cluster") == 0)
        return code ? code : write_cluster(o);
    if (join && o->positional.count == 1)
        return join_processes(o);
    if (measure || join)
        code = measure ? calibrate_machine(&machine, o) : join_machines(&machine, o);
    else if (!(code = find_file(word, &with, &owned)))
        code = load_machine(&machine, &with, NULL, &k);
    if (!code && measure)
        keep_machine(machine, o);
    if (!code)
        code = report(machine, o, &k);
    known_free(&k);
    gantry_machine_free(machine);
    free(owned);
    return code;
}

const command command_machine = {
    "machine",
    "[show|calibrate|cluster|join [FILE...]|FILE]",
    "shows this computer or a machine file: devices, memories, what copies cost, back ends; measures its GPUs; or "
    "writes a file of many, or of several that are joined",
    0,
    4097,
    "devices spread seconds islands rails nic link out json",
    "  gantry machine\n  gantry machine dgx1-v100\n  gantry machine show --devices 4 -o "
    "host-4.json\n  gantry machine calibrate -o this.json              measures GPUs and links, in less than a "
    "minute\n"
    "  gantry machine calibrate                           the same, kept for this user's runs and schedules\n"
    "  gantry machine cluster --islands 8x8 -o 64.json    64 GPUs in 8 islands, to plan for\n"
    "  gantry machine join a.json b.json --link latency_us=2,GBps=12.5 -o ab.json    two computers, as ranks 0 and 1\n"
    "  mpirun -n 4 --hostfile hosts gantry machine join -o all.json    those of the processes; measures the network\n",
    run
};
