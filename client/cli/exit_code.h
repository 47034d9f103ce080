// What the program's exit codes mean. A contract for scripts (docs/cli.md).
#ifndef REGATTA_CLIENT_CLI_EXIT_CODE_H_
#define REGATTA_CLIENT_CLI_EXIT_CODE_H_

#include "absl/status/status.h"

namespace regatta::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotExact = 3;

// Prints "regatta: message" on standard error; InvalidArgument is bad usage,
// every other error a failure.
int Fail(const absl::Status& status);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_EXIT_CODE_H_
