/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/recall.h"

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "machine/build.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names of entries ---- */

bool gy_recall_is_on(const gantry_machine *here)
{
    const char *word = getenv("GANTRY_MACHINE_CACHE");
    return here->calibration.facts > 0 && !(word && strcmp(word, "off") == 0);
}

gantry_status gy_recall_need(const gantry_machine *here, gantry_error *err)
{
    if (gy_recall_is_on(here))
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                   "nothing is kept of \"%s\": it is no detected machine with GPUs, or GANTRY_MACHINE_CACHE is \"off\"",
                   here->name);
}

/* All that figures depend on, and that a file of them must fit to: no figures, and nothing that changes from day to
 * day. */
static void describe(gy_text *to, const gantry_machine *m)
{
    gy_text_add(to, "machine 1\n");
    for (uint32_t i = 0; i < m->calibration.facts; i++)
        gy_text_printf(to, "%s: %s\n", m->calibration.fact[i].name, m->calibration.fact[i].value);
    for (uint32_t i = 0; i < m->devices; i++)
        gy_text_printf(to, "%s %s %u %d\n", m->device[i].id, m->device[i].kind, m->device[i].memory,
                       m->device[i].ordinal);
    for (uint32_t i = 0; i < m->memories; i++)
        for (uint32_t k = 0; k < m->memories; k++)
            gy_text_printf(to, "%d", (int)gy_machine_route(m, i, k)->kind);
}

static gantry_status open_entry(gy_cache_entry *entry, const gantry_machine *here, gantry_error *err)
{
    gy_text text = { 0 };
    describe(&text, here);
    bool failed = text.failed;
    uint64_t hash = failed ? 0 : gy_hash_bytes(text.at, text.length, 0);
    gy_text_free(&text);
    return failed ? gy_fail_nomem(err) : gy_cache_open(entry, hash, ".machine", err);
}

bool gy_recall_is_writable(const gantry_machine *here)
{
    gy_cache_entry entry;
    if (!gy_recall_is_on(here) || open_entry(&entry, here, NULL))
        return false;
    bool writable = faccessat(entry.folder, ".", W_OK, AT_EACCESS) == 0;
    gy_cache_close(&entry);
    return writable;
}

/* ---- reading ---- */

/* The machine has the parts of `here`, by name. */
static bool fits(const gantry_machine *m, const gantry_machine *here)
{
    bool same = m->devices == here->devices && m->memories == here->memories;
    for (uint32_t i = 0; i < m->devices && same; i++) {
        const gy_device *a = &m->device[i], *b = &here->device[i];
        same = !strcmp(a->id, b->id) && !strcmp(a->kind, b->kind) && a->memory == b->memory && a->gpu == b->gpu &&
               a->ordinal == b->ordinal;
    }
    for (uint32_t i = 0; i < m->memories && same; i++)
        same = !strcmp(m->memory[i].id, here->memory[i].id);
    return same;
}

/* Memory that others hold is another tomorrow. */
static void refresh(gantry_machine *m, const gantry_machine *here)
{
    for (uint32_t i = 0; i < m->memories; i++) {
        m->memory[i].capacity = here->memory[i].capacity;
        m->memory[i].reserved = here->memory[i].reserved;
    }
}

static gantry_status parse(gantry_machine **machine, const gantry_machine *here, const char *text, size_t bytes,
                           const char *path, gantry_error *err)
{
    gantry_machine *m = NULL;
    char *differs = NULL;
    GY_TRY(gantry_machine_parse(&m, text, bytes, path, err));
    gantry_status status = gantry_machine_stale(m, here, &differs, err);
    if (!status && (differs || !fits(m, here)))
        status = gy_fail(err, GANTRY_E_MACHINE, NULL, "%s is of another computer than this one", path);
    gantry_free(differs);
    if (status) {
        gantry_machine_free(m);
        return status;
    }
    refresh(m, here);
    *machine = m;
    return GANTRY_OK;
}

static gantry_status read_entry(gantry_machine **machine, const gy_cache_entry *entry, const gantry_machine *here,
                                gantry_error *err)
{
    struct stat info;
    char *text = NULL;
    size_t bytes = 0;
    *machine = NULL;
    if (fstatat(entry->folder, entry->name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return GANTRY_OK;
    if (info.st_size > GY_RECALL_BYTES || !gy_cache_find(entry, &text, &bytes)) {
        return gy_fail(err, GANTRY_E_IO, NULL,
                       "%s is damaged, or somebody else's; remove it, or measure again with "
                       "`gantry machine calibrate`",
                       entry->path);
    }
    gantry_status status = parse(machine, here, text, bytes, entry->path, err);
    gy_free(text);
    return status;
}

/* ---- marks ---- */

#define MARK "kernels of graph "

static bool is_mark(const char *note)
{
    return !strncmp(note, MARK, strlen(MARK));
}

static const char *mark_of(gantry_machine *m, uint64_t graph_hash)
{
    return gy_arena_printf(&m->arena, MARK "%016" PRIx64 " were measured", graph_hash);
}

bool gy_recall_has_mark(const gantry_machine *m, uint64_t graph_hash)
{
    for (uint32_t i = 0; i < m->notes; i++)
        if (is_mark(m->note[i]) && strtoull(m->note[i] + strlen(MARK), NULL, 16) == graph_hash)
            return true;
    return false;
}

bool gy_recall_mark(gantry_machine *m, uint64_t graph_hash)
{
    return gy_recall_has_mark(m, graph_hash) || gy_machine_note(m, mark_of(m, graph_hash));
}

/* The first so many. */
static void drop_marks(gantry_machine *m, uint32_t many)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->notes; i++)
        if (many && is_mark(m->note[i]))
            many--;
        else
            m->note[kept++] = m->note[i];
    m->notes = kept;
}

/* ---- what is said of it ---- */

static uint32_t count_cases(const gantry_machine *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->kernels; i++)
        count += m->kernel[i].arguments != NULL;
    return count;
}

static char *describe_known(const gantry_machine *m, const char *path)
{
    gy_text text = { 0 };
    bool calibrated = m->calibration.quality[GY_FAMILY_COPIES].figures > 0;
    uint32_t cases = count_cases(m);
    gy_text_printf(&text, "%s%s%" PRIu32 " time%s of kernels for exact arguments, kept in %s",
                   calibrated ? "calibrated" : "", calibrated ? "; " : "", cases, cases == 1 ? "" : "s", path);
    return gy_text_take(&text, NULL);
}

/* A file that cannot be read does no harm: it is as if it were not there, and said. */
static char *describe_trouble(const gantry_error *err)
{
    gy_text text = { 0 };
    gy_text_printf(&text, "what was measured before is not used: %s", err->text);
    return gy_text_take(&text, NULL);
}

gantry_status gy_recall_read(gantry_machine **machine, const gantry_machine *here, char **text, gantry_error *err)
{
    gy_cache_entry entry;
    gantry_error inner = { 0 };
    gantry_machine *found = NULL;
    char *said = NULL;
    gantry_status status = gy_recall_is_on(here) ? open_entry(&entry, here, &inner) : GANTRY_E_IO;
    if (!status) {
        status = read_entry(&found, &entry, here, &inner);
        said = status ? describe_trouble(&inner) : found ? describe_known(found, entry.path) : NULL;
        gy_cache_close(&entry);
        if ((status || found) && !said)
            status = GANTRY_E_NOMEM;
    }
    if (status == GANTRY_E_NOMEM) {
        gantry_machine_free(found);
        gantry_free(said);
        return gy_fail_nomem(err);
    }
    *machine = found ? found : gy_machine_ref(here);
    *text = said;
    return GANTRY_OK;
}

gantry_status gantry_machine_recall(gantry_machine **machine, const gantry_machine *here, char **text,
                                    gantry_error *err)
{
    GY_NEED(machine, err);
    GY_NEED(here, err);
    GY_NEED(text, err);
    GY_TRY(gy_recall_read(machine, here, text, err));
    if (*machine != here)
        drop_marks(*machine, UINT32_MAX);
    return GANTRY_OK;
}

/* ---- writing ---- */

/* The oldest stand first: those that are measured again stand behind the others. */
void gy_recall_trim(gantry_machine *m)
{
    uint32_t marks = 0;
    for (uint32_t i = 0; i < m->notes; i++)
        marks += is_mark(m->note[i]);
    drop_marks(m, marks > GY_RECALL_MARKS ? marks - GY_RECALL_MARKS : 0);
    uint32_t cases = count_cases(m), many = cases > GY_RECALL_CASES ? cases - GY_RECALL_CASES : 0, kept = 0;
    gy_kernel_table *list = (gy_kernel_table *)(uintptr_t)m->kernel; /* in the arena */
    for (uint32_t i = 0; i < m->kernels; i++)
        if (list[i].arguments && many)
            many--;
        else
            list[kept++] = list[i];
    m->kernels = kept;
}

gantry_status gy_recall_keep(const gantry_machine *m, const gantry_machine *here, gantry_error *err)
{
    gy_cache_entry entry;
    gy_text text = { 0 };
    GY_TRY(open_entry(&entry, here, err));
    gy_machine_print(&text, m, 0);
    gy_text_add(&text, "\n");
    gantry_status status = text.failed ? gy_fail_nomem(err) : gy_cache_keep(&entry, text.at, text.length, err);
    gy_text_free(&text);
    gy_cache_close(&entry);
    return status;
}

gantry_status gantry_machine_keep(const gantry_machine *machine, const gantry_machine *here, gantry_error *err)
{
    GY_NEED(machine, err);
    GY_NEED(here, err);
    GY_TRY(gy_recall_need(here, err));
    if (!machine->calibration.measured || !fits(machine, here)) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "machine \"%s\" has %s, and \"%s\" is what was detected; give a calibration of all of it",
                       machine->name, machine->calibration.measured ? "other devices" : "no measured figures",
                       here->name);
    }
    return gy_recall_keep(machine, here, err);
}
