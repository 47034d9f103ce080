// A library that says it is NVRTC 12.4 and compiles nothing, to see which one is
// chosen.
#include <stddef.h>

enum { kSuccess = 0, kInternalError = 11 };

const char *nvrtcGetErrorString(int code) { return code ? "fake" : "none"; }
int nvrtcVersion(int *major, int *minor) {
  *major = 12;
  *minor = 4;
  return kSuccess;
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
