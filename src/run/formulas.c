/* SPDX-License-Identifier: Apache-2.0 */
/* The text that is compiled has nothing of a graph's text in it (maths/host.c), so nobody has to allow it. */
#include "run/usercode/usercode.h"

#include "base/error.h"
#include "base/memory.h"
#include "maths/maths.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static bool is_wanted(void)
{
    const char *word = secure_getenv("GANTRY_COMPILE_FORMULAS");
    return word && strcmp(word, "1") == 0;
}

static bool make_room(gy_formulas *f, uint32_t count)
{
    if (f->count)
        return true;
    f->code = gy_calloc(count, sizeof *f->code);
    f->object = gy_calloc(count, sizeof *f->object);
    if (!f->code || !f->object) {
        gy_formulas_free(f);
        return false;
    }
    f->count = count;
    return true;
}

static gantry_status find_steps(gy_maths_steps_fn *steps, void *object, gantry_error *err)
{
    void *symbol = dlsym(object, GY_MATHS_ENTRY);
    memcpy(steps, &symbol,
           sizeof *steps); /* POSIX lets a function's address travel in a void pointer; ISO C does not */
    return symbol ? GANTRY_OK
                  : gy_fail(err, GANTRY_E_GRAPH, NULL, "what the compiler made of formulas.c has no " GY_MATHS_ENTRY);
}

static gantry_status compile(void **object, gy_maths_steps_fn *steps, const gy_maths_program *program,
                             gy_text_compiler *by, gantry_error *err)
{
    gy_text text = { 0 };
    gy_object made = { 0 };
    gy_maths_print_c(&text, program);
    gantry_status status = text.failed ? gy_fail_nomem(err) : gy_compile_text(&made, text.at, text.length, by, err);
    gy_text_free(&text);
    if (status)
        return status;
    status = gy_object_load(object, &made, "formulas.c", err);
    status = status ? status : find_steps(steps, *object, err);
    gy_free(made.at);
    return status;
}

const gy_maths_code *gy_formulas_find(gy_formulas *f, const gantry_graph *graph, uint32_t kernel)
{
    const gy_maths_program *program = graph->kernels.at[kernel].program;
    gantry_error err = { 0 };
    if (!program || f->why || !is_wanted() || !make_room(f, (uint32_t)graph->kernels.count))
        return NULL;
    gy_maths_code *code = &f->code[kernel];
    if (code->steps)
        return code;
    if (compile(&f->object[kernel], &code->steps, program, &f->by, &err)) {
        f->why = gy_strdup(err.text);
        return NULL;
    }
    code->program = program;
    f->compiled++;
    return code;
}

void gy_formulas_free(gy_formulas *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (f->object[i])
            dlclose(f->object[i]);
    gy_free(f->code);
    gy_free(f->object);
    gy_free(f->why);
    *f = (gy_formulas){ 0 };
}
