/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas with other texts in place of names. */
#include "maths/maths.h"

#include "base/chars.h"
#include <string.h>

/* Characters of the number or the name at the start of the text; 1 for any other sign. */
static size_t word_length(const char *text)
{
    bool is_real;
    size_t length = 0;
    if (gy_is_digit(*text))
        return gy_number_length(text, strlen(text), &is_real);
    while (gy_is_letter(text[length]) || (length && gy_is_digit(text[length])))
        length++;
    return length ? length : 1;
}

/* GY_MATHS_ARGS: the word is no argument. Before a bracket it is a function, whatever arguments are called. */
static uint32_t find_arg(const gy_maths *maths, const char *word, size_t length)
{
    const char *behind = word + length + strspn(word + length, " \t\r\n");
    for (uint32_t i = 0; i < maths->args && *behind != '('; i++)
        if (strlen(maths->arg[i]) == length && memcmp(maths->arg[i], word, length) == 0)
            return i;
    return GY_MATHS_ARGS;
}

void gy_maths_rewrite(gy_text *to, const gy_maths *maths, const char *text, const char *const *given)
{
    while (*text) {
        size_t length = word_length(text);
        uint32_t arg = gy_is_letter(*text) ? find_arg(maths, text, length) : GY_MATHS_ARGS;
        if (arg == GY_MATHS_ARGS)
            gy_text_add_n(to, text, length);
        else
            gy_text_add(to, given[arg]);
        text += length;
    }
}
