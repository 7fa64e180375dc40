/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that must be the same for measured figures to hold, and the differences between two machines. */
#include "base/error.h"
#include "base/memory.h"
#include "machine/build.h"
#include <string.h>

static const char *const NAMES[] = {
#define GY_X(name, text) #text,
    GY_FAMILY_MAP(GY_X)
#undef GY_X
};

const char *gy_family_name(gy_family family)
{
    return (unsigned)family < GY_FAMILY_COUNT ? NAMES[family] : NULL;
}

static const gy_fact *find_fact(const gy_calibration *c, const char *name)
{
    for (uint32_t i = 0; i < c->facts; i++)
        if (!strcmp(c->fact[i].name, name))
            return &c->fact[i];
    return NULL;
}

bool gy_machine_fact(gantry_machine *m, const char *name, const char *value)
{
    gy_calibration *c = &m->calibration;
    gy_fact *grown = gy_arena_calloc(&m->arena, (size_t)c->facts + 1, sizeof *grown);
    gy_fact fact = { name ? gy_machine_text(m, name) : NULL, value ? gy_machine_text(m, value) : NULL };
    if (!grown || !fact.name || !fact.value)
        return false;
    const gy_fact *old = find_fact(c, name);
    uint32_t at = old ? (uint32_t)(old - c->fact) : c->facts++;
    if (c->fact)
        memcpy(grown, c->fact, (c->facts - !old) * sizeof *grown);
    grown[at] = fact;
    c->fact = grown;
    return true;
}

bool gy_machine_facts(gantry_machine *m, const char *lines)
{
    bool ok = true;
    while (*lines && ok) {
        size_t length = strcspn(lines, "\n");
        char *line = gy_strndup(lines, length), *colon = line ? strstr(line, ": ") : NULL;
        if (colon)
            *colon = 0;
        ok = line && (!colon || gy_machine_fact(m, line, colon + 2));
        gy_free(line);
        lines += length + (lines[length] == '\n');
    }
    return ok;
}

int gantry_machine_has_calibration(const gantry_machine *machine)
{
    return machine && machine->calibration.measured;
}

gantry_status gantry_machine_stale(const gantry_machine *machine, const gantry_machine *here, char **text,
                                   gantry_error *err)
{
    GY_NEED(machine, err);
    GY_NEED(here, err);
    GY_NEED(text, err);
    gy_text say = { 0 };
    const gy_calibration *then = &machine->calibration;
    for (uint32_t i = 0; then->measured && i < then->facts; i++) {
        const gy_fact *was = &then->fact[i], *is = find_fact(&here->calibration, was->name);
        if (is && strcmp(was->value, is->value) != 0)
            gy_text_printf(&say, "%s%s was \"%s\" and is \"%s\"", say.length ? ", " : "", was->name, was->value,
                           is->value);
    }
    if (say.failed) {
        gy_text_free(&say);
        return gy_fail_nomem(err);
    }
    *text = say.length ? gy_text_take(&say, NULL) : NULL;
    gy_text_free(&say);
    return GANTRY_OK;
}
