// Logs of what goes wrong would be all that fuzzers do. libFuzzer calls this
// once, before the first input.
#include "base/log.h"
#include "google/protobuf/stubs/logging.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  regatta::SetLogThreshold(regatta::LogLevel::kError);
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}
