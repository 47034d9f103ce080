#include "proto/grpc_log_service.h"

#include <grpc/support/log.h>

#include <cstdlib>

#include "base/log.h"

namespace regatta {
namespace {

void Write(gpr_log_func_args* line) {
  const LogLevel level = line->severity == GPR_LOG_SEVERITY_ERROR
                             ? LogLevel::kWarning
                             : LogLevel::kInfo;
  LogLine(level, line->file, line->line).stream() << "gRPC: " << line->message;
}

}  // namespace

void KeepGrpcQuiet() {
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  gpr_set_log_function(Write);
}

}  // namespace regatta
