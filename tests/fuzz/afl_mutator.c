/* SPDX-License-Identifier: Apache-2.0 */
/* The mutations of json_mutator.c for AFL++, which loads them (AFL_CUSTOM_MUTATOR_LIBRARY). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct mutator {
    unsigned seed;
    uint8_t *text;
    size_t room;
} mutator;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
void *afl_custom_init(void *afl, unsigned seed);
size_t afl_custom_fuzz(void *data, uint8_t *buf, size_t size, uint8_t **out, uint8_t *other, size_t others,
                       size_t max_size);
void afl_custom_deinit(void *data);

/* Input that is no JSON: AFL has better ways, so a few bytes change and no more. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)max_size;
    for (int i = 0; i < 3 && size; i++)
        data[(size_t)rand() % size] = (uint8_t)rand();
    return size;
}

void *afl_custom_init(void *afl, unsigned seed)
{
    (void)afl;
    mutator *m = calloc(1, sizeof *m);
    if (m)
        m->seed = seed;
    return m;
}

size_t afl_custom_fuzz(void *data, uint8_t *buf, size_t size, uint8_t **out, uint8_t *other, size_t others,
                       size_t max_size)
{
    mutator *m = data;
    (void)other;
    (void)others;
    if (m->room < max_size) {
        uint8_t *more = realloc(m->text, max_size);
        if (!more)
            return 0;
        m->text = more;
        m->room = max_size;
    }
    memcpy(m->text, buf, size < max_size ? size : max_size);
    *out = m->text;
    m->seed = m->seed * 1103515245u + 12345u;
    return LLVMFuzzerCustomMutator(m->text, size < max_size ? size : max_size, max_size, m->seed);
}

void afl_custom_deinit(void *data)
{
    mutator *m = data;
    free(m->text);
    free(m);
}
