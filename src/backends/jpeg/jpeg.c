/* SPDX-License-Identifier: Apache-2.0 */
/* gantry-jpeg.so: the table of images/decoder.h over TurboJPEG, the interface of libjpeg-turbo that reports errors
 * instead of ending the process. */
#include "gantry_build_id.h"
#include "images/decoder.h"
#include <gantry/status.h>
#include <stdio.h>
#include <turbojpeg.h>

/* Files that repeat their passes without end are refused where the library can. */
#ifdef TJFLAG_LIMITSCANS
enum { FLAGS = TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS };
#else
enum { FLAGS = TJFLAG_STOPONWARNING };
#endif

static bool fail(char why[GY_DECODER_WHY], const char *text)
{
    snprintf(why, GY_DECODER_WHY, "%s", text);
    return false;
}

static bool look_with(tjhandle handle, const void *data, size_t length, gy_image_size *image, char why[GY_DECODER_WHY])
{
    int width = 0, height = 0, samples = 0, space = 0; /* left as they are by a file that ends ahead of its sizes */
    if (tjDecompressHeader3(handle, data, (unsigned long)length, &width, &height, &samples, &space))
        return fail(why, tjGetErrorStr2(handle));
    if (space == TJCS_CMYK || space == TJCS_YCCK)
        return fail(why, "it has four colours for print (CMYK); those of a screen (RGB) or gray are allowed");
    *image = (gy_image_size){ height, width, space == TJCS_GRAY ? 1 : 3 };
    return true;
}

static bool look(const void *data, size_t length, gy_image_size *image, char why[GY_DECODER_WHY])
{
    tjhandle handle = tjInitDecompress();
    if (!handle)
        return fail(why, tjGetErrorStr2(NULL));
    bool fine = look_with(handle, data, length, image, why);
    tjDestroy(handle);
    return fine;
}

static bool decode(const void *data, size_t length, const gy_image_size *image, void *to, char why[GY_DECODER_WHY])
{
    tjhandle handle = tjInitDecompress();
    if (!handle)
        return fail(why, tjGetErrorStr2(NULL));
    int format = image->channels == 1 ? TJPF_GRAY : TJPF_RGB, width = (int)image->width, height = (int)image->height;
    bool fine = !tjDecompress2(handle, data, (unsigned long)length, to, width, 0, height, format, FLAGS);
    if (!fine)
        fail(why, tjGetErrorStr2(handle));
    tjDestroy(handle);
    return fine;
}

GANTRY_API extern const char gantry_jpeg_build_id[];
const char gantry_jpeg_build_id[] = GY_BUILD_ID;

GANTRY_API const void *gantry_jpeg_module(void);

const void *gantry_jpeg_module(void)
{
    static const gy_decoder table = { "libjpeg-turbo", look, decode };
    return &table;
}
