/*
 * Asks for the driver's undocumented tables before anything else, as libnvrtc and NVML do: the
 * answer must be the driver's, and asking must start nothing.
 *
 * Expected: `result 500`, `table_kept 0`; no memory in any report.
 */
#include "tally.h"

int main(void) {
  const void *table = &table;
  CUuuid id = {{0x6b, (char)0xd5, (char)0xfb, 0x6c}};
  int result = cuGetExportTable(&table, &id);
  printf("result %d\ntable_kept %d\n", result, table != NULL);
  return result != CUDA_ERROR_NOT_FOUND;
}
