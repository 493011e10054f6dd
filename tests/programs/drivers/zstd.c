/* Compresses what it reads at several levels, with checksums, in streams and with a dictionary, and
   checks that each comes back; then feeds the decoder broken frames. */
#define ZSTD_STATIC_LINKING_ONLY
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "zdict.h"
#include "zstd.h"

static char in[65536], back[65536], packed[131072];

static void check(const char *what, size_t got, size_t size) {
  if (ZSTD_isError(got) || got != size || memcmp(in, back, size)) {
    printf("%s: %s\n", what, ZSTD_isError(got) ? ZSTD_getErrorName(got) : "differs");
    exit(1);
  }
}

/* Small tables keep the number of steps down: it is they that are cleared, over and over. */
static size_t with(ZSTD_CCtx *c, int strategy, int literals, size_t size) {
  ZSTD_CCtx_reset(c, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(c, ZSTD_c_strategy, strategy);
  ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, 12);
  ZSTD_CCtx_setParameter(c, ZSTD_c_hashLog, 8);
  ZSTD_CCtx_setParameter(c, ZSTD_c_chainLog, 8);
  ZSTD_CCtx_setParameter(c, ZSTD_c_searchLog, 2);
  ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, strategy & 1);
  ZSTD_CCtx_setParameter(c, ZSTD_c_literalCompressionMode, literals);
  return ZSTD_compress2(c, packed, sizeof packed, in, size);
}

static void streams(size_t size) {
  ZSTD_DCtx *d = ZSTD_createDCtx();
  ZSTD_CCtx *c = ZSTD_createCCtx();
  ZSTD_inBuffer from = {in, size, 0};
  ZSTD_outBuffer to = {packed, sizeof packed, 0};
  size_t chunk = 700;
  ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, 11);
  ZSTD_CCtx_setParameter(c, ZSTD_c_hashLog, 8);
  ZSTD_CCtx_setParameter(c, ZSTD_c_enableLongDistanceMatching, 1);
  ZSTD_CCtx_setParameter(c, ZSTD_c_ldmHashLog, 8);
  for (size_t end = chunk; end < size; end += chunk) {
    from.size = end;
    ZSTD_compressStream2(c, &to, &from, ZSTD_e_flush);
  }
  from.size = size;
  while (ZSTD_compressStream2(c, &to, &from, ZSTD_e_end)) {}
  ZSTD_inBuffer packed_in = {packed, to.pos, 0};
  ZSTD_outBuffer out = {back, sizeof back, 0};
  while (packed_in.pos < packed_in.size) {
    size_t left = ZSTD_decompressStream(d, &out, &packed_in);
    if (ZSTD_isError(left)) break;
  }
  check("stream", out.pos, size);
  ZSTD_freeCCtx(c);
  ZSTD_freeDCtx(d);
}

static void dictionary(ZSTD_CCtx *c, ZSTD_DCtx *d, size_t size) {
  size_t got = ZSTD_compress_usingDict(c, packed, sizeof packed, in, size, in + size / 2, size / 4, 1);
  check("dictionary", ZSTD_decompress_usingDict(d, back, sizeof back, packed, got, in + size / 2, size / 4), size);
}

int main(void) {
  size_t size = fread(in, 1, sizeof in, stdin), got = 0;
  ZSTD_CCtx *c = ZSTD_createCCtx();
  ZSTD_DCtx *d = ZSTD_createDCtx();
  for (int strategy = ZSTD_fast; strategy <= ZSTD_btultra2; strategy++) {
    size_t part = strategy >= ZSTD_btopt ? size / 3 : size;
    got = with(c, strategy, strategy == 2 ? ZSTD_ps_disable : ZSTD_ps_auto, part);
    check("level", ZSTD_decompressDCtx(d, back, sizeof back, packed, got), part);
  }
  dictionary(c, d, size < 2000 ? size : 2000);
  streams(size);
  memset(in, 'x', 3000);
  check("run", ZSTD_decompressDCtx(d, back, sizeof back, packed, with(c, 1, ZSTD_ps_auto, 3000)), 3000);
  for (size_t i = 0; i < got; i += got / 8 + 1) {
    packed[i] ^= 0x55;
    size_t result = ZSTD_decompressDCtx(d, back, sizeof back, packed, got);
    printf("broken at %zu: %s\n", i, ZSTD_getErrorName(result));
  }
  ZSTD_freeCCtx(c);
  ZSTD_freeDCtx(d);
  printf("%zu bytes came back\n", size);
  return 0;
}
