/* SPDX-License-Identifier: Apache-2.0 */
/* Included by own.cu: that files of the graph's folder are found. */
typedef unsigned char bias_type;
#define TILE 16
