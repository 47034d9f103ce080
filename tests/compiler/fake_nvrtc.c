// A library that says it is the NVRTC that FAKE_NVRTC names ("12.4" where that
// is unset) and compiles nothing, to see which one is chosen. Built with BROKEN
// it does not start.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { kSuccess = 0, kInternalError = 11 };

const char *nvrtcGetErrorString(int code) { return code ? "fake" : "none"; }
int nvrtcVersion(int *major, int *minor) {
#ifdef BROKEN
  return kInternalError;
#endif
  const char *wanted = getenv("FAKE_NVRTC");
  if (wanted == NULL) wanted = "12.4";
  return sscanf(wanted, "%d.%d", major, minor) == 2 ? kSuccess : kInternalError;
}
int nvrtcGetNumSupportedArchs(int *count) {
  *count = 1;
  return kSuccess;
}
int nvrtcGetSupportedArchs(int *archs) {
  *archs = 80;
  return kSuccess;
}
int nvrtcCreateProgram(void *p) { return kInternalError; }
int nvrtcDestroyProgram(void *p) { return kInternalError; }
int nvrtcCompileProgram(void *p) { return kInternalError; }
int nvrtcGetPTXSize(void *p) { return kInternalError; }
int nvrtcGetPTX(void *p) { return kInternalError; }
int nvrtcGetCUBINSize(void *p) { return kInternalError; }
int nvrtcGetCUBIN(void *p) { return kInternalError; }
int nvrtcGetProgramLogSize(void *p) { return kInternalError; }
int nvrtcGetProgramLog(void *p) { return kInternalError; }
