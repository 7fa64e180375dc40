/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The schedule of the first attempt of gantry run --processes, for those after a loss: what is planned depends on
 * devices alone, so it is dealt out to the processes that are left, and not planned again. The launcher makes a folder
 * for it. A rank that does not find it there, as on another computer, plans for itself, and comes to the same.
 */
#include "launch.h"
#include "runs/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 4096 };

/* False: no launcher made a folder, or the path is too long. */
static bool path_of(char path[ROOM], const char *name)
{
    const char *folder = getenv(KEPT);
    return folder && snprintf(path, ROOM, "%s/%s", folder, name) < ROOM;
}

/* ---- dealing out ---- */

/* Another machine in a schedule, and in those of its phases. */
static bool give_machine(json_t *schedule, json_t *machine)
{
    size_t i;
    json_t *phase, *phases = json_object_get(schedule, "phases");
    bool fine = json_object_set(schedule, "machine", machine) == 0;
    json_array_foreach(phases, i, phase)
    {
        fine = fine && give_machine(json_object_get(phase, "schedule"), machine);
    }
    return fine;
}

/* The same schedule on the machine. */
static bool move_to(gantry_schedule **schedule, const gantry_machine *machine)
{
    char *text = NULL, *moved = NULL;
    gantry_schedule *made = NULL;
    json_t *to = NULL, *all = NULL;
    if (!gantry_machine_json(machine, &text, NULL, NULL))
        to = json_loads(text, 0, NULL);
    gantry_free(text);
    text = NULL;
    if (to && !gantry_schedule_json(*schedule, &text, NULL, NULL))
        all = json_loads(text, 0, NULL);
    gantry_free(text);
    if (all && give_machine(all, to))
        moved = json_dumps(all, JSON_REAL_PRECISION(17));
    bool done = moved && !gantry_schedule_parse(&made, moved, strlen(moved), NULL, NULL);
    if (done) {
        gantry_schedule_free(*schedule);
        *schedule = made;
    }
    free(moved);
    json_decref(all);
    json_decref(to);
    return done;
}

/* As load_machine deals devices out. */
static bool deal_out(gantry_schedule **schedule, const options *o)
{
    const gantry_machine *from = gantry_schedule_machine(*schedule);
    size_t workers = gantry_machine_worker_count(from), wanted = o->processes > 1 ? (size_t)o->processes : 1;
    gantry_machine *machine = NULL;
    wanted = wanted < workers ? wanted : workers;
    if (gantry_machine_rank_count(from) == wanted)
        return true;
    bool done = !gantry_machine_spread(&machine, from, wanted, NULL) && move_to(schedule, machine);
    gantry_machine_free(machine);
    return done;
}

static size_t count_gpus(const gantry_machine *m)
{
    size_t count = 0;
    gantry_device_info info = GANTRY_DEVICE_INFO_INIT;
    for (size_t i = 0; i < gantry_machine_device_count(m); i++)
        count += !gantry_machine_device(m, i, &info, NULL) && info.gpu;
    return count;
}

/* A GPU may have gone with the loss: then what is left is planned for. Devices of a file are what that says. */
static bool is_still_there(const gantry_schedule *kept, const options *o, const gantry_graph *graph)
{
    const char *json = NULL, *path = NULL;
    gantry_machine *here = NULL;
    size_t wanted = count_gpus(gantry_schedule_machine(kept));
    gantry_graph_machine_hint(graph, &json, &path);
    if (!wanted || o->machine || json || path)
        return true;
    if (o->found)
        return count_gpus(o->found) >= wanted;
    bool there = !gantry_machine_detect(&here, NULL, NULL) && count_gpus(here) >= wanted;
    gantry_machine_free(here);
    return there;
}

bool take_kept(gantry_schedule **schedule, const options *o, gantry_graph *graph)
{
    char path[ROOM];
    *schedule = NULL;
    bool taken = path_of(path, KEPT_SCHEDULE) && access(path, R_OK) == 0 &&
                 !gantry_schedule_load(schedule, path, NULL) && is_still_there(*schedule, o, graph) &&
                 deal_out(schedule, o) && !gantry_schedule_attach(*schedule, graph, NULL);
    if (!taken) {
        gantry_schedule_free(*schedule);
        *schedule = NULL;
    }
    return taken;
}

/* ---- keeping ---- */

/* A machine that processes found, of which some routes are of a network: what is left of it after a loss, others find.
 */
static bool is_of_several(const gantry_machine *found)
{
    char *text = NULL;
    json_t *all = gantry_machine_json(found, &text, NULL, NULL) ? NULL : json_loads(text, 0, NULL), *route;
    size_t i;
    bool several = !all;
    json_array_foreach(json_object_get(all, "routes"), i, route)
    {
        several = several || json_is_true(json_object_get(route, "network"));
    }
    json_decref(all);
    gantry_free(text);
    return several;
}

bool is_plain_computer(const gantry_machine *found)
{
    return !count_gpus(found) && !is_of_several(found);
}

/* True if devices of one computer were dealt out; a machine of several ranks stays as it is. */
static bool is_dealt(const options *o, const gantry_graph *graph)
{
    options alone = *o;
    const char *json = NULL, *path = NULL;
    gantry_machine *machine = NULL;
    alone.processes = 0;
    gantry_graph_machine_hint(graph, &json, &path);
    if (o->spread || (o->found && is_of_several(o->found)))
        return false;
    if (!o->machine && !json && !path) /* this computer */
        return true;
    bool dealt = !load_machine(&machine, &alone, graph, NULL) && gantry_machine_rank_count(machine) == 1;
    gantry_machine_free(machine);
    return dealt;
}

void keep_schedule(const gantry_schedule *schedule, const options *o, const gantry_graph *graph)
{
    char path[ROOM], part[ROOM], *text = NULL;
    size_t length = 0;
    bool first = path_of(path, KEPT_SCHEDULE) && path_of(part, KEPT_PART) && access(path, F_OK) != 0;
    if (!first || !is_dealt(o, graph) || gantry_schedule_json(schedule, &text, &length, NULL))
        return;
    FILE *file = fopen(part, "wb");
    bool whole = file && fwrite(text, 1, length, file) == length;
    whole = file && fclose(file) == 0 && whole;
    if (whole)
        whole = rename(part, path) == 0;
    if (!whole) /* then each attempt plans */
        unlink(part);
    gantry_free(text);
}

void keep_loss(void)
{
    char path[ROOM];
    FILE *file = path_of(path, KEPT_LOSS) ? fopen(path, "wb") : NULL;
    if (file)
        fclose(file);
}

/* ---- of the launcher ---- */

bool has_loss(const char *folder)
{
    char path[KEPT_ROOM + 32];
    snprintf(path, sizeof path, "%s/%s", folder, KEPT_LOSS);
    return *folder && access(path, F_OK) == 0;
}

bool kept_loss(const char *folder)
{
    char path[KEPT_ROOM + 32];
    snprintf(path, sizeof path, "%s/%s", folder, KEPT_LOSS);
    return *folder && unlink(path) == 0;
}

void kept_begin(char folder[KEPT_ROOM])
{
    const char *where = getenv("TMPDIR");
    int length = snprintf(folder, KEPT_ROOM, "%s/gantry-run-XXXXXX", where && *where ? where : "/tmp");
    if (length >= KEPT_ROOM || !mkdtemp(folder))
        *folder = 0;
}

void kept_end(const char *folder)
{
    static const char *const names[] = { KEPT_SCHEDULE, KEPT_PART, KEPT_LOSS };
    char path[KEPT_ROOM + 32];
    for (size_t i = 0; *folder && i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    if (*folder)
        rmdir(folder);
}
